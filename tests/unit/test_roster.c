/* test_roster.c - ranks that a program knows mean the same members after losses, however many (B10).
 * SPDX-License-Identifier: MIT */
#include "tests/unit/session_bench.h"

#include "core/random.h"
#include "session/calls/roster.h"
#include "session/calls/slots.h"
#include "session/session_state.h"

enum { MEMBERS = 40 };

/* The next view: without those whose bit is set, of the one before; the first lists all, with these keys. */
static void view_without(struct bench *b, uint32_t number, const uint32_t *keys, uint64_t lost, uint32_t left)
{
    static unsigned char raw[8192];
    struct writer w;
    writer_init(&w, raw, sizeof raw);
    uint32_t removed = (uint32_t)__builtin_popcountll(lost);
    struct msg_view m = {.view = view_id(number), .parent = keys != NULL ? 0 : view_id(number - 1), .sizes = {left, left, 1, left},
                         .plan = {.lanes = 1, .frame_bytes = 4096},
                         .removed = removed, .added = keys != NULL ? MEMBERS : 0, .members = left};
    put_view(&w, &m);
    for (uint32_t i = 0; i < MEMBERS; i++) {
        if ((lost >> i & 1) != 0) {
            put_u64(&w, peer_id(i));
        }
    }
    for (uint32_t i = 0; i < MEMBERS && keys != NULL; i++) {
        put_member_info(&w, &(struct member_info){.id = peer_id(i), .key = keys[i], .lanes = 1});
    }
    for (uint32_t i = 0; i < left; i++) {
        put_u32(&w, i);
    }
    from_master(b, FRAME_VIEW, m.view, &w);
    EXPECT(b->s->view.world == left && !session_poisoned(b->s));
}

static void check_ranks(const struct session *s, const uint32_t *order)
{
    for (uint32_t called = 0; called < MEMBERS; called++) {
        EXPECT(roster_member(s, called) == peer_id(order[called]));
        EXPECT_EQ(roster_rank(s, peer_id(order[called])), called);
    }
    EXPECT(roster_member(s, MEMBERS) == 0 && roster_rank(s, peer_id(MEMBERS)) == NONE);
}

TEST(ranks_mean_the_members_of_the_snapshot_whoever_is_lost) /* a message goes to another than the program names */
{
    struct rng rng = {7};
    for (int round = 0; round < 50; round++) {
        struct session_config c = bench_config();
        c.max_members = MEMBERS;
        struct bench *b = bench_of(&c, false);
        uint32_t keys[MEMBERS], order[MEMBERS], left = MEMBERS;
        uint64_t gone = 0;
        for (uint32_t i = 0; i < MEMBERS; i++) {
            uint32_t k = i;
            keys[i] = round % 2 == 0 ? 0 : (uint32_t)rng_below(&rng, 10);
            for (; k > 0 && keys[order[k - 1]] > keys[i]; k--) {
                order[k] = order[k - 1];
            }
            order[k] = i;
        }
        view_without(b, 2, keys, 0, left);
        snapshot_take(b->s, view_id(2), &b->s->view.sizes);
        check_ranks(b->s, order);
        for (uint32_t number = 3; left > 1; number++) {
            uint64_t lost = 0;
            for (uint32_t i = 1; i < MEMBERS; i++) { /* never this one */
                lost |= (uint64_t)(rng_below(&rng, 6) == 0 && (gone >> i & 1) == 0) << i;
            }
            gone |= lost;
            left -= (uint32_t)__builtin_popcountll(lost);
            view_without(b, number, NULL, lost, left);
            check_ranks(b->s, order);
        }
        snapshot_take(b->s, b->s->view.view, &b->s->view.sizes);
        EXPECT(b->s->roster.count == 0 && roster_member(b->s, 0) == self && roster_member(b->s, 1) == 0);
        bench_free(b);
    }
}
