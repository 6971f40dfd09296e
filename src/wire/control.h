/* control.h - messages between peers and the master.
 *
 * One struct per message (and per list item), one put and one get each; the payload follows a frame header.  Lists come
 * last: the struct holds the count, items are put and got one by one.  A get that returns false means that the bytes are
 * wrong; the connection is closed.  Ids: epoch << 32 | counter.  Views: epoch << 32 | number.
 * SPDX-License-Identifier: MIT */
#ifndef PCCL_WIRE_CONTROL_H
#define PCCL_WIRE_CONTROL_H

#include "core/bounds.h"
#include "core/machine_costs.h"
#include "wire/codec.h"

/* Why something failed; values travel.  The order within operation causes is gravity: a graver one wins. */
enum cause {
    CAUSE_NONE = 0,
    /* of an operation itself, mildest first (REFUSE) */
    CAUSE_DEADLINE = 1,
    CAUSE_CANCEL = 2,
    CAUSE_NO_MEMORY = 3,
    CAUSE_MISMATCH = 4,
    CAUSE_INTERNAL = 5, /* a failed invariant in its executor */
    CAUSE_ARGUMENT = 6, /* in the order of issue: this call cannot be made as it was given, but has its number */
    CAUSE_OLD_VIEW = 7, /* in the order of issue: called for members of whom one is lost; what else differs comes of that */
    /* of a view */
    CAUSE_PEER_LOST = 16,   /* died: its connections closed */
    CAUSE_PEER_LEFT = 17,   /* left by itself */
    CAUSE_PEER_SILENT = 18, /* no heartbeat */
    CAUSE_LINK_LOST = 19,   /* link between two living peers */
    CAUSE_NO_PROGRESS = 20,
    CAUSE_DIGEST = 21,      /* results differ */
    CAUSE_BLOCKED = 22,     /* an operation waits for a peer that waits in a vote */
    CAUSE_REVOKED = 23,     /* a member has ended the world for all */
    /* of a member */
    CAUSE_KICK_PROTOCOL = 32, /* it broke the protocol */
    CAUSE_KICK_KEYS = 33,     /* its shared state has other keys */
    CAUSE_KICK_REVISION = 34, /* its revision is too high */
    CAUSE_KICK_STRATEGY = 35, /* it would have to receive against its strategy */
    CAUSE_KICK_NO_CANDIDATE = 36,
    CAUSE_KICK_UNREACHABLE = 37, /* cannot be linked with the others */
    CAUSE_KICK_STALE = 38,    /* unknown id, or excluded before */
    CAUSE_KICK_FULL = 39,
    CAUSE_KICK_VERSION = 40,
    CAUSE_KICK_TAKEN = 41,    /* the rank, or the name of the world, is somebody else's */
    CAUSE_KICK_USED = 42,     /* the name was for one world, and that has been created */
    CAUSE_KICK_NO_WORLD = 43, /* there is no world of that name to join, or nobody is left in it */
};

/* Whether one refusal outweighs another: the graver cause, else the lower id of who is to blame; 0 blames nobody and weighs least. */
static inline bool cause_outweighs(uint8_t cause, uint64_t culprit, uint8_t other, uint64_t other_culprit)
{
    return cause > other || (cause == other && culprit != 0 && (other_culprit == 0 || culprit < other_culprit));
}

/* Operations are numbered apart in each space, and there in each tag. */
enum op_space {
    SPACE_TAG = 0,     /* the program names them, one at a time of each tag */
    SPACE_ORDERED = 1, /* in the order of issue; tag 0 */
    SPACE_PAIR = 2,    /* from one member to another, apart for each two, direction and tag */
    SPACE_WINDOW = 3,  /* the same, of windows: requests, what is put, and what is asked for */
    SPACE_PART = 4,    /* no operation: what goes from one member to another in one of ORDERED, where they have no link */
    OP_SPACES = 5,
};
static inline bool space_pairs(uint8_t space)
{
    return space == SPACE_PAIR || space == SPACE_WINDOW;
}
/* Whether its names say from whom to whom. */
static inline bool space_two(uint8_t space)
{
    return space_pairs(space) || space == SPACE_PART;
}

/* An operation of a view. */
#define OP_NO_NUMBER UINT32_MAX
struct op_name {
    uint64_t tag;
    uint64_t from, to; /* PAIR, PART: peer ids of sender and receiver; else 0, and not in messages */
    uint32_t seq;      /* OP_NO_NUMBER: of a wait, a receive that stands behind one from any source; one from any source that a caller waits in */
    uint8_t space; /* enum op_space */
};

