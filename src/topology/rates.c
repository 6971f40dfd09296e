/* rates.c - link rates from edge rates.
 *
 * Its one idea: a link, of a peer or of a site, is at least as fast as the fastest edge that was seen to use it, and as what its edges carried
 * at once.
 * Invariant: path_bps[i][j] <= min(up_bps[i], down_bps[j]) for measured edges.
 * SPDX-License-Identifier: MIT */
#include "topology/rates.h"

#include "topology/site_find.h"

uint64_t rate_of(uint64_t bytes, int64_t ns)
{
    return (uint64_t)((double)bytes * 8e9 / (double)(ns > 0 ? ns : 1));
}

static void paths_fill(const struct bandwidth *b, const uint64_t *ids, size_t n, double *path_bps)
{
    for (size_t i = 0; i < n; i++) {
        for (size_t j = 0; j < n; j++) {
            uint64_t rate_bps = 0;
            bool known = bandwidth_get(b, ids[i], ids[j], &rate_bps, NULL);
            path_bps[i * n + j] = known ? (double)rate_bps : __builtin_inf();
        }
    }
}

/* The best rate that was measured from it, or to it; 0 if there is none. */
static double rate_best(const struct bandwidth *b, const uint64_t *ids, size_t n, size_t of, bool up)
{
    double best = 0;
    for (size_t k = 0; k < n; k++) {
        double rate = (double)bandwidth_measured(b, ids[up ? of : k], ids[up ? k : of]);
        best = rate > best ? rate : best;
    }
    return best;
}

/* What a link carries for sure: its best edge, or what all of its edges were seen to carry at once. */
static double rate_link(const struct bandwidth *b, uint64_t from, uint64_t to, double best)
{
    uint64_t all = 0;
    return best > 0 && bandwidth_get(b, from, to, &all, NULL) && (double)all > best ? (double)all : best;
}

/* Of an edge that was not measured, the way back is the best guess; without it a path has no limit. */
static void paths_guess(const struct bandwidth *b, const uint64_t *ids, size_t n, double *path_bps)
{
    for (size_t i = 0; i < n * n; i++) {
        size_t from = i / n, to = i % n;
        uint64_t back_bps = 0;
        bool unknown = from != to && path_bps[i] >= __builtin_inf();
        path_bps[i] = unknown && bandwidth_get(b, ids[to], ids[from], &back_bps, NULL) ? (double)back_bps : path_bps[i];
    }
}

bool rates_fill(const struct bandwidth *b, const uint64_t *ids, size_t n, double *up_bps, double *down_bps,
                double *path_bps)
{
    paths_fill(b, ids, n, path_bps);
    double least = __builtin_inf();
    for (size_t i = 0; i < n; i++) {
        double up = rate_best(b, ids, n, i, true), down = rate_best(b, ids, n, i, false);
        up_bps[i] = up > 0 ? rate_link(b, ids[i], RATES_ALL, up) : 0;
        down_bps[i] = down > 0 ? rate_link(b, RATES_ALL, ids[i], down) : 0;
        least = up > 0 && up < least ? up : least;
        least = down > 0 && down < least ? down : least;
    }
    if (!(least < __builtin_inf())) {
        return false;
    }
    for (size_t i = 0; i < n; i++) {
        up_bps[i] = up_bps[i] > 0 ? up_bps[i] : least;
        down_bps[i] = down_bps[i] > 0 ? down_bps[i] : least;
    }
    paths_guess(b, ids, n, path_bps);
    return true;
}

static uint64_t trip_of(const struct bandwidth *b, uint64_t from, uint64_t to)
{
    const struct bandwidth_entry *e = bandwidth_find(b, from, to);
    return e == NULL || e->rtt_us == 0 ? SITE_FIND_UNKNOWN : (uint64_t)e->rtt_us * 1000;
}

uint64_t rates_trip_ns(const struct bandwidth *b, uint64_t one, uint64_t other)
{
    uint64_t there = trip_of(b, one, other), back = trip_of(b, other, one);
    return there < back ? there : back;
}

/* False: none is known. */
static bool trips_fill(const struct bandwidth *b, const uint64_t *ids, size_t n, uint64_t *rtt_ns)
{
    bool any = false;
    for (size_t i = 0; i < n * n; i++) {
        rtt_ns[i] = i / n != i % n ? rates_trip_ns(b, ids[i / n], ids[i % n]) : 0;
        any = any || (rtt_ns[i] != 0 && rtt_ns[i] != SITE_FIND_UNKNOWN);
    }
    return any;
}

/* What crosses the border of site g in one direction. */
static double site_link(const struct bandwidth *b, const uint64_t *ids, size_t n, const struct rates_sites *s, uint16_t g, bool up)
{
    double sum = 0, best = 0;
    size_t members = 0;
    for (size_t i = 0; i < n; i++) {
        uint64_t bps = 0;
        if (s->site[i] != g) {
            continue;
        }
        members++;
        sum += bandwidth_get(b, up ? ids[i] : RATES_FAR, up ? RATES_FAR : ids[i], &bps, NULL) ? (double)bps : __builtin_inf();
        for (size_t k = 0; k < n; k++) {
            double edge = s->site[k] != g ? (double)bandwidth_measured(b, ids[up ? i : k], ids[up ? k : i]) : 0;
            best = edge > best ? edge : best;
        }
    }
    return members < 2 ? __builtin_inf() : sum > best ? sum : best;
}

bool rates_sites(const struct bandwidth *b, const uint64_t *ids, size_t n, struct rates_sites *out)
{
    static const struct site_address nowhere[RATES_SITE_MEMBERS];
    uint64_t rtt_ns[RATES_SITE_MEMBERS * RATES_SITE_MEMBERS];
    bool any = false;
    if (n > RATES_SITE_MEMBERS || !trips_fill(b, ids, n, rtt_ns)) {
        return false;
    }
    out->count = site_find(rtt_ns, nowhere, n, out->site);
    for (size_t g = 0; g < out->count && out->count > 1; g++) {
        out->up_bps[g] = site_link(b, ids, n, out, (uint16_t)g, true);
        out->down_bps[g] = site_link(b, ids, n, out, (uint16_t)g, false);
        any = any || out->up_bps[g] < __builtin_inf() || out->down_bps[g] < __builtin_inf();
    }
    return any;
}

void rates_add_sites(const struct bandwidth *b, const uint64_t *ids, struct rates_sites *room, struct network *net)
{
    if (rates_sites(b, ids, net->n, room)) {
        net->sites = room->count;
        net->site = room->site;
        net->site_up_bps = room->up_bps;
        net->site_down_bps = room->down_bps;
    }
}
