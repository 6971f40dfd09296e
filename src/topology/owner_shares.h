/* owner_shares.h - which share of a buffer each member owns in the direct exchange.
 *
 * One idea: a member with share x moves 1 + (n - 2) x of the buffer each way, the pair i, j moves x_i + x_j.  The least
 * time is a linear programme, the packing of trees restricted to stars.  Where only members' links limit, it has a
 * closed form, which fills all owners' links alike; the slowest member owns nothing by itself.
 * Invariant: shares are >= 0 and add up to 1; only members that are linked with all others and can be dialled own.
 * SPDX-License-Identifier: MIT */
#ifndef PCCL_TOPOLOGY_OWNER_SHARES_H
#define PCCL_TOPOLOGY_OWNER_SHARES_H

#include "topology/network_model.h"

enum { SHARES_MEMBERS = 256 };

/* Bytes of storage that shares_solve needs, aligned to 8. */
size_t shares_room(size_t n, size_t sites);

/* Writes the best shares and the seconds per bit of the buffer that they allow, delay aside.  The closed form, then
 * equal shares, are preferred where they are as fast.  False, nothing to be used, if the network is not valid, n is
 * over SHARES_MEMBERS, or nobody may own. */
bool shares_solve(const struct network *net, void *storage, double *share_out, double *s_per_bit_out);

struct shares_load {
    double s_per_bit, bps; /* of the fullest resource, and its rate; infinite and 0 if a pair is not linked */
};

/* What any shares ask of the network. */
struct shares_load shares_load(const struct network *net, const double *share);

#endif
