/* test_master_vote.c - unanimous rounds: complete, conflicting, beside operations, replayed.
 * SPDX-License-Identifier: MIT */
#include "master_peers.h"
#include "tests/testing.h"

static struct cluster *some(uint32_t count)
{
    struct cluster *c = cluster_new();
    cluster_members(c, count, 0);
    for (uint32_t i = 0; i < c->count; i++) {
        peer_forget(&c->peers[i]);
    }
    return c;
}

TEST(update_that_changes_nothing_is_answered_in_the_same_view) /* and is not persisted */
{
    struct cluster *c = some(3);
    struct peer *p = c->peers;
    uint64_t view = p[0].view;
    uint32_t persists = c->persists, number = p[0].answered;
    peer_vote(c, &p[0], VOTE_UPDATE);
    peer_vote(c, &p[1], VOTE_UPDATE);
    EXPECT_STR(p[0].log, "");
    peer_vote(c, &p[2], VOTE_UPDATE);
    EXPECT_STR(p[0].log, "ANSWER ");
    EXPECT_EQ(p[0].answer.result, ANSWER_OK);
    EXPECT_EQ(p[0].answer.kind, VOTE_UPDATE);
    EXPECT_EQ(p[0].answer.number, number);
    EXPECT_EQ(p[0].answer.view, view);
    EXPECT_EQ(p[0].answer.sizes.global, 3);
    EXPECT_EQ(c->persists, persists);
    cluster_free(c);
}

TEST(update_of_one_who_knows_many_tags_makes_a_view) /* only a view forgets them: a table that fills ends the run */
{
    struct cluster *c = some(3);
    struct peer *p = c->peers;
    uint64_t view = p[0].view;
    p[1].idle = c->config.idle_tags;
    for (uint32_t i = 0; i < 3; i++) {
        peer_vote(c, &p[i], VOTE_UPDATE);
    }
    EXPECT_STR(p[0].log, "ANSWER "); /* not more than it may keep */
    p[1].idle++;
    cluster_pass(c, 1500); /* until all surely have the view, or it would take a freeze */
    peer_forget(&p[0]);
    for (uint32_t i = 0; i < 3; i++) {
        peer_vote(c, &p[i], VOTE_UPDATE);
    }
    EXPECT_STR(p[0].log, "VIEW ");
    EXPECT_EQ(p[0].last_view.answers, VOTE_UPDATE);
    EXPECT_EQ(p[0].last_view.cause, CAUSE_NONE);
    EXPECT_EQ(p[0].last_view.parent, view);
    EXPECT_EQ(p[0].member_count, 3);
    EXPECT_EQ(p[0].last_view.sizes.global, 3);
    cluster_free(c);
}

TEST(death_completes_a_vote) /* a dead member's vote must not be waited for */
{
    struct cluster *c = some(3);
    struct peer *p = c->peers;
    peer_vote(c, &p[0], VOTE_UPDATE);
    peer_vote(c, &p[1], VOTE_UPDATE);
    uint32_t number = p[0].answered;
    peer_crash(c, &p[2]);
    EXPECT(!peer_saw(&p[0], "FREEZE")); /* M6: all wait in an update */
    EXPECT_STR(p[0].log, "VIEW ");
    EXPECT_EQ(p[0].last_view.answers, VOTE_UPDATE);
    EXPECT_EQ(p[0].last_view.cause, CAUSE_PEER_LOST);
    EXPECT_EQ(p[0].member_count, 2);
    EXPECT_EQ(p[0].answered, number + 1);
    cluster_free(c);
}

TEST(death_in_one_group_while_it_waits_in_an_update_is_no_answer) /* M6: the other group has not asked */
{
    struct cluster *c = cluster_new();
    struct peer *a = peer_join(c, 1), *b = peer_join(c, 1), *x = peer_join(c, 2);
    peer_vote(c, a, VOTE_UPDATE);
    EXPECT_EQ(x->member_count, 1);
    peer_vote(c, a, VOTE_UPDATE);
    peer_forget(a);
    cluster_pass(c, 2200);
    peer_crash(c, b);
    EXPECT_STR(a->log, "VIEW ");
    EXPECT_EQ(a->last_view.answers, VOTE_NONE);
    EXPECT(a->voting);
    peer_vote(c, x, VOTE_UPDATE);
    EXPECT_STR(a->log, "VIEW ANSWER ");
    EXPECT_EQ(a->answer.sizes.global, 2);
    EXPECT_EQ(x->answer.sizes.global, 2);
    EXPECT_EQ(x->answer.sizes.largest, 1);
    cluster_free(c);
}

