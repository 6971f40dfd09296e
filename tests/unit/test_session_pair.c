/* test_session_pair.c - what a receive from any source tells and is told (B12, B14).
 * SPDX-License-Identifier: MIT */
#include "tests/unit/session_bench.h"

enum { TAG = 9, NO_EVENT = 1000 /* nobody's: the machine fails */ };
static const struct op_params message = {.kind = PLAN_SEND, .count = 1, .dtype = DTYPE_F32};

/* A receive of `count` floats from this rank, or from SESSION_ANY. */
static void receive_many(struct bench *b, uint32_t slot, uint32_t rank, float *to, uint32_t count)
{
    struct session_info info;
    session_info(b->s, &info);
    struct session_launch l = {.call = {.space = SPACE_PAIR, .tag = TAG, .known = info.known, .world = info.snapshot.group,
                                        .params = message, .root_rank = rank, .receives = true, .out = to, .deadline = INT64_MAX}};
    l.call.params.count = count;
    b->returned = false;
    step(b, &(struct session_event){.kind = SESSION_LAUNCH, .slot = slot, .launch = &l});
    EXPECT_EQ(b->outcome.result, RESULT_PENDING);
}

static void receive(struct bench *b, uint32_t slot, uint32_t rank, float *to)
{
    receive_many(b, slot, rank, to, 1);
}

static void message_from(struct bench *b, uint32_t peer, uint32_t view, float value)
{
    unsigned char raw[128];
    struct writer w;
    writer_init(&w, raw, sizeof raw);
    put_eager(&w, &(struct msg_eager){.name = {.space = SPACE_PAIR, .tag = TAG, .from = peer_id(peer), .to = self}, .params = message,
                                      .bytes = 4});
    put_bytes(&w, &value, 4);
    from_peer(b, peer, FRAME_EAGER, view_id(view), &w);
}

/* View 2: without this peer (0: nobody is lost), for this cause. */
static void view(struct bench *b, uint32_t without, uint8_t cause, uint32_t culprit)
{
    view_between(b, without, without == 0 ? 0 : without + 1, cause, culprit);
}

/* The roster it is counted in is empty by then: ranks 0, or none at all, were told. */
TEST(source_of_a_message_is_told_although_this_peer_has_left_or_failed_since)
{
    for (int fails = 0; fails < 2; fails++) {
        struct bench *b = bench_new();
        float x = 0;
        receive(b, 0, SESSION_ANY, &x);
        message_from(b, 2, 1, 5);
        EXPECT(b->returned && x == 5);
        step(b, &(struct session_event){.kind = fails ? NO_EVENT : SESSION_LEAVE});
        EXPECT_EQ(collect(b, 0), RESULT_OK);
        EXPECT_EQ(b->outcome.source, 2);
        bench_free(b);
    }
}

/* A view without the sender came before the program asked: its rank there is another's, or nobody's. */
TEST(source_of_a_message_counts_as_ranks_did_for_its_call)
{
    struct bench *b = bench_new();
    float x = 0, y = 0;
    receive(b, 0, SESSION_ANY, &x);
    receive(b, 1, SESSION_ANY, &y);
    message_from(b, 2, 1, 5);
    view(b, 1, CAUSE_PEER_LOST, 1);
    EXPECT_EQ(collect(b, 1), RESULT_LOST); /* the sizes move with it */
    EXPECT_EQ(b->outcome.source, SESSION_ANY);
    EXPECT_EQ(collect(b, 0), RESULT_OK);
    EXPECT_EQ(b->outcome.source, 2);
    bench_free(b);
}

/* It would wait for ever: no member is there that could send. */
TEST(receive_from_any_source_in_a_view_of_one_says_that_this_peer_is_alone) /* B14 */
{
    struct bench *b = bench_new();
    float x = 0, y = 0;
    receive(b, 0, SESSION_ANY, &x);
    view_between(b, 1, PEERS, CAUSE_PEER_LOST, 1);
    EXPECT_EQ(collect(b, 0), RESULT_LOST); /* the program knows of the view now */
    receive(b, 1, SESSION_ANY, &y);
    EXPECT(b->returned);
    EXPECT_EQ(collect(b, 1), RESULT_ALONE);
    EXPECT_EQ(b->outcome.world, 1);
    bench_free(b);
}

