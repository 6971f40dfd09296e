/* waits.c - whom the calls of this session wait for, for the program that asks and for the master.
 *
 * An operation waits for those it exchanges data with: in a ring its two neighbours, of whom it hears READY; what holds them up, the
 * master knows from their heartbeats, and says in its own.  A wait for a launch is one for a program, with no limit;
 * all others are for machines.  Behind a missing edge READY comes of what goes by a relay only.
 * SPDX-License-Identifier: MIT */
#include "session/group/behind.h"
#include "session/membership/waits.h"
#include "session/tables/carrier.h"
#include "session/tables/marks.h"
#include "session/tables/optable.h"
#include "session/tables/peers.h"
#include "wire/ranks.h"

/* It has not launched, and we would have heard if it had. */
static bool missing(const struct session *s, const struct op *op, uint32_t rank)
{
    return rank != s->view.rank && !op_mark(s, op, rank)->ready && op->class->hears(s, op, rank) &&
           (carrier_relays(s, op, rank) || !bitset_has(s->view.apart, rank));
}

bool waits_launched(const struct session *s, const struct op *op)
{
    for (uint32_t r = 0; r < s->view.world; r++) {
        if (missing(s, op, r)) {
            return false;
        }
    }
    return true;
}

/* What this operation waits for of that rank. */
static enum wait_phase wait_of(const struct session *s, const struct op *op, uint32_t rank)
{
    const struct mark *m = op_mark(s, op, rank);
    if (!op->class->concerns(s, op, rank) || rank == s->view.rank || (op->refused != 0 ? m->refuse == op->refused : m->held)) {
        return WAIT_NONE;
    }
    if (op->refused != 0) {
        return WAIT_HOLD; /* its word on the end: sessions give it by themselves */
    }
    if (op->asked != 0) {
        return WAIT_HOLD;
    }
    if (missing(s, op, rank)) {
        return WAIT_LAUNCH; /* also of an operation without elements, which is complete here at once */
    }
    return op->phase == OP_HOLDING ? WAIT_HOLD : op->class->neighbour(s, op, rank) ? WAIT_DATA : WAIT_NONE;
}

static bool waiting(const struct op *op)
{
    return (op->phase == OP_RUN || op->phase == OP_HOLDING) && op->slot != NONE;
}

/* Ranks that have not launched are told of in turn: the master may know of one that it votes, whichever it is. */
static uint32_t turn_of(const struct session *s, uint32_t rank)
{
    return MUTANT(WAIT_FIRST) ? 0 : (rank + s->view.world - s->master.wait_turn % s->view.world) % s->view.world;
}

/* The rank that holds it up: one that has not launched; in a ring else the one whose data come from. */
static uint32_t held_up_by(const struct session *s, const struct op *op, enum wait_phase *phase)
{
    uint32_t n = s->view.world, found = NONE, before = s->view.ring[(s->view.places[s->view.rank] + n - 1) % n];
    *phase = WAIT_NONE;
    for (uint32_t r = 0; r < n; r++) {
        enum wait_phase of = wait_of(s, op, r);
        bool better = found == NONE || (of == WAIT_LAUNCH && *phase != WAIT_LAUNCH);
        if (of == *phase && found != NONE) {
            better = of == WAIT_LAUNCH ? turn_of(s, r) < turn_of(s, found) : r == before;
        }
        if (of != WAIT_NONE && better) {
            found = r;
            *phase = of;
        }
    }
    return found;
}

/* The oldest receive from any source that is matched with nothing, first of those that a caller waits in; null: none. */
static const struct slot *unmatched(const struct session *s)
{
    const struct slot *found = NULL;
    for (uint32_t i = 0; s->slots.waiting > 0 && i < s->slots.count; i++) {
        const struct slot *c = &s->slots.at[i];
        bool any = c->waits && c->partner == 0 && c->launch.call.space != SPACE_WINDOW;
        bool alike = found == NULL || c->launch.call.awaited == found->launch.call.awaited;
        if (any && (alike ? found == NULL || c->since < found->since : c->launch.call.awaited)) {
            found = c;
        }
    }
    return found;
}

