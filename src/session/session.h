/* session.h - one communicator's side of the protocol as a step function.
 *
 * session_step turns one event into actions; it never blocks, allocates, reads a clock or sees a socket.  Its shells are
 * engine.c/comm.c (real sockets and lanes) and the simulator.  What it decides: which view is installed, which
 * operations run, are held, succeed, abort or are refused, what votes answer, whom to be linked with.  What it does not do:
 * move data of large operations (lanes and exec.h do), wait, allocate backups, hash shared state.
 *
 * Slots.  A call that launches an operation gets a slot (index below max_ops) from the shell's event and keeps it until
 * SESSION_COLLECT.  The session tells the shell to start, feed, stop lanes for a slot and finally that the call may
 * return.  Between OP_STOP and SESSION_IDLE lanes still touch the buffers; OP_RETURN is never emitted before SESSION_IDLE
 * of a started slot.
 *
 * Rules P1 to P11 are stated in docs/internals/RULES.md and named where they are kept.
 * SPDX-License-Identifier: MIT */
#ifndef PCCL_SESSION_SESSION_H
#define PCCL_SESSION_SESSION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "collectives/choose.h"
#include "core/phase.h"
#include "kernels/numeric.h"
#include "session/state/sync.h"
#include "wire/control.h"
#include "wire/outbox.h"
#include "wire/p2p.h"

struct session; /* the arena's first object */

enum { SESSION_NO_SLOT = 0xFFFFFFFFu, SESSION_ANY = 0xFFFFFFFFu };
#define SESSION_LAST_VIEW UINT64_MAX
#define SESSION_NO_VIEW (UINT64_MAX - 1)

/* A world that members of another one create together: their ids there, ascending, and this peer's. */
struct derivation {
    uint64_t formation[2];  /* names it, alike at all of them */
    uint64_t parent, member; /* run of the other world; this peer there */
    uint32_t callers;       /* 0: it is no such world */
    const uint64_t *ids;    /* borrowed as long as the session lives */
};

struct session_config {
    char world[BOUNDS_WORLD_NAME]; /* at the master; "": the default one */
    struct claim claim;         /* creates the world with this rank; size 0: joins one that has no size; the attempt is drawn */
    struct derivation derived;  /* with a claim */
    uint32_t group;
    uint16_t lanes;             /* connections per peer this one can serve */
    uint8_t addresses;          /* candidates told to the master */
    struct net_address address[BOUNDS_ADDRESSES];
    uint32_t max_members;       /* of a view or proposal */
    uint32_t max_ops;           /* slots: calls not collected yet */
    uint32_t max_records;       /* finished operations on record */
    uint32_t max_tags;
    uint32_t max_owed;
    uint32_t park_blocks, park_block_bytes; /* parked EAGER payloads; at most park_per_link each */
    uint32_t park_per_link;
    uint32_t first;             /* entries that tables begin with; 0: a few */
    uint32_t mesh_members;      /* up to here HOLD goes to all members directly, above by dissemination; 32 */
    int64_t heartbeat_ns;       /* 1 s */
    uint32_t stall_ms;          /* stall time asked of the world; 0: none.  A smaller one of a view counts at this peer, too */
    int64_t stall_ns;           /* silence after which a link, or an operation without progress, is suspected; 10 s */
    int64_t master_loss_ns;     /* calls that need a lost master wait so long; 10 s */
    int64_t connect_ns;         /* connect tries so long to reach the master; 10 s */
    int64_t link_ns;            /* links of a proposal must be up within; 5 s */
    const struct kernels *kernels;
    bool verify;                /* ask for digests of results; the view decides for all its members */
    uint16_t cores;             /* that the processes of its host share; 0: not known */
    struct costs costs;         /* as measured; the view takes the greatest of its members */
    struct choose_wishes wishes; /* PCCL_ALGO; nothing allowed: everything */
    uint64_t seed;
    uint32_t check_every;       /* steps between two looks at all invariants; 0: seldom enough to cost next to nothing */
};

