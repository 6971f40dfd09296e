/* actors.h - the processes of a round: started, heard, signalled, reaped; never one that this round has not started.
 *
 * SPDX-License-Identifier: MIT */
#ifndef PCCL_TESTS_ACTORS_H
#define PCCL_TESTS_ACTORS_H

#include <poll.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/types.h>

#include "chaos_plan.h"

enum { ACTOR_LINE = 4096, ACTOR_NOISE = 4096, ACTOR_RUNS = -1 };

struct actor {
    bool used;
    pid_t pid;
    int status;        /* exit status, 128 + signal, or ACTOR_RUNS */
    bool stopped, killed; /* by this round */
    int words, log, noise; /* owned: its standard input, its log, its standard output and error; -1: closed */
    char line[ACTOR_LINE], noise_text[ACTOR_NOISE];
    size_t line_size, noise_size;
    FILE *file;        /* owned: its log as it came, null: not kept */
    char name[24];
    bool talks;        /* its output is a log, not a finding */
};

/* A line of its log, without the end of line. */
typedef void (*actor_heard)(void *user, struct actor *from, const char *line);

/* How a child is set up beyond its streams; `key` below 0: no network of its own. */
struct actor_start {
    const char *name, *directory;
    const char *const *args; /* up to a null; args[0] is the path */
    char *const *environment; /* "NAME=value", added */
    int caged_key;
    bool talks;
};

bool actor_start(struct actor *a, const struct actor_start *how);
void actor_word(struct actor *a, char word);
void actor_signal(struct actor *a, int number);

int actor_descriptors(const struct actor *a, struct pollfd *fds); /* always two */
void actor_pass(struct actor *a, const struct pollfd *fds, actor_heard heard, void *user);

/* Ended processes are reaped and the rest of what they said is read. */
void actor_reap(struct actor *a, actor_heard heard, void *user);
/* Kills what still runs. */
void actor_end(struct actor *a);

#endif
