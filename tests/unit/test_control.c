/* test_control.c - messages between peers and the master: what is put is got, and nothing else is accepted.
 * SPDX-License-Identifier: MIT */
#include "tests/testing.h"

#include "tests/unit/wire_cases.h"

enum { SEEDS = 200 };

static unsigned char big[2 << 20]; /* room behind a count: zeroes, so that only the limits refuse */

TEST(control_messages_survive_the_wire)
{
    wire_cases_check(wire_control_cases, wire_control_case_count, SEEDS, wire_case_round_trip, &test_failures);
    wire_cases_check(wire_report_cases, wire_report_case_count, SEEDS, wire_case_round_trip, &test_failures);
    wire_cases_check(wire_status_cases, wire_status_case_count, SEEDS, wire_case_round_trip, &test_failures);
}

TEST(control_messages_cut_anywhere_are_refused) /* a field of a half message would be read as zero */
{
    wire_cases_check(wire_control_cases, wire_control_case_count, SEEDS, wire_case_cut, &test_failures);
    wire_cases_check(wire_report_cases, wire_report_case_count, SEEDS, wire_case_cut, &test_failures);
    wire_cases_check(wire_status_cases, wire_status_case_count, SEEDS, wire_case_cut, &test_failures);
}

TEST(control_messages_with_a_byte_too_many_are_refused)
{
    wire_cases_check(wire_control_cases, wire_control_case_count, SEEDS, wire_case_overlong, &test_failures);
    wire_cases_check(wire_report_cases, wire_report_case_count, SEEDS, wire_case_overlong, &test_failures);
    wire_cases_check(wire_status_cases, wire_status_case_count, SEEDS, wire_case_overlong, &test_failures);
}

TEST(control_messages_have_no_bit_without_meaning) /* two encodings of one message, or a field that is not read */
{
    wire_cases_check(wire_control_cases, wire_control_case_count, 20, wire_case_flips, &test_failures);
    wire_cases_check(wire_report_cases, wire_report_case_count, 20, wire_case_flips, &test_failures);
    wire_cases_check(wire_status_cases, wire_status_case_count, 20, wire_case_flips, &test_failures);
}

/* Where a byte is, by hand from the schema, and the range that enum allows. */
struct range_row {
    const char *name;
    size_t offset;
    int least, most;
};

TEST(unknown_enum_values_are_refused) /* a switch would fall through on them */
{
    static const struct range_row rows[] = {
        {"register", 8 + 8 + 4 + 2 + 8 + 8 + 4, 0, 4}, /* open_vote */
        {"suspect", 8, 1, 3},                          /* target */
        {"view", 8 + 8, 0, 4},                         /* answers */
        {"view", 8 + 8 + 1, 0, 1},                     /* over */
        {"answer", 4, 1, 4},                           /* kind */
        {"answer", 5, 0, 4},                           /* result */
        {"elected", 8, 1, 2},                          /* role */
        {"elected", 8 + 1 + 24, 0, 1},                 /* whole */
        {"topology_page", 0, 1, 3},                    /* state, of one that has found nothing */
        {"staged", 8, 0, 2},                           /* status; KEYS has a text behind it */
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        bool accepted[256];
        wire_case_accepted(wire_case_find(rows[i].name), rows[i].offset, accepted);
        for (int v = 0; v < 256; v++) {
            EXPECT_EQ(accepted[v], v >= rows[i].least && v <= rows[i].most);
        }
    }
}

TEST(unknown_causes_are_refused_everywhere)
{
    static const struct {
        const char *name;
        size_t offset;
    } rows[] = {{"suspect", 9}, {"freeze", 12}, {"view", 18}, {"fence", 8}, {"given_up", 0}};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        bool accepted[256];
        wire_case_accepted(wire_case_find(rows[i].name), rows[i].offset, accepted);
        for (int v = 0; v < 256; v++) {
            EXPECT_EQ(accepted[v], v <= 7 || (v >= 16 && v <= 23) || (v >= 32 && v <= 43));
        }
    }
}

