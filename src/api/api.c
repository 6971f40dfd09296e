/* api.c - library, communicators, votes, sizes: argument checks and nothing else.
 * SPDX-License-Identifier: MIT */
#include "api/api.h"

#include <inttypes.h>
#include <limits.h>
#include <sched.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/clock.h"
#include "core/log.h"
#include "net/addr.h"
#include "window/window.h"
#include "engine/comm_calls.h"

/* PCCL_LOG_LEVEL, as the original has it: a log without a line of code.  Without it warnings are seen, such as that of a call that hangs.
 * A word that is none of its levels is told once, since whoever sets the variable wants to see something. */
static void log_from_environment(void)
{
    const char *word = getenv("PCCL_LOG_LEVEL");
    enum log_level level;
    if (word == NULL || *word == 0) {
        log_set_default(log_stderr, LOG_WARN);
        return;
    }
    if (log_level_read(word, &level)) {
        log_set_default(level == LOG_NONE ? NULL : log_stderr, level);
        return;
    }
    log_set_default(log_stderr, LOG_WARN);
    log_line(LOG_WARN, "PCCL_LOG_LEVEL is '%.20s': expected trace, debug, info, warn, error or none; warn is used", word);
}

pcclResult_t pcclInit(void)
{
    log_from_environment();
    engine_mark(&engine_global);
    return pcclSuccess;
}

pcclResult_t pcclGetBuildInfo(pcclBuildInfo_t *info)
{
    if (info == NULL) {
        return api_fail(pcclInvalidArgument, pcclCauseUsage, "build info", "info is null");
    }
    info->has_cuda_support = false;
    return pcclSuccess;
}

pcclResult_t pcclGetVersion(int *version_out)
{
    if (version_out == NULL) {
        return api_fail(pcclInvalidArgument, pcclCauseUsage, "version", "version_out is null");
    }
    *version_out = PCCL_VERSION;
    return pcclSuccess;
}

/* ---- Entry ------------------------------------------------------------------------------------------------------------------- */

/* With a pin: whether the communicator can be used by this process; counts the call. */
static pcclResult_t enter_pinned(struct comm *c, const char *phase)
{
    if (c->generation != atomic_load(&engine_global.generation)) {
        return api_fail(pcclInvalidUsage, pcclCauseUsage, phase,
                        "the communicator belongs to the parent of this forked process: make a new one");
    }
    if (!engine_marked(&engine_global)) {
        return api_fail(pcclNotInitialized, pcclCauseUsage, phase, "call pcclInit first");
    }
    comm_enter(c);
    return pcclSuccess;
}

pcclResult_t api_enter(const pcclComm_t *communicator, const char *phase, struct comm **comm_out)
{
    pcclComm_t *handle = api_own(communicator);
    *comm_out = NULL;
    if (handle == NULL) {
        return api_fail(pcclInvalidArgument, pcclCauseUsage, phase, "the communicator is null");
    }
    if (!handle_pin(&handle->handle)) {
        return api_fail(pcclInvalidUsage, pcclCauseUsage, phase, "the communicator was destroyed: make a new one");
    }
    *comm_out = handle->comm;
    pcclResult_t rc = enter_pinned(*comm_out, phase);
    handle_unpin(&handle->handle);
    return rc;
}

void api_leave(struct comm *c)
{
    comm_exit(c);
}

static pcclResult_t api_gone(struct comm *c, const char *phase)
{
    struct session_outcome gone = {.result = RESULT_GONE};
    pthread_mutex_lock(&c->lock);
    if (c->machine.session != NULL) {
        session_gone(c->machine.session, &gone);
    }
    pthread_mutex_unlock(&c->lock);
    return api_outcome(&gone, phase, 0);
}

pcclResult_t api_not_gone(struct comm *c, const char *phase)
{
    pthread_mutex_lock(&c->lock);
    bool gone = c->calls.was_member && !c->calls.connecting && comm_idle(c);
    pthread_mutex_unlock(&c->lock);
    return gone ? api_gone(c, phase) : pcclSuccess;
}

