/* test_session.c - rules of a session that are easier to show with one session and hand-made frames than in a cluster.
 * SPDX-License-Identifier: MIT */
#include "tests/testing.h"

#include "core/mutant.h"
#include "kernels/kernels.h"
#include "session/session.h"

enum { PEERS = 3 };
static const uint64_t self = 1ull << 32 | 1, run = 77;

struct bench {
    void *arena, *memory[3]; /* owned */
    struct session *s;
    struct outbox out;
    int64_t now;
    struct session_outcome outcome; /* of the last event */
    bool returned;                  /* an OP_RETURN was seen */
    bool voted;
};

static uint64_t peer_id(uint32_t i)
{
    return self + i;
}

static uint64_t view_id(uint32_t number)
{
    return 1ull << 32 | number;
}

static void step(struct bench *b, struct session_event *e)
{
    outbox_reset(&b->out);
    session_step(b->s, ++b->now, e, &b->out);
    b->outcome = e->outcome;
    for (uint32_t i = 0; i < b->out.count; i++) {
        b->returned = b->returned || b->out.actions[i].kind == ACT_OP_RETURN;
        b->voted = b->voted || b->out.actions[i].kind == ACT_VOTED;
    }
}

/* Whether the last step sent a frame of this type, to whomever. */
static bool sent(const struct bench *b, uint8_t type)
{
    for (uint32_t i = 0; i < b->out.count; i++) {
        struct frame_header h;
        const struct action *a = &b->out.actions[i];
        bool frame = (a->kind == ACT_MASTER || a->kind == ACT_PEERS) && a->dests > 0;
        if (frame && frame_get(b->out.bytes + a->frame, &h) && h.type == type) {
            return true;
        }
    }
    return false;
}

static void from_master(struct bench *b, uint8_t type, uint64_t view, struct writer *w)
{
    struct frame_header h = {.type = type, .length = (uint32_t)w->used, .run = run, .view = view};
    EXPECT(!w->bad);
    step(b, &(struct session_event){.kind = SESSION_MASTER_FRAME, .header = &h, .payload = w->start});
}

static void from_peer(struct bench *b, uint32_t peer, uint8_t type, uint64_t view, struct writer *w)
{
    struct frame_header h = {.type = type, .length = (uint32_t)w->used, .run = run, .view = view};
    EXPECT(!w->bad);
    step(b, &(struct session_event){
                .kind = SESSION_PEER_FRAME, .peer = peer_id(peer), .header = &h, .payload = w->start});
}

static void ping(struct bench *b, uint32_t peer, uint64_t view)
{
    unsigned char nothing[1];
    struct writer w;
    writer_init(&w, nothing, 0);
    from_peer(b, peer, FRAME_PING, view, &w);
}

/* The next view with the same three members; `abort` decides operation (tag 5, number 0) of the one before. */
static void install(struct bench *b, uint32_t number, bool abort)
{
    unsigned char raw[2048];
    struct writer w;
    writer_init(&w, raw, sizeof raw);
    struct msg_view m = {.view = view_id(number), .parent = number == 1 ? 0 : view_id(number - 1),
                         .sizes = {PEERS, PEERS, 1, PEERS},
                         .plan = {.lanes = 1, .frame_bytes = 4096, .eager_bytes = 1024, .algorithm = PLAN_DIRECT},
                         .members = PEERS, .added = number == 1 ? PEERS : 0, .decisions = abort};
    put_view(&w, &m);
    for (uint32_t i = 0; i < m.added; i++) {
        put_member_info(&w, &(struct member_info){.id = peer_id(i), .lanes = 1});
    }
    for (uint32_t i = 0; i < PEERS; i++) {
        put_u32(&w, i);
    }
    if (abort) {
        put_op_decision(&w, &(struct op_decision){.tag = 5, .outcome = OUTCOME_ABORT, .cause = CAUSE_LINK_LOST});
    }
    from_master(b, FRAME_VIEW, m.view, &w);
    for (uint32_t i = 1; i < PEERS; i++) {
        ping(b, i, m.view);
    }
}

static void freeze(struct bench *b, uint32_t number)
{
    unsigned char raw[256];
    struct writer w;
    writer_init(&w, raw, sizeof raw);
    put_freeze(&w, &(struct msg_freeze){.view = view_id(number), .attempt = 1, .cause = CAUSE_LINK_LOST,
                                        .survivors = PEERS});
    for (uint32_t i = 0; i < PEERS; i++) {
        put_u64(&w, peer_id(i));
    }
    from_master(b, FRAME_FREEZE, view_id(number), &w);
}

