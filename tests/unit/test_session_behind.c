/* test_session_behind.c - calls in the order of issue go on, however many before them were refused (P10, P12).
 * SPDX-License-Identifier: MIT */
#include "core/bounds.h"
#include "tests/unit/session_bench.h"

static const float in = 1;
static float out;

/* A call in the order of issue; `wrong`: with a wrong argument. */
static void call(struct bench *b, uint32_t slot, bool wrong, int64_t deadline)
{
    struct session_info info;
    session_info(b->s, &info);
    struct session_launch l = {.call = {.space = SPACE_ORDERED, .known = info.known, .world = info.snapshot.group,
                                        .params = one_float, .in = &in, .out = &out, .bad_argument = wrong, .deadline = deadline}};
    b->returned = false;
    step(b, &(struct session_event){.kind = SESSION_LAUNCH, .slot = slot, .launch = &l});
    EXPECT_EQ(b->outcome.result, RESULT_PENDING);
}

static void refuses(struct bench *b, uint32_t peer, uint32_t seq)
{
    refusal_from(b, peer, &(struct msg_refuse){.name = {.space = SPACE_ORDERED, .seq = seq}, .origin = peer_id(peer),
                                               .cause = CAUSE_ARGUMENT, .culprit = self});
}

/* Peer `peer` has finished these numbers: its calls have returned. */
static void came_to(struct bench *b, uint32_t peer, uint32_t from, uint32_t to)
{
    for (uint32_t seq = from; seq < to; seq++) {
        unsigned char raw[128];
        struct writer w;
        writer_init(&w, raw, sizeof raw);
        put_finished(&w, &(struct msg_finished){.origin = peer_id(peer), .names = 1});
        put_op_name(&w, &(struct op_name){.space = SPACE_ORDERED, .seq = seq});
        from_peer(b, peer, FRAME_FINISHED, view_id(1), &w);
    }
}

/* Numbers from `from` on, all with a wrong argument; whoever is asked refuses them, too. */
static void refused(struct bench *b, uint32_t from, uint32_t to)
{
    for (uint32_t seq = from; seq < to; seq++) {
        call(b, 0, true, INT64_MAX);
        EXPECT(sent(b, FRAME_REFUSE));
        refuses(b, 1, seq);
        refuses(b, 2, seq);
        EXPECT(b->returned);
        EXPECT_EQ(collect(b, 0), RESULT_ARGUMENT);
    }
}

/* As far ahead of peer 2 as a member may be. */
static struct bench *bench_ahead(void)
{
    struct bench *b = bench_new();
    refused(b, 0, BOUNDS_BEHIND);
    came_to(b, 1, 0, BOUNDS_BEHIND);
    return b;
}

/* What the last step told the master of an operation; false: nothing. */
static bool asked(struct bench *b, struct msg_suspect *m)
{
    uint32_t at = 0;
    struct reader r;
    return sent_next(b, ACT_MASTER, FRAME_SUSPECT, &at, &r) != NULL && get_suspect(&r, m) && m->target == SUSPECT_OPERATION;
}

TEST(refused_numbers_that_all_have_come_to_count_no_more) /* every further call of the world hung after 64 of them */
{
    struct bench *b = bench_new();
    for (uint32_t seq = 0; seq < 4 * BOUNDS_BEHIND; seq += 50) {
        refused(b, seq, seq + 50);
        came_to(b, 1, seq, seq + 50);
        came_to(b, 2, seq, seq + 50);
    }
    call(b, 0, false, INT64_MAX);
    EXPECT(sent(b, FRAME_EAGER));
    bench_free(b);
}

TEST(a_success_says_that_all_have_come_to_what_was_refused_before_it)
{
    struct bench *b = bench_new();
    unsigned char raw[128];
    struct writer w;
    for (uint32_t seq = 0; seq < 3 * BOUNDS_BEHIND; seq += 100) {
        refused(b, seq, seq + 99);
        struct op_name name = {.space = SPACE_ORDERED, .seq = seq + 99};
        call(b, 0, false, INT64_MAX);
        EXPECT(sent(b, FRAME_EAGER));
        for (uint32_t peer = 1; peer < PEERS; peer++) {
            writer_init(&w, raw, sizeof raw);
            put_eager(&w, &(struct msg_eager){.name = name, .params = one_float, .bytes = 4});
            put_bytes(&w, &in, 4);
            from_peer(b, peer, FRAME_EAGER, view_id(1), &w);
            struct plan_view plan = {.lanes = 1, .frame_bytes = 4096, .eager_bytes = 1024};
            writer_init(&w, raw, sizeof raw);
            put_hold(&w, &(struct msg_hold){.name = name, .origin = peer_id(peer), .params = p2p_params_hash(&one_float, &plan)});
            from_peer(b, peer, FRAME_HOLD, view_id(1), &w);
        }
        EXPECT_EQ(collect(b, 0), RESULT_OK);
    }
    bench_free(b);
}

