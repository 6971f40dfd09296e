/* test_session_window.c - messages of windows: bound to a view (O1), owed to nobody (O2), a place lost for memory (O3), beside votes (O4).
 * SPDX-License-Identifier: MIT */
#include "tests/unit/session_bench.h"

enum { TAG = 8 };
static const struct op_params message = {.kind = PLAN_SEND, .count = 1, .dtype = DTYPE_F32};

static enum session_result window(struct bench *b, uint32_t slot, uint64_t partner, bool receives, uint64_t within, float *buffer)
{
    struct session_info info;
    session_info(b->s, &info);
    struct session_launch l = {.call = {.space = SPACE_WINDOW, .tag = TAG, .known = info.view, .params = message,
                                        .partner = partner, .within = within, .receives = receives, .in = buffer, .out = buffer,
                                        .deadline = INT64_MAX}};
    b->returned = false;
    step(b, &(struct session_event){.kind = SESSION_LAUNCH, .slot = slot, .launch = &l});
    return b->outcome.result;
}

static void message_from(struct bench *b, uint32_t peer, uint32_t view, float value)
{
    unsigned char raw[128];
    struct writer w;
    writer_init(&w, raw, sizeof raw);
    put_eager(&w, &(struct msg_eager){.name = {.space = SPACE_WINDOW, .tag = TAG, .from = peer_id(peer), .to = self}, .params = message,
                                      .bytes = 4});
    put_bytes(&w, &value, 4);
    from_peer(b, peer, FRAME_EAGER, view_id(view), &w);
}

/* View 2 of the same members, after a freeze or, where all wait in an update, without; it aborts `aborted`. */
static void view(struct bench *b, bool frozen, const struct op_name *aborted)
{
    unsigned char raw[1024];
    struct writer w;
    struct msg_view m = {.view = view_id(2), .parent = view_id(1), .cause = CAUSE_LINK_LOST, .culprit = peer_id(1),
                         .sizes = {PEERS, PEERS, 1, PEERS}, .plan = {.lanes = 1, .frame_bytes = 4096, .eager_bytes = 1024},
                         .members = PEERS, .decisions = aborted != NULL, .text = "why"};
    writer_init(&w, raw, sizeof raw);
    put_view(&w, &m);
    for (uint32_t i = 0; i < PEERS; i++) {
        put_u32(&w, i);
    }
    if (aborted != NULL) {
        put_op_decision(&w, &(struct op_decision){.name = *aborted, .outcome = OUTCOME_ABORT, .cause = CAUSE_LINK_LOST, .culprit = peer_id(1)});
    }
    if (frozen) {
        freeze(b, 1);
    }
    from_master(b, FRAME_VIEW, m.view, &w);
}

TEST(a_message_bound_to_another_view_takes_no_number)
{
    struct bench *b = bench_new();
    float x = 1, y = 2, z = 3;
    EXPECT_EQ(window(b, 0, peer_id(1), false, 0, &x), RESULT_PENDING);
    EXPECT_EQ(window(b, 1, peer_id(1), false, SESSION_LAST_VIEW, &y), RESULT_PENDING); /* that of the first */
    EXPECT(sent(b, FRAME_EAGER) && !b->returned);
    const struct op_name first = {.space = SPACE_WINDOW, .tag = TAG, .from = self, .to = peer_id(1)};
    view(b, true, &first); /* the second was not reported: it ends with the view */
    EXPECT_EQ(collect(b, 0), RESULT_LOST);
    EXPECT(b->outcome.view_ended && b->outcome.view == view_id(1) && b->outcome.partner == peer_id(1));
    EXPECT_EQ(collect(b, 1), RESULT_LOST);
    EXPECT(b->outcome.view_ended);
    EXPECT_EQ(window(b, 0, peer_id(1), false, view_id(1), &x), RESULT_PENDING);
    EXPECT(b->returned && !sent(b, FRAME_EAGER));
    EXPECT_EQ(collect(b, 0), RESULT_LOST);
    EXPECT(b->outcome.view_ended && b->outcome.view == 0);
    EXPECT_EQ(window(b, 0, peer_id(1), false, SESSION_LAST_VIEW, &x), RESULT_PENDING); /* the one before has no number */
    EXPECT(b->returned && collect(b, 0) == RESULT_LOST && b->outcome.view_ended);
    EXPECT_EQ(window(b, 0, peer_id(1), false, view_id(2), &z), RESULT_PENDING);
    EXPECT(!b->returned); /* it is sent when peer 1 has come to the view */
    bench_free(b);
}

