/* test_exec.c - whole worlds of executors against a fold of whole buffers.
 *
 * A run ends when nothing can happen any more: then all must be complete, equal to the fold, and every room as it was at
 * the start.
 * SPDX-License-Identifier: MIT */
#include "tests/unit/exec_world.h"

#include "core/mutant.h"
#include "kernels/hash.h"

/* ---- What must hold at the end ------------------------------------------------------------------------------------ */

static void check_rooms(struct cluster *c)
{
    for (uint32_t r = 0; r < c->world; r++) {
        for (uint32_t l = 0; l < c->lane_count; l++) {
            struct room *room = &c->rooms[r][l];
            uint32_t seen = 0;
            EXPECT_EQ(room->half_a, (int32_t)(c->slot_count / 2));
            EXPECT_EQ(room->half_b, (int32_t)(c->slot_count - c->slot_count / 2));
            EXPECT_EQ(room->free_slots, c->slot_count);
            for (uint32_t i = 0, slot = room->free_first; i < room->free_slots; i++, slot = room->slot[slot].next) {
                seen |= 1u << slot;
            }
            EXPECT_EQ(seen, (1u << c->slot_count) - 1);
        }
    }
}

/* Of what becomes final at this rank, frame by frame. */
static uint64_t expected_digest(const struct cluster *c, uint32_t r, uint32_t o)
{
    const struct share *share = &c->shares[r][o];
    const struct numeric *n = &c->ops[o].numeric;
    uint64_t sum = 0;
    for (uint32_t i = 0; i < share->plan.segment_count; i++) {
        const struct plan_segment *s = &share->plan.segments[i];
        for (uint32_t f = 0; !s->scratch && plan_completes(&share->plan, s) && f < s->frames; f++) {
            size_t at, count;
            plan_frame(&share->plan, s->frame + f, &at, &count);
            size_t offset = numeric_user_bytes(n, s->out + at);
            sum += hash_mix64(hash_simple64(share->expected + offset, numeric_user_bytes(n, count)), s->frame + f);
        }
    }
    return sum;
}

static void check_share(struct cluster *c, uint32_t r, uint32_t o)
{
    struct share *s = &c->shares[r][o];
    struct operation *op = &c->ops[o];
    uint64_t digest = 0, tx = 0, rx = 0;
    size_t sent, received;
    for (uint32_t l = 0; l < op->params.lanes; l++) {
        EXPECT(s->lanes[l].done && s->lanes[l].idle && !s->lanes[l].starved && !s->lanes[l].work);
        EXPECT_EQ(exec_waits_for(&s->lanes[l]).partner, PLAN_NOBODY);
        digest += s->lanes[l].digest;
        tx += s->lanes[l].tx_bytes;
        rx += s->lanes[l].rx_bytes;
    }
    EXPECT(memcmp(s->out, s->expected, s->out_bytes) == 0);
    EXPECT(s->out[s->out_bytes] == 0xA5);
    EXPECT(digest == expected_digest(c, r, o));
    plan_traffic(&s->plan, &sent, &received);
    if (op->numeric.quant == QUANT_NONE) {
        EXPECT_EQ(tx, numeric_user_bytes(&op->numeric, sent));
        EXPECT_EQ(rx, numeric_user_bytes(&op->numeric, received));
    }
}

/* The input of an operation that wrote over it, from what was saved; what was not is as it was. */
static void restore(struct cluster *c, uint32_t r, uint32_t o)
{
    struct share *s = &c->shares[r][o];
    const struct numeric *n = &c->ops[o].numeric;
    for (uint32_t f = 0; f < s->plan.frame_count; f++) {
        size_t first, count;
        const struct plan_segment *segment = plan_frame(&s->plan, f, &first, &count);
        size_t at = numeric_user_bytes(n, segment->in + first);
        if (s->saved[f]) {
            memcpy(s->in + at, s->backup + at, numeric_user_bytes(n, count));
        }
    }
}

