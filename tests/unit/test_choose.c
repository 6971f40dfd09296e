/* test_choose.c - the choice of an algorithm, its formulas, and PCCL_ALGO.
 * SPDX-License-Identifier: MIT */
#include "collectives/choose.h"

#include "core/random.h"
#include "tests/testing.h"

/* About what two cores of a server measure over loopback. */
static const struct costs loopback = {.delay_ns = 20000, .message_ns = 5000, .byte_ps = 200, .fold_ps = 30};

static struct choose_call call_of(enum plan_kind kind, uint32_t world, uint64_t bytes)
{
    return (struct choose_call){.kind = kind, .world = world, .bytes = bytes, .frame_bytes = 131072, .small = bytes <= 16384, .plain = true,
                                .told = world <= 32, .allowed = UINT16_MAX, .costs = loopback, .crowd = CHOOSE_CROWD};
}

static enum plan_algorithm chosen(const struct choose_call *c)
{
    return choose_algorithm(c).algorithm;
}

static uint64_t predicted(struct choose_call c, enum plan_algorithm algorithm)
{
    c.allowed = (uint16_t)(1u << algorithm);
    struct choose_answer a = choose_algorithm(&c);
    EXPECT_EQ(a.algorithm, algorithm);
    return a.ns;
}

TEST(what_was_never_measured_goes_as_it_always_did) /* members of a master that knows no costs */
{
    for (uint32_t world = 2; world < 20; world++) {
        for (int kind = 0; kind < PLAN_SEND; kind++) {
            struct choose_call c = call_of((enum plan_kind)kind, world, 1 << 20);
            c.costs = (struct costs){0};
            EXPECT_EQ(chosen(&c), plan_kind_pairs((uint8_t)kind) ? PLAN_PAIRWISE : PLAN_DIRECT);
            EXPECT_EQ(choose_algorithm(&c).ns, 0);
            c.small = true;
            EXPECT_EQ(chosen(&c), PLAN_TINY);
        }
    }
}

TEST(nothing_that_can_be_done_is_clearly_faster_than_what_is_chosen) /* and it can be: the executor has a plan for it */
{
    struct rng rng = {1};
    unsigned seen[PLAN_KINDS] = {0};
    for (int i = 0; i < 200000; i++) {
        struct choose_call c = call_of((enum plan_kind)rng_below(&rng, PLAN_KINDS), 2 + (uint32_t)rng_below(&rng, i % 7 == 0 ? 16383 : 60),
                                       rng_next(&rng) >> rng_below(&rng, 64));
        c.small = rng_below(&rng, 4) == 0;
        c.plain = rng_below(&rng, 2) == 0;
        c.ring.link_ps = rng_below(&rng, 2) == 0 ? 0 : (uint32_t)(rng_next(&rng) >> (32 + rng_below(&rng, 32)));
        c.ring.delay_us = (uint32_t)(rng_next(&rng) >> (32 + rng_below(&rng, 32)));
        c.uneven = rng_below(&rng, 8) == 0;
        c.pairs = plan_kind_pairs((uint8_t)c.kind) && rng_below(&rng, 4) == 0;
        c.handed_on = c.uneven && plan_kind_pairs((uint8_t)c.kind) && rng_below(&rng, 2) == 0;
        c.allowed = (uint16_t)(rng_below(&rng, 4) == 0 ? 1 + rng_below(&rng, 511) : UINT16_MAX);
        c.forest = (struct forest){rng_below(&rng, 2) == 0, (uint32_t)(rng_next(&rng) >> (32 + rng_below(&rng, 32))),
                                   (uint32_t)(rng_next(&rng) >> (32 + rng_below(&rng, 32)))};
        c.crowd = (uint32_t)rng_below(&rng, 65536);
        c.link_ps = rng_below(&rng, 2) == 0 ? 0 : (uint32_t)(rng_next(&rng) >> (32 + rng_below(&rng, 32)));
        c.costs = (struct costs){(uint32_t)(rng_next(&rng) >> (34 + rng_below(&rng, 30))), (uint32_t)(rng_next(&rng) >> (34 + rng_below(&rng, 30))),
                                 (uint32_t)(rng_next(&rng) >> (34 + rng_below(&rng, 30))), (uint32_t)(rng_next(&rng) >> (34 + rng_below(&rng, 30)))};
        struct choose_answer a = choose_algorithm(&c);
        EXPECT(plan_offers(c.kind, a.algorithm) || (a.algorithm == PLAN_TINY && c.small));
        EXPECT(c.plain || !plan_kind_sums((uint8_t)c.kind) || !plan_sends_sums(a.algorithm));
        EXPECT(a.algorithm != PLAN_FOREST || (c.forest.usable && !c.small));
        EXPECT(!c.uneven || a.algorithm == PLAN_DIRECT || a.algorithm == PLAN_FOREST ||
               c.kind == PLAN_SEND || (a.algorithm == PLAN_PAIRWISE && !c.handed_on) || (c.small && a.algorithm == PLAN_TINY));
        EXPECT(!c.pairs || !plan_packs(c.kind, a.algorithm));
        seen[c.kind] |= 1u << a.algorithm;
        for (int other = 0; other < PLAN_ALGORITHMS; other++) {
            struct choose_call one = c;
            one.allowed = (uint16_t)(1u << other);
            struct choose_answer b = choose_algorithm(&one);
            bool few = other == PLAN_TREE || other == PLAN_HALVING || other == PLAN_CHAIN;
            bool untold = (c.kind == PLAN_ALL_REDUCE || c.kind == PLAN_REDUCE) && !c.told && few;
            EXPECT((int)b.algorithm != other || (c.allowed >> other & 1) == 0 || untold || a.ns - a.ns / 10 <= b.ns);
        }
    }
    for (int kind = 0; kind < PLAN_KINDS; kind++) {
        for (int a = 0; a < PLAN_ALGORITHMS; a++) {
            EXPECT(!plan_offers((enum plan_kind)kind, (enum plan_algorithm)a) || (seen[kind] >> a & 1) != 0);
        }
    }
}

