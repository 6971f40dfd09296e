/* test_master_absent.c - members that leave and come back: what is known of their edges, and for how long.
 *
 * A member is known by its host here, and rates are those between hosts, so that whoever returns has the links that it had.
 * SPDX-License-Identifier: MIT */
#include "core/mix.h"
#include "master_peers.h"
#include "tests/testing.h"
#include "world/absent.h"

enum { ALL_AT_ONCE_4 = 12 }; /* probes of the round that measures all edges of four members together */

/* The link of a process: hosts have one each, unless processes of one host are told apart by their ports. */
static uint8_t place[PEERS_MOST];

static struct peer *join(struct cluster *c, uint8_t host, uint16_t port, uint32_t group)
{
    place[c->count] = (uint8_t)(host + 40 * (port != 0 ? port - 48150 : 0));
    c->host = host;
    c->place.port = port;
    return peer_join(c, group);
}

static uint32_t place_of(const struct cluster *c, uint64_t id)
{
    for (uint32_t i = 0; i < c->count; i++) {
        if (c->peers[i].id == id) {
            return place[i];
        }
    }
    return 0;
}

/* 10 to 200 Mb/s, another one for each ordered pair. */
static uint64_t rate_of_places(uint32_t from, uint32_t to)
{
    return 10000000 + mix64(mix64(7, from), to) % 190000000;
}

static void vote(struct cluster *c, enum vote_kind kind)
{
    bool member[PEERS_MOST]; /* with the last vote others come in */
    for (uint32_t i = 0; i < c->count; i++) {
        member[i] = c->peers[i].open && c->peers[i].view != 0;
    }
    for (uint32_t i = 0; i < c->count; i++) {
        if (member[i]) {
            peer_vote(c, &c->peers[i], kind);
        }
    }
}

/* Answers all probes; returns how many. */
static uint32_t answer_probes(struct cluster *c)
{
    uint32_t measured = 0;
    for (bool any = true; any;) {
        any = false;
        for (uint32_t i = 0; i < c->count; i++) {
            struct msg_probe probe;
            if (c->peers[i].open && peer_asked(&c->peers[i], &probe)) {
                peer_measured(c, &c->peers[i], &probe, rate_of_places(place[i], place_of(c, probe.to)));
                measured++;
                any = true;
            }
        }
    }
    return measured;
}

/* The members ask for better rings, keep those that they have, and live on for a while; how many edges were measured. */
static uint32_t optimise(struct cluster *c)
{
    uint32_t keep[PEERS_MOST] = {0}, n = 0;
    vote(c, VOTE_OPTIMISE);
    uint32_t measured = answer_probes(c);
    for (uint32_t i = 0; i < c->count; i++) {
        if (c->peers[i].open && c->peers[i].member_count > n) {
            n = c->peers[i].member_count;
            memcpy(keep, c->peers[i].ring, n * sizeof keep[0]);
        }
    }
    if (n > 2) {
        cluster_solved(c, c->solve, keep, n);
    }
    cluster_pass(c, 5000);
    return measured;
}

/* Members on hosts 1 to `count`, whose edges are known. */
static struct cluster *known(uint8_t count)
{
    struct cluster *c = cluster_new();
    for (uint8_t i = 1; i <= count; i++) {
        join(c, i, 0, 0);
    }
    vote(c, VOTE_UPDATE);
    EXPECT_EQ(c->peers[0].member_count, count);
    EXPECT_EQ(optimise(c), 2 * count * (count - 1));
    return c;
}

/* Somebody comes and is a member; how many edges are measured then. */
static uint32_t comes(struct cluster *c, uint8_t host)
{
    struct peer *p = join(c, host, 0, 0);
    vote(c, VOTE_UPDATE);
    EXPECT(p->view != 0);
    return optimise(c);
}

static void goes(struct cluster *c)
{
    peer_crash(c, &c->peers[c->count - 1]);
}

