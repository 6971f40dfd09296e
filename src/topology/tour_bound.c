/* tour_bound.c - the three conditions on the edges up to a cost, and a bisection over costs.
 *
 * One idea: the edges are bit sets by row and by column, so that a search from a member takes n^2 / 64 steps.  The
 * matching is Hopcroft and Karp's (SIAM J. Comput. 2, 1973).
 * SPDX-License-Identifier: MIT */
#include "topology/tour_bound.h"

#include <string.h>

enum { NOBODY = 0xFFFF };

struct graph {
    const uint64_t *cost; /* borrowed, [n][n] */
    size_t n, words;
    uint64_t *out, *in;             /* borrowed, [n][words]: edges by where they begin, and by where they end */
    uint64_t *alive, *seen, *other; /* borrowed, [words] */
    uint16_t *successor, *predecessor, *level, *queue; /* borrowed, [n] */
};

static size_t words_for(size_t n)
{
    return (n + 63) / 64;
}

size_t tour_bound_room(size_t n)
{
    return 8 * (2 * n + 3) * words_for(n) + 8 * ((4 * 2 * n + 7) / 8);
}

static void graph_init(struct graph *g, const uint64_t *cost, size_t n, void *storage)
{
    g->cost = cost;
    g->n = n;
    g->words = words_for(n);
    g->out = storage;
    g->in = g->out + n * g->words;
    g->alive = g->in + n * g->words;
    g->seen = g->alive + g->words;
    g->other = g->seen + g->words;
    g->successor = (uint16_t *)(void *)(g->other + g->words);
    g->predecessor = g->successor + n;
    g->level = g->predecessor + n;
    g->queue = g->level + n;
}

static void bit_set(uint64_t *bits, size_t i)
{
    bits[i / 64] |= UINT64_C(1) << i % 64;
}

static bool bit_is(const uint64_t *bits, size_t i)
{
    return (bits[i / 64] >> i % 64 & 1) != 0;
}

static void edges_fill(struct graph *g, uint64_t cap)
{
    memset(g->out, 0, 2 * g->n * g->words * sizeof *g->out);
    for (size_t i = 0; i < g->n; i++) {
        for (size_t j = 0; j < g->n; j++) {
            if (i != j && g->cost[i * g->n + j] <= cap) {
                bit_set(g->out + i * g->words, j);
                bit_set(g->in + j * g->words, i);
            }
        }
    }
}

/* Levels of members without a successor and of those that alternating paths lead to; false if no path ends. */
static bool levels_fill(struct graph *g)
{
    size_t head = 0, tail = 0;
    bool ends = false;
    for (size_t i = 0; i < g->n; i++) {
        g->level[i] = NOBODY;
        if (g->successor[i] == NOBODY) {
            g->level[i] = 0;
            g->queue[tail++] = (uint16_t)i;
        }
    }
    while (head < tail) {
        size_t i = g->queue[head++];
        for (size_t j = 0; j < g->n; j++) {
            uint16_t before = g->predecessor[j];
            if (!bit_is(g->out + i * g->words, j)) {
                continue;
            }
            ends = ends || before == NOBODY;
            if (before != NOBODY && g->level[before] == NOBODY) {
                g->level[before] = (uint16_t)(g->level[i] + 1);
                g->queue[tail++] = before;
            }
        }
    }
    return ends;
}

/* Gives member i a successor along a path of the levels; the depth is that of the levels. */
static bool path_take(struct graph *g, size_t i)
{
    for (size_t j = 0; j < g->n; j++) {
        uint16_t before = g->predecessor[j];
        if (!bit_is(g->out + i * g->words, j)) {
            continue;
        }
        if (before == NOBODY || (g->level[before] == g->level[i] + 1 && path_take(g, before))) {
            g->successor[i] = (uint16_t)j;
            g->predecessor[j] = (uint16_t)i;
            return true;
        }
    }
    g->level[i] = NOBODY;
    return false;
}

/* Whether each member can have a successor of its own. */
static bool all_matched(struct graph *g)
{
    size_t matched = 0;
    memset(g->successor, 0xFF, 2 * g->n * sizeof *g->successor); /* and the predecessors */
    while (matched < g->n && levels_fill(g)) {
        for (size_t i = 0; i < g->n; i++) {
            matched += g->successor[i] == NOBODY && path_take(g, i);
        }
    }
    return matched == g->n;
}

