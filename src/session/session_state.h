/* session_state.h - what a session remembers; shared by the files that make up session_step, seen by nobody else.
 *
 * Its tables: peers (links we have or want), ops (of the installed view, by name), tags (next number and owed errors of each), marks (what
 * each member has said of each operation), slots (calls of the program).  Everything is an index: tables move when they grow.
 * SPDX-License-Identifier: MIT */
#ifndef PCCL_SESSION_SESSION_STATE_H
#define PCCL_SESSION_SESSION_STATE_H

#include <string.h>

#include "collectives/flow_window.h"
#include "core/bitset.h"
#include "core/check.h"
#include "core/heap.h"
#include "core/mutant.h"
#include "core/random.h"
#include "core/stall.h"
#include "core/status.h"
#include "session/op_class.h"
#include "session/session.h"

enum { NONE = 0xFFFFFFFFu };

/* The heads of the chains of a hash table, none of which has an entry. */
static inline void chains_clear(uint32_t *head, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        head[i] = NONE;
    }
}

enum session_phase {
    PHASE_IDLE,    /* before connect, and after leaving: left_cause says why */
    PHASE_DIALING, /* connect was called; no WELCOME yet */
    PHASE_JOINING, /* registered, waits for the first view */
    PHASE_MEMBER,  /* in a view */
};

struct peer {
    uint64_t id;         /* 0: entry not in use */
    struct member_info info;
    bool in_view, in_proposal;
    bool link_up;
    bool link_failed;    /* in this proposal */
    bool spare;          /* in_view: the pair is a missing edge of the view; a link, if there is one, carries PING only */
    uint8_t suspected;   /* why its link was reported in this view: again after a resumed master connection; CAUSE_NONE */
    int64_t lost_at;     /* when it was last */
    uint32_t next_suspected; /* suspected: another one that is, NONE */
    uint32_t rank;       /* in_view */
    uint64_t their_view; /* newest view it said to be in, on this link */
    uint64_t bundle;     /* number of the usable data bundle, 0 none */
    uint64_t bundle_view; /* last view in which a READY named this bundle */
    int64_t heard;       /* since when its silence counts against it in this view */
    int64_t spoke;       /* when it was last heard, whatever the view */
    uint32_t named;      /* operations that it runs and that are neither launched nor refused here */
    uint32_t opened, answered; /* not launched here and refused: it was heard first, for itself; in answer to another */
    uint32_t parked;     /* EAGER payloads of it that are parked */
    bool path_up;        /* in_view, spare: its relay passes on what is said */
    bool path_told;      /* those whom this peer stands in for know that it hears this one */
    uint32_t part_first, part_last; /* spare: operations whose parts go there in turn, + 1; 0 none (path.c) */
    uint32_t replay;     /* operation from which replay_settle goes on, NONE: nothing left to say again */
};

/* What one member said about one operation, from its first word on (marks.c). */
struct mark {
    uint32_t op, rank;   /* index of the operation, NONE: entry not in use; who said it */
    uint32_t next;       /* hash chain, or the free entries */
    uint32_t after;      /* of the same operation, NONE */
    struct op_params params; /* of its call, if `called` */
    uint64_t hold_params, hold_digest, bundle;
    uint64_t launch;     /* number among its launches */
    uint64_t expects;    /* LAYOUT_PAIRS: elements that it expects of this peer */
    uint32_t window;
    uint32_t park;       /* park block + 1 of its EAGER payload, 0 none */
    uint32_t park_bytes;
    uint32_t relayed;    /* dissemination: bit per round of it that we pass on to a member behind a missing edge */
    uint64_t refuse_culprit;
    uint64_t said, there, here; /* by a relay (path.c): bytes said to it, of those in place there as far as is known, bytes of it in place here */
    uint32_t part_next, part_before; /* parted: its neighbours in the line of that peer, + 1; 0 none */
    bool parted;         /* what goes there by a relay is among what has its turn */
    uint8_t refuse;      /* cause of its last REFUSE, 0 none */
    bool named;          /* it runs this one, which is neither launched nor refused here: counted in peer.named */
    bool ready, held, fed; /* fed: lanes were told */
    bool called;         /* its parameters are known: by its READY, or by the REFUSE of somebody who had it */
    bool dropped;        /* its EAGER payload found no room */
    bool wanted;         /* ... and was asked for again */
};

