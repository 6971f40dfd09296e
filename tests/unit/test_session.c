/* test_session.c - rules of a session that are easier to show with one session and hand-made frames than in a cluster.
 * SPDX-License-Identifier: MIT */
#include "session_bench.h"

TEST(success_needs_the_hold_of_every_member) /* own completion taken for everybody's */
{
    struct bench *b = bench_new();
    float x = 1, y = 0;
    launch(b, 0, 5, &x, &y);
    EXPECT(sent(b, FRAME_EAGER));
    eager(b, 1, 1, 5, 10);
    eager(b, 2, 1, 5, 100);
    EXPECT(sent(b, FRAME_HOLD));
    EXPECT(y == 111);
    hold(b, 1, 1, 5);
    EXPECT(!b->returned);
    hold(b, 2, 1, 5);
    EXPECT(b->returned);
    EXPECT_EQ(collect(b, 0), RESULT_OK);
    bench_free(b);
}

TEST(hold_of_an_older_view_counts_for_nothing) /* a retry succeeds with the HOLD of the attempt that was aborted */
{
    struct bench *b = bench_new();
    float x = 1, y = 0;
    launch(b, 0, 5, &x, &y);
    freeze(b, 1);
    EXPECT(sent(b, FRAME_FROZEN));
    install(b, 2, true);
    EXPECT(b->returned);
    EXPECT_EQ(collect(b, 0), RESULT_LOST);
    launch(b, 0, 5, &x, &y);
    eager(b, 1, 2, 5, 10);
    eager(b, 2, 2, 5, 100);
    hold(b, 2, 2, 5);
    hold(b, 1, 1, 5); /* was on its way when the view ended */
    EXPECT(!b->returned);
    hold(b, 1, 2, 5);
    EXPECT(b->returned);
    EXPECT_EQ(collect(b, 0), RESULT_OK);
    bench_free(b);
}

TEST(nothing_is_held_or_counted_once_frozen) /* success beside an abort */
{
    struct bench *b = bench_new();
    float x = 1, y = 0;
    launch(b, 0, 5, &x, &y);
    eager(b, 1, 1, 5, 10);
    freeze(b, 1);
    eager(b, 2, 1, 5, 100);
    EXPECT(!sent(b, FRAME_HOLD));
    hold(b, 1, 1, 5);
    hold(b, 2, 1, 5);
    EXPECT(!b->returned);
    bench_free(b);
}

TEST(late_caller_takes_the_abort_of_its_number) /* its call would pair with the others' next one */
{
    struct bench *b = bench_new();
    float x = 1, y = 0;
    freeze(b, 1);
    install(b, 2, true);
    launch(b, 0, 5, &x, &y);
    EXPECT(!sent(b, FRAME_EAGER));
    EXPECT(b->returned);
    EXPECT_EQ(collect(b, 0), RESULT_LOST);
    launch(b, 0, 5, &x, &y);
    EXPECT(sent(b, FRAME_EAGER));
    bench_free(b);
}

/* P11: what the call of an aborted number tells is what the others were told, whatever has been installed since. */
TEST(late_caller_reads_the_sizes_of_the_decision) /* it reads other sizes than they after the same call: one reduces, one updates */
{
    struct bench *b = bench_new();
    struct session_info info;
    float x = 1, y = 0;
    freeze(b, 1);
    b->largest = 7;
    install(b, 2, true);
    freeze(b, 2);
    b->largest = 9;
    install(b, 3, false);
    session_info(b->s, &info);
    EXPECT_EQ(info.snapshot.largest, PEERS);
    launch(b, 0, 5, &x, &y);
    EXPECT_EQ(collect(b, 0), RESULT_LOST);
    session_info(b->s, &info);
    EXPECT_EQ(info.snapshot.largest, 7);
    bench_free(b);
}

