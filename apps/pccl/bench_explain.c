/* bench_explain.c - the cost model as a table: which time it expects of each algorithm, and which one it takes.
 *
 * One idea: the library is asked, by rank 0, in a world that stands as for a measurement, so that the costs are those that the members
 * have measured and agreed on.
 * SPDX-License-Identifier: MIT */
#include "pccl/bench_explain.h"

#include <string.h>

static const char *const algorithms[BENCH_ALGORITHMS] = {"tiny", "direct", "ring", "halving", "tree", "chain", "bruck", "pairwise",
                                                          "forest"};

pcclResult_t bench_explain_ask(const struct bench_job *job, const struct bench_args *a, struct bench_record *to)
{
    pcclPlan_t plans[BENCH_ALGORITHMS];
    size_t count = 0, elements;
    if (!bench_call_plan_count(job->call, a, &elements)) {
        return pcclSuccess;
    }
    pcclResult_t result = pcclExplainPlan(a->comm, job->call->plan, elements, (pcclDataType_t)job->type, a->redop, plans, BENCH_ALGORITHMS, &count);
    for (size_t i = 0; result == pcclSuccess && i < count; i++) {
        for (int k = 0; k < BENCH_ALGORITHMS; k++) {
            if (strcmp(plans[i].algorithm, algorithms[k]) == 0) {
                to->expected_us[k] = plans[i].predicted_us;
            }
        }
    }
    if (result == pcclSuccess && count > 0) {
        snprintf(to->text, sizeof to->text, "%s", plans[0].algorithm);
    }
    return result;
}

void bench_explain_head(FILE *out, const struct bench_options *o, const char *transport)
{
    fprintf(out, "# pccl bench %d.%d.%d: %u rank%s of this host, data over %s, %u lane%s\n", PCCL_VERSION_MAJOR, PCCL_VERSION_MINOR,
            PCCL_VERSION_PATCH, o->world, o->world == 1 ? "" : "s", transport, o->lanes, o->lanes == 1 ? "" : "s");
    fprintf(out, "# us that the cost model expects of each algorithm that could do it, with what messages, bytes and sums cost here.\n"
                 "# * is taken: the least, or one that asks less of the others and takes little more, of those that PCCL_ALGO allows\n");
    fprintf(out, "#%12s %13s %8s %6s", "size", "count", "type", "redop");
    for (int k = 0; k < BENCH_ALGORITHMS; k++) {
        fprintf(out, " %10s", algorithms[k]);
    }
    fprintf(out, "  collective\n");
}

void bench_explain_line(FILE *out, const struct bench_job *job, const struct bench_record *r)
{
    if (r->text[0] == 0) {
        return; /* messages, and what only pairs know the sizes of: there is no plan to tell of */
    }
    fprintf(out, "%13zu %13zu %8s %6s", job->size, job->count, bench_type_name(job->type), bench_op_name(job));
    for (int k = 0; k < BENCH_ALGORITHMS; k++) {
        char figure[32] = "-";
        if (r->expected_us[k] > 0) {
            snprintf(figure, sizeof figure, "%.*f%s", r->expected_us[k] < 1e5 ? 1 : 0, r->expected_us[k],
                     strcmp(r->text, algorithms[k]) == 0 ? "*" : "");
        }
        fprintf(out, " %10s", figure);
    }
    fprintf(out, "  %s\n", job->call->name);
}