TEST(an_abort_of_what_was_not_called_is_owed_to_nobody) /* the next call is that of another request */
{
    struct bench *b = bench_new();
    float x = 0;
    const struct op_name name = {.space = SPACE_WINDOW, .tag = TAG, .from = peer_id(1), .to = self};
    message_from(b, 1, 1, 5);
    view(b, true, &name);
    EXPECT_EQ(window(b, 0, peer_id(1), true, view_id(2), &x), RESULT_PENDING);
    EXPECT(!b->returned);
    message_from(b, 1, 2, 6);
    EXPECT(b->returned && collect(b, 0) == RESULT_OK && x == 6);
    bench_free(b);
}

TEST(who_has_no_memory_for_a_message_leaves) /* O3: the other end has its half, and would take the next one for it */
{
    for (int grows = 0; grows < 2; grows++) {
        struct bench *b = bench_new();
        struct session_info info;
        float x = 0;
        b->no_memory = grows == 0;
        EXPECT_EQ(window(b, 7, peer_id(1), true, 0, &x), grows == 0 ? RESULT_NO_MEMORY : RESULT_PENDING);
        session_info(b->s, &info);
        EXPECT_EQ(info.connected, grows != 0);
        bench_free(b);
    }
}

TEST(a_vote_does_not_wait_for_windows_and_its_view_ends_their_messages)
{
    struct bench *b = bench_new();
    float x = 0, y = 1;
    EXPECT_EQ(window(b, 0, 0, true, 0, &x), RESULT_PENDING);
    struct msg_vote vote = {.kind = VOTE_UPDATE};
    step(b, &(struct session_event){.kind = SESSION_VOTE, .vote = &vote});
    EXPECT_EQ(b->outcome.result, RESULT_PENDING);
    EXPECT_EQ(window(b, 1, peer_id(2), false, 0, &y), RESULT_PENDING);
    EXPECT(sent(b, FRAME_EAGER));
    message_from(b, 1, 1, 5);
    EXPECT(collect(b, 0) == RESULT_OK && x == 5 && b->outcome.partner == peer_id(1) && b->outcome.view == view_id(1));
    EXPECT_EQ(window(b, 0, 0, true, 0, &x), RESULT_PENDING);
    view(b, false, NULL);
    EXPECT_EQ(collect(b, 1), RESULT_LOST);
    EXPECT(b->outcome.view_ended);
    message_from(b, 1, 2, 7); /* who waits for any goes on */
    EXPECT(collect(b, 0) == RESULT_OK && x == 7);
    struct session_info info;
    session_info(b->s, &info);
    EXPECT(info.connected && info.view == view_id(2));
    bench_free(b);
}

/* P11: its thread hears of the view, at a time of its own; the program, of which others make the same calls, does not. */
TEST(a_message_that_a_view_has_ended_moves_no_sizes)
{
    struct bench *b = bench_new();
    struct session_info before, after;
    float x = 0;
    session_info(b->s, &before);
    EXPECT_EQ(window(b, 0, peer_id(1), true, view_id(1), &x), RESULT_PENDING);
    view(b, true, NULL);
    EXPECT(collect(b, 0) == RESULT_LOST && b->outcome.view_ended);
    EXPECT_EQ(window(b, 0, peer_id(1), true, view_id(1), &x), RESULT_PENDING); /* too late for that view */
    EXPECT(collect(b, 0) == RESULT_LOST && b->outcome.view_ended);
    session_info(b->s, &after);
    EXPECT(after.view == view_id(2) && after.known == before.known);
    EXPECT(memcmp(&after.snapshot, &before.snapshot, sizeof after.snapshot) == 0);
    bench_free(b);
}

/* O2: the thread of the window has still to come to it; what it launches next would be taken for the number behind. */
TEST(a_message_that_was_refused_outlives_the_answer_to_a_vote)
{
    struct bench *b = bench_new();
    float x = 0, y = 0;
    const struct op_name name = {.space = SPACE_WINDOW, .tag = TAG, .from = peer_id(1), .to = self};
    refusal_from(b, 1, &(struct msg_refuse){.name = name, .origin = peer_id(1), .cause = CAUSE_CANCEL});
    step(b, &(struct session_event){.kind = SESSION_VOTE, .vote = &(struct msg_vote){.kind = VOTE_UPDATE}});
    EXPECT_EQ(b->outcome.result, RESULT_PENDING);
    update_answered(b);
    EXPECT_EQ(window(b, 0, peer_id(1), true, view_id(1), &x), RESULT_PENDING);
    EXPECT(b->returned && collect(b, 0) == RESULT_LOST && b->outcome.cause == CAUSE_CANCEL);
    EXPECT_EQ(window(b, 0, peer_id(1), true, view_id(1), &y), RESULT_PENDING);
    EXPECT(!b->returned);
    bench_free(b);
}
