/* world_state.h - what is known of one world: its members, groups and votes; and who may change it.
 *
 * Everything is an array indexed by slots.  Events only note what happened; world_settle then brings the state to rest: it
 * looks at levels ("somebody of this view is lost"), never at edges, so that any number of things that happen in one step
 * end in one FREEZE.
 * Invariant: a phase is written by world_move alone, along the edges of its table.
 * SPDX-License-Identifier: MIT */
#ifndef PCCL_WORLD_WORLD_STATE_H
#define PCCL_WORLD_WORLD_STATE_H

#include "core/check.h"
#include "core/heap.h"
#include "core/mutant.h"
#include "core/phase.h"
#include "core/stall.h"
#include "topology/bandwidth.h"
#include "topology/probe_order.h"
#include "topology/tree_set.h"
#include "world/absent.h"
#include "world/calibration.h"
#include "world/common.h"
#include "world/siblings.h"
#include "world/world.h"

enum {
    WORLD_BREAKS = 3,           /* breaks of an edge within WORLD_BREAK_NS that make it a missing one, */
    WORLD_BREAKS_ALONE = 8,     /* and if no member can stand in for it: the newer end loses its place */
    WORLD_SYNC_ROUNDS = 3,      /* elections of one vote that failed without anybody being lost or caught */
};
#define WORLD_BREAK_NS 60000000000

/* Phases; the tables of allowed edges are in moves.c and print the diagrams of docs/internals/PROTOCOL.md. */
enum member_phase { MEMBER_FREE, MEMBER_PENDING, MEMBER_ACCEPTED, MEMBER_GONE, MEMBER_PHASES };
enum group_phase { GROUP_FREE, GROUP_NORMAL, GROUP_FREEZING, GROUP_LINKING, GROUP_PERSISTING, GROUP_PHASES };
enum admit_phase { ADMIT_IDLE, ADMIT_LINKING, ADMIT_READY, ADMIT_PERSISTING, ADMIT_PHASES };
enum sync_phase { SYNC_IDLE, SYNC_STAGING, SYNC_PERSISTING, SYNC_DURABLE, SYNC_PHASES };
enum formation_phase { FORM_ELASTIC, FORM_FORMING, FORM_FORMED, FORM_OVER, FORM_GIVEN_UP, FORM_PHASES };
enum optimise_phase { OPTIMISE_IDLE, OPTIMISE_PROBING, OPTIMISE_SOLVING, OPTIMISE_PERSISTING, OPTIMISE_PHASES };

enum phase_machine { PHASE_MEMBER, PHASE_GROUP, PHASE_ADMIT, PHASE_SYNC, PHASE_OPTIMISE, PHASE_FORMATION, PHASE_MACHINES };
extern const struct phase_table phase_next[PHASE_MACHINES];

/* Members counted, of a group or of all: what is asked with each message needs no look at each of them. */
struct tally {
    uint32_t phase[MEMBER_PHASES];  /* without the FREE ones */
    uint32_t voters[VOTE_SYNC + 1]; /* accepted members by what they wait in */
    uint32_t firsts, passed;        /* of those in an update: newcomers in their first; those of them that have heard of an operation */
    uint32_t holders, staged, waiting, told; /* in the round of a sync: holders; receivers that have staged; that have not, and know of it */
    uint32_t untold;                /* ... who has a part in it and does not know */
};

struct open_vote {
    uint8_t kind; /* enum vote_kind; VOTE_NONE: waits in none */
    int64_t since;
    struct msg_vote msg;
};

