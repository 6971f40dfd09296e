/* test_master_topology.c - what the master tells of the links of a group to anybody who asks.
 * SPDX-License-Identifier: MIT */
#include <stdlib.h>
#include <string.h>

#include "core/bitset.h"
#include "core/rows.h"
#include "master_peers.h"
#include "tests/testing.h"
#include "world/world_state.h"
#include "world/roll.h"

/* The answer ends the connection. */
static const struct peer *ask(struct cluster *c, const struct msg_topology *asked)
{
    const struct peer *p = cluster_ask_links(c, asked);
    EXPECT_STR(p->log, "TOPOLOGY_PAGE ");
    EXPECT(!p->open);
    return p;
}

static uint8_t state_of(struct cluster *c, const struct msg_topology *asked)
{
    return ask(c, asked)->links.state;
}

/* What member `from` says of its edge to `to`, both by number: a value of its own for each. */
static struct msg_measured said_of(uint32_t from, uint32_t to, const struct msg_probe *probe)
{
    return (struct msg_measured){.round = probe->round, .to = probe->to, .bits_per_second = 1000000 * (10 * from + to + 1),
                                 .rtt_us = 1000 * (from + to), .loss_ppm = 100 * from + to};
}

static uint32_t place_of(const struct cluster *c, uint64_t id)
{
    uint32_t i = 0;
    while (c->peers[i].id != id) {
        i++;
    }
    return i;
}

/* All members ask for better rings, and each edge is measured; the last probe is answered with what no link can be. */
static void measure(struct cluster *c)
{
    for (uint32_t i = 0; i < c->count; i++) {
        c->peers[i].probes = 0;
    }
    for (uint32_t i = 0; i < c->count; i++) {
        peer_vote(c, &c->peers[i], VOTE_OPTIMISE);
    }
    for (bool any = true; any;) {
        any = false;
        for (uint32_t i = 0; i < c->count; i++) {
            struct msg_probe probe;
            if (!peer_asked(&c->peers[i], &probe)) {
                continue;
            }
            struct msg_measured ms = said_of(i, place_of(c, probe.to), &probe);
            peer_heard(c, &c->peers[i], &probe, ms.bits_per_second);
            peer_says_measured(c, &c->peers[i], &ms);
            any = true;
        }
    }
}

TEST(a_group_tells_its_members_ring_and_what_was_measured_of_each_edge) /* a program steers by the values of another edge */
{
    struct cluster *c = cluster_new();
    cluster_members(c, 3, 7);
    const struct peer *p = ask(c, &(struct msg_topology){.group = 7});
    EXPECT(p->links.state == TOPOLOGY_FOUND && p->links.members == 3 && p->links.listed == 3 && p->links.edges == 0 && p->links.next == 0);
    measure(c);
    static const uint32_t order[] = {0, 2, 1};
    cluster_solved(c, c->solve, order, 3);
    cluster_pass(c, 5500);
    p = ask(c, &(struct msg_topology){.group = 7, .run = c->peers[0].run});
    EXPECT(p->links.state == TOPOLOGY_FOUND && p->links.edges == 6 && p->links.next == 0);
    EXPECT_EQ(p->links.view, c->peers[0].view);
    for (uint32_t i = 0; i < 3; i++) {
        EXPECT_EQ(p->linked[i].id, c->peers[0].members[i]);
        EXPECT_EQ(p->linked[i].ring, order[i]);
        EXPECT(p->linked[i].address.family == 4 && p->linked[i].address.port == 48150);
    }
    for (uint32_t i = 0; i < 6; i++) {
        const struct topology_edge *e = &p->measured[i];
        uint32_t from = i / 2, to = i % 2 + (i % 2 >= from);
        struct msg_measured said = said_of(from, to, &(struct msg_probe){0});
        EXPECT(e->from == from && e->to == to && e->rate_bps == said.bits_per_second);
        EXPECT(e->rtt_us == said.rtt_us && e->loss_ppm == said.loss_ppm);
        EXPECT_EQ(e->age_s, 5);
    }
    cluster_free(c);
}

