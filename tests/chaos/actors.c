/* actors.c - see actors.h.
 * SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#include "actors.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cage.h"

enum { CHILD_LOG = 3, CHILD_LIBRARY_LOG = 4, PIPE_BYTES = 1 << 20, ACTOR_ARGS = 12 };

static int open_in(const char *directory, const char *name, const char *suffix)
{
    char path[512];
    snprintf(path, sizeof path, "%s/%s%s", directory, name, suffix);
    return open(path, O_WRONLY | O_CREAT | O_TRUNC | O_APPEND | O_CLOEXEC, 0644);
}

/* The child between fork and exec.  `ready` tells the parent that the namespace is there, `go` that the wire is. */
static void become(const struct actor_start *how, const int fds[4], int ready, int go)
{
    char byte = 0;
    bool caged = how->caged_key >= 0;
    if (caged && (!cage_leave_parent() || write(ready, &byte, 1) != 1 || read(go, &byte, 1) != 1 ||
                  !cage_settle((unsigned)how->caged_key))) {
        _exit(125);
    }
    signal(SIGPIPE, SIG_DFL); /* the runner ignores it */
    for (int i = 0; how->environment != NULL && how->environment[i] != NULL; i++) {
        putenv(how->environment[i]);
    }
    int library = open_in(how->directory, how->name, ".library");
    int from[] = {fds[0], fds[1], fds[1], fds[2], library};
    for (int i = 0; i <= CHILD_LIBRARY_LOG; i++) { /* first out of the way of each other */
        from[i] = fcntl(from[i], F_DUPFD_CLOEXEC, 64);
    }
    for (int i = 0; i <= CHILD_LIBRARY_LOG; i++) {
        dup2(from[i], i);
    }
    char *args[ACTOR_ARGS + 1] = {0};
    for (int i = 0; i < ACTOR_ARGS && how->args[i] != NULL; i++) {
        args[i] = strdup(how->args[i]);
    }
    execv(args[0], args);
    _exit(127);
}

static bool make_wire(pid_t child, int key, int ready, int go)
{
    struct pollfd fd = {.fd = ready, .events = POLLIN};
    char byte = 0;
    return poll(&fd, 1, 10000) == 1 && read(ready, &byte, 1) == 1 && cage_wire(child, (unsigned)key) &&
           write(go, &byte, 1) == 1;
}

bool actor_start(struct actor *a, const struct actor_start *how)
{
    int words[2], log[2], noise[2], ready[2], go[2];
    memset(a, 0, sizeof *a);
    a->status = ACTOR_RUNS;
    a->talks = how->talks;
    snprintf(a->name, sizeof a->name, "%s", how->name);
    if (pipe2(words, O_CLOEXEC) != 0 || pipe2(log, O_CLOEXEC) != 0 || pipe2(noise, O_CLOEXEC) != 0 ||
        pipe2(ready, O_CLOEXEC) != 0 || pipe2(go, O_CLOEXEC) != 0) {
        return false;
    }
    (void)fcntl(log[1], F_SETPIPE_SZ, PIPE_BYTES);
    pid_t parent = getpid();
    a->pid = fork();
    if (a->pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL); /* a round that is killed leaves nothing behind */
        if (getppid() != parent) {
            _exit(126);
        }
        close(ready[0]);
        close(go[1]);
        become(how, (int[]){words[0], noise[1], log[1], -1}, ready[1], go[0]);
    }
    close(words[0]);
    close(log[1]);
    close(noise[1]);
    close(ready[1]);
    close(go[0]);
    bool ok = a->pid > 0 && (how->caged_key < 0 || make_wire(a->pid, how->caged_key, ready[0], go[1]));
    close(ready[0]);
    close(go[1]);
    a->words = words[1];
    a->log = log[0];
    a->noise = noise[0];
    (void)fcntl(a->words, F_SETFL, O_NONBLOCK);
    (void)fcntl(a->log, F_SETFL, O_NONBLOCK);
    (void)fcntl(a->noise, F_SETFL, O_NONBLOCK);
    int file = open_in(how->directory, how->name, ".log");
    a->file = file >= 0 ? fdopen(file, "w") : NULL;
    a->used = true;
    return ok;
}

