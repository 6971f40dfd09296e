/* test_exec_wait.c - what counts as progress of an operation, row by row; and who is told that room moves.
 * SPDX-License-Identifier: MIT */
#include "collectives/exec_wait.h"

#include "core/mutant.h"
#include "tests/testing.h"

enum { STALL = 1000, NONE = 0 };

/* Whether an operation that its peer has launched as the 5th, and this one as the 7th, is found to stand still when for a stall time
 * nothing but this has moved (0: not at all). */
static bool still(enum exec_wait_kind kind, uint64_t received, uint64_t granted, uint64_t sent, uint64_t lane_bytes)
{
    struct exec_watch w;
    struct exec_wait wait = {kind, 1};
    bool stalled = false;
#ifdef PCCL_MUTANTS
    mutant_active = getenv("PCCL_MUTANT") == NULL ? MUTANT_NONE : mutant_find(getenv("PCCL_MUTANT"));
#endif
    exec_watch_start(&w, 0);
    for (int64_t now = STALL / 4; now <= 2 * STALL; now += STALL / 4) {
        struct exec_edge edge;
        exec_edge_clear(&edge);
        if (received != NONE) {
            exec_edge_note(&edge.received, received);
        }
        if (granted != NONE) {
            exec_edge_note(&edge.granted, granted);
        }
        if (sent != NONE) {
            exec_edge_note(&edge.sent, sent);
        }
        struct exec_look look = {.now = now, .stall_ns = STALL, .edge = &edge, .theirs = 5, .own = 7,
                                 .lane_bytes = lane_bytes * (uint64_t)now};
        stalled |= exec_watch_stalled(&w, &wait, &look);
    }
    return stalled;
}

TEST(bytes_of_what_the_sender_launched_before_are_progress) /* it stands behind them, for as long as they take */
{
    EXPECT(still(EXEC_WAIT_DATA, NONE, NONE, NONE, 0));
    EXPECT(!still(EXEC_WAIT_DATA, 4, NONE, NONE, 0));
    EXPECT(!still(EXEC_WAIT_DATA, 5, NONE, NONE, 0));
}

TEST(bytes_of_what_it_launched_later_are_none) /* else a peer that never serves one operation is never found */
{
    EXPECT(still(EXEC_WAIT_DATA, 6, NONE, NONE, 1));
    EXPECT(still(EXEC_WAIT_DATA, NONE, 4, 4, 1)); /* and what goes the other way is none, either */
    EXPECT(still(EXEC_WAIT_TAKE, 4, NONE, NONE, 1));
    EXPECT(still(EXEC_WAIT_TAKE, NONE, 6, 8, 1));
}

TEST(a_receiver_gets_on_by_grants_and_by_taking_what_was_launched_here_before)
{
    EXPECT(!still(EXEC_WAIT_TAKE, NONE, 5, NONE, 0));
    EXPECT(!still(EXEC_WAIT_TAKE, NONE, NONE, 6, 0));
    EXPECT(!still(EXEC_WAIT_TAKE, NONE, NONE, 7, 0));
}

TEST(a_lane_short_of_room_gets_on_by_whatever_it_receives)
{
    EXPECT(!still(EXEC_WAIT_ROOM, NONE, NONE, NONE, 1));
    EXPECT(still(EXEC_WAIT_ROOM, NONE, NONE, NONE, 0));
}

TEST(a_process_that_stood_still_itself_blames_nobody)
{
    struct exec_watch w;
    struct exec_wait wait = {EXEC_WAIT_DATA, 1};
    exec_watch_start(&w, 0);
    EXPECT(!exec_watch_stalled(&w, &wait, &(struct exec_look){.now = 10 * STALL, .stall_ns = STALL}));
    EXPECT(!exec_watch_stalled(&w, &wait, &(struct exec_look){.now = 10 * STALL + STALL / 2, .stall_ns = STALL}));
    EXPECT(exec_watch_stalled(&w, &wait, &(struct exec_look){.now = 11 * STALL, .stall_ns = STALL}));
    EXPECT(!exec_watch_stalled(&w, &wait, &(struct exec_look){.now = 11 * STALL + STALL / 2, .stall_ns = STALL})); /* once */
}

/* Rank 1 of 3, direct, i32: two frames of its own shard, contributions of ranks 0 (in place) and 2 (staged), its partners 0 and 1. */
TEST(whoever_starves_is_told_that_the_room_moves_and_nobody_else)
{
    enum { WORLD = 3 };
    struct plan plan;
    struct plan_segment segments[WORLD];
    struct plan_step steps[5 * WORLD];
    uint32_t partners[WORLD - 1];
    struct numeric numeric;
    struct room room;
    unsigned char slots[8 * 16];
    uint32_t free_list[8];
    int32_t in[24] = {0}, out[24];
    struct exec x;
    struct exec_credit credit;
    struct exec_out done;
    plan_make(&plan, &(struct plan_params){.algorithm = PLAN_DIRECT, .world = WORLD, .rank = 1, .count = 24, .align = 1,
                                           .frame_elements = 4}, segments, steps, NULL, partners);
    EXPECT(numeric_init(&numeric, DTYPE_I32, REDOP_SUM, QUANT_NONE, DTYPE_U8, kernels_get()));
    room_init(&room, slots, 16, 8, free_list);
    struct exec_config config = {.plan = &plan, .numeric = &numeric, .room = &room, .in = in, .out = out, .lanes = 1};
    void *arena = aligned_alloc(64, exec_arena_bytes(&config));
    exec_init(&x, &config, arena);
    EXPECT(exec_take_credit(&x, 0, &credit) && credit.frames == 2); /* comes straight into place */
    EXPECT_EQ(room_reserve(&room, 8), 4);
    exec_step(&x, &(struct exec_event){.kind = EXEC_READY, .partner = 0}, &done);
    exec_step(&x, &(struct exec_event){.kind = EXEC_READY, .partner = 1}, &done);
    EXPECT(x.starved && !exec_take_credit(&x, 1, &credit));
    exec_step(&x, &(struct exec_event){.kind = EXEC_TELL}, &done);
    EXPECT(exec_take_credit(&x, 1, &credit) && credit.frames == 0);
    EXPECT(!exec_take_credit(&x, 1, &credit)); /* once */
    EXPECT(!exec_take_credit(&x, 0, &credit));
    free(arena);
}
