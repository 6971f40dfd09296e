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

/* ---- Counts of each rank's own ------------------------------------------------------------------------------------------ */

enum { RANKS_MOST = 64 };

static size_t uneven(const struct bench_args *a, unsigned index)
{
    size_t half = a->count / 2;
    bool last = index + 1 == a->world && a->world % 2 == 1; /* has nobody to give to */
    return last ? a->count : index % 2 == 0 ? a->count + half : a->count - half;
}

size_t bench_call_part(const struct bench_call *call, const struct bench_args *a, unsigned from, unsigned to)
{
    bool both = call->in == BENCH_ALL && call->out == BENCH_ALL;
    return !call->uneven ? a->count : uneven(a, both ? (from + to) % a->world : call->in == BENCH_ALL ? to : from);
}

/* What this rank gives to each, or gets of each. */
static const size_t *counts_of(const struct bench_call *call, const struct bench_args *a, bool gives, size_t counts[RANKS_MOST])
{
    for (unsigned r = 0; r < a->world; r++) {
        counts[r] = gives ? bench_call_part(call, a, a->rank, r) : bench_call_part(call, a, r, a->rank);
    }
    return counts;
}

static size_t own_count(const struct bench_call *call, const struct bench_args *a)
{
    return bench_call_part(call, a, a->rank, a->rank);
}

static pcclResult_t launch_all_gather_v(const struct bench_call *call, const struct bench_args *a)
{
    size_t counts[RANKS_MOST];
    return pcclAllGatherV(bench_call_input(call, a), bench_call_output(call, a), counts_of(call, a, false, counts), NULL, datatype_of(a),
                          a->comm, NULL);
}

static pcclResult_t launch_reduce_scatter_v(const struct bench_call *call, const struct bench_args *a)
{
    size_t counts[RANKS_MOST];
    return pcclReduceScatterV(bench_call_input(call, a), bench_call_output(call, a), counts_of(call, a, true, counts), NULL, datatype_of(a),
                              a->redop, a->comm, NULL);
}

static pcclResult_t launch_all_to_all_v(const struct bench_call *call, const struct bench_args *a)
{
    size_t give[RANKS_MOST], get[RANKS_MOST];
    return pcclAllToAllV(bench_call_input(call, a), counts_of(call, a, true, give), NULL, bench_call_output(call, a),
                         counts_of(call, a, false, get), NULL, datatype_of(a), a->comm, NULL);
}

static pcclResult_t launch_gather_v(const struct bench_call *call, const struct bench_args *a)
{
    size_t counts[RANKS_MOST];
    return pcclGatherV(bench_call_input(call, a), own_count(call, a), bench_call_output(call, a), counts_of(call, a, false, counts), NULL,
                       datatype_of(a), a->root, a->comm, NULL);
}

static pcclResult_t launch_scatter_v(const struct bench_call *call, const struct bench_args *a)
{
    size_t counts[RANKS_MOST];
    return pcclScatterV(bench_call_input(call, a), counts_of(call, a, true, counts), NULL, bench_call_output(call, a), own_count(call, a),
                        datatype_of(a), a->root, a->comm, NULL);
}

