/* install.c - FREEZE and VIEW: ending a view and installing the next.
 *
 * From FREEZE on nothing of the view becomes held, is sent or counted (P4), and the report leaves in the same step.  VIEW
 * brings the decisions: own operations end by them, aborts and refusals of numbers not launched here are owed to the next
 * calls (P7), then the tables are cleared and the new view stands.  Invariant: views only grow; a decision is applied once.
 * SPDX-License-Identifier: MIT */
#include "session/calls/complaint.h"
#include "session/calls/culprit.h"
#include "session/calls/departure.h"
#include "session/calls/finished.h"
#include "session/calls/mismatch.h"
#include "session/calls/roster.h"
#include "session/calls/slots.h"
#include "session/group/refusal.h"
#include "session/links/peer_links.h"
#include "session/membership/ballot.h"
#include "session/membership/install.h"
#include "session/membership/listing.h"
#include "session/membership/membership_text.h"
#include "session/pair/pair.h"
#include "session/state/fetch.h"
#include "session/tables/optable.h"
#include "session/tables/peers.h"
#include "session/tables/tags.h"
#include "session/tables/view_table.h"

void install_freeze(struct session *s, struct reader *r, struct outbox *out)
{
    struct msg_freeze m;
    bool good = get_freeze(r, &m);
    for (uint32_t i = 0; good && i < m.survivors; i++) {
        (void)get_u64(r);
    }
    if (!good || !reader_done(r)) {
        wish_redial(s, "the master sent a malformed FREEZE");
        return;
    }
    if (s->phase != PHASE_MEMBER || m.view != s->view.view) {
        return;
    }
    if (!s->view.frozen) { /* each further attempt is the same event */
        membership_say_freeze(s, &m, out);
    }
    s->view.frozen_at = s->view.frozen ? s->view.frozen_at : s->clock.now;
    s->view.frozen = true;
    s->view.attempt = m.attempt;
    if (!MUTANT(LATE_HOLD)) {
        for (uint32_t i = 0; s->slots.used > 0 && i < s->slots.count; i++) {
            if (s->slots.at[i].at.phase == SLOT_RUNNING) {
                slot_stop(s, i, out);
            }
        }
    }
    listing_frozen(s, out);
}

/* ---- decisions ---- */

/* A decision as it was read, with what comes behind it. */
struct decision {
    struct op_decision d;
    struct op_clash clash; /* MISMATCH */
};

static bool get_decision(struct reader *r, struct decision *out)
{
    bool good = get_op_decision(r, &out->d);
    out->clash = (struct op_clash){0};
    return good && (out->d.cause != CAUSE_MISMATCH || get_op_clash(r, &out->clash));
}

static void owe(struct session *s, const struct msg_view *m, const struct op_decision *d, const struct op_clash *clash)
{
    struct owed what = {.outcome = d->outcome, .cause = d->cause != 0 ? d->cause : m->cause, .culprit = d->culprit,
                        .loss = m->cause, .lost = m->culprit, .view = m->view, .name = d->name,
                        .sizes_view = m->view, .sizes = m->sizes};
    if (d->outcome == OUTCOME_REFUSED && what.cause == CAUSE_OLD_VIEW) { /* as those have them that were refused in their view */
        what.sizes_view = s->view.view;
        what.sizes = s->view.sizes;
    }
    if (what.cause == CAUSE_MISMATCH) {
        mismatch_owe(s, m->view, &d->name, clash);
    }
    if (MUTANT(NODEBT) || owed_add(s, &what)) {
        return;
    }
    if (s->tags.used < s->cfg.max_tags && s->owed.used < s->cfg.max_owed) {
        wish_leave(s, CAUSE_NO_MEMORY, RESULT_NO_MEMORY, "no memory for the errors of operations not called yet", true);
    } else {
        wish_leave(s, CAUSE_KICK_PROTOCOL, RESULT_GONE, "too many aborted operations not called yet", true);
    }
}