struct member {
    uint64_t id;
    uint64_t rates_key; /* under which the rates of its edges are kept; no other present member has it */
    bool rated;         /* some of them are known */
    uint8_t phase;
    uint32_t group;     /* slot */
    uint32_t conn;      /* SLOT_NONE: control connection lost */
    int64_t lost_at;    /* when it was lost */
    int64_t heard_at, beat_at; /* last frame in; next heartbeat out */
    uint64_t echo_ns;   /* the peer's clock in its last heartbeat */
    int64_t link_lost_at; /* somebody reported a broken link to it in this view; 0 never */
    int64_t refused_at;   /* ... that a new connection was refused at its address; 0 never */
    int64_t reset_at;     /* its control connection and a link closed together last; 0 never */
    uint64_t reset_view;  /* broken links of this member do not count in this view (redial.c); 0 none */
    uint64_t known_view; /* a view that it surely has */
    int64_t view_sent_at; /* the published one, on this connection; NEVER: not yet */
    char gone_text[BOUNDS_TEXT]; /* why it went, for the log */
    struct member_info info;
    struct net_address seen;
    uint32_t wish;      /* to join a world of a given size: the rank, or CLAIM_ANY_RANK; its key is given with the admission */
    bool verify;        /* asked for digests */
    uint16_t cores;     /* 0: not known */
    struct costs costs; /* as it has measured them */
    struct calibration_words took;
    uint32_t stall_ms;  /* that it asks of the world; 0: none */
    /* votes (M9) */
    uint32_t answered;
    struct open_vote vote;
    struct msg_answer answer; /* the last one, for replay */
    bool answer_by_view, replay_late;
    /* freeze, admission */
    bool reported, joining, linked;
    /* stalls */
    struct peer_wait wait;  /* of its last heartbeat in this view */
    uint64_t waits_for;     /* told in this collecting window, 0 none */
    uint64_t unheard_by;    /* ... who hears nothing of it, while the master does not either; 0 nobody */
    uint64_t blamed_by;     /* who made its last stall, 0 none */
    int64_t blamed_at, launch_at; /* launch_at: when it last said that it waits for a launch; 0: never */
    /* shared state */
    bool synced;            /* took part in the last sync of the group */
    bool distrusted;        /* sent wrong bytes in this vote */
    uint8_t role;           /* enum sync_role in this round, 0 none */
    bool whole, staged, told; /* told: ELECTED of this round */
    uint8_t failures;       /* rounds of this vote in which it reached no source, without a culprit, although all sources lived, */
    uint32_t failed_round;  /* ... the last of them, */
    int64_t failed_at;      /* ... and when */
    /* optimise */
    uint64_t probing;       /* whom it measures, 0 nobody, */
    uint32_t probe_round;   /* ... under this number, */
    int64_t probe_at, probe_by; /* ... since and until when; `probe_rests`: that has ended, its ends rest until then */
    bool probe_rests, probe_said; /* `probe_said`: its answer has come, and the other end's word has not */
    struct msg_measured probe_answer;
    uint64_t heard_from, heard_bps; /* the last probe of its edge that somebody else measures: whose, 0 nobody's, and what came of it here */
    uint32_t probe_place;   /* in the order of probes, from 1; 0 none */
    uint32_t site;          /* where it is: the slot of a member there */
    uint64_t asked, near;   /* ranks of edges that it is asked for at once and has not answered; that its answers say are near */
    double up_bps, down_bps, far_up_bps, far_down_bps; /* what that round has shown of its link so far; of edges to other sites */
};

/* A view, decided or published. */
struct view_record {
    uint64_t view, parent;
    uint8_t answers, cause;
    bool over;                    /* the world ends with it */
    uint64_t culprit;
    char text[BOUNDS_TEXT];
    struct sizes sizes;
    struct plan_view plan;
    struct calibration calibration; /* with which `plan` is made */
    int64_t planned_at;           /* when costs were looked at last */
    uint32_t members, removed, edges, decisions;
    uint64_t *ids;                /* owned, as all here; ascending: rank order */
    bool *fresh;                  /* not in the parent */
    uint64_t *gone;               /* in the parent, not here */
    uint32_t *ring;               /* rank at each position */
    struct tree_set trees;        /* of all members; count 0: none */
    struct missing_edge *edge;
    uint8_t *linked;              /* of each missing edge: bit 0, bit 1: its end a, b has a link again */
    struct op_decision *decision; /* on the parent */
    uint32_t clashes;             /* of those with the cause MISMATCH: the first few, so that both sides can be told */
    struct decision_clash {
        uint32_t decision;        /* its index */
        struct op_clash clash;
    } clash[BOUNDS_CLASHES];
};

/* What all reports of one freeze say about one operation. */
struct op_record {
    struct op_name name;
    uint32_t holders;      /* survivors that list it as held or finished */
    uint64_t params, digest;
    uint64_t last;         /* id of the last member that listed it */
    uint8_t refused;       /* gravest cause listed, 0: not refused */
    uint64_t culprit;      /* of that cause */
    bool finished, has_digest, params_differ, digests_differ;
    bool waited;           /* some survivor has launched it and not finished: it waits for the decision */
    bool last_word;        /* its receiver has left: what it said counts in every attempt */
    uint8_t clash;         /* number of it among the group's, 0: none is known */
    uint64_t caller;       /* who has listed its call first, and which */
    struct op_params call;
};

