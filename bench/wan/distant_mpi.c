/* distant_mpi.c - what distant_sums.c does, with an MPI library; distant.py builds it and starts it through distant_mpi.sh.
 *
 * Usage: distant_mpi BYTES CALLS BUDGET_S IDLE_S; a line of JSON for each call.
 * SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#include "distant.h"

#include <mpi.h>

struct sums {
    struct distant d;
    float *in, *out;
    size_t count;
};

static void begin(void *context)
{
    struct sums *s = context;
    for (size_t i = 0; i < s->count; i++) {
        s->out[i] = -1;
    }
}

static void call(void *context)
{
    struct sums *s = context;
    MPI_Allreduce(s->in, s->out, (int)s->count, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
}

static long wrong(void *context)
{
    struct sums *s = context;
    long bad = 0;
    for (size_t i = 0; i < s->count; i++) {
        bad += s->out[i] != distant_sum(s->d.world, i);
    }
    return bad;
}

int main(int argc, char **argv)
{
    struct sums s = {.count = 0};
    int rank = -1;
    distant_begin(&s.d, argc, argv, 0);
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    if (rank != s.d.rank) {
        distant_fail("MPI", "its rank is not that of the host");
    }
    s.count = s.d.bytes / sizeof(float);
    s.in = distant_memory(s.count * sizeof(float));
    s.out = distant_memory(s.count * sizeof(float));
    for (size_t i = 0; i < s.count; i++) {
        s.in[i] = distant_given(rank, i);
    }
    distant_measure(&s.d, &(struct distant_calls){.begin = begin, .call = call, .wrong = wrong, .context = &s});
    distant_meet(&s.d);
    MPI_Finalize();
    distant_end(&s.d);
    free(s.in);
    free(s.out);
    return 0;
}
