/* window_state.h - what the files of windows share: a window, its members, operations of this peer, requests of others.
 *
 * All of it is guarded by the lock of the communicator's windows.  That lock is taken before comm.lock.
 * SPDX-License-Identifier: MIT */
#ifndef PCCL_WINDOW_WINDOW_STATE_H
#define PCCL_WINDOW_WINDOW_STATE_H

#include "core/list.h"
#include "window/window.h"
#include "window/window_room.h"

enum {
    WINDOW_OPEN = 64,    /* the numbers of one target that are under way are within as many */
    WINDOW_MOST = 64,    /* windows of a communicator */
    WINDOW_SLOTS = 3 * WINDOW_ROOM + WINDOW_MOST, /* of operations that are kept for them */
};

enum window_role { WINDOW_HEARS, WINDOW_ASKS, WINDOW_SERVES };

/* One message; its address is the cookie. */
struct window_message {
    enum window_role role;
    struct window *window;
    void *owner;             /* struct window_op, struct window_task */
    struct comm_op *op;      /* while it is under way */
};

/* An operation of this peer. */
struct window_op {
    struct list in;          /* peer.ops, peer.queued or peer.waiters; numbered: in peer.ops */
    struct window *window;
    struct comm_op *call;    /* owned; null: settled, what is left is to tell the target */
    struct window_call what;
    uint64_t seq;
    uint64_t answer;         /* a number that comes back */
    uint8_t under_way;       /* messages */
    bool failed, ended;      /* one of its messages; for another reason than the end of a view */
    bool numbered, given_up;
    bool cut, repeated;      /* it waits to be sent again; it has been */
    struct session_outcome outcome; /* of the first that failed, one that ended before others */
    struct window_message message[2];
    unsigned char request[WINDOW_REQUEST_BYTES];
};

/* A request of another member. */
struct window_task {
    struct list in;          /* peer.answers, peer.due or window.tasks */
    struct window_peer *peer;
    struct window_request what;
    uint64_t view;           /* that it came in */
    uint64_t answer;
    bool bad;                /* to be refused */
    struct window_message message;
};

struct window_peer {
    struct window *window;
    uint64_t id;
    size_t bytes;
    uint32_t rights;
    void *reach;             /* where this process reaches it; null: by messages only */
    void *mapped;            /* owned: what was mapped for that; null for the own one, too */
    size_t mapped_bytes;
    bool missing, going, lost; /* not in the view that was seen last; the thread has seen that; what was open with it has been ended, too */
    /* of what this peer asks it for */
    uint64_t next, base;     /* number of the next operation; all before are over */
    uint64_t view;           /* that those with messages under way are bound to, all of them */
    uint32_t sent, cut;      /* operations that have some; that wait until none has, to be sent again in another view */
    struct list ops;         /* these, by number */
    struct list queued;      /* may not begin yet */
    struct list asks;        /* in windows.asking, while some are queued */
    /* of what it asks this peer for */
    uint64_t floor, done;    /* all numbers before are done; bit i: floor + i is */
    uint64_t *answered;      /* owned: numbers that were told, by number mod 64; null: none yet */
    uint64_t asked_in;       /* the last view that a request of it came in */
    struct list answers;     /* struct window_task: what waits for smaller numbers, by number, each once */
    struct list due;         /* struct window_task: no room yet; in the order of its ends of their messages */
    struct list owes;        /* in windows.due, while there are some */
    uint64_t signals;        /* that nobody has waited for yet */
    struct list waiters;     /* struct window_op */
    bool closed;             /* it asks nothing more */
};

