/* dial.h - dials, on the service thread.
 * SPDX-License-Identifier: MIT */
#ifndef PCCL_ENGINE_DIAL_H
#define PCCL_ENGINE_DIAL_H

#include "engine/links/link.h"

struct dial {
    struct list all;          /* in engine.dials */
    struct engine *engine;
    struct comm *comm;
    struct msg_hello hello;   /* kind 0: the master, no hello */
    struct net_address address[BOUNDS_ADDRESSES];
    uint8_t addresses, next;
    bool known;               /* the peer listened at the first one: a refusal there is the answer */
    uint64_t host_name[2];    /* tried first: the other end's Unix socket; zeros: none, or tried */
    uint64_t told_name[2];    /* what its acknowledgement says of that */
    uint8_t told_share, told_net;  /* ... why there is none, and no fabric */
    struct fabric_end told_fabric; /* ... and of the fabric that HELLO offered */
    struct conn *conn;        /* of the try under way */
    bool greeting;            /* connected, HELLO sent */
    bool striped;             /* that HELLO offered a stripe */
    int64_t try_deadline;
    char why[BOUNDS_TEXT];    /* the last failure */
    enum dial_met met;        /* and what it met */
    /* Called once, with comm.lock: conn is null if no address worked (why says so; stale_view if the other end is ahead).
     * Takes the connection. */
    void (*done)(struct dial *d, struct conn *conn, uint64_t stale_view, struct comm_after *after);
    void *user;
};
/* With comm.lock: of a connection, greater than all before. */
uint64_t dial_number(struct comm *c);
/* With comm.lock.  The Unix socket, if there is one (null: none), then the list of addresses, are tried in order. */
struct dial *dial_start(struct comm *c, const struct msg_hello *hello, const uint64_t *host_name,
                        const struct net_address *address, uint8_t addresses, void (*done)(struct dial *, struct conn *, uint64_t, struct comm_after *),
                        void *user);
void dial_cancel(struct dial *d);
/* No lock held: tries that took too long; returns when to come back. */
int64_t dial_tick(struct engine *e, int64_t now);

#endif
