/* link.h - this peer's connections to the others: control links, bundles of data connections, sync connections.
 *
 * The service thread dials and shakes hands; then a control link belongs to lane 0 and each data connection to its lane.
 *
 * Invariant: control.conn of a link is the one control connection whose frames count; an older one is read to its end.
 * SPDX-License-Identifier: MIT */
#ifndef PCCL_ENGINE_LINK_H
#define PCCL_ENGINE_LINK_H

#include "engine/comm.h"

enum { LINK_HELLO_BYTES = 4096 };

/* A control connection on lane 0. */
struct control {
    struct list all;          /* in controls.all */
    struct conn *conn;        /* one reference */
    struct link *link;        /* one reference */
    bool near;                /* a process of this host */
};

/* What the session wants of a peer.  Written by link.c, with comm.lock. */
struct link_want {
    struct member_info info;
    bool listed, dial, data;  /* the peer at all; by this end; operations */
    bool spare;               /* the view does without it: tried now and then */
};

/* The control link.  Written by control_link.c, with comm.lock. */
struct link_control {
    struct conn *conn;        /* one reference; null: down */
    struct dial *dial;
    int64_t retry_at, retry_ns;
    int64_t missing_since;    /* CLOCK_NEVER: it is there, or its lack is known */
    bool foreign;             /* the log was told that it speaks another version of the protocol */
    uint64_t host_name[2];    /* dialled by this end: the other's Unix socket; zeros: another host, or none there */
    uint64_t number;          /* of the connection: what its dialler calls it */
    uint32_t sent;            /* frames of this end on it, counted until it is to share memory */
    struct dial *share_dial;
    int64_t share_at, share_ns; /* not before; how long after a failure */
    uint64_t distrusted[2];   /* the Unix socket whose memory broke it: TCP from then on */
    uint8_t share;            /* enum share_why: what the two ends have said of themselves */
    uint8_t met;              /* enum share_why: what a try to share has met */
};

/* Whether the peer still listens, once the control link has closed.  Written by knock.c, with comm.lock. */
struct link_knock {
    struct net_address reached; /* where the peer listened when the link was made; family 0: none of its addresses is known to be it */
    int64_t lost_at;          /* when a link that was there closed; 0: never */
    int64_t at, wait_ns;      /* the next try; how long after it the one behind it comes */
    struct dial *dial;
};

/* The data connections.  Written by bundle.c, with comm.lock. */
struct link_bundle {
    uint64_t number;          /* of the current one, 0 none */
    uint64_t last;            /* of the one before */
    uint16_t lanes, here;
    bool up;
    int64_t retry_at, retry_ns;
    int64_t missing_since;    /* at the dialler: wanted, and not up, from then on; 0: it is up, or not wanted */
    bool failed_told;         /* the log knows */
    uint64_t distrusted[2];   /* the Unix socket whose shared memory broke: TCP from then on */
    uint16_t by[TRANSPORT_FABRIC + 1]; /* connections of each enum transport_kind */
    bool fabric_failed;       /* one through the fabric broke: TCP from then on */
    uint8_t share;            /* enum share_why, of the current one, as this and the next two */
    uint8_t net_here, net_there; /* enum net_why: what either end says of itself */
    uint8_t told[4];          /* the log knows: 0 nothing, else 1 + enum transport_kind, and these three */
    struct stream *streams[BOUNDS_LANES]; /* of the current one: for counters and to end them; null once closed */
};

/* A data connection that has shaken hands. */
struct bundle_end {
    uint64_t number;
    uint16_t lane, lanes;
    const struct fabric_end *ours, *theirs; /* null: they are not to use the fabric */
    uint8_t share, net_here, net_there;     /* why not, see struct link_bundle */
    uint64_t token;      /* of a stripe; 0: one plain socket */
    bool dialled;        /* by this end */
};

