/* own_pause.c - the master suspects itself before it blames others (M7).
 *
 * Its one idea: silence of very many at once says something about who listens; so it is judged over the members of all
 * worlds, however small a world is.  Invariant: nobody is excluded in a step that was late, or spared all.
 * SPDX-License-Identifier: MIT */
#include "master/master_state.h"

/* By how much a step is late says in which worlds members may seem silent who are not. */
void pause_noticed(struct master *m, int64_t late_ns)
{
    if (late_ns <= world_pause_ns(m->common.stall_ms)) {
        return;
    }
    for (struct world *w = registry_after(m, NULL); w != NULL; w = registry_after(m, w)) {
        if (late_ns > world_pause(w)) {
            world_restart_timers(w);
            registry_due_again(m, w);
        }
    }
}

/* More than half quiet when the first is to go says that the fault is on this side; once, then it is believed. */
void pause_spare(struct master *m, struct world *w)
{
    struct world_census all = {0};
    if (!world_silent(w)) {
        return;
    }
    for (struct world *each = registry_after(m, NULL); each != NULL; each = registry_after(m, each)) {
        world_count(each, &all);
    }
    if (2 * all.quiet <= all.registered || m->common.now - m->spared_at < 2 * m->common.config.dead_ns) {
        return;
    }
    m->spared_at = m->common.now;
    for (struct world *each = registry_after(m, NULL); each != NULL; each = registry_after(m, each)) {
        world_hear_all(each);
        registry_due_again(m, each);
    }
}
