/* view.c - ending a view and making the next: freeze, decide, persist, publish.
 *
 * A loss or a suspicion freezes the view: all survivors report, one decision is made of exactly their reports, and it
 * is durable before the first VIEW leaves (M4).
 * Invariant: views[current] is what was published last; its decisions are kept until the next one is (M5).
 * SPDX-License-Identifier: MIT */
#include <stdio.h>
#include <string.h>

#include "core/id.h"
#include "world/world_state.h"
#include "world/edges.h"
#include "world/election.h"
#include "world/ending.h"
#include "world/linking.h"
#include "world/member_entry.h"
#include "world/member_out.h"
#include "world/member_read.h"
#include "world/moves.h"
#include "world/report.h"
#include "world/roll.h"
#include "world/view.h"
#include "world/view_plan.h"
#include "world/recording.h"
#include "world/view_read.h"
#include "world/view_ring.h"
#include "world/view_trees.h"
#include "world/vote.h"

/* ---- making a view ------------------------------------------------------------------------------------------------- */

void view_propose(struct world *w, struct group *g, enum vote_kind answers, bool joining)
{
    const struct view_record *cur = view_current(g);
    struct view_record *next = view_next(g);
    next->view = g->next_number++;
    next->answers = (uint8_t)answers;
    next->members = next->removed = next->edges = next->decisions = 0;
    for (uint32_t i = 0; i < w->member_room; i++) {
        const struct member *mb = &w->members[i];
        bool in = member_accepted_in(w, mb, g) ||
                  (joining && mb->phase == MEMBER_PENDING && mb->joining && member_group(w, mb) == g);
        if (in) {
            uint32_t at = next->members++;
            for (; at > 0 && next->ids[at - 1] > mb->id; at--) {
                next->ids[at] = next->ids[at - 1];
            }
            next->ids[at] = mb->id;
        }
    }
    uint32_t stayed = 0;
    for (uint32_t i = 0; i < next->members; i++) {
        next->fresh[i] = !view_has(cur, next->ids[i]);
        stayed += !next->fresh[i];
    }
    for (uint32_t i = 0; i < cur->members; i++) {
        if (!view_has(next, cur->ids[i])) {
            next->gone[next->removed++] = cur->ids[i];
        }
    }
    next->parent = stayed > 0 ? cur->view : 0;
    g->lost = g->suspect = false; /* taken into account by this proposal */
}

void view_finish(struct world *w, struct group *g, bool joining)
{
    struct view_record *next = view_next(g);
    bool ended = next->removed > 0 || view_ending(g);
    next->cause = ended ? g->cause : CAUSE_NONE; /* M8 */
    next->culprit = ended ? g->culprit : 0;
    snprintf(next->text, sizeof next->text, "%s", ended ? g->text : "");
    next->over = ending_with(w, next);
    next->sizes = view_sizes(w, g, joining);
    ring_repair(w, view_current(g), next);
    view_plan(w, view_current(g), next);
    view_trees(w, view_current(g), next);
}

void view_empty(struct world *w, struct group *g)
{
    struct view_record *v = view_current(g);
    election_reset(w, g, "nobody left");
    v->members = v->edges = v->decisions = v->removed = 0;
    v->view = v->parent = 0;
    v->calibration = (struct calibration){.kind = {{0}}};
    g->revision = 0; /* none is left who took part in the last sync: the group starts afresh */
    g->lost = g->suspect = false;
    g->collect_until = NEVER;
    w->changed = true;
}

void view_put_batch(struct world *w, struct group *only, struct writer *to, uint64_t number, uint32_t behind)
{
    uint32_t left = behind + (only != NULL);
    for (uint32_t i = 0; i < w->group_room; i++) {
        left += only == NULL && w->groups[i].in_batch;
    }
    if (world_once(w)) {
        recording_used(w, to, number, left);
    }
    for (uint32_t i = 0; i < w->group_room; i++) {
        struct group *g = &w->groups[i];
        if (g == only || (only == NULL && g->in_batch)) {
            recording_view(w, g, to, number, --left);
        }
    }
}

