/* test_session_uneven.c - calls whose parts only two know the size of, where two have no link: what these two move goes by their relay.
 * SPDX-License-Identifier: MIT */
#include "tests/unit/session_bench.h"

enum { PART = 4096 /* bytes, by the view */, MOST = 8000 };

/* Of the member under test: how much it gives each rank and takes of each, beside what it keeps. */
static const size_t gives[PEERS] = {3, 5 * PART / 4 - 10, 7}, gives_at[PEERS] = {0, 20, 6000};
static const size_t takes[PEERS] = {3, 2 * PART / 4 + 1, 9}, takes_at[PEERS] = {5, 40, 4000};
static const size_t nothing[PEERS] = {3, 0, 7};

static float in[MOST], out[MOST], theirs[MOST];
static unsigned char raw[PART + 512];

static struct writer *writer(void)
{
    static struct writer w;
    writer_init(&w, raw, sizeof raw);
    return &w;
}

static void fill(void)
{
    for (uint32_t i = 0; i < MOST; i++) {
        in[i] = (float)i;
        theirs[i] = (float)(1000000 + i);
        out[i] = -1;
    }
}

static struct op_params params(enum plan_kind kind, uint32_t root)
{
    return (struct op_params){.kind = (uint8_t)kind, .layout = LAYOUT_PAIRS, .dtype = DTYPE_F32, .algorithm = PLAN_PAIRWISE,
                              .root = plan_kind_has_root((uint8_t)kind) ? peer_id(root) : 0};
}

static struct op_name part(uint64_t from, uint64_t to, uint32_t seq)
{
    return (struct op_name){.space = SPACE_PART, .from = from, .to = to, .seq = seq};
}

static void launch_pairs(struct bench *b, uint32_t slot, enum plan_kind kind, uint32_t root, struct part_lists parts, struct part_lists out_parts,
                         size_t count)
{
    struct session_info info;
    session_info(b->s, &info);
    struct session_launch l = {.call = {.space = SPACE_ORDERED, .known = info.known, .world = PEERS, .params = params(kind, root),
                                        .root_rank = root, .count = count, .parts = parts, .out_parts = out_parts, .in = in,
                                        .out = out, .deadline = INT64_MAX}};
    b->returned = false;
    step(b, &(struct session_event){.kind = SESSION_LAUNCH, .slot = slot, .launch = &l});
    EXPECT_EQ(b->outcome.result, RESULT_PENDING);
}

static void exchange(struct bench *b, uint32_t slot, const size_t *to, const size_t *from)
{
    launch_pairs(b, slot, PLAN_ALL_TO_ALL, 0, (struct part_lists){to, gives_at}, (struct part_lists){from, takes_at}, 0);
}

/* Peer 1 has launched it, and its relay has passed that on. */
static void ready_from_1(struct bench *b, uint32_t seq, enum plan_kind kind, uint32_t root, uint64_t expects)
{
    struct writer *w = writer();
    put_ready(w, &(struct msg_ready){.name = part(peer_id(1), self, seq), .params = params(kind, root), .launch = 1, .expects = expects});
    from_peer(b, 2, FRAME_READY, view_id(1), w);
}

static void ready_from_2(struct bench *b, uint32_t seq, enum plan_kind kind, uint32_t root, uint64_t expects)
{
    struct writer *w = writer();
    put_ready(w, &(struct msg_ready){.name = {.space = SPACE_ORDERED, .seq = seq}, .params = params(kind, root), .launch = 1, .expects = expects});
    from_peer(b, 2, FRAME_READY, view_id(1), w);
}

static void part_from_1(struct bench *b, uint32_t seq, uint64_t offset, uint32_t bytes)
{
    struct writer *w = writer();
    put_part(w, &(struct msg_part){.name = part(peer_id(1), self, seq), .offset = offset, .bytes = bytes});
    put_bytes(w, (const char *)theirs + offset, bytes);
    from_peer(b, 2, FRAME_PART, view_id(1), w);
}

static void got_from_1(struct bench *b, uint32_t seq, uint64_t offset, bool anew)
{
    struct writer *w = writer();
    put_got(w, &(struct msg_got){.name = part(self, peer_id(1), seq), .offset = offset, .anew = anew});
    from_peer(b, 2, FRAME_GOT, view_id(1), w);
}

static void path_up(struct bench *b)
{
    struct writer *w = writer();
    put_path(w, &(struct msg_path){.with = peer_id(1), .up = 1});
    from_peer(b, 2, FRAME_PATH, view_id(1), w);
}

static void lanes_done(struct bench *b, uint32_t slot)
{
    step(b, &(struct session_event){.kind = SESSION_DONE, .slot = slot});
}

