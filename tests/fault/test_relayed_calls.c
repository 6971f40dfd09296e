/* test_relayed_calls.c - collectives, messages, a split and a window of three hosts of which two cannot reach each other: the third stands in.
 * SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#include <signal.h>
#include <stdlib.h>

#include "tests/testing.h"

#include "tests/fault/network.h"
#include "tests/fault/peer_calls.h"

enum kind { ALL_GATHER, BROADCAST, REDUCE_SCATTER, REDUCE_SCATTER_TIMES, REDUCE, SCATTER, GATHER, ALL_TO_ALL, KINDS };
enum { WORLD = 3 };

struct call_job {
    enum kind kind;
    size_t count; /* floats of a part */
    uint32_t root;
};

static float given(uint32_t from, uint32_t to, size_t i)
{
    return (float)((from * 7 + to * 3 + i) % 1000);
}

static bool reduces_parts(enum kind kind)
{
    return kind == REDUCE_SCATTER || kind == REDUCE_SCATTER_TIMES;
}

static float wanted(const struct call_job *job, uint32_t self, uint32_t of, size_t i)
{
    float sum = 0;
    for (uint32_t r = 0; r < WORLD; r++) {
        sum += given(r, reduces_parts(job->kind) ? self : 0, i);
    }
    return job->kind == REDUCE || job->kind == REDUCE_SCATTER ? sum
           : job->kind == REDUCE_SCATTER_TIMES                ? sum / 4
           : job->kind == BROADCAST                           ? given(job->root, 0, i)
           : job->kind == SCATTER                             ? given(job->root, self, i)
                                                              : given(of, job->kind == ALL_TO_ALL ? self : 0, i);
}

static pcclResult_t call(struct peer *self, const struct call_job *job, const float *in, float *out)
{
    switch (job->kind) {
    case ALL_GATHER:
        return pcclAllGather(in, out, job->count, pcclFloat, self->comm, NULL);
    case BROADCAST:
        return pcclBroadcast(in, out, job->count, pcclFloat, job->root, self->comm, NULL);
    case REDUCE_SCATTER:
        return pcclReduceScatter(in, out, job->count, pcclFloat, pcclSum, self->comm, NULL);
    case REDUCE_SCATTER_TIMES: {
        const float quarter = 0.25F; /* summed up in accumulators, and encoded on its way */
        pcclRedOp_t op;
        pcclResult_t made = pcclRedOpCreatePreMulSum(&op, &quarter, pcclFloat, pcclFactorByValue, self->comm);
        pcclResult_t rc = made != pcclSuccess ? made : pcclReduceScatter(in, out, job->count, pcclFloat, op, self->comm, NULL);
        PEER_EXPECT(self, made != pcclSuccess || pcclRedOpDestroy(op, self->comm) == pcclSuccess);
        return rc;
    }
    case REDUCE:
        return pcclReduce(in, out, job->count, pcclFloat, pcclSum, job->root, self->comm, NULL);
    case SCATTER:
        return pcclScatter(in, out, job->count, pcclFloat, job->root, self->comm, NULL);
    case GATHER:
        return pcclGather(in, out, job->count, pcclFloat, job->root, self->comm, NULL);
    case ALL_TO_ALL:
        return pcclAllToAll(in, out, job->count, pcclFloat, self->comm, NULL);
    case KINDS:
        break;
    }
    return pcclInvalidArgument;
}

/* argument: struct call_job; after a success every element is looked at. */
static void collective(struct peer *self, const void *argument, struct reply *reply)
{
    const struct call_job *job = argument;
    pcclPeerInfo_t me;
    if (peer_result(reply, pcclGetSelf(self->comm, &me)) != pcclSuccess) {
        return;
    }
    bool to_root = job->kind == REDUCE || job->kind == GATHER;
    size_t ins = reduces_parts(job->kind) || job->kind == SCATTER || job->kind == ALL_TO_ALL ? WORLD : 1;
    size_t outs = job->kind == ALL_GATHER || job->kind == GATHER || job->kind == ALL_TO_ALL ? WORLD : 1;
    float *in = malloc(ins * job->count * sizeof *in), *out = malloc(outs * job->count * sizeof *out);
    for (size_t i = 0; i < ins * job->count; i++) {
        in[i] = given(me.rank, ins > 1 ? (uint32_t)(i / job->count) : 0, i % job->count);
    }
    pcclResult_t rc = peer_result(reply, call(self, job, in, out));
    for (size_t i = 0; rc == pcclSuccess && (!to_root || me.rank == job->root) && i < outs * job->count; i++) {
        PEER_EXPECT(self, out[i] == wanted(job, me.rank, (uint32_t)(i / job->count), i % job->count));
    }
    free(in);
    free(out);
}