uint64_t view_persist(struct world *w, struct group *only)
{
    struct outbox *o = w->common->out;
    writer_init(&o->writer, o->bytes + o->used, o->bytes_capacity - o->used);
    uint64_t number = common_number(&w->common->next_persist, w->slot);
    view_put_batch(w, only, &o->writer, number, 0);
    common_persist(o, number);
    return number;
}

/* ---- sending ------------------------------------------------------------------------------------------------------- */

/* The published view: as a difference to its parent, or whole for those who come new into it. */
static void put_view_frame(struct world *w, struct group *g, bool whole, uint32_t vote_number)
{
    const struct view_record *v = view_current(g);
    struct msg_view msg = {.view = v->view, .parent = whole ? 0 : v->parent, .answers = v->answers, .over = v->over,
                           .cause = v->cause, .culprit = v->culprit, .vote_number = vote_number, .sizes = v->sizes, .plan = v->plan};
    memcpy(msg.text, v->text, sizeof msg.text);
    msg.members = v->members;
    msg.removed = whole ? 0 : v->removed;
    msg.edges = v->edges;
    msg.weights = v->edges > 0 ? v->members : 0;
    msg.trees = v->trees.count;
    msg.decisions = whole ? 0 : v->decisions;
    for (uint32_t i = 0; i < v->members; i++) {
        msg.added += whole || v->fresh[i];
    }
    struct writer *frame = outbox_frame(w->common->out, FRAME_VIEW, w->run, v->view);
    put_view(frame, &msg);
    for (uint32_t i = 0; i < msg.removed; i++) {
        put_u64(frame, v->gone[i]);
    }
    for (uint32_t i = 0; i < v->members; i++) {
        if (whole || v->fresh[i]) {
            member_put(w, frame, v->ids[i]);
        }
    }
    for (uint32_t i = 0; i < v->members; i++) {
        put_u32(frame, v->ring[i]);
    }
    uint64_t *lacks = w->common->scratch_ids;
    memset(lacks, 0, msg.weights * sizeof *lacks);
    for (uint32_t i = 0; i < v->edges; i++) {
        lacks[view_place(v, v->edge[i].a)] = lacks[view_place(v, v->edge[i].b)] = 1;
    }
    for (uint32_t i = 0; i < msg.weights; i++) {
        put_u32(frame, lacks[i] == 0);
    }
    for (uint32_t i = 0; i < msg.trees; i++) {
        put_view_tree(frame, v->trees.share[i], v->trees.parent + (size_t)i * v->members, v->members);
    }
    for (uint32_t i = 0; i < v->edges; i++) {
        put_missing_edge(frame, &v->edge[i]);
    }
    uint32_t next = 0; /* they are in the order of the decisions */
    for (uint32_t i = 0; i < msg.decisions; i++) {
        put_op_decision(frame, &v->decision[i]);
        if (v->decision[i].cause == CAUSE_MISMATCH) {
            bool known = next < v->clashes && v->clash[next].decision == i;
            struct op_clash none = {0};
            put_op_clash(frame, known ? &v->clash[next++].clash : &none);
        }
    }
}

static bool fresh_in(const struct view_record *v, uint64_t id)
{
    uint32_t rank = view_place(v, id);
    return rank != SLOT_NONE && v->fresh[rank];
}

void view_send(struct world *w, struct group *g, struct member *only)
{
    const struct view_record *v = view_current(g);
    if (only != NULL) {
        put_view_frame(w, g, fresh_in(v, only->id), only->answered);
        outbox_send(w->common->out, MASTER_SEND, only->conn);
        only->view_sent_at = w->common->now;
        return;
    }
    for (int whole = 0; whole < 2; whole++) {
        struct action *a = NULL;
        for (uint32_t i = 0; i < v->members; i++) {
            struct member *mb = member_find(w, v->ids[i]);
            if (mb == NULL || v->fresh[i] != (whole == 1)) {
                continue;
            }
            mb->view_sent_at = mb->conn == SLOT_NONE ? NEVER : w->common->now;
            if (mb->conn == SLOT_NONE) {
                continue;
            }
            if (a == NULL) {
                put_view_frame(w, g, whole == 1, mb->answered);
                a = outbox_send_many(w->common->out, MASTER_SEND);
            }
            outbox_dest(w->common->out, a, mb->conn);
        }
    }
}

