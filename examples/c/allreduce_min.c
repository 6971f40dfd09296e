/* allreduce_min.c - the smallest program: two or more copies add up their numbers; survivors go on when one dies.
 *
 * Start ccoip_master, then several of these, each with a number.
 * SPDX-License-Identifier: MIT */
#include <pccl.h>
#include <stdio.h>
#include <stdlib.h>

int main(int argc, char **argv)
{
    float mine = argc > 1 ? (float)atof(argv[1]) : 1, sum = 0;
    int world = 0;
    pcclComm_t *comm = NULL;
    pcclReduceInfo_t info;
    pcclCommCreateParams_t params = {.p2p_connection_pool_size = 1};
    pcclReduceDescriptor_t what = {.count = 1, .op = pcclSum, .src_descriptor = {.datatype = pcclFloat}};

    if (pcclInit() != pcclSuccess ||
        pcclParseAddress(argc > 2 ? argv[2] : "127.0.0.1", CCOIP_PROTOCOL_PORT_MASTER, &params.master_address) != pcclSuccess ||
        pcclCreateCommunicator(&params, &comm) != pcclSuccess || pcclConnect(comm) != pcclSuccess) {
        fprintf(stderr, "%s\n", pcclGetLastError());
        return 1;
    }
    pcclResult_t result = pcclSuccess;
    while (result == pcclSuccess && (result = pcclGetAttribute(comm, PCCL_ATTRIBUTE_GLOBAL_WORLD_SIZE, &world)) == pcclSuccess &&
           world < 2) {
        result = pcclUpdateTopology(comm); /* alone: until somebody comes */
    }
    while (result == pcclSuccess && (result = pcclAllReduce(&mine, &sum, &what, comm, &info)) == pcclRankConnectionLost) {
        result = pcclSuccess; /* somebody died: again, with those who are left */
    }
    if (result == pcclSuccess) {
        printf("sum over %u peers: %g\n", info.local_world_size, (double)sum);
    } else {
        fprintf(stderr, "%s\n", pcclGetLastError());
    }
    return pcclDestroyCommunicator(comm) != pcclSuccess || result != pcclSuccess;
}
