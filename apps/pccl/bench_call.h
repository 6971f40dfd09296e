/* bench_call.h - the collectives as the benchmark knows them, and messages: one row each.
 *
 * A row says how long input and output are, who has them and how to call; what must come out follows from that
 * (bench_call_fill, bench_call_wrong), and so does what plain links would have to move (bench_limit.h).
 * SPDX-License-Identifier: MIT */
#ifndef PCCL_BENCH_CALL_H
#define PCCL_BENCH_CALL_H

#include "pccl.h"
#include "pccl/bench_pattern.h"

enum bench_extent {
    BENCH_ONE, /* `count` elements; the own part of a call with uneven parts */
    BENCH_ALL  /* a part of `count` elements for each rank; uneven ones come to as much */
};

/* One call at one rank.  `send` and `recv` are whole buffers, different ones; in place means that one of them is used. */
struct bench_args {
    unsigned char *send, *recv; /* borrowed */
    size_t count;               /* as the call takes it */
    enum dtype type;
    enum redop op;
    pcclRedOp_t redop; /* as calls take it */
    unsigned rank, world, root;
    bool in_place;
    pcclComm_t *comm;
};

struct bench_call {
    const char *name;
    enum bench_extent in, out;
    bool in_root, out_root; /* only the root has it */
    bool reduces;
    bool in_place;          /* there is such a form */
    bool both_ways;         /* every byte is gathered and given out again: busbw counts it twice */
    bool uneven;            /* each rank's count is its own: by turns half as much more and half as much less */
    bool barrier;           /* moves nothing */
    bool messages;          /* each sends to the rank behind it, and gets from the one before: no collective, without a plan */
    pcclCollective_t plan;  /* not of messages */
    pcclResult_t (*launch)(const struct bench_call *call, const struct bench_args *args);
};

/* The row number `index`; null behind the last. */
const struct bench_call *bench_call_at(size_t index);
/* Null: no such collective. */
const struct bench_call *bench_call_find(const char *name);
static inline bool bench_call_rooted(const struct bench_call *call)
{
    return call->in_root || call->out_root;
}

/* Elements that go from one rank to another, of a call with parts. */
size_t bench_call_part(const struct bench_call *call, const struct bench_args *a, unsigned from, unsigned to);
/* As the library's cost model takes the call; false: it does not tell of such ones, which only pairs know the sizes of. */
bool bench_call_plan_count(const struct bench_call *call, const struct bench_args *a, size_t *count_out);

/* The columns of nccl-tests: `size` bytes are the larger of input and output; count is what the call takes, at
 * least one element. */
size_t bench_call_count(const struct bench_call *call, size_t size, size_t element_bytes, unsigned world);
size_t bench_call_size(const struct bench_call *call, size_t count, size_t element_bytes, unsigned world);
double bench_call_busbw(const struct bench_call *call, double algbw, unsigned world);

/* Where this rank's input and output are; the own part of the other buffer in place. */
unsigned char *bench_call_input(const struct bench_call *call, const struct bench_args *a);
unsigned char *bench_call_output(const struct bench_call *call, const struct bench_args *a);
void bench_call_fill(const struct bench_call *call, const struct bench_args *a, const struct bench_pattern *p);
uint64_t bench_call_wrong(const struct bench_call *call, const struct bench_args *a, const struct bench_pattern *p);

#endif
