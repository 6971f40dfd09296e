/* window_set.h - the windows of a communicator as a step function: what is asked of other members, what they ask, who is lost.
 *
 * window_step turns one event into what is to be done (struct window_todo): messages to be launched or cancelled, operations that have
 * ended.  It never blocks, allocates, reads a clock or sees a session: its shell says before each step who is there (window_seen) and
 * hands over what memory a step may need.  That shell is window_service.c, with window_message.c.
 * SPDX-License-Identifier: MIT */
#ifndef PCCL_WINDOW_WINDOW_SET_H
#define PCCL_WINDOW_WINDOW_SET_H

#include "core/list.h"
#include "session/session.h"
#include "window/window_room.h"
#include "wire/window_request.h"

struct comm_op;
struct windows;

enum { WINDOW_MAY_READ = 1, WINDOW_MAY_WRITE = 2, WINDOW_MAY_COUNT = 4 };
enum { WINDOW_MEMBER_BYTES = 64 };
enum {
    WINDOW_OPEN = 64,    /* the numbers of one target that are under way are within as many */
    WINDOW_MOST = 64,    /* windows of a communicator */
    WINDOW_SLOTS = 3 * WINDOW_ROOM + WINDOW_MOST, /* of operations that are kept for them */
};

/* What a member tells all others. */
struct window_member {
    uint64_t id;             /* of the peer */
    uint64_t serial;         /* of its windows so far */
    uint64_t bytes;
    uint64_t token[2];       /* that begins its shared memory */
    uint32_t rights;
    uint32_t process;        /* and descriptor, by which those of its host reach that memory; 0: it is not shared */
    uint32_t descriptor;
    uint32_t status;         /* pccl_status: PCCL_OK, or why it cannot make one */
};
void put_window_member(struct writer *w, const struct window_member *m);
bool get_window_member(struct reader *r, struct window_member *m);

/* One operation on the window of that rank. */
struct window_call {
    uint8_t kind;            /* enum window_kind, not WINDOW_CLOSE; WINDOW_VOID: waits for a signal of that rank */
    uint32_t rank;
    size_t offset, bytes;
    const void *source;      /* of a put; borrowed until it has ended */
    void *target;            /* of what comes back; borrowed too; null: not wanted */
    uint64_t operand, expected;
    int64_t deadline;        /* of a wait for a signal */
    int64_t limit;           /* of any other one; as struct comm_launch has it */
    const char *phase;       /* static: what errors call it */
};

/* ---- Messages ---------------------------------------------------------------------------------------------------- */

enum window_role { WINDOW_HEARS, WINDOW_ASKS, WINDOW_SERVES };

/* What it is launched with, in SPACE_WINDOW; as struct session_launch has it. */
struct window_launch {
    uint64_t tag, partner, within, known;
    bool receives, bad_argument;
    void *buffer;
    size_t bytes;
    int64_t deadline;        /* 0: as the communicator's option says */
};

/* One message.  Its end is told by WINDOW_EVENT_ENDED. */
struct window_message {
    enum window_role role;
    bool under_way;
    bool lent;               /* the shell's, before WINDOW_EVENT_ABANDON: lanes hold its buffer */
    bool behind;             /* launched right behind the one that was said before, or neither is */
    struct window *window;
    void *owner;             /* struct window_op, struct window_task */
    struct window_launch launch;
    struct list says, stops; /* in todo */
    void *handle;            /* the shell's, while it is under way */
};

/* ---- What there is ------------------------------------------------------------------------------------------------ */

/* An operation of this peer. */
struct window_op {
    struct list in;          /* peer.ops, peer.queued or peer.waiters; numbered: in peer.ops; at last todo.gone */
    struct list told;        /* in todo.settled */
    struct window *window;
    struct comm_op *call;    /* the shell's */
    struct window_call what;
    uint64_t seq;
    uint64_t answer;         /* a number that comes back */
    uint8_t under_way;       /* messages */
    bool settled;            /* the program knows its outcome; what is left is to tell the target */
    bool unwanted;           /* the program has cancelled it: the shell's, before WINDOW_EVENT_WOKEN */
    bool failed, ended;      /* one of its messages; for another reason than the end of a view */
    bool numbered, given_up;
    bool silenced;           /* given up for the silence of its target */
    bool cut, repeated;      /* it waits to be sent again; it has been */
    struct session_outcome outcome; /* of the first that failed, one that ended before others */
    struct window_message message[2];
    unsigned char request[WINDOW_REQUEST_BYTES];
};

/* A request of another member. */
struct window_task {
    struct list in;          /* peer.answers, peer.due or window.tasks; at last todo.done */
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
    uint32_t nth;            /* rank of the one whose id is the nth of all */
    size_t bytes;
    uint32_t rights;
    void *reach;             /* where this process reaches it; null: by messages only */
    void *mapped;            /* the shell's: what was mapped for that; null for the own one, too */
    size_t mapped_bytes;
    bool silent;             /* the shell's, while the window is closed: not heard for the stall time */
    bool missing, going, lost; /* not in the view that was seen last; the service has seen that; what was open with it has been ended, too */
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
    uint64_t unheard;        /* the last view in which one of them failed: nothing more of it counts there */
    struct list answers;     /* struct window_task: what waits for smaller numbers, by number, each once */
    struct list due;         /* struct window_task: no room yet; in the order of its ends of their messages */
    struct list owes;        /* in windows.due, while there are some */
    uint64_t signals;        /* that nobody has waited for yet */
    struct list waiters;     /* struct window_op */
    bool closed;             /* it asks nothing more */
};

