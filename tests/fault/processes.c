/* processes.c - see processes.h.
 *
 * One idea: three pipes and a pidfd per process, poll for all waits.
 * SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#include "tests/fault/processes.h"

#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <sched.h>
#include <sys/syscall.h>
#if defined(__x86_64__)
#include <xmmintrin.h>
#endif

#include "core/check.h"

struct command {
    process_call call; /* null: end */
    size_t size;
    unsigned char argument[PROCESS_ARGUMENT];
};

static void fail(struct processes *all, const char *what, int index)
{
    (*all->options.failures)++;
    fprintf(stderr, "process %d: %s\n", index, what);
}

#if defined(__x86_64__)
static void flush_denormals(void)
{
    _mm_setcsr(_mm_getcsr() | 0x8040); /* flush to zero, denormals are zero */
}
#else
static void flush_denormals(void)
{
}
#endif

/* ---- The peer's side ---------------------------------------------------------------------------------------------- */

/* Says what is being waited for when the test's patience ends. */
static void *waits_main(void *argument)
{
    struct peer *self = argument;
    sigset_t set;
    int number;
    sigemptyset(&set);
    sigaddset(&set, SIGUSR1);
    while (sigwait(&set, &number) == 0) {
        pcclWaitInfo_t waits[16];
        size_t count = 0;
        if (self->comm == NULL || pcclGetWaits(self->comm, waits, 16, &count) != pcclSuccess) {
            continue;
        }
        for (size_t i = 0; i < count && i < 16; i++) {
            fprintf(stderr, "peer %d waits: %s, tag %" PRIu64 ", for %" PRIu64 ", since %.3f s\n", self->index,
                    waits[i].phase, waits[i].tag, waits[i].peer, (double)waits[i].age_ns / 1e9);
        }
        peer_note(self, UINT64_MAX);
    }
    return NULL;
}

static bool read_whole(int fd, void *to, size_t size)
{
    for (size_t done = 0; done < size;) {
        ssize_t n = read(fd, (char *)to + done, size - done);
        if (n < 0 && errno == EINTR) {
            continue;
        }
        if (n <= 0) {
            return false;
        }
        done += (size_t)n;
    }
    return true;
}

static void write_whole(int fd, const void *from, size_t size)
{
    ssize_t n = write(fd, from, size); /* below PIPE_BUF: whole or not at all */
    (void)n;
}

/* The end of every peer that is free to end: its library is shut down whatever state the test has left it in, and a
 * sanitizer has its say in the exit status. */
static void peer_end(struct peer *self)
{
    if (self->comm != NULL && pcclDestroyCommunicator(self->comm) != pcclSuccess) {
        _exit(4);
    }
    if (check_failed != 0) { /* an invariant that a shutdown looks at: rooms are whole */
        _exit(5);
    }
    for (int i = 0; i < PROCESS_BUFFERS; i++) {
        free(self->buffer[i]);
    }
    exit(0);
}

static void peer_main(struct peer *self, int commands, int results)
{
    pthread_t waits;
    sigset_t set;
    struct command command;
    sigemptyset(&set);
    sigaddset(&set, SIGUSR1);
    pthread_sigmask(SIG_BLOCK, &set, NULL);
    if (pthread_create(&waits, NULL, waits_main, self) != 0) {
        _exit(3);
    }
    while (read_whole(commands, &command, sizeof command)) {
        struct reply reply;
        int before = *self->failures;
        memset(&reply, 0, sizeof reply);
        if (command.call == NULL) {
            peer_end(self);
        }
        command.call(self, command.argument, &reply);
        reply.failures = *self->failures - before;
        write_whole(results, &reply, sizeof reply);
    }
    _exit(0);
}

void *peer_buffer(struct peer *self, int which, size_t bytes)
{
    if (self->buffer_bytes[which] < bytes) {
        free(self->buffer[which]);
        self->buffer[which] = malloc(bytes + 64);
        self->buffer_bytes[which] = bytes;
    }
    return self->buffer[which];
}

void peer_note(struct peer *self, uint64_t value)
{
    write_whole(self->notes, &value, sizeof value);
}

pcclResult_t peer_result(struct reply *reply, pcclResult_t result)
{
    pcclErrorInfo_t info;
    reply->result = (int)result;
    reply->cause = pcclCauseNone;
    reply->text[0] = 0;
    if (result != pcclSuccess && pcclGetLastErrorInfo(&info) == pcclSuccess) {
        reply->cause = info.cause;
        snprintf(reply->text, sizeof reply->text, "%.255s", info.text);
    }
    return result;
}

