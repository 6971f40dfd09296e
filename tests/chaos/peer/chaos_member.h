/* chaos_member.h - one peer of a round: what it knows, and the calls that decide about the next one.
 *
 * Invariant: world, global, lineage, revision and step are equal on all members of a group wherever a member looks at them to
 * choose its next call.
 * SPDX-License-Identifier: MIT */
#ifndef PCCL_TESTS_MEMBER_H
#define PCCL_TESTS_MEMBER_H

#include <pccl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

#include "tests/chaos/chaos_plan.h"

struct holding;

struct member {
    struct plan plan;
    unsigned key;
    uint32_t group;
    ccoip_socket_address_t master;
    pcclComm_t *comm;
    atomic_bool quit;     /* the runner wants it to end after this step */
    atomic_bool destroyed;/* by the main thread, beside whatever this one does */
    pthread_t thread;
    struct host *host;    /* borrowed: its process */
    int world, global;    /* the snapshot, as read after the call that set it */
    bool again;           /* the step begins again: with an update */
    bool newcomer;        /* has not synchronised since it was admitted */
    struct holding *holding; /* owned: the shared state */
    uint64_t acts_begun;  /* operations named so far in this revision */
};

/* A process of a round. */
struct host {
    struct plan plan;
    int members;
    struct member member[PLAN_MEMBERS];
    atomic_int ended;
    bool destroyed;       /* all communicators, by the runner's word */
};

/* Reads the sizes; what the call before has agreed on. */
pcclResult_t member_read_sizes(struct member *m);

/* One time round the loop. */
pcclResult_t member_turn(struct member *m, bool admitted);

/* Waits for a moment without anything to wait for. */
void member_pause(int ms);

/* Never returns: what this program cannot go on after. */
_Noreturn void member_give_up(struct member *m, const char *what, pcclResult_t result);

#endif