static void hold_from(struct bench *b, uint32_t peer, uint32_t seq, enum plan_kind kind, uint32_t root)
{
    struct plan_view plan = {.lanes = 1, .frame_bytes = PART, .eager_bytes = 1024};
    struct op_params p = params(kind, root);
    struct writer *w = writer();
    put_hold(w, &(struct msg_hold){.name = {.space = SPACE_ORDERED, .seq = seq}, .origin = peer_id(peer), .params = p2p_params_hash(&p, &plan)});
    from_peer(b, 2, FRAME_HOLD, view_id(1), w);
}

/* The GOT of the last step: how far; UINT64_MAX: none. */
static uint64_t said_got(const struct bench *b, bool *anew)
{
    uint32_t at = 0;
    struct reader r;
    struct msg_got m = {.offset = UINT64_MAX};
    if (sent_next(b, ACT_PEERS, FRAME_GOT, &at, &r) != NULL) {
        EXPECT(get_got(&r, &m) && m.name.space == SPACE_PART && m.name.from == peer_id(1) && m.name.to == self);
    }
    *anew = m.anew != 0;
    return m.offset;
}

/* The parts of the last step, of that call: from `offset` on, as they lie in the input for peer 1.  Returns how many. */
static uint32_t said_parts(const struct bench *b, uint32_t seq, uint64_t offset)
{
    uint32_t at = 0, n = 0;
    struct reader r;
    struct msg_part m;
    const void *payload;
    for (const struct action *a; (a = sent_next(b, ACT_PEERS, FRAME_PART, &at, &r)) != NULL; n++) {
        EXPECT(get_part(&r, &m, &payload) && m.name.space == SPACE_PART && m.name.seq == seq && m.name.to == peer_id(1) && m.offset == offset);
        EXPECT(b->out.dest_ids[a->dest] == peer_id(2) && memcmp(payload, (const char *)(in + gives_at[1]) + offset, m.bytes) == 0);
        offset += m.bytes;
    }
    return n;
}

static struct bench *behind(void)
{
    struct bench *b = bench_apart();
    fill();
    path_up(b);
    return b;
}

TEST(call_is_announced_behind_a_missing_edge_with_what_is_expected_and_lanes_leave_that_out)
{
    struct bench *b = behind();
    uint32_t at = 0;
    struct reader r;
    struct msg_ready m;
    exchange(b, 0, gives, takes);
    const struct action *a = sent_next(b, ACT_PEERS, FRAME_READY, &at, &r);
    EXPECT(a != NULL && b->out.dest_ids[a->dest] == peer_id(2) && get_ready(&r, &m));
    EXPECT(m.name.space == SPACE_PART && m.name.from == self && m.name.to == peer_id(1) && m.name.seq == 0 && m.expects == takes[1]);
    const struct plan_params *plan = &session_op(b->s, 0)->plan;
    EXPECT(plan->algorithm == PLAN_PAIRWISE && plan->apart != NULL && *plan->apart == 2);
    path_up(b); /* it may be lost with a link of the relay */
    EXPECT(sent(b, FRAME_READY));
    bench_free(b);
}

/* What has to come before its own word: that the other two have launched it with these counts, its lanes, the bytes of peer 1. */
static void come(struct bench *b, int what)
{
    bool anew;
    uint64_t bytes = takes[1] * sizeof(float);
    if (what == 0) {
        ready_from_1(b, 0, PLAN_ALL_TO_ALL, 0, gives[1]);
        EXPECT(said_got(b, &anew) == 0 && anew);
    } else if (what == 1) {
        ready_from_2(b, 0, PLAN_ALL_TO_ALL, 0, gives[2]);
    } else if (what == 2) {
        lanes_done(b, 0);
    } else {
        for (uint64_t at = 0; at < bytes; at += PART) {
            EXPECT(!sent(b, FRAME_HOLD));
            part_from_1(b, 0, at, bytes - at < PART ? (uint32_t)(bytes - at) : PART);
            EXPECT(said_got(b, &anew) == (at + PART < bytes ? at + PART : bytes) && !anew);
        }
    }
}