TEST(trees_are_taken_where_they_are_predicted_to_be_faster) /* else a view with trees would be no faster than one without, or slower */
{
    struct choose_call c = call_of(PLAN_ALL_REDUCE, 8, 64 << 20);
    c.costs.byte_ps = 80000; /* 100 Mb/s */
    c.costs.delay_ns = 50000000;
    EXPECT_EQ(chosen(&c), PLAN_DIRECT); /* there are none */
    c.forest = (struct forest){.usable = true, .mib_ns = 1 << 20, .delay_us = 50000};
    EXPECT_EQ(predicted(c, PLAN_FOREST), predicted(c, PLAN_DIRECT)); /* members that need longer than the links */
    EXPECT_EQ(chosen(&c), PLAN_DIRECT); /* no clear gain */
    c.costs = loopback;
    c.forest.mib_ns = 12345678;
    c.link_ps = 1 << 23; /* is what direct pays; the trees' own time counts for them */
    EXPECT_EQ(chosen(&c), PLAN_FOREST);
    EXPECT_EQ(predicted(c, PLAN_FOREST), UINT64_C(64) * 12345678 + 50000000 + 2 * 20000); /* READY and HOLD */
    c.bytes = UINT64_C(64) << 30; /* time goes on as bytes do but for delays, and does not overflow */
    EXPECT_EQ(predicted(c, PLAN_FOREST), (UINT64_C(64) << 10) * 12345678 + 50000000 + 2 * 20000);
    c = call_of(PLAN_ALL_REDUCE, 8, 4 << 10);
    c.forest = (struct forest){.usable = true};
    c.small = true;
    c.allowed = 1u << PLAN_FOREST;
    EXPECT(chosen(&c) != PLAN_FOREST); /* what travels with its launch needs no trees */
    c.small = false;
    EXPECT_EQ(chosen(&c), PLAN_FOREST);
    c.plain = false;
    EXPECT(chosen(&c) != PLAN_FOREST); /* partial sums travel in full precision only */
}

