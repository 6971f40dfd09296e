/* test_session_pair_vote.c - messages beside votes, and several of them at once (B12, B13, B15).
 * SPDX-License-Identifier: MIT */
#include "tests/unit/session_bench.h"

enum { TAG = 9 };
static const struct op_params message = {.kind = PLAN_SEND, .count = 1, .dtype = DTYPE_F32};

static void call(struct bench *b, uint32_t slot, uint32_t rank, float *x, bool receives)
{
    struct session_info info;
    session_info(b->s, &info);
    struct session_launch l = {.call = {.space = SPACE_PAIR, .tag = TAG, .known = info.known, .world = info.snapshot.group,
                                        .params = message, .root_rank = rank, .receives = receives, .in = receives ? NULL : x,
                                        .out = receives ? x : NULL, .deadline = INT64_MAX}};
    b->returned = false;
    step(b, &(struct session_event){.kind = SESSION_LAUNCH, .slot = slot, .launch = &l});
    EXPECT_EQ(b->outcome.result, RESULT_PENDING);
}

static struct op_name name_of(uint64_t from, uint64_t to, uint32_t seq)
{
    return (struct op_name){.space = SPACE_PAIR, .tag = TAG, .from = from, .to = to, .seq = seq};
}

static void message_from(struct bench *b, uint32_t peer, uint32_t view, uint32_t seq, float value)
{
    unsigned char raw[128];
    struct writer w;
    writer_init(&w, raw, sizeof raw);
    put_eager(&w, &(struct msg_eager){.name = name_of(peer_id(peer), self, seq), .params = message, .bytes = 4});
    put_bytes(&w, &value, 4);
    from_peer(b, peer, FRAME_EAGER, view_id(view), &w);
}

/* Peer 1 gives up what it has sent, or has refused what it would have received, after so many votes of this view. */
static void given_up(struct bench *b, bool sent_here, uint32_t settled)
{
    struct op_name name = sent_here ? name_of(self, peer_id(1), 0) : name_of(peer_id(1), self, 0);
    refusal_from(b, 1, &(struct msg_refuse){.name = name, .origin = peer_id(1), .cause = CAUSE_CANCEL, .culprit = peer_id(1),
                                            .settled = settled});
}

static void vote_for(struct bench *b, uint8_t kind)
{
    struct msg_vote m = {.kind = kind};
    step(b, &(struct session_event){.kind = SESSION_VOTE, .vote = &m});
    EXPECT_EQ(b->outcome.result, RESULT_PENDING);
}

static void vote(struct bench *b)
{
    vote_for(b, VOTE_UPDATE);
}

static void answered_with(struct bench *b, uint32_t view, uint8_t kind, uint8_t answer, enum session_result result)
{
    unsigned char raw[512];
    struct writer w;
    writer_init(&w, raw, sizeof raw);
    put_answer(&w, &(struct msg_answer){.kind = kind, .result = answer, .view = view_id(view), .sizes = {3, 3, 1, 3}});
    from_master(b, FRAME_ANSWER, view_id(view), &w);
    step(b, &(struct session_event){.kind = SESSION_COLLECT_VOTE});
    EXPECT_EQ(b->outcome.result, result);
}

static void answered(struct bench *b, uint32_t view)
{
    answered_with(b, view, VOTE_UPDATE, ANSWER_OK, RESULT_OK);
}

/* View 2, in which this peer owes its next receive from peer 1 an error. */
static void owes(struct bench *b)
{
    struct op_decision d = {.name = name_of(peer_id(1), self, 0), .outcome = OUTCOME_ABORT, .cause = CAUSE_LINK_LOST, .culprit = peer_id(1)};
    freeze(b, 1);
    decided(b, 2, CAUSE_LINK_LOST, &d, NULL);
    for (uint32_t i = 1; i < PEERS; i++) {
        ping(b, i, view_id(2));
    }
}

TEST(vote_waits_until_a_refused_sender_has_heard_it) /* the answer would come to it first, and its next message find the refusal (B15) */
{
    struct bench *b = bench_new();
    float x = 0;
    call(b, 0, 1, &x, true);
    step(b, &(struct session_event){.kind = SESSION_CANCEL, .slot = 0});
    EXPECT(sent(b, FRAME_REFUSE) && collect(b, 0) == RESULT_LOST);
    vote(b);
    EXPECT(!sent(b, FRAME_VOTE));
    unsigned char raw[128];
    struct writer w;
    struct op_name name = name_of(peer_id(1), self, 0);
    writer_init(&w, raw, sizeof raw);
    put_finished(&w, &(struct msg_finished){.origin = peer_id(1), .names = 1});
    put_op_name(&w, &name);
    from_peer(b, 1, FRAME_FINISHED, view_id(1), &w);
    EXPECT(sent(b, FRAME_VOTE));
    step(b, &(struct session_event){.kind = SESSION_TICK});
    EXPECT(!sent(b, FRAME_VOTE));
    bench_free(b);

    b = bench_new(); /* or until the view has ended, and with it what was refused */
    call(b, 0, 1, &x, true);
    step(b, &(struct session_event){.kind = SESSION_CANCEL, .slot = 0});
    EXPECT_EQ(collect(b, 0), RESULT_LOST);
    vote(b);
    freeze(b, 1);
    EXPECT(!sent(b, FRAME_VOTE));
    decided(b, 2, CAUSE_LINK_LOST, NULL, NULL);
    EXPECT(sent(b, FRAME_VOTE));
    bench_free(b);
}

