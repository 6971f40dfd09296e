/* plan_cache.c - plans, kept for calls that repeat.
 *
 * Messages have plans of two ranks, which the view does not say: the first and the last of the ascending ids tell them apart.
 * SPDX-License-Identifier: MIT */
#include "engine/tables/plan_cache.h"

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
           made->first == ranks[0] && made->last == ranks[p->world - 1];
}

/* One block: a plan, its partners' ids, its segments, its pieces, its steps, its partners. */
static struct plan_made *make(const struct plan_params *p, const uint64_t *ranks)
{
    size_t segments = plan_max_segments(p), steps = plan_max_steps(p), pieces = plan_max_pieces(p), partners = plan_max_partners(p);
    size_t bytes = sizeof(struct plan_made) + partners * sizeof *ranks + segments * sizeof(struct plan_segment) +
                   pieces * sizeof(struct plan_piece) + steps * sizeof(struct plan_step) + partners * sizeof(uint32_t);
    struct plan_made *made = calloc(1, bytes);
    if (made == NULL) {
        return NULL;
    }
    atomic_init(&made->holders, 1);
    list_init(&made->recent);
    made->ids = (uint64_t *)(void *)(made + 1);
    struct plan_segment *segment = (struct plan_segment *)(void *)(made->ids + partners);
    struct plan_piece *piece = (struct plan_piece *)(void *)(segment + segments);
    struct plan_step *step = (struct plan_step *)(void *)(piece + pieces);
    plan_make(&made->plan, p, segment, step, piece, (uint32_t *)(void *)(step + steps));
    made->asked = made->plan.params;
    made->first = ranks[0];
    made->last = ranks[p->world - 1];
    for (uint32_t i = 0; i < made->plan.partner_count; i++) {
        made->ids[i] = ranks[made->plan.partners[i]];
    }
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

uint32_t plan_made_partner(const struct plan_made *made, uint64_t id)
{
    for (uint32_t low = 0, high = made->plan.partner_count; low < high;) {
        uint32_t middle = low + (high - low) / 2;
        if (made->ids[middle] == id) {
            return middle;
        }
        if (made->ids[middle] < id) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return PLAN_NOBODY;
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
