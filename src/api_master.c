/* api_master.c - the master inside a program: the same server as ccoip_master's.
 * SPDX-License-Identifier: MIT */
#include <stdlib.h>

#include "api.h"
#include "master/server.h"

struct pcclMasterInstanceState_t {
    struct server *server; /* owned */
};

static pcclResult_t master_result(pcclMasterInstance_t *m, pccl_status st, const char *phase, const char *why)
{
    if (m == NULL) {
        return api_fail(pcclInvalidArgument, pcclCauseUsage, phase, "the master is null");
    }
    return st == PCCL_OK ? pcclSuccess : api_fail(pcclInvalidUsage, pcclCauseUsage, phase, "%s", why);
}

pcclResult_t pcclCreateMaster(ccoip_socket_address_t listen_address, pcclMasterInstance_t **p_master_handle_out)
{
    struct err err = {.text = ""};
    struct net_address at = api_address_in(&listen_address);
    if (p_master_handle_out == NULL) {
        return api_fail(pcclInvalidArgument, pcclCauseUsage, "create master", "p_master_handle_out is null");
    }
    if ((unsigned)listen_address.inet.protocol > inetIPv6) {
        return api_fail(pcclInvalidArgument, pcclCauseUsage, "create master",
                        "listen_address: unknown protocol %d: inetIPv4 or inetIPv6", (int)listen_address.inet.protocol);
    }
    pcclMasterInstance_t *m = malloc(sizeof *m);
    if (m == NULL || server_new(&at, NULL, &m->server, &err) != PCCL_OK) {
        free(m);
        return api_fail(pcclInternalError, pcclCauseNoMemory, "create master", "%s", err.text[0] ? err.text : "no memory");
    }
    *p_master_handle_out = m;
    return pcclSuccess;
}

pcclResult_t pcclRunMaster(pcclMasterInstance_t *m)
{
    struct err err = {.text = ""};
    pccl_status st = m != NULL ? server_start(m->server, &err) : PCCL_ERR_INVALID;
    return master_result(m, st, "run master", err.text);
}

pcclResult_t pcclInterruptMaster(pcclMasterInstance_t *m)
{
    /* Async-signal-safe: the error text is written only where nothing was started, or nothing is given. */
    pccl_status st = m != NULL ? server_stop(m->server) : PCCL_ERR_INVALID;
    return master_result(m, st, "interrupt master", "it was never run");
}

pcclResult_t pcclMasterAwaitTermination(pcclMasterInstance_t *m)
{
    pccl_status st = m != NULL ? server_wait(m->server) : PCCL_ERR_INVALID;
    return master_result(m, st, "await master", "it was never run");
}

pcclResult_t pcclDestroyMaster(pcclMasterInstance_t *m)
{
    pccl_status st = m != NULL ? server_free(m->server) : PCCL_ERR_INVALID;
    pcclResult_t rc = master_result(m, st, "destroy master", "it still runs: interrupt it and await its end");
    if (rc == pcclSuccess) {
        free(m);
    }
    return rc;
}

pcclResult_t pcclGetMasterAddress(const pcclMasterInstance_t *m, ccoip_socket_address_t *address_out)
{
    struct net_address at;
    if (m == NULL || address_out == NULL) {
        return api_fail(pcclInvalidArgument, pcclCauseUsage, "master address", "%s is null",
                        m == NULL ? "master_instance" : "address_out");
    }
    if (server_address(m->server, &at) != PCCL_OK) {
        return api_fail(pcclInvalidUsage, pcclCauseUsage, "master address", "the master is not running");
    }
    *address_out = api_address_out(&at);
    return pcclSuccess;
}
