/* peer_calls.h - what tests have peer processes do: join, reduce and check, vote, leave.
 *
 * Inputs are whole numbers that depend on peer, element and tag, small enough for exact sums in float: the expected
 * result is computed here, from the set of peers that must have taken part.
 * SPDX-License-Identifier: MIT */
#ifndef PCCL_TESTS_PEER_CALLS_H
#define PCCL_TESTS_PEER_CALLS_H

#include <stdatomic.h>

#include "tests/fault/network.h"
#include "tests/fault/processes.h"

/* One all-reduce (sum of floats) by pcclAllReduce. */
struct reduce_job {
    size_t count;
    uint64_t tag;
    unsigned members;     /* whose contributions a success must hold */
    bool in_place;
    int victim;           /* this index sends itself `signal` when it has moved `after` bytes ... */
    int signal;           /* 0: nobody does */
    bool note;            /* ... or sends the test a note instead */
    bool announce;        /* all send the note tag + 1 when they have launched */
    uint64_t after;
};

/* processes_start, and all have joined one group. */
bool peers_start(struct processes *all, const struct processes_options *options);
/* The same with one process per host, the master on the bridge. */
bool peers_start_on(struct processes *all, const struct network *net, const struct processes_options *options);

float job_value(int index, size_t i, uint64_t tag);
float job_sum(unsigned members, size_t i, uint64_t tag);

/* argument: int, the global world size to wait for.  Creates the communicator if there is none. */
void peer_join(struct peer *self, const void *argument, struct reply *reply);
/* Creates the communicator and its options, nothing else. */
void peer_create(struct peer *self, const void *argument, struct reply *reply);
void peer_connect(struct peer *self, const void *argument, struct reply *reply);
/* argument: struct reduce_job.  Success: the result is checked; error: the input must be as before.
 * value[0]: world size of the info; value[1]: ns the call took; value[2]: tx bytes. */
void peer_reduce(struct peer *self, const void *argument, struct reply *reply);
void peer_update(struct peer *self, const void *argument, struct reply *reply);
/* argument: int; updates until the global world size is that. */
void peer_update_until(struct peer *self, const void *argument, struct reply *reply);
void peer_optimise(struct peer *self, const void *argument, struct reply *reply);
/* value[0..3]: the four sizes, value[4]: members known, value[5]: own ring position, value[6]: own id,
 * value[8 + i]: index... of ring order: id of the member at ring position i. */
void peer_look(struct peer *self, const void *argument, struct reply *reply);
void peer_destroy(struct peer *self, const void *argument, struct reply *reply);

/* ---- Inside calls ------------------------------------------------------------------------------------------------ */

/* Connected, with these parameters; to the test's master, unless they name one. */
pcclComm_t *peer_world(struct peer *self, const pcclCommCreateParamsEx_t *params);
int peer_size(struct peer *self, pcclAttribute_t attribute);
pcclReduceDescriptor_t peer_floats(size_t count, uint64_t tag);
/* Bytes moved over all connections. */
uint64_t peer_moved(struct peer *self);
/* Bytes that all TCP sockets of this process have moved: counts shared state too. */
uint64_t peer_socket_bytes(struct peer *self);
/* Bytes resident now, and the most since peer_peak_reset. */
int64_t peer_resident(void);
void peer_peak_reset(void);
int64_t peer_peak(void);

/* A thread that acts when this peer has moved so many bytes from now on. */
struct watch {
    struct peer *peer;
    uint64_t (*moved)(struct peer *self);
    uint64_t until;
    int signal; /* 0: a note */
    atomic_bool stop;
    bool fired;
    pthread_t thread;
};
void watch_start(struct watch *w, struct peer *self, uint64_t (*moved)(struct peer *self), uint64_t after, int number);
bool watch_end(struct watch *w);

#endif
