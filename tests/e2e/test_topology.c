/* test_topology.c - pcclGetTopology: members, ring and measured edges of a group, as its master knows them.
 *
 * What would break: edges of another group or of other ranks, a ring that is not in use, an answer that never ends.
 * SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#include <inttypes.h>
#include <string.h>

#include "pccl_topology.h"
#include "tests/testing.h"

#include "bench_said.h"
#include "cluster.h"

enum { PEERS = 5, ROOM = 6, PATIENCE_MS = 30000 };

struct got {
    pcclTopology_t t;
    uint64_t ids[ROOM];
    uint32_t ring[ROOM];
    pcclEdge_t edges[ROOM * ROOM];
};

static pcclResult_t get(const pcclComm_t *comm, size_t capacity, struct got *g)
{
    memset(g, 0xEE, sizeof *g);
    g->t = (pcclTopology_t){.size = sizeof g->t, .capacity = capacity, .ids = g->ids, .ring = g->ring, .edges = g->edges};
    return pcclGetTopology(comm, &g->t, PATIENCE_MS);
}

static void optimise(struct cluster_peer *peer, void *context)
{
    ((pcclResult_t *)context)[peer->index] = pcclOptimizeTopology(peer->comm);
}

/* Members, their ranks and the ring are those of pcclGetMembers. */
static void expect_members(const pcclComm_t *comm, const struct got *g, size_t stored)
{
    pcclPeerInfo_t members[PEERS];
    size_t count = 0;
    EXPECT_EQ(pcclGetMembers(comm, members, PEERS, &count), pcclSuccess);
    EXPECT(count == g->t.count && count == PEERS);
    for (size_t i = 0; i < count; i++) {
        EXPECT(i >= stored || g->ids[i] == members[i].id);
        EXPECT(members[i].ring_position >= stored || g->ring[members[i].ring_position] == i);
    }
}

TEST(all_members_are_told_the_same_edges_and_the_slowest_of_the_ring_in_use)
{
    static struct cluster c;
    static struct got first, g;
    pcclResult_t results[PEERS];
    cluster_start(&c, PEERS, NULL, 1);
    EXPECT_EQ(get(c.peer[0].comm, ROOM, &g), pcclSuccess);
    expect_members(c.peer[0].comm, &g, ROOM);
    EXPECT(g.t.measured == 0 && g.t.ring_rate == 0 && g.t.ring_from == PCCL_NO_RANK && g.t.ring_to == PCCL_NO_RANK);
    cluster_run(&c, optimise, results);
    for (int i = 0; i < PEERS; i++) {
        EXPECT_EQ(results[i], pcclSuccess);
        EXPECT_EQ(get(c.peer[i].comm, ROOM, &g), pcclSuccess);
        expect_members(c.peer[i].comm, &g, ROOM);
        EXPECT_EQ(g.t.measured, PEERS * (PEERS - 1));
        uint64_t least = UINT64_MAX;
        for (size_t k = 0; k < PEERS; k++) {
            const pcclEdge_t *e = &g.edges[g.ring[k] * ROOM + g.ring[(k + 1) % PEERS]];
            least = e->rate < least ? e->rate : least;
        }
        EXPECT(least > 0 && g.t.ring_rate == least);
        EXPECT_EQ(g.edges[(size_t)g.t.ring_from * ROOM + (size_t)g.t.ring_to].rate, least);
        first = i == 0 ? g : first;
        for (size_t at = 0; at < PEERS * ROOM; at++) {
            size_t from = at / ROOM, to = at % ROOM;
            const pcclEdge_t *e = &g.edges[at], *same = &first.edges[at];
            if (to < PEERS) {
                EXPECT_EQ(e->source, from == to ? pcclEdgeUnknown : pcclEdgeProbed);
                EXPECT((from == to) == (e->rate == 0));
                EXPECT(e->rate == same->rate && e->rtt_us == same->rtt_us && e->loss_ppm == same->loss_ppm);
            }
        }
    }
    EXPECT_EQ(get(c.peer[0].comm, 2, &g), pcclSuccess); /* the first ones, and nothing beside them */
    expect_members(c.peer[0].comm, &g, 2);
    EXPECT(g.edges[1].rate == first.edges[1].rate && g.edges[2].rate == first.edges[ROOM].rate);
    EXPECT(g.edges[4].rate == UINT64_C(0xEEEEEEEEEEEEEEEE) && g.ids[2] == UINT64_C(0xEEEEEEEEEEEEEEEE) && g.ring[2] == 0xEEEEEEEE);
    pcclTopology_t counts = {.size = sizeof counts};
    EXPECT_EQ(pcclGetTopology(c.peer[0].comm, &counts, PATIENCE_MS), pcclSuccess);
    EXPECT(counts.count == PEERS && counts.measured == PEERS * (PEERS - 1) && counts.ring_rate == first.t.ring_rate);
    cluster_stop(&c);
}

