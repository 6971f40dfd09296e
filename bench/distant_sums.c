/* distant_sums.c - all-reduces of this library between hosts of an emulated network, for bench/wan/distant.py.
 *
 * A rank per host, the master in rank 0's process.  Everything is as the library has it by default, with one connection per peer.
 * Usage: distant_sums BYTES CALLS BUDGET_S IDLE_S OPTIMISE; a line of JSON for each call.  The last is how often links are measured: before
 * the calls, then before as many calls again, which take what the ones before have shown.  0: never.
 * SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#include "wan/distant.h"

#include <arpa/inet.h>
#include <pccl.h>
#include <poll.h>

enum { PORT = 48148, CONNECT_S = 5 };

struct sums {
    struct distant d;
    pcclComm_t *comm;
    float *in, *out;
    size_t count;
    uint64_t tag;
};

static void must(pcclResult_t result, const char *what)
{
    if (result != pcclSuccess) {
        fprintf(stderr, "%s: %s: ", what, pcclGetResultString(result));
        distant_fail("pccl", pcclGetLastError());
    }
}

static void begin(void *context)
{
    struct sums *s = context;
    s->tag++;
    for (size_t i = 0; i < s->count; i++) {
        s->out[i] = -1;
    }
}

static void call(void *context)
{
    struct sums *s = context;
    pcclReduceDescriptor_t what = {.count = s->count, .op = pcclSum, .tag = s->tag, .src_descriptor = {.datatype = pcclFloat}};
    must(pcclAllReduce(s->in, s->out, &what, s->comm, NULL), "all-reduce");
}

static long wrong(void *context)
{
    struct sums *s = context;
    long bad = 0;
    for (size_t i = 0; i < s->count; i++) {
        bad += s->out[i] != distant_sum(s->d.world, i) || s->in[i] != distant_given(s->d.rank, i);
    }
    return bad;
}

static ccoip_socket_address_t master_address(void)
{
    ccoip_socket_address_t at = {.inet = {.protocol = inetIPv4}, .port = PORT};
    if (inet_pton(AF_INET, distant_variable("PCCL_WAN_FIRST"), at.inet.ipv4.data) != 1) {
        distant_fail("PCCL_WAN_FIRST", "is no address");
    }
    return at;
}

static int world_size(const struct sums *s)
{
    int world = 0;
    must(pcclGetAttribute(s->comm, PCCL_ATTRIBUTE_GLOBAL_WORLD_SIZE, &world), "world size");
    return world;
}

static void join(struct sums *s)
{
    pcclCommCreateParams_t params = {.master_address = master_address(), .p2p_connection_pool_size = 1};
    must(pcclCreateCommunicator(&params, &s->comm), "create communicator");
    must(pcclConnect(s->comm), "connect");
    while (world_size(s) < s->d.world) { /* not once more than that: the others would not be in an update */
        must(pcclUpdateTopology(s->comm), "update");
    }
}

/* The first call is one on connections that are there, as that of plain sockets is.  Two that cannot reach each other have none. */
static void await_connections(const struct sums *s)
{
    double until_s = distant_now_s() + CONNECT_S;
    size_t count = 0;
    do {
        must(pcclGetTcpConnections(s->comm, NULL, 0, &count), "connections");
        (void)poll(NULL, 0, 1);
    } while (count + 1 < (size_t)s->d.world && distant_now_s() < until_s);
}

static void optimise(struct sums *s)
{
    double begin_s = distant_now_s();
    must(pcclOptimizeTopology(s->comm), "optimise");
    printf("{\"kind\": \"optimise\", \"rank\": %d, \"start_s\": %.6f, \"end_s\": %.6f, \"wrong\": 0}\n", s->d.rank, begin_s, distant_now_s());
}

/* What the cost model has chosen. */
static void tell_plan(struct sums *s)
{
    pcclPlan_t plan;
    must(pcclGetPlan(s->comm, pcclCollectiveAllReduce, s->count, pcclFloat, pcclSum, &plan), "plan");
    printf("{\"kind\": \"plan\", \"rank\": %d, \"algorithm\": \"%s\", \"predicted_s\": %.6f}\n", s->d.rank, plan.algorithm, plan.predicted_us / 1e6);
}

int main(int argc, char **argv)
{
    struct sums s = {.tag = 0};
    pcclMasterInstance_t *master = NULL;
    distant_begin(&s.d, argc, argv, 1);
    must(pcclInit(), "initialise");
    if (s.d.rank == 0) {
        must(pcclCreateMaster(master_address(), &master), "create master");
        must(pcclRunMaster(master), "run master");
    }
    distant_meet(&s.d);
    s.count = s.d.bytes / sizeof(float);
    s.in = distant_memory(s.count * sizeof(float));
    s.out = distant_memory(s.count * sizeof(float));
    for (size_t i = 0; i < s.count; i++) {
        s.in[i] = distant_given(s.d.rank, i);
    }
    join(&s);
    await_connections(&s);
    int rounds = atoi(argv[5]);
    do {
        if (rounds > 0) {
            optimise(&s);
        }
        distant_measure(&s.d, &(struct distant_calls){.begin = begin, .call = call, .wrong = wrong, .context = &s});
        tell_plan(&s);
    } while (--rounds > 0);
    distant_meet(&s.d);
    must(pcclDestroyCommunicator(s.comm), "destroy");
    distant_end(&s.d);
    if (master != NULL) {
        must(pcclInterruptMaster(master), "interrupt master");
        must(pcclMasterAwaitTermination(master), "await master");
        must(pcclDestroyMaster(master), "destroy master");
    }
    free(s.in);
    free(s.out);
    return 0;
}