TEST(sizes_are_those_of_the_decision) /* P11: the same numbers in all groups, whatever dies before the answer leaves */
{
    struct cluster *c = cluster_new();
    struct peer *a = peer_join(c, 1), *b = peer_join(c, 1), *x = peer_join(c, 2), *y = peer_join(c, 2);
    peer_vote(c, a, VOTE_UPDATE);
    peer_vote(c, a, VOTE_UPDATE);
    peer_vote(c, x, VOTE_UPDATE);
    peer_vote(c, y, VOTE_UPDATE);
    c->hold_persist = true;
    peer_crash(c, b);  /* completes the update: group 1 gets a view, group 2 an answer */
    EXPECT(x->voting);
    peer_crash(c, y);  /* decided already */
    peer_forget(x);
    cluster_persisted(c);
    EXPECT_EQ(a->last_view.answers, VOTE_UPDATE);
    EXPECT_EQ(a->last_view.sizes.global, 3);
    EXPECT_STR(x->log, "ANSWER FREEZE ");
    EXPECT_EQ(x->answer.sizes.global, 3);
    EXPECT_EQ(x->answer.sizes.group, 2);
    EXPECT_EQ(x->answer.sizes.largest, 2);
    cluster_free(c);
}

TEST(a_second_skip_needs_proof_of_the_first) /* M5: nobody may be two views behind */
{
    struct cluster *c = cluster_new();
    struct peer *a = peer_join(c, 1), *b = peer_join(c, 1), *d = peer_join(c, 1), *x = peer_join(c, 2);
    peer_vote(c, a, VOTE_UPDATE);
    EXPECT_EQ(x->member_count, 1);
    peer_vote(c, a, VOTE_UPDATE);
    peer_vote(c, b, VOTE_UPDATE);
    peer_vote(c, d, VOTE_UPDATE);
    peer_forget(a);
    c->hold_persist = true;
    peer_crash(c, d);
    peer_cut(c, a); /* the VIEW without d is lost on its way */
    cluster_persisted(c);
    EXPECT_EQ(b->member_count, 2);
    c->hold_persist = false;
    peer_leave(c, b);
    peer_resume(c, a);
    EXPECT_STR(a->log, "WELCOME VIEW FREEZE VIEW ");
    EXPECT_EQ(a->member_count, 1);
    EXPECT(a->voting);
    cluster_free(c);
}

TEST(voter_answers_freeze_with_its_records) /* M6: it may have finished what others still wait for */
{
    struct cluster *c = some(3);
    struct peer *p = c->peers;
    peer_reports(&p[0], 7, 0, OP_FINISHED, CAUSE_NONE);
    peer_reports(&p[1], 7, 0, OP_HELD, CAUSE_NONE);
    peer_vote(c, &p[0], VOTE_UPDATE);
    peer_crash(c, &p[2]);
    EXPECT_STR(p[0].log, "FREEZE VIEW ");
    EXPECT_EQ(peer_decision(&p[1], 7, 0).outcome, OUTCOME_COMMIT);
    EXPECT(p[0].voting);
    peer_vote(c, &p[1], VOTE_UPDATE); /* the vote outlived the freeze */
    EXPECT(!p[0].voting);
    EXPECT_STR(p[0].log, "FREEZE VIEW ANSWER ");
    cluster_free(c);
}

TEST(all_in_a_query_does_not_skip_the_freeze) /* reduces may be in flight beside it */
{
    struct cluster *c = some(3);
    struct peer *p = c->peers;
    peer_vote(c, &p[0], VOTE_QUERY);
    peer_vote(c, &p[1], VOTE_QUERY);
    peer_crash(c, &p[2]);
    EXPECT_STR(p[0].log, "FREEZE VIEW ANSWER ");
    EXPECT_EQ(p[0].answer.kind, VOTE_QUERY);
    cluster_free(c);
}