/* The last one has gone, and connects again; the others let it in. */
static void come_back(struct cluster_peer *peer, void *context)
{
    pcclResult_t *result = (pcclResult_t *)context + peer->index;
    if (peer->index == PEERS - 1) {
        *result = cluster_join(peer->comm, PEERS);
        return;
    }
    do {
        *result = pcclUpdateTopology(peer->comm);
    } while (*result == pcclSuccess && cluster_size(peer->comm, PCCL_ATTRIBUTE_GLOBAL_WORLD_SIZE) < PEERS);
}

static size_t rank_of(const struct got *g, uint64_t id)
{
    size_t rank = 0;
    while (rank < PEERS - 1 && g->ids[rank] != id) {
        rank++;
    }
    return rank;
}

/* Those with `id` in `now` are those with `was` in `before`. */
static void expect_same_edges(const struct got *now, const struct got *before, uint64_t id, uint64_t was)
{
    EXPECT_EQ(now->t.measured, PEERS * (PEERS - 1));
    for (size_t at = 0; at < PEERS * PEERS; at++) {
        uint64_t from = now->ids[at / PEERS], to = now->ids[at % PEERS];
        const pcclEdge_t *e = &now->edges[at / PEERS * ROOM + at % PEERS];
        const pcclEdge_t *b = &before->edges[rank_of(before, from == id ? was : from) * ROOM + rank_of(before, to == id ? was : to)];
        EXPECT(e->rate == b->rate && e->rtt_us == b->rtt_us && e->loss_ppm == b->loss_ppm && e->source == b->source);
    }
}

TEST(edges_of_a_peer_that_returns_to_its_host_are_known_and_not_measured_again)
{
    static struct cluster c;
    static struct got before, now;
    pcclResult_t results[PEERS];
    pcclPeerInfo_t self;
    cluster_start(&c, PEERS, NULL, 1);
    cluster_run(&c, optimise, results);
    EXPECT_EQ(get(c.peer[0].comm, ROOM, &before), pcclSuccess);
    EXPECT_EQ(pcclGetSelf(c.peer[PEERS - 1].comm, &self), pcclSuccess);
    uint64_t was = self.id;
    EXPECT_EQ(pcclDestroyCommunicator(c.peer[PEERS - 1].comm), pcclSuccess);
    cluster_create(&c, PEERS - 1, 0, 1, 0);
    cluster_run(&c, come_back, results);
    EXPECT_EQ(pcclGetSelf(c.peer[PEERS - 1].comm, &self), pcclSuccess);
    EXPECT(self.id != was);
    EXPECT_EQ(get(c.peer[0].comm, ROOM, &now), pcclSuccess);
    expect_same_edges(&now, &before, self.id, was);
    cluster_run(&c, optimise, results);
    for (int i = 0; i < PEERS; i++) {
        EXPECT_EQ(results[i], pcclSuccess);
    }
    EXPECT_EQ(get(c.peer[0].comm, ROOM, &now), pcclSuccess);
    expect_same_edges(&now, &before, self.id, was);
    cluster_stop(&c);
}

TEST(a_group_is_told_of_its_own_members_only)
{
    static struct cluster c;
    static struct got g;
    const uint32_t groups[] = {1, 2, 1};
    cluster_start(&c, 3, groups, 1);
    EXPECT_EQ(get(c.peer[1].comm, ROOM, &g), pcclSuccess);
    EXPECT_EQ(g.t.count, 1);
    EXPECT_EQ(get(c.peer[2].comm, ROOM, &g), pcclSuccess);
    EXPECT_EQ(g.t.count, 2);
    cluster_stop(&c);
}

