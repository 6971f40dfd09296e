/* chaos_plan.h - what a seed chooses for one round: the options of the run, the programs' habits, the network, the faults.
 *
 * The runner and every peer draw the same plan from the same seed; nothing else has to be told.  Each seed enables a random
 * part of the habits and kinds of fault only, so that rare combinations are not drowned by common ones.
 * Invariant: a plan contains no program that could wait for itself: every loss is followed by calls that all members of
 * the group make alike.
 * SPDX-License-Identifier: MIT */
#ifndef PCCL_TESTS_PLAN_H
#define PCCL_TESTS_PLAN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

enum {
    PLAN_PROCESSES = 12, /* of a round, one after the other */
    PLAN_MEMBERS = 2,    /* communicators of a process, each a peer of its own */
    PLAN_PEERS = PLAN_PROCESSES * PLAN_MEMBERS, /* each has a key: number of its process + PLAN_PROCESSES * its own number */
    PLAN_GROUPS = 3,
    PLAN_FAULTS = 40
};

enum plan_on_loss { ON_LOSS_RETRY, ON_LOSS_UPDATE };              /* call again at once, or begin the step again */
enum plan_update { UPDATE_ALWAYS, UPDATE_ASKED, UPDATE_THIRD };   /* each step, if a query says so, each third step */
enum plan_sync { SYNC_POPULAR, SYNC_NEWCOMERS_RECEIVE, SYNC_FIRST_SENDS };

#define FAULT_LIST(X)                                                                                                  \
    X(KILL) X(STOP) X(JOIN) X(LEAVE) X(QUIT) X(CUT) X(SEVER) X(HALF_CLOSE) X(BLACK_HOLE) X(SLOW) X(MASTER_CUT)         \
    X(MASTER_SEVER) X(MASTER_HOLE) X(MASTER_STOP) X(MASTER_KILL) X(SOCKET_KILL) X(UNPLUG) X(STRANGER)
#define FAULT_NUMBER_(name) FAULT_##name,
enum fault_kind { FAULT_LIST(FAULT_NUMBER_) FAULT_KINDS };
#undef FAULT_NUMBER_

struct fault {
    enum fault_kind kind;
    int at_ms;      /* after the beginning of the round */
    int for_ms;     /* until it is healed; 0: nothing to heal */
    uint32_t a, b;  /* which process: taken modulo those that are there then */
    int bytes;      /* CUT, HALF_CLOSE: after so many bytes more, usually within a frame */
    int form;       /* a variant of the kind */
    bool begun;     /* by the runner */
    int lasted_ms;  /* for_ms, which the runner sets to 0 when it heals */
    int done_a, done_b; /* whom it hit, for healing; -1: nobody */
};

struct plan {
    uint64_t seed;
    int processes, members, groups; /* processes that begin; communicators of each */
    uint32_t pool;
    int stall_ms, loss_ms, connect_ms, deadline_ms, vote_ms; /* options; 0: not set */
    enum plan_on_loss on_loss;
    enum plan_update update;
    enum plan_sync sync;
    int optimise_every;  /* steps; 0: never */
    int newcomers_update;/* so many of a hundred newcomers begin with an update like everybody */
    size_t state_bytes, most_bytes; /* of shared state; of all operations in flight */
    int acts, burst;     /* per step; operations launched at once */
    bool windows_differ; /* of bulk calls, between the peers */
    int late_ms;         /* a peer may compute for so long before a launch */
    bool along_trees;    /* sums take the trees of their view where it has some, whatever is predicted */
    bool same_port;      /* every peer at the same port number of its own host */
    int delay_us, jitter_us, segment; /* of the network; 0: none */
    int64_t bytes_per_s; /* 0: no limit */
    int trouble_ms;      /* faults begin before that; then everything is healed */
    unsigned kinds;      /* 1 << kind of those enabled */
    int faults;
    struct fault fault[PLAN_FAULTS];
};

/* The group of a member: those of one process are in different ones if there are several. */
static inline unsigned plan_group(const struct plan *p, unsigned key)
{
    return (key % PLAN_PROCESSES + key / PLAN_PROCESSES) % (unsigned)p->groups;
}

const char *fault_name(enum fault_kind kind);
void plan_draw(struct plan *p, uint64_t seed);
void plan_print(const struct plan *p, FILE *out);

#endif