TEST(the_formulas_give_what_is_counted_by_hand)
{
    struct choose_call c = call_of(PLAN_ALL_REDUCE, 4, 1 << 16); /* parts of 16 KiB: a frame each */
    /* 12 ends of frames, 3 READY (by the ring 2) and 3 HOLD each way; 12 parts past an end, 3 folded; READY, give, send and HOLD. */
    EXPECT_EQ(predicted(c, PLAN_DIRECT), (12 + 12) * 5000 / 2 + 12 * 16384 / 10 + 3 * 16384 * 30 / 1000 + 4 * 20000);
    EXPECT_EQ(predicted(c, PLAN_RING), (12 + 10) * 5000 / 2 + 12 * 16384 / 10 + 3 * 16384 * 30 / 1000 + 8 * 20000);
    EXPECT_EQ(predicted(c, PLAN_HALVING), (12 + 12) * 5000 / 2 + 12 * 16384 / 10 + 3 * 16384 * 30 / 1000 + 6 * 20000);
    c.crowd = 10 * CHOOSE_CROWD; /* what all do, on a tenth of a core for each, and each message wakes somebody */
    EXPECT_EQ(predicted(c, PLAN_DIRECT) / 100, (10 * (3 * (12 + 12) * 5000 / 2 + 12 * 16384 / 10 + 3 * 16384 * 30 / 1000)) / 100);
    c.bytes = 4; /* 3 frames and 3 HOLDs each way */
    c.small = true;
    c.crowd = CHOOSE_CROWD;
    EXPECT_EQ(predicted(c, PLAN_TINY), 12 * 5000 / 2 + 24 / 10 + 16 * 30 / 1000 + 2 * 20000);
    c = call_of(PLAN_ALL_TO_ALL, 8, 1024); /* 7 frames, READY and HOLD each way, of 7 parts; READY, one hop, HOLD */
    EXPECT_EQ(predicted(c, PLAN_PAIRWISE), (14 + 28) * 5000 / 2 + 14 * 1024 / 10 + 3 * 20000);
    /* 3 frames each way, of 12 parts, packed as the 8 of the output; 6 READY; three hops. */
    EXPECT_EQ(predicted(c, PLAN_BRUCK), (6 + 26) * 5000 / 2 + 24 * 1024 / 10 + 20 * 1024 * 30 / 1000 + 5 * 20000);
    c.bytes = 131073; /* two frames for each part, five for four of them */
    EXPECT_EQ(predicted(c, PLAN_PAIRWISE) / 10, ((28 + 28) * 5000 / 2 + 14 * 131073 / 10 + 3 * 20000) / 10);
    EXPECT_EQ(predicted(c, PLAN_BRUCK) / 10, ((30 + 26) * 5000 / 2 + 24 * 131073 / 10 + 20 * 131073 * 3 / 100 + 5 * 20000) / 10);
}

TEST(bytes_over_a_slow_link_take_as_long_as_the_link_does) /* at 100 ms 64 MiB went to each of the others */
{
    for (uint32_t world = 2; world <= 8; world *= 2) {
        struct choose_call c = call_of(PLAN_ALL_REDUCE, world, UINT64_C(64) << 20);
        c.costs.delay_ns = 50000000;
        c.link_ps = 80000;
        EXPECT_EQ(chosen(&c), PLAN_DIRECT);
        c.bytes = 4;
        c.small = true;
        EXPECT_EQ(chosen(&c), PLAN_TINY);
    }
    struct choose_call c = call_of(PLAN_ALL_REDUCE, 4, 1 << 16);
    uint64_t before = predicted(c, PLAN_DIRECT);
    c.link_ps = 80000; /* 100 Mb/s: 3 parts of 16 KiB go out, and come in, twice */
    EXPECT_EQ(predicted(c, PLAN_DIRECT) - before, 12 * 16384 * 80 / 2 - 12 * 16384 / 10);
    c.link_ps = 100; /* faster than the processor is */
    EXPECT_EQ(predicted(c, PLAN_DIRECT), before);
}

TEST(ring_is_taken_where_its_edges_are_faster_than_other_pairs) /* a pair that is slow, and the ring goes round it */
{
    struct choose_call c = call_of(PLAN_ALL_REDUCE, 4, 1 << 26);
    c.link_ps = 80000; /* 100 Mb/s: 10 s */
    EXPECT_EQ(chosen(&c), PLAN_DIRECT);
    c.ring = (struct ring_costs){.link_ps = 8000, .delay_us = 4 * 10000};
    EXPECT_EQ(chosen(&c), PLAN_RING);
    c.ring.link_ps = 79000; /* no clear gain */
    EXPECT_EQ(chosen(&c), PLAN_DIRECT);
    c.uneven = true; /* a pair is not linked: the ring would go over it */
    c.ring.link_ps = 8000;
    EXPECT_EQ(chosen(&c), PLAN_DIRECT);
    c = call_of(PLAN_BROADCAST, 4, 1 << 26); /* a chain goes along it */
    c.link_ps = 80000;
    c.ring.link_ps = 8000;
    EXPECT_EQ(chosen(&c), PLAN_CHAIN);
}