static void cluster_check(struct cluster *c)
{
    int before = test_failures;
    for (uint32_t r = 0; r < c->world; r++) {
        for (uint32_t o = 0; o < c->op_count; o++) {
            struct share *s = &c->shares[r][o];
            if (!c->ops[o].aborted) {
                EXPECT(s->launched);
                if (s->launched) {
                    check_share(c, r, o);
                }
            }
            if (s->backup != NULL) {
                restore(c, r, o);
            }
            EXPECT(memcmp(s->in, s->in_copy, s->in_bytes) == 0);
        }
    }
    check_rooms(c);
    if (test_failures != before && before == 0) {
        fprintf(stderr, "  seed %" PRIu64 ": world %u, %u lanes, %u operations, %u slots\n", c->seed, c->world,
                c->lane_count, c->op_count, c->slot_count);
        for (uint32_t o = 0; o < c->op_count; o++) {
            const struct plan_params *q = &c->ops[o].params;
            fprintf(stderr, "    operation %u: kind %d by algorithm %d, %zu elements of %s, %zu in a frame%s\n", o, (int)q->kind,
                    (int)q->algorithm, q->count, dtype_name(c->ops[o].numeric.dtype), q->frame_elements,
                    c->ops[o].aborted ? ", stopped" : "");
        }
    }
}

/* ---- Tests -------------------------------------------------------------------------------------------------------- */

static void run_one(uint64_t seed, uint32_t world, uint32_t lanes, const struct op_choice *choice)
{
    struct cluster *c = cluster_new(seed, world, lanes);
    c->op_count = 1;
    op_make(c, 0, choice);
    cluster_start(c);
    cluster_run(c);
    cluster_check(c);
    cluster_free(c);
}

TEST(every_type_and_operator_gives_the_bits_of_a_fold_in_order) /* order or conversion differs: peers drift apart */
{
    uint64_t seed = 1;
    for (int type = 0; type < DTYPE_COUNT; type++) {
        for (int op = 0; op < REDOP_COUNT; op++) {
            if (!redop_for((enum redop)op, (enum dtype)type)) {
                continue;
            }
            for (int algorithm = 0; algorithm < PLAN_ALGORITHMS; algorithm++) {
                if (!plan_offers(PLAN_ALL_REDUCE, (enum plan_algorithm)algorithm) ||
                    (plan_sends_sums((enum plan_algorithm)algorithm) && (type == DTYPE_F16 || type == DTYPE_BF16 || op == REDOP_PREMUL))) {
                    continue;
                }
                for (uint32_t world = 2; world <= ALL_RANKS; world += world == 5 || test_scaled(10) == 1 ? 4 : 1) {
                    run_one(seed++, world, 1 + world % 3,
                            &(struct op_choice){.algorithm = (enum plan_algorithm)algorithm,
                                                .dtype = (enum dtype)type, .op = (enum redop)op, .count = 131});
                }
            }
        }
    }
}

/* Trees cross in all directions, in rooms of two to nine slots: a contribution that waits in a slot behind another tree's stops all of them. */
TEST(forests_of_any_trees_end_with_the_bits_of_their_trees)
{
    static const enum dtype types[] = {DTYPE_F32, DTYPE_F64, DTYPE_I8, DTYPE_U32, DTYPE_I64};
    static const enum redop ops[] = {REDOP_SUM, REDOP_AVG, REDOP_PROD, REDOP_MAX, REDOP_MIN};
    const uint32_t worlds[] = {2, 3, 4, 5, 6, 7, 8, 9, 16, 33};
    const size_t counts[] = {0, 1, 7, 333, 1999};
    for (uint64_t seed = 0; seed < test_scaled(100) && test_failures == 0; seed++) {
        uint32_t world = worlds[seed % 10];
        size_t count = counts[seed / 3 % (world < 10 ? 5 : 4)]; /* large worlds take time */
        run_one(seed + 900000, world, 1 + (uint32_t)(seed / 10 % MAX_LANES),
                &(struct op_choice){.algorithm = PLAN_FOREST, .dtype = types[seed % 5], .op = ops[seed / 5 % 5], .count = count});
    }
}

TEST(quantised_operations_do_not_depend_on_who_owns_what) /* an owner's own input must be quantised like the others' */
{
    uint64_t seed = 1;
    uint32_t combinations = 0;
    for (int type = 0; type < DTYPE_COUNT * DTYPE_COUNT * QUANT_COUNT; type++) {
        enum dtype from = (enum dtype)(type % DTYPE_COUNT), to = (enum dtype)(type / DTYPE_COUNT % DTYPE_COUNT);
        enum quant quant = (enum quant)(type / DTYPE_COUNT / DTYPE_COUNT);
        if (quant == QUANT_NONE || !numeric_quant_supported(from, quant, to)) {
            continue;
        }
        combinations++;
        for (uint32_t world = 2; world <= 4; world++) {
            for (int i = 0; i < 4; i++, seed++) {
                run_one(seed, world, 1 + (uint32_t)i % 2,
                        &(struct op_choice){.algorithm = i == 3 ? PLAN_TINY : PLAN_DIRECT, .dtype = from,
                                            .op = seed % 6 == 5 ? REDOP_PREMUL : (enum redop)(seed % 6), .quant = quant,
                                            .quant_dtype = to, .count = i == 2 ? 256 * 24 * (size_t)world : 700});
            }
        }
    }
    EXPECT(combinations >= 8);
}

