/* test_session_master.c - a session without its master: what goes on, what ends, and when.
 *
 * One idea: the clock goes from deadline to deadline of the session itself, so that a call that ends late, or never, shows.
 * SPDX-License-Identifier: MIT */
#include "session_bench.h"

enum { MASTER_LOSS_S = 10 };
static const int64_t second = 1000000000;

static void master_down(struct bench *b)
{
    step(b, &(struct session_event){.kind = SESSION_MASTER_DOWN, .text = "the connection to the master closed"});
}

/* Lets time pass in steps of the session's own deadlines, peers but `dead` showing life; false: nothing returned until then. */
static bool returns_within(struct bench *b, uint32_t dead, int64_t seconds)
{
    int64_t end = b->now + seconds * second;
    while (!b->returned && b->now < end) {
        for (uint32_t i = 1; i < PEERS; i++) {
            if (i != dead) {
                ping(b, i, view_id(1));
            }
        }
        int64_t due = session_deadline(b->s);
        b->now = due < end && due > b->now ? due - 1 : b->now + second / 10;
        step(b, &(struct session_event){.kind = SESSION_TICK});
    }
    return b->returned;
}

TEST(peer_lost_after_the_master_ends_a_running_call) /* it would stay in its call for ever */
{
    for (int holding = 0; holding < 2; holding++) { /* running here, or complete here */
        struct bench *b = bench_new();
        float x = 1, y = 0;
        launch(b, 0, 5, &x, &y);
        eager(b, 1, 1, 5, 10);
        if (holding) {
            eager(b, 2, 1, 5, 100);
            hold(b, 1, 1, 5); /* of the one that dies: that only the other is missing does not help */
        }
        master_down(b);
        EXPECT(!returns_within(b, 0, 60)); /* G7: nobody needs it yet */
        step(b, &(struct session_event){.kind = SESSION_LINK_DOWN, .peer = peer_id(1)});
        int64_t lost = b->now;
        EXPECT(returns_within(b, 1, 60));
        EXPECT(b->now - lost >= MASTER_LOSS_S * second && b->now - lost < MASTER_LOSS_S * second + second / 100);
        EXPECT_EQ(collect(b, 0), RESULT_GONE); /* never "retry" */
        bench_free(b);
    }
}

/* The second stands behind the first, and waits for somebody who lives. */
TEST(peer_lost_after_the_master_ends_receives_from_any_source) /* it may have been the sender, and nobody freezes */
{
    struct bench *b = bench_new();
    float x = 0, y = 0;
    struct session_info info;
    session_info(b->s, &info);
    struct session_launch l = {.call = {.space = SPACE_PAIR, .tag = 5, .known = info.known, .world = info.snapshot.group,
                                        .params = {.kind = PLAN_SEND, .count = 1, .dtype = DTYPE_F32}, .root_rank = SESSION_ANY,
                                        .receives = true, .out = &x, .deadline = INT64_MAX}};
    step(b, &(struct session_event){.kind = SESSION_LAUNCH, .slot = 0, .launch = &l});
    l.call.root_rank = 2;
    l.call.out = &y;
    step(b, &(struct session_event){.kind = SESSION_LAUNCH, .slot = 1, .launch = &l});
    EXPECT_EQ(b->outcome.result, RESULT_PENDING);
    b->returned = false;
    master_down(b);
    EXPECT(!returns_within(b, 0, 60)); /* G7: a message may still come */
    step(b, &(struct session_event){.kind = SESSION_LINK_DOWN, .peer = peer_id(1)});
    int64_t lost = b->now;
    EXPECT(returns_within(b, 1, 60));
    EXPECT(b->now - lost >= MASTER_LOSS_S * second);
    EXPECT_EQ(collect(b, 0), RESULT_GONE);
    EXPECT_EQ(collect(b, 1), RESULT_GONE);
    bench_free(b);
}

TEST(own_deadline_of_an_operation_does_not_need_a_lost_member) /* its REFUSE is never answered by all */
{
    struct bench *b = bench_new();
    float x = 1, y = 0;
    struct session_launch l = {.call = {.tag = 5, .params = one_float, .in = &x, .out = &y, .deadline = b->now + second}};
    step(b, &(struct session_event){.kind = SESSION_LAUNCH, .slot = 0, .launch = &l});
    master_down(b);
    step(b, &(struct session_event){.kind = SESSION_LINK_DOWN, .peer = peer_id(1)});
    EXPECT(returns_within(b, 1, MASTER_LOSS_S + 1));
    EXPECT_EQ(collect(b, 0), RESULT_GONE);
    bench_free(b);
}

