/* plan_cache.h - plans, kept for calls that repeat: making one costs as much as it has steps, and a program's counts are few.
 *
 * The last few that operations of a communicator ran, by all that a plan depends on: a view says ring, weights and how programs count
 * ranks, the parameters the rest.  Plans with lists of counts are not kept: these are the program's, and may be others the next time.
 * A plan is never changed once it is made, and lives as long as whoever holds it; executors read it on any lane.
 * Invariant: what is kept is of one view, and never more than PLAN_CACHE_MOST.  Not thread-safe, but for plan_made_drop.
 * SPDX-License-Identifier: MIT */
#ifndef PCCL_ENGINE_PLAN_CACHE_H
#define PCCL_ENGINE_PLAN_CACHE_H

#include <stdatomic.h>

#include "collectives/plan.h"
#include "core/list.h"

enum { PLAN_CACHE_MOST = 8 };

struct plan_made {
    atomic_uint holders;     /* operations, and the cache */
    struct list recent;      /* in the cache, the one used last first; else alone */
    struct plan_params asked; /* what was borrowed is not kept (null) */
    struct plan plan;
    uint64_t *ids;           /* in this block, like segments and steps: of the partners, by number; ascending */
    uint64_t first, last;    /* ids of the first and the last rank */
};

struct plan_cache {
    struct list recent;      /* owned: plan_made.recent */
    uint32_t count;
    uint64_t view;           /* that all of them are of */
};

void plan_cache_init(struct plan_cache *cache);
/* The plan of these parameters among these ranks (their ids, ascending) in this view, which the caller holds; null: no memory. */
struct plan_made *plan_cache_take(struct plan_cache *cache, uint64_t view, const struct plan_params *params, const uint64_t *ranks);
/* The partner with this id; PLAN_NOBODY: it has no part in the plan. */
uint32_t plan_made_partner(const struct plan_made *made, uint64_t id);
/* Forgets all; who holds one keeps it. */
void plan_cache_clear(struct plan_cache *cache);
/* Holds it no more; null is fine. */
void plan_made_drop(struct plan_made *made);

#endif