TEST(integer_sums_equal_a_plain_loop) /* independent of the kernels */
{
    for (uint64_t seed = 0; seed < test_scaled(30); seed++) {
        struct cluster *c = cluster_new(seed, 2 + (uint32_t)seed % 5, 2);
        c->op_count = 1;
        op_make(c, 0, &(struct op_choice){.algorithm = (enum plan_algorithm)(seed % 3), .dtype = DTYPE_I64,
                                          .count = 333});
        cluster_start(c);
        cluster_run(c);
        for (size_t i = 0; i < 333; i++) {
            uint64_t sum = 0, v;
            for (uint32_t r = 0; r < c->world; r++) {
                memcpy(&v, c->shares[r][0].in_copy + 8 * i, 8);
                sum += v;
            }
            memcpy(&v, c->shares[seed % c->world][0].out + 8 * i, 8);
            EXPECT(v == sum);
        }
        cluster_check(c);
        cluster_free(c);
    }
}

TEST(traffic_is_two_w_minus_one_over_w_of_the_buffer)
{
    for (uint32_t world = 2; world <= ALL_RANKS; world++) {
        for (uint64_t seed = 0; seed < test_scaled(6); seed++) {
            size_t bytes = (size_t)60 * 4 * world;
            struct cluster *c = cluster_new(seed, world, 1 + (uint32_t)seed % 3);
            c->op_count = 1;
            op_make(c, 0, &(struct op_choice){.algorithm = seed & 1 ? PLAN_RING : PLAN_DIRECT, .dtype = DTYPE_F32,
                                              .count = bytes / 4, .even = true});
            cluster_start(c);
            cluster_run(c);
            for (uint32_t r = 0; r < world; r++) {
                uint64_t tx = 0, rx = 0;
                for (uint32_t l = 0; l < c->lane_count; l++) {
                    tx += c->shares[r][0].lanes[l].tx_bytes;
                    rx += c->shares[r][0].lanes[l].rx_bytes;
                }
                EXPECT_EQ(tx, 2 * (world - 1) * bytes / world);
                EXPECT_EQ(rx, tx);
            }
            cluster_check(c);
            cluster_free(c);
        }
    }
}

TEST(every_kind_by_every_algorithm_gives_each_rank_what_it_promises)
{
    uint64_t seed = 1;
    for (int kind = PLAN_REDUCE_SCATTER; kind < PLAN_SEND; kind++) {
        for (int algorithm = 0; algorithm < PLAN_ALGORITHMS; algorithm++) {
            for (uint32_t world = 2; plan_offers((enum plan_kind)kind, (enum plan_algorithm)algorithm) && world <= ALL_RANKS; world++) {
                for (int i = 0; i < (int)test_scaled(20); i++, seed++) {
                    const bool packs = plan_packs((enum plan_kind)kind, (enum plan_algorithm)algorithm); /* a round has many parts */
                    const size_t counts[] = {packs ? 29 : 131, 0, 1, packs ? 7 : 40};
                    const bool sums = plan_kind_sums((uint8_t)kind), partial = plan_sends_sums((enum plan_algorithm)algorithm);
                    const enum dtype drawn = (enum dtype)(seed % (sums ? DTYPE_F8E4M3 : DTYPE_COUNT)); /* the last ones only move */
                    const enum dtype type = sums && partial && (drawn == DTYPE_F16 || drawn == DTYPE_BF16) ? DTYPE_F32 : drawn;
                    const enum redop op = (enum redop)(seed / 7 % REDOP_COUNT);
                    run_one(seed, world, 1 + (uint32_t)seed % MAX_LANES,
                            &(struct op_choice){.kind = (enum plan_kind)kind, .algorithm = (enum plan_algorithm)algorithm,
                                                .dtype = type, .op = sums && redop_for(op, type) && (op != REDOP_PREMUL || !partial) ? op : REDOP_SUM,
                                                .count = counts[seed % 4], .even = i % 2 == 0});
                }
            }
        }
    }
}

