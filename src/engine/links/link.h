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

#endif