TEST(member_that_returns_to_its_host_is_not_measured_again) /* 20 s of a group on four sites, for each return */
{
    struct cluster *c = known(4);
    struct peer *p = c->peers;
    uint32_t ring[4];
    vote(c, VOTE_OPTIMISE);
    const uint32_t better[4] = {0, 3, 1, 2};
    cluster_solved(c, c->solve, better, 4);
    cluster_pass(c, 5000);
    memcpy(ring, p[0].ring, sizeof ring);
    struct msg_view before = p[0].last_view;
    struct tree_set trees = p[0].trees;
    uint16_t parent[BOUNDS_TREES * 4];
    EXPECT(trees.count > 0 && tree_set_valid(&trees));
    memcpy(parent, trees.parent, trees.count * 4 * sizeof parent[0]);
    goes(c);
    EXPECT_EQ(p[0].member_count, 3);
    struct peer *back = join(c, 4, 0, 0);
    vote(c, VOTE_UPDATE);
    EXPECT(back->member_count == 4 && back->id != p[3].id);
    EXPECT_EQ(back->last_view.plan.link_ps, before.plan.link_ps); /* at once, before anybody asks for an optimisation */
    EXPECT_EQ(back->last_view.plan.tree_mib_ns, before.plan.tree_mib_ns);
    EXPECT(back->trees.count == trees.count && memcmp(back->trees.share, trees.share, trees.count * sizeof trees.share[0]) == 0);
    EXPECT(memcmp(back->trees.parent, parent, trees.count * 4 * sizeof parent[0]) == 0);
    vote(c, VOTE_OPTIMISE);
    EXPECT_EQ(answer_probes(c), 0);
    double cost[16];
    uint32_t current[4];
    EXPECT_EQ(master_matrix(c->master, c->solve, cost, current, 4), 4);
    for (uint32_t i = 0; i < 16; i++) {
        double rate = (double)rate_of_places(i / 4 + 1, i % 4 + 1);
        EXPECT(i % 5 == 0 || (cost[i] > 0.999e9 / rate && cost[i] < 1.001e9 / rate));
    }
    cluster_solved(c, c->solve, ring, 4);
    cluster_pass(c, 5000);
    EXPECT(memcmp(p[0].ring, ring, sizeof ring) == 0);
    EXPECT(!master_poisoned(c->master));
    cluster_free(c);
}

TEST(ring_is_as_before_when_a_member_returns) /* the searched ring would be lost with each crash */
{
    for (uint32_t lost = 0; lost < 4; lost++) {
        struct cluster *c = known(4);
        struct peer *p = c->peers;
        double cost[16], least = 1e300;
        uint32_t now[4], best[4] = {0};
        vote(c, VOTE_OPTIMISE);
        EXPECT_EQ(master_matrix(c->master, c->solve, cost, now, 4), 4);
        static const uint32_t rings[6][4] = {{0, 1, 2, 3}, {0, 1, 3, 2}, {0, 2, 1, 3}, {0, 2, 3, 1}, {0, 3, 1, 2}, {0, 3, 2, 1}};
        for (uint32_t k = 0; k < 6; k++) {
            double slowest = 0;
            for (uint32_t i = 0; i < 4; i++) {
                double edge = cost[rings[k][i] * 4 + rings[k][(i + 1) % 4]];
                slowest = edge > slowest ? edge : slowest;
            }
            if (slowest < least) {
                least = slowest;
                memcpy(best, rings[k], sizeof best);
            }
        }
        cluster_solved(c, c->solve, best, 4);
        cluster_pass(c, 5000);
        peer_crash(c, &p[lost]);
        struct peer *back = join(c, (uint8_t)(lost + 1), 0, 0);
        vote(c, VOTE_UPDATE);
        EXPECT_EQ(back->member_count, 4);
        uint32_t first = 0; /* where host 1 stands now */
        while (place_of(c, back->members[back->ring[first]]) != 1) {
            first++;
        }
        for (uint32_t i = 0; i < 4; i++) {
            EXPECT_EQ(place_of(c, back->members[back->ring[(first + i) % 4]]), best[i] + 1);
        }
        cluster_free(c);
    }
}

TEST(member_from_another_host_is_measured) /* else its plans are made of what somebody else's links carry */
{
    struct cluster *c = known(4);
    goes(c);
    EXPECT_EQ(comes(c, 5), 6 + ALL_AT_ONCE_4);
    cluster_free(c);
}

