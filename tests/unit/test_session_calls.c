/* test_session_calls.c - calls of a program while its session defers, launches in parts, or fails: each ends once.
 * SPDX-License-Identifier: MIT */
#include "tests/unit/session_bench.h"

enum { MANY = 200, MANY_FLOATS = 250 };

/* Appends the tags of the EAGER frames of the last step, in their order, to those of earlier ones. */
static uint32_t eager_tags(const struct bench *b, uint64_t *tags, uint32_t at)
{
    struct reader r;
    struct msg_eager m;
    const void *payload;
    for (uint32_t next = 0; at < MANY && sent_next(b, ACT_PEERS, FRAME_EAGER, &next, &r) != NULL;) {
        EXPECT(get_eager(&r, &m, &payload));
        tags[at++] = m.name.tag;
    }
    return at;
}

static void launch_large(struct bench *b, uint32_t slot, uint64_t tag, const float *in, float *out)
{
    struct session_launch l = {.call = {.tag = tag, .params = {.count = MANY_FLOATS, .dtype = DTYPE_F32, .op = REDOP_SUM}, .in = in,
                                        .out = out, .deadline = INT64_MAX}};
    step(b, &(struct session_event){.kind = SESSION_LAUNCH, .slot = slot, .launch = &l});
    EXPECT_EQ(b->outcome.result, RESULT_PENDING);
}

TEST(deferred_calls_leave_in_order_in_as_many_steps_as_they_need) /* one outbox for all: the session fails, they never return */
{
    static float in[MANY_FLOATS], out[MANY][MANY_FLOATS];
    uint64_t tags[MANY];
    struct session_config c = bench_config();
    c.max_ops = MANY;
    c.max_tags = 512;
    struct bench *b = bench_of(&c, false);
    b->out.bytes_capacity = 10000; /* of half of them: the inputs stay where they are */
    freeze(b, 1);
    for (uint32_t i = 0; i + 1 < MANY; i++) {
        launch_large(b, i, 100 + i, in, out[i]);
        EXPECT(!sent(b, FRAME_EAGER));
    }
    install(b, 2, false); /* with the PINGs of the others; from now on each frame goes to both */
    EXPECT(!session_poisoned(b->s));
    launch_large(b, MANY - 1, 100 + MANY - 1, in, out[MANY - 1]); /* behind those that still wait */
    uint32_t count = eager_tags(b, tags, 0); /* each step launches as many as it can */
    EXPECT(count == 0 || tags[count - 1] < 100 + MANY - 1);
    for (int steps = 0; steps < MANY && session_deadline(b->s) <= b->now; steps++) { /* what is left is due at once */
        step(b, &(struct session_event){.kind = SESSION_TICK});
        EXPECT(!session_poisoned(b->s));
        count = eager_tags(b, tags, count);
    }
    EXPECT(count > MANY / 2 && count < MANY); /* the others left while the view was being installed */
    for (uint32_t i = 0; i < count; i++) {
        EXPECT_EQ(tags[i], 100 + MANY - count + i);
    }
    bench_free(b);
}

/* ---- A step that fails after it has moved everything: what it told the shell is lost --------------------------------------- */

/* The step's outbox counts as overflowed from the start, so that the invariant at its end fails. */
static void failing_step(struct bench *b, struct session_event *e)
{
    b->returned = b->voted = false;
    outbox_reset(&b->out);
    b->out.overflow = true;
    session_step(b->s, ++b->now, e, &b->out);
    b->outcome = e->outcome;
    EXPECT(session_poisoned(b->s));
    for (uint32_t i = 0; i < b->out.count; i++) {
        b->returned = b->returned || b->out.actions[i].kind == ACT_OP_RETURN;
        b->voted = b->voted || b->out.actions[i].kind == ACT_VOTED;
    }
}

static uint32_t told(const struct bench *b, enum session_action kind)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < b->out.count; i++) {
        n += b->out.actions[i].kind == kind;
    }
    return n;
}

static void failing_view(struct bench *b, uint32_t number)
{
    unsigned char raw[512];
    struct writer w;
    writer_init(&w, raw, sizeof raw);
    struct msg_view m = {.view = view_id(number), .parent = view_id(number - 1), .sizes = {PEERS, PEERS, 1, PEERS},
                         .plan = {.lanes = 1, .frame_bytes = 4096, .eager_bytes = 1024},
                         .members = PEERS};
    put_view(&w, &m);
    for (uint32_t i = 0; i < PEERS; i++) {
        put_u32(&w, i);
    }
    struct frame_header h = {.type = FRAME_VIEW, .length = (uint32_t)w.used, .run = run, .view = m.view};
    failing_step(b, &(struct session_event){.kind = SESSION_MASTER_FRAME, .header = &h, .payload = raw});
}

