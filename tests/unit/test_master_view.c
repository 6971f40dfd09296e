/* test_master_view.c - freezing a view, deciding its operations, publishing the next.
 * SPDX-License-Identifier: MIT */
#include "master_peers.h"
#include "tests/testing.h"

static struct cluster *three(void)
{
    struct cluster *c = cluster_new();
    cluster_members(c, 3, 0);
    for (uint32_t i = 0; i < c->count; i++) {
        peer_forget(&c->peers[i]);
    }
    return c;
}

TEST(members_share_one_view)
{
    struct cluster *c = three();
    for (int i = 0; i < 3; i++) {
        EXPECT_EQ(c->peers[i].member_count, 3);
        EXPECT_EQ(c->peers[i].view, c->peers[0].view);
        EXPECT_EQ(c->peers[i].last_view.sizes.global, 3);
    }
    cluster_free(c);
}

TEST(what_travels_with_a_launch_is_less_where_more_say_it) /* each member gets as much at once from all others together */
{
    static const struct {
        uint32_t members, bytes;
    } want[] = {{1, 16384}, {2, 16384}, {3, 8192}, {4, 8192}, {5, 4096}, {9, 4096}};
    for (size_t i = 0; i < sizeof want / sizeof want[0]; i++) {
        struct cluster *c = cluster_new();
        cluster_members(c, want[i].members, 0);
        EXPECT_EQ(c->peers[0].member_count, want[i].members);
        EXPECT_EQ(c->peers[0].last_view.plan.eager_bytes, want[i].bytes);
        cluster_free(c);
    }
}

TEST(death_freezes_decides_and_publishes) /* survivors must get an outcome, not hang */
{
    struct cluster *c = three();
    struct peer *a = &c->peers[0], *b = &c->peers[1], *d = &c->peers[2];
    uint64_t before = a->view;
    peer_reports(a, 7, 0, OP_RUNNING, CAUSE_NONE);
    peer_reports(b, 7, 0, OP_HELD, CAUSE_NONE);
    peer_crash(c, d);
    EXPECT_STR(a->log, "FREEZE VIEW ");
    EXPECT_STR(b->log, "FREEZE VIEW ");
    EXPECT_EQ(a->freeze.view, before);
    EXPECT_EQ(a->freeze.survivors, 2);
    EXPECT_EQ(a->freeze.cause, CAUSE_PEER_LOST);
    EXPECT_EQ(a->last_view.parent, before);
    EXPECT(a->view > before);
    EXPECT_EQ(a->last_view.cause, CAUSE_PEER_LOST);
    EXPECT_EQ(a->last_view.culprit, d->id);
    EXPECT_EQ(a->last_view.removed, 1);
    EXPECT_EQ(a->last_view.answers, VOTE_NONE);
    EXPECT_EQ(a->last_view.sizes.global, 2);
    EXPECT_EQ(a->member_count, 2);
    EXPECT_EQ(peer_decision(a, 7, 0).outcome, OUTCOME_ABORT);
    EXPECT_EQ(peer_decision(a, 7, 0).cause, CAUSE_PEER_LOST);
    EXPECT_EQ(peer_decision(b, 7, 0).outcome, OUTCOME_ABORT);
    cluster_free(c);
}