TEST(hosts_are_told_apart_by_what_the_master_sees_and_by_what_they_say) /* many are 192.168.0.2, or stand behind one router; some lie */
{
    struct cluster *c = cluster_new();
    join(c, 1, 0, 0);
    join(c, 2, 0, 0);
    c->place.lan = 7;
    join(c, 3, 0, 0);
    vote(c, VOTE_UPDATE);
    EXPECT_EQ(optimise(c), 2 * 6);
    goes(c);
    c->place.lan = 8; /* behind the same router */
    EXPECT_EQ(comes(c, 3), 4 + 6);
    goes(c);
    c->place.lan = 7; /* says that it is the first one, from elsewhere */
    EXPECT_EQ(comes(c, 4), 4 + 6);
    goes(c);
    c->place.lan = 0;
    EXPECT_EQ(comes(c, 3), 4 + 6);
    goes(c);
    cluster_free(c);
    c = cluster_new();
    join(c, 1, 0, 0);
    c->place.lan = 7;
    join(c, 3, 0, 0);
    vote(c, VOTE_UPDATE);
    EXPECT_EQ(optimise(c), 2);
    goes(c);
    c->place.lan = 8;
    EXPECT_EQ(comes(c, 3), 2);
    goes(c);
    c->place.lan = 7; /* the first one, whose rates are not those of the second */
    EXPECT_EQ(comes(c, 3), 0);
    cluster_free(c);
}

TEST(member_that_gives_the_addresses_of_another_host_is_measured) /* it would take what is known of that one, and add to it */
{
    struct cluster *c = known(3);
    goes(c);
    c->place.host = 3;
    EXPECT_EQ(comes(c, 4), 4 + 6);
    goes(c);
    c->place.host = 0;
    EXPECT_EQ(comes(c, 3), 0); /* the true one */
    goes(c);
    c->place.host = 3;
    EXPECT_EQ(comes(c, 4), 0); /* what is its own stays its own */
    cluster_free(c);
}

/* The costs between four members are those of the places where they are now. */
static void expect_own_edges(struct cluster *c)
{
    double cost[16];
    uint32_t ring[4];
    const struct peer *p = &c->peers[c->count - 1];
    vote(c, VOTE_OPTIMISE);
    EXPECT_EQ(answer_probes(c), 0);
    EXPECT_EQ(master_matrix(c->master, c->solve, cost, ring, 4), 4);
    for (uint32_t i = 0; i < 16; i++) {
        double rate = (double)rate_of_places(place_of(c, p->members[i / 4]), place_of(c, p->members[i % 4]));
        EXPECT(i % 5 == 0 || (cost[i] > 0.999e9 / rate && cost[i] < 1.001e9 / rate));
    }
    cluster_solved(c, c->solve, ring, 4);
    cluster_pass(c, 5000);
}

TEST(two_of_one_host_keep_their_own_edges_whichever_returns_first)
{
    for (uint32_t order = 0; order < 8; order++) {
        struct cluster *c = cluster_new();
        join(c, 1, 0, 0);
        join(c, 2, 0, 0);
        join(c, 3, 48150, 0);
        join(c, 3, 48151, 0);
        vote(c, VOTE_UPDATE);
        EXPECT_EQ(optimise(c), 12 + ALL_AT_ONCE_4);
        uint32_t goes_first = order & 1, returns_first = order >> 1 & 1;
        peer_crash(c, &c->peers[2 + goes_first]);
        if ((order & 4) != 0) {
            join(c, 3, (uint16_t)(48150 + goes_first), 0); /* one alone: the other is there */
        } else {
            peer_crash(c, &c->peers[3 - goes_first]);
            join(c, 3, (uint16_t)(48150 + returns_first), 0);
            join(c, 3, (uint16_t)(48151 - returns_first), 0);
        }
        vote(c, VOTE_UPDATE);
        expect_own_edges(c);
        EXPECT(!master_poisoned(c->master));
        cluster_free(c);
    }
}