struct edge_break {
    uint64_t a, b;
    uint64_t view;    /* and attempt of an admission in which it was counted last: both ends report the same break */
    uint32_t attempt;
    uint32_t count;
    int64_t since;
    uint64_t gave_view; /* in which it was given up last without counting, at gave_at; 0 never */
    int64_t gave_at;
    bool again;         /* ... for the second time within WORLD_BREAK_NS */
};

struct group_sync {
    uint8_t phase;
    uint32_t round;      /* of this group, never reused */
    bool again;          /* elect once more */
    int64_t elect_at;    /* not before: the master is about to hear why a source was missing; 0: at once.  Staging: there is more to tell */
    uint64_t revision, key_digest, content_digest, persist;
};

struct group {
    void *memory;          /* the table of all that follows and is owned; null: none yet */
    struct group_size size;
    uint8_t phase;
    uint32_t label;
    uint64_t next_number;  /* of the next view to be proposed */
    struct view_record views[2];
    uint32_t current;      /* views[current] is published; the other is being decided */
    bool lost, suspect;    /* a member of the view is lost; a freeze with the same members is wanted */
    uint8_t cause;         /* why, of the freeze that comes or runs */
    uint64_t culprit;
    char text[BOUNDS_TEXT];
    uint32_t attempt, survivors; /* of freezes, counts on; of this one */
    uint32_t link_attempt; /* LINKING: what its ADMIT was numbered */
    bool doubted;          /* LINKING: this is the second attempt, since one end of a pair had the link that the other missed */
    int64_t report_by;     /* FREEZING, LINKING: survivors that have not answered until then are none any more */
    uint32_t counted;      /* scratch of view_sizes */
    struct tally tally;
    uint32_t missing;      /* no member in a slot below has still to come to the sync of the others */
    uint32_t unreported, unlinked; /* FREEZING, LINKING: survivors that this attempt waits for */
    uint32_t decided;      /* members, when the batch under way was decided */
    uint64_t persist;      /* number of the record under way */
    bool in_batch;         /* the view being decided is part of the batch under way */
    bool outdated;         /* another way for its data has been found, or other costs */
    int64_t collect_until; /* NEVER: nothing collected */
    bool silent;           /* ... links fell silent, of which the first is named here */
    uint64_t silent_from, silent_to;
    struct op_name blocked_name;
    uint64_t blocked_on; /* of the last freeze with the cause BLOCKED: operation, and who waits in a vote, */
    uint32_t blocked_vote;            /* ... its number; a vote outlives the freeze */
    struct op_record *records; /* owned */
    uint32_t *record_index;    /* owned: hash of the name -> record + 1 */
    uint64_t last_words;       /* view of which records may hold last words */
    uint32_t record_count, index_size, waited; /* waited: records that somebody waits for */
    struct op_clash clash[BOUNDS_CLASHES];
    uint32_t clashes;
    struct edge_break *breaks; /* owned */
    uint32_t *break_index;     /* owned: hash of a pair -> break + 1 */
    void *break_storage;       /* owned: of break_ages, breaks by the time since when they count */
    struct heap break_ages;
    uint32_t break_count, break_index_size;
    uint64_t broken_view;      /* the last view of which a link ended, or was given up */
    uint64_t revision;     /* next expected by a sync */
    struct group_sync sync;
    uint64_t solving;      /* number of the MASTER_SOLVE under way, 0 none */
    bool solved;           /* solution[] holds a ring */
    uint32_t *solution;    /* owned */
};

struct admission {
    uint8_t phase;
    uint32_t attempt;  /* counts on for ever, over all that ADMIT is sent for */
    uint32_t current;  /* LINKING: the admission's own */
    bool again, doubted; /* doubted: an attempt was made because one end of a pair had the link that the other missed */
    uint32_t unlinked; /* LINKING: who has still to say LINKED */
    int64_t deadline;
    uint64_t persist;
    struct sizes sizes; /* of the answers, fixed with the decision whatever happens before they leave (P11) */
};

/* PROBING: what is measured now, in this order. */
enum measure_step { MEASURE_TRIPS, MEASURE_NEAR, MEASURE_PAIRS, MEASURE_TOGETHER, MEASURE_BACK };

