/* test_connect_async.c - connects that nobody waits in: many worlds brought up by one thread; errors, cancels and ends of such handles.
 * SPDX-License-Identifier: MIT */
#include "tests/testing.h"

#include <string.h>

#include "tests/e2e/cluster.h"

enum { WORLDS = 7, SIZE = 2, PEERS = WORLDS * SIZE };

static void world(struct cluster *c, int index, const char *name, uint32_t size, uint32_t rank)
{
    cluster_create_ex(c, index, (pcclCommCreateParamsEx_t){.world = name, .world_size = size, .rank = rank});
}

TEST(one_thread_brings_many_worlds_up)
{
    struct cluster c;
    pcclAsyncOp_t op[PEERS];
    pcclCompletionQueue_t *queue;
    float in[PEERS], out[PEERS] = {0};
    bool told[PEERS] = {false};
    cluster_master(&c);
    EXPECT_EQ(pcclCreateCompletionQueue(&queue), pcclSuccess);
    for (uint32_t i = 0; i < PEERS; i++) {
        char name[] = {'w', (char)('a' + i / SIZE), 0};
        world(&c, (int)i, name, SIZE, SIZE - 1 - i % SIZE);
        EXPECT_EQ(pcclConnectAsync(c.peer[i].comm, &op[i]), pcclSuccess);
        EXPECT_EQ(pcclQueueAttach(queue, &op[i], i), pcclSuccess);
    }
    for (uint32_t n = 0; n < PEERS;) {
        pcclCompletion_t got[PEERS];
        size_t count = 0;
        EXPECT_EQ(pcclQueueWait(queue, got, PEERS, -1, &count), pcclSuccess);
        for (size_t i = 0; i < count; i++, n++) {
            EXPECT(got[i].result == pcclSuccess && !told[got[i].cookie]);
            told[got[i].cookie] = true;
        }
    }
    for (uint32_t i = 0; i < PEERS; i++) {
        EXPECT_EQ(pcclAwaitAsync(&op[i], NULL), pcclSuccess);
        EXPECT_EQ(pcclAwaitAsync(&op[i], NULL), pcclInvalidUsage); /* spent */
        EXPECT_EQ(cluster_size(c.peer[i].comm, PCCL_ATTRIBUTE_GLOBAL_WORLD_SIZE), SIZE);
        in[i] = (float)i;
        EXPECT_EQ(pcclAllReduceOrdered(&in[i], &out[i], 1, pcclFloat, pcclSum, c.peer[i].comm, &op[i]), pcclSuccess);
    }
    for (uint32_t i = 0; i < PEERS; i++) {
        EXPECT_EQ(pcclAwaitAsync(&op[i], NULL), pcclSuccess);
        EXPECT_EQ(out[i], (float)(i / SIZE * 2 * SIZE + 1));
    }
    EXPECT_EQ(pcclDestroyCompletionQueue(queue), pcclSuccess);
    cluster_stop(&c);
}

TEST(who_gives_a_connect_up_may_call_it_again)
{
    struct cluster c;
    pcclAsyncOp_t op, other;
    pcclErrorInfo_t why;
    pcclCompletion_t end;
    bool done = true;
    cluster_master(&c);
    world(&c, 0, "w", 2, 0);
    world(&c, 1, "w", 2, 1);
    EXPECT_EQ(pcclConnectAsync(NULL, &op), pcclInvalidArgument);
    EXPECT_EQ(pcclConnectAsync(c.peer[0].comm, NULL), pcclInvalidArgument);
    for (int round = 0; round < 3; round++) {
        EXPECT_EQ(pcclConnectAsync(c.peer[0].comm, &op), pcclSuccess);
        EXPECT_EQ(pcclWaitAsync(&op, 20, &end, &done), pcclSuccess);
        EXPECT(!done); /* rank 1 is not there */
        EXPECT_EQ(pcclConnect(c.peer[0].comm), pcclInvalidUsage);
        EXPECT(strstr(pcclGetLastError(), "pcclConnectAsync is under way") != NULL);
        EXPECT_EQ(pcclConnectAsync(c.peer[0].comm, &other), pcclInvalidUsage);
        EXPECT_EQ(pcclCancelAsync(&op), pcclSuccess);
        EXPECT_EQ(pcclAwaitAsync(&op, NULL), pcclMasterConnectionFailed);
        EXPECT_EQ(pcclGetLastErrorInfo(&why), pcclSuccess);
        EXPECT_EQ(why.cause, pcclCauseCancelled);
    }
    EXPECT_EQ(pcclConnectAsync(c.peer[0].comm, &op), pcclSuccess);
    pcclResult_t late = pcclConnect(c.peer[1].comm);
    for (int tries = 0; tries < 4 && late == pcclRankConnectionLost; tries++) {
        late = pcclConnect(c.peer[1].comm); /* it was told of the attempts that were given up */
    }
    EXPECT_EQ(late, pcclSuccess);
    EXPECT_EQ(pcclAwaitAsync(&op, NULL), pcclSuccess);
    EXPECT_EQ(pcclConnectAsync(c.peer[0].comm, &op), pcclInvalidUsage); /* it is connected */
    cluster_stop(&c);
}