/* What operations have moved over an edge.  Written by op_observe.c, with comm.lock. */
struct edge_work {
    int64_t since;            /* the look before */
    uint64_t tx, rx;          /* what the connections had moved by then */
    struct edge_rate {
        uint64_t bps;
        int64_t at;
    } sent, heard;            /* what the master was told last */
};

struct link {
    struct list all;          /* link_table.c: in links.all */
    struct list by_peer;      /* link_table.c: in its bucket of links.by_peer */
    struct comm *comm;        /* this and the next: link.c, once */
    uint64_t peer;
    atomic_uint refs;         /* link.c, link_table.c: the table, and each connection on a lane */
    struct link_want want;
    struct link_control control;
    struct link_knock knock;
    struct link_bundle bundle;
    uint64_t measured_bps;    /* op_forecast.c: by the last probe of the edge alone; 0: none */
    struct edge_work work;
    atomic_bool bound_told;   /* lane_bound.c, without comm.lock: the log knows that its window is cut short */
    bool widen;               /* bundle_stripe.c: a stripe of its bundle wants more sockets */
    bool sync_lost;           /* state_link.c: no memory for a request for its shared state: told with the next tick */
};

/* link_table.c */
uint32_t link_hash(struct list *by_peer);
void link_ref(struct link *l);
void link_unref(struct link *l);
/* Puts it into the table of its communicator; takes it out, with the table's reference. */
void link_enter(struct link *l);
void link_remove(struct link *l);
struct link *link_find(struct comm *c, uint64_t peer); /* listed */
struct link *link_unlisted(struct comm *c, uint64_t peer);
struct msg_hello link_hello(const struct link *l, enum link_kind kind, uint64_t number);
/* Whether memory shared with the peer is worth a try, unless it is at the Unix socket that is not trusted. */
bool link_shares(const struct link *l, const uint64_t distrusted[2]);
/* The most for such a connection (enum link_kind), and what is used here. */
uint32_t link_ring_most(uint8_t kind);
uint32_t link_ring_bytes(const struct comm *c, uint8_t kind);
/* The fabric's end of this process for such a connection; null: none, or it is not to be used with that peer. */
struct fabric_port *link_fabric(const struct link *l, uint16_t lane);
uint8_t link_net_own(const struct link *l, uint16_t lane); /* enum net_why: why there is none */

/* op_forecast.c, with comm.lock.  A probe has measured the edge to a peer. */
void op_forecast_measured(struct link *l, uint64_t bps);

/* link_why.c, in enum share_why: what this end says of itself; what the other end has said, or met, seen from this one; in words. */
uint8_t link_share_own(const struct comm *c);
uint8_t link_share_told(uint8_t theirs);
uint8_t link_share_met(const struct comm *c, uint8_t theirs); /* by the end that dialled data; what this end lacks comes first */
void link_why_data(const struct link *l, enum transport_kind kind, char text[LINK_WHY_BYTES]);
void link_why_control(const struct link *l, bool shares, char text[LINK_WHY_BYTES]);

/* link.c */
void link_init(struct comm *c);
void link_forget_all(struct comm *c); /* nobody else knows the communicator any more */
/* With comm.lock: the session wants others than before. */
void link_changed(struct comm *c);
/* With comm.lock, on the service thread: makes the table what session_wanted says; timers. */
void link_refresh(struct comm *c);
int64_t link_tick(struct comm *c, int64_t now, struct comm_after *after);
/* With comm.lock: ends all connections after what was sent. */
void link_end_all(struct comm *c);
/* With comm.lock, after leaving: whether the other ends have read everything and closed. */
bool link_flushed(const struct comm *c);

/* ---- Control links (control_link.c): with comm.lock -------------------------------------------------------------- */

