/* leaves.c - hashing all leaves of a shared state.
 *
 * The caller's thread works through the leaves; above a size helpers take leaves from the same counter, so that an
 * uneven machine balances itself.
 * SPDX-License-Identifier: MIT */
#include "engine/threads/leaves.h"

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>

enum { LEAVES_HELP_FROM = 64, LEAVES_HELPERS = 3 }; /* below 64 MiB a thread costs more than it brings */

struct leaves_work {
    struct sync_state *state;
    _Atomic uint32_t next; /* leaf */
};

static void *leaves_run(void *argument)
{
    struct leaves_work *w = argument;
    struct sync_state *s = w->state;
    uint32_t entry = 0;
    for (;;) {
        uint32_t leaf = atomic_fetch_add(&w->next, 1);
        if (leaf >= s->leaf_count) {
            return NULL;
        }
        while (leaf >= s->entries[entry].first_leaf + s->entries[entry].leaves) {
            entry++; /* leaves are handed out in order */
        }
        sync_hash_leaf(s, entry, leaf - s->entries[entry].first_leaf);
    }
}

void leaves_hash(struct sync_state *state, uint32_t cores)
{
    struct leaves_work work = {.state = state};
    pthread_t helper[LEAVES_HELPERS];
    uint32_t started = 0, wanted = cores > 1 && state->leaf_count >= LEAVES_HELP_FROM ? cores - 1 : 0;
    sigset_t all, old;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &old);
    while (started < wanted && started < LEAVES_HELPERS &&
           pthread_create(&helper[started], NULL, leaves_run, &work) == 0) {
        started++;
    }
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    leaves_run(&work);
    while (started > 0) {
        pthread_join(helper[--started], NULL);
    }
}
