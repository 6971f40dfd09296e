/* session_check.c - what must hold between two steps of a session, in one place.
 *
 * Counters, flags and phases are compared after every step; lists, marks, rooms and tables, which cost as much as they are
 * large, every so many steps: each in unit tests and debug builds, else so seldom that a step hardly pays for it.
 * Each rule here was broken by some change that no other test noticed.  Invariant: nothing is written but the count-down.
 * SPDX-License-Identifier: MIT */
#include "core/census.h"
#include "session/calls/complaint.h"
#include "session/relay/path.h"
#include "session/session_check.h"
#include "session/tables/carrier.h"
#include "session/tables/marks.h"
#include "session/tables/optable.h"
#include "session/tables/pair_name.h"
#include "session/tables/peers.h"

/* ---- after every step ---- */

static void check_membership(const struct session *s)
{
    bool member = s->phase == PHASE_MEMBER;
    PCCL_ASSERT(member == (s->view.world > 0));
    PCCL_ASSERT(!member || (s->view.view != 0 && s->id != 0 && s->run != 0));
    PCCL_ASSERT(s->view.world <= s->view.room && s->view.world <= s->ops.width && (!member || s->view.rank < s->view.world));
    PCCL_ASSERT(member || (!s->view.frozen && s->ops.used == 0 && s->owed.used == 0 && !s->peers.replaying));
    PCCL_ASSERT(s->phase != PHASE_IDLE || (!s->master.up && s->admission.view == 0));
    PCCL_ASSERT(!s->master.welcomed || (s->master.up && s->master.lost == 0));
    PCCL_ASSERT(s->admission.view == 0 || member || s->phase == PHASE_JOINING);
    bool joins = s->phase == PHASE_DIALING || s->phase == PHASE_JOINING;
    PCCL_ASSERT((s->connect.called && !s->connect.ended) == joins);
}

static void check_counts(const struct session *s)
{
    PCCL_ASSERT(s->ops.used <= s->ops.count && s->ops.records <= s->ops.used && s->ops.untaken <= s->ops.records);
    PCCL_ASSERT(s->marks.used <= s->marks.count && s->marks.used >= s->ops.used - s->ops.records); /* all have the own one but those on record */
    PCCL_ASSERT(s->slots.used <= s->slots.count);
    PCCL_ASSERT(s->owed.used <= s->owed.count && s->park.left <= s->park.count);
    PCCL_ASSERT(s->tags.used <= s->tags.count);
    PCCL_ASSERT((s->finished.count == 0) == (s->finished.by == INT64_MAX));
    PCCL_ASSERT(s->finished.count < SESSION_FINISHED_BATCH && s->finished.count <= s->ops.records + SESSION_FINISHED_BATCH);
    PCCL_ASSERT(s->slots.used > 0 || s->deferred.first == NONE);
}

static void check_vote(const struct session *s)
{
    bool open = s->vote.kind != VOTE_NONE && !s->vote.ended;
    PCCL_ASSERT(s->vote.kind != VOTE_NONE || (!s->vote.ended && s->state == NULL));
    PCCL_ASSERT(!open || s->phase == PHASE_MEMBER);
    PCCL_ASSERT(!open || s->vote.ballot.kind == s->vote.kind);
    PCCL_ASSERT(!s->fetch.active || (open && s->vote.kind == VOTE_SYNC && s->state != NULL));
    PCCL_ASSERT(!s->fetch.memory_asked || (open && s->vote.kind == VOTE_SYNC));
    PCCL_ASSERT(s->fetch.asks <= SESSION_ASKS && (s->fetch.asks == 0 || (s->fetch.receiving && !s->fetch.staged)));
    PCCL_ASSERT(s->fetch.holder_count <= s->fetch.source_count && s->fetch.source_count <= s->view.room);
    PCCL_ASSERT(!s->fetch.staged || s->fetch.status != STAGED_OK || s->fetch.missing == 0);
    PCCL_ASSERT(s->vote.settled <= s->vote.answered);
}

/* ---- all of it ---- */

