/* compare_mpi.c - collectives of an MPI library as "pccl bench" measures ours; bench/compare/compare.py builds and starts it.
 *
 * One idea: the same buffers (touched, float, small whole numbers), the same counting of sizes (the larger of what a rank
 * gives and gets), the same number of seconds per size and the same figure: the median of the iterations.  The time of
 * an iteration is that of the slowest rank.  Where a root gives or gets all, nothing holds a sender back: there a barrier stands
 * before each, and its time is from the root's start, or the mean start where the root gets, to the last rank's end,
 * by the clock that processes of one host share.
 * Usage: compare_mpi BUDGET_MS COLLECTIVE:SIZE...; a line of JSON for each, at rank 0.
 * SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#include <mpi.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

enum { MOST_TIMES = 10000, LEAST_TIMES = 3, WARM = 5, HUGE_PAGE = 2 << 20 };

static float *in, *out;
static double times[MOST_TIMES], starts[MOST_TIMES], ends[MOST_TIMES], longest[MOST_TIMES];
static int rank, world;

enum call { ALL_REDUCE, ALL_REDUCE_IN_PLACE, BROADCAST, REDUCE, ALL_GATHER, REDUCE_SCATTER, ALL_TO_ALL, GATHER, SCATTER, CALLS };

static const struct row {
    const char *name;
    bool parts, rooted;
} rows[CALLS] = {
    [ALL_REDUCE] = {"all_reduce", false, false},
    [ALL_REDUCE_IN_PLACE] = {"all_reduce_in_place", false, false},
    [BROADCAST] = {"broadcast", false, true},
    [REDUCE] = {"reduce", false, true},
    [ALL_GATHER] = {"all_gather", true, false},
    [REDUCE_SCATTER] = {"reduce_scatter", true, false},
    [ALL_TO_ALL] = {"all_to_all", true, false},
    [GATHER] = {"gather", true, true},
    [SCATTER] = {"scatter", true, true},
};

static void launch(enum call call, int count)
{
    MPI_Comm all = MPI_COMM_WORLD;
    switch (call) {
    case ALL_REDUCE: MPI_Allreduce(in, out, count, MPI_FLOAT, MPI_SUM, all); break;
    case ALL_REDUCE_IN_PLACE: MPI_Allreduce(MPI_IN_PLACE, out, count, MPI_FLOAT, MPI_SUM, all); break;
    case BROADCAST: MPI_Bcast(out, count, MPI_FLOAT, 0, all); break;
    case REDUCE: MPI_Reduce(in, out, count, MPI_FLOAT, MPI_SUM, 0, all); break;
    case ALL_GATHER: MPI_Allgather(in, count, MPI_FLOAT, out, count, MPI_FLOAT, all); break;
    case REDUCE_SCATTER: MPI_Reduce_scatter_block(in, out, count, MPI_FLOAT, MPI_SUM, all); break;
    case ALL_TO_ALL: MPI_Alltoall(in, count, MPI_FLOAT, out, count, MPI_FLOAT, all); break;
    case GATHER: MPI_Gather(in, count, MPI_FLOAT, out, count, MPI_FLOAT, 0, all); break;
    case SCATTER: MPI_Scatter(in, count, MPI_FLOAT, out, count, MPI_FLOAT, 0, all); break;
    case CALLS: break;
    }
}

static float given(int from, size_t i)
{
    return (float)(i % 13 + (size_t)from);
}

static void fill(enum call call, size_t elements)
{
    for (size_t i = 0; i < elements; i++) {
        in[i] = given(rank, i);
        out[i] = call == ALL_REDUCE_IN_PLACE || (call == BROADCAST && rank == 0) ? given(rank, i) : -1;
    }
}

static float sum_at(size_t i)
{
    return (float)((size_t)world * (i % 13)) + (float)(world * (world - 1) / 2);
}

/* Elements of this rank that are not what they must be. */
static long wrong(enum call call, size_t count)
{
    size_t parts = rows[call].parts && call != REDUCE_SCATTER && call != SCATTER ? (size_t)world : 1;
    size_t first = call == REDUCE_SCATTER || call == SCATTER || call == ALL_TO_ALL ? (size_t)rank * count : 0;
    bool sums = call == ALL_REDUCE || call == ALL_REDUCE_IN_PLACE || call == REDUCE || call == REDUCE_SCATTER;
    long bad = 0;
    if ((call == REDUCE || call == GATHER) && rank != 0) {
        return 0;
    }
    for (size_t p = 0; p < parts; p++) {
        for (size_t i = 0; i < count; i++) {
            bad += out[p * count + i] != (sums ? sum_at(first + i) : given(parts > 1 ? (int)p : 0, first + i));
        }
    }
    return bad;
}

static double cpu_s(void)
{
    struct rusage u;
    getrusage(RUSAGE_SELF, &u);
    return (double)(u.ru_utime.tv_sec + u.ru_stime.tv_sec) + (double)(u.ru_utime.tv_usec + u.ru_stime.tv_usec) / 1e6;
}

static double now_us(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e6 + (double)t.tv_nsec / 1e3;
}