/* Not what members that report what they did can lead to: whoever goes on would tell its caller other than they tell theirs. */
static void disbelieve(struct session *s)
{
    wish_leave(s, CAUSE_KICK_PROTOCOL, RESULT_GONE,
               "the master's view contradicts what was done here: some member reported what is not so", true);
}

static void decide_own(struct session *s, struct op *op, const struct msg_view *m, const struct op_decision *d,
                       struct outbox *out)
{
    uint32_t slot = op->slot;
    uint8_t cause = d->cause != 0 ? d->cause : m->cause;
    bool sends = op->name.from == s->id; /* B9: finished there */
    if (d->outcome == OUTCOME_COMMIT && op->phase != OP_HOLDING && !sends) { /* commit means that every survivor holds the result */
        disbelieve(s);
        return;
    }
    op->slot = NONE;
    if (d->outcome == OUTCOME_COMMIT) {
        slot_end(s, slot, RESULT_OK, CAUSE_NONE, 0, out);
        slot_stop(s, slot, out);
    } else {
        s->slots.at[slot].outcome.view_ended = d->outcome == OUTCOME_ABORT;
        if (d->outcome == OUTCOME_ABORT) {
            slot_sizes(s, slot, m->view, &m->sizes);
        } else if (cause == CAUSE_OLD_VIEW) { /* it was refused in the view that ends, where others may have returned */
            slot_sizes(s, slot, s->view.view, &s->view.sizes);
        }
        slot_end(s, slot, slot_result(&s->slots.at[slot], cause), cause, d->culprit, out);
    }
    bool told = s->slots.at[slot].outcome.result == RESULT_MISMATCH; /* both calls: more than the view knows */
    if (cause == m->cause && d->culprit == m->culprit && !told) { /* else the text is about what ended the view, not this operation */
        memcpy(s->slots.at[slot].outcome.text, m->text, sizeof m->text);
    }
}

static void decide(struct session *s, const struct msg_view *m, const struct decision *decided, struct outbox *out)
{
    const struct op_decision *d = &decided->d;
    if (d->name.to != 0 && d->name.from != s->id && d->name.to != s->id) {
        return; /* B7: of two others */
    }
    struct op *op = op_find(s, &d->name);
    if (op != NULL && op->slot != NONE) {
        if (d->cause == CAUSE_MISMATCH) {
            mismatch_learn(s, op, &decided->clash);
        }
        uint32_t slot = op->slot;
        decide_own(s, op, m, d, out);
        if (s->slots.at[slot].outcome.result == RESULT_MISMATCH && s->slots.at[slot].outcome.differs == 0) {
            mismatch_tell(s, &s->slots.at[slot], &decided->clash); /* there was no memory to learn it */
        }
        return;
    }
    if ((op != NULL && op->phase == OP_DONE) || op_past(s, &d->name)) {
        if (d->outcome == OUTCOME_ABORT) { /* finished here: everybody held it */
            disbelieve(s);
        }
        return;
    }
    if (d->outcome == OUTCOME_COMMIT) { /* not launched here is a veto */
        disbelieve(s);
        return;
    }
    if (d->name.space != SPACE_WINDOW || MUTANT(WINDOW_OWED)) { /* O2: nobody comes to it any more */
        owe(s, m, d, &decided->clash);
    }
    if (op != NULL) {
        op_drop(s, op);
    }
}

/* Refused here, but neither launched nor decided: it found no room in the reports, or in the view.  If it has ended at anybody, all members
 * had refused it with the same cause, so each that has not called it yet knows by itself what its call has to return. */
static void owe_undecided(struct session *s, const struct msg_view *m)
{
    for (uint32_t i = 0; s->ops.used > 0 && i < s->ops.count && !s->wish.leave; i++) {
        const struct op *op = &s->ops.at[i];
        if (op->phase == OP_GHOST && op->refused != 0 && op->name.space != SPACE_WINDOW) {
            struct op_clash clash = mismatch_clash(s, op);
            owe(s, m, &(struct op_decision){.name = op->name, .outcome = OUTCOME_REFUSED,
                                            .cause = op->refused, .culprit = op->culprit}, &clash);
        }
    }
}

