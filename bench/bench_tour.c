/* bench_tour.c - how long the ring solvers take, and how far the rings are from what is proven.
 *
 * One idea: drawn networks, seeded, so that every run solves the same problems.  The gap is what the slowest edge of
 * the ring lacks to the bound (tour_bound.h), which no ring can beat.  Beside it stands what nearest neighbour and
 * 2-opt reach.
 * Invariant: nothing but the solver runs between two readings of the clock.
 * SPDX-License-Identifier: MIT */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "tests/drawn_network.h"
#include "topology/tour_bound.h"
#include "topology/tour_exact.h"
#include "topology/tour_local.h"

enum { PEERS_MAX = DRAWN_MEMBERS, RUNS = 9, STARTS = 4, PASSES_MAX = 5 };

static struct drawn drawn;
static uint64_t cost[PEERS_MAX * PEERS_MAX];
static uint16_t start[PEERS_MAX], order[PEERS_MAX], storage[TOUR_LOCAL_ROOM(PEERS_MAX)];

static double clock_ms(void)
{
    struct timespec ts;
    clock_gettime(CLOCK_MONOTONIC, &ts);
    return (double)ts.tv_sec * 1e3 + (double)ts.tv_nsec / 1e6;
}

/* Edges in units of 100 Mb/s: the least rate on the way from one member to another. */
static void costs_draw(enum drawn_kind kind, size_t n, uint64_t seed)
{
    drawn_network(&drawn, kind, n, seed);
    for (size_t i = 0; i < n; i++) {
        for (size_t j = 0; j < n; j++) {
            double bps = fmin(network_path_bps(&drawn.net, i, j), fmin(drawn.up[i], drawn.down[j]));
            if (drawn.net.site != NULL && drawn.site[i] != drawn.site[j]) {
                bps = fmin(bps, fmin(drawn.site_up[drawn.site[i]], drawn.site_down[drawn.site[j]]));
            }
            cost[i * n + j] = i == j ? 0 : tour_edge_cost((uint64_t)(bps * 1e8));
        }
    }
}

/* A nearest-neighbour ring: where the search begins. */
static void greedy_build(size_t n, uint16_t *greedy)
{
    bool used[PEERS_MAX] = {true};
    greedy[0] = 0;
    for (size_t k = 1; k < n; k++) {
        size_t best = n;
        for (size_t i = 0; i < n; i++) {
            if (!used[i] && (best == n || cost[greedy[k - 1] * n + i] < cost[greedy[k - 1] * n + best])) {
                best = i;
            }
        }
        used[best] = true;
        greedy[k] = (uint16_t)best;
    }
}

static void part_reverse(uint16_t *ring, size_t from, size_t to)
{
    for (; from < to; from++, to--) {
        uint16_t swap = ring[from];
        ring[from] = ring[to];
        ring[to] = swap;
    }
}

/* Reverses parts of the ring as long as one of them makes it better, PASSES_MAX times over all of them at most. */
static struct tour_score two_opt(size_t n, uint16_t *ring)
{
    struct tour_score best = tour_score_of(cost, n, ring);
    bool better = true;
    for (size_t pass = 0; better && pass < PASSES_MAX; pass++) {
        better = false;
        for (size_t i = 1; i + 1 < n; i++) {
            for (size_t k = i + 1; k < n; k++) {
                /* No new edge may be slower than the slowest one. */
                size_t rest = ring[k + 1 == n ? 0 : k + 1];
                if (cost[ring[i - 1] * n + ring[k]] > best.max || cost[ring[i] * n + rest] > best.max) {
                    continue;
                }
                part_reverse(ring, i, k);
                struct tour_score s = tour_score_of(cost, n, ring);
                if (tour_score_less(s, best)) {
                    best = s;
                    better = true;
                } else {
                    part_reverse(ring, i, k);
                }
            }
        }
    }
    return best;
}

static void bench_exact(size_t n)
{
    double ms[DRAWN_KINDS];
    for (unsigned kind = 0; kind < DRAWN_KINDS; kind++) {
        struct tour_score s;
        costs_draw((enum drawn_kind)kind, n, 1);
        double begin = clock_ms();
        (void)tour_exact_solve(cost, n, order, &s);
        ms[kind] = clock_ms() - begin;
    }
    double middle = drawn_median(ms, DRAWN_KINDS);
    printf("exact ring of %zu: median %.3f ms, most %.3f ms\n", n, middle, ms[DRAWN_KINDS - 1]);
}

static void bench_local(enum drawn_kind kind, size_t n, void *bound_storage)
{
    double ms[RUNS], gap[RUNS], other_gap[RUNS], bound_ms[RUNS];
    unsigned worse = 0;
    for (size_t run = 0; run < RUNS; run++) {
        struct tour_local t;
        costs_draw(kind, n, run);
        greedy_build(n, start);
        double begin = clock_ms();
        bool ok = tour_local_init(&t, cost, n, start, STARTS, tour_local_moves(n), run, storage) &&
                  tour_local_step(&t, UINT64_MAX);
        ms[run] = clock_ms() - begin;
        struct tour_score found = tour_local_best(&t, order), other = two_opt(n, start);
        begin = clock_ms();
        double bound = (double)tour_bound(cost, n, found.max, bound_storage);
        bound_ms[run] = clock_ms() - begin;
        gap[run] = ok ? 100 * (1 - bound / (double)found.max) : 100;
        other_gap[run] = 100 * (1 - bound / (double)other.max);
        worse += tour_score_less(other, found);
    }
    double middle_gap = drawn_median(gap, RUNS), middle_ms = drawn_median(ms, RUNS);
    printf("%-13s %5zu %10.1f %9.1f %9.2f %9.2f %12.1f %7u %10.1f\n", drawn_names[kind], n, middle_ms, ms[RUNS - 1],
           middle_gap, gap[RUNS - 1], drawn_median(other_gap, RUNS), worse, drawn_median(bound_ms, RUNS));
}

int main(void)
{
    for (size_t n = 5; n <= TOUR_EXACT_MAX; n++) {
        bench_exact(n);
    }
    printf("\n%-13s %5s %10s %9s %9s %9s %12s %7s %10s\n", "network", "peers", "median ms", "most ms", "gap %",
           "most gap", "2-opt gap %", "worse", "bound ms");
    const size_t sizes[3] = {16, 64, 256};
    void *bound_storage = malloc(tour_bound_room(PEERS_MAX));
    for (size_t i = 0; bound_storage != NULL && i < 3; i++) {
        for (unsigned kind = 0; kind < DRAWN_KINDS; kind++) {
            bench_local((enum drawn_kind)kind, sizes[i], bound_storage);
        }
    }
    free(bound_storage);
    return 0;
}
