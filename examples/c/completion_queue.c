/* completion_queue.c - two copies launch a few sums and take each as it ends, whichever that is.
 *
 * Start ccoip_master, then two of these with its address.
 * SPDX-License-Identifier: MIT */
#include <pccl.h>
#include <stdio.h>

enum { SUMS = 4 };

/* Launches all, then takes them by their cookies; the first error ends it. */
static pcclResult_t sums(pcclComm_t *comm, pcclCompletionQueue_t *queue)
{
    float mine[SUMS], sum[SUMS];
    pcclAsyncOp_t op[SUMS];
    pcclCompletion_t done;
    size_t count = 0, launched = 0;
    pcclResult_t result = pcclSuccess;
    for (; launched < SUMS && result == pcclSuccess; launched += result == pcclSuccess) {
        mine[launched] = (float)(launched + 1);
        result = pcclAllReduceOrdered(&mine[launched], &sum[launched], 1, pcclFloat, pcclSum, comm, &op[launched]);
        if (result == pcclSuccess && pcclQueueAttach(queue, &op[launched], launched) != pcclSuccess) {
            return pcclInternalError;
        }
    }
    for (size_t i = 0; i < launched; i++) { /* all of them, after an error too: the buffers are borrowed until then */
        if (pcclQueueWait(queue, &done, 1, -1, &count) != pcclSuccess) {
            return pcclInternalError;
        }
        if (done.result == pcclSuccess) {
            printf("sum %d: %g\n", (int)done.cookie, (double)sum[done.cookie]);
        } else {
            fprintf(stderr, "%s\n", done.error.text);
            result = done.result;
        }
        pcclResult_t same = pcclAwaitAsync(&op[done.cookie], NULL); /* nobody wants the handle any more */
        result = result == pcclSuccess ? same : result;
    }
    return result;
}

int main(int argc, char **argv)
{
    int world = 0;
    pcclComm_t *comm = NULL;
    pcclCompletionQueue_t *queue = NULL;
    pcclCommCreateParams_t params = {.p2p_connection_pool_size = 1};
    if (pcclInit() != pcclSuccess ||
        pcclParseAddress(argc > 1 ? argv[1] : "127.0.0.1", CCOIP_PROTOCOL_PORT_MASTER, &params.master_address) != pcclSuccess ||
        pcclCreateCompletionQueue(&queue) != pcclSuccess || pcclCreateCommunicator(&params, &comm) != pcclSuccess ||
        pcclConnect(comm) != pcclSuccess) {
        fprintf(stderr, "%s\n", pcclGetLastError());
        return 1;
    }
    pcclResult_t result = pcclSuccess;
    while (result == pcclSuccess && (result = pcclGetAttribute(comm, PCCL_ATTRIBUTE_GLOBAL_WORLD_SIZE, &world)) == pcclSuccess &&
           world < 2) {
        result = pcclUpdateTopology(comm); /* alone: until somebody comes */
    }
    result = result == pcclSuccess ? sums(comm, queue) : result;
    bool ended = pcclDestroyCommunicator(comm) == pcclSuccess && pcclDestroyCompletionQueue(queue) == pcclSuccess;
    return !ended || result != pcclSuccess;
}