static inline bool op_name_equal(const struct op_name *a, const struct op_name *b)
{
    return a->tag == b->tag && a->seq == b->seq && a->space == b->space && a->from == b->from && a->to == b->to;
}

/* What an operation is; all members must agree. */
struct op_params {
    uint64_t count;  /* elements, see enum plan_kind; with a layout: of the largest part */
    uint64_t root;   /* peer id: of what has one */
    uint64_t layout; /* 0: equal parts; LAYOUT_PAIRS; else a hash of the counts of all parts */
    uint8_t kind;    /* enum plan_kind */
    uint8_t dtype, op, quant, quant_dtype;
    uint8_t algorithm; /* enum plan_algorithm: what this member took; TINY of what travels with its launch */
};
enum { LAYOUT_PAIRS = 1 }; /* only the two ranks of a pair know what goes from one to the other */

/* Two members whose calls of one operation differ, the lower id first; 0: not known.  Comes with the cause MISMATCH, whose
 * culprit is the second. */
struct op_clash {
    uint64_t id[2];
    struct op_params params[2];
};

void put_op_name(struct writer *w, const struct op_name *m);
bool get_op_name(struct reader *r, struct op_name *m); /* no PART */
bool get_part_name(struct reader *r, struct op_name *m); /* any */

struct net_address {
    uint8_t family; /* 4 or 6 */
    uint8_t ip[16]; /* network order; family 4 uses the first 4 */
    uint16_t port;
};

/* The four attributes, fixed when a view or an answer is decided. */
struct sizes {
    uint32_t global, group, groups, largest;
};

enum vote_kind { VOTE_NONE = 0, VOTE_UPDATE = 1, VOTE_QUERY = 2, VOTE_OPTIMISE = 3, VOTE_SYNC = 4 };

/* How a world of a given size goes on after it has lost a member. */
enum loss_rule { LOSS_END = 0, LOSS_SHRINK = 1 };
#define CLAIM_ANY_RANK UINT32_MAX
/* A call that creates a world of `size` ranks; size 0: the world has no given size, all else is 0. */
struct claim {
    uint32_t size, rank;   /* rank: this peer's, below size; to join also CLAIM_ANY_RANK: the lowest that is free */
    uint64_t attempt;      /* names the call, drawn at random */
    uint32_t deadline_ms;  /* the formation is given up if it takes longer from this claim on; 0: never */
    uint8_t loss;          /* enum loss_rule */
    uint8_t once;          /* 1: no other world is ever created under its name */
    uint8_t join;          /* 1: does not create it, but joins the newest that has begun; all but size and rank is 0 */
};

/* REGISTER: first message on a connection.  id 0: a newcomer; else the connection of that id is resumed and the old one void.  Of
 * a newcomer that creates a world it decides nothing: WELCOME without an id is answered with CLAIM. */
struct msg_register {
    uint64_t run, id;
    uint32_t group;
    uint16_t lanes;     /* connections per peer this one can serve */
    uint64_t view;      /* installed, 0 none */
    uint64_t frozen;    /* view this peer is frozen in, 0 none */
    uint32_t answered;  /* votes answered so far */
    uint8_t open_vote;  /* enum vote_kind; the VOTE itself follows again after WELCOME */
    uint8_t verify;     /* 1: wants digests of results in its views */
    uint16_t cores;     /* that the processes of its host share; 0: not known */
    struct costs costs; /* as it has measured them */
    uint32_t stall_ms;  /* stall time that it asks of the world, at least BOUNDS_STALL_LEAST_MS; 0: none */
    uint8_t addresses;  /* count; items: net_address, `advertise` first; ip 0.0.0.0 means "what you see" */
    struct net_address address[BOUNDS_ADDRESSES];
    struct claim claim;
    char world[BOUNDS_WORLD_NAME]; /* whose; "": the default one */
};

/* Names that no program can choose: this byte, and a hash of 128 bits as WORLD_DERIVED_DIGITS hexadecimal digits. */
enum { WORLD_DERIVED = 0x01, WORLD_DERIVED_DIGITS = 32 };
static inline bool world_name_derived(const char *name)
{
    return name[0] == WORLD_DERIVED;
}
/* As people read it. */
static inline const char *world_name_shown(const char *name)
{
    return world_name_derived(name) ? name + 1 : name;
}