void view_send_freeze(struct world *w, struct group *g, struct member *only)
{
    const struct view_record *v = view_current(g);
    struct msg_freeze f = {.view = v->view, .attempt = g->attempt, .cause = g->cause, .culprit = g->culprit};
    for (uint32_t i = 0; i < v->members; i++) {
        f.survivors += member_find(w, v->ids[i]) != NULL;
    }
    struct writer *frame = outbox_frame(w->common->out, FRAME_FREEZE, w->run, v->view);
    put_freeze(frame, &f);
    for (uint32_t i = 0; i < v->members; i++) {
        if (member_find(w, v->ids[i]) != NULL) {
            put_u64(frame, v->ids[i]);
        }
    }
    struct action *a = outbox_send_many(w->common->out, MASTER_SEND);
    for (uint32_t i = 0; i < v->members; i++) {
        const struct member *mb = member_find(w, v->ids[i]);
        if (mb != NULL && mb->conn != SLOT_NONE && (only == NULL || only == mb)) {
            outbox_dest(w->common->out, a, mb->conn);
        }
    }
}

/* ---- freezing ------------------------------------------------------------------------------------------------------ */

/* One more attempt with those who are left: only reports of this one will count (M2). */
static void freeze_attempt(struct world *w, struct group *g)
{
    g->attempt++;
    g->survivors = g->unreported = member_count(w, g, MEMBER_ACCEPTED);
    g->lost = g->suspect = false;
    g->report_by = w->common->now + group_dead_ns(w, g);
    report_reset(w, g);
    for (uint32_t i = 0; i < w->member_room; i++) {
        if (member_group(w, &w->members[i]) == g) {
            w->members[i].reported = false;
        }
    }
    view_send_freeze(w, g, NULL);
}

void view_frozen(struct world *w, struct member *mb, struct reader *r)
{
    struct group *g = member_group(w, mb);
    struct msg_frozen f;
    if (!get_frozen(r, &f) || mb->phase != MEMBER_ACCEPTED || f.attempt > g->attempt) {
        member_violation(w, mb, "a report that cannot be");
        return;
    }
    if (!report_counts(w, g, mb, f.view, f.attempt)) { /* M2 */
        return;
    }
    mb->known_view = f.view;
    enum report_verdict verdict = report_take(w, g, mb, &f, r);
    if (verdict == REPORT_FULL) {
        member_exclude(w, mb, CAUSE_KICK_FULL, "the group has more operations in flight than a view can decide");
        return;
    }
    if (verdict == REPORT_NO_MEMORY) {
        member_exclude(w, mb, CAUSE_NO_MEMORY, "the master has no memory for its report");
        return;
    }
    if (verdict == REPORT_WRONG) {
        member_violation(w, mb, "a report that cannot be");
        return;
    }
    mb->reported = true;
    g->unreported--;
    w->changed = true;
}

/* Reports are sent in the step that hears FREEZE: a peer that shows life but no report for so long is no survivor. */
void view_tick(struct world *w)
{
    if (w->common->now < view_deadline(w)) {
        return;
    }
    for (uint32_t i = 0; i < w->member_room; i++) {
        struct member *mb = &w->members[i];
        const struct group *g = member_group(w, mb);
        if (mb->phase != MEMBER_ACCEPTED || w->common->now < g->report_by) {
            continue;
        }
        if (g->phase == GROUP_FREEZING && !mb->reported) {
            member_exclude(w, mb, CAUSE_PEER_SILENT, "no report on the view that is being ended");
        } else if (g->phase == GROUP_LINKING && !mb->linked) {
            member_exclude(w, mb, CAUSE_PEER_SILENT, "did not say whom it can be linked with in the next view");
        }
    }
}

int64_t view_deadline(const struct world *w)
{
    int64_t due = NEVER;
    for (uint32_t i = 0; i < w->group_room; i++) {
        const struct group *g = &w->groups[i];
        if (view_ending(g) && g->report_by < due) {
            due = g->report_by;
        }
    }
    return due;
}

