/* test_master_revoke.c - a member ends its world for all: elastic and sized ones, whatever is under way (W14).
 * SPDX-License-Identifier: MIT */
#include <stdio.h>
#include <string.h>

#include "master_peers.h"
#include "tests/testing.h"

/* The last view of a member: told that the world is over, and by whom. */
static void expect_over(const struct peer *p, const struct peer *by)
{
    EXPECT_EQ(p->last_view.over, 1);
    EXPECT_EQ(p->last_view.cause, CAUSE_REVOKED);
    EXPECT_EQ(p->last_view.culprit, by->id);
    EXPECT(strstr(p->last_view.text, ": it revoked the world") != NULL);
}

TEST(a_sized_world_that_is_revoked_is_over_for_all_whatever_its_rule)
{
    for (uint8_t loss = LOSS_END; loss <= LOSS_SHRINK; loss++) {
        struct cluster *c = cluster_new();
        struct peer *p = c->peers;
        for (uint32_t i = 0; i < 3; i++) {
            peer_create(c, "w", &(struct claim){.size = 3, .rank = i, .loss = loss});
        }
        peer_reports(&p[0], 5, 0, OP_RUNNING, CAUSE_NONE);
        peer_reports(&p[1], 6, 0, OP_FINISHED, CAUSE_NONE);
        peer_revoke(c, &p[2]);
        EXPECT(!p[2].open && p[2].fence.cause == CAUSE_NONE); /* it knows */
        for (uint32_t i = 0; i < 2; i++) {
            expect_over(&p[i], &p[2]);
            EXPECT_EQ(peer_decision(&p[i], 5, 0).outcome, OUTCOME_ABORT);
            EXPECT_EQ(peer_decision(&p[i], 5, 0).cause, CAUSE_REVOKED);
            EXPECT_EQ(peer_decision(&p[i], 6, 0).outcome, OUTCOME_COMMIT); /* an end is decided like any view */
        }
        peer_leave(c, &p[0]);
        peer_leave(c, &p[1]);
        EXPECT_EQ(master_world_count(c->master), 0);
        cluster_free(c);
    }
}

TEST(every_group_of_an_open_world_ends_and_it_begins_anew_with_those_who_wait)
{
    const char *const names[] = {"", "w"};
    for (int i = 0; i < 2; i++) {
        struct cluster *c = cluster_new();
        struct peer *p = c->peers;
        struct peer *other = peer_join_world(c, 0, "other");
        peer_join_world(c, 0, names[i]);
        peer_join_world(c, 0, names[i]);
        peer_join_world(c, 1, names[i]);
        peer_vote(c, &p[1], VOTE_UPDATE);
        EXPECT(p[1].member_count == 2 && p[3].member_count == 1);
        struct peer *late = peer_join_world(c, 1, names[i]);
        peer_revoke(c, &p[1]);
        expect_over(&p[2], &p[1]);
        expect_over(&p[3], &p[1]);
        EXPECT_EQ(late->view, 0); /* it waits until those who were in it are gone */
        peer_vote(c, &p[2], VOTE_UPDATE);
        peer_vote(c, &p[3], VOTE_UPDATE);
        EXPECT_EQ(late->view, 0); /* nothing is decided any more */
        peer_leave(c, &p[2]);
        peer_leave(c, &p[3]);
        EXPECT(late->member_count == 1 && late->last_view.over == 0);
        struct peer *again = peer_join_world(c, 1, names[i]);
        peer_vote(c, late, VOTE_UPDATE);
        EXPECT(again->member_count == 2 && again->last_view.over == 0);
        EXPECT(other->open && other->last_view.over == 0);
        peer_crash(c, again); /* an ordinary loss again */
        cluster_pass(c, 3000);
        EXPECT(late->member_count == 1 && late->last_view.over == 0);
        cluster_free(c);
    }
}

TEST(whatever_is_under_way_when_a_world_is_revoked_ends_in_it)
{
    for (int stage = 0; stage < 5; stage++) {
        struct cluster *c = cluster_new();
        struct peer *p = c->peers, *late = NULL;
        cluster_members(c, 3, 0);
        if (stage == 0) { /* an admission whose links are being made */
            late = peer_join(c, 0);
            p[1].no_link = true;
        }
        if (stage == 1) { /* ... whose view is on its way to the journal */
            late = peer_join(c, 0);
            c->hold_persist = true;
        }
        for (uint32_t i = 0; i < 3 && stage < 2; i++) {
            peer_vote(c, &p[i], VOTE_UPDATE);
        }
        if (stage == 2) { /* a freeze for another reason, which p[1] has not answered */
            p[1].no_frozen = true;
            peer_suspect(c, &p[0], SUSPECT_OPERATION, CAUSE_NO_PROGRESS, &p[1]);
            cluster_pass(c, 300);
        }
        for (uint32_t i = 0; i < 3 && stage == 3; i++) { /* edges that are measured */
            peer_vote(c, &p[i], VOTE_OPTIMISE);
        }
        if (stage == 4) { /* a vote that the revoker alone has not cast */
            peer_vote(c, &p[0], VOTE_UPDATE);
            peer_vote(c, &p[1], VOTE_UPDATE);
        }
        peer_revoke(c, &p[2]);
        p[1].no_frozen = p[1].no_link = false;
        if (stage == 2) {
            peer_frozen(&p[1]);
        }
        c->hold_persist = false;
        cluster_persisted(c);
        cluster_pass(c, 100);
        for (uint32_t i = 0; i < 2; i++) {
            expect_over(&p[i], &p[2]);
        }
        if (stage == 1) { /* it was a member, for a moment */
            expect_over(late, &p[2]);
            peer_leave(c, late);
        }
        peer_leave(c, &p[0]);
        peer_leave(c, &p[1]);
        EXPECT(late == NULL || stage == 1 || late->member_count == 1);
        EXPECT_EQ(master_pending_count(c->master), 0);
        cluster_members(c, 2, 7); /* it takes members as before */
        EXPECT(!master_poisoned(c->master));
        cluster_free(c);
    }
}

