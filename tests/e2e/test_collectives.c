/* test_collectives.c - collectives in the order of issue, value by value against an independent computation, for worlds of 1 to 9.
 *
 * Two lists of calls: a crossing of kind, type, operator and form, of few elements, and one that draws all else, sizes above all.
 * SPDX-License-Identifier: MIT */
#include "tests/testing.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/e2e/cluster.h"
#include "tests/e2e/trial.h"

static struct trial trial_of(uint32_t number, uint32_t world)
{
    static const size_t counts[] = {0, 1, 5, 100, 1000, 4096, 5000, 20000, 70000};
    uint32_t h = (uint32_t)(number * 0x9E3779B97F4A7C15u >> 33);
    struct trial t = {.kind = (enum trial_kind)(number % TRIAL_KINDS),
                      .type = (pcclDataType_t)(number / TRIAL_KINDS % TRIAL_TYPES), .op = (pcclRedOp_t)(h % 8),
                      .count = counts[(h >> 3) % 9], .uneven = (h >> 8) % 3 == 0, .in_place = (h >> 10) % 3 == 0,
                      .async = (h >> 12) % 2, .root = (h >> 14) % world, .number = number};
    t.uneven = t.uneven && trial_has_lists(t.kind);
    t.count = t.uneven ? t.count / 2 : t.count;
    static const pcclRedOp_t truths[] = {pcclSum, pcclMax, pcclMin, pcclBitAnd, pcclBitOr};
    t.type = trial_reduces(t.kind) && t.type > pcclBool ? pcclBool : t.type; /* the others move only */
    t.op = t.type == pcclBool ? truths[t.op % 5] : t.type >= pcclFloat16 ? (pcclRedOp_t)(t.op % 5) : t.op; /* bits: of integers */
    return t;
}

enum { TRIALS = 9 * TRIAL_TYPES * 3, MOST_TRIALS = 600, FLIGHT = 5 };

/* The calls that all members of a world make, in this order. */
struct sweep {
    uint32_t world, count;
    struct trial trial[MOST_TRIALS];
};

static void sweep_draw(struct sweep *s)
{
    for (s->count = 0; s->count < TRIALS; s->count++) {
        s->trial[s->count] = trial_of(s->world * 1000 + s->count, s->world);
    }
}

/* By the words of pccl.h, not by what the library thinks: sums of bool are truths, operators of bits are for integers. */
static bool legal(pcclDataType_t type, pcclRedOp_t op)
{
    bool bits = op == pcclBitAnd || op == pcclBitOr || op == pcclBitXor;
    return type < pcclFloat16 || (type == pcclBool ? op != pcclAvg && op != pcclProd && op != pcclBitXor : type < pcclBool && !bits);
}

/* Each kind with each type, each operator that the type has, and, where there are such forms, equal parts and others. */
static void sweep_cross(struct sweep *s)
{
    static const size_t counts[] = {1, 3, 16, 50};
    s->count = 0;
    for (unsigned i = 0; i < BARRIER * TRIAL_TYPES * 8 * 2; i++) {
        struct trial t = {.uneven = i % 2, .op = (pcclRedOp_t)(i / 2 % 8), .type = (pcclDataType_t)(i / 16 % TRIAL_TYPES),
                          .kind = (enum trial_kind)(i / 16 / TRIAL_TYPES), .number = s->world * 1000 + s->count};
        if ((t.uneven && !trial_has_lists(t.kind)) || (trial_reduces(t.kind) ? !legal(t.type, t.op) : t.op != pcclSum)) {
            continue;
        }
        t.count = t.uneven ? 5 : counts[t.number % 4];
        t.in_place = t.number / 2 % 3 == 0;
        t.async = t.number % 3 == 1;
        t.root = t.number % s->world;
        s->trial[s->count++] = t;
    }
}

/* Some are awaited at once, some up to FLIGHT later: all members issue them in the same order. */
static void run_trials(struct cluster_peer *p, void *context)
{
    const struct sweep *s = context;
    uint32_t world = s->world, flying = 0;
    struct { struct trial t; struct trial_buffers b; pcclAsyncOp_t op; } flight[FLIGHT];
    pcclPeerInfo_t self;
    EXPECT_EQ(pcclGetSelf(p->comm, &self), pcclSuccess);
    for (uint32_t i = 0; i < s->count; i++) {
        struct trial t = s->trial[i];
        struct trial_buffers b = trial_make(&t, world, self.rank);
        pcclAsyncOp_t op;
        pcclResult_t rc = trial_call(&t, p->comm, world, self.rank, &b, t.async ? &op : NULL);
        EXPECT_EQ(rc, pcclSuccess);
        if (rc != pcclSuccess) {
            fprintf(stderr, "# %s\n", pcclGetLastError());
        }
        if (t.async) {
            flight[flying].t = t;
            flight[flying].b = b;
            flight[flying++].op = op;
        } else {
            EXPECT(trial_is_right(&t, world, self.rank, &b));
            trial_buffers_free(&b);
        }
        bool last = i + 1 == s->count;
        while (flying == FLIGHT || (last && flying > 0)) {
            pcclReduceInfo_t info;
            flying--;
            EXPECT_EQ(pcclAwaitAsync(&flight[flying].op, &info), pcclSuccess);
            EXPECT_EQ(info.local_world_size, world);
            EXPECT(trial_is_right(&flight[flying].t, world, self.rank, &flight[flying].b));
            trial_buffers_free(&flight[flying].b);
        }
    }
}