TEST(sender_says_at_once_that_it_has_heard_a_refusal) /* its receiver's vote waits for that */
{
    struct bench *b = bench_new();
    given_up(b, true, 0);
    EXPECT(sent(b, FRAME_FINISHED));
    bench_free(b);
}

TEST(word_that_is_said_again_is_answered_again) /* with the link the first answer may be lost, and the receiver's vote waits for ever (B15) */
{
    struct bench *b = bench_new();
    float one = 1;
    for (uint32_t i = 0; i < 3; i++) {
        given_up(b, true, 0);
        EXPECT(sent(b, FRAME_FINISHED));
        if (i == 1) { /* the call of that number takes it: nothing is left of it here */
            call(b, 0, 1, &one, false);
            EXPECT(b->returned && collect(b, 0) == RESULT_LOST);
        }
    }
    bench_free(b);
}

/* The sender has had the answer, launched the next message and given it up, all before the answer is here. */
TEST(message_given_up_after_an_answer_that_is_still_to_come_here_ends_a_receive) /* it would wait for one that was never sent (B15) */
{
    for (uint32_t settled = 0; settled < 2; settled++) {
        struct bench *b = bench_new();
        float x = 0;
        vote(b);
        message_from(b, 1, 1, 0, 5);
        given_up(b, false, settled);
        answered(b, 1);
        call(b, 0, 1, &x, true);
        EXPECT_EQ(b->returned, settled == 1);
        if (settled == 0) { /* of before the answer: skipped */
            message_from(b, 1, 1, 1, 7);
            EXPECT(b->returned && collect(b, 0) == RESULT_OK && x == 7);
        }
        bench_free(b);
    }
}

TEST(sync_that_fails_for_all_skips_what_was_refused_before_it) /* the next message would end for the one that was given up (B15) */
{
    static const struct {
        uint8_t answer;
        enum session_result result;
    } how[] = {{ANSWER_OK, RESULT_OK}, {ANSWER_NO_CANDIDATE, RESULT_NO_CANDIDATE}, {ANSWER_REVISION, RESULT_REVISION}};
    for (uint32_t i = 0; i < sizeof how / sizeof how[0]; i++) {
        struct bench *b = bench_new();
        float x = 0;
        given_up(b, false, 0);
        vote_for(b, VOTE_SYNC);
        answered_with(b, 1, VOTE_SYNC, how[i].answer, how[i].result);
        call(b, 0, 1, &x, true);
        EXPECT(!b->returned);
        message_from(b, 1, 1, 1, 7);
        EXPECT(b->returned && collect(b, 0) == RESULT_OK && x == 7);
        bench_free(b);
    }
}

TEST(update_clears_errors_that_messages_are_owed) /* the next message would be taken for one that has failed long ago (B15) */
{
    struct bench *b = bench_new();
    float x = 0;
    owes(b);
    vote(b);
    answered(b, 2);
    call(b, 0, 1, &x, true);
    EXPECT(!b->returned);
    message_from(b, 1, 2, 0, 5);
    EXPECT(b->returned && collect(b, 0) == RESULT_OK && x == 5);
    bench_free(b);
}

TEST(number_of_answered_votes_that_cannot_be_harms_nobody) /* bytes of a peer would be a failed invariant here */
{
    struct bench *b = bench_new();
    float one = 1;
    given_up(b, true, UINT32_MAX);
    EXPECT(!session_poisoned(b->s));
    call(b, 0, 1, &one, false);
    EXPECT(b->returned && collect(b, 0) == RESULT_LOST);
    bench_free(b);
}

/* ---- at one receiver ---------------------------------------------------------------------------------------------- */

TEST(receive_from_one_source_does_not_pass_an_earlier_one_from_any) /* who receives first would get the second message (B12) */
{
    struct bench *b = bench_new();
    float x = 0, y = 0;
    call(b, 0, SESSION_ANY, &x, true);
    call(b, 1, 1, &y, true);
    message_from(b, 1, 1, 0, 5);
    EXPECT(collect(b, 0) == RESULT_OK && x == 5 && y == 0);
    message_from(b, 1, 1, 1, 7);
    EXPECT(collect(b, 1) == RESULT_OK && y == 7);
    bench_free(b);
}

TEST(error_that_a_pair_is_owed_comes_before_its_later_messages) /* B13: to a receive from any source, too */
{
    for (uint32_t any = 0; any < 2; any++) {
        struct bench *b = bench_new();
        float x = 0, y = 0;
        owes(b);
        message_from(b, 1, 2, 0, 5);
        call(b, 0, any ? SESSION_ANY : 1, &x, true);
        EXPECT(b->returned && collect(b, 0) == RESULT_LOST && b->outcome.cause == CAUSE_LINK_LOST);
        call(b, 1, any ? SESSION_ANY : 1, &y, true);
        EXPECT(b->returned && collect(b, 1) == RESULT_OK && y == 5);
        bench_free(b);
    }
}

