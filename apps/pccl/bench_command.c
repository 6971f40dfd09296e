/* bench_command.c - "pccl bench" from its words to its exit status.
 *
 * One idea: this process only starts, listens and prints; what is measured is measured in the ranks.  Every job gives the
 * same records at each rank, in the same order, so that they are read rank by rank.
 * SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#include "pccl/bench_command.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "pccl/bench_explain.h"
#include "pccl/bench_limit.h"
#include "pccl/bench_rank.h"
#include "pccl/wan_emulator.h"

enum status { STATUS_FINE = 0, STATUS_WRONG = 1, STATUS_WORDS = 2, STATUS_VOID = WAN_EXIT_VOID };

struct run {
    const struct bench_options *options; /* borrowed */
    struct bench_fleet fleet;
    struct bench_results results;
    size_t job_count;            /* of a cycle */
    FILE *table;                 /* null: the figures go to standard output as JSON */
    FILE *json, *plot;           /* null: none */
    char transport[16];
};

/* ---- the line that shows how far it is --------------------------------------------------------------------------- */

/* On a terminal, where the next line of the table overwrites it. */
static void show_progress(const struct run *run, size_t index, const struct bench_job *job)
{
    if (isatty(STDERR_FILENO)) {
        size_t all = run->job_count * (size_t)run->options->cycles;
        fprintf(stderr, "\r\033[K# %zu of %zu: %s of %zu B ...", index + 1, all, job->call->name, job->size);
        fflush(stderr);
    }
}

static void clear_progress(void)
{
    if (isatty(STDERR_FILENO)) {
        fprintf(stderr, "\r\033[K");
        fflush(stderr);
    }
}

/* ---- measuring --------------------------------------------------------------------------------------------------- */

static double average(enum bench_average how, double so_far, double value, unsigned rank, unsigned world)
{
    switch (how) {
    case BENCH_RANK_0: return rank == 0 ? value : so_far;
    case BENCH_MEAN: return so_far + value / world;
    case BENCH_LEAST: return rank == 0 || value < so_far ? value : so_far;
    case BENCH_MOST: return rank == 0 || value > so_far ? value : so_far;
    }
    return value;
}

/* One placement, or the plain links, at all ranks; false: a rank failed. */
static bool hear_all(struct run *run, const struct bench_job *job, enum bench_word word, struct bench_figures *f)
{
    const struct bench_options *o = run->options;
    enum bench_average how = o->average;
    *f = (struct bench_figures){.there = true};
    if (word == BENCH_PLAIN && bench_call_rooted(job->call)) {
        how = BENCH_MOST; /* see bench_rank.c: begin_together */
    }
    for (unsigned rank = 0; rank < o->world; rank++) {
        struct bench_record r;
        if (!bench_fleet_hear(&run->fleet, rank, word, &r)) {
            return false;
        }
        f->iterations = r.iterations;
        if (rank == 0) {
            snprintf(f->algorithm, sizeof f->algorithm, "%.15s", r.text);
            f->predicted_us = r.predicted_us;
        }
        f->us = average(how, f->us, r.us, rank, o->world);
        f->least_us = average(how, f->least_us, r.least_us, rank, o->world);
        f->p90_us = average(how, f->p90_us, r.p90_us, rank, o->world);
        f->most_us = average(how, f->most_us, r.most_us, rank, o->world);
        f->cpu_s_per_gb += r.cpu_s;
        f->wrong += r.wrong;
    }
    return true;
}

static void complete(const struct run *run, const struct bench_line *line, struct bench_figures *f)
{
    double size = (double)line->job.size;
    if (f->there && f->us > 0) {
        f->algbw = size / 1e3 / f->us;
        f->busbw = bench_call_busbw(line->job.call, f->algbw, run->options->world);
        f->cpu_s_per_gb = size > 0 ? f->cpu_s_per_gb / (size * f->iterations / 1e9) : 0;
        f->limit_failed = bench_limit_failed(line->plain_us, f->us);
        f->share = f->limit_failed ? 0 : line->plain_us / f->us;
    }
}

static bool measure_job(struct run *run, struct bench_line *line)
{
    struct bench_figures plain;
    const struct bench_job *job = &line->job;
    bool ok = hear_all(run, job, BENCH_RESULT, &line->out_of_place) && hear_all(run, job, BENCH_PLAIN, &plain) &&
              (!job->call->in_place || hear_all(run, job, BENCH_RESULT, &line->in_place));
    if (!ok) {
        return false;
    }
    if (plain.wrong != 0) {
        fprintf(stderr, "pccl bench: %s of %zu B over plain links gave %llu wrong elements: the limit is not one\n",
                job->call->name, job->size, (unsigned long long)plain.wrong);
        return false;
    }
    line->plain_us = plain.us;
    complete(run, line, &line->out_of_place);
    complete(run, line, &line->in_place);
    return true;
}

