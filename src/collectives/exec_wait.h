/* exec_wait.h - whom an executor waits for, and whether that one gets on: slowness told from a standstill.
 *
 * A lane sends in the order of launches, so an operation may stand still for as long as those before it take.  What counts as
 * progress of one: its own bytes, from anybody; from the rank it waits for also bytes of operations that this rank has launched before it
 * (launches are numbered, READY tells); from a rank that has to take frames also grants for such operations, and bytes of those launched
 * here before.  Bytes of later ones do not count, else a peer that never serves one operation would never be found, unless it is us who
 * have no room for this one: then whatever comes into the lane counts.
 *
 * A rank sees its own connections only.  It cannot see that the one it waits for waits in turn, for frames that stand in a queue, or
 * for our room.  So a rank whose operation moves tells its partners when it last did (EXEC_MOVED, EXEC_TELL), in a CREDIT that may
 * grant nothing.  A rank takes this move of the one it waits for as its own, and passes it on as one that is a rank further away.  No
 * chain of waits is longer than the world, so one from further away has gone round a circle of ranks, and counts for nothing.
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
/* Whether the peer has seen by itself that the operation of that number here gets on.  Bytes that it has sent tell it nothing where it
 * waits for ours. */
bool exec_edge_shows(const struct exec_edge *edge, uint64_t own);

struct exec_look {
    int64_t now, stall_ns;
    uint64_t own_bytes;           /* of the operation, in all lanes, so far */
    const struct exec_edge *edge; /* of the partner it waits for; null: there is no connection */
    uint64_t theirs, own;         /* its number among that rank's launches, among ours */
    uint64_t lane_bytes;          /* received in this lane, so far */
};

struct exec_watch {
    uint64_t own_bytes, lane_bytes; /* at the last look */
    int64_t looked_at;
    struct exec_move moved;
    int64_t told_at;     /* the last move that partners were told of */
    int64_t reported_at; /* that it stands still */
};

void exec_watch_start(struct exec_watch *w, int64_t now);
/* Its operation may move from now on: before, it waited for a program. */
void exec_watch_again(struct exec_watch *w, int64_t now);
/* Looks, several times in a stall time; true: no progress for a stall time (told once in each). */
bool exec_watch_stalled(struct exec_watch *w, const struct exec_wait *wait, const struct exec_look *look);
/* A partner has told of this move, in a world of so many. */
void exec_watch_heard(struct exec_watch *w, const struct exec_wait *wait, uint32_t world, uint32_t partner, const struct exec_move *move);
/* After each of these.  True: the partners are to be told of the last move, unless their connections show one; it counts as told. */
bool exec_watch_tells(struct exec_watch *w, int64_t stall_ns);

/* The time of a move as CREDIT tells it, and back. */
uint32_t exec_move_ms(int64_t at, int64_t now);
int64_t exec_move_at(uint32_t ms, int64_t now);

#endif
