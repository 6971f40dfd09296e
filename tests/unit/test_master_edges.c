/* test_master_edges.c - missing edges that heal, and freezes that leave a pair without a relay.
 * SPDX-License-Identifier: MIT */
#include "tests/testing.h"

#include "tests/unit/master_peers.h"

/* Three members; the first two have no link, the third relays. */
static struct cluster *apart(void)
{
    struct cluster *c = cluster_new();
    cluster_members(c, 3, 0);
    struct peer *a = &c->peers[0], *b = &c->peers[1];
    cluster_pass(c, 1500); /* both are heard */
    peer_suspect(c, a, SUSPECT_LINK, CAUSE_KICK_UNREACHABLE, b);
    EXPECT_EQ(a->edge_count, 1);
    cluster_pass(c, 1500); /* the view is known to all */
    for (uint32_t i = 0; i < c->count; i++) {
        peer_forget(&c->peers[i]);
    }
    return c;
}

/* LINKED that nobody asked for; it arrives with what is sent next. */
static void peer_healed(struct peer *p, const struct peer *with)
{
    uint32_t attempt = p->admit.attempt;
    p->admit.attempt = 0;
    p->unreachable = with->id; /* in this message: whom it hears again */
    peer_linked(p);
    p->admit.attempt = attempt;
    p->unreachable = 0;
}

static void update_all(struct cluster *c)
{
    for (uint32_t i = 0; i < c->count; i++) {
        if (c->peers[i].open) {
            peer_vote(c, &c->peers[i], VOTE_UPDATE);
        }
    }
}

/* How a link of the view ends while newcomers link, and what the next view makes of it. */
static const struct ended_link {
    enum cause cause;
    uint32_t again; /* attempts with a newcomer that follow */
    uint32_t missing;
} ended_links[] = {
    {CAUSE_LINK_LOST, 0, 0},   {CAUSE_KICK_UNREACHABLE, 0, 1}, {CAUSE_PEER_SILENT, 0, 1},
    {CAUSE_LINK_LOST, 1, 0},   {CAUSE_KICK_UNREACHABLE, 1, 1}, {CAUSE_PEER_SILENT, 1, 1},
};

TEST(link_that_ended_while_newcomers_linked_is_told_in_a_view_when_they_have_gone) /* all went on without it, and hung */
{
    for (size_t i = 0; i < sizeof ended_links / sizeof *ended_links; i++) {
        const struct ended_link *e = &ended_links[i];
        struct cluster *c = cluster_new();
        cluster_members(c, 3, 0);
        struct peer *p = c->peers;
        cluster_pass(c, 1500);
        struct peer *newcomer = peer_join(c, 0);
        struct peer *other = e->again > 0 ? peer_join(c, 0) : NULL;
        newcomer->no_link = true;
        for (uint32_t k = 0; k < 3; k++) {
            peer_vote(c, &p[k], VOTE_UPDATE);
        }
        uint64_t view = p[0].view;
        peer_suspect(c, &p[0], SUSPECT_LINK, e->cause, &p[1]);
        if (other != NULL) {
            peer_cut(c, other);
        }
        peer_forget(&p[0]);
        peer_cut(c, newcomer);
        EXPECT_STR(p[0].log, "ADMIT VIEW ");
        EXPECT(p[0].view > view && !p[0].voting);
        EXPECT_EQ(p[0].member_count, 3);
        EXPECT_EQ(p[0].edge_count, e->missing);
        cluster_pass(c, 1500);
        EXPECT_STR(p[0].log, "ADMIT VIEW "); /* once */
        update_all(c);
        EXPECT_STR(p[0].log, "ADMIT VIEW ANSWER ");
        cluster_free(c);
    }
}

TEST(healed_edge_ends_with_the_next_update_which_makes_a_view) /* the pair would be relayed for as long as both stay */
{
    struct cluster *c = apart();
    struct peer *a = &c->peers[0], *b = &c->peers[1];
    peer_healed(a, b);
    peer_healed(b, a);
    EXPECT_STR(a->log, ""); /* no freeze for it */
    update_all(c);
    EXPECT_STR(a->log, "VIEW ");
    EXPECT_EQ(a->last_view.answers, VOTE_UPDATE);
    EXPECT_EQ(a->edge_count, 0);
    EXPECT(a->last_view.plan.eager_bytes > 0);
    EXPECT_EQ(a->last_view.sizes.global, 3);
    cluster_pass(c, 1500);
    update_all(c);
    EXPECT_STR(a->log, "VIEW ANSWER "); /* nothing left to change */
    cluster_free(c);
}

