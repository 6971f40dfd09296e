/* test_master_sites.c - a vote among members at a few sites: how they are measured, and what is taken to be known.
 * SPDX-License-Identifier: MIT */
#include "master_peers.h"
#include "tests/testing.h"

enum { COUNT = 6, NEAR = 2 * 3, FAR = 9, /* pairs within the two sites, between them */
       PROBE_TENTHS = 10 /* of a second, beside other work */ };

static uint32_t place_of(const struct cluster *c, uint64_t id)
{
    uint32_t i = 0;
    while (i < c->count - 1 && c->peers[i].id != id) {
        i++;
    }
    return i;
}

/* Members at so many sites, in turn, that have asked for a better ring. */
static struct cluster *at_sites(uint32_t count, uint32_t sites)
{
    struct cluster *c = cluster_new();
    cluster_members(c, count, 0);
    for (uint32_t i = 0; i < count; i++) {
        c->peers[i].site = (uint8_t)(1 + i % sites);
    }
    for (uint32_t i = 0; i < count; i++) {
        peer_vote(c, &c->peers[i], VOTE_OPTIMISE);
    }
    return c;
}

struct tally {
    uint32_t near, far;
};

static bool is_near(const struct cluster *c, uint64_t from, uint64_t to)
{
    return c->peers[place_of(c, from)].site == c->peers[place_of(c, to)].site;
}

/* Edges that are asked for now. */
static struct tally under_way(const struct cluster *c)
{
    struct tally t = {0, 0};
    for (uint32_t i = 0; i < c->count; i++) {
        for (uint32_t k = 0; k < c->peers[i].probes; k++) {
            bool near = is_near(c, c->peers[i].id, c->peers[i].probe[k].to);
            t.near += near;
            t.far += !near;
        }
    }
    return t;
}

static uint64_t rate_of_site(const struct cluster *c, uint64_t from, uint64_t to)
{
    return is_near(c, from, to) ? 200000000 : 60000000;
}

/* The first two members, one of each site, have slow links of their own. */
static uint64_t rate_uneven(const struct cluster *c, uint64_t from, uint64_t to)
{
    return place_of(c, from) < 2 || place_of(c, to) < 2 ? 10000000 : rate_of_site(c, from, to);
}

static bool answer_one(struct cluster *c, peer_rate *rate, struct tally *measured)
{
    for (uint32_t i = 0; i < c->count; i++) {
        struct msg_probe probe;
        if (peer_asked(&c->peers[i], &probe)) {
            bool near = is_near(c, c->peers[i].id, probe.to);
            measured->near += near;
            measured->far += !near;
            peer_measured(c, &c->peers[i], &probe, rate(c, c->peers[i].id, probe.to));
            return true;
        }
    }
    return false;
}

/* Answers probes of one edge for each member, until none is asked for, or all edges are at once.  Sites do not share their links. */
static struct tally measure_singly(struct cluster *c, peer_rate *rate)
{
    struct tally measured = {0, 0};
    for (;;) {
        struct tally now = under_way(c);
        if (now.near + now.far > COUNT) {
            return measured;
        }
        EXPECT(now.far <= 1); /* there are two sites, and no two probe each other */
        if (!answer_one(c, rate, &measured)) {
            return measured;
        }
    }
}

static void measure_together(struct cluster *c, peer_rate *rate)
{
    struct tally all = under_way(c), measured = {0, 0};
    EXPECT(all.near == 2 * NEAR && all.far == 2 * FAR);
    for (uint32_t i = 0; i < 2 * (NEAR + FAR); i++) {
        EXPECT(answer_one(c, rate, &measured));
    }
}

/* What is left is measured while they work: one edge at a time, for a twentieth of the time of all together. */
static struct tally measure_beside(struct cluster *c)
{
    uint32_t busy = 0, age = 0;
    struct tally measured = {0, 0};
    c->beat_ms = 100;
    for (uint32_t tenths = 0; tenths < 10000; tenths++) {
        cluster_pass(c, 100);
        uint32_t far = under_way(c).far;
        EXPECT(far <= 1);
        busy += far;
        age += far;
        EXPECT(busy <= tenths / 18 + PROBE_TENTHS); /* looks are a little rounded */
        if (age == PROBE_TENTHS) {
            (void)answer_one(c, rate_of_site, &measured);
            age = 0;
        }
    }
    return measured;
}

/* As the master tells everybody: how many edges it knows from a probe, and takes to be like another one. */
static struct tally told(struct cluster *c, uint32_t *assumed)
{
    const struct peer *p = cluster_ask_links(c, &(struct msg_topology){0});
    struct tally t = {0, 0};
    *assumed = 0;
    for (uint32_t i = 0; i < p->links.edges; i++) {
        const struct topology_edge *e = &p->measured[i];
        bool near = is_near(c, p->linked[e->from].id, p->linked[e->to].id);
        EXPECT_EQ(e->rate_bps, near ? 200000000 : 60000000);
        EXPECT_EQ(e->rtt_us, near ? 300 : 40000);
        EXPECT(e->source == TOPOLOGY_PROBED || (e->source == TOPOLOGY_ASSUMED && !near));
        *assumed += e->source == TOPOLOGY_ASSUMED;
        t.near += near;
        t.far += !near && e->source == TOPOLOGY_PROBED;
    }
    return t;
}