static void worlds(uint32_t from, uint32_t to, uint32_t pool, void (*list)(struct sweep *s))
{
    for (uint32_t world = from; world <= to; world += test_step()) {
        struct cluster c;
        struct sweep sweep = {.world = world};
        list(&sweep);
        setenv("PCCL_VERIFY", world % 2 == 0 ? "1" : "0", 1); /* digests of what all have alike */
        cluster_start(&c, (int)world, NULL, pool);
        cluster_run(&c, run_trials, &sweep);
        cluster_stop(&c);
    }
    unsetenv("PCCL_VERIFY");
}

TEST(calls_of_all_sizes_and_forms_in_worlds_of_1_to_4)
{
    worlds(1, 4, 2, sweep_draw);
}

TEST(calls_of_all_sizes_and_forms_in_worlds_of_5_to_9)
{
    worlds(5, TRIAL_MOST_WORLD, 1, sweep_draw);
}

static uint32_t most_crossed(void)
{
    return getenv("PCCL_SANITIZED") != NULL ? 4 : TRIAL_MOST_WORLD;
}

TEST(every_collective_with_every_type_and_operator_that_it_has_in_worlds_of_1_to_9)
{
    worlds(1, most_crossed(), 1, sweep_cross);
}

TEST(every_collective_with_every_type_and_operator_that_it_has_over_tcp)
{
    const char *before = getenv("PCCL_SHM_DISABLE");
    char word[8];
    snprintf(word, sizeof word, "%s", before != NULL ? before : "0");
    setenv("PCCL_SHM_DISABLE", "1", 1);
    worlds(2, most_crossed(), 2, sweep_cross);
    setenv("PCCL_SHM_DISABLE", word, 1);
}

/* ---- Mistakes: each takes its turn, so that what follows still meets what it should --------------------------------------------- */

static void last_words(const char *words)
{
    bool said = strstr(pcclGetLastError(), words) != NULL;
    EXPECT(said);
    if (!said) {
        fprintf(stderr, "# expected '%s' in: %s\n", words, pcclGetLastError());
    }
}

/* Rank 1 of 3 makes each mistake, the others the right call. */
static pcclResult_t mistaken(int number, bool wrong, pcclComm_t *comm, float *x, float *y)
{
    size_t counts[3] = {1, 2, 3}, send[3] = {2, 2, 2}, recv[3] = {2, 2, wrong && number == 6 ? 1 : 2};
    switch (number) {
    case 0:
        return pcclAllGather(wrong ? NULL : x, y, 4, pcclFloat, comm, NULL);
    case 1:
        return pcclBroadcast(x, y, 4, wrong ? (pcclDataType_t)15 : pcclFloat, 0, comm, NULL);
    case 2:
        return pcclBroadcast(x, y, 4, pcclFloat, wrong ? 3 : 0, comm, NULL);
    case 3:
        return pcclReduceScatter(x, wrong ? x + 1 : y, 4, pcclFloat, pcclSum, comm, NULL);
    case 4:
        return pcclAllReduceOrdered(x, y, 4, pcclFloat, wrong ? pcclBitXor : pcclSum, comm, NULL);
    case 5:
        return pcclAllGatherV(x, y, wrong ? NULL : counts, NULL, pcclFloat, comm, NULL);
    case 6:
        return pcclAllToAllV(x, send, NULL, y, recv, NULL, pcclFloat, comm, NULL);
    case 7:
        return pcclAllReduceOrdered(x, y, 4, pcclUint32, wrong ? pcclBitAnd : pcclBitOr, comm, NULL);
    case 8:
        return pcclReduce(x, y, 4, wrong ? pcclFloat8E4M3 : pcclInt8, pcclSum, 0, comm, NULL);
    case 9:
        send[1] = wrong ? 3 : 2;
        return pcclAllToAllV(x, send, NULL, y, recv, NULL, pcclFloat, comm, NULL);
    default:
        return wrong ? pcclAllGather(x, y, 4, pcclFloat, comm, NULL) : pcclBroadcast(x, y, 4, pcclFloat, 0, comm, NULL);
    }
}

