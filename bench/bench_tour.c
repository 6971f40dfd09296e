/* bench_tour.c - how long the ring solvers take, and what the search gains over a greedy ring.
 *
 * Its one idea: rates as between real sites (20 Mb/s to 2.5 Gb/s, each doubling as likely as the next, each direction
 * its own), seeded, so that every run solves the same problems.  Beside the slowest edge found stands a bound that no
 * ring can beat: the peer whose best edge, in or out, is worst.
 * Invariant: nothing but the solver runs between two readings of the clock.
 * SPDX-License-Identifier: MIT */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "core/random.h"
#include "topology/tour_exact.h"
#include "topology/tour_local.h"

enum { PEERS_MAX = 256, RUNS_MAX = 201 };

static uint64_t cost[PEERS_MAX * PEERS_MAX];
static uint16_t start[PEERS_MAX], order[PEERS_MAX], storage[TOUR_LOCAL_ROOM(PEERS_MAX)];

static double clock_us(void)
{
    struct timespec ts;
    clock_gettime(CLOCK_MONOTONIC, &ts);
    return (double)ts.tv_sec * 1e6 + (double)ts.tv_nsec / 1e3;
}

static void draw_costs(size_t n, uint64_t seed)
{
    struct rng r = {.state = seed};
    for (size_t i = 0; i < n * n; i++) {
        uint64_t octave_bps = UINT64_C(20000000) << rng_below(&r, 7);
        cost[i] = tour_edge_cost(octave_bps + rng_below(&r, octave_bps));
    }
}

static int double_compare(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double median(double *values, size_t count)
{
    qsort(values, count, sizeof *values, double_compare);
    return values[count / 2];
}

static double cost_mbps(uint64_t edge_cost)
{
    return (double)TOUR_FORBIDDEN / (double)edge_cost / 1e6;
}

static double bound_mbps(size_t n)
{
    uint64_t bound = 0;
    for (size_t i = 0; i < n; i++) {
        uint64_t out = UINT64_MAX, in = UINT64_MAX;
        for (size_t j = 0; j < n; j++) {
            if (i != j) {
                out = cost[i * n + j] < out ? cost[i * n + j] : out;
                in = cost[j * n + i] < in ? cost[j * n + i] : in;
            }
        }
        bound = out > bound ? out : bound;
        bound = in > bound ? in : bound;
    }
    return cost_mbps(bound);
}

static void bench_exact(size_t n)
{
    double us[RUNS_MAX], mbps[RUNS_MAX], bound[RUNS_MAX];
    for (size_t run = 0; run < RUNS_MAX; run++) {
        struct tour_score s;
        draw_costs(n, run);
        bound[run] = bound_mbps(n);
        double begin = clock_us();
        bool ok = tour_exact_solve(cost, n, order, &s);
        us[run] = clock_us() - begin;
        mbps[run] = ok ? cost_mbps(s.max) : 0;
    }
    double middle = median(us, RUNS_MAX);
    printf("exact  %5zu %10s %11.1f %11.1f %12s %13.1f %11.1f\n", n, "-", middle, us[RUNS_MAX - 1], "-",
           median(mbps, RUNS_MAX), median(bound, RUNS_MAX));
}

/* A nearest-neighbour ring: the start, and what the search is compared with. */
static struct tour_score greedy_build(size_t n, uint16_t *greedy)
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
    return tour_score_of(cost, n, greedy);
}

static void bench_local(size_t n, uint64_t moves)
{
    enum { RUNS = 9 };
    double us[RUNS], mbps[RUNS], greedy_mbps[RUNS], bound[RUNS];
    for (size_t run = 0; run < RUNS; run++) {
        draw_costs(n, run);
        greedy_mbps[run] = cost_mbps(greedy_build(n, start).max);
        bound[run] = bound_mbps(n);
        struct tour_local t;
        double begin = clock_us();
        bool ok = tour_local_init(&t, cost, n, start, 2, moves, run, storage) && tour_local_step(&t, UINT64_MAX);
        us[run] = clock_us() - begin;
        mbps[run] = ok ? cost_mbps(tour_local_best(&t, order).max) : 0;
    }
    double middle = median(us, RUNS);
    printf("local  %5zu %10" PRIu64 " %11.1f %11.1f %12.1f %13.1f %11.1f\n", n, moves, middle, us[RUNS - 1],
           median(greedy_mbps, RUNS), median(mbps, RUNS), median(bound, RUNS));
}

int main(void)
{
    printf("%-6s %5s %10s %11s %11s %12s %13s %11s\n", "solver", "peers", "moves", "median us", "most us",
           "greedy Mb/s", "slowest Mb/s", "bound Mb/s");
    for (size_t n = 5; n <= TOUR_EXACT_MAX; n++) {
        bench_exact(n);
    }
    const size_t sizes[3] = {16, 64, 256};
    for (size_t i = 0; i < 3; i++) {
        bench_local(sizes[i], 20000);
        bench_local(sizes[i], 200000);
        bench_local(sizes[i], 2000000);
        bench_local(sizes[i], 20000000);
    }
    return 0;
}
