/* bench_fleet.c - the processes of a benchmark.
 *
 * Each child dies with its parent.  A pipe is one rank's alone: its end tells that the rank is gone.
 * SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#include "pccl/bench_fleet.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

double bench_now_us(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e6 + (double)t.tv_nsec / 1e3;
}

void bench_say(int pipe, const struct bench_record *record)
{
    if (write(pipe, record, sizeof *record) != (ssize_t)sizeof *record) { /* below PIPE_BUF: whole or not at all */
        _exit(1); /* nobody listens any more */
    }
}

/* Reads all of it; false: the other end is closed. */
static bool read_all(int fd, void *out, size_t size)
{
    unsigned char *to = out;
    for (size_t at = 0; at < size;) {
        ssize_t n = read(fd, to + at, size - at);
        if (n == 0 || (n < 0 && errno != EINTR)) {
            return false;
        }
        at += n > 0 ? (size_t)n : 0;
    }
    return true;
}

/* A child that dies with this process, and a pipe from it; 0 in the child. */
static pid_t fork_with_pipe(int *ours, int *theirs)
{
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) != 0) {
        return -1;
    }
    fflush(NULL); /* or both would write it */
    pid_t parent = getpid(), pid = fork();
    if (pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (getppid() != parent) {
            _exit(1);
        }
        close(ends[0]);
        *theirs = ends[1];
        return 0;
    }
    close(ends[1]);
    *ours = ends[0];
    if (pid < 0) {
        close(ends[0]);
        *ours = -1;
    }
    return pid;
}

/* Where a rank, and with rank 0 the master, lives. */
static bool go_home(const struct bench_fleet *fleet, unsigned rank)
{
    bool ok = fleet->wan == NULL || bench_wan_enter(fleet->wan, rank);
    if (!ok) {
        fprintf(stderr, "pccl bench: --wan: enter host %u: %s\n", rank, strerror(errno));
    }
    return ok;
}

static int master_main(const struct bench_fleet *fleet, int pipe)
{
    ccoip_socket_address_t at = fleet->master_at;
    if (!go_home(fleet, 0)) {
        return 1;
    }
    pcclMasterInstance_t *master = NULL;
    if (pcclInit() != pcclSuccess || pcclCreateMaster(at, &master) != pcclSuccess || pcclRunMaster(master) != pcclSuccess ||
        pcclGetMasterAddress(master, &at) != pcclSuccess) {
        fprintf(stderr, "pccl bench: master: %s\n", pcclGetLastError());
        return 1;
    }
    if (write(pipe, &at, sizeof at) != (ssize_t)sizeof at) {
        return 1;
    }
    pause(); /* until it is killed */
    return 0;
}

/* Whether the library will look for shared memory. */
static bool may_share(const struct bench_options *options)
{
    const char *disabled = getenv("PCCL_SHM_DISABLE");
    return options->transport == BENCH_SHM ||
           (options->transport == BENCH_AUTO && (disabled == NULL || strcmp(disabled, "1") != 0));
}

bool bench_fleet_begin(struct bench_fleet *fleet, const struct bench_options *options)
{
    int theirs = -1;
    *fleet = (struct bench_fleet){.options = options, .master_pipe = -1, .master_at = {.inet = {.ipv4 = {{127, 0, 0, 1}}}}};
    memset(fleet->pipes, 0xFF, sizeof fleet->pipes);
    if (options->network != NULL) {
        fleet->wan = bench_wan_begin(options->network);
        if (fleet->wan == NULL) {
            return false;
        }
        uint32_t at = bench_wan_address(fleet->wan, 0);
        for (int i = 0; i < 4; i++) {
            fleet->master_at.inet.ipv4.data[i] = (uint8_t)(at >> (24 - 8 * i));
        }
    }
    if (options->limit && !options->explain && options->kill_rank == BENCH_NOBODY && options->world > 1 && options->world <= BENCH_LINKS_MOST) {
        fleet->links = bench_links_open(options->world, may_share(options), fleet->wan);
        if (fleet->links == NULL) {
            return false;
        }
    }
    fleet->master = fork_with_pipe(&fleet->master_pipe, &theirs);
    if (fleet->master == 0) {
        _exit(master_main(fleet, theirs));
    }
    if (fleet->master < 0) {
        fprintf(stderr, "pccl bench: start the master: %s\n", strerror(errno));
        fleet->master = 0;
        return false;
    }
    return read_all(fleet->master_pipe, &fleet->master_at, sizeof fleet->master_at);
}