static void make_mistakes(struct cluster_peer *p, void *context)
{
    static const struct {
        const char *own, *others;
    } words[] = {
        {"all-gather: sendbuf is null while 4 elements are to be sent", "could not make this call as it was given"},
        {"broadcast: datatype is 15", "could not make this call"},
        {"broadcast: root is 3: expected a rank below 3", "could not make this call"},
        {"reduce-scatter: recvbuf overlaps sendbuf: pass buffers apart", "could not make this call"},
        {"all-reduce: op is 7 (xor) of f32: operators of bits are for integer types", "could not make this call"},
        {"all-gather: counts is null: pass the elements of each rank", "could not make this call"},
        {"other counts", "other counts"},
        {"this peer has all-reduce of 4 u32, and; rank ", "this peer has all-reduce of 4 u32, or; rank 1 (peer "},
        {"reduce: op is 0 (sum) of f8e4m3: numbers of 8 bits travel as bytes", "could not make this call"},
        {"all-to-all: recv_counts of this rank itself is 2: pass the same number as in send_counts", "could not make this call"},
        {"this peer has all-gather of 4 f32; rank ", "this peer has broadcast of 4 f32, root "},
    };
    pcclPeerInfo_t self;
    float x[16] = {1, 2, 3, 4}, y[16], want[3] = {0};
    (void)context;
    EXPECT_EQ(pcclGetSelf(p->comm, &self), pcclSuccess);
    for (int i = 0; i < 11; i++) {
        bool wrong = self.rank == 1;
        EXPECT_EQ(mistaken(i, wrong, p->comm, x, y), pcclInvalidArgument);
        if (i != 6 || self.rank != 0) {
            last_words(wrong ? words[i].own : words[i].others);
        }
        float mine = (float)(self.rank + 10 * (uint32_t)i);
        EXPECT_EQ(pcclAllGather(&mine, want, 1, pcclFloat, p->comm, NULL), pcclSuccess);
        EXPECT(want[0] == 10.f * (float)i && want[1] == 10.f * (float)i + 1 && want[2] == 10.f * (float)i + 2);
    }
}

TEST(a_mistake_takes_its_turn_and_is_told_at_all_members)
{
    struct cluster c;
    cluster_start(&c, 3, NULL, 1);
    cluster_run(&c, make_mistakes, NULL);
    cluster_stop(&c);
}

/* A mistake of rank 1 with a handle: the launch succeeds, and each way to end it says what was wrong. */
static void later_mistakes(struct cluster_peer *p, void *context)
{
    static const char said[] = "reduce: root is 9: expected a rank below 2, the members of this peer group";
    pcclPeerInfo_t self;
    pcclCompletionQueue_t *queue;
    float x[2] = {1, 2}, y[2];
    (void)context;
    EXPECT_EQ(pcclGetSelf(p->comm, &self), pcclSuccess);
    EXPECT_EQ(pcclCreateCompletionQueue(&queue), pcclSuccess);
    for (int how = 0; how < 4; how++) {
        pcclAsyncOp_t op;
        pcclCompletion_t end = {0};
        bool done = false;
        size_t count = 0;
        if (how == 3) {
            EXPECT_EQ(pcclGroupStart(), pcclSuccess);
        }
        EXPECT_EQ(pcclReduce(x, y, 2, pcclFloat, pcclSum, self.rank == 1 ? 9 : 0, p->comm, how == 3 ? NULL : &op), pcclSuccess);
        pcclResult_t rc = pcclSuccess;
        switch (how) {
        case 0:
            rc = pcclAwaitAsync(&op, NULL);
            (void)pcclGetLastErrorInfo(&end.error);
            break;
        case 1:
            EXPECT_EQ(pcclWaitAsync(&op, -1, &end, &done), pcclSuccess);
            rc = end.result;
            EXPECT(done && pcclAwaitAsync(&op, NULL) == rc);
            break;
        case 2:
            EXPECT_EQ(pcclQueueAttach(queue, &op, 5), pcclSuccess);
            EXPECT_EQ(pcclQueueWait(queue, &end, 1, 60000, &count), pcclSuccess);
            rc = end.result;
            EXPECT(count == 1 && end.cookie == 5 && pcclAwaitAsync(&op, NULL) == rc);
            break;
        default:
            rc = pcclGroupEnd();
            (void)pcclGetLastErrorInfo(&end.error);
        }
        EXPECT_EQ(rc, pcclInvalidArgument);
        EXPECT_EQ(end.error.error_class, pcclClassFix);
        EXPECT_EQ(end.error.cause, pcclCauseUsage);
        EXPECT_STR(end.error.phase, "reduce");
        if (self.rank == 1) {
            EXPECT_STR(end.error.text, said);
        } else {
            EXPECT(strstr(end.error.text, "a peer could not make this call as it was given") != NULL);
        }
    }
    EXPECT_EQ(pcclAllReduceOrdered(x, y, 2, pcclFloat, pcclSum, p->comm, NULL), pcclSuccess);
    EXPECT(y[0] == 2 && y[1] == 4);
    EXPECT_EQ(pcclDestroyCompletionQueue(queue), pcclSuccess);
}

TEST(a_mistake_with_a_handle_is_told_by_its_end) /* the call blocked, and returned the error without a handle */
{
    struct cluster c;
    cluster_start(&c, 2, NULL, 1);
    cluster_run(&c, later_mistakes, NULL);
    cluster_stop(&c);
}
