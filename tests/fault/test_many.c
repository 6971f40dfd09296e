/* test_many.c - many operations: in flight at once, in any order, retried in bulk, one after the other for long.
 * SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#include "tests/testing.h"

#include "tests/fault/peer_calls.h"

enum { OPS = 64, BULK = 8, BULK_COUNT = 1 << 20 };

static bool start(struct processes *all, int count, uint32_t pool)
{
    return peers_start(all, &(struct processes_options){.count = count, .failures = &test_failures, .pool = pool});
}

/* Launches the k-th of 64 operations in an order of its own: forwards, backwards, in steps of 27. */
static void launch_in_own_order(struct peer *self, const void *argument, struct reply *reply)
{
    size_t count = *(const size_t *)argument;
    float *in = peer_buffer(self, 0, OPS * count * sizeof(float)), *out = peer_buffer(self, 1, OPS * count * sizeof(float));
    pcclAsyncReduceOp_t handle[OPS];
    for (int n = 0; n < OPS; n++) {
        int k = self->index == 0 ? n : self->index == 1 ? OPS - 1 - n : n * 27 % OPS;
        for (size_t i = 0; i < count; i++) {
            in[(size_t)k * count + i] = job_value(self->index, i, (uint64_t)k);
        }
        pcclReduceDescriptor_t d = peer_floats(count, (uint64_t)k);
        PEER_EXPECT(self, pcclAllReduceAsync(in + (size_t)k * count, out + (size_t)k * count, &d, self->comm,
                                             &handle[k]) == pcclSuccess);
    }
    for (int k = 0; k < OPS; k++) {
        PEER_EXPECT(self, pcclAwaitAsyncReduce(&handle[k], NULL) == pcclSuccess);
        for (size_t i = 0; i < count; i++) {
            PEER_EXPECT(self, out[(size_t)k * count + i] == job_sum(7, i, (uint64_t)k));
        }
    }
    (void)reply;
}

TEST(operations_launched_in_opposite_orders_all_complete) /* R14 */
{
    for (uint32_t pool = 1; pool <= 4; pool += 3) {
        struct processes all;
        if (!start(&all, 3, pool)) {
            return;
        }
        for (size_t count = 1000; count <= 1 << 18; count <<= 9) {
            count = count > 1000 ? 1 << 18 : count; /* eager ones, then 64 of a megabyte */
            processes_do(&all, 7, launch_in_own_order, &count, sizeof count, NULL);
        }
        processes_stop(&all);
    }
}

struct bulk {
    int window, victim;
};

/* R1.  Each of the 8 results must be the sum over four or over three, the same on all survivors (value[k]). */
static void bulk_retry(struct peer *self, const void *argument, struct reply *reply)
{
    struct bulk b;
    struct watch watch;
    memcpy(&b, argument, sizeof b);
    float *in = peer_buffer(self, 0, (size_t)BULK * BULK_COUNT * sizeof(float));
    float *out = peer_buffer(self, 1, (size_t)BULK * BULK_COUNT * sizeof(float));
    pcclReduceOpDescriptor_t op[BULK];
    for (int k = 0; k < BULK; k++) {
        float *x = in + (size_t)k * BULK_COUNT, *y = k % 2 == 0 ? x : out + (size_t)k * BULK_COUNT;
        for (size_t i = 0; i < BULK_COUNT; i++) {
            x[i] = job_value(self->index, i, (uint64_t)k);
        }
        op[k] = (pcclReduceOpDescriptor_t){x, y, peer_floats(BULK_COUNT, (uint64_t)k)};
    }
    if (self->index == b.victim) {
        watch_start(&watch, self, peer_moved, 20 << 20, SIGKILL); /* of 48 MB in all */
    }
    pcclReduceInfo_t info = {0};
    peer_result(reply, pcclAllReduceMultipleWithRetry(op, BULK, self->comm, &info, b.window));
    if (self->index == b.victim) {
        watch_end(&watch);
    }
    PEER_EXPECT(self, reply->result == (int)pcclSuccess && info.local_world_size == 3);
    for (int k = 0; k < BULK; k++) {
        const float *y = op[k].recvbuf;
        unsigned members = y[0] == job_sum(15, 0, (uint64_t)k) && y[1] == job_sum(15, 1, (uint64_t)k) ? 15 : 7;
        for (size_t i = 0; i < BULK_COUNT; i++) {
            PEER_EXPECT(self, y[i] == job_sum(members, i, (uint64_t)k));
        }
        reply->value[k] = members;
    }
    reply->value[BULK] = (int64_t)info.tx_bytes;
    /* nothing is left in flight */
    PEER_EXPECT(self, pcclUpdateTopology(self->comm) == pcclSuccess);
}