TEST(message_given_up_before_its_receive_ends_that_receive) /* it would take the next message for this one (B13) */
{
    struct bench *b = bench_new();
    float x = 0;
    message_from(b, 1, 1, 5);
    refusal_from(b, 1, &(struct msg_refuse){.name = {.space = SPACE_PAIR, .tag = TAG, .from = peer_id(1), .to = self},
                                            .origin = peer_id(1), .cause = CAUSE_CANCEL, .culprit = peer_id(1)});
    EXPECT(sent(b, FRAME_REFUSE)); /* the receiver's word, without its program (B4) */
    receive(b, 0, SESSION_ANY, &x);
    EXPECT(b->returned && collect(b, 0) == RESULT_LOST);
    EXPECT(b->outcome.cause == CAUSE_CANCEL && b->outcome.culprit == peer_id(1) && b->outcome.source == 1 && x == 0);
    bench_free(b);
}

TEST(who_leaves_or_revokes_says_which_messages_it_has_received_or_refused) /* B11: the FREEZE of its going may overtake its HOLD */
{
    for (int revokes = 0; revokes < 2; revokes++) {
        struct bench *b = bench_new();
        struct msg_leave m = {0};
        struct op_report r;
        struct reader from;
        float x = 0, y = 0, one = 1;
        uint32_t at = 0;
        receive(b, 0, 1, &x);
        message_from(b, 1, 1, 5);
        EXPECT_EQ(collect(b, 0), RESULT_OK);
        launch(b, 1, 5, &one, &y); /* of that the others decide */
        step(b, &(struct session_event){.kind = revokes ? SESSION_REVOKE : SESSION_LEAVE});
        EXPECT(sent_next(b, ACT_MASTER, FRAME_LEAVE, &at, &from) != NULL && get_leave(&from, &m) && get_op_report(&from, &r));
        EXPECT(m.revoke == revokes && m.view == view_id(1) && m.reports == 1 && reader_done(&from));
        EXPECT(r.state == OP_FINISHED && r.name.space == SPACE_PAIR && r.name.tag == TAG && r.name.from == peer_id(1) && r.name.to == self);
        bench_free(b);
    }
}

/* ---- against votes ------------------------------------------------------------------------------------------------ */

static struct peer_wait told(struct bench *b)
{
    struct msg_heartbeat m = {0};
    struct reader r;
    uint32_t at = 0;
    b->now += 1000000000;
    step(b, &(struct session_event){.kind = SESSION_TICK});
    EXPECT(sent_next(b, ACT_MASTER, FRAME_HEARTBEAT, &at, &r) != NULL && get_heartbeat(&r, &m));
    return m.wait;
}

TEST(receive_from_any_source_says_that_it_waits_for_all) /* the master cannot see that they all wait in votes */
{
    struct bench *b = bench_new();
    float x = 0, y = 0, one = 1;
    receive(b, 0, SESSION_ANY, &x);
    struct peer_wait w = told(b);
    EXPECT(w.phase == WAIT_LAUNCH && w.on == 0);
    EXPECT_EQ(w.ms, 1000);
    EXPECT(w.name.space == SPACE_PAIR && w.name.tag == TAG && w.name.from == 0 && w.name.to == self);
    launch(b, 1, 5, &one, &y);
    w = told(b);
    EXPECT(w.phase == WAIT_LAUNCH && w.name.tag == 5 && w.on != 0); /* a wait for one says more */
    bench_free(b);
}

TEST(receive_from_any_source_says_if_its_caller_waits_in_it) /* one that computes beside it may still do what the others wait for */
{
    struct bench *b = bench_new();
    float x[2] = {0};
    receive(b, 0, SESSION_ANY, &x[0]);
    EXPECT_EQ(told(b).name.seq, 0);
    struct session_launch l = {.call = {.space = SPACE_PAIR, .tag = TAG + 1, .params = message, .known = view_id(1), .world = 3,
                                        .root_rank = SESSION_ANY, .receives = true, .out = &x[1], .deadline = INT64_MAX, .awaited = true}};
    step(b, &(struct session_event){.kind = SESSION_LAUNCH, .slot = 1, .launch = &l});
    EXPECT_EQ(b->outcome.result, RESULT_PENDING);
    struct peer_wait w = told(b);
    EXPECT(w.name.tag == TAG + 1 && w.name.seq == OP_NO_NUMBER); /* though it is younger */
    bench_free(b);
}

