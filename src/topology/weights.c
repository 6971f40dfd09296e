/* weights.c - shard weights by the closed form for peers limited by their own links.
 *
 *   T = max(1 / min m, (n - 2 + |H|) / sum of m over H),   x_i = max(0, T m_i - 1) / sum,   H = peers that may own
 *
 * Its one idea: the first term is the slowest peer, which must send and receive the buffer once whatever it owns; the
 * second is all owners' links full at once.
 * Invariant: each share is at most (T m - 1) / (n - 2), so that nobody needs longer than T.
 * SPDX-License-Identifier: MIT */
#include "topology/weights.h"

static bool peer_owns(const bool *leaf, size_t i)
{
    return leaf == NULL || !leaf[i];
}

static double peer_rate(const double *up_bps, const double *down_bps, size_t i)
{
    return up_bps[i] < down_bps[i] ? up_bps[i] : down_bps[i];
}

bool weights_direct(size_t n, const double *up_bps, const double *down_bps, const bool *leaf, double *share_out,
                    double *s_per_bit_out)
{
    double slowest = __builtin_inf(), owned_bps = 0;
    size_t owners = 0;
    for (size_t i = 0; i < n; i++) {
        double m = peer_rate(up_bps, down_bps, i);
        if (!(up_bps[i] > 0 && down_bps[i] > 0 && m < __builtin_inf())) {
            return false;
        }
        slowest = m < slowest ? m : slowest;
        if (peer_owns(leaf, i)) {
            owners++;
            owned_bps += m;
        }
    }
    if (owners == 0) {
        return false;
    }
    double t = 1 / slowest;
    if (n > 2) {
        double full = (double)(n - 2 + owners) / owned_bps;
        t = full > t ? full : t;
    }
    double headroom = 0;
    for (size_t i = 0; i < n; i++) {
        double h = t * peer_rate(up_bps, down_bps, i) - 1;
        share_out[i] = peer_owns(leaf, i) && h > 0 ? h : 0;
        headroom += share_out[i];
    }
    for (size_t i = 0; i < n; i++) {
        if (n <= 2) { /* what two peers move does not depend on their shares */
            share_out[i] = peer_owns(leaf, i) ? 1 / (double)owners : 0;
        } else {
            share_out[i] /= headroom; /* >= n - 2: the second term of T */
        }
    }
    *s_per_bit_out = n == 1 ? 0 : t;
    return true;
}