bool space_enter(const char *name)
{
    char path[PATH_MAX];
    snprintf(path, sizeof path, "%s%s", name[0] == '/' ? "" : "/run/netns/", name);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    bool entered = fd >= 0 && setns(fd, CLONE_NEWNET) == 0;
    if (fd >= 0) {
        close(fd);
    }
    return entered;
}

/* ---- Start -------------------------------------------------------------------------------------------------------- */

/* Under a sanitizer a process that works looks silent for a second now and then. */
static uint64_t patient(uint64_t ms)
{
    return getenv("PCCL_SANITIZED") != NULL && ms < 2000 ? 4 * ms : ms;
}

/* Everything in a new process that comes before its library. */
static void peer_begin(struct processes *all, int index, const char *space, const int pipes[6], pid_t parent)
{
    const struct processes_options *o = &all->options;
    struct peer self = {.index = index, .failures = o->failures, .group = o->group[index], .pool = o->pool,
                        .stall_ms = patient(o->stall_ms), .loss_ms = o->loss_ms, .master = all->address, .notes = pipes[5]};
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent || (space != NULL && !space_enter(space))) {
        _exit(2);
    }
    close(pipes[1]);
    close(pipes[2]);
    close(pipes[4]);
    signal(SIGPIPE, SIG_DFL); /* the library raises none */
    setenv("PCCL_PORT", o->port[index] != NULL ? o->port[index] : "0", 1);
    setenv("PCCL_VERIFY", "1", 0);
    if (o->net[index] != NULL) {
        setenv("PCCL_NET", o->net[index], 1);
    }
    if (o->cpu[index] != NULL) {
        setenv("PCCL_CPU", o->cpu[index], 1);
    }
    if (o->flush_to_zero[index]) {
        flush_denormals();
    }
    *o->failures = 0;
    peer_main(&self, pipes[0], pipes[3]);
}

int processes_add(struct processes *all, uint32_t group, const char *space)
{
    int pipes[6], index = all->count;
    pid_t parent = getpid();
    if (index >= PROCESSES_MOST || pipe2(pipes, O_CLOEXEC) != 0 || pipe2(pipes + 2, O_CLOEXEC) != 0 ||
        pipe2(pipes + 4, O_CLOEXEC) != 0) {
        fail(all, "cannot be made", index);
        return -1;
    }
    all->options.group[index] = group;
    fflush(NULL);
    pid_t pid = fork();
    if (pid == 0) {
        peer_begin(all, index, space, pipes, parent);
    }
    struct process *p = &all->process[index];
    close(pipes[0]);
    close(pipes[3]);
    close(pipes[5]);
    *p = (struct process){.pid = pid, .command = pipes[1], .result = pipes[2], .notes = pipes[4]};
    p->pidfd = (int)syscall(SYS_pidfd_open, pid, 0);
    all->count++;
    return index;
}

/* The master's program, in a namespace of its own if asked for: a new process inherits the one of its parent. */
static bool start_master(struct processes *all)
{
    const struct processes_options *o = &all->options;
    const char *log = getenv("PCCL_TEST_MASTER_LOG"); /* a level: what the master says is printed at the end */
    const char *listen = o->listen != NULL ? o->listen : "127.0.0.1:0";
    int own = -1;
    char words[4][64] = {"", "--dead-ms", "", ""};
    snprintf(words[3], sizeof words[3], "--log-level=%s", log != NULL ? log : o->master_log != NULL ? o->master_log : "none");
    snprintf(words[0], sizeof words[0], "--listen=%s", listen);
    snprintf(words[2], sizeof words[2], "%llu",
             (unsigned long long)patient(o->dead_ms != NULL ? strtoull(o->dead_ms, NULL, 10) : 10000));
    if (o->master_space != NULL) {
        own = open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC);
        if (own < 0 || !space_enter(o->master_space)) {
            return false;
        }
    }
    uint16_t port = master_start(&all->master, words[0], words[3], words[1], words[2], NULL);
    if (own >= 0) {
        if (setns(own, CLONE_NEWNET) != 0) {
            abort(); /* this process would be in the wrong network for good */
        }
        close(own);
    }
    return port != 0 && pcclParseAddress(listen, 1, &all->address) == pcclSuccess && (all->address.port = port) != 0;
}