struct window {
    struct list all;         /* in set.all */
    struct window_set *set;
    uint64_t number;         /* its tags begin there */
    uint64_t seen;           /* view that its members were looked for in */
    uint64_t followed;       /* the view up to which the service has seen who is missing */
    bool alive;              /* this peer is a member, the one that made it */
    bool follows;            /* and is about to end what is open with those */
    uint32_t world, rank;
    uint32_t present;        /* all others of a lower rank are missing, for good */
    uint32_t under_way;      /* messages */
    uint32_t calls;          /* operations of this peer, not settled, or whose target is still to be told */
    uint32_t waits;          /* those of them that wait for signals */
    bool joined;             /* its members are known */
    bool served, quiet;      /* requests are heard; no more */
    bool closing;            /* nothing begins any more */
    bool left;               /* its program has gone from it, and its memory: the service says the last words, then frees it */
    struct session_outcome over; /* result PENDING: it is alive */
    void *base;
    size_t bytes;
    uint32_t rights;
    struct list tasks;       /* struct window_task: with a message under way */
    struct window_message hears;
    unsigned char heard[WINDOW_REQUEST_BYTES];
    /* the shell's: window.c, window_memory.c */
    struct windows *windows; /* a user; null: it found no room */
    bool kept;               /* left, and the service's to free */
    void *shared;            /* owned: memory of its own, mapped */
    size_t shared_bytes;
    int shared_fd;           /* owned; -1 */
    uint64_t token[2];
    struct window_peer peer[]; /* by rank */
};

/* What the shell has to do after a step; it takes each out.  window_first says what comes first of the first three; then come the others, in
 * this order. */
struct window_todo {
    struct list settled;     /* struct window_op: ended for the program, by .outcome */
    bool leaves;             /* no memory for what the other end waits for, or its executor failed: this peer leaves the run */
    struct list says;        /* struct window_message: to be launched; what cannot be is told by WINDOW_EVENT_UNSENT at once */
    struct list stops;       /* struct window_message: to be cancelled */
    struct list gone;        /* struct window_op: to be freed */
    struct list done;        /* struct window_task: to be freed */
    bool wakes;              /* the service may have to look earlier than it meant to */
};

struct window_set {
    struct list all;         /* struct window.all */
    uint32_t others;         /* members but this one, of the window that has most */
    struct window_room asks; /* operations under way, by target */
    struct window_room serves; /* messages for others under way, by origin */
    struct list asking, due; /* struct window_peer: who has something queued, or due, is looked at in turns */
    int64_t look_at;         /* the first deadline of a waiter */
    int64_t now;             /* of the step */
    struct window_task *spare; /* memory that a step may take; null: there is none */
    uint64_t *spare_answers; /* WINDOW_OPEN numbers, zeros */
    struct window_todo todo;
};

/* ---- Steps -------------------------------------------------------------------------------------------------------- */

enum window_event_kind {
    WINDOW_EVENT_CALLED = 1, /* op: an operation of the program begins; WINDOW_CLOSE: the window's last word to that rank */
    WINDOW_EVENT_ENDED,      /* message, outcome */
    WINDOW_EVENT_UNSENT,     /* message: no memory to launch it, nor what was said to go right behind it */
    WINDOW_EVENT_WOKEN,      /* time has passed, operations are unwanted, or this peer may have left */
    WINDOW_EVENT_MARK,       /* whoever is missing now is lost at the next FOLLOW, once messages that have ended so far have been told */
    WINDOW_EVENT_FOLLOW,
    WINDOW_EVENT_JOINED,     /* window, members by rank, rank */
    WINDOW_EVENT_SERVED,     /* window: from now on it is */
    WINDOW_EVENT_CLOSING,    /* window: nothing begins any more but WINDOW_CLOSE */
    WINDOW_EVENT_ABANDON,    /* window: what its program has open with silent members ends, once no lane holds its buffers */
    WINDOW_EVENT_LEFT,       /* window: others get nothing any more; what they have open is given up */
    WINDOW_EVENT_QUIET,      /* window: is over, and all that it has open ends */
};

struct window_event {
    enum window_event_kind kind;
    struct window *window;
    struct window_op *op;
    struct window_message *message;
    const struct session_outcome *outcome;
    const struct window_member *members;
    uint32_t rank;
};

enum window_act { WINDOW_ACT_OTHERS, WINDOW_ACT_SETTLE, WINDOW_ACT_LEAVE, WINDOW_ACT_SAY };

/* What the shell does first: programs hear before anything else is done, and nothing is said behind a message that could not be. */
enum window_act window_first(const struct window_todo *todo);

void window_set_init(struct window_set *s);
/* A window of these members, in storage that is zeros; no member is known yet. */
void window_init(struct window *w, struct window_set *s, void *base, size_t bytes, uint32_t rights, uint32_t world);
void window_op_init(struct window_op *op, struct window *w, const struct window_call *call);
/* Before each step: whether this peer is a member as the one that made the window, and of which view.  True: the view is another one, and
 * each peer's `missing` is to be said anew. */
bool window_seen(struct window *w, bool connected, uint64_t id, uint64_t view);
void window_step(struct window_set *s, int64_t now, const struct window_event *e);
/* Until when the service may sleep. */
int64_t window_deadline(const struct window_set *s);
/* Each member has said its last word, or is lost. */
bool window_closed_by_all(const struct window *w);
/* An operation of its program is open, waits for signals excepted; with silent members, only what the program has not been told of counts. */
bool window_acts(const struct window *w);
/* A member that is not silent has not said its last word, or heard this one's. */
bool window_waits(const struct window *w);
/* Nothing is left to say or to hear. */
bool window_done(const struct window *w);
/* Notes whether lanes hold the buffers of messages with silent members and, once the window was left, with all members.  True: they hold
 * some of what was given up. */
bool window_lend(struct window *w, bool (*lent)(void *shell, const struct window_message *m), void *shell);
/* Out of its set. */
void window_out(struct window *w);

#endif
