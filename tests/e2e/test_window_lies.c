/* test_window_lies.c - requests that no honest member makes: the window's memory is touched where it may be, and nowhere else.
 *
 * Who lies leaves the checks of the public interface out, or says by a message of its own what it likes.
 * SPDX-License-Identifier: MIT */
#include "engine/calls/await.h"
#include "engine/comm_calls.h"
#include "tests/testing.h"

#include <stdlib.h>
#include <string.h>

#include "api/api.h"
#include "core/clock.h"
#include "core/random.h"
#include "tests/e2e/cluster.h"
#include "window/window.h"

enum { BYTES = 4096, GUARD = 4096, WORLD = 2, MOST_WORLD = 3, PATIENCE_MS = 10000 };

static struct window *make(struct cluster_peer *p, unsigned char *memory, uint32_t rights)
{
    struct window_member own = {0}, members[MOST_WORLD];
    unsigned char mine[WINDOW_MEMBER_BYTES], all[MOST_WORLD * WINDOW_MEMBER_BYTES];
    struct session_info info;
    struct writer w;
    struct reader r;
    EXPECT_EQ(api_member(p->comm->comm, "test", &info), pcclSuccess);
    uint32_t world = info.snapshot.group;
    struct window *window = window_new(p->comm->comm, memory, BYTES, rights, world, &own);
    EXPECT(window != NULL && own.status == PCCL_OK);
    own.id = info.id;
    writer_init(&w, mine, sizeof mine);
    put_window_member(&w, &own);
    EXPECT_EQ(pcclAllGather(mine, all, WINDOW_MEMBER_BYTES, pcclUint8, p->comm, NULL), pcclSuccess);
    reader_init(&r, all, sizeof all);
    for (uint32_t i = 0; i < world; i++) {
        EXPECT(get_window_member(&r, &members[i]));
    }
    window_join(window, members, info.called_rank);
    return window;
}

static enum session_result attempt(struct cluster_peer *p, struct window *w, struct window_call call)
{
    struct session_outcome o;
    uint64_t number;
    unsigned char bytes[2 * BYTES];
    memset(bytes, 0xEE, sizeof bytes);
    call.phase = "test";
    call.source = call.target = bytes;
    struct comm_op *op = window_begin(w, &call, &number);
    comm_await(p->comm->comm, op, &o);
    return o.result;
}

/* Rank 0's window may be written only, rank 1's read only. */
static void beyond(struct cluster_peer *p, void *context)
{
    unsigned char *memory = malloc(GUARD + BYTES + GUARD);
    (void)context;
    memset(memory, 0x55, GUARD + BYTES + GUARD);
    pcclPeerInfo_t me;
    EXPECT_EQ(pcclGetSelf(p->comm, &me), pcclSuccess);
    struct window *w = make(p, memory + GUARD, me.rank == 0 ? WINDOW_MAY_WRITE : WINDOW_MAY_READ);
    if (me.rank == 1) {
        static const size_t offset[] = {0, 1, BYTES, BYTES + 1, SIZE_MAX, SIZE_MAX - 3, SIZE_MAX / 2};
        for (size_t i = 0; i < sizeof offset / sizeof offset[0]; i++) {
            struct window_call put = {.kind = WINDOW_PUT, .rank = 0, .offset = offset[i], .bytes = i == 0 ? BYTES + 1 : BYTES};
            EXPECT_EQ(attempt(p, w, put), RESULT_ARGUMENT);
        }
        EXPECT_EQ(attempt(p, w, (struct window_call){.kind = WINDOW_GET, .rank = 0, .bytes = 8}), RESULT_ARGUMENT);
        EXPECT_EQ(attempt(p, w, (struct window_call){.kind = WINDOW_ADD, .rank = 0, .bytes = 8, .operand = 1}), RESULT_ARGUMENT);
        EXPECT_EQ(attempt(p, w, (struct window_call){.kind = WINDOW_PUT, .rank = 0, .offset = 16, .bytes = 16}), RESULT_OK);
    } else {
        EXPECT_EQ(attempt(p, w, (struct window_call){.kind = WINDOW_PUT, .rank = 1, .bytes = 8}), RESULT_ARGUMENT);
        EXPECT_EQ(attempt(p, w, (struct window_call){.kind = WINDOW_SWAP, .rank = 1, .bytes = 4}), RESULT_ARGUMENT);
        EXPECT_EQ(attempt(p, w, (struct window_call){.kind = WINDOW_GET, .rank = 1, .offset = 8, .bytes = BYTES}), RESULT_ARGUMENT);
        EXPECT_EQ(attempt(p, w, (struct window_call){.kind = WINDOW_GET, .rank = 1, .offset = 8, .bytes = BYTES - 8}), RESULT_OK);
    }
    window_close(w);
    window_free(w);
    size_t touched = 0;
    for (size_t i = 0; i < GUARD + BYTES + GUARD; i++) {
        touched += memory[i] != 0x55;
    }
    EXPECT_EQ(touched, me.rank == 0 ? 16 : 0);
    free(memory);
}