/* What a call ends with: the cause decides the public code (api.c has the table). */
enum session_result {
    RESULT_PENDING = 0,  /* not ended yet */
    RESULT_OK,
    RESULT_LOST,         /* aborted: RankConnectionLost */
    RESULT_MISMATCH,     /* InvalidArgument */
    RESULT_ARGUMENT,     /* InvalidArgument: a member could not make the call as it was given */
    RESULT_DIGEST,       /* InternalError */
    RESULT_NO_MEMORY,    /* InternalError */
    RESULT_ALONE,        /* TooFewPeers */
    RESULT_GONE,         /* no longer a member: MasterConnectionFailed */
    RESULT_GIVEN_UP,     /* connect: the world was not created, at nobody: RankConnectionLost, or InvalidArgument */
    RESULT_OVER,         /* the world has ended, with the loss of a member or revoked: RankConnectionLost */
    RESULT_USAGE,        /* InvalidUsage: wrong phase, votes in conflict */
    RESULT_PENDING_OPS,  /* PendingAsyncOps */
    RESULT_TAG_IN_USE,   /* InvalidArgument */
    RESULT_FULL,         /* RankConnectionLost: too many unfinished operations */
    RESULT_AHEAD,        /* InvalidUsage: somebody has not come to too many that were refused here */
    RESULT_TAGS,         /* InvalidUsage: too many tags since the last update that made a view */
    RESULT_SETUP,        /* MasterConnectionFailed: what this peer itself was told is wrong, the master was not tried */
    RESULT_UNREACHABLE,  /* connect: MasterConnectionFailed */
    RESULT_REFUSED,      /* connect: MasterConnectionFailed; the master is there and does not want this peer */
    RESULT_NO_CANDIDATE, /* NoSharedStateAvailable */
    RESULT_REVISION,     /* NoSharedStateAvailable: no peer that may send has the expected revision; nothing changed */
    RESULT_RETRY,        /* update, optimise: call again at once */
    RESULT_POISONED,     /* InternalError */
};

/* A member as it was in a view. */
struct member_name {
    uint64_t id;
    uint32_t ranked;            /* 1 + its rank there, as programs count; 0: not known */
    struct net_address address; /* the first that it said of itself; family 0: not known */
};

/* How a call ended; filled by SESSION_COLLECT and the vote and connect actions. */
struct session_outcome {
    enum session_result result;
    uint8_t cause;          /* enum cause */
    uint64_t culprit;       /* peer id or 0 */
    uint64_t differs;       /* MISMATCH: a member whose call differs from this one, 0 not known */
    struct member_name named; /* `differs`, else the culprit, by the view before the loss */
    int64_t since;          /* when the condition began, 0 unknown */
    uint32_t world;         /* members of the view that committed the operation */
    uint64_t view;          /* WINDOW: that it has, or had, its number in; 0: in none */
    uint64_t partner;       /* WINDOW: id of the other one; 0: matched with nobody */
    bool view_ended;        /* WINDOW: it failed for no other reason */
    bool over;              /* LOST: with its world */
    bool left;              /* NO_MEMORY: this peer is no member any more, or has not become one */
    bool own;               /* ARGUMENT, MISMATCH: of this call itself, whose whole error is `text`; the engine fills it in */
    bool derived;           /* members of another world created this one */
    uint8_t met;            /* UNREACHABLE: enum dial_met, by the last attempt to reach the master; the engine fills it in */
    uint64_t tx_bytes, rx_bytes;
    uint64_t value;         /* query: pending; sync: revision */
    uint32_t source;        /* a receive: rank that the message is from, as ranks counted for its call; SESSION_ANY: matched with none */
    bool restore;           /* operation, in place: copy the backup over the buffer before returning */
    char text[BOUNDS_TEXT];
};

/* What the program asks for, from the API to the session. */
struct op_call {
    uint8_t space;          /* enum op_space; ORDERED: tag 0 */
    uint64_t tag;
    struct op_params params; /* root: filled in from root_rank */
    uint64_t known;         /* ORDERED, PAIR: the view of the snapshot (session_info) that the call was made by, */
    uint32_t world;         /* ... and its members */
    uint32_t root_rank;     /* as programs count, among these; PAIR: whom to send to or receive from, SESSION_ANY: any source */
    bool receives;          /* PAIR, WINDOW */
    bool no_memory;         /* the call lacks memory of its own: it takes its number, and is refused; no buffer is touched */
    bool bad_argument;      /* the same for a call that cannot be made as it was given */
    bool awaited;           /* the caller waits in the call itself: no handle leads to it, and its thread launches nothing else */
    uint64_t partner;       /* WINDOW: in place of a rank; 0: any source */
    uint64_t within;        /* WINDOW: the only view that it may have its number in; SESSION_LAST_VIEW: that of the WINDOW launch before; 0: any */
    size_t count;           /* LAYOUT_PAIRS: elements of a part where there is no list; else params.count counts */
    struct part_lists parts, out_parts; /* borrowed; counts never without places in the session, see plan_params */
    const void *in;         /* never written while the operation runs: of a small in-place call the session gets its backup, the executors
                               of a larger one save what they write over */
    void *out;
    uint64_t factor;        /* REDOP_PREMUL: this member's, as struct numeric has it; no parameter, each has its own */
    int64_t deadline;       /* absolute, INT64_MAX: none; from the API 0: as the communicator's option says */
};