/* What carries the data, by the word of all ranks; it must be what was asked for, where others would do as well. */
static bool hear_ready(struct run *run, double *operation_us)
{
    static const char mixed[sizeof run->transport] = "several";
    for (unsigned rank = 0; rank < run->options->world; rank++) {
        struct bench_record r;
        if (!bench_fleet_hear(&run->fleet, rank, BENCH_READY, &r)) {
            return false;
        }
        *operation_us = r.us;
        bool same = rank == 0 || strcmp(run->transport, r.text) == 0;
        memcpy(run->transport, same ? r.text : mixed, sizeof run->transport); /* a word of transport_of */
    }
    const char *asked = run->options->transport == BENCH_SHM ? "shm" : run->options->transport == BENCH_FABRIC ? "fabric" : NULL;
    if (asked != NULL && run->options->world > 1 && strcmp(run->transport, asked) != 0) {
        fprintf(stderr, "pccl bench: --transport %s: the data goes over %s; the log says why: PCCL_LOG_LEVEL=info\n", asked, run->transport);
        return false;
    }
    return true;
}

static bool measure_all(struct run *run)
{
    double unused;
    if (!bench_fleet_start(&run->fleet, bench_rank_measure) || !hear_ready(run, &unused)) {
        return false;
    }
    if (run->table != NULL) {
        bench_table_head(run->table, &run->results);
    }
    for (size_t i = 0; i < run->job_count * (size_t)run->options->cycles; i++) {
        struct bench_line *line = &run->results.lines[i];
        (void)bench_job_at(run->options, i % run->job_count, &line->job);
        line->cycle = 1 + (int)(i / run->job_count);
        show_progress(run, i, &line->job);
        bench_fleet_patience(&run->fleet, &line->job);
        bool ok = measure_job(run, line);
        line->at = time(NULL);
        clear_progress();
        if (!ok) {
            return false;
        }
        run->results.line_count++;
        if (run->table != NULL) {
            bench_table_line(run->table, &run->results, line);
        }
    }
    return bench_fleet_stop(&run->fleet, false);
}

/* What is expected of each algorithm, by the word of rank 0. */
static bool explain_all(struct run *run)
{
    double unused;
    if (!bench_fleet_start(&run->fleet, bench_rank_explain) || !hear_ready(run, &unused)) {
        return false;
    }
    bench_explain_head(stdout, run->options, run->transport);
    for (size_t i = 0; i < run->job_count; i++) {
        struct bench_record r;
        struct bench_job job;
        (void)bench_job_at(run->options, i, &job);
        if (!bench_fleet_hear(&run->fleet, 0, BENCH_EXPECTED, &r)) {
            return false;
        }
        bench_explain_line(stdout, &job, &r);
    }
    return bench_fleet_stop(&run->fleet, false);
}

/* ---- recovery ---------------------------------------------------------------------------------------------------- */

static void wait_us(double us)
{
    struct timespec t = {.tv_sec = (time_t)(us / 1e6), .tv_nsec = (long)(us * 1e3) % 1000000000};
    nanosleep(&t, NULL);
}

/* From the kill to the end of one survivor. */
static bool hear_survivor(struct run *run, unsigned rank, double killed_us, struct bench_recovery *to)
{
    struct bench_record error, retried, after;
    if (!bench_fleet_hear(&run->fleet, rank, BENCH_ERROR, &error) ||
        !bench_fleet_hear(&run->fleet, rank, BENCH_RETRIED, &retried) ||
        !bench_fleet_hear(&run->fleet, rank, BENCH_AFTER, &after)) {
        return false;
    }
    double error_ms = (error.us - killed_us) / 1e3, retried_ms = (retried.us - killed_us) / 1e3;
    if (run->table != NULL && run->results.recovery_count == 0 && to->error_ms == 0) {
        fprintf(run->table, "# error at rank %u: %s\n", rank, error.text);
    }
    to->error_ms = error_ms > to->error_ms ? error_ms : to->error_ms;
    to->retried_ms = retried_ms > to->retried_ms ? retried_ms : to->retried_ms;
    to->after_ms = after.us / 1e3 > to->after_ms ? after.us / 1e3 : to->after_ms;
    to->wrong += retried.wrong;
    return true;
}