TEST(decision_table_row_by_row) /* M3 */
{
    struct cluster *c = three();
    struct peer *a = &c->peers[0], *b = &c->peers[1];
    peer_reports(a, 1, 0, OP_FINISHED, CAUSE_NONE); /* finished at one, forgotten by the other: commit */
    peer_reports(a, 2, 0, OP_HELD, CAUSE_NONE);     /* held by all survivors: commit */
    peer_reports(b, 2, 0, OP_HELD, CAUSE_NONE);
    peer_reports(a, 3, 0, OP_HELD, CAUSE_NONE);     /* not launched by one: veto */
    peer_reports(a, 4, 0, OP_RUNNING, CAUSE_NONE);  /* running */
    peer_reports(b, 4, 0, OP_RUNNING, CAUSE_NONE);
    peer_reports(a, 5, 0, OP_HELD, CAUSE_NONE);     /* refused overrides held */
    peer_reports(b, 5, 0, OP_REFUSED, CAUSE_CANCEL);
    peer_reports(a, 6, 0, OP_REFUSED, CAUSE_DEADLINE); /* the gravest cause listed */
    peer_reports(b, 6, 0, OP_REFUSED, CAUSE_MISMATCH);
    peer_reports(a, 7, 0, OP_HELD, CAUSE_NONE);     /* other digest */
    peer_reports(b, 7, 0, OP_HELD, CAUSE_NONE);
    b->reports[b->report_count - 1].digest = 10;
    peer_reports(a, 8, 0, OP_RUNNING, CAUSE_NONE);  /* other parameters */
    peer_reports(b, 8, 0, OP_HELD, CAUSE_NONE);
    b->reports[b->report_count - 1].params = 43;
    a->reports[a->report_count - 1].call = (struct op_params){.count = 4};
    b->reports[b->report_count - 1].call = (struct op_params){.count = 5};
    peer_reports(a, 9, 1, OP_FINISHED, CAUSE_NONE); /* same tag, two numbers: one record each */
    peer_reports(b, 9, 1, OP_HELD, CAUSE_NONE);
    peer_reports(b, 9, 2, OP_RUNNING, CAUSE_NONE);
    peer_reports(a, 6, 1, OP_REFUSED, CAUSE_NO_MEMORY); /* mild one listed last */
    peer_reports(b, 6, 1, OP_REFUSED, CAUSE_CANCEL);
    a->reports[a->report_count - 1].culprit = 11;
    b->reports[b->report_count - 1].culprit = 7;
    peer_reports(a, 6, 2, OP_REFUSED, CAUSE_CANCEL); /* the same cause, two culprits */
    peer_reports(b, 6, 2, OP_REFUSED, CAUSE_CANCEL);
    a->reports[a->report_count - 1].culprit = 9;
    b->reports[b->report_count - 1].culprit = 8;
    peer_crash(c, &c->peers[2]);
    EXPECT_EQ(b->decision_count, 12);
    EXPECT_EQ(peer_decision(b, 1, 0).outcome, OUTCOME_COMMIT);
    EXPECT_EQ(peer_decision(b, 2, 0).outcome, OUTCOME_COMMIT);
    EXPECT_EQ(peer_decision(b, 3, 0).outcome, OUTCOME_ABORT);
    EXPECT_EQ(peer_decision(b, 4, 0).outcome, OUTCOME_ABORT);
    EXPECT_EQ(peer_decision(b, 4, 0).cause, CAUSE_PEER_LOST);
    EXPECT_EQ(peer_decision(b, 5, 0).outcome, OUTCOME_REFUSED);
    EXPECT_EQ(peer_decision(b, 5, 0).cause, CAUSE_CANCEL);
    EXPECT_EQ(peer_decision(b, 6, 0).outcome, OUTCOME_REFUSED);
    EXPECT_EQ(peer_decision(b, 6, 0).cause, CAUSE_MISMATCH);
    EXPECT_EQ(peer_decision(b, 6, 1).cause, CAUSE_NO_MEMORY);
    EXPECT_EQ(peer_decision(b, 6, 1).culprit, 11);
    EXPECT_EQ(peer_decision(b, 6, 2).culprit, 8);
    EXPECT_EQ(peer_decision(b, 7, 0).outcome, OUTCOME_ABORT);
    EXPECT_EQ(peer_decision(b, 7, 0).cause, CAUSE_DIGEST);
    EXPECT_EQ(peer_decision(b, 8, 0).outcome, OUTCOME_ABORT);
    EXPECT_EQ(peer_decision(b, 8, 0).cause, CAUSE_MISMATCH);
    EXPECT_EQ(peer_decision(b, 8, 0).culprit, b->id); /* not the one whose death ended the view */
    struct op_clash clash = peer_clash(b, 8, 0);
    EXPECT(clash.id[0] == a->id && clash.id[1] == b->id && clash.params[0].count == 4 && clash.params[1].count == 5);
    EXPECT_EQ(peer_decision(b, 9, 1).outcome, OUTCOME_COMMIT);
    EXPECT_EQ(peer_decision(b, 9, 2).outcome, OUTCOME_ABORT);
    cluster_free(c);
}

