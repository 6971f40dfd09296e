/* sim_run.c - runs many seeds of the simulated cluster, in several processes, and says what they did.
 *
 *     sim_run --seeds 10000 [--first N] [--jobs 2]      prints totals, the table fault x phase, one hash over the traces of all
 *                                                       seeds (the same for any number of jobs), "N passed, N failed"
 *     sim_run --seeds 10000 --cells N                   fails also if more than N cells of the tables are empty
 *     sim_run --seed N [--trace]                        one seed; with its trace
 *     sim_run --algo allreduce:forest ...               what all programs wish for, as PCCL_ALGO says it
 *     sim_run --mutant NAME --seeds N                   a build with PCCL_MUTANTS: ends at the first violation
 *
 * One idea: jobs share nothing but one table in shared memory, from which each takes its next seed, so a seed that crashes or
 * hangs costs its job's process, and is named.
 * A seed hangs when one event uses so much processor time: neither a long run nor a loaded machine makes one fail.
 * SPDX-License-Identifier: MIT */
#include <inttypes.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "core/check.h"
#include "core/mutant.h"
#include "sim_cluster.h"

enum { JOBS_MAX = 16, FAILURES_MAX = 50, SECONDS_PER_EVENT = 20, HASH_SAMPLE = 50 };

struct job {
    uint64_t seed; /* at work on */
    uint64_t passed, failed;
    uint64_t hash; /* sum over its seeds: a sum does not ask who ran which */
    struct stats stats;
    uint32_t failures;
    struct {
        uint64_t seed;
        char text[300];
    } failure[FAILURES_MAX];
};

/* What the jobs share. */
struct work {
    _Atomic uint64_t taken; /* seeds that a job has, or had: large clusters are not spread evenly over them */
    struct job job[JOBS_MAX];
};

struct arguments {
    uint64_t first, seeds, one;
    uint32_t seconds; /* of processor time: no job begins a seed after it; 0: no limit */
    uint32_t jobs;
    uint32_t cells; /* so many may be empty */
    bool has_one, trace, stop_at_first;
    const char *algo; /* null: as seeds draw it */
    struct choose_wishes wishes;
};

static void stats_add(struct stats *to, const struct stats *from)
{
    uint64_t *t = (uint64_t *)to;
    const uint64_t *f = (const uint64_t *)from;
    for (size_t i = 0; i < sizeof *to / sizeof *t; i++) {
        t[i] += f[i];
    }
}

static uint64_t seed_run(struct cluster *cl, const struct arguments *a, uint64_t seed, bool trace, char (*tail)[CLUSTER_LINE])
{
    struct options opt;
    options_draw(&opt, seed);
    opt.wishes = a->algo != NULL ? &a->wishes : NULL;
    cl->tail = tail;
    cluster_init(cl, &opt, trace);
    cluster_run(cl);
    uint64_t hash = cl->trace_hash;
    return hash;
}

static struct {
    const struct cluster *cl; /* the run at hand */
    uint64_t events;          /* it had handled so many at the last signal */
} watched;

/* The second signal during one event ends the process: a step never returns.  Runs that are long have many events. */
static void on_watch(int signal_number)
{
    if (watched.cl->stats.events == watched.events) {
        signal(signal_number, SIG_DFL);
        raise(signal_number);
    }
    watched.events = watched.cl->stats.events;
}

/* SIGPROF comes each time that the process has used so many seconds of processor time. */
static void watch_events(const struct cluster *cl)
{
    struct itimerval pause = {.it_interval.tv_sec = SECONDS_PER_EVENT, .it_value.tv_sec = SECONDS_PER_EVENT};
    watched.cl = cl;
    watched.events = UINT64_MAX;
    signal(SIGPROF, on_watch);
    setitimer(ITIMER_PROF, &pause, NULL);
}

