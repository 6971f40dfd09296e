/* test_master_admit.c - admission: links first, then one decision for all groups.
 * SPDX-License-Identifier: MIT */
#include "master_peers.h"
#include "tests/testing.h"

TEST(admission_waits_for_all_links)
{
    struct cluster *c = cluster_new();
    struct peer *a = peer_join(c, 0), *b = peer_join(c, 0);
    b->no_link = true;
    peer_vote(c, a, VOTE_UPDATE);
    EXPECT(!peer_saw(a, "ADMIT VIEW ADMIT VIEW"));
    EXPECT_EQ(b->admit.members, 2);
    EXPECT_EQ(a->admit.view, b->admit.view);
    peer_linked(b);
    cluster_pass(c, 600);
    EXPECT_EQ(b->member_count, 2);
    EXPECT_EQ(a->view, a->admit.view);
    cluster_free(c);
}

TEST(newcomer_of_one_group_makes_a_view_of_every_group)
{
    struct cluster *c = cluster_new();
    struct peer *a = peer_join(c, 1);
    struct peer *x = peer_join(c, 2);
    peer_vote(c, a, VOTE_UPDATE);
    struct peer *y = peer_join(c, 2);
    uint64_t before = a->view;
    peer_vote(c, a, VOTE_UPDATE);
    EXPECT_EQ(y->view, 0);
    peer_vote(c, x, VOTE_UPDATE);
    EXPECT(a->view != before);
    EXPECT_EQ(a->member_count, 1);
    EXPECT_EQ(y->member_count, 2);
    EXPECT_EQ(a->last_view.sizes.global, 3);
    EXPECT_EQ(a->last_view.sizes.group, 1);
    EXPECT_EQ(y->last_view.sizes.group, 2);
    EXPECT_EQ(y->last_view.sizes.largest, 2);
    EXPECT_EQ(y->last_view.sizes.groups, 2);
    cluster_free(c);
}

TEST(death_on_the_way_is_a_new_attempt_without_freeze) /* M10 */
{
    struct cluster *c = cluster_new();
    cluster_members(c, 2, 0);
    struct peer *a = &c->peers[0], *b = &c->peers[1], *n = peer_join(c, 0), *o = peer_join(c, 0);
    n->no_link = true;
    peer_forget(a);
    peer_vote(c, a, VOTE_UPDATE);
    peer_vote(c, b, VOTE_UPDATE);
    uint32_t attempt = a->admit.attempt;
    uint64_t proposed = a->admit.view;
    peer_cut(c, n); /* a newcomer */
    EXPECT_EQ(a->member_count, 3);
    EXPECT_EQ(a->last_view.added, 1);
    EXPECT(a->view > proposed); /* a number once proposed is never used again */
    EXPECT_EQ(o->member_count, 3);
    EXPECT_EQ(a->admit.attempt, attempt + 1);
    EXPECT(!peer_saw(a, "FREEZE"));
    struct peer *q = peer_join(c, 0);
    q->no_link = true;
    peer_vote(c, a, VOTE_UPDATE);
    peer_vote(c, b, VOTE_UPDATE);
    peer_vote(c, o, VOTE_UPDATE);
    peer_crash(c, b); /* a voter */
    EXPECT(!peer_saw(a, "FREEZE"));
    EXPECT_EQ(q->admit.members, 3);
    peer_linked(q);
    cluster_pass(c, 600);
    EXPECT_EQ(q->member_count, 3);
    EXPECT_EQ(a->last_view.removed, 1);
    EXPECT_EQ(a->last_view.cause, CAUSE_PEER_LOST);
    EXPECT_EQ(a->last_view.culprit, b->id);
    cluster_free(c);
}

TEST(linked_of_an_older_attempt_does_not_count)
{
    struct cluster *c = cluster_new();
    cluster_members(c, 2, 0);
    struct peer *a = &c->peers[0], *b = &c->peers[1], *n = peer_join(c, 0);
    n->no_link = b->no_link = true;
    peer_vote(c, a, VOTE_UPDATE);
    peer_vote(c, b, VOTE_UPDATE);
    struct msg_admit first = n->admit;
    peer_crash(c, b);
    struct msg_admit second = n->admit;
    EXPECT_EQ(second.attempt, first.attempt + 1);
    n->admit = first;
    peer_linked(n);
    cluster_pass(c, 600);
    EXPECT_EQ(n->view, 0);
    n->admit = second;
    peer_linked(n);
    cluster_pass(c, 600);
    EXPECT_EQ(n->member_count, 2);
    cluster_free(c);
}

TEST(last_newcomer_lost_leaves_a_plain_update)
{
    struct cluster *c = cluster_new();
    cluster_members(c, 2, 0);
    struct peer *a = &c->peers[0], *b = &c->peers[1], *n = peer_join(c, 0);
    n->no_link = true;
    peer_vote(c, a, VOTE_UPDATE);
    peer_vote(c, b, VOTE_UPDATE);
    uint64_t view = a->view;
    peer_forget(a);
    peer_cut(c, n);
    EXPECT_STR(a->log, "ANSWER ");
    EXPECT_EQ(a->view, view);
    EXPECT(!a->voting);
    cluster_free(c);
}

