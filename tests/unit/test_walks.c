/* test_walks.c - an operation costs what it exchanges: not what the view has members, what is in flight, or what tags are known.
 *
 * Its one idea: instructions are counted, by a parent that lets its child make one step of the processor after the other.  So the
 * figures are the same on any machine, however busy, and a walk that comes back shows, whatever it walks over.
 * SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#include "tests/unit/session_bench.h"

#include <signal.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

#include "session/session_state.h"

enum { FEW = 64, MANY = 8192, FLIGHT = 500, TAGS = 20000, LARGE = 1 << 20, UNTRACED = 3 };

/* A view of so many, in which the lowest of all has links and connections with those it exchanges anything with. */
static struct bench *bench_among(uint32_t members)
{
    static unsigned char raw[1 << 19];
    struct session_config c = bench_config();
    c.check_every = UINT32_MAX; /* looks at all there is */
    c.wishes.allowed[PLAN_ALL_REDUCE] = 1u << PLAN_RING;
    c.max_members = MANY;
    c.first = 4 * FLIGHT; /* so that no table grows in what is counted */
    c.max_ops = c.max_records = BOUNDS_OPS;
    c.max_tags = 1 << 20;
    struct bench *b = bench_of(&c, false);
    struct writer w;
    writer_init(&w, raw, sizeof raw);
    struct msg_view m = {.view = view_id(2), .sizes = {members, members, 1, members}, .members = members, .added = members,
                         .plan = {.lanes = 1, .frame_bytes = 4096, .eager_bytes = 1024}};
    put_view(&w, &m);
    for (uint32_t i = 0; i < members; i++) {
        put_member_info(&w, &(struct member_info){.id = peer_id(i), .lanes = 1});
    }
    for (uint32_t i = 0; i < members; i++) {
        put_u32(&w, i);
    }
    from_master(b, FRAME_VIEW, m.view, &w);
    for (uint32_t i = 1; i < members; i++) {
        step(b, &(struct session_event){.kind = SESSION_LINK_UP, .peer = peer_id(i)});
        step(b, &(struct session_event){.kind = SESSION_DATA_UP, .peer = peer_id(i), .number = 1});
        ping(b, i, view_id(2));
    }
    return b;
}

static uint32_t world_of(const struct bench *b)
{
    return b->s->view.world;
}

/* ---- operations ---- */

static const struct op_params message = {.count = 1, .dtype = DTYPE_F32, .kind = PLAN_SEND, .algorithm = PLAN_TINY};
static const struct op_params sum = {.count = LARGE, .dtype = DTYPE_F32, .op = REDOP_SUM, .algorithm = PLAN_RING};
static float in[1], out[1];

static void call(struct bench *b, uint32_t slot, const struct session_launch *what)
{
    struct session_launch l = *what;
    l.call.in = in;
    l.call.out = out;
    l.call.deadline = INT64_MAX;
    l.call.known = view_id(2);
    l.call.world = world_of(b);
    step(b, &(struct session_event){.kind = SESSION_LAUNCH, .slot = slot, .launch = &l});
    EXPECT_EQ(b->outcome.result, RESULT_PENDING);
}

static void send(struct bench *b, uint32_t slot, uint64_t tag)
{
    call(b, slot, &(struct session_launch){.call = {.space = SPACE_PAIR, .tag = tag, .params = message, .root_rank = 1}});
}

static void held_by(struct bench *b, uint32_t rank, uint8_t round, const struct op_name *name, const struct op_params *p)
{
    unsigned char raw[128];
    struct writer w;
    writer_init(&w, raw, sizeof raw);
    put_hold(&w, &(struct msg_hold){.name = *name, .origin = peer_id(rank), .round = round,
                                    .params = p2p_params_hash(p, &b->s->view.plan)});
    from_peer(b, rank, FRAME_HOLD, view_id(2), &w);
}

static void sent_message(struct bench *b, uint32_t slot, uint64_t tag, uint32_t seq)
{
    held_by(b, 1, 0, &(struct op_name){.space = SPACE_PAIR, .tag = tag, .from = self, .to = peer_id(1), .seq = seq}, &message);
    EXPECT_EQ(collect(b, slot), RESULT_OK);
}

static void a_send(struct bench *b, uint32_t slot)
{
    send(b, slot, 7);
    sent_message(b, slot, 7, 0);
}

static void a_receive(struct bench *b, uint32_t slot)
{
    struct op_name name = {.space = SPACE_PAIR, .tag = 8, .from = peer_id(1), .to = self};
    unsigned char raw[128];
    struct writer w;
    call(b, slot, &(struct session_launch){.call = {.space = SPACE_PAIR, .tag = 8, .params = message, .root_rank = 1,
                                                    .receives = true}});
    writer_init(&w, raw, sizeof raw);
    put_eager(&w, &(struct msg_eager){.name = name, .params = message, .bytes = sizeof in});
    put_bytes(&w, in, sizeof in);
    from_peer(b, 1, FRAME_EAGER, view_id(2), &w);
    EXPECT_EQ(collect(b, slot), RESULT_OK);
    writer_init(&w, raw, sizeof raw);
    put_finished(&w, &(struct msg_finished){.origin = peer_id(1), .names = 1});
    put_op_name(&w, &name);
    from_peer(b, 1, FRAME_FINISHED, view_id(2), &w);
}