/* CLAIM: REGISTER once more, and counts: the answer to WELCOME on the same connection (W3). */
struct msg_claim {
    uint64_t run;       /* of the first WELCOME that this call has answered, and its epoch */
    uint32_t epoch;
    struct msg_register reg;
};
/* EXPECT: CLAIM of a derived world, one that members of another world create together (W10): which formation, of whose members,
 * and all of its callers.  Items: u64 ids in that world, ascending, the sender's among them. */
struct msg_expect {
    struct msg_claim claim; /* under a derived name */
    uint64_t formation[2];  /* the same for all of its worlds */
    uint64_t parent, member; /* run of the world that the callers are members of; the sender's id there */
    uint32_t callers;
};
/* DECLINE: this peer cannot go on with the world that it creates; it waits for the master's word (W5). */
struct msg_decline {
    uint8_t cause;      /* of an operation: NO_MEMORY */
};
/* GIVEN_UP: the world will not be; all whose claims counted are told the same (W5). */
struct msg_given_up {
    uint8_t cause;
    uint64_t culprit;   /* 0: nobody */
    char text[BOUNDS_TEXT];
};

struct msg_welcome {
    uint64_t run, id;               /* id 0: the run is the master's, CLAIM is expected */
    uint32_t epoch;
    uint32_t heartbeat_ms, dead_ms; /* the master's own, which a stall time of the world may shorten */
    struct net_address seen;        /* the peer's address as the master sees it, port of the connection */
};

/* Whom a peer waits for: in its oldest operation that somebody has not launched, else in its oldest receive from any source that is
 * matched with nothing, else in its oldest operation.  Nobody: phase NONE. */
enum wait_phase { WAIT_NONE = 0, WAIT_LAUNCH = 1, WAIT_DATA = 2, WAIT_HOLD = 3 };
struct peer_wait {
    struct op_name name;
    uint64_t on;        /* a peer id; 0: any other member of the view, LAUNCH */
    uint32_t ms;        /* since the launch */
    uint8_t phase;      /* enum wait_phase */
};

/* The ranks of a world that is being created, and which of them have been claimed: a bit each, from the lowest on. */
struct seats {
    uint16_t count; /* 0: none is being created */
    uint8_t claimed[BOUNDS_MEMBERS / 8];
};

/* HEARTBEAT: `sent_ns` is the sender's clock, `echo_ns` the last one heard.  From a peer: its wait.  From the master: whom the
 * receiver's vote or admission still waits for, and what is known of `about`, the one that the receiver waits for. */
struct msg_heartbeat {
    uint64_t sent_ns, echo_ns;
    uint64_t vote_on;      /* 0: nobody */
    uint64_t about;        /* 0: nobody */
    uint8_t vote;          /* enum vote_kind: of the end of the chain of waits that begins at `about` */
    struct peer_wait wait; /* the last of that chain: whom `about` waits for in the end; NONE: about waits in no operation */
    struct seats seats;    /* from the master, to whom has claimed one */
};

/* LEAVE: this peer goes; revoke: and the world with it, for all of its members. */
/* LEAVE: items op_report, as in FROZEN, of messages that it has received or refused in that view. */
struct msg_leave {
    uint8_t revoke; /* 0 or 1 */
    uint64_t view;
    uint32_t reports;
};

enum suspect_target { SUSPECT_PEER = 1, SUSPECT_LINK = 2, SUSPECT_OPERATION = 3 };
struct msg_suspect {
    uint64_t view;
    uint8_t target; /* enum suspect_target */
    uint8_t cause;
    uint64_t peer;  /* the peer, or the other end of the link, or who the operation waits for (0 unknown) */
    struct op_name name;
    char text[BOUNDS_TEXT];
};

/* FREEZE: stop the view, report.  Items: u64 survivor ids, ascending. */
struct msg_freeze {
    uint64_t view;
    uint32_t attempt;
    uint8_t cause;
    uint64_t culprit;
    uint32_t survivors;
};