static void job_seed(struct cluster *cl, struct job *job, const struct arguments *a, uint64_t seed)
{
    char text[400] = "";
    job->seed = seed;
    uint64_t hash = seed_run(cl, a, seed, false, NULL);
    job->hash += mix64(seed, hash);
    bool failed = cl->failed || check_failed != 0;
    memcpy(text, cl->violation, sizeof text);
    if (check_failed != 0 && !cl->failed) {
        snprintf(text, sizeof text, "an invariant failed outside of a step");
    }
    check_failed = 0;
    algorithms_seed_ended(&cl->stats.algorithms);
    stats_add(&job->stats, &cl->stats);
    cluster_fini(cl);
    if (!failed && seed % HASH_SAMPLE == 0) {
        if (seed_run(cl, a, seed, false, NULL) != hash) {
            failed = true;
            snprintf(text, sizeof text, "the same seed gave two traces");
        }
        cluster_fini(cl);
    }
    job->passed += !failed;
    job->failed += failed;
    if (failed && job->failures < FAILURES_MAX) {
        job->failure[job->failures].seed = seed;
        snprintf(job->failure[job->failures].text, sizeof job->failure[0].text, "%.299s", text);
        job->failures++;
    }
}

/* Processor time of this process. */
static double own_seconds(void)
{
    struct rusage used = {0};
    getrusage(RUSAGE_SELF, &used);
    return (double)(used.ru_utime.tv_sec + used.ru_stime.tv_sec) +
           (double)(used.ru_utime.tv_usec + used.ru_stime.tv_usec) / 1e6;
}

static void job_run(struct work *work, struct job *job, const struct arguments *a)
{
    struct cluster *cl = calloc(1, sizeof *cl);
    if (cl == NULL) {
        exit(2);
    }
    watch_events(cl);
    for (uint64_t taken; (taken = atomic_fetch_add(&work->taken, 1)) < a->seeds;) {
        job_seed(cl, job, a, a->first + taken);
        if ((a->stop_at_first && job->failed != 0) || (a->seconds != 0 && own_seconds() >= a->seconds)) {
            break;
        }
    }
    job->seed = UINT64_MAX;
    free(cl);
}

/* A job whose process died is started again after the seed that killed it. */
static void jobs_supervise(struct work *work, const struct arguments *a)
{
    struct job *jobs = work->job;
    pid_t pids[JOBS_MAX];
    uint32_t running = 0;
    for (uint32_t i = 0; i < a->jobs; i++) {
        pids[i] = fork();
        if (pids[i] == 0) {
            job_run(work, &jobs[i], a);
            _exit(0);
        }
        running++;
    }
    while (running > 0) {
        int status;
        pid_t pid = wait(&status);
        for (uint32_t i = 0; i < a->jobs; i++) {
            if (pids[i] != pid) {
                continue;
            }
            running--;
            uint64_t seed = jobs[i].seed;
            if (WIFEXITED(status) && WEXITSTATUS(status) == 0 && seed == UINT64_MAX) {
                break;
            }
            jobs[i].failed++;
            if (jobs[i].failures < FAILURES_MAX) {
                jobs[i].failure[jobs[i].failures].seed = seed;
                snprintf(jobs[i].failure[jobs[i].failures++].text, sizeof jobs[i].failure[0].text, "ended by signal %d%s",
                         WIFSIGNALED(status) ? WTERMSIG(status) : 0,
                         WIFSIGNALED(status) && WTERMSIG(status) == SIGPROF ? ": hangs" : "");
            }
            if (!a->stop_at_first && jobs[i].failures < FAILURES_MAX) {
                pids[i] = fork();
                if (pids[i] == 0) {
                    job_run(work, &jobs[i], a);
                    _exit(0);
                }
                running++;
            }
        }
    }
}

/* Processor time of all jobs that have ended. */
static double jobs_seconds(void)
{
    struct rusage used = {0};
    getrusage(RUSAGE_CHILDREN, &used);
    return (double)(used.ru_utime.tv_sec + used.ru_stime.tv_sec) +
           (double)(used.ru_utime.tv_usec + used.ru_stime.tv_usec) / 1e6;
}

/* See faults_fit_program: where programs vote instead of launching, nothing is optimised or synchronised. */
static bool cell_impossible(enum fault_kind kind, enum phase phase)
{
    return kind == FAULT_VOTE && (phase == PHASE_PROBING || phase == PHASE_STAGING || phase == PHASE_STAGING_FROZEN);
}

