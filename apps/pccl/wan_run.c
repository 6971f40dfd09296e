/* wan_run.c - see wan_run.h.
 *
 * One idea: one loop waits for everything: ends of commands, their output, signals, commands on standard input and on the sockets.  Packets
 * are the pump's thread's, which this loop never holds up for longer than one change takes.
 * SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#include "pccl/wan_run.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/clock.h"
#include "pccl/wan_control.h"
#include "pccl/wan_emulator.h"
#include "pccl/wan_keep.h"
#include "pccl/wan_lines.h"
#include "pccl/wan_socket.h"
#include "pccl/wan_refuse.h"

enum { LISTENERS = 2, FIXED = 2 + LISTENERS, GRACE_S = 5 };

struct state {
    const struct wan_run *run; /* borrowed */
    struct wan_emulator emulator;
    struct wan_keep keep;
    int signals, input, listeners[LISTENERS]; /* owned, but for input; -1: none */
    pid_t *commands;                          /* owned; by job; 0: has ended */
    struct wan_lines *lines;                  /* owned; two for each job; null: one job, which writes by itself */
    struct pollfd *fds;                       /* owned */
    size_t running;
    char typed[WAN_SOCKET_LINE];
    size_t typed_size;
    int status;
    int64_t kill_ns; /* when those who still run are killed */
};

/* ---- commands ---------------------------------------------------------------------------------------------------- */

static bool order(struct state *s, const char *line, char error[WAN_ERROR])
{
    static struct wan_order o; /* large */
    if (!wan_control_read(s->run->network, line, &o, error)) {
        return false;
    }
    wan_pump_lock(s->emulator.pump);
    bool ok = wan_control_apply(s->run->network, &o, s->emulator.flow, error);
    wan_pump_unlock(s->emulator.pump);
    return ok;
}

static void take_client(struct state *s, int listener)
{
    char line[WAN_SOCKET_LINE], error[WAN_ERROR];
    int client = wan_socket_take(listener, line);
    if (client >= 0) {
        wan_socket_answer(client, order(s, line, error) ? "ok" : error);
    }
}

/* Lines on standard input. */
static void take_input(struct state *s)
{
    char error[WAN_ERROR];
    ssize_t n = read(s->input, s->typed + s->typed_size, sizeof s->typed - 1 - s->typed_size);
    if (n <= 0) {
        s->input = n < 0 && (errno == EINTR || errno == EAGAIN) ? s->input : -1;
        return;
    }
    s->typed_size += (size_t)n;
    size_t at = 0;
    for (char *end; (end = memchr(s->typed + at, '\n', s->typed_size - at)) != NULL; at = (size_t)(end - s->typed) + 1) {
        *end = 0;
        if (s->typed[at] != 0 && !order(s, s->typed + at, error)) {
            wan_complain("%s", error);
        }
    }
    s->typed_size -= at;
    memmove(s->typed, s->typed + at, s->typed_size);
    if (s->typed_size == sizeof s->typed - 1) {
        wan_complain("a command of more than %zu characters: shorten it", sizeof s->typed - 2);
        s->typed_size = 0;
    }
}

/* ---- the processes ----------------------------------------------------------------------------------------------- */

static void signal_all(const struct state *s, int number)
{
    for (size_t i = 0; i < s->run->job_count; i++) {
        if (s->commands[i] > 0) {
            kill(-s->commands[i], number);
        }
    }
}

static void reap(struct state *s)
{
    int status;
    for (size_t i = 0; i < s->run->job_count; i++) {
        if (s->commands[i] > 0 && waitpid(s->commands[i], &status, WNOHANG) == s->commands[i]) {
            int code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
            s->commands[i] = 0;
            s->running--;
            s->status = s->status == 0 ? code : s->status;
        }
    }
}