TEST(what_is_beyond_a_window_or_its_rights_is_refused_by_its_owner)
{
    struct cluster c;
    cluster_start(&c, WORLD, NULL, 1);
    cluster_run(&c, beyond, NULL);
    cluster_stop(&c);
}

/* Sends rank 0 bytes of the length of a request. */
static void say(struct cluster_peer *p, struct window *w, const pcclPeerInfo_t *to, void *request)
{
    struct session_outcome o;
    struct comm_launch launch = {.call = {.space = SPACE_WINDOW, .tag = window_number(w) + WINDOW_REQUESTS,
                                          .count = WINDOW_REQUEST_BYTES, .in = request,
                                          .params = {.kind = PLAN_SEND, .dtype = DTYPE_U8, .count = WINDOW_REQUEST_BYTES},
                                          .partner = to->id, .awaited = true}};
    comm_reduce(p->comm->comm, &launch, &o);
    EXPECT_EQ(o.result, RESULT_OK);
}

static void ask(struct cluster_peer *p, struct window *w, const pcclPeerInfo_t *to, struct window_request q)
{
    unsigned char request[WINDOW_REQUEST_BYTES];
    struct writer out;
    writer_init(&out, request, sizeof request);
    put_window_request(&out, &q);
    say(p, w, to, request);
}

/* What is added, by the answer. */
static uint64_t added(struct cluster_peer *p, struct window *w, const pcclPeerInfo_t *to, struct window_request q)
{
    struct session_outcome o;
    uint64_t was = UINT64_MAX;
    ask(p, w, to, q);
    struct comm_launch launch = {.call = {.space = SPACE_WINDOW, .tag = window_number(w) + WINDOW_ANSWERS, .count = 8, .out = &was,
                                          .receives = true, .params = {.kind = PLAN_SEND, .dtype = DTYPE_U8, .count = 8},
                                          .partner = to->id, .awaited = true}};
    comm_reduce(p->comm->comm, &launch, &o);
    EXPECT_EQ(o.result, RESULT_OK);
    return was;
}