/* What the last FROZEN says of operation (tag 5, number 0); 0 if nothing. */
static uint8_t reported(const struct bench *b)
{
    struct reader r;
    struct msg_frozen f;
    struct op_report o;
    for (uint32_t at = 0; sent_next(b, ACT_MASTER, FRAME_FROZEN, &at, &r) != NULL;) {
        if (get_frozen(&r, &f) && f.reports == 1 && get_op_report(&r, &o) && o.name.tag == 5 && o.name.seq == 0) {
            return o.state;
        }
    }
    return 0;
}

static void refuse_after(struct bench *b, uint32_t peer, uint8_t cause, uint32_t settled)
{
    refusal_from(b, peer, &(struct msg_refuse){.name = {.tag = 5}, .origin = peer_id(peer), .cause = cause, .settled = settled});
}

static void refuse(struct bench *b, uint32_t peer, uint8_t cause)
{
    refuse_after(b, peer, cause, 0);
}

/* The slow waits for an update, the fast give an operation up and then come to the update, too. */
TEST(update_skips_what_was_refused_before_it_and_nothing_of_after_it) /* an old error for a new call, which the others wait for */
{
    for (uint32_t settled = 0; settled < 2; settled++) {
        struct bench *b = bench_new();
        struct msg_vote vote = {.kind = VOTE_UPDATE};
        float x = 1, y = 0;
        step(b, &(struct session_event){.kind = SESSION_VOTE, .vote = &vote});
        EXPECT_EQ(b->outcome.result, RESULT_PENDING);
        refuse_after(b, 1, CAUSE_CANCEL, settled);
        refuse_after(b, 2, CAUSE_CANCEL, settled);
        update_answered(b);
        launch(b, 0, 5, &x, &y);
        EXPECT_EQ(b->returned, settled == 1);
        if (settled == 1) { /* the others had the answer first, and refused their next operation: this one */
            EXPECT_EQ(collect(b, 0), RESULT_LOST);
        }
        bench_free(b);
    }
}

TEST(refused_number_that_no_view_decides_is_owed_to_its_call) /* a table was full: others return an error that this one never gets */
{
    struct bench *b = bench_new();
    float x = 1, y = 0;
    refuse(b, 1, CAUSE_CANCEL);
    refuse(b, 2, CAUSE_CANCEL);
    freeze(b, 1);
    EXPECT_EQ(reported(b), OP_REFUSED);
    install(b, 2, false);
    launch(b, 0, 5, &x, &y);
    EXPECT(b->returned && collect(b, 0) == RESULT_LOST);
    EXPECT_EQ(b->outcome.cause, CAUSE_CANCEL);
    launch(b, 0, 5, &x, &y);
    EXPECT(sent(b, FRAME_EAGER));
    bench_free(b);

    b = bench_new(); /* decided, it is owed once */
    refuse(b, 1, CAUSE_CANCEL);
    freeze(b, 1);
    install(b, 2, true);
    launch(b, 0, 5, &x, &y);
    EXPECT(b->returned && collect(b, 0) == RESULT_LOST);
    EXPECT_EQ(b->outcome.cause, CAUSE_LINK_LOST);
    launch(b, 0, 5, &x, &y);
    EXPECT(!b->returned);
    bench_free(b);
}

TEST(nothing_is_refused_or_counted_once_frozen) /* the report says running: others abort beside this error, or succeed */
{
    struct bench *b = bench_new();
    float x = 1, y = 0;
    launch(b, 0, 5, &x, &y);
    freeze(b, 1);
    EXPECT_EQ(reported(b), OP_RUNNING);
    step(b, &(struct session_event){.kind = SESSION_CANCEL, .slot = 0});
    EXPECT(!sent(b, FRAME_REFUSE));
    refuse(b, 1, CAUSE_CANCEL);
    refuse(b, 2, CAUSE_CANCEL);
    EXPECT(!sent(b, FRAME_REFUSE));
    EXPECT(!b->returned);
    install(b, 2, true);
    EXPECT_EQ(collect(b, 0), RESULT_LOST);
    bench_free(b);
}