struct optimise {
    uint8_t phase, step;
    bool lost;              /* one of the order, whose group may have ended with it: nobody freezes then */
    uint32_t next_round;    /* number of the next probe: none is used twice, so that late answers are told apart */
    uint32_t waiting;       /* answers of members that are asked for several edges at once, TRIPS and TOGETHER, */
    int64_t answers_by;     /* ... until when */
    int64_t deadline, until, look_at; /* when one of all these ends; when no probes begin any more in this vote; when one may begin beside other work */
    uint64_t persist;
    struct probe_order order;
    uint32_t *slots;        /* owned: members of the order */
    struct probe_place *probe_places; /* owned */
    uint64_t *probe_words, *probe_present; /* owned */
};

/* A rank of a world of a given size. */
struct seat {
    uint64_t attempt;   /* the call that has claimed it, 0 none */
    uint64_t id;        /* its peer; 0: it came when all had been given up */
    uint64_t holder;    /* who joined last under this key: lost, but perhaps in the published view; 0 none */
};

#define FORMATION_ASKED_NS 60000000000 /* longer than a call whose connection broke goes on asking, unless told otherwise */
struct formation {
    uint8_t phase;      /* FORM_ELASTIC: the world has no given size, and nothing of the rest */
    uint8_t loss;       /* enum loss_rule */
    bool once, noted;   /* its name is for one world only; the master has noted that it is used */
    uint8_t cause;      /* given up, or about to be: why */
    uint64_t culprit;
    char text[BOUNDS_TEXT];
    uint32_t size;
    int64_t deadline;   /* FORMING: of the earliest claim; later: when it is forgotten */
    int64_t given_up;   /* when */
    uint64_t revoked;   /* by whom the world was, in any phase; `text` says so; 0: nobody */
    bool unheard;       /* FORMED, OVER: somebody has gone who may not have heard of its first view */
    struct siblings *siblings; /* borrowed: until its first view is on record, or it is forgotten; null: it begins by itself */
    struct seat *seats; /* in the world's table, as what follows */
    uint8_t *claimed;   /* seats that a call has claimed, a bit each, as HEARTBEAT tells it */
};

struct world {
    struct common *common;  /* borrowed */
    uint32_t slot;          /* of the master's table of worlds; SLOT_NONE: it has not begun */
    uint64_t run;
    char name[BOUNDS_WORLD_NAME]; /* "": the default world */
    uint32_t check_in;      /* steps until all of it is checked again */
    bool changed;           /* settle must look again */
    bool had_members;
    uint32_t stall_ms;      /* shortest stall time that was ever asked for here; 0: none was */
    uint32_t voters[VOTE_SYNC + 1]; /* accepted members by what they wait in, as vote_settle last counted */
    bool ghost;             /* a voter died and its vote is waited for: a mistake that tests switch on */
    uint64_t view_floor;    /* of a group that is made next: no view's number is used again */
    struct tally tally;
    uint32_t missing[VOTE_SYNC]; /* by vote of all groups: no member in a slot below has still to come to it */
    struct heap due;        /* registered members, by when something is to be done about them */
    uint32_t *by_id;        /* hash of an id -> slot + 1 */
    uint32_t by_id_size;
    uint64_t *free_set, *due_set; /* of slots: FREE ones; those whose time has come, in the tick under way */
    void *due_storage;
    uint32_t member_room, group_room, probe_room, seat_room; /* entries of its tables; members that those of optimise hold */
    struct member *members; /* behind this struct in its table, as all here */
    struct group *groups;
    struct admission admit;
    struct optimise optimise;
    struct bandwidth bandwidth; /* by rates keys, of members and of absent ones */
    struct absent_list absent;
    struct formation form;
    struct siblings *derived; /* borrowed: what its members create */
    uint64_t losses, losses_seen; /* members that have gone; when `derived` was looked at last */
};

/* moves.c */
/* The one writer of phases: asserts the edge, traces it.  `id` and `view` go into the trace. */
void world_move(struct world *w, enum phase_machine machine, uint8_t *phase, uint8_t to, uint64_t id, uint64_t view,
                const char *why);
void world_tell(struct world *w, const char *what); /* traces what concerns all of the world */

