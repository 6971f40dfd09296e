/* test_master_suspect.c - who is to blame, who only waits, and what each is told of the others.
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

static void stalls(struct cluster *c, struct peer *p, const struct peer *on)
{
    peer_suspect(c, p, SUSPECT_OPERATION, CAUSE_NO_PROGRESS, on);
}

static void waits(struct cluster *c, struct peer *p, const struct peer *on, enum wait_phase phase)
{
    peer_waits(c, p, &(struct peer_wait){.name.tag = 7, .on = on->id, .ms = 12000, .phase = (uint8_t)phase});
}

TEST(chain_that_ends_at_a_launch_blames_nobody) /* a peer is excluded because the program of another computes for long */
{
    struct cluster *c = some(5); /* in a ring: 4 has not launched, 3 waits for it, 2 for 3's data, and so on */
    struct peer *p = c->peers;
    waits(c, &p[3], &p[4], WAIT_LAUNCH);
    waits(c, &p[2], &p[3], WAIT_DATA);
    for (int round = 0; round < 3; round++) {
        stalls(c, &p[0], &p[1]);
        stalls(c, &p[1], &p[2]);
        cluster_pass(c, 250);
        EXPECT(!peer_saw(&p[0], "FREEZE"));
        cluster_pass(c, 10000);
    }
    EXPECT_EQ(p[0].member_count, 5);
    waits(c, &p[3], &p[4], WAIT_DATA); /* it has launched now: who waits for 3 has counted the time before, too */
    stalls(c, &p[0], &p[1]);
    stalls(c, &p[1], &p[2]);
    cluster_pass(c, 250);
    EXPECT(!peer_saw(&p[0], "FREEZE"));
    cluster_pass(c, 11000);
    stalls(c, &p[0], &p[1]); /* a stall time later 2 still stands still */
    stalls(c, &p[1], &p[2]);
    cluster_pass(c, 250);
    EXPECT_EQ(p[0].last_view.cause, CAUSE_NO_PROGRESS);
    EXPECT_EQ(p[0].last_view.culprit, p[2].id);
    cluster_free(c);
}

TEST(heartbeat_tells_whom_the_one_waited_for_waits_for_in_the_end) /* nobody in a ring but two knows who is late */
{
    struct cluster *c = some(5);
    struct peer *p = c->peers;
    waits(c, &p[3], &p[4], WAIT_LAUNCH);
    waits(c, &p[2], &p[3], WAIT_DATA);
    waits(c, &p[1], &p[2], WAIT_DATA);
    waits(c, &p[0], &p[1], WAIT_DATA);
    cluster_pass(c, 1100);
    EXPECT_EQ(p[0].told.about, p[1].id);
    EXPECT_EQ(p[0].told.wait.on, p[4].id);
    EXPECT_EQ(p[0].told.wait.phase, WAIT_LAUNCH);
    EXPECT_EQ(p[0].told.wait.name.tag, 7);
    EXPECT_EQ(p[3].told.about, p[4].id);
    EXPECT_EQ(p[3].told.wait.phase, WAIT_NONE);
    EXPECT_EQ(p[3].told.vote, VOTE_NONE);
    peer_waits(c, &p[4], &(struct peer_wait){.name.tag = 8, .on = p[3].id, .ms = 500, .phase = WAIT_LAUNCH});
    cluster_pass(c, 1100);
    EXPECT_EQ(p[3].told.about, p[4].id); /* two that launched in different orders: once round, not for ever */
    EXPECT_EQ(p[3].told.wait.on, p[3].id);
    EXPECT_EQ(p[3].told.wait.name.tag, 8);
    peer_waits(c, &p[4], &(struct peer_wait){.phase = WAIT_NONE});
    peer_vote(c, &p[4], VOTE_QUERY);
    cluster_pass(c, 1100);
    EXPECT_EQ(p[3].told.vote, VOTE_QUERY);
    EXPECT_EQ(p[0].told.vote, VOTE_QUERY);
    EXPECT_EQ(p[4].told.vote_on, p[0].id);
    EXPECT_EQ(p[4].told.about, p[0].id); /* and that one waits for this one */
    EXPECT_EQ(p[4].told.wait.on, p[4].id);
    cluster_free(c);
}

TEST(two_that_wait_for_each_other_are_told_to_a_third_as_they_wait) /* "1.2 waits in turn for 1.2" */
{
    struct cluster *c = some(3);
    struct peer *p = c->peers;
    peer_waits(c, &p[0], &(struct peer_wait){.name.tag = 1, .on = p[1].id, .ms = 500, .phase = WAIT_LAUNCH});
    peer_waits(c, &p[1], &(struct peer_wait){.name.tag = 2, .on = p[0].id, .ms = 500, .phase = WAIT_LAUNCH});
    peer_waits(c, &p[2], &(struct peer_wait){.name.tag = 1, .on = p[1].id, .ms = 500, .phase = WAIT_LAUNCH});
    cluster_pass(c, 1100);
    EXPECT_EQ(p[2].told.about, p[1].id);
    EXPECT_EQ(p[2].told.wait.on, p[0].id);
    EXPECT_EQ(p[2].told.wait.name.tag, 2);
    cluster_free(c);
}

