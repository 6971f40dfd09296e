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
/* It went by itself, and knows. */
static inline bool member_went(enum cause cause)
{
    return cause == CAUSE_PEER_LEFT || cause == CAUSE_REVOKED;
}
static inline uint32_t formation_claimed_bytes(uint32_t seats)
{
    return (seats + 7) / 8;
}
/* Whether they find room, or why not. */
enum report_verdict { REPORT_TAKEN, REPORT_WRONG, REPORT_FULL, REPORT_NO_MEMORY };
struct edge_report {
    uint64_t from, to;
    bool counts, unreachable;
};

#endif