TEST(both_sides_of_a_refused_mismatch_reach_all) /* one of them is dead, the other's word is all there is */
{
    struct cluster *c = three();
    struct peer *a = &c->peers[0], *b = &c->peers[1], *d = &c->peers[2];
    peer_reports(a, 6, 0, OP_REFUSED, CAUSE_MISMATCH);
    a->reports[0].culprit = d->id;
    a->clash[0] = (struct op_clash){.id = {a->id, d->id}, .params = {{.count = 4}, {.count = 5}}};
    peer_reports(b, 6, 0, OP_RUNNING, CAUSE_NONE);
    for (uint32_t tag = 100; tag < 120; tag++) { /* more than are told of in full */
        peer_reports(b, tag, 0, OP_REFUSED, CAUSE_MISMATCH);
        b->reports[b->report_count - 1].culprit = d->id;
        b->clash[b->report_count - 1] = (struct op_clash){.id = {b->id, d->id}, .params = {{.count = tag}, {.count = 5}}};
    }
    peer_crash(c, d);
    struct op_clash clash = peer_clash(b, 6, 0);
    EXPECT_EQ(peer_decision(b, 6, 0).culprit, d->id);
    EXPECT(clash.id[0] == a->id && clash.id[1] == d->id && clash.params[0].count == 4 && clash.params[1].count == 5);
    EXPECT_EQ(peer_clash(b, 110, 0).params[0].count, 110);
    EXPECT_EQ(peer_decision(b, 119, 0).cause, CAUSE_MISMATCH);
    EXPECT_EQ(peer_clash(b, 119, 0).id[1], 0);
    cluster_free(c);
}

TEST(a_refusal_without_both_calls_does_not_hide_them) /* the first to report had no memory to learn whose calls differ */
{
    struct cluster *c = three();
    struct peer *a = &c->peers[0], *b = &c->peers[1], *d = &c->peers[2];
    for (uint32_t seq = 0; seq < 2; seq++) {
        struct peer *knows = seq == 0 ? b : a;
        peer_reports(a, 6, seq, OP_REFUSED, CAUSE_MISMATCH);
        peer_reports(b, 6, seq, OP_REFUSED, CAUSE_MISMATCH);
        a->reports[seq].culprit = b->reports[seq].culprit = d->id;
        knows->clash[seq] = (struct op_clash){.id = {b->id, d->id}, .params = {{.count = 4}, {.count = 5}}};
    }
    peer_crash(c, d);
    for (uint32_t seq = 0; seq < 2; seq++) {
        struct op_clash clash = peer_clash(a, 6, seq);
        EXPECT_EQ(peer_decision(a, 6, seq).culprit, d->id);
        EXPECT(clash.id[0] == b->id && clash.id[1] == d->id && clash.params[0].count == 4 && clash.params[1].count == 5);
    }
    cluster_free(c);
}

TEST(second_death_in_the_freeze_drops_its_report) /* M2: only reports of the current attempt count */
{
    struct cluster *c = cluster_new();
    cluster_members(c, 4, 0);
    struct peer *a = &c->peers[0], *b = &c->peers[1], *x = &c->peers[2], *y = &c->peers[3];
    peer_reports(a, 7, 0, OP_HELD, CAUSE_NONE);
    peer_reports(b, 7, 0, OP_HELD, CAUSE_NONE);
    peer_reports(x, 7, 0, OP_RUNNING, CAUSE_NONE);
    b->no_frozen = true;
    peer_crash(c, y);
    EXPECT_EQ(a->freeze.survivors, 3);
    uint32_t attempt = a->freeze.attempt;
    peer_crash(c, x); /* its report was in; it vetoed */
    EXPECT_EQ(a->freeze.attempt, attempt + 1);
    EXPECT_EQ(a->freeze.survivors, 2);
    EXPECT_EQ(a->freeze.culprit, y->id); /* the first cause stays */
    b->no_frozen = false;
    peer_frozen(b);
    cluster_pass(c, 600);
    EXPECT_EQ(peer_decision(a, 7, 0).outcome, OUTCOME_COMMIT); /* held by all who are left */
    EXPECT_EQ(a->member_count, 2);
    cluster_free(c);
}

