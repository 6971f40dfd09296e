/* path.c - between two members that have no link: what goes by a relay and what it is called, what a relay says of it, whose parts have their turn.
 *
 * Its one idea: what two move goes from session to session, as a message that travels with its launch, so it needs no lane, and its relay
 * no knowledge of it.  Messages go so, and of the operations of all what only two know the size of (LAYOUT_PAIRS): each such part has a name of
 * its own there, SPACE_PART, while the word on the end is that of the whole operation.  Who is linked with both passes on what they say
 * (path_words.c), and the bytes in parts (path_parts.c).  What a hop has lost with a link is said again when the relay says that there
 * is a path (PATH).
 * Invariant: the line of a peer holds the operations of which it has asked for parts and has not said that all are in place, in the order
 * in which it asked.
 * SPDX-License-Identifier: MIT */
#include "session/calls/complaint.h"
#include "session/calls/work.h"
#include "session/relay/path.h"
#include "session/tables/marks.h"
#include "session/tables/pair_name.h"
#include "session/tables/peers.h"

bool path_used(const struct session *s, const struct op_name *name)
{
    return name->to != 0 && view_relay(s, name->from, name->to) != 0;
}

bool path_speaker(const struct session *s, uint32_t from, const struct op_name *name, enum word_to to, uint32_t *rank)
{
    return path_used(s, name) && pair_speaker(s, from, name, to, rank);
}

bool path_passed_on(const struct session *s, uint32_t from, const struct op_name *name)
{
    uint64_t peer = s->peers.at[from].id;
    return path_used(s, name) && name->from != peer && name->to != peer;
}

struct op_name path_operation(const struct op_name *name)
{
    return name->space == SPACE_PART ? (struct op_name){.space = SPACE_ORDERED, .seq = name->seq} : *name;
}

struct op_name path_name(const struct op *op, uint64_t from, uint64_t to)
{
    return op->name.to != 0 ? op->name : (struct op_name){.space = SPACE_PART, .seq = op->name.seq, .from = from, .to = to};
}

static void say_path(const struct session *s, uint32_t rank, uint32_t with, struct outbox *out)
{
    const struct peer *p = &s->peers.at[s->view.peer[with]];
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
        if (peer_reachable(s, rank) && (reached || s->peers.at[s->view.peer[other]].suspected != CAUSE_NONE)) {
            say_path(s, rank, other, out);
        }
    }
}

/* READY: whatever else is of lanes is not meant. */
void path_announce(struct session *s, struct op *op, uint32_t rank, struct outbox *out)
{
    const struct session_launch *l = &s->slots.at[op->slot].launch;
    struct msg_ready m = {.name = path_name(op, s->id, s->view.ids[rank]), .params = l->call.params, .launch = 1,
                          .expects = work_takes(s, l, rank).count};
    put_ready(outbox_frame(out, FRAME_READY, s->run, s->view.view), &m);
    peers_send(s, rank, out);
}

/* ---- turns ---- */

static struct mark *neighbour(struct session *s, uint32_t at, uint32_t rank)
{
    return mark_of(s, &s->ops.at[at - 1], rank);
}

/* Its parts have their turn when those of the operations before it are in place. */
void path_enter(struct session *s, struct op *op, uint32_t rank)
{
    struct peer *p = &s->peers.at[s->view.peer[rank]];
    struct mark *m = mark_of(s, op, rank); /* as it has asked */
    uint32_t at = (uint32_t)(op - s->ops.at) + 1;
    s->turns = true;
    if (!m->parted) {
        m->parted = true;
        m->part_next = 0;
        m->part_before = p->part_last;
        *(p->part_last == 0 ? &p->part_first : &neighbour(s, p->part_last, rank)->part_next) = at;
        p->part_last = at;
    }
}

void path_leave(struct session *s, struct op *op, uint32_t rank)
{
    if (op_mark(s, op, rank)->parted) {
        struct mark *m = mark_of(s, op, rank);
        struct peer *p = &s->peers.at[s->view.peer[rank]];
        *(m->part_before == 0 ? &p->part_first : &neighbour(s, m->part_before, rank)->part_next) = m->part_next;
        *(m->part_next == 0 ? &p->part_last : &neighbour(s, m->part_next, rank)->part_before) = m->part_before;
        m->parted = false;
        s->turns = true;
    }
}

void path_stop(struct session *s, struct op *op)
{
    for (uint32_t i = op->marks; i != NONE; i = s->marks.at[i].after) {
        path_leave(s, op, s->marks.at[i].rank);
    }
}
