/* bench_table.c - the table: the columns of nccl-tests in their order, ours behind them, in 120 columns without -C and -S.
 *
 * Lines of comment begin with #; one names the collective of the lines below it.  Every other line is one job, or one round
 * with a kill.
 * SPDX-License-Identifier: MIT */
#include "pccl/bench_report.h"

#include <inttypes.h>
#include <string.h>

const char *bench_op_name(const struct bench_job *job)
{
    const char *name = job->op == REDOP_PREMUL ? "mulsum" : redop_name(job->op);
    return job->call->reduces ? name : "none";
}

uint64_t bench_results_wrong(const struct bench_results *all)
{
    uint64_t wrong = 0;
    for (size_t i = 0; i < all->line_count; i++) {
        wrong += all->lines[i].out_of_place.wrong + all->lines[i].in_place.wrong;
    }
    for (size_t i = 0; i < all->recovery_count; i++) {
        wrong += all->recoveries[i].wrong;
    }
    return wrong;
}

static void head_of_kills(FILE *out, const struct bench_options *o)
{
    fprintf(out,
            "# rank %d gets kill -9 in the middle of an operation; times since then: until the kernel has closed its\n"
            "# connections, until the last survivor has its error, until the last one has the result of the others\n"
            "#%14s %12s %5s %9s %9s %9s %9s %9s %7s\n#%14s %12s %5s %9s %9s %9s %9s %9s\n",
            o->kill_rank, "collective", "size", "round", "before", "closed", "error", "retried", "after", "#wrong", "", "(B)",
            "", "(ms)", "(ms)", "(ms)", "(ms)", "(ms)");
}

void bench_timestamp(time_t at, char text[BENCH_TIMESTAMP])
{
    struct tm local = {0};
    (void)localtime_r(&at, &local);
    if (strftime(text, BENCH_TIMESTAMP, "%Y-%m-%d %H:%M:%S", &local) == 0) {
        text[0] = 0;
    }
}

/* The columns of nccl-tests, which others read by their places; then ours. */
static void titles(FILE *out, const struct bench_options *o)
{
    static const char *const first[] = {"out-of-place", "in-place"};
    const char *stamp = o->timestamps ? "timestamp" : "";
    int width = o->timestamps ? BENCH_TIMESTAMP + 1 : 0;
    fprintf(out, "#%9s %10s %8s %6s %4s", "", "", "", "", "");
    for (int i = 0; i < 2; i++) {
        fprintf(out, " %29s", first[i]);
    }
    fprintf(out, "\n#%9s %10s %8s %6s %4s", "size", "count", "type", "redop", "root");
    for (int i = 0; i < 2; i++) {
        fprintf(out, " %8s %6s %6s %6s", "time", "algbw", "busbw", "#wrong");
    }
    fprintf(out, "%*s limit limit", width, stamp);
    if (o->cputime) {
        fprintf(out, " %8s %8s", "cpu", "cpu");
    }
    fprintf(out, " by\n#%9s %10s %8s %6s %4s", "(B)", "(elements)", "", "", "");
    for (int i = 0; i < 2; i++) {
        fprintf(out, " %8s %6s %6s %6s", "(us)", "(GB/s)", "(GB/s)", "");
    }
    fprintf(out, "%*s %5s %5s", width, "", "out", "in");
    if (o->cputime) {
        fprintf(out, " %8s %8s", "(s/GB)", "(s/GB)");
    }
    fprintf(out, "\n");
}

void bench_table_head(FILE *out, const struct bench_results *all)
{
    const struct bench_options *o = all->options;
    fprintf(out, "# pccl bench %d.%d.%d: %u rank%s of %s%s%s, data over %s, %u lane%s\n", PCCL_VERSION_MAJOR,
            PCCL_VERSION_MINOR, PCCL_VERSION_PATCH, o->world, o->world == 1 ? "" : "s", o->wan != NULL ? "the emulated network " : "this host", o->wan != NULL ? o->wan : "",
            o->bind && o->world > 1 ? ", each on a core of its own" : "",
            all->transport, o->lanes, o->lanes == 1 ? "" : "s");
    if (o->kill_rank != BENCH_NOBODY) {
        head_of_kills(out, o);
        return;
    }
    static const char *const over[] = {[BENCH_RANK_0] = "at rank 0", [BENCH_MEAN] = "mean over the ranks",
                                       [BENCH_LEAST] = "least over the ranks", [BENCH_MOST] = "largest over the ranks"};
    bool other = all->limit != NULL && strcmp(all->transport, "fabric") == 0; /* which has no plain form here */
    fprintf(out, "# time: median of the operations, %s%s; limit: share of plain links (%s) in the same buffers\n", over[o->average],
            o->together > 1 ? ", of one in a group" : "", all->limit == NULL ? "not measured" : other ? "tcp: not of the fabric's own" : all->limit);
    titles(out, o);
}