TEST(wait_of_an_older_view_tells_nothing) /* its operation was decided with it */
{
    struct cluster *c = some(3);
    struct peer *p = c->peers;
    waits(c, &p[0], &p[1], WAIT_LAUNCH);
    peer_suspect(c, &p[0], SUSPECT_LINK, CAUSE_LINK_LOST, &p[2]);
    EXPECT(peer_saw(&p[0], "VIEW"));
    peer_vote(c, &p[1], VOTE_UPDATE);
    cluster_pass(c, 3500);
    EXPECT(!peer_saw(&p[0], "VIEW FREEZE"));
    EXPECT_EQ(p[0].told.about, 0);
    cluster_free(c);
}

TEST(second_freeze_for_one_operation_against_one_vote_says_that_it_is_the_second) /* programs retry for ever in silence */
{
    struct cluster *c = some(3);
    struct peer *p = c->peers;
    peer_vote(c, &p[1], VOTE_UPDATE);
    for (int round = 0; round < 2; round++) {
        cluster_pass(c, 1100);
        peer_forget(&p[0]);
        waits(c, &p[0], &p[1], WAIT_LAUNCH);
        EXPECT_STR(p[0].log, "FREEZE VIEW ");
        EXPECT_EQ(p[0].last_view.cause, CAUSE_BLOCKED);
        EXPECT(strstr(p[0].last_view.text, "tag 7") != NULL && strstr(p[0].last_view.text, "called an update") != NULL);
        EXPECT_EQ(strstr(p[0].last_view.text, "once more") != NULL, round == 1);
        EXPECT_EQ(strstr(c->trace, "launched operation 0 of tag 7 while peer 1.2 called an update") != NULL, round == 1); /* both calls */
    }
    cluster_free(c);
}

TEST(receive_from_any_source_is_in_a_cycle_only_if_all_others_vote) /* who does not vote may send yet; if all do, all wait for ever */
{
    struct cluster *c = some(3);
    struct peer *p = c->peers;
    struct peer_wait any = {.name = {.space = SPACE_PAIR, .tag = 7, .to = p[0].id}, .ms = 12000, .phase = WAIT_LAUNCH};
    peer_vote(c, &p[1], VOTE_UPDATE);
    cluster_pass(c, 5000);
    peer_waits(c, &p[0], &any);
    EXPECT_STR(p[0].log, "");
    peer_vote(c, &p[2], VOTE_UPDATE);
    peer_waits(c, &p[0], &any);
    EXPECT_STR(p[0].log, ""); /* the vote is younger than a word may be on its way */
    cluster_pass(c, 5000);
    EXPECT_STR(p[0].log, "FREEZE VIEW ");
    EXPECT(p[0].last_view.cause == CAUSE_BLOCKED && p[0].last_view.culprit == p[0].id);
    EXPECT(strstr(p[0].last_view.text, "peer 1.1 received tag 7 from any source while peer 1.2 called an update, and all others") != NULL);
    EXPECT_EQ(p[0].member_count, 3);
    cluster_free(c);
}

TEST(receive_from_any_source_is_in_a_cycle_if_others_wait_for_it_in_turn) /* one voted, one waited in an operation: all waited for ever */
{
    struct cluster *c = some(4);
    struct peer *p = c->peers;
    struct peer_wait any = {.name = {.space = SPACE_PAIR, .tag = 7, .to = p[0].id}, .ms = 12000, .phase = WAIT_LAUNCH};
    struct peer_wait of_other = {.name.tag = 1, .on = p[3].id, .ms = 12000, .phase = WAIT_DATA};
    struct peer_wait of_it = {.name.tag = 1, .on = p[0].id, .ms = 12000, .phase = WAIT_LAUNCH};
    peer_vote(c, &p[1], VOTE_UPDATE);
    cluster_pass(c, 5000);
    peer_waits(c, &p[2], &of_other);
    peer_waits(c, &p[3], &of_it);
    peer_waits(c, &p[0], &any);
    EXPECT_STR(p[0].log, ""); /* no caller waits in the receive: its program computes, and may launch what p[3] waits for */
    any.name.seq = OP_NO_NUMBER;
    of_it.ms = 9000;
    peer_waits(c, &p[3], &of_it);
    peer_waits(c, &p[0], &any);
    EXPECT_STR(p[0].log, ""); /* another thread of p[0] may: p[3] has not waited for the stall time, which is 10 s */
    of_it.ms = 12000;
    of_it.phase = WAIT_DATA;
    peer_waits(c, &p[3], &of_it);
    peer_waits(c, &p[0], &any);
    EXPECT_STR(p[0].log, ""); /* it has launched, and bytes are on their way */
    of_it.phase = WAIT_LAUNCH;
    peer_waits(c, &p[3], &of_it);
    peer_waits(c, &p[0], &any);
    EXPECT_STR(p[0].log, "FREEZE VIEW ");
    EXPECT(p[0].last_view.cause == CAUSE_BLOCKED && p[0].last_view.culprit == p[0].id);
    EXPECT_STR(p[0].last_view.text, "peer 1.1 received tag 7 from any source while peer 1.2 called an update, and all others voted or waited for it");
    EXPECT_EQ(p[0].member_count, 4);
    cluster_free(c);
}