TEST(return_that_a_failed_step_had_decided_is_told_all_the_same) /* state says returned, the shell never hears: the call hangs */
{
    struct bench *b = bench_new();
    float x = 1, y = 0;
    launch(b, 0, 5, &x, &y);
    eager(b, 1, 1, 5, 10);
    eager(b, 2, 1, 5, 100);
    hold(b, 1, 1, 5);
    unsigned char raw[128];
    struct writer w;
    struct plan_view plan = {.lanes = 1, .frame_bytes = 4096, .eager_bytes = 1024};
    writer_init(&w, raw, sizeof raw);
    put_hold(&w, &(struct msg_hold){.name = {.tag = 5}, .origin = peer_id(2), .params = p2p_params_hash(&one_float, &plan)});
    struct frame_header h = {.type = FRAME_HOLD, .length = (uint32_t)w.used, .run = run, .view = view_id(1)};
    failing_step(b, &(struct session_event){.kind = SESSION_PEER_FRAME, .peer = peer_id(2), .header = &h, .payload = raw});
    EXPECT_EQ(told(b, ACT_OP_RETURN), 1);
    EXPECT_EQ(collect(b, 0), RESULT_POISONED);
    bench_free(b);
}

TEST(failed_invariant_ends_every_call_and_the_machine) /* somebody waits for a machine that no longer thinks */
{
    struct bench *b = bench_new();
    float x = 1, y = 0;
    launch(b, 0, 9, &x, &y);
    failing_step(b, &(struct session_event){.kind = SESSION_TICK});
    EXPECT(b->returned);
    EXPECT_EQ(collect(b, 0), RESULT_POISONED);
    struct session_launch l = {.call = {.tag = 1, .params = one_float, .in = &x, .out = &y, .deadline = INT64_MAX}};
    step(b, &(struct session_event){.kind = SESSION_LAUNCH, .slot = 1, .launch = &l});
    EXPECT_EQ(b->outcome.result, RESULT_POISONED);
    EXPECT_EQ(session_deadline(b->s), INT64_MAX);
    bench_free(b);
}

TEST(operation_started_by_a_failed_step_is_not_waited_for) /* lanes that were never started say no IDLE */
{
    static float in[1000], out[1000];
    struct bench *b = bench_new();
    freeze(b, 1);
    struct session_launch l = {.call = {.tag = 5, .params = {.count = 1000, .dtype = DTYPE_F32, .op = REDOP_SUM}, .in = in,
                                        .out = out, .deadline = INT64_MAX}};
    step(b, &(struct session_event){.kind = SESSION_LAUNCH, .launch = &l});
    failing_view(b, 2);
    EXPECT_EQ(told(b, ACT_OP_STOP), 0);
    EXPECT_EQ(told(b, ACT_OP_RETURN), 1);
    EXPECT_EQ(collect(b, 0), RESULT_POISONED);
    bench_free(b);
}

TEST(lanes_stopped_by_a_failed_step_are_stopped_all_the_same) /* they would run, and the call wait for them, for ever */
{
    static float in[1000], out[1000];
    struct bench *b = bench_new();
    struct session_launch l = {.call = {.tag = 5, .params = {.count = 1000, .dtype = DTYPE_F32, .op = REDOP_SUM}, .in = in,
                                        .out = out, .deadline = INT64_MAX}, .in_place = true};
    step(b, &(struct session_event){.kind = SESSION_LAUNCH, .launch = &l});
    EXPECT_EQ(told(b, ACT_OP_START), 1);
    failing_step(b, &(struct session_event){.kind = SESSION_CANCEL});
    EXPECT_EQ(told(b, ACT_OP_STOP), 1);
    EXPECT(!b->returned);
    step(b, &(struct session_event){.kind = SESSION_IDLE});
    EXPECT(b->returned);
    EXPECT_EQ(collect(b, 0), RESULT_POISONED);
    EXPECT(b->outcome.restore);
    bench_free(b);
}

TEST(idle_lanes_of_a_failed_step_are_not_stopped_again) /* the slot's memory may be gone when the order comes */
{
    static float in[1000], out[1000];
    struct bench *b = bench_new();
    struct session_launch l = {.call = {.tag = 5, .params = {.count = 1000, .dtype = DTYPE_F32, .op = REDOP_SUM}, .in = in,
                                        .out = out, .deadline = INT64_MAX}};
    step(b, &(struct session_event){.kind = SESSION_LAUNCH, .launch = &l});
    failing_step(b, &(struct session_event){.kind = SESSION_IDLE});
    EXPECT_EQ(told(b, ACT_OP_STOP), 0);
    EXPECT_EQ(told(b, ACT_OP_RETURN), 1);
    bench_free(b);
}