TEST(refused_overrides_held_in_the_report) /* others returned the refusal, the decision would say something else */
{
    struct bench *b = bench_new();
    float x = 1, y = 0;
    launch(b, 0, 5, &x, &y);
    eager(b, 1, 1, 5, 10);
    eager(b, 2, 1, 5, 100);
    EXPECT(sent(b, FRAME_HOLD));
    refuse(b, 2, CAUSE_DEADLINE);
    EXPECT(sent(b, FRAME_REFUSE)); /* answered although held */
    freeze(b, 1);
    EXPECT_EQ(reported(b), OP_REFUSED);
    bench_free(b);
}

TEST(call_returns_the_gravest_cause_once_all_name_it) /* two peers return different causes */
{
    struct bench *b = bench_new();
    float x = 1, y = 0;
    launch(b, 0, 5, &x, &y);
    refuse(b, 1, CAUSE_DEADLINE);
    refuse(b, 2, CAUSE_MISMATCH);
    EXPECT(sent(b, FRAME_REFUSE)); /* raised */
    EXPECT(!b->returned);
    refuse(b, 1, CAUSE_MISMATCH);
    EXPECT(b->returned);
    EXPECT_EQ(collect(b, 0), RESULT_MISMATCH);
    bench_free(b);
}

static const struct op_params two_floats = {.count = 2, .dtype = DTYPE_F32, .op = REDOP_MAX};
static const char both_calls[] = "this peer has all-reduce of 1 f32, sum; rank 2 (peer 1.3) has all-reduce of 2 f32, max";

/* Peer 1 and 2 disagree, as each of them says. */
static void refuse_clash(struct bench *b, uint32_t peer, bool first_as_ours)
{
    unsigned char raw[128];
    struct writer w;
    writer_init(&w, raw, sizeof raw);
    put_refuse(&w, &(struct msg_refuse){
                       .name = {.tag = 5}, .origin = peer_id(peer), .cause = CAUSE_MISMATCH, .culprit = peer_id(2),
                       .clash = {.id = {peer_id(1), peer_id(2)}, .params = {first_as_ours ? one_float : two_floats,
                                                                            first_as_ours ? two_floats : one_float}}});
    from_peer(b, peer, FRAME_REFUSE, view_id(1), &w);
}

TEST(third_that_hears_of_a_mismatch_reads_who_differs_from_itself) /* in a ring it has heard neither of them launch */
{
    for (int ours = 0; ours < 2; ours++) {
        struct bench *b = bench_new();
        float x = 1, y = 0;
        launch(b, 0, 5, &x, &y);
        refuse_clash(b, 1, ours);
        EXPECT(sent(b, FRAME_REFUSE));
        refuse_clash(b, 2, ours);
        EXPECT(b->returned);
        EXPECT_EQ(collect(b, 0), RESULT_MISMATCH);
        EXPECT_EQ(b->outcome.culprit, peer_id(2)); /* alike on all */
        EXPECT_EQ(b->outcome.differs, peer_id(ours ? 2 : 1));
        EXPECT_STR(b->outcome.text, ours ? both_calls : "this peer has all-reduce of 1 f32, sum; rank 1 (peer 1.2) has all-reduce of 2 f32, max");
        bench_free(b);
    }
}

/* The next view decides operation (tag 5, number 0) as a mismatch of the other two. */
static void decide_clash(struct bench *b)
{
    struct op_decision d = {.name.tag = 5, .outcome = OUTCOME_ABORT, .cause = CAUSE_MISMATCH, .culprit = peer_id(2)};
    struct op_clash clash = {.id = {peer_id(1), peer_id(2)}, .params = {one_float, two_floats}};
    decided(b, 2, CAUSE_PEER_LOST, &d, &clash);
}