static void check_peer(const struct session *s, uint32_t i)
{
    const struct peer *p = &s->peers.at[i];
    if (p->id == 0) {
        PCCL_ASSERT(!p->in_view && !p->in_proposal && !p->link_up && p->parked == 0);
        return;
    }
    PCCL_ASSERT(p->id != s->id && (p->in_view || p->in_proposal) && peer_find(s, p->id) == i);
    PCCL_ASSERT(!p->in_view || (p->rank < s->view.world && s->view.peer[p->rank] == i && s->view.ids[p->rank] == p->id));
    PCCL_ASSERT(!p->in_proposal || s->admission.view != 0);
    PCCL_ASSERT(p->in_view || (p->suspected == CAUSE_NONE && p->replay == NONE && p->parked == 0));
    PCCL_ASSERT(p->link_up || p->their_view == 0); /* what it said on a link that is gone counts no more */
    PCCL_ASSERT(!p->link_up || !p->link_failed);
    PCCL_ASSERT(p->parked <= s->cfg.park_per_link);
    PCCL_ASSERT(p->replay == NONE || !peer_reachable(s, p->rank) || s->peers.replaying || s->view.frozen);
}

static void check_peers(const struct session *s)
{
    uint32_t members = 0;
    for (uint32_t i = 0; i < s->peers.count; i++) {
        check_peer(s, i);
        members += s->peers.at[i].in_view;
    }
    PCCL_ASSERT(members + (s->view.world > 0) == s->view.world);
    struct census ring = {0};
    for (uint32_t r = 0; r < s->view.world; r++) {
        PCCL_ASSERT(r == 0 || s->view.ids[r - 1] < s->view.ids[r]);
        PCCL_ASSERT((r == s->view.rank) == (s->view.ids[r] == s->id));
        census_add(&ring, s->view.ring[r]);
    }
    PCCL_ASSERT(census_whole(&ring, s->view.world));
    for (uint32_t r = 0; r < s->view.world; r++) {
        PCCL_ASSERT(s->view.ring[s->view.places[r]] == r);
    }
}

/* What was counted to a member, whichever it is. */
struct opened {
    uint32_t parked, named, opened, answered, parted;
};

static void check_marks(const struct session *s, const struct op *op, struct census *marks, struct census *parked, struct opened *all)
{
    uint32_t launched = 0;
    for (uint32_t i = op->marks; i != NONE && marks->count <= s->marks.count; i = s->marks.at[i].after) {
        const struct mark *m = &s->marks.at[i];
        uint32_t r = m->rank;
        census_add(marks, i);
        PCCL_ASSERT(m->op == (uint32_t)(op - s->ops.at) && op_mark(s, op, r) == m);
        launched += m->ready;
        PCCL_ASSERT(!m->fed || (m->ready && m->bundle != 0));
        PCCL_ASSERT(!m->wanted || m->dropped);
        PCCL_ASSERT(m->park == 0 || (m->ready && !m->dropped && r != s->view.rank && m->park <= s->park.count));
        PCCL_ASSERT(m->park == 0 || m->park_bytes <= s->cfg.park_block_bytes);
        PCCL_ASSERT(m->park == 0 || !op->eager || op->fold <= r || op->refused != 0);
        if (m->park != 0) {
            census_add(parked, m->park - 1);
            all->parked++;
        }
        PCCL_ASSERT(!m->named || (op->phase == OP_GHOST && op->opener == NONE));
        all->named += m->named;
        PCCL_ASSERT(m->there <= m->said);
        PCCL_ASSERT(!m->parted || (op->refused == 0 && carrier_relays(s, op, r) && m->there < path_gives(s, op, r).bytes));
        all->parted += m->parted;
    }
    PCCL_ASSERT(op->class->two || op->launched == launched);
    all->opened += op->opener != NONE && !op->answered;
    all->answered += op->opener != NONE && op->answered;
}

/* Of what has its turn there, one after the other. */
static uint32_t check_line(const struct session *s, const struct peer *p)
{
    uint32_t count = 0, before = 0;
    for (uint32_t at = p->part_first; at != 0 && count <= s->ops.used; count++) {
        const struct op *op = &s->ops.at[at - 1];
        const struct mark *m = op_mark(s, op, p->rank);
        PCCL_ASSERT(m->parted && m->part_before == before);
        before = at;
        at = m->part_next;
    }
    PCCL_ASSERT(before == p->part_last);
    return count;
}

