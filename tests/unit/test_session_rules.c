/* test_session_rules.c - rules of a session whose breach the simulator meets seldom, or only as a number that is off.
 * SPDX-License-Identifier: MIT */
#include "session_bench.h"

static const struct op_params large = {.count = 1000, .dtype = DTYPE_F32, .op = REDOP_SUM, .algorithm = PLAN_DIRECT}; /* too many for EAGER */
static const struct plan_view bench_plan = {.lanes = 1, .frame_bytes = 4096, .eager_bytes = 1024};

static uint32_t actions(const struct bench *b, enum session_action kind)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < b->out.count; i++) {
        count += b->out.actions[i].kind == kind;
    }
    return count;
}

/* Peer `peer` says EAGER, HOLD or REFUSE of number `seq` of tag 5. */
static void says(struct bench *b, uint32_t peer, uint8_t type, uint32_t seq)
{
    unsigned char raw[128];
    struct writer w;
    struct op_name name = {.tag = 5, .seq = seq};
    float value = 1;
    writer_init(&w, raw, sizeof raw);
    if (type == FRAME_EAGER) {
        put_eager(&w, &(struct msg_eager){.name = name, .params = one_float, .bytes = 4});
        put_bytes(&w, &value, 4);
    } else if (type == FRAME_HOLD) {
        put_hold(&w, &(struct msg_hold){
                         .name = name, .origin = peer_id(peer), .params = p2p_params_hash(&one_float, &bench_plan)});
    } else {
        put_refuse(&w, &(struct msg_refuse){.name = name, .origin = peer_id(peer), .cause = CAUSE_CANCEL, .culprit = self});
    }
    from_peer(b, peer, type, view_id(1), &w);
}

static void both_say(struct bench *b, uint8_t type, uint32_t seq)
{
    says(b, 1, type, seq);
    says(b, 2, type, seq);
}

TEST(refusals_that_all_have_taken_count_no_more) /* a tag would end for good after so many in its whole life */
{
    struct bench *b = bench_new();
    float x = 1, y = 0;
    uint32_t seq = 0;
    for (int round = 0; round < 3; round++) {
        for (int i = 0; i < BOUNDS_REFUSALS / 2; i++, seq++) {
            launch(b, 0, 5, &x, &y);
            step(b, &(struct session_event){.kind = SESSION_CANCEL, .slot = 0});
            both_say(b, FRAME_REFUSE, seq);
            EXPECT_EQ(collect(b, 0), RESULT_LOST);
        }
        launch(b, 0, 5, &x, &y);
        both_say(b, FRAME_EAGER, seq);
        both_say(b, FRAME_HOLD, seq++);
        EXPECT_EQ(collect(b, 0), RESULT_OK); /* everybody has come as far as this number */
        EXPECT(y == 3);
    }
    bench_free(b);
}

static void launch_large(struct bench *b, uint32_t window)
{
    static float in[1000], out[1000];
    struct session_launch l = {.call = {.tag = 5, .params = large, .in = in, .out = out, .deadline = INT64_MAX}, .window = window};
    step(b, &(struct session_event){.kind = SESSION_LAUNCH, .slot = 0, .launch = &l});
    EXPECT_EQ(b->outcome.result, RESULT_PENDING);
}

static void ready_of(struct bench *b, uint32_t peer, struct op_params params)
{
    unsigned char raw[128];
    struct writer w;
    writer_init(&w, raw, sizeof raw);
    put_ready(&w, &(struct msg_ready){.name = {.tag = 5}, .params = params, .window = 3, .bundle = 7, .launch = 1});
    from_peer(b, peer, FRAME_READY, view_id(1), &w);
}

static void ready(struct bench *b, uint32_t peer)
{
    ready_of(b, peer, large);
}

