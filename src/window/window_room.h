/* window_room.h - places for what is under way with others, of which nobody can keep the last.
 * SPDX-License-Identifier: MIT */
#ifndef PCCL_WINDOW_WINDOW_ROOM_H
#define PCCL_WINDOW_WINDOW_ROOM_H

#include <stdbool.h>
#include <stdint.h>

enum { WINDOW_ROOM = 64 };

struct window_room {
    uint32_t used, holders;
    struct window_holder {
        uint64_t id;         /* of a member */
        uint32_t count;      /* of its places; 0: nobody's entry */
    } holder[WINDOW_ROOM];
};

/* Whether that member, one of so many, may have another place. */
bool room_for(const struct window_room *r, uint64_t id, uint32_t members);
void room_take(struct window_room *r, uint64_t id); /* there is one */
void room_give(struct window_room *r, uint64_t id); /* it has one */

#endif
