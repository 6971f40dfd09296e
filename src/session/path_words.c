/* path_words.c - what is heard of messages between two that have no link: at their relay, and at the two.
 *
 * Its one idea: a relay looks at nothing but whether the word is one that its speaker may say, and keeps nothing.  Invariant: what it
 * passes on is no lie of the relay's own, wherever it is heard.
 * SPDX-License-Identifier: MIT */
#include "session/session_state.h"

/* ---- the relay ---- */

/* What is malformed, or somebody else's word, is its speaker's lie here, and would be the relay's there. */
static bool is_sound(uint8_t type, struct reader r, uint64_t speaker)
{
    union {
        struct msg_ready ready;
        struct msg_hold hold;
        struct msg_refuse refuse;
        struct msg_part part;
        struct msg_got got;
    } m;
    const void *payload;
    switch (type) {
    case FRAME_READY:
        return get_ready(&r, &m.ready);
    case FRAME_HOLD:
        return get_hold(&r, &m.hold) && m.hold.origin == speaker;
    case FRAME_REFUSE:
        return get_refuse(&r, &m.refuse) && m.refuse.origin == speaker;
    case FRAME_PART:
        return get_part(&r, &m.part, &payload) && m.part.name.from == speaker;
    default:
        return get_got(&r, &m.got) && m.got.name.to == speaker;
    }
}

/* Words of two others. */
bool path_passes(struct session *s, uint32_t from, const struct frame_header *h, const void *payload, struct outbox *out)
{
    bool words = h->type == FRAME_READY || h->type == FRAME_HOLD || h->type == FRAME_REFUSE || h->type == FRAME_PART || h->type == FRAME_GOT;
    struct reader r, whole;
    struct op_name name;
    reader_init(&r, payload, h->length);
    whole = r;
    if (s->view.edges == 0 || !words || !get_op_name(&r, &name) || !space_pairs(name.space) || name.from == s->id || name.to == s->id) {
        return false;
    }
    uint64_t peer = s->peers[from].id, to = name.from == peer ? name.to : name.to == peer ? name.from : 0;
    if (to == 0 || view_relay(s, peer, to) != s->id || !is_sound(h->type, whole, peer)) {
        links_bad(s, peer, out);
    } else if (peer_reachable(s, view_rank(s, to))) { /* else it is said again when that one is */
        put_bytes(outbox_frame(out, h->type, s->run, h->view), payload, h->length);
        outbox_send(out, ACT_PEERS, to);
    }
    return true;
}

/* ---- the two ---- */

void path_message(struct session *s, uint32_t from, struct reader *r, struct outbox *out)
{
    struct msg_path m;
    if (!get_path(r, &m) || view_relay(s, s->id, m.with) != s->peers[from].id || view_rank(s, m.with) == NONE) {
        links_bad(s, s->peers[from].id, out);
        return;
    }
    struct peer *p = &s->peers[s->view.peer[view_rank(s, m.with)]];
    p->path_up = m.up != 0;
    if (p->path_up) {
        p->replay = 0;
        s->replaying = true;
    } else {
        complaint_path(s, p);
    }
}

void path_part(struct session *s, uint32_t from, struct reader *r, struct outbox *out)
{
    struct msg_part m;
    const void *payload;
    if (!get_part(r, &m, &payload) || !path_used(s, &m.name) || !pair_mine(s, from, &m.name) || !pair_owner(s, &m.name)) {
        links_bad(s, s->peers[from].id, out);
        return;
    }
    struct op *op = op_find(s, &m.name);
    bool runs = op != NULL && op->phase == OP_RUN && op->refused == 0 && op_mark(s, op, pair_partner(s, &m.name))->ready;
    if (s->frozen || !runs || (m.offset != op->passed && !MUTANT(PART_MISPLACED))) {
        return; /* over; or said twice, or behind one that was lost: PATH is on its way */
    }
    uint64_t left = path_bytes(s, op) - op->passed;
    if (m.bytes > left || (m.bytes == 0 && left > 0)) {
        path_lied(s, from, &m.name, out);
        return;
    }
    struct slot *c = &s->slots[op->slot];
    if (m.bytes > 0) {
        memcpy((unsigned char *)c->launch.out + op->passed, payload, m.bytes);
    }
    op->passed += m.bytes;
    if (m.bytes == left) {
        c->outcome.rx_bytes = op->passed;
        pair_complete(s, op, out);
    } else {
        path_say_got(s, op, false, out);
    }
}

void path_got(struct session *s, uint32_t from, struct reader *r, struct outbox *out)
{
    struct msg_got m;
    if (!get_got(r, &m) || !path_used(s, &m.name) || !pair_mine(s, from, &m.name) || pair_owner(s, &m.name)) {
        links_bad(s, s->peers[from].id, out);
        return;
    }
    struct op *op = op_find(s, &m.name);
    if (s->frozen || op == NULL || op->phase != OP_RUN || op->refused != 0 || op->whole) {
        return;
    }
    if (m.offset > path_bytes(s, op) || (!m.anew && m.offset > op->passed)) {
        path_lied(s, from, &m.name, out);
        return;
    }
    op_mark(s, op, pair_partner(s, &op->name))->ready = true;
    op->in_place = m.anew || m.offset > op->in_place ? m.offset : op->in_place;
    op->passed = m.anew ? m.offset : op->passed;
    path_enter(s, op);
    path_go(s, op->name.to, out);
}
