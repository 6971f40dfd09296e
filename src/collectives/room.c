/* room.c - a lane's staging memory: slots, and the grants that promise them.
 *
 * Its one idea: a grant is a promise of a slot, so grants and slots in use together never exceed the slots, and whoever
 * holds a grant finds a slot.  Half A may be promised to peers whose programs have not launched; half B only for frames
 * that are folded on arrival, so that it always comes back.  A world may take half of what is free of half A when it
 * launches, and what runs leaves a reserve, so that each world with work gets some; nobody's end depends on it.
 * A room grows by blocks for links with long round trips, whose senders need more grants: all of a new block goes to half A.
 * Invariant: half_a + half_b + all that executors hold = slot_count.
 * SPDX-License-Identifier: MIT */
#include "collectives/exec_state.h"

#include "core/check.h"

enum {
    ROOM_RESERVE = 8, /* of the slots: a quarter of half A */
    ROOM_OWN = 2,     /* grants for each sender that a world gets which holds none */
};

/* All slots are free, the low ones first: they stay in cache. */
static void free_all(struct room *room)
{
    for (uint32_t i = 0; i < room->slot_count; i++) {
        room->slot[i].next = i + 1 < room->slot_count ? i + 1 : EXEC_NONE;
    }
    room->free_first = 0;
    room->free_slots = room->slot_count;
}

void room_init(struct room *room, unsigned char *block, uint32_t slot_bytes, uint32_t block_slots, struct room_slot *slot)
{
    PCCL_ASSERT(block_slots >= 2 && block_slots <= INT32_MAX / ROOM_BLOCKS);
    *room = (struct room){
        .block = {block}, .blocks = 1, .block_slots = block_slots, .slot_bytes = slot_bytes, .slot_count = block_slots, .slot = slot,
        .half_a = (int32_t)(block_slots / 2), .half_b = (int32_t)(block_slots - block_slots / 2),
        .reserve = (int32_t)(block_slots / ROOM_RESERVE),
    };
    free_all(room);
}

void room_grow(struct room *room, unsigned char *block)
{
    PCCL_ASSERT(room->blocks < ROOM_BLOCKS);
    room->block[room->blocks++] = block;
    uint32_t *last = &room->free_first; /* the new ones come last: the others are in cache */
    while (*last != EXEC_NONE) {
        last = &room->slot[*last].next;
    }
    for (uint32_t i = 0; i < room->block_slots; i++) {
        *last = room->slot_count++;
        last = &room->slot[*last].next;
    }
    *last = EXEC_NONE;
    room->free_slots += room->block_slots;
    room_unreserve(room, room->block_slots);
}

unsigned char *room_shrink(struct room *room)
{
    if (room->blocks == 1 || room->free_slots != room->slot_count) {
        return NULL;
    }
    uint32_t got = room_reserve(room, room->block_slots);
    if (got < room->block_slots) {
        room_unreserve(room, got);
        return NULL;
    }
    room->slot_count -= room->block_slots;
    free_all(room);
    return room->block[--room->blocks];
}

/* Leaves so many. */
static uint32_t take(int32_t *half, uint32_t want, int32_t left)
{
    int32_t have = __atomic_load_n(half, __ATOMIC_RELAXED);
    int32_t got;
    do {
        got = have < left ? 0 : have - left;
        if ((uint32_t)got > want) {
            got = (int32_t)want;
        }
        if (got == 0) {
            return 0;
        }
    } while (!__atomic_compare_exchange_n(half, &have, have - got, true, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED));
    return (uint32_t)got;
}

static uint32_t least(uint32_t a, uint32_t b)
{
    return a < b ? a : b;
}

uint32_t room_window(const struct room *room, uint32_t senders, uint32_t most, bool holds)
{
    int32_t have = __atomic_load_n(&room->half_a, __ATOMIC_RELAXED);
    uint32_t free = have < 0 ? 0 : (uint32_t)have, reserve = (uint32_t)room->reserve, own = least(free, ROOM_OWN * senders);
    uint32_t beyond = free > reserve ? free - reserve : 0, share = least(free / 2, beyond);
    share = holds || share > own ? share : own;
    return senders == 0 ? 0 : least(share / senders, most);
}

uint32_t room_reserve(struct room *room, uint32_t want)
{
    return take(&room->half_a, want, 0);
}

void room_unreserve(struct room *room, uint32_t count)
{
    __atomic_fetch_add(&room->half_a, (int32_t)count, __ATOMIC_ACQ_REL);
}

bool room_whole(const struct room *room)
{
    int32_t a = __atomic_load_n(&room->half_a, __ATOMIC_ACQUIRE), b = __atomic_load_n(&room->half_b, __ATOMIC_ACQUIRE);
    return a >= 0 && b >= 0 && (uint32_t)a + (uint32_t)b == room->slot_count && room->free_slots == room->slot_count;
}

bool room_has_a(const struct room *room)
{
    return __atomic_load_n(&room->half_a, __ATOMIC_RELAXED) > room->reserve;
}

bool room_has_b(const struct room *room)
{
    return __atomic_load_n(&room->half_b, __ATOMIC_RELAXED) > 0;
}

void frame_pool_give(struct frame_pool *pool, void *buffer)
{
    *(void **)buffer = pool->first;
    pool->first = buffer;
    pool->count++;
}

void *frame_pool_take(struct frame_pool *pool)
{
    void *buffer = pool->first;
    if (buffer != NULL) {
        pool->first = *(void **)buffer;
        pool->count--;
    }
    return buffer;
}

bool room_take_a(struct room *room)
{
    return take(&room->half_a, 1, room->reserve) == 1;
}

bool room_take_b(struct room *room)
{
    return take(&room->half_b, 1, 0) == 1;
}

void room_give_b(struct room *room, uint32_t count)
{
    __atomic_fetch_add(&room->half_b, (int32_t)count, __ATOMIC_ACQ_REL);
}

uint32_t room_slot_take(struct room *room)
{
    PCCL_ASSERT(room->free_slots > 0); /* the grant promised it */
    uint32_t slot = room->free_first;
    room->free_first = room->slot[slot].next;
    room->free_slots--;
    return slot;
}

void room_slot_give(struct room *room, uint32_t slot)
{
    PCCL_ASSERT(slot < room->slot_count && room->free_slots < room->slot_count);
    room->slot[slot].next = room->free_first;
    room->free_first = slot;
    room->free_slots++;
}

unsigned char *room_slot(const struct room *room, uint32_t slot)
{
    return room->block[slot / room->block_slots] + (size_t)(slot % room->block_slots) * room->slot_bytes;
}