/* DONE: on record, being finished, or refused, and not all members are known to have come to it. */
enum op_phase { OP_FREE = 0, OP_GHOST, OP_RUN, OP_HOLDING, OP_DONE };

struct op {
    struct op_name name;
    const struct op_class *class; /* of its space */
    uint8_t phase;       /* enum op_phase; GHOST: heard of, not launched here; DONE: finished, on record */
    uint8_t refused;     /* cause of the own last REFUSE, 0 none */
    bool answered;       /* by `opener` in answer to another: counted in peer.answered, else in peer.opened */
    uint32_t opener;     /* GHOST: rank whose REFUSE was heard first, NONE */
    bool eager;
    bool whole;          /* RUN: lanes are done, but not all is here that comes by relays, or the word of all who get a part (LAYOUT_PAIRS) */
    uint8_t round;       /* dissemination: next round to send */
    uint32_t slot;
    bool listed;         /* PAIR, GHOST: in the list of what its receiver has heard of and not matched; its neighbours there */
    uint32_t heard_next, heard_prev;
    bool untold;         /* PAIR, DONE: refused by this peer, and its sender is not known to have heard so */
    uint8_t asked;       /* PAIR, at the sender: why it has asked the receiver to refuse it, 0 it has not */
    uint32_t next;       /* hash chain */
    uint32_t launched;   /* members whose launch was heard, this one too; of a message not counted */
    uint32_t marks;      /* first of its marks, the own one is among them; NONE once done */
    uint32_t fold;       /* eager: next rank to fold */
    uint32_t agreed;     /* all ranks below hold what we hold; refused: they have said the same last */
    uint64_t params, digest;
    uint64_t culprit;    /* of the refusal */
    uint64_t other;      /* MISMATCH: whose parameters differ from the culprit's, 0 not known */
    uint32_t settled;    /* at the first refuser: votes settled in this view before; UINT32_MAX: none has refused */
    int64_t since;       /* launched */
    int64_t lost_at;     /* a member's link broke after the launch: bytes may be missing for good; 0: none did */
    uint8_t suspected;   /* what the master was told, or would be, of this operation; CAUSE_NONE */
    uint64_t suspected_peer;
    const char *suspected_text; /* static */
    int64_t suspected_at, suspected_last; /* first time without a break, last time */
    bool taken;          /* PAIR, at the receiver: its sender has said that it has heard the word */
    uint64_t *finished;  /* bit set over ranks: of those that have finished it bits are other than `turned` */
    uint32_t finished_count;
    bool turned;
};

struct tag {
    uint64_t tag;
    uint64_t from, to;   /* a pair's: sender and receiver; from 0: the receives of that tag here, whose own they are (pair.c) */
    uint8_t space;       /* enum op_space */
    uint16_t queued;     /* receives from `from` that wait in a line: they need this tag when their turn comes */
    uint32_t next_seq;
    uint32_t slot;       /* SPACE_TAG: un-collected operation of this tag, NONE */
    uint32_t open;       /* SPACE_ORDERED: un-collected operations, */
    uint64_t owed_view;  /* ... and of which view, with which number, the next owed error has to be */
    uint32_t owed_next;
    uint32_t owed;       /* list of owed errors, NONE */
    uint32_t refusals;   /* since `settled` votes in this view, that some member may not have launched */
    uint32_t settled;
    uint32_t waiting, waiting_last; /* from 0: calls of receive that have no number yet, in their order; NONE */
    uint32_t heard, heard_last;     /* ... messages that were announced and not matched yet, in the order they were heard of; NONE */
    uint32_t next;       /* in the chain of its bucket */
    uint32_t unowed;     /* from 0: so many errors had been owed, in all, when none was to a source of this line */
};