struct session_launch {
    struct op_call call;
    void *scratch;          /* numeric_acc_bytes of the operation if it is eager and not plain, else null */
    bool in_place;
    uint32_t window;        /* data frames per lane reserved for each folding sender (session_folding_senders) */
};

enum session_event_kind {
    /* calls of the program */
    SESSION_CONNECT = 1,  /* start joining; ends with an ACT_CONNECTED */
    SESSION_LEAVE,        /* leave the run now; all pending calls end with GONE; ends with ACT_LEFT */
    SESSION_REVOKE,       /* the same, and the world ends for all of its members */
    SESSION_LAUNCH,       /* slot, launch: outcome.result says RESULT_PENDING (slot in use) or why not (slot not in use) */
    SESSION_CANCEL,       /* slot; number: CAUSE_NO_MEMORY, CAUSE_INTERNAL, otherwise the program's wish */
    SESSION_COLLECT,      /* slot that has returned: fills outcome, updates the snapshot, frees the slot */
    SESSION_VOTE,         /* vote: outcome.result RESULT_PENDING or why not; ends with ACT_VOTED */
    SESSION_COLLECT_VOTE, /* after ACT_VOTED: fills outcome, updates the snapshot */
    SESSION_COLLECT_CONNECT, /* after ACT_CONNECTED */
    /* the master's connection */
    SESSION_MASTER_UP,    /* asked for by ACT_DIAL_MASTER */
    SESSION_MASTER_DOWN,  /* lost, or could not be made (text says why) */
    SESSION_MASTER_FRAME, /* header, payload */
    SESSION_MASTER_FOREIGN, /* what listens there is of another version (text says of which) */
    /* links to peers: the shell keeps a control link and a data bundle to every wanted peer (session_wanted) */
    SESSION_HELLO,        /* a peer dialled in: peer, hello; verdict comes back in event.verdict */
    SESSION_LINK_UP,      /* control link to `peer` is usable (both ends) */
    SESSION_LINK_DOWN,    /* it closed or broke; number 1: and nobody listens there any more */
    SESSION_LINK_FAILED,  /* it could not be made in link_ns (dialler), or is still missing then (listener) */
    SESSION_LINK_REFUSED, /* where `peer` was reached before, nobody listens: with each try, while the link is down */
    SESSION_LINK_STALE,   /* dialled, answered STALE with `view` */
    SESSION_PEER_FRAME,   /* header, payload from `peer` on its control link */
    SESSION_DATA_UP,      /* all connections of bundle `number` with `peer` are usable */
    SESSION_DATA_DOWN,    /* one of them broke: the bundle is gone */
    SESSION_DATA_FAILED,  /* no bundle with `peer` could be made in link_ns (dialler); again with each further attempt */
    SESSION_SYNC_FRAME,   /* header, payload from `peer` on a sync connection */
    SESSION_SYNC_DOWN,    /* the sync connection to `peer` broke or could not be made */
    /* lanes */
    SESSION_DONE,         /* slot: all lanes complete: all that they bring is in `out`; digest */
    SESSION_IDLE,         /* slot: all lanes have let go of its buffers; tx/rx bytes: payload moved until then */
    SESSION_STALLED,      /* slot: no byte moved for stall_ns; `peer` is who it waits for */
    /* memory asked for by ACT_SYNC_ALLOC: memory (null: there is none) */
    SESSION_MEMORY,
    SESSION_MEASURED,     /* probe, or a doubt of an edge: measured */
    SESSION_TOOK,         /* operations of `view` take so many times as long as predicted: took */
    SESSION_TICK,         /* time passed */
};

struct session_event {
    enum session_event_kind kind;
    uint32_t slot;
    uint64_t peer;
    uint64_t number;                 /* bundle; MASTER_UP: one way there in ns, 0 on one host or if not known */
    uint64_t view;
    const struct frame_header *header;
    const void *payload;             /* borrowed for the step */
    const struct session_launch *launch;
    const struct msg_vote *vote;     /* number is filled in by the session */
    struct sync_state *state;        /* VOTE_SYNC: borrowed until the vote is collected */
    const struct msg_hello *hello;
    const struct msg_measured *measured;
    const struct msg_took *took;
    uint64_t digest, tx_bytes, rx_bytes;
    void *memory;
    const char *text;
    /* results of the step */
    uint8_t verdict;                 /* HELLO: enum hello_verdict; NOT_YET means: keep it, ask again when wants change */
    struct session_outcome outcome;  /* LAUNCH, VOTE, COLLECT... */
};

