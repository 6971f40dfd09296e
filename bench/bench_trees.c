/* bench_trees.c - how long the packing of trees takes, and how near it comes to its proven bound.
 *
 * One idea: drawn networks of each kind; seeds are fixed, so every run solves the same problems.
 * Invariant: nothing but the solver runs between two readings of the clock.
 * SPDX-License-Identifier: MIT */
#include <stdio.h>
#include <time.h>

#include "tests/drawn_network.h"
#include "topology/site_plan.h"
#include "topology/tree_packing.h"
#include "topology/tree_slices.h"

enum { DRAWS = 9 };

static struct drawn drawn;
static uint16_t parent[TREE_SET_MOST * TREE_SET_MEMBERS];

static double clock_ms(void)
{
    struct timespec ts;
    clock_gettime(CLOCK_MONOTONIC, &ts);
    return (double)ts.tv_sec * 1e3 + (double)ts.tv_nsec / 1e6;
}

static double slices_s_per_bit(const struct network *net, void *storage)
{
    struct tree_slices slices;
    tree_slices_init(&slices, net, TREE_ANY, storage);
    for (unsigned k = 0; k < 64; k++) {
        (void)tree_slices_next(&slices, parent);
    }
    return tree_slices_s_per_bit(&slices);
}

static void bench_kind(enum drawn_kind kind, size_t n)
{
    double ms[DRAWS], share[DRAWS], slices[DRAWS], trees[DRAWS], hops[DRAWS];
    void *storage = malloc(tree_packing_room(n, DRAWN_SITES));
    if (storage == NULL) {
        return;
    }
    for (size_t k = 0; k < DRAWS; k++) {
        struct tree_set set = {.parent = parent};
        struct tree_forecast f = {0};
        drawn_network(&drawn, kind, n, k);
        slices[k] = slices_s_per_bit(&drawn.net, storage);
        double begin = clock_ms();
        bool ok = tree_packing_solve(&drawn.net, TREE_ANY, storage, &set, &f);
        ms[k] = clock_ms() - begin;
        share[k] = ok ? f.bound_s_per_bit / f.s_per_bit * 100 : 0;
        slices[k] = f.bound_s_per_bit / slices[k] * 100;
        trees[k] = set.count;
        hops[k] = f.radius_hops;
    }
    free(storage);
    double middle = drawn_median(ms, DRAWS), worst = drawn_median(share, DRAWS);
    printf("%-13s %4zu %9.2f %9.2f %8.1f %8.1f %8.1f %6.0f %6.0f\n", drawn_names[kind], n, middle, ms[DRAWS - 1], worst,
           share[0], drawn_median(slices, DRAWS), drawn_median(trees, DRAWS), drawn_median(hops, DRAWS));
}

/* A plan of a large world by sites. */
static void bench_sites(size_t n, size_t sites)
{
    double *numbers = malloc((n + 2 * sites * sites) * sizeof *numbers);
    uint16_t *site = malloc(n * sizeof *site);
    void *storage = malloc(site_plan_room(n, sites));
    struct site_plan plan;
    struct tree_forecast f = {0};
    struct rng r = {.state = 1};
    if (numbers != NULL && site != NULL && storage != NULL) {
        const struct site_world w = {n, sites, site, numbers, numbers, numbers + n, numbers + n + sites * sites};
        for (size_t i = 0; i < n; i++) {
            site[i] = (uint16_t)(i % sites);
        }
        for (size_t k = 0; k < n + 2 * sites * sites; k++) {
            numbers[k] = exp(0.5 * drawn_normal(&r)) * (k < n ? 1 : k < n + sites * sites ? 10 : 0.05);
        }
        double begin = clock_ms();
        bool ok = site_plan_make(&w, storage, &plan, &f);
        printf("%zu members in %zu sites: %s in %.1f ms, %.1f MiB, radius %u\n", n, sites, ok ? "planned" : "no plan",
               clock_ms() - begin, (double)site_plan_room(n, sites) / 1048576, f.radius_hops);
    }
    free(numbers);
    free(site);
    free(storage);
}

int main(void)
{
    const size_t sizes[] = {9, 16, 32, 64, 256};
    printf("%-13s %4s %9s %9s %8s %8s %8s %6s %6s\n", "network", "n", "median ms", "most ms", "of bound", "least",
           "slices", "trees", "radius");
    for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++) {
        for (unsigned kind = 0; kind < DRAWN_KINDS; kind++) {
            bench_kind((enum drawn_kind)kind, sizes[s]);
        }
    }
    bench_sites(10000, 64);
    bench_sites(10000, 256);
    return 0;
}