struct window {
    struct list all;         /* in windows.all */
    struct windows *windows; /* a user; null: it found no room */
    uint64_t number;         /* its tags begin there */
    uint64_t seen;           /* view that its members were looked for in */
    uint64_t followed;       /* the view up to which the thread has seen who is missing */
    bool follows;            /* and is about to end what is open with those */
    uint32_t world, rank;
    uint32_t under_way;      /* messages */
    uint32_t calls;          /* operations of this peer, not settled, or whose target is still to be told */
    uint32_t waits;          /* those of them that wait for signals */
    bool joined;             /* its members are known */
    bool served, quiet;      /* requests are heard; no more */
    bool closing;            /* nothing begins any more */
    struct session_outcome over; /* result PENDING: it is alive */
    void *base;
    size_t bytes;
    uint32_t rights;
    void *shared;            /* owned: memory of its own, mapped */
    size_t shared_bytes;
    int shared_fd;           /* owned; -1 */
    uint64_t token[2];
    struct list tasks;       /* struct window_task: with a message under way */
    struct window_message hears;
    unsigned char heard[WINDOW_REQUEST_BYTES];
    struct window_peer peer[]; /* by rank */
};

/* Those of a communicator, with the thread that serves them. */
struct windows {
    struct comm *comm;
    pthread_mutex_t lock;    /* of what follows, and of its windows */
    pthread_cond_t changed;  /* something has ended that window_free, window_close or windows_end may wait for */
    pthread_t thread;
    struct queue *queue;     /* where messages end, and cancels are told */
    struct list all;         /* struct window.all */
    uint32_t count;
    uint64_t made;           /* windows so far */
    uint32_t users;          /* the communicator, and its windows */
    bool ended;              /* the communicator has gone: it and the thread are there no more */
    uint32_t others;         /* members but this one, of the window that has most */
    struct window_room asks; /* operations under way, by target */
    struct window_room serves; /* messages for others under way, by origin */
    struct list asking, due; /* struct window_peer: who has something queued, or due, is looked at in turns */
    int64_t look_at;         /* the first deadline of a waiter */
    bool stop;
};

/* window_service.c */
struct windows *windows_get(struct comm *c); /* made by the first who asks; null: no memory */
bool windows_add(struct windows *ws, struct window *w, uint64_t *serial_out); /* false: there are too many */
void windows_remove(struct window *w);
void windows_drop(struct windows *ws); /* a user less; the last one frees it */

/* window_message.c */
/* A message of the window, or two, one right after the other; under way from then on.  False: no memory. */
bool window_send(struct window *w, struct window_message *const *messages, const struct comm_launch *launches, uint32_t count);
/* A message of that tag to or from a member. */
struct comm_launch window_launch(const struct window *w, uint32_t tag, uint64_t partner, bool receives, void *buffer, size_t bytes);
void window_broken(struct window *w); /* no memory for what the other end waits for: this peer leaves */
bool window_alive(const struct window *w); /* this peer is a member */
/* Marks members that the installed view is without; returns the view. */
uint64_t window_look(struct window *w);
void window_over(struct window *w, const struct session_outcome *o); /* this peer is no member any more, for that reason */

/* window_memory.c */
pccl_status window_memory_make(struct window *w, size_t bytes); /* base, shared, shared_fd, token */
void window_memory_map(struct window_peer *p, const struct window_member *m); /* of another one; or not */
void window_memory_free(struct window *w);
/* What can be done at once, at memory that this process reaches. */
void window_memory_do(void *base, struct window_op *op);
uint64_t window_memory_number(void *at, const struct window_request *r); /* what lay there */
bool window_allows(size_t bytes, uint32_t rights, uint8_t kind, uint64_t offset, uint64_t length);

/* window_origin.c */
struct window_op *origin_new(struct window *w, const struct window_call *call); /* null: no memory */
void origin_start(struct window_op *op);
void origin_ended(struct window_op *op, const struct session_outcome *o);
void origin_give_up(struct window *w); /* those that the program has cancelled */
void origin_signals(struct window_peer *p); /* for those who wait */
void origin_late(struct window *w, int64_t now, int64_t *next); /* waits whose time has passed */
void origin_lost(struct window_peer *p); /* all that is open with it ends */
void origin_over(struct window *w); /* the same with all, by w->over */

/* window_target.c */
void target_hear(struct window *w); /* the next request */
void target_heard(struct window *w, const struct session_outcome *o);
void target_ended(struct window_task *t, const struct session_outcome *o);
void target_lost(struct window_peer *p);
void target_launch(struct windows *ws); /* what is due, as far as there is room */
void target_stop(struct window *w); /* gives up what is open for others */

#endif