/* Rank 1 says by itself what rank 0's window is to do: a number again, as after the end of a view, and one that comes too early. */
static void again(struct cluster_peer *p, void *context)
{
    uint64_t memory[8] = {0};
    pcclPeerInfo_t members[WORLD];
    size_t count = 0;
    (void)context;
    EXPECT_EQ(pcclGetMembers(p->comm, members, WORLD, &count), pcclSuccess);
    bool lies = members[1].is_self;
    struct window *w = make(p, (unsigned char *)calloc(1, BYTES), WINDOW_MAY_READ | WINDOW_MAY_WRITE | WINDOW_MAY_COUNT);
    struct window_info own;
    window_tell(w, window_rank(w), &own);
    if (lies) {
        struct window_request add = {.kind = WINDOW_ADD, .width = 8, .bytes = 8, .operand = 5};
        EXPECT_EQ(added(p, w, &members[0], add), 0);
        EXPECT_EQ(added(p, w, &members[0], add), 0); /* once, and the same answer */
        add.seq = 1;
        EXPECT_EQ(added(p, w, &members[0], add), 5);
        ask(p, w, &members[0], (struct window_request){.kind = WINDOW_SIGNAL, .seq = 3, .over = 1}); /* number 2 is on its way */
    }
    EXPECT_EQ(pcclBarrier(p->comm, NULL), pcclSuccess);
    if (!lies) {
        EXPECT_EQ(attempt(p, w, (struct window_call){.kind = WINDOW_VOID, .rank = 1, .deadline = clock_now_ns() + 50000000}), RESULT_LOST);
        memcpy(memory, own.address, sizeof memory[0]);
        EXPECT_EQ(memory[0], 10);
    }
    EXPECT_EQ(pcclBarrier(p->comm, NULL), pcclSuccess);
    if (lies) {
        ask(p, w, &members[0], (struct window_request){.kind = WINDOW_VOID, .seq = 2, .over = 1});
        ask(p, w, &members[0], (struct window_request){.kind = WINDOW_SIGNAL, .seq = 3, .over = 1}); /* once, too */
    }
    EXPECT_EQ(pcclBarrier(p->comm, NULL), pcclSuccess);
    if (!lies) {
        EXPECT_EQ(attempt(p, w, (struct window_call){.kind = WINDOW_VOID, .rank = 1, .deadline = clock_now_ns() + 5000000000}), RESULT_OK);
        EXPECT_EQ(attempt(p, w, (struct window_call){.kind = WINDOW_VOID, .rank = 1, .deadline = clock_now_ns() + 50000000}), RESULT_LOST);
    }
    EXPECT_EQ(pcclBarrier(p->comm, NULL), pcclSuccess); /* whoever has closed signals no more */
    window_close(w); /* by a number that has been: it is heard again */
    void *at = own.address;
    window_free(w);
    free(at);
}

TEST(what_is_asked_again_is_done_once_and_a_signal_waits_for_what_is_on_its_way)
{
    struct cluster c;
    cluster_start(&c, WORLD, NULL, 1);
    cluster_run(&c, again, NULL);
    cluster_stop(&c);
}

/* Rank 1 says that it has heard the end of numbers 0 and 1 before rank 0 has heard of the end of 0 itself. */
static void passed(struct cluster_peer *p, void *context)
{
    pcclPeerInfo_t members[WORLD];
    unsigned char *memory = calloc(1, BYTES);
    size_t count = 0;
    (void)context;
    EXPECT_EQ(pcclGetMembers(p->comm, members, WORLD, &count), pcclSuccess);
    struct window *w = make(p, memory, WINDOW_MAY_WRITE);
    if (members[1].is_self) {
        for (uint64_t seq = 1; seq <= 3; seq++) {
            ask(p, w, &members[0], (struct window_request){.kind = WINDOW_SIGNAL, .seq = seq, .over = seq == 3 ? 3 : 0});
        }
    }
    for (int i = 0; i < 4 && members[0].is_self; i++) {
        int64_t limit = clock_now_ns() + (i < 3 ? INT64_C(20000000000) : 50000000);
        EXPECT_EQ(attempt(p, w, (struct window_call){.kind = WINDOW_VOID, .rank = 1, .deadline = limit}), i < 3 ? RESULT_OK : RESULT_LOST);
    }
    EXPECT_EQ(pcclBarrier(p->comm, NULL), pcclSuccess);
    window_close(w);
    window_free(w);
    free(memory);
}

TEST(signals_count_whose_numbers_are_passed_while_they_wait)
{
    struct cluster c;
    cluster_start(&c, WORLD, NULL, 1);
    cluster_run(&c, passed, NULL);
    cluster_stop(&c);
}

/* ---- Bytes ------------------------------------------------------------------------------------------------------------ */

