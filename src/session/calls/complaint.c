/* complaint.c - what only the master can settle: lost links and stuck operations, told to it, and told again when it is back.
 *
 * Running operations do not need the master (G7).  But one whose member is lost, that stalls, whose results differ or that was given up
 * when it was complete here ends by a freeze alone, and a refusal that a lost member does not answer just so.  While
 * the master is gone too, nobody freezes: after the master-loss time this peer leaves, which ends every call (P6, P9).
 * Behind a missing edge that is heard of only when the relay has left: twice that time.
 * Invariant: a complaint stands until its view ends, or the link or the operation that it is about goes on.
 * SPDX-License-Identifier: MIT */
#include <stdio.h>

#include "session/calls/complaint.h"

static void tell(struct session *s, const struct msg_suspect *complaint, const char *text, struct outbox *out)
{
    if (s->phase != PHASE_MEMBER || !s->master.welcomed) {
        return; /* said when the master is back */
    }
    struct msg_suspect m = *complaint;
    m.view = s->view.view;
    snprintf(m.text, sizeof m.text, "%s", text);
    put_suspect(outbox_frame(out, FRAME_SUSPECT, s->run, s->view.view), &m);
    outbox_send(out, ACT_MASTER, 0);
}

/* LINK_LOST: it may well be made again; PEER_LOST: nobody listens at the other end any more; PEER_SILENT: nothing comes over
 * it; KICK_UNREACHABLE: it cannot be made. */
static void tell_link(struct session *s, const struct peer *p, struct outbox *out)
{
    tell(s, &(struct msg_suspect){.target = SUSPECT_LINK, .cause = p->suspected, .peer = p->id},
         p->suspected == CAUSE_PEER_SILENT ? "no sign of life on the link"
         : p->suspected == CAUSE_LINK_LOST ? "the link closed"
         : p->suspected == CAUSE_PEER_LOST ? "the link closed and a new one is refused"
                                           : "the link cannot be made",
         out);
}

void complaint_spare(struct session *s, const struct peer *p, struct outbox *out)
{
    tell(s, &(struct msg_suspect){.target = SUSPECT_LINK, .cause = CAUSE_LINK_LOST, .peer = p->id},
         "a link that the view does not use closed", out);
}

static void tell_op(struct session *s, const struct op *op, struct outbox *out)
{
    tell(s, &(struct msg_suspect){.target = SUSPECT_OPERATION, .cause = op->suspected, .peer = op->suspected_peer,
                                  .name = op->name},
         op->suspected_text, out);
}

static void tell_behind(struct session *s, struct outbox *out)
{
    uint8_t cause = s->complaints.behind_asked.cause;
    if (cause != CAUSE_NONE) {
        tell(s, &(struct msg_suspect){.target = SUSPECT_OPERATION, .cause = cause, .name.space = SPACE_ORDERED},
             cause == CAUSE_NO_PROGRESS ? "other members have not made the calls that ended early here"
                                        : "aborted while members behind it had not made their calls",
             out);
    }
}

void complaint_behind(struct session *s, uint8_t cause, struct outbox *out)
{
    s->complaints.behind_asked.cause = cause;
    s->complaints.behind_asked.at = s->clock.now;
    tell_behind(s, out);
}

void complaint_forget(struct session *s)
{
    s->complaints.behind_asked.cause = CAUSE_NONE;
    s->complaints.suspected = NONE;
}

void complaint_ends(struct session *s, uint32_t slot)
{
    heap_set(&s->complaints.stuck, slot, INT64_MAX);
}

void complaint_table_use(struct session *s, void *storage, uint32_t calls)
{
    heap_use(&s->complaints.stuck, storage, calls);
}

void complaint_table_forget(struct session *s)
{
    s->complaints.stuck.count = 0;
}

/* A call waits for it. */
static bool unfinished(const struct op *op)
{
    return (op->phase == OP_RUN || op->phase == OP_HOLDING) && op->slot != NONE;
}