/* Of the number that calls in the order of issue wait for: it has not come to that. */
static bool is_behind(const struct session *s, const struct op *number, uint32_t rank)
{
    return number != NULL && !op_has_finished(s, number, rank);
}

/* What a heartbeat may say: of those that it could, the one whose turn it is, then the oldest. */
struct told {
    int64_t oldest;
    uint32_t nearest;
    struct peer_wait *out;
};

static void offer(const struct session *s, struct told *t, const struct op_name *name, uint32_t rank, enum wait_phase phase, int64_t since)
{
    bool launch = phase == WAIT_LAUNCH, alike = launch == (t->out->phase == WAIT_LAUNCH);
    uint32_t turn = launch ? turn_of(s, rank) : 0;
    bool before = turn < t->nearest || (turn == t->nearest && since < t->oldest);
    if (t->oldest == INT64_MAX || (launch && !alike) || (alike && before)) {
        t->oldest = since;
        t->nearest = turn;
        *t->out = (struct peer_wait){.name = *name, .on = s->view.ids[rank], .ms = (uint32_t)((s->clock.now - since) / 1000000),
                                     .phase = (uint8_t)phase};
    }
}

void waits_oldest(const struct session *s, struct peer_wait *out)
{
    struct told t = {.oldest = INT64_MAX, .out = out};
    *out = (struct peer_wait){.phase = WAIT_NONE};
    for (uint32_t i = 0; s->ops.used > 0 && i < s->ops.count; i++) {
        const struct op *op = &s->ops.at[i];
        enum wait_phase phase;
        uint32_t rank = waiting(op) && op->name.space != SPACE_WINDOW ? held_up_by(s, op, &phase) : NONE;
        if (rank != NONE) {
            offer(s, &t, &op->name, rank, phase, op->since);
        }
    }
    for (uint32_t i = 0; s->slots.waiting > 0 && i < s->slots.count && !MUTANT(LINE_UNTOLD); i++) {
        const struct slot *c = &s->slots.at[i]; /* behind one from any source: it has no number, but waits for somebody by name */
        uint32_t rank = c->waits && c->launch.call.space != SPACE_WINDOW ? view_rank(s, c->partner) : NONE;
        if (rank != NONE) {
            struct op_name name = {.space = c->launch.call.space, .tag = c->launch.call.tag, .from = c->partner, .to = s->id,
                                   .seq = OP_NO_NUMBER};
            offer(s, &t, &name, rank, WAIT_LAUNCH, c->since);
        }
    }
    const struct slot *c = NULL;
    const struct op *number = MUTANT(BEHIND_UNTOLD) ? NULL : behind_number(s, &c);
    for (uint32_t r = 0; number != NULL && r < s->view.world; r++) {
        if (is_behind(s, number, r)) {
            offer(s, &t, &number->name, r, WAIT_LAUNCH, c->since);
        }
    }
    c = out->phase == WAIT_LAUNCH || MUTANT(ANY_UNTOLD) ? NULL : unmatched(s);
    if (c != NULL) {
        uint32_t seq = c->launch.call.awaited ? OP_NO_NUMBER : 0;
        *out = (struct peer_wait){.name = {.space = c->launch.call.space, .tag = c->launch.call.tag, .to = s->id, .seq = seq},
                                  .ms = (uint32_t)((s->clock.now - c->since) / 1000000), .phase = WAIT_LAUNCH};
    }
}

/* ---- for the program ---- */

static const char *phase_name(uint8_t phase)
{
    static const char *const names[] = {[WAIT_NONE] = NULL, [WAIT_LAUNCH] = "launch", [WAIT_DATA] = "data", [WAIT_HOLD] = "hold"};
    return names[phase];
}

static const char *vote_name(uint8_t kind)
{
    static const char *const names[] = {[VOTE_NONE] = NULL, [VOTE_UPDATE] = "update", [VOTE_QUERY] = "query",
                                        [VOTE_OPTIMISE] = "optimise", [VOTE_SYNC] = "sync"};
    return names[kind];
}