TEST(processes_that_come_back_under_other_ports_are_known) /* ports count up from the first free one, in whatever order they start */
{
    struct cluster *c = cluster_new();
    join(c, 1, 0, 0);
    join(c, 3, 48150, 0);
    join(c, 3, 48151, 0);
    vote(c, VOTE_UPDATE);
    EXPECT_EQ(optimise(c), 2 * 6);
    peer_crash(c, &c->peers[1]);
    peer_crash(c, &c->peers[2]);
    join(c, 3, 48152, 0);
    join(c, 3, 48153, 0);
    vote(c, VOTE_UPDATE);
    EXPECT_EQ(c->peers[0].member_count, 3);
    EXPECT_EQ(optimise(c), 0);
    join(c, 3, 48154, 0); /* nobody is left whose place it could take */
    vote(c, VOTE_UPDATE);
    EXPECT_EQ(optimise(c), 6 + ALL_AT_ONCE_4);
    cluster_free(c);
}

TEST(processes_of_one_host_come_back_to_their_groups_in_any_order) /* edges lead to members of the own group: another's are of no use */
{
    struct cluster *c = cluster_new();
    for (uint8_t host = 1; host <= 2; host++) {
        join(c, host, 48150, 1);
        join(c, host, 48151, 2);
    }
    vote(c, VOTE_UPDATE);
    EXPECT_EQ(optimise(c), 4);
    peer_crash(c, &c->peers[2]);
    peer_crash(c, &c->peers[3]);
    join(c, 2, 48150, 2); /* the other way round */
    join(c, 2, 48151, 1);
    vote(c, VOTE_UPDATE);
    EXPECT(c->peers[0].member_count == 2 && c->peers[1].member_count == 2);
    EXPECT_EQ(optimise(c), 0);
    EXPECT(!master_poisoned(c->master));
    cluster_free(c);
}

TEST(process_that_is_back_before_its_loss_is_seen_is_known) /* a supervisor is faster than the master's patience */
{
    struct cluster *c = known(4);
    peer_cut(c, &c->peers[3]);
    struct peer *back = join(c, 4, 0, 0);
    cluster_pass(c, 5000);
    vote(c, VOTE_UPDATE);
    EXPECT_EQ(back->member_count, 4);
    EXPECT_EQ(optimise(c), 0);
    cluster_free(c);
}

TEST(so_many_absent_ones_are_remembered_and_the_one_that_left_first_goes) /* the table fills with hosts that never come back */
{
    EXPECT_EQ(absent_room(BOUNDS_RING), BOUNDS_ABSENT);
    struct cluster *c = known(4); /* so many are measured, so many are remembered */
    goes(c);
    for (uint8_t host = 5; host < 8; host++) {
        EXPECT_EQ(comes(c, host), 6 + ALL_AT_ONCE_4);
        goes(c);
    }
    EXPECT_EQ(comes(c, 4), 0); /* the bound is reached: 4, 5, 6 and 7 are */
    goes(c);
    EXPECT_EQ(comes(c, 8), 6 + ALL_AT_ONCE_4);
    goes(c);                   /* it is passed: 5 has left first */
    EXPECT_EQ(comes(c, 6), 0);
    goes(c);
    EXPECT_EQ(comes(c, 4), 0);
    goes(c);
    EXPECT_EQ(comes(c, 5), 6 + ALL_AT_ONCE_4);
    EXPECT(!master_poisoned(c->master));
    cluster_free(c);
}

TEST(who_was_never_measured_takes_nobodys_place) /* newcomers that try and fail would wipe out what is known of the others */
{
    struct cluster *c = known(4);
    goes(c);
    for (uint8_t host = 10; host < 16; host++) {
        join(c, host, 0, 0);
        goes(c);
    }
    EXPECT_EQ(comes(c, 4), 0);
    cluster_free(c);
}

TEST(present_members_keep_their_edges_whoever_comes_and_goes) /* the table of rates has room for both */
{
    struct cluster *c = known(4);
    for (uint8_t round = 0; round < 3; round++) { /* each time another one, which is known afterwards */
        goes(c);
        EXPECT_EQ(comes(c, (uint8_t)(10 + round)), 6 + ALL_AT_ONCE_4);
    }
    goes(c);
    for (uint8_t i = 0; i < 4; i++) { /* all that are remembered come, and are members together */
        join(c, (uint8_t)(i < 3 ? 10 + i : 4), 0, 0);
    }
    vote(c, VOTE_UPDATE);
    EXPECT_EQ(c->peers[0].member_count, 7);
    EXPECT_EQ(optimise(c), 4 * 3); /* the four have not met; each has been measured with all of its edges at once */
    EXPECT_EQ(optimise(c), 0);
    EXPECT(!master_poisoned(c->master));
    cluster_free(c);
}