TEST(a_call_too_far_ahead_waits_by_name_and_goes_on_with_the_word_of_that_member)
{
    struct bench *b = bench_ahead();
    struct session_wait waits[4];
    call(b, 0, false, INT64_MAX);
    EXPECT(!sent(b, FRAME_EAGER) && !b->returned);
    EXPECT_EQ(session_waits(b->s, waits, 4), 1);
    EXPECT_EQ(waits[0].peer, peer_id(2));
    EXPECT_EQ(strcmp(waits[0].phase, "launch"), 0);
    EXPECT(waits[0].name.space == SPACE_ORDERED && waits[0].name.seq == 0);
    call(b, 1, false, INT64_MAX);
    EXPECT_EQ(session_waits(b->s, waits, 4), 2); /* each call is listed */

    uint32_t at = 0;
    struct reader r;
    struct msg_heartbeat m;
    b->now = session_deadline(b->s);
    step(b, &(struct session_event){.kind = SESSION_TICK});
    EXPECT(sent_next(b, ACT_MASTER, FRAME_HEARTBEAT, &at, &r) != NULL && get_heartbeat(&r, &m));
    EXPECT_EQ(m.wait.phase, WAIT_LAUNCH);
    EXPECT_EQ(m.wait.on, peer_id(2));

    came_to(b, 2, 0, 1);
    EXPECT(sent(b, FRAME_EAGER)); /* one number is one more */
    EXPECT_EQ(session_waits(b->s, waits, 4), 4); /* the first waits for the launch of both, and the second as before */
    came_to(b, 2, 1, 2);
    EXPECT(!sent(b, FRAME_EAGER)); /* what runs is no refusal; but the first has not been refused */
    bench_free(b);
}

TEST(a_waiting_call_ends_at_its_deadline_or_with_a_cancel_by_another_view) /* neither reached it: it had no number */
{
    for (uint32_t cancels = 0; cancels < 2; cancels++) {
        struct bench *b = bench_ahead();
        struct msg_suspect m;
        uint8_t why = cancels ? CAUSE_CANCEL : CAUSE_DEADLINE;
        call(b, 0, false, INT64_MAX);
        call(b, 1, false, cancels ? INT64_MAX : b->now + 500);
        call(b, 2, false, INT64_MAX);
        EXPECT(!asked(b, &m));
        EXPECT(cancels || session_deadline(b->s) <= b->now + 500);
        b->now += 500;
        step(b, &(struct session_event){.kind = cancels ? SESSION_CANCEL : SESSION_TICK, .slot = 1});
        EXPECT(asked(b, &m) && !b->returned);
        EXPECT_EQ(m.cause, why);
        step(b, &(struct session_event){.kind = SESSION_CANCEL, .slot = 2});
        EXPECT(!asked(b, &m)); /* the view ends anyway */

        freeze(b, 1);
        install(b, 2, false);
        EXPECT(sent(b, FRAME_EAGER) && sent(b, FRAME_REFUSE)); /* the first goes on, the others have their numbers, too */
        for (uint32_t peer = 1; peer < PEERS; peer++) {
            unsigned char raw[128];
            struct writer w;
            writer_init(&w, raw, sizeof raw);
            put_refuse(&w, &(struct msg_refuse){.name = {.space = SPACE_ORDERED, .seq = 1}, .origin = peer_id(peer), .cause = why,
                                                .culprit = self});
            from_peer(b, peer, FRAME_REFUSE, view_id(2), &w);
        }
        EXPECT_EQ(collect(b, 1), RESULT_LOST);
        EXPECT_EQ(b->outcome.cause, why);
        bench_free(b);
    }
}

TEST(the_master_is_asked_again_when_it_is_back_and_only_for_a_call_that_may_not_wait)
{
    struct bench *b = bench_ahead();
    struct msg_suspect m;
    call(b, 0, false, INT64_MAX);
    step(b, &(struct session_event){.kind = SESSION_MASTER_DOWN, .text = "gone"});
    step(b, &(struct session_event){.kind = SESSION_CANCEL, .slot = 0});
    EXPECT(!asked(b, &m));
    master_back(b);
    EXPECT(asked(b, &m));
    EXPECT_EQ(m.cause, CAUSE_CANCEL);

    step(b, &(struct session_event){.kind = SESSION_MASTER_DOWN, .text = "gone"}); /* for good: this peer leaves, which ends the call */
    b->now = session_deadline(b->s) + 30000000000;
    step(b, &(struct session_event){.kind = SESSION_TICK});
    EXPECT(b->returned);
    EXPECT_EQ(collect(b, 0), RESULT_GONE);
    bench_free(b);
}