/* The kill comes at any time of an operation: the seed is the same in every run. */
static bool kill_once(struct run *run, struct bench_recovery *to, unsigned *seed)
{
    unsigned victim = (unsigned)run->options->kill_rank;
    double operation_us = 0;
    bench_fleet_patience(&run->fleet, &to->job);
    if (!bench_fleet_start(&run->fleet, bench_rank_recover) || !hear_ready(run, &operation_us)) {
        return false;
    }
    if (run->table != NULL && run->results.recovery_count == 0) {
        bench_table_head(run->table, &run->results);
    }
    wait_us(operation_us * (1 + (double)(rand_r(seed) % 1000) / 1000));
    double killed_us = bench_now_us();
    bench_fleet_kill(&run->fleet, victim);
    to->operation_ms = operation_us / 1e3;
    to->closed_ms = (bench_now_us() - killed_us) / 1e3;
    for (unsigned rank = 0; rank < run->options->world; rank++) {
        if (rank != victim && !hear_survivor(run, rank, killed_us, to)) {
            return false;
        }
    }
    return bench_fleet_stop(&run->fleet, false);
}

static bool kill_all(struct run *run)
{
    unsigned seed = 4;
    for (size_t i = 0; i < run->job_count; i++) {
        run->fleet.recovery_job = i;
        for (int round = 1; round <= run->options->rounds; round++) {
            struct bench_recovery *to = &run->results.recoveries[run->results.recovery_count];
            (void)bench_job_at(run->options, i, &to->job);
            to->round = round;
            show_progress(run, i, &to->job);
            bool ok = kill_once(run, to, &seed);
            clear_progress();
            if (!ok) {
                return false;
            }
            run->results.recovery_count++;
            if (run->table != NULL) {
                bench_table_recovery(run->table, &run->results, to);
            }
        }
    }
    return true;
}

/* ---- the whole --------------------------------------------------------------------------------------------------- */

/* Before anything is measured, so that an hour is not lost for a typing error. */
static bool open_file(const char *flag, const char *path, FILE **out)
{
    *out = fopen(path, "we");
    if (*out == NULL) {
        fprintf(stderr, "pccl bench: %s '%s' cannot be written: %s: give another path\n", flag, path, strerror(errno));
    }
    return *out != NULL;
}

static bool prepare(struct run *run)
{
    const struct bench_options *o = run->options;
    struct bench_job job;
    bool to_output = o->json != NULL && strcmp(o->json, "-") == 0;
    while (bench_job_at(o, run->job_count, &job)) {
        run->job_count++;
    }
    run->table = to_output ? NULL : stdout;
    run->json = to_output ? stdout : NULL;
    run->results = (struct bench_results){
        .options = o,
        .transport = run->transport,
        .lines = calloc(run->job_count * (size_t)o->cycles, sizeof *run->results.lines),
        .recoveries = calloc(run->job_count * (size_t)o->rounds, sizeof *run->results.recoveries),
    };
    if (run->results.lines == NULL || run->results.recoveries == NULL) {
        fprintf(stderr, "pccl bench: no memory for %zu lines: raise -f or -i\n", run->job_count * (size_t)o->cycles);
        return false;
    }
    return (o->json == NULL || to_output || open_file("--json", o->json, &run->json)) &&
           (o->plot == NULL || open_file("--plot", o->plot, &run->plot));
}

static bool close_file(const char *flag, FILE *file)
{
    bool ok = file == NULL || ((file == stdout ? fflush(file) : fclose(file)) == 0);
    if (!ok) {
        fprintf(stderr, "pccl bench: %s: %s\n", flag, strerror(errno));
    }
    return ok;
}

static bool write_files(struct run *run)
{
    if (run->json != NULL) {
        bench_json_write(run->json, &run->results);
    }
    if (run->plot != NULL) {
        bench_plot_write(run->plot, &run->results);
    }
    bool json = close_file("--json", run->json), plot = close_file("--plot", run->plot);
    return json && plot && close_file("table", run->table);
}

static int run_all(struct run *run)
{
    const struct bench_options *o = run->options;
    if (!bench_fleet_begin(&run->fleet, o)) {
        (void)bench_fleet_end(&run->fleet);
        return STATUS_WRONG;
    }
    if (run->fleet.links != NULL) {
        run->results.limit = bench_links_name(run->fleet.links);
    }
    bool ok = o->explain ? explain_all(run) : o->kill_rank == BENCH_NOBODY ? measure_all(run) : kill_all(run);
    if (ok && !o->explain && run->table != NULL) {
        bench_table_end(run->table, &run->results);
    }
    bool valid = bench_fleet_end(&run->fleet);
    ok = write_files(run) && ok;
    return !valid ? STATUS_VOID : ok && bench_results_wrong(&run->results) == 0 ? STATUS_FINE : STATUS_WRONG;
}

int bench_command(int count, char **words)
{
    struct bench_options options;
    static struct run run; /* large, and zero */
    run.options = &options;
    if (!bench_options_read(count, words, &options) || options.done) {
        bench_options_end(&options);
        return options.done ? STATUS_FINE : STATUS_WORDS;
    }
    int status = prepare(&run) ? run_all(&run) : STATUS_WRONG;
    bench_options_end(&options);
    free(run.results.lines);
    free(run.results.recoveries);
    return status;
}