TEST(mistakes_and_an_absent_master_are_named)
{
    static struct cluster c;
    static struct got g;
    pcclErrorInfo_t error;
    cluster_start(&c, 1, NULL, 1);
    pcclComm_t *comm = c.peer[0].comm;
    EXPECT_EQ(get(comm, ROOM, &g), pcclSuccess);
    pcclTopology_t t = {.size = 8};
    EXPECT_EQ(pcclGetTopology(comm, NULL, 1), pcclInvalidArgument);
    EXPECT_EQ(pcclGetTopology(comm, &t, 1), pcclInvalidArgument);
    EXPECT(strstr(pcclGetLastError(), "topology->size is 8: set it to sizeof(pcclTopology_t)") != NULL);
    t.size = sizeof t;
    EXPECT_EQ(pcclGetTopology(comm, &t, 0), pcclInvalidArgument);
    EXPECT(strstr(pcclGetLastError(), "timeout_ms is 0: expected 1 or more") != NULL);
    cluster_create(&c, 1, 0, 1, 0);
    EXPECT_EQ(pcclGetTopology(c.peer[1].comm, &t, PATIENCE_MS), pcclInvalidUsage); /* it has not connected */
    EXPECT_EQ(pcclInterruptMaster(c.master), pcclSuccess);
    EXPECT_EQ(pcclMasterAwaitTermination(c.master), pcclSuccess);
    t.count = 77;
    EXPECT_EQ(pcclGetTopology(comm, &t, PATIENCE_MS), pcclUpdateTopologyFailed);
    EXPECT_EQ(pcclGetLastErrorInfo(&error), pcclSuccess);
    EXPECT(error.cause == pcclCauseMasterUnreachable && error.error_class == pcclClassRetry);
    EXPECT(strstr(pcclGetLastError(), "is ccoip_master running there?") != NULL);
    EXPECT_EQ(t.count, 77);
    cluster_stop(&c);
}

/* The edges of a JSON text, by line; how many there are. */
static size_t edges_said(const char *text, struct got *out)
{
    size_t count = 0;
    memset(out, 0, sizeof *out);
    for (const char *at = text; (at = strstr(at, "{\"from\": ")) != NULL; at++) {
        unsigned from, to, rtt, loss, age;
        uint64_t rate;
        if (sscanf(at, "{\"from\": %u, \"to\": %u, \"rate_bps\": %" SCNu64 ", \"rtt_us\": %u, \"loss_ppm\": %u, \"age_s\": %u, \"source\": \"probe\"}",
                   &from, &to, &rate, &rtt, &loss, &age) == 6 && from < ROOM && to < ROOM) {
            out->edges[from * ROOM + to] = (pcclEdge_t){.rate = rate, .rtt_us = rtt, .loss_ppm = loss, .source = pcclEdgeProbed};
            count++;
        }
    }
    return count;
}

TEST(pccl_topo_shows_from_outside_what_a_member_is_told) /* an operator looks at other figures than the program */
{
    static struct cluster c;
    static struct got g, said;
    static struct program p;
    pcclResult_t results[PEERS];
    char words[128], where[64];
    cluster_start(&c, PEERS, NULL, 1);
    cluster_run(&c, optimise, results);
    EXPECT_EQ(get(c.peer[0].comm, ROOM, &g), pcclSuccess);
    snprintf(where, sizeof where, "127.0.0.1:%u", c.address.port);
    snprintf(words, sizeof words, "topo %s --json", where);
    EXPECT_EQ(bench_run(&p, words), 0);
    EXPECT_STR(p.err_text, "");
    EXPECT(bench_is_json(p.out_text));
    EXPECT_EQ(edges_said(p.out_text, &said), PEERS * (PEERS - 1));
    for (size_t at = 0; at < PEERS * ROOM; at++) {
        const pcclEdge_t *e = &g.edges[at], *s = &said.edges[at];
        EXPECT(at % ROOM >= PEERS || (e->rate == s->rate && e->rtt_us == s->rtt_us && e->loss_ppm == s->loss_ppm && e->source == s->source));
    }
    EXPECT_EQ((uint64_t)bench_number(p.out_text, "\"ring_in_use_bps\": "), g.t.ring_rate);
    EXPECT_EQ((uint64_t)bench_number(p.out_text, "\"best_ring_bps\": "), g.t.ring_rate); /* up to 12 members the master has it */
    snprintf(words, sizeof words, "topo %s", where);
    EXPECT_EQ(bench_run(&p, words), 0);
    EXPECT(strstr(p.out_text, "5 peers, 20 of 20 edges measured by probes") != NULL && strstr(p.out_text, "ring in use ") != NULL);
    snprintf(words, sizeof words, "topo %s --group 3", where);
    EXPECT_EQ(bench_run(&p, words), 2);
    EXPECT(strstr(p.err_text, "group 3 has no members in that world") != NULL);
    snprintf(words, sizeof words, "topo %s --world w", where);
    EXPECT_EQ(bench_run(&p, words), 2);
    EXPECT(strstr(p.err_text, "the master has no world 'w'") != NULL);
    cluster_stop(&c);
    snprintf(words, sizeof words, "topo %s", where);
    EXPECT_EQ(bench_run(&p, words), 2);
    EXPECT(strstr(p.err_text, "is ccoip_master running there?") != NULL);
    EXPECT_STR(p.out_text, "");
}
