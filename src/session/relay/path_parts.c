/* path_parts.c - what one gives another that it has no link with, in parts.
 *
 * Its one idea: the receiver says how many bytes are in place (GOT), and the sender at most two parts more, of one operation for each
 * receiver at a time: so much a relay keeps of each direction.  It reads whatever comes, so nobody waits for its room.  After a loss both
 * begin where the receiver has come to.
 * Invariant: of what is `there`, by the sender's mark, all bytes are `here` by the receiver's; nothing beyond what was `said` is.
 * SPDX-License-Identifier: MIT */
#include "session/calls/work.h"
#include "session/relay/path.h"
#include "session/tables/carrier.h"
#include "session/tables/marks.h"
#include "session/tables/peers.h"

enum { PATH_PARTS = 2 }; /* said and not in place yet */

static struct path_range in_bytes(const struct session_launch *l, struct work_range range)
{
    uint64_t size = dtype_size((enum dtype)l->call.params.dtype);
    return (struct path_range){.at = range.at * size, .bytes = range.count * size};
}

struct path_range path_gives(const struct session *s, const struct op *op, uint32_t rank)
{
    const struct session_launch *l = &s->slots.at[op->slot].launch;
    return in_bytes(l, work_sends(s, l, rank));
}

struct path_range path_takes(const struct session *s, const struct op *op, uint32_t rank)
{
    const struct session_launch *l = &s->slots.at[op->slot].launch;
    return in_bytes(l, work_takes(s, l, rank));
}

/* The next member, from that rank on, that this one has no link with; the world: none. */
static uint32_t next_apart(const struct session *s, uint32_t from)
{
    return s->view.edges == 0 ? s->view.world : bitset_next(s->view.apart, s->view.world, from);
}

uint64_t path_given(const struct session *s, const struct op *op)
{
    uint64_t bytes = 0;
    for (uint32_t r = next_apart(s, 0); r < s->view.world; r = next_apart(s, r + 1)) {
        bytes += carrier_relays(s, op, r) ? path_gives(s, op, r).bytes : 0;
    }
    return bytes;
}

bool path_in_place(const struct session *s, const struct op *op)
{
    for (uint32_t r = next_apart(s, 0); r < s->view.world && !MUTANT(PARTS_UNSEEN); r = next_apart(s, r + 1)) {
        if (carrier_relays(s, op, r) && op_mark(s, op, r)->here < path_takes(s, op, r).bytes) {
            return false;
        }
    }
    return true;
}

void path_say_got(struct session *s, const struct op *op, uint32_t rank, bool anew, struct outbox *out)
{
    struct msg_got m = {.name = path_name(op, s->view.ids[rank], s->id), .offset = op_mark(s, op, rank)->here, .anew = anew};
    put_got(outbox_frame(out, FRAME_GOT, s->run, s->view.view), &m);
    peers_send(s, rank, out);
}

void path_take(struct session *s, struct op *op, uint32_t rank, struct outbox *out)
{
    if (op->refused == 0 && op_mark(s, op, rank)->ready && path_takes(s, op, rank).bytes > 0) {
        path_say_got(s, op, rank, true, out);
    }
}

static void say_part(struct session *s, struct op *op, uint32_t rank, uint32_t bytes, uint64_t via, struct outbox *out)
{
    struct mark *mark = mark_of(s, op, rank); /* it has asked */
    struct msg_part m = {.name = path_name(op, s->id, s->view.ids[rank]), .offset = mark->said, .bytes = bytes};
    put_part(outbox_frame(out, FRAME_PART, s->run, s->view.view), &m);
    struct action *a = outbox_send_many(out, ACT_PEERS);
    a->slot = op->slot;
    outbox_lend(out, a, (const unsigned char *)s->slots.at[op->slot].launch.call.in + path_gives(s, op, rank).at + mark->said, bytes);
    outbox_dest(out, a, via);
    mark->said += bytes;
}

/* Of the first operation of which that member has asked for parts. */
static void go_on(struct session *s, uint32_t rank, struct outbox *out)
{
    uint32_t most = s->view.plan.frame_bytes < P2P_PART_BYTES ? s->view.plan.frame_bytes : P2P_PART_BYTES;
    struct op *op = &s->ops.at[s->peers.at[s->view.peer[rank]].part_first - 1];
    uint64_t all = path_gives(s, op, rank).bytes, ahead = (uint64_t)PATH_PARTS * most * (MUTANT(PARTS_ALL) ? 1000 : 1);
    uint64_t via = view_relay(s, s->id, s->view.ids[rank]);
    const struct mark *m = op_mark(s, op, rank);
    while (peer_reachable(s, view_rank(s, via)) && m->said < all && m->said - m->there < ahead) {
        say_part(s, op, rank, all - m->said < most ? (uint32_t)(all - m->said) : most, via, out);
    }
}

void path_settle(struct session *s, struct outbox *out)
{
    for (uint32_t r = next_apart(s, 0); !s->view.frozen && r < s->view.world; r = next_apart(s, r + 1)) {
        if (s->peers.at[s->view.peer[r]].part_first != 0) {
            go_on(s, r, out);
        }
    }
    s->turns = false;
}