TEST(mismatch_that_the_master_finds_is_told_with_both_calls) /* its text was about the death that ended the view */
{
    for (int launched = 0; launched < 2; launched++) { /* decided while it runs, or owed to a call that comes later */
        struct bench *b = bench_new();
        float x = 1, y = 0;
        if (launched) {
            launch(b, 0, 5, &x, &y);
        }
        freeze(b, 1);
        decide_clash(b);
        if (!launched) {
            launch(b, 0, 5, &x, &y);
        }
        EXPECT(b->returned);
        EXPECT_EQ(collect(b, 0), RESULT_MISMATCH);
        EXPECT_EQ(b->outcome.culprit, peer_id(2));
        EXPECT_EQ(b->outcome.differs, peer_id(2));
        EXPECT_STR(b->outcome.text, both_calls);
        bench_free(b);
    }
}

TEST(calls_that_differ_in_kind_are_told_with_both_kinds) /* "this peer has 1 f32, sum": of what? */
{
    struct bench *b = bench_new();
    float x = 1, y = 0;
    launch(b, 0, 5, &x, &y);
    freeze(b, 1);
    struct op_decision d = {.name.tag = 5, .outcome = OUTCOME_ABORT, .cause = CAUSE_MISMATCH, .culprit = peer_id(2)};
    struct op_clash clash = {.id = {peer_id(1), peer_id(2)},
                             .params = {one_float, {.kind = PLAN_BROADCAST, .count = 2, .dtype = DTYPE_F32, .root = self}}};
    decided(b, 2, CAUSE_PEER_LOST, &d, &clash);
    EXPECT_EQ(collect(b, 0), RESULT_MISMATCH);
    EXPECT_STR(b->outcome.text, "this peer has all-reduce of 1 f32, sum; rank 2 (peer 1.3) has broadcast of 2 f32, root 1.1");
    bench_free(b);
}

TEST(culprit_that_is_still_a_member_is_named_with_its_rank) /* "deadline passed, peer 1.3": which rank is that? */
{
    struct bench *b = bench_new();
    float x = 1, y = 0;
    launch(b, 0, 5, &x, &y);
    for (uint32_t i = 1; i < PEERS; i++) {
        refusal_from(b, i, &(struct msg_refuse){.name = {.tag = 5}, .origin = peer_id(i), .cause = CAUSE_DEADLINE, .culprit = peer_id(2)});
    }
    EXPECT_EQ(collect(b, 0), RESULT_LOST);
    EXPECT(b->outcome.culprit == peer_id(2) && b->outcome.named.id == peer_id(2) && b->outcome.named.ranked == 1 + 2);
    EXPECT_EQ(b->outcome.named.address.family, 0); /* none was given */
    bench_free(b);
}

TEST(different_digests_are_no_success_but_an_internal_error) /* peers train on with different bits */
{
    struct bench *b = bench_new();
    struct plan_view plan = {.lanes = 1, .frame_bytes = 4096, .eager_bytes = 1024};
    float x = 1, y = 0;
    launch(b, 0, 5, &x, &y);
    eager(b, 1, 1, 5, 10);
    eager(b, 2, 1, 5, 100);
    hold(b, 1, 1, 5);
    unsigned char raw[1024];
    struct writer w;
    writer_init(&w, raw, sizeof raw);
    put_hold(&w, &(struct msg_hold){.name = {.tag = 5}, .origin = peer_id(2), .digest = 666,
                                    .params = p2p_params_hash(&one_float, &plan)});
    from_peer(b, 2, FRAME_HOLD, view_id(1), &w);
    EXPECT(!b->returned);
    EXPECT(sent(b, FRAME_SUSPECT));
    freeze(b, 1);
    struct op_decision d = {.name.tag = 5, .outcome = OUTCOME_ABORT, .cause = CAUSE_DIGEST};
    decided(b, 2, CAUSE_DIGEST, &d, NULL);
    EXPECT(b->returned);
    EXPECT_EQ(collect(b, 0), RESULT_DIGEST);
    bench_free(b);
}

