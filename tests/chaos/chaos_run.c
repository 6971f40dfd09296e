/* chaos_run.c - rounds of real processes and real faults, one after the other or side by side, until the time is over.
 *
 * usage: chaos_run [--seconds N] [--rounds N] [--seed N] [--jobs N] [--logs DIRECTORY] [--keep] [--first] [--loopback]
 * Round number n has the seed SEED + n, and runs in a process of its own, with its logs in DIRECTORY/seed-N; those of a round
 * without findings are deleted unless --keep; --first ends at the first round that fails.  A failing one is run again with --rounds 1 --seed N: the same plan, though not the same
 * timing.  The last line is "N passed, N failed", rounds.
 * SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include <signal.h>

#include "round.h"

enum { JOBS_MOST = 16, PATH = 512, MANY_ROUNDS = 40 };

struct options {
    int64_t seconds, rounds;
    uint64_t seed;
    int jobs;
    const char *logs;
    bool keep, first, networks;
};

struct job {
    pid_t pid; /* 0: none */
    uint64_t seed;
    int64_t began_ms;
    char directory[PATH];
};

struct sum {
    int passed, failed, mild, trees, faults[FAULT_KINDS];
    int64_t processes, calls, successes, steps;
};

static void delete_logs(const char *directory)
{
    char path[PATH + 256];
    DIR *d = opendir(directory);
    for (struct dirent *e = d != NULL ? readdir(d) : NULL; e != NULL; e = readdir(d)) {
        snprintf(path, sizeof path, "%s/%s", directory, e->d_name);
        if (e->d_name[0] != '.') {
            unlink(path);
        }
    }
    if (d != NULL) {
        closedir(d);
    }
    rmdir(directory);
}

static void show_report(const char *directory)
{
    char path[PATH + 16], line[1024];
    snprintf(path, sizeof path, "%s/report", directory);
    FILE *f = fopen(path, "re");
    while (f != NULL && fgets(line, sizeof line, f) != NULL) {
        fputs(line, stdout);
    }
    if (f != NULL) {
        fclose(f);
    }
}

static bool start(struct job *j, const struct options *o, uint64_t seed, struct round_result *result)
{
    char path[PATH + 16];
    pid_t parent = getpid();
    *j = (struct job){.seed = seed, .began_ms = round_now_ms()};
    memset(result, 0, sizeof *result);
    snprintf(j->directory, sizeof j->directory, "%s/seed-%" PRIu64, o->logs, seed);
    delete_logs(j->directory);
    if (mkdir(j->directory, 0755) != 0) {
        fprintf(stderr, "chaos_run: cannot make %s: %s\n", j->directory, strerror(errno));
        return false;
    }
    snprintf(path, sizeof path, "%s/report", j->directory);
    fflush(stdout);
    j->pid = fork();
    if (j->pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        int report = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0644);
        if (getppid() != parent || report < 0 || dup2(report, 1) < 0) {
            _exit(1);
        }
        round_run(seed, j->directory, o->networks, result);
        fflush(stdout);
        _exit(0);
    }
    return j->pid > 0;
}

static void finish(struct job *j, const struct options *o, int status, const struct round_result *result, struct sum *sum)
{
    bool ok = status == 0 && result->findings == 0;
    double seconds = (double)(round_now_ms() - j->began_ms) / 1e3;
    printf("seed %" PRIu64 " %s: %d processes, %d steps, %d calls compared, %d succeeded, %.1f s%s\n", j->seed,
           ok ? "passed" : "FAILED", result->processes, result->steps, result->calls, result->successes, seconds,
           result->caged ? "" : " (loopback)");
    sum->passed += ok;
    sum->failed += !ok;
    sum->mild += result->mild;
    sum->trees += result->trees;
    sum->processes += result->processes;
    sum->calls += result->calls;
    sum->successes += result->successes;
    sum->steps += result->steps;
    for (int k = 0; k < FAULT_KINDS; k++) {
        sum->faults[k] += result->faults[k];
    }
    if (!ok) {
        if (status != 0) {
            printf("FAILED: the round itself ended with status %d\n", status);
        }
        show_report(j->directory);
        printf("  logs in %s; again: chaos_run --rounds 1 --seed %" PRIu64 "\n", j->directory, j->seed);
    } else if (!o->keep) {
        delete_logs(j->directory);
    }
    fflush(stdout);
    j->pid = 0;
}