TEST(receive_from_any_source_takes_an_error_that_is_owed) /* B13: it would wait for a message more than was sent */
{
    struct bench *b = bench_new();
    float x = 0;
    owes(b);
    call(b, 0, SESSION_ANY, &x, true);
    EXPECT(b->returned && collect(b, 0) == RESULT_LOST && b->outcome.source == 1);
    bench_free(b);
}

/* ---- what the master hears ---------------------------------------------------------------------------------------- */

static struct peer_wait waited_for(struct bench *b)
{
    struct msg_heartbeat m = {0};
    struct reader r;
    uint32_t at = 0;
    b->now += 1000000000;
    step(b, &(struct session_event){.kind = SESSION_TICK});
    EXPECT(sent_next(b, ACT_MASTER, FRAME_HEARTBEAT, &at, &r) != NULL && get_heartbeat(&r, &m) && m.wait.phase == WAIT_LAUNCH);
    return m.wait;
}

TEST(heartbeats_say_of_all_that_are_waited_for_in_turn) /* one of them votes, which the master would never put together */
{
    struct bench *b = bench_new();
    float x = 0, y = 0, one = 1;
    call(b, 0, 1, &x, true);
    call(b, 1, 2, &y, true);
    uint64_t first = waited_for(b).on, second = waited_for(b).on;
    EXPECT(first != second && first + second == peer_id(1) + peer_id(2));
    EXPECT_EQ(waited_for(b).on, first);
    bench_free(b);

    b = bench_new(); /* of one operation that several have not launched, too */
    launch(b, 0, 5, &one, &y);
    first = waited_for(b).on;
    EXPECT(first != waited_for(b).on);
    bench_free(b);
}

/* The view comes for its cycle with the vote of peer 1. */
static void blocked_by_one(struct bench *b)
{
    unsigned char raw[1024];
    struct writer w;
    struct msg_view m = {.view = view_id(2), .parent = view_id(1), .cause = CAUSE_BLOCKED, .culprit = peer_id(1),
                         .sizes = {PEERS, PEERS, 1, PEERS}, .members = PEERS, .text = "why",
                         .plan = {.lanes = 1, .frame_bytes = 4096, .eager_bytes = 1024}};
    freeze(b, 1);
    writer_init(&w, raw, sizeof raw);
    put_view(&w, &m);
    for (uint32_t i = 0; i < PEERS; i++) {
        put_u32(&w, i);
    }
    from_master(b, FRAME_VIEW, m.view, &w);
}

TEST(receive_behind_one_from_any_source_is_in_a_cycle_with_its_source) /* of the others one may wait for this peer, and none of them votes */
{
    struct bench *b = bench_new();
    float x = 0, y = 0, z = 0;
    call(b, 0, SESSION_ANY, &x, true);
    call(b, 1, 1, &y, true);
    struct peer_wait first = waited_for(b);
    EXPECT(first.on == peer_id(1) && first.name.seq == OP_NO_NUMBER); /* 0 would be an operation of theirs */
    call(b, 2, 2, &z, true);
    EXPECT_EQ(waited_for(b).on, peer_id(2));
    blocked_by_one(b);
    EXPECT(b->returned && collect(b, 1) == RESULT_LOST && b->outcome.cause == CAUSE_BLOCKED && b->outcome.culprit == peer_id(1));
    EXPECT_STR(b->outcome.text, "why");
    ping(b, 2, view_id(2));
    message_from(b, 2, 2, 0, 5);
    message_from(b, 2, 2, 1, 6);
    EXPECT(collect(b, 0) == RESULT_OK && x == 5);
    EXPECT(collect(b, 2) == RESULT_OK && z == 6);
    bench_free(b);
}

TEST(receive_behind_one_from_any_source_gets_its_turn_after_a_new_view) /* nothing else was known of its source: it waited for ever, and all behind it */
{
    struct bench *b = bench_new();
    float x = 0, y = 0;
    call(b, 0, SESSION_ANY, &x, true);
    call(b, 1, 1, &y, true);
    freeze(b, 1);
    decided(b, 2, CAUSE_LINK_LOST, NULL, NULL);
    ping(b, 1, view_id(2));
    ping(b, 2, view_id(2));
    EXPECT_EQ(waited_for(b).name.seq, OP_NO_NUMBER);
    message_from(b, 2, 2, 0, 5);
    EXPECT(collect(b, 0) == RESULT_OK && x == 5);
    struct peer_wait next = waited_for(b);
    EXPECT(next.on == peer_id(1) && next.name.seq == 0);
    message_from(b, 1, 2, 0, 6);
    EXPECT(collect(b, 1) == RESULT_OK && y == 6);
    bench_free(b);
}