static pcclResult_t launch_barrier(const struct bench_call *call, const struct bench_args *a)
{
    (void)call;
    return pcclBarrier(a->comm, NULL);
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
    {.name = "all_gather_v", .uneven = true, .out = BENCH_ALL, .in_place = true, .plan = pcclCollectiveAllGather, .launch = launch_all_gather_v},
    {.name = "reduce_scatter_v", .uneven = true, .in = BENCH_ALL, .reduces = true, .plan = pcclCollectiveReduceScatter,
     .launch = launch_reduce_scatter_v},
    {.name = "all_to_all_v", .uneven = true, .in = BENCH_ALL, .out = BENCH_ALL, .plan = pcclCollectiveAllToAll, .launch = launch_all_to_all_v},
    {.name = "gather_v", .uneven = true, .out = BENCH_ALL, .out_root = true, .in_place = true, .plan = pcclCollectiveGather,
     .launch = launch_gather_v},
    {.name = "scatter_v", .uneven = true, .in = BENCH_ALL, .in_root = true, .in_place = true, .plan = pcclCollectiveScatter,
     .launch = launch_scatter_v},
    {.name = "barrier", .barrier = true, .plan = pcclCollectiveAllReduce, .launch = launch_barrier},
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

bool bench_call_plan_count(const struct bench_call *call, const struct bench_args *a, size_t *count_out)
{
    bool pairs = call->uneven && (call->in_root || call->out_root || call->in == call->out);
    *count_out = call->uneven ? uneven(a, 0) : a->count; /* the largest counts */
    return !call->messages && !pairs;
}

size_t bench_call_count(const struct bench_call *call, size_t size, size_t element_bytes, unsigned world)
{
    if (call->barrier) {
        return 0;
    }
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

/* Where the part for rank `to` begins in what `from` gives, and that of rank `from` in what `to` gets. */
static size_t place_given(const struct bench_call *call, const struct bench_args *a, unsigned from, unsigned to)
{
    size_t place = 0;
    for (unsigned r = 0; r < to; r++) {
        place += bench_call_part(call, a, from, r);
    }
    return place;
}

static size_t place_got(const struct bench_call *call, const struct bench_args *a, unsigned from, unsigned to)
{
    size_t place = 0;
    for (unsigned r = 0; r < from; r++) {
        place += bench_call_part(call, a, r, to);
    }
    return place;
}

static size_t extent(const struct bench_call *call, enum bench_extent e, const struct bench_args *a)
{
    return e == BENCH_ALL ? a->world * a->count : has_parts(call) ? own_count(call, a) : a->count;
}

static unsigned char *own_part(const struct bench_call *call, unsigned char *of, const struct bench_args *a)
{
    size_t place = call->in == BENCH_ALL ? place_given(call, a, a->rank, a->rank) : place_got(call, a, a->rank, a->rank);
    return of + place * dtype_size(a->type);
}

/* Where a root is, in place is its business: the others have one buffer only anyway, but for a broadcast. */
unsigned char *bench_call_input(const struct bench_call *call, const struct bench_args *a)
{
    if (!a->in_place || !has_output(call, a)) {
        return a->send;
    }
    return call->in == BENCH_ALL ? a->send : call->out == BENCH_ALL ? own_part(call, a->recv, a) : a->recv;
}

unsigned char *bench_call_output(const struct bench_call *call, const struct bench_args *a)
{
    return a->in_place && call->in == BENCH_ALL && has_input(call, a) ? own_part(call, a->send, a) : a->recv;
}

void bench_call_fill(const struct bench_call *call, const struct bench_args *a, const struct bench_pattern *p)
{
    size_t out = has_output(call, a) ? extent(call, call->out, a) : 0;
    unsigned char *output = bench_call_output(call, a);
    memset(output, 0xA5, out * p->element_bytes); /* what is not written must not look right */
    if (has_input(call, a)) {
        bool may_grow = call->uneven && call->in == BENCH_ONE && !a->in_place; /* when ranks close up */
        bench_pattern_fill(p, a->rank, 0, bench_call_input(call, a), may_grow ? uneven(a, 0) : extent(call, call->in, a));
    }
}

uint64_t bench_call_wrong(const struct bench_call *call, const struct bench_args *a, const struct bench_pattern *p)
{
    unsigned char *output = bench_call_output(call, a);
    uint64_t wrong = 0;
    if (!has_output(call, a)) {
        return 0;
    }
    if (call->out == BENCH_ONE) {
        unsigned source = call->reduces ? a->world : call->messages ? rank_before(a) : a->root;
        size_t first = call->in == BENCH_ALL ? place_given(call, a, a->root, a->rank) : 0; /* the same whoever gives it */
        return bench_pattern_wrong(p, source, first, output, extent(call, BENCH_ONE, a));
    }
    for (unsigned r = 0; r < a->world; r++) {
        size_t first = call->in == BENCH_ALL ? place_given(call, a, r, a->rank) : 0;
        wrong += bench_pattern_wrong(p, r, first, output + place_got(call, a, r, a->rank) * p->element_bytes,
                                     bench_call_part(call, a, r, a->rank));
    }
    return wrong;
}