TEST(lanes_are_told_of_a_grant_once) /* told twice, they would send into room that nobody keeps */
{
    struct bench *b = bench_new();
    step(b, &(struct session_event){.kind = SESSION_DATA_UP, .peer = peer_id(1), .number = 7});
    launch_large(b, 3);
    ready(b, 1);
    EXPECT_EQ(actions(b, ACT_OP_READY), 1);
    ready(b, 1); /* said again after a reconnect */
    EXPECT_EQ(actions(b, ACT_OP_READY), 0);
    bench_free(b);
}

TEST(a_holder_sends_nothing_to_a_member_with_another_call) /* its lanes would not know the frames, and would end the link */
{
    struct bench *b = bench_new();
    struct op_params other = large;
    other.count++;
    launch_large(b, 3);
    step(b, &(struct session_event){.kind = SESSION_DONE, .slot = 0}); /* as of a part of no elements */
    EXPECT(sent(b, FRAME_HOLD));
    ready_of(b, 1, other);
    ready(b, 2);
    EXPECT_EQ(actions(b, ACT_OP_READY), 0);
    step(b, &(struct session_event){.kind = SESSION_DATA_UP, .peer = peer_id(1), .number = 7});
    EXPECT_EQ(actions(b, ACT_OP_READY), 0);
    EXPECT(sent(b, FRAME_READY)); /* it hears why, and refuses */
    step(b, &(struct session_event){.kind = SESSION_DATA_UP, .peer = peer_id(2), .number = 7});
    EXPECT_EQ(actions(b, ACT_OP_READY), 1);
    bench_free(b);
}

/* What this member still sends is taken by nobody: an honest holder has all of it. */
TEST(a_call_that_all_hold_stops_its_lanes_with_its_view) /* one that lies that it holds kept the call for ever, also when it had left */
{
    struct bench *b = bench_new();
    launch_large(b, 3);
    step(b, &(struct session_event){.kind = SESSION_DONE, .slot = 0});
    for (uint32_t peer = 1; peer < PEERS; peer++) {
        unsigned char raw[128];
        struct writer w;
        writer_init(&w, raw, sizeof raw);
        put_hold(&w, &(struct msg_hold){.name = {.tag = 5}, .origin = peer_id(peer), .params = p2p_params_hash(&large, &bench_plan)});
        from_peer(b, peer, FRAME_HOLD, view_id(1), &w);
    }
    EXPECT(!b->returned);
    EXPECT_EQ(actions(b, ACT_OP_STOP), 0); /* others may still send to this one */
    decided(b, 2, CAUSE_NONE, NULL, NULL);
    EXPECT_EQ(actions(b, ACT_OP_STOP), 1);
    decided(b, 3, CAUSE_NONE, NULL, NULL);
    EXPECT_EQ(actions(b, ACT_OP_STOP), 0);
    step(b, &(struct session_event){.kind = SESSION_IDLE, .slot = 0});
    EXPECT(b->returned);
    step(b, &(struct session_event){.kind = SESSION_COLLECT, .slot = 0});
    EXPECT_EQ(b->outcome.result, RESULT_OK);
    bench_free(b);
}

TEST(deferred_call_starts_without_the_window_of_the_view_before) /* other members: room would be promised twice */
{
    struct bench *b = bench_new();
    freeze(b, 1);
    launch_large(b, 3);
    EXPECT_EQ(actions(b, ACT_OP_START), 0);
    uint32_t started = 0;
    unsigned char raw[2048];
    struct writer w;
    writer_init(&w, raw, sizeof raw);
    put_view(&w, &(struct msg_view){.view = view_id(2), .parent = view_id(1), .sizes = {PEERS, PEERS, 1, PEERS},
                                    .plan = bench_plan, .members = PEERS});
    for (uint32_t i = 0; i < PEERS; i++) {
        put_u32(&w, i);
    }
    from_master(b, FRAME_VIEW, view_id(2), &w);
    for (uint32_t i = 0; i < b->out.count; i++) {
        if (b->out.actions[i].kind == ACT_OP_START) {
            started++;
            EXPECT_EQ(b->out.actions[i].value, 0);
        }
    }
    EXPECT_EQ(started, 1);
    bench_free(b);
}