/* What the master has said of the one that is waited for. */
static void add_then(const struct session *s, struct session_wait *w)
{
    const struct msg_heartbeat *m = &s->vote.told;
    if (w->peer != 0 && m->about == w->peer) {
        w->told = true;
        w->then = m->wait.phase != WAIT_NONE ? m->wait.on : 0;
        w->then_name = m->wait.name;
        w->then_phase = phase_name(m->wait.phase);
        w->then_vote = vote_name(m->vote);
    }
}

/* Calls that have no number yet, since some member has not come to what was refused here. */
static uint32_t waits_behind(const struct session *s, struct session_wait *out, uint32_t capacity)
{
    uint32_t n = 0;
    const struct slot *c = NULL;
    const struct op *number = behind_number(s, &c);
    while (number != NULL && n < capacity) {
        for (uint32_t r = 0; r < s->view.world && n < capacity; r++) {
            if (is_behind(s, number, r)) {
                out[n++] = (struct session_wait){.slot = (uint32_t)(c - s->slots.at), .name = number->name, .peer = s->view.ids[r],
                                                 .since = c->since, .phase = phase_name(WAIT_LAUNCH)};
            }
        }
        bool last = c == &s->slots.at[s->deferred.passed];
        number = last ? NULL : number;
        c = last ? c : &s->slots.at[c->next];
    }
    return n;
}

uint32_t session_waits(const struct session *s, struct session_wait *out, uint32_t capacity)
{
    uint32_t n = 0;
    uint64_t caller = s->cfg.derived.callers > 0 ? s->vote.told.vote_on : 0;
    bool forming = s->connect.called && !s->connect.ended && (ranks_missing(&s->vote.told.seats) > 0 || caller != 0);
    if (forming && n < capacity) {
        out[n++] = (struct session_wait){.slot = SESSION_NO_SLOT, .peer = caller, .since = s->connect.since, .phase = "formation"};
    } else if (s->connect.called && !s->connect.ended && n < capacity) {
        out[n++] = (struct session_wait){.slot = SESSION_NO_SLOT, .peer = s->vote.told.vote_on, .since = s->connect.since, .phase = "connect"};
    }
    if (s->vote.kind != VOTE_NONE && !s->vote.ended && n < capacity) {
        out[n++] = (struct session_wait){.slot = SESSION_NO_SLOT, .peer = s->vote.told.vote_on, .since = s->vote.since,
                                         .phase = vote_name(s->vote.kind)};
    }
    for (uint32_t i = 0; s->ops.used > 0 && i < s->ops.count; i++) {
        const struct op *op = &s->ops.at[i];
        for (uint32_t r = 0; waiting(op) && r < s->view.world && n < capacity; r++) {
            enum wait_phase phase = wait_of(s, op, r);
            if (phase != WAIT_NONE) {
                out[n++] = (struct session_wait){.name = op->name, .slot = op->slot, .peer = s->view.ids[r], .since = op->since,
                                                 .phase = phase_name((uint8_t)phase)};
            }
        }
    }
    for (uint32_t i = 0; s->slots.waiting > 0 && i < s->slots.count && n < capacity; i++) {
        const struct slot *c = &s->slots.at[i];
        if (c->waits && c->launch.call.space != SPACE_WINDOW) { /* without a number yet; peer 0: for any member */
            out[n++] = (struct session_wait){.name = {.space = c->launch.call.space, .tag = c->launch.call.tag}, .slot = i, .peer = c->partner,
                                             .since = c->since, .phase = phase_name(WAIT_LAUNCH)};
        }
    }
    n += waits_behind(s, out + n, capacity - n);
    for (uint32_t i = 0; i < n; i++) {
        add_then(s, &out[i]);
    }
    return n;
}

uint32_t session_missing(const struct session *s, uint32_t *ranks, uint32_t capacity)
{
    uint32_t n = 0;
    bool forming = s->connect.called && !s->connect.ended;
    for (uint32_t i = 0; forming && i < s->vote.told.seats.count; i++) {
        if (!ranks_claimed(&s->vote.told.seats, i) && n++ < capacity) {
            ranks[n - 1] = i;
        }
    }
    return n;
}
