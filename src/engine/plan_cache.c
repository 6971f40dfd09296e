/* plan_cache.c - plans, kept for calls that repeat.
 *
 * Messages have plans of two ranks, which the view does not say: the first and the last of the ascending ids tell them apart.
 * SPDX-License-Identifier: MIT */
#include "engine/plan_cache.h"

#include <stdlib.h>
#include <string.h>

static bool has_lists(const struct plan_params *p)
{
    return p->parts.counts != NULL || p->parts.places != NULL || p->out_parts.counts != NULL || p->out_parts.places != NULL;
}

static bool same(const struct plan_made *made, const struct plan_params *p, const uint64_t *ranks)
{
    const struct plan_params *q = &made->asked;
    return q->kind == p->kind && q->algorithm == p->algorithm && q->world == p->world && q->rank == p->rank && q->root == p->root &&
           q->lanes == p->lanes && q->count == p->count && q->align == p->align && q->frame_elements == p->frame_elements &&
           made->ranks[0] == ranks[0] && made->ranks[p->world - 1] == ranks[p->world - 1];
}

/* One block: a plan, its ranks, its segments, its pieces, its steps. */
static struct plan_made *make(const struct plan_params *p, const uint64_t *ranks)
{
    size_t segments = plan_max_segments(p), steps = plan_max_steps(p), pieces = plan_max_pieces(p);
    size_t bytes = sizeof(struct plan_made) + p->world * sizeof *ranks + segments * sizeof(struct plan_segment) +
                   pieces * sizeof(struct plan_piece) + steps * sizeof(struct plan_step);
    struct plan_made *made = calloc(1, bytes);
    if (made == NULL) {
        return NULL;
    }
    atomic_init(&made->holders, 1);
    list_init(&made->recent);
    made->ranks = (uint64_t *)(void *)(made + 1);
    memcpy(made->ranks, ranks, p->world * sizeof *ranks);
    struct plan_segment *segment = (struct plan_segment *)(void *)(made->ranks + p->world);
    struct plan_piece *piece = (struct plan_piece *)(void *)(segment + segments);
    plan_make(&made->plan, p, segment, (struct plan_step *)(void *)(piece + pieces), piece);
    made->asked = made->plan.params;
    return made;
}

static void forget(struct plan_cache *cache, struct plan_made *made)
{
    list_remove(&made->recent);
    cache->count--;
    plan_made_drop(made);
}

void plan_cache_init(struct plan_cache *cache)
{
    *cache = (struct plan_cache){0};
    list_init(&cache->recent);
}

struct plan_made *plan_cache_take(struct plan_cache *cache, uint64_t view, const struct plan_params *params, const uint64_t *ranks)
{
    if (view != cache->view) {
        plan_cache_clear(cache);
        cache->view = view;
    }
    if (has_lists(params)) {
        return make(params, ranks);
    }
    LIST_FOR_EACH(l, after, &cache->recent) {
        struct plan_made *made = LIST_ENTRY(l, struct plan_made, recent);
        if (same(made, params, ranks)) {
            list_remove(l);
            list_prepend(&cache->recent, l);
            atomic_fetch_add(&made->holders, 1);
            return made;
        }
    }
    struct plan_made *made = make(params, ranks);
    if (made == NULL) {
        return NULL;
    }
    if (cache->count == PLAN_CACHE_MOST) {
        forget(cache, LIST_ENTRY(cache->recent.prev, struct plan_made, recent));
    }
    list_prepend(&cache->recent, &made->recent);
    cache->count++;
    atomic_fetch_add(&made->holders, 1);
    return made;
}

void plan_cache_clear(struct plan_cache *cache)
{
    while (!list_empty(&cache->recent)) {
        forget(cache, LIST_ENTRY(cache->recent.next, struct plan_made, recent));
    }
}

void plan_made_drop(struct plan_made *made)
{
    if (made != NULL && atomic_fetch_sub(&made->holders, 1) == 1) {
        free(made);
    }
}
