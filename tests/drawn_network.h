/* drawn_network.h - networks drawn at random, of the kinds that plans are judged by.
 *
 * One idea: the kinds differ in what limits a plan: members' links, paths of pairs, or links that a site shares.
 * Rates are in any unit, seeds give equal networks each time.
 * SPDX-License-Identifier: MIT */
#ifndef PCCL_TESTS_DRAWN_NETWORK_H
#define PCCL_TESTS_DRAWN_NETWORK_H

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/random.h"
#include "topology/network_model.h"

enum drawn_kind {
    DRAWN_UNIFORM,
    DRAWN_ACCESS_HALF, /* up exp(0.5 z) */
    DRAWN_ACCESS_ONE,  /* up exp(z) */
    DRAWN_HALF,        /* 1 or 10 */
    DRAWN_PAIR_1,      /* paths exp(0.7 z), links 1 */
    DRAWN_PAIR_3,
    DRAWN_PAIR_8,
    DRAWN_SITES_RANDOM, /* site of each member drawn from three; paths across exp(0.5 z) */
    DRAWN_SITES_EQUAL,
    DRAWN_SHARED_3, /* equal sites that share 3 exp(0.5 z) */
    DRAWN_SHARED_1,
    DRAWN_SPHERE, /* sites on a sphere: rates fall with distance, delays grow with it */
    DRAWN_KINDS
};

static const char *const drawn_names[DRAWN_KINDS] = {"uniform", "access(0.5)", "access(1)", "half",
                                                     "pair(1)", "pair(3)", "pair(8)", "sites-random",
                                                     "sites-3x3", "shared(3)", "shared(1)", "sphere"};

/* Everything that a network points to, for at most 256 members. */
enum { DRAWN_MEMBERS = 256, DRAWN_SITES = 3 };
struct drawn {
    double up[DRAWN_MEMBERS], down[DRAWN_MEMBERS], path[DRAWN_MEMBERS * DRAWN_MEMBERS];
    double delay[DRAWN_MEMBERS * DRAWN_MEMBERS];
    bool leaf[DRAWN_MEMBERS];
    uint16_t site[DRAWN_MEMBERS];
    double site_up[DRAWN_SITES], site_down[DRAWN_SITES];
    struct network net;
};

static inline double drawn_uniform(struct rng *r) /* in (0, 1] */
{
    return (double)((rng_next(r) >> 11) + 1) / 9007199254740992.0;
}

static inline double drawn_normal(struct rng *r) /* Box and Muller */
{
    double a = drawn_uniform(r), b = drawn_uniform(r);
    return sqrt(-2 * log(a)) * cos(6.283185307179586 * b);
}

static inline void drawn_links(struct drawn *d, struct rng *r, enum drawn_kind kind)
{
    for (size_t i = 0; i < d->net.n; i++) {
        double link = kind == DRAWN_PAIR_1 ? 1 : kind == DRAWN_PAIR_3 ? 3 : kind == DRAWN_PAIR_8 ? 8 : 10;
        d->up[i] = d->down[i] = link;
        if (kind == DRAWN_UNIFORM || kind == DRAWN_ACCESS_HALF || kind == DRAWN_ACCESS_ONE) {
            double spread = kind == DRAWN_UNIFORM ? 0 : kind == DRAWN_ACCESS_HALF ? 0.5 : 1;
            d->up[i] = exp(spread * drawn_normal(r));
            d->down[i] = d->up[i] * exp(0.1 * drawn_normal(r));
        } else if (kind == DRAWN_HALF) {
            d->up[i] = d->down[i] = i == 0 || (i > 1 && (rng_next(r) & 1) != 0) ? 1 : 10;
        }
    }
}

