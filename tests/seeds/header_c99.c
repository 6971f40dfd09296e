/* header_c99.c - the public headers in strict C99: both forms of the sync call, older constants, sizes of the structures.
 *
 * Compiled with -std=c99 -pedantic-errors -Werror, not run.
 * SPDX-License-Identifier: MIT */
#include <ccoip.h>
#include <ccoip_inet.h>
#include <pccl.h>

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

int older_names(void);
int older_names(void)
{
    return (int)pcclOptimizeTopologyFailed + (int)PCCL_DISTRIBUTION_HINT_NONE + (int)PCCL_NORMAL_DISTRIBUTION_HINT +
           (int)PCCL_UNIFORM_DISTRIBUTION_HINT + CCOIP_PROTOCOL_PORT_MASTER + CCOIP_PROTOCOL_PORT_SHARED_STATE +
           CCOIP_PROTOCOL_PORT_P2P + CCOIP_PROTOCOL_PORT_BANDWIDTH_BENCHMARK;
}