/* The fields that its phase wants; its marks are counted by the caller. */
static void check_op(const struct session *s, uint32_t i)
{
    const struct op *op = &s->ops.at[i];
    bool launched = op->phase == OP_RUN || op->phase == OP_HOLDING;
    PCCL_ASSERT((op->marks == NONE) == (op->phase == OP_DONE));
    PCCL_ASSERT(launched == (op->slot != NONE));
    PCCL_ASSERT(op->opener == NONE || (op->phase == OP_GHOST && op->opener < s->view.world && op->opener != s->view.rank));
    PCCL_ASSERT(op->phase != OP_GHOST || op->refused == 0 || op->opener != NONE);
    if (op->phase == OP_DONE) {
        PCCL_ASSERT(op->class->two ? pair_owner(s, &op->name) && !op->taken : op_has_finished(s, op, s->view.rank)); /* B8, P10 */
        PCCL_ASSERT(op->finished_count < s->view.world); /* forgotten once all have finished it */
        return;
    }
    const struct mark *own = op_mark(s, op, s->view.rank);
    PCCL_ASSERT(own->refuse == op->refused && (op->refused == 0 || op->settled != UINT32_MAX));
    PCCL_ASSERT(own->ready == launched && own->held == (op->phase == OP_HOLDING));
    PCCL_ASSERT(op->phase != OP_HOLDING || (own->hold_params == op->params && own->hold_digest == op->digest));
    PCCL_ASSERT(!op->eager || op->phase != OP_HOLDING || op->fold == s->view.world);
    for (uint32_t r = 0; launched && op->refused == 0 && r < op->agreed; r++) {
        const struct mark *m = op_mark(s, op, r);
        PCCL_ASSERT(m->held && m->hold_params == op->params && m->hold_digest == op->digest);
    }
    if (launched) {
        const struct slot *c = &s->slots.at[op->slot];
        PCCL_ASSERT(c->at.phase == SLOT_RUNNING && c->op == i && c->launch.call.tag == op->name.tag && c->launch.call.space == op->name.space);
        bool sent = op->name.from == s->id; /* all of it, perhaps: it waits for the word */
        PCCL_ASSERT(op->phase == OP_HOLDING || sent || op->eager || op->whole || op->refused != 0 || c->at.started ||
                    s->view.frozen);
        PCCL_ASSERT(!c->at.started || c->at.stopped || (op->refused == 0 && !s->view.frozen)); /* P4, P10 */
    }
}

static void check_ops(const struct session *s)
{
    struct census marks = {0}, park = {0}, entries = {0};
    struct opened all = {0};
    uint32_t records = 0, untaken = 0, chained = 0;
    for (uint32_t i = 0; i < s->ops.count; i++) {
        const struct op *op = &s->ops.at[i];
        if (op->phase == OP_FREE) {
            continue;
        }
        census_add(&entries, i);
        records += op->phase == OP_DONE;
        untaken += op_untaken(op);
        check_op(s, i);
        if (op->marks != NONE) {
            check_marks(s, op, &marks, &park, &all);
        }
    }
    PCCL_ASSERT(entries.count == s->ops.used && records == s->ops.records && untaken == s->ops.untaken);
    for (uint32_t i = s->ops.free; i != NONE && entries.count <= s->ops.count; i = s->ops.at[i].next) {
        census_add(&entries, i);
    }
    PCCL_ASSERT(census_whole(&entries, s->ops.count));
    PCCL_ASSERT(marks.count == s->marks.used);
    for (uint32_t i = s->marks.free; i != NONE && marks.count <= s->marks.count; i = s->marks.at[i].next) {
        census_add(&marks, i);
    }
    PCCL_ASSERT(census_whole(&marks, s->marks.count));
    for (uint32_t i = 0; i < s->park.left; i++) {
        census_add(&park, s->park.free[i]);
    }
    PCCL_ASSERT(census_whole(&park, s->park.count));
    for (uint32_t b = 0; b < s->ops.buckets; b++) {
        for (uint32_t i = s->ops.bucket[b]; i != NONE && chained <= s->ops.used; i = s->ops.at[i].next) {
            PCCL_ASSERT(s->ops.at[i].phase != OP_FREE);
            chained++;
        }
    }
    PCCL_ASSERT(chained == s->ops.used);
    for (uint32_t i = 0; i < s->peers.count; i++) {
        const struct peer *p = &s->peers.at[i];
        PCCL_ASSERT(p->named <= MOST_NAMED && p->opened <= MOST_OPENED && p->answered <= MOST_ANSWERED);
        all.parked -= p->parked;
        all.named -= p->named;
        all.opened -= p->opened;
        all.answered -= p->answered;
        all.parted -= check_line(s, p);
    }
    PCCL_ASSERT(all.parked == 0 && all.named == 0 && all.opened == 0 && all.answered == 0 && all.parted == 0);
}