static uint32_t table_print(const struct stats *s)
{
    uint32_t empty = 0;
    printf("%-18s", "fault \\ phase");
    for (uint32_t p = 0; p < PHASE_COUNT; p++) {
        printf("%9s", phase_name((enum phase)p));
    }
    printf("\n");
    for (uint32_t k = 0; k < FAULT_COUNT; k++) {
        printf("%-18s", fault_name((enum fault_kind)k));
        for (uint32_t p = 0; p < PHASE_COUNT; p++) {
            printf("%9" PRIu64, s->cell[k][p]);
            empty += s->cell[k][p] == 0 && !cell_impossible((enum fault_kind)k, (enum phase)p);
        }
        printf("\n");
    }
    printf("steps failed on purpose, by event:");
    for (uint32_t k = 1; k <= SESSION_TICK; k++) {
        printf(" %" PRIu64, s->poisoned[k]);
        bool never = k == SESSION_MASTER_FOREIGN || k == SESSION_DATA_FAILED; /* all masters here are of one version; see poison_fault.c */
        empty += s->poisoned[k] == 0 && !never;
    }
    printf("\n");
    return empty;
}

static void print_replay(const struct arguments *a, uint64_t seed)
{
    printf("  replay: sim_run --seed %" PRIu64 " --trace%s%s\n", seed, a->algo != NULL ? " --algo " : "", a->algo != NULL ? a->algo : "");
}