TEST(one_way_between_two_sites_is_measured_and_stands_for_all) /* hosts of a site probed at once, and read a third of its link each */
{
    static const uint32_t same[COUNT] = {0, 1, 2, 3, 4, 5};
    struct cluster *c = at_sites(COUNT, 2);
    uint32_t assumed;
    struct tally first = measure_singly(c, rate_of_site);
    EXPECT(first.near == NEAR && first.far == 1);
    measure_together(c, rate_of_site);
    struct tally back = measure_singly(c, rate_of_site);
    EXPECT(back.near == NEAR && back.far == 1);
    cluster_solved(c, c->solve, same, COUNT);
    cluster_pass(c, 5000);
    for (uint32_t i = 0; i < COUNT; i++) {
        EXPECT(!c->peers[i].voting && c->peers[i].answer.result == ANSWER_OK && c->peers[i].trees.count > 0);
    }
    struct tally known = told(c, &assumed);
    EXPECT(known.near == 2 * NEAR && known.far == 2 && assumed == FAR - 1);
    struct tally beside = measure_beside(c);
    EXPECT(beside.near == 0 && beside.far == 2 * FAR - 2);
    known = told(c, &assumed);
    EXPECT(known.far == 2 * FAR && assumed == 0);
    EXPECT(!master_poisoned(c->master));
    cluster_free(c);
}

/* Each edge that the master tells has its rate; how many of them are assumed. */
static uint32_t expect_rates(struct cluster *c, peer_rate *rate)
{
    const struct peer *p = cluster_ask_links(c, &(struct msg_topology){0});
    uint32_t assumed = 0;
    for (uint32_t i = 0; i < p->links.edges; i++) {
        const struct topology_edge *e = &p->measured[i];
        EXPECT_EQ(e->rate_bps, rate(c, p->linked[e->from].id, p->linked[e->to].id));
        assumed += e->source == TOPOLOGY_ASSUMED;
    }
    return assumed;
}

/* The only probe to another site that is asked for, between members with fast links. */
static bool fast_ones_probe(const struct cluster *c)
{
    for (uint32_t i = 0; i < c->count; i++) {
        for (uint32_t k = 0; k < c->peers[i].probes; k++) {
            if (!is_near(c, c->peers[i].id, c->peers[i].probe[k].to)) {
                return i >= 2 && place_of(c, c->peers[i].probe[k].to) >= 2;
            }
        }
    }
    return false;
}

TEST(sites_are_measured_between_their_fastest_members) /* a host with a slow line made all edges of its site look slow */
{
    static const uint32_t same[COUNT] = {0, 1, 2, 3, 4, 5};
    struct cluster *c = at_sites(COUNT, 2);
    struct tally near = {0, 0};
    while (under_way(c).far == 0 && answer_one(c, rate_uneven, &near)) {
    }
    EXPECT(near.near == NEAR && near.far == 0 && fast_ones_probe(c));
    struct tally first = measure_singly(c, rate_uneven);
    EXPECT(first.near == 0 && first.far == 1);
    measure_together(c, rate_uneven);
    struct tally back = measure_singly(c, rate_uneven);
    EXPECT(back.near == NEAR && back.far == 1);
    cluster_solved(c, c->solve, same, COUNT);
    cluster_pass(c, 5000);
    uint32_t assumed = expect_rates(c, rate_uneven);
    EXPECT(assumed >= FAR - 1); /* directions that differ are known one by one */
    EXPECT(!master_poisoned(c->master));
    cluster_free(c);
}

/* Answers what is asked for, but no edges to another site that begin or end at the first two members; how many edges to another site were. */
static uint32_t answer_for_others(struct cluster *c)
{
    uint32_t answered = 0;
    for (uint32_t i = 0; i < c->count; i++) {
        struct msg_probe probe;
        while (peer_asked(&c->peers[i], &probe)) {
            bool near = is_near(c, c->peers[i].id, probe.to);
            if (near || (i >= 2 && place_of(c, probe.to) >= 2)) {
                peer_measured(c, &c->peers[i], &probe, rate_of_site(c, c->peers[i].id, probe.to));
                answered += !near;
            }
        }
    }
    return answered;
}

TEST(sites_are_measured_by_others_where_their_fastest_members_cannot) /* nobody measured between them, in any vote or after it */
{
    static const uint32_t same[COUNT] = {0, 1, 2, 3, 4, 5};
    struct cluster *c = at_sites(COUNT, 2);
    uint32_t far = 0, solves = c->solves;
    c->beat_ms = 100;
    for (uint32_t tenths = 0; tenths < 12000 && far == 0; tenths++) {
        far += answer_for_others(c);
        cluster_pass(c, 100);
        if (c->solves != solves) {
            solves = c->solves;
            cluster_solved(c, c->solve, same, COUNT);
        }
    }
    EXPECT(!c->peers[0].voting && far > 0);
    EXPECT(!master_poisoned(c->master));
    cluster_free(c);
}

