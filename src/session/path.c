/* path.c - between two members that have no link: whether a message goes by a relay, what a relay says of it, whose parts have their turn.
 *
 * Its one idea: such a message goes from session to session, as one that travels with its launch, so it needs no lane, and its relay no
 * knowledge of it.  Who is linked with both passes on what they say (path_words.c), and the message in parts (path_parts.c).  What a hop
 * has lost with a link is said again when the relay says that there is a path (PATH).
 * Invariant: the line of a peer holds the messages to it whose receiver has asked for parts, in the order in which it did.
 * SPDX-License-Identifier: MIT */
#include "session/session_state.h"

bool path_used(const struct session *s, const struct op_name *name)
{
    return space_pairs(name->space) && view_relay(s, name->from, name->to) != 0;
}

static void say_path(const struct session *s, uint32_t rank, uint32_t with, struct outbox *out)
{
    const struct peer *p = &s->peers[s->view.peer[with]];
    struct msg_path m = {.with = s->view.ids[with], .up = peer_reachable(s, with) && !complaint_silent(s, p)};
    put_path(outbox_frame(out, FRAME_PATH, s->run, s->view.view), &m);
    outbox_send(out, ACT_PEERS, s->view.ids[rank]);
}

void path_tell(struct session *s, uint32_t rank, struct outbox *out)
{
    for (uint32_t i = s->view.relay_first[rank]; i < s->view.relay_first[rank + 1] && !MUTANT(PATH_UNTOLD); i++) {
        uint32_t other = s->view.relay_to[i];
        bool reached = peer_reachable(s, other);
        if (reached) {
            say_path(s, other, rank, out);
        }
        if (peer_reachable(s, rank) && (reached || s->peers[s->view.peer[other]].suspected != CAUSE_NONE)) {
            say_path(s, rank, other, out);
        }
    }
}

/* READY: whatever else is of lanes is not meant. */
void path_announce(struct session *s, const struct op *op, struct outbox *out)
{
    struct msg_ready m = {.name = op->name, .params = s->slots[op->slot].launch.params, .launch = 1};
    put_ready(outbox_frame(out, FRAME_READY, s->run, s->view.view), &m);
    peers_send(s, pair_partner(s, &op->name), out);
}

static struct peer *partner(struct session *s, const struct op *op)
{
    return &s->peers[s->view.peer[pair_partner(s, &op->name)]];
}

/* Its parts have their turn when those of the messages before it are in place. */
void path_enter(struct session *s, struct op *op)
{
    struct peer *p = partner(s, op);
    uint32_t at = (uint32_t)(op - s->ops) + 1;
    if (!op->parted) {
        op->parted = true;
        op->part_next = 0;
        op->part_before = p->part_last;
        *(p->part_last == 0 ? &p->part_first : &s->ops[p->part_last - 1].part_next) = at;
        p->part_last = at;
    }
}

void path_leave(struct session *s, struct op *op)
{
    if (op->parted) {
        struct peer *p = partner(s, op);
        *(op->part_before == 0 ? &p->part_first : &s->ops[op->part_before - 1].part_next) = op->part_next;
        *(op->part_next == 0 ? &p->part_last : &s->ops[op->part_next - 1].part_before) = op->part_before;
        op->parted = false;
    }
}
