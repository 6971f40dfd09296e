/* bench_report.h - what was measured, and the forms in which it is told.
 * SPDX-License-Identifier: MIT */
#ifndef PCCL_BENCH_REPORT_H
#define PCCL_BENCH_REPORT_H

#include <stdio.h>
#include <time.h>

#include "pccl/bench_fleet.h"

/* Of one job in one placement, over all ranks. */
struct bench_figures {
    bool there; /* there is such a form, and it was measured */
    int iterations;
    double us, least_us, p90_us, most_us; /* us: median of the iterations, over the ranks as -a says */
    double algbw, busbw;                  /* GB/s */
    double share;                         /* of what plain links do; 0: not known */
    bool limit_failed;                    /* plain links were measured, and were slower: that is no limit */
    double cpu_s_per_gb;                  /* of all ranks together */
    uint64_t wrong;
    char algorithm[16];                   /* by the word of rank 0, all choose alike; "": messages have none */
    double predicted_us;                  /* by the library's cost model; 0: not known */
};

struct bench_line {
    struct bench_job job;
    struct bench_figures out_of_place, in_place;
    double plain_us; /* 0: not measured */
    int cycle;       /* from 1 on */
    time_t at;       /* when it was measured */
};

/* One round in which a rank was killed; times since the kill. */
struct bench_recovery {
    struct bench_job job;
    int round;
    double operation_ms; /* before */
    double closed_ms;    /* the kernel has closed what it had open */
    double error_ms;     /* the last survivor has its error */
    double retried_ms;   /* the last survivor has the result of the others */
    double after_ms;     /* the same operation among the survivors */
    uint64_t wrong;
};

/* What the rounds of a job came to, medians, beside what is wanted of them: errors at most 5 ms after the kernel has closed the victim's
 * connections; the result in at most 1.3 times the time of the same operation among the survivors, and 10 ms. */
struct bench_verdict {
    double error_ms, error_worst_ms, error_most_ms; /* since the connections closed */
    double retry_ms, retry_worst_ms, retry_most_ms; /* since the last error */
    double after_ms;
    bool error_met, retry_met;
};
struct bench_verdict bench_recovery_verdict(const struct bench_recovery *of, size_t rounds);

/* Everything, in the order of the jobs. */
struct bench_results {
    const struct bench_options *options; /* borrowed */
    const char *transport, *limit;       /* borrowed; limit: what plain links were: "tcp", "shm"; null: none */
    struct bench_line *lines;            /* owned */
    struct bench_recovery *recoveries;   /* owned */
    size_t line_count, recovery_count;
};

void bench_table_head(FILE *out, const struct bench_results *all);
void bench_table_line(FILE *out, const struct bench_results *all, const struct bench_line *line);
void bench_table_recovery(FILE *out, const struct bench_results *all, const struct bench_recovery *one);
void bench_table_end(FILE *out, const struct bench_results *all);
void bench_json_write(FILE *out, const struct bench_results *all);
void bench_plot_write(FILE *out, const struct bench_results *all);

uint64_t bench_results_wrong(const struct bench_results *all);
/* The name that tables and files give an operator; "none" where nothing is reduced. */
const char *bench_op_name(const struct bench_job *job);
/* "2026-11-25 14:03:09", local, as nccl-tests has it. */
enum { BENCH_TIMESTAMP = 20 };
void bench_timestamp(time_t at, char text[BENCH_TIMESTAMP]);

#endif
