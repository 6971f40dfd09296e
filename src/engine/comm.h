/* comm.h - a communicator: one session with its sockets, its operations and its waiting calls.
 *
 * The session sits behind comm.lock, held for one step.  comm_step runs it and carries out its actions: frames are
 * appended to connections before the lock is given back, and sent after (comm_unlock does both).
 *
 * A communicator is cut by who writes it: each part below has one file that alone does, and a call of that file for
 * whoever else wants it changed; everybody reads, with comm.lock.
 *
 * Invariant: every entry of ops.at[] is in use by a call or a handle from comm_launch to its collection.
 * SPDX-License-Identifier: MIT */
#ifndef PCCL_ENGINE_COMM_H
#define PCCL_ENGINE_COMM_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "collectives/forecast.h"
#include "engine/tables/took.h"
#include "core/buckets.h"
#include "core/list.h"
#include "core/log.h"
#include "net/conn.h"
#include "engine/calls/comm_op.h"
#include "engine/engine.h"
#include "engine/tables/premul.h"
#include "engine/tables/spares.h"
#include "session/session.h"

enum {
    COMM_FLUSH = 32,
    COMM_LINES = 64,
};

/* A line for the log: the callback is the program's, which may hold locks of its own that other callers wait with. */
struct comm_line {
    struct comm_line *next;
    enum log_level level;
    char text[];
};

/* Work that waits until no lock is held. */
struct comm_after {
    struct conn *flush[COMM_FLUSH]; /* one reference each */
    uint32_t count;
    uint64_t lanes; /* to poke */
    bool any_ended;
    bool leaves;    /* lane 0's thread sends what is said: there is more to come */
    uint32_t lends; /* slot of the operation that is being launched, whose caller waits for it: its input stays where it is until what is
                     * said has been sent; UINT32_MAX: none */
    struct comm_line *line, *last_line; /* owned; null: none */
    uint32_t lines; /* of one step and more; what finds no room or memory is counted only */
};

/* What a step and the service thread have done without knowing by whom. */
struct comm_seam {
    /* One action; *wanted: staging bytes that the session asks for. */
    void (*act)(struct comm *c, const struct action *a, struct comm_after *after, uint64_t *wanted);
    /* The actions of a step are carried out: what could not be begun is given up, in steps of its own. */
    void (*settled)(struct comm *c, struct comm_after *after);
    /* Timers, on the service thread, comm.lock held; returns when to come back. */
    int64_t (*tick)(struct comm *c, int64_t now, struct comm_after *after);
};
extern const struct comm_seam comm_acts; /* act.c */

enum { COMM_INTERFACES = 128 };

/* What a communicator says before the environment does. */
enum comm_wish { COMM_WISH_NONE, COMM_WISH_NO, COMM_WISH_YES };

struct comm_params {
    struct net_address master;
    char world[BOUNDS_WORLD_NAME]; /* at that master; "": the default one */
    struct claim claim; /* creates it, with this rank; size 0: joins it */
    struct derivation derived; /* of members of another world; its ids are the next */
    uint64_t *callers;  /* owned by the communicator; null: none */
    uint32_t group;
    uint16_t lanes;
    uint32_t stall_ms; /* asked of the world; 0: none */
    int64_t stall_ns, master_loss_ns, connect_ns, vote_ns, operation_ns; /* 0: none (vote, operation) */
    struct choose_wishes wishes; /* PCCL_ALGO */
    struct sock_buffers buffers;      /* of connections for bulk data; 0: as the environment says */
    char interfaces[COMM_INTERFACES]; /* others may dial; "": as the environment says */
    enum comm_wish share, fabric;     /* memory with processes of this host; libfabric */
};

/* The program's calls and what they wait for.  Written by comm_calls.c; all but `inside` with comm.lock. */
struct comm_calls {
    atomic_uint inside;      /* the library; destroy waits for none */
    bool connecting, closing;
    bool revoked;            /* since the last connect was called */
    bool orphaned;           /* what it was being made of has been left: its connect ends */
    bool connected, voted;   /* the session has said so */
    int64_t connect_began;   /* the last connect */
    struct comm_op *connect; /* ends with the connect under way; null: its call waits for that, or there is none */
    bool apply;              /* the answer is APPLY: the voter copies */
    bool was_member;         /* a connect has succeeded */
    uint32_t voters;         /* calls between their vote and its collection */
    uint32_t drainers;       /* calls that wait until no operation is in flight */
    struct net_address advertised; /* by PCCL_ADVERTISE; family 0: nothing */
    char interfaces[COMM_INTERFACES]; /* that were chosen for this membership; "": all, and what the master sees */
};