/* `p` lists a message of this number from one to another. */
static void says(struct peer *p, const struct peer *from, const struct peer *to, uint32_t seq, enum op_state state, enum cause cause)
{
    peer_reports(p, 7, seq, state, cause);
    struct op_name *name = &p->reports[p->report_count - 1].name;
    name->space = SPACE_PAIR;
    name->from = from->id;
    name->to = to->id;
}

TEST(last_words_of_who_leaves_count_in_every_attempt) /* B11: its sender would be told to repeat what has arrived */
{
    struct cluster *c = three();
    struct peer *a = &c->peers[0], *b = &c->peers[1], *d = &c->peers[2];
    says(d, a, d, 0, OP_FINISHED, CAUSE_NONE);
    says(d, a, d, 1, OP_REFUSED, CAUSE_CANCEL);
    for (uint32_t seq = 0; seq < 3; seq++) {
        says(a, a, d, seq, OP_RUNNING, CAUSE_NONE);
    }
    a->no_frozen = true;
    peer_leave(c, d);
    uint32_t attempt = a->freeze.attempt;
    a->no_frozen = false;
    peer_crash(c, b);
    EXPECT_EQ(a->freeze.attempt, attempt + 1);
    EXPECT_EQ(a->decision_count, 3);
    EXPECT_EQ(peer_decision(a, 7, 0).outcome, OUTCOME_COMMIT);
    EXPECT_EQ(peer_decision(a, 7, 1).outcome, OUTCOME_REFUSED);
    EXPECT_EQ(peer_decision(a, 7, 1).cause, CAUSE_CANCEL);
    EXPECT_EQ(peer_decision(a, 7, 2).outcome, OUTCOME_ABORT);
    says(a, b, a, 0, OP_FINISHED, CAUSE_NONE); /* of the next view nothing is left of them */
    a->reports[0] = a->reports[a->report_count - 1];
    a->report_count = 1;
    struct peer *e = peer_join(c, 0);
    peer_vote(c, a, VOTE_UPDATE);
    EXPECT_EQ(a->member_count, 2);
    peer_crash(c, e);
    EXPECT_EQ(a->decision_count, 1);
    cluster_free(c);
}

TEST(last_words_say_whose_calls_differ) /* P10 */
{
    struct cluster *c = three();
    struct peer *a = &c->peers[0], *d = &c->peers[2];
    says(d, a, d, 0, OP_REFUSED, CAUSE_CANCEL);
    says(d, a, d, 1, OP_REFUSED, CAUSE_MISMATCH);
    d->reports[1].culprit = d->id;
    d->clash[1] = (struct op_clash){.id = {a->id, d->id}, .params = {{.count = 4}, {.count = 5}}};
    says(a, a, d, 0, OP_RUNNING, CAUSE_NONE);
    says(a, a, d, 1, OP_RUNNING, CAUSE_NONE);
    peer_leave(c, d);
    EXPECT_EQ(peer_decision(a, 7, 1).cause, CAUSE_MISMATCH);
    EXPECT_EQ(peer_clash(a, 7, 1).id[0], a->id);
    EXPECT_EQ(peer_clash(a, 7, 1).id[1], d->id);
    cluster_free(c);
}

TEST(last_words_that_are_not_the_leavers_own_cost_it_nothing_but_them)
{
    struct cluster *c = three();
    struct peer *a = &c->peers[0], *b = &c->peers[1], *d = &c->peers[2];
    says(a, a, b, 0, OP_RUNNING, CAUSE_NONE);
    says(d, a, b, 0, OP_FINISHED, CAUSE_NONE);
    peer_leave(c, d);
    EXPECT_EQ(a->member_count, 2);
    EXPECT_EQ(peer_decision(a, 7, 0).outcome, OUTCOME_ABORT);
    cluster_free(c);
}