TEST(healed_edge_ends_with_the_next_view_that_comes_anyway)
{
    struct cluster *c = apart();
    struct peer *a = &c->peers[0], *b = &c->peers[1], *d = &c->peers[2];
    peer_healed(a, b);
    peer_healed(b, a);
    peer_suspect(c, a, SUSPECT_LINK, CAUSE_LINK_LOST, d);
    EXPECT_STR(a->log, "FREEZE VIEW ");
    EXPECT_EQ(a->edge_count, 0);
    cluster_free(c);
}

TEST(one_end_alone_heals_nothing) /* the other may not have come over the link yet */
{
    struct cluster *c = apart();
    struct peer *a = &c->peers[0], *b = &c->peers[1];
    peer_healed(a, b);
    update_all(c);
    EXPECT_STR(a->log, "ANSWER ");
    peer_healed(b, a);
    peer_suspect(c, a, SUSPECT_LINK, CAUSE_LINK_LOST, b); /* it did not last */
    update_all(c);
    EXPECT_STR(a->log, "ANSWER ANSWER ");
    peer_healed(a, b);
    peer_cut(c, b); /* what it said before may be stale: it says so again */
    peer_resume(c, b);
    update_all(c);
    EXPECT_EQ(a->edge_count, 1);
    EXPECT_STR(a->log, "ANSWER ANSWER ANSWER ");
    cluster_free(c);
}

TEST(what_heals_and_breaks_again_at_once_is_waited_for) /* a freeze for each flap */
{
    struct cluster *c = apart();
    struct peer *a = &c->peers[0], *b = &c->peers[1];
    for (int i = 0; i < 2; i++) {
        peer_healed(a, b);
        peer_healed(b, a);
        update_all(c);
        EXPECT_EQ(a->edge_count, i); /* the first time it is believed at once */
        if (i == 0) {
            cluster_pass(c, 1500);
            peer_suspect(c, a, SUSPECT_LINK, CAUSE_KICK_UNREACHABLE, b);
            EXPECT_EQ(a->edge_count, 1);
            cluster_pass(c, 1500);
        }
    }
    cluster_pass(c, 61000);
    update_all(c);
    EXPECT_EQ(a->edge_count, 0);
    cluster_free(c);
}

TEST(relay_lost_makes_the_pair_try_before_anybody_loses_its_place) /* a healthy peer was excluded for a cut long healed */
{
    struct cluster *c = apart();
    struct peer *a = &c->peers[0], *b = &c->peers[1], *d = &c->peers[2];
    peer_reports(a, 7, 0, OP_HELD, CAUSE_NONE);
    peer_crash(c, d);
    EXPECT_STR(a->log, "FREEZE ADMIT VIEW ");
    EXPECT(b->open);
    EXPECT_EQ(a->member_count, 2);
    EXPECT_EQ(a->edge_count, 0);
    EXPECT_EQ(peer_decision(a, 7, 0).outcome, OUTCOME_ABORT); /* the reports of the freeze are decided on */
    EXPECT_EQ(a->last_view.culprit, d->id);
    cluster_free(c);
}

TEST(pair_that_tried_in_vain_loses_its_newer_end)
{
    struct cluster *c = apart();
    struct peer *a = &c->peers[0], *b = &c->peers[1], *d = &c->peers[2];
    a->unreachable = b->id;
    b->unreachable = a->id;
    peer_crash(c, d);
    EXPECT_EQ(b->fence.cause, CAUSE_KICK_UNREACHABLE);
    EXPECT_EQ(a->member_count, 1);
    EXPECT_STR(a->log, "FREEZE ADMIT FREEZE VIEW ");
    cluster_free(c);
}

TEST(survivor_that_heard_late_of_the_attempt_keeps_its_place) /* the other had given up dialling by then, and one of them was excluded */
{
    for (int i = 0; i < 2; i++) {
        struct cluster *c = apart();
        struct peer *late = &c->peers[i], *other = &c->peers[1 - i];
        other->unreachable = late->id;
        late->no_link = true;
        peer_crash(c, &c->peers[2]);
        other->unreachable = 0;
        late->no_link = false;
        peer_linked(late);
        cluster_pass(c, 1000);
        EXPECT_EQ(late->member_count, 2);
        EXPECT_EQ(late->edge_count, 0);
        EXPECT_STR(other->log, "FREEZE ADMIT ADMIT VIEW ");
        EXPECT(!master_poisoned(c->master));
        cluster_free(c);
    }
}

TEST(pair_that_one_end_alone_reaches_is_tried_once_more_only) /* the others would wait for ever */
{
    struct cluster *c = apart();
    struct peer *a = &c->peers[0], *b = &c->peers[1];
    b->unreachable = a->id;
    peer_crash(c, &c->peers[2]);
    EXPECT_EQ(b->fence.cause, CAUSE_KICK_UNREACHABLE);
    EXPECT_STR(a->log, "FREEZE ADMIT ADMIT FREEZE VIEW ");
    cluster_free(c);
}