TEST(payload_that_found_no_room_is_asked_for_once) /* each further one would be sent for nothing */
{
    struct session_config c = bench_config();
    c.park_per_link = 0;
    struct bench *b = bench_of(&c, false);
    float x = 1, y = 0;
    says(b, 1, FRAME_EAGER, 0); /* before the launch, and nowhere to keep it */
    launch(b, 0, 5, &x, &y);
    EXPECT(sent(b, FRAME_WANT));
    says(b, 2, FRAME_EAGER, 0);
    EXPECT(!sent(b, FRAME_WANT)); /* the answer of the first is under way, the second has its turn after it */
    says(b, 1, FRAME_EAGER, 0);
    EXPECT(sent(b, FRAME_WANT));
    says(b, 2, FRAME_EAGER, 0);
    both_say(b, FRAME_HOLD, 0);
    EXPECT_EQ(collect(b, 0), RESULT_OK);
    EXPECT(y == 3);
    bench_free(b);
}

TEST(operation_that_is_complete_here_waits_for_the_launch_of_those_who_have_not) /* else a vote against it hangs */
{
    struct bench *b = bench_new();
    struct session_wait waits[4];
    launch_large(b, 3);
    step(b, &(struct session_event){.kind = SESSION_DONE, .slot = 0}); /* no elements: nothing was needed of the others */
    EXPECT(sent(b, FRAME_HOLD));
    EXPECT_EQ(session_waits(b->s, waits, 4), 2);
    EXPECT_STR(waits[0].phase, "launch");
    EXPECT(waits[0].peer == peer_id(1) && waits[1].peer == peer_id(2));
    bench_free(b);
}

/* `large` is held by that peer. */
static void holds_large(struct bench *b, uint32_t peer)
{
    unsigned char raw[128];
    struct writer w;
    writer_init(&w, raw, sizeof raw);
    put_hold(&w, &(struct msg_hold){.name = {.tag = 5}, .origin = peer_id(peer), .params = p2p_params_hash(&large, &bench_plan)});
    from_peer(b, peer, FRAME_HOLD, view_id(1), &w);
}

TEST(a_peer_that_leaves_does_not_wait_for_lanes_that_a_member_holds_up) /* it said that it holds, and takes no bytes */
{
    struct bench *b = bench_new();
    launch_large(b, 3);
    ready(b, 1);
    ready(b, 2);
    step(b, &(struct session_event){.kind = SESSION_DONE, .slot = 0});
    holds_large(b, 1);
    holds_large(b, 2);
    EXPECT(!b->returned);
    step(b, &(struct session_event){.kind = SESSION_LEAVE});
    bool stops = false;
    for (uint32_t i = 0; i < b->out.count; i++) {
        stops = stops || (b->out.actions[i].kind == ACT_OP_STOP && b->out.actions[i].slot == 0);
    }
    EXPECT(stops && !b->returned);
    step(b, &(struct session_event){.kind = SESSION_IDLE, .slot = 0});
    EXPECT(b->returned && collect(b, 0) == RESULT_OK);
    bench_free(b);
}

/* What the REFUSE of this step says of settled votes; -1: none was sent. */
static int64_t settled_said(const struct bench *b)
{
    struct reader r;
    struct msg_refuse m;
    uint32_t at = 0;
    return sent_next(b, ACT_PEERS, FRAME_REFUSE, &at, &r) != NULL && get_refuse(&r, &m) ? (int64_t)m.settled : -1;
}