/* Members in even places, those of one site, send slowly and receive as the others do. */
static uint64_t rate_one_way(const struct cluster *c, uint64_t from, uint64_t to)
{
    return place_of(c, from) % 2 == 0 ? 10000000 : rate_of_site(c, from, to);
}

TEST(slow_uplink_of_one_says_nothing_of_the_downlink_of_another) /* a member was taken to receive as little as its neighbour sends */
{
    enum { FOUR = 4 };
    static const uint32_t same[FOUR] = {0, 1, 2, 3};
    struct cluster *c = at_sites(FOUR, 2);
    (void)cluster_measure(c, rate_one_way, true);
    cluster_solved(c, c->solve, same, FOUR);
    cluster_pass(c, 5000);
    uint32_t assumed = expect_rates(c, rate_one_way);
    EXPECT_EQ(assumed, 6); /* both directions of three pairs, since they differ */
    EXPECT(!master_poisoned(c->master));
    cluster_free(c);
}

/* Two members at each of three sites, which would each send one probe to another site at the same time. */
TEST(group_whose_pairs_are_known_rests_as_a_whole) /* one member or another measured all the time, and a call is as slow as its slowest member */
{
    static const uint32_t same[COUNT] = {0, 1, 2, 3, 4, 5};
    struct cluster *c = at_sites(COUNT, 3);
    (void)cluster_measure(c, rate_of_site, true);
    cluster_solved(c, c->solve, same, COUNT);
    struct tally beside = measure_beside(c);
    EXPECT(beside.far > 10);
    EXPECT(!master_poisoned(c->master));
    cluster_free(c);
}

TEST(vote_goes_on_without_round_trips_that_nobody_tells) /* it waited for a member that is busy or lies */
{
    struct cluster *c = cluster_new();
    cluster_members(c, COUNT, 0);
    for (uint32_t i = 0; i < COUNT; i++) {
        c->peers[i].site = 1 + i % 2;
        c->peers[i].no_trip = i == 0;
        peer_vote(c, &c->peers[i], VOTE_OPTIMISE);
    }
    EXPECT_EQ(under_way(c).near + under_way(c).far, 0);
    cluster_pass(c, 6000);
    struct tally first = {0, 0};
    for (struct tally now = under_way(c); now.near + now.far > 0 && now.near + now.far <= COUNT; now = under_way(c)) {
        EXPECT(answer_one(c, rate_of_site, &first));
    }
    EXPECT(first.near >= NEAR - 2 && first.near <= NEAR); /* the silent one is at a site of its own, as far as it was asked */
    EXPECT(first.near + first.far < NEAR + FAR);
    EXPECT(c->peers[0].open && !master_poisoned(c->master));
    cluster_free(c);
}

TEST(members_that_are_far_from_all_others_are_measured_in_pairs)
{
    struct cluster *c = at_sites(COUNT, COUNT);
    EXPECT_EQ(cluster_measure(c, peer_rate_alike, true), 2 * COUNT * (COUNT - 1)); /* each edge, and all at once */
    EXPECT(!master_poisoned(c->master));
    cluster_free(c);
}

static uint64_t rate_of_four(const struct cluster *c, uint64_t from, uint64_t to)
{
    (void)c;
    return from % 4 == to % 4 ? 1000000000 : 100000000;
}

/* Members of four sites, once all edges are measured or assumed; how many trees they have. */
static uint32_t trees_of_four(uint32_t count)
{
    struct master_config config = cluster_config();
    config.max_members = PEERS_MOST;
    config.max_connections = config.max_registered = 2 * PEERS_MOST;
    config.check_every = 100;
    struct cluster *c = cluster_with(&config);
    cluster_members(c, count, 0);
    for (uint32_t i = 0; i < count; i++) {
        c->peers[i].site = (uint8_t)(1 + c->peers[i].id % 4);
    }
    for (uint32_t round = 0; round < 40 && c->peers[0].trees.count == 0; round++) { /* of 64 far members each has to be measured: votes run out of time */
        uint32_t solves = c->solves;
        for (uint32_t i = 0; i < count; i++) {
            peer_vote(c, &c->peers[i], VOTE_OPTIMISE);
        }
        (void)cluster_measure(c, rate_of_four, true);
        uint32_t order[PEERS_MOST];
        for (uint32_t i = 0; i < count; i++) {
            order[i] = i;
        }
        if (c->solves != solves) {
            cluster_solved(c, c->solve, order, count);
        }
        cluster_pass(c, 1000);
    }
    uint32_t trees = c->peers[0].trees.count;
    EXPECT(!master_poisoned(c->master) && c->peers[0].member_count == count);
    EXPECT(trees == 0 || (tree_set_valid(&c->peers[0].trees) && c->peers[0].trees.members == count));
    cluster_free(c);
    return trees;
}

TEST(groups_of_64_have_trees_and_larger_ones_none) /* packing them would keep all clients of the master waiting */
{
    EXPECT(trees_of_four(64) > 0);
    EXPECT_EQ(trees_of_four(65), 0);
}