static struct bench *bench_new(void)
{
#ifdef PCCL_MUTANTS
    const char *mutant = getenv("PCCL_MUTANT");
    mutant_active = mutant != NULL ? mutant_find(mutant) : MUTANT_NONE;
#endif
    struct bench *b = calloc(1, sizeof *b);
    struct session_config c = {.lanes = 1, .max_members = 8, .max_ops = 8, .max_live = 16, .max_records = 16,
                               .max_tags = 16, .max_owed = 16, .park_blocks = 4, .park_block_bytes = 1024,
                               .park_per_link = 2, .mesh_members = 32, .heartbeat_ns = 1000000000,
                               .stall_ns = 10000000000, .master_loss_ns = 10000000000, .connect_ns = 10000000000,
                               .link_ns = 5000000000, .kernels = kernels_level("scalar"), .seed = 1};
    uint32_t actions, bytes, dests;
    b->arena = aligned_alloc(64, (session_arena_bytes(&c) + 63) / 64 * 64);
    b->s = session_init(&c, b->arena);
    session_out_bounds(&c, &actions, &bytes, &dests);
    b->memory[0] = calloc(actions, sizeof(struct action));
    b->memory[1] = malloc(bytes);
    b->memory[2] = calloc(dests, sizeof(uint64_t));
    outbox_init(&b->out, b->memory[0], actions, b->memory[1], bytes, b->memory[2], dests);
    step(b, &(struct session_event){.kind = SESSION_CONNECT});
    step(b, &(struct session_event){.kind = SESSION_MASTER_UP});
    unsigned char raw[256];
    struct writer w;
    writer_init(&w, raw, sizeof raw);
    put_welcome(&w, &(struct msg_welcome){.run = run, .id = self, .epoch = 1, .heartbeat_ms = 1000, .dead_ms = 10000});
    from_master(b, FRAME_WELCOME, 0, &w);
    install(b, 1, false);
    for (uint32_t i = 1; i < PEERS; i++) {
        step(b, &(struct session_event){.kind = SESSION_LINK_UP, .peer = peer_id(i)});
        ping(b, i, view_id(1));
    }
    step(b, &(struct session_event){.kind = SESSION_COLLECT_CONNECT});
    EXPECT_EQ(b->outcome.result, RESULT_OK);
    return b;
}

static void bench_free(struct bench *b)
{
    for (int i = 0; i < 3; i++) {
        free(b->memory[i]);
    }
    free(b->arena);
    free(b);
}

static const struct op_params one_float = {.count = 1, .dtype = DTYPE_F32, .op = REDOP_SUM};

static void launch(struct bench *b, uint32_t slot, uint64_t tag, const float *in, float *out)
{
    struct session_launch l = {.tag = tag, .params = one_float, .in = in, .out = out, .deadline = INT64_MAX};
    b->returned = false;
    step(b, &(struct session_event){.kind = SESSION_LAUNCH, .slot = slot, .launch = &l});
    EXPECT_EQ(b->outcome.result, RESULT_PENDING);
}

static void eager(struct bench *b, uint32_t peer, uint32_t view, uint64_t tag, float value)
{
    unsigned char raw[128];
    struct writer w;
    writer_init(&w, raw, sizeof raw);
    put_eager(&w, &(struct msg_eager){.name = {.tag = tag}, .params = one_float, .bytes = 4});
    put_bytes(&w, &value, 4);
    from_peer(b, peer, FRAME_EAGER, view_id(view), &w);
}

static void hold(struct bench *b, uint32_t peer, uint32_t view, uint64_t tag)
{
    struct plan_view plan = {.lanes = 1, .frame_bytes = 4096, .eager_bytes = 1024, .algorithm = PLAN_DIRECT};
    unsigned char raw[128];
    struct writer w;
    writer_init(&w, raw, sizeof raw);
    put_hold(&w, &(struct msg_hold){.name = {.tag = tag}, .origin = peer_id(peer),
                                    .params = p2p_params_hash(&one_float, &plan)});
    from_peer(b, peer, FRAME_HOLD, view_id(view), &w);
}

static enum session_result collect(struct bench *b, uint32_t slot)
{
    step(b, &(struct session_event){.kind = SESSION_COLLECT, .slot = slot});
    return b->outcome.result;
}

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