TEST(newcomer_revokes_while_its_first_view_is_on_its_way_to_the_journal)
{
    struct cluster *c = cluster_new();
    struct peer *p = c->peers;
    cluster_members(c, 2, 0);
    struct peer *late = peer_join(c, 0);
    c->hold_persist = true;
    peer_vote(c, &p[0], VOTE_UPDATE);
    peer_vote(c, &p[1], VOTE_UPDATE);
    EXPECT_EQ(p[0].member_count, 2);
    peer_revoke(c, late);
    c->hold_persist = false;
    cluster_persisted(c);
    cluster_pass(c, 100);
    expect_over(&p[0], late);
    expect_over(&p[1], late);
    cluster_free(c);
}

TEST(a_revoked_world_elects_nobody_and_takes_no_time_of_others) /* whoever found no source says so on the way */
{
    struct cluster *c = cluster_new();
    struct peer *p = c->peers;
    cluster_members(c, 3, 0);
    for (uint32_t i = 0; i < 3; i++) {
        peer_sync(c, &p[i], 0, 1, 5, i < 2 ? 10 : 11, false);
    }
    p[1].no_frozen = true;
    peer_suspect(c, &p[1], SUSPECT_LINK, CAUSE_LINK_LOST, &p[0]);
    peer_staged(c, &p[2], STAGED_NO_SOURCE, 0);
    peer_revoke(c, &p[0]);
    EXPECT(master_deadline(c->master) > c->now);
    cluster_pass(c, 1000); /* a tick that is always due would never let time pass */
    EXPECT(p[2].open && p[2].last_view.over == 0);
    peer_frozen(&p[1]);
    cluster_pass(c, 1100);
    expect_over(&p[2], &p[0]);
    cluster_free(c);
}

TEST(a_world_that_is_being_created_is_given_up)
{
    struct cluster *c = cluster_new();
    struct peer *a = peer_create(c, "w", &(struct claim){.size = 3, .rank = 0});
    struct peer *b = peer_create(c, "w", &(struct claim){.size = 3, .rank = 1});
    peer_revoke(c, a);
    EXPECT_EQ(b->given_up.cause, CAUSE_REVOKED);
    EXPECT_EQ(b->given_up.culprit, a->id);
    EXPECT_STR(b->given_up.text, "rank 0 (peer 1.1 at 10.0.0.1:48150): it revoked the world");
    EXPECT_EQ(peer_create(c, "w", &(struct claim){.size = 3, .rank = 2})->given_up.cause, CAUSE_REVOKED);
    cluster_free(c);
}

TEST(who_is_no_member_yet_revokes_nothing_and_a_second_one_changes_nothing)
{
    struct cluster *c = cluster_new();
    cluster_members(c, 3, 0);
    struct peer *late = peer_join(c, 0), *p = c->peers;
    peer_revoke(c, late);
    EXPECT(!late->open && p[0].last_view.over == 0);
    p[0].no_frozen = true;
    peer_revoke(c, &p[1]);
    peer_revoke(c, &p[2]); /* the first one stands */
    p[0].no_frozen = false;
    peer_frozen(&p[0]);
    cluster_pass(c, 1100);
    expect_over(&p[0], &p[1]);
    cluster_free(c);
}

TEST(the_last_member_that_revokes_leaves_a_world_as_if_nobody_had_been_in_it)
{
    struct cluster *c = cluster_new();
    cluster_members(c, 1, 0);
    peer_revoke(c, &c->peers[0]);
    EXPECT_EQ(master_group_count(c->master), 0);
    EXPECT_EQ(peer_join(c, 0)->member_count, 1);
    cluster_free(c);
}

TEST(a_member_that_was_away_reads_that_its_world_is_over)
{
    struct cluster *c = cluster_new();
    cluster_members(c, 3, 0);
    struct peer *p = c->peers;
    peer_cut(c, &p[1]);
    peer_revoke(c, &p[0]);
    EXPECT_EQ(p[2].last_view.over, 0); /* its report is waited for */
    peer_resume(c, &p[1]);
    expect_over(&p[1], &p[0]);
    expect_over(&p[2], &p[0]);
    cluster_free(c);
}

TEST(the_log_names_the_world_that_was_revoked_and_by_whom)
{
    const char *const names[] = {"", "w"}, *const worlds[] = {"the default world: a member has revoked it", "world 'w': a member has revoked it"},
                *const who[] = {"peer 1.1 (10.0.0.1:48150) of group 0 revoked the world in view ",
                                "peer 1.1 (10.0.0.1:48150) of group 0 of world 'w' revoked the world in view "};
    for (int i = 0; i < 4; i++) {
        struct cluster *c = cluster_new();
        cluster_world(c, 2, 0, names[i / 2]);
        snprintf(c->listen, sizeof c->listen, i % 2 == 0 ? "has revoked" : "revoked the");
        peer_revoke(c, &c->peers[0]);
        EXPECT(strstr(c->heard, i % 2 == 0 ? worlds[i / 2] : who[i / 2]) != NULL);
        cluster_free(c);
    }
}