/* The session and its memory.  Written by comm_step.c, with comm.lock. */
struct comm_machine {
    struct session_config config;
    struct session *session; /* null before the first connect */
    void *arena;             /* owned */
    size_t arena_bytes;
    struct comm_table {
        void *at;     /* owned; null: the one in the arena */
        size_t bytes;
    } table[SESSION_TABLES];
    struct outbox out;       /* of the step under way, in memory of the engine's */
    struct outbox_bounds out_bounds; /* of a step among */
    uint32_t out_members;            /* ... so many */
    void *staging;           /* owned */
};

/* Operations by slot and by tag.  Written by comm_op.c, with comm.lock. */
struct comm_ops {
    struct comm_op **at;     /* owned; by slot */
    uint32_t *free_slots, free_count; /* owned; slots that have been used */
    uint32_t fresh;          /* from here on, none has */
    uint32_t room;           /* slots that these two have room for */
    uint64_t issued;         /* operations of SPACE_ORDERED so far */
    uint64_t launched;       /* operations of any space so far */
    int64_t launched_at;     /* by the last call that did not wait */
    uint32_t open;           /* of the program: launched, not returned */
    uint32_t own, kept;      /* slots in use by operations of SPACE_WINDOW; kept for them */
    struct list attached;    /* op_end.attached: those that a queue gets, or has */
    struct buckets tags;     /* those with a handle */
    struct spares spares;    /* backups of in-place calls that have ended */
};

/* Its share of the lanes' rooms.  Written by op_room.c, with comm.lock. */
struct comm_room {
    uint32_t holders;        /* operations that have taken some for their launch and have not ended */
};

/* What its connections carry.  Written by lane_flow.c, without a lock. */
struct comm_flow {
    atomic_uint window;      /* the largest of any of its connections' windows, in frames */
};

/* Operations on lanes.  Written by op_lanes.c, with comm.lock. */
struct comm_running {
    uint32_t count;
    int64_t look_at;         /* when lanes look next whether they move */
    bool failed;             /* some of them are to be given up */
    struct plan_cache plans; /* of operations of this view */
};

/* Whether operations take as long as predicted.  Written by op_forecast.c, with comm.lock. */
struct comm_forecast {
    struct forecast calls;
    struct took took;
    uint64_t beside;         /* operations that have begun beside another one */
};

/* What it holds for when it is used.  Written by rest.c, with comm.lock. */
struct comm_rest {
    int64_t look_at;
    uint64_t launched;       /* operations at the last look */
    bool resting;            /* there were no more at the next one */
};

/* Links with peers.  Written by link.c, with comm.lock. */
struct comm_links {
    struct list all;         /* struct link */
    uint32_t count;          /* of these */
    struct buckets by_peer;  /* the same by peer */
    bool changed;            /* the session wants others than these */
};

/* Control links with peers.  Written by control_link.c, with comm.lock. */
struct comm_controls {
    struct list all;         /* struct control: those being closed, too */
    atomic_uint near;        /* those of this host; read without a lock */
    char foreign[BOUNDS_TEXT]; /* of this connect: which peer speaks another version of the protocol; "" none */
};

/* What an attempt to reach somebody has met: no answer, a refusal, somebody who says nothing of ours,
 * another version, want of descriptors or memory here, anything else. */
enum dial_met { DIAL_MET_SILENCE, DIAL_MET_NOBODY, DIAL_MET_STRANGER, DIAL_MET_FOREIGN, DIAL_MET_WANT, DIAL_MET_OTHER };

/* The connection with the master, and what has come by it.  Written by uplink.c, with comm.lock. */
struct comm_master {
    struct conn *conn;       /* null: down; borrowed from its uplink */
    struct list uplinks;     /* struct uplink: the current one and those being closed */
    int64_t dial_at;         /* CLOCK_NEVER: not wanted */
    struct dial *dial;
    enum dial_met met;       /* by the last attempt to reach it */
    uint64_t run, id;        /* of this membership */
    uint64_t newest;         /* view or proposal that it has named */
    struct net_address seen; /* this peer, as it sees it */
};

/* Calls that another program keeps waiting.  Written by act.c, with comm.lock. */
struct comm_patience {
    int64_t look_at;
    int64_t told;            /* the last one told of began then */
};