TEST(what_links_take_is_told_apart_from_delays_and_processors) /* measured times correct it alone */
{
    struct choose_call c = call_of(PLAN_ALL_REDUCE, 4, 1 << 26);
    EXPECT(!choose_algorithm(&c).links);
    c.link_ps = 80000;
    c.measured = true;
    struct choose_answer a = choose_algorithm(&c);
    EXPECT(a.algorithm == PLAN_DIRECT && a.links && a.measured);
    EXPECT_EQ(a.delay_ns, 4 * 20000);
    c.bytes = UINT64_C(1) << 30; /* sixteen times as many bytes, and as many delays */
    struct choose_answer b = choose_algorithm(&c);
    EXPECT_EQ(b.delay_ns, a.delay_ns);
    EXPECT_EQ(b.ns - b.delay_ns, 16 * (a.ns - a.delay_ns));
    c.crowd = UINT16_MAX; /* a host with so many members that its cores decide */
    EXPECT(!choose_algorithm(&c).links);
    c.bytes = UINT64_MAX;
    c.link_ps = UINT32_MAX;
    EXPECT(choose_algorithm(&c).ns >= b.ns); /* nothing overflows */
}

TEST(small_buffers_do_not_go_round_a_ring_that_is_faster) /* the whole world took it from its first megabyte on */
{
    struct choose_call c = call_of(PLAN_ALL_REDUCE, 12, 1 << 18);
    c.costs.delay_ns = 50000000;
    c.link_ps = 80000; /* 38 ms, and three delays: one half of a second and 22 delays are more */
    c.ring = (struct ring_costs){.link_ps = 8000, .delay_us = 12 * 50000};
    EXPECT_EQ(chosen(&c), PLAN_DIRECT);
    c.bytes = 1 << 25;
    EXPECT_EQ(chosen(&c), PLAN_RING);
}

TEST(delays_round_a_ring_are_hidden_behind_long_parts) /* each part is on its way while the next one is sent */
{
    struct choose_call c = call_of(PLAN_ALL_REDUCE, 4, 1 << 26); /* parts of 16 MiB, six times */
    c.costs = (struct costs){.delay_ns = 50000000};
    c.ring = (struct ring_costs){.link_ps = 80000, .delay_us = 4 * 30000};
    EXPECT_EQ(predicted(c, PLAN_RING) / 1000, (6 * (UINT64_C(1) << 24) * 80 + 30000000 + 2 * 50000000) / 1000);
    c.bytes = 1 << 16; /* six delays, and the last part */
    EXPECT_EQ(predicted(c, PLAN_RING) / 1000, ((1 << 14) * 80 + 6 * 30000000 + 2 * 50000000) / 1000);
}

TEST(the_choice_follows_size_and_world)
{
    struct choose_call c = call_of(PLAN_ALL_REDUCE, 2, 4);
    EXPECT_EQ(chosen(&c), PLAN_TINY);
    c = call_of(PLAN_ALL_REDUCE, 2, 1 << 24);
    EXPECT_EQ(chosen(&c), PLAN_DIRECT);
    c = call_of(PLAN_ALL_REDUCE, 4, 1 << 16); /* messages cost most, where more members than cores send them */
    EXPECT_EQ(chosen(&c), PLAN_DIRECT);
    c.crowd = 2 * CHOOSE_CROWD;
    EXPECT_EQ(chosen(&c), PLAN_TREE);
    c = call_of(PLAN_ALL_REDUCE, 256, 1 << 20); /* too many to tell each of all launches */
    EXPECT_EQ(chosen(&c), PLAN_DIRECT);
    c.allowed = 1u << PLAN_TREE | 1u << PLAN_HALVING;
    EXPECT_EQ(chosen(&c), PLAN_HALVING);
    c.bytes = 1 << 16;
    EXPECT_EQ(chosen(&c), PLAN_TREE);
    c.allowed = UINT16_MAX;
    c.bytes = 1 << 30; /* bytes do */
    EXPECT_EQ(chosen(&c), PLAN_DIRECT);
    c.costs.delay_ns = 50000000; /* across an ocean: as few delays as can be */
    c.bytes = 1 << 20;
    EXPECT_EQ(chosen(&c), PLAN_DIRECT);
    c = call_of(PLAN_BROADCAST, 64, 1 << 17);
    EXPECT_EQ(chosen(&c), PLAN_TREE);
    c = call_of(PLAN_REDUCE, 32, 1 << 17);
    EXPECT_EQ(chosen(&c), PLAN_TREE);
    c = call_of(PLAN_REDUCE, 33, 1 << 17); /* too many to tell */
    EXPECT_EQ(chosen(&c), PLAN_DIRECT);
    c = call_of(PLAN_REDUCE, 8, 1 << 23); /* the root gets it once, not seven times */
    EXPECT_EQ(chosen(&c), PLAN_CHAIN);
    c.bytes = 1 << 25; /* as much memory would be needed at the others */
    EXPECT_EQ(chosen(&c), PLAN_DIRECT);
    c = call_of(PLAN_ALL_GATHER, 64, 1 << 10);
    c.small = false;
    EXPECT_EQ(chosen(&c), PLAN_BRUCK);
    c = call_of(PLAN_ALL_TO_ALL, 128, 1 << 10); /* seven messages in place of 127, and 448 blocks */
    c.small = false;
    EXPECT_EQ(chosen(&c), PLAN_BRUCK);
    c.pairs = true; /* a round cannot be packed of what only two know the size of */
    EXPECT_EQ(chosen(&c), PLAN_PAIRWISE);
    c.pairs = false;
    c.uneven = true; /* who has little to carry, or lacks a link, would carry what others have */
    EXPECT_EQ(chosen(&c), PLAN_PAIRWISE);
    c.uneven = false;
    c.bytes = 1 << 14; /* bytes cost more than messages */
    EXPECT_EQ(chosen(&c), PLAN_PAIRWISE);
    c.allowed = 1u << PLAN_BRUCK;
    EXPECT_EQ(chosen(&c), PLAN_BRUCK);
    c.bytes = 1 << 15; /* 28 MiB of memory */
    EXPECT_EQ(chosen(&c), PLAN_PAIRWISE);
    c = call_of(PLAN_ALL_TO_ALL, 8, 1 << 12);
    EXPECT_EQ(chosen(&c), PLAN_TINY);
    c.small = false;
    EXPECT_EQ(chosen(&c), PLAN_PAIRWISE);
    c = call_of(PLAN_ALL_REDUCE, 64, 1 << 18);
    c.plain = false;
    EXPECT_EQ(chosen(&c), PLAN_DIRECT);
}