static enum session_result bytes(struct cluster_peer *p, struct window *w, const pcclPeerInfo_t *to, unsigned char *from, size_t count)
{
    struct session_outcome o;
    struct comm_launch launch = {.call = {.space = SPACE_WINDOW, .tag = window_number(w) + WINDOW_PUTS, .count = count, .in = from,
                                          .params = {.kind = PLAN_SEND, .dtype = DTYPE_U8, .count = count}, .partner = to->id, .awaited = true}};
    comm_reduce(p->comm->comm, &launch, &o);
    return o.result;
}

/* Rank 1 puts, and rank 0 writes over it; then the bytes come again, as after the end of a view. */
static void put_again(struct cluster_peer *p, void *context)
{
    unsigned char *memory = calloc(1, BYTES), out[100];
    pcclPeerInfo_t members[WORLD];
    size_t count = 0;
    (void)context;
    EXPECT_EQ(pcclGetMembers(p->comm, members, WORLD, &count), pcclSuccess);
    struct window *w = make(p, memory, WINDOW_MAY_WRITE);
    struct window_request put = {.kind = WINDOW_PUT, .offset = 8, .bytes = sizeof out};
    memset(out, 7, sizeof out);
    if (members[1].is_self) {
        ask(p, w, &members[0], put);
        EXPECT_EQ(bytes(p, w, &members[0], out, sizeof out), RESULT_OK);
    }
    EXPECT_EQ(pcclBarrier(p->comm, NULL), pcclSuccess);
    if (members[0].is_self) {
        EXPECT(memory[7] == 0 && memory[8] == 7 && memory[8 + sizeof out - 1] == 7 && memory[8 + sizeof out] == 0);
        memset(memory, 9, BYTES);
    }
    EXPECT_EQ(pcclBarrier(p->comm, NULL), pcclSuccess);
    if (members[1].is_self) {
        ask(p, w, &members[0], put);
        EXPECT_EQ(bytes(p, w, &members[0], out, sizeof out), RESULT_ARGUMENT);
    }
    EXPECT_EQ(pcclBarrier(p->comm, NULL), pcclSuccess);
    size_t wrong = 0;
    for (size_t i = 0; i < BYTES && members[0].is_self; i++) {
        wrong += memory[i] != 9;
    }
    EXPECT_EQ(wrong, 0);
    window_close(w);
    window_free(w);
    free(memory);
}

TEST(bytes_that_have_come_are_not_taken_again)
{
    struct cluster c;
    cluster_start(&c, WORLD, NULL, 1);
    cluster_run(&c, put_again, NULL);
    cluster_stop(&c);
}

/* Else it is given up. */
static bool done_in_time(struct cluster_peer *p, struct window *w, const struct window_call *call)
{
    pcclAsyncOp_t op = {.comm = p->comm};
    bool done = false;
    pcclCompletion_t end;
    EXPECT(window_begin(w, call, &op.id) != NULL);
    EXPECT_EQ(pcclWaitAsync(&op, PATIENCE_MS, &end, &done), pcclSuccess);
    if (!done) {
        EXPECT_EQ(pcclCancelAsync(&op), pcclSuccess);
    }
    return pcclAwaitAsync(&op, NULL) == pcclSuccess && done;
}

