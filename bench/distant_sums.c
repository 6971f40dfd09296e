/* distant_sums.c - all-reduces of this library between hosts of an emulated network, for bench/wan/distant.py.
 *
 * A rank per host.
 * Usage: distant_sums BYTES CALLS BUDGET_S IDLE_S OPTIMISE; a line of JSON for each call.  The last is how often links are measured: before
 * the calls, then before as many calls again, which take what the ones before have shown.  0: never.
 * SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#include "wan/distant_world.h"

struct sums {
    struct distant_world w;
    float *in, *out;
    size_t count;
    uint64_t tag;
};

static void begin(void *context)
{
    struct sums *s = context;
    s->tag++;
    for (size_t i = 0; i < s->count; i++) {
        s->out[i] = -1;
    }
}

static void call(void *context)
{
    struct sums *s = context;
    pcclReduceDescriptor_t what = {.count = s->count, .op = pcclSum, .tag = s->tag, .src_descriptor = {.datatype = pcclFloat}};
    distant_must(pcclAllReduce(s->in, s->out, &what, s->w.comm, NULL), "all-reduce");
}

static long wrong(void *context)
{
    struct sums *s = context;
    long bad = 0;
    for (size_t i = 0; i < s->count; i++) {
        bad += s->out[i] != distant_sum(s->w.d.world, i) || s->in[i] != distant_given(s->w.d.rank, i);
    }
    return bad;
}

static void optimise(struct sums *s)
{
    double begin_s = distant_now_s();
    distant_must(pcclOptimizeTopology(s->w.comm), "optimise");
    printf("{\"kind\": \"optimise\", \"rank\": %d, \"start_s\": %.6f, \"end_s\": %.6f, \"wrong\": 0}\n", s->w.d.rank, begin_s, distant_now_s());
}

/* What the cost model has chosen. */
static void tell_plan(struct sums *s)
{
    pcclPlan_t plan;
    distant_must(pcclGetPlan(s->w.comm, pcclCollectiveAllReduce, s->count, pcclFloat, pcclSum, &plan), "plan");
    printf("{\"kind\": \"plan\", \"rank\": %d, \"algorithm\": \"%s\", \"predicted_s\": %.6f}\n", s->w.d.rank, plan.algorithm, plan.predicted_us / 1e6);
}

int main(int argc, char **argv)
{
    struct sums s = {.tag = 0};
    distant_world_begin(&s.w, argc, argv, 1);
    s.count = s.w.d.bytes / sizeof(float);
    s.in = distant_memory(s.count * sizeof(float));
    s.out = distant_memory(s.count * sizeof(float));
    for (size_t i = 0; i < s.count; i++) {
        s.in[i] = distant_given(s.w.d.rank, i);
    }
    distant_world_join(&s.w);
    int rounds = atoi(argv[5]);
    do {
        if (rounds > 0) {
            optimise(&s);
        }
        distant_measure(&s.w.d, &(struct distant_calls){.begin = begin, .call = call, .wrong = wrong, .context = &s});
        tell_plan(&s);
    } while (--rounds > 0);
    distant_world_end(&s.w);
    free(s.in);
    free(s.out);
    return 0;
}
