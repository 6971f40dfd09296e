/* test_lane_room.c - how large a lane's room becomes, and what it says when a bound keeps it smaller.
 * SPDX-License-Identifier: MIT */
#include "engine/lanes/lane_room.h"
#include "tests/testing.h"

#include "engine/comm.h"

static struct engine engine; /* large */
static struct lane lanes[2];

static void begin(int64_t staging_most)
{
    atomic_store(&engine.staging, 0);
    engine.staging_most = staging_most;
    for (int i = 0; i < 2; i++) {
        memset(&lanes[i], 0, sizeof lanes[i]);
        lanes[i].engine = &engine;
        list_init(&lanes[i].execs);
        EXPECT(lane_room_init(&lanes[i]));
    }
}

static void end(void)
{
    for (int i = 0; i < 2; i++) {
        lane_room_free(&lanes[i]);
    }
    EXPECT_EQ(atomic_load(&engine.staging), 0);
}

/* Asks for more so often; the blocks there are then. */
static uint32_t grow(struct lane *lane, uint32_t times)
{
    for (uint32_t i = 0; i < times; i++) {
        lane_room_grow(lane);
    }
    return lane->room.blocks;
}

TEST(room_grows_to_twice_the_windows_and_no_bound_is_met) /* a bound that is told of and not met would send operators astray */
{
    begin(ENGINE_STAGING_BYTES);
    EXPECT_EQ(grow(&lanes[0], 3), 1);
    EXPECT_EQ(lanes[0].bound, LANE_BOUND_NONE);
    lanes[0].windows = LANE_SLOTS; /* twice that in two more blocks */
    EXPECT_EQ(grow(&lanes[0], 1), 2);
    EXPECT_EQ(grow(&lanes[0], 9), 3);
    EXPECT_EQ(lanes[0].bound, LANE_BOUND_NONE);
    EXPECT_EQ(atomic_load(&engine.staging), 2 * LANE_ROOM_BYTES);
    end();
}

TEST(bound_of_the_process_is_met_by_all_lanes_together_and_left_again)
{
    begin(3 * (int64_t)LANE_ROOM_BYTES);
    lanes[0].windows = lanes[1].windows = LANE_SLOTS;
    EXPECT_EQ(grow(&lanes[0], 9), 3);
    EXPECT_EQ(grow(&lanes[1], 1), 2);
    EXPECT_EQ(lanes[1].bound, LANE_BOUND_NONE); /* reached, not passed */
    EXPECT_EQ(grow(&lanes[1], 1), 2);
    EXPECT_EQ(lanes[1].bound, LANE_BOUND_PROCESS);
    EXPECT_EQ(lanes[0].bound, LANE_BOUND_NONE);
    EXPECT_EQ(atomic_load(&engine.staging), 3 * LANE_ROOM_BYTES);
    lanes[0].windows = 0; /* its peers have gone */
    lane_room_rest(&lanes[0]);
    EXPECT_EQ(lanes[0].room.blocks, 1);
    EXPECT_EQ(grow(&lanes[1], 1), 3);
    EXPECT_EQ(lanes[1].bound, LANE_BOUND_NONE);
    end();
}

TEST(bound_of_a_lane_is_not_that_of_the_process) /* the other remedy would not help */
{
    begin(ENGINE_STAGING_MOST);
    lanes[0].windows = UINT32_MAX;
    EXPECT_EQ(grow(&lanes[0], ROOM_BLOCKS - 1), ROOM_BLOCKS);
    EXPECT_EQ(lanes[0].bound, LANE_BOUND_NONE);
    EXPECT_EQ(grow(&lanes[0], 1), ROOM_BLOCKS);
    EXPECT_EQ(lanes[0].bound, LANE_BOUND_ROOM);
    lane_room_rest(&lanes[0]);
    EXPECT_EQ(lanes[0].bound, LANE_BOUND_NONE);
    EXPECT((int64_t)LANE_ROOM_BYTES * (ROOM_BLOCKS - 1) > ENGINE_STAGING_BYTES); /* by default one lane can use all that the process may */
    end();
}