/* Rank 1 announces bytes under all its numbers, over and over, and sends none; rank 2 is served all the same. */
static void announced(struct cluster_peer *p, void *context)
{
    enum { NUMBERS = 64, TIMES = 3 };
    unsigned char *memory = calloc(1, BYTES), out[8] = {5};
    pcclPeerInfo_t members[MOST_WORLD];
    size_t count = 0;
    (void)context;
    EXPECT_EQ(pcclGetMembers(p->comm, members, MOST_WORLD, &count), pcclSuccess);
    struct window *w = make(p, memory, WINDOW_MAY_WRITE | WINDOW_MAY_READ);
    for (uint64_t i = 0; members[1].is_self && i < NUMBERS * TIMES; i++) {
        ask(p, w, &members[0], (struct window_request){.kind = WINDOW_PUT, .seq = i % NUMBERS, .bytes = sizeof out});
    }
    EXPECT_EQ(pcclBarrier(p->comm, NULL), pcclSuccess);
    count = NUMBERS;
    for (bool done = true; members[2].is_self && done && count > 0; count--) {
        struct window_call put = {.kind = WINDOW_PUT, .rank = 0, .offset = 64, .bytes = sizeof out, .source = out, .phase = "test"};
        done = done_in_time(p, w, &put);
        EXPECT(done);
    }
    EXPECT_EQ(pcclBarrier(p->comm, NULL), pcclSuccess);
    EXPECT_EQ(memory[64], members[0].is_self ? 5 : 0);
    EXPECT_EQ(memory[0], 0);
    if (members[1].is_self) { /* it goes, for nobody would wait for its bytes for ever */
        comm_leave(p->comm->comm, "test");
    }
    window_close(w);
    window_free(w);
    free(memory);
}

TEST(bytes_that_never_come_keep_nobody_elses_out)
{
    struct cluster c;
    cluster_start(&c, MOST_WORLD, NULL, 1);
    cluster_run(&c, announced, NULL);
    cluster_stop(&c);
}

/* Rank 1 has told of a window, and never hears what is asked of it; rank 2 is asked all the same. */
static void deaf(struct cluster_peer *p, void *context)
{
    enum { CALLS = 200 };
    unsigned char *memory = calloc(1, BYTES), out[8] = {5};
    pcclPeerInfo_t me = {0};
    uint64_t number[CALLS];
    (void)context;
    EXPECT_EQ(pcclGetSelf(p->comm, &me), pcclSuccess);
    struct window *w = me.rank == 1 ? NULL : make(p, memory, WINDOW_MAY_WRITE);
    if (me.rank == 1) {
        unsigned char mine[WINDOW_MEMBER_BYTES], all[MOST_WORLD * WINDOW_MEMBER_BYTES];
        struct writer out_bytes;
        writer_init(&out_bytes, mine, sizeof mine);
        put_window_member(&out_bytes, &(struct window_member){.id = me.id, .bytes = BYTES, .rights = WINDOW_MAY_WRITE});
        EXPECT_EQ(pcclAllGather(mine, all, WINDOW_MEMBER_BYTES, pcclUint8, p->comm, NULL), pcclSuccess);
    }
    if (me.rank == 0) {
        for (int i = 0; i < CALLS; i++) {
            struct window_call c = {.kind = i % 2 == 0 ? WINDOW_SIGNAL : WINDOW_PUT, .rank = 1, .bytes = i % 2 == 0 ? 0 : 8, .source = out, .phase = "test"};
            EXPECT(window_begin(w, &c, &number[i]) != NULL);
        }
        for (int i = 0; i < CALLS; i++) {
            struct window_call c = {.kind = WINDOW_PUT, .rank = 2, .bytes = sizeof out, .source = out, .phase = "test"};
            EXPECT(done_in_time(p, w, &c));
        }
    }
    EXPECT_EQ(pcclBarrier(p->comm, NULL), pcclSuccess);
    EXPECT_EQ(memory[0], me.rank == 2 ? 5 : 0);
    if (me.rank == 1) {
        comm_leave(p->comm->comm, "test");
    } else {
        for (int i = 0; me.rank == 0 && i < CALLS; i++) {
            EXPECT_EQ(pcclAwaitAsync(&(pcclAsyncOp_t){.comm = p->comm, .id = number[i]}, NULL), pcclRankConnectionLost);
        }
        window_close(w);
        window_free(w);
    }
    free(memory);
}

TEST(who_never_answers_keeps_nobody_elses_operations_up)
{
    struct cluster c;
    cluster_start(&c, MOST_WORLD, NULL, 1);
    cluster_run(&c, deaf, NULL);
    cluster_stop(&c);
}

