/* link.h - this peer's connections to the others: control links, bundles of data connections, sync connections.
 *
 * The service thread dials and shakes hands; then a control link belongs to lane 0 and each data connection to its lane.
 *
 * Invariant: link.control is the one control connection whose frames count; an older one is only read to its end.
 * SPDX-License-Identifier: MIT */
#ifndef PCCL_ENGINE_LINK_H
#define PCCL_ENGINE_LINK_H

#include "engine/comm.h"

enum { LINK_HELLO_BYTES = 4096 };

/* A control connection on lane 0. */
struct control {
    struct list all;          /* in comm.controls */
    struct conn *conn;        /* one reference */
    struct link *link;        /* one reference */
};

struct link {
    struct list all;          /* in comm.links */
    struct comm *comm;
    atomic_uint refs;         /* the table, and each connection on a lane */
    uint64_t peer;
    struct member_info info;
    bool wanted, dial, data;
    /* Under comm.lock: */
    struct conn *control;     /* one reference; null: down */
    struct dial *control_dial;
    bool spare;               /* the view does without it: tried now and then */
    int64_t retry_at, retry_ns;
    int64_t missing_since;    /* of the control link, CLOCK_NEVER: it is there, or its lack is known */
    uint64_t bundle;          /* number of the current one, 0 none */
    uint64_t bundle_last;     /* of the one before */
    uint16_t bundle_lanes, bundle_here;
    bool bundle_up;
    int64_t data_retry_at, data_retry_ns;
    bool foreign;             /* the log was told that it speaks another version of the protocol */
    bool sync_lost;           /* no memory for a request for its shared state: told with the next tick */
    struct stream *streams[BOUNDS_LANES]; /* of the current bundle: for counters and to end them; null once closed */
};

void link_ref(struct link *l);
void link_unref(struct link *l);
struct link *link_find(struct comm *c, uint64_t peer);

void link_init(struct comm *c);
void link_forget_all(struct comm *c); /* nobody else knows the communicator any more */
/* With comm.lock: the session wants others than before. */
void link_changed(struct comm *c);
/* With comm.lock: a connect begins. */
void link_forget_foreign(struct comm *c);
/* With comm.lock, on the service thread: makes the table what session_wanted says; timers. */
void link_refresh(struct comm *c);
int64_t link_tick(struct comm *c, int64_t now, struct comm_after *after);
/* With comm.lock: ends all connections after what was sent. */
void link_end_all(struct comm *c);
void link_unlink(struct comm *c, uint64_t peer); /* gives the control link up; with comm.lock */
/* From a lane: a data connection broke. */
void link_stream_down(struct stream *s);
void link_stream_gone(struct stream *s); /* about to be freed */
/* By the holder of lane 0: lets go of all control links. */
void link_detach_controls(struct comm *c);
/* A connection has been accepted or dialled and both ends have agreed.  Takes `conn`. */
void link_control_up(struct link *l, struct conn *conn, struct comm_after *after);
void link_stream_up(struct link *l, uint64_t number, uint16_t lane, uint16_t lanes, struct conn *conn,
                    struct comm_after *after);

/* ---- Dials: on the service thread (dial.c) ----------------------------------------------------------------------------- */

enum dial_met { DIAL_MET_SILENCE, DIAL_MET_NOBODY, DIAL_MET_STRANGER, DIAL_MET_FOREIGN, DIAL_MET_OTHER };

struct dial {
    struct list all;          /* in engine.dials */
    struct engine *engine;
    struct comm *comm;
    struct msg_hello hello;   /* kind 0: the master, no hello */
    struct net_address address[BOUNDS_ADDRESSES];
    uint8_t addresses, next;
    struct conn *conn;        /* of the try under way */
    bool greeting;            /* connected, HELLO sent */
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
/* With comm.lock.  The list of addresses is tried in order. */
struct dial *dial_start(struct comm *c, const struct msg_hello *hello, const struct net_address *address,
                        uint8_t addresses, void (*done)(struct dial *, struct conn *, uint64_t, struct comm_after *),
                        void *user);
void dial_cancel(struct dial *d);
/* No lock held: tries that took too long; returns when to come back. */
int64_t dial_tick(struct engine *e, int64_t now);

/* ---- Greetings: accepted connections that have not said who they are (greet.c) ---------------------------------------- */

struct greeting {
    struct list all; /* in engine.greetings */
    struct engine *engine;
    struct conn *conn;
    struct net_address from;
    int64_t deadline;
    bool heard;      /* hello and run are known; the session said "not yet" */
    uint64_t run;
    struct msg_hello hello;
};
/* Accepts one connection; false: nobody waits. */
bool greet_accept(struct engine *e);
/* No lock held: asks again about those held back, ends those that took too long. */
int64_t greet_tick(struct engine *e, int64_t now);
void greet_drop_all(struct engine *e);

/* ---- The master's connection, sync connections, probes ------------------------------------------------------------------ */

/* With comm.lock, on the service thread. */
int64_t uplink_tick(struct comm *c, int64_t now, struct comm_after *after);
struct uplink {
    struct list all; /* in comm.uplinks */
    struct comm *comm;
    struct conn *conn; /* one reference; comm.master while it is the current one */
};
void uplink_init(struct comm *c);
/* With comm.lock, any thread. */
void uplink_dial_at(struct comm *c, int64_t when);
void uplink_close(struct comm *c);
/* On the service thread. */
void uplink_drop_all(struct comm *c);

struct sync_link {
    struct list all; /* in comm.sync_links */
    struct comm *comm;
    uint64_t peer;
    bool dialled;    /* by this end */
    bool wanted;     /* still to be dialled */
    bool ended;      /* the vote is over */
    struct dial *dial;
    struct conn *conn;
};
/* With comm.lock, any thread. */
void sync_link_send(struct comm *c, uint64_t peer, bool answer, const void *bytes, size_t size, const void *data,
                    size_t data_size, struct comm_after *after);
void sync_link_end_all(struct comm *c);
/* With comm.lock, on the service thread. */
void sync_link_adopt(struct comm *c, uint64_t peer, struct conn *conn, struct comm_after *after);
void sync_link_tick(struct comm *c, struct comm_after *after);
void sync_link_drop_all(struct comm *c);

void probe_start(struct comm *c, uint64_t peer, uint32_t round, uint64_t duration_ms);
void probe_adopt(struct comm *c, struct conn *conn);
int64_t probe_tick(struct comm *c, int64_t now, struct comm_after *after);
void probe_end_all(struct comm *c); /* of the membership that is over; the service thread takes them away */
void probe_drop_all(struct comm *c);

/* With comm.lock, after leaving: whether the other ends have read everything and closed. */
bool link_flushed(const struct comm *c);

#endif
