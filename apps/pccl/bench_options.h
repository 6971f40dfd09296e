/* bench_options.h - what a run of the benchmark is to do, read from its words.
 *
 * Flags mean what they mean in nccl-tests; but -n is the number of ranks, which this program starts itself.
 * SPDX-License-Identifier: MIT */
#ifndef PCCL_BENCH_OPTIONS_H
#define PCCL_BENCH_OPTIONS_H

#include "pccl/bench_call.h"

enum { BENCH_RANKS_MOST = 64, BENCH_CALLS_MOST = 32, BENCH_SIZES_MOST = 512, BENCH_TOGETHER_MOST = 64 };

enum bench_transport { BENCH_AUTO, BENCH_TCP, BENCH_SHM, BENCH_FABRIC };
enum bench_average { BENCH_RANK_0, BENCH_MEAN, BENCH_LEAST, BENCH_MOST };

struct wan_network;

struct bench_options {
    const struct bench_call *calls[BENCH_CALLS_MOST];
    size_t call_count;
    enum dtype types[DTYPE_COUNT];
    size_t type_count;
    enum redop ops[REDOP_COUNT];
    size_t op_count;
    uint64_t sizes[BENCH_SIZES_MOST]; /* bytes, as they go into a table */
    size_t size_count;
    unsigned world, root, lanes;
    int iterations;             /* 0: as many as fit in budget_ms */
    int warmup, budget_ms;
    int together;               /* operations that each iteration launches as one group */
    int cycles;                 /* of all jobs */
    int timeout_s;              /* of a job; 0: none */
    int check;                  /* how often each result is compared */
    enum bench_average average;
    enum bench_transport transport;
    bool bind;                  /* each rank keeps to a core of its own */
    bool limit, cputime, timestamps;
    bool explain;               /* measures nothing: what the cost model expects */
    int kill_rank;              /* BENCH_NOBODY: nobody is killed */
    int rounds;
    const char *json, *plot;    /* paths; null: none */
    const char *wan;            /* path; null: all on this host */
    struct wan_network *network; /* owned; of `wan`; null: none */
    bool done;                  /* the help has been printed: nothing to run */
};

/* Reads the words behind "bench", which bench_options_end ends; false: one sentence on standard error says what to mend. */
bool bench_options_read(int count, char **words, struct bench_options *o);
void bench_options_end(struct bench_options *o);
const char *bench_type_name(enum dtype type); /* as nccl-tests prints it: "float" */

/* One line of a table. */
struct bench_job {
    const struct bench_call *call;
    enum dtype type;
    enum redop op;
    size_t count; /* as the call takes it */
    size_t size;  /* bytes: the larger of input and output */
};

/* Job number `index` of a run, the same at all ranks; false: there are no more. */
bool bench_job_at(const struct bench_options *o, size_t index, struct bench_job *job);

#endif
