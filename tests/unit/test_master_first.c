/* test_master_first.c - a newcomer that updates right after it was admitted: when it is answered alone, and when not.
 * SPDX-License-Identifier: MIT */
#include "master_peers.h"
#include "tests/testing.h"

/* Two members and a third one, just admitted by their update. */
static struct cluster *joined(void)
{
    struct cluster *c = cluster_new();
    cluster_members(c, 3, 0);
    for (uint32_t i = 0; i < c->count; i++) {
        peer_forget(&c->peers[i]);
    }
    return c;
}

TEST(first_update_is_answered_alone_when_others_go_on) /* the group would abort and retry for ever */
{
    struct cluster *c = joined();
    struct peer *p = c->peers;
    uint64_t view = p[2].view;
    uint32_t number = p[2].answered, others = p[0].answered;
    peer_first_update(c, &p[2], false);
    EXPECT_STR(p[2].log, ""); /* they may come to an update themselves */
    peer_first_update(c, &p[2], true);
    EXPECT_STR(p[2].log, "ANSWER ");
    EXPECT_EQ(p[2].answer.result, ANSWER_OK);
    EXPECT_EQ(p[2].answer.alone, 1);
    EXPECT_EQ(p[2].answer.number, number);
    EXPECT_EQ(p[2].answer.view, view);
    EXPECT_EQ(p[2].answer.sizes.global, 3);
    EXPECT_EQ(p[0].answered, others);
    EXPECT_STR(p[0].log, "");
    peer_vote(c, &p[0], VOTE_UPDATE); /* its vote is not counted in the next one */
    peer_vote(c, &p[1], VOTE_UPDATE);
    EXPECT_STR(p[0].log, "");
    peer_vote(c, &p[2], VOTE_UPDATE);
    EXPECT_STR(p[0].log, "ANSWER ");
    EXPECT_EQ(p[0].answer.alone, 0);
    cluster_free(c);
}

TEST(first_update_gives_way_to_a_sync_or_an_optimise_before_they_conflict) /* both calls are right, and would fail */
{
    struct cluster *c = joined();
    struct peer *p = c->peers;
    peer_first_update(c, &p[2], false);
    peer_sync(c, &p[0], 0, 0, 1, 1, false);
    EXPECT_STR(p[2].log, "ANSWER ");
    EXPECT_EQ(p[2].answer.alone, 1);
    EXPECT(p[0].voting);
    cluster_free(c);
    c = joined();
    p = c->peers;
    peer_vote(c, &p[0], VOTE_OPTIMISE);
    peer_first_update(c, &p[2], false);
    EXPECT_STR(p[2].log, "ANSWER ");
    EXPECT_EQ(p[2].answer.alone, 1);
    EXPECT(p[0].voting);
    cluster_free(c);
}

TEST(first_update_is_not_answered_alone_for_a_query_nor_for_another_groups_sync) /* they may come to the update after it */
{
    struct cluster *c = joined();
    struct peer *p = c->peers;
    peer_first_update(c, &p[2], false);
    peer_vote(c, &p[0], VOTE_QUERY);
    peer_vote(c, &p[1], VOTE_QUERY);
    EXPECT_STR(p[2].log, "");
    EXPECT_STR(p[0].log, "ANSWER ");
    peer_vote(c, &p[0], VOTE_UPDATE);
    peer_vote(c, &p[1], VOTE_UPDATE);
    EXPECT_STR(p[2].log, "ANSWER ");
    EXPECT_EQ(p[2].answer.alone, 0);
    cluster_free(c);
    c = cluster_new();
    struct peer *a = peer_join(c, 1), *x = peer_join(c, 2);
    peer_vote(c, a, VOTE_UPDATE);
    peer_forget(x);
    peer_first_update(c, x, false);
    peer_sync(c, a, 0, 0, 1, 1, false);
    EXPECT_STR(x->log, "");
    cluster_free(c);
}

TEST(first_update_that_all_wait_in_is_the_update) /* the word that others launched may be older than their update */
{
    struct cluster *c = joined();
    struct peer *p = c->peers;
    struct peer *n = peer_join(c, 0);
    peer_vote(c, &p[0], VOTE_UPDATE);
    peer_vote(c, &p[1], VOTE_UPDATE);
    peer_first_update(c, &p[2], true); /* completes it */
    EXPECT_STR(p[2].log, "ADMIT VIEW ");
    EXPECT_EQ(p[2].last_view.answers, VOTE_UPDATE);
    EXPECT_EQ(n->member_count, 4);
    cluster_free(c);
}

TEST(word_that_others_go_on_ends_with_its_view) /* what they launched was aborted with it: they may update now */
{
    struct cluster *c = joined();
    struct peer *p = c->peers;
    p[1].no_frozen = true;
    peer_suspect(c, &p[0], SUSPECT_LINK, CAUSE_LINK_LOST, &p[1]);
    peer_first_update(c, &p[2], true); /* while the view ends: no answer leaves */
    EXPECT_STR(p[2].log, "FREEZE ");
    p[1].no_frozen = false;
    peer_frozen(&p[1]);
    cluster_pass(c, 600);
    EXPECT_STR(p[2].log, "FREEZE VIEW ");
    EXPECT(p[2].voting);
    peer_vote(c, &p[0], VOTE_UPDATE);
    peer_vote(c, &p[1], VOTE_UPDATE);
    EXPECT_STR(p[2].log, "FREEZE VIEW ANSWER ");
    EXPECT_EQ(p[2].answer.alone, 0);
    cluster_free(c);
}

TEST(answer_given_alone_is_replayed) /* M9: the newcomer would wait for ever */
{
    struct cluster *c = joined();
    struct peer *p = c->peers;
    peer_first_update(c, &p[2], false);
    peer_cut(c, &p[2]);
    peer_sync(c, &p[0], 0, 0, 1, 1, false);
    peer_forget(&p[2]);
    peer_resume(c, &p[2]);
    EXPECT_STR(p[2].log, "WELCOME ANSWER ");
    EXPECT_EQ(p[2].answer.alone, 1);
    EXPECT(!p[2].voting);
    cluster_free(c);
}