pcclResult_t api_member(struct comm *c, const char *phase, struct session_info *info)
{
    pthread_mutex_lock(&c->lock);
    bool any = c->machine.session != NULL, was_member = c->calls.was_member, connecting = c->calls.connecting;
    bool poisoned = any && session_poisoned(c->machine.session);
    memset(info, 0, sizeof *info);
    if (any) {
        session_info(c->machine.session, info);
    }
    pthread_mutex_unlock(&c->lock);
    if (poisoned) {
        return api_fail(pcclInternalError, pcclCauseInternal, phase, "an internal invariant failed: stop, report this");
    }
    if (info->connected) {
        return pcclSuccess;
    }
    if (was_member) {
        return api_gone(c, phase); /* the same for every call: why this peer is out, and since when */
    }
    return api_fail(pcclInvalidUsage, pcclCauseUsage, phase,
                    connecting ? "pcclConnect has not returned" : "not connected: call pcclConnect first");
}

struct net_address api_address_in(const ccoip_socket_address_t *a)
{
    struct net_address n = {.family = a->inet.protocol == inetIPv6 ? 6 : 4, .port = a->port};
    if (n.family == 6) {
        memcpy(n.ip, a->inet.ipv6.data, 16);
    } else {
        memcpy(n.ip, a->inet.ipv4.data, 4);
    }
    return n;
}

ccoip_socket_address_t api_address_out(const struct net_address *n)
{
    ccoip_socket_address_t a;
    memset(&a, 0, sizeof a);
    a.port = n->port;
    if (n->family == 6) {
        a.inet.protocol = inetIPv6;
        memcpy(a.inet.ipv6.data, n->ip, 16);
    } else {
        a.inet.protocol = inetIPv4;
        memcpy(a.inet.ipv4.data, n->ip, 4);
    }
    return a;
}

/* ---- Communicators ----------------------------------------------------------------------------------------------------------- */

pcclResult_t pcclDestroyCommunicator(pcclComm_t *communicator)
{
    if (communicator == NULL) {
        return api_fail(pcclInvalidArgument, pcclCauseUsage, "destroy", "the communicator is null");
    }
    if (!handle_close(&communicator->handle)) {
        return api_fail(pcclInvalidUsage, pcclCauseUsage, "destroy", "the communicator was destroyed before");
    }
    if (communicator->comm->generation != atomic_load(&engine_global.generation)) {
        windows_abandon(communicator->comm);
        comm_abandon(communicator->comm);
    } else {
        while (handle_pinned(&communicator->handle)) {
            sched_yield(); /* for a few instructions */
        }
        comm_close(communicator->comm);
        windows_end(communicator->comm);
        comm_free(communicator->comm);
    }
    handle_give(HANDLE_COMM, &communicator->handle);
    return pcclSuccess;
}

static pcclResult_t connect_enter(pcclComm_t *communicator, struct comm **c)
{
    pcclResult_t rc = api_enter(communicator, COMM_CONNECT, c);
    if (rc == pcclSuccess && (*c)->params.derived.callers > 0) {
        api_leave(*c);
        return api_fail(pcclInvalidUsage, pcclCauseUsage, COMM_CONNECT,
                        "members of another world created this one together: "
                        "call pcclSplitCommunicator, or the call that made it, there again");
    }
    return rc;
}

pcclResult_t pcclConnect(pcclComm_t *communicator)
{
    struct comm *c;
    struct session_outcome o;
    pcclResult_t rc = connect_enter(communicator, &c);
    if (rc == pcclSuccess) {
        comm_connect(c, &o);
        rc = api_outcome(&o, COMM_CONNECT, 0);
        api_leave(c);
    }
    return rc;
}

pcclResult_t pcclConnectAsync(pcclComm_t *communicator, pcclAsyncOp_t *async_op_out)
{
    struct comm *c;
    struct session_outcome o;
    uint64_t number = 0;
    if (async_op_out == NULL) {
        return api_null(COMM_CONNECT, "async_op_out", "pass where to store the handle");
    }
    pcclResult_t rc = connect_enter(communicator, &c);
    if (rc != pcclSuccess) {
        return rc;
    }
    if (comm_connect_async(c, &number, &o)) {
        *async_op_out = (pcclAsyncOp_t){.comm = communicator, .id = number};
    } else {
        rc = api_outcome(&o, COMM_CONNECT, 0);
    }
    api_leave(c);
    return rc;
}

pcclResult_t pcclLeave(pcclComm_t *communicator)
{
    struct comm *c;
    struct session_info info;
    pcclResult_t rc = api_enter(communicator, "leave", &c);
    if (rc != pcclSuccess) {
        return rc;
    }
    rc = api_member(c, "leave", &info);
    if (rc == pcclSuccess) {
        comm_leave(c, "the program left");
    }
    api_leave(c);
    return rc;
}