TEST(late_reports_of_an_attempt_are_ignored) /* M2 */
{
    struct cluster *c = cluster_new();
    cluster_members(c, 4, 0);
    struct peer *a = &c->peers[0], *b = &c->peers[1], *x = &c->peers[2], *y = &c->peers[3];
    peer_reports(a, 7, 0, OP_HELD, CAUSE_NONE);
    b->no_frozen = true;
    peer_crash(c, y);
    peer_crash(c, x);
    uint32_t attempt = b->freeze.attempt;
    peer_forget(a);
    b->freeze.attempt = attempt - 1;
    peer_frozen(b); /* nothing listed: would veto */
    cluster_pass(c, 600);
    EXPECT(!peer_saw(a, "VIEW"));
    b->freeze.attempt = attempt;
    peer_reports(b, 7, 0, OP_HELD, CAUSE_NONE);
    peer_frozen(b);
    cluster_pass(c, 600);
    EXPECT(peer_saw(a, "VIEW"));
    EXPECT_EQ(peer_decision(a, 7, 0).outcome, OUTCOME_COMMIT);
    cluster_free(c);
}

TEST(nothing_is_published_before_it_is_durable) /* M4 */
{
    struct cluster *c = three();
    struct peer *a = &c->peers[0];
    c->hold_persist = true;
    peer_crash(c, &c->peers[2]);
    EXPECT_STR(a->log, "FREEZE ");
    struct record rec;
    bool found = false;
    for (size_t at = 0; record_next(c->journal.bytes, c->journal.used, &at, &rec);) {
        found = found || (rec.kind == RECORD_VIEW && rec.value > a->view && rec.run == 77 && rec.epoch == 1);
    }
    EXPECT(found);
    cluster_persisted(c);
    EXPECT_STR(a->log, "FREEZE VIEW ");
    cluster_free(c);
}

TEST(death_after_the_decision_freezes_the_new_view) /* the view is sent as decided, then FREEZE of it follows */
{
    struct cluster *c = three();
    struct peer *a = &c->peers[0], *b = &c->peers[1];
    peer_reports(a, 7, 0, OP_HELD, CAUSE_NONE);
    peer_reports(b, 7, 0, OP_HELD, CAUSE_NONE);
    c->hold_persist = true;
    peer_crash(c, &c->peers[2]);
    peer_crash(c, b);
    EXPECT_STR(a->log, "FREEZE ");
    a->report_count = 0;
    cluster_persisted(c);
    EXPECT_STR(a->log, "FREEZE VIEW FREEZE ");
    EXPECT_EQ(a->member_count, 2);
    EXPECT_EQ(peer_decision(a, 7, 0).outcome, OUTCOME_COMMIT);
    EXPECT_EQ(a->freeze.view, a->view);
    cluster_persisted(c);
    EXPECT_STR(a->log, "FREEZE VIEW FREEZE VIEW ");
    EXPECT_EQ(a->member_count, 1);
    EXPECT_EQ(a->last_view.sizes.global, 1);
    cluster_free(c);
}

TEST(cut_link_freezes_with_the_same_members) /* M1: a lost HOLD would be waited for for ever */
{
    struct cluster *c = three();
    struct peer *a = &c->peers[0], *b = &c->peers[1];
    peer_suspect(c, a, SUSPECT_LINK, CAUSE_LINK_LOST, b);
    EXPECT_STR(a->log, "FREEZE VIEW ");
    EXPECT_EQ(a->member_count, 3);
    EXPECT_EQ(a->last_view.cause, CAUSE_LINK_LOST);
    EXPECT_EQ(a->last_view.removed, 0);
    EXPECT(b->open);
    cluster_free(c);
}

TEST(suspicions_about_another_view_change_nothing)
{
    struct cluster *c = three();
    struct peer *a = &c->peers[0], *b = &c->peers[1];
    a->view--;
    peer_suspect(c, a, SUSPECT_LINK, CAUSE_LINK_LOST, b);
    a->view++;
    EXPECT_STR(a->log, "");
    a->no_frozen = true;
    peer_suspect(c, b, SUSPECT_LINK, CAUSE_LINK_LOST, a);
    uint32_t attempt = a->freeze.attempt;
    peer_suspect(c, a, SUSPECT_LINK, CAUSE_LINK_LOST, b); /* the same view, being frozen already */
    EXPECT_EQ(a->freeze.attempt, attempt);
    EXPECT_STR(a->log, "FREEZE ");
    cluster_free(c);
}

