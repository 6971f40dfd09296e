/* test_p2p.c - messages between peers: what is put is got, and nothing else is accepted.
 * SPDX-License-Identifier: MIT */
#include "tests/testing.h"

#include "tests/unit/wire_cases.h"

enum { SEEDS = 200 };

TEST(p2p_messages_survive_the_wire)
{
    wire_cases_check(wire_p2p_cases, wire_p2p_case_count, SEEDS, wire_case_round_trip, &test_failures);
}

TEST(p2p_messages_cut_anywhere_are_refused) /* a field of a half message would be read as zero */
{
    wire_cases_check(wire_p2p_cases, wire_p2p_case_count, SEEDS, wire_case_cut, &test_failures);
}

TEST(p2p_messages_with_a_byte_too_many_are_refused)
{
    wire_cases_check(wire_p2p_cases, wire_p2p_case_count, SEEDS, wire_case_overlong, &test_failures);
}

TEST(p2p_messages_have_no_bit_without_meaning) /* two encodings of one message, or a field that is not read */
{
    wire_cases_check(wire_p2p_cases, wire_p2p_case_count, 20, wire_case_flips, &test_failures);
}

TEST(unknown_values_are_refused) /* a table indexed by them would be read past its end */
{
    static const struct {
        const char *name;
        size_t offset;
        int least, most;
    } rows[] = {
        {"hello", 0, 1, 6},     /* kind */
        {"hello", 41, 0, 10},   /* share */
        {"hello", 42, 0, 4},    /* net */
        {"hello_ack", 0, 1, 3}, /* verdict */
        {"hello_ack", 25, 0, 10},
        {"hello_ack", 26, 0, 4},
        {"want", 0, 0, 1},      /* space; its tag is 0 */
        {"ready", 22, 0, 14},   /* dtype, of an all-reduce */
        {"ready", 23, 0, 8},    /* op */
        {"ready", 24, 0, 2},    /* quant */
        {"ready", 25, 0, 14},   /* quant_dtype */
        {"eager", 22, 0, 14},
        {"eager", 23, 0, 8},
        {"eager", 24, 0, 2},
        {"eager", 25, 0, 14},
        {"refuse", 21, 1, 7}, /* causes of an operation only */
        {"data", 17, 0, 1},   /* phase */
        {"hold", 21, 0, 255}, /* round: any */
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        bool accepted[256];
        wire_case_accepted(wire_case_find(rows[i].name), rows[i].offset, accepted);
        for (int v = 0; v < 256; v++) {
            bool more = strcmp(rows[i].name, "refuse") == 0 && v == CAUSE_MISMATCH; /* has more behind it */
            EXPECT_EQ(accepted[v], v >= rows[i].least && v <= rows[i].most && !more);
        }
    }
}

TEST(a_lane_lies_inside_its_bundle) /* lanes index arrays */
{
    for (int kind = LINK_CONTROL; kind <= LINK_STRIPE; kind++) {
        for (uint32_t lanes = 0; lanes <= 70; lanes++) {
            for (uint32_t lane = 0; lane <= 70; lane++) {
                struct msg_hello m = {.kind = (uint8_t)kind, .lane = (uint16_t)lane, .lanes = (uint16_t)lanes}, back;
                unsigned char bytes[64];
                struct writer w;
                writer_init(&w, bytes, sizeof bytes);
                put_hello(&w, &m);
                struct reader r;
                reader_init(&r, bytes, w.used);
                EXPECT_EQ(get_hello(&r, &back), lanes <= 64 && ((kind != LINK_DATA && kind != LINK_STRIPE) || lane < lanes));
            }
        }
    }
}

TEST(data_prefix_is_as_long_as_declared) /* lanes place payload by that constant */
{
    static const unsigned char expected[P2P_DATA_PREFIX] = {0, 1, 0, 0, 0, 0, 0, 0, 0x80, 2, 0, 0, 0, 3, 0, 0, 0, 1};
    struct msg_data m = {.name = {.tag = 0x8000000000000001u, .seq = 2}, .frame = 3, .phase = 1}, back;
    unsigned char bytes[64];
    struct writer w;
    writer_init(&w, bytes, sizeof bytes);
    put_data(&w, &m);
    EXPECT_EQ(w.used, P2P_DATA_PREFIX);
    EXPECT(memcmp(bytes, expected, sizeof expected) == 0);
    struct reader r;
    reader_init(&r, bytes, sizeof bytes); /* payload behind it is none of its business */
    EXPECT(get_data(&r, &back));
    EXPECT_EQ(r.left, sizeof bytes - P2P_DATA_PREFIX);
}