TEST(silent_peer_ends_a_call_too_and_one_that_speaks_again_does_not) /* its process stands still, its connections stay */
{
    for (int back = 0; back < 2; back++) {
        struct bench *b = bench_new();
        float x = 1, y = 0;
        launch(b, 0, 5, &x, &y);
        step(b, &(struct session_event){.kind = SESSION_DATA_UP, .peer = peer_id(1), .number = 1});
        step(b, &(struct session_event){.kind = SESSION_DATA_UP, .peer = peer_id(2), .number = 1});
        master_down(b);
        EXPECT(!returns_within(b, 1, 12)); /* found silent after 10 s */
        EXPECT_EQ(returns_within(b, back ? 0 : 1, 60), !back);
        bench_free(b);
    }
}

TEST(link_that_was_made_again_serves_later_calls_without_the_master) /* every break would end the run while the master is away */
{
    struct bench *b = bench_new();
    float x = 1, y = 0;
    step(b, &(struct session_event){.kind = SESSION_DATA_UP, .peer = peer_id(1), .number = 1});
    master_down(b);
    step(b, &(struct session_event){.kind = SESSION_LINK_DOWN, .peer = peer_id(1)});
    EXPECT(!returns_within(b, 1, 30)); /* nothing runs: nobody needs it */
    step(b, &(struct session_event){.kind = SESSION_LINK_UP, .peer = peer_id(1)});
    ping(b, 1, view_id(1));
    launch(b, 0, 5, &x, &y);
    EXPECT(!returns_within(b, 0, 60)); /* a wait for programs has no limit */
    bench_free(b);
}

TEST(call_to_a_lost_member_gets_the_whole_time) /* it is made long after both losses */
{
    struct bench *b = bench_new();
    float x = 1, y = 0;
    master_down(b);
    step(b, &(struct session_event){.kind = SESSION_LINK_DOWN, .peer = peer_id(1)});
    EXPECT(!returns_within(b, 1, 30));
    launch(b, 0, 5, &x, &y);
    int64_t called = b->now;
    EXPECT(returns_within(b, 1, 60));
    EXPECT(b->now - called >= MASTER_LOSS_S * second);
    EXPECT_EQ(collect(b, 0), RESULT_GONE);
    bench_free(b);
}

TEST(link_that_cannot_be_made_again_was_lost_when_it_broke) /* else a call made in between waits for so much longer */
{
    struct bench *b = bench_new();
    float x = 1, y = 0;
    master_down(b);
    step(b, &(struct session_event){.kind = SESSION_LINK_DOWN, .peer = peer_id(1)});
    launch(b, 0, 5, &x, &y);
    int64_t called = b->now;
    EXPECT(!returns_within(b, 1, 5));
    step(b, &(struct session_event){.kind = SESSION_LINK_FAILED, .peer = peer_id(1)});
    EXPECT(returns_within(b, 1, 60));
    EXPECT(b->now - called >= MASTER_LOSS_S * second);
    EXPECT(b->now - called <= (MASTER_LOSS_S + 1) * second);
    EXPECT_EQ(collect(b, 0), RESULT_GONE);
    bench_free(b);
}

/* The cause that the last step told the master about an operation; CAUSE_NONE: nothing. */
static uint8_t complained(const struct bench *b)
{
    struct reader r;
    struct msg_suspect m;
    for (uint32_t at = 0; sent_next(b, ACT_MASTER, FRAME_SUSPECT, &at, &r) != NULL;) {
        if (get_suspect(&r, &m) && m.target == SUSPECT_OPERATION) {
            return m.cause;
        }
    }
    return CAUSE_NONE;
}

TEST(call_given_up_after_it_was_complete_here_is_told_to_a_master_that_comes_back) /* said once, to nobody */
{
    for (int back = 0; back < 2; back++) {
        struct bench *b = bench_new();
        float x = 1, y = 0;
        launch(b, 0, 5, &x, &y);
        eager(b, 1, 1, 5, 10);
        eager(b, 2, 1, 5, 100);
        EXPECT(sent(b, FRAME_HOLD));
        master_down(b);
        step(b, &(struct session_event){.kind = SESSION_CANCEL, .slot = 0});
        EXPECT(!b->returned);
        if (back) {
            master_back(b);
            EXPECT_EQ(complained(b), CAUSE_CANCEL);
        } else {
            EXPECT(returns_within(b, 0, MASTER_LOSS_S + 1));
            EXPECT_EQ(collect(b, 0), RESULT_GONE);
        }
        bench_free(b);
    }
}

