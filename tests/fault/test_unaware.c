/* test_unaware.c - a member dies, and the others go on calling for the members that they know.
 * SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#include <sched.h>

#include "tests/testing.h"

#include "tests/fault/peer_calls.h"

enum { CALLS = 400, VICTIM = 2 };

/* One of the members that the program knows is lost, as far as the library has heard. */
static bool one_is_lost(struct peer *self)
{
    pcclPeerInfo_t members[VICTIM + 1] = {0};
    size_t count = 0;
    bool lost = false;
    PEER_EXPECT(self, pcclGetMembers(self->comm, members, VICTIM + 1, &count) == pcclSuccess && count == VICTIM + 1);
    for (size_t i = 0; i < count; i++) {
        lost = lost || members[i].lost;
    }
    return lost;
}

/* value[0]: how many of them failed; value[1]: of these, other causes than a lost peer; value[2]: result of the call after them. */
static void call_on(struct peer *self, const void *argument, struct reply *reply)
{
    static pcclAsyncOp_t op[CALLS];
    static float out[CALLS];
    float in = (float)(1 << self->index), sum = 0;
    (void)argument;
    while (!one_is_lost(self)) {
        sched_yield();
    }
    for (int i = 0; i < CALLS; i++) {
        PEER_EXPECT(self, pcclAllReduceOrdered(&in, &out[i], 1, pcclFloat, pcclSum, self->comm, &op[i]) == pcclSuccess);
    }
    for (int i = 0; i < CALLS; i++) {
        pcclResult_t result = pcclAwaitAsync(&op[i], NULL);
        pcclErrorInfo_t why = {0};
        pcclGetLastErrorInfo(&why);
        reply->value[0] += result != pcclSuccess;
        reply->value[1] += result != pcclSuccess && (result != pcclRankConnectionLost || why.cause != pcclCausePeerLost);
    }
    reply->value[2] = pcclAllReduceOrdered(&in, &sum, 1, pcclFloat, pcclSum, self->comm, NULL);
    PEER_EXPECT(self, sum == (1 << VICTIM) - 1);
}

TEST(hundreds_of_calls_for_a_member_that_has_died_fail_and_the_next_one_has_its_values) /* from the 65th on all hung for ever */
{
    struct processes all;
    struct processes_options o = {.count = VICTIM + 1, .failures = &test_failures, .pool = 1};
    struct reply reply[PROCESSES_MOST];
    if (!peers_start(&all, &o)) {
        return;
    }
    processes_send(&all, processes_set(VICTIM), call_on, NULL, 0);
    process_signal(&all, VICTIM, SIGKILL);
    processes_take(&all, processes_set(VICTIM), reply);
    for (int i = 0; i < VICTIM; i++) {
        EXPECT_EQ(reply[i].value[0], CALLS);
        EXPECT_EQ(reply[i].value[1], 0);
        EXPECT_EQ(reply[i].value[2], pcclSuccess);
    }
    processes_stop(&all);
}
