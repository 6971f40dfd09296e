/* path_words.c - what is heard of what two move that have no link: at their relay, and at the two.
 *
 * Its one idea: a relay looks at nothing but whether the word is one that its speaker may say, and keeps nothing.  Invariant: what it
 * passes on is no lie of the relay's own, wherever it is heard.
 * SPDX-License-Identifier: MIT */
#include "session/calls/complaint.h"
#include "session/relay/path.h"
#include "session/tables/carrier.h"
#include "session/tables/marks.h"
#include "session/tables/optable.h"
#include "session/tables/pair_name.h"
#include "session/tables/peers.h"

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

enum path_pass path_passes(struct session *s, const struct said *said, struct outbox *out)
{
    const struct frame_header *h = said->header;
    bool words = h->type == FRAME_READY || h->type == FRAME_HOLD || h->type == FRAME_REFUSE || h->type == FRAME_PART || h->type == FRAME_GOT;
    struct reader r, whole;
    struct op_name name;
    reader_init(&r, said->payload, h->length);
    whole = r;
    if (s->view.edges == 0 || !words || !get_part_name(&r, &name) || name.to == 0 || name.from == s->id || name.to == s->id) {
        return PATH_OWN;
    }
    uint64_t peer = s->peers.at[said->from].id, to = name.from == peer ? name.to : name.to == peer ? name.from : 0;
    if (to == 0 || view_relay(s, peer, to) != s->id || !is_sound(h->type, whole, peer)) {
        return PATH_LIE;
    }
    if (peer_reachable(s, view_rank(s, to))) { /* else it is said again when that one is */
        put_bytes(outbox_frame(out, h->type, s->run, h->view), said->payload, h->length);
        outbox_send(out, ACT_PEERS, to);
    }
    return PATH_PASSED;
}

/* ---- the two ---- */

bool path_message(struct session *s, uint32_t from, struct reader *r)
{
    struct msg_path m;
    if (!get_path(r, &m) || view_relay(s, s->id, m.with) != s->peers.at[from].id || view_rank(s, m.with) == NONE) {
        return false;
    }
    struct peer *p = &s->peers.at[s->view.peer[view_rank(s, m.with)]];
    p->path_up = m.up != 0;
    if (p->path_up) {
        peers_replay(s, p);
    } else {
        complaint_path(s, p);
    }
    return true;
}

/* What was said of an operation of this peer and of one behind a relay, by that one: null if it is over here. */
static struct op *meant(struct session *s, const struct op_name *name)
{
    struct op_name operation = path_operation(name);
    struct op *op = s->view.frozen ? NULL : op_find(s, &operation);
    bool runs = op != NULL && (op->phase == OP_RUN || op->phase == OP_HOLDING) && op->refused == 0;
    return runs && carrier_relays(s, op, pair_partner(s, name)) ? op : NULL;
}

bool path_part(struct session *s, uint32_t from, struct reader *r, struct outbox *out)
{
    struct msg_part m;
    const void *payload;
    uint32_t rank;
    if (!get_part(r, &m, &payload) || !path_speaker(s, from, &m.name, TO_RECEIVER, &rank)) {
        return false;
    }
    struct op *op = meant(s, &m.name);
    struct mark *mark = op == NULL || !op_mark(s, op, rank)->ready ? NULL : mark_of(s, op, rank);
    if (mark == NULL || (m.offset != mark->here && !MUTANT(PART_MISPLACED))) {
        return true; /* over; or said twice, or behind one that was lost: PATH is on its way */
    }
    struct path_range all = path_takes(s, op, rank);
    if (m.bytes > all.bytes - mark->here) {
        return path_passed_on(s, from, &m.name);
    }
    struct slot *c = &s->slots.at[op->slot];
    memcpy((unsigned char *)c->launch.call.out + all.at + mark->here, payload, m.bytes);
    mark->here += m.bytes;
    c->outcome.rx_bytes += m.bytes;
    path_say_got(s, op, rank, false, out);
    if (mark->here == all.bytes) {
        op->class->arrived(s, op, out);
    }
    return true;
}

bool path_got(struct session *s, uint32_t from, struct reader *r)
{
    struct msg_got m;
    uint32_t rank;
    if (!get_got(r, &m) || !path_speaker(s, from, &m.name, TO_SENDER, &rank)) {
        return false;
    }
    struct op *op = meant(s, &m.name);
    struct mark *mark = op == NULL || !op->class->wanted(s, op, rank) ? NULL : mark_heard(s, op, rank);
    if (mark == NULL) {
        return true;
    }
    uint64_t all = path_gives(s, op, rank).bytes;
    if (m.offset > all || (!m.anew && m.offset > mark->said)) {
        return path_passed_on(s, from, &m.name);
    }
    mark->ready = true;
    mark->there = m.anew || m.offset > mark->there ? m.offset : mark->there;
    mark->said = m.anew ? m.offset : mark->said;
    if (mark->there < all) {
        path_enter(s, op, rank);
    } else {
        path_leave(s, op, rank);
    }
    return true;
}