TEST(query_is_answered_beside_other_votes)
{
    struct cluster *c = some(3);
    struct peer *p = c->peers;
    peer_join(c, 0);
    peer_vote(c, &p[0], VOTE_UPDATE);
    peer_vote(c, &p[1], VOTE_QUERY);
    EXPECT_STR(p[1].log, "");
    peer_vote(c, &p[2], VOTE_QUERY);
    EXPECT_STR(p[0].log, "");
    EXPECT_STR(p[1].log, "ANSWER ");
    EXPECT_EQ(p[1].answer.value, 1);
    EXPECT_EQ(p[2].answer.result, ANSWER_OK);
    peer_vote(c, &p[1], VOTE_UPDATE);
    peer_vote(c, &p[2], VOTE_UPDATE);
    EXPECT_EQ(p[0].member_count, 4);
    peer_vote(c, &p[0], VOTE_QUERY);
    peer_vote(c, &p[1], VOTE_QUERY);
    peer_vote(c, &p[2], VOTE_QUERY);
    peer_vote(c, &c->peers[3], VOTE_QUERY);
    EXPECT_EQ(p[0].answer.value, 0);
    cluster_free(c);
}

TEST(update_against_optimise_fails_both) /* each needs a member that waits in the other */
{
    struct cluster *c = some(2);
    struct peer *p = c->peers;
    peer_vote(c, &p[0], VOTE_UPDATE);
    peer_vote(c, &p[1], VOTE_OPTIMISE);
    EXPECT_EQ(p[0].answer.result, ANSWER_CONFLICT);
    EXPECT_EQ(p[1].answer.result, ANSWER_CONFLICT);
    EXPECT(strstr(p[0].answer.text, "an update") != NULL && strstr(p[0].answer.text, "an optimisation") != NULL);
    EXPECT_STR(p[0].answer.text, p[1].answer.text);
    cluster_free(c);
}

TEST(sync_against_update_fails_in_its_group_only)
{
    struct cluster *c = cluster_new();
    struct peer *a = peer_join(c, 1), *b = peer_join(c, 1), *x = peer_join(c, 2);
    peer_vote(c, a, VOTE_UPDATE);
    peer_vote(c, x, VOTE_UPDATE);
    peer_sync(c, a, 0, 0, 1, 1, false);
    EXPECT(a->voting); /* an update of another group waits, that is no conflict */
    EXPECT(x->voting);
    peer_vote(c, b, VOTE_UPDATE);
    EXPECT_EQ(a->answer.result, ANSWER_CONFLICT);
    EXPECT_EQ(b->answer.result, ANSWER_CONFLICT);
    EXPECT(x->voting);
    peer_vote(c, a, VOTE_UPDATE);
    peer_vote(c, b, VOTE_UPDATE);
    EXPECT(!x->voting);
    EXPECT_EQ(x->answer.result, ANSWER_OK);
    cluster_free(c);
}

TEST(answered_number_is_never_counted_again) /* M9 */
{
    struct cluster *c = some(2);
    struct peer *p = c->peers;
    peer_vote(c, &p[0], VOTE_UPDATE);
    peer_vote(c, &p[1], VOTE_UPDATE);
    p[0].answered--; /* its request arrives once more */
    peer_vote(c, &p[0], VOTE_UPDATE);
    p[0].answered++;
    p[0].voting = false;
    peer_forget(&p[1]);
    peer_vote(c, &p[1], VOTE_UPDATE);
    EXPECT_STR(p[1].log, "");
    cluster_free(c);
}

TEST(repeated_vote_changes_nothing_and_another_kind_is_a_violation)
{
    struct cluster *c = some(2);
    struct peer *p = c->peers;
    peer_vote(c, &p[0], VOTE_QUERY);
    peer_vote(c, &p[0], VOTE_QUERY);
    EXPECT(p[0].open);
    peer_vote(c, &p[0], VOTE_UPDATE);
    EXPECT_EQ(p[0].fence.cause, CAUSE_KICK_PROTOCOL);
    EXPECT(!p[0].open);
    cluster_free(c);
}