/* The next view, members and missing edges known, goes to the journal. */
static void view_decide(struct world *w, struct group *g, const char *why)
{
    struct view_record *next = view_next(g);
    if (view_ending(g)) {
        ending_blame(w, g);
        report_decide(w, g, next);
    }
    view_finish(w, g, false);
    world_move(w, PHASE_GROUP, &g->phase, GROUP_PERSISTING, g->label, next->view, why);
    g->persist = view_persist(w, g); /* M4: publish only when it is durable */
}

/* Proposes the members that are left; false: nobody knows whether all of them can be linked or relayed. */
static bool propose_left(struct world *w, struct group *g)
{
    view_propose(w, g, VOTE_NONE, false);
    edges_inherit(w, g);
    return !edges_unsure(w, g);
}

/* M10: one more attempt to link the members that are left. */
static void link_left(struct world *w, struct group *g)
{
    g->link_attempt = linking_begin(w, g);
    g->report_by = w->common->now + 2 * w->common->config.admit_ns;
    linking_send(w, g, g->link_attempt, NULL);
}

/* All reports are in.  A pair that would be left without link and relay is asked to try before anybody loses its place for it. */
static void settle_reported(struct world *w, struct group *g)
{
    if (propose_left(w, g)) {
        view_decide(w, g, "all reports are in");
        return;
    }
    world_move(w, PHASE_GROUP, &g->phase, GROUP_LINKING, g->label, view_next(g)->view, "a pair has no relay");
    g->doubted = false;
    link_left(w, g);
}

static void settle_linked(struct world *w, struct group *g)
{
    bool again;
    uint64_t unlinked = edges_close_linked(w, g, &g->doubted, &again);
    if (again) {
        link_left(w, g);
        return;
    }
    if (unlinked != 0) {
        edges_exclude(w, g, unlinked);
        return;
    }
    view_decide(w, g, "links are made");
}

static void settle_normal(struct world *w, struct group *g)
{
    if (w->form.phase == FORM_OVER) { /* who is left has heard so, or will, and goes */
        if (g->lost && member_count(w, g, MEMBER_ACCEPTED) == 0) {
            view_empty(w, g);
        }
        return;
    }
    bool busy = w->admit.phase != ADMIT_IDLE || w->optimise.phase == OPTIMISE_PERSISTING, ends = ending_wants(w, g);
    if ((!g->lost && !g->suspect && !ends) || busy) {
        return; /* an admission takes losses into its next attempt; what is being persisted is published first */
    }
    if (member_count(w, g, MEMBER_ACCEPTED) == 0) {
        view_empty(w, g);
        return;
    }
    bool voting = vote_all_in(w, g, VOTE_UPDATE) || (MUTANT(QSKIP) && vote_all_in(w, g, VOTE_QUERY));
    if (voting && !g->suspect && !ends && view_known_to_all(w, g)) { /* M6: nobody is in an operation */
        if (vote_all_in(w, NULL, VOTE_UPDATE)) {
            return; /* the update itself makes the next view */
        }
        if (propose_left(w, g)) {
            view_decide(w, g, "lost while all wait in an update");
            return;
        }
    }
    ending_blame(w, g);
    world_move(w, PHASE_GROUP, &g->phase, GROUP_FREEZING, g->label, view_current(g)->view, "freeze");
    freeze_attempt(w, g);
}

void view_settle(struct world *w, struct group *g)
{
    switch ((enum group_phase)g->phase) {
    case GROUP_NORMAL:
        settle_normal(w, g);
        break;
    case GROUP_FREEZING:
        if (member_count(w, g, MEMBER_ACCEPTED) == 0) {
            world_move(w, PHASE_GROUP, &g->phase, GROUP_NORMAL, g->label, 0, "nobody left");
            view_empty(w, g);
        } else if (g->lost) {
            freeze_attempt(w, g); /* M1, M2: the set only shrinks */
            w->changed = true;
        } else if (g->unreported == 0) {
            settle_reported(w, g);
        }
        break;
    case GROUP_LINKING:
        if (g->lost) { /* with fewer members other pairs may lack a relay: from the reports on */
            world_move(w, PHASE_GROUP, &g->phase, GROUP_FREEZING, g->label, view_current(g)->view, "lost while links are made");
            freeze_attempt(w, g);
        } else if (g->unlinked == 0) {
            settle_linked(w, g);
        }
        break;
    case GROUP_PERSISTING: /* further losses wait: the view is sent as decided, then it is frozen */
    case GROUP_FREE:
    case GROUP_PHASES:
        break;
    }
}