static void check_slots(const struct session *s)
{
    uint32_t used = 0, deferred = 0, waiting = 0, windows = 0;
    for (uint32_t i = 0; i < s->slots.count; i++) {
        const struct slot *c = &s->slots.at[i];
        used += c->at.phase != SLOT_FREE;
        windows += c->at.phase != SLOT_FREE && c->launch.call.space == SPACE_WINDOW;
        deferred += c->at.phase == SLOT_DEFERRED && !c->waits;
        waiting += c->waits;
        PCCL_ASSERT(!c->waits || (c->at.phase == SLOT_DEFERRED && s->classes[c->launch.call.space].two && c->launch.call.receives));
        PCCL_ASSERT(!c->at.started || c->at.phase == SLOT_RUNNING || c->at.phase == SLOT_ENDING);
        PCCL_ASSERT(c->at.phase != SLOT_RUNNING || (c->op < s->ops.count && s->ops.at[c->op].slot == i));
        PCCL_ASSERT(c->at.phase == SLOT_FREE || c->at.phase == SLOT_RUNNING || c->op == NONE);
        PCCL_ASSERT(c->at.phase != SLOT_ENDING || c->at.started); /* nothing else keeps it from returning */
        PCCL_ASSERT(c->at.phase != SLOT_RETURNED || c->outcome.result != RESULT_PENDING);
        PCCL_ASSERT((c->at.phase != SLOT_DEFERRED && c->at.phase != SLOT_RUNNING) || s->phase == PHASE_MEMBER);
    }
    PCCL_ASSERT(used == s->slots.used && windows == s->slots.windows && waiting == s->slots.waiting);
    uint32_t last = NONE, tags = 0;
    PCCL_ASSERT(deferred == s->deferred.count);
    for (uint32_t i = s->deferred.first; i != NONE && deferred > 0; i = s->slots.at[i].next) {
        PCCL_ASSERT(s->slots.at[i].at.phase == SLOT_DEFERRED);
        tags += s->classes[s->slots.at[i].launch.call.space].tags_later;
        deferred--;
        last = i;
    }
    PCCL_ASSERT(s->deferred.first != NONE || (s->deferred.count == 0 && s->deferred.passed == NONE));
    PCCL_ASSERT(tags == s->deferred.tags);
    PCCL_ASSERT(s->deferred.passed == NONE || s->slots.at[s->deferred.passed].at.phase == SLOT_DEFERRED);
    PCCL_ASSERT(deferred == 0 && (last == NONE || (last == s->deferred.last && s->slots.at[last].next == NONE)));
}

/* What is kept in order is the least of all, and nobody is forgotten. */
static void check_due(const struct session *s)
{
    int64_t due = INT64_MAX, stuck = INT64_MAX, since = INT64_MIN;
    uint32_t running = 0, before = NONE, suspected = 0;
    for (uint32_t i = 0; i < s->slots.count; i++) {
        const struct slot *c = &s->slots.at[i];
        if (c->at.phase == SLOT_RUNNING) {
            int64_t at = complaint_stuck(s, &s->ops.at[c->op]);
            stuck = at < stuck ? at : stuck;
            due = c->launch.call.deadline < due ? c->launch.call.deadline : due;
            running++;
        }
        due = c->at.phase == SLOT_DEFERRED && c->launch.call.deadline < due ? c->launch.call.deadline : due;
    }
    PCCL_ASSERT(due == heap_least(&s->slots.due) && stuck == heap_least(&s->complaints.stuck));
    PCCL_ASSERT(heap_sound(&s->slots.due) && heap_sound(&s->complaints.stuck));
    for (uint32_t i = s->slots.running; i != NONE && running > 0; i = s->slots.at[i].next) {
        const struct slot *c = &s->slots.at[i];
        PCCL_ASSERT(c->at.phase == SLOT_RUNNING && c->prev == before && s->ops.at[c->op].since >= since);
        since = s->ops.at[c->op].since;
        before = i;
        running--;
    }
    PCCL_ASSERT(running == 0 && s->slots.running_last == before && (before == NONE || s->slots.at[before].next == NONE));
    for (uint32_t i = 0; i < s->peers.count; i++) {
        suspected += s->peers.at[i].suspected != CAUSE_NONE;
    }
    for (uint32_t i = s->complaints.suspected; i != NONE; i = s->peers.at[i].next_suspected, suspected--) {
        PCCL_ASSERT(suspected > 0 && s->peers.at[i].suspected != CAUSE_NONE);
    }
    PCCL_ASSERT(suspected == 0);
}

