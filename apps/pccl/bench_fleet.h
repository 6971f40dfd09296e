/* bench_fleet.h - a master and the ranks, as processes forked from this one, and what they say.
 *
 * This process never touches the library: it has no threads, so that a fork of it is a sound beginning of a rank.
 * What a rank measures comes back over a pipe of its own, as records; all processes read the same clock.
 * Invariant: bench_fleet_end has reaped everything.
 * SPDX-License-Identifier: MIT */
#ifndef PCCL_BENCH_FLEET_H
#define PCCL_BENCH_FLEET_H

#include <sys/types.h>

#include "pccl/bench_links.h"
#include "pccl/bench_options.h"
#include "pccl/bench_wan.h"

enum bench_word {
    BENCH_READY,    /* is a member; `text` is the transport of its data; with kill_rank: `us` an operation takes */
    BENCH_RESULT,   /* of one job, out of place, then in place if there is such a form */
    BENCH_PLAIN,    /* of plain links; us 0: none */
    BENCH_EXPECTED, /* of one job, by rank 0: `text` is the algorithm taken */
    BENCH_ERROR,    /* at `us` the operation failed; `text` is what the library says */
    BENCH_RETRIED,  /* at `us` the result of the others was there */
    BENCH_AFTER,    /* so long takes the same operation among these */
    BENCH_FAILED    /* the last word: `text` is why */
};

enum { BENCH_ALGORITHMS = 9 };

struct bench_record {
    enum bench_word word;
    int iterations;
    double us, least_us, most_us, p90_us; /* of the iterations at this rank; us: the median */
    double cpu_s;                         /* of this process, over all iterations */
    uint64_t wrong;
    double predicted_us;                  /* of a result: what the library expects; 0: it does not know */
    double expected_us[BENCH_ALGORITHMS]; /* of each algorithm (bench_explain.c); 0: it cannot do it */
    char text[320];                       /* of a result: the algorithm; "": there is none */
};

struct bench_fleet {
    const struct bench_options *options; /* borrowed */
    struct bench_links *links;           /* owned; null: none */
    struct bench_wan *wan;               /* owned; null: all are on this host */
    ccoip_socket_address_t master_at;
    size_t recovery_job; /* with kill_rank: which one */
    double patient_until_us; /* 0: for ever */
    char patient_for[64];
    pid_t master, ranks[BENCH_RANKS_MOST]; /* 0: none, or reaped */
    int master_pipe, pipes[BENCH_RANKS_MOST]; /* owned; -1: closed */
};

/* In a rank: what its process does, from its fork to its end; the exit status. */
typedef int (*bench_rank_main)(const struct bench_fleet *fleet, unsigned rank, int pipe);

/* A master that listens, on loopback or on the first host; false: the reason is on standard error. */
bool bench_fleet_begin(struct bench_fleet *fleet, const struct bench_options *options);
/* All ranks. */
bool bench_fleet_start(struct bench_fleet *fleet, bench_rank_main rank_main);
/* From now on records are waited for as long as -T says, all together; `job` is what for. */
void bench_fleet_patience(struct bench_fleet *fleet, const struct bench_job *job);
/* The next record of a rank; false: it is not of this kind, the rank is gone, or patience is over, which stands on standard error then. */
bool bench_fleet_hear(struct bench_fleet *fleet, unsigned rank, enum bench_word word, struct bench_record *record);
/* kill -9; returns when the kernel has closed what it had open. */
void bench_fleet_kill(struct bench_fleet *fleet, unsigned rank);
/* Reaps the ranks; false: one that was not killed has failed.  `now`: kills them first. */
bool bench_fleet_stop(struct bench_fleet *fleet, bool now);
/* False: the figures are void, since the emulated network was late. */
bool bench_fleet_end(struct bench_fleet *fleet);

double bench_now_us(void);
/* In a rank. */
void bench_say(int pipe, const struct bench_record *record);

#endif
