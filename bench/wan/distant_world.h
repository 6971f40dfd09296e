/* distant_world.h - this library's world of all hosts of an emulated network, with the master in rank 0's process.
 *
 * Everything is as the library has it by default, with one connection per peer.
 * SPDX-License-Identifier: MIT */
#ifndef PCCL_BENCH_DISTANT_WORLD_H
#define PCCL_BENCH_DISTANT_WORLD_H

#include "distant.h"

#include <arpa/inet.h>
#include <pccl.h>
#include <poll.h>

enum { DISTANT_PORT = 48148, DISTANT_CONNECT_S = 5 };

struct distant_world {
    struct distant d;
    pcclComm_t *comm;
    pcclMasterInstance_t *master; /* rank 0's */
};

static inline void distant_must(pcclResult_t result, const char *what)
{
    if (result != pcclSuccess) {
        fprintf(stderr, "%s: %s: ", what, pcclGetResultString(result));
        distant_fail("pccl", pcclGetLastError());
    }
}

static inline ccoip_socket_address_t distant_master(void)
{
    ccoip_socket_address_t at = {.inet = {.protocol = inetIPv4}, .port = DISTANT_PORT};
    if (inet_pton(AF_INET, distant_variable("PCCL_WAN_FIRST"), at.inet.ipv4.data) != 1) {
        distant_fail("PCCL_WAN_FIRST", "is no address");
    }
    return at;
}

static inline int distant_size(const struct distant_world *w)
{
    int world = 0;
    distant_must(pcclGetAttribute(w->comm, PCCL_ATTRIBUTE_GLOBAL_WORLD_SIZE, &world), "world size");
    return world;
}

/* The words of the command as in distant_begin. */
static inline void distant_world_begin(struct distant_world *w, int argc, char **argv, int more)
{
    *w = (struct distant_world){.comm = NULL};
    distant_begin(&w->d, argc, argv, more);
    distant_must(pcclInit(), "initialise");
    if (w->d.rank == 0) {
        distant_must(pcclCreateMaster(distant_master(), &w->master), "create master");
        distant_must(pcclRunMaster(w->master), "run master");
    }
    distant_meet(&w->d);
}

/* The first call is one on connections that are there, as that of plain sockets is.  Two that cannot reach each other have none. */
static inline void distant_await_connections(const struct distant_world *w)
{
    double until_s = distant_now_s() + DISTANT_CONNECT_S;
    size_t count = 0;
    do {
        distant_must(pcclGetTcpConnections(w->comm, NULL, 0, &count), "connections");
        (void)poll(NULL, 0, 1);
    } while (count + 1 < (size_t)w->d.world && distant_now_s() < until_s);
}

static inline void distant_world_join(struct distant_world *w)
{
    pcclCommCreateParams_t params = {.master_address = distant_master(), .p2p_connection_pool_size = 1};
    distant_must(pcclCreateCommunicator(&params, &w->comm), "create communicator");
    distant_must(pcclConnect(w->comm), "connect");
    while (distant_size(w) < w->d.world) { /* not once more than that: the others would not be in an update */
        distant_must(pcclUpdateTopology(w->comm), "update");
    }
    distant_await_connections(w);
}

static inline void distant_world_end(struct distant_world *w)
{
    distant_meet(&w->d);
    distant_must(pcclDestroyCommunicator(w->comm), "destroy");
    distant_end(&w->d);
    if (w->master != NULL) {
        distant_must(pcclInterruptMaster(w->master), "interrupt master");
        distant_must(pcclMasterAwaitTermination(w->master), "await master");
        distant_must(pcclDestroyMaster(w->master), "destroy master");
    }
}

#endif