TEST(the_answer_to_an_update_lets_calls_go_on)
{
    struct bench *b = bench_ahead();
    step(b, &(struct session_event){.kind = SESSION_VOTE, .vote = &(struct msg_vote){.kind = VOTE_UPDATE}});
    update_answered(b);
    came_to(b, 2, 0, 1); /* said before the answer, heard after it */
    call(b, 0, false, INT64_MAX);
    EXPECT(sent(b, FRAME_EAGER));
    bench_free(b);
}

TEST(names_of_other_tags_hold_no_call_up_for_ever) /* other members may never come to those */
{
    struct session_config c = bench_config();
    c.max_tags = 64;
    struct bench *b = bench_of(&c, false);
    float x = 1, y = 0;
    struct msg_suspect m;
    for (uint32_t n = 0; n < BOUNDS_OPS + BOUNDS_REFUSALS; n++) {
        struct op_name name = {.tag = 5 + n / BOUNDS_REFUSALS, .seq = n % BOUNDS_REFUSALS};
        launch(b, 0, name.tag, &x, &y);
        step(b, &(struct session_event){.kind = SESSION_CANCEL, .slot = 0});
        for (uint32_t peer = 1; peer < PEERS; peer++) {
            refusal_from(b, peer, &(struct msg_refuse){.name = name, .origin = peer_id(peer), .cause = CAUSE_CANCEL, .culprit = self});
        }
        EXPECT_EQ(collect(b, 0), RESULT_LOST);
        EXPECT(!asked(b, &m));
    }
    call(b, 0, false, INT64_MAX);
    EXPECT(!sent(b, FRAME_EAGER) && asked(b, &m));
    EXPECT_EQ(m.cause, CAUSE_NO_PROGRESS);
    freeze(b, 1);
    install(b, 2, false);
    EXPECT(sent(b, FRAME_EAGER));
    bench_free(b);
}

/* Members that this call still waits for. */
static uint32_t waited_for(const struct bench *b, uint32_t slot)
{
    struct session_wait waits[16];
    uint32_t count = session_waits(b->s, waits, 16), n = 0;
    for (uint32_t i = 0; i < count; i++) {
        n += waits[i].slot == slot;
    }
    return n;
}

/* A call of a tag passes those that wait in the order of issue; what comes next queues up behind the last of these. */
TEST(a_call_behind_one_that_has_passed_the_waiting_ones_is_not_lost)
{
    struct bench *b = bench_ahead();
    float x = 1, y = 0;
    call(b, 0, false, INT64_MAX);
    launch(b, 1, 5, &x, &y);
    EXPECT(sent(b, FRAME_EAGER));
    call(b, 2, false, INT64_MAX);
    EXPECT(!sent(b, FRAME_EAGER));
    EXPECT(waited_for(b, 0) == 1 && waited_for(b, 2) == 1); /* peer 2 */
    freeze(b, 1);
    install(b, 2, true);
    EXPECT(waited_for(b, 0) == 2 && waited_for(b, 2) == 2); /* both have their numbers, and nobody else has called */
    bench_free(b);
}

TEST(a_late_call_says_that_it_has_taken_the_refusal) /* or the others wait for it for ever */
{
    struct bench *b = bench_new();
    for (uint32_t seq = 0; seq < 2; seq++) {
        for (uint32_t peer = 1; peer < PEERS; peer++) {
            refusal_from(b, peer, &(struct msg_refuse){.name = {.space = SPACE_ORDERED, .seq = seq}, .origin = peer_id(peer),
                                                       .cause = CAUSE_CANCEL, .culprit = peer_id(1)});
        }
        call(b, 0, false, INT64_MAX);
        EXPECT(b->returned && !sent(b, FRAME_EAGER));
        EXPECT_EQ(collect(b, 0), RESULT_LOST);
        EXPECT_EQ(b->outcome.cause, CAUSE_CANCEL);
    }
    uint32_t at = 0;
    struct reader r;
    struct msg_finished m;
    b->now += 100000000;
    step(b, &(struct session_event){.kind = SESSION_TICK});
    EXPECT(sent_next(b, ACT_PEERS, FRAME_FINISHED, &at, &r) != NULL && get_finished(&r, &m));
    EXPECT_EQ(m.names, 2);
    bench_free(b);
}