/* roll.c */
/* Around every change of what a tally counts of a member. */
void roll_out(struct world *w, const struct member *mb);
void roll_in(struct world *w, const struct member *mb);
/* The one way of a member from phase to phase; `why` is static. */
void roll_move(struct world *w, struct member *mb, enum member_phase to, uint64_t view, const char *why);
struct member *roll_free(struct world *w); /* the first free slot; null */
void roll_due(struct world *w, const struct member *mb); /* its times have changed */
/* When a member without a control connection is excluded. */
int64_t roll_resume_by(const struct world *w, const struct member *mb);
void roll_mark_due(struct world *w);       /* into due_set, until the next roll_due of each */
/* Who has still to come to this vote: of all groups, or of this one to its sync; 0 nobody. */
uint64_t roll_missing(struct world *w, struct group *g, enum vote_kind kind);
void roll_rebuild(struct world *w);        /* all tables lie elsewhere, with more room */
void roll_check(const struct world *w);

/* member_read.c */
struct group *member_group(const struct world *w, const struct member *mb);
struct member *member_find(const struct world *w, uint64_t id); /* pending or accepted; null */
bool member_registered(const struct member *mb);
/* It went by itself, and knows. */
static inline bool member_went(enum cause cause)
{
    return cause == CAUSE_PEER_LEFT || cause == CAUSE_REVOKED;
}
/* Silence after which one is excluded, a fifth of which heartbeats come in: the stall time of its view, which all of its members have
 * been told; of a newcomer its own.  At most what the master's are. */
int64_t group_dead_ns(const struct world *w, const struct group *g);
int64_t group_heartbeat_ns(const struct world *w, const struct group *g);
int64_t member_dead_ns(const struct world *w, const struct member *mb);
int64_t member_heartbeat_ns(const struct world *w, const struct member *mb);
bool member_silent(const struct world *w, const struct member *mb); /* for the time after which it is excluded */
/* Nearly so long, by two heartbeats: when nothing arrives any more, all are, whenever each was heard last (M7). */
bool member_quiet(const struct world *w, const struct member *mb);
bool member_bound(const struct world *w, uint32_t member, uint32_t conn); /* the connection says so, too */
bool member_accepted_in(const struct world *w, const struct member *mb, const struct group *g);
uint32_t member_count(const struct world *w, const struct group *g, enum member_phase phase); /* null: all groups; not FREE */
uint32_t member_used(const struct world *w); /* slots that are not free */

/* member_rates.c: the rates keys of members, until the next call; RATES_NOBODY for one that is gone.  At most BOUNDS_RING ids. */
const uint64_t *member_rates_keys(const struct world *w, const uint64_t *ids, uint32_t count);

/* member_entry.c */
/* Writes what others are told of it; of one lost since: its key, and nowhere to link with, for a newer list is on its way. */
void member_put(const struct world *w, struct writer *frame, uint64_t id);

/* view_read.c */
struct view_record *view_current(struct group *g);
struct view_record *view_next(struct group *g);
uint32_t view_place(const struct view_record *v, uint64_t id); /* SLOT_NONE: it is no member */
bool view_has(const struct view_record *v, uint64_t id);
bool view_ending(const struct group *g); /* its members are frozen */
/* Every accepted member surely has the published view (it may be left out of a freeze only then: nobody is ever more than
 * one view behind, M5). */
bool view_known_to_all(const struct world *w, const struct group *g);
struct sizes view_sizes(struct world *w, const struct group *g, bool joining);

/* linking.c */
bool linking_takes_part(const struct member *mb);
/* ADMIT of the next view, to one member or to all of it. */
void linking_send(struct world *w, struct group *g, uint32_t attempt, struct member *only);
/* A new attempt to link the members of the group's next view; returns its number. */
uint32_t linking_begin(struct world *w, struct group *g);

/* member_out.c */
/* "rank 2 (peer 1.3 at 10.0.0.4:48150)", with its rank in the view; `out` holds MEMBER_TEXT bytes. */
void member_who(struct world *w, const struct member *mb, char *out);
/* Out: FENCE unless it left by itself, connection closed, what it was part of notes the loss (M1).  `text` is static: it is logged. */
void member_exclude(struct world *w, struct member *mb, enum cause cause, const char *text);
/* The same; `why` is static, it is traced; `text` is copied: it goes to the log, to the others and to the excluded one. */
void member_exclude_told(struct world *w, struct member *mb, enum cause cause, const char *why, const char *text);
void member_violation(struct world *w, struct member *mb, const char *what); /* bytes or a state that cannot be */

