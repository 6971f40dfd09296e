/* peer_probes.c - members that ask for a better ring, and answer what they are asked to measure.
 * SPDX-License-Identifier: MIT */
#include "master_peers.h"

struct cluster *cluster_voted(uint32_t count)
{
    struct cluster *c = cluster_new();
    cluster_members(c, count, 0);
    for (uint32_t i = 0; i < count; i++) {
        peer_forget(&c->peers[i]);
        c->peers[i].probes = 0;
    }
    for (uint32_t i = 0; i < count; i++) {
        peer_vote(c, &c->peers[i], VOTE_OPTIMISE);
    }
    return c;
}

uint32_t cluster_measure(struct cluster *c, peer_rate *rate, bool shared)
{
    uint32_t measured = 0;
    for (bool any = true; any;) {
        any = false;
        uint32_t asked[PEERS_MOST]; /* what comes with the last answer of a round belongs to the next one */
        for (uint32_t i = 0; i < c->count; i++) {
            asked[i] = c->peers[i].open ? c->peers[i].probes : 0;
        }
        for (uint32_t i = 0; i < c->count; i++) {
            struct msg_probe probe;
            for (uint32_t k = 0; k < asked[i] && peer_asked(&c->peers[i], &probe); k++) {
                peer_measured(c, &c->peers[i], &probe, rate(c, c->peers[i].id, probe.to) / (shared ? asked[i] : 1));
                measured++;
                any = true;
            }
        }
    }
    return measured;
}

uint64_t peer_rate_alike(const struct cluster *c, uint64_t from, uint64_t to)
{
    (void)c;
    (void)from;
    (void)to;
    return 100000000;
}