enum op_state { OP_RUNNING = 1, OP_HELD = 2, OP_FINISHED = 3, OP_REFUSED = 4 };
struct op_report {
    struct op_name name;
    uint8_t state;  /* enum op_state */
    uint8_t cause;  /* gravest known, with OP_REFUSED */
    uint64_t culprit; /* of that cause */
    uint64_t params, digest; /* hash of the parameters; digest of the result (held, finished) */
    struct op_params call;   /* running, held: the parameters themselves */
};
/* FROZEN: items op_report, each refused one with the cause MISMATCH followed by its op_clash. */
struct msg_frozen {
    uint64_t view;
    uint32_t attempt;
    uint32_t reports;
};

struct member_info {
    uint64_t id;
    uint32_t key;  /* its rank when the world was created; 0 in one without a given size.  Ranks are counted by (key, id) */
    uint16_t lanes;
    uint8_t addresses;
    struct net_address address[BOUNDS_ADDRESSES];
};

enum op_outcome { OUTCOME_COMMIT = 1, OUTCOME_ABORT = 2, OUTCOME_REFUSED = 3 };
struct op_decision {
    struct op_name name;
    uint8_t outcome; /* enum op_outcome */
    uint8_t cause;
    uint64_t culprit; /* of the cause, 0 nobody: alike on all */
};

/* What the plans of a view need; equal on all members, part of every operation's parameter hash. */
struct plan_view {
    uint16_t lanes;          /* smallest of the members */
    uint32_t frame_bytes;    /* most payload per data frame */
    uint32_t eager_bytes;    /* up to here operations are sent along with READY */
    struct costs costs;      /* the members', the greatest of each */
    uint8_t measured;        /* 1: link_ps is what links were measured to carry */
    uint32_t link_ps;        /* a byte where the links keep the direct exchange waiting longest, in picoseconds; 0: links do not matter */
    uint32_t ring_ps;        /* likewise of an exchange along the ring; 0: not known */
    uint32_t ring_delay_us;  /* beside it: all one-way delays once round the ring */
    uint16_t crowd;          /* members for each core of a host, in 256ths */
    uint32_t stall_ms;       /* smallest that members ask for: silence after which one of them, or a link, is suspected; 0: none does */
    uint8_t verify;          /* 1: HOLD carries a digest of the result (members on several hosts, or one asked for it) */
    uint32_t tree_mib_ns;    /* predicted of its trees: for a MiB of a sum along all of them; 0 without trees */
    uint32_t tree_delay_us;  /* ... all one-way delays up the deepest one and down again */
};

/* VIEW: the next view of a group.  Items in this order: u64 removed ids (difference to `parent`), member_info added ones
 * (all members if parent is 0), u32 ring (rank at each ring position; as many as members), u32 weights (as many as
 * members, or none: all equal), trees (each a u32 share and the parent's rank of each member as u16), missing edges, decisions on the view before (each with the
 * cause MISMATCH followed by its op_clash). */
struct msg_view {
    uint64_t view, parent;
    uint8_t answers;      /* enum vote_kind: this view is the answer to that open vote */
    uint8_t over;         /* 1: the world ends with this view, which lost a member (LOSS_END) */
    uint8_t cause;        /* why the view before ended */
    uint64_t culprit;
    char text[BOUNDS_TEXT]; /* the same for people */
    uint32_t vote_number; /* a newcomer's first vote number */
    uint64_t value;       /* of the answer */
    struct sizes sizes;
    struct plan_view plan;
    uint32_t removed, added, members, weights, trees, edges, decisions;
};
/* VIEW_PART: a piece of the payload of the VIEW or ADMIT that follows on this connection, which is itself empty then.  All of it
 * is in the parts, in order; `bytes` is how much, in each of them the same.  Behind it: the piece. */
struct msg_view_part {
    uint32_t bytes;
    uint32_t size; /* of the piece, at least 1 */
};
/* A pair without a link; `relay` forwards HOLD, REFUSE and FINISHED between them. */
struct missing_edge {
    uint64_t a, b, relay;
};

/* VOTE: `number` = votes this peer has had answered.  The rest is read with VOTE_SYNC only. */
struct msg_vote {
    uint32_t number;
    uint8_t kind;
    uint32_t idle;  /* update: tags that this peer knows, and forgets with a view */
    uint8_t first;  /* update: this peer has done nothing since its admission, which was an update of the others */
    uint8_t passed; /* ... and has heard, in the view of the header, of an operation that others launched: they do not update now */
    uint8_t strategy;
    uint64_t revision;
    uint64_t key_digest, content_digest;
    uint8_t has_inequality; /* some entries are outside the content digest */
};