TEST(resume_replays_a_lost_answer) /* M9: neither lost nor counted twice */
{
    struct cluster *c = some(2);
    struct peer *p = c->peers;
    peer_vote(c, &p[0], VOTE_UPDATE);
    peer_cut(c, &p[0]);
    peer_vote(c, &p[1], VOTE_UPDATE);
    peer_forget(&p[0]);
    peer_resume(c, &p[0]); /* sends its open vote again, too */
    EXPECT_STR(p[0].log, "WELCOME ANSWER ");
    EXPECT(!p[0].voting);
    peer_forget(&p[1]);
    peer_vote(c, &p[1], VOTE_UPDATE);
    EXPECT_STR(p[1].log, "");
    peer_vote(c, &p[0], VOTE_UPDATE);
    EXPECT_STR(p[1].log, "ANSWER ");
    cluster_free(c);
}

TEST(resume_replays_a_lost_view_once) /* the VIEW was the answer: no ANSWER on top of it */
{
    struct cluster *c = some(2);
    struct peer *p = c->peers;
    peer_vote(c, &p[0], VOTE_UPDATE);
    struct peer *n = peer_join(c, 0);
    c->hold_persist = true;
    peer_vote(c, &p[1], VOTE_UPDATE);
    peer_cut(c, &p[0]);
    cluster_persisted(c);
    EXPECT_EQ(n->member_count, 3);
    peer_forget(&p[0]);
    peer_resume(c, &p[0]);
    EXPECT_STR(p[0].log, "WELCOME VIEW ");
    EXPECT_EQ(p[0].member_count, 3);
    EXPECT(!p[0].voting);
    EXPECT_EQ(p[0].answered, p[1].answered);
    EXPECT_EQ(n->answered, p[1].answered); /* a newcomer begins where the others are */
    cluster_free(c);
}

TEST(resume_replays_in_order_view_answer_freeze) /* or an old answer clears a newer debt */
{
    struct cluster *c = some(3);
    struct peer *p = c->peers;
    peer_vote(c, &p[0], VOTE_QUERY);
    peer_cut(c, &p[0]);
    peer_vote(c, &p[1], VOTE_QUERY);
    peer_vote(c, &p[2], VOTE_QUERY);
    EXPECT(!p[1].voting);
    p[1].no_frozen = true;
    peer_suspect(c, &p[1], SUSPECT_LINK, CAUSE_LINK_LOST, &p[2]);
    peer_forget(&p[0]);
    peer_resume(c, &p[0]);
    EXPECT_STR(p[0].log, "WELCOME ANSWER FREEZE ");
    peer_cut(c, &p[0]); /* it has reported: its report counts */
    p[1].no_frozen = false;
    peer_frozen(&p[1]);
    cluster_pass(c, 600);
    peer_forget(&p[0]);
    peer_resume(c, &p[0]);
    EXPECT_STR(p[0].log, "WELCOME VIEW ");
    EXPECT_EQ(p[0].view, p[1].view);
    cluster_free(c);
}

TEST(answers_wait_for_the_end_of_a_freeze) /* and name the view after it */
{
    struct cluster *c = some(3);
    struct peer *p = c->peers;
    p[1].no_frozen = true;
    peer_suspect(c, &p[1], SUSPECT_LINK, CAUSE_LINK_LOST, &p[2]);
    for (int i = 0; i < 3; i++) {
        peer_vote(c, &p[i], VOTE_QUERY);
    }
    EXPECT_STR(p[0].log, "FREEZE ");
    peer_frozen(&p[1]);
    cluster_pass(c, 600);
    EXPECT_STR(p[0].log, "FREEZE VIEW ANSWER ");
    EXPECT_EQ(p[0].answer.view, p[0].view);
    cluster_free(c);
}

TEST(vote_from_the_view_before_is_no_proof_of_the_next) /* who lacks a view would be left out of the next freeze (M5) */
{
    struct cluster *c = cluster_new();
    cluster_members(c, 3, 0);
    struct peer *p = c->peers;
    uint64_t before = p[0].view;
    peer_crash(c, &p[2]);
    uint64_t now = p[0].view;
    EXPECT(now > before);
    p[0].view = before; /* its VIEW is still under way */
    peer_vote(c, &p[0], VOTE_QUERY);
    EXPECT_EQ(master_known_view(c->master, p[0].id), before);
    p[1].view = now;
    peer_vote(c, &p[1], VOTE_QUERY);
    EXPECT_EQ(master_known_view(c->master, p[1].id), now);
    cluster_free(c);
}
