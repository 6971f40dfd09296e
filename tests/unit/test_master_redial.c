/* test_master_redial.c - a member whose connections have closed: ended, or reset and back within a second.
 * SPDX-License-Identifier: MIT */
#include "tests/testing.h"

#include "tests/unit/master_peers.h"

static struct cluster *members(uint32_t count)
{
    struct cluster *c = cluster_new();
    cluster_members(c, count, 0);
    cluster_pass(c, 1500); /* the view is known to all */
    for (uint32_t i = 0; i < c->count; i++) {
        peer_forget(&c->peers[i]);
    }
    return c;
}

/* All connections of one member close.  `first` says which are heard of first. */
static void reset_all(struct cluster *c, struct peer *p, bool links_first)
{
    p->mute = true; /* what it says is lost, and it hears nothing */
    for (int turn = 0; turn < 2; turn++) {
        if ((turn == 0) != links_first) {
            peer_cut(c, p);
            continue;
        }
        for (uint32_t i = 0; i < c->count; i++) {
            struct peer *o = &c->peers[i];
            if (o != p && o->open) {
                peer_suspect(c, o, SUSPECT_LINK, CAUSE_LINK_LOST, p);
            }
        }
    }
}

/* It is back, and reports what it has seen itself, before it hears of another view. */
static void come_back(struct cluster *c, struct peer *p)
{
    p->mute = false;
    p->no_frozen = true;
    peer_resume(c, p);
    for (uint32_t i = 0; i < c->count; i++) {
        if (&c->peers[i] != p) {
            peer_suspect(c, p, SUSPECT_LINK, CAUSE_LINK_LOST, &c->peers[i]);
        }
    }
    p->no_frozen = false;
    peer_frozen(p);
    cluster_pass(c, c->beat_ms); /* what has been said arrives */
}

TEST(member_whose_connections_were_all_reset_keeps_its_place) /* a firewall that is loaded again cost it its place in every world */
{
    for (int order = 0; order < 2; order++) {
        struct cluster *c = members(4);
        struct peer *p = c->peers;
        peer_reports(&p[0], 7, 0, OP_HELD, CAUSE_NONE);
        reset_all(c, &p[3], order != 0);
        EXPECT(!peer_saw(&p[0], "VIEW")); /* its report is waited for */
        cluster_pass(c, 900);
        EXPECT(!peer_saw(&p[0], "VIEW"));
        come_back(c, &p[3]);
        EXPECT_EQ(p[0].member_count, 4);
        EXPECT_EQ(p[3].member_count, 4);
        EXPECT_EQ(p[0].last_view.cause, CAUSE_LINK_LOST);
        EXPECT_EQ(peer_decision(&p[0], 7, 0).outcome, OUTCOME_ABORT); /* the operation fails on all members, with a retry */
        EXPECT_EQ(peer_decision(&p[3], 7, 0).outcome, OUTCOME_ABORT);
        cluster_free(c);
    }
}

TEST(member_that_refuses_new_connections_is_lost_at_once) /* an ended process; in any order of what is heard */
{
    for (int order = 0; order < 3; order++) {
        struct cluster *c = members(4);
        struct peer *p = c->peers;
        int64_t begin = c->now;
        p[3].mute = true;
        if (order == 0) {
            peer_suspect(c, &p[0], SUSPECT_LINK, CAUSE_PEER_LOST, &p[3]);
            p[1].no_frozen = true; /* the view does not end meanwhile */
        }
        peer_cut(c, &p[3]);
        if (order > 0) {
            peer_suspect(c, &p[order == 1 ? 0 : 1], SUSPECT_LINK, order == 1 ? CAUSE_PEER_LOST : CAUSE_LINK_LOST, &p[3]);
            peer_suspect(c, &p[0], SUSPECT_LINK, CAUSE_PEER_LOST, &p[3]);
        }
        EXPECT_EQ(p[0].freeze.survivors, 3);
        if (order > 0) {
            EXPECT_EQ(p[0].member_count, 3);
            EXPECT_EQ(p[0].last_view.cause, CAUSE_PEER_LOST);
            EXPECT_EQ(p[0].last_view.culprit, p[3].id);
        }
        EXPECT_EQ(c->now, begin); /* nobody waits */
        cluster_free(c);
    }
}

TEST(member_that_neither_comes_back_nor_refuses_is_lost_after_a_second) /* its host has gone, or its process hangs */
{
    for (int order = 0; order < 2; order++) {
        struct cluster *c = members(3);
        struct peer *p = c->peers;
        reset_all(c, &p[2], order != 0);
        cluster_pass(c, 990);
        p[2].mute = false;
        EXPECT(!peer_saw(&p[0], "VIEW"));
        cluster_pass(c, 20);
        EXPECT_EQ(p[0].member_count, 2);
        EXPECT_EQ(p[0].last_view.cause, CAUSE_PEER_LOST);
        peer_resume(c, &p[2]);
        EXPECT_EQ(p[2].fence.cause, CAUSE_KICK_STALE);
        cluster_free(c);
    }
}

TEST(refusal_counts_although_the_member_was_about_to_come_back) /* its last REGISTER comes in behind the word that it has ended */
{
    struct cluster *c = members(3);
    struct peer *p = c->peers;
    p[2].no_frozen = true;
    peer_suspect(c, &p[0], SUSPECT_LINK, CAUSE_LINK_LOST, &p[2]);
    peer_suspect(c, &p[0], SUSPECT_LINK, CAUSE_PEER_LOST, &p[2]);
    peer_resume(c, &p[2]); /* sent before it ended */
    EXPECT(!peer_saw(&p[0], "VIEW"));
    peer_cut(c, &p[2]);
    EXPECT_EQ(p[0].member_count, 2);
    cluster_free(c);
}

TEST(refusal_to_one_member_alone_is_a_broken_link) /* a firewall between two */
{
    struct cluster *c = members(3);
    struct peer *p = c->peers;
    peer_suspect(c, &p[0], SUSPECT_LINK, CAUSE_PEER_LOST, &p[2]);
    EXPECT_EQ(p[0].member_count, 3);
    EXPECT_EQ(p[0].last_view.cause, CAUSE_LINK_LOST);
    cluster_pass(c, 1100);
    peer_cut(c, &p[2]); /* much later, and in another view */
    cluster_pass(c, 1500);
    peer_resume(c, &p[2]);
    cluster_pass(c, 2000);
    EXPECT_EQ(p[0].member_count, 3);
    cluster_free(c);
}

TEST(reset_of_all_connections_counts_against_no_link_unless_it_repeats) /* three in a minute made all its edges missing ones */
{
    struct cluster *c = members(4);
    struct peer *p = c->peers;
    peer_suspect(c, &p[0], SUSPECT_LINK, CAUSE_LINK_LOST, &p[3]);
    cluster_pass(c, 1500);
    peer_suspect(c, &p[0], SUSPECT_LINK, CAUSE_LINK_LOST, &p[3]);
    cluster_pass(c, 1500);
    reset_all(c, &p[3], true); /* would be the third */
    come_back(c, &p[3]);
    cluster_pass(c, 1500);
    EXPECT_EQ(p[0].member_count, 4);
    EXPECT_EQ(p[0].edge_count, 0);
    reset_all(c, &p[3], false); /* it repeats: this one counts */
    come_back(c, &p[3]);
    cluster_pass(c, 1500);
    EXPECT_EQ(p[0].member_count, 4);
    EXPECT_EQ(p[0].edge_count, 1);
    cluster_free(c);
}
