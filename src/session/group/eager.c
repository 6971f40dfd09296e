/* eager.c - small operations: what each member gives travels with its launch, everybody reduces for himself (the tiny plan).
 *
 * Contributions are folded, or put in their places, in rank order as they come in turn, straight from the frame; those that come
 * early are parked, and what finds no room is dropped but for its header and asked for again (WANT) when its turn has come, from
 * the sender's borrowed buffer.  So progress needs no room at all.  Several peers compute the same elements of an all-reduce: each
 * NaN is the canonical one.  Invariant: what ranks below op->fold give is in the accumulator, or in its place; but the own input of
 * a plain type, if it comes first, is read where it lies, with the next one.
 * SPDX-License-Identifier: MIT */
#include "kernels/hash.h"
#include "session/calls/mismatch.h"
#include "session/calls/work.h"
#include "session/group/announce.h"
#include "session/group/eager.h"
#include "session/group/hold.h"
#include "session/group/refusal.h"
#include "session/tables/marks.h"
#include "session/tables/park.h"

/* Plain types accumulate in the result buffer, others in scratch that came with the call. */
static void *accumulator(const struct session_launch *l, const struct numeric *n)
{
    return n->plain ? l->call.out : l->scratch;
}

/* What this rank gets of rank `from`. */
static uint64_t taken_bytes(const struct session *s, const struct session_launch *l, const struct numeric *n, uint32_t from)
{
    return work_payload(n, l->call.params.kind, work_takes(s, l, from).count);
}

/* The contribution of rank op->fold to a sum. */
static void sum(struct session *s, struct op *op, const struct numeric *n, const void *wire, size_t count)
{
    const struct session_launch *l = &s->slots.at[op->slot].launch;
    bool apart = n->plain && s->view.world > 1; /* two that lie apart are added up at once, with no copy of the first */
    size_t bytes;
    if (apart && op->fold == 0 && s->view.rank == 0) {
        return;
    }
    if (apart && op->fold == 1 && s->view.rank == 0) {
        numeric_fold_plain(n, l->call.out, work_given(s, l, n, 0, &bytes), wire, count);
    } else if (apart && op->fold == 0 && s->view.rank == 1) {
        numeric_fold_plain(n, l->call.out, wire, work_given(s, l, n, 1, &bytes), count);
        op->fold = 1; /* both */
    } else if (op->fold == 0) {
        numeric_load(n, accumulator(l, n), wire, count);
    } else {
        numeric_fold(n, accumulator(l, n), wire, count);
    }
}

/* The contribution of rank op->fold. */
static void fold(struct session *s, struct op *op, const struct numeric *n, const void *wire)
{
    const struct session_launch *l = &s->slots.at[op->slot].launch;
    struct work_range range = work_takes(s, l, op->fold);
    if (!plan_kind_sums(l->call.params.kind)) {
        unsigned char *to = range.count == 0 ? NULL : (unsigned char *)l->call.out + numeric_user_bytes(n, range.at);
        if (to != NULL && to != wire) { /* in place: the own part lies there already */
            memcpy(to, wire, numeric_user_bytes(n, range.count));
        }
    } else if (range.count > 0) { /* else nothing is to be summed up, or not here */
        sum(s, op, n, wire, range.count);
    }
    op->fold++;
}

static void fold_own(struct session *s, struct op *op, const struct numeric *n)
{
    const struct session_launch *l = &s->slots.at[op->slot].launch;
    size_t bytes;
    fold(s, op, n, work_given(s, l, n, s->view.rank, &bytes));
}

/* Of what all members have alike in the end: part by part. */
static uint64_t result_digest(const struct session *s, const struct session_launch *l, const struct numeric *n)
{
    uint64_t digest = 0;
    for (uint32_t r = 0; r < s->view.world && plan_kind_alike(l->call.params.kind); r++) {
        struct work_range range = work_takes(s, l, r); /* each member has its own places, and what lies between is its own, too */
        const unsigned char *at = range.count == 0 ? NULL : (const unsigned char *)l->call.out + numeric_user_bytes(n, range.at);
        bool again = r > 0 && plan_kind_sums(l->call.params.kind);
        digest += at == NULL || again ? 0 : hash_mix64(hash_simple64(at, numeric_user_bytes(n, range.count)), r);
    }
    return digest;
}