static uint8_t only(enum plan_algorithm a)
{
    return (uint8_t)(1u << a);
}

TEST(pccl_algo_is_read_as_nccl_algo_is)
{
    struct choose_wishes w, all = choose_all();
    char why[256];
    EXPECT(choose_read("", &w, why, sizeof why));
    EXPECT(memcmp(&w, &all, sizeof w) == 0);
    EXPECT(choose_read("ring", &w, why, sizeof why));
    EXPECT_EQ(w.allowed[PLAN_ALL_REDUCE], only(PLAN_RING));
    EXPECT_EQ(w.allowed[PLAN_ALL_GATHER], only(PLAN_RING));
    EXPECT_EQ(w.allowed[PLAN_ALL_TO_ALL], all.allowed[PLAN_ALL_TO_ALL]); /* has none of these */
    EXPECT(choose_read(" AllReduce : ring , tiny;broadcast:tree; ", &w, why, sizeof why));
    EXPECT_EQ(w.allowed[PLAN_ALL_REDUCE], only(PLAN_RING) | only(PLAN_TINY));
    EXPECT_EQ(w.allowed[PLAN_BROADCAST], only(PLAN_TREE));
    EXPECT_EQ(w.allowed[PLAN_REDUCE], all.allowed[PLAN_REDUCE]);
    EXPECT(choose_read("^ring", &w, why, sizeof why));
    EXPECT_EQ(w.allowed[PLAN_ALL_REDUCE], all.allowed[PLAN_ALL_REDUCE] & ~only(PLAN_RING));
    EXPECT(choose_read("tiny;allreduce:^tree,halving", &w, why, sizeof why)); /* the later one counts */
    EXPECT_EQ(w.allowed[PLAN_ALL_REDUCE], all.allowed[PLAN_ALL_REDUCE] & ~(only(PLAN_TREE) | only(PLAN_HALVING)));
    EXPECT_EQ(w.allowed[PLAN_GATHER], only(PLAN_TINY));
}

TEST(what_pccl_algo_cannot_mean_is_said) /* and nothing is changed */
{
    static const struct {
        const char *text, *says;
    } cases[] = {{"rings", "'rings': expected tiny, direct, ring"}, {"allreduce:", "'': expected tiny"},
                 {"allreduce:ring,,tiny", "'': expected tiny"}, {"sum:ring", "'sum': expected allreduce"},
                 {"alltoall:ring", "alltoall has: tiny, direct, bruck, pairwise"}, {"broadcast:^tiny,direct,tree,chain", "broadcast has: tiny, direct, tree, chain"},
                 {"^", "'': expected tiny"}, {":ring", "'': expected allreduce"}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct choose_wishes w = {.allowed = {77}};
        char why[256] = "";
        EXPECT(!choose_read(cases[i].text, &w, why, sizeof why));
        EXPECT(strstr(why, cases[i].says) != NULL);
        EXPECT_EQ(w.allowed[0], 77);
    }
}