void controls_init(struct comm *c);
/* A connect begins. */
void controls_forget_foreign(struct comm *c);
void control_init(struct link *l, int64_t now);
/* A connection has been accepted or dialled and both ends have agreed.  Takes `conn`. */
void control_up(struct link *l, struct conn *conn, uint64_t number, struct comm_after *after);
/* What the greeting has said of sharing memory, enum share_why. */
void control_told(struct link *l, uint8_t share);
/* Memory for it has come: whether it is for the present connection; takes its transport, false: it could not be shared. */
bool control_may_share(const struct link *l, uint64_t number);
bool control_share(struct link *l, const struct transport *t, bool first);
/* Says something to the peer, if the link is there. */
void control_send(struct link *l, const void *bytes, size_t size, const void *data, size_t data_size, bool lent,
                  struct comm_after *after); /* `lent`: the data stay there as comm_lend has it */
/* The session gives it up. */
void control_unlink(struct comm *c, uint64_t peer);
/* Ends it: after what was sent, or at once, and the caller cancels its dial. */
void control_end(struct link *l, bool finish);
/* What the session wants of it has changed: how often it is tried, from when on its lack counts. */
void control_wanted(struct link *l, bool spare, int64_t now);
int64_t control_tick(struct link *l, int64_t now, struct comm_after *after);
/* By the holder of lane 0, no lock held: lets go of all of them; they give back what they do not use. */
void control_detach_all(struct comm *c);
void control_rest_all(struct comm *c);

/* ---- Whether a peer still listens (knock.c): with comm.lock, on the service thread but for knock_lost ------------------ */

/* The control link was made with the peer at this address; its port is left out. */
void knock_reached(struct link *l, const struct net_address *at);
void knock_lost(struct link *l);
/* Whether it is known already that nobody listens any more; `near`: both ends were on one host. */
bool knock_at_once(const struct link *l, bool near);
void knock_forget(struct link *l); /* the caller cancels its dial */
/* Where to dial the control link, in order; `known`: a refusal at the first one is the answer. */
uint8_t knock_addresses(const struct link *l, struct net_address out[BOUNDS_ADDRESSES], bool *known);
/* A dial of the control link has failed. */
void knock_dialled(struct link *l, const struct dial *d, struct comm_after *after);
int64_t knock_tick(struct link *l, int64_t now);

/* ---- Bundles of data connections (bundle.c): with comm.lock ------------------------------------------------------ */

/* A connection has been accepted or dialled and both ends have agreed.  Takes `conn`. */
void bundle_add(struct link *l, const struct bundle_end *end, struct conn *conn, struct comm_after *after);
void bundle_end(struct link *l);
/* It may be dialled at once, whatever failed before. */
void bundle_retry_now(struct link *l);
int64_t bundle_tick(struct link *l, int64_t now, struct comm_after *after);
/* From a lane, no lock held: one of its connections can be used; broke; is about to be freed. */
void bundle_stream_good(struct stream *s);
void bundle_stream_down(struct stream *s);
void bundle_stream_gone(struct stream *s);

/* bundle_stripe.c: the sockets of a data connection. */
uint64_t bundle_token(const struct engine *e); /* for one that is dialled; 0: it is to be a plain socket */
/* With comm.lock.  False: no memory. */
bool bundle_stripe_begin(struct stream *s, const struct bundle_end *end);
/* Whether the HELLO of a socket may join; takes its connection, whose HELLO has been acknowledged. */
bool bundle_stripe_may_join(const struct link *l, const struct msg_hello *m);
void bundle_stripe_join(struct link *l, const struct msg_hello *m, struct conn *conn);
int64_t bundle_stripe_tick(struct link *l, int64_t now);

/* ---- Dials: on the service thread (dial.c) ----------------------------------------------------------------------------- */

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
/* Accepts one connection, `host`: of a process of this host; false: nobody waits. */
bool greet_accept(struct engine *e, bool host);
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
void probe_adopt(struct comm *c, uint64_t from, uint32_t number, struct conn *conn); /* the number that the master has given it */
int64_t probe_tick(struct comm *c, int64_t now, struct comm_after *after);
void probe_end_all(struct comm *c); /* of the membership that is over; the service thread takes them away */
void probe_drop_all(struct comm *c);

#endif
