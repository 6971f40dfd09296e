/* test_master_probes.c - a vote that has no time to measure all edges, and what is measured after it, beside other work.
 * SPDX-License-Identifier: MIT */
#include "master_peers.h"
#include "tests/testing.h"

/* Each probe takes `ms`; answers those that are asked for until the search for a ring begins.  Returns how many. */
static uint32_t measure_slowly(struct cluster *c, uint32_t ms)
{
    uint32_t measured = 0;
    for (uint32_t solves = c->solves; c->solves == solves && measured < 1000;) {
        struct msg_probe probe;
        cluster_pass(c, ms);
        uint32_t asked[PEERS_MOST];
        for (uint32_t i = 0; i < c->count; i++) {
            asked[i] = c->peers[i].probes;
        }
        for (uint32_t i = 0; i < c->count; i++) {
            for (uint32_t k = 0; k < asked[i] && peer_asked(&c->peers[i], &probe); k++) {
                peer_measured(c, &c->peers[i], &probe, 100000000);
                measured++;
            }
        }
    }
    return measured;
}

TEST(vote_measures_for_a_while_and_the_next_one_goes_on) /* sixteen far members waited for most of a minute */
{
    enum { COUNT = 8, EDGES = COUNT * (COUNT - 1) };
    struct cluster *c = cluster_voted(COUNT);
    struct peer *p = c->peers;
    const uint32_t same[COUNT] = {0, 1, 2, 3, 4, 5, 6, 7};
    uint32_t first = measure_slowly(c, 4000);
    EXPECT(first >= 2 * COUNT && first <= 4 * COUNT); /* after 0, 4, 8 and 12 s */
    cluster_solved(c, c->solve, same, COUNT);
    for (int i = 0; i < COUNT; i++) {
        EXPECT(!p[i].voting);
        EXPECT_EQ(p[i].answer.result, ANSWER_OK);
        EXPECT_EQ(p[i].probes, 0);
    }
    for (int i = 0; i < COUNT; i++) {
        peer_vote(c, &p[i], VOTE_OPTIMISE);
    }
    EXPECT_EQ(measure_slowly(c, 500), EDGES - first + EDGES); /* the rest, and all at once */
    cluster_solved(c, c->solve, same, COUNT);
    cluster_pass(c, 5000);
    for (int i = 0; i < COUNT; i++) {
        EXPECT(!p[i].voting && p[i].trees.count > 0);
        EXPECT_EQ(p[i].probes, 0);
    }
    EXPECT(!master_poisoned(c->master));
    cluster_free(c);
}

enum { LEFT = 8, LEFT_EDGES = LEFT * (LEFT - 1) };

/* Eight members, and a vote that had time for three probes of each; how many it measured. */
static uint32_t vote_with_edges_left(struct cluster *c)
{
    static const uint32_t same[LEFT] = {0, 1, 2, 3, 4, 5, 6, 7};
    uint32_t first = measure_slowly(c, 7000);
    EXPECT(first >= LEFT && first <= 3 * LEFT);
    cluster_solved(c, c->solve, same, LEFT);
    EXPECT(!c->peers[0].voting);
    return first;
}

/* Seconds of work, in which each probe takes two.  Returns how many were measured, and for how many tenths of a second each member sends and
 * receives. */
static uint32_t work(struct cluster *c, uint32_t seconds, uint32_t *sends, uint32_t *receives)
{
    uint32_t measured = 0, age[LEFT] = {0};
    c->beat_ms = 100;
    for (uint32_t s = 0; s < 10 * seconds; s++) {
        cluster_pass(c, 100);
        for (uint32_t i = 0; i < LEFT; i++) {
            struct peer *p = &c->peers[i];
            struct msg_probe probe;
            EXPECT(p->probes <= 1);
            for (uint32_t k = 0; p->open && p->probes == 1 && k < LEFT; k++) {
                bool reached = c->peers[k].id == p->probe[0].to;
                receives[k] += reached;
                sends[i] += reached;
            }
            if (p->open && p->probes == 1 && ++age[i] == 20 && peer_asked(p, &probe)) {
                peer_measured(c, p, &probe, 100000000);
                age[i] = 0;
                measured++;
            }
        }
    }
    return measured;
}

