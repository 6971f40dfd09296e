/* breaks.c - the edges of a group that broke, or were given up: found by their ends, and the oldest forgotten for a new one.
 *
 * Its one idea: in a partition every pair is told of by both its ends, so each is found in a hash and the oldest in a heap.
 * Invariant: an entry is in both, once, under its ends and the time since when its breaks count.
 * SPDX-License-Identifier: MIT */
#include <string.h>

#include "core/mix.h"
#include "core/rows.h"
#include "world/world_state.h"
#include "world/breaks.h"

static uint32_t home_of(const struct world *w, const struct group *g, uint64_t a, uint64_t b)
{
    return (uint32_t)mix64(mix64(w->common->config.seed, a), b) & (g->break_index_size - 1);
}

/* Where the entry of this pair is, or would go. */
static uint32_t place_of(const struct world *w, const struct group *g, uint64_t a, uint64_t b)
{
    uint32_t at = home_of(w, g, a, b);
    for (; g->break_index[at] != 0; at = (at + 1) & (g->break_index_size - 1)) {
        const struct edge_break *k = &g->breaks[g->break_index[at] - 1];
        if (k->a == a && k->b == b) {
            break;
        }
    }
    return at;
}

struct edge_break *breaks_find(const struct world *w, const struct group *g, uint64_t x, uint64_t y)
{
    uint32_t at = place_of(w, g, x < y ? x : y, x < y ? y : x);
    return g->break_index[at] != 0 ? &g->breaks[g->break_index[at] - 1] : NULL;
}

struct breaks_of {
    const struct world *w;
    const struct group *g;
};

static uint32_t entry_home(const void *of, uint32_t i)
{
    const struct breaks_of *b = of;
    return home_of(b->w, b->g, b->g->breaks[i].a, b->g->breaks[i].b);
}

static void forget(const struct world *w, struct group *g, const struct edge_break *k)
{
    rows_close(g->break_index, g->break_index_size, place_of(w, g, k->a, k->b), entry_home, &(struct breaks_of){w, g});
}

struct edge_break *breaks_get(const struct world *w, struct group *g, uint64_t x, uint64_t y)
{
    uint64_t a = x < y ? x : y, b = x < y ? y : x;
    struct edge_break *k = breaks_find(w, g, a, b);
    if (k != NULL) {
        return k;
    }
    bool room = g->break_count < g->size.breaks;
    uint32_t i = room ? g->break_count : heap_first(&g->break_ages);
    if (!room) {
        forget(w, g, &g->breaks[i]);
    }
    g->break_count += room;
    g->breaks[i] = (struct edge_break){.a = a, .b = b};
    g->break_index[place_of(w, g, a, b)] = i + 1;
    breaks_since(g, &g->breaks[i], w->common->now);
    return &g->breaks[i];
}

void breaks_since(struct group *g, struct edge_break *k, int64_t since)
{
    k->since = since;
    heap_set(&g->break_ages, (uint32_t)(k - g->breaks), since);
}

void breaks_rebuild(const struct world *w, struct group *g)
{
    memset(g->break_index, 0, g->break_index_size * sizeof *g->break_index);
    g->break_ages = (struct heap){0};
    heap_use(&g->break_ages, g->break_storage, g->size.breaks);
    for (uint32_t i = 0; i < g->break_count; i++) {
        g->break_index[place_of(w, g, g->breaks[i].a, g->breaks[i].b)] = i + 1;
        breaks_since(g, &g->breaks[i], g->breaks[i].since);
    }
}

void breaks_clear(const struct world *w, struct group *g)
{
    g->break_count = 0;
    if (g->memory != NULL) {
        breaks_rebuild(w, g);
    }
}

void breaks_check(const struct world *w, const struct group *g)
{
    PCCL_ASSERT(g->break_count <= g->size.breaks);
    for (uint32_t i = 0; i < g->break_count; i++) {
        const struct edge_break *k = &g->breaks[i];
        PCCL_ASSERT(k->a < k->b && breaks_find(w, g, k->a, k->b) == k && g->break_ages.key[i] == k->since);
    }
    PCCL_ASSERT(g->memory == NULL || (heap_sound(&g->break_ages) && g->break_ages.used == g->break_count));
}