TEST(survivor_that_does_not_answer_in_time_is_none) /* the others would wait for ever */
{
    struct cluster *c = apart();
    struct peer *a = &c->peers[0], *b = &c->peers[1], *d = &c->peers[2];
    b->no_link = true;
    peer_crash(c, d);
    EXPECT_STR(a->log, "FREEZE ADMIT ");
    cluster_pass(c, 11000);
    EXPECT(!b->open);
    EXPECT_EQ(a->member_count, 1);
    cluster_free(c);
}

TEST(death_while_the_pair_tries_begins_the_freeze_again) /* M1, M2: reports of those who are left */
{
    struct cluster *c = cluster_new();
    cluster_members(c, 4, 0);
    struct peer *a = &c->peers[0], *b = &c->peers[1], *d = &c->peers[2], *e = &c->peers[3];
    cluster_pass(c, 1500);
    peer_suspect(c, a, SUSPECT_LINK, CAUSE_KICK_UNREACHABLE, b);
    cluster_pass(c, 1500);
    peer_suspect(c, b, SUSPECT_LINK, CAUSE_KICK_UNREACHABLE, e); /* e cannot relay for the pair */
    EXPECT_EQ(a->edge_count, 2);
    cluster_pass(c, 1500);
    peer_forget(a);
    a->no_link = true;
    peer_crash(c, d);
    EXPECT_STR(a->log, "FREEZE ADMIT ");
    uint32_t attempt = a->admit.attempt;
    a->no_link = false;
    peer_crash(c, e);
    EXPECT_STR(a->log, "FREEZE ADMIT FREEZE ADMIT VIEW ");
    EXPECT(a->admit.attempt > attempt);
    EXPECT_EQ(a->member_count, 2);
    cluster_free(c);
}

TEST(admission_of_a_freeze_is_sent_again_to_who_resumes)
{
    struct cluster *c = apart();
    struct peer *a = &c->peers[0], *b = &c->peers[1], *d = &c->peers[2];
    b->no_link = true;
    peer_crash(c, d);
    peer_cut(c, b);
    b->no_link = false;
    peer_forget(b);
    peer_resume(c, b);
    EXPECT_STR(b->log, "WELCOME ADMIT VIEW ");
    EXPECT_EQ(a->member_count, 2);
    cluster_free(c);
}

TEST(update_that_loses_the_relay_makes_links_too) /* no freeze: all wait in it */
{
    struct cluster *c = apart();
    struct peer *a = &c->peers[0], *b = &c->peers[1], *d = &c->peers[2];
    peer_vote(c, a, VOTE_UPDATE);
    peer_vote(c, b, VOTE_UPDATE);
    peer_crash(c, d);
    EXPECT_STR(a->log, "ADMIT VIEW ");
    EXPECT_EQ(a->last_view.answers, VOTE_UPDATE);
    EXPECT_EQ(a->edge_count, 0);
    EXPECT_EQ(a->member_count, 2);
    EXPECT(!b->voting);
    cluster_free(c);
}

TEST(group_in_an_update_of_all_groups_freezes_when_its_relay_dies) /* the other group has not asked: the voters go on waiting */
{
    struct cluster *c = apart();
    struct peer *a = &c->peers[0], *b = &c->peers[1], *d = &c->peers[2];
    struct peer *x = peer_join(c, 5);
    peer_vote(c, a, VOTE_UPDATE);
    peer_vote(c, b, VOTE_UPDATE);
    peer_vote(c, d, VOTE_UPDATE);
    EXPECT_EQ(x->member_count, 1);
    EXPECT_EQ(a->edge_count, 0); /* its links were made anew, and nobody named this one */
    cluster_pass(c, 1500);
    peer_suspect(c, a, SUSPECT_LINK, CAUSE_LINK_LOST, b);
    cluster_pass(c, 61000);
    peer_suspect(c, a, SUSPECT_LINK, CAUSE_KICK_UNREACHABLE, b);
    EXPECT_EQ(a->edge_count, 1);
    cluster_pass(c, 1500);
    peer_forget(a);
    peer_vote(c, a, VOTE_UPDATE);
    peer_vote(c, b, VOTE_UPDATE);
    peer_vote(c, d, VOTE_UPDATE);
    peer_crash(c, d);
    EXPECT_STR(a->log, "FREEZE ADMIT VIEW ");
    EXPECT(a->voting && b->voting);
    peer_vote(c, x, VOTE_UPDATE);
    EXPECT(!a->voting && !b->voting && !x->voting);
    cluster_free(c);
}