/* Told to two, held in rounds; its record stays, and a name is heard of another that has finished it. */
static void a_sum(struct bench *b, uint32_t slot)
{
    uint32_t n = world_of(b);
    struct op_name name = {.space = SPACE_ORDERED};
    unsigned char raw[128];
    struct writer w;
    session_folding_senders(b->s, &sum, 0);
    call(b, slot, &(struct session_launch){.call = {.space = SPACE_ORDERED, .params = sum}});
    for (uint32_t i = 0; i < 2; i++) {
        writer_init(&w, raw, sizeof raw);
        put_ready(&w, &(struct msg_ready){.name = name, .params = sum, .bundle = 1, .launch = 1});
        from_peer(b, i == 0 ? 1 : n - 1, FRAME_READY, view_id(2), &w);
    }
    step(b, &(struct session_event){.kind = SESSION_DONE, .slot = slot});
    for (uint8_t k = 0; UINT32_C(1) << k < n; k++) {
        held_by(b, n - (UINT32_C(1) << k), k, &name, &sum);
    }
    step(b, &(struct session_event){.kind = SESSION_IDLE, .slot = slot});
    EXPECT_EQ(collect(b, slot), RESULT_OK);
    writer_init(&w, raw, sizeof raw);
    put_finished(&w, &(struct msg_finished){.origin = peer_id(2), .names = 1});
    put_op_name(&w, &name);
    from_peer(b, 2, FRAME_FINISHED, view_id(2), &w);
}

/* ---- counting ---- */

typedef void operation(struct bench *b, uint32_t slot);
static operation *const operations[] = {a_send, a_receive, a_sum};
static const char *const names[] = {"a message sent", "a message received", "a sum by the ring"};

/* Instructions that it takes; 0: they cannot be counted here.  It is made in a child, and leaves nothing behind. */
static unsigned long instructions(struct bench *b, operation *op, uint32_t slot)
{
    unsigned long count = 0;
    int status;
    pid_t child = fork();
    if (child == 0) {
        if (ptrace(PTRACE_TRACEME, 0, NULL, NULL) != 0) {
            _exit(UNTRACED);
        }
        test_failures = 0;
        raise(SIGUSR1);
        op(b, slot);
        raise(SIGUSR1);
        _exit(test_failures != 0 || session_poisoned(b->s));
    }
    EXPECT(child > 0);
    for (int marks = 0; waitpid(child, &status, 0) == child && WIFSTOPPED(status);) { /* whoever else stops it is not heard by it */
        marks += WSTOPSIG(status) == SIGUSR1;
        count += marks == 1 && WSTOPSIG(status) == SIGTRAP;
        ptrace(marks == 1 ? PTRACE_SINGLESTEP : PTRACE_CONT, child, NULL, NULL);
    }
    bool traced = WIFEXITED(status) && WEXITSTATUS(status) != UNTRACED;
    EXPECT(!traced || WEXITSTATUS(status) == 0);
    return traced ? count : 0;
}

/* Beyond a few tenths only what has a reason: of the first so many operations.  False: they cannot be counted here. */
static bool as_among_few(struct bench *many, const unsigned long tenths[3], uint32_t count)
{
    static unsigned long among_few[3]; /* a step of the processor takes a traced process 10 to 100 us */
    if (getenv("PCCL_SANITIZED") != NULL) { /* whose instructions would be counted, and take minutes */
        return false;
    }
    struct bench *few = bench_among(FEW);
    count = test_scaled(count); /* one, in `make test` */
    for (uint32_t i = 0; i < count; i++) {
        among_few[i] = among_few[i] != 0 ? among_few[i] : instructions(few, operations[i], 0);
        unsigned long here = among_few[i] == 0 ? 0 : instructions(many, operations[i], 0);
        if (among_few[i] != 0 && (here == 0 || here * 10 > among_few[i] * tenths[i])) {
            fprintf(stderr, "%s: %lu instructions, and %lu\n", names[i], among_few[i], here);
            test_failures++;
        }
    }
    bench_free(few);
    return among_few[0] != 0;
}

static const char untraced[] = "a process cannot trace another one here, or is not alone: sanitizers";
static const unsigned long constant[3] = {12, 12, 12};

TEST(operation_costs_the_same_in_a_view_of_many) /* walks over marks, links, bits of all members: 180 us of 3 in a view of 10,000 */
{
    static const unsigned long rounds[3] = {13, 13, 22}; /* one more for each doubling; and longer searches in the ascending ids */
    struct bench *many = bench_among(MANY);
    bool counted = as_among_few(many, rounds, 3);
    bench_free(many);
    if (!counted) {
        TEST_SKIP(untraced);
    }
}

TEST(operation_costs_the_same_when_many_are_in_flight) /* walks over slots and operations */
{
    struct bench *many = bench_among(FEW);
    for (uint32_t i = 0; i < FLIGHT; i++) {
        send(many, 1 + i, 9);
    }
    bool counted = as_among_few(many, constant, 3);
    bench_free(many);
    if (!counted) {
        TEST_SKIP(untraced);
    }
}

TEST(operation_costs_the_same_when_many_tags_are_known) /* walks over all that was ever called */
{
    struct bench *many = bench_among(FEW);
    for (uint32_t i = 0; i < TAGS; i++) {
        send(many, 0, 100 + i);
        sent_message(many, 0, 100 + i, 0);
    }
    bool counted = as_among_few(many, constant, 2);
    bench_free(many);
    if (!counted) {
        TEST_SKIP(untraced);
    }
}
