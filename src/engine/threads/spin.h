/* spin.h - how long a call that waits looks before it sleeps.
 *
 * As a rule that follows from how long the wait before took, asleep or not: twice as long as a short one, less and less after long
 * ones.  Whether looking paid is no measure there: two processes that share a core by chance never see it pay, so they sleep, are woken
 * on the core of whoever wakes them, and stay together.  It is the measure where more processes of a communicator run on this host than
 * it has cores: a core that is looked from is one less to work.
 * SPDX-License-Identifier: MIT */
#ifndef PCCL_ENGINE_SPIN_H
#define PCCL_ENGINE_SPIN_H

#include <stdbool.h>
#include <stdint.h>

enum {
    SPIN_LEAST_NS = 2000,
    SPIN_FIRST_NS = 50000, /* of a thread */
    SPIN_MOST_NS = 400000,
    SPIN_MOST_CROWDED_NS = 200000,
};

/* A wait that is over. */
struct spin_wait {
    int64_t spin_ns, waited_ns; /* how long it was to look; how long it took */
    bool slept;                 /* looking did not pay */
    bool crowded;               /* more processes than cores */
};

/* How long the next one is to look. */
int64_t spin_learn(const struct spin_wait *w);

#endif
