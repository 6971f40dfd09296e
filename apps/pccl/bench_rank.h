/* bench_rank.h - one rank of a benchmark: joins, measures what the options say, tells the parent.
 * SPDX-License-Identifier: MIT */
#ifndef PCCL_BENCH_RANK_H
#define PCCL_BENCH_RANK_H

#include "pccl/bench_fleet.h"

/* Every job, one after the other. */
int bench_rank_measure(const struct bench_fleet *fleet, unsigned rank, int pipe);
/* Rank 0: what the library expects of every job. */
int bench_rank_explain(const struct bench_fleet *fleet, unsigned rank, int pipe);
/* The fleet's recovery_job, over and over, until a rank is lost; then once more without it. */
int bench_rank_recover(const struct bench_fleet *fleet, unsigned rank, int pipe);

#endif
