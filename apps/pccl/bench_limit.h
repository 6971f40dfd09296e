/* bench_limit.h - how fast the same result can be had over plain links, by the same processes in the same buffers.
 * SPDX-License-Identifier: MIT */
#ifndef PCCL_BENCH_LIMIT_H
#define PCCL_BENCH_LIMIT_H

#include "kernels/numeric.h"
#include "pccl/bench_call.h"
#include "pccl/bench_links.h"

/* Everything that must move for one call at one rank. */
struct bench_limit;

/* Null: there is no plain form (averages, f16 and bf16 that are reduced, uneven parts, barriers, one rank only), or no memory: nothing is measured then. */
struct bench_limit *bench_limit_new(const struct bench_call *call, const struct bench_args *args, struct bench_links *links);
/* Does it once, all ranks together; false: a link broke. */
bool bench_limit_run(struct bench_limit *m);
void bench_limit_free(struct bench_limit *m);
/* Whether a time of plain links, 0 where there is none, is no limit: the library was faster by more than a table rounds. */
static inline bool bench_limit_failed(double plain_us, double us)
{
    return plain_us > us * 1.005;
}

#endif
