/* api_create.c - communicators made for the world that their parameters name: what one process can check of these.
 *
 * Its one idea: whatever makes a communicator fills one struct comm_params, and one function makes it of that.
 * SPDX-License-Identifier: MIT */
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "api/api.h"
#include "core/clock.h"

enum { API_TIMEOUT_MS = 10000 };

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

uint16_t api_lanes(uint32_t pool)
{
    return (uint16_t)(pool == 0 ? 1 : pool < BOUNDS_LANES ? pool : BOUNDS_LANES);
}

pcclResult_t api_communicator(const struct comm_params *params, const char *phase, pcclComm_t **comm_out)
{
    pcclComm_t *communicator = (pcclComm_t *)handle_take(HANDLE_COMM, sizeof *communicator);
    if (communicator == NULL || comm_new(&engine_global, params, &communicator->comm) != PCCL_OK) {
        if (communicator != NULL) {
            handle_give(HANDLE_COMM, &communicator->handle);
        }
        return api_fail(pcclInternalError, pcclCauseNoMemory, phase, "no memory");
    }
    handle_open(&communicator->handle);
    *comm_out = communicator;
    return pcclSuccess;
}

static pcclResult_t buffers_check(const pcclCommCreateParamsEx_t *params, const char *phase)
{
    const int32_t bytes[] = {params->socket_send_bytes, params->socket_receive_bytes};
    for (int i = 0; i < 2; i++) {
        if (bytes[i] != 0 && !sock_buffer_good(bytes[i])) {
            return api_fail(pcclInvalidArgument, pcclCauseUsage, phase, "%s %d: expected %d to %d bytes, -1: as the kernel tunes it, or 0",
                            i == 0 ? "socket_send_bytes" : "socket_receive_bytes", bytes[i], SOCK_BUFFER_LEAST, SOCK_BUFFER_MOST);
        }
    }
    return pcclSuccess;
}

static pcclResult_t carriers_check(const pcclCommCreateParamsEx_t *params, const char *phase, struct comm_params *p)
{
    struct err err;
    enum fabric_choice choice;
    if (params->shm_disable < -1 || params->shm_disable > 1) {
        return api_fail(pcclInvalidArgument, pcclCauseUsage, phase, "shm_disable %d: expected 1, 0 or -1", params->shm_disable);
    }
    if (fabric_read_choice("net", params->net, &choice, &err) != PCCL_OK) {
        return api_fail(pcclInvalidArgument, pcclCauseUsage, phase, "%s", err.text);
    }
    p->share = params->shm_disable == 0 ? COMM_WISH_NONE : params->shm_disable > 0 ? COMM_WISH_NO : COMM_WISH_YES;
    p->fabric = choice == FABRIC_AUTO ? COMM_WISH_NONE : choice == FABRIC_NEVER ? COMM_WISH_NO : COMM_WISH_YES;
    return pcclSuccess;
}

static pcclResult_t communicator_new(const pcclCommCreateParamsEx_t *params, const char *phase, pcclComm_t **comm_out)
{
    const char *world = params->world != NULL ? params->world : "", *mistake = world_mistake(world);
    pcclResult_t rc = address_check(&params->master_address, phase);
    if (rc == pcclSuccess) {
        rc = buffers_check(params, phase);
    }
    if (rc != pcclSuccess) {
        return rc;
    }
    if (mistake != NULL) {
        return api_fail(pcclInvalidArgument, pcclCauseUsage, phase, "the name of the world %s", mistake);
    }
    if (params->stall_ms > 0 && params->stall_ms < BOUNDS_STALL_LEAST_MS) {
        return api_fail(pcclInvalidArgument, pcclCauseUsage, phase, "stall_ms %u: expected at least %d, or 0", params->stall_ms,
                        BOUNDS_STALL_LEAST_MS);
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
    struct comm_params p = {
        .master = api_address_in(&params->master_address),
        .group = params->peer_group,
        .lanes = api_lanes(params->p2p_connection_pool_size),
        .claim = {.size = params->world_size, .rank = params->rank, .deadline_ms = params->formation_timeout_ms,
                  .loss = (uint8_t)params->loss_rule, .once = params->once, .join = params->join},
        .stall_ms = params->stall_ms,
        .stall_ns = (params->stall_ms > 0 ? params->stall_ms : API_TIMEOUT_MS) * CLOCK_MS,
        .master_loss_ns = API_TIMEOUT_MS * CLOCK_MS,
        .connect_ns = API_TIMEOUT_MS * CLOCK_MS,
        .wishes = wishes,
    };
    memcpy(p.world, world, strlen(world));
    if (params->socket_ifname != NULL) {
        size_t bytes = strlen(params->socket_ifname);
        if (bytes >= sizeof p.interfaces) {
            return api_fail(pcclInvalidArgument, pcclCauseUsage, phase, "socket_ifname is %zu bytes long, at most %zu are allowed", bytes,
                            sizeof p.interfaces - 1);
        }
        memcpy(p.interfaces, params->socket_ifname, bytes);
    }
    p.buffers = (struct sock_buffers){.send = params->socket_send_bytes, .receive = params->socket_receive_bytes};
    rc = carriers_check(params, phase, &p);
    return rc == pcclSuccess ? api_communicator(&p, phase, comm_out) : rc;
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
                            "byte %zu of params is set: this library has no field there, set it to 0", i);
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