/* ---- shared state ---------------------------------------------------------------------------------------------------- */

/* The first holds what is elected, the second has no link with it, the third has. */
static void sync_all(struct cluster *c, bool inequality)
{
    peer_sync(c, &c->peers[0], 0, 7, 5, 1, inequality);
    peer_sync(c, &c->peers[1], 0, 1, 5, 2, inequality);
    peer_sync(c, &c->peers[2], 0, 1, 5, 3, inequality);
}

TEST(receiver_without_a_link_to_a_holder_gets_the_state_from_a_third_that_has_staged) /* it was excluded after three rounds */
{
    for (int inequality = 0; inequality < 2; inequality++) {
        struct cluster *c = apart();
        struct peer *a = &c->peers[0], *b = &c->peers[1], *d = &c->peers[2];
        sync_all(c, inequality != 0);
        EXPECT_STR(a->log, "ELECTED ");
        EXPECT_STR(d->log, "ELECTED ");
        EXPECT_EQ(d->holders[0], a->id);
        EXPECT_STR(b->log, "");
        peer_cut(c, b);
        peer_resume(c, b);
        EXPECT_STR(b->log, "WELCOME "); /* still nothing to be told */
        peer_vote(c, b, VOTE_SYNC);
        peer_staged(c, d, STAGED_OK, 0);
        EXPECT_STR(b->log, "WELCOME ELECTED ");
        EXPECT_EQ(b->elected.holders, 1);
        EXPECT_EQ(b->holders[0], d->id);
        EXPECT_EQ(b->elected.whole_source, inequality ? d->id : 0);
        EXPECT_EQ(b->elected.content_digest, 1);
        EXPECT(a->voting);
        peer_staged(c, b, STAGED_OK, 0);
        EXPECT(!a->voting && !b->voting && !d->voting);
        EXPECT_EQ(b->answer.value, 7);
        cluster_free(c);
    }
}

TEST(receiver_is_told_of_its_first_source_although_a_holder_resumed_in_the_freeze_before) /* taken for told, it waited for ever */
{
    struct cluster *c = apart();
    struct peer *a = &c->peers[0], *b = &c->peers[1], *d = &c->peers[2];
    sync_all(c, false);
    a->no_frozen = true; /* the view does not end meanwhile */
    peer_suspect(c, d, SUSPECT_LINK, CAUSE_LINK_LOST, a);
    peer_staged(c, d, STAGED_OK, 0);
    EXPECT_EQ(b->elected.role, 0); /* nobody is told in a freeze */
    peer_cut(c, a);
    peer_resume(c, a);
    peer_vote(c, a, VOTE_SYNC);
    EXPECT_EQ(b->elected.role, 0);
    peer_frozen(a);
    cluster_pass(c, 600);
    EXPECT_EQ(b->elected.role, SYNC_RECEIVER);
    EXPECT_EQ(b->holders[0], d->id);
    peer_staged(c, b, STAGED_OK, 0);
    EXPECT(!a->voting && !b->voting && !d->voting);
    cluster_free(c);
}

TEST(third_that_lies_is_believed_no_more) /* it would be asked again and again */
{
    struct cluster *c = apart();
    struct peer *a = &c->peers[0], *b = &c->peers[1], *d = &c->peers[2];
    sync_all(c, false);
    peer_staged(c, d, STAGED_OK, 0);
    peer_staged(c, b, STAGED_NO_SOURCE, d->id);
    EXPECT(a->voting);
    peer_staged(c, d, STAGED_OK, 0);
    EXPECT_EQ(b->fence.cause, CAUSE_KICK_UNREACHABLE); /* nobody is left that it could have it from */
    EXPECT(!a->voting && !d->voting);
    cluster_free(c);
}

TEST(receiver_is_told_of_those_holders_only_that_it_has_a_link_with)
{
    struct cluster *c = apart();
    struct peer *a = &c->peers[0], *b = &c->peers[1], *d = &c->peers[2];
    peer_sync(c, a, 0, 7, 5, 1, true);
    peer_sync(c, d, 0, 7, 5, 1, true);
    peer_sync(c, b, 0, 1, 5, 2, true);
    EXPECT_STR(b->log, "ELECTED ");
    EXPECT_EQ(b->elected.holders, 1);
    EXPECT_EQ(b->holders[0], d->id);
    EXPECT_EQ(b->elected.whole_source, d->id);
    peer_staged(c, b, STAGED_OK, 0);
    EXPECT(!a->voting && !b->voting && !d->voting);
    cluster_free(c);
}