/* How often lists of members, each with its tag, were used to create a world (api_split.c). */
struct comm_lists {
    struct comm_list_use {
        uint64_t hash[2];
        uint64_t count;
    } *use;                  /* owned */
    size_t used, room;
};

/* What may carry its data, TCP apart. */
struct comm_carriers {
    bool share;             /* memory, within this host */
    enum fabric_choice net;
};

struct comm {
    struct engine *engine;   /* this and the next two: comm.c, once */
    const struct comm_seam *seam;
    uint32_t generation;
    struct comm_params params; /* comm.c; options set before connect: api.c, with comm.lock */
    struct list in_engine;   /* engine.c, comm.c; with engine.lock */
    struct list deriving;    /* comm_calls.c: those that calls of this one are making, by in_parent; with comm.lock of this one */
    struct list in_parent;
    struct comm_carriers carriers; /* engine.c, when it joins */
    atomic_bool joined;      /* comm_calls.c: a user of the engine; once set, it stays */

    pthread_mutex_t lock;    /* of what follows */
    pthread_cond_t changed;  /* something that a call waits for in `calls`; or the end of a connection */
    struct comm_calls calls;
    struct comm_machine machine;
    struct comm_ops ops;
    struct comm_room room;
    struct comm_flow flow;
    struct comm_running running;
    struct comm_forecast forecast;
    struct comm_rest rest;
    struct comm_links links;
    struct comm_controls controls;
    struct comm_master master;
    struct comm_patience patience;
    struct comm_lists lists; /* api_split.c */
    struct premul_ops premul;
    struct windows *windows; /* owned by src/window/window_service.c; null: none has been made */
    struct list sync_links;  /* state_link.c: struct sync_link */
    struct list probes;      /* probe.c: struct probe */
    uint64_t dialled;        /* dial.c: connections so far, whose numbers they are */
};

/* Life (comm.c). */
pccl_status comm_new(struct engine *engine, const struct comm_params *params, struct comm **out) PCCL_MUST_CHECK;
/* After comm_close: waits for what queues have brought inside, frees. */
void comm_free(struct comm *c);
/* After a fork: frees memory only. */
void comm_abandon(struct comm *c);
extern const char COMM_CONNECT[]; /* what errors of it are called by, and its operation, too */
/* More processes of it run on this host than there are cores. */
static inline bool comm_crowded(const struct comm *c)
{
    return atomic_load(&c->controls.near) >= c->engine->shared_cores;
}
/* A call comes in; it is out again. */
static inline void comm_enter(struct comm *c)
{
    atomic_fetch_add(&c->calls.inside, 1);
}
/* With comm.lock: the same. */
static inline void comm_out(struct comm *c)
{
    if (atomic_fetch_sub(&c->calls.inside, 1) == 1 && c->calls.closing) {
        pthread_cond_broadcast(&c->changed);
    }
}
/* With comm.lock: a call waits until no operation is in flight, or does so no more. */
static inline void comm_drains(struct comm *c, bool begins)
{
    c->calls.drainers += begins ? 1 : UINT32_MAX;
}
/* With comm.lock: one operation less is in flight; one more is attached to a queue. */
static inline void comm_closed(struct comm *c)
{
    c->ops.open--;
}
static inline void comm_attached(struct comm *c, struct list *attached)
{
    list_append(&c->ops.attached, attached);
}
/* With comm.lock: an operation has ended, or a connection that was being closed, for which a call may wait. */
static inline void comm_ended(struct comm *c)
{
    if (c->calls.connecting || c->calls.closing || (c->calls.drainers > 0 && c->ops.open == 0)) {
        pthread_cond_broadcast(&c->changed);
    }
}

enum { LINK_WHY_BYTES = 128 };

/* What a connection with a peer has carried, and why that way. */
struct comm_traffic {
    uint64_t peer;
    uint32_t lane;           /* UINT32_MAX: the control link */
    enum transport_kind by;
    uint64_t tx_bytes, rx_bytes;
    uint64_t window_bytes, granted_bytes, bounded; /* as stream_bound; 0: the control link */
    const struct transport *transport; /* a data connection's, while comm.lock is held; null: the control link */
    const char *provider;    /* of libfabric; "": another transport */
    char why[LINK_WHY_BYTES];
};
/* For the loop's callback of a connection: sends what is left, reads what has come, takes comm.lock, which stays taken,
 * and hands on every frame.  AGAIN: more may come; PROTOCOL: the bytes are no frames; CLOSED, NOMEM: the end as well. */
typedef void comm_frame_fn(void *user, const struct frame_header *h, const void *payload, struct comm_after *after);

#endif
