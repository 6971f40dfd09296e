/* test_session_faults.c - a member that breaks the protocol, or only makes much use of it: it costs nobody else anything.
 * SPDX-License-Identifier: MIT */
#include "tests/unit/session_bench.h"

#include "core/bounds.h"

enum { MOST = BOUNDS_OPS + BOUNDS_REFUSALS };
static const uint32_t tags = 20; /* that refusals are spread over */

static void ready(struct bench *b, uint32_t peer, uint64_t tag)
{
    unsigned char raw[128];
    struct writer w;
    writer_init(&w, raw, sizeof raw);
    put_ready(&w, &(struct msg_ready){.name = {.tag = tag}, .params = one_float, .window = 1, .launch = tag + 1});
    from_peer(b, peer, FRAME_READY, view_id(1), &w);
}

static uint64_t closed(const struct bench *b) /* whose link the last step closed */
{
    for (uint32_t i = 0; i < b->out.count; i++) {
        if (b->out.actions[i].kind == ACT_UNLINK) {
            return b->out.actions[i].id;
        }
    }
    return 0;
}

TEST(all_that_every_member_may_launch_finds_room) /* a table that honest neighbours filled made the hearer leave */
{
    struct bench *b = bench_new();
    for (uint64_t tag = 0; tag < MOST; tag++) {
        for (uint32_t peer = 1; peer < PEERS; peer++) {
            ready(b, peer, 1000 * MOST * peer + tag);
            EXPECT_EQ(closed(b), 0);
        }
    }
    struct session_info info;
    session_info(b->s, &info);
    EXPECT(info.connected && !session_poisoned(b->s));
    float x = 1, y = 0;
    launch(b, 0, 5, &x, &y); /* and what was there before is still found */
    eager(b, 1, 1, 5, 10);
    eager(b, 2, 1, 5, 100);
    hold(b, 1, 1, 5);
    hold(b, 2, 1, 5);
    EXPECT(b->returned && y == 111);
    bench_free(b);
}

TEST(one_name_more_than_a_member_may_open_costs_it_its_link) /* it fills our tables, or costs us our place */
{
    struct bench *b = bench_new();
    for (uint64_t tag = 0; tag < MOST; tag++) {
        ready(b, 1, 1000 + tag);
        ready(b, 1, 1000 + tag); /* said again: counts once */
    }
    EXPECT_EQ(closed(b), 0);
    ready(b, 1, 5000);
    EXPECT_EQ(closed(b), peer_id(1));
    ready(b, 2, 5000); /* the other one may */
    EXPECT_EQ(closed(b), 0);
    struct session_info info;
    session_info(b->s, &info);
    EXPECT(info.connected);
    bench_free(b);
}

TEST(what_is_launched_here_counts_no_longer) /* an honest sender would use its share up */
{
    struct bench *b = bench_new();
    float x = 1, y = 0;
    for (uint64_t tag = 0; tag < MOST; tag++) {
        ready(b, 1, 1000 + tag);
    }
    launch(b, 0, 1000, &x, &y);
    ready(b, 1, 5000);
    EXPECT_EQ(closed(b), 0);
    ready(b, 1, 5001);
    EXPECT_EQ(closed(b), peer_id(1));
    bench_free(b);
}

static void hold_of(struct bench *b, uint32_t peer, uint32_t origin, uint8_t round)
{
    unsigned char raw[128];
    struct writer w;
    writer_init(&w, raw, sizeof raw);
    put_hold(&w, &(struct msg_hold){.name = {.tag = 5}, .origin = peer_id(origin), .round = round});
    from_peer(b, peer, FRAME_HOLD, view_id(1), &w);
}

/* Among three there are two rounds where each passes on what it has heard, and one where each tells all.  33 was taken for round 1. */
TEST(hold_of_a_round_that_there_is_not_costs_its_sender_the_link)
{
    static const struct { uint32_t mesh; uint8_t round; } none[] = {{2, 2}, {2, 33}, {32, 1}, {32, 33}};
    for (size_t i = 0; i < sizeof none / sizeof *none; i++) {
        struct bench *b = bench_with(none[i].mesh, false);
        hold_of(b, 2, 2, none[i].round); /* which would be for this peer */
        EXPECT_EQ(closed(b), peer_id(2));
        bench_free(b);
    }
}

static void payload_of(struct bench *b, uint32_t peer, uint32_t count, uint32_t floats)
{
    static const float values[4] = {1, 2, 3, 4};
    unsigned char raw[256];
    struct writer w;
    struct op_params params = one_float;
    params.count = count;
    writer_init(&w, raw, sizeof raw);
    put_eager(&w, &(struct msg_eager){.name = {.tag = 5}, .params = params, .bytes = (uint32_t)(floats * sizeof *values)});
    put_bytes(&w, values, floats * sizeof *values);
    from_peer(b, peer, FRAME_EAGER, view_id(1), &w);
}

