/* lane_room.c - the memory of a lane's room.
 *
 * Its one idea: memory that nobody has touched costs nothing, so that a room may promise as much as long links need.  What was touched is
 * given back when the lane is at rest; blocks are given back when no connection has a window for them any more.
 *
 * Invariant: all rooms of a process together have at most engine.staging_most bytes beyond the first block of each.
 * SPDX-License-Identifier: MIT */
#include <sys/mman.h>

#include "core/pages.h"
#include "engine/comm.h"
#include "engine/lanes/lane_room.h"

static unsigned char *block_new(void)
{
    unsigned char *block = pages_new(LANE_ROOM_BYTES);
    if (block != NULL) {
        int rc = madvise(block, LANE_ROOM_BYTES, MADV_HUGEPAGE);
        (void)rc; /* only faster */
    }
    return block;
}

bool lane_room_init(struct lane *lane)
{
    unsigned char *block = block_new();
    if (block != NULL) {
        room_init(&lane->room, block, LANE_SLOT_BYTES, LANE_SLOTS, lane->slot);
    }
    return block != NULL;
}

void lane_room_free(struct lane *lane)
{
    for (uint32_t i = 0; i < lane->room.blocks; i++) {
        pages_free(lane->room.block[i], LANE_ROOM_BYTES);
        atomic_fetch_sub(&lane->engine->staging, i == 0 ? 0 : LANE_ROOM_BYTES);
    }
}

/* Slots that all windows ask for: one launch takes half of what is free at most. */
static uint64_t wanted(const struct lane *lane)
{
    return LANE_SLOTS + 2 * lane->windows;
}

/* From the share of the process; false: that is used up. */
static bool staging_take(struct engine *e)
{
    if (atomic_fetch_add(&e->staging, LANE_ROOM_BYTES) + LANE_ROOM_BYTES <= e->staging_most) {
        return true;
    }
    atomic_fetch_sub(&e->staging, LANE_ROOM_BYTES);
    return false;
}

void lane_room_grow(struct lane *lane)
{
    bool more = lane->room.slot_count < wanted(lane), full = lane->room.blocks == ROOM_BLOCKS;
    lane->bound = more && full ? LANE_BOUND_ROOM : more && !staging_take(lane->engine) ? LANE_BOUND_PROCESS : LANE_BOUND_NONE;
    if (!more || lane->bound != LANE_BOUND_NONE) {
        return;
    }
    unsigned char *block = block_new();
    if (block != NULL) {
        room_grow(&lane->room, block);
    } else {
        atomic_fetch_sub(&lane->engine->staging, LANE_ROOM_BYTES);
    }
}

void lane_room_rest(struct lane *lane)
{
    if (!list_empty(&lane->execs)) {
        return;
    }
    lane->bound = LANE_BOUND_NONE;
    while (lane->room.slot_count - LANE_SLOTS >= wanted(lane)) {
        unsigned char *block = room_shrink(&lane->room);
        if (block == NULL) {
            break; /* a launch has reserved some: at the next rest */
        }
        pages_free(block, LANE_ROOM_BYTES);
        atomic_fetch_sub(&lane->engine->staging, LANE_ROOM_BYTES);
    }
    for (uint32_t i = 1; i < lane->room.blocks; i++) {
        pages_clear(lane->room.block[i], LANE_ROOM_BYTES);
    }
}
