/* round.h - one round: a master, peers and a proxy, the faults of a plan, and the judgement.
 *
 * SPDX-License-Identifier: MIT */
#ifndef PCCL_TESTS_ROUND_H
#define PCCL_TESTS_ROUND_H

#include "actors.h"
#include "chaos_plan.h"
#include "proxy.h"
#include "chaos_records.h"

struct round_process {
    uint16_t port;       /* where it really listens */
    uint16_t offered;    /* where the proxy listens for it */
    uint16_t master;     /* where it finds the master */
    bool told_to_go;     /* to leave or to end, by a fault */
};

struct round_peer {
    int64_t progress_ms; /* of its last complete step */
    int steps;           /* complete since everything was healed, with everybody in one world */
    uint64_t lineage;
};

/* What a round tells about itself; in memory that it shares with the program that started it. */
struct round_result {
    int findings, processes, calls, successes, steps;
    int trees; /* times that a peer was told to sum along trees */
    int faults[FAULT_KINDS];
    bool caged, mild;
};

struct round {
    struct round_result *result; /* borrowed */
    struct plan plan;
    const char *directory; /* borrowed: of this round's logs */
    bool caged;            /* namespaces are in use */
    struct proxy *proxy;   /* owned */
    struct actor master, actor[PLAN_PROCESSES];
    struct round_process process[PLAN_PROCESSES];
    struct round_peer peer[PLAN_PEERS]; /* by key */
    int processes;         /* started so far */
    int masters;
    bool master_away;      /* killed, the next one has not been started */
    int64_t began_ms, healed_ms, ended_ms; /* 0: not yet */
    int64_t moved_ms;      /* when a call of anybody last succeeded */
    int64_t worst_lag_ms;  /* for how long this process did not get to run */
    struct records records;
};

int64_t round_now_ms(void);
__attribute__((format(printf, 2, 3))) void round_finding(struct round *r, const char *format, ...);

/* Starts process number r->processes; false: no more, or it cannot be started, which is a finding. */
bool round_join(struct round *r);
bool round_start_master(struct round *r);
int round_living(const struct round *r); /* processes */

/* The whole of it.  `directory` exists; `networks`: use namespaces where they are permitted. */
void round_run(uint64_t seed, const char *directory, bool networks, struct round_result *result);

#endif