TEST(view_that_contradicts_what_was_done_is_left_with_a_word) /* a liar's report, believed by the master: no assertion of ours */
{
    enum { RUNNING, NOT_LAUNCHED, FINISHED, UNDECIDED, CASES };
    for (int of = 0; of < CASES; of++) {
        struct bench *b = bench_new();
        float x = 1, y = 0;
        if (of != NOT_LAUNCHED) {
            launch(b, 0, 5, &x, &y);
        }
        for (uint32_t i = 1; of == FINISHED && i < PEERS; i++) {
            eager(b, i, 1, 5, 10);
            hold(b, i, 1, 5);
        }
        EXPECT_EQ(b->returned, of == FINISHED);
        freeze(b, 1);
        struct op_decision d = {.name.tag = 5, .outcome = of == FINISHED ? OUTCOME_ABORT : OUTCOME_COMMIT};
        decided(b, 2, CAUSE_PEER_LOST, of == UNDECIDED ? NULL : &d, NULL);
        EXPECT(!session_poisoned(b->s));
        EXPECT(sent(b, FRAME_LEAVE));
        if (of == RUNNING || of == UNDECIDED) {
            EXPECT(b->returned);
            EXPECT_EQ(collect(b, 0), RESULT_GONE);
            EXPECT_STR(b->outcome.text, "the master's view contradicts what was done here: some member reported what is not so");
        }
        bench_free(b);
    }
}

/* The cause that the last step told the master about the link with this peer; CAUSE_NONE: nothing. */
static uint8_t suspected(const struct bench *b, uint32_t peer)
{
    struct reader r;
    struct msg_suspect m;
    for (uint32_t at = 0; sent_next(b, ACT_MASTER, FRAME_SUSPECT, &at, &r) != NULL;) {
        if (get_suspect(&r, &m) && m.target == SUSPECT_LINK && m.peer == peer_id(peer)) {
            return m.cause;
        }
    }
    return CAUSE_NONE;
}

/* One heartbeat's time later, all others having been heard of. */
static uint8_t suspected_later(struct bench *b, uint32_t peer)
{
    ping(b, 3 - peer, view_id(2));
    b->now += 1000000000;
    step(b, &(struct session_event){.kind = SESSION_TICK});
    return suspected(b, peer);
}

TEST(link_that_cannot_be_made_is_told_of_before_its_silence_stalls_a_third) /* the third blames this one instead */
{
    struct bench *b = bench_new();
    step(b, &(struct session_event){.kind = SESSION_LINK_DOWN, .peer = peer_id(1)});
    EXPECT_EQ(suspected(b, 1), CAUSE_LINK_LOST);
    freeze(b, 1);
    install(b, 2, false);
    int beats = 1;
    uint8_t cause;
    while ((cause = suspected_later(b, 1)) == CAUSE_NONE && beats < 20) {
        beats++;
    }
    EXPECT(beats > 4 && beats <= 6); /* half of the 10 s after which an operation counts as stalled */
    EXPECT_EQ(cause, CAUSE_KICK_UNREACHABLE);
    EXPECT_EQ(suspected_later(b, 1), CAUSE_NONE); /* said once */
    bench_free(b);
}

/* Whether the last step passed on to `to` what `origin` held. */
static bool passed_on(const struct bench *b, uint32_t origin, uint32_t to)
{
    struct reader r;
    struct msg_hold m;
    uint32_t at = 0;
    for (const struct action *a; (a = sent_next(b, ACT_PEERS, FRAME_HOLD, &at, &r)) != NULL;) {
        if (a->dests == 1 && get_hold(&r, &m) && m.origin == peer_id(origin) && b->out.dest_ids[a->dest] == peer_id(to)) {
            return true;
        }
    }
    return false;
}

TEST(relay_says_a_hold_again_to_whom_it_could_not_reach) /* nobody else ever does: the operation hangs at that member */
{
    for (uint32_t mesh = 1; mesh <= 32; mesh += 31) { /* disseminated, and to all directly */
        struct bench *b = bench_with(mesh, true);
        step(b, &(struct session_event){.kind = SESSION_LINK_DOWN, .peer = peer_id(2)});
        hold(b, 1, 1, 5); /* its first round, which is for the other */
        EXPECT(!passed_on(b, 1, 2));
        step(b, &(struct session_event){.kind = SESSION_LINK_UP, .peer = peer_id(2)});
        ping(b, 2, view_id(1));
        EXPECT(passed_on(b, 1, 2));
        bench_free(b);
    }
}