enum session_action {
    ACT_MASTER = 1,    /* frame to the master */
    ACT_DIAL_MASTER,   /* connect to the master, not before action.value (absolute ns) */
    ACT_CLOSE_MASTER,  /* after what was sent */
    ACT_PEERS,         /* frame to the control link of each peer in dest_ids; `slot`: of an input, its operation */
    ACT_SYNC,          /* frame (+ data) to the sync connection of the one peer in dest_ids, dialled if there is none;
                          action.value 1: answer on the connection that peer dialled */
    ACT_SYNC_CLOSE,    /* the vote is over: close all sync connections of this session */
    ACT_LINKS,         /* the set of wanted peers changed: read session_wanted; re-ask held HELLOs */
    ACT_UNLINK,        /* give up the control link to peer `id`, nothing is heard of it any more; made again like any other */
    ACT_OP_START,      /* slot: session_op tells plan parameters; lanes make executors with window `value` */
    ACT_OP_READY,      /* slot: peer `id` launched it and grants `value` frames per lane on the current bundle; its launch `order` */
    ACT_OP_STOP,       /* slot: lanes let go, then SESSION_IDLE */
    ACT_OP_RETURN,     /* slot: the call may return (collect) */
    ACT_VOTED,         /* the open vote has ended (collect) */
    ACT_CONNECTED,     /* connect has ended (collect) */
    ACT_LEFT,          /* out of the run: close all links after what was sent */
    ACT_SYNC_ALLOC,    /* action.value bytes of staging wanted: answer with SESSION_MEMORY */
    ACT_SYNC_APPLY,    /* the vote's answer is APPLY: copy staging into user memory (sync_apply) before the vote is collected */
    ACT_PROBE,         /* measure the edge to peer `id` for `value` ms, round in slot: answer with SESSION_MEASURED */
    ACT_TRACE,         /* a line for the log, as text instead of a frame; value 1: for everybody, 0: for those who look closer */
};

/* What lanes need to run the operation in a slot: valid from ACT_OP_START until the next event, which may move it. */
struct session_op {
    uint64_t view;
    struct op_name name;
    struct op_params params;
    struct numeric numeric;
    struct plan_params plan;     /* ring and weights point into the session: copy under its lock */
    uint16_t lanes;
    const void *in;
    void *out;
    bool verify;
    uint64_t launch;             /* its number among our launches */
    const uint64_t *ranks;       /* peer id by rank; world entries */
};

struct session_wanted {
    struct member_info info;
    bool dial;                   /* this end dials (it is the newer member) */
    bool data;                   /* a data bundle is wanted too (member of the installed view) */
    bool spare;                  /* the view does without this link: tried now and then */
};

size_t session_arena_bytes(const struct session_config *config);
/* `arena` need not be cleared; aligned to 64.  Tables begin in it. */
struct session *session_init(const struct session_config *config, void *arena);
void session_step(struct session *s, int64_t now, struct session_event *event, struct outbox *out);
int64_t session_deadline(const struct session *s);
bool session_poisoned(const struct session *s);
/* Of an outbox that no step overflows while its tables have room for so many members. */
struct outbox_bounds session_out_bounds(const struct session_config *config, uint32_t members);
/* Members that its tables have room for now. */
uint32_t session_members(const struct session *s);
/* Of the installed view. */
int64_t session_stall_ns(const struct session *s);

/* Peers to be linked with: installed view and open admission, self excluded. */
uint32_t session_wanted(const struct session *s, struct session_wanted *out, uint32_t capacity);
const struct session_op *session_op(const struct session *s, uint32_t slot);
/* Before LAUNCH: number of ranks that will send contributions here, so that the shell can reserve room for launch.window;
 * 0: eager, or not a member.  A launch deferred by a freeze starts with window 0: lanes grant later. */
uint32_t session_folding_senders(struct session *s, const struct op_params *params, uint32_t root_rank);

/* How an operation of these parameters would be done now.  Only while it is a member. */
struct choose_answer session_plan(struct session *s, const struct op_params *params);
/* The same if only that algorithm might be taken; another one comes out where it cannot do it. */
struct choose_answer session_plan_by(const struct session *s, const struct op_params *params, enum plan_algorithm algorithm);

/* ---- Tables grow with use, between steps: a step never allocates ---- */