static void complete(struct session *s, struct op *op, const struct numeric *n, struct outbox *out)
{
    struct slot *c = &s->slots.at[op->slot];
    const struct session_launch *l = &c->launch;
    size_t count = 0;
    if (plan_kind_sums(l->call.params.kind)) {
        count = work_takes(s, l, s->view.rank).count;
    }
    if (count > 0) {
        if (n->plain) {
            numeric_finish_plain(n, l->call.out, count, s->view.world);
        } else {
            numeric_finish(n, l->call.out, NULL, l->scratch, count, s->view.world);
            numeric_canonical(n, l->call.out, count);
        }
    }
    for (uint32_t r = 0; r < s->view.world; r++) {
        c->outcome.tx_bytes += r == s->view.rank ? 0 : work_payload(n, l->call.params.kind, work_sends(s, l, r).count);
        c->outcome.rx_bytes += r == s->view.rank ? 0 : taken_bytes(s, l, n, r);
    }
    hold_complete(s, op, s->view.plan.verify != 0 ? result_digest(s, l, n) : 0, out);
}

static void eager_advance(struct session *s, struct op *op, struct outbox *out)
{
    struct numeric n;
    if (op->phase != OP_RUN || !op->eager || op->refused != 0 || s->view.frozen || op->fold >= s->view.world) {
        return;
    }
    PCCL_ASSERT(work_own_numeric(s, &s->slots.at[op->slot].launch, &n));
    while (op->fold < s->view.world) {
        if (op->fold == s->view.rank) {
            fold_own(s, op, &n);
            continue;
        }
        uint32_t from = op->fold;
        const struct mark *m = op_mark(s, op, from);
        if (m->park == 0) {
            park_ask(s, op, from, out);
            return;
        }
        if (m->park_bytes != taken_bytes(s, &s->slots.at[op->slot].launch, &n, from)) {
            refusal_mismatch(s, op, s->view.ids[from], out); /* alike in name only */
            return;
        }
        fold(s, op, &n, park_at(s, m->park));
        park_drop(s, op, from);
    }
    complete(s, op, &n, out);
}

void eager_start(struct session *s, struct op *op, struct outbox *out)
{
    announce_eager(s, op, NONE, out);
    eager_advance(s, op, out);
}

/* Where a payload goes: folded at once, parked, or dropped but for its header. */
static void take(struct session *s, struct op *op, uint32_t rank, const struct msg_eager *m, const void *payload,
                 struct outbox *out)
{
    const struct mark *mark = op_mark(s, op, rank);
    if (mark->park != 0 || (op->eager && op->fold > rank)) {
        return; /* said again after a reconnect */
    }
    struct numeric n;
    if (op->phase == OP_RUN && op->refused == 0 && work_numeric(s, &m->params, &n)) {
        if (m->bytes != taken_bytes(s, &s->slots.at[op->slot].launch, &n, rank)) {
            refusal_mismatch(s, op, s->view.ids[rank], out); /* alike in name only */
            return;
        }
        if (op->fold == rank) {
            fold(s, op, &n, payload);
            if (op->fold == s->view.world) {
                complete(s, op, &n, out);
            } else {
                eager_advance(s, op, out);
            }
            return;
        }
    }
    park_payload(s, op, rank, m, payload);
    eager_advance(s, op, out);
}

/* What the sender's own parameters allow, whatever this peer has called. */
bool eager_fits(const struct session *s, uint64_t sender, const struct msg_eager *m)
{
    struct numeric n;
    const struct op_params *p = &m->params;
    if (!work_numeric(s, p, &n) || !work_is_eager(s, p)) {
        return false;
    }
    if (p->kind == PLAN_SEND) {
        return m->bytes == work_payload(&n, p->kind, (size_t)p->count);
    }
    bool gives = plan_kind_from_root(p->kind) ? p->root == sender : !plan_kind_to_root(p->kind) || p->root == s->id;
    uint64_t most = gives ? work_payload(&n, p->kind, (size_t)p->count) : 0;
    return p->layout == 0 ? m->bytes == most : m->bytes <= most;
}

void eager_heard(struct session *s, struct op *op, uint32_t rank, const struct msg_eager *m, const void *payload, struct outbox *out)
{
    if (op->phase == OP_RUN && mismatch_with(s, op, rank)) {
        if (op->refused == 0) {
            refusal_mismatch(s, op, s->view.ids[rank], out);
        }
        return;
    }
    if (op->refused == 0) {
        take(s, op, rank, m, payload, out);
    }
}