/* ---- Parts that only two know the size of -------------------------------------------------------------------------------------- */

enum { UNEVEN = 4, IN_FLIGHT = 2 * UNEVEN };

struct uneven_job {
    size_t count;   /* floats of a part, about */
    bool odd;       /* process 0 expects one more of each */
    int victim;     /* kills itself when its sockets have moved so many bytes */
    uint64_t after; /* 0: it does not */
};

/* Some parts are empty. */
static size_t amount(const struct uneven_job *job, int call, uint32_t from, uint32_t to)
{
    uint32_t mix = (uint32_t)call * 7 + from * 3 + to * 5;
    return mix % 4 == 0 ? 0 : job->count + mix;
}

struct uneven_call {
    size_t to[WORLD], from[WORLD], places_to[WORLD], places_from[WORLD]; /* of this member: what it gives and takes */
    float *in, *out;
    bool gives, takes;
    pcclAsyncOp_t op;
    pcclResult_t made;
};

/* Of UNEVEN calls the first is all-to-all, then scatter, gather, scatter, each of another root. */
static void begin(struct peer *self, struct uneven_call *c, const struct uneven_job *job, int call, uint32_t me, uint32_t world)
{
    int kind = call % UNEVEN;
    uint32_t root = (uint32_t)call % world;
    size_t ins = 0, outs = 0;
    for (uint32_t r = 0; r < world; r++) {
        bool goes = kind == 0 || (kind == 2 ? r == root : me == root), comes = kind == 0 || (kind == 2 ? me == root : r == root);
        c->to[r] = goes ? amount(job, call, me, r) : 0;
        c->from[r] = comes ? amount(job, call, r, me) + (job->odd && self->index == 0 && r != me) : 0;
        c->places_to[r] = ins;
        c->places_from[r] = outs;
        ins += c->to[r];
        outs += c->from[r];
    }
    c->in = malloc(ins * sizeof(float) + 1);
    c->out = malloc(outs * sizeof(float) + 1);
    for (uint32_t r = 0; r < world; r++) {
        for (size_t i = 0; i < c->to[r]; i++) {
            c->in[c->places_to[r] + i] = given(me, r, i);
        }
    }
    c->made = kind == 0   ? pcclAllToAllV(c->in, c->to, c->places_to, c->out, c->from, c->places_from, pcclFloat, self->comm, &c->op)
              : kind == 2 ? pcclGatherV(c->in, c->to[root], c->out, c->from, c->places_from, pcclFloat, root, self->comm, &c->op)
                          : pcclScatterV(c->in, c->to, c->places_to, c->out, c->from[root], pcclFloat, root, self->comm, &c->op);
}

static void uneven(struct peer *self, const void *argument, struct reply *reply)
{
    const struct uneven_job *job = argument;
    static struct uneven_call c[IN_FLIGHT];
    pcclPeerInfo_t me = {0};
    struct watch w = {0};
    int world = 0;
    pcclResult_t rc = peer_result(reply, pcclGetSelf(self->comm, &me)), one;
    PEER_EXPECT(self, pcclGetAttribute(self->comm, PCCL_ATTRIBUTE_GLOBAL_WORLD_SIZE, &world) == pcclSuccess && world <= WORLD);
    if (job->after > 0 && self->index == job->victim) {
        watch_start(&w, self, peer_socket_bytes, job->after, SIGKILL);
    }
    for (int i = 0; i < IN_FLIGHT; i++) {
        begin(self, &c[i], job, i, me.rank, (uint32_t)world);
    }
    for (int i = 0; i < IN_FLIGHT; i++) {
        one = c[i].made == pcclSuccess ? pcclAwaitAsync(&c[i].op, NULL) : c[i].made;
        for (uint32_t r = 0; one == pcclSuccess && r < (uint32_t)world; r++) {
            for (size_t k = 0; k < c[i].from[r]; k++) {
                PEER_EXPECT(self, c[i].out[c[i].places_from[r] + k] == given(r, me.rank, k));
            }
        }
        rc = rc == pcclSuccess ? one : rc;
        free(c[i].in);
        free(c[i].out);
    }
    peer_result(reply, rc);
}