/* An error that the next call of a tag takes (P7). */
struct owed {
    struct op_name name; /* its seq: in the view before */
    uint32_t next;
    uint8_t outcome;     /* OUTCOME_ABORT or OUTCOME_REFUSED; 0: entry not in use */
    uint8_t cause, loss; /* loss: why the view before that ended, at whom */
    uint64_t culprit, lost;
    uint64_t view;       /* that brought it: calls take errors in the order of views, then of numbers */
    uint64_t sizes_view; /* whose sizes come with it */
    struct sizes sizes;
};

enum { SESSION_CLASHES = 8 };
struct owed_clash {
    uint64_t view;
    struct op_name name;
    struct op_clash clash;
};

enum slot_phase { SLOT_FREE = 0, SLOT_DEFERRED, SLOT_RUNNING, SLOT_ENDING, SLOT_RETURNED };

/* Where a call stands. */
struct slot_state {
    uint8_t phase;       /* ENDING: outcome known, lanes have not let go yet */
    bool started;        /* lanes have it and have not said IDLE */
    bool stopped;        /* ACT_OP_STOP was emitted */
};

struct slot {
    struct slot_state at;
    struct slot_state before; /* this step, if `moved_in` is this step: as the shell knows it */
    uint64_t moved_in;
    bool has_sizes;
    uint8_t given_up;    /* by the program, before it was launched: why; CAUSE_NONE: not */
    bool failed;         /* this peer is why it cannot be done: no memory for it, or its executor failed */
    uint64_t partner;    /* a pair's: peer id, 0: any source */
    bool waits;          /* a pair's: DEFERRED without a number, in the list of its tag */
    uint64_t two[2];     /* a pair's: ids by rank in the plan */
    uint32_t op;
    int64_t since;       /* called */
    uint32_t next;       /* deferred, running, waiting: the call after it, NONE */
    uint32_t prev;       /* running, waiting: the call before it, NONE */
    uint64_t sizes_view;
    struct sizes sizes;
    struct session_launch launch;
    struct session_op run;
    struct session_outcome outcome;
};

/* The installed view, and the end of it.  Written by install.c and view_table.c and poison.c. */
struct view {
    uint64_t view;       /* 0: none installed */
    uint32_t world, rank;
    uint64_t *ids;       /* by rank */
    uint32_t *peer;      /* by rank: index into peers, NONE for self */
    uint32_t *ring, *weights;
    uint32_t *places;    /* by rank: where it stands in the ring */
    uint32_t *ranked;    /* by the rank that programs see, which counts by (key, id): the rank here, which counts by id */
    uint32_t *shown;     /* the other way round: by rank here */
    uint32_t key;        /* its own */
    uint32_t *relay_first, *relay_to; /* by rank: where those begin whom we pass its words on to; their ranks */
    uint64_t *apart;     /* bit set over ranks: those that we have no link with */
    bool weighted;
    struct tree_set trees; /* of all its members, or of none: count 0 */
    bool trees_linked;   /* whoever is beside another in one of them has a link with it */
    struct plan_view plan;
    struct sizes sizes;
    uint32_t edges;
    struct missing_edge *edge; /* ascending, a < b; room for edge_room */
    uint32_t room, edge_room; /* a view and a proposal find room for so many members, and missing edges */
    bool last;           /* it, or the one that is being installed: the world ends with it */
    bool frozen;
    int64_t frozen_at;
    uint32_t attempt;
    uint64_t lost_in, lost_id; /* the newest that is without a member of the one before it; that member, the lowest id */
    int64_t stall_ns, heartbeat_ns; /* of the configuration, or the view, whichever is less */
};

/* entries.c: how a list of entries that comes piece by piece differs from the own one */
struct entries_diff {
    bool active;         /* it is being asked for */
    uint32_t next;       /* index of theirs that comes next */
    uint32_t at;         /* first index where they differ, NONE: not found yet */
    struct entry_key theirs; /* at that index */
    char text[BOUNDS_TEXT];
};