TEST(receive_from_any_source_is_in_no_cycle_without_a_vote) /* threads of the others may launch what they wait for */
{
    struct cluster *c = some(3);
    struct peer *p = c->peers;
    struct peer_wait any = {.name = {.space = SPACE_PAIR, .tag = 7, .to = p[0].id, .seq = OP_NO_NUMBER}, .ms = 12000, .phase = WAIT_LAUNCH};
    struct peer_wait of_it = {.name.tag = 1, .on = p[0].id, .ms = 12000, .phase = WAIT_LAUNCH};
    peer_waits(c, &p[1], &of_it);
    peer_waits(c, &p[2], &of_it);
    peer_waits(c, &p[0], &any);
    EXPECT_STR(p[0].log, "");
    cluster_free(c);
}

TEST(receive_without_a_number_is_not_called_by_one) /* there is an operation 0, of which the program would look for the call */
{
    struct cluster *c = some(3);
    struct peer *p = c->peers;
    struct peer_wait behind = {.name = {.space = SPACE_PAIR, .tag = 7, .from = p[1].id, .to = p[0].id, .seq = OP_NO_NUMBER},
                               .on = p[1].id, .ms = 12000, .phase = WAIT_LAUNCH};
    peer_vote(c, &p[1], VOTE_UPDATE);
    cluster_pass(c, 5000);
    peer_waits(c, &p[0], &behind);
    EXPECT(p[0].last_view.cause == CAUSE_BLOCKED && p[0].last_view.culprit == p[1].id);
    EXPECT_STR(p[0].last_view.text, "peer 1.1 received tag 7 from peer 1.2, behind a receive from any source, while that one called an update");
    cluster_free(c);
}

TEST(links_that_fall_silent_together_are_settled_by_one_freeze) /* one stall time after the other, each with an abort */
{
    for (int stall = 0; stall < 2; stall++) {
        struct cluster *c = some(6);
        struct peer *p = c->peers;
        if (stall) { /* a complaint that is judged sooner does not end the wait for those */
            stalls(c, &p[5], &p[4]);
        }
        peer_suspect(c, &p[0], SUSPECT_LINK, CAUSE_PEER_SILENT, &p[1]);
        peer_suspect(c, &p[0], SUSPECT_LINK, CAUSE_PEER_SILENT, &p[2]); /* one peer hears nothing of two */
        cluster_pass(c, 900);                                           /* others look at other moments */
        EXPECT_STR(p[0].log, "");
        peer_suspect(c, &p[4], SUSPECT_LINK, CAUSE_PEER_SILENT, &p[3]);
        cluster_pass(c, 2000);
        EXPECT_STR(p[0].log, "FREEZE VIEW ");
        EXPECT_EQ(p[0].last_view.cause, CAUSE_LINK_LOST);
        EXPECT_EQ(p[0].member_count, 6);
        EXPECT_EQ(p[0].edge_count, 3);
        cluster_free(c);
    }
}

TEST(second_stall_counts_only_soon_after_the_first) /* a healthy peer is excluded for two accidents hours apart */
{
    for (int soon = 0; soon < 2; soon++) {
        struct cluster *c = some(4);
        struct peer *p = c->peers;
        stalls(c, &p[0], &p[1]);
        cluster_pass(c, 2000);
        EXPECT_EQ(p[0].last_view.culprit, p[1].id);
        cluster_pass(c, soon ? 1000 : 61000);
        stalls(c, &p[2], &p[1]);
        cluster_pass(c, 2000);
        EXPECT_EQ(p[0].member_count, soon ? 3 : 4);
        cluster_free(c);
    }
}

TEST(peers_that_fall_silent_together_go_with_one_freeze) /* the second would be waited for once more */
{
    struct cluster *c = some(6);
    struct peer *p = c->peers;
    p[4].mute = p[5].mute = true;
    cluster_pass(c, 4000);
    peer_suspect(c, &p[0], SUSPECT_LINK, CAUSE_PEER_SILENT, &p[4]);
    peer_suspect(c, &p[0], SUSPECT_LINK, CAUSE_PEER_SILENT, &p[5]);
    peer_suspect(c, &p[1], SUSPECT_LINK, CAUSE_PEER_SILENT, &p[2]); /* and a link between two that live */
    cluster_pass(c, 1300);
    EXPECT_STR(p[0].log, "FREEZE VIEW ");
    EXPECT_EQ(p[0].member_count, 4);
    EXPECT_EQ(p[0].edge_count, 1);
    EXPECT_EQ(p[0].last_view.cause, CAUSE_PEER_SILENT);
    cluster_free(c);
}