/* The bytes of one item with `value` at `offset`, everything else zero, through its get. */
static bool item_accepts(bool (*get)(struct reader *), size_t size, size_t offset, int value)
{
    unsigned char bytes[64] = {0};
    if (size == 23 || size == 53) { /* op_decision, op_report: outcome and state are never 0 */
        bytes[13] = 1;
    }
    bytes[offset] = (unsigned char)value;
    struct reader r;
    reader_init(&r, bytes, size);
    return get(&r);
}

static bool get_report_alone(struct reader *r)
{
    struct op_report m;
    return get_op_report(r, &m) && reader_done(r);
}

static bool get_decision_alone(struct reader *r)
{
    struct op_decision m;
    return get_op_decision(r, &m) && reader_done(r);
}

TEST(unknown_values_in_list_items_are_refused)
{
    for (int v = 0; v < 256; v++) {
        bool cause = v <= 7 || (v >= 16 && v <= 23) || (v >= 32 && v <= 43);
        EXPECT_EQ(item_accepts(get_report_alone, 53, 13, v), v >= 1 && v <= 4);
        EXPECT_EQ(item_accepts(get_report_alone, 53, 14, v), cause);
        EXPECT_EQ(item_accepts(get_decision_alone, 23, 13, v), v >= 1 && v <= 3);
        EXPECT_EQ(item_accepts(get_decision_alone, 23, 14, v), cause);
    }
}

TEST(a_claim_that_no_call_makes_is_refused) /* the master would make a world, a seat or a member of it */
{
    static const struct {
        struct claim claim;
        uint32_t group;
        bool good;
    } rows[] = {
        {{.size = 0}, 3, true},                                                    /* any size, any group */
        {{.size = 4, .rank = 3, .attempt = 1, .deadline_ms = 1, .once = 1}, 0, true},
        {{.size = 4, .rank = 4, .attempt = 1}, 0, false},                          /* no such rank */
        {{.size = 4, .rank = 3}, 0, false},                                        /* of no call */
        {{.size = 0, .rank = 1}, 0, false},                                        /* of no size */
        {{.size = 0, .join = 1}, 0, false},
        {{.size = 4, .rank = 3, .join = 1}, 0, true},
        {{.size = 4, .rank = CLAIM_ANY_RANK, .join = 1}, 0, true},
        {{.size = 4, .rank = 4, .join = 1}, 0, false},
        {{.size = 4, .rank = 3, .attempt = 1, .join = 1}, 0, false},               /* who joins creates nothing */
        {{.size = 4, .rank = 3, .join = 1}, 1, false},                             /* a world of a given size has one group */
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct msg_register m = {.lanes = 1, .group = rows[i].group, .claim = rows[i].claim}, got;
        unsigned char bytes[512];
        struct writer w;
        struct reader r;
        writer_init(&w, bytes, sizeof bytes);
        put_register(&w, &m);
        reader_init(&r, bytes, w.used);
        if (get_register(&r, &got) != rows[i].good) {
            EXPECT_EQ(i, SIZE_MAX);
        }
    }
}

TEST(a_vote_for_the_last_revision_there_is_is_refused) /* the master would expect 0 next, which any old state has */
{
    for (uint64_t back_by = 0; back_by < 3; back_by++) {
        unsigned char bytes[64];
        struct msg_vote m = {.number = 5, .kind = VOTE_SYNC, .revision = UINT64_MAX - back_by}, back;
        struct writer w;
        struct reader r;
        writer_init(&w, bytes, sizeof bytes);
        put_vote(&w, &m);
        reader_init(&r, bytes, w.used);
        EXPECT_EQ(get_vote(&r, &back), back_by > 0);
    }
}