TEST(what_is_remembered_moves_into_a_larger_table)
{
    struct cluster *c = known(4);
    goes(c);
    join(c, 5, 0, 0);
    EXPECT_EQ(comes(c, 6), 2 * (3 + 3 + 1) + 5 * 4); /* a fifth member: the tables double */
    EXPECT_EQ(comes(c, 4), 4);                       /* it has not met these two */
    EXPECT(!master_poisoned(c->master));
    cluster_free(c);
}

TEST(doubt_of_an_edge_moves_into_a_larger_table) /* the edge would stay what it was measured at first */
{
    struct cluster *c = known(4);
    cluster_pass(c, 30000);
    peer_measured(c, &c->peers[0], &(struct msg_probe){.round = MEASURED_DOUBT, .to = c->peers[1].id}, 1);
    join(c, 5, 0, 0); /* the tables double */
    vote(c, VOTE_UPDATE);
    EXPECT_EQ(optimise(c), 1 + 2 * 4 + 5 * 4);
    cluster_free(c);
}

TEST(absent_ones_are_forgotten_after_an_hour) /* links change; a plan of last year's rates is worse than none */
{
    struct cluster *c = known(3);
    goes(c);
    cluster_pass(c, ABSENT_NS / 1000000 - 10000);
    EXPECT_EQ(comes(c, 3), 0);
    goes(c);
    cluster_pass(c, ABSENT_NS / 1000000 + 1);
    EXPECT_EQ(comes(c, 3), 4 + 6);
    cluster_free(c);
}

TEST(edge_that_could_not_be_measured_is_tried_again_after_a_return) /* else a process that dies in a probe is avoided for good */
{
    struct cluster *c = cluster_new();
    for (uint8_t i = 1; i <= 2; i++) {
        join(c, i, 0, 0);
    }
    vote(c, VOTE_UPDATE);
    vote(c, VOTE_OPTIMISE);
    struct msg_probe probe;
    EXPECT(peer_asked(&c->peers[0], &probe));
    peer_measured(c, &c->peers[0], &probe, 0);
    EXPECT_EQ(answer_probes(c), 1);
    cluster_pass(c, 5000);
    EXPECT_EQ(optimise(c), 0); /* both are there: it is known that they cannot connect that way */
    goes(c);
    EXPECT_EQ(comes(c, 2), 1);
    cluster_free(c);
}

TEST(what_was_measured_after_the_last_sign_of_life_is_not_kept) /* it may be what a dying host still took in */
{
    struct cluster *c = cluster_new();
    struct peer *p = c->peers;
    for (uint8_t i = 1; i <= 3; i++) {
        join(c, i, 0, 0);
    }
    vote(c, VOTE_UPDATE);
    vote(c, VOTE_OPTIMISE);
    uint32_t measured = 0, late = 0;
    bool last_words = false;
    while (measured < 3) { /* of each pair one direction */
        for (uint32_t i = 3; i-- > 0;) { /* the last one answers first, the others a while later */
            struct msg_probe probe;
            if (!peer_asked(&p[i], &probe)) {
                continue;
            }
            late = i == 2 ? 0 : late + (probe.to == p[2].id);
            uint64_t bps = rate_of_places(i + 1, place_of(c, probe.to));
            peer_heard(c, &p[i], &probe, bps);
            if (i != 2) {
                cluster_pass(c, 10); /* too short for a heartbeat */
            }
            peer_says_measured(c, &p[i], &(struct msg_measured){.round = probe.round, .to = probe.to, .bits_per_second = bps});
            measured++;
            last_words = last_words || i == 2;
        }
    }
    EXPECT(last_words && late == 1); /* the edge from it is beyond doubt, the one to it is not */
    EXPECT(p[2].probes == 2);                   /* all edges at once, next */
    goes(c);
    EXPECT_EQ(answer_probes(c), 4 + 1);         /* of that round, which is broken off: nobody waits for them; the way back of the two */
    cluster_pass(c, 5000);
    EXPECT_EQ(comes(c, 3), late + 6 + 2); /* all edges at once; the other directions */
    cluster_free(c);
}
