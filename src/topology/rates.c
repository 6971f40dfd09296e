/* rates.c - link rates from edge rates.
 *
 * Its one idea: a link is at least as fast as the fastest edge that was seen to use it, and as what its edges carried at once.
 * Invariant: path_bps[i][j] <= min(up_bps[i], down_bps[j]) for measured edges.
 * SPDX-License-Identifier: MIT */
#include "topology/rates.h"

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

/* The best measured rate of a row (stride 1) or a column (stride n); 0 if there is none. */
static double rate_best(const double *first, size_t n, size_t stride)
{
    double best = 0;
    for (size_t k = 0; k < n; k++) {
        double rate = first[k * stride];
        best = rate > best && rate < __builtin_inf() ? rate : best;
    }
    return best;
}

/* What a link carries for sure: its best edge, or what all of its edges were seen to carry at once. */
static double rate_link(const struct bandwidth *b, uint64_t from, uint64_t to, double best)
{
    uint64_t all = 0;
    return best > 0 && bandwidth_get(b, from, to, &all, NULL) && (double)all > best ? (double)all : best;
}

bool rates_fill(const struct bandwidth *b, const uint64_t *ids, size_t n, double *up_bps, double *down_bps,
                double *path_bps)
{
    paths_fill(b, ids, n, path_bps);
    double least = __builtin_inf();
    for (size_t i = 0; i < n; i++) {
        double up = rate_best(&path_bps[i * n], n, 1), down = rate_best(&path_bps[i], n, n);
        least = up > 0 && up < least ? up : least;
        least = down > 0 && down < least ? down : least;
    }
    if (!(least < __builtin_inf())) {
        return false;
    }
    for (size_t i = 0; i < n; i++) {
        double up = rate_best(&path_bps[i * n], n, 1), down = rate_best(&path_bps[i], n, n);
        up_bps[i] = up > 0 ? rate_link(b, ids[i], RATES_ALL, up) : least;
        down_bps[i] = down > 0 ? rate_link(b, RATES_ALL, ids[i], down) : least;
    }
    return true;
}