static void answer(struct bench *b, bool alone)
{
    unsigned char raw[512];
    struct writer w;
    writer_init(&w, raw, sizeof raw);
    put_answer(&w, &(struct msg_answer){.kind = VOTE_UPDATE, .result = ANSWER_OK, .alone = alone, .view = view_id(1),
                                        .sizes = {9, 9, 1, 9}});
    b->voted = false;
    from_master(b, FRAME_ANSWER, view_id(1), &w);
    EXPECT(b->voted);
    step(b, &(struct session_event){.kind = SESSION_COLLECT_VOTE});
    EXPECT_EQ(b->outcome.result, RESULT_OK);
}

/* What the last step said in VOTE: 1 first, 2 and others go on; 0: nothing, or neither. */
static int voted_first(const struct bench *b)
{
    struct reader r;
    struct msg_vote m;
    uint32_t at = 0;
    return sent_next(b, ACT_MASTER, FRAME_VOTE, &at, &r) != NULL && get_vote(&r, &m) ? m.first + m.passed : 0;
}

TEST(first_update_says_so_and_tells_at_once_when_others_launch) /* the master cannot know, and nobody else would say it */
{
    struct msg_vote update = {.kind = VOTE_UPDATE}, query = {.kind = VOTE_QUERY};
    for (int before = 0; before < 2; before++) { /* they launch while it waits, or already before it calls */
        struct bench *b = bench_new();
        if (before) {
            eager(b, 1, 1, 5, 10);
            EXPECT_EQ(voted_first(b), 0);
        }
        step(b, &(struct session_event){.kind = SESSION_VOTE, .vote = &update});
        EXPECT_EQ(voted_first(b), before ? 2 : 1);
        eager(b, 2, 1, 5, 10);
        EXPECT_EQ(voted_first(b), before ? 0 : 2); /* once */
        answer(b, true);
        step(b, &(struct session_event){.kind = SESSION_VOTE, .vote = &update});
        EXPECT_EQ(voted_first(b), 0); /* no longer the first */
        bench_free(b);
    }
    struct bench *b = bench_new();
    float x = 1, y = 0;
    launch(b, 0, 5, &x, &y); /* it has done something */
    eager(b, 1, 1, 5, 10);
    eager(b, 2, 1, 5, 10);
    hold(b, 1, 1, 5);
    hold(b, 2, 1, 5);
    EXPECT_EQ(collect(b, 0), RESULT_OK);
    step(b, &(struct session_event){.kind = SESSION_VOTE, .vote = &update});
    EXPECT_EQ(voted_first(b), 0);
    bench_free(b);
    b = bench_new();
    step(b, &(struct session_event){.kind = SESSION_VOTE, .vote = &query});
    eager(b, 1, 1, 5, 10);
    EXPECT_EQ(voted_first(b), 0);
    bench_free(b);
}

TEST(answer_given_alone_clears_nothing_skips_nothing_and_changes_no_size) /* the others have had no answer */
{
    for (int alone = 0; alone < 2; alone++) {
        struct bench *b = bench_new();
        struct msg_vote vote = {.kind = VOTE_UPDATE};
        struct session_info info;
        float x = 1, y = 0;
        step(b, &(struct session_event){.kind = SESSION_VOTE, .vote = &vote});
        refuse(b, 1, CAUSE_CANCEL);
        refuse(b, 2, CAUSE_CANCEL);
        answer(b, alone);
        session_info(b->s, &info);
        EXPECT_EQ(info.snapshot.global, alone ? 3 : 9);
        launch(b, 0, 5, &x, &y);
        EXPECT_EQ(b->returned, alone); /* the refused one is its next */
        bench_free(b);
    }
    struct bench *b = bench_new();
    struct msg_vote vote = {.kind = VOTE_UPDATE};
    float x = 1, y = 0;
    step(b, &(struct session_event){.kind = SESSION_VOTE, .vote = &vote});
    freeze(b, 1);
    install(b, 2, true); /* owes an abort */
    answer(b, true);
    launch(b, 0, 5, &x, &y);
    EXPECT(b->returned);
    EXPECT_EQ(collect(b, 0), RESULT_LOST);
    bench_free(b);
}

