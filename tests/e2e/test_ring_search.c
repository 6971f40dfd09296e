/* test_ring_search.c - optimise with more peers than the exact solver takes: probes, a search in slices, a ring for all.
 *
 * What would break: a search that is never answered, a ring that is none, an order that the next operation does not stand.
 * SPDX-License-Identifier: MIT */
#include "tests/testing.h"

#include "cluster.h"

enum { PEERS = 11 };

static void optimise_and_reduce(struct cluster_peer *peer, void *context)
{
    pcclResult_t *results = context;
    float in = (float)(1 << peer->index), sum = 0;
    pcclReduceDescriptor_t what = cluster_floats(1, 7);
    pcclResult_t result = pcclOptimizeTopology(peer->comm);
    if (result == pcclSuccess) {
        result = pcclAllReduce(&in, &sum, &what, peer->comm, NULL);
    }
    results[peer->index] = result == pcclSuccess && sum != (float)((1 << PEERS) - 1) ? pcclInternalError : result;
}

TEST(a_ring_beyond_the_exact_solver_is_found_and_used)
{
    static struct cluster c;
    pcclResult_t results[PEERS];
    pcclPeerInfo_t members[PEERS];
    size_t count = 0;
    cluster_start(&c, PEERS, NULL, 1);
    cluster_run(&c, optimise_and_reduce, results);
    for (int i = 0; i < PEERS; i++) {
        EXPECT_EQ(results[i], pcclSuccess);
    }
    uint32_t first[PEERS] = {0};
    for (int i = 0; i < PEERS; i++) { /* the same permutation at all */
        uint32_t seen = 0;
        EXPECT_EQ(pcclGetMembers(c.peer[i].comm, members, PEERS, &count), pcclSuccess);
        EXPECT_EQ(count, PEERS);
        for (size_t m = 0; m < count && m < PEERS; m++) {
            seen |= 1u << members[m].ring_position;
            first[m] = i == 0 ? members[m].ring_position : first[m];
            EXPECT_EQ(members[m].ring_position, first[m]);
        }
        EXPECT_EQ(seen, (1u << PEERS) - 1);
    }
    cluster_stop(&c);
}