TEST(bulk_retry_returns_success_only_if_every_operation_is_complete)
{
    for (int window = 1; window <= BULK; window += BULK - 1) {
        struct processes all;
        if (!start(&all, 4, 1)) {
            return;
        }
        struct bulk b = {window, 3};
        struct reply reply[PROCESSES_MOST];
        processes_send(&all, 15, bulk_retry, &b, sizeof b);
        process_wait_killed(&all, 3);
        processes_take(&all, 7, reply);
        int over_three = 0;
        int64_t least = 0, most = 0;
        for (int k = 0; k < BULK; k++) {
            EXPECT_EQ(reply[1].value[k], reply[0].value[k]);
            EXPECT_EQ(reply[2].value[k], reply[0].value[k]);
            over_three += reply[0].value[k] == 7;
            /* 2 (W - 1) / W; what the fourth was still to be sent of a result may be missing, what it had to add may not */
            most += BULK_COUNT * 4 * (reply[0].value[k] == 7 ? 16 : 18) / 12;
            least += BULK_COUNT * 4 * (reply[0].value[k] == 7 ? 16 : 15) / 12;
        }
        EXPECT(over_three > 0);
        for (int i = 0; i < 3; i++) {
            EXPECT_EQ(reply[i].result, pcclSuccess);
            EXPECT(reply[i].value[BULK] >= least - least / 50 && reply[i].value[BULK] <= most + most / 50);
        }
        processes_stop(&all);
    }
}

/* ---- Nothing grows (R26) --------------------------------------------------------------------------------------------- */

struct series {
    uint64_t first_tag;
    int rounds;
};

/* 64 at once, each with a tag never used before; some are too large to go with their launch. */
static void many_reduces(struct peer *self, const void *argument, struct reply *reply)
{
    enum { AT_ONCE = 64, LARGE = 8000 };
    struct series s;
    memcpy(&s, argument, sizeof s);
    float in[AT_ONCE], out[AT_ONCE], *large = peer_buffer(self, 0, 2 * LARGE * sizeof(float));
    memset(large, 0, 2 * LARGE * sizeof(float));
    uint64_t tag = s.first_tag;
    for (int round = 0; round < s.rounds; round++) {
        pcclAsyncReduceOp_t handle[AT_ONCE];
        for (int k = 0; k < AT_ONCE; k++, tag++) {
            bool big = k == 0 && round % 16 == 0;
            in[k] = (float)(tag % 1000) + (float)self->index;
            pcclReduceDescriptor_t d = peer_floats(big ? LARGE : 1, tag);
            PEER_EXPECT(self, pcclAllReduceAsync(big ? large : &in[k], big ? large + LARGE : &out[k], &d, self->comm,
                                                 &handle[k]) == pcclSuccess);
        }
        for (int k = 0; k < AT_ONCE; k++) {
            PEER_EXPECT(self, pcclAwaitAsyncReduce(&handle[k], NULL) == pcclSuccess);
            PEER_EXPECT(self, (k == 0 && round % 16 == 0) || out[k] == 2 * (in[k] - (float)self->index) + 1);
        }
    }
    reply->value[0] = peer_resident();
    reply->value[1] = spawn_entries("/proc/self/fd");
}

TEST(memory_and_descriptors_stay_flat_over_a_hundred_thousand_reduces_with_fresh_tags)
{
    struct processes all;
    if (!start(&all, 2, 1)) {
        return;
    }
    struct reply warm[PROCESSES_MOST], end[PROCESSES_MOST];
    struct series s = {.first_tag = 1, .rounds = 100};
    processes_do(&all, 3, many_reduces, &s, sizeof s, warm);
    s = (struct series){.first_tag = 1000000, .rounds = (int)test_scaled(test_scaled(100000 / 64 + 1))};
    processes_do(&all, 3, many_reduces, &s, sizeof s, end);
    for (int i = 0; i < 2; i++) {
        /* the tag table, at most half empty, and old one beside new while it grows: docs/guide/DEPLOY.md says what a tag costs */
        EXPECT(end[i].value[0] - warm[i].value[0] <= 100000 * 24 * 4 || getenv("PCCL_SANITIZED") != NULL);
        EXPECT_EQ(end[i].value[1], warm[i].value[1]);
    }
    processes_do(&all, 3, peer_update, NULL, 0, NULL);
    processes_stop(&all);
}

/* ---- What an idle peer holds ------------------------------------------------------------------------------------------ */

static void resident(struct peer *self, const void *argument, struct reply *reply)
{
    (void)self;
    (void)argument;
    reply->value[0] = peer_resident();
}

TEST(idle_peer_in_a_world_of_three_is_small) /* 25 MB of tables for the most that may ever be in flight */
{
    struct processes all;
    struct reply reply[PROCESSES_MOST];
    if (!start(&all, 3, 1)) {
        return;
    }
    processes_do(&all, 7, peer_update, NULL, 0, NULL);
    processes_do(&all, 7, resident, NULL, 0, reply);
    for (int i = 0; i < 3; i++) {
        printf("# an idle peer in a world of 3 holds %lld bytes\n", (long long)reply[i].value[0]);
        EXPECT(reply[i].value[0] <= 8 << 20 || getenv("PCCL_SANITIZED") != NULL);
    }
    processes_stop(&all);
}
