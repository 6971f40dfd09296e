/* test_window_room.c - places shared among members: nobody keeps the last, few who are busy have at least half.
 * SPDX-License-Identifier: MIT */
#include "tests/testing.h"

#include "core/random.h"
#include "window/window_room.h"

/* As many as it gets. */
static uint32_t fill(struct window_room *r, uint64_t id, uint32_t members)
{
    uint32_t count = 0;
    while (room_for(r, id, members)) {
        room_take(r, id);
        count++;
    }
    return count;
}

TEST(one_alone_has_all_and_leaves_a_place_for_each_other)
{
    for (uint32_t members = 1; members <= 200; members++) {
        struct window_room r = {0};
        uint32_t others = members - 1 < WINDOW_ROOM / 2 ? members - 1 : WINDOW_ROOM / 2;
        EXPECT_EQ(fill(&r, 1000, members), WINDOW_ROOM - others);
        for (uint32_t i = 1; i <= others; i++) {
            EXPECT(room_for(&r, 1000 + i, members));
            room_take(&r, 1000 + i);
        }
        EXPECT(r.used == WINDOW_ROOM && r.holders == others + 1 && !room_for(&r, 1, members) && !room_for(&r, 1000, members));
    }
}

TEST(whoever_has_none_gets_one_while_any_is_free_and_counts_never_drift)
{
    enum { MEMBERS = 20, STEPS = 200000 };
    struct window_room r = {0};
    uint32_t count[MEMBERS] = {0}, used = 0;
    struct rng rng = {5};
    for (int i = 0; i < STEPS; i++) {
        uint32_t m = (uint32_t)rng_below(&rng, MEMBERS), holders = 0;
        for (uint32_t k = 0; k < MEMBERS; k++) {
            holders += count[k] > 0;
        }
        bool may = room_for(&r, m + 7, MEMBERS);
        EXPECT_EQ(may, WINDOW_ROOM - used > (count[m] == 0 ? 0 : MEMBERS - holders));
        if (may && rng_below(&rng, 3) > 0) {
            room_take(&r, m + 7);
            count[m]++;
            used++;
        } else if (count[m] > 0) {
            room_give(&r, m + 7);
            count[m]--;
            used--;
        }
        EXPECT_EQ(r.used, used);
    }
}
