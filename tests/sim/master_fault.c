/* master_fault.c - what happens to the master: it stands still, or its process dies, and comes back or not.
 *
 * One idea: a master that is started again is a fresh one, with another run: it refuses who comes back, and they join anew.  One death
 * in three is for good: then every call must end and every program give up, without anybody to ask.
 * Invariant: one fault of the master at a time; what ends it is the event of the one that began it, or the end of all faults.
 * SPDX-License-Identifier: MIT */
#include "world.h"

void master_fault_begin(struct world *w, uint32_t index)
{
    const struct fault *f = &w->faults[index];
    struct master_shell *s = &w->master;
    if (s->dead || s->frozen) {
        return;
    }
    if (f->kind == FAULT_MASTER_PAUSE) {
        world_freeze(w, WORLD_MASTER, true);
    } else {
        master_shell_kill(w);
        s->gone = mix64(w->opt.seed, index) % 3 == 0;
    }
    world_post(w, f->for_ns, EVENT_FAULT_END, WORLD_NOBODY, index, 0, 0);
}

void master_fault_end(struct world *w)
{
    struct master_shell *s = &w->master;
    if (s->frozen) {
        world_freeze(w, WORLD_MASTER, false);
    }
    if (s->dead && !s->gone) {
        master_shell_start(w);
    }
}
