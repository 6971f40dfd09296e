/* api_master.c - the master inside a program: the same server as ccoip_master's.
 * SPDX-License-Identifier: MIT */
#include <sched.h>

#include "api/api.h"
#include "server/server.h"

struct pcclMasterInstanceState_t {
    struct api_handle handle;
    struct server *server; /* owned */
};

/* Its texts are written only where nothing was started, or nothing is given: an interrupt may come from a signal handler. */
static pcclResult_t master_enter(pcclMasterInstance_t *m, const char *phase)
{
    if (m == NULL) {
        return api_fail(pcclInvalidArgument, pcclCauseUsage, phase, "master_instance is null");
    }
    if (!handle_pin(&m->handle)) {
        return api_fail(pcclInvalidUsage, pcclCauseUsage, phase, "the master was destroyed: make a new one");
    }
    return pcclSuccess;
}

/* Takes the pin back. */
static pcclResult_t master_leave(pcclMasterInstance_t *m, pccl_status st, const char *phase, const char *why)
{
    const char *forked = "the master belongs to the parent of this forked process: make a new one";
    pcclResult_t rc = pcclSuccess;
    if (st != PCCL_OK) {
        rc = api_fail(pcclInvalidUsage, pcclCauseUsage, phase, "%s", server_forked(m->server) ? forked : why);
    }
    handle_unpin(&m->handle);
    return rc;
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
    pcclMasterInstance_t *m = (pcclMasterInstance_t *)handle_take(HANDLE_MASTER, sizeof *m);
    if (m == NULL || server_new(&at, NULL, &m->server, &err) != PCCL_OK) {
        if (m != NULL) {
            handle_give(HANDLE_MASTER, &m->handle);
        }
        return api_fail(pcclInternalError, pcclCauseNoMemory, "create master", "%s", err.text[0] ? err.text : "no memory");
    }
    handle_open(&m->handle);
    *p_master_handle_out = m;
    return pcclSuccess;
}

pcclResult_t pcclRunMaster(pcclMasterInstance_t *m)
{
    struct err err = {.text = ""};
    pcclResult_t rc = master_enter(m, "run master");
    return rc != pcclSuccess ? rc : master_leave(m, server_start(m->server, &err), "run master", err.text);
}

pcclResult_t pcclInterruptMaster(pcclMasterInstance_t *m)
{
    pcclResult_t rc = master_enter(m, "interrupt master");
    return rc != pcclSuccess ? rc : master_leave(m, server_stop(m->server), "interrupt master", "it was never run");
}

pcclResult_t pcclMasterAwaitTermination(pcclMasterInstance_t *m)
{
    pcclResult_t rc = master_enter(m, "await master");
    return rc != pcclSuccess ? rc : master_leave(m, server_wait(m->server), "await master", "it was never run");
}

/* The handle is closed: waits for those who still look; false: one of them has started the master meanwhile. */
static bool master_quiet(pcclMasterInstance_t *m)
{
    for (;;) {
        if (server_running(m->server)) {
            return false;
        }
        if (!handle_pinned(&m->handle)) {
            return !server_running(m->server);
        }
        sched_yield(); /* they wait for a thread that has ended, or for none */
    }
}

pcclResult_t pcclDestroyMaster(pcclMasterInstance_t *m)
{
    const char *phase = "destroy master", *runs = "it still runs: interrupt it and await its end";
    pcclResult_t rc = master_enter(m, phase);
    if (rc == pcclSuccess) {
        rc = master_leave(m, server_running(m->server) ? PCCL_ERR_INVALID : PCCL_OK, phase, runs);
    }
    if (rc != pcclSuccess) {
        return rc;
    }
    if (!handle_close(&m->handle)) {
        return api_fail(pcclInvalidUsage, pcclCauseUsage, phase, "the master was destroyed before");
    }
    if (!master_quiet(m) || server_free(m->server) != PCCL_OK) {
        handle_open(&m->handle);
        return api_fail(pcclInvalidUsage, pcclCauseUsage, phase, "%s", runs);
    }
    handle_give(HANDLE_MASTER, &m->handle);
    return pcclSuccess;
}

pcclResult_t pcclGetMasterAddress(const pcclMasterInstance_t *master_instance, ccoip_socket_address_t *address_out)
{
    struct net_address at;
    pcclMasterInstance_t *m = ((union { const pcclMasterInstance_t *in; pcclMasterInstance_t *own; }){.in = master_instance}).own;
    if (address_out == NULL) {
        return api_fail(pcclInvalidArgument, pcclCauseUsage, "master address", "address_out is null");
    }
    pcclResult_t rc = master_enter(m, "master address");
    if (rc != pcclSuccess) {
        return rc;
    }
    pccl_status st = server_address(m->server, &at);
    if (st == PCCL_OK) {
        *address_out = api_address_out(&at);
    }
    return master_leave(m, st, "master address", "the master is not running");
}