/* member.c */
void member_register(struct world *w, uint32_t conn, const struct msg_register *reg);
/* Pending, and welcomed; null: refused. */
struct member *member_newcomer(struct world *w, uint32_t conn, const struct msg_register *reg);
/* The call that made it a member comes again: its connection broke before it heard of its first view. */
void member_reclaim(struct world *w, struct member *mb, uint32_t conn);
void member_closed(struct world *w, struct member *mb);
void member_heartbeat(struct world *w, struct member *mb, const struct msg_heartbeat *hb, uint64_t view);
void member_tick(struct world *w);
void member_sweep(struct world *w); /* gone ones give their slots back */

/* formation.c */
bool formation_complete(const struct world *w);   /* every seat is claimed, and nothing has failed */
bool formation_kept(const struct world *w);       /* nobody is in it, and somebody may still ask what became of a call */
int64_t formation_deadline(const struct world *w);
static inline uint32_t formation_claimed_bytes(uint32_t seats)
{
    return (seats + 7) / 8;
}
void formation_seats(const struct world *w, struct seats *out); /* while it is forming */
void formation_check(const struct world *w);
uint32_t formation_key(const struct world *w, uint64_t id); /* of one that is gone */
/* Before the record of the first view a loss ends all: noted, and true; the member is told with the others. */
bool formation_loses(struct world *w, struct member *mb, enum cause cause, const char *text);
/* A member has gone: if it may not have heard of the first view, its call will ask. */
void formation_gone(struct world *w, const struct member *mb, enum cause cause);
void formation_begin(struct world *w, const struct claim *c);
void formation_tick(struct world *w);
void formation_formed(struct world *w);           /* the first view is on record */
/* Ends it for all, unless its record is on its way or something else has; `format` says why. */
__attribute__((format(printf, 4, 5))) void formation_fail(struct world *w, enum cause cause, uint64_t culprit, const char *format, ...);

/* ending.c */
bool ending_begun(const struct world *w);          /* nothing new is decided any more */
bool ending_with(const struct world *w, const struct view_record *next); /* this view is the last */
bool ending_wants(const struct world *w, struct group *g); /* its last view is still to be made */
void ending_blame(const struct world *w, struct group *g); /* a revoked one: why its view ends */
void ending_published(struct world *w);            /* a last view has left */
void ending_revoke(struct world *w, struct member *mb); /* LEAVE says so, too */
void ending_settle(struct world *w);

/* keys.c */
void keys_give(struct world *w);   /* before links are made for the next view: to those who join, or they are refused */
void keys_settle(struct world *w); /* ... since nobody is left to admit them */
void keys_take(struct world *w);   /* ... whose admission is decided */

/* seats.c */
void seats_settle(struct world *w); /* gives up what has failed */

/* together.c */
bool together_wait(struct world *w);    /* it is linked, and its siblings may not be; false: it begins by itself */
void together_unready(struct world *w); /* ... and has to be linked anew */
void together_durable(struct world *w); /* the record is: that of all */
void together_settle(struct world *w);  /* what has failed in one of them fails here */
void together_leave(struct world *w);   /* it has begun, or is forgotten */

/* parent.c */
void parent_look(struct world *w); /* at what its own members create, when some have gone */
void parent_ends(struct world *w);

/* redial.c */
void redial_begin(struct world *w, struct member *mb); /* an accepted member has no control connection any more */
/* A member reports a broken link to this one; `refused`: the address of this one refuses new connections. */
void redial_link_lost(struct world *w, struct member *mb, bool refused);

/* suspect.c */
void suspect_report(struct world *w, struct member *from, const struct msg_suspect *s);
void suspect_blocked(struct world *w, struct member *from, const struct peer_wait *wait);
/* Fills what a heartbeat tells of whom `mb` waits for. */
void suspect_tell_wait(const struct world *w, const struct member *mb, struct msg_heartbeat *hb);
void suspect_tick(struct world *w);
int64_t suspect_deadline(const struct world *w);
/* A freeze with the same members is wanted. */
void suspect_group(struct world *w, struct group *g, enum cause cause, uint64_t culprit, const char *text);