TEST(own_request_aborts_one_operation) /* SUSPECT(operation): same members, its cause */
{
    struct cluster *c = three();
    struct peer *a = &c->peers[0];
    peer_reports(a, 7, 0, OP_HELD, CAUSE_NONE);
    peer_suspect(c, a, SUSPECT_OPERATION, CAUSE_DEADLINE, NULL);
    EXPECT_EQ(a->member_count, 3);
    EXPECT_EQ(peer_decision(a, 7, 0).outcome, OUTCOME_ABORT);
    EXPECT_EQ(peer_decision(a, 7, 0).cause, CAUSE_DEADLINE);
    cluster_free(c);
}

/* A program that would have to mend its calls, or to stop, for what it has not done. */
TEST(disagreement_about_one_operation_is_not_said_of_another)
{
    static const enum cause causes[] = {CAUSE_MISMATCH, CAUSE_DIGEST};
    for (int k = 0; k < 2; k++) {
        struct cluster *c = three();
        struct peer *a = &c->peers[0];
        peer_reports(a, 7, 0, OP_HELD, CAUSE_NONE);
        peer_suspect(c, a, SUSPECT_OPERATION, causes[k], NULL);
        EXPECT_EQ(a->member_count, 3);
        EXPECT_EQ(peer_decision(a, 7, 0).outcome, OUTCOME_ABORT);
        EXPECT_EQ(peer_decision(a, 7, 0).cause, CAUSE_CANCEL);
        EXPECT_EQ(peer_decision(a, 7, 0).culprit, 0);
        cluster_free(c);
    }
}

TEST(edge_that_breaks_three_times_is_avoided) /* HOLD takes another way, plans do not use the pair */
{
    struct cluster *c = three();
    struct peer *a = &c->peers[0], *b = &c->peers[1], *d = &c->peers[2];
    for (int i = 0; i < 3; i++) {
        EXPECT_EQ(d->edge_count, 0);
        d->no_frozen = true;
        peer_suspect(c, a, SUSPECT_LINK, CAUSE_LINK_LOST, b);
        peer_suspect(c, b, SUSPECT_LINK, CAUSE_LINK_LOST, a); /* the other end tells of the same break */
        d->no_frozen = false;
        peer_frozen(d);
        cluster_pass(c, 600);
    }
    EXPECT_EQ(d->edge_count, 1);
    EXPECT_EQ(d->edges[0].a, a->id);
    EXPECT_EQ(d->edges[0].b, b->id);
    EXPECT_EQ(d->edges[0].relay, d->id);
    EXPECT_EQ(d->last_view.plan.ring_ps, 0); /* none goes over a pair without a link */
    EXPECT_EQ(d->last_view.plan.eager_bytes, 0);
    EXPECT_EQ(d->last_view.weights, 3);
    EXPECT_EQ(d->weights[0] + d->weights[1], 0);
    EXPECT_EQ(d->weights[2], 1);
    peer_forget(a);
    peer_suspect(c, a, SUSPECT_LINK, CAUSE_LINK_LOST, b);
    EXPECT_STR(a->log, ""); /* nothing goes over it any more: no reason to end the view */
    a->unreachable = b->id;
    peer_crash(c, d); /* the relay dies, and the two try in vain: the newer of them cannot be kept */
    EXPECT_EQ(b->fence.cause, CAUSE_KICK_UNREACHABLE);
    EXPECT_EQ(a->member_count, 1);
    cluster_free(c);
}

TEST(pair_that_cannot_be_linked_is_avoided_at_once) /* a stall may not be blamed on a third that waits for one of them */
{
    struct cluster *c = three();
    struct peer *a = &c->peers[0], *b = &c->peers[1], *d = &c->peers[2];
    peer_suspect(c, a, SUSPECT_LINK, CAUSE_LINK_LOST, b);
    EXPECT_EQ(d->edge_count, 0);
    peer_suspect(c, b, SUSPECT_LINK, CAUSE_KICK_UNREACHABLE, a);
    EXPECT_EQ(d->edge_count, 1);
    EXPECT_EQ(d->edges[0].relay, d->id);
    EXPECT_EQ(d->member_count, 3);
    for (int i = 0; i < 4; i++) { /* nobody stands in for this one: more patience, then the newer of the two */
        peer_suspect(c, d, SUSPECT_LINK, CAUSE_KICK_UNREACHABLE, a);
        EXPECT_EQ(d->edge_count, 1);
        EXPECT_EQ(d->member_count, 3);
    }
    cluster_free(c);
}