static bool read_options(struct options *o, int argc, char **argv)
{
    for (int i = 1; i < argc; i++) {
        const char *word = argv[i], *value = i + 1 < argc ? argv[i + 1] : NULL;
        if (strcmp(word, "--keep") == 0) {
            o->keep = true;
            continue;
        }
        if (strcmp(word, "--first") == 0) {
            o->first = true;
            continue;
        }
        if (strcmp(word, "--loopback") == 0) {
            o->networks = false;
            continue;
        }
        if (value == NULL) {
            return false;
        }
        i++;
        if (strcmp(word, "--seconds") == 0) {
            o->seconds = atoll(value);
        } else if (strcmp(word, "--rounds") == 0) {
            o->rounds = atoll(value);
        } else if (strcmp(word, "--seed") == 0) {
            o->seed = strtoull(value, NULL, 10);
        } else if (strcmp(word, "--jobs") == 0) {
            o->jobs = atoi(value);
        } else if (strcmp(word, "--logs") == 0) {
            o->logs = value;
        } else {
            return false;
        }
    }
    return o->jobs >= 1 && o->jobs <= JOBS_MOST;
}

static void run_all(const struct options *o, struct round_result *results, struct sum *sum)
{
    struct job jobs[JOBS_MOST] = {0};
    int64_t begun = 0, until = round_now_ms() + o->seconds * 1000;
    for (int running = 0;;) {
        for (int i = 0; i < o->jobs; i++) {
            bool more = (o->rounds == 0 || begun < o->rounds) && (o->seconds == 0 || round_now_ms() < until) &&
                        (!o->first || sum->failed == 0);
            if (jobs[i].pid == 0 && more) {
                if (!start(&jobs[i], o, o->seed + (uint64_t)begun, &results[i])) {
                    sum->failed++;
                    return;
                }
                begun++;
                running++;
            }
        }
        if (running == 0) {
            return;
        }
        int status;
        pid_t pid = wait(&status);
        for (int i = 0; i < o->jobs; i++) {
            if (jobs[i].pid == pid && pid > 0) {
                finish(&jobs[i], o, status, &results[i], sum);
                running--;
            }
        }
    }
}

int main(int argc, char **argv)
{
    struct options o = {.jobs = 2, .logs = "chaos-logs", .networks = true};
    struct sum sum = {0};
    if (!read_options(&o, argc, argv)) {
        fprintf(stderr, "usage: chaos_run [--seconds N] [--rounds N] [--seed N] [--jobs N] [--logs DIRECTORY] [--keep] "
                        "[--first] [--loopback]\n");
        return 2;
    }
    if (o.seconds == 0 && o.rounds == 0) {
        o.rounds = 1;
    }
    if (o.seed == 0) {
        o.seed = (uint64_t)time(NULL) * 1000;
    }
    struct round_result *results =
        mmap(NULL, sizeof *results * JOBS_MOST, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (results == MAP_FAILED || (mkdir(o.logs, 0755) != 0 && errno != EEXIST)) {
        fprintf(stderr, "chaos_run: cannot make %s: %s\n", o.logs, strerror(errno));
        return 2;
    }
    run_all(&o, results, &sum);
    printf("faults:");
    for (int k = 0; k < FAULT_KINDS; k++) {
        printf(" %s %d", fault_name((enum fault_kind)k), sum.faults[k]);
    }
    printf("\n%" PRId64 " processes, %" PRId64 " steps, %" PRId64 " calls compared, %" PRId64 " of them succeeded; in %d rounds nobody "
           "may lose its place; peers were told %d times to sum along trees\n", sum.processes, sum.steps, sum.calls, sum.successes, sum.mild, sum.trees);
    if (sum.trees == 0 && sum.passed >= MANY_ROUNDS) {
        printf("FAILED: no sum of %d rounds can have gone along trees\n", sum.passed);
        sum.failed++;
    }
    printf("%d passed, %d failed\n", sum.passed, sum.failed);
    return sum.failed != 0;
}