static void once(enum call call, int count, int index)
{
    if (rows[call].rooted) {
        MPI_Barrier(MPI_COMM_WORLD);
    }
    starts[index] = now_us();
    launch(call, count);
    ends[index] = now_us();
    times[index] = ends[index] - starts[index];
}

static int compare(const void *a, const void *b)
{
    const double *x = a, *y = b;
    return (*x > *y) - (*x < *y);
}

/* At rank 0, sorted: the time of each of `n` iterations. */
static void gather_times(enum call call, int n)
{
    if (!rows[call].rooted) {
        MPI_Reduce(times, longest, n, MPI_DOUBLE, MPI_MAX, 0, MPI_COMM_WORLD);
    } else {
        bool gets = call == REDUCE || call == GATHER;
        MPI_Reduce(ends, longest, n, MPI_DOUBLE, MPI_MAX, 0, MPI_COMM_WORLD);
        if (gets) {
            MPI_Reduce(starts, times, n, MPI_DOUBLE, MPI_SUM, 0, MPI_COMM_WORLD);
        }
        for (int i = 0; i < n; i++) {
            longest[i] -= gets ? times[i] / world : starts[i];
        }
    }
    qsort(longest, (size_t)n, sizeof longest[0], compare);
}

/* Warms up until the budget is spent, at most WARM times; how many iterations fit into the budget, the same at all ranks. */
static int agree(enum call call, int count, double budget_us)
{
    double spent = 0, from = now_us();
    int warm = 0;
    while (warm < WARM && (warm < 1 || spent < budget_us)) {
        once(call, count, warm++);
        spent = now_us() - from;
        MPI_Bcast(&spent, 1, MPI_DOUBLE, 0, MPI_COMM_WORLD);
    }
    gather_times(call, warm);
    double one = longest[warm / 2] > 0.1 ? longest[warm / 2] : 0.1;
    MPI_Bcast(&one, 1, MPI_DOUBLE, 0, MPI_COMM_WORLD);
    return budget_us / one < LEAST_TIMES ? LEAST_TIMES : budget_us / one > MOST_TIMES ? MOST_TIMES : (int)(budget_us / one);
}

static void measure(enum call call, size_t size, double budget_ms)
{
    size_t count = size / sizeof(float) / (rows[call].parts ? (size_t)world : 1);
    count = count > 0 ? count : 1;
    size_t elements = count * (rows[call].parts ? (size_t)world : 1);
    double cpu, cpu_all;
    long bad, bad_all;
    fill(call, elements);
    MPI_Barrier(MPI_COMM_WORLD);
    launch(call, (int)count);
    bad = wrong(call, count);
    MPI_Reduce(&bad, &bad_all, 1, MPI_LONG, MPI_SUM, 0, MPI_COMM_WORLD);
    int n = agree(call, (int)count, budget_ms * 1e3);
    cpu = cpu_s();
    for (int i = 0; i < n; i++) {
        once(call, (int)count, i);
    }
    cpu = cpu_s() - cpu;
    gather_times(call, n);
    MPI_Reduce(&cpu, &cpu_all, 1, MPI_DOUBLE, MPI_SUM, 0, MPI_COMM_WORLD);
    if (rank == 0) {
        printf("{\"collective\": \"%s\", \"size\": %zu, \"iterations\": %d, \"time_us\": %.3f, \"min_us\": %.3f, "
               "\"cpu_s_per_gb\": %.6g, \"wrong\": %ld}\n",
               rows[call].name, size, n, longest[n / 2], longest[0], cpu_all / ((double)size * n / 1e9), bad_all);
        fflush(stdout);
    }
}

static enum call find(const char *word, size_t *size)
{
    size_t length = strcspn(word, ":");
    *size = word[length] == ':' ? strtoull(word + length + 1, NULL, 10) : 0;
    for (int c = 0; c < CALLS; c++) {
        if (strlen(rows[c].name) == length && strncmp(rows[c].name, word, length) == 0 && *size > 0) {
            return (enum call)c;
        }
    }
    fprintf(stderr, "compare_mpi: unknown '%s': give COLLECTIVE:SIZE\n", word);
    MPI_Abort(MPI_COMM_WORLD, 2);
    return CALLS;
}

int main(int argc, char **argv)
{
    size_t most = 0, size;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &world);
    for (int i = 2; i < argc; i++) {
        (void)find(argv[i], &size);
        most = size > most ? size : most;
    }
    most += (size_t)world * sizeof(float);
    if (posix_memalign((void **)&in, HUGE_PAGE, most) != 0 || posix_memalign((void **)&out, HUGE_PAGE, most) != 0) {
        fprintf(stderr, "compare_mpi: no memory\n");
        MPI_Abort(MPI_COMM_WORLD, 1);
    }
    memset(in, 0, most);
    memset(out, 0, most);
    for (int i = 2; i < argc; i++) {
        enum call call = find(argv[i], &size);
        measure(call, size, strtod(argv[1], NULL));
    }
    free(in);
    free(out);
    MPI_Finalize();
    return 0;
}