/* What the master says of peer 1, for whom this one's operation waits. */
static void told(struct bench *b, const struct msg_heartbeat *m)
{
    unsigned char raw[256];
    struct writer w;
    writer_init(&w, raw, sizeof raw);
    put_heartbeat(&w, m);
    from_master(b, FRAME_HEARTBEAT, 0, &w);
}

static const char *wait_text(struct bench *b, uint32_t peer)
{
    static char text[256];
    struct session_wait waits[8];
    uint32_t count = session_waits(b->s, waits, 8);
    snprintf(text, sizeof text, "nothing");
    for (uint32_t i = 0; i < count && i < 8; i++) {
        if (waits[i].peer == peer_id(peer)) {
            session_wait_text(b->s, &waits[i], text, sizeof text);
            EXPECT(session_wait_of_program(&waits[i]));
        }
    }
    return text;
}

/* Whom else the same call waits for; four more of them, and one of another call, may be added. */
static const char *others_of(struct bench *b, uint32_t peer, uint32_t more)
{
    static char text[256];
    struct session_wait waits[16];
    uint32_t count = session_waits(b->s, waits, 8), own = 0;
    while (own < count && waits[own].peer != peer_id(peer)) {
        own++;
    }
    for (uint32_t i = 0; i < more; i++) {
        waits[count] = waits[own];
        waits[count].slot += i == 0;
        waits[count++].peer = peer_id(7 + i);
    }
    session_wait_others(b->s, &waits[own], waits, count, text, sizeof text);
    return text;
}

TEST(a_wait_names_three_others_and_counts_the_rest) /* a line that does not end, or the peers of another call */
{
    struct bench *b = bench_new();
    float x = 1, y = 0;
    launch(b, 0, 5, &x, &y);
    EXPECT_STR(others_of(b, 1, 0), ", and for peer 1.3");
    EXPECT_STR(others_of(b, 2, 1), ", and for peer 1.2");
    EXPECT_STR(others_of(b, 1, 5), ", and for peer 1.3, peer 1.9, peer 1.10 and 2 more");
    bench_free(b);
}

TEST(measuring_of_edges_is_no_wait_for_a_program) /* each optimise of far members wrote a warning */
{
    struct session_wait w = {.phase = "optimise"};
    EXPECT(!session_wait_of_program(&w));
    w.peer = peer_id(1);
    EXPECT(session_wait_of_program(&w));
    w = (struct session_wait){.phase = "update"};
    EXPECT(session_wait_of_program(&w));
}

TEST(a_wait_says_in_words_what_the_other_does_instead) /* nobody finds out which call was forgotten, and where */
{
    struct bench *b = bench_new();
    float x = 1, y = 0;
    launch(b, 0, 5, &x, &y);
    EXPECT_STR(wait_text(b, 1), "waits for peer 1.2 to launch tag 5");
    told(b, &(struct msg_heartbeat){.about = peer_id(1)});
    EXPECT_STR(wait_text(b, 1), "waits for peer 1.2 to launch tag 5; its program is in no call");
    told(b, &(struct msg_heartbeat){.about = peer_id(1), .vote = VOTE_UPDATE});
    EXPECT_STR(wait_text(b, 1), "waits for peer 1.2 to launch tag 5; it waits in an update");
    told(b, &(struct msg_heartbeat){.about = peer_id(1), .wait = {.name.tag = 6, .on = self, .phase = WAIT_LAUNCH}});
    EXPECT_STR(wait_text(b, 1), "waits for peer 1.2 to launch tag 5; it waits in turn for this peer to launch tag 6");
    told(b, &(struct msg_heartbeat){.about = peer_id(1), .vote = VOTE_SYNC,
                                    .wait = {.name.tag = 5, .on = peer_id(2), .phase = WAIT_LAUNCH}});
    EXPECT_STR(wait_text(b, 1), "waits for peer 1.2 to launch tag 5; it waits in turn for peer 1.3 to launch tag 5; that one waits "
                                "in a synchronisation");
    EXPECT_STR(wait_text(b, 2), "waits for peer 1.3 to launch tag 5"); /* of that one nothing was said */
    bench_free(b);
    b = bench_new();
    struct msg_vote vote = {.kind = VOTE_UPDATE};
    step(b, &(struct session_event){.kind = SESSION_VOTE, .vote = &vote});
    told(b, &(struct msg_heartbeat){.vote_on = peer_id(2), .about = peer_id(2),
                                    .wait = {.name.tag = 9, .on = self, .phase = WAIT_LAUNCH}});
    EXPECT_STR(wait_text(b, 2), "waits in an update for peer 1.3 to call it; it waits in turn for this peer to launch tag 9");
    bench_free(b);
}