/* Those with a link make a world of two, the other one is alone; a barrier there. */
static void split(struct peer *self, const void *argument, struct reply *reply)
{
    pcclComm_t *child = NULL;
    (void)argument;
    if (peer_result(reply, pcclSplitCommunicator(self->comm, self->index == 1, 0, NULL, &child)) == pcclSuccess) {
        int size = 0;
        PEER_EXPECT(self, pcclGetAttribute(child, PCCL_ATTRIBUTE_GLOBAL_WORLD_SIZE, &size) == pcclSuccess);
        PEER_EXPECT(self, size == (self->index == 1 ? 1 : 2));
        PEER_EXPECT(self, size == 1 || pcclBarrier(child, NULL) == pcclSuccess);
        PEER_EXPECT(self, pcclDestroyCommunicator(child) == pcclSuccess);
    }
}

/* Each puts a number and large bytes into the windows of both others, counts there, and says so; looks at what it was given. */
static void window(struct peer *self, const void *argument, struct reply *reply)
{
    enum { LARGE = 20000 };
    static uint64_t memory[WORLD][1 + LARGE], own[1 + LARGE];
    pcclWindow_t *made = NULL;
    pcclPeerInfo_t me;
    const pcclWindowParams_t params = {.size = sizeof params, .memory = memory, .bytes = sizeof memory, .rights = pcclWindowAll};
    (void)argument;
    memset(memory, 0, sizeof memory);
    if (peer_result(reply, pcclCreateWindow(&params, self->comm, &made)) != pcclSuccess) {
        return;
    }
    PEER_EXPECT(self, pcclGetSelf(self->comm, &me) == pcclSuccess);
    for (size_t i = 0; i <= LARGE; i++) {
        own[i] = me.rank * 1000003 + i;
    }
    for (uint32_t r = 0; r < WORLD; r++) {
        const uint64_t one = 1;
        uint64_t before = 7;
        if (r != me.rank) {
            PEER_EXPECT(self, pcclPut(own, sizeof own, r, me.rank * sizeof own, made, NULL) == pcclSuccess);
            PEER_EXPECT(self, pcclFetchAdd(&before, &one, pcclUint64, r, r * sizeof own, made, NULL) == pcclSuccess && before < 2);
            PEER_EXPECT(self, pcclSignal(r, made, NULL) == pcclSuccess);
        }
    }
    for (uint32_t r = 0; r < WORLD; r++) {
        PEER_EXPECT(self, r == me.rank || pcclWaitSignal(r, made, -1, NULL) == pcclSuccess);
        for (size_t i = 0; r != me.rank && i <= LARGE; i++) {
            PEER_EXPECT(self, memory[r][i] == r * 1000003 + i);
        }
    }
    PEER_EXPECT(self, memory[me.rank][0] == WORLD - 1);
    peer_result(reply, pcclDestroyWindow(made));
}

struct message_job {
    size_t count;   /* floats */
    bool any;       /* whom a receive is from is not said */
    uint64_t after; /* process 2 kills itself when its sockets have moved so many bytes; 0: it does not */
};