enum answer_result { ANSWER_OK = 0, ANSWER_CONFLICT = 1, ANSWER_RETRY = 2, ANSWER_NO_CANDIDATE = 3,
                     ANSWER_REVISION = 4 /* sync: nobody who may send is at the expected one */ };
/* ANSWER: to a vote, in the view `view`.  value: query: 1 if newcomers wait; sync: the elected revision (this is APPLY). */
struct msg_answer {
    uint32_t number;
    uint8_t kind;
    uint8_t result; /* enum answer_result */
    uint8_t alone;  /* a newcomer's first update, answered to it only: no vote of the group was settled */
    uint32_t round; /* sync: of the election that is answered; what was staged in any other must not be applied */
    uint64_t view;
    uint64_t value;
    struct sizes sizes;
    char text[BOUNDS_TEXT];
};

/* ADMIT: link up with the members of a proposed view.  Items: member_info of all its members. */
struct msg_admit {
    uint64_t view; /* proposed */
    uint32_t attempt;
    uint32_t members;
};
/* LINKED: items u64: ids that could not be linked.  Attempt 0, unasked: ids that the sender's view misses an edge with, and
 * that it hears again over a link. */
struct msg_linked {
    uint32_t attempt;
    uint32_t failed;
};

/* FENCE: this peer is out; the text says why.  No answer is expected. */
struct msg_fence {
    uint64_t view;
    uint8_t cause;
    char text[BOUNDS_TEXT];
};

enum sync_role { SYNC_HOLDER = 1, SYNC_RECEIVER = 2 };
/* ELECTED: the content that won.  `round` counts elections of one vote.  Items: u64 holders (that have the elected content, or
 * have staged it, and that the receiver of this message has a link with), ascending, then u64 receivers.  whole: take
 * inequality entries from `whole_source` (0: keep your own); receivers only. */
struct msg_elected {
    uint32_t number; /* of the vote */
    uint32_t round;
    uint8_t role;    /* enum sync_role */
    uint64_t revision;
    uint64_t key_digest, content_digest;
    uint8_t whole;
    uint64_t whole_source;
    uint32_t holders, receivers;
};
enum staged_status { STAGED_OK = 0, STAGED_NO_SOURCE = 1, STAGED_NO_MEMORY = 2, STAGED_KEYS = 3 };
/* STAGED: everything elected is here and verified, or why not.  liar: a source that sent wrong bytes, 0 none. */
struct msg_staged {
    uint32_t number, round;
    uint8_t status;
    uint64_t liar;
    char text[BOUNDS_TEXT]; /* KEYS: which entry, and what differs; "" if nobody was left to ask.  Read with KEYS only */
};

/* PROBE: measure the edge to `to` now; several peers measure in the same round. */
struct msg_probe {
    uint32_t round;
    uint32_t duration_ms; /* 0: only the round trip of the connection that is there is asked for */
    uint64_t to;
};
/* MEASURED: what a probe has found, or, with one of these rounds, what nobody has asked for. */
enum measured_unasked {
    MEASURED_UNASKED = 0x7FFFFFF0, /* and above */
    MEASURED_DOUBT = 0x7FFFFFFF, /* operations miss their prediction since the edge to `to` has changed */
    MEASURED_SENT_AT_WORK = 0x7FFFFFFE, MEASURED_HEARD_AT_WORK = 0x7FFFFFFD, /* what operations have sent to it, got from it */
};
#define MEASURED_HEARD UINT32_C(0x80000000) /* with the number of a probe: the most that came from `to` in it */
struct msg_measured {
    uint32_t round;
    uint64_t to;
    uint64_t bits_per_second; /* 0: could not be measured; of a doubt: what the edge delivers now */
    uint32_t rtt_us;          /* the least round trip; 0: unknown */
    uint32_t loss_ppm;        /* of the bytes, those that were sent again */
};

/* TOOK: how many times as long as predicted all-reduces of one kind of plan have taken, delays left out: the median of the last few in the
 * view of the header, and the last one. */
enum took_kind { TOOK_DIRECT = 0, TOOK_RING = 1, TOOK_FOREST = 2, TOOK_KINDS };
struct msg_took {
    uint8_t kind;      /* enum took_kind */
    uint16_t permille; /* at least 1 */
    uint64_t bytes;
    uint64_t took_us;
};