pcclResult_t pcclRevoke(pcclComm_t *communicator)
{
    struct comm *c;
    pcclResult_t rc = api_enter(communicator, "revoke", &c);
    if (rc != pcclSuccess) {
        return rc;
    }
    if (!comm_revoke(c)) {
        rc = api_fail(pcclInvalidUsage, pcclCauseUsage, "revoke", "not connected: call pcclConnect first");
    }
    api_leave(c);
    return rc;
}

pcclResult_t pcclGetAttribute(const pcclComm_t *communicator, pcclAttribute_t attribute, int *p_attribute_out)
{
    struct comm *c;
    struct session_info info;
    uint32_t value = 0;
    pcclResult_t rc = api_enter(communicator, "attribute", &c);
    if (rc != pcclSuccess) {
        return rc;
    }
    if (p_attribute_out == NULL) {
        api_leave(c);
        return api_fail(pcclInvalidArgument, pcclCauseUsage, "attribute", "p_attribute_out is null");
    }
    if (attribute < PCCL_ATTRIBUTE_GLOBAL_WORLD_SIZE || attribute > PCCL_ATTRIBUTE_LARGEST_PEER_GROUP_WORLD_SIZE) {
        api_leave(c);
        return api_fail(pcclInvalidArgument, pcclCauseUsage, "attribute",
                        "attribute is %d: expected 1 (PCCL_ATTRIBUTE_GLOBAL_WORLD_SIZE) to 4 (PCCL_ATTRIBUTE_LARGEST_PEER_GROUP_WORLD_SIZE)",
                        (int)attribute);
    }
    rc = api_member(c, "attribute", &info);
    api_leave(c);
    if (rc != pcclSuccess) {
        return rc;
    }
    switch (attribute) {
    case PCCL_ATTRIBUTE_GLOBAL_WORLD_SIZE:
        value = info.snapshot.global;
        break;
    case PCCL_ATTRIBUTE_PEER_GROUP_WORLD_SIZE:
        value = info.snapshot.group;
        break;
    case PCCL_ATTRIBUTE_NUM_DISTINCT_PEER_GROUPS:
        value = info.snapshot.groups;
        break;
    case PCCL_ATTRIBUTE_LARGEST_PEER_GROUP_WORLD_SIZE:
        value = info.snapshot.largest;
        break;
    }
    *p_attribute_out = (int)value;
    return pcclSuccess;
}

/* ---- Votes ------------------------------------------------------------------------------------------------------------------- */

static pcclResult_t api_vote(const pcclComm_t *communicator, enum vote_kind kind, const char *phase, uint64_t *value)
{
    struct comm *c;
    struct session_info info;
    struct session_outcome o;
    struct msg_vote vote = {.kind = (uint8_t)kind};
    pcclResult_t rc = api_enter(communicator, phase, &c);
    if (rc != pcclSuccess) {
        return rc;
    }
    rc = api_member(c, phase, &info);
    if (rc == pcclSuccess && kind == VOTE_OPTIMISE && info.snapshot.global <= 1) {
        rc = api_fail(pcclInvalidUsage, pcclCauseAlone, phase, "alone: there is no edge to measure");
    }
    if (rc == pcclSuccess) {
        comm_vote(c, &vote, NULL, &o);
        rc = api_outcome(&o, phase, 0);
        if (rc == pcclSuccess && value != NULL) {
            *value = o.value;
        }
    }
    api_leave(c);
    return rc;
}

pcclResult_t pcclUpdateTopology(pcclComm_t *communicator)
{
    return api_vote(communicator, VOTE_UPDATE, "update", NULL);
}

pcclResult_t pcclOptimizeTopology(const pcclComm_t *communicator)
{
    return api_vote(communicator, VOTE_OPTIMISE, "optimise", NULL);
}

pcclResult_t pcclArePeersPending(const pcclComm_t *communicator, bool *pending_out)
{
    uint64_t value = 0;
    if (pending_out == NULL) {
        return api_fail(pcclInvalidArgument, pcclCauseUsage, "query", "pending_out is null");
    }
    pcclResult_t rc = api_vote(communicator, VOTE_QUERY, "query", &value);
    if (rc == pcclSuccess) {
        *pending_out = value != 0;
    }
    return rc;
}