TEST(a_vote_carries_its_state_only_when_it_synchronises)
{
    struct msg_vote m = {.number = 5, .strategy = 2, .revision = 6, .key_digest = 7, .content_digest = 8,
                         .has_inequality = 1};
    for (int kind = 0; kind < 256; kind++) {
        unsigned char bytes[64];
        m.kind = (uint8_t)kind;
        struct writer w;
        writer_init(&w, bytes, sizeof bytes);
        put_vote(&w, &m);
        EXPECT_EQ(w.used, kind == VOTE_SYNC ? 5 + 26 : kind == VOTE_UPDATE ? 5 + 6 : 5);
        struct reader r;
        reader_init(&r, bytes, w.used);
        struct msg_vote back;
        EXPECT_EQ(get_vote(&r, &back), kind >= VOTE_UPDATE && kind <= VOTE_SYNC);
        EXPECT_EQ(back.revision, kind == VOTE_SYNC ? 6 : 0);
    }
    for (int v = 0; v < 256; v++) {
        unsigned char bytes[64];
        m.kind = VOTE_SYNC;
        m.strategy = (uint8_t)v;
        m.has_inequality = 0;
        struct writer w;
        struct reader r;
        struct msg_vote back;
        writer_init(&w, bytes, sizeof bytes);
        put_vote(&w, &m);
        reader_init(&r, bytes, w.used);
        EXPECT_EQ(get_vote(&r, &back), v <= 2);
        m.strategy = 0;
        m.has_inequality = (uint8_t)v;
        writer_init(&w, bytes, sizeof bytes);
        put_vote(&w, &m);
        reader_init(&r, bytes, w.used);
        EXPECT_EQ(get_vote(&r, &back), v <= 1);
    }
}

static bool get_freeze_count(struct reader *r)
{
    struct msg_freeze m;
    return get_freeze(r, &m);
}

static bool get_frozen_count(struct reader *r)
{
    struct msg_frozen m;
    return get_frozen(r, &m);
}

static bool get_admit_count(struct reader *r)
{
    struct msg_admit m;
    return get_admit(r, &m);
}

static bool get_linked_count(struct reader *r)
{
    struct msg_linked m;
    return get_linked(r, &m);
}

/* A message of zeroes but for its count at `offset`, with `left` bytes of items behind `fixed` bytes. */
static bool count_accepted(bool (*get)(struct reader *), size_t offset, size_t fixed, uint32_t count, size_t left)
{
    for (int i = 0; i < 4; i++) {
        big[offset + (size_t)i] = (unsigned char)(count >> (8 * i));
    }
    struct reader r;
    reader_init(&r, big, fixed + left);
    bool good = get(&r);
    memset(big + offset, 0, 4);
    return good;
}

static void check_count(bool (*get)(struct reader *), size_t offset, size_t fixed, size_t item, uint32_t most)
{
    EXPECT(count_accepted(get, offset, fixed, 0, 0));
    EXPECT(count_accepted(get, offset, fixed, 1, item));
    EXPECT(!count_accepted(get, offset, fixed, 1, item - 1));
    EXPECT(count_accepted(get, offset, fixed, most, most * item));
    EXPECT(!count_accepted(get, offset, fixed, most, most * item - 1));
    EXPECT(!count_accepted(get, offset, fixed, most + 1, sizeof big - fixed));
    EXPECT(!count_accepted(get, offset, fixed, 0x80000000u, sizeof big - fixed));
    EXPECT(!count_accepted(get, offset, fixed, 0xFFFFFFFFu, sizeof big - fixed));
}

TEST(counts_of_lists_are_held_to_their_limits)
{
    check_count(get_freeze_count, 21, 25, 8, 16384);
    check_count(get_frozen_count, 12, 16, 53, BOUNDS_LISTED);
    check_count(get_admit_count, 12, 16, 15, 16384);
    check_count(get_linked_count, 4, 8, 8, 16384);
}

/* A VIEW header with these counts and `left` bytes behind it. */
static bool view_accepted(const struct msg_view *m, size_t left)
{
    static unsigned char bytes[2 << 20];
    struct writer w;
    writer_init(&w, bytes, sizeof bytes);
    put_view(&w, m);
    struct reader r;
    reader_init(&r, bytes, w.used + left);
    struct msg_view back;
    return get_view(&r, &back);
}