TEST(vote_answered_by_a_failed_step_ends) /* VOTED is lost, the program waits in its update */
{
    struct bench *b = bench_new();
    step(b, &(struct session_event){.kind = SESSION_VOTE, .vote = &(struct msg_vote){.kind = VOTE_UPDATE}});
    EXPECT_EQ(b->outcome.result, RESULT_PENDING);
    unsigned char raw[512];
    struct writer w;
    writer_init(&w, raw, sizeof raw);
    put_answer(&w, &(struct msg_answer){.kind = VOTE_UPDATE, .view = view_id(1), .sizes = {PEERS, PEERS, 1, PEERS}});
    struct frame_header h = {.type = FRAME_ANSWER, .length = (uint32_t)w.used, .run = run, .view = view_id(1)};
    failing_step(b, &(struct session_event){.kind = SESSION_MASTER_FRAME, .header = &h, .payload = raw});
    EXPECT_EQ(told(b, ACT_VOTED), 1);
    step(b, &(struct session_event){.kind = SESSION_COLLECT_VOTE});
    EXPECT_EQ(b->outcome.result, RESULT_POISONED);
    bench_free(b);
}

TEST(call_that_fails_the_machine_fails_itself_and_holds_nothing) /* told twice: once by its return, once as if it were pending */
{
    struct bench *b = bench_new();
    float x = 1, y = 0;
    struct session_launch l = {.call = {.tag = 5, .params = one_float, .in = &x, .out = &y, .deadline = INT64_MAX}};
    failing_step(b, &(struct session_event){.kind = SESSION_LAUNCH, .launch = &l});
    EXPECT_EQ(b->outcome.result, RESULT_POISONED);
    EXPECT(!b->returned);
    b = (bench_free(b), bench_new());
    failing_step(b, &(struct session_event){.kind = SESSION_VOTE, .vote = &(struct msg_vote){.kind = VOTE_QUERY}});
    EXPECT_EQ(b->outcome.result, RESULT_POISONED);
    EXPECT(!b->voted);
    bench_free(b);
}

TEST(call_given_up_before_it_was_launched_is_refused_with_its_number) /* launched as if nobody had, it waits for the others for ever */
{
    struct bench *b = bench_new();
    float x = 1, y = 0;
    freeze(b, 1);
    launch(b, 0, 5, &x, &y); /* deferred */
    step(b, &(struct session_event){.kind = SESSION_CANCEL, .slot = 0});
    step(b, &(struct session_event){.kind = SESSION_CANCEL, .slot = 0, .number = CAUSE_NO_MEMORY}); /* the first reason stands */
    EXPECT(!b->returned);
    install(b, 2, false);
    for (uint32_t i = 1; i < PEERS; i++) {
        unsigned char raw[128];
        struct writer w;
        writer_init(&w, raw, sizeof raw);
        put_refuse(&w, &(struct msg_refuse){.name = {.tag = 5}, .origin = peer_id(i), .cause = CAUSE_CANCEL, .culprit = self});
        EXPECT(!b->returned);
        from_peer(b, i, FRAME_REFUSE, view_id(2), &w);
    }
    EXPECT(b->returned);
    EXPECT_EQ(collect(b, 0), RESULT_LOST);
    EXPECT_EQ(b->outcome.cause, CAUSE_CANCEL);
    EXPECT_EQ(b->outcome.culprit, self);
    bench_free(b);
}

/* ---- Dissemination ---------------------------------------------------------------------------------------------------------- */

static void hold_round(struct bench *b, uint32_t peer, uint8_t round, uint64_t digest)
{
    struct plan_view plan = {.lanes = 1, .frame_bytes = 4096, .eager_bytes = 1024};
    unsigned char raw[128];
    struct writer w;
    writer_init(&w, raw, sizeof raw);
    put_hold(&w, &(struct msg_hold){.name = {.tag = 5}, .origin = peer_id(peer), .round = round,
                                    .params = p2p_params_hash(&one_float, &plan), .digest = digest});
    from_peer(b, peer, FRAME_HOLD, view_id(1), &w);
}

static uint32_t holds_sent(const struct bench *b)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < b->out.count; i++) {
        struct frame_header h;
        const struct action *a = &b->out.actions[i];
        n += a->kind == ACT_PEERS && a->dests > 0 && frame_get(b->out.bytes + a->frame, &h) && h.type == FRAME_HOLD;
    }
    return n;
}

