/* exec_wait.h - whom an executor waits for, and whether that one gets on: slowness told from a standstill.
 *
 * A lane sends in the order of launches, so an operation may stand still for as long as those before it take.  What counts as
 * progress of one: its own bytes, from anybody; from the rank it waits for also bytes of operations that this rank has launched before it
 * (launches are numbered, READY tells); from a rank that has to take frames also grants for such operations, and bytes of those launched
 * here before.  Bytes of later ones do not count, else a peer that never serves one operation would never be found, unless it is us who
 * have no room for this one: then whatever comes into the lane counts.  A rank that waits for our room is told that we move by
 * a grant of no frames (EXEC_TELL), since it cannot see that.
 *
 * Invariant: nothing here asks for bytes that the sender may not send, or that stand behind others which move.
 * SPDX-License-Identifier: MIT */
#ifndef PCCL_COLLECTIVES_EXEC_WAIT_H
#define PCCL_COLLECTIVES_EXEC_WAIT_H

#include "collectives/exec.h"

enum exec_wait_kind {
    EXEC_WAIT_NOBODY,
    EXEC_WAIT_DATA, /* partner may send what is missing */
    EXEC_WAIT_ROOM, /* the one whose frames are missing has no grant; partner: one that holds grants and has not used them, or nobody */
    EXEC_WAIT_TAKE, /* partner has to take what is sent, or to grant it */
};

struct exec_wait {
    enum exec_wait_kind kind;
    uint32_t partner; /* PLAN_NOBODY: no other */
};

/* At the oldest unfinished frame. */
struct exec_wait exec_waits_for(const struct exec *x);

/* What a connection has moved since the last look: the least number of an operation with bytes received, grants received, bytes
 * sent.  Received and granted: numbers of the peer's launches; sent: of the own ones. */
struct exec_edge {
    uint64_t received, granted, sent;
};

void exec_edge_clear(struct exec_edge *edge);
void exec_edge_note(uint64_t *least, uint64_t launch);

struct exec_look {
    int64_t now, stall_ns;
    uint64_t own_bytes;           /* of the operation, in all lanes, so far */
    const struct exec_edge *edge; /* of the partner it waits for; null: there is no connection */
    uint64_t theirs, own;         /* its number among that rank's launches, among ours */
    uint64_t lane_bytes;          /* received in this lane, so far */
};

struct exec_watch {
    uint64_t own_bytes, lane_bytes; /* at the last look */
    int64_t moved_at, looked_at;
};

void exec_watch_start(struct exec_watch *w, int64_t now);
/* Looks, several times in a stall time; true: no progress for a stall time (told once in each). */
bool exec_watch_stalled(struct exec_watch *w, const struct exec_wait *wait, const struct exec_look *look);

#endif