TEST(newcomers_are_admitted_when_the_last_member_is_lost) /* M10: nobody is left to vote them in */
{
    struct cluster *c = cluster_new();
    struct peer *a = peer_join(c, 0), *n = peer_join(c, 0), *o = peer_join(c, 7);
    peer_cut(c, a);
    EXPECT_EQ(n->view, 0);
    cluster_pass(c, 2100);
    EXPECT_EQ(n->member_count, 1);
    EXPECT_EQ(o->member_count, 1);
    EXPECT_EQ(n->last_view.sizes.global, 2);
    EXPECT_EQ(n->last_view.sizes.groups, 2);
    cluster_free(c);
}

TEST(newcomers_are_admitted_when_all_voters_die_on_the_way) /* M10 */
{
    struct cluster *c = cluster_new();
    struct peer *a = peer_join(c, 0), *n = peer_join(c, 0);
    n->no_link = true;
    peer_vote(c, a, VOTE_UPDATE);
    peer_cut(c, a);
    cluster_pass(c, 2100);
    EXPECT_EQ(n->admit.members, 1);
    peer_linked(n);
    cluster_pass(c, 600);
    EXPECT_EQ(n->member_count, 1);
    EXPECT_EQ(n->last_view.parent, 0);
    cluster_free(c);
}

TEST(pending_peer_of_an_emptied_group_waits_for_the_others)
{
    struct cluster *c = cluster_new();
    struct peer *a = peer_join(c, 1), *x = peer_join(c, 2);
    peer_vote(c, a, VOTE_UPDATE);
    struct peer *y = peer_join(c, 2);
    peer_cut(c, x);
    cluster_pass(c, 2100);
    EXPECT_EQ(y->view, 0);
    peer_vote(c, a, VOTE_UPDATE);
    EXPECT_EQ(y->member_count, 1);
    EXPECT(y->view > x->view); /* numbers of the group go on */
    EXPECT_EQ(a->last_view.sizes.global, 2);
    cluster_free(c);
}

TEST(failed_pair_becomes_a_missing_edge_with_a_relay)
{
    struct cluster *c = cluster_new();
    cluster_members(c, 2, 0);
    struct peer *a = &c->peers[0], *b = &c->peers[1], *n = peer_join(c, 0);
    n->unreachable = a->id;
    peer_vote(c, a, VOTE_UPDATE);
    peer_vote(c, b, VOTE_UPDATE);
    EXPECT_EQ(n->member_count, 3);
    EXPECT_EQ(n->edge_count, 1);
    EXPECT_EQ(a->edges[0].a, a->id);
    EXPECT_EQ(a->edges[0].b, n->id);
    EXPECT_EQ(a->edges[0].relay, b->id);
    peer_suspect(c, a, SUSPECT_LINK, CAUSE_LINK_LOST, b); /* the next view keeps it */
    EXPECT_EQ(a->edge_count, 1);
    cluster_free(c);
}

TEST(newcomer_that_nobody_can_link_with_is_refused)
{
    struct cluster *c = cluster_new();
    struct peer *a = peer_join(c, 0), *n = peer_join(c, 0);
    a->unreachable = n->id = a->id + 1;
    peer_vote(c, a, VOTE_UPDATE);
    EXPECT_EQ(n->fence.cause, CAUSE_KICK_UNREACHABLE);
    EXPECT_STR(n->fence.text, "no link with peer 1.1 (10.0.0.1:48150), and nobody to relay");
    EXPECT(!n->open);
    EXPECT(!a->voting); /* the update goes on without it */
    EXPECT_EQ(a->member_count, 1);
    cluster_free(c);
}

TEST(newcomer_without_any_link_is_told_whom_it_could_not_reach_and_where) /* "the others": which of all, and at which port? */
{
    struct cluster *c = cluster_new();
    struct peer *all[5];
    for (int i = 0; i < 5; i++) {
        all[i] = peer_join(c, 0);
    }
    peer_vote(c, all[0], VOTE_UPDATE);
    struct peer *n = peer_join(c, 0);
    for (int i = 0; i < 5; i++) {
        all[i]->unreachable = all[4]->id + 1;
        peer_vote(c, all[i], VOTE_UPDATE);
    }
    EXPECT_EQ(n->fence.cause, CAUSE_KICK_UNREACHABLE);
    EXPECT_STR(n->fence.text, "no link with peer 1.1 (10.0.0.1:48150), peer 1.2 (10.0.0.2:48150), peer 1.3 (10.0.0.3:48150) and 2 more, and "
                              "nobody to relay");
    EXPECT_EQ(all[0]->member_count, 5);
    cluster_free(c);
}