/* Only the one that the master has found in a cycle: that of another goes on (B14). */
TEST(view_that_came_for_its_cycle_with_votes_ends_a_receive_that_is_matched_with_nothing)
{
    for (uint32_t culprit = 0; culprit < 2; culprit++) {
        struct bench *b = bench_new();
        float x = 0;
        receive(b, 0, SESSION_ANY, &x);
        view(b, 0, CAUSE_BLOCKED, culprit);
        EXPECT_EQ(b->returned, culprit == 0);
        if (culprit == 0) {
            EXPECT_EQ(collect(b, 0), RESULT_LOST);
            EXPECT(b->outcome.cause == CAUSE_BLOCKED && b->outcome.culprit == 0 && b->outcome.source == SESSION_ANY);
            EXPECT_STR(b->outcome.text, "why");
        } else {
            ping(b, 2, view_id(2));
            message_from(b, 2, 2, 5);
            EXPECT(b->returned && collect(b, 0) == RESULT_OK);
        }
        bench_free(b);
    }
}

static void send_many(struct bench *b, uint32_t slot, uint32_t rank, const float *x, uint32_t count)
{
    struct session_info info;
    session_info(b->s, &info);
    struct session_launch l = {.call = {.space = SPACE_PAIR, .tag = TAG, .known = info.known, .world = info.snapshot.group,
                                        .params = message, .root_rank = rank, .in = x, .deadline = INT64_MAX}};
    l.call.params.count = count;
    b->returned = false;
    step(b, &(struct session_event){.kind = SESSION_LAUNCH, .slot = slot, .launch = &l});
    EXPECT_EQ(b->outcome.result, RESULT_PENDING);
}

static void send_to(struct bench *b, uint32_t slot, uint32_t rank, const float *x)
{
    send_many(b, slot, rank, x, 1);
}

/* ---- what a sender may say, and mean otherwise -------------------------------------------------------------------- */

/* An eager message of `count` floats, then another announcement of the same one: the parameters of `again` floats.  With `payload` it
 * comes as an eager message, too. */
static void announced_twice(struct bench *b, uint32_t count, uint32_t again, bool payload)
{
    enum { MOST = 64 };
    static const float many[MOST] = {7, 7, 7, 7};
    unsigned char raw[512];
    struct writer w;
    struct op_name name = {.space = SPACE_PAIR, .tag = TAG, .from = peer_id(1), .to = self};
    struct op_params first = message, last = message;
    first.count = count;
    last.count = again;
    first.algorithm = last.algorithm = PLAN_TINY;
    EXPECT(count <= MOST && again <= MOST);
    writer_init(&w, raw, sizeof raw);
    put_eager(&w, &(struct msg_eager){.name = name, .params = first, .bytes = (uint32_t)sizeof(float) * count});
    put_bytes(&w, many, sizeof(float) * count);
    from_peer(b, 1, FRAME_EAGER, view_id(1), &w);
    writer_init(&w, raw, sizeof raw);
    if (payload) {
        put_eager(&w, &(struct msg_eager){.name = name, .params = last, .bytes = (uint32_t)sizeof(float) * again});
        put_bytes(&w, many, sizeof(float) * again);
    } else {
        put_ready(&w, &(struct msg_ready){.name = name, .params = last, .bundle = 1, .launch = 1});
    }
    from_peer(b, 1, payload ? FRAME_EAGER : FRAME_READY, view_id(1), &w);
}

