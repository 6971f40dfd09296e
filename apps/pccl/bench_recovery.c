/* bench_recovery.c - what the rounds with a kill came to, beside what is wanted of them.
 *
 * Its one idea: the library answers for the time from the closed connections to the error, and from the error to the result, which is
 * that of the same operation among the survivors and little more; what the kernel takes to bury a process is not its own.
 * SPDX-License-Identifier: MIT */
#include "pccl/bench_report.h"

#include <stdlib.h>

enum { ROUNDS_MOST = 1000 };

#define ERROR_MOST_MS 5.0
#define RETRY_TIMES 1.3
#define RETRY_MORE_MS 10.0

static int compare(const void *a, const void *b)
{
    const double *x = a, *y = b;
    return (*x > *y) - (*x < *y);
}

static double median(double *values, size_t count)
{
    qsort(values, count, sizeof values[0], compare);
    return values[count / 2];
}

struct bench_verdict bench_recovery_verdict(const struct bench_recovery *of, size_t rounds)
{
    static double error[ROUNDS_MOST], retry[ROUNDS_MOST], after[ROUNDS_MOST];
    struct bench_verdict v = {.error_most_ms = ERROR_MOST_MS};
    for (size_t i = 0; i < rounds; i++) {
        error[i] = of[i].error_ms - of[i].closed_ms;
        retry[i] = of[i].retried_ms - of[i].error_ms;
        after[i] = of[i].after_ms;
    }
    v.error_ms = median(error, rounds);
    v.error_worst_ms = error[rounds - 1];
    v.retry_ms = median(retry, rounds);
    v.retry_worst_ms = retry[rounds - 1];
    v.after_ms = median(after, rounds);
    v.retry_most_ms = RETRY_TIMES * v.after_ms + RETRY_MORE_MS;
    v.error_met = v.error_ms <= v.error_most_ms;
    v.retry_met = v.retry_ms <= v.retry_most_ms;
    return v;
}