TEST(payload_lengths_are_exact) /* a longer one would be read past the frame, a shorter one hide bytes */
{
    static const uint32_t wrong[] = {0, 9, 11, 0x80000000u, 0xFFFFFFFFu};
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        unsigned char bytes[64] = {0};
        const void *payload;
        struct writer w;
        struct reader r;
        writer_init(&w, bytes, sizeof bytes);
        put_eager(&w, &(struct msg_eager){.bytes = wrong[i]});
        reader_init(&r, bytes, w.used + 10);
        struct msg_eager eager;
        EXPECT(!get_eager(&r, &eager, &payload));
        writer_init(&w, bytes, sizeof bytes);
        put_manifest(&w, &(struct msg_manifest){.bytes = wrong[i]});
        reader_init(&r, bytes, w.used + 10);
        struct msg_manifest manifest;
        EXPECT(!get_manifest(&r, &manifest, &payload));
        writer_init(&w, bytes, sizeof bytes);
        put_leaf(&w, &(struct msg_leaf){.bytes = wrong[i]});
        reader_init(&r, bytes, w.used + 10);
        struct msg_leaf leaf;
        EXPECT(!get_leaf(&r, &leaf, &payload));
    }
}

TEST(counts_of_finished_names_are_held_to_their_limit)
{
    static unsigned char bytes[1 << 17];
    static const struct {
        uint32_t count;
        size_t left;
        bool good;
    } rows[] = {
        {0, 0, true},           {1, 13, true},           {1, 12, false},
        {4096, 4096 * 13, true}, {4096, 4096 * 13 - 1, false}, {4097, 4097 * 13, false},
        {0x80000000u, 1 << 16, false}, {0xFFFFFFFFu, 1 << 16, false}, {0x15555556u, 1 << 16, false},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct writer w;
        writer_init(&w, bytes, sizeof bytes);
        put_finished(&w, &(struct msg_finished){.origin = 1, .names = rows[i].count});
        struct reader r;
        reader_init(&r, bytes, w.used + rows[i].left);
        struct msg_finished back;
        EXPECT_EQ(get_finished(&r, &back), rows[i].good);
    }
}

TEST(lists_at_their_limits_fit_their_frames) /* else a legal message could not be sent */
{
    EXPECT(12 + 4096 * 13 <= frame_limit(FRAME_FINISHED));
    EXPECT(8 + 16384 * 8 <= frame_limit(FRAME_LINKED));
    EXPECT(25 + 16384 * 8 <= frame_limit(FRAME_FREEZE));
    EXPECT(50 + 16384 * 8 <= frame_limit(FRAME_ELECTED));
    EXPECT(16 + 8192 * 30 <= frame_limit(FRAME_FROZEN));
    EXPECT(P2P_DATA_PREFIX + 2 * BOUNDS_FRAME_BYTES <= frame_limit(FRAME_DATA));
}

TEST(the_parameter_hash_depends_on_every_field) /* else peers reduce what others did not mean */
{
    const struct op_params p = {.count = 1000, .dtype = 10, .op = 0, .quant = 0, .quant_dtype = 0};
    const struct plan_view v = {.lanes = 4, .frame_bytes = 131072, .eager_bytes = 16384};
    uint64_t base = p2p_params_hash(&p, &v);
    EXPECT(base == p2p_params_hash(&p, &v));
    for (int bit = 0; bit < 3 * 64 + 6 * 8 + 16 + 32 + 32; bit++) {
        struct op_params q = p;
        struct plan_view u = v;
        int b = bit;
        if (b < 3 * 64) {
            uint64_t *field[] = {&q.count, &q.root, &q.layout};
            *field[b / 64] ^= (uint64_t)1 << (b % 64);
        } else if ((b -= 3 * 64) < 48) {
            uint8_t *field[] = {&q.kind, &q.dtype, &q.op, &q.quant, &q.quant_dtype, &q.algorithm};
            *field[b / 8] ^= (uint8_t)(1u << (b % 8));
        } else if ((b -= 48) < 16) {
            u.lanes ^= (uint16_t)(1u << b);
        } else if ((b -= 16) < 32) {
            u.frame_bytes ^= (uint32_t)1 << b;
        } else {
            u.eager_bytes ^= (uint32_t)1 << (b - 32);
        }
        uint64_t other = p2p_params_hash(&q, &u);
        int moved = __builtin_popcountll(base ^ other);
        EXPECT(moved >= 12 && moved <= 52); /* about half of the bits */
    }
}

TEST(the_parameter_hash_is_the_same_everywhere) /* it travels: computed apart from this code */
{
    const struct op_params p = {.count = 1000, .root = 0x100000002u, .layout = 77, .kind = 3, .dtype = 10, .op = 1, .quant = 2, .quant_dtype = 3};
    const struct plan_view v = {.lanes = 4, .frame_bytes = 131072, .eager_bytes = 16384};
    EXPECT(p2p_params_hash(&p, &v) == 0x1420828E0AA69A35u);
}