TEST(failed_invariant_ends_every_call_and_the_machine) /* somebody waits for a machine that no longer thinks */
{
    struct bench *b = bench_new();
    float x = 1, y = 0;
    launch(b, 0, 9, &x, &y); /* running, listed, and then not decided: the master cannot do that */
    install(b, 2, false);
    EXPECT(session_poisoned(b->s));
    EXPECT(b->returned);
    EXPECT_EQ(collect(b, 0), RESULT_POISONED);
    struct session_launch l = {.tag = 1, .params = one_float, .in = &x, .out = &y, .deadline = INT64_MAX};
    step(b, &(struct session_event){.kind = SESSION_LAUNCH, .slot = 1, .launch = &l});
    EXPECT_EQ(b->outcome.result, RESULT_POISONED);
    EXPECT_EQ(session_deadline(b->s), INT64_MAX);
    bench_free(b);
}

/* What the last FROZEN says of operation (tag 5, number 0); 0 if nothing. */
static uint8_t reported(const struct bench *b)
{
    for (uint32_t i = 0; i < b->out.count; i++) {
        struct frame_header h;
        const struct action *a = &b->out.actions[i];
        if (a->kind != ACT_MASTER || !frame_get(b->out.bytes + a->frame, &h) || h.type != FRAME_FROZEN) {
            continue;
        }
        struct reader r;
        struct msg_frozen f;
        struct op_report o;
        reader_init(&r, b->out.bytes + a->frame + FRAME_HEADER_BYTES, h.length);
        if (get_frozen(&r, &f) && f.reports == 1 && get_op_report(&r, &o) && o.tag == 5 && o.seq == 0) {
            return o.state;
        }
    }
    return 0;
}

static void refuse_after(struct bench *b, uint32_t peer, uint8_t cause, uint32_t settled)
{
    unsigned char raw[64];
    struct writer w;
    writer_init(&w, raw, sizeof raw);
    put_refuse(&w, &(struct msg_refuse){.name = {.tag = 5}, .origin = peer_id(peer), .cause = cause, .settled = settled});
    from_peer(b, peer, FRAME_REFUSE, view_id(1), &w);
}

static void refuse(struct bench *b, uint32_t peer, uint8_t cause)
{
    refuse_after(b, peer, cause, 0);
}

static void update_answered(struct bench *b)
{
    unsigned char raw[512];
    struct writer w;
    writer_init(&w, raw, sizeof raw);
    put_answer(&w, &(struct msg_answer){.kind = VOTE_UPDATE, .result = ANSWER_OK, .view = view_id(1), .sizes = {3, 3, 1, 3}});
    b->voted = false;
    from_master(b, FRAME_ANSWER, view_id(1), &w);
    EXPECT(b->voted);
    step(b, &(struct session_event){.kind = SESSION_COLLECT_VOTE});
    EXPECT_EQ(b->outcome.result, RESULT_OK);
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

TEST(different_digests_are_no_success_but_an_internal_error) /* peers train on with different bits */
{
    struct bench *b = bench_new();
    struct plan_view plan = {.lanes = 1, .frame_bytes = 4096, .eager_bytes = 1024, .algorithm = PLAN_DIRECT};
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
    writer_init(&w, raw, sizeof raw);
    struct msg_view m = {.view = view_id(2), .parent = view_id(1), .cause = CAUSE_DIGEST,
                         .sizes = {PEERS, PEERS, 1, PEERS}, .plan = plan, .members = PEERS, .decisions = 1};
    put_view(&w, &m);
    for (uint32_t i = 0; i < PEERS; i++) {
        put_u32(&w, i);
    }
    put_op_decision(&w, &(struct op_decision){.tag = 5, .outcome = OUTCOME_ABORT, .cause = CAUSE_DIGEST});
    from_master(b, FRAME_VIEW, m.view, &w);
    EXPECT(b->returned);
    EXPECT_EQ(collect(b, 0), RESULT_DIGEST);
    bench_free(b);
}

/* The cause that the last step told the master about the link with this peer; CAUSE_NONE: nothing. */
static uint8_t suspected(const struct bench *b, uint32_t peer)
{
    for (uint32_t i = 0; i < b->out.count; i++) {
        struct frame_header h;
        struct msg_suspect m;
        struct reader r;
        const struct action *a = &b->out.actions[i];
        if (a->kind != ACT_MASTER || !frame_get(b->out.bytes + a->frame, &h) || h.type != FRAME_SUSPECT) {
            continue;
        }
        reader_init(&r, b->out.bytes + a->frame + FRAME_HEADER_BYTES, h.length);
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