TEST(edges_that_are_left_are_measured_beside_other_work) /* by the next vote nothing was known that this one had no time for */
{
    struct cluster *c = cluster_voted(LEFT);
    uint32_t first = vote_with_edges_left(c), sends[LEFT] = {0}, receives[LEFT] = {0}, seconds = 0, measured = 0;
    EXPECT_EQ(work(c, 9, sends, receives), 0); /* what comes after a vote is not disturbed at once */
    for (; seconds < 600 && measured < LEFT_EDGES - first; seconds += 20) {
        measured += work(c, 20, sends, receives);
        for (uint32_t i = 0; i < LEFT; i++) { /* a twentieth of the time, and the probe that has just begun, a little rounded */
            uint32_t most = 10 * (seconds + 20) / 20 + 25;
            EXPECT(sends[i] <= most && receives[i] <= most);
        }
    }
    EXPECT_EQ(measured, LEFT_EDGES - first);
    EXPECT_EQ(work(c, 100, sends, receives), 0);
    for (uint32_t i = 0; i < LEFT; i++) {
        peer_vote(c, &c->peers[i], VOTE_OPTIMISE);
    }
    EXPECT_EQ(cluster_measure(c, peer_rate_alike, true), LEFT_EDGES); /* all at once: one by one they are known */
    EXPECT(!master_poisoned(c->master));
    cluster_free(c);
}

/* Passes the time until somebody measures beside its work. */
static struct peer *somebody_measures(struct cluster *c)
{
    for (uint32_t tenths = 0; tenths < 1000; tenths++) {
        for (uint32_t i = 0; i < LEFT; i++) {
            if (c->peers[i].open && c->peers[i].probes == 1) {
                return &c->peers[i];
            }
        }
        cluster_pass(c, 100);
    }
    EXPECT(false);
    return c->peers;
}

static uint32_t place_of(const struct cluster *c, uint64_t id)
{
    uint32_t i = 0;
    while (i < c->count - 1 && c->peers[i].id != id) {
        i++;
    }
    return i;
}

/* Those of the first peers that are still there. */
static void all_vote(struct cluster *c, uint32_t peers, enum vote_kind kind)
{
    for (uint32_t i = 0; i < peers; i++) {
        if (c->peers[i].open) {
            peer_vote(c, &c->peers[i], kind);
        }
    }
}

TEST(vote_goes_on_with_what_is_measured_beside_other_work) /* the edge would be measured twice at the same time */
{
    struct cluster *c = cluster_voted(LEFT);
    uint32_t first = vote_with_edges_left(c), sends[LEFT] = {0}, receives[LEFT] = {0};
    uint32_t measured = work(c, 60, sends, receives);
    struct peer *p = somebody_measures(c);
    uint64_t to = p->probe[0].to;
    all_vote(c, c->count, VOTE_OPTIMISE);
    EXPECT(p->probes == 1 && p->probe[0].to == to);
    for (uint32_t i = 0; i < LEFT; i++) {
        EXPECT(c->peers[i].probes <= 1 && (&c->peers[i] == p || c->peers[i].probes == 0 || c->peers[i].probe[0].to != to));
    }
    EXPECT(measured > 0);
    EXPECT_EQ(cluster_measure(c, peer_rate_alike, true), LEFT_EDGES - first - measured + LEFT_EDGES);
    EXPECT(!master_poisoned(c->master));
    cluster_free(c);
}

