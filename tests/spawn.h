/* spawn.h - programs under test: started, listened to, ended; and ccoip_master in particular.
 *
 * One idea: every wait is for an event (a line, the end of a stream, an exit) with a generous deadline that only a
 * broken program reaches.  Invariant: what a test has started has ended when the test ends; program_end sees to it.
 * SPDX-License-Identifier: MIT */
#ifndef PCCL_TESTS_SPAWN_H
#define PCCL_TESTS_SPAWN_H

#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { SPAWN_PATIENCE_MS = 30000, SPAWN_TEXT = 1 << 17, SPAWN_ARGS = 16 };

struct program {
    pid_t pid;
    int out, err;           /* owned: our ends of its streams; -1 when read to the end */
    char out_text[SPAWN_TEXT], err_text[SPAWN_TEXT];
    size_t out_size, err_size;
    int status;             /* exit status; 128 + signal; -1: runs */
};

static inline int64_t spawn_now_ms(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

/* Path of a file in the build directory: PCCL_BUILD_DIR, or above this program's own tests/KIND/. */
static inline void spawn_path(const char *name, char out[PATH_MAX])
{
    char self[PATH_MAX - 64] = ".";
    const char *build = getenv("PCCL_BUILD_DIR");
    if (build == NULL) {
        ssize_t n = readlink("/proc/self/exe", self, sizeof self - 1);
        self[n > 0 ? n : 0] = 0;
        for (int up = 0; up < 3 && strrchr(self, '/') != NULL; up++) {
            *strrchr(self, '/') = 0;
        }
        build = self;
    }
    snprintf(out, PATH_MAX, "%s/%s", build, name);
}

/* Starts `path` with the arguments up to a null. */
static inline bool program_start(struct program *p, const char *path, char *const args[])
{
    int out[2], err[2];
    memset(p, 0, sizeof *p);
    p->status = -1;
    if (pipe2(out, O_CLOEXEC) != 0 || pipe2(err, O_CLOEXEC) != 0) {
        return false;
    }
    pid_t parent = getpid();
    p->pid = fork();
    if (p->pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL); /* a test that is killed leaves nothing behind */
        if (getppid() != parent) {
            _exit(126);
        }
        dup2(out[1], 1);
        dup2(err[1], 2);
        execv(path, args);
        _exit(127);
    }
    close(out[1]);
    close(err[1]);
    p->out = out[0];
    p->err = err[0];
    return p->pid > 0;
}

static inline void program_take(int *fd, char *text, size_t *size)
{
    char rest[4096];
    bool room = *size < SPAWN_TEXT - 1;
    ssize_t n = read(*fd, room ? text + *size : rest, room ? SPAWN_TEXT - 1 - *size : sizeof rest);
    if (n <= 0) {
        close(*fd);
        *fd = -1;
    } else if (room) {
        *size += (size_t)n;
        text[*size] = 0;
    }
}

/* Reads what it says until `text` has appeared on its standard output; false if it ended or said nothing of the kind. */
static inline bool program_says(struct program *p, const char *text)
{
    int64_t until = spawn_now_ms() + SPAWN_PATIENCE_MS;
    while (strstr(p->out_text, text) == NULL) {
        struct pollfd fds[2] = {{.fd = p->out, .events = POLLIN}, {.fd = p->err, .events = POLLIN}};
        int64_t left = until - spawn_now_ms();
        if (p->out < 0 || left <= 0 || poll(fds, 2, (int)left) <= 0) {
            return false;
        }
        if (fds[0].revents != 0) {
            program_take(&p->out, p->out_text, &p->out_size);
        }
        if (fds[1].revents != 0) {
            program_take(&p->err, p->err_text, &p->err_size);
        }
    }
    return true;
}

/* Reads both streams to their ends and waits for the exit; returns the exit status, 128 + the signal that ended it. */
static inline int program_wait(struct program *p)
{
    int64_t until = spawn_now_ms() + SPAWN_PATIENCE_MS;
    while (p->out >= 0 || p->err >= 0) {
        struct pollfd fds[2] = {{.fd = p->out, .events = POLLIN}, {.fd = p->err, .events = POLLIN}};
        int64_t left = until - spawn_now_ms();
        if (left <= 0 || poll(fds, 2, (int)left) <= 0) {
            kill(p->pid, SIGKILL); /* the status tells */
            until += SPAWN_PATIENCE_MS;
            continue;
        }
        if (fds[0].revents != 0) {
            program_take(&p->out, p->out_text, &p->out_size);
        }
        if (fds[1].revents != 0) {
            program_take(&p->err, p->err_text, &p->err_size);
        }
    }
    int status;
    if (p->status < 0 && waitpid(p->pid, &status, 0) == p->pid) {
        p->status = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
    }
    return p->status;
}

/* Sends a signal and waits for the end. */
static inline int program_end(struct program *p, int number)
{
    if (p->status < 0) {
        kill(p->pid, number);
    }
    return program_wait(p);
}

/* Stops it with SIGSTOP, which takes a while on a busy machine; false: it has ended. */
static inline bool program_stop(const struct program *p)
{
    siginfo_t state = {0};
    kill(p->pid, SIGSTOP);
    return waitid(P_PID, (id_t)p->pid, &state, WSTOPPED | WEXITED | WNOWAIT) == 0 && state.si_code == CLD_STOPPED;
}

/* Resident bytes of a running program. */
static inline long program_resident(const struct program *p)
{
    char path[64];
    long size = 0, resident = 0;
    snprintf(path, sizeof path, "/proc/%d/statm", (int)p->pid);
    FILE *f = fopen(path, "re");
    if (f != NULL) {
        if (fscanf(f, "%ld %ld", &size, &resident) != 2) {
            resident = 0;
        }
        fclose(f);
    }
    return resident * sysconf(_SC_PAGESIZE);
}

/* Entries of a folder of /proc, such as /proc/self/fd, with those that are always there; 0: there is no such folder. */
static inline long spawn_entries(const char *path)
{
    long n = 0;
    DIR *d = opendir(path);
    while (d != NULL && readdir(d) != NULL) {
        n++;
    }
    if (d != NULL) {
        closedir(d);
    }
    return n;
}

/* Starts ccoip_master with the arguments after `p`, up to a null; returns its port, 0 if it does not listen. */
__attribute__((sentinel)) static inline uint16_t master_start(struct program *p, ...)
{
    char path[PATH_MAX];
    char name[] = "ccoip_master", *args[SPAWN_ARGS] = {name};
    va_list list;
    va_start(list, p);
    for (size_t n = 1; n + 1 < SPAWN_ARGS && (args[n] = va_arg(list, char *)) != NULL; n++) {
    }
    va_end(list);
    spawn_path("bin/ccoip_master", path);
    if (!program_start(p, path, args) || !program_says(p, "\n")) {
        return 0;
    }
    const char *colon = strrchr(p->out_text, ':');
    return colon != NULL && strstr(p->out_text, "listening at ") != NULL ? (uint16_t)atoi(colon + 1) : 0;
}

#endif