/* With more bytes than the receive takes, they would be written beyond it; with fewer, its end would be left as it was. */
TEST(payload_that_is_not_what_was_announced_last_is_refused)
{
    static const struct {
        uint32_t came, announced;
        bool payload;
        const char *text;
    } cases[] = {{64, 1, false, "this peer has receive of 1 f32"},
                 {64, 1, true, "this peer has receive of 1 f32"},
                 {1, 64, false, "this peer has receive of 64 f32"}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct bench *b = bench_new();
        float room[64] = {0};
        struct reader r;
        struct msg_refuse m = {0};
        uint32_t at = 0;
        announced_twice(b, cases[i].came, cases[i].announced, cases[i].payload);
        receive_many(b, 0, 1, room, cases[i].announced);
        EXPECT(sent_next(b, ACT_PEERS, FRAME_REFUSE, &at, &r) != NULL && get_refuse(&r, &m));
        EXPECT(m.cause == CAUSE_MISMATCH && m.culprit == peer_id(1)); /* of two that differ the one with the higher id */
        EXPECT(b->returned && collect(b, 0) == RESULT_MISMATCH);
        EXPECT_STR(b->outcome.text, cases[i].text);
        for (int k = 0; k < 64; k++) {
            EXPECT_EQ(room[k], 0);
        }
        bench_free(b);
    }
}

/* ---- given up before its turn ------------------------------------------------------------------------------------- */

TEST(receive_given_up_before_its_turn_does_not_wait_behind_one_from_any_source)
{
    struct bench *b = bench_new();
    float any = 0, named = 0;
    freeze(b, 1);
    receive(b, 0, SESSION_ANY, &any);
    receive(b, 1, 1, &named);
    step(b, &(struct session_event){.kind = SESSION_CANCEL, .slot = 1});
    view(b, 0, CAUSE_LINK_LOST, 1);
    EXPECT(b->returned && collect(b, 1) == RESULT_LOST && b->outcome.cause == CAUSE_CANCEL);
    bench_free(b);
}

/* ---- words of two ------------------------------------------------------------------------------------------------- */

TEST(send_that_its_receiver_has_refused_already_returns_that) /* B5: it would wait for an owner that has long returned */
{
    struct bench *b = bench_new();
    float one = 1;
    refusal_from(b, 1, &(struct msg_refuse){.name = {.space = SPACE_PAIR, .tag = TAG, .from = self, .to = peer_id(1)},
                                            .origin = peer_id(1), .cause = CAUSE_CANCEL, .culprit = peer_id(1)});
    send_to(b, 0, 1, &one);
    EXPECT(b->returned && collect(b, 0) == RESULT_LOST);
    EXPECT(b->outcome.cause == CAUSE_CANCEL && b->outcome.culprit == peer_id(1));
    bench_free(b);
}

static void announcement_from(struct bench *b, uint32_t peer)
{
    unsigned char raw[128];
    struct writer w;
    struct op_params params = message;
    params.algorithm = PLAN_CHAIN;
    params.count = 1024;
    writer_init(&w, raw, sizeof raw);
    put_ready(&w, &(struct msg_ready){.name = {.space = SPACE_PAIR, .tag = TAG, .from = peer_id(peer), .to = self}, .params = params,
                                      .bundle = 1, .launch = 1});
    from_peer(b, peer, FRAME_READY, view_id(1), &w);
}

TEST(receive_from_any_source_that_is_matched_is_given_up_by_a_word_to_its_sender) /* B12: who would wait for ever for one */
{
    struct bench *b = bench_new();
    static float room[1024];
    struct session_info info;
    session_info(b->s, &info);
    struct session_launch l = {.call = {.space = SPACE_PAIR, .tag = TAG, .known = info.known, .world = PEERS, .params = message,
                                        .root_rank = SESSION_ANY, .receives = true, .out = room, .deadline = INT64_MAX}};
    l.call.params.count = 1024;
    step(b, &(struct session_event){.kind = SESSION_LAUNCH, .slot = 0, .launch = &l});
    announcement_from(b, 2);
    EXPECT(!b->returned);
    step(b, &(struct session_event){.kind = SESSION_CANCEL, .slot = 0});
    uint32_t at = 0;
    struct reader r;
    struct msg_refuse m;
    EXPECT(sent_next(b, ACT_PEERS, FRAME_REFUSE, &at, &r) != NULL && get_refuse(&r, &m) && m.cause == CAUSE_CANCEL);
    EXPECT(m.name.from == peer_id(2) && m.name.to == self && m.culprit == self);
    bench_free(b);
}

