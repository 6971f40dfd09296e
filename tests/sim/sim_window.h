/* sim_window.h - windows in the simulator: the shell of a process's window_step, what programs do with windows, what is checked of it.
 *
 * One idea: the service of the library, its thread, is an event that comes a while after the first message has ended; the program's
 * operations are another one's, beside its calls and votes.
 * SPDX-License-Identifier: MIT */
#ifndef PCCL_TESTS_SIM_SIM_WINDOW_H
#define PCCL_TESTS_SIM_SIM_WINDOW_H

#include "program.h"
#include "window/window_set.h"

enum {
    PROGRAM_WINDOW = 1001,    /* call.op of messages of windows, and of the exchange by which one is made */
    WINDOW_CELLS = 4,         /* of each member in each window: places for puts */
    WINDOW_CELL_BYTES = 40,
    WINDOW_AREA_BYTES = 16 + WINDOW_CELLS * WINDOW_CELL_BYTES, /* two numbers, then cells */
    WINDOW_HEAD_BYTES = 16,   /* two numbers of all members: one counted in, one swapped */
    WINDOW_MEMBERS = 12,
    WINDOW_TRIES = 28,        /* operations of one member on one window */
    WINDOW_GUARD = 64,
    WINDOW_LARGEST = WINDOW_HEAD_BYTES + WINDOW_MEMBERS * WINDOW_AREA_BYTES,
};

enum window_turn { WINDOW_TURN_SERVICE, WINDOW_TURN_PROGRAM };

/* ---- The oracle's records ---- */

enum try_state { TRY_OPEN, TRY_OK, TRY_FAILED };

/* One operation of a program. */
struct window_try {
    uint8_t kind;             /* as struct window_call has it: WINDOW_VOID waits for a signal */
    uint8_t cell, width;
    bool bad;                 /* beyond the bounds or rights of the target */
    bool cancelled, limited;  /* it has been; it has a deadline */
    bool repeated;            /* sent in several views */
    bool must_fail;           /* its target was lost when it was called, or what comes behind it was done without it */
    enum try_state state;
    uint32_t origin, target;  /* ranks in the window */
    uint32_t place;           /* among the tries of this origin on that target */
    uint64_t operand, expected, got;
    uint64_t pattern;         /* of the bytes of a put */
    struct window_try *before; /* a get: the put that its cell held, or was to hold, when it was called */
    struct window_op *op;     /* until it has ended */
    unsigned char bytes[WINDOW_CELL_BYTES]; /* source, or target */
    uint64_t hash;            /* of these once it has ended */
};

struct window_seat { /* one member */
    uint16_t node;
    uint64_t id;
    struct window *window;    /* null: freed, or its process has another life */
    unsigned char *memory;    /* owned: with guards; kept until the end */
    size_t bytes;
    bool freed;
    bool unsaid;              /* its last word has not reached all that are there */
    struct window_try *tries; /* owned */
    uint32_t count;
    uint32_t started[WINDOW_MEMBERS]; /* by target */
    uint64_t waited[WINDOW_MEMBERS];  /* signals of each origin that it has waited for */
    uint64_t latest[WINDOW_MEMBERS];  /* of the number that is swapped there, as it knows it */
    bool silent[WINDOW_MEMBERS];      /* it was told so of this member: what was open with it then may end so later */
};

struct window_record { /* a window, of all its members */
    uint64_t name;
    uint64_t step;
    uint32_t world;
    struct window_seat seat[WINDOW_MEMBERS];
    struct window_record *next;
};

/* ---- A process ---- */

struct window_ended { /* a message that waits for the service */
    struct window_message *message;
    uint32_t slot;            /* SESSION_NO_SLOT: it was not launched, `outcome` says why */
    struct session_outcome outcome;
};

enum window_phase { WINDOW_NONE, WINDOW_EXCHANGES, WINDOW_OPENED, WINDOW_CLOSES, WINDOW_CLOSED, WINDOW_RETIRES };

struct peer_windows {
    struct window_set set;
    uint32_t first_slot;      /* of those kept for windows */
    struct window_ended *ended; /* owned */
    uint32_t ended_count, ended_capacity;
    bool woken;               /* something was cancelled, or this peer has left */
    int64_t pass_at;          /* of the next pass that was posted */
    bool refuse;              /* no memory for the next message */
    /* the program's */
    enum window_phase phase;
    uint64_t tried;           /* the last step in which one was to be made */
    uint64_t made, serial;    /* step; windows so far */
    struct window *window;
    struct window_record *record;
    uint32_t rank;
    bool told_end;
    struct window_member own;
    unsigned char mine[WINDOW_MEMBER_BYTES], all[WINDOW_MEMBERS * WINDOW_MEMBER_BYTES];
};

/* peer_window.c */
uint32_t peer_window_slots(const struct cluster *cl);
void peer_window_new(struct cluster *cl, struct node *n);
void peer_window_free(struct node *n);
void peer_window_step(struct cluster *cl, struct node *n, const struct window_event *e);
void window_event(struct cluster *cl, struct node *n, const struct event *e);
void peer_window_wake(struct cluster *cl, struct node *n, bool woken);
void peer_window_returned(struct cluster *cl, struct node *n, uint32_t slot);
void peer_windows_quiet(struct cluster *cl, struct node *n); /* all that its windows have open ends */
bool peer_window_quiet(const struct node *n); /* nothing of its window is under way */
void peer_window_silence(struct cluster *cl, struct node *n); /* says of each member of its window whether it has been silent for long */
bool peer_window_lends(struct node *n); /* window_lend, of its lanes */
void peer_window_bury(struct window *w); /* frees it */

/* program_window.c */
bool window_used(const struct cluster *cl);
bool window_fault_drawn(const struct cluster *cl, enum fault_kind kind);
bool window_made(struct cluster *cl, struct node *n);   /* at the beginning of a step's calls; false: being made */
bool window_closed(struct cluster *cl, struct node *n); /* between two steps; false: not yet */
bool window_retired(struct cluster *cl, struct node *n); /* its process is no member any more; false: not yet */
bool window_left(struct cluster *cl, struct node *n);    /* its process leaves; false: the window has still to retire */
void window_exchanged(struct cluster *cl, struct node *n, const struct session_outcome *o);
void window_program(struct cluster *cl, struct node *n); /* a turn of the program's thread for windows */
void window_settled(struct cluster *cl, struct node *n, struct window_op *op);

/* oracle_window.c */
struct window_record *window_record_of(struct cluster *cl, uint64_t name, uint32_t world, uint64_t step);
void oracle_window_begun(const struct node *n, struct window_record *r, struct window_try *t);
void oracle_window_ended(struct cluster *cl, const struct node *n, struct window_record *r, struct window_try *t,
                         const struct session_outcome *o);
void oracle_window_stepped(struct cluster *cl, struct window_record *r, uint32_t rank);
void oracle_window_closed(struct cluster *cl, struct window_record *r, uint32_t rank);
void oracle_window_end(struct cluster *cl); /* all programs have ended */
void oracle_window_fini(struct cluster *cl);
void window_pattern(uint64_t pattern, unsigned char *out, size_t bytes);

#endif