TEST(members_that_go_take_their_edges_with_them) /* others waited for them for ever, or measured newcomers in their places */
{
    struct cluster *c = cluster_voted(LEFT);
    uint32_t first = vote_with_edges_left(c), sends[LEFT] = {0}, receives[LEFT] = {0};
    struct peer *sender = somebody_measures(c);
    peer_crash(c, sender);
    struct peer *left = somebody_measures(c);
    struct peer *receiver = &c->peers[place_of(c, left->probe[0].to)];
    peer_crash(c, receiver);
    EXPECT_EQ(left->member_count, LEFT - 2);
    struct peer *late[2] = {peer_join(c, 0), peer_join(c, 0)}; /* in their slots */
    all_vote(c, LEFT, VOTE_UPDATE);
    EXPECT_EQ(left->member_count, LEFT);
    uint32_t measured = work(c, 600, sends, receives);
    EXPECT(measured > 0 && measured < LEFT_EDGES - first);
    EXPECT(late[0]->probes == 0 && late[1]->probes == 0);
    all_vote(c, c->count, VOTE_OPTIMISE);
    uint32_t of_newcomers = 2 * (2 * (LEFT - 2)) + 2;
    EXPECT_EQ(cluster_measure(c, peer_rate_alike, true), of_newcomers + LEFT_EDGES); /* and all at once */
    EXPECT(!master_poisoned(c->master));
    cluster_free(c);
}

TEST(vote_may_begin_right_after_a_member_that_measures_has_gone) /* its place in the order stayed busy: the master ended */
{
    struct cluster *c = cluster_voted(LEFT);
    (void)vote_with_edges_left(c);
    struct peer *sender = somebody_measures(c);
    peer_crash(c, sender);
    (void)peer_join(c, 0);
    all_vote(c, LEFT, VOTE_UPDATE);
    for (uint32_t i = 0; i < c->count; i++) {
        c->peers[i].no_trip = true; /* the vote waits for round trips */
        if (c->peers[i].open) {
            peer_vote(c, &c->peers[i], VOTE_OPTIMISE);
        }
    }
    EXPECT(!master_poisoned(c->master));
    cluster_pass(c, 6000);
    EXPECT(cluster_measure(c, peer_rate_alike, true) > LEFT);
    EXPECT(!master_poisoned(c->master));
    cluster_free(c);
}

/* Mb/s. */
static uint64_t rate_of_edge(struct cluster *c, const struct peer *from, const struct peer *to)
{
    double cost[16] = {0};
    uint32_t ring[4];
    uint32_t i = (uint32_t)(from - c->peers), k = (uint32_t)(to - c->peers), n = master_matrix(c->master, c->solve, cost, ring, 4);
    EXPECT(n == 3 && cost[i * n + k] > 0);
    return (uint64_t)(1e3 / cost[i * n + k] + 0.5); /* cost: seconds of a gigabit */
}

/* Three members whose edges all have 100 Mb/s, in the search for a ring. */
static struct cluster *three_that_are_known(void)
{
    struct cluster *c = cluster_voted(3);
    EXPECT_EQ(cluster_measure(c, peer_rate_alike, true), 12);
    return c;
}

static void search_again(struct cluster *c)
{
    static const uint32_t same[] = {0, 1, 2};
    cluster_solved(c, c->solve, same, 3);
    cluster_pass(c, 5000);
    all_vote(c, 3, VOTE_OPTIMISE);
    cluster_measure(c, peer_rate_alike, true);
}

/* Of the edge from the first member to the second, as the master tells everybody; 0: it is not known, or cannot connect. */
static uint64_t rate_told(struct cluster *c)
{
    const struct peer *p = cluster_ask_links(c, &(struct msg_topology){0});
    return p->links.edges > 0 && p->measured[0].from == 0 ? p->measured[0].rate_bps : 0;
}