enum session_table {
    SESSION_MEMBERS, /* of a view or a proposal */
    SESSION_PEERS,   /* of both */
    SESSION_EDGES,   /* that the view misses */
    SESSION_OPS,     /* launched here or heard of, or on record */
    SESSION_MARKS,   /* what each member has said of one */
    SESSION_TAGS,
    SESSION_OWED,    /* errors that calls have still to take */
    SESSION_SLOTS,   /* calls */
    SESSION_PARK,    /* payloads that came early */
    SESSION_WIRE,    /* a payload while it is encoded */
    SESSION_PARTS,   /* bytes of a VIEW or ADMIT that comes in parts */
    SESSION_TABLES
};

struct session_growth {
    enum session_table table;
    uint32_t entries, width; /* of SESSION_OPS: members; the session's business */
    size_t bytes;            /* of storage wanted, aligned to 64 */
};

/* Before each event: the tables that are too small for it (at most SESSION_TABLES); returns their number.  Whatever the shell cannot
 * give, `next` ends with NO_MEMORY where it needs it, and nothing else does. */
uint32_t session_growth(const struct session *s, const struct session_event *next, struct session_growth *out);
/* Moves a table into `storage`, which need not be cleared and is the session's until the next growth of this table, or its end. */
void session_grow(struct session *s, const struct session_growth *g, void *storage);
/* Between steps: tables that hold nothing go back to where they began; the storage of those that are `given` is the shell's again. */
void session_rest(struct session *s, bool given[SESSION_TABLES]);

/* For api.c: the snapshot and the installed view. */
struct session_info {
    bool connected;          /* member of a view, not left */
    uint64_t run, id, view;
    uint64_t newest;         /* view or open proposal: what a HELLO says */
    uint32_t rank, world;
    uint32_t called_rank, called; /* among the members of the snapshot; their number */
    struct sizes snapshot;
    uint64_t known;          /* view of the snapshot */
    uint32_t open_slots;     /* un-collected operations */
    bool voting;
    bool frozen;
};
void session_info(const struct session *s, struct session_info *out);

/* What a call of one that is no member any more returns: RESULT_GONE and why it is none. */
void session_gone(const struct session *s, struct session_outcome *out);
/* Who the program means by a rank: a member of its snapshot, which may be lost by now; 0: there is none. */
uint64_t session_called(const struct session *s, uint32_t rank);
/* Fills in `named` and `derived`. */
void session_name(const struct session *s, struct session_outcome *outcome);
bool session_present(const struct session *s, uint64_t id); /* in the installed view */
/* When a member will have been silent for the stall time: itself, or who passes on what it says.  INT64_MAX: it is no member. */
int64_t session_silent_at(const struct session *s, uint64_t id);
/* Whether lanes hold the buffers of this call. */
bool session_lent(const struct session *s, uint32_t slot);
struct session_member {
    uint64_t id;
    uint32_t key, ring_position; /* NONE: lost */
    struct net_address address;
    bool lost;                   /* no member of the installed view any more */
};
/* By the rank that programs see, among the members of the snapshot by (key, id); false: there is none. */
bool session_member(const struct session *s, uint32_t rank, struct session_member *out);

/* The tables of its state machines, for diagrams. */
const struct phase_table *session_phases(uint32_t *count);

/* Who is waited for: up to capacity entries; returns their number. */
struct session_wait {
    struct op_name name; /* of the operation; of a vote: none */
    uint32_t slot;       /* the call that waits; of a vote: SESSION_NO_SLOT */
    uint64_t peer;
    int64_t since;
    const char *phase; /* static: "launch", "data", "hold", "update", ... */
    /* What the master says of `peer`: whom it waits for in the end, in which operation and phase (null: in none), and in which vote
     * that one waits (null: in none).  0: nothing is known. */
    uint64_t then;
    struct op_name then_name;
    const char *then_phase, *then_vote;
    bool told;         /* the master has spoken of `peer` at all */
};
/* Of the world that this peer is about to create, by the master's last word: the ranks that nobody has claimed, up to `capacity`;
 * returns their number, 0 also if there is nothing to create. */
uint32_t session_missing(const struct session *s, uint32_t *ranks, uint32_t capacity);
/* One sentence: "waits for peer 1.2 (10.0.0.3:48150) to launch tag 7; its program is in no call". */
void session_wait_text(const struct session *s, const struct session_wait *w, char *out, size_t size);
/* Names the others that the same call waits for in `all`, of which `w` is one: ", and for peer 1.3 (10.0.0.4:48150)"; "": there are none. */
void session_wait_others(const struct session *s, const struct session_wait *w, const struct session_wait *all, uint32_t count, char *out,
                         size_t size);
/* It ends when another program does something, not a machine: there is no limit to it. */
bool session_wait_of_program(const struct session_wait *w);
uint32_t session_waits(const struct session *s, struct session_wait *out, uint32_t capacity);

#endif