TEST(a_group_tells_what_was_measured_at_once_and_how_long_operations_took) /* pccl topo would show other plans than the master makes */
{
    struct cluster *c = cluster_voted(4);
    cluster_measure(c, peer_rate_alike, true);
    static const uint32_t order[] = {0, 1, 2, 3};
    cluster_solved(c, c->solve, order, 4);
    const struct peer *p = ask(c, &(struct msg_topology){.group = 0});
    for (uint32_t i = 0; i < 4; i++) { /* each edge carried a third of the member's link */
        EXPECT(p->linked[i].link.up_bps > 99000000 && p->linked[i].link.up_bps < 101000000);
        EXPECT(p->linked[i].link.down_bps > 99000000 && p->linked[i].link.down_bps < 101000000);
    }
    for (uint32_t kind = 0; kind < TOOK_KINDS; kind++) {
        EXPECT(p->links.took[kind].permille == 0 && p->links.took[kind].bytes == 0 && p->links.took[kind].took_us == 0);
    }
    for (uint32_t i = 0; i < 3; i++) {
        unsigned char bytes[64];
        struct writer w;
        writer_init(&w, bytes, sizeof bytes);
        put_took(&w, &(struct msg_took){.kind = TOOK_FOREST, .permille = (uint16_t)(1400 + i), .bytes = 4096 + i, .took_us = 7000 + i});
        cluster_frame_of(c, c->peers[i].conn, FRAME_TOOK, bytes, (uint32_t)w.used, c->peers[i].run, c->peers[i].view);
    }
    p = ask(c, &(struct msg_topology){.group = 0});
    EXPECT(p->links.took[TOOK_FOREST].permille == 1401 && p->links.took[TOOK_FOREST].bytes == 4097 && p->links.took[TOOK_FOREST].took_us == 7001);
    EXPECT(p->links.took[TOOK_RING].permille == 0);
    for (uint32_t i = 0; i < 4; i++) {
        peer_vote(c, &c->peers[i], VOTE_OPTIMISE);
    }
    cluster_solved(c, c->solve, order, 4);
    p = ask(c, &(struct msg_topology){.group = 0}); /* of the new view nothing was told */
    EXPECT(p->links.took[TOOK_FOREST].permille == 1401 && p->links.took[TOOK_FOREST].bytes == 0 && p->links.took[TOOK_FOREST].took_us == 0);
    cluster_free(c);
}

static uint64_t sum_of_rates(const struct peer *p)
{
    uint64_t sum = 0;
    for (uint32_t i = 0; i < p->links.edges; i++) {
        sum += p->measured[i].rate_bps;
    }
    return sum;
}

TEST(edges_of_a_member_that_is_away_are_not_shown_and_come_back_with_it) /* a program would steer by links that nobody has */
{
    struct cluster *c = cluster_new();
    c->host = 9;
    cluster_members(c, 3, 0);
    measure(c);
    static const uint32_t order[] = {0, 2, 1};
    cluster_solved(c, c->solve, order, 3);
    cluster_pass(c, 5500);
    uint64_t all = sum_of_rates(ask(c, &(struct msg_topology){0}));
    c->peers[0].no_frozen = c->peers[1].no_frozen = true;
    peer_crash(c, &c->peers[2]);
    const struct peer *p = ask(c, &(struct msg_topology){0}); /* the view with all three is still there */
    EXPECT(p->links.members == 3 && p->links.edges == 2);
    EXPECT(p->measured[0].from == 0 && p->measured[0].to == 1 && p->measured[1].from == 1 && p->measured[1].to == 0);
    peer_frozen(&c->peers[0]);
    peer_frozen(&c->peers[1]);
    c->peers[0].no_frozen = c->peers[1].no_frozen = false;
    cluster_pass(c, 3000);
    EXPECT_EQ(ask(c, &(struct msg_topology){0})->links.members, 2);
    peer_join(c, 0);
    peer_vote(c, &c->peers[0], VOTE_UPDATE);
    peer_vote(c, &c->peers[1], VOTE_UPDATE);
    p = ask(c, &(struct msg_topology){0});
    EXPECT(p->links.members == 3 && p->links.edges == 6);
    EXPECT_EQ(sum_of_rates(p), all);
    for (uint32_t i = 0; i < 6; i++) {
        EXPECT_EQ(p->measured[i].age_s, 8); /* since they were measured */
    }
    cluster_free(c);
}