/* Everybody sends to everybody; what has succeeded is right in every element. */
static void messages(struct peer *self, const void *argument, struct reply *reply)
{
    const struct message_job *job = argument;
    size_t bytes = job->count * sizeof(float);
    pcclPeerInfo_t me = {0};
    float *in = malloc(WORLD * bytes), *out = malloc(WORLD * bytes);
    pcclResult_t rc = pcclGetSelf(self->comm, &me), made[2 * WORLD] = {pcclSuccess};
    pcclAsyncOp_t op[2 * WORLD];
    struct watch w = {0};
    if (job->after > 0 && self->index == 2) {
        watch_start(&w, self, peer_socket_bytes, job->after, SIGKILL);
    }
    for (uint32_t r = 0; r < WORLD; r++) {
        uint64_t mine = job->any ? 100 + me.rank : 5, theirs = job->any ? 100 + r : 5;
        for (size_t i = 0; i < job->count; i++) {
            in[r * job->count + i] = given(me.rank, r, i);
        }
        made[2 * r] = made[2 * r + 1] = pcclInvalidArgument;
        if (r != me.rank) {
            made[2 * r] = pcclSend(&in[r * job->count], job->count, pcclFloat, r, mine, self->comm, &op[2 * r]);
            made[2 * r + 1] = pcclReceive(&out[r * job->count], job->count, pcclFloat, job->any ? PCCL_ANY_RANK : r, theirs, NULL, self->comm,
                                          &op[2 * r + 1]);
        }
    }
    for (uint32_t i = 0; i < 2 * WORLD; i++) {
        pcclResult_t one = i / 2 == me.rank ? pcclSuccess : made[i] == pcclSuccess ? pcclAwaitAsync(&op[i], NULL) : made[i];
        for (size_t k = 0; one == pcclSuccess && i % 2 == 1 && i / 2 != me.rank && k < job->count; k++) {
            PEER_EXPECT(self, out[i / 2 * job->count + k] == given(i / 2, me.rank, k));
        }
        rc = rc == pcclSuccess ? one : rc;
    }
    peer_result(reply, rc);
    free(in);
    free(out);
}

static void everybody_sends(struct processes *all, const struct message_job *job)
{
    struct reply reply[PROCESSES_MOST];
    processes_do(all, 7, messages, job, sizeof *job, reply);
    for (int i = 0; i < WORLD; i++) {
        EXPECT_EQ(reply[i].result, pcclSuccess);
        if (reply[i].result != pcclSuccess) {
            printf("# peer %d: %s\n", i, reply[i].text);
        }
    }
}

/* The same result at all; those of cut links are called again. */
static int everybody(struct processes *all, const struct call_job *job)
{
    struct reply reply[PROCESSES_MOST];
    for (int errors = 0;; errors++) {
        processes_do(all, 7, collective, job, sizeof *job, reply);
        EXPECT(reply[1].result == reply[0].result && reply[2].result == reply[0].result);
        if (reply[0].result != pcclRankConnectionLost || errors > 6 || test_failures != 0) {
            for (int i = 0; i < WORLD && (test_failures != 0 || reply[i].result != pcclSuccess); i++) {
                printf("# peer %d: %s\n", i, reply[i].text);
            }
            return reply[0].result;
        }
    }
}

/* The same result at all of the set; those of cut links are called again. */
static int uneven_calls(struct processes *all, unsigned set, const struct uneven_job *job)
{
    struct reply reply[PROCESSES_MOST];
    for (int errors = 0;; errors++) {
        processes_do(all, set, uneven, job, sizeof *job, reply);
        EXPECT(reply[2].result == reply[0].result && ((set & 2) == 0 || reply[1].result == reply[0].result));
        if (reply[0].result != pcclRankConnectionLost || errors > 6 || test_failures != 0) {
            if (reply[0].result != pcclSuccess) {
                printf("# peer 0: %s\n", reply[0].text);
            }
            return reply[0].result;
        }
    }
}

/* Hosts of which the first two cannot reach each other, as soon as a call has gone round them. */
static bool start_apart(struct network *net, struct processes *all)
{
    const char *why = network_start(net, WORLD);
    test_skipped = why != NULL ? why : test_skipped;
    if (why != NULL) {
        return false;
    }
    if (!peers_start_on(all, net, &(struct processes_options){.count = WORLD, .failures = &test_failures, .pool = 2, .stall_ms = 800,
                                                              .dead_ms = "800", .loss_ms = 20000})) {
        network_stop(net);
        return false;
    }
    EXPECT(network_drop(net, 0, 1, true) && network_drop(net, 1, 0, true));
    EXPECT_EQ(everybody(all, &(struct call_job){.kind = ALL_TO_ALL, .count = 100000}), pcclSuccess);
    return true;
}