/* ---- Options ----------------------------------------------------------------------------------------------------------------- */

#define API_OPTIONS "option is %d: expected 1 (PCCL_OPTION_OPERATION_DEADLINE_MS) to 5 (PCCL_OPTION_VOTE_DEADLINE_MS)"

static int64_t *api_option(struct comm *c, pcclOption_t option)
{
    switch (option) {
    case PCCL_OPTION_OPERATION_DEADLINE_MS:
        return &c->params.operation_ns;
    case PCCL_OPTION_STALL_TIMEOUT_MS:
        return &c->params.stall_ns;
    case PCCL_OPTION_MASTER_LOSS_TIMEOUT_MS:
        return &c->params.master_loss_ns;
    case PCCL_OPTION_CONNECT_TIMEOUT_MS:
        return &c->params.connect_ns;
    case PCCL_OPTION_VOTE_DEADLINE_MS:
        return &c->params.vote_ns;
    }
    return NULL;
}

pcclResult_t pcclSetOption(pcclComm_t *communicator, pcclOption_t option, uint64_t value)
{
    struct comm *c;
    const char *phase = "set option";
    pcclResult_t rc = api_enter(communicator, phase, &c);
    if (rc != pcclSuccess) {
        return rc;
    }
    int64_t *place = api_option(c, option);
    bool timing = option == PCCL_OPTION_STALL_TIMEOUT_MS || option == PCCL_OPTION_MASTER_LOSS_TIMEOUT_MS;
    bool may_be_none = option == PCCL_OPTION_OPERATION_DEADLINE_MS || option == PCCL_OPTION_VOTE_DEADLINE_MS;
    uint64_t least = may_be_none ? 0 : option == PCCL_OPTION_STALL_TIMEOUT_MS ? BOUNDS_STALL_LEAST_MS : 1;
    if (place == NULL) {
        rc = api_fail(pcclInvalidArgument, pcclCauseUsage, phase, API_OPTIONS, (int)option);
    } else if (value < least || value > UINT32_MAX) {
        rc = api_fail(pcclInvalidArgument, pcclCauseUsage, phase, "option %d: %" PRIu64 " ms, expected %" PRIu64 " to %" PRIu32,
                      (int)option, value, least, UINT32_MAX);
    } else {
        pthread_mutex_lock(&c->lock);
        bool late = timing && (c->calls.connecting || !comm_idle(c));
        if (!late) {
            *place = (int64_t)value * CLOCK_MS;
        }
        pthread_mutex_unlock(&c->lock);
        if (late) {
            rc = api_fail(pcclInvalidUsage, pcclCauseUsage, phase, "option %d must be set before pcclConnect: pcclLeave first",
                          (int)option);
        }
    }
    api_leave(c);
    return rc;
}

pcclResult_t pcclGetOption(const pcclComm_t *communicator, pcclOption_t option, uint64_t *value_out)
{
    struct comm *c;
    pcclResult_t rc = api_enter(communicator, "get option", &c);
    if (rc != pcclSuccess) {
        return rc;
    }
    const int64_t *place = api_option(c, option);
    if (place == NULL) {
        rc = api_fail(pcclInvalidArgument, pcclCauseUsage, "get option", API_OPTIONS, (int)option);
    } else if (value_out == NULL) {
        rc = api_fail(pcclInvalidArgument, pcclCauseUsage, "get option", "value_out is null");
    } else {
        pthread_mutex_lock(&c->lock);
        *value_out = (uint64_t)(*place / CLOCK_MS);
        pthread_mutex_unlock(&c->lock);
    }
    api_leave(c);
    return rc;
}

/* The two enums have the same values. */
static void log_to_program(enum log_level level, const char *message, const struct log_to *to)
{
    ((pcclLogCallback_t)to->function)((pcclLogLevel_t)level, message, to->user);
}

pcclResult_t pcclSetLogCallback(pcclLogCallback_t callback, pcclLogLevel_t level, void *user)
{
    if ((unsigned)level > pcclLogNone) {
        return api_fail(pcclInvalidArgument, pcclCauseUsage, "log", "level is %d: expected 0 (pcclLogTrace) to 5 (pcclLogNone)", (int)level);
    }
    log_set_sink(callback != NULL ? log_to_program : NULL, (enum log_level)level,
                 (struct log_to){.user = user, .function = (void (*)(void))callback});
    return pcclSuccess;
}
