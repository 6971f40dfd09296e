/* room.c - a lane's staging memory: slots, and the grants that promise them.
 *
 * Its one idea: a grant is a promise of a slot, so grants and slots in use together never exceed the slots, and whoever
 * holds a grant finds a slot.  Half A may be promised to peers whose programs have not launched; half B only for frames
 * that are folded on arrival, so that it always comes back.  A world may take half of what is free of half A when it
 * launches, and what runs leaves a reserve, so that each world with work gets some; nobody's end depends on it.
 * Invariant: half_a + half_b + all that executors hold = slot_count.
 * SPDX-License-Identifier: MIT */
#include "collectives/exec_state.h"

#include "core/check.h"

enum {
    ROOM_RESERVE = 8, /* of the slots: a quarter of half A */
    ROOM_OWN = 2,     /* grants for each sender that a world gets which holds none */
};

void room_init(struct room *room, unsigned char *slots, uint32_t slot_bytes, uint32_t slot_count, uint32_t *free_list)
{
    PCCL_ASSERT(slot_count >= 2 && slot_count <= INT32_MAX);
    room->slots = slots;
    room->slot_bytes = slot_bytes;
    room->slot_count = slot_count;
    room->free_list = free_list;
    room->free_slots = slot_count;
    for (uint32_t i = 0; i < slot_count; i++) {
        free_list[i] = slot_count - 1 - i; /* low slots first: they stay in cache */
    }
    room->half_a = (int32_t)(slot_count / 2);
    room->reserve = (int32_t)(slot_count / ROOM_RESERVE);
    room->half_b = (int32_t)(slot_count - slot_count / 2);
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
    return room->free_list[--room->free_slots];
}

void room_slot_give(struct room *room, uint32_t slot)
{
    PCCL_ASSERT(slot < room->slot_count && room->free_slots < room->slot_count);
    room->free_list[room->free_slots++] = slot;
}