/* Rank 1 tells of itself as of rank 2: what is meant for it would go there. */
static void impostor(struct cluster_peer *p, void *context)
{
    pcclPeerInfo_t members[MOST_WORLD];
    size_t count = 0;
    (void)context;
    EXPECT_EQ(pcclGetMembers(p->comm, members, MOST_WORLD, &count), pcclSuccess);
    if (members[1].is_self) {
        unsigned char mine[WINDOW_MEMBER_BYTES], all[MOST_WORLD * WINDOW_MEMBER_BYTES];
        struct writer w;
        writer_init(&w, mine, sizeof mine);
        put_window_member(&w, &(struct window_member){.id = members[2].id, .bytes = BYTES, .rights = WINDOW_MAY_WRITE});
        EXPECT_EQ(pcclAllGather(mine, all, WINDOW_MEMBER_BYTES, pcclUint8, p->comm, NULL), pcclSuccess);
    } else {
        pcclWindow_t *window = NULL;
        pcclWindowParams_t params = {.size = sizeof params, .bytes = BYTES, .rights = pcclWindowAll};
        EXPECT_EQ(pcclCreateWindow(&params, p->comm, &window), pcclInternalError);
        EXPECT(strstr(pcclGetLastError(), "rank 1 says that it is another peer") != NULL && window == NULL);
    }
}

TEST(who_claims_to_be_another_makes_no_window)
{
    struct cluster c;
    cluster_start(&c, MOST_WORLD, NULL, 1);
    cluster_run(&c, impostor, NULL);
    cluster_stop(&c);
}

/* ---- Noise ------------------------------------------------------------------------------------------------------------ */

/* Any bytes of the length of a request, and requests with any numbers: nothing of the window is touched that they may not, and an honest
 * one afterwards, by the other end, is served. */
static void noise(struct cluster_peer *p, void *context)
{
    enum { REQUESTS = 400 };
    unsigned char *memory = calloc(1, BYTES), request[WINDOW_REQUEST_BYTES];
    pcclPeerInfo_t me;
    (void)context;
    EXPECT_EQ(pcclGetSelf(p->comm, &me), pcclSuccess);
    struct window *w = make(p, memory, WINDOW_MAY_READ);
    pcclPeerInfo_t members[WORLD];
    size_t count = 0;
    EXPECT_EQ(pcclGetMembers(p->comm, members, WORLD, &count), pcclSuccess);
    struct rng rng = {7};
    for (int i = 0; i < REQUESTS && me.rank == 1; i++) {
        for (size_t k = 0; k < sizeof request; k++) {
            request[k] = (unsigned char)rng_next(&rng);
        }
        if (i % 2 == 0) { /* well formed, of kinds that move nothing, with numbers that cannot be */
            struct window_request q = {.kind = (uint8_t)(WINDOW_SIGNAL + rng_next(&rng) % 3), .seq = rng_next(&rng) >> rng_next(&rng) % 64};
            q.kind = q.kind == WINDOW_CLOSE ? WINDOW_SIGNAL : q.kind;
            q.seq = q.seq < 64 ? q.seq + 64 : q.seq;
            q.over = q.seq > INT64_MAX ? q.seq - rng_next(&rng) % 2 : 0; /* smaller ones would be believed: they are the origin's own */
            struct writer out;
            writer_init(&out, request, sizeof request);
            put_window_request(&out, &q);
        }
        say(p, w, &members[0], request);
    }
    EXPECT_EQ(pcclBarrier(p->comm, NULL), pcclSuccess);
    EXPECT_EQ(attempt(p, w, (struct window_call){.kind = WINDOW_GET, .rank = 1 - me.rank, .bytes = 100}), RESULT_OK);
    window_close(w);
    window_free(w);
    size_t touched = 0;
    for (size_t i = 0; i < BYTES; i++) {
        touched += memory[i] != 0;
    }
    EXPECT_EQ(touched, 0);
    free(memory);
}

TEST(requests_of_noise_harm_nothing)
{
    struct cluster c;
    cluster_start(&c, WORLD, NULL, 1);
    cluster_run(&c, noise, NULL);
    cluster_stop(&c);
}
