/* bench_call.c - one row for each collective, and what follows from a row.
 *
 * Output part r of a call with parts comes from rank r, its whole input or the part for this rank; an output without
 * parts is what was reduced, the root's, or that of the rank before.  In place the smaller of the two buffers is the own part of the larger.
 * SPDX-License-Identifier: MIT */
#include "pccl/bench_call.h"

#include <string.h>

static pcclDataType_t datatype_of(const struct bench_args *a)
{
    return (pcclDataType_t)a->type; /* the same values: core/dtype.h */
}

static unsigned rank_before(const struct bench_args *a)
{
    return (a->rank + a->world - 1) % a->world;
}

static pcclResult_t launch_all_reduce(const struct bench_call *call, const struct bench_args *a)
{
    return pcclAllReduceOrdered(bench_call_input(call, a), bench_call_output(call, a), a->count, datatype_of(a), a->redop,
                                a->comm, NULL);
}

static pcclResult_t launch_broadcast(const struct bench_call *call, const struct bench_args *a)
{
    return pcclBroadcast(bench_call_input(call, a), bench_call_output(call, a), a->count, datatype_of(a), a->root, a->comm,
                         NULL);
}

static pcclResult_t launch_reduce(const struct bench_call *call, const struct bench_args *a)
{
    return pcclReduce(bench_call_input(call, a), bench_call_output(call, a), a->count, datatype_of(a), a->redop, a->root,
                      a->comm, NULL);
}

static pcclResult_t launch_all_gather(const struct bench_call *call, const struct bench_args *a)
{
    return pcclAllGather(bench_call_input(call, a), bench_call_output(call, a), a->count, datatype_of(a), a->comm, NULL);
}

static pcclResult_t launch_reduce_scatter(const struct bench_call *call, const struct bench_args *a)
{
    return pcclReduceScatter(bench_call_input(call, a), bench_call_output(call, a), a->count, datatype_of(a), a->redop,
                             a->comm, NULL);
}

static pcclResult_t launch_all_to_all(const struct bench_call *call, const struct bench_args *a)
{
    return pcclAllToAll(bench_call_input(call, a), bench_call_output(call, a), a->count, datatype_of(a), a->comm, NULL);
}

static pcclResult_t launch_gather(const struct bench_call *call, const struct bench_args *a)
{
    return pcclGather(bench_call_input(call, a), bench_call_output(call, a), a->count, datatype_of(a), a->root, a->comm,
                      NULL);
}

static pcclResult_t launch_scatter(const struct bench_call *call, const struct bench_args *a)
{
    return pcclScatter(bench_call_input(call, a), bench_call_output(call, a), a->count, datatype_of(a), a->root, a->comm,
                       NULL);
}

/* The two of a rank start together, so that nobody waits in a circle; alone it is a copy. */
static pcclResult_t launch_sendrecv(const struct bench_call *call, const struct bench_args *a)
{
    (void)pcclGroupStart(); /* what fails inside of it, its end tells */
    (void)pcclSend(bench_call_input(call, a), a->count, datatype_of(a), (a->rank + 1) % a->world, 0, a->comm, NULL);
    (void)pcclReceive(bench_call_output(call, a), a->count, datatype_of(a), rank_before(a), 0, NULL, a->comm, NULL);
    return pcclGroupEnd();
}

static const struct bench_call calls[] = {
    {.name = "all_reduce", .reduces = true, .in_place = true, .both_ways = true, .plan = pcclCollectiveAllReduce, .launch = launch_all_reduce},
    {.name = "broadcast", .in_root = true, .in_place = true, .plan = pcclCollectiveBroadcast, .launch = launch_broadcast},
    {.name = "reduce", .out_root = true, .reduces = true, .in_place = true, .plan = pcclCollectiveReduce, .launch = launch_reduce},
    {.name = "all_gather", .out = BENCH_ALL, .in_place = true, .plan = pcclCollectiveAllGather, .launch = launch_all_gather},
    {.name = "reduce_scatter", .in = BENCH_ALL, .reduces = true, .plan = pcclCollectiveReduceScatter, .launch = launch_reduce_scatter},
    {.name = "all_to_all", .in = BENCH_ALL, .out = BENCH_ALL, .plan = pcclCollectiveAllToAll, .launch = launch_all_to_all},
    {.name = "gather", .out = BENCH_ALL, .out_root = true, .in_place = true, .plan = pcclCollectiveGather, .launch = launch_gather},
    {.name = "scatter", .in = BENCH_ALL, .in_root = true, .in_place = true, .plan = pcclCollectiveScatter, .launch = launch_scatter},
    {.name = "sendrecv", .messages = true, .launch = launch_sendrecv},
};