TEST(counts_of_a_view_are_held_to_their_limits)
{
    static const struct {
        size_t offset; /* of the count in the struct */
        size_t item;
        uint32_t most;
    } rows[] = {
        {offsetof(struct msg_view, removed), 8, 16384},  {offsetof(struct msg_view, added), 15, 16384},
        {offsetof(struct msg_view, members), 4, 16384},  {offsetof(struct msg_view, edges), 24, 8192},
        {offsetof(struct msg_view, trees), 4, 32},
        {offsetof(struct msg_view, decisions), 23, BOUNDS_DECISIONS},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        const uint32_t bad[] = {rows[i].most + 1, 0x80000000u, 0xFFFFFFFFu};
        struct msg_view m = {0};
        EXPECT(view_accepted(&m, 0));
        uint32_t *count = (uint32_t *)(void *)((char *)&m + rows[i].offset);
        *count = 1;
        EXPECT(view_accepted(&m, rows[i].item));
        EXPECT(!view_accepted(&m, rows[i].item - 1));
        *count = rows[i].most;
        EXPECT(view_accepted(&m, rows[i].most * rows[i].item));
        EXPECT(!view_accepted(&m, rows[i].most * rows[i].item - 1));
        for (size_t k = 0; k < sizeof bad / sizeof bad[0]; k++) {
            *count = bad[k];
            EXPECT(!view_accepted(&m, 1 << 20));
        }
    }
}

TEST(lists_of_a_view_must_fit_together) /* each alone would, on the same bytes */
{
    struct msg_view m = {.removed = 10, .added = 10, .members = 10, .weights = 10, .trees = 10, .edges = 10, .decisions = 10};
    size_t all = 10 * (8 + 15 + 4 + 4 + (4 + 10 * 2) + 24 + 23);
    EXPECT(view_accepted(&m, all));
    EXPECT(!view_accepted(&m, all - 1));
    m.weights = 9; /* one per member or none */
    EXPECT(!view_accepted(&m, all));
    m.weights = 0;
    EXPECT(view_accepted(&m, all - 40));
    m = (struct msg_view){.members = 257, .trees = 1}; /* more members than trees may have */
    EXPECT(!view_accepted(&m, 1 << 20));
    m.members = 256;
    EXPECT(view_accepted(&m, 256 * (4 + 2) + 4));
}

TEST(plans_of_a_view_are_held_to_the_bounds) /* buffers are made from these numbers */
{
    struct msg_view m = {.plan = {.lanes = 64, .frame_bytes = 131072, .eager_bytes = 16384}};
    EXPECT(view_accepted(&m, 0));
    struct msg_view bad = m;
    bad.plan.lanes++;
    EXPECT(!view_accepted(&bad, 0));
    bad = m;
    bad.plan.frame_bytes++;
    EXPECT(!view_accepted(&bad, 0));
    bad = m;
    bad.plan.eager_bytes = BOUNDS_EAGER_BYTES + 1;
    EXPECT(!view_accepted(&bad, 0));
}

TEST(holders_and_receivers_must_fit_together)
{
    struct msg_elected m = {.role = SYNC_HOLDER}, back;
    static const struct {
        uint32_t holders, receivers;
        size_t left;
        bool good;
    } rows[] = {
        {3, 2, 40, true},
        {3, 2, 39, false},
        {16384, 0, 131072, true},
        {8192, 8193, 1 << 20, false},
        {16385, 0, 1 << 20, false},
        {0, 0xFFFFFFFFu, 1 << 20, false},
        {0x80000000u, 0x80000000u, 1 << 20, false},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        m.holders = rows[i].holders;
        m.receivers = rows[i].receivers;
        struct writer w;
        writer_init(&w, big, sizeof big);
        put_elected(&w, &m);
        struct reader r;
        reader_init(&r, big, w.used + rows[i].left);
        EXPECT_EQ(get_elected(&r, &back), rows[i].good);
        memset(big, 0, w.used);
    }
}