/* `late` hears of the attempt when `other` has given up dialling it, and reaches it then; they are all members of the next view. */
static void hears_late(struct cluster *c, struct peer *late, struct peer *other)
{
    struct peer *a = &c->peers[0], *n = &c->peers[1];
    other->unreachable = late->id;
    late->no_link = true;
    peer_vote(c, a, VOTE_UPDATE);
    EXPECT(a->voting && n->open);
    other->unreachable = 0;
    late->no_link = false;
    peer_linked(late);
    cluster_pass(c, 1000);
    EXPECT(!a->voting && n->open);
    EXPECT_EQ(n->member_count, 2);
    EXPECT_EQ(n->edge_count, 0);
    EXPECT(!master_poisoned(c->master));
    cluster_free(c);
}

TEST(newcomer_that_heard_late_of_the_attempt_and_reaches_all_is_admitted) /* the others had given up dialling, and it lost its place */
{
    struct cluster *c = cluster_new();
    struct peer *a = peer_join(c, 0), *n = peer_join(c, 0);
    n->id = a->id + 1;
    hears_late(c, n, a);
}

TEST(attempt_is_made_again_whichever_end_heard_late_of_it) /* the newer end was excluded, though the older one had the link by then */
{
    struct cluster *c = cluster_new();
    struct peer *a = peer_join(c, 0), *n = peer_join(c, 0);
    hears_late(c, a, n);
}

TEST(pair_that_both_ends_miss_is_not_tried_again) /* all others would wait for nothing */
{
    struct cluster *c = cluster_new();
    struct peer *a = peer_join(c, 0), *n = peer_join(c, 0);
    a->unreachable = a->id + 1;
    n->unreachable = a->id;
    uint32_t before = a->admit.attempt;
    peer_vote(c, a, VOTE_UPDATE);
    EXPECT_EQ(n->admit.attempt, before + 1);
    EXPECT_EQ(n->fence.cause, CAUSE_KICK_UNREACHABLE);
    cluster_free(c);
}

TEST(newcomer_that_does_not_link_in_time_is_refused)
{
    struct cluster *c = cluster_new();
    struct peer *a = peer_join(c, 0), *n = peer_join(c, 0);
    n->no_link = true;
    peer_vote(c, a, VOTE_UPDATE);
    cluster_pass(c, 9900);
    EXPECT(n->open);
    cluster_pass(c, 300);
    EXPECT_EQ(n->fence.cause, CAUSE_KICK_UNREACHABLE);
    EXPECT(!a->voting);
    cluster_free(c);
}

TEST(newcomer_lost_while_the_views_are_persisted) /* the view is sent as decided, then frozen */
{
    struct cluster *c = cluster_new();
    struct peer *a = peer_join(c, 0), *n = peer_join(c, 0);
    c->hold_persist = true;
    peer_vote(c, a, VOTE_UPDATE);
    peer_forget(a);
    peer_cut(c, n);
    cluster_persisted(c);
    EXPECT_STR(a->log, "VIEW FREEZE ");
    EXPECT_EQ(a->member_count, 2);
    cluster_persisted(c);
    EXPECT_STR(a->log, "VIEW FREEZE VIEW ");
    EXPECT_EQ(a->member_count, 1);
    cluster_free(c);
}

TEST(newcomer_that_resumes_gets_its_whole_first_view)
{
    struct cluster *c = cluster_new();
    struct peer *a = peer_join(c, 0), *n = peer_join(c, 0);
    c->hold_persist = true;
    peer_vote(c, a, VOTE_UPDATE);
    uint32_t old = n->conn;
    n->conn = cluster_open(c); /* the old connection is half open: it is voided by the new one */
    n->open = true;
    cluster_persisted(c);
    EXPECT_EQ(a->member_count, 2);
    peer_cut(c, n);
    n->view = 0;
    peer_forget(n);
    peer_resume(c, n);
    EXPECT_STR(n->log, "WELCOME VIEW ");
    EXPECT_EQ(n->last_view.parent, 0);
    EXPECT_EQ(n->member_count, 2);
    EXPECT(cluster_closed(c, old));
    cluster_free(c);
}

TEST(admission_is_sent_again_to_who_resumes)
{
    struct cluster *c = cluster_new();
    struct peer *a = peer_join(c, 0), *n = peer_join(c, 0);
    a->no_link = true;
    peer_vote(c, a, VOTE_UPDATE);
    peer_cut(c, a);
    a->no_link = false;
    peer_forget(a);
    peer_resume(c, a);
    EXPECT_STR(a->log, "WELCOME ADMIT VIEW ");
    EXPECT_EQ(n->member_count, 2);
    cluster_free(c);
}

TEST(members_link_and_agree_by_lists_in_parts) /* whoever reads only the last part */
{
    struct cluster *c = cluster_new();
    c->out.part_bytes = 50;
    cluster_members(c, 9, 0);
    for (uint32_t i = 0; i < 9; i++) {
        EXPECT(c->peers[i].view == c->peers[0].view && c->peers[i].member_count == 9);
        EXPECT(strstr(c->peers[i].log, "VIEW_PART") != NULL);
    }
    EXPECT(!master_poisoned(c->master));
    cluster_free(c);
}
