/* split.c - a grid out of one world: each process is in a row and in a column, and sums up along both.
 *
 * Start ccoip_master, then as many of these as there are ranks: split RANK RANKS COLUMNS [ADDRESS].
 * SPDX-License-Identifier: MIT */
#include <pccl.h>
#include <stdio.h>
#include <stdlib.h>

static pcclResult_t sum(pcclComm_t *comm, float mine, float *out)
{
    return pcclAllReduceOrdered(&mine, out, 1, pcclFloat, pcclSum, comm, NULL);
}

int main(int argc, char **argv)
{
    int rank = argc > 1 ? atoi(argv[1]) : 0, ranks = argc > 2 ? atoi(argv[2]) : 1, columns = argc > 3 ? atoi(argv[3]) : 1;
    float in_row = 0, in_column = 0;
    pcclComm_t *world = NULL, *row = NULL, *column = NULL;
    pcclCommCreateParamsEx_t params = PCCL_INITIALIZER(pcclCommCreateParamsEx_t);
    pcclDeriveParams_t lines = PCCL_INITIALIZER(pcclDeriveParams_t);

    params.world = "grid";
    params.world_size = (uint32_t)ranks;
    params.rank = (uint32_t)rank;
    lines.formation_timeout_ms = 60000; /* a rank that has not come by then ends the split for all */
    columns = columns < 1 ? 1 : columns;
    pcclResult_t result = pcclInit();
    if (result == pcclSuccess) {
        result = pcclParseAddress(argc > 4 ? argv[4] : "127.0.0.1", CCOIP_PROTOCOL_PORT_MASTER, &params.master_address);
    }
    result = result != pcclSuccess ? result : pcclCreateCommunicatorEx(&params, &world);
    result = result != pcclSuccess ? result : pcclConnect(world);
    /* All of them call both, in this order; a failure is one at all. */
    result = result != pcclSuccess ? result : pcclSplitCommunicator(world, rank / columns, rank, &lines, &row);
    result = result != pcclSuccess ? result : pcclSplitCommunicator(world, rank % columns, rank, &lines, &column);
    result = result != pcclSuccess ? result : sum(row, (float)rank, &in_row);
    result = result != pcclSuccess ? result : sum(column, (float)rank, &in_column);
    if (result == pcclSuccess) {
        printf("rank %d: row %d sums to %g, column %d to %g\n", rank, rank / columns, (double)in_row, rank % columns, (double)in_column);
    } else {
        fprintf(stderr, "%s\n", pcclGetLastError());
    }
    pcclComm_t *all[] = {row, column, world};
    for (int i = 0; i < 3; i++) {
        if (all[i] != NULL) {
            (void)pcclDestroyCommunicator(all[i]);
        }
    }
    return result != pcclSuccess;
}
