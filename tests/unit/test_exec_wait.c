/* test_exec_wait.c - what counts as progress of an operation, row by row; and who is told that room moves.
 * SPDX-License-Identifier: MIT */
#include "collectives/exec_wait.h"

#include "core/clock.h"
#include "core/mutant.h"
#include "tests/testing.h"

enum { STALL = 1000, NONE = 0 };

static void start_mutant(void)
{
#ifdef PCCL_MUTANTS
    mutant_active = getenv("PCCL_MUTANT") == NULL ? MUTANT_NONE : mutant_find(getenv("PCCL_MUTANT"));
#endif
}

/* Whether an operation that its peer has launched as the 5th, and this one as the 7th, is found to stand still when for a stall time
 * nothing but this has moved (0: not at all). */
static bool still(enum exec_wait_kind kind, uint64_t received, uint64_t granted, uint64_t sent, uint64_t lane_bytes)
{
    struct exec_watch w;
    struct exec_wait wait = {kind, 1};
    bool stalled = false;
    start_mutant();
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

enum { CHAIN = 6, DELAY = 20, LOOK = STALL / 4 }; /* in ms, as all times of a chain */

/* Rank k of a chain waits for rank k + 1, the last for nobody until `moves_until`, then for rank `last_for`.  Ranks look in turn, several times
 * in a stall time, and a tell takes DELAY.  The first time at which a rank reports a standstill; 0: none until `end`. */
static int64_t chain_stalls(int64_t moves_until, uint32_t last_for, int64_t end)
{
    struct exec_watch w[CHAIN];
    struct {
        int64_t at;
        uint32_t ms;
        uint16_t far;
    } tell[CHAIN] = {0}; /* of rank k, on its way */
    start_mutant();
    for (uint32_t k = 0; k < CHAIN; k++) {
        exec_watch_start(&w[k], 0);
    }
    for (int64_t now = 1; now < end; now++) {
        for (uint32_t k = 0; k < CHAIN; k++) {
            uint32_t of = k + 1 < CHAIN ? k + 1 : last_for;
            bool moves = k + 1 == CHAIN && now < moves_until;
            struct exec_wait wait = moves ? (struct exec_wait){EXEC_WAIT_NOBODY, PLAN_NOBODY} : (struct exec_wait){EXEC_WAIT_DATA, of};
            struct exec_look look = {.now = now * CLOCK_MS, .stall_ns = STALL * CLOCK_MS, .theirs = 5, .own = 7};
            if (now % LOOK == k * LOOK / CHAIN && exec_watch_stalled(&w[k], &wait, &look)) {
                return now;
            }
            if (of < CHAIN && tell[of].at == now) {
                struct exec_move move = {exec_move_at(tell[of].ms, now * CLOCK_MS), tell[of].far};
                exec_watch_heard(&w[k], &wait, CHAIN, of, &move);
            }
            if (exec_watch_tells(&w[k], STALL * CLOCK_MS)) {
                tell[k].at = now + DELAY;
                tell[k].ms = exec_move_ms(w[k].moved.at, now * CLOCK_MS);
                tell[k].far = w[k].moved.far;
            }
        }
    }
    return 0;
}

TEST(whoever_waits_for_one_that_moves_sees_no_standstill_however_long_the_chain)
{
    EXPECT_EQ(chain_stalls(INT64_MAX, PLAN_NOBODY, 100 * STALL), 0);
}

TEST(a_chain_whose_end_stops_is_found_as_soon_as_that_end)
{
    int64_t found = chain_stalls(20 * STALL, PLAN_NOBODY, 100 * STALL);
    EXPECT(found > 20 * STALL && found < 22 * STALL);
}

TEST(a_move_that_has_gone_round_a_circle_of_waits_counts_for_nothing) /* each rank would wait for ever for what it hears of itself */
{
    int64_t found = chain_stalls(20 * STALL, 0, 100 * STALL);
    EXPECT(found > 20 * STALL && found < 22 * STALL);
}

TEST(a_move_of_a_rank_that_is_not_waited_for_counts_for_nothing)
{
    struct exec_watch w;
    struct exec_wait wait = {EXEC_WAIT_DATA, 1};
    exec_watch_start(&w, 1);
    exec_watch_heard(&w, &wait, 3, 2, &(struct exec_move){STALL / 2, 0});
    EXPECT_EQ(w.moved.at, 1);
    exec_watch_heard(&w, &wait, 3, 1, &(struct exec_move){STALL / 2, 1});
    EXPECT(w.moved.at == STALL / 2 && w.moved.far == 2);
    exec_watch_heard(&w, &wait, 3, 1, &(struct exec_move){STALL / 4, 0}); /* older news */
    EXPECT(w.moved.at == STALL / 2 && w.moved.far == 2);
    exec_watch_heard(&w, &wait, 3, 1, &(struct exec_move){STALL, 2}); /* further away than three ranks can be */
    EXPECT_EQ(w.moved.at, STALL / 2);
    exec_watch_heard(&w, &wait, 16384, 1, &(struct exec_move){STALL, UINT16_MAX});
    EXPECT_EQ(w.moved.at, STALL / 2);
}

TEST(a_peer_whose_connection_shows_that_it_gets_on_needs_no_telling) /* tells of hundreds of operations would fill a slow link */
{
    struct exec_edge edge;
    exec_edge_clear(&edge);
    EXPECT(!exec_edge_shows(&edge, 7));
    edge.granted = 1; /* by that peer, so nothing to it */
    edge.received = 1; /* from that peer, which may wait for what we make of it: a frame took 3.5 s, and each try was aborted after 3 */
    EXPECT(!exec_edge_shows(&edge, 7));
    edge.sent = 8;
    EXPECT(!exec_edge_shows(&edge, 7));
    edge.sent = 7;
    EXPECT(exec_edge_shows(&edge, 7));
}

TEST(a_standstill_that_was_reported_is_no_move)
{
    struct exec_watch w;
    struct exec_wait wait = {EXEC_WAIT_DATA, 1};
    exec_watch_start(&w, 1);
    for (int64_t now = LOOK; now <= 2 * STALL; now += LOOK) {
        (void)exec_watch_stalled(&w, &wait, &(struct exec_look){.now = now, .stall_ns = STALL});
    }
    EXPECT(w.reported_at > 0 && !exec_watch_tells(&w, STALL));
}

TEST(the_time_of_a_move_travels_as_its_age)
{
    const int64_t now = 1000 * CLOCK_S, minute = 60 * CLOCK_S;
    EXPECT_EQ(exec_move_ms(now, now), 1);
    EXPECT_EQ(exec_move_at(1, now), now);
    EXPECT_EQ(exec_move_at(exec_move_ms(now - minute, now), now), now - minute);
    EXPECT_EQ(exec_move_ms(1, INT64_C(1) << 62), UINT32_MAX); /* as long as can be told */
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
    struct room_slot room_slots[8];
    int32_t in[24] = {0}, out[24];
    struct exec x;
    struct exec_credit credit;
    struct exec_out done;
    plan_make(&plan, &(struct plan_params){.algorithm = PLAN_DIRECT, .world = WORLD, .rank = 1, .count = 24, .align = 1,
                                           .frame_elements = 4}, segments, steps, NULL, partners);
    EXPECT(numeric_init(&numeric, DTYPE_I32, REDOP_SUM, QUANT_NONE, DTYPE_U8, kernels_get()));
    room_init(&room, slots, 16, 8, room_slots);
    struct exec_config config = {.plan = &plan, .numeric = &numeric, .room = &room, .in = in, .out = out, .lanes = 1};
    void *arena = aligned_alloc(64, exec_arena_bytes(&config));
    exec_init(&x, &config, arena);
    EXPECT(exec_take_credit(&x, 0, &credit) && credit.frames == 2); /* comes straight into place */
    EXPECT_EQ(room_reserve(&room, 8), 4);
    exec_step(&x, &(struct exec_event){.kind = EXEC_READY, .partner = 0}, &done);
    exec_step(&x, &(struct exec_event){.kind = EXEC_READY, .partner = 1}, &done);
    EXPECT(x.starved && !exec_take_credit(&x, 1, &credit));
    exec_step(&x, &(struct exec_event){.kind = EXEC_TELL, .moved.at = 7}, &done);
    EXPECT(exec_take_credit(&x, 1, &credit) && credit.frames == 0 && credit.moved.at == 7);
    EXPECT(!exec_take_credit(&x, 1, &credit)); /* once */
    EXPECT(!exec_take_credit(&x, 0, &credit));
    for (uint32_t partner = 0; partner < 2; partner++) {
        exec_step(&x, &(struct exec_event){.kind = EXEC_MOVED, .partner = partner, .moved = {9, 3}}, &done);
    }
    exec_step(&x, &(struct exec_event){.kind = EXEC_TELL, .moved.at = 8}, &done); /* older news */
    for (uint32_t partner = 0; partner < 2; partner++) {
        EXPECT(exec_take_credit(&x, partner, &credit) && credit.frames == 0 && credit.moved.at == 9 && credit.moved.far == 3);
        EXPECT(!exec_has_credit(&x, partner));
    }
    free(arena);
}
