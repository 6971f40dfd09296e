/* path_parts.c - a message between two that have no link, in parts.
 *
 * Its one idea: the receiver says how many bytes are in place (GOT), and the sender at most two parts more, of one message of the pair at
 * a time: so much a relay keeps of each direction.  It reads whatever comes, so nobody waits for its room.  After a loss both begin
 * where the receiver has come to.
 * Invariant: of a message whose parts travel `passed` bytes are in place at its receiver, said at its sender.
 * SPDX-License-Identifier: MIT */
#include "session/session_state.h"

enum { PATH_PARTS = 2 }; /* said and not in place yet */

void path_lied(struct session *s, uint32_t from, const struct op_name *name, struct outbox *out)
{
    uint64_t peer = s->peers[from].id;
    if (!path_used(s, name) || name->from == peer || name->to == peer) {
        links_bad(s, peer, out);
    }
}

uint64_t path_bytes(const struct session *s, const struct op *op)
{
    const struct session_launch *l = &s->slots[op->slot].launch;
    return (uint64_t)l->count * dtype_size((enum dtype)l->params.dtype);
}

void path_say_got(struct session *s, const struct op *op, bool anew, struct outbox *out)
{
    put_got(outbox_frame(out, FRAME_GOT, s->run, s->view.view), &(struct msg_got){.name = op->name, .offset = op->passed, .anew = anew});
    peers_send(s, pair_partner(s, &op->name), out);
}

void path_take(struct session *s, struct op *op, struct outbox *out)
{
    if (op->phase == OP_RUN && op->refused == 0 && op_mark(s, op, pair_partner(s, &op->name))->ready) {
        path_say_got(s, op, true, out);
    }
}

static void say_part(struct session *s, struct op *op, uint32_t bytes, uint64_t via, struct outbox *out)
{
    struct msg_part m = {.name = op->name, .offset = op->passed, .bytes = bytes};
    put_part(outbox_frame(out, FRAME_PART, s->run, s->view.view), &m);
    struct action *a = outbox_send_many(out, ACT_PEERS);
    a->slot = op->slot;
    outbox_lend(out, a, (const unsigned char *)s->slots[op->slot].launch.in + op->passed, bytes);
    outbox_dest(out, a, via);
    op->passed += bytes;
}

/* Of the first message whose receiver has asked for it. */
void path_go(struct session *s, uint64_t to, struct outbox *out)
{
    uint32_t rank = view_rank(s, to), most = s->view.plan.frame_bytes < P2P_PART_BYTES ? s->view.plan.frame_bytes : P2P_PART_BYTES;
    const struct peer *p = rank == NONE ? NULL : &s->peers[s->view.peer[rank]];
    uint64_t via = view_relay(s, s->id, to);
    if (p == NULL || p->part_first == 0 || s->frozen || via == 0 || !peer_reachable(s, view_rank(s, via))) {
        return;
    }
    struct op *op = &s->ops[p->part_first - 1];
    uint64_t all = path_bytes(s, op);
    if (all == 0) { /* it is there, all the same */
        say_part(s, op, 0, via, out);
    }
    while (op->passed < all && op->passed - op->in_place < (uint64_t)PATH_PARTS * most * (MUTANT(PARTS_ALL) ? 1000 : 1)) {
        say_part(s, op, all - op->passed < most ? (uint32_t)(all - op->passed) : most, via, out);
    }
}
