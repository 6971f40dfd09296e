/* own_pause.c - the master suspects itself before it blames others (M7).
 *
 * Its one idea: silence of very many at once says something about who listens; so it is judged over the members of all
 * worlds, however small a world is.  Invariant: nobody is excluded in a step that was late, or spared all.
 * SPDX-License-Identifier: MIT */
#include "master/master_state.h"

static void due_again(struct master *m, uint32_t place)
{
    m->places[place].due = world_deadline(m->places[place].world);
}

void pause_noticed(struct master *m)
{
    for (uint32_t i = 0; i < m->place_count; i++) {
        struct world *w = registry_at(m, i);
        if (w != NULL) {
            world_restart_timers(w);
            due_again(m, i);
        }
    }
}

/* More than half silent at once says that the fault is on this side; once, then it is believed. */
void pause_spare(struct master *m, const struct world *w)
{
    uint32_t all = 0, quiet = 0;
    world_census(w, &all, &quiet);
    if (quiet == 0) {
        return; /* nobody is about to go */
    }
    all = quiet = 0;
    for (uint32_t i = 0; i < m->place_count; i++) {
        const struct world *each = registry_at(m, i);
        if (each != NULL) {
            world_census(each, &all, &quiet);
        }
    }
    if (2 * quiet <= all || m->common.now - m->spared_at < 2 * m->common.config.dead_ns) {
        return;
    }
    m->spared_at = m->common.now;
    for (uint32_t i = 0; i < m->place_count; i++) {
        struct world *each = registry_at(m, i);
        if (each != NULL) {
            world_hear_all(each);
            due_again(m, i);
        }
    }
}
