/* weights.h - which share of a buffer each peer owns in the `direct` algorithm.
 *
 * Its one idea: a peer with share x moves 1 + (n - 2) x of the buffer each way, so the least time has a closed form in
 * m = min(up, down), and shares go to whoever has room left at that time; the slowest peer becomes a leaf by itself.
 * It looks at the peers' own links only: limits of pairs and of shared sites need the solvers that plan for them.
 * Invariant: shares are >= 0 and add up to 1; forced leaves own nothing.
 * SPDX-License-Identifier: MIT */
#ifndef PCCL_TOPOLOGY_WEIGHTS_H
#define PCCL_TOPOLOGY_WEIGHTS_H

#include <stdbool.h>
#include <stddef.h>

/* up_bps, down_bps: rates of each peer's link, > 0.  leaf: peers that may own nothing (null: none).  Writes n shares
 * and the seconds per bit of the buffer that they allow, latency aside; cutting shares at multiples of a block is the
 * caller's.  False, nothing written, if n is 0, a rate is not a positive number, or all are leaves. */
bool weights_direct(size_t n, const double *up_bps, const double *down_bps, const bool *leaf, double *share_out,
                    double *s_per_bit_out);

#endif