/* A member of the program's snapshot that a later view is without. */
struct gone {
    uint64_t id, view;
    uint32_t key;
    uint32_t called;     /* its rank in the snapshot */
    struct net_address address; /* the first that it said of itself */
};

enum { SESSION_FINISHED_BATCH = 64, SESSION_ASKS = 128, SESSION_PLANS = 16, SESSION_DEPARTED = 32, SESSION_PROBES = 64 };

/* How an operation of these parameters is done in the installed view: asked for at least twice by each call. */
struct plan_answer {
    uint64_t view;       /* 0: nothing is known */
    struct op_params asked;
    struct choose_answer answer;
};

/* Names that one member may open here, which this peer has not launched.  NAMED: what it runs.  OPENED: what it has refused for
 * itself and others have not taken; twice, since it may have had the answer to an update that this peer waits for, and begun anew.
 * ANSWERED: what it has refused in answer to others that are not heard here yet; beyond, an answer is not taken but asked for again. */
enum { MOST_NAMED = BOUNDS_OPS + BOUNDS_REFUSALS, MOST_OPENED = 2 * MOST_NAMED, MOST_ANSWERED = MOST_NAMED };

/* Written by session.c. */
struct session_clock {
    int64_t now, last_step;
    uint64_t steps;      /* number of this one */
};

/* The connection with the master.  Written by join.c. */
struct master_link {
    bool up, welcomed;
    uint64_t away_ns;    /* one way */
    int64_t welcomed_at, heard, lost, next_heartbeat;
    int64_t backoff;
    uint64_t echo;
    uint32_t wait_turn;  /* rank whose launch the next heartbeat says first that this peer waits for */
};

/* The call that connects.  Written by join.c and poison.c. */
struct connect {
    bool called, ended;
    int64_t since, by;
    uint64_t called_in, ended_in; /* steps */
    struct session_outcome outcome;
};

/* The call that creates a world of a given size.  Written by claim.c. */
struct claiming {
    uint64_t attempt;    /* 0: it creates none */
    struct msg_welcome welcome; /* the first WELCOME that it has answered; run 0: none yet */
};

/* Why this peer is no member.  Written by join.c and poison.c. */
struct left {
    uint8_t cause;
    bool over;           /* with the world, at all of its members */
    struct member_name named; /* culprit of that, id 0: none */
    char text[BOUNDS_TEXT];
    int64_t since;
};

/* What the step under way has decided about the membership.  Written by departure.c. */
struct wish {
    bool leave, redial, tell_master;
    uint8_t cause, result;
    struct member_name named; /* culprit, id 0: none */
    char text[BOUNDS_TEXT];
};

/* What the master has asked to be measured, and not been told; the oldest first.  Written by probing.c. */
struct probing {
    struct msg_probe at[SESSION_PROBES];
    uint32_t count;
};

/* What the program was told last.  Written by slots.c. */
struct snapshot {
    uint64_t view;
    struct sizes sizes;
};

/* Members of the snapshot that views after it have lost, by (key, id).  Written by roster.c. */
struct roster {
    struct gone *gone;   /* room for view.room */
    uint32_t count;
};

/* The last members that views have lost since connect, each by its last view; a ring.  Written by culprit.c. */
struct departed {
    struct member_name at[SESSION_DEPARTED];
    uint32_t next;
};

/* The proposal of the next view.  Written by peer_links.c and poison.c. */
struct admission {
    uint64_t view;       /* 0 none */
    uint32_t attempt;
    bool linked_sent;
    int64_t link_by;
};

/* Written by peers.c and poison.c. */
struct peer_table {
    struct peer *at;
    uint32_t *row;       /* hash of an id -> index + 1 */
    uint32_t next;       /* no entry below is free */
    uint32_t count;      /* capacity */
    bool replaying;      /* some peer's replay is not NONE */
    uint64_t bad;        /* in this step: peer that names more than it may, so that its link is given up; 0: nobody */
};