TEST(call_is_held_when_lanes_are_done_and_its_part_is_in_place_in_whatever_order)
{
    static const int orders[][4] = {{0, 1, 2, 3}, {0, 3, 1, 2}, {2, 1, 0, 3}, {2, 0, 3, 1}, {0, 3, 2, 1}, {1, 0, 2, 3}};
    for (size_t i = 0; i < sizeof orders / sizeof orders[0]; i++) {
        struct bench *b = behind();
        exchange(b, 0, gives, takes);
        for (int k = 0; k < 4; k++) {
            EXPECT(!sent(b, FRAME_HOLD));
            come(b, orders[i][k]);
        }
        EXPECT(sent(b, FRAME_HOLD) && !b->returned);
        for (size_t k = 0; k < MOST; k++) {
            bool of_1 = k >= takes_at[1] && k < takes_at[1] + takes[1];
            EXPECT(out[k] == (of_1 ? theirs[k - takes_at[1]] : -1));
        }
        hold_from(b, 1, 0, PLAN_ALL_TO_ALL, 0);
        hold_from(b, 2, 0, PLAN_ALL_TO_ALL, 0);
        step(b, &(struct session_event){.kind = SESSION_IDLE, .slot = 0, .tx_bytes = gives[2] * sizeof(float), .rx_bytes = takes[2] * sizeof(float)});
        EXPECT(b->returned && collect(b, 0) == RESULT_OK);
        EXPECT_EQ(b->outcome.tx_bytes, (gives[1] + gives[2]) * sizeof(float));
        EXPECT_EQ(b->outcome.rx_bytes, (takes[1] + takes[2]) * sizeof(float));
        bench_free(b);
    }
}

TEST(part_goes_on_after_the_own_word_until_the_other_has_it) /* the other's word waits for it */
{
    struct bench *b = behind();
    uint64_t all = gives[1] * sizeof(float);
    exchange(b, 0, gives, nothing);
    got_from_1(b, 0, 0, true); /* its READY was lost: how much it expects is not known */
    EXPECT_EQ(said_parts(b, 0, 0), 0);
    ready_from_1(b, 0, PLAN_ALL_TO_ALL, 0, gives[1]);
    ready_from_2(b, 0, PLAN_ALL_TO_ALL, 0, gives[2]);
    got_from_1(b, 0, 0, true);
    EXPECT_EQ(said_parts(b, 0, 0), 2);
    lanes_done(b, 0); /* nothing is to come from peer 1 */
    EXPECT(sent(b, FRAME_HOLD));
    got_from_1(b, 0, PART, false);
    EXPECT_EQ(said_parts(b, 0, 2 * PART), 1);
    got_from_1(b, 0, PART, true); /* two were lost */
    EXPECT_EQ(said_parts(b, 0, PART), 2);
    got_from_1(b, 0, 3 * PART, false);
    EXPECT_EQ(said_parts(b, 0, 3 * PART), 2);
    got_from_1(b, 0, all, false);
    EXPECT(said_parts(b, 0, 0) == 0 && !b->returned);
    bench_free(b);
}

TEST(next_call_has_its_turn_when_all_is_in_place_and_when_one_is_refused)
{
    struct bench *b = behind();
    for (uint32_t seq = 0; seq < 3; seq++) {
        exchange(b, seq, gives, nothing);
        ready_from_1(b, seq, PLAN_ALL_TO_ALL, 0, gives[1]);
        got_from_1(b, seq, 0, true);
        EXPECT_EQ(said_parts(b, seq, 0), seq == 0 ? 2 : 0);
    }
    got_from_1(b, 0, gives[1] * sizeof(float), true);
    EXPECT_EQ(said_parts(b, 1, 0), 2);
    struct writer *w = writer();
    put_refuse(w, &(struct msg_refuse){.name = {.space = SPACE_ORDERED, .seq = 1}, .origin = peer_id(2), .cause = CAUSE_CANCEL,
                                       .culprit = peer_id(2)});
    from_peer(b, 2, FRAME_REFUSE, view_id(1), w);
    EXPECT_EQ(said_parts(b, 2, 0), 2);
    bench_free(b);
}

TEST(other_count_behind_a_missing_edge_is_a_disagreement_of_these_two) /* the root is the only one that could know */
{
    for (int early = 0; early < 2; early++) {
        struct bench *b = behind();
        uint32_t at = 0;
        struct reader r;
        struct msg_refuse m;
        if (early) {
            ready_from_1(b, 0, PLAN_ALL_TO_ALL, 0, gives[1] + 1);
        }
        exchange(b, 0, gives, takes);
        if (!early) {
            EXPECT(!sent(b, FRAME_REFUSE));
            ready_from_1(b, 0, PLAN_ALL_TO_ALL, 0, gives[1] + 1);
        }
        EXPECT(sent_next(b, ACT_PEERS, FRAME_REFUSE, &at, &r) != NULL && get_refuse(&r, &m) && m.cause == CAUSE_MISMATCH);
        EXPECT(m.culprit == peer_id(1) && m.clash.id[0] == self && m.name.space == SPACE_ORDERED);
        got_from_1(b, 0, 0, true);
        EXPECT(!sent(b, FRAME_PART));
        bench_free(b);
    }
}

