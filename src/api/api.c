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

enum { API_TIMEOUT_MS = 10000, API_STALL_LEAST_MS = 50 };

/* PCCL_LOG_LEVEL, as the original has it: a log without a line of code.  A word that is none of its levels is told once, since
 * whoever sets the variable wants to see something. */
static void log_from_environment(void)
{
    const char *word = getenv("PCCL_LOG_LEVEL");
    enum log_level level;
    if (word == NULL || *word == 0) {
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

/* Null or a text: what is wrong with the name of a world. */
static const char *world_mistake(const char *name)
{
    size_t size = strnlen(name, BOUNDS_WORLD_NAME);
    if (size == BOUNDS_WORLD_NAME) {
        return "is longer than 63 bytes";
    }
    for (size_t i = 0; i < size; i++) {
        if ((unsigned char)name[i] < 0x20 || name[i] == 0x7F) {
            return "has control characters";
        }
    }
    return NULL;
}

/* Null or a text: what is wrong with a world of a given size. */
static const char *size_mistake(const pcclCommCreateParamsEx_t *p, const char *name)
{
    bool creating = p->loss_rule != PCCL_LOSS_END || p->formation_timeout_ms != 0 || p->once;
    if (p->world_size == 0) {
        return creating || p->rank != 0 || p->join
                   ? "a rank, a loss rule, a formation timeout, once or join go with a world_size, which is 0"
                   : NULL;
    }
    if (p->join && creating) {
        return "a loss rule, a formation timeout and once are for those who create it: with join they are as they were given then";
    }
    bool rule = p->loss_rule == PCCL_LOSS_END || p->loss_rule == PCCL_LOSS_SHRINK;
    return p->world_size > BOUNDS_MEMBERS ? "it is larger than 16384"
           : name[0] == 0                 ? "such a world needs a name"
           : p->rank >= p->world_size && !(p->join && p->rank == PCCL_ANY_RANK) ? "the rank is not below it"
           : p->peer_group != 0           ? "such a world has no peer group but 0"
           : !rule                        ? "the loss rule is unknown"
                                          : NULL;
}

static pcclResult_t address_check(const ccoip_socket_address_t *a, const char *phase)
{
    if ((unsigned)a->inet.protocol > inetIPv6) {
        return api_fail(pcclInvalidArgument, pcclCauseUsage, phase, "master_address: unknown protocol %d: inetIPv4 or inetIPv6",
                        (int)a->inet.protocol);
    }
    if (a->port == 0) {
        return api_fail(pcclInvalidArgument, pcclCauseUsage, phase,
                        "master_address: port 0: give pcclParseAddress the port at which ccoip_master listens (%d unless "
                        "--listen says another), as in '10.0.0.1:%d', and check its result",
                        CCOIP_PROTOCOL_PORT_MASTER, CCOIP_PROTOCOL_PORT_MASTER);
    }
    return pcclSuccess;
}

static pcclResult_t communicator_new(const pcclCommCreateParamsEx_t *params, const char *phase, pcclComm_t **comm_out)
{
    const char *world = params->world != NULL ? params->world : "", *mistake = world_mistake(world);
    pcclResult_t rc = address_check(&params->master_address, phase);
    if (rc != pcclSuccess) {
        return rc;
    }
    if (mistake != NULL) {
        return api_fail(pcclInvalidArgument, pcclCauseUsage, phase, "the name of the world %s", mistake);
    }
    mistake = size_mistake(params, world);
    if (mistake != NULL) {
        return api_fail(pcclInvalidArgument, pcclCauseUsage, phase, "world_size %u, rank %u: %s", params->world_size, params->rank,
                        mistake);
    }
    struct choose_wishes wishes;
    rc = api_wishes(phase, &wishes);
    if (rc != pcclSuccess) {
        return rc;
    }
    uint32_t pool = params->p2p_connection_pool_size == 0 ? 1 : params->p2p_connection_pool_size;
    struct comm_params p = {
        .master = api_address_in(&params->master_address),
        .group = params->peer_group,
        .lanes = (uint16_t)(pool < BOUNDS_LANES ? pool : BOUNDS_LANES),
        .claim = {.size = params->world_size, .rank = params->rank, .deadline_ms = params->formation_timeout_ms,
                  .loss = (uint8_t)params->loss_rule, .once = params->once, .join = params->join},
        .stall_ns = API_TIMEOUT_MS * CLOCK_MS,
        .master_loss_ns = API_TIMEOUT_MS * CLOCK_MS,
        .connect_ns = API_TIMEOUT_MS * CLOCK_MS,
        .wishes = wishes,
    };
    memcpy(p.world, world, strlen(world));
    pcclComm_t *communicator = (pcclComm_t *)handle_take(HANDLE_COMM, sizeof *communicator);
    if (communicator == NULL || comm_new(&engine_global, &p, &communicator->comm) != PCCL_OK) {
        if (communicator != NULL) {
            handle_give(HANDLE_COMM, &communicator->handle);
        }
        return api_fail(pcclInternalError, pcclCauseNoMemory, phase, "no memory");
    }
    handle_open(&communicator->handle);
    *comm_out = communicator;
    return pcclSuccess;
}

/* What both ways of making one look at first. */
static pcclResult_t create_check(const void *params, pcclComm_t **comm_out, const char *phase)
{
    if (!engine_marked(&engine_global)) {
        return api_fail(pcclNotInitialized, pcclCauseUsage, phase, "call pcclInit first");
    }
    if (params == NULL || comm_out == NULL) {
        return api_fail(pcclInvalidArgument, pcclCauseUsage, phase, "%s is null", params == NULL ? "params" : "comm_out");
    }
    return pcclSuccess;
}

pcclResult_t pcclCreateCommunicator(const pcclCommCreateParams_t *params, pcclComm_t **comm_out)
{
    const char *phase = "create communicator";
    pcclResult_t rc = create_check(params, comm_out, phase);
    if (rc != pcclSuccess) {
        return rc;
    }
    const pcclCommCreateParamsEx_t all = {.size = sizeof all, .master_address = params->master_address,
                                          .peer_group = params->peer_group,
                                          .p2p_connection_pool_size = params->p2p_connection_pool_size};
    return communicator_new(&all, phase, comm_out);
}

/* Programs compiled with a header of another version: what it did not know is zero, what this one does not know has to be. */
static pcclResult_t params_take(const pcclCommCreateParamsEx_t *params, const char *phase, pcclCommCreateParamsEx_t *out)
{
    enum { FIRST_BYTES = offsetof(pcclCommCreateParamsEx_t, world) + sizeof(const char *), MOST_BYTES = 4096 };
    if (params->size < FIRST_BYTES || params->size > MOST_BYTES) { /* what was never set says anything */
        return api_fail(pcclInvalidArgument, pcclCauseUsage, phase, "params->size is %zu: set it to sizeof(pcclCommCreateParamsEx_t)",
                        params->size);
    }
    const unsigned char *bytes = (const unsigned char *)params;
    for (size_t i = sizeof *out; i < params->size; i++) {
        if (bytes[i] != 0) {
            return api_fail(pcclInvalidArgument, pcclCauseUsage, phase,
                            "byte %zu of params is set: this library does not know what for", i);
        }
    }
    memset(out, 0, sizeof *out);
    memcpy(out, params, params->size < sizeof *out ? params->size : sizeof *out);
    return pcclSuccess;
}

pcclResult_t pcclCreateCommunicatorEx(const pcclCommCreateParamsEx_t *params, pcclComm_t **comm_out)
{
    const char *phase = "create communicator";
    pcclCommCreateParamsEx_t all;
    pcclResult_t rc = create_check(params, comm_out, phase);
    rc = rc == pcclSuccess ? params_take(params, phase, &all) : rc;
    return rc == pcclSuccess ? communicator_new(&all, phase, comm_out) : rc;
}

pcclResult_t pcclDestroyCommunicator(pcclComm_t *communicator)
{
    if (communicator == NULL) {
        return api_fail(pcclInvalidArgument, pcclCauseUsage, "destroy", "the communicator is null");
    }
    if (!handle_close(&communicator->handle)) {
        return api_fail(pcclInvalidUsage, pcclCauseUsage, "destroy", "the communicator was destroyed before");
    }
    if (communicator->comm->generation != atomic_load(&engine_global.generation)) {
        comm_abandon(communicator->comm);
    } else {
        while (handle_pinned(&communicator->handle)) {
            sched_yield(); /* for a few instructions */
        }
        comm_free(communicator->comm);
    }
    handle_give(HANDLE_COMM, &communicator->handle);
    return pcclSuccess;
}

/* A failed connect names the master, whoever noticed, and says what is likely to be wrong there. */
static const char *connect_hint(const struct comm *c, struct session_outcome *o)
{
    char master[ADDR_TEXT], text[sizeof o->text];
    if (o->cause == CAUSE_KICK_VERSION || (o->result != RESULT_UNREACHABLE && o->result != RESULT_REFUSED)) {
        return NULL; /* it names who is of another version */
    }
    addr_format(&c->params.master, master);
    if (strstr(o->text, master) == NULL) {
        snprintf(text, sizeof text, "%s: %.130s", master, o->text);
        memcpy(o->text, text, sizeof text);
    }
    if (o->result == RESULT_REFUSED) {
        return NULL;
    }
    switch (c->master.met) {
    case DIAL_MET_NOBODY:
        return "is ccoip_master running there? (PCCL_OPTION_CONNECT_TIMEOUT_MS says how long to try)";
    case DIAL_MET_SILENCE:
        return "is the address right, and does no firewall on the way drop TCP to that port? "
               "(PCCL_OPTION_CONNECT_TIMEOUT_MS says how long to try)";
    case DIAL_MET_STRANGER:
        return "what listens there does not talk like a running ccoip_master: check the address and the port";
    case DIAL_MET_FOREIGN: /* said by the session */
    case DIAL_MET_OTHER:
        break;
    }
    return "check its address, connect again (PCCL_OPTION_CONNECT_TIMEOUT_MS says how long to try)";
}

pcclResult_t pcclConnect(pcclComm_t *communicator)
{
    struct comm *c;
    struct session_outcome o;
    pcclResult_t rc = api_enter(communicator, "connect", &c);
    if (rc != pcclSuccess) {
        return rc;
    }
    int64_t began = clock_now_ns();
    comm_connect(c, &o);
    const char *hint = connect_hint(c, &o);
    o.since = hint != NULL ? began : o.since;
    rc = api_outcome_hint(&o, "connect", 0, hint);
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
        comm_leave(c);
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
        return api_fail(pcclInvalidArgument, pcclCauseUsage, "attribute", "unknown attribute %d", (int)attribute);
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
    uint64_t least = may_be_none ? 0 : option == PCCL_OPTION_STALL_TIMEOUT_MS ? API_STALL_LEAST_MS : 1;
    if (place == NULL) {
        rc = api_fail(pcclInvalidArgument, pcclCauseUsage, phase, "unknown option %d", (int)option);
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
        rc = api_fail(pcclInvalidArgument, pcclCauseUsage, "get option", "unknown option %d", (int)option);
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
        return api_fail(pcclInvalidArgument, pcclCauseUsage, "log", "unknown level %d", (int)level);
    }
    log_set_sink(callback != NULL ? log_to_program : NULL, (enum log_level)level,
                 (struct log_to){.user = user, .function = (void (*)(void))callback});
    return pcclSuccess;
}
