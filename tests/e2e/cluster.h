/* cluster.h - a master and several peers in this process, for tests through the public interface.
 *
 * Each peer is a communicator driven by a thread of its own; cluster_run starts a function on all of them and waits.
 * SPDX-License-Identifier: MIT */
#ifndef PCCL_TESTS_CLUSTER_H
#define PCCL_TESTS_CLUSTER_H

#include <pthread.h>

#include "pccl.h"

enum { CLUSTER_MOST = 16 };

struct cluster_peer {
    struct cluster *cluster;
    int index;
    pcclComm_t *comm;
    pthread_t thread;
};

struct cluster {
    pcclMasterInstance_t *master;
    ccoip_socket_address_t address;
    int count;
    struct cluster_peer peer[CLUSTER_MOST];
    void (*run)(struct cluster_peer *peer, void *context);
    void *context;
};

/* A master on loopback, a free port. */
void cluster_master(struct cluster *c);
/* A master and `count` communicators that are all members of group 0 (or of `groups[i]` if given), pool as given. */
void cluster_start(struct cluster *c, int count, const uint32_t *groups, uint32_t pool);
/* Creates communicator `index` without connecting it; `loss_ms`: master loss time-out, 0: default. */
void cluster_create(struct cluster *c, int index, uint32_t group, uint32_t pool, uint64_t loss_ms);
/* The same with these parameters; their size and the master's address are filled in. */
void cluster_create_ex(struct cluster *c, int index, pcclCommCreateParamsEx_t params);
/* Makes all that were created members. */
void cluster_connect(struct cluster *c);
/* Connects, then updates until the global world size is `want`. */
pcclResult_t cluster_join(pcclComm_t *comm, int want);
/* Runs `run` on a thread per peer and waits for all. */
void cluster_run(struct cluster *c, void (*run)(struct cluster_peer *peer, void *context), void *context);
/* Destroys what is left and stops the master. */
void cluster_stop(struct cluster *c);

int cluster_size(pcclComm_t *comm, pcclAttribute_t attribute);
pcclReduceDescriptor_t cluster_floats(size_t count, uint64_t tag);

#endif