TEST(loss_beyond_the_whole_is_told_as_the_whole) /* one peer's nonsense makes the answer unreadable for all */
{
    struct cluster *c = cluster_new();
    cluster_members(c, 2, 0);
    peer_vote(c, &c->peers[0], VOTE_OPTIMISE);
    peer_vote(c, &c->peers[1], VOTE_OPTIMISE);
    uint32_t first = c->peers[0].probes > 0 ? 0 : 1;
    struct msg_probe probe = c->peers[first].probe[0];
    peer_heard(c, &c->peers[first], &probe, UINT64_MAX);
    peer_says_measured(c, &c->peers[first], &(struct msg_measured){.round = probe.round, .to = probe.to, .bits_per_second = UINT64_MAX,
                                                                   .rtt_us = UINT32_MAX, .loss_ppm = UINT32_MAX});
    const struct peer *p = ask(c, &(struct msg_topology){0});
    EXPECT(p->links.edges == 1 && p->measured[0].rate_bps == UINT64_MAX && p->measured[0].loss_ppm == 1000000);
    cluster_free(c);
}

TEST(a_question_that_nobody_can_answer_gets_the_reason)
{
    struct cluster *c = cluster_new();
    EXPECT_EQ(state_of(c, &(struct msg_topology){0}), TOPOLOGY_NO_WORLD); /* nobody has ever come */
    cluster_members(c, 2, 0);
    EXPECT_EQ(state_of(c, &(struct msg_topology){.world = "w"}), TOPOLOGY_NO_WORLD);
    EXPECT_EQ(state_of(c, &(struct msg_topology){.run = 99}), TOPOLOGY_NO_WORLD);
    EXPECT_EQ(state_of(c, &(struct msg_topology){.group = 1}), TOPOLOGY_NO_GROUP);
    EXPECT_EQ(state_of(c, &(struct msg_topology){.view = c->peers[0].view + 1, .from = 1}), TOPOLOGY_CHANGED);
    EXPECT_EQ(state_of(c, &(struct msg_topology){.view = c->peers[0].view, .from = 1}), TOPOLOGY_FOUND);
    cluster_free(c);
    c = cluster_new(); /* of a given size: the world that has begun under that name */
    peer_create(c, "w", &(struct claim){.size = 1, .attempt = 1});
    EXPECT_EQ(state_of(c, &(struct msg_topology){.world = "w"}), TOPOLOGY_FOUND);
    cluster_free(c);
}

TEST(a_member_that_asks_for_links_breaks_the_protocol)
{
    struct cluster *c = cluster_new();
    cluster_members(c, 2, 0);
    unsigned char bytes[64];
    struct writer w;
    writer_init(&w, bytes, sizeof bytes);
    put_topology(&w, &(struct msg_topology){0});
    cluster_frame(c, c->peers[1].conn, FRAME_TOPOLOGY, bytes, (uint32_t)w.used, c->peers[1].run);
    EXPECT_EQ(c->peers[1].fence.cause, CAUSE_KICK_PROTOCOL);
    cluster_free(c);
}

/* ---- many members: pages of a world made by hand, of which nothing but members, view and measurements is looked at ---- */

enum { KEY = 5000 }; /* the first member's: rates are kept by keys, not by ids */

struct large {
    struct common common;
    struct world w;
    struct group g;
    uint64_t *ids;
    uint32_t *ring;
    struct bandwidth_entry *entries;
};

static struct large *large_new(uint32_t members, size_t capacity)
{
    struct large *l = calloc(1, sizeof *l);
    l->ids = calloc(members, sizeof *l->ids);
    l->ring = calloc(members, sizeof *l->ring);
    l->entries = calloc(capacity, sizeof *l->entries);
    for (uint32_t i = 0; i < members; i++) {
        l->ids[i] = 1000 + i;
        l->ring[i] = members - 1 - i;
    }
    l->common.now = 50000000000;
    l->common.scratch_keys = calloc(BOUNDS_RING, sizeof(uint64_t));
    l->w = (struct world){.common = &l->common, .group_room = 1, .groups = &l->g, .member_room = members};
    l->w.members = calloc(members, sizeof *l->w.members);
    l->w.by_id_size = rows_for(16, 2 * members);
    l->w.by_id = calloc(l->w.by_id_size, sizeof *l->w.by_id);
    l->w.free_set = calloc(bitset_words(members), sizeof *l->w.free_set);
    l->w.due_set = calloc(bitset_words(members), sizeof *l->w.due_set);
    l->w.due_storage = calloc(1, heap_bytes(members));
    for (uint32_t i = 0; i < members; i++) {
        l->w.members[i] = (struct member){.id = l->ids[i], .rates_key = KEY + i, .phase = MEMBER_ACCEPTED};
    }
    roll_rebuild(&l->w);
    l->g.phase = GROUP_NORMAL;
    l->g.views[0] = (struct view_record){.view = 9, .members = members, .ids = l->ids, .ring = l->ring};
    bandwidth_init(&l->w.bandwidth, l->entries, capacity);
    return l;
}