/* Its own parameters say how many bytes a sum has from it; other calls would be refused for what it alone has made up. */
TEST(payload_that_does_not_fit_the_parameters_beside_it_costs_its_sender_the_link)
{
    for (uint32_t floats = 1; floats <= 3; floats++) {
        struct bench *b = bench_new();
        payload_of(b, 1, 2, floats);
        EXPECT_EQ(closed(b), floats == 2 ? 0 : peer_id(1));
        bench_free(b);
    }
}

static void finished(struct bench *b, uint32_t peer, uint32_t origin)
{
    unsigned char raw[128];
    struct writer w;
    writer_init(&w, raw, sizeof raw);
    put_finished(&w, &(struct msg_finished){.origin = peer_id(origin), .names = 1});
    put_op_name(&w, &(struct op_name){.tag = 5});
    from_peer(b, peer, FRAME_FINISHED, view_id(1), &w);
}

TEST(round_that_is_for_another_costs_its_sender_the_link) /* swallowed in silence, whom it was for waits for ever */
{
    struct bench *b = bench_with(2, false);
    hold_of(b, 1, 1, 1);
    EXPECT_EQ(closed(b), 0); /* 2 behind us: ours */
    hold_of(b, 1, 1, 0);
    EXPECT_EQ(closed(b), peer_id(1));
    bench_free(b);
}

TEST(who_speaks_for_another_loses_its_link) /* one liar could say the HOLD of all */
{
    struct bench *b = bench_new();
    hold_of(b, 1, 2, 0);
    EXPECT_EQ(closed(b), peer_id(1));
    finished(b, 2, 1);
    EXPECT_EQ(closed(b), peer_id(2));
    bench_free(b);
}

TEST(what_is_not_held_here_nobody_has_finished) /* its record would go early: who reports it last is believed not to have launched */
{
    struct bench *b = bench_new();
    float x = 1, y = 0;
    launch(b, 0, 5, &x, &y);
    finished(b, 1, 1);
    EXPECT_EQ(closed(b), peer_id(1));
    EXPECT(!b->returned);
    b = (bench_free(b), bench_new());
    ready(b, 2, 5); /* not launched here */
    finished(b, 1, 1);
    EXPECT_EQ(closed(b), peer_id(1));
    bench_free(b);
}

TEST(finished_says_the_hold_that_did_not_come) /* sent for another call, or lost with its link: the call waits for ever */
{
    struct bench *b = bench_new();
    float x = 1, y = 0;
    launch(b, 0, 5, &x, &y);
    eager(b, 1, 1, 5, 10);
    eager(b, 2, 1, 5, 100);
    hold(b, 1, 1, 5);
    EXPECT(!b->returned);
    finished(b, 2, 2);
    EXPECT_EQ(closed(b), 0);
    EXPECT(b->returned);
    EXPECT_EQ(collect(b, 0), RESULT_OK);
    EXPECT_EQ(y, 111);
    bench_free(b);
}

static void refused(struct bench *b, uint32_t peer, uint32_t seq)
{
    unsigned char raw[128];
    struct writer w;
    writer_init(&w, raw, sizeof raw);
    put_refuse(&w, &(struct msg_refuse){
                       .name = {.tag = 5, .seq = seq}, .origin = peer_id(peer), .cause = CAUSE_CANCEL, .culprit = self});
    from_peer(b, peer, FRAME_REFUSE, view_id(1), &w);
}

/* Peer `peer` refuses number `n` of many: for itself, or in answer to another. */
static void refuses(struct bench *b, uint32_t peer, uint32_t n, uint32_t culprit)
{
    refusal_from(b, peer, &(struct msg_refuse){.name = {.tag = 10 + n % tags, .seq = n / tags}, .origin = peer_id(peer),
                                               .cause = CAUSE_CANCEL, .culprit = peer_id(culprit)});
}

TEST(answers_to_what_another_refused_cost_an_honest_member_nothing) /* a liar's refusals cost others their links */
{
    static const uint32_t refused[] = {BOUNDS_REFUSALS + 1, MOST, 2 * MOST};
    for (uint32_t i = 0; i < 2 * sizeof refused / sizeof *refused; i++) {
        struct bench *b = bench_new();
        bool first = i % 2 == 0; /* the answer is heard before what it answers */
        for (uint32_t n = 0; n < refused[i / 2]; n++) {
            refuses(b, first ? 1 : 2, n, 2);
            EXPECT_EQ(closed(b), 0);
            refuses(b, first ? 2 : 1, n, 2);
            EXPECT_EQ(closed(b), 0);
        }
        for (uint32_t n = 0; n < MOST; n++) {
            ready(b, 1, 1000 + n);
            EXPECT_EQ(closed(b), 0);
        }
        ready(b, 1, 5000);
        EXPECT_EQ(closed(b), peer_id(1));
        bench_free(b);
    }
}

