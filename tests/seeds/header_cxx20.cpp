/* header_cxx20.cpp - the public headers in strict C++20: designated initialisers in field order, both forms of the sync call,
 * tables of functions, initial values of the structures.
 *
 * Compiled with -std=c++20 -pedantic-errors -Werror, not run.
 * SPDX-License-Identifier: MIT */
#include <ccoip.h>
#include <ccoip_inet.h>
#include <pccl.h>
#include <pccl_topology.h>

static_assert(sizeof(ccoip_socket_address_t) == 28 && sizeof(pcclReduceInfo_t) == 24);

constexpr pcclCommCreateParams_t params{
    .master_address = {.inet = {.protocol = inetIPv6, .ipv4 = {{0, 0, 0, 0}}, .ipv6 = {}}, .port = 1},
    .peer_group = 2,
    .p2p_connection_pool_size = 3,
};
static_assert(params.p2p_connection_pool_size == 3);

pcclResult_t sync_both_ways(const pcclComm_t *comm, pcclSharedState_t *state)
{
    pcclSharedStateSyncInfo_t info{};
    const pcclResult_t first = pcclSynchronizeSharedState(comm, state, &info);
    return first != pcclSuccess
               ? first
               : pcclSynchronizeSharedState(comm, state, PCCL_SHARED_STATE_SYNC_STRATEGY_SEND_ONLY, &info);
}

pcclResult_t without_info(const pcclComm_t *comm, pcclSharedState_t *state)
{
    return pcclSynchronizeSharedState(comm, state, nullptr);
}

pcclResult_t sized_structures(const pcclComm_t *comm, pcclWindow_t **window)
{
    static const pcclDeriveParams_t derived = PCCL_INITIALIZER(pcclDeriveParams_t);
    const pcclCommCreateParamsEx_t create = PCCL_INITIALIZER(pcclCommCreateParamsEx_t);
    const pcclRepeatParams_t repeat = PCCL_INITIALIZER(pcclRepeatParams_t);
    pcclWindowParams_t params = PCCL_INITIALIZER(pcclWindowParams_t);
    params.bytes = create.size + repeat.size + derived.size;
    return pcclCreateWindow(&params, comm, window);
}

using sync_call = pcclResult_t (*)(const pcclComm_t *, pcclSharedState_t *, pcclSharedStateSyncStrategy_t, pcclSharedStateSyncInfo_t *);
struct table {
    sync_call pcclSynchronizeSharedState;
};

pcclResult_t sync_by_table(const pcclComm_t *comm, pcclSharedState_t *state)
{
    const table own{.pcclSynchronizeSharedState = pcclSynchronizeSharedState};
    return own.pcclSynchronizeSharedState(comm, state, PCCL_SHARED_STATE_SYNC_STRATEGY_SEND_ONLY, nullptr);
}