TEST(lost_words_are_said_again_as_far_as_the_call_has_come)
{
    struct bench *b = behind();
    bool anew;
    exchange(b, 0, nothing, takes);
    ready_from_1(b, 0, PLAN_ALL_TO_ALL, 0, 0);
    part_from_1(b, 0, 0, PART);
    part_from_1(b, 0, 0, PART); /* again */
    EXPECT_EQ(said_got(b, &anew), UINT64_MAX);
    part_from_1(b, 0, 2 * PART, 4); /* the one before was lost */
    EXPECT_EQ(said_got(b, &anew), UINT64_MAX);
    path_up(b);
    EXPECT(sent(b, FRAME_READY) && said_got(b, &anew) == PART && anew);
    part_from_1(b, 0, PART, PART);
    part_from_1(b, 0, 2 * PART, PART); /* longer than what is left */
    EXPECT_EQ(said_got(b, &anew), UINT64_MAX);
    EXPECT_EQ(out[takes_at[1] + takes[1]], -1);
    part_from_1(b, 0, 2 * PART, 4);
    path_up(b); /* that all is here may be lost, too: it would keep the turn there */
    EXPECT(said_got(b, &anew) == takes[1] * sizeof(float) && anew);
    bench_free(b);
}

TEST(roots_behind_a_missing_edge_scatter_and_gather)
{
    for (int own = 0; own < 2; own++) { /* the root is this member, or peer 1 */
        for (int k = 0; k < 2; k++) {
            struct bench *b = behind();
            enum plan_kind kind = k == 0 ? PLAN_SCATTER : PLAN_GATHER;
            bool anew, takes_part = own == (kind == PLAN_GATHER);
            const size_t *lists = kind == PLAN_GATHER ? takes : gives, *places = kind == PLAN_GATHER ? takes_at : gives_at;
            struct part_lists parts = own ? (struct part_lists){lists, places} : (struct part_lists){0};
            launch_pairs(b, 0, kind, own ? 0 : 1, parts, (struct part_lists){0}, own ? 3 : takes[1]);
            uint64_t given = takes_part ? 0 : own ? gives[1] : takes[1];
            ready_from_1(b, 0, kind, own ? 0 : 1, given);
            EXPECT(!sent(b, FRAME_REFUSE));
            EXPECT_EQ(said_got(b, &anew), takes_part ? 0 : UINT64_MAX);
            ready_from_2(b, 0, kind, own ? 0 : 1, own && kind == PLAN_SCATTER ? gives[2] : 0);
            lanes_done(b, 0);
            EXPECT_EQ(sent(b, FRAME_HOLD), !takes_part);
            for (uint64_t at = 0; takes_part && at < takes[1] * sizeof(float); at += PART) {
                EXPECT(!sent(b, FRAME_HOLD));
                part_from_1(b, 0, at, takes[1] * sizeof(float) - at < PART ? (uint32_t)(takes[1] * sizeof(float) - at) : PART);
            }
            EXPECT(sent(b, FRAME_HOLD));
            for (size_t i = 0; takes_part && i < takes[1]; i++) {
                EXPECT(out[(own ? takes_at[1] : 0) + i] == theirs[i]);
            }
            bench_free(b);
        }
    }
}

TEST(relay_passes_parts_of_calls_on_and_takes_their_names_for_no_operation)
{
    struct bench *b = bench_with(32, true); /* between peers 1 and 2 */
    uint32_t at = 0;
    struct reader r;
    struct msg_ready m;
    struct writer *w = writer();
    put_ready(w, &(struct msg_ready){.name = part(peer_id(1), peer_id(2), 4), .params = params(PLAN_ALL_TO_ALL, 0), .launch = 1, .expects = 6});
    from_peer(b, 1, FRAME_READY, view_id(1), w);
    const struct action *a = sent_next(b, ACT_PEERS, FRAME_READY, &at, &r);
    EXPECT(a != NULL && b->out.dest_ids[a->dest] == peer_id(2) && get_ready(&r, &m) && m.name.space == SPACE_PART && m.expects == 6);
    w = writer();
    put_hold(w, &(struct msg_hold){.name = part(peer_id(1), peer_id(2), 4), .origin = peer_id(1)});
    from_peer(b, 1, FRAME_HOLD, view_id(1), w);
    bool unlinked = false;
    for (uint32_t i = 0; i < b->out.count; i++) {
        unlinked = unlinked || (b->out.actions[i].kind == ACT_UNLINK && b->out.actions[i].id == peer_id(1));
    }
    EXPECT(unlinked && !sent(b, FRAME_HOLD));
    bench_free(b);
}
