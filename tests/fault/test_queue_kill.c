/* test_queue_kill.c - a process dies while another's thread waits at a completion queue: each operation is delivered once, with its error.
 * SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#include "tests/testing.h"

#include <stdatomic.h>

#include "tests/fault/peer_calls.h"

enum { OPS = 20, VICTIM = 2, COUNT = 5000 };

/* Launches and attaches all; what the victim never launches cannot end but by its death. */
static void launch_and_wait(struct peer *self, const void *argument, struct reply *reply)
{
    pcclCompletionQueue_t *q = NULL;
    pcclAsyncOp_t op[OPS];
    pcclCompletion_t got[OPS];
    int times[OPS] = {0};
    size_t count = 0;
    float *x = peer_buffer(self, 0, OPS * COUNT * sizeof *x);
    (void)argument;
    for (size_t i = 0; i < OPS * COUNT; i++) {
        x[i] = job_value(self->index, i, 1);
    }
    PEER_EXPECT(self, pcclCreateCompletionQueue(&q) == pcclSuccess);
    for (size_t i = 0; i < OPS; i++) { /* in place: all inputs are to be as they were */
        PEER_EXPECT(self, pcclAllReduceOrdered(x + i * COUNT, x + i * COUNT, COUNT, pcclFloat, pcclSum, self->comm, &op[i]) ==
                              pcclSuccess);
        PEER_EXPECT(self, pcclQueueAttach(q, &op[i], i) == pcclSuccess);
    }
    peer_note(self, 1);
    for (size_t n = 0; n < OPS; n += count) {
        pcclResult_t rc = pcclQueueWait(q, got, 7, 30000, &count);
        PEER_EXPECT(self, rc == pcclSuccess && count > 0);
        if (rc != pcclSuccess || count == 0) {
            break;
        }
        for (size_t i = 0; i < count; i++) {
            times[got[i].cookie]++;
            PEER_EXPECT(self, got[i].result == pcclRankConnectionLost && got[i].error.cause == pcclCausePeerLost &&
                                  got[i].error.peer != 0);
            reply->value[0] += got[i].result == pcclRankConnectionLost;
        }
    }
    for (size_t i = 0; i < OPS; i++) {
        PEER_EXPECT(self, times[i] == 1);
        PEER_EXPECT(self, pcclAwaitAsync(&op[i], NULL) == pcclRankConnectionLost);
    }
    for (size_t i = 0; i < OPS * COUNT; i++) {
        PEER_EXPECT(self, x[i] == job_value(self->index, i, 1));
    }
    PEER_EXPECT(self, pcclQueueWait(q, got, 7, 0, &count) == pcclSuccess && count == 0);
    PEER_EXPECT(self, pcclDestroyCompletionQueue(q) == pcclSuccess);
}

TEST(a_death_ends_all_that_a_queue_waits_for_each_once) /* a completion thread waits for ever, or finishes one twice */
{
    struct processes all;
    struct processes_options options = {.count = 3, .failures = &test_failures};
    struct reply replies[PROCESSES_MOST];
    unsigned others = processes_set(VICTIM);
    if (!peers_start(&all, &options)) {
        return;
    }
    processes_send(&all, others, launch_and_wait, NULL, 0);
    for (int i = 0; i < VICTIM; i++) {
        EXPECT_EQ(process_note(&all, i), 1);
    }
    process_signal(&all, VICTIM, SIGKILL);
    processes_take(&all, others, replies);
    for (int i = 0; i < VICTIM; i++) {
        EXPECT(replies[i].failures == 0 && replies[i].value[0] == OPS);
    }
    processes_stop(&all);
}