static void stop(struct network *net, struct processes *all)
{
    processes_stop(all);
    network_stop(net);
}

TEST(two_that_cannot_reach_each_other_gather_scatter_reduce_split_send_and_make_windows) /* all but all-reduce was InvalidUsage */
{
    struct network net;
    struct processes all;
    struct reply reply[PROCESSES_MOST];
    if (!start_apart(&net, &all)) {
        return;
    }
    for (int kind = 0; kind < KINDS; kind++) {
        for (uint32_t root = 0; root < (kind == BROADCAST || (kind >= REDUCE && kind != ALL_TO_ALL) ? WORLD : 1); root++) {
            EXPECT_EQ(everybody(&all, &(struct call_job){.kind = (enum kind)kind, .count = 3, .root = root}), pcclSuccess);
            EXPECT_EQ(everybody(&all, &(struct call_job){.kind = (enum kind)kind, .count = 300000, .root = root}), pcclSuccess);
        }
    }
    processes_do(&all, 7, split, NULL, 0, reply);
    for (int i = 0; i < WORLD; i++) {
        EXPECT_EQ(reply[i].result, pcclSuccess);
        if (reply[i].result != pcclSuccess) {
            printf("# peer %d: %s\n", i, reply[i].text);
        }
    }
    processes_do(&all, 7, window, NULL, 0, reply);
    for (int i = 0; i < WORLD; i++) {
        EXPECT_EQ(reply[i].result, pcclSuccess);
    }
    for (int i = 0; i < 4; i++) {
        everybody_sends(&all, &(struct message_job){.count = i < 2 ? 3 : 300000, .any = i % 2 == 1});
    }
    processes_send(&all, 7, messages, &(struct message_job){.count = 2000000, .after = 3 << 20}, sizeof(struct message_job));
    process_wait_killed(&all, 2); /* who carries what the two say */
    processes_take(&all, 3, reply);
    EXPECT(reply[0].result != pcclSuccess && reply[1].result != pcclSuccess);
    stop(&net, &all);
}

TEST(two_that_cannot_reach_each_other_make_calls_whose_parts_only_two_know_the_size_of) /* they were InvalidUsage */
{
    struct network net;
    struct processes all;
    struct reply reply[PROCESSES_MOST];
    if (!start_apart(&net, &all)) {
        return;
    }
    EXPECT_EQ(uneven_calls(&all, 7, &(struct uneven_job){.count = 3}), pcclSuccess);
    EXPECT_EQ(uneven_calls(&all, 7, &(struct uneven_job){.count = 100000}), pcclSuccess);
    EXPECT_EQ(uneven_calls(&all, 7, &(struct uneven_job){.count = 1000, .odd = true}), pcclInvalidArgument);
    EXPECT_EQ(uneven_calls(&all, 7, &(struct uneven_job){.count = 1000}), pcclSuccess);
    struct uneven_job dies = {.count = 500000, .victim = 1, .after = 3 << 20};
    processes_send(&all, 7, uneven, &dies, sizeof dies);
    process_wait_killed(&all, 1); /* one of the two */
    processes_take(&all, 5, reply);
    EXPECT_EQ(reply[0].result, pcclRankConnectionLost);
    EXPECT_EQ(reply[2].result, pcclRankConnectionLost);
    EXPECT_EQ(uneven_calls(&all, 5, &(struct uneven_job){.count = 100000}), pcclSuccess);
    stop(&net, &all);
}

TEST(calls_whose_parts_only_two_know_the_size_of_end_at_both_when_the_third_is_lost)
{
    struct network net;
    struct processes all;
    struct reply reply[PROCESSES_MOST];
    if (!start_apart(&net, &all)) {
        return;
    }
    struct uneven_job dies = {.count = 500000, .victim = 2, .after = 3 << 20};
    processes_send(&all, 7, uneven, &dies, sizeof dies);
    process_wait_killed(&all, 2); /* who passes on what the two say */
    processes_take(&all, 3, reply);
    EXPECT(reply[0].result != pcclSuccess && reply[1].result != pcclSuccess);
    stop(&net, &all);
}