static bool names_the_missing_master(const char *text)
{
    return strstr(text, "127.0.0.1") != NULL && strstr(text, "is ccoip_master running there?") != NULL && strstr(text, ", for ") != NULL;
}

TEST(a_master_that_is_not_there_is_named_where_the_end_is_told) /* awaited, looked at, and by a queue when the communicator has gone */
{
    struct cluster c;
    pcclAsyncOp_t op;
    pcclCompletionQueue_t *queue;
    pcclCompletion_t end;
    bool done = false;
    size_t count = 0;
    cluster_master(&c);
    EXPECT_EQ(pcclInterruptMaster(c.master), pcclSuccess);
    EXPECT_EQ(pcclMasterAwaitTermination(c.master), pcclSuccess);
    world(&c, 0, "w", 2, 0);
    EXPECT_EQ(pcclSetOption(c.peer[0].comm, PCCL_OPTION_CONNECT_TIMEOUT_MS, 100), pcclSuccess);
    EXPECT_EQ(pcclConnectAsync(c.peer[0].comm, &op), pcclSuccess);
    EXPECT_EQ(pcclAwaitAsync(&op, NULL), pcclMasterConnectionFailed);
    EXPECT(names_the_missing_master(pcclGetLastError()));
    EXPECT_EQ(pcclConnectAsync(c.peer[0].comm, &op), pcclSuccess);
    EXPECT_EQ(pcclWaitAsync(&op, -1, &end, &done), pcclSuccess);
    EXPECT(done && names_the_missing_master(end.error.text));
    EXPECT_EQ(pcclAwaitAsync(&op, NULL), pcclMasterConnectionFailed);
    EXPECT_EQ(pcclCreateCompletionQueue(&queue), pcclSuccess);
    EXPECT_EQ(pcclConnectAsync(c.peer[0].comm, &op), pcclSuccess);
    EXPECT_EQ(pcclQueueAttach(queue, &op, 7), pcclSuccess);
    EXPECT_EQ(pcclDrain(c.peer[0].comm, -1, &count), pcclSuccess);
    EXPECT_EQ(pcclDestroyCommunicator(c.peer[0].comm), pcclSuccess);
    c.peer[0].comm = NULL;
    EXPECT_EQ(pcclQueueWait(queue, &end, 1, -1, &count), pcclSuccess);
    EXPECT(count == 1 && end.cookie == 7 && names_the_missing_master(end.error.text));
    EXPECT_EQ(pcclDestroyCompletionQueue(queue), pcclSuccess);
    cluster_stop(&c);
}

TEST(a_communicator_that_goes_ends_its_connect)
{
    struct cluster c;
    pcclAsyncOp_t op;
    pcclCompletionQueue_t *queue;
    pcclCompletion_t got;
    size_t count = 0;
    cluster_master(&c);
    EXPECT_EQ(pcclCreateCompletionQueue(&queue), pcclSuccess);
    world(&c, 0, "w", 2, 0);
    EXPECT_EQ(pcclConnectAsync(c.peer[0].comm, &op), pcclSuccess);
    EXPECT_EQ(pcclQueueAttach(queue, &op, 7), pcclSuccess);
    EXPECT_EQ(pcclDestroyCommunicator(c.peer[0].comm), pcclSuccess);
    c.peer[0].comm = NULL;
    EXPECT_EQ(pcclQueueWait(queue, &got, 1, -1, &count), pcclSuccess);
    EXPECT(count == 1 && got.cookie == 7 && got.result == pcclMasterConnectionFailed);
    EXPECT_EQ(pcclDestroyCompletionQueue(queue), pcclSuccess);
    cluster_stop(&c);
}
