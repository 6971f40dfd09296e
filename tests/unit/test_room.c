/* test_room.c - how the launches of several worlds share half A of a lane's room.
 * SPDX-License-Identifier: MIT */
#include "tests/testing.h"

#include "collectives/exec_state.h"

enum { SLOTS = 128, MOST = 8 };

static struct room_slot room_slots[SLOTS * ROOM_BLOCKS];

static struct room room_new(void)
{
    struct room room;
    room_init(&room, NULL, 1, SLOTS, room_slots);
    return room;
}

/* A launch with so many senders; what each of them is granted. */
static uint32_t launch(struct room *room, uint32_t senders, bool holds)
{
    int32_t before = room->half_a;
    uint32_t window = room_window(room, senders, MOST, holds);
    EXPECT_EQ(room_reserve(room, window * senders), window * senders);
    EXPECT(!holds || window * senders <= (uint32_t)before / 2);
    return window;
}

TEST(world_that_launches_all_it_can_leaves_two_grants_a_sender_to_others) /* its peers never launch, and all of half A waits for them */
{
    for (uint32_t senders = 1; senders <= 3; senders++) {
        struct room room = room_new();
        bool holds = false;
        for (int i = 0; i < 1000; i++) {
            holds = launch(&room, senders, holds) > 0 || holds;
        }
        EXPECT(room.half_a < SLOTS / 4); /* it is not kept small when it is alone */
        while (room_take_a(&room)) { /* what it runs asks for more */
        }
        EXPECT(!room_has_a(&room));
        EXPECT_EQ(launch(&room, senders, true), 0);
        for (int world = 0; world < 2; world++) {
            EXPECT(launch(&room, senders, false) >= 2);
        }
    }
}

TEST(the_first_launches_find_a_whole_window) /* each is as slow as if others were there */
{
    struct room room = room_new();
    EXPECT_EQ(launch(&room, 3, false), MOST);
    EXPECT(launch(&room, 3, true) >= 6);
    EXPECT_EQ(room_window(&room, 0, MOST, false), 0);
    room_unreserve(&room, SLOTS / 2 - (uint32_t)room.half_a);
    EXPECT(room_whole(&room));
}

TEST(smallest_room_has_no_reserve) /* nobody could be granted anything */
{
    struct room room;
    room_init(&room, NULL, 1, 2, room_slots);
    EXPECT(room_has_a(&room) && room_take_a(&room) && !room_has_a(&room));
    room_unreserve(&room, 1);
    EXPECT_EQ(room_window(&room, 1, MOST, false), 1);
    EXPECT_EQ(room_window(&room, 1, MOST, true), 0);
}

TEST(a_grown_room_has_each_slot_once_and_shrinks_when_all_are_free) /* two frames would come to one place, or memory in use be freed */
{
    static unsigned char blocks[3][4 * 8];
    struct room room;
    uint32_t slot[12], seen = 0;
    room_init(&room, blocks[0], 8, 4, room_slots);
    EXPECT_EQ(room_slot_take(&room), 0);
    room_grow(&room, blocks[1]);
    room_grow(&room, blocks[2]);
    EXPECT_EQ(room.half_a, 2 + 8);
    EXPECT_EQ(room.half_b, 2);
    slot[0] = 0;
    for (uint32_t i = 1; i < 12; i++) {
        slot[i] = room_slot_take(&room);
        EXPECT_EQ(slot[i], i); /* what was there before comes first */
    }
    for (uint32_t i = 0; i < 12; i++) {
        EXPECT(room_slot(&room, slot[i]) == blocks[i / 4] + i % 4 * 8);
        seen |= 1u << slot[i];
    }
    EXPECT_EQ(seen, (1u << 12) - 1);
    for (uint32_t i = 0; i < 11; i++) {
        room_slot_give(&room, slot[i]);
    }
    EXPECT(room_shrink(&room) == NULL);
    room_slot_give(&room, slot[11]);
    EXPECT_EQ(room_reserve(&room, 7), 7);
    EXPECT(room_shrink(&room) == NULL); /* a launch has promised more than the other blocks hold */
    EXPECT_EQ(room.half_a, 3);
    room_unreserve(&room, 7);
    EXPECT(room_shrink(&room) == blocks[2]);
    EXPECT(room_shrink(&room) == blocks[1]);
    EXPECT(room_shrink(&room) == NULL);
    EXPECT(room_whole(&room));
    EXPECT_EQ(room_slot_take(&room), 0);
}