static bool member_accepted(uint8_t addresses, uint8_t family)
{
    unsigned char bytes[512];
    struct writer w;
    writer_init(&w, bytes, sizeof bytes);
    put_u64(&w, 1);
    put_u32(&w, 0);
    put_u16(&w, 1);
    put_u8(&w, addresses);
    for (int i = 0; i < addresses && i < 16; i++) {
        put_u8(&w, family);
        put_u16(&w, 48150);
        put_bytes(&w, "\1\2\3\4\5\6\7\10\11\12\13\14\15\16\17\20", family == 4 ? 4 : family == 6 ? 16 : 0);
    }
    struct reader r;
    reader_init(&r, bytes, w.used);
    struct member_info m;
    bool good = get_member_info(&r, &m) && reader_done(&r);
    return good && m.addresses == addresses;
}

TEST(addresses_have_a_known_family_and_at_most_eight)
{
    for (int family = 0; family < 256; family++) {
        EXPECT_EQ(member_accepted(1, (uint8_t)family), family == 4 || family == 6);
    }
    for (int count = 0; count < 16; count++) {
        EXPECT_EQ(member_accepted((uint8_t)count, 4), count <= 8);
    }
    EXPECT(!member_accepted(255, 4));

    struct member_info m = {.addresses = BOUNDS_ADDRESSES + 1}; /* our own mistake reads nothing past the array */
    unsigned char bytes[512];
    struct writer w;
    writer_init(&w, bytes, sizeof bytes);
    put_member_info(&w, &m);
    EXPECT(w.bad);
}

TEST(only_the_seen_address_may_be_unset)
{
    struct msg_welcome m = {.run = 1}, back;
    unsigned char bytes[64];
    struct writer w;
    writer_init(&w, bytes, sizeof bytes);
    put_welcome(&w, &m);
    struct reader r;
    reader_init(&r, bytes, w.used);
    EXPECT(get_welcome(&r, &back));
    EXPECT_EQ(back.seen.family, 0);
    bool accepted[256];
    wire_case_accepted(wire_case_find("welcome"), 28, accepted);
    for (int v = 0; v < 256; v++) {
        EXPECT(!accepted[v] || v == 0 || v == 4 || v == 6);
    }
}

TEST(a_suspicion_is_the_documented_bytes) /* an independent reading of the schema */
{
    static const unsigned char expected[] = {
        1, 0, 0, 0, 2, 0, 0, 0,  /* view: epoch 2, number 1 */
        2, 19,                   /* SUSPECT_LINK, CAUSE_LINK_LOST */
        3, 0, 0, 0, 2, 0, 0, 0,  /* peer */
        0, 4, 0, 0, 0, 0, 0, 0, 0, /* space, tag */
        5, 0, 0, 0,              /* seq */
        3, 0, 'c', 'u', 't'};
    struct msg_suspect m = {.view = 0x200000001u, .target = SUSPECT_LINK, .cause = CAUSE_LINK_LOST,
                            .peer = 0x200000003u, .name = {.tag = 4, .seq = 5}, .text = "cut"};
    unsigned char bytes[256];
    struct writer w;
    writer_init(&w, bytes, sizeof bytes);
    put_suspect(&w, &m);
    EXPECT_EQ(w.used, sizeof expected);
    EXPECT(memcmp(bytes, expected, sizeof expected) == 0);
}

static bool has_case(uint8_t type, const struct wire_case *cases, size_t count)
{
    bool found = false;
    for (size_t i = 0; i < count; i++) {
        found = found || cases[i].frame == type;
    }
    return found;
}

TEST(every_message_with_a_payload_has_a_case) /* with it come the tests above, and a seed of the fuzzer */
{
    uint32_t messages = 0;
    for (uint32_t type = 0; type <= UINT8_MAX; type++) {
        bool counts = frame_limit((uint8_t)type) > 0 && type != FRAME_PROBE_DATA; /* any bytes */
        bool found = has_case((uint8_t)type, wire_control_cases, wire_control_case_count) ||
                     has_case((uint8_t)type, wire_report_cases, wire_report_case_count) ||
                     has_case((uint8_t)type, wire_status_cases, wire_status_case_count) ||
                     has_case((uint8_t)type, wire_p2p_cases, wire_p2p_case_count);
        EXPECT(!counts || found);
        if (counts && !found) {
            fprintf(stderr, "# %s has none\n", frame_name((uint8_t)type));
        }
        messages += counts;
    }
    EXPECT(messages > 40);
}