/* To the one of this process's cores that has that number. */
static void keep_to_core(unsigned number)
{
    cpu_set_t all, one;
    CPU_ZERO(&one);
    for (int core = 0; sched_getaffinity(0, sizeof all, &all) == 0 && core < CPU_SETSIZE; core++) {
        if (CPU_ISSET(core, &all) && number-- == 0) {
            CPU_SET(core, &one);
            (void)sched_setaffinity(0, sizeof one, &one);
            return;
        }
    }
}

bool bench_fleet_start(struct bench_fleet *fleet, bench_rank_main rank_main)
{
    for (unsigned rank = 0; rank < fleet->options->world; rank++) {
        int theirs = -1;
        fleet->ranks[rank] = fork_with_pipe(&fleet->pipes[rank], &theirs);
        if (fleet->ranks[rank] == 0) {
            if (fleet->options->bind) {
                keep_to_core(rank);
            }
            _exit(go_home(fleet, rank) ? rank_main(fleet, rank, theirs) : 1);
        }
        if (fleet->ranks[rank] < 0) {
            fprintf(stderr, "pccl bench: start rank %u: %s\n", rank, strerror(errno));
            fleet->ranks[rank] = 0;
            return false;
        }
    }
    return true;
}

void bench_fleet_patience(struct bench_fleet *fleet, const struct bench_job *job)
{
    int s = fleet->options->timeout_s;
    snprintf(fleet->patient_for, sizeof fleet->patient_for, "%s of %zu B", job->call->name, job->size);
    fleet->patient_until_us = s > 0 ? bench_now_us() + s * 1e6 : 0;
}

/* Whether the rank says something, or is gone, in time. */
static bool comes(const struct bench_fleet *fleet, unsigned rank)
{
    struct pollfd p = {.fd = fleet->pipes[rank], .events = POLLIN};
    int got = -1;
    while (fleet->patient_until_us > 0 && got < 0) {
        double left_ms = (fleet->patient_until_us - bench_now_us()) / 1e3;
        got = poll(&p, 1, left_ms > 0 ? (int)left_ms + 1 : 0);
    }
    return got != 0;
}

bool bench_fleet_hear(struct bench_fleet *fleet, unsigned rank, enum bench_word word, struct bench_record *record)
{
    if (!comes(fleet, rank)) {
        fprintf(stderr, "pccl bench: %s has not ended at rank %u in %d s (-T): aborted\n", fleet->patient_for, rank,
                fleet->options->timeout_s);
        return false;
    }
    if (!read_all(fleet->pipes[rank], record, sizeof *record)) {
        fprintf(stderr, "pccl bench: rank %u is gone\n", rank);
        return false;
    }
    if (record->word == BENCH_FAILED) {
        fprintf(stderr, "pccl bench: rank %u: %s\n", rank, record->text);
    }
    return record->word == word;
}

void bench_fleet_kill(struct bench_fleet *fleet, unsigned rank)
{
    struct bench_record rest;
    kill(fleet->ranks[rank], SIGKILL);
    while (read_all(fleet->pipes[rank], &rest, sizeof rest)) {
    }
    waitpid(fleet->ranks[rank], NULL, 0);
    fleet->ranks[rank] = 0;
}

bool bench_fleet_stop(struct bench_fleet *fleet, bool now)
{
    bool ok = true;
    for (unsigned rank = 0; rank < fleet->options->world; rank++) {
        int status = 0;
        if (fleet->ranks[rank] > 0) {
            if (now) {
                kill(fleet->ranks[rank], SIGKILL);
            }
            waitpid(fleet->ranks[rank], &status, 0);
            fleet->ranks[rank] = 0;
        }
        ok = ok && status == 0;
        if (fleet->pipes[rank] >= 0) {
            close(fleet->pipes[rank]);
            fleet->pipes[rank] = -1;
        }
    }
    return ok;
}

bool bench_fleet_end(struct bench_fleet *fleet)
{
    (void)bench_fleet_stop(fleet, true);
    if (fleet->master > 0) {
        kill(fleet->master, SIGKILL);
        waitpid(fleet->master, NULL, 0);
        fleet->master = 0;
    }
    if (fleet->master_pipe >= 0) {
        close(fleet->master_pipe);
        fleet->master_pipe = -1;
    }
    bench_links_close(fleet->links);
    fleet->links = NULL;
    bool ok = bench_wan_end(fleet->wan);
    fleet->wan = NULL;
    return ok;
}