/* What is summed up here for several others leaves to each at its own speed: a result buffer comes free before an older one. */
TEST(sums_for_others_end_in_their_order_however_slowly_one_of_them_takes_them)
{
    for (uint64_t seed = 0; seed < test_scaled(200) && test_failures == 0; seed++) {
        run_one(seed + 700000, 3 + (uint32_t)seed % 4, 1, &(struct op_choice){.kind = PLAN_REDUCE_SCATTER, .algorithm = PLAN_DIRECT,
                .dtype = DTYPE_F32, .op = REDOP_PREMUL, .count = 131});
    }
}

static struct cluster *cluster_mixed(uint64_t seed)
{
    struct cluster *c = cluster_new(seed, 2 + (uint32_t)(seed % 4), 1 + (uint32_t)(seed / 4 % 2));
    c->op_count = 2 + draw(c, MAX_OPS - 1);
    for (uint32_t o = 0; o < c->op_count; o++) {
        struct op_choice choice = op_draw(c);
        op_make(c, o, &choice);
    }
    cluster_start(c);
    return c;
}

/* A room shared by operations that are launched in different orders: a grant that waits for a program would stop all. */
TEST(operations_launched_in_opposite_orders_never_dead_lock)
{
    for (uint64_t seed = 0; seed < test_scaled(600) && test_failures == 0; seed++) {
        struct cluster *c = cluster_mixed(seed);
        cluster_run(c);
        cluster_check(c);
        cluster_free(c);
    }
}

/* Sums of others' contributions, which wait for these others' programs and room, beside each other in rooms of two or three slots:
 * one of half B that is promised for such a sum before there is one would never come back. */
TEST(sums_of_others_hold_no_room_while_they_wait)
{
    static const enum plan_algorithm sums[] = {PLAN_TREE, PLAN_HALVING, PLAN_FOREST};
#ifdef PCCL_MUTANTS
    mutant_active = getenv("PCCL_MUTANT") == NULL ? MUTANT_NONE : mutant_find(getenv("PCCL_MUTANT"));
#endif
    for (uint64_t seed = 0; seed < test_scaled(200) && test_failures == 0; seed++) {
        struct cluster *c = cluster_new(seed + 500000, 3 + (uint32_t)(seed % (ALL_RANKS - 2)), 1);
        c->slot_count = 2 + draw(c, 2);
        c->op_count = 3 + draw(c, MAX_OPS - 2);
        for (uint32_t o = 0; o < c->op_count; o++) {
            op_make(c, o, &(struct op_choice){.algorithm = o < 2 || draw(c, 4) > 0 ? sums[draw(c, 3)] : PLAN_DIRECT, .dtype = DTYPE_I32,
                                              .count = 1 + draw(c, 60), .even = draw(c, 2) == 0});
        }
        cluster_start(c);
        cluster_run(c);
        cluster_check(c);
        cluster_free(c);
    }
}

static void abort_op(struct cluster *c, uint32_t o)
{
    c->ops[o].aborted = true;
    for (uint32_t r = 0; r < c->world; r++) {
        struct share *s = &c->shares[r][o];
        for (uint32_t l = 0; s->launched && l < c->ops[o].params.lanes; l++) {
            step(c, r, o, l, (struct exec_event){.kind = EXEC_STOP});
            EXPECT(s->lanes[l].stopped);
            for (uint32_t i = 0; i < s->plan.partner_count; i++) {
                EXPECT(!exec_has_frame(&s->lanes[l], i));
            }
        }
        s->stopped = s->launched;
    }
}

TEST(stop_at_any_point_gives_everything_back) /* a leaked grant starves every later operation of the lane */
{
    for (uint64_t seed = 0; seed < test_scaled(600) && test_failures == 0; seed++) {
        struct cluster *c = cluster_mixed(seed + 100000);
        uint32_t steps = draw(c, 400);
        for (uint32_t i = 0; i < steps && cluster_step(c, 4); i++) {
        }
        for (uint32_t o = 0; o < c->op_count; o++) { /* the others must finish as if nothing had happened */
            if (seed % 3 == 0 || draw(c, 2) == 0) {
                abort_op(c, o);
            }
        }
        if (seed % 3 == 0) {
            check_rooms(c);
        }
        cluster_run(c);
        cluster_check(c);
        cluster_free(c);
    }
}