static void print_figures(FILE *out, const struct bench_options *o, const struct bench_figures *f)
{
    char wrong[24] = "N/A";
    if (!f->there) {
        fprintf(out, " %8s %6s %6s %6s", "N/A", "N/A", "N/A", "N/A");
        return;
    }
    if (o->check > 0) {
        snprintf(wrong, sizeof wrong, "%" PRIu64, f->wrong);
    }
    fprintf(out, " %8.*f %6.*f %6.*f %6s", f->us < 1e5 ? 1 : 0, f->us, f->algbw < 100 ? 3 : 1, f->algbw, f->busbw < 100 ? 3 : 1, f->busbw, wrong);
}

static void print_share(FILE *out, const struct bench_figures *f)
{
    char share[16] = "-";
    if (f->limit_failed) {
        snprintf(share, sizeof share, "fail");
    } else if (f->share > 0) {
        snprintf(share, sizeof share, "%.0f%%", f->share * 100);
    }
    fprintf(out, " %5s", share);
}

static void print_cpu(FILE *out, const struct bench_figures *f)
{
    char cpu[24] = "-";
    if (f->there && f->cpu_s_per_gb > 0) {
        snprintf(cpu, sizeof cpu, "%.2f", f->cpu_s_per_gb);
    }
    fprintf(out, " %8s", cpu);
}

void bench_table_line(FILE *out, const struct bench_results *all, const struct bench_line *line)
{
    const struct bench_job *job = &line->job;
    const struct bench_options *o = all->options;
    int root = bench_call_rooted(job->call) ? (int)o->root : -1;
    if (line == all->lines || line[-1].job.call != job->call) {
        fprintf(out, "# %s\n", job->call->name);
    }
    fprintf(out, "%10zu %10zu %8s %6s %4d", job->size, job->count, bench_type_name(job->type), bench_op_name(job), root);
    print_figures(out, o, &line->out_of_place);
    print_figures(out, o, &line->in_place);
    if (o->timestamps) {
        char at[BENCH_TIMESTAMP];
        bench_timestamp(line->at, at);
        fprintf(out, "  %s", at);
    }
    print_share(out, &line->out_of_place);
    print_share(out, &line->in_place);
    if (o->cputime) {
        print_cpu(out, &line->out_of_place);
        print_cpu(out, &line->in_place);
    }
    fprintf(out, " %s\n", line->out_of_place.algorithm[0] != 0 ? line->out_of_place.algorithm : "-");
    fflush(out);
}

void bench_table_recovery(FILE *out, const struct bench_results *all, const struct bench_recovery *one)
{
    (void)all;
    fprintf(out, " %14s %12zu %5d %9.2f %9.2f %9.2f %9.2f %9.2f %7" PRIu64 "\n", one->job.call->name, one->job.size, one->round,
            one->operation_ms, one->closed_ms, one->error_ms, one->retried_ms, one->after_ms, one->wrong);
    fflush(out);
}

static void sum_up_kills(FILE *out, const struct bench_recovery *of, size_t rounds)
{
    const struct bench_verdict v = bench_recovery_verdict(of, rounds);
    fprintf(out, "# %s of %zu B, median of %zu round%s:\n", of->job.call->name, of->job.size, rounds, rounds == 1 ? "" : "s");
    fprintf(out, "#   errors %.2f ms after the connections closed (largest %.2f), at most %.0f: %s\n", v.error_ms, v.error_worst_ms,
            v.error_most_ms, v.error_met ? "met" : "missed");
    fprintf(out, "#   the retry took %.2f ms (largest %.2f), at most 1.3 x %.2f + 10 = %.2f: %s\n", v.retry_ms, v.retry_worst_ms, v.after_ms,
            v.retry_most_ms, v.retry_met ? "met" : "missed");
}

void bench_table_end(FILE *out, const struct bench_results *all)
{
    size_t rounds = (size_t)all->options->rounds;
    for (size_t i = 0; i + rounds <= all->recovery_count; i += rounds) {
        sum_up_kills(out, &all->recoveries[i], rounds);
    }
    double sum = 0;
    size_t count = 0, failed = 0;
    for (size_t i = 0; i < all->line_count; i++) {
        const struct bench_figures *both[] = {&all->lines[i].out_of_place, &all->lines[i].in_place};
        for (int f = 0; f < 2; f++) {
            bool moves = both[f]->there && all->lines[i].job.size > 0;
            sum += moves ? both[f]->busbw : 0;
            count += moves;
            failed += both[f]->limit_failed;
        }
    }
    if (failed > 0) {
        fprintf(out, "# limit \"fail\"         : %zu; plain links were slower than the library, so the limit was not measured\n", failed);
    }
    if (count > 0) {
        fprintf(out, "# Avg bus bandwidth    : %.4g\n", sum / (double)count);
    }
    if (all->options->check > 0) {
        uint64_t wrong = bench_results_wrong(all);
        fprintf(out, "# Out of bounds values : %" PRIu64 " %s\n", wrong, wrong == 0 ? "OK" : "FAILED");
    }
}
