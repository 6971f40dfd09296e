/* processes.h - a master program and peer processes, each with its own copy of the library, for tests of real faults.
 *
 * A peer process is a fork of the test, made before this process has threads, that runs the functions it is sent: code
 * has the same address on both sides, so a command is a function and a block of bytes.  EXPECT works inside: what fails
 * there is counted here with the reply.  Every wait has a deadline that only a broken library reaches; a peer that
 * reaches it prints what it waits for and is killed.
 *
 * Invariant: processes_stop has reaped everything that processes_start and processes_add have made.
 * SPDX-License-Identifier: MIT */
#ifndef PCCL_TESTS_PROCESSES_H
#define PCCL_TESTS_PROCESSES_H

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "pccl.h"
#include "tests/spawn.h"

enum {
    PROCESSES_MOST = 12,
    PROCESS_ARGUMENT = 256,
    PROCESS_PATIENCE_MS = 40000,
    PROCESS_BUFFERS = 4,
    PROCESS_VALUES = 16,
    PROCESS_DIED = -2,  /* reply.result of a process that ended instead of answering */
    PROCESS_SILENT = -3 /* ... that did not answer in time and was killed */
};

struct reply {
    int result;      /* pcclResult_t, or one of the above */
    pcclCause_t cause;
    int failures;    /* of EXPECT, inside the process */
    int64_t value[PROCESS_VALUES];
    char text[256];
};

/* Inside a peer process. */
struct peer {
    int index;
    int *failures;   /* borrowed: the test program's counter */
    uint32_t group, pool;
    uint64_t stall_ms, loss_ms;
    ccoip_socket_address_t master;
    pcclComm_t *comm;
    void *buffer[PROCESS_BUFFERS]; /* owned by the process; peer_buffer */
    size_t buffer_bytes[PROCESS_BUFFERS];
    int notes;       /* pipe to the test: peer_note */
    void *own;       /* whatever a test wants to keep between calls */
};

typedef void (*process_call)(struct peer *self, const void *argument, struct reply *reply);

struct process {
    pid_t pid; /* 0: none, or reaped */
    int pidfd, command, result, notes; /* owned; -1: closed */
    bool busy; /* has a call that has not been taken */
};

/* How to start them; zero is a valid default everywhere but `failures`. */
struct processes_options {
    int count;
    int *failures;             /* &test_failures */
    uint32_t pool;
    uint64_t stall_ms, loss_ms;
    const char *dead_ms;       /* of the master, as text */
    const char *listen;        /* default 127.0.0.1:0 */
    const char *cpu[PROCESSES_MOST];   /* PCCL_CPU of each */
    const char *net[PROCESSES_MOST];   /* PCCL_NET of each */
    const char *port[PROCESSES_MOST];  /* PCCL_PORT of each; default 0: any */
    uint32_t group[PROCESSES_MOST];
    const char *space[PROCESSES_MOST]; /* network namespace of each; null: the test's own */
    const char *master_space;
    const char *master_log;    /* level at which it logs, for tests that read master.err_text after processes_stop */
    bool flush_to_zero[PROCESSES_MOST];
};

struct processes {
    struct processes_options options;
    struct program master;
    ccoip_socket_address_t address;
    struct process process[PROCESSES_MOST];
    int count;
    bool broken; /* something did not answer: be less patient from here on */
};

/* Master and peers; false (and a failure counted) if that does not work, nothing is left behind then. */
bool processes_start(struct processes *all, const struct processes_options *options);
/* One more peer; its index, -1 if it cannot be made. */
int processes_add(struct processes *all, uint32_t group, const char *space);
/* Ends and reaps all. */
void processes_stop(struct processes *all);

/* Has a process run `call` on a copy of `size` bytes. */
void process_send(struct processes *all, int index, process_call call, const void *argument, size_t size);
/* Waits for the end of that call. */
struct reply process_take(struct processes *all, int index);
struct reply process_do(struct processes *all, int index, process_call call, const void *argument, size_t size);
/* The same for all processes in a set of indices, at once; replies may be null. */
void processes_send(struct processes *all, unsigned set, process_call call, const void *argument, size_t size);
void processes_take(struct processes *all, unsigned set, struct reply *replies);
void processes_do(struct processes *all, unsigned set, process_call call, const void *argument, size_t size,
                  struct reply *replies);
/* Whether process `index` has answered within `ms`; takes nothing. */
bool process_answers(struct processes *all, int index, int ms);
/* Waits for a note of the process; 0 if it ends or does not come. */
uint64_t process_note(struct processes *all, int index);
/* Sends a signal; SIGKILL is waited for, and so is the stop of SIGSTOP. */
void process_signal(struct processes *all, int index, int number);
/* Waits until it has stopped (SIGSTOP that it sends itself) or has been killed by a signal. */
void process_wait_stopped(struct processes *all, int index);
void process_wait_killed(struct processes *all, int index);
/* Processor time it has used, in ns. */
int64_t process_cpu_ns(const struct processes *all, int index);

static inline unsigned processes_set(int count)
{
    return (1u << count) - 1;
}

/* ---- Inside a peer process -------------------------------------------------------------------------------------- */

/* Counts a failure like EXPECT, in files that are no test programs. */
#define PEER_EXPECT(self, cond)                                                                                        \
    do {                                                                                                               \
        if (!(cond) && (*(self)->failures)++ < 20) {                                                                   \
            fprintf(stderr, "%s:%d: peer %d: expected %s\n", __FILE__, __LINE__, (self)->index, #cond);               \
        }                                                                                                              \
    } while (0)

/* A buffer of at least that size, kept for later calls. */
void *peer_buffer(struct peer *self, int which, size_t bytes);
void peer_note(struct peer *self, uint64_t value);
/* Stores the result and, if it is an error, its cause and text; returns it. */
pcclResult_t peer_result(struct reply *reply, pcclResult_t result);
/* Enters a network namespace for good: a name of iproute2's, or a path.  False: it cannot. */
bool space_enter(const char *name);

#endif