/* STATUS: what becomes of the worlds, from this place on?  Of anybody that has not registered; the answer ends the connection. */
struct msg_status {
    uint32_t from; /* 0: from the first on, later the `next` of the last answer */
};
enum { STATUS_PAGE_WORLDS = 32, STATUS_PAGE_BYTES = 16384 }; /* of one answer at most */
enum status_phase { STATUS_OPEN = 0, STATUS_FORMING = 1, STATUS_FORMED = 2, STATUS_OVER = 3, STATUS_GIVEN_UP = 4 };
struct world_status {
    char name[BOUNDS_WORLD_NAME];
    uint64_t run, view;  /* view: the newest that is published */
    uint8_t phase;       /* enum status_phase */
    uint16_t size;       /* 0: it has none */
    uint8_t loss, once;  /* of one with a size */
    uint32_t members, pending, groups, freezing; /* freezing: groups whose view is being ended */
    char waits[BOUNDS_TEXT]; /* what it waits for */
};
/* STATUS_PAGE: items world_status.  next: where the next page begins, 0: this was the last. */
struct msg_status_page {
    uint32_t next;
    uint16_t worlds;
};

/* TOPOLOGY: members, ring and measured edges of a group, from this place on.  Of anybody that has not registered; the answer ends the
 * connection. */
struct msg_topology {
    uint64_t run; /* of the world; 0: the one of that name */
    char world[BOUNDS_WORLD_NAME];
    uint32_t group;
    uint64_t view; /* of the last answer; 0 with the first question */
    uint32_t from; /* 0, later the `next` of the last answer */
};
enum { TOPOLOGY_PAGE_MEMBERS = 512, TOPOLOGY_PAGE_EDGES = 1024, TOPOLOGY_PAGE_BYTES = 65536 }; /* of one answer at most */
enum topology_state {
    TOPOLOGY_FOUND = 0,
    TOPOLOGY_NO_WORLD = 1, /* of that name or run */
    TOPOLOGY_NO_GROUP = 2, /* of that number has members */
    TOPOLOGY_CHANGED = 3   /* the view that was asked for has ended: ask again from the beginning */
};
/* TOPOLOGY_PAGE: items topology_member, then topology_edge.  next: where the next page begins, 0: this was the last.  All but the state is 0
 * unless that is FOUND. */
struct msg_topology_page {
    uint8_t state;    /* enum topology_state */
    uint64_t view;
    uint32_t members; /* of the view */
    uint32_t next;
    struct topology_took {
        uint16_t permille; /* with which this view's predictions from links are multiplied, and what its members have told since; 0: nothing is known */
        uint64_t bytes, took_us; /* of an operation in this view; 0: none was told of */
    } took[TOOK_KINDS];
    uint16_t listed, edges; /* items of this page */
};
/* The next one by id.  Its place among all is what edges and ring name; programs rank members by key, then id. */
struct topology_member {
    uint64_t id;
    uint32_t key;
    uint32_t ring; /* the place of the member that has this member's place on the ring */
    struct net_address address; /* unset: not known any more */
    struct topology_link {
        uint64_t up_bps, down_bps;         /* over all of its edges at once; 0: not measured */
        uint64_t far_up_bps, far_down_bps; /* ... over those to other sites */
    } link;
};
enum topology_source { TOPOLOGY_PROBED = 0, TOPOLOGY_OBSERVED = 1, TOPOLOGY_ASSUMED = 2 }; /* by a probe, by operations, not measured itself */
struct topology_edge {
    uint16_t from, to; /* places below BOUNDS_RING */
    uint64_t rate_bps; /* 0: measured, and the pair cannot connect in this direction */
    uint32_t rtt_us;   /* 0: unknown */
    uint32_t loss_ppm;
    uint32_t age_s;    /* since it was measured */
    uint8_t source;    /* enum topology_source */
};

