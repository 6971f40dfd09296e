/* edge_asks.c - members that are asked for many edges at once, under one number.
 *
 * Invariant: optimise.waiting is the number of bits in the members' `asked`; each edge is answered once.
 * SPDX-License-Identifier: MIT */
#include "world/measuring.h"
#include "world/member_read.h"
#include "world/roll.h"
#include "world/view_read.h"

void edge_asks_begin(struct world *w, int64_t by)
{
    w->optimise.next_round++;
    w->optimise.answers_by = w->optimise.deadline = by;
}

void edge_ask(struct world *w, struct member *from, uint32_t rank, uint32_t duration_ms)
{
    const struct member *to = member_find(w, view_current(member_group(w, from))->ids[rank]);
    struct msg_probe p = {.round = w->optimise.next_round - 1, .duration_ms = duration_ms};
    if (from->conn == SLOT_NONE || to == NULL || to == from || to->conn == SLOT_NONE) {
        return;
    }
    p.to = to->id;
    from->asked |= UINT64_C(1) << rank;
    w->optimise.waiting++;
    put_probe(outbox_frame(w->common->out, FRAME_PROBE, w->run, 0), &p);
    outbox_send(w->common->out, MASTER_SEND, from->conn);
}

uint32_t edge_answered(struct world *w, struct member *mb, const struct msg_measured *ms)
{
    struct group *g = member_group(w, mb);
    uint32_t rank = g != NULL ? view_place(view_current(g), ms->to) : SLOT_NONE;
    if (ms->round + 1 != w->optimise.next_round || rank >= MEASURE_MEMBERS || (mb->asked >> rank & 1) == 0) {
        return SLOT_NONE;
    }
    mb->asked &= ~(UINT64_C(1) << rank);
    w->optimise.waiting--;
    return rank;
}

void edge_asks_forget(struct world *w)
{
    for (uint32_t i = 0; i < w->member_room; i++) {
        w->members[i].asked = 0;
    }
    w->optimise.waiting = 0;
}