bool processes_start(struct processes *all, const struct processes_options *options)
{
    memset(all, 0, sizeof *all);
    all->options = *options;
    for (int i = 0; i < PROCESSES_MOST; i++) {
        all->process[i] = (struct process){.pidfd = -1, .command = -1, .result = -1, .notes = -1};
    }
    signal(SIGPIPE, SIG_DFL); /* for the master; the test itself writes to processes that may be gone */
    bool started = start_master(all);
    signal(SIGPIPE, SIG_IGN);
    if (!started) {
        fail(all, "the master does not start", -1);
        program_end(&all->master, SIGKILL);
        return false;
    }
    for (int i = 0; i < options->count; i++) {
        if (processes_add(all, options->group[i], options->space[i]) < 0) {
            processes_stop(all);
            return false;
        }
    }
    return true;
}

static void process_close(struct process *p)
{
    int *fds[] = {&p->pidfd, &p->command, &p->result, &p->notes};
    for (size_t i = 0; i < sizeof fds / sizeof fds[0]; i++) {
        if (*fds[i] >= 0) {
            close(*fds[i]);
            *fds[i] = -1;
        }
    }
}

/* Asks those that are idle to end; kills those that are busy, stopped, or do not end. */
static void end_peers(struct processes *all)
{
    static const struct command end;
    for (int i = 0; i < all->count; i++) {
        struct process *p = &all->process[i];
        if (p->pid > 0 && !p->busy && !all->broken) {
            write_whole(p->command, &end, sizeof end);
        } else if (p->pid > 0) {
            kill(p->pid, SIGKILL);
        }
    }
    for (int i = 0; i < all->count; i++) {
        struct process *p = &all->process[i];
        struct pollfd fd = {.fd = p->pidfd, .events = POLLIN};
        int status = 0;
        if (p->pid <= 0) {
            continue;
        }
        if (poll(&fd, 1, PROCESS_PATIENCE_MS) <= 0) {
            fail(all, "does not end", i);
            kill(p->pid, SIGKILL);
        }
        waitpid(p->pid, &status, 0);
        if (WIFEXITED(status) && WEXITSTATUS(status) != 0) {
            fail(all, "ended badly", i);
        }
        p->pid = 0;
    }
}

void processes_stop(struct processes *all)
{
    end_peers(all);
    for (int i = 0; i < all->count; i++) {
        process_close(&all->process[i]);
    }
    program_end(&all->master, SIGTERM);
    if (all->options.master_log == NULL) {
        fprintf(stderr, "%s", all->master.err_text);
    }
    if (all->master.status != 0) {
        fail(all, "the master did not end well", -1);
    }
}

/* ---- Calls -------------------------------------------------------------------------------------------------------- */

void process_send(struct processes *all, int index, process_call call, const void *argument, size_t size)
{
    struct command command = {.call = call, .size = size};
    struct process *p = &all->process[index];
    if (size > PROCESS_ARGUMENT || p->pid <= 0 || p->busy) {
        fail(all, "cannot be called", index);
        return;
    }
    if (size > 0) {
        memcpy(command.argument, argument, size);
    }
    p->busy = true;
    write_whole(p->command, &command, sizeof command);
}

/* Polls `fd` and the end of the process; true: fd is readable. */
static bool process_poll(struct process *p, int fd, int64_t until)
{
    for (;;) {
        struct pollfd fds[2] = {{.fd = fd, .events = POLLIN}, {.fd = p->pidfd, .events = POLLIN}};
        int64_t left = until - spawn_now_ms();
        int n = poll(fds, 2, left > 0 ? (int)left : 0);
        bool closing = n > 0 && (fds[0].revents & POLLIN) == 0 && (fds[1].revents & POLLIN) == 0; /* a dying process closes its pipes first */
        if ((n < 0 && errno == EINTR) || (closing && left > 0 && poll(&fds[1], 1, (int)left) > 0)) {
            continue;
        }
        return n > 0 && (fds[0].revents & POLLIN) != 0;
    }
}

static bool process_ended(const struct process *p)
{
    struct pollfd fd = {.fd = p->pidfd, .events = POLLIN};
    return p->pid <= 0 || poll(&fd, 1, 0) > 0;
}

static int64_t deadline(const struct processes *all)
{
    return spawn_now_ms() + (all->broken ? 1000 : PROCESS_PATIENCE_MS);
}