static void check_tags(const struct session *s)
{
    uint32_t calls = 0, chained = 0, queued = 0, named = 0;
    struct census owed = {0};
    for (uint32_t b = 0; b < s->tags.buckets; b++) {
        for (uint32_t i = s->tags.bucket[b]; i != NONE && chained <= s->tags.used; i = s->tags.at[i].next) {
            PCCL_ASSERT(i < s->tags.used);
            chained++;
        }
    }
    PCCL_ASSERT(chained == s->tags.used);
    for (uint32_t i = 0; i < s->tags.used; i++) {
        const struct tag *t = &s->tags.at[i];
        PCCL_ASSERT(t->refusals <= t->next_seq + BOUNDS_REFUSALS);
        if (t->slot != NONE) {
            PCCL_ASSERT(t->slot < s->slots.count && s->slots.at[t->slot].at.phase != SLOT_FREE &&
                        s->slots.at[t->slot].launch.call.tag == t->tag && s->slots.at[t->slot].launch.call.space == t->space);
            calls++;
        }
        PCCL_ASSERT(t->space == SPACE_ORDERED ? t->slot == NONE : t->open == 0);
        calls += t->open;
        queued += t->queued;
        for (uint32_t k = t->waiting; k != NONE; k = s->slots.at[k].next) {
            named += s->slots.at[k].partner != 0;
        }
        for (uint32_t k = t->owed; k != NONE && owed.count <= s->owed.count; k = s->owed.at[k].next) {
            PCCL_ASSERT(s->owed.at[k].outcome != 0 && s->owed.at[k].name.tag == t->tag && s->owed.at[k].name.space == t->space);
            const struct owed *after = s->owed.at[k].next == NONE ? NULL : &s->owed.at[s->owed.at[k].next];
            PCCL_ASSERT(after == NULL || s->owed.at[k].view < after->view ||
                        (s->owed.at[k].view == after->view && s->owed.at[k].name.seq < after->name.seq)); /* calls take them in this order */
            census_add(&owed, k);
        }
    }
    for (uint32_t i = 0; i < s->slots.count; i++) {
        calls += s->slots.at[i].at.phase != SLOT_FREE && s->classes[s->slots.at[i].launch.call.space].two;
    }
    PCCL_ASSERT(calls == s->slots.used); /* of a tag one at a time */
    PCCL_ASSERT(queued == named);
    PCCL_ASSERT(owed.count == s->owed.used);
    for (uint32_t k = s->owed.free; k != NONE && owed.count <= s->owed.count; k = s->owed.at[k].next) {
        PCCL_ASSERT(s->owed.at[k].outcome == 0);
        census_add(&owed, k);
    }
    PCCL_ASSERT(census_whole(&owed, s->owed.count));
}

static void check_fetch(const struct session *s)
{
    if (!s->fetch.active || !s->fetch.receiving || s->fetch.staged) {
        return;
    }
    uint32_t asked = 0, missing = 0, marked = 0;
    for (uint32_t i = 0; i < s->fetch.source_count; i++) {
        PCCL_ASSERT(!s->fetch.holder_down[i] || s->fetch.asked[i] == 0);
        asked += s->fetch.asked[i];
    }
    for (uint32_t i = 0; i < s->state->leaf_count; i++) {
        uint8_t leaf = s->state->leaf_state[i];
        missing += leaf == LEAF_WANTED || leaf == LEAF_WANTED_WHOLE || leaf == LEAF_ASKED;
        marked += leaf == LEAF_ASKED;
        PCCL_ASSERT(leaf == LEAF_SAME || s->state->stage_at[i] != 0);
    }
    PCCL_ASSERT(asked == s->fetch.asks && marked == s->fetch.asks);
    PCCL_ASSERT(missing == s->fetch.missing && s->fetch.whole_missing <= s->fetch.missing);
    PCCL_ASSERT(s->fetch.asks == 0 || s->state->staging_bytes >= s->fetch.need);
}

void session_check(struct session *s)
{
    check_membership(s);
    check_counts(s);
    check_vote(s);
    if (s->check_in-- > 1) {
        return;
    }
    s->check_in = check_interval(s->cfg.check_every, s->ops.count + s->marks.count + s->tags.count + s->peers.count);
    check_peers(s);
    check_ops(s);
    check_slots(s);
    check_due(s);
    check_tags(s);
    check_fetch(s);
}