/* report.c: the reports of one freeze */
void report_reset(const struct world *w, struct group *g); /* last words stay */
/* Whether a report of this freeze and attempt is waited for from the member (M2); only such a one is worth memory. */
bool report_counts(const struct world *w, const struct group *g, const struct member *mb, uint64_t view, uint32_t attempt);
/* Whether the last words of a member that leaves, about this view, count (B11); takes them, false: they cannot be. */
bool report_last_counts(const struct world *w, const struct group *g, const struct member *mb, uint64_t view);
bool report_last_words(struct world *w, struct group *g, struct member *mb, uint32_t reports, struct reader *r);
void report_index(const struct world *w, struct group *g); /* the records have moved */
/* Whether they find room, or why not. */
enum report_verdict { REPORT_TAKEN, REPORT_WRONG, REPORT_FULL, REPORT_NO_MEMORY };
enum report_verdict report_take(struct world *w, struct group *g, struct member *mb, const struct msg_frozen *f, struct reader *r);
void report_decide(struct world *w, struct group *g, struct view_record *next); /* M3 */

/* view_plan.c: how a view after `from` does its operations, its ring known; what is known of another ring; all but trees. */
void view_plan(const struct world *w, const struct view_record *from, struct view_record *v);
void view_plan_ring(const struct world *w, const struct view_record *from, struct view_record *v);
bool view_plan_differs(const struct world *w, const struct view_record *v); /* what a byte costs is known to be clearly something else now */
void view_plan_look(struct world *w); /* the same of a few groups, each looked at seldom: they are outdated */

/* view.c */
void view_settle(struct world *w, struct group *g);
void view_frozen(struct world *w, struct member *mb, struct reader *r);
void view_tick(struct world *w);
int64_t view_deadline(const struct world *w);
void view_persisted(struct world *w, uint64_t number);
/* Begins the next view under a new number: members are the accepted ones of the group and, if asked, the joining ones. */
void view_propose(struct world *w, struct group *g, enum vote_kind answers, bool joining);
void view_publish(struct world *w, struct group *g);
void view_send(struct world *w, struct group *g, struct member *only); /* the published view, to one member or to all */
void view_send_freeze(struct world *w, struct group *g, struct member *only);
/* Ring, sizes and the rest of the next view, once its members and missing edges are known. */
void view_finish(struct world *w, struct group *g, bool joining);
/* The view has nobody left: the group is as if it had just been made, but for its numbers. */
void view_empty(struct world *w, struct group *g);
/* One MASTER_PERSIST with the next views of all groups (only: this one) that are marked in_batch. */
uint64_t view_persist(struct world *w, struct group *only);
/* The same in a batch that has begun, of this number: `behind` records follow. */
void view_put_batch(struct world *w, struct group *only, struct writer *to, uint64_t number, uint32_t behind);

/* breaks.c */
struct edge_break *breaks_find(const struct world *w, const struct group *g, uint64_t x, uint64_t y); /* null: there is none */
/* Makes it if there is none, in the place of the oldest if there is no room. */
struct edge_break *breaks_get(const struct world *w, struct group *g, uint64_t x, uint64_t y);
void breaks_since(struct group *g, struct edge_break *k, int64_t since);
void breaks_rebuild(const struct world *w, struct group *g); /* the table lies elsewhere */
void breaks_clear(const struct world *w, struct group *g);
void breaks_check(const struct world *w, const struct group *g);

/* edges.c */
bool edges_missing(const struct view_record *v, uint64_t x, uint64_t y);
bool edges_misses(struct view_record *v, uint64_t from, uint64_t to, uint32_t capacity); /* says a member of a view being made; false: no room */
struct edge_report {
    uint64_t from, to;
    bool counts, unreachable;
};
/* Counts a break of the edge; true if it has become a missing one of the views to come.  Unreachable: it could not be made
 * at all, which once is enough, provided that somebody can stand in. */
