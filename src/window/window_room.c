/* window_room.c - see window_room.h.
 *
 * Its one idea: a member that has no place yet may take any that is free; one that has some leaves one for each that has none, but for no
 * more than half of the room, so that few who are busy among many who are not have the other half.
 * SPDX-License-Identifier: MIT */
#include "window/window_room.h"

#include "core/check.h"
#include "core/mutant.h"

/* Its entry; WINDOW_ROOM: it has none. */
static uint32_t room_entry(const struct window_room *r, uint64_t id)
{
    uint32_t i = 0;
    while (i < WINDOW_ROOM && (r->holder[i].count == 0 || r->holder[i].id != id)) {
        i++;
    }
    return i;
}

bool room_for(const struct window_room *r, uint64_t id, uint32_t members)
{
    uint32_t free = WINDOW_ROOM - r->used, without = members > r->holders ? members - r->holders : 0;
    without = without < WINDOW_ROOM / 2 ? without : WINDOW_ROOM / 2;
    return free > (room_entry(r, id) == WINDOW_ROOM || MUTANT(WINDOW_UNSHARED) ? 0 : without);
}

void room_take(struct window_room *r, uint64_t id)
{
    uint32_t i = room_entry(r, id);
    for (i = i < WINDOW_ROOM ? i : 0; r->holder[i].count > 0 && r->holder[i].id != id; i++) {
    }
    PCCL_ASSERT(r->used < WINDOW_ROOM);
    r->holder[i].id = id;
    r->holders += r->holder[i].count++ == 0;
    r->used++;
}

void room_give(struct window_room *r, uint64_t id)
{
    uint32_t i = room_entry(r, id);
    PCCL_ASSERT(i < WINDOW_ROOM);
    r->holders -= --r->holder[i].count == 0;
    r->used--;
}