const struct bench_call *bench_call_at(size_t index)
{
    return index < sizeof calls / sizeof calls[0] ? &calls[index] : NULL;
}

const struct bench_call *bench_call_find(const char *name)
{
    for (size_t i = 0; i < sizeof calls / sizeof calls[0]; i++) {
        if (strcmp(calls[i].name, name) == 0) {
            return &calls[i];
        }
    }
    return NULL;
}

static bool has_parts(const struct bench_call *call)
{
    return call->in == BENCH_ALL || call->out == BENCH_ALL;
}

size_t bench_call_count(const struct bench_call *call, size_t size, size_t element_bytes, unsigned world)
{
    size_t count = size / element_bytes / (has_parts(call) ? world : 1);
    return count > 0 ? count : 1;
}

size_t bench_call_size(const struct bench_call *call, size_t count, size_t element_bytes, unsigned world)
{
    return count * element_bytes * (has_parts(call) ? world : 1);
}

double bench_call_busbw(const struct bench_call *call, double algbw, unsigned world)
{
    double share = (double)(world - 1) / world;
    return call->both_ways ? algbw * 2 * share : has_parts(call) ? algbw * share : algbw;
}

static bool has_input(const struct bench_call *call, const struct bench_args *a)
{
    return !call->in_root || a->rank == a->root;
}

static bool has_output(const struct bench_call *call, const struct bench_args *a)
{
    return !call->out_root || a->rank == a->root;
}

static size_t extent(enum bench_extent e, const struct bench_args *a)
{
    return e == BENCH_ALL ? a->world * a->count : a->count;
}

static unsigned char *own_part(unsigned char *of, const struct bench_args *a)
{
    return of + a->rank * a->count * dtype_size(a->type);
}

/* Where a root is, in place is its business: the others have one buffer only anyway, but for a broadcast. */
unsigned char *bench_call_input(const struct bench_call *call, const struct bench_args *a)
{
    if (!a->in_place || !has_output(call, a)) {
        return a->send;
    }
    return call->in == BENCH_ALL ? a->send : call->out == BENCH_ALL ? own_part(a->recv, a) : a->recv;
}

unsigned char *bench_call_output(const struct bench_call *call, const struct bench_args *a)
{
    return a->in_place && call->in == BENCH_ALL && has_input(call, a) ? own_part(a->send, a) : a->recv;
}

void bench_call_fill(const struct bench_call *call, const struct bench_args *a, const struct bench_pattern *p)
{
    size_t out = has_output(call, a) ? extent(call->out, a) : 0;
    unsigned char *output = bench_call_output(call, a);
    memset(output, 0xA5, out * p->element_bytes); /* what is not written must not look right */
    if (has_input(call, a)) {
        bench_pattern_fill(p, a->rank, 0, bench_call_input(call, a), extent(call->in, a));
    }
}

uint64_t bench_call_wrong(const struct bench_call *call, const struct bench_args *a, const struct bench_pattern *p)
{
    unsigned char *output = bench_call_output(call, a);
    size_t first = call->in == BENCH_ALL ? a->rank * a->count : 0;
    uint64_t wrong = 0;
    if (!has_output(call, a)) {
        return 0;
    }
    if (call->out == BENCH_ONE) {
        unsigned source = call->reduces ? a->world : call->messages ? rank_before(a) : a->root;
        return bench_pattern_wrong(p, source, first, output, a->count);
    }
    for (unsigned r = 0; r < a->world; r++) {
        wrong += bench_pattern_wrong(p, r, first, output + r * a->count * p->element_bytes, a->count);
    }
    return wrong;
}
