/* cluster.c - see cluster.h.
 * SPDX-License-Identifier: MIT */
#include "tests/e2e/cluster.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A harness that cannot start makes every claim of the test void. */
static void must(pcclResult_t result, const char *what)
{
    if (result != pcclSuccess) {
        fprintf(stderr, "%s: %s: %s\n", what, pcclGetResultString(result), pcclGetLastError());
        abort();
    }
}

void cluster_master(struct cluster *c)
{
    memset(c, 0, sizeof *c);
    must(pcclInit(), "init");
    ccoip_socket_address_t any = {.inet = {.protocol = inetIPv4, .ipv4 = {{127, 0, 0, 1}}}, .port = 0};
    must(pcclCreateMaster(any, &c->master), "create master");
    must(pcclRunMaster(c->master), "run master");
    must(pcclGetMasterAddress(c->master, &c->address), "master address");
}

/* It has a communicator. */
static void cluster_add(struct cluster *c, int index)
{
    c->peer[index].cluster = c;
    c->peer[index].index = index;
    c->count = index < c->count ? c->count : index + 1;
}

void cluster_create_ex(struct cluster *c, int index, pcclCommCreateParamsEx_t params)
{
    params.size = sizeof params;
    params.master_address = c->address;
    must(pcclCreateCommunicatorEx(&params, &c->peer[index].comm), "create communicator");
    cluster_add(c, index);
}

void cluster_create(struct cluster *c, int index, uint32_t group, uint32_t pool, uint64_t loss_ms)
{
    struct cluster_peer *p = &c->peer[index];
    pcclCommCreateParams_t params = {
        .master_address = c->address, .peer_group = group, .p2p_connection_pool_size = pool};
    must(pcclCreateCommunicator(&params, &p->comm), "create communicator");
    if (loss_ms != 0) {
        must(pcclSetOption(p->comm, PCCL_OPTION_MASTER_LOSS_TIMEOUT_MS, loss_ms), "set option");
    }
    cluster_add(c, index);
}

int cluster_size(pcclComm_t *comm, pcclAttribute_t attribute)
{
    int size = -1;
    return pcclGetAttribute(comm, attribute, &size) == pcclSuccess ? size : -1;
}

pcclResult_t cluster_join(pcclComm_t *comm, int want)
{
    pcclResult_t result = pcclConnect(comm);
    while (result == pcclSuccess && cluster_size(comm, PCCL_ATTRIBUTE_GLOBAL_WORLD_SIZE) < want) {
        result = pcclUpdateTopology(comm);
    }
    return result;
}

static void join_all(struct cluster_peer *peer, void *context)
{
    must(cluster_join(peer->comm, *(int *)context), "join");
}

static void *thread_main(void *argument)
{
    struct cluster_peer *p = argument;
    p->cluster->run(p, p->cluster->context);
    return NULL;
}

void cluster_run(struct cluster *c, void (*run)(struct cluster_peer *peer, void *context), void *context)
{
    c->run = run;
    c->context = context;
    for (int i = 0; i < c->count; i++) {
        if (pthread_create(&c->peer[i].thread, NULL, thread_main, &c->peer[i]) != 0) {
            abort();
        }
    }
    for (int i = 0; i < c->count; i++) {
        pthread_join(c->peer[i].thread, NULL);
    }
    c->context = NULL; /* the caller's */
}

void cluster_start(struct cluster *c, int count, const uint32_t *groups, uint32_t pool)
{
    cluster_master(c);
    for (int i = 0; i < count; i++) {
        cluster_create(c, i, groups != NULL ? groups[i] : 0, pool, 0);
    }
    cluster_connect(c);
}

void cluster_connect(struct cluster *c)
{
    int count = c->count;
    cluster_run(c, join_all, &count);
}

void cluster_stop(struct cluster *c)
{
    for (int i = 0; i < c->count; i++) {
        if (c->peer[i].comm != NULL) {
            must(pcclDestroyCommunicator(c->peer[i].comm), "destroy");
        }
    }
    if (c->master != NULL) {
        must(pcclInterruptMaster(c->master), "interrupt");
        must(pcclMasterAwaitTermination(c->master), "await");
        must(pcclDestroyMaster(c->master), "destroy master");
    }
}

pcclReduceDescriptor_t cluster_floats(size_t count, uint64_t tag)
{
    pcclReduceDescriptor_t d = {.count = count, .op = pcclSum, .tag = tag};
    d.src_descriptor.datatype = pcclFloat;
    return d;
}