/* Each put writes payload only; each get reads payload and, for messages without lists, needs nothing to be left over. */
/* The name of a world: a length u8 below BOUNDS_WORLD_NAME and as many bytes, none of them a control character. */
void put_world_name(struct writer *w, const char *name);
void get_world_name(struct reader *r, char name[BOUNDS_WORLD_NAME]);
void put_register(struct writer *w, const struct msg_register *m);
bool get_register(struct reader *r, struct msg_register *m);
void put_claim(struct writer *w, const struct msg_claim *m);
bool get_claim(struct reader *r, struct msg_claim *m);
void put_expect(struct writer *w, const struct msg_expect *m);
bool get_expect(struct reader *r, struct msg_expect *m);
void put_decline(struct writer *w, const struct msg_decline *m);
bool get_decline(struct reader *r, struct msg_decline *m);
void put_status(struct writer *w, const struct msg_status *m);
bool get_status(struct reader *r, struct msg_status *m);
void put_status_page(struct writer *w, const struct msg_status_page *m);
bool get_status_page(struct reader *r, struct msg_status_page *m);
void put_world_status(struct writer *w, const struct world_status *m);
bool get_world_status(struct reader *r, struct world_status *m);
void put_topology(struct writer *w, const struct msg_topology *m);
bool get_topology(struct reader *r, struct msg_topology *m);
void put_topology_page(struct writer *w, const struct msg_topology_page *m);
bool get_topology_page(struct reader *r, struct msg_topology_page *m);
void put_topology_member(struct writer *w, const struct topology_member *m);
bool get_topology_member(struct reader *r, struct topology_member *m);
void put_topology_edge(struct writer *w, const struct topology_edge *m);
bool get_topology_edge(struct reader *r, struct topology_edge *m);
void put_given_up(struct writer *w, const struct msg_given_up *m);
bool get_given_up(struct reader *r, struct msg_given_up *m);
void put_welcome(struct writer *w, const struct msg_welcome *m);
bool get_welcome(struct reader *r, struct msg_welcome *m);
void put_heartbeat(struct writer *w, const struct msg_heartbeat *m);
bool get_heartbeat(struct reader *r, struct msg_heartbeat *m);
void put_leave(struct writer *w, const struct msg_leave *m);
bool get_leave(struct reader *r, struct msg_leave *m);
void put_suspect(struct writer *w, const struct msg_suspect *m);
bool get_suspect(struct reader *r, struct msg_suspect *m);
void put_freeze(struct writer *w, const struct msg_freeze *m);
bool get_freeze(struct reader *r, struct msg_freeze *m);
void put_frozen(struct writer *w, const struct msg_frozen *m);
bool get_frozen(struct reader *r, struct msg_frozen *m);
void put_op_report(struct writer *w, const struct op_report *m);
bool get_op_report(struct reader *r, struct op_report *m);
void put_member_info(struct writer *w, const struct member_info *m);
bool get_member_info(struct reader *r, struct member_info *m);
void put_op_clash(struct writer *w, const struct op_clash *m);
bool get_op_clash(struct reader *r, struct op_clash *m);
void put_op_decision(struct writer *w, const struct op_decision *m);
bool get_op_decision(struct reader *r, struct op_decision *m);
void put_view(struct writer *w, const struct msg_view *m);
bool get_view(struct reader *r, struct msg_view *m);
void put_view_tree(struct writer *w, uint32_t share, const uint16_t *parent, uint32_t members);
bool get_view_tree(struct reader *r, uint32_t *share, uint16_t *parent, uint32_t members);
void put_view_part(struct writer *w, const struct msg_view_part *m);
bool get_view_part(struct reader *r, struct msg_view_part *m);
void put_missing_edge(struct writer *w, const struct missing_edge *m);
bool get_missing_edge(struct reader *r, struct missing_edge *m);
void put_vote(struct writer *w, const struct msg_vote *m);
bool get_vote(struct reader *r, struct msg_vote *m);
void put_answer(struct writer *w, const struct msg_answer *m);
bool get_answer(struct reader *r, struct msg_answer *m);
void put_admit(struct writer *w, const struct msg_admit *m);
bool get_admit(struct reader *r, struct msg_admit *m);
void put_linked(struct writer *w, const struct msg_linked *m);
bool get_linked(struct reader *r, struct msg_linked *m);
void put_fence(struct writer *w, const struct msg_fence *m);
bool get_fence(struct reader *r, struct msg_fence *m);
void put_elected(struct writer *w, const struct msg_elected *m);
bool get_elected(struct reader *r, struct msg_elected *m);
void put_staged(struct writer *w, const struct msg_staged *m);
bool get_staged(struct reader *r, struct msg_staged *m);
void put_probe(struct writer *w, const struct msg_probe *m);
bool get_probe(struct reader *r, struct msg_probe *m);
void put_measured(struct writer *w, const struct msg_measured *m);
bool get_measured(struct reader *r, struct msg_measured *m);
void put_took(struct writer *w, const struct msg_took *m);
bool get_took(struct reader *r, struct msg_took *m);

#endif
