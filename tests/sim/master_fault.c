/* master_fault.c - what happens to the master: it stands still, or its process dies, and comes back or not.
 *
 * One idea: a master that is started again is a fresh one, with another run: it refuses who comes back, and they join anew.  One death
 * in three is for good: then every call must end and every program give up, without anybody to ask.
 * Invariant: one fault of the master at a time; what ends it is the event of the one that began it, or the end of all faults.
 * SPDX-License-Identifier: MIT */
#include "sim_cluster.h"

void master_fault_begin(struct cluster *cl, uint32_t index)
{
    const struct fault *f = &cl->faults[index];
    struct master_shell *s = &cl->master;
    if (s->dead || s->frozen) {
        return;
    }
    if (f->kind == FAULT_MASTER_PAUSE) {
        cluster_freeze(cl, CLUSTER_MASTER, true);
    } else {
        master_shell_kill(cl);
        s->gone = mix64(cl->opt.seed, index) % 3 == 0;
    }
    cluster_post(cl, f->for_ns, EVENT_FAULT_END, CLUSTER_NOBODY, index, 0, 0);
}

void master_fault_end(struct cluster *cl)
{
    struct master_shell *s = &cl->master;
    if (s->frozen) {
        cluster_freeze(cl, CLUSTER_MASTER, false);
    }
    if (s->dead && !s->gone) {
        master_shell_start(cl);
    }
}