TEST(failure_in_one_group_leaves_others_alone) /* R11 */
{
    struct cluster *c = cluster_new();
    struct peer *a = peer_join(c, 1);
    struct peer *b = peer_join(c, 1), *x = peer_join(c, 2), *y = peer_join(c, 2);
    peer_vote(c, a, VOTE_UPDATE);
    EXPECT_EQ(x->member_count, 2);
    EXPECT_EQ(x->last_view.sizes.groups, 2);
    EXPECT_EQ(x->last_view.sizes.global, 4);
    peer_forget(a);
    peer_forget(x);
    peer_crash(c, b);
    EXPECT_STR(a->log, "FREEZE VIEW ");
    EXPECT_STR(x->log, "");
    EXPECT_EQ(a->last_view.sizes.global, 3);
    EXPECT_EQ(a->last_view.sizes.largest, 2);
    EXPECT_EQ(y->last_view.sizes.global, 4); /* P11: a snapshot */
    cluster_free(c);
}

TEST(peers_that_stall_are_blamed_at_the_end_of_the_chain) /* in a ring one stopped peer stalls all */
{
    struct cluster *c = cluster_new();
    cluster_members(c, 4, 0);
    struct peer *p = c->peers;
    peer_suspect(c, &p[0], SUSPECT_LINK, CAUSE_NO_PROGRESS, &p[1]);
    EXPECT(!peer_saw(&p[0], "FREEZE"));
    peer_suspect(c, &p[1], SUSPECT_LINK, CAUSE_NO_PROGRESS, &p[2]);
    peer_suspect(c, &p[3], SUSPECT_LINK, CAUSE_NO_PROGRESS, &p[0]);
    cluster_pass(c, 250);
    EXPECT_EQ(p[0].last_view.cause, CAUSE_NO_PROGRESS);
    EXPECT_EQ(p[0].last_view.culprit, p[2].id);
    EXPECT_EQ(p[0].member_count, 4);
    peer_suspect(c, &p[3], SUSPECT_LINK, CAUSE_NO_PROGRESS, &p[2]);
    cluster_pass(c, 250);
    EXPECT_EQ(p[0].member_count, 3); /* twice, and two different neighbours say so */
    EXPECT_EQ(p[2].fence.cause, CAUSE_NO_PROGRESS);
    cluster_free(c);
}

TEST(peer_that_neither_neighbours_nor_master_hear_is_excluded)
{
    struct cluster *c = three();
    struct peer *p = c->peers;
    p[2].mute = true;
    cluster_pass(c, 4000);
    EXPECT_EQ(p[0].member_count, 3);
    peer_suspect(c, &p[0], SUSPECT_LINK, CAUSE_PEER_SILENT, &p[2]);
    cluster_pass(c, 1250); /* a heartbeat for others to say the same */
    EXPECT_EQ(p[0].member_count, 2);
    EXPECT_EQ(p[0].last_view.cause, CAUSE_PEER_SILENT);
    cluster_free(c);
}

TEST(operation_that_waits_for_a_voter_is_aborted) /* vote against operation: a cycle */
{
    struct cluster *c = three();
    struct peer *a = &c->peers[0], *b = &c->peers[1];
    peer_vote(c, b, VOTE_UPDATE);
    peer_waits(c, a, &(struct peer_wait){.name.tag = 5, .on = b->id, .ms = 1500, .phase = WAIT_LAUNCH});
    EXPECT_STR(a->log, ""); /* the vote is younger than a heartbeat */
    cluster_pass(c, 1200); /* its next heartbeat says so again */
    EXPECT_STR(a->log, "FREEZE VIEW ");
    EXPECT_EQ(a->last_view.cause, CAUSE_BLOCKED);
    EXPECT_EQ(a->member_count, 3);
    cluster_free(c);
}

TEST(slow_peer_is_never_excluded) /* M1 needs silence, not slowness */
{
    struct cluster *c = three();
    cluster_pass(c, 60000);
    EXPECT_EQ(c->peers[0].member_count, 3);
    EXPECT(!peer_saw(&c->peers[0], "FREEZE"));
    cluster_free(c);
}
