/* op_room.c - room in the lanes for those who will send to us: taken before the launch, so that READY can tell of it.
 *
 * A world, which is a communicator, may take half of what is free when it launches.
 * Invariant: what is reserved here is in every lane's room, until LANE_START hands it to the lanes or it is given back.
 * SPDX-License-Identifier: MIT */
#include "engine/comm.h"
#include "engine/calls/op_room.h"

enum { OP_ROOM_MOST = 32 /* grants of one operation in one lane, where no link needs more */ };

static void room_give_some(struct comm *c, const struct comm_op *op, uint32_t first, uint32_t end)
{
    for (uint32_t i = first; i < end && op->room.reserved > 0; i++) {
        room_unreserve(&c->engine->lane[i]->room, op->room.reserved);
    }
}

void op_room_reserve(struct comm *c, struct comm_op *op, const struct op_params *params, uint32_t root_rank)
{
    uint32_t senders = session_folding_senders(c->machine.session, params, root_rank);
    uint32_t most = senders == 0 ? 0 : OP_ROOM_MOST / senders, learnt = atomic_load(&c->flow.window);
    most = most > FLOW_BASE ? FLOW_BASE : most;
    most = senders > 0 && learnt > most ? learnt : most; /* of frames that a long link carries anyway */
    for (uint32_t i = 0; i < c->machine.config.lanes && most > 0; i++) {
        most = room_window(&c->engine->lane[i]->room, senders, most, c->room.holders > 0);
    }
    op->room.window = most;
    op->room.reserved = op->room.window * senders;
    for (uint32_t i = 0; i < c->machine.config.lanes && op->room.reserved > 0; i++) {
        uint32_t got = room_reserve(&c->engine->lane[i]->room, op->room.reserved);
        if (got == op->room.reserved) {
            continue;
        }
        room_unreserve(&c->engine->lane[i]->room, got);
        while (i > 0) {
            room_unreserve(&c->engine->lane[--i]->room, op->room.reserved);
        }
        op->room.window = op->room.reserved = 0;
    }
    op->room.holds = op->room.reserved > 0;
    c->room.holders += op->room.holds;
}

void op_room_end(struct comm *c, struct comm_op *op)
{
    c->room.holders -= op->room.holds;
    op->room.holds = false;
}

void op_room_keep(struct comm *c, struct comm_op *op, uint64_t window, uint32_t lanes)
{
    if (window != op->room.window) {
        room_give_some(c, op, 0, c->machine.config.lanes); /* of another view: the lanes grant anew */
        op->room.window = op->room.reserved = 0;
    } else {
        room_give_some(c, op, lanes, c->machine.config.lanes);
    }
}

void op_room_give(struct comm *c, struct comm_op *op)
{
    room_give_some(c, op, 0, op->run.started ? op->run.lanes : c->machine.config.lanes);
    op->room.reserved = 0;
}