/* Operations of the installed view.  Written by optable.c. */
struct op_table {
    struct op *at;
    uint32_t width;      /* members of a view: a bit for each in the set of an operation */
    uint32_t count, free, used, records;
    uint32_t untaken;    /* records of refused operations of the whole group (refusal.c) */
    uint32_t *bucket, buckets; /* a power of two of them */
    uint64_t *sets;
    bool passed;         /* in this step: one was heard of that is not launched here */
};

/* Written by marks.c. */
struct mark_table {
    struct mark *at;
    uint32_t count, used, free;
    uint32_t *bucket, buckets; /* a power of two of them */
};

/* Written by tags.c. */
struct tag_table {
    struct tag *at;
    uint32_t count, used; /* capacity; the first so many are in use */
    uint32_t *bucket, buckets; /* a power of two of them */
    uint64_t steps;      /* entries looked at so far */
    uint32_t refusals;   /* of all tags */
};

/* Errors that are owed.  Written by tags.c. */
struct owed_table {
    struct owed *at;
    uint32_t count, free, used, ever;
};

/* MISMATCH among what is owed: the newest few, for the text of the calls that take them.  Written by mismatch.c. */
struct owed_clashes {
    struct owed_clash at[SESSION_CLASHES];
    uint32_t next;
};

/* Calls of the program.  Written by slots.c and poison.c. */
struct slot_table {
    struct slot *at;
    uint32_t count, used, windows; /* of the second, those of SPACE_WINDOW */
    uint32_t running, running_last; /* calls with an operation, in the order of their launches; NONE */
    struct heap due;     /* by slot: its deadline, while it runs */
    uint32_t waiting;    /* receives that have no number yet */
};

/* Calls that are not launched yet, in their order.  Written by deferred.c and poison.c. */
struct deferred {
    uint32_t first, last; /* NONE */
    uint32_t count, tags; /* how many; entries of the table of tags that they may add */
    uint32_t passed;     /* up to this one all are in the order of issue, and wait for who is behind; NONE */
    bool behind;         /* ... all of which wait for members that have not come to what was refused here, as the last step has left it */
};

/* What the master was told.  Written by complaint.c. */
struct complaints {
    struct heap stuck;   /* by slot: since when only the master can end it, while it runs */
    uint32_t suspected;  /* a peer whose link was reported in this view, NONE */
    struct {             /* behind.c: what it was asked so that calls in the order of issue go on */
        uint8_t cause;   /* CAUSE_NONE: nothing, in this view */
        int64_t at;
    } behind_asked;
};

/* Payloads that came too early.  Written by park.c. */
struct park {
    unsigned char *blocks;
    size_t pitch;
    uint32_t *free;
    uint32_t count, left;
};

/* Of a VIEW or ADMIT that comes in parts: what has come, of `all` bytes.  Written by view_parts.c. */
struct view_parts {
    unsigned char *bytes;
    uint32_t used, all, room;
};

/* Operations that this peer has finished and not told of.  Written by finished.c. */
struct finished_names {
    struct op_name names[SESSION_FINISHED_BATCH];
    uint32_t count;
    int64_t by;
};

/* Votes.  Written by ballot.c and poison.c. */
struct vote {
    uint8_t kind;        /* enum vote_kind, VOTE_NONE */
    bool ended;          /* not collected yet */
    bool kept;           /* it has not been sent: ballot_words */
    uint64_t called_in, ended_in; /* steps */
    uint32_t answered;
    uint32_t settled;    /* updates, optimisations and syncs answered in the installed view: the same sequence at all members */
    int64_t since;
    bool fresh;          /* nothing was launched or voted since the admission */
    struct msg_vote ballot;
    struct msg_heartbeat told; /* the master's last: whom the vote or the admission waits for, and what that one does */
    struct session_outcome outcome;
    uint64_t view;
    struct sizes sizes;
};