static void take_signal(struct state *s)
{
    struct signalfd_siginfo info;
    if (read(s->signals, &info, sizeof info) != (ssize_t)sizeof info) {
        return;
    }
    int number = (int)info.ssi_signo;
    if (number == SIGCHLD) {
        reap(s);
        return;
    }
    s->status = s->kill_ns == 0 ? 128 + number : s->status;
    signal_all(s, s->kill_ns == 0 ? number : SIGKILL); /* who asks twice has waited enough */
    s->kill_ns = clock_now_ns() + GRACE_S * CLOCK_S;
}

/* A pipe from a command; its other end. */
static int open_lines(struct wan_lines *l, const char *name, int to)
{
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) != 0) {
        return -1;
    }
    l->from = ends[0];
    l->to = to;
    l->name = name;
    return ends[1];
}

static bool launch(struct state *s, size_t job, char error[WAN_ERROR])
{
    const struct wan_job *j = &s->run->jobs[job];
    struct wan_launch l = {.network = s->run->network, .spaces = s->emulator.spaces, .host = j->host, .words = j->words, .out = -1, .err = -1};
    if (s->lines != NULL) {
        const char *name = s->run->network->hosts[j->host].name;
        l.out = open_lines(&s->lines[2 * job], name, STDOUT_FILENO);
        l.err = open_lines(&s->lines[2 * job + 1], name, STDERR_FILENO);
    }
    bool ok = s->lines == NULL || (l.out >= 0 && l.err >= 0);
    if (!ok) {
        snprintf(error, WAN_ERROR, "pipes for %zu commands: %s: raise ulimit -n", s->run->job_count, strerror(errno));
    }
    pid_t pid = ok ? wan_keep_launch(&s->keep, &l, error) : -1;
    const int fds[] = {l.out, l.err};
    for (int i = 0; i < 2; i++) {
        if (fds[i] >= 0) {
            close(fds[i]);
        }
    }
    s->commands[job] = pid > 0 ? pid : 0;
    s->running += pid > 0;
    return pid > 0;
}

/* ---- the loop ---------------------------------------------------------------------------------------------------- */

static size_t line_count(const struct state *s)
{
    return s->lines != NULL ? 2 * s->run->job_count : 0;
}

static bool lines_are_open(const struct state *s)
{
    for (size_t i = 0; i < line_count(s); i++) {
        if (s->lines[i].from >= 0) {
            return true;
        }
    }
    return false;
}

/* Waits, and does what came. */
static void turn(struct state *s)
{
    size_t count = line_count(s);
    int64_t left = s->kill_ns > 0 ? s->kill_ns - clock_now_ns() : CLOCK_S;
    s->fds[0] = (struct pollfd){.fd = s->signals, .events = POLLIN};
    s->fds[1] = (struct pollfd){.fd = s->input, .events = POLLIN};
    for (int i = 0; i < LISTENERS; i++) {
        s->fds[2 + i] = (struct pollfd){.fd = s->listeners[i], .events = POLLIN};
    }
    for (size_t i = 0; i < count; i++) {
        s->fds[FIXED + i] = (struct pollfd){.fd = s->lines[i].from, .events = POLLIN};
    }
    if (poll(s->fds, FIXED + count, left > 0 ? (int)(left / CLOCK_MS) + 1 : 0) < 0) {
        return;
    }
    for (size_t i = 0; i < count; i++) {
        if (s->fds[FIXED + i].revents != 0) {
            (void)wan_lines_pass(&s->lines[i]);
        }
    }
    for (int i = 0; i < LISTENERS; i++) {
        if (s->fds[2 + i].revents != 0) {
            take_client(s, s->listeners[i]);
        }
    }
    if (s->fds[1].revents != 0) {
        take_input(s);
    }
    if (s->fds[0].revents != 0) {
        take_signal(s);
    }
    if (s->kill_ns > 0 && clock_now_ns() >= s->kill_ns) {
        signal_all(s, SIGKILL);
        s->kill_ns = clock_now_ns() + GRACE_S * CLOCK_S;
    }
}

