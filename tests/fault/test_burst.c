/* test_burst.c - a thousand calls at once, and a death among them.
 * SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#include "tests/testing.h"

#include "tests/fault/peer_calls.h"

enum { CALLS = 1000, FLOATS = 4096, VICTIM = 3, BEFORE_DEATH = 300 };

/* Launches those of `todo` that are set, awaits them all; what was lost stays set.  Returns how many were. */
static int burst(struct peer *self, bool *todo, float *in, float *out)
{
    static pcclAsyncReduceOp_t handle[CALLS];
    int lost = 0;
    for (int k = 0; k < CALLS; k++) {
        if (self->index == VICTIM && k == BEFORE_DEATH) {
            raise(SIGKILL);
        }
        pcclReduceDescriptor_t d = peer_floats(FLOATS, (uint64_t)k);
        if (todo[k]) {
            PEER_EXPECT(self, pcclAllReduceAsync(in, out + (size_t)k * FLOATS, &d, self->comm, &handle[k]) == pcclSuccess);
        }
    }
    for (int k = 0; k < CALLS; k++) {
        if (!todo[k]) {
            continue;
        }
        pcclResult_t result = pcclAwaitAsyncReduce(&handle[k], NULL);
        PEER_EXPECT(self, result == pcclSuccess || result == pcclRankConnectionLost);
        todo[k] = result != pcclSuccess;
        lost += todo[k];
        unsigned members = k < BEFORE_DEATH && out[(size_t)k * FLOATS] == job_sum(15, 0, 0) ? 15 : 7;
        for (size_t i = 0; i < FLOATS && !todo[k]; i++) {
            PEER_EXPECT(self, out[(size_t)k * FLOATS + i] == job_sum(members, i, 0));
        }
    }
    return lost;
}

/* value[0]: hash of which calls the death has cost; value[1]: how many; value[2]: lost again when called once more. */
static void burst_and_again(struct peer *self, const void *argument, struct reply *reply)
{
    static bool todo[CALLS];
    float *in = peer_buffer(self, 0, FLOATS * sizeof(float));
    float *out = peer_buffer(self, 1, (size_t)CALLS * FLOATS * sizeof(float));
    for (size_t i = 0; i < FLOATS; i++) {
        in[i] = job_value(self->index, i, 0);
    }
    memset(todo, 1, sizeof todo);
    reply->value[1] = burst(self, todo, in, out);
    uint64_t hash = 0;
    for (int k = 0; k < CALLS; k++) {
        hash = hash * 31 + todo[k];
    }
    reply->value[0] = (int64_t)hash;
    reply->value[2] = burst(self, todo, in, out);
    (void)argument;
}

TEST(a_death_among_a_thousand_calls_costs_all_the_same_ones_and_a_second_call_has_them) /* G1, G4: the survivors' sessions failed */
{
    for (int round = 0; round < 2; round++) {
        struct processes all;
        struct processes_options o = {.count = 4, .failures = &test_failures, .pool = 1};
        if (!processes_start(&all, &o)) {
            return;
        }
        processes_do(&all, processes_set(4), peer_join, &o.count, sizeof o.count, NULL);
        struct reply reply[PROCESSES_MOST];
        processes_send(&all, 15, burst_and_again, NULL, 0);
        process_wait_killed(&all, VICTIM);
        processes_take(&all, 7, reply);
        for (int i = 0; i < 3; i++) {
            EXPECT(reply[i].value[1] > 0);
            EXPECT_EQ(reply[i].value[0], reply[0].value[0]);
            EXPECT_EQ(reply[i].value[2], 0);
        }
        processes_stop(&all);
    }
}