TEST(settled_votes_are_counted_anew_in_each_view) /* a newcomer counts from 0: its refusals would be skipped by an answer before them */
{
    struct bench *b = bench_new();
    float x = 1, y = 0;
    step(b, &(struct session_event){.kind = SESSION_VOTE, .vote = &(struct msg_vote){.kind = VOTE_UPDATE}});
    update_answered(b);
    launch(b, 0, 5, &x, &y);
    step(b, &(struct session_event){.kind = SESSION_CANCEL, .slot = 0});
    EXPECT_EQ(settled_said(b), 1);
    freeze(b, 1);
    struct op_decision d = {.name.tag = 5, .outcome = OUTCOME_REFUSED, .cause = CAUSE_CANCEL, .culprit = self};
    decided(b, 2, CAUSE_PEER_LOST, &d, NULL);
    EXPECT_EQ(collect(b, 0), RESULT_LOST);
    for (uint32_t i = 1; i < PEERS; i++) {
        ping(b, i, view_id(2));
    }
    launch(b, 0, 5, &x, &y);
    step(b, &(struct session_event){.kind = SESSION_CANCEL, .slot = 0});
    EXPECT_EQ(settled_said(b), 0);
    bench_free(b);
}

/* ---- creating a world --------------------------------------------------------------------------------------------- */

static struct msg_claim claimed(struct bench *b, uint64_t of, uint32_t epoch)
{
    unsigned char raw[256];
    struct writer w;
    struct reader r;
    struct msg_claim c = {0};
    uint32_t at = 0;
    step(b, &(struct session_event){.kind = SESSION_MASTER_UP});
    writer_init(&w, raw, sizeof raw);
    put_welcome(&w, &(struct msg_welcome){.run = of, .epoch = epoch, .heartbeat_ms = 1000, .dead_ms = 10000});
    from_master(b, FRAME_WELCOME, 0, &w);
    EXPECT(sent_next(b, ACT_MASTER, FRAME_CLAIM, &at, &r) != NULL && get_claim(&r, &c));
    return c;
}

TEST(a_claim_that_is_said_again_names_the_epoch_in_which_it_was_said_first) /* W8: to a master that has begun anew it is a new call */
{
    struct session_config config = bench_config();
    config.claim = (struct claim){.size = 3, .rank = 1, .deadline_ms = 60000};
    snprintf(config.world, sizeof config.world, "w");
    struct bench *b = bench_idle(&config);
    step(b, &(struct session_event){.kind = SESSION_CONNECT});
    struct msg_claim first = claimed(b, run, 1);
    EXPECT(first.run == run && first.epoch == 1);
    step(b, &(struct session_event){.kind = SESSION_MASTER_DOWN, .text = "closed"});
    struct msg_claim again = claimed(b, run + 2, 2);
    EXPECT(again.run == run && again.epoch == 1 && again.reg.claim.attempt == first.reg.claim.attempt);
    bench_free(b);
}

/* What the last step told the master of links; CAUSE_NONE: nothing. */
static uint8_t link_told(const struct bench *b, uint64_t *peer)
{
    struct reader r;
    struct msg_suspect m;
    for (uint32_t at = 0; sent_next(b, ACT_MASTER, FRAME_SUSPECT, &at, &r) != NULL;) {
        if (get_suspect(&r, &m) && m.target == SUSPECT_LINK) {
            *peer = m.peer;
            return m.cause;
        }
    }
    return CAUSE_NONE;
}

TEST(data_connections_that_cannot_be_made_are_told_when_a_call_waits_for_them) /* it would wait for ever, or a small one would be lost */
{
    struct bench *b = bench_new();
    struct session_event failed = {.kind = SESSION_DATA_FAILED, .peer = peer_id(1)};
    float x = 1, y = 0;
    uint64_t peer = 0;
    launch(b, 1, 7, &x, &y); /* goes by the control link */
    step(b, &failed);
    EXPECT_EQ(link_told(b, &peer), CAUSE_NONE);
    launch_large(b, 3);
    step(b, &failed);
    EXPECT_EQ(link_told(b, &peer), CAUSE_KICK_UNREACHABLE);
    EXPECT_EQ(peer, peer_id(1));
    step(b, &failed);
    EXPECT_EQ(link_told(b, &peer), CAUSE_NONE); /* once */
    step(b, &(struct session_event){.kind = SESSION_DATA_UP, .peer = peer_id(2), .number = 7});
    failed.peer = peer_id(2);
    step(b, &failed); /* of an attempt before the one that came */
    EXPECT_EQ(link_told(b, &peer), CAUSE_NONE);
    bench_free(b);
}
