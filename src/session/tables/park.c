/* park.c - bytes that came with a launch before they could be used: kept where there is room, else asked for again.
 * SPDX-License-Identifier: MIT */
#include "session/tables/marks.h"
#include "session/tables/park.h"
#include "session/tables/peers.h"
#include "session/tables/storage.h"

size_t park_table_bytes(const struct session_config *cfg, uint32_t blocks)
{
    return blocks * (storage_lines(cfg->park_block_bytes) + sizeof(uint32_t));
}

/* It grows when no block is free. */
void park_table_use(struct session *s, void *storage, uint32_t blocks)
{
    unsigned char *at = storage;
    uint32_t used = s->park.left == 0 ? s->park.count : 0;
    PCCL_ASSERT(s->park.left == 0);
    s->park.pitch = storage_lines(s->cfg.park_block_bytes);
    s->park.blocks = storage_moved(&at, s->park.pitch, blocks, s->park.blocks, used);
    s->park.free = storage_moved(&at, sizeof *s->park.free, blocks, NULL, 0);
    for (uint32_t i = blocks; i-- > s->park.count;) {
        s->park.free[s->park.left++] = i;
    }
    s->park.count = blocks;
}

void park_table_forget(struct session *s)
{
    s->park.count = s->park.left = 0;
}

static uint32_t park_take(struct session *s)
{
    return s->park.left == 0 ? 0 : s->park.free[--s->park.left] + 1;
}

static void park_give(struct session *s, uint32_t block)
{
    PCCL_ASSERT(block > 0 && s->park.left < s->park.count);
    s->park.free[s->park.left++] = block - 1;
}

unsigned char *park_at(struct session *s, uint32_t block)
{
    return s->park.blocks + (size_t)(block - 1) * s->park.pitch;
}

void park_drop(struct session *s, struct op *op, uint32_t rank)
{
    struct mark *m = mark_of(s, op, rank);
    struct peer *p = &s->peers.at[s->view.peer[rank]];
    PCCL_ASSERT(m != NULL && m->park != 0 && p->parked > 0);
    p->parked--;
    park_give(s, m->park);
    m->park = 0;
}

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
    uint32_t parked = s->peers.at[s->view.peer[rank]].parked;
    bool full = parked >= s->cfg.park_per_link && !MUTANT(PARK_ALL);
    uint32_t block = m->bytes > s->cfg.park_block_bytes || full ? 0 : park_take(s);
    if (block != 0) {
        memcpy(park_at(s, block), payload, m->bytes);
        mark->park = block;
        mark->park_bytes = m->bytes;
        mark->dropped = false;
        s->peers.at[s->view.peer[rank]].parked++;
    }
}