/* Fills `seen` with the members alive that `from` reaches along the rows of `edges`. */
static void reach_fill(struct graph *g, const uint64_t *edges, size_t from, uint64_t *seen)
{
    size_t tail = 0;
    memset(seen, 0, g->words * sizeof *seen);
    bit_set(seen, from);
    g->queue[tail++] = (uint16_t)from;
    for (size_t head = 0; head < tail; head++) {
        const uint64_t *row = edges + g->queue[head] * g->words;
        for (size_t w = 0; w < g->words; w++) {
            for (uint64_t fresh = row[w] & g->alive[w] & ~seen[w]; fresh != 0; fresh &= fresh - 1) {
                g->queue[tail++] = (uint16_t)(64 * w + (size_t)__builtin_ctzll(fresh));
            }
            seen[w] |= row[w] & g->alive[w];
        }
    }
}

static bool covers_alive(const struct graph *g, const uint64_t *bits)
{
    for (size_t w = 0; w < g->words; w++) {
        if ((g->alive[w] & ~bits[w]) != 0) {
            return false;
        }
    }
    return true;
}

static size_t first_alive(const struct graph *g)
{
    size_t i = 0;
    while (i < g->n && !bit_is(g->alive, i)) {
        i++;
    }
    return i;
}

static bool all_reach_all(struct graph *g)
{
    size_t from = first_alive(g);
    if (from == g->n) {
        return true;
    }
    reach_fill(g, g->out, from, g->seen);
    reach_fill(g, g->in, from, g->other);
    return covers_alive(g, g->seen) && covers_alive(g, g->other);
}

/* The only member that may reach all others alive: each one that is not reached takes the place of the one before. */
static size_t root_find(struct graph *g)
{
    size_t root = first_alive(g);
    uint64_t *reached = g->other;
    reach_fill(g, g->out, root, reached);
    for (size_t i = root + 1; i < g->n; i++) {
        if (bit_is(g->alive, i) && !bit_is(reached, i)) {
            root = i;
            reach_fill(g, g->out, root, g->seen);
            for (size_t w = 0; w < g->words; w++) {
                reached[w] |= g->seen[w];
            }
        }
    }
    return root;
}

/* Whether of any two members alive one reaches the other: the strong components form a chain. */
static bool one_of_two_reaches(struct graph *g)
{
    if (all_reach_all(g)) {
        return true;
    }
    while (first_alive(g) < g->n) {
        size_t root = root_find(g);
        reach_fill(g, g->out, root, g->seen);
        if (!covers_alive(g, g->seen)) {
            return false;
        }
        reach_fill(g, g->in, root, g->other);
        for (size_t w = 0; w < g->words; w++) {
            g->alive[w] &= ~g->other[w];
        }
    }
    return true;
}

static void alive_all(struct graph *g)
{
    memset(g->alive, 0, g->words * sizeof *g->alive);
    for (size_t i = 0; i < g->n; i++) {
        bit_set(g->alive, i);
    }
}

/* Whether edges up to `cap` may hold a ring. */
static bool may_hold(struct graph *g, uint64_t cap)
{
    edges_fill(g, cap);
    alive_all(g);
    if (!all_reach_all(g) || !all_matched(g)) {
        return false;
    }
    for (size_t i = 0; i < g->n; i++) {
        alive_all(g);
        g->alive[i / 64] &= ~(UINT64_C(1) << i % 64);
        if (!one_of_two_reaches(g)) {
            return false;
        }
    }
    return true;
}

uint64_t tour_bound(const uint64_t *cost, size_t n, uint64_t known, void *storage)
{
    struct graph g;
    if (n < 2 || known == 0) {
        return 0;
    }
    graph_init(&g, cost, n, storage);
    if (!may_hold(&g, known - 1)) {
        return known;
    }
    uint64_t low = 0, high = known - 1; /* high may hold a ring; at low none can */
    while (high - low > 1) {
        uint64_t middle = low + (high - low) / 2;
        if (may_hold(&g, middle)) {
            high = middle;
        } else {
            low = middle;
        }
    }
    return high;
}