static int seeds_run(const struct arguments *a)
{
    struct work *work = mmap(NULL, sizeof *work, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (work == MAP_FAILED) {
        return 2;
    }
    struct job *jobs = work->job;
    struct timespec begin, end;
    clock_gettime(CLOCK_MONOTONIC, &begin);
    jobs_supervise(work, a);
    clock_gettime(CLOCK_MONOTONIC, &end);
    struct stats all = {0};
    uint64_t passed = 0, failed = 0, hash = 0;
    for (uint32_t i = 0; i < a->jobs; i++) {
        stats_add(&all, &jobs[i].stats);
        passed += jobs[i].passed;
        failed += jobs[i].failed;
        hash += jobs[i].hash;
        for (uint32_t k = 0; k < jobs[i].failures; k++) {
            printf("seed %" PRIu64 ": %s\n", jobs[i].failure[k].seed, jobs[i].failure[k].text);
            print_replay(a, jobs[i].failure[k].seed);
        }
    }
    uint32_t empty = 0;
    if (!a->stop_at_first) {
        empty = table_print(&all) + algorithms_print(&all.algorithms) + match_print(&all) +
                (all.parts == 0) + (all.call_parts == 0) + (all.paths_lost == 0);
    }
    printf("%" PRIu64 " events, %" PRIu64 " faults, %" PRIu64 " calls: %" PRIu64 " succeeded, %" PRIu64 " aborted, %" PRIu64
           " refused; %" PRIu64 " votes, %" PRIu64 " views, %" PRIu64 " joins; %" PRIu64
           " worlds formed, %" PRIu64 " given up, %" PRIu64 " joined later; %" PRIu64 " calls split a world, %" PRIu64
           " were given up; %" PRIu64 " began to work in a world of a given size; %" PRIu64 " calls ended beside faults of other worlds; %" PRIu64
           " windows, %" PRIu64 " left while a member was silent, %" PRIu64 " operations on them, of which %" PRIu64 " succeeded, in %" PRIu64 " messages; %" PRIu64 " parts of messages between two without a link, %" PRIu64
           " of calls, %" PRIu64 " times their relay lost one; %" PRIu64 " reduced bytes checked\n",
           all.events, all.faults, all.operations, all.successes, all.aborts, all.refusals, all.votes, all.views, all.joins,
           all.formed, all.given_up, all.joined, all.splits, all.splits_given_up, all.worked, all.calm, all.windows, all.windows_left, all.window_calls,
           all.window_ok, all.window_messages, all.parts, all.call_parts, all.paths_lost, all.bytes);
    double wall = (double)(end.tv_sec - begin.tv_sec) + (double)(end.tv_nsec - begin.tv_nsec) / 1e9, used = jobs_seconds();
    printf("%.1f s on %u jobs, %.1f s of processor time, %.0f seeds for a second of it; %u cells empty\n", wall,
           a->jobs, used, (double)(passed + failed) / used, empty);
    printf("trace hash of all seeds %016" PRIx64 "\n", hash);
    if (empty > a->cells) {
        printf("%u cells are empty, and %u may be\n", empty, a->cells);
        failed++;
    }
    printf("%" PRIu64 " passed, %" PRIu64 " failed\n", passed, failed);
    return failed != 0;
}

static int one_run(const struct arguments *a)
{
    struct cluster *cl = calloc(1, sizeof *cl);
    char (*tail)[CLUSTER_LINE] = calloc(CLUSTER_TAIL, CLUSTER_LINE);
    if (cl == NULL || tail == NULL) {
        return 2;
    }
    uint64_t hash = seed_run(cl, a, a->one, a->trace, tail);
    if (cl->failed && !a->trace) {
        uint32_t from = cl->tail_count > CLUSTER_TAIL ? cl->tail_count - CLUSTER_TAIL : 0;
        for (uint32_t i = from; i < cl->tail_count; i++) {
            puts(tail[i % CLUSTER_TAIL]);
        }
    }
    options_print(&cl->opt);
    if (cl->failed) {
        printf("VIOLATION at %.6f ms: %s\n", (double)cl->now / 1e6, cl->violation);
        print_replay(a, a->one);
    }
    printf("trace hash %016" PRIx64 ", %" PRIu64 " events\n%d passed, %d failed\n", hash, cl->stats.events, !cl->failed,
           cl->failed);
    int status = cl->failed;
    cluster_fini(cl);
    free(cl);
    free(tail);
    return status;
}

static bool arguments_read(struct arguments *a, int argc, char **argv)
{
    for (int i = 1; i < argc; i++) {
        const char *value = i + 1 < argc ? argv[i + 1] : NULL;
        if (strcmp(argv[i], "--trace") == 0) {
            a->trace = true;
            continue;
        }
        if (value == NULL) {
            return false;
        }
        i++;
        if (strcmp(argv[i - 1], "--seeds") == 0) {
            a->seeds = strtoull(value, NULL, 10);
        } else if (strcmp(argv[i - 1], "--first") == 0) {
            a->first = strtoull(value, NULL, 10);
        } else if (strcmp(argv[i - 1], "--seconds") == 0) {
            a->seconds = (uint32_t)strtoul(value, NULL, 10);
        } else if (strcmp(argv[i - 1], "--jobs") == 0) {
            a->jobs = (uint32_t)strtoul(value, NULL, 10);
        } else if (strcmp(argv[i - 1], "--cells") == 0) {
            a->cells = (uint32_t)strtoul(value, NULL, 10);
        } else if (strcmp(argv[i - 1], "--algo") == 0) {
            char why[200];
            a->algo = value;
            if (!choose_read(value, &a->wishes, why, sizeof why)) {
                fprintf(stderr, "sim_run: --algo: %s\n", why);
                return false;
            }
        } else if (strcmp(argv[i - 1], "--seed") == 0) {
            a->one = strtoull(value, NULL, 10);
            a->has_one = true;
        } else if (strcmp(argv[i - 1], "--mutant") == 0) {
#ifdef PCCL_MUTANTS
            mutant_active = mutant_find(value);
            a->stop_at_first = true;
            if (mutant_active < 0) {
                return false;
            }
#else
            fprintf(stderr, "sim_run: built without PCCL_MUTANTS\n");
            return false;
#endif
        } else {
            return false;
        }
    }
    return a->jobs >= 1 && a->jobs <= JOBS_MAX;
}

int main(int argc, char **argv)
{
    struct arguments a = {.first = 1, .seeds = 1000, .jobs = 2, .cells = UINT32_MAX};
    setvbuf(stdout, NULL, _IOLBF, 0);
    if (!arguments_read(&a, argc, argv)) {
        fprintf(stderr, "usage: sim_run [--seeds N] [--first N] [--jobs N] [--seconds N] [--cells N] [--seed N] [--trace] [--algo TEXT]"
                        " [--mutant NAME]\n");
        return 2;
    }
    return a.has_one ? one_run(&a) : seeds_run(&a);
}
