/* test_world_stall.c - a process stops that is in two worlds of one master: each notices after its own stall time.
 * SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#include "tests/testing.h"

#include <stdlib.h>

#include "tests/fault/peer_calls.h"

enum { MEMBERS = 3, VICTIM = 2, COUNT = 32, QUICK_MS = 2000 /* half of it is a pause of whoever judges (M7) */, HOUR_MS = 3600000 };

struct two {
    pcclComm_t *quick, *slow;
    pcclAsyncReduceOp_t waits; /* in the slow one */
    float in[COUNT], out[COUNT];
};

/* Of the quick world one member says so; the other two have nothing against an hour. */
static pcclComm_t *create(struct peer *self, const char *name, uint32_t stall_ms)
{
    pcclCommCreateParamsEx_t params = {
        .size = sizeof params, .world = name, .world_size = MEMBERS, .rank = (uint32_t)self->index,
        .loss_rule = PCCL_LOSS_SHRINK, .stall_ms = stall_ms};
    return peer_world(self, &params);
}

static void create_both(struct peer *self, const void *argument, struct reply *reply)
{
    struct two *w = self->own = calloc(1, sizeof *w);
    (void)argument;
    w->quick = create(self, "quick", self->index == 0 ? QUICK_MS : HOUR_MS);
    w->slow = create(self, "slow", HOUR_MS);
    peer_result(reply, pcclSuccess);
}

static bool summed(const float *out, int parts)
{
    size_t right = 0;
    for (size_t i = 0; i < COUNT; i++) {
        right += out[i] == (float)parts * (float)(i + 1);
    }
    return right == COUNT;
}

/* Launches in the slow world; the result of the same in the quick one.  value[0]: whether the first has ended by then. */
static void reduce_in_both(struct peer *self, const void *argument, struct reply *reply)
{
    struct two *w = self->own;
    const pcclReduceDescriptor_t d = peer_floats(COUNT, 1);
    float out[COUNT];
    bool done = false;
    (void)argument;
    for (size_t i = 0; i < COUNT; i++) {
        w->in[i] = (float)(self->index + 1) * (float)(i + 1);
    }
    PEER_EXPECT(self, pcclAllReduceAsync(w->in, w->out, &d, w->slow, &w->waits) == pcclSuccess);
    peer_result(reply, pcclAllReduce(w->in, out, &d, w->quick, NULL));
    PEER_EXPECT(self, pcclTestAsyncReduce(&w->waits, &done) == pcclSuccess);
    reply->value[0] = done;
}

/* The end of what was launched in the slow world; value[0]: the sum is that of three. */
static void await_slow(struct peer *self, const void *argument, struct reply *reply)
{
    struct two *w = self->own;
    (void)argument;
    peer_result(reply, pcclAwaitAsyncReduce(&w->waits, NULL));
    reply->value[0] = summed(w->out, 6);
}

static void reduce_quick(struct peer *self, const void *argument, struct reply *reply)
{
    struct two *w = self->own;
    const pcclReduceDescriptor_t d = peer_floats(COUNT, 1);
    float out[COUNT];
    (void)argument;
    peer_result(reply, pcclAllReduce(w->in, out, &d, w->quick, NULL));
    reply->value[0] = summed(out, 3);
}

TEST(a_stopped_process_is_missed_after_the_stall_time_of_each_of_its_worlds) /* one time for all of a master's, or each member by its own */
{
    struct processes all;
    struct reply reply[PROCESSES_MOST];
    struct processes_options o = {.count = MEMBERS, .failures = &test_failures, .dead_ms = "3600000"};
    unsigned left = processes_set(MEMBERS) & ~(1u << VICTIM);
    if (!processes_start(&all, &o)) {
        return;
    }
    processes_do(&all, processes_set(MEMBERS), create_both, NULL, 0, NULL);
    process_signal(&all, VICTIM, SIGSTOP);
    processes_do(&all, left, reduce_in_both, NULL, 0, reply);
    for (int i = 0; i < VICTIM; i++) {
        EXPECT_EQ(reply[i].result, pcclRankConnectionLost);
        EXPECT_EQ(reply[i].value[0], 0); /* nobody has taken it for dead in the other one */
    }
    processes_do(&all, left, reduce_quick, NULL, 0, reply);
    for (int i = 0; i < VICTIM; i++) {
        EXPECT(reply[i].result == pcclSuccess && reply[i].value[0] == 1);
    }
    process_signal(&all, VICTIM, SIGCONT);
    EXPECT_EQ(process_do(&all, VICTIM, reduce_in_both, NULL, 0).result, pcclMasterConnectionFailed);
    processes_do(&all, processes_set(MEMBERS), await_slow, NULL, 0, reply);
    for (int i = 0; i < MEMBERS; i++) {
        EXPECT(reply[i].result == pcclSuccess && reply[i].value[0] == 1);
    }
    processes_stop(&all);
}