static bool apply_decisions(struct session *s, const struct msg_view *m, struct reader *r, struct outbox *out)
{
    struct reader check = *r;
    for (uint32_t i = 0; i < m->decisions; i++) {
        struct decision d;
        if (!get_decision(&check, &d)) {
            return false;
        }
    }
    if (!reader_done(&check)) {
        return false;
    }
    for (uint32_t i = 0; i < m->decisions && s->phase == PHASE_MEMBER && !s->wish.leave; i++) {
        struct decision d;
        (void)get_decision(r, &d);
        decide(s, m, &d, out);
    }
    for (uint32_t i = 0; s->slots.used > 0 && i < s->slots.count && !s->wish.leave; i++) {
        if (s->slots.at[i].at.phase != SLOT_RUNNING) {
            continue;
        }
        if (s->slots.at[i].launch.call.space != SPACE_WINDOW) { /* every listed operation is decided */
            disbelieve(s);
        } else { /* O4: votes do not wait for those */
            s->slots.at[i].outcome.view_ended = true;
            slot_end(s, i, RESULT_LOST, m->cause, m->culprit, out);
        }
    }
    return true;
}

/* Those that have ended well and still send: an honest member that holds a result has all that it needs, one that lies may never take it. */
static void stop_ended(struct session *s, struct outbox *out)
{
    for (uint32_t i = 0; s->slots.used > 0 && i < s->slots.count; i++) {
        if (s->slots.at[i].at.phase == SLOT_ENDING) {
            slot_stop(s, i, out);
        }
    }
}

/* ---- members ---- */

static void sort_members(struct member_info *list, uint32_t n)
{
    for (uint32_t i = 1; i < n; i++) {
        struct member_info x = list[i];
        uint32_t k = i;
        for (; k > 0 && list[k - 1].id > x.id; k--) {
            list[k] = list[k - 1];
        }
        list[k] = x;
    }
}

static bool is_listed(const uint64_t *ids, uint32_t n, uint64_t id)
{
    for (uint32_t i = 0; i < n; i++) {
        if (ids[i] == id) {
            return true;
        }
    }
    return false;
}

/* Reads removed and added ids into scratch_members: the members of the next view in rank order. */
static bool read_members(struct session *s, const struct msg_view *m, struct reader *r)
{
    if (m->removed > s->peers.count || m->added > s->view.room || m->members > s->view.room ||
        (m->parent == 0 ? m->removed != 0 : m->parent != s->view.view)) {
        return false;
    }
    for (uint32_t i = 0; i < m->removed; i++) {
        s->scratch_ids[i] = get_u64(r);
    }
    uint32_t n = 0;
    for (uint32_t rank = 0; m->parent != 0 && rank < s->view.world; rank++) {
        uint64_t id = s->view.ids[rank];
        if (!is_listed(s->scratch_ids, m->removed, id)) {
            s->scratch_members[n] = (struct member_info){.id = id, .key = s->view.key};
            if (s->view.peer[rank] != NONE) {
                s->scratch_members[n] = s->peers.at[s->view.peer[rank]].info;
            }
            n++;
        }
    }
    for (uint32_t i = 0; i < m->added; i++) {
        if (n >= s->view.room || !get_member_info(r, &s->scratch_members[n])) {
            return false;
        }
        n++;
    }
    sort_members(s->scratch_members, n);
    bool self = false;
    for (uint32_t i = 0; i < n; i++) {
        self = self || s->scratch_members[i].id == s->id;
        if (i > 0 && s->scratch_members[i].id == s->scratch_members[i - 1].id) {
            return false;
        }
    }
    return self && n == m->members && !r->bad;
}

