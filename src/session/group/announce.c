/* announce.c - telling the others that an operation was launched here, and the lanes that it was launched there.
 *
 * Larger operations are announced by READY, which grants room, to those they exchange data with; small ones by EAGER, which
 * carries the input, to all.  A relay has its own way of both (path.c).
 * Invariant: lanes hear of a READY once, and only if it names the bundle that is up.
 * SPDX-License-Identifier: MIT */
#include "session/calls/mismatch.h"
#include "session/calls/work.h"
#include "session/group/announce.h"
#include "session/tables/carrier.h"
#include "session/tables/marks.h"
#include "session/tables/peers.h"

/* The frame with what goes to that rank, still without a receiver. */
static struct action *put_input(struct session *s, const struct op *op, uint32_t rank, struct outbox *out)
{
    const struct session_launch *l = &s->slots.at[op->slot].launch;
    struct numeric n;
    size_t bytes;
    PCCL_ASSERT(work_own_numeric(s, l, &n));
    const void *given = work_given(s, l, &n, rank, &bytes);
    struct msg_eager m = {.name = op->name, .params = l->call.params, .bytes = (uint32_t)bytes};
    struct writer *w = outbox_frame(out, FRAME_EAGER, s->run, s->view.view);
    bool encoded = given == s->wire; /* which is used again in this step */
    put_eager(w, &m);
    if (encoded) {
        put_bytes(w, given, bytes);
    }
    struct action *a = outbox_send_many(out, ACT_PEERS);
    a->slot = op->slot;
    if (!encoded) {
        outbox_lend(out, a, given, (uint32_t)bytes);
    }
    return a;
}

void announce_eager(struct session *s, struct op *op, uint32_t rank, struct outbox *out)
{
    const struct op_params *p = &s->slots.at[op->slot].launch.call.params;
    if (rank != NONE) {
        if (peer_reachable(s, rank)) {
            outbox_dest(out, put_input(s, op, rank, out), s->view.ids[rank]);
        }
        return;
    }
    bool each = !plan_kind_alike(p->kind);
    struct action *all = each ? NULL : put_input(s, op, s->view.rank, out);
    for (uint32_t r = 0; r < s->view.world; r++) {
        if (r != s->view.rank && peer_reachable(s, r)) {
            outbox_dest(out, each ? put_input(s, op, r, out) : all, s->view.ids[r]);
        }
    }
}

static bool goes_round(const struct plan_params *plan)
{
    return plan->algorithm == PLAN_RING || plan->algorithm == PLAN_CHAIN;
}

/* Of the ring, before and behind. */
static uint32_t beside(const struct session *s, uint32_t way)
{
    uint32_t n = s->view.world, at = s->view.places[s->view.rank];
    return s->view.ring[(at + (way == 0 ? 1 : n - 1)) % n];
}

/* The ranks that a collective exchanges data with: of small ones all. */
bool announce_neighbour(const struct session *s, const struct op *op, uint32_t rank)
{
    const struct plan_params *plan = &s->slots.at[op->slot].run.plan;
    if (op->eager) {
        return true;
    }
    if (goes_round(plan)) {
        return beside(s, 0) == rank || beside(s, 1) == rank;
    }
    return plan_partners(plan->algorithm, s->view.world, plan->root, s->view.rank, rank);
}

static bool told_to_all(const struct session *s, const struct plan_params *plan)
{
    return plan_hides_late(plan->kind, plan->algorithm) && work_told(s);
}

bool announce_hears(const struct session *s, const struct op *op, uint32_t rank)
{
    return announce_neighbour(s, op, rank) || told_to_all(s, &s->slots.at[op->slot].run.plan);
}

void announce_to(struct session *s, struct op *op, uint32_t rank, struct outbox *out)
{
    if (op->eager) {
        announce_eager(s, op, rank, out);
        return;
    }
    struct peer *p = &s->peers.at[s->view.peer[rank]];
    if (!peer_reachable(s, rank) || p->bundle == 0) {
        return; /* said when its PING, or the bundle, has come */
    }
    const struct slot *c = &s->slots.at[op->slot];
    p->bundle_view = s->view.view;
    struct msg_ready m = {
        .name = op->name, .params = c->launch.call.params, .window = c->launch.window, .bundle = p->bundle,
        .launch = c->run.launch};
    if (m.params.layout == LAYOUT_PAIRS) {
        m.expects = work_takes(s, &c->launch, rank).count;
    }
    put_ready(outbox_frame(out, FRAME_READY, s->run, s->view.view), &m);
    outbox_send(out, ACT_PEERS, p->id);
}

void announce_feed(struct session *s, struct op *op, uint32_t rank, struct outbox *out)
{
    if ((op->phase != OP_RUN && op->phase != OP_HOLDING) || op->eager || op->slot == NONE ||
        !s->slots.at[op->slot].at.started || s->slots.at[op->slot].at.stopped || !op->class->neighbour(s, op, rank)) {
        return;
    }
    if (mismatch_with(s, op, rank)) {
        return; /* it is about to refuse: its plan has no place for what this one would send */
    }
    const struct mark *m = op_mark(s, op, rank);
    const struct peer *p = &s->peers.at[s->view.peer[rank]];
    if (m->ready && (!m->fed || MUTANT(FED_TWICE)) && m->bundle != 0 && m->bundle == p->bundle) {
        mark_of(s, op, rank)->fed = true;
        struct action *a = outbox_add(out, ACT_OP_READY);
        a->slot = op->slot;
        a->id = p->id;
        a->value = m->window;
        a->order = m->launch;
    }
}

/* Whom it is said to, by number, this rank for nobody. */
static uint32_t hearers(const struct session *s, const struct plan_params *plan)
{
    return told_to_all(s, plan) ? s->view.world : goes_round(plan) ? 2 : plan_partner_count(plan->algorithm, s->view.world);
}

static uint32_t hearer(const struct session *s, const struct plan_params *plan, uint32_t i)
{
    if (told_to_all(s, plan)) {
        return i;
    }
    if (goes_round(plan)) {
        return i == 1 && beside(s, 0) == beside(s, 1) ? s->view.rank : beside(s, i);
    }
    return plan_partner(plan->algorithm, s->view.world, plan->root, s->view.rank, i);
}

void announce_launch(struct session *s, struct op *op, struct outbox *out)
{
    const struct plan_params *plan = &s->slots.at[op->slot].run.plan;
    for (uint32_t i = 0, count = hearers(s, plan); i < count; i++) {
        uint32_t rank = hearer(s, plan, i);
        if (rank != s->view.rank) {
            carrier_announce(s, op, rank, out);
        }
    }
    for (uint32_t i = op->marks; i != NONE; i = s->marks.at[i].after) {
        if (s->marks.at[i].rank != s->view.rank) {
            carrier_feed(s, op, s->marks.at[i].rank, out);
        }
    }
}