bool edges_broken(struct world *w, struct group *g, const struct edge_report *e);
/* The breaks of this member's edges that this view has counted so far do not count. */
void edges_pardon(const struct world *w, struct group *g, uint64_t id);
void edges_give_up(struct world *w, struct group *g, uint64_t a, uint64_t b); /* without counting */
/* LINKED that nobody asked for: a member has a link again where its view misses one. */
void edges_linked(struct world *w, struct member *mb, const struct msg_linked *l, uint64_t view, struct reader *r);
void edges_unlinked(struct group *g, uint64_t from, uint64_t to); /* ... and has lost it */
void edges_unlinked_all(struct group *g, uint64_t from); /* its connection was resumed: it will say again which it has */
bool edges_healed(const struct world *w, const struct group *g); /* a next view would miss fewer */
/* Into the next view: the missing edges of the published one that have not healed. */
void edges_inherit(struct world *w, struct group *g);
/* All that is missing is noted, LINKED of all included: adds what breaks too often and names relays; the id of a member that cannot be relayed
 * and has to go, 0 if all is well.  *again: not before one more attempt, since one end of a pair has the link that the other had given up
 * before the first heard of this one; *doubted: that was so before, or is now. */
uint64_t edges_close_linked(struct world *w, struct group *g, bool *doubted, bool *again);
/* The same where nobody has been asked to make links yet: true if that has to be tried before anybody loses its place. */
bool edges_unsure(struct world *w, struct group *g);
/* The member that edges_close_linked has returned loses its place: it is told whom it has no link with, and at which addresses these were tried. */
void edges_exclude(struct world *w, struct group *g, uint64_t id);

/* view_ring.c */
void ring_repair(struct world *w, const struct view_record *from, struct view_record *to);
uint32_t ring_costs(const struct world *w, const struct view_record *v, uint64_t *cost);

/* view_trees.c: the trees of a view, members and missing edges known, and what is predicted of them; whether it would have others now */
void view_trees(struct world *w, const struct view_record *from, struct view_record *v);
bool view_trees_differ(struct world *w, struct group *g);

/* vote.c */
void vote_take(struct world *w, struct member *mb, const struct msg_vote *v, uint64_t header_view);
void vote_settle(struct world *w);
/* A member that the vote or the admission of this one still needs; 0: none, or it waits for nothing. */
const char *vote_name(enum vote_kind kind); /* "an update" */
uint64_t vote_waits_for(struct world *w, const struct member *mb);
bool vote_all_in(const struct world *w, const struct group *g, enum vote_kind kind); /* null: all groups */
bool vote_quiet(const struct world *w, const struct group *g); /* answers may leave; null: all groups */
void vote_answer(struct world *w, struct member *mb, enum answer_result result, uint64_t value,
                 const struct sizes *sizes, const char *text);
void vote_answered_by_view(struct world *w, struct member *mb, const struct view_record *v);
void vote_replay(struct world *w, struct member *mb); /* the stored answer once more */

/* admit.c */
void admit_stop(struct world *w, const char *why); /* nothing of it is under way any more */
void admit_settle(struct world *w);
void admit_linked(struct world *w, struct member *mb, uint64_t view, struct reader *r);
void admit_persisted(struct world *w, uint64_t number);
void admit_decided(struct world *w, uint64_t number); /* the record of this number is made of what stands ready */
void admit_tick(struct world *w);
/* Fixes the sizes that the answers of this decision carry. */
void admit_fix_sizes(struct world *w);
/* Publishes the views of the batch and answers everybody else who waits in this kind of vote. */
void admit_publish(struct world *w, enum vote_kind kind);

/* source.c */
/* Voters of the group's sync in rank order: the next at or behind *at, null at the end. */
struct member *voter_next(const struct world *w, const struct group *g, uint32_t *at);
bool source_has(const struct member *mb); /* it holds what this round has elected, or has staged it */
/* ELECTED to all that can be told and were not. */
void source_tell(struct world *w, struct group *g);
/* ... once more to this one alone, if it was told. */
void source_tell_again(struct world *w, struct group *g, const struct member *mb);

/* election.c */
void election_settle(struct world *w, struct group *g);
bool election_known(const struct world *w, const struct member *mb, const struct msg_staged *s); /* a round that there has been */
void election_staged(struct world *w, struct member *mb, const struct msg_staged *s);
void election_persisted(struct world *w, uint64_t number);
int64_t election_deadline(const struct world *w);
void election_reset(struct world *w, struct group *g, const char *why); /* nobody waits in it any more */

/* optimise.c */
void optimise_settle(struct world *w);
void optimise_measured(struct world *w, struct member *mb, const struct msg_measured *ms);
void optimise_solved(struct world *w, const struct master_event *e);
void optimise_persisted(struct world *w, uint64_t number);
void optimise_tick(struct world *w);

#endif
