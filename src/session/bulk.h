/* bulk.h - many operations with retry: which one to launch next, and when all is over.
 *
 * Peers may pass different windows to the same list.  What keeps them from waiting for each other for ever: each launches the lowest
 * that is neither done nor in flight, and never more than `window` beyond the lowest that is not done.  So the lowest one of all is in
 * flight at every peer, in the same attempt, since outcomes are the same for all by number.  One that was lost is therefore launched
 * again before anything else, while the rest is awaited in whatever order it ends.
 *
 * An error that a retry cannot mend stops the list there, on all peers alike: everything up to `window` behind it is launched all the
 * same, so that the numbers of calls agree afterwards, and given up at once, since a peer with a smaller window launches less.
 * Nothing is launched behind a call that was refused here alone: its number would go to another one.
 *
 * Invariant: all before `low` are done; every one in flight is below low + window.
 * SPDX-License-Identifier: MIT */
#ifndef PCCL_SESSION_BULK_H
#define PCCL_SESSION_BULK_H

#include "session/session.h"

enum bulk_state { BULK_READY, BULK_FLYING, BULK_DONE, BULK_BAD };

#define BULK_NONE SIZE_MAX

struct bulk {
    unsigned char *state; /* borrowed: enum bulk_state by index */
    size_t count, window;
    size_t low;           /* the lowest that is not done */
    size_t next;          /* none before it waits to be launched */
    size_t flying;
    bool halted;          /* nothing is launched any more */
    size_t bad;           /* the lowest that ended with an error for good; BULK_NONE: none */
    struct session_outcome error; /* of that one */
};

/* `state`: `count` bytes, cleared by the call; window >= 1. */
void bulk_init(struct bulk *b, unsigned char *state, size_t count, size_t window);
/* The one to launch now; BULK_NONE: none before another one ends, or none any more. */
size_t bulk_next(struct bulk *b);
/* One that may be launched together with that one and all between; BULK_NONE: none. */
size_t bulk_behind(const struct bulk *b, size_t index);
void bulk_launched(struct bulk *b, size_t index);
/* It ended, or its launch was refused for good. */
void bulk_ended(struct bulk *b, size_t index, const struct session_outcome *outcome);
/* In flight behind an error: to be given up. */
bool bulk_doomed(const struct bulk *b, size_t index);
/* The end of those that may be in flight. */
size_t bulk_end(const struct bulk *b);

#endif
