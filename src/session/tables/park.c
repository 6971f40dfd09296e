/* park.c - bytes that came with a launch before they could be used: kept where there is room, else asked for again.
 * SPDX-License-Identifier: MIT */
#include "session/session_state.h"

void park_ask(struct session *s, struct op *op, uint32_t rank, struct outbox *out)
{
    const struct mark *m = op_mark(s, op, rank);
    if (m->dropped && (!m->wanted || MUTANT(WANT_TWICE)) && peer_reachable(s, rank)) {
        mark_of(s, op, rank)->wanted = true;
        struct msg_want want = {.name = op->name};
        put_want(outbox_frame(out, FRAME_WANT, s->run, s->view.view), &want);
        outbox_send(out, ACT_PEERS, s->view.ids[rank]);
    }
}

void park_payload(struct session *s, struct op *op, uint32_t rank, const struct msg_eager *m, const void *payload)
{
    struct mark *mark = mark_of(s, op, rank); /* as it was heard */
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
}