/* The ring must name every rank once, or plans would not match. */
static bool read_order(struct session *s, const struct msg_view *m, struct reader *r)
{
    struct view *v = &s->view;
    uint32_t n = m->members, positive = m->weights == 0;
    for (uint32_t i = 0; i < n; i++) {
        v->weights[i] = 0;
    }
    for (uint32_t i = 0; i < n; i++) {
        v->ring[i] = get_u32(r);
        if (v->ring[i] >= n || v->weights[v->ring[i]]++ != 0) {
            return false;
        }
    }
    v->weighted = m->weights != 0;
    for (uint32_t i = 0; i < m->weights; i++) {
        v->weights[i] = get_u32(r);
        positive += v->weights[i] != 0;
    }
    return (m->weights == 0 || m->weights == n) && positive != 0 && !r->bad;
}

/* Slices must have the same owners and ways everywhere: what is no set of trees is not followed in part. */
static bool read_trees(struct session *s, const struct msg_view *m, struct reader *r)
{
    struct tree_set *t = &s->view.trees;
    t->members = m->members;
    for (t->count = 0; t->count < m->trees; t->count++) {
        if (!get_view_tree(r, &t->share[t->count], t->parent + (size_t)t->count * m->members, m->members)) {
            return false;
        }
    }
    return m->trees == 0 || tree_set_valid(t);
}

/* Who lacks a link with whom stands in the view, so all members say the same. */
static bool trees_are_linked(const struct view *v)
{
    for (uint32_t i = 0; i < v->edges && !MUTANT(TREES_UNLINKED); i++) {
        uint32_t a = 0, b = 0;
        for (uint32_t r = 0; r < v->world; r++) {
            a = v->ids[r] == v->edge[i].a ? r : a;
            b = v->ids[r] == v->edge[i].b ? r : b;
        }
        for (uint32_t t = 0; t < v->trees.count; t++) {
            const uint16_t *parent = v->trees.parent + (size_t)t * v->world;
            if (parent[a] == b || parent[b] == a) {
                return false;
            }
        }
    }
    return true;
}

/* Ascending, so that a pair is found without looking at all. */
static bool read_edges(struct session *s, const struct msg_view *m, struct reader *r)
{
    struct view *v = &s->view;
    if (m->edges > s->view.edge_room) {
        return false;
    }
    for (v->edges = 0; v->edges < m->edges; v->edges++) {
        struct missing_edge *e = &v->edge[v->edges];
        bool good = get_missing_edge(r, e) && e->a < e->b && (v->edges == 0 || edge_before(e - 1, e->a, e->b));
        if (!good) {
            return false;
        }
    }
    return true;
}

/* Ascending by (key, id); all keys of a world without a given size are the same. */
static void rank_members(struct view *v, const struct member_info *list, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) {
        uint32_t k = i;
        for (; k > 0 && list[v->ranked[k - 1]].key > list[i].key; k--) {
            v->ranked[k] = v->ranked[k - 1];
        }
        v->ranked[k] = i;
    }
    for (uint32_t k = 0; k < n; k++) {
        v->shown[v->ranked[k]] = k;
    }
}

static void adopt_members(struct session *s, const struct msg_view *m)
{
    struct view *v = &s->view;
    for (uint32_t i = 0; i < s->peers.count; i++) {
        struct peer *p = &s->peers.at[i];
        p->in_view = false;
        p->in_proposal = false;
        p->suspected = CAUSE_NONE;
        p->replay = NONE;
        p->path_up = false;
        p->part_first = p->part_last = 0;
        p->rank = NONE;
    }
    v->world = 0; /* peer_get must not look ranks up while they change */
    for (uint32_t i = 0; i < m->members; i++) {
        uint32_t p = peer_find(s, s->scratch_members[i].id);
        if (p != NONE) {
            s->peers.at[p].in_view = true;
        }
    }
    peers_drop_unwanted(s); /* whom the last view or a proposal wanted, but not this one, makes room first */
    for (uint32_t i = 0; i < m->members; i++) {
        const struct member_info *info = &s->scratch_members[i];
        uint32_t p = info->id == s->id ? NONE : peer_get(s, info->id);
        PCCL_ASSERT(p != NONE || info->id == s->id);
        v->ids[i] = info->id;
        v->peer[i] = p;
        if (p == NONE) {
            v->rank = i;
            v->key = info->key;
            continue;
        }
        s->peers.at[p].in_view = true;
        s->peers.at[p].heard = s->clock.now;
        s->peers.at[p].rank = i;
        s->peers.at[p].info = *info;
    }
    rank_members(v, s->scratch_members, m->members);
    v->world = m->members;
    v->view = m->view;
    v->plan = m->plan;
    v->sizes = m->sizes;
    v->trees_linked = trees_are_linked(v);
    view_relays(s);
    for (uint32_t i = 0; i < v->world; i++) {
        v->places[v->ring[i]] = i;
    }
    roster_order(s);
}

