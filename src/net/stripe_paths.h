/* stripe_paths.h - how many sockets each path needed last, for the stripes that begin on it later.
 *
 * A stripe ends with its connection: when that breaks, when its peer leaves, or with its communicator.  The path stays.  What a policy
 * finds within seconds of trials is therefore kept by path, for all communicators of a process.
 * Invariant: an entry holds what a policy has settled at, never the number of a trial.
 * SPDX-License-Identifier: MIT */
#ifndef PCCL_NET_STRIPE_PATHS_H
#define PCCL_NET_STRIPE_PATHS_H

#include <pthread.h>
#include <stdint.h>

#include "net/stripe_policy.h"

enum { STRIPE_PATHS = 256 };

struct stripe_path {
    uint64_t name;
    uint64_t noted;       /* when, in notes of the table; 0: free */
    uint32_t lanes;       /* so many stripes shared it */
    struct stripe_settled settled; /* each of them */
};

struct stripe_paths {
    pthread_mutex_t lock; /* of all of it */
    uint64_t notes;
    struct stripe_path path[STRIPE_PATHS];
};

/* Forgets all. */
void stripe_paths_init(struct stripe_paths *p);
/* The path noted longest ago makes room. */
void stripe_paths_note(struct stripe_paths *p, uint64_t name, uint32_t lanes, const struct stripe_settled *settled);
/* For one of so many stripes that share the path from now on; count 0: nothing is known. */
void stripe_paths_find(struct stripe_paths *p, uint64_t name, uint32_t lanes, struct stripe_settled *out);

#endif
