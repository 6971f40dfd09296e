/* peer_measures.c - members that ask for a better ring, and answer what they are asked to measure.
 * SPDX-License-Identifier: MIT */
#include <string.h>

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

static uint32_t site_of(const struct cluster *c, uint64_t id)
{
    uint32_t i = 0;
    while (i < c->count && c->peers[i].id != id) {
        i++;
    }
    return i < c->count ? c->peers[i].site : 0;
}

uint32_t peer_trip_us(const struct cluster *c, uint64_t from, uint64_t to)
{
    uint32_t one = site_of(c, from), other = site_of(c, to);
    return one == 0 || other == 0 ? c->rtt_us : one == other ? 300 : 40000;
}

void peer_says_measured(struct cluster *c, const struct peer *p, const struct msg_measured *ms)
{
    unsigned char bytes[64];
    struct writer w;
    writer_init(&w, bytes, sizeof bytes);
    put_measured(&w, ms);
    cluster_frame(c, p->conn, FRAME_MEASURED, bytes, (uint32_t)w.used, p->run);
}

void peer_heard(struct cluster *c, const struct peer *p, const struct msg_probe *probe, uint64_t bps)
{
    for (uint32_t i = 0; i < c->count; i++) {
        if (c->peers[i].id == probe->to && c->peers[i].open) {
            peer_says_measured(c, &c->peers[i], &(struct msg_measured){.round = MEASURED_HEARD | probe->round, .to = p->id, .bits_per_second = bps});
            return;
        }
    }
}

void peer_measured(struct cluster *c, struct peer *p, const struct msg_probe *probe, uint64_t bps)
{
    struct msg_measured ms = {.round = probe->round, .to = probe->to, .bits_per_second = bps, .rtt_us = peer_trip_us(c, p->id, probe->to)};
    if (probe->round < MEASURED_UNASKED) {
        peer_heard(c, p, probe, bps);
    }
    peer_says_measured(c, p, &ms);
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

const struct peer *cluster_ask(struct cluster *c, uint8_t type, const void *bytes, uint32_t size)
{
    struct peer *p = &c->peers[PEERS_MOST - 1];
    uint32_t before = c->count;
    memset(p, 0, sizeof *p);
    c->count = PEERS_MOST;
    p->conn = cluster_open(c);
    p->open = true;
    cluster_frame(c, p->conn, type, bytes, size, 0);
    c->count = before;
    return p;
}

const struct peer *cluster_ask_links(struct cluster *c, const struct msg_topology *asked)
{
    unsigned char bytes[128];
    struct writer w;
    writer_init(&w, bytes, sizeof bytes);
    put_topology(&w, asked);
    return cluster_ask(c, FRAME_TOPOLOGY, bytes, (uint32_t)w.used);
}
