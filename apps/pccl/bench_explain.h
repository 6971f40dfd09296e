/* bench_explain.h - the cost model as a table.
 * SPDX-License-Identifier: MIT */
#ifndef PCCL_BENCH_EXPLAIN_H
#define PCCL_BENCH_EXPLAIN_H

#include "pccl/bench_report.h"

/* In a rank: what the library expects of the job; nothing of what it has no plan for. */
pcclResult_t bench_explain_ask(const struct bench_job *job, const struct bench_args *a, struct bench_record *to);

void bench_explain_head(FILE *out, const struct bench_options *o, const char *transport);
void bench_explain_line(FILE *out, const struct bench_job *job, const struct bench_record *r);

#endif