TEST(probe_that_the_other_end_has_not_seen_says_nothing) /* a peer that lies about its links would get everybody's data */
{
    static const struct {
        uint64_t said, heard, rate; /* heard 0: nothing */
    } rows[] = {{100000000, 100000000, 100000000}, {UINT64_MAX, 80000000, 160000000}, {UINT64_MAX, 0, 0}, {80000000, UINT64_MAX, 80000000}, {0, 80000000, 0}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct cluster *c = cluster_voted(2);
        struct peer *p = c->peers;
        struct msg_probe probe;
        EXPECT(peer_asked(&p[0], &probe));
        if (rows[i].heard > 0) {
            peer_heard(c, &p[0], &probe, rows[i].heard);
        }
        peer_says_measured(c, &p[0], &(struct msg_measured){.round = probe.round, .to = probe.to, .bits_per_second = rows[i].said});
        if (rows[i].heard == 0) {
            EXPECT_EQ(p[1].probes, 0); /* the other end may say so yet */
            cluster_pass(c, 6000);
        }
        EXPECT_EQ(p[1].probes, 1);
        EXPECT(peer_asked(&p[1], &probe));
        peer_measured(c, &p[1], &probe, 100000000);
        EXPECT(!p[0].voting && !p[1].voting);
        all_vote(c, 2, VOTE_OPTIMISE);
        EXPECT_EQ(p[0].probes, rows[i].heard == 0); /* measured again */
        EXPECT_EQ(rate_told(c), rows[i].rate);
        EXPECT(!master_poisoned(c->master));
        cluster_free(c);
    }
}

TEST(word_of_the_other_end_may_come_first_or_last)
{
    struct cluster *c = cluster_voted(2);
    struct peer *p = c->peers;
    struct msg_probe probe;
    EXPECT(peer_asked(&p[0], &probe));
    peer_says_measured(c, &p[0], &(struct msg_measured){.round = probe.round, .to = probe.to, .bits_per_second = 100000000});
    peer_says_measured(c, &p[0], &(struct msg_measured){.round = probe.round, .to = probe.to, .bits_per_second = 900000000}); /* counts once */
    peer_heard(c, &p[1], &(struct msg_probe){.round = probe.round, .to = p[0].id}, 100000000); /* of an edge that is not measured */
    peer_heard(c, &p[0], &(struct msg_probe){.round = probe.round + 1, .to = p[1].id}, 100000000); /* of another probe */
    EXPECT_EQ(p[1].probes, 0);
    peer_heard(c, &p[0], &probe, 100000000);
    EXPECT_EQ(p[1].probes, 1);
    peer_heard(c, &p[0], &probe, 1); /* of no probe any more */
    EXPECT(peer_asked(&p[1], &probe));
    peer_measured(c, &p[1], &probe, 100000000);
    all_vote(c, 2, VOTE_OPTIMISE);
    EXPECT(p[0].probes == 0 && p[1].probes == 0 && !p[0].voting);
    cluster_free(c);
}

TEST(operations_raise_rates_that_both_ends_have_seen) /* a probe that met other traffic counted until somebody doubted it */
{
    struct cluster *c = three_that_are_known();
    struct peer *p = c->peers;
    EXPECT_EQ(rate_of_edge(c, &p[0], &p[1]), 100);
    peer_says_measured(c, &p[0], &(struct msg_measured){.round = MEASURED_SENT_AT_WORK, .to = p[1].id, .bits_per_second = 400000000});
    EXPECT_EQ(rate_of_edge(c, &p[0], &p[1]), 100);
    peer_says_measured(c, &p[1], &(struct msg_measured){.round = MEASURED_HEARD_AT_WORK, .to = p[0].id, .bits_per_second = 300000000});
    EXPECT_EQ(rate_of_edge(c, &p[0], &p[1]), 300);
    EXPECT_EQ(rate_of_edge(c, &p[1], &p[0]), 100);
    peer_says_measured(c, &p[1], &(struct msg_measured){.round = MEASURED_HEARD_AT_WORK, .to = p[0].id, .bits_per_second = 1000});
    peer_says_measured(c, &p[0], &(struct msg_measured){.round = MEASURED_SENT_AT_WORK, .to = p[0].id, .bits_per_second = 1});
    peer_says_measured(c, &p[0], &(struct msg_measured){.round = MEASURED_SENT_AT_WORK, .to = p[2].id + 77, .bits_per_second = UINT64_MAX});
    EXPECT_EQ(rate_of_edge(c, &p[0], &p[1]), 300);
    search_again(c);
    EXPECT_EQ(rate_of_edge(c, &p[0], &p[1]), 300);
    EXPECT(p[0].open && !master_poisoned(c->master));
    cluster_free(c);
}