/* What a launch and a vote are told now. */
static void expect_in_the_way(struct bench *b, const char *text)
{
    float x = 1, y = 0;
    struct session_launch l = {.call = {.tag = 5, .params = one_float, .in = &x, .out = &y, .deadline = INT64_MAX}};
    struct msg_vote vote = {.kind = VOTE_UPDATE};
    step(b, &(struct session_event){.kind = SESSION_LAUNCH, .slot = 0, .launch = &l});
    EXPECT_EQ(b->outcome.result, RESULT_USAGE);
    EXPECT_STR(b->outcome.text, text);
    step(b, &(struct session_event){.kind = SESSION_VOTE, .vote = &vote});
    EXPECT_EQ(b->outcome.result, RESULT_USAGE);
    EXPECT_STR(b->outcome.text, text);
}

TEST(call_that_may_not_be_made_now_names_the_call_in_the_way) /* "not now" alone sends people looking */
{
    static const struct {
        enum vote_kind kind;
        const char *call;
    } votes[] = {{VOTE_UPDATE, "pcclUpdateTopology is under way in another thread"},
                 {VOTE_OPTIMISE, "pcclOptimizeTopology is under way in another thread"},
                 {VOTE_SYNC, "pcclSynchronizeSharedState is under way in another thread"}};
    for (size_t i = 0; i < sizeof votes / sizeof votes[0]; i++) {
        struct bench *b = bench_new();
        struct msg_vote vote = {.kind = (uint8_t)votes[i].kind};
        step(b, &(struct session_event){.kind = SESSION_VOTE, .vote = &vote});
        EXPECT_EQ(b->outcome.result, RESULT_PENDING);
        expect_in_the_way(b, votes[i].call);
        bench_free(b);
    }
    struct bench *b = bench_new();
    struct msg_vote query = {.kind = VOTE_QUERY}, update = {.kind = VOTE_UPDATE};
    step(b, &(struct session_event){.kind = SESSION_VOTE, .vote = &query}); /* beside it operations may run, votes may not */
    step(b, &(struct session_event){.kind = SESSION_VOTE, .vote = &update});
    EXPECT_EQ(b->outcome.result, RESULT_USAGE);
    EXPECT_STR(b->outcome.text, "pcclArePeersPending is under way in another thread");
    bench_free(b);
    struct session_config config = bench_config();
    b = bench_idle(&config);
    expect_in_the_way(b, "not connected: pcclConnect comes first");
    step(b, &(struct session_event){.kind = SESSION_CONNECT});
    expect_in_the_way(b, "pcclConnect has not returned");
    bench_free(b);
}

TEST(who_revokes_says_so_and_its_own_calls_end_at_once) /* W14; the others' by the master's view */
{
    struct bench *b = bench_new();
    float x = 1, y = 0;
    launch(b, 0, 5, &x, &y);
    step(b, &(struct session_event){.kind = SESSION_REVOKE});
    EXPECT(b->returned);
    EXPECT(sent(b, FRAME_LEAVE));
    EXPECT_EQ(collect(b, 0), RESULT_GONE);
    EXPECT_EQ(b->outcome.cause, CAUSE_PEER_LEFT);
    EXPECT_STR(b->outcome.text, "the program revoked the world");
    step(b, &(struct session_event){.kind = SESSION_REVOKE}); /* repeatable */
    EXPECT(!session_poisoned(b->s));
    bench_free(b);
}
