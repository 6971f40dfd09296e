/* eager.c - small operations: the whole input travels with the launch, everybody reduces for himself (the tiny plan).
 *
 * Contributions are folded in rank order as they come in turn, straight from the frame; those that come early are parked,
 * and what finds no room is dropped but for its header and asked for again (WANT) when its turn has come, from the
 * sender's borrowed buffer.  So progress needs no room at all.  Several peers compute the same elements, so NaNs are made
 * canonical.  Invariant: ranks below op->fold are in the accumulator.
 * SPDX-License-Identifier: MIT */
#include "kernels/hash.h"
#include "session/session_state.h"

/* Plain types accumulate in the result buffer, others in scratch that came with the call. */
static void *accumulator(const struct session_launch *l, const struct numeric *n)
{
    return n->plain ? l->out : l->scratch;
}

static void fold(struct session *s, struct op *op, const struct numeric *n, const void *wire)
{
    const struct session_launch *l = &s->slots[op->slot].launch;
    void *acc = accumulator(l, n);
    if (op->fold == 0) {
        numeric_load(n, acc, wire, (size_t)l->params.count);
    } else {
        numeric_fold(n, acc, wire, (size_t)l->params.count);
    }
    op->fold++;
}

static void fold_own(struct session *s, struct op *op, const struct numeric *n)
{
    const struct session_launch *l = &s->slots[op->slot].launch;
    if (n->plain) {
        fold(s, op, n, l->in);
    } else {
        numeric_encode(n, s->wire, l->in, (size_t)l->params.count);
        fold(s, op, n, s->wire);
    }
}

static void complete(struct session *s, struct op *op, const struct numeric *n, struct outbox *out)
{
    struct slot *c = &s->slots[op->slot];
    size_t count = (size_t)c->launch.params.count;
    if (n->plain) {
        numeric_finish_plain(n, c->launch.out, count, s->view.world);
    } else {
        numeric_finish(n, c->launch.out, NULL, c->launch.scratch, count, s->view.world);
    }
    numeric_canonical(n, c->launch.out, count);
    uint64_t moved = (uint64_t)numeric_wire_bytes(n, count) * (s->view.world - 1);
    c->outcome.tx_bytes = moved;
    c->outcome.rx_bytes = moved;
    uint64_t digest = s->view.plan.verify != 0 ? hash_simple64(c->launch.out, numeric_user_bytes(n, count)) : 0;
    hold_complete(s, op, digest, out);
}

static void ask_again(struct session *s, struct op *op, uint32_t rank, struct outbox *out)
{
    struct mark *m = op_mark(s, op, rank);
    if (m->dropped && (!m->wanted || MUTANT(WANT_TWICE)) && peer_reachable(s, rank)) {
        m->wanted = true;
        struct msg_want want = {.name = op->name};
        put_want(outbox_frame(out, FRAME_WANT, s->run, s->view.view), &want);
        outbox_send(out, ACT_PEERS, s->view.ids[rank]);
    }
}

void eager_advance(struct session *s, struct op *op, struct outbox *out)
{
    struct numeric n;
    if (op->phase != OP_RUN || !op->eager || op->refused != 0 || s->frozen || op->fold >= s->view.world) {
        return;
    }
    PCCL_ASSERT(announce_numbers(s, op, &n));
    while (op->fold < s->view.world) {
        if (op->fold == s->view.rank) {
            fold_own(s, op, &n);
            continue;
        }
        struct mark *m = op_mark(s, op, op->fold);
        if (m->park == 0) {
            ask_again(s, op, op->fold, out);
            return;
        }
        fold(s, op, &n, park_at(s, m->park));
        park_drop(s, op, op->fold - 1);
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
    struct mark *mark = op_mark(s, op, rank);
    if (mark->park != 0 || (op->eager && op->fold > rank)) {
        return; /* said again after a reconnect */
    }
    struct numeric n;
    if (op->phase == OP_RUN && op->refused == 0 && op->fold == rank && announce_numbers(s, op, &n)) {
        if (m->bytes == numeric_wire_bytes(&n, (size_t)m->params.count)) {
            fold(s, op, &n, payload);
            if (op->fold == s->view.world) {
                complete(s, op, &n, out);
            } else {
                eager_advance(s, op, out);
            }
            return;
        }
    }
    mark->dropped = true;
    mark->wanted = false;
    uint32_t parked = s->peers[s->view.peer[rank]].parked;
    bool full = parked >= s->cfg.park_per_link && !MUTANT(PARK_ALL);
    uint32_t block = m->bytes > s->cfg.park_block_bytes || full ? 0 : park_take(s);
    if (block != 0) {
        memcpy(park_at(s, block), payload, m->bytes);
        mark->park = block;
        mark->park_bytes = m->bytes;
        mark->dropped = false;
        s->peers[s->view.peer[rank]].parked++;
    }
    eager_advance(s, op, out);
}

static bool payload_fits(const struct session *s, const struct msg_eager *m)
{
    struct numeric n;
    return numeric_init(&n, (enum dtype)m->params.dtype, (enum redop)m->params.op, (enum quant)m->params.quant,
                        (enum dtype)m->params.quant_dtype, s->cfg.kernels) &&
           m->params.count <= s->view.plan.eager_bytes / dtype_size((enum dtype)m->params.dtype) &&
           m->bytes == numeric_wire_bytes(&n, (size_t)m->params.count);
}

void eager_message(struct session *s, uint32_t from, struct reader *r, struct outbox *out)
{
    struct msg_eager m;
    const void *payload;
    if (!get_eager(r, &m, &payload) || !payload_fits(s, &m)) {
        links_bad(s, s->peers[from].id, out);
        return;
    }
    struct op *op = s->frozen ? NULL : op_hear(s, from, s->peers[from].rank, &m.name);
    if (op == NULL) {
        return;
    }
    mismatch_hear(s, op, s->peers[from].rank, &m.params);
    if (op->phase == OP_RUN && mismatch_with(s, op, s->peers[from].rank)) {
        if (op->refused == 0) {
            refusal_mismatch(s, op, s->peers[from].id, out);
        }
        return;
    }
    if (op->refused == 0) {
        take(s, op, s->peers[from].rank, &m, payload, out);
    }
}

void eager_want(struct session *s, uint32_t from, struct reader *r, struct outbox *out)
{
    struct msg_want m;
    if (!get_want(r, &m)) {
        links_bad(s, s->peers[from].id, out);
        return;
    }
    struct op *op = op_find(s, &m.name);
    if (op != NULL && op->eager && (op->phase == OP_RUN || op->phase == OP_HOLDING) && op->refused == 0 && !s->frozen) {
        announce_eager(s, op, s->peers[from].rank, out);
    }
}