static int64_t earlier(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static int64_t later(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

/* A stall is told of at every stall time for as long as it lasts; anything else does not pass by itself. */
static bool passed(const struct session *s, const struct op *op)
{
    return op->suspected == CAUSE_NO_PROGRESS && s->clock.now - op->suspected_last > 2 * s->view.stall_ns;
}

int64_t complaint_stuck(const struct session *s, const struct op *op)
{
    int64_t at = op->lost_at != 0 ? op->lost_at : INT64_MAX;
    return op->suspected == CAUSE_NONE || passed(s, op) ? at : earlier(at, op->suspected_at);
}

/* Only the first one is told, so only that has to be right. */
void complaint_pass(struct session *s)
{
    while (s->complaints.stuck.used > 0) {
        uint32_t slot = heap_first(&s->complaints.stuck);
        int64_t since = complaint_stuck(s, &s->ops.at[s->slots.at[slot].op]);
        if (since == heap_least(&s->complaints.stuck)) {
            return;
        }
        heap_set(&s->complaints.stuck, slot, since);
    }
}

/* What this peer has to do with that one may have bytes missing. */
static void lose(struct session *s, struct peer *p, enum cause cause)
{
    bool tried = cause == CAUSE_KICK_UNREACHABLE || cause == CAUSE_PEER_LOST; /* what cannot be made again was lost before */
    bool anew = p->suspected == CAUSE_NONE || !tried;
    if (p->suspected == CAUSE_NONE) {
        p->next_suspected = s->complaints.suspected;
        s->complaints.suspected = (uint32_t)(p - s->peers.at);
    }
    p->suspected = (uint8_t)cause;
    p->lost_at = anew ? s->clock.now : p->lost_at;
    bool broken = cause != CAUSE_PEER_SILENT; /* a link that is up and only stands still may go on with nothing missing */
    for (uint32_t i = 0; broken && s->ops.used > 0 && i < s->ops.count; i++) {
        struct op *op = &s->ops.at[i];
        if (unfinished(op) && op->lost_at == 0 && op->class->concerns(s, op, p->rank)) {
            op->lost_at = later(p->lost_at, op->since);
            heap_set(&s->complaints.stuck, op->slot, complaint_stuck(s, op));
        }
    }
}

void complaint_link(struct session *s, struct peer *p, enum cause cause, struct outbox *out)
{
    lose(s, p, cause);
    tell_link(s, p, out);
}

void complaint_path(struct session *s, struct peer *p)
{
    lose(s, p, CAUSE_LINK_LOST);
}

void complaint_op(struct session *s, struct op *op, enum cause cause, uint64_t peer, const char *text, struct outbox *out)
{
    if (op->suspected != cause || passed(s, op)) {
        op->suspected_at = s->clock.now;
    } else if (cause != CAUSE_NO_PROGRESS) {
        return; /* it stands */
    }
    op->suspected = (uint8_t)cause;
    op->suspected_peer = peer;
    op->suspected_text = text;
    op->suspected_last = s->clock.now;
    if (unfinished(op)) {
        heap_set(&s->complaints.stuck, op->slot, complaint_stuck(s, op));
    }
    tell_op(s, op, out);
}

void complaint_again(struct session *s, struct outbox *out)
{
    tell_behind(s, out);
    for (uint32_t r = 0; r < s->view.world; r++) {
        const struct peer *p = r == s->view.rank ? NULL : &s->peers.at[s->view.peer[r]];
        if (p != NULL && p->suspected != CAUSE_NONE && !p->spare) {
            tell_link(s, p, out);
        }
    }
    for (uint32_t i = 0; s->ops.used > 0 && i < s->ops.count; i++) {
        const struct op *op = &s->ops.at[i];
        if (unfinished(op) && op->suspected != CAUSE_NONE && op->suspected != CAUSE_NO_PROGRESS) {
            tell_op(s, op, out);
        }
    }
}

bool complaint_silent(const struct session *s, const struct peer *p)
{
    return p->suspected == CAUSE_PEER_SILENT && s->clock.now - p->heard > s->view.stall_ns;
}

static bool reached(const struct session *s, const struct peer *p)
{
    return p->suspected == CAUSE_NONE || p->path_up || (p->link_up && p->bundle != 0 && !complaint_silent(s, p));
}

/* When the first of those members was lost that are still out of reach. */
static int64_t out_of_reach(const struct session *s)
{
    int64_t at = INT64_MAX;
    for (uint32_t i = s->complaints.suspected; i != NONE; i = s->peers.at[i].next_suspected) {
        if (!reached(s, &s->peers.at[i])) {
            at = earlier(at, s->peers.at[i].lost_at);
        }
    }
    return at;
}

/* Since when the oldest receive waits that has no number, being from any source, or behind such; INT64_MAX: there is none. */
static int64_t unnumbered(const struct session *s)
{
    int64_t oldest = INT64_MAX;
    for (uint32_t i = 0; s->slots.waiting > 0 && i < s->slots.count; i++) {
        const struct slot *c = &s->slots.at[i];
        bool counts = c->waits && c->launch.call.space != SPACE_WINDOW && c->since < oldest;
        oldest = counts ? c->since : oldest;
    }
    return oldest;
}

int64_t complaint_since(const struct session *s)
{
    if (s->phase != PHASE_MEMBER || s->master.welcomed || s->master.lost == 0) {
        return INT64_MAX;
    }
    if (s->view.frozen) {
        return s->master.lost;
    }
    int64_t at = s->vote.kind != VOTE_NONE && !s->vote.ended ? s->vote.since : INT64_MAX;
    at = earlier(earlier(at, heap_least(&s->complaints.stuck)), s->complaints.behind_asked.cause != CAUSE_NONE ? s->complaints.behind_asked.at : INT64_MAX);
    int64_t lost = out_of_reach(s);
    /* Whoever is out of reach ends nothing, neither what ran before nor what is called later: the oldest call counts. */
    if (lost != INT64_MAX && s->slots.running != NONE) {
        at = earlier(at, later(lost, s->ops.at[s->slots.at[s->slots.running].op].since));
    }
    if (lost != INT64_MAX && s->deferred.first != NONE) {
        at = earlier(at, later(lost, s->slots.at[s->deferred.first].since)); /* it waits for records, which go when all members say so */
    }
    int64_t unmatched = lost != INT64_MAX ? unnumbered(s) : INT64_MAX;
    if (unmatched != INT64_MAX) { /* it would have been received from the lost one, for all that is known */
        at = earlier(at, later(lost, unmatched));
    }
    return at == INT64_MAX ? at : later(at, s->master.lost);
}