/* ---- publishing ---------------------------------------------------------------------------------------------------- */

/* It is told of a shorter stall time with this view: what it was silent for until then counts by that of before. */
static void stall_begins(struct world *w, struct member *mb)
{
    int64_t beat_at = w->common->now + member_heartbeat_ns(w, mb);
    mb->heard_at = w->common->now;
    mb->beat_at = beat_at < mb->beat_at ? beat_at : mb->beat_at;
    roll_due(w, mb);
}

static void view_install(struct world *w, struct group *g)
{
    uint32_t stall_ms = view_current(g)->plan.stall_ms;
    g->current = 1 - g->current;
    struct view_record *v = view_current(g);
    for (uint32_t i = 0; i < v->members; i++) {
        struct member *mb = member_find(w, v->ids[i]);
        if (mb == NULL && !g->lost) {
            g->lost = true;
            g->cause = CAUSE_PEER_LOST;
            g->culprit = v->ids[i];
            snprintf(g->text, sizeof g->text, "peer " ID_FORMAT " of group %u: lost while it was admitted",
                     ID_PARTS(v->ids[i]), g->label);
        }
        if (mb != NULL && mb->phase == MEMBER_PENDING) {
            roll_move(w, mb, MEMBER_ACCEPTED, v->view, "admitted");
            mb->joining = false;
            w->had_members = true;
        }
        if (mb != NULL && v->plan.stall_ms > 0 && (v->plan.stall_ms != stall_ms || v->fresh[i])) {
            stall_begins(w, mb);
        }
        if (mb != NULL) {
            mb->link_lost_at = mb->refused_at = 0;
            roll_due(w, mb);
            mb->failures = v->members < g->views[1 - g->current].members ? 0 : mb->failures; /* a source may have gone */
            mb->waits_for = MUTANT(COMPLAINT_KEPT) ? mb->waits_for : 0;
            mb->unheard_by = 0;
            mb->wait = (struct peer_wait){0};
            roll_out(w, mb);
            mb->vote.msg.passed = 0;
            roll_in(w, mb);
        }
    }
    g->suspect = false;
    g->collect_until = NEVER;
    g->silent = false;
    g->silent_to = 0;
    g->sync.elect_at = 0;
}

/* Whom this view answers; newcomers begin with the number that the others now have. */
static void view_answer(struct world *w, struct group *g)
{
    const struct view_record *v = view_current(g);
    uint32_t number = 0;
    bool known = false;
    for (uint32_t i = 0; i < v->members; i++) {
        struct member *mb = member_find(w, v->ids[i]);
        if (mb == NULL) {
            continue;
        }
        if (v->fresh[i]) {
            mb->answered = number;
            mb->answer.view = v->view; /* its admission was its first answer */
            continue;
        }
        if (v->answers != VOTE_NONE && mb->vote.kind == v->answers) {
            vote_answered_by_view(w, mb, v);
        }
        number = known ? number : mb->answered;
        known = true;
    }
}

void view_publish(struct world *w, struct group *g)
{
    view_install(w, g);
    view_answer(w, g);
    view_send(w, g, NULL);
    if (view_current(g)->over) {
        ending_published(w);
    }
    for (uint32_t i = 0; i < w->member_room; i++) {
        struct member *mb = &w->members[i];
        if (member_accepted_in(w, mb, g) && mb->replay_late) {
            mb->replay_late = false;
            vote_replay(w, mb);
        }
        if (MUTANT(DROPVOTES) && member_accepted_in(w, mb, g)) {
            roll_out(w, mb);
            mb->vote.kind = VOTE_NONE;
            roll_in(w, mb);
        }
    }
}

void view_persisted(struct world *w, uint64_t number)
{
    for (uint32_t i = 0; i < w->group_room; i++) {
        struct group *g = &w->groups[i];
        if (g->phase == GROUP_PERSISTING && g->persist == number) {
            g->persist = 0;
            view_publish(w, g);
            world_move(w, PHASE_GROUP, &g->phase, GROUP_NORMAL, g->label, view_current(g)->view, "published");
        }
    }
}