static void large_free(struct large *l)
{
    free(l->common.scratch_keys);
    free(l->w.members);
    free(l->w.by_id);
    free(l->w.free_set);
    free(l->w.due_set);
    free(l->w.due_storage);
    free(l->ids);
    free(l->ring);
    free(l->entries);
    free(l);
}

struct counted {
    uint32_t pages, members, edges;
    uint64_t rates; /* sum */
};

/* Reads all pages. */
static struct counted read_all(const struct large *l)
{
    static unsigned char bytes[TOPOLOGY_PAGE_BYTES];
    struct counted all = {0};
    struct msg_topology_page page = {0};
    do {
        struct writer w;
        struct reader r;
        writer_init(&w, bytes, sizeof bytes);
        world_tell_topology(&l->w, &(struct msg_topology){.view = page.view, .from = page.next}, &w);
        EXPECT(!w.bad);
        reader_init(&r, bytes, w.used);
        uint32_t from = page.next;
        EXPECT(get_topology_page(&r, &page) && page.state == TOPOLOGY_FOUND && (page.next == 0 || page.next > from));
        for (uint32_t i = 0; i < page.listed; i++) {
            struct topology_member m;
            EXPECT(get_topology_member(&r, &m) && m.id == 1000 + all.members && m.ring == page.members - 1 - all.members);
            all.members++;
        }
        for (uint32_t i = 0; i < page.edges; i++) {
            struct topology_edge e;
            EXPECT(get_topology_edge(&r, &e) && e.rate_bps == 1 + e.from * 1024u + e.to);
            all.rates += e.rate_bps;
            all.edges++;
        }
        EXPECT(reader_done(&r));
        all.pages++;
    } while (page.next != 0 && test_failures == 0);
    return all;
}

TEST(large_groups_come_in_pages_that_meet_no_edge_twice)
{
    enum { ALL = 100 };
    struct large *l = large_new(BOUNDS_MEMBERS, 16);
    struct counted got = read_all(l);
    EXPECT(got.members == BOUNDS_MEMBERS && got.edges == 0 && got.pages == BOUNDS_MEMBERS / TOPOLOGY_PAGE_MEMBERS);
    large_free(l);
    l = large_new(ALL, BANDWIDTH_CAPACITY(ALL));
    uint64_t sum = 0;
    for (uint32_t i = 0; i < ALL * ALL; i++) {
        uint32_t from = i / ALL, to = i % ALL;
        if (from != to) {
            EXPECT(bandwidth_set(&l->w.bandwidth, KEY + from, KEY + to, 1 + from * 1024 + to, 0));
            sum += 1 + from * 1024 + to;
        }
    }
    got = read_all(l);
    EXPECT(got.members == ALL && got.edges == ALL * (ALL - 1) && got.rates == sum && got.pages == 10);
    large_free(l);
    l = large_new(BOUNDS_RING, 16); /* few of many: a page looks at so many pairs, not further for its last edge */
    EXPECT(bandwidth_set(&l->w.bandwidth, KEY, KEY + 1023, 1 + 1023, 0));
    EXPECT(bandwidth_set(&l->w.bandwidth, KEY + 1023, KEY + 1022, 1 + 1023 * 1024 + 1022, 0));
    got = read_all(l);
    EXPECT(got.members == BOUNDS_RING && got.edges == 2 && got.rates == 2 + 1023 + 1023 * 1024 + 1022 && got.pages == 65); /* the first one has only members */
    large_free(l);
}
