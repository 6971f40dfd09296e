/* bench_json.c - all figures as one JSON object.
 *
 * Names are ours and need no escapes; what was not measured is null.
 * SPDX-License-Identifier: MIT */
#include "pccl/bench_report.h"

#include <inttypes.h>

#include "pccl/wan_network.h"

static void print_known(FILE *out, const char *name, bool known, double value)
{
    if (known) {
        fprintf(out, ", \"%s\": %.6g", name, value);
    } else {
        fprintf(out, ", \"%s\": null", name);
    }
}

static void print_job(FILE *out, const struct bench_options *o, const struct bench_job *job)
{
    fprintf(out, "\"collective\": \"%s\", \"type\": \"%s\", \"op\": \"%s\", \"root\": %d, \"size\": %zu, \"count\": %zu",
            job->call->name, bench_type_name(job->type), bench_op_name(job),
            bench_call_rooted(job->call) ? (int)o->root : -1, job->size, job->count);
}

static void print_result(FILE *out, const struct bench_options *o, const struct bench_line *line, bool in_place, bool first)
{
    const struct bench_figures *f = in_place ? &line->in_place : &line->out_of_place;
    if (!f->there) {
        return;
    }
    fprintf(out, "%s    {", first ? "" : ",\n");
    print_job(out, o, &line->job);
    fprintf(out, ", \"in_place\": %s, \"cycle\": %d, \"iterations\": %d, \"together\": %d", in_place ? "true" : "false", line->cycle,
            f->iterations, o->together);
    if (o->timestamps) {
        char at[BENCH_TIMESTAMP];
        bench_timestamp(line->at, at);
        fprintf(out, ", \"timestamp\": \"%s\"", at);
    }
    fprintf(out, ", \"time_us\": %.3f, \"min_us\": %.3f, \"p90_us\": %.3f, \"max_us\": %.3f", f->us, f->least_us, f->p90_us,
            f->most_us);
    fprintf(out, ", \"algbw\": %.6g, \"busbw\": %.6g, \"cpu_s_per_gb\": %.6g", f->algbw, f->busbw, f->cpu_s_per_gb);
    print_known(out, "limit_us", line->plain_us > 0, line->plain_us);
    print_known(out, "limit_share", f->share > 0, f->share);
    fprintf(out, ", \"limit_failed\": %s", f->limit_failed ? "true" : "false");
    if (f->algorithm[0] != 0) {
        fprintf(out, ", \"algorithm\": \"%s\"", f->algorithm);
    } else {
        fprintf(out, ", \"algorithm\": null");
    }
    print_known(out, "predicted_us", f->predicted_us > 0, f->predicted_us);
    if (o->check > 0) {
        fprintf(out, ", \"wrong\": %" PRIu64 "}", f->wrong);
    } else {
        fprintf(out, ", \"wrong\": null}");
    }
}

static void print_recovery(FILE *out, const struct bench_options *o, const struct bench_recovery *r, bool first)
{
    fprintf(out, "%s    {", first ? "" : ",\n");
    print_job(out, o, &r->job);
    fprintf(out, ", \"round\": %d, \"killed\": %d, \"operation_ms\": %.3f, \"closed_ms\": %.3f, \"error_ms\": %.3f, "
                 "\"retried_ms\": %.3f, \"after_ms\": %.3f, \"wrong\": %" PRIu64 "}",
            r->round, o->kill_rank, r->operation_ms, r->closed_ms, r->error_ms, r->retried_ms, r->after_ms, r->wrong);
}

static void print_verdict(FILE *out, const struct bench_options *o, const struct bench_recovery *of, bool first)
{
    const struct bench_verdict v = bench_recovery_verdict(of, (size_t)o->rounds);
    fprintf(out, "%s    {", first ? "" : ",\n");
    print_job(out, o, &of->job);
    fprintf(out, ", \"rounds\": %d, \"error_ms\": %.3f, \"error_most_ms\": %.3f, \"error_met\": %s", o->rounds, v.error_ms, v.error_most_ms,
            v.error_met ? "true" : "false");
    fprintf(out, ", \"retry_ms\": %.3f, \"after_ms\": %.3f, \"retry_most_ms\": %.3f, \"retry_met\": %s}", v.retry_ms, v.after_ms, v.retry_most_ms,
            v.retry_met ? "true" : "false");
}

void bench_json_write(FILE *out, const struct bench_results *all)
{
    const struct bench_options *o = all->options;
    fprintf(out, "{\n  \"program\": \"pccl bench\", \"version\": \"%d.%d.%d\", \"ranks\": %u, \"lanes\": %u, \"bound\": %s, \"transport\": \"%s\",\n",
            PCCL_VERSION_MAJOR, PCCL_VERSION_MINOR, PCCL_VERSION_PATCH, o->world, o->lanes, o->bind ? "true" : "false", all->transport);
    if (o->network != NULL) {
        fprintf(out, "  \"emulated_hosts\": %u,\n", o->network->host_count);
    }
    if (all->limit != NULL) {
        fprintf(out, "  \"limit\": \"%s\",\n", all->limit);
    } else {
        fprintf(out, "  \"limit\": null,\n");
    }
    fprintf(out, "  \"results\": [\n");
    for (size_t i = 0; i < all->line_count; i++) {
        print_result(out, o, &all->lines[i], false, i == 0);
        print_result(out, o, &all->lines[i], true, false);
    }
    fprintf(out, "\n  ],\n  \"recoveries\": [\n");
    for (size_t i = 0; i < all->recovery_count; i++) {
        print_recovery(out, o, &all->recoveries[i], i == 0);
    }
    fprintf(out, "\n  ],\n  \"verdicts\": [\n");
    for (size_t i = 0; i + (size_t)o->rounds <= all->recovery_count; i += (size_t)o->rounds) {
        print_verdict(out, o, &all->recoveries[i], i == 0);
    }
    fprintf(out, "\n  ],\n  \"wrong\": ");
    if (o->check > 0) {
        fprintf(out, "%" PRIu64 "\n}\n", bench_results_wrong(all));
    } else {
        fprintf(out, "null\n}\n");
    }
}