/* From the first command to the end of the last one, and of all that they have left behind. */
static bool run_commands(struct state *s, char error[WAN_ERROR])
{
    bool ok = true;
    for (size_t i = 0; ok && i < s->run->job_count; i++) {
        ok = launch(s, i, error);
    }
    if (!ok) {
        signal_all(s, SIGKILL);
    }
    while (s->running > 0) {
        turn(s);
    }
    wan_keep_close(&s->keep);
    while (lines_are_open(s)) {
        turn(s);
    }
    return ok;
}

/* ---- the whole --------------------------------------------------------------------------------------------------- */

static bool set_up(struct state *s, char error[WAN_ERROR])
{
    const struct wan_run *r = s->run;
    sigset_t all;
    char number[16];
    struct sigaction ignore = {.sa_handler = SIG_IGN};
    sigemptyset(&all);
    sigaddset(&all, SIGCHLD);
    sigaddset(&all, SIGINT);
    sigaddset(&all, SIGTERM);
    sigaddset(&all, SIGHUP);
    if (!wan_space_permitted(error) || !wan_emulator_open(&s->emulator, r->network, error) || !wan_keep_open(&s->keep, error)) {
        return false;
    }
    sigprocmask(SIG_BLOCK, &all, NULL); /* also in the pump's thread */
    sigaction(SIGPIPE, &ignore, NULL);
    sigaction(SIGTTIN, &ignore, NULL);
    s->signals = signalfd(-1, &all, SFD_CLOEXEC);
    s->commands = calloc(r->job_count, sizeof *s->commands);
    s->lines = r->job_count > 1 ? calloc(2 * r->job_count, sizeof *s->lines) : NULL;
    s->fds = calloc(FIXED + 2 * r->job_count, sizeof *s->fds);
    if (s->signals < 0 || s->commands == NULL || s->fds == NULL || (r->job_count > 1 && s->lines == NULL)) {
        snprintf(error, WAN_ERROR, "no memory or descriptors for %zu commands", r->job_count);
        return false;
    }
    for (size_t i = 0; i < line_count(s); i++) {
        s->lines[i].from = -1;
    }
    snprintf(number, sizeof number, "%d", (int)getpid());
    s->listeners[0] = wan_socket_listen(number, error);
    s->listeners[1] = r->name != NULL && s->listeners[0] >= 0 ? wan_socket_listen(r->name, error) : -1;
    return s->listeners[0] >= 0 && (r->name == NULL || s->listeners[1] >= 0) && wan_emulator_start(&s->emulator, error);
}

static void close_all(struct state *s)
{
    const int fds[] = {s->signals, s->listeners[0], s->listeners[1]};
    for (size_t i = 0; i < sizeof fds / sizeof fds[0]; i++) {
        if (fds[i] >= 0) {
            close(fds[i]);
        }
    }
    wan_keep_close(&s->keep);
    wan_emulator_close(&s->emulator);
    free(s->commands);
    free(s->lines);
    free(s->fds);
}

int wan_run_all(const struct wan_run *run)
{
    struct state s = {.run = run, .signals = -1, .input = STDIN_FILENO, .listeners = {-1, -1}, .keep = {.first = -1, .life = -1, .spaces = -1}};
    char error[WAN_ERROR] = "";
    bool ok = set_up(&s, error);
    if (ok) {
        fprintf(stderr, "pccl wan: emulator %d: %u hosts\n", (int)getpid(), run->network->host_count);
        ok = run_commands(&s, error);
        wan_emulator_stop(&s.emulator);
        wan_report_table(stderr, &s.emulator);
        if (run->json != NULL) {
            wan_report_json(run->json, &s.emulator);
        }
        s.status = wan_report_void(&s.emulator) && s.kill_ns == 0 ? WAN_EXIT_VOID : s.status;
    }
    if (!ok) {
        wan_complain("%s", error);
        s.status = WAN_EXIT_FAILED;
    }
    close_all(&s);
    return s.status;
}