TEST(rounds_stop_at_the_first_result_that_differs) /* passed on, it counts as agreement: others succeed beside an error */
{
    struct bench *b = bench_with(2, false);
    float x = 1, y = 0;
    launch(b, 0, 5, &x, &y);
    hold_round(b, 2, 0, 99); /* before our own result is known */
    eager(b, 1, 1, 5, 10);
    eager(b, 2, 1, 5, 100);
    EXPECT_EQ(holds_sent(b), 1); /* round 0 needs nothing */
    EXPECT(sent(b, FRAME_SUSPECT));
    hold_round(b, 1, 1, 0);
    EXPECT(!sent(b, FRAME_HOLD));
    EXPECT(!b->returned);
    b = (bench_free(b), bench_with(2, false));
    launch(b, 0, 5, &x, &y);
    eager(b, 1, 1, 5, 10);
    eager(b, 2, 1, 5, 100);
    hold_round(b, 1, 1, 0);
    EXPECT(!sent(b, FRAME_HOLD));
    hold_round(b, 2, 0, 0); /* all agree: the last round goes out, and that is all */
    EXPECT(sent(b, FRAME_HOLD));
    EXPECT(b->returned);
    bench_free(b);
}

/* ---- Refusals --------------------------------------------------------------------------------------------------------------- */

static void refusal(struct bench *b, uint32_t peer, uint8_t cause, uint64_t culprit)
{
    refusal_from(b, peer, &(struct msg_refuse){.name = {.tag = 5}, .origin = peer_id(peer), .cause = cause, .culprit = culprit});
}

TEST(refusals_of_one_cause_agree_on_one_culprit) /* each peer blames the one it heard first */
{
    struct bench *b = bench_new();
    float x = 1, y = 0;
    launch(b, 0, 5, &x, &y);
    refusal(b, 1, CAUSE_DEADLINE, peer_id(1));
    refusal(b, 2, CAUSE_DEADLINE, peer_id(2));
    EXPECT(!b->returned); /* peer 2 has not taken over the lower id yet */
    step(b, &(struct session_event){.kind = SESSION_CANCEL, .slot = 0}); /* refused already: nothing of its own */
    refusal(b, 2, CAUSE_DEADLINE, peer_id(1));
    EXPECT(b->returned);
    EXPECT_EQ(collect(b, 0), RESULT_LOST);
    EXPECT_EQ(b->outcome.cause, CAUSE_DEADLINE);
    EXPECT_EQ(b->outcome.culprit, peer_id(1));
    bench_free(b);
}

TEST(refusal_that_outweighs_is_waited_for_from_those_who_had_agreed_before) /* returned while a peer still says another culprit */
{
    struct bench *b = bench_new();
    float x = 1, y = 0;
    launch(b, 0, 5, &x, &y);
    refusal(b, 1, CAUSE_DEADLINE, peer_id(2)); /* this peer says the same */
    refusal(b, 2, CAUSE_DEADLINE, peer_id(1));
    EXPECT(!b->returned);
    refusal(b, 1, CAUSE_DEADLINE, peer_id(1));
    EXPECT(b->returned);
    EXPECT_EQ(collect(b, 0), RESULT_LOST);
    EXPECT_EQ(b->outcome.culprit, peer_id(1));
    bench_free(b);
}

TEST(hold_that_is_taken_back_for_another_is_told) /* success beside another result */
{
    struct bench *b = bench_new();
    float x = 1, y = 0;
    launch(b, 0, 5, &x, &y);
    eager(b, 1, 1, 5, 10);
    eager(b, 2, 1, 5, 100);
    hold_round(b, 1, 0, 0);
    EXPECT(!sent(b, FRAME_SUSPECT));
    hold_round(b, 1, 0, 99);
    EXPECT(sent(b, FRAME_SUSPECT));
    hold_round(b, 2, 0, 0);
    EXPECT(!b->returned);
    bench_free(b);
}

static enum session_result without_memory(bool own)
{
    struct bench *b = bench_new();
    float x = 1, y = 0;
    struct session_launch l = {.call = {.tag = 5, .params = one_float, .in = &x, .out = &y, .no_memory = own, .deadline = INT64_MAX}};
    uint64_t culprit = own ? self : peer_id(1);
    step(b, &(struct session_event){.kind = SESSION_LAUNCH, .launch = &l});
    refusal(b, 1, CAUSE_NO_MEMORY, culprit);
    refusal(b, 2, CAUSE_NO_MEMORY, culprit);
    EXPECT(b->returned);
    enum session_result result = collect(b, 0);
    EXPECT_EQ(b->outcome.cause, CAUSE_NO_MEMORY);
    EXPECT_EQ(b->outcome.culprit, culprit);
    bench_free(b);
    return result;
}

TEST(lack_of_memory_stops_only_the_peer_that_lacks_it) /* all of a run stopped for one small machine */
{
    EXPECT_EQ(without_memory(true), RESULT_NO_MEMORY);
    EXPECT_EQ(without_memory(false), RESULT_LOST);
}