void actor_word(struct actor *a, char word)
{
    if (a->status == ACTOR_RUNS && write(a->words, &word, 1) < 0 && errno != EAGAIN) {
        close(a->words);
        a->words = -1;
    }
}

void actor_signal(struct actor *a, int number)
{
    if (a->used && a->status == ACTOR_RUNS) {
        kill(a->pid, number);
        a->killed = a->killed || number == SIGKILL;
        a->stopped = number == SIGSTOP || (a->stopped && number != SIGCONT);
    }
}

int actor_descriptors(const struct actor *a, struct pollfd *fds)
{
    fds[0] = (struct pollfd){.fd = a->used ? a->log : -1, .events = POLLIN};
    fds[1] = (struct pollfd){.fd = a->used ? a->noise : -1, .events = POLLIN};
    return 2;
}

static void read_noise(struct actor *a)
{
    char rest[512];
    bool room = a->noise_size < sizeof a->noise_text - 1;
    ssize_t n = read(a->noise, room ? a->noise_text + a->noise_size : rest,
                     room ? sizeof a->noise_text - 1 - a->noise_size : sizeof rest);
    if (n > 0 && a->talks && a->file != NULL) {
        fwrite(room ? a->noise_text + a->noise_size : rest, 1, (size_t)n, a->file);
    }
    if (n > 0 && room) {
        a->noise_size += (size_t)n;
    } else if (n == 0) {
        close(a->noise);
        a->noise = -1;
    }
}

static bool read_log(struct actor *a, actor_heard heard, void *user)
{
    ssize_t n = read(a->log, a->line + a->line_size, sizeof a->line - 1 - a->line_size);
    if (n <= 0) {
        if (n == 0) {
            close(a->log);
            a->log = -1;
        }
        return false;
    }
    if (a->file != NULL) {
        fwrite(a->line + a->line_size, 1, (size_t)n, a->file);
    }
    a->line_size += (size_t)n;
    char *at = a->line, *end;
    while ((end = memchr(at, '\n', a->line_size - (size_t)(at - a->line))) != NULL) {
        *end = 0;
        heard(user, a, at);
        at = end + 1;
    }
    a->line_size -= (size_t)(at - a->line);
    memmove(a->line, at, a->line_size);
    return true;
}

void actor_pass(struct actor *a, const struct pollfd *fds, actor_heard heard, void *user)
{
    if (a->log >= 0 && fds[0].revents != 0) {
        for (int i = 0; i < 64 && read_log(a, heard, user); i++) { /* what came at once, not for ever */
        }
    }
    if (a->noise >= 0 && fds[1].revents != 0) {
        read_noise(a);
    }
}

void actor_reap(struct actor *a, actor_heard heard, void *user)
{
    int status;
    if (!a->used || a->status != ACTOR_RUNS || waitpid(a->pid, &status, WNOHANG) != a->pid) {
        return;
    }
    a->status = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
    while (a->log >= 0 && read_log(a, heard, user)) {
    }
    if (a->noise >= 0) {
        read_noise(a);
    }
    int *fds[] = {&a->words, &a->log, &a->noise};
    for (size_t i = 0; i < 3; i++) {
        if (*fds[i] >= 0) {
            close(*fds[i]);
            *fds[i] = -1;
        }
    }
    if (a->file != NULL) {
        fclose(a->file);
        a->file = NULL;
    }
}

void actor_end(struct actor *a)
{
    if (a->used && a->status == ACTOR_RUNS) {
        kill(a->pid, SIGKILL);
        a->killed = true;
        waitpid(a->pid, NULL, 0);
        a->status = 128 + SIGKILL;
    }
    if (a->file != NULL) {
        fclose(a->file);
        a->file = NULL;
    }
}
