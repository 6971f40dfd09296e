/* header_c99.c - the public headers in strict C99: both forms of the sync call, tables of functions, older constants,
 * initial values and sizes of the structures.
 *
 * Compiled with -std=c99 -pedantic-errors -Werror, not run.
 * SPDX-License-Identifier: MIT */
#include <ccoip.h>
#include <ccoip_inet.h>
#include <pccl.h>
#include <pccl_topology.h>

typedef char size_of_address[sizeof(ccoip_socket_address_t) == 28 ? 1 : -1];
typedef char size_of_params[sizeof(pcclCommCreateParams_t) == 36 ? 1 : -1];
typedef char size_of_descriptor[sizeof(pcclReduceDescriptor_t) == 40 ? 1 : -1];
typedef char size_of_operation[sizeof(pcclReduceOpDescriptor_t) == 56 ? 1 : -1];
typedef char size_of_tensor[sizeof(pcclTensorInfo_t) == 40 ? 1 : -1];
typedef char size_of_state[sizeof(pcclSharedState_t) == 24 ? 1 : -1];

pcclResult_t sync_both_ways(const pcclComm_t *comm, pcclSharedState_t *state);
pcclResult_t sync_both_ways(const pcclComm_t *comm, pcclSharedState_t *state)
{
    pcclSharedStateSyncInfo_t info;
    pcclResult_t first = pcclSynchronizeSharedState(comm, state, &info);
    pcclResult_t second =
        pcclSynchronizeSharedState(comm, state, PCCL_SHARED_STATE_SYNC_STRATEGY_RECEIVE_ONLY, &info);
    pcclResult_t (*by_address)(const pcclComm_t *, pcclSharedState_t *, pcclSharedStateSyncStrategy_t,
                               pcclSharedStateSyncInfo_t *) = pcclSynchronizeSharedState;
    (void)by_address;
    return first != pcclSuccess ? first : second;
}

/* A program that loads the library by name keeps a table whose members have the functions' names, or wraps a function. */
struct table {
    pcclResult_t (*pcclSynchronizeSharedState)(const pcclComm_t *communicator, pcclSharedState_t *shared_state,
                                               pcclSharedStateSyncStrategy_t strategy, pcclSharedStateSyncInfo_t *info);
    pcclResult_t (*pcclUpdateTopology)(pcclComm_t *communicator);
};

pcclResult_t pcclSynchronizeSharedState(const pcclComm_t *communicator, pcclSharedState_t *shared_state,
                                        pcclSharedStateSyncStrategy_t strategy, pcclSharedStateSyncInfo_t *sync_info_out);

pcclResult_t sync_by_table(const struct table *table, const pcclComm_t *comm, pcclSharedState_t *state);
pcclResult_t sync_by_table(const struct table *table, const pcclComm_t *comm, pcclSharedState_t *state)
{
#define TABLE_ROW(name) .name = name
    const struct table own = {TABLE_ROW(pcclSynchronizeSharedState), TABLE_ROW(pcclUpdateTopology)};
    pcclResult_t first = own.pcclSynchronizeSharedState(comm, state, PCCL_SHARED_STATE_SYNC_STRATEGY_SEND_ONLY, NULL);
    return first != pcclSuccess ? first : table->pcclSynchronizeSharedState(comm, state, PCCL_SHARED_STATE_SYNC_STRATEGY_SEND_ONLY, NULL);
}

pcclResult_t sized_structures(const pcclComm_t *comm, pcclWindow_t **window);
pcclResult_t sized_structures(const pcclComm_t *comm, pcclWindow_t **window)
{
    static const pcclDeriveParams_t derived = PCCL_INITIALIZER(pcclDeriveParams_t);
    pcclCommCreateParamsEx_t create = PCCL_INITIALIZER(pcclCommCreateParamsEx_t);
    pcclRepeatParams_t repeat = PCCL_INITIALIZER(pcclRepeatParams_t);
    pcclWindowParams_t params = PCCL_INITIALIZER(pcclWindowParams_t);
    params.bytes = create.size + repeat.size + derived.size;
    return pcclCreateWindow(&params, comm, window);
}

int older_names(void);
int older_names(void)
{
    return (int)pcclOptimizeTopologyFailed + (int)PCCL_DISTRIBUTION_HINT_NONE + (int)PCCL_NORMAL_DISTRIBUTION_HINT +
           (int)PCCL_UNIFORM_DISTRIBUTION_HINT + CCOIP_PROTOCOL_PORT_MASTER + CCOIP_PROTOCOL_PORT_SHARED_STATE +
           CCOIP_PROTOCOL_PORT_P2P + CCOIP_PROTOCOL_PORT_BANDWIDTH_BENCHMARK;
}