/* Out of patience: it says what it waits for, then it is killed. */
static void give_up(struct processes *all, int index)
{
    struct process *p = &all->process[index];
    fail(all, "no answer in time", index);
    all->broken = true;
    for (int i = 0; i < all->count; i++) {
        struct process *other = &all->process[i];
        uint64_t note = 0;
        if (other->pid > 0 && kill(other->pid, SIGUSR1) == 0 && !process_ended(other)) {
            while (process_poll(other, other->notes, spawn_now_ms() + 500) && note != UINT64_MAX) {
                (void)read_whole(other->notes, &note, sizeof note);
            }
        }
    }
    process_signal(all, index, SIGKILL);
    p->busy = false;
}

struct reply process_take(struct processes *all, int index)
{
    struct process *p = &all->process[index];
    struct reply reply = {.result = PROCESS_DIED};
    if (!p->busy) {
        fail(all, "has no call to take", index);
        return reply;
    }
    p->busy = false;
    if (process_poll(p, p->result, deadline(all)) && read_whole(p->result, &reply, sizeof reply)) {
        *all->options.failures += reply.failures;
    } else if (!process_ended(p)) {
        give_up(all, index);
        reply.result = PROCESS_SILENT;
    }
    return reply;
}

struct reply process_do(struct processes *all, int index, process_call call, const void *argument, size_t size)
{
    process_send(all, index, call, argument, size);
    return process_take(all, index);
}

void processes_send(struct processes *all, unsigned set, process_call call, const void *argument, size_t size)
{
    for (int i = 0; i < all->count; i++) {
        if ((set >> i & 1) != 0) {
            process_send(all, i, call, argument, size);
        }
    }
}

void processes_take(struct processes *all, unsigned set, struct reply *replies)
{
    for (int i = 0; i < all->count; i++) {
        if ((set >> i & 1) != 0) {
            struct reply reply = process_take(all, i);
            if (replies != NULL) {
                replies[i] = reply;
            }
        }
    }
}

void processes_do(struct processes *all, unsigned set, process_call call, const void *argument, size_t size,
                  struct reply *replies)
{
    processes_send(all, set, call, argument, size);
    processes_take(all, set, replies);
}

bool process_answers(struct processes *all, int index, int ms)
{
    struct process *p = &all->process[index];
    return process_poll(p, p->result, spawn_now_ms() + ms);
}

uint64_t process_note(struct processes *all, int index)
{
    struct process *p = &all->process[index];
    uint64_t note = 0;
    if (!process_poll(p, p->notes, deadline(all)) || !read_whole(p->notes, &note, sizeof note)) {
        fail(all, "sends no note", index);
        give_up(all, index);
        return 0;
    }
    return note;
}

void process_signal(struct processes *all, int index, int number)
{
    struct process *p = &all->process[index];
    if (p->pid <= 0) {
        return;
    }
    kill(p->pid, number);
    if (number == SIGKILL) {
        waitpid(p->pid, NULL, 0);
        p->pid = 0;
        p->busy = false;
        process_close(p);
    } else if (number == SIGSTOP) {
        process_wait_stopped(all, index);
    }
}

/* Waits with a deadline for a state that waitpid tells; waitid would block, so its non-blocking form is polled. */
static bool wait_state(struct processes *all, int index, int options, int *status)
{
    struct process *p = &all->process[index];
    struct pollfd result = {.fd = p->result, .events = POLLIN};
    int64_t until = deadline(all);
    for (bool answered = false; spawn_now_ms() < until && !answered;) {
        answered = poll(&result, 1, 1) > 0; /* one look more: it may have ended just now */
        pid_t pid = waitpid(p->pid, status, options | WNOHANG);
        if (pid != 0) {
            return pid > 0;
        }
        answered = answered && (result.revents & POLLIN) != 0;
    }
    return false;
}

void process_wait_stopped(struct processes *all, int index)
{
    int status = 0;
    if (!wait_state(all, index, WUNTRACED, &status) || !WIFSTOPPED(status)) {
        fail(all, "has not stopped", index);
    }
}

void process_wait_killed(struct processes *all, int index)
{
    struct process *p = &all->process[index];
    int status = 0;
    if (!wait_state(all, index, 0, &status) || !WIFSIGNALED(status) || WTERMSIG(status) != SIGKILL) {
        fail(all, "has not been killed", index);
        process_signal(all, index, SIGKILL);
        return;
    }
    p->pid = 0;
    p->busy = false;
    process_close(p);
}

int64_t process_cpu_ns(const struct processes *all, int index)
{
    clockid_t clock;
    struct timespec t = {0};
    if (clock_getcpuclockid(all->process[index].pid, &clock) != 0 || clock_gettime(clock, &t) != 0) {
        return -1;
    }
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}
