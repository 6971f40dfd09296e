/* repeat.c - a step of training that outlives its members: gradients are summed up, and a report goes to one, until all of it succeeded.
 *
 * Start ccoip_master, then as many of these as MEMBERS says: repeat MEMBERS [ADDRESS].  Kill one of them: the others go on.
 * SPDX-License-Identifier: MIT */
#include <pccl.h>
#include <stdio.h>
#include <stdlib.h>

enum { LAYERS = 8, WEIGHTS = 1 << 16, REPORT = LAYERS, STEPS = 300, TOLD = 50 };

struct step {
    float (*gradient)[WEIGHTS], (*sum)[WEIGHTS];
    float loss, worst;
};

/* One operation of the step.  Who is rank 0 may change from one attempt to the next; a root that does not is looked up by its id. */
static pcclResult_t launch(const pcclComm_t *comm, size_t index, uint32_t attempt, pcclAsyncOp_t *op, void *user)
{
    struct step *s = user;
    if (attempt > 0 && index < REPORT) {
        printf("layer %zu again\n", index);
    }
    return index == REPORT ? pcclReduce(&s->loss, &s->worst, 1, pcclFloat, pcclMax, 0, comm, op)
                           : pcclAllReduceOrdered(s->gradient[index], s->sum[index], WEIGHTS, pcclFloat, pcclAvg, comm, op);
}

static pcclResult_t train(pcclComm_t *comm)
{
    struct step s = {.gradient = calloc(LAYERS, sizeof *s.gradient), .sum = calloc(LAYERS, sizeof *s.sum)};
    pcclRepeatParams_t params = PCCL_INITIALIZER(pcclRepeatParams_t);
    pcclReduceInfo_t info = {0};
    pcclResult_t result = s.gradient != NULL && s.sum != NULL ? pcclSuccess : pcclInternalError;
    params.all_again = true; /* means of different members do not mix */
    for (int step = 0; step < STEPS && result == pcclSuccess; step++) {
        s.gradient[0][0] = s.loss = (float)step;
        result = pcclRepeatGroup(comm, LAYERS + 1, launch, &s, &params, &info);
        if (result == pcclSuccess && (step + 1) % TOLD == 0) {
            printf("%d steps\n", step + 1);
            fflush(stdout);
        }
    }
    if (result == pcclSuccess) {
        printf("the last among %u, first mean %g\n", info.local_world_size, (double)s.sum[0][0]);
    }
    free(s.gradient);
    free(s.sum);
    return result;
}

int main(int argc, char **argv)
{
    int members = argc > 1 ? atoi(argv[1]) : 1, world = 0;
    pcclComm_t *comm = NULL;
    pcclCommCreateParams_t params = {.p2p_connection_pool_size = 1};
    pcclResult_t result = pcclInit();
    if (result == pcclSuccess) {
        result = pcclParseAddress(argc > 2 ? argv[2] : "127.0.0.1", CCOIP_PROTOCOL_PORT_MASTER, &params.master_address);
    }
    result = result != pcclSuccess ? result : pcclCreateCommunicator(&params, &comm);
    result = result != pcclSuccess ? result : pcclConnect(comm);
    while (result == pcclSuccess && world < members) {
        result = pcclGetAttribute(comm, PCCL_ATTRIBUTE_PEER_GROUP_WORLD_SIZE, &world);
        result = result == pcclSuccess && world < members ? pcclUpdateTopology(comm) : result;
    }
    result = result != pcclSuccess ? result : train(comm);
    if (result != pcclSuccess) {
        fprintf(stderr, "%s\n", pcclGetLastError());
    }
    if (comm != NULL) {
        (void)pcclDestroyCommunicator(comm);
    }
    return result != pcclSuccess;
}