TEST(receives_from_any_source_take_one_announcement_each) /* B12: the others stay pending */
{
    struct bench *b = bench_new();
    float x = 0, y = 0;
    message_from(b, 2, 1, 5);
    message_from(b, 1, 1, 7);
    receive(b, 0, SESSION_ANY, &x);
    EXPECT(b->returned && collect(b, 0) == RESULT_OK && b->outcome.source == 2 && x == 5);
    receive(b, 1, SESSION_ANY, &y);
    EXPECT(b->returned && collect(b, 1) == RESULT_OK && b->outcome.source == 1 && y == 7);
    bench_free(b);
}

TEST(error_that_one_pair_is_owed_is_not_taken_by_another_of_the_same_tag) /* B1: whose message has arrived */
{
    struct bench *b = bench_new();
    float x = 0, y = 0;
    freeze(b, 1);
    struct op_decision d = {.name = {.space = SPACE_PAIR, .tag = TAG, .from = peer_id(1), .to = self}, .outcome = OUTCOME_ABORT,
                            .cause = CAUSE_LINK_LOST, .culprit = peer_id(1)};
    decided(b, 2, CAUSE_LINK_LOST, &d, NULL);
    for (uint32_t i = 1; i < PEERS; i++) {
        ping(b, i, view_id(2));
    }
    receive(b, 0, 2, &x);
    EXPECT(!b->returned);
    receive(b, 1, 1, &y);
    EXPECT(b->returned && collect(b, 1) == RESULT_LOST && b->outcome.cause == CAUSE_LINK_LOST);
    message_from(b, 2, 2, 5);
    EXPECT(b->returned && collect(b, 0) == RESULT_OK && x == 5);
    bench_free(b);
}

static bool acted(const struct bench *b, enum session_action kind)
{
    for (uint32_t i = 0; i < b->out.count; i++) {
        if (b->out.actions[i].kind == kind) {
            return true;
        }
    }
    return false;
}

/* The link with rank 1 breaks and is made again. */
static void link_again(struct bench *b)
{
    step(b, &(struct session_event){.kind = SESSION_LINK_DOWN, .peer = peer_id(1)});
    step(b, &(struct session_event){.kind = SESSION_LINK_UP, .peer = peer_id(1)});
    ping(b, 1, view_id(1));
}

TEST(send_that_is_given_up_lets_go_of_its_buffer_although_nobody_answers)
{
    struct bench *b = bench_new();
    static float from[1024];
    send_many(b, 0, 1, from, 1024);
    EXPECT(acted(b, ACT_OP_START) && session_lent(b->s, 0));
    step(b, &(struct session_event){.kind = SESSION_CANCEL, .slot = 0});
    EXPECT(acted(b, ACT_OP_STOP) && sent(b, FRAME_REFUSE) && session_lent(b->s, 0));
    step(b, &(struct session_event){.kind = SESSION_IDLE, .slot = 0});
    EXPECT(!session_lent(b->s, 0) && !b->returned); /* its receiver decides */
    link_again(b);
    EXPECT(sent(b, FRAME_REFUSE) && !sent(b, FRAME_READY) && !acted(b, ACT_OP_START) && !acted(b, ACT_OP_READY));
    refusal_from(b, 1, &(struct msg_refuse){.name = {.space = SPACE_PAIR, .tag = TAG, .from = self, .to = peer_id(1)},
                                            .origin = peer_id(1), .cause = CAUSE_CANCEL, .culprit = self});
    EXPECT(b->returned && collect(b, 0) == RESULT_LOST);
    bench_free(b);
}

TEST(payload_of_a_send_that_is_given_up_is_not_said_again)
{
    struct bench *b = bench_new();
    unsigned char raw[64];
    struct writer w;
    float one = 1;
    send_to(b, 0, 1, &one);
    EXPECT(sent(b, FRAME_EAGER));
    step(b, &(struct session_event){.kind = SESSION_CANCEL, .slot = 0});
    EXPECT(sent(b, FRAME_REFUSE));
    link_again(b);
    EXPECT(sent(b, FRAME_REFUSE) && !sent(b, FRAME_EAGER));
    writer_init(&w, raw, sizeof raw);
    put_want(&w, &(struct msg_want){.name = {.space = SPACE_PAIR, .tag = TAG, .from = self, .to = peer_id(1)}});
    from_peer(b, 1, FRAME_WANT, view_id(1), &w);
    EXPECT(!sent(b, FRAME_EAGER));
    bench_free(b);
}