/* Plans that calls have asked for.  Written by work.c. */
struct plans {
    struct plan_answer at[SESSION_PLANS];
    uint64_t launches;   /* that lanes have got, in all */
};

/* How this peer receives shared state.  Written by fetch.c and fetch_sources.c and holder.c. */
struct fetch {
    bool active;         /* an ELECTED came; `elected` is the newest */
    bool receiving;
    bool connected;      /* sync connections were used since the last ACT_SYNC_CLOSE */
    bool take_content, take_whole;   /* entries that may not differ, entries that may: are they received at all */
    bool content_known, whole_known; /* their hashes are in want_hash, or not needed */
    bool planned;        /* it is known which leaves differ */
    bool memory_asked;
    bool staged;         /* STAGED was said, with `status` */
    uint8_t status;
    struct msg_elected elected;
    uint64_t *holders;   /* sources: the holders, then whole_source if it is none of them; max_members */
    bool *holder_down;   /* by index in holders: broke, lies, or gone */
    uint32_t *asked;     /* leaves asked of each source and not here yet */
    uint32_t holder_count, source_count;
    uint32_t first;      /* holder to begin with, so that receivers spread */
    uint32_t manifest_from; /* index of the source asked for the content's hashes, NONE */
    uint32_t whole, whole_from; /* index of whole_source; the same once it was asked for hashes, else NONE */
    uint32_t cursor, whole_cursor; /* no leaf below is wanted from a holder, from whole_source */
    uint32_t missing, whole_missing; /* leaves wanted and not here: all, of whole_source only */
    uint64_t need;       /* bytes of the leaves that differ */
    uint64_t memory_bytes; /* asked for by the last ACT_SYNC_ALLOC */
    uint64_t liar;       /* first source that sent wrong bytes, 0 none */
    struct {
        uint32_t leaf, source;
        int64_t at;      /* when */
    } ask[SESSION_ASKS]; /* in any order */
    uint32_t asks;
    struct flow_window flow; /* leaves asked of all sources together */
    int64_t rtt_ns;      /* the least that a leaf has taken: a source that was busy once does not look far away */
    struct entries_diff diff; /* our entries are not those elected: which differs */
};

/* Each part says which file writes it; entries of its tables are also written by the files of their topic. */
struct session {
    struct session_config cfg;
    const struct op_class *classes; /* by enum op_space */
    bool poisoned;
    uint8_t phase;       /* enum session_phase */
    uint32_t check_in;   /* steps until all of it is checked again */
    struct rng rng;
    uint64_t run, id;    /* join.c */
    struct session_clock clock;

    struct master_link master;
    struct connect connect;
    struct claiming creating;
    struct left left;
    struct wish wish;
    struct probing probing;

    struct view view;
    struct admission admission;
    struct snapshot snapshot;
    struct roster roster;
    struct departed departed;
    struct view_parts parts;
    struct vote vote;

    struct peer_table peers;
    struct op_table ops;
    struct mark_table marks;
    struct tag_table tags;
    struct owed_table owed;
    struct owed_clashes clashes;
    struct slot_table slots;
    struct deferred deferred;
    struct complaints complaints;
    struct park park;
    struct finished_names finished;
    struct plans plans;

    struct sync_state *state;
    struct fetch fetch;

    uint64_t window_view; /* that the last launch of SPACE_WINDOW has its number in; SESSION_NO_VIEW: in none (pair.c) */
    uint64_t answers;    /* REFUSEs sent in this view in answer to others (refusal.c) */
    bool turns;          /* a line of parts goes on: path_settle */
    unsigned char *wire; /* scratch for one EAGER payload; null: no call has needed it */
    struct member_info *scratch_members;
    uint64_t *scratch_ids;
};

/* M7: this process stood still, so it knows nothing of others' silence. */
static inline bool session_paused(const struct session *s)
{
    return s->clock.now - s->clock.last_step > stall_pause_ns(s->view.stall_ns) + s->view.heartbeat_ns;
}

#endif