TEST(what_was_refused_before_an_update_does_not_count_after_it) /* the others have the answer first, and call again */
{
    struct bench *b = bench_new();
    for (uint32_t n = 0; n < MOST; n++) {
        ready(b, 1, 1000 + n); /* of calls that it gives up */
    }
    for (uint32_t n = 0; n < MOST; n++) {
        refusal_from(b, 1, &(struct msg_refuse){.name = {.tag = 1000 + n}, .origin = peer_id(1), .cause = CAUSE_CANCEL,
                                                .culprit = peer_id(1)});
        EXPECT(sent(b, FRAME_REFUSE));
    }
    step(b, &(struct session_event){.kind = SESSION_VOTE, .vote = &(struct msg_vote){.kind = VOTE_UPDATE}});
    for (uint32_t n = 0; n < MOST; n++) {
        ready(b, 1, 5000 + n);
        EXPECT_EQ(closed(b), 0);
    }
    for (uint32_t n = 0; n < MOST; n++) {
        refusal_from(b, 1, &(struct msg_refuse){.name = {.tag = 5000 + n}, .origin = peer_id(1), .cause = CAUSE_CANCEL,
                                                .culprit = peer_id(1), .settled = 1});
        EXPECT_EQ(closed(b), 0);
    }
    bench_free(b);
}

TEST(one_refusal_more_than_a_member_may_open_costs_it_its_link) /* it fills our tables */
{
    struct bench *b = bench_new();
    for (uint32_t n = 0; n < 2 * MOST; n++) {
        refuses(b, 1, n, 1);
        refuses(b, 1, n, 1); /* said again: counts once */
        EXPECT_EQ(closed(b), 0);
    }
    refuses(b, 1, 2 * MOST, 1);
    EXPECT_EQ(closed(b), peer_id(1));
    refuses(b, 2, 2 * MOST, 2); /* the other one may */
    EXPECT(sent(b, FRAME_REFUSE) && closed(b) == 0);
    bench_free(b);
}

TEST(answers_beyond_what_is_kept_are_not_taken_and_said_again) /* a late call waits for ever, or tables grow without end */
{
    struct bench *b = bench_new();
    struct msg_refuse m = {.name = {.tag = 7}, .cause = CAUSE_CANCEL, .culprit = peer_id(2)};
    float x = 1, y = 0;
    for (uint32_t n = 0; n < MOST; n++) {
        refuses(b, 1, n, 2);
        EXPECT(sent(b, FRAME_REFUSE));
    }
    for (uint32_t said = 0; said < 2; said++) { /* before and after that of whom it answers */
        m.origin = peer_id(1);
        refusal_from(b, 1, &m);
        EXPECT(sent(b, FRAME_REFUSE) == (said == 1) && closed(b) == 0);
        m.origin = peer_id(2);
        refusal_from(b, 2, &m);
        EXPECT_EQ(sent(b, FRAME_REFUSE), said == 0);
    }
    launch(b, 0, 7, &x, &y);
    EXPECT(b->returned && collect(b, 0) == RESULT_LOST);
    bench_free(b);

    /* The other side: an answer to which that one has not replied is said again when it does. */
    b = bench_new();
    for (uint32_t n = 0; n <= MOST; n++) {
        refuses(b, 1, n, 1);
        refuses(b, 2, n, 1);
        EXPECT_EQ(sent(b, FRAME_REFUSE), n == MOST); /* more than peer 2 keeps if it has not heard peer 1 */
    }
    bench_free(b);
}

TEST(refusal_of_a_call_that_was_not_made_is_not_repeated) /* it would count as the own word of whom a liar names */
{
    struct bench *b = bench_new();
    refuses(b, 1, 0, 0);
    EXPECT(!sent(b, FRAME_REFUSE));
    refuses(b, 1, 0, 1);
    EXPECT(sent(b, FRAME_REFUSE));
    bench_free(b);
}

TEST(an_update_lets_a_tag_begin_anew_after_64_refusals) /* the tag was of no use for the rest of the view */
{
    struct bench *b = bench_new();
    float x = 1, y = 0;
    for (uint32_t i = 0; i <= BOUNDS_REFUSALS; i++) {
        launch(b, 0, 5, &x, &y);
        step(b, &(struct session_event){.kind = SESSION_CANCEL});
        refused(b, 1, i);
        refused(b, 2, i);
        EXPECT_EQ(collect(b, 0), i < BOUNDS_REFUSALS ? RESULT_LOST : RESULT_AHEAD); /* the last one took no number */
    }
    step(b, &(struct session_event){.kind = SESSION_VOTE, .vote = &(struct msg_vote){.kind = VOTE_UPDATE}});
    update_answered(b);
    launch(b, 0, 5, &x, &y);
    EXPECT(sent(b, FRAME_EAGER));
    bench_free(b);
}