/* Links that broke while the next view was on its way, or were never made: report them in this view too. */
static void greet_members(struct session *s, struct outbox *out)
{
    links_spare(s, out);
    outbox_add(out, ACT_LINKS);
    links_announce(s, out);
    for (uint32_t r = 0; r < s->view.world; r++) {
        struct peer *p = r == s->view.rank ? NULL : &s->peers.at[s->view.peer[r]];
        if (p != NULL && p->their_view == s->view.view) {
            p->path_told = false;
            peers_replay(s, p);
        }
    }
}

/* The next members are in scratch_members, ascending. */
static void note_lost(struct session *s, const struct msg_view *m)
{
    uint32_t n = 0;
    for (uint32_t rank = 0; rank < s->view.world; rank++) {
        while (n < m->members && s->scratch_members[n].id < s->view.ids[rank]) {
            n++;
        }
        if (n == m->members || s->scratch_members[n].id != s->view.ids[rank]) {
            s->view.lost_id = s->view.lost_in == m->view ? s->view.lost_id : s->view.ids[rank];
            s->view.lost_in = m->view;
            roster_lose(s, m->view, rank);
            culprit_remember(s, rank);
        }
    }
}

void install_view(struct session *s, struct reader *r, struct outbox *out)
{
    struct msg_view m;
    if (!get_view(r, &m)) {
        wish_redial(s, "the master sent a malformed VIEW");
        return;
    }
    if (m.view <= s->view.view || (s->phase != PHASE_MEMBER && s->phase != PHASE_JOINING)) {
        return; /* P7: only greater views */
    }
    if (!read_members(s, &m, r) || !read_order(s, &m, r) || !read_trees(s, &m, r) || !read_edges(s, &m, r)) {
        wish_leave(s, CAUSE_KICK_PROTOCOL, RESULT_GONE, "the master sent a view that does not follow from the last one",
                   true);
        return;
    }
    s->view.last = m.over != 0;
    if (!apply_decisions(s, &m, r, out)) {
        wish_leave(s, CAUSE_KICK_PROTOCOL, RESULT_GONE, "the master sent malformed decisions", true);
        return;
    }
    stop_ended(s, out);
    if (s->view.frozen) { /* else all wait in an update, which skips it */
        owe_undecided(s, &m);
    }
    if (s->wish.leave) {
        return;
    }
    note_lost(s, &m);
    op_clear(s);
    finished_forget(s);
    ballot_new_view(s);
    refusal_forget(s);
    complaint_forget(s);
    tags_renew(s);
    s->view.frozen = false;
    links_no_proposal(s);
    membership_say_view(s, &m, out);
    view_stall(s, m.plan.stall_ms);
    adopt_members(s, &m);
    pair_new_view(s, &m, out);
    greet_members(s, out);
    if (m.over != 0) {
        struct member_name named = culprit_find(s, m.culprit);
        wish_over(s, m.cause, m.text, &named);
        return;
    }
    if (s->phase == PHASE_JOINING) {
        ballot_admitted(s, m.vote_number); /* join_settle makes it a member */
    } else if (m.answers != VOTE_NONE && m.answers == s->vote.kind && !s->vote.ended) {
        ballot_by_view(s, &m, out);
    }
    fetch_members_changed(s, out);
}