static inline void drawn_places(struct drawn *d, struct rng *r)
{
    double x[DRAWN_MEMBERS], y[DRAWN_MEMBERS], z[DRAWN_MEMBERS];
    size_t n = d->net.n;
    for (size_t i = 0; i < n; i++) {
        double turn = 6.283185307179586 * drawn_uniform(r), flat;
        z[i] = 2 * drawn_uniform(r) - 1;
        flat = sqrt(1 - z[i] * z[i]);
        x[i] = flat * cos(turn);
        y[i] = flat * sin(turn);
    }
    for (size_t i = 0; i < n; i++) {
        for (size_t j = 0; j < n; j++) {
            double dot = x[i] * x[j] + y[i] * y[j] + z[i] * z[j];
            double angle = acos(dot > 1 ? 1 : dot < -1 ? -1 : dot);
            d->delay[i * n + j] = 0.0005 + 0.05 * angle;
            d->path[i * n + j] = 1 / (0.02 + angle);
        }
    }
}

static inline void drawn_paths(struct drawn *d, struct rng *r, enum drawn_kind kind)
{
    size_t n = d->net.n;
    bool sites = kind == DRAWN_SITES_RANDOM || kind == DRAWN_SITES_EQUAL;
    bool pairs = kind == DRAWN_PAIR_1 || kind == DRAWN_PAIR_3 || kind == DRAWN_PAIR_8;
    for (size_t i = 0; i < n * n; i++) {
        bool together = d->site[i / n] == d->site[i % n];
        d->path[i] = pairs                ? exp(0.7 * drawn_normal(r))
                     : !sites             ? INFINITY
                     : together           ? 100
                                          : exp(0.5 * drawn_normal(r));
        d->delay[i] = i / n == i % n ? 0 : 0.05;
    }
}

/* A network of n members. */
static inline void drawn_network(struct drawn *d, enum drawn_kind kind, size_t n, uint64_t seed)
{
    struct rng r = {.state = seed * 1000003 + kind};
    for (unsigned k = 0; k < 8; k++) {
        (void)rng_next(&r);
    }
    d->net = (struct network){.n = n, .up_bps = d->up, .down_bps = d->down, .path_bps = d->path, .delay_s = d->delay};
    for (size_t i = 0; i < n; i++) {
        d->site[i] = (uint16_t)(kind == DRAWN_SITES_RANDOM ? rng_below(&r, DRAWN_SITES) : i * DRAWN_SITES / n);
        d->leaf[i] = false;
    }
    drawn_links(d, &r, kind);
    drawn_paths(d, &r, kind);
    if (kind == DRAWN_SPHERE) {
        drawn_places(d, &r);
    }
    if (kind >= DRAWN_SITES_RANDOM && kind <= DRAWN_SHARED_1) {
        for (size_t g = 0; g < DRAWN_SITES; g++) {
            double rate = kind == DRAWN_SHARED_3 ? 3 : kind == DRAWN_SHARED_1 ? 1 : INFINITY;
            d->site_up[g] = d->site_down[g] = isinf(rate) ? rate : rate * exp(0.5 * drawn_normal(&r));
        }
        d->net.sites = DRAWN_SITES;
        d->net.site = d->site;
        d->net.site_up_bps = d->site_up;
        d->net.site_down_bps = d->site_down;
    }
}

/* Tokyo, Seoul, London, New York: a published example, in Mb/s and seconds one way. */
static inline void drawn_four_cities(struct drawn *d)
{
    static const double path[16] = {INFINITY, 800, 100, 150, 750, INFINITY, 120, 140,
                                    100, 110, INFINITY, 500, 140, 130, 450, INFINITY};
    static const double delay[16] = {0,    .017, .110, .085, .017, 0,    .120, .095,
                                     .110, .120, 0,    .038, .085, .095, .038, 0};
    drawn_network(d, DRAWN_UNIFORM, 4, 0);
    memcpy(d->path, path, sizeof path);
    memcpy(d->delay, delay, sizeof delay);
    for (size_t i = 0; i < 4; i++) {
        d->up[i] = d->down[i] = INFINITY;
    }
}

static inline int drawn_compare(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Sorts them. */
static inline double drawn_median(double *values, size_t count)
{
    qsort(values, count, sizeof *values, drawn_compare);
    return count % 2 != 0 ? values[count / 2] : (values[count / 2 - 1] + values[count / 2]) / 2;
}

#endif
