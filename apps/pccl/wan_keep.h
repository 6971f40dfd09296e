/* wan_keep.h - the processes of an emulated network, in a PID namespace of their own.
 *
 * One idea: its first process does nothing but wait for the end of the emulator.  When that process ends, for whatever reason, the kernel
 * kills all others, also those that a command has left behind.
 * SPDX-License-Identifier: MIT */
#ifndef PCCL_WAN_KEEP_H
#define PCCL_WAN_KEEP_H

#include <sys/types.h>

#include "pccl/wan_space.h"

struct wan_keep {
    pid_t first;
    int life;   /* owned; its closing ends the first process */
    int spaces; /* owned; the PID namespace */
};

/* To be called before there is another thread. */
bool wan_keep_open(struct wan_keep *k, char error[WAN_ERROR]);
/* Kills all that run in it. */
void wan_keep_close(struct wan_keep *k);

/* A command on a host. */
struct wan_launch {
    const struct wan_network *network;
    const struct wan_space *spaces;
    unsigned host;
    char *const *words; /* up to a null; {host} and so on stand for themselves */
    int out, err;       /* where it writes; borrowed; -1: as this process */
};

/* The process; -1: `error` says why it did not start.  A program that cannot be run ends with 126 or 127, as in a shell. */
pid_t wan_keep_launch(const struct wan_keep *k, const struct wan_launch *l, char error[WAN_ERROR]);
/* A word of a command, with what stands in braces replaced; owned by the caller.  Null: no memory. */
char *wan_keep_word(const struct wan_network *n, unsigned host, const char *word);

#endif
