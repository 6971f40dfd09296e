/* program.h - what a process of the simulated cluster does: the loop of a training program.
 *
 * update, sizes, perhaps optimise, an all-reduce that tells newcomers the step, shared state, then a body of all-reduces that is a
 * function of (seed, group, step), so that all members make the same calls.  Errors are answered alike too.
 * Invariant: a call's buffers belong to the library from launch to return; before and after, their content is checked.
 * SPDX-License-Identifier: MIT */
#ifndef PCCL_TESTS_SIM_PROGRAM_H
#define PCCL_TESTS_SIM_PROGRAM_H

#include "session/bulk.h"
#include "sim_cluster.h"

enum { PROGRAM_OPS = 1000, PROGRAM_ENTRIES = 3 };

enum program_phase {
    PROGRAM_START, PROGRAM_CONNECTING, PROGRAM_UPDATE, PROGRAM_SIZES, PROGRAM_OPTIMISE, PROGRAM_ALIGN, PROGRAM_SYNC,
    PROGRAM_BODY, PROGRAM_LEAVING, PROGRAM_ENDED
};

struct call {
    struct node *node;
    uint32_t slot, op;         /* op: PROGRAM_OPS for the aligning one */
    uint64_t key;              /* names the call in the whole group */
    struct op_params params;
    bool pending, odd;         /* odd: this process passed other parameters than the rest */
    bool in_place, no_memory;
    bool failed;               /* this process is why it cannot be done: no memory, or its executor failed */
    unsigned char *in, *out, *scratch;
    size_t bytes, out_bytes, capacity; /* bytes: of the input */
    /* in the order of issue: program_parts.c */
    bool ordered, uneven, bad_argument;
    uint64_t known;            /* view of its sizes */
    uint32_t world, rank, root; /* as the program knows them */
    size_t base;               /* elements of an even part */
    uint64_t shape;
    size_t *lists;             /* owned: counts and places */
    bool pair, any;            /* a message: program_pair.c; from any source */
    bool many;                 /* ... one of several to one receiver: program_match.c */
    uint32_t at;               /* ... which of its calls, for oracle_match.c */
    uint64_t from, to, pair_tag;
    uint32_t partner;          /* rank of the other one, as the program knows it */
    int64_t limit;
    struct window_message *window; /* the window's that it is; null: the program's */
    uint64_t input_hash;       /* of what it was given */
    uint64_t retired_hash;     /* of the buffers after the return */
};

enum op_status { OP_TODO, OP_PENDING, OP_DONE_OK, OP_DONE_BAD, OP_AGAIN };

enum { MATCH_SOURCES = 3, MATCH_CALLS = 7, MATCH_ANY = MATCH_SOURCES };

/* What is compared of a step beside its calls, whose names are their numbers. */
enum program_names {
    NAME_ALIGNED = PROGRAM_OPS + 1, NAME_SIZES_BEFORE, NAME_SIZES_AFTER, NAME_SYNC, NAME_STATE, NAME_REVISION, NAME_QUERY,
    NAME_WINDOW, NAME_WINDOW_MADE, NAME_LINE, NAME_PAIR
};

struct match { /* the messages of a step that one process receives from several: program_match.c */
    uint32_t calls, sources;   /* calls of the step; 0: it has no such messages */
    bool sure;                 /* each receive gets one, whatever comes first */
    uint64_t to, source[MATCH_SOURCES];
    bool member[MATCH_CALLS];  /* by call: whether it is one of these */
    bool unsent[MATCH_CALLS];  /* its source has come apart from the rest, and does not send it */
    uint8_t sent_by[MATCH_CALLS], named[MATCH_CALLS]; /* index of the source; MATCH_ANY */
    uint32_t again;            /* bit per call: its receive was matched with nothing, and is called again */
};

struct program {
    enum program_phase phase;
    uint64_t step, seen_step;
    uint32_t attempt, align_attempt, lonely, connects;
    uint64_t any_waited; /* the last step in which its receive from any source has waited beside another one's, for ever */
    bool first, told_end;
    uint64_t inside;           /* run of the world of a given size that it is, or was, in; 0: none */
    bool works;                /* it makes calls there */
    uint64_t split_run, splits; /* program_split.c: of whose run, how many */
    bool leave;                /* a wish: destroy at the next turn */
    bool want_vote;            /* ... to update where the others launch */
    int64_t not_before;        /* a late program */
    int64_t cancel_ns;         /* wishes for the next launch */
    uint32_t want_cancel, want_deadline;
    uint64_t callers[CLUSTER_NODES]; /* of its last split */
    bool want_mismatch, want_no_memory, want_drift, want_stale;
    /* the open vote */
    uint8_t vote;              /* enum vote_kind asked for, 0 none */
    bool vote_done;
    struct session_outcome vote_outcome;
    bool query_asked, query_over;
    bool connect_done;
    struct sizes sizes;        /* read after the last phase call */
    uint64_t sizes_hash;
    /* the body */
    uint32_t ops;
    uint32_t sync_at, upto;    /* the calls from this one on come after the step's sync; those before this one may be launched */
    enum op_status status[PROGRAM_OPS + 1];
    uint32_t order[PROGRAM_OPS];
    uint64_t known[CLUSTER_NODES]; /* members by rank, as it knew them at the beginning of the step */
    uint32_t knows;
    struct match match;
    uint64_t results;          /* hash over the results of this step */
    struct call *call;         /* owned, by slot */
    /* the body as a list with retry */
    bool listed;
    struct bulk list;
    unsigned char list_state[PROGRAM_OPS];
    uint32_t tries[PROGRAM_OPS + 1];
    /* shared state */
    bool synced;
    uint64_t revision, synced_as; /* of its last successful sync; its id then */
    struct sync_state state;
    struct sync_entry entries[PROGRAM_ENTRIES];
    uint32_t state_leaves;
    unsigned char *state_data, *state_before;
    uint64_t state_bytes;
};

/* program_ops.c */
void program_describe_op(const struct cluster *cl, uint32_t group, uint64_t step, uint32_t j, struct op_params *params,
                         bool *in_place, uint64_t *tag);
uint32_t program_op_count(const struct cluster *cl, uint32_t group, uint64_t step);
/* Whether inputs have fractions: the order of folding then shows in the last bits. */
double program_factor(uint32_t node); /* what that process multiplies its input by, of a pre-multiplied sum */
bool program_fractions(const struct op_params *params);
void program_input(const struct cluster *cl, uint32_t node, uint64_t key, const struct op_params *params, void *out);
uint64_t program_hash(const unsigned char *bytes, size_t size);
bool program_launch(struct cluster *cl, struct node *n, uint32_t op);  /* false: no slot, or refused for now */
void program_collect(struct cluster *cl, struct node *n);
void program_backup(struct run *r); /* its executors are about to begin: where an in-place call keeps what they write over, and what they sum up or hand on goes */
bool program_idle(const struct node *n);
uint64_t program_name(const struct node *n, uint64_t what); /* a call, or one of enum program_names */
uint64_t program_key(const struct node *n, uint32_t op, uint32_t attempt);

/* program_parts.c */
bool parts_ordered(const struct cluster *cl, uint32_t group, uint64_t step, uint32_t j);
void parts_shape(const struct cluster *cl, const struct node *n, struct call *c, struct op_params *p);
void parts_lists(struct call *c, struct session_launch *l);
bool parts_odd(struct call *c, struct op_params *p); /* of uneven parts: other counts than the others'; false: there is nothing to differ in */
bool parts_other_root(struct call *c); /* false: it has none, or there is no other */
bool parts_same_for_all(const struct call *c);         /* everybody's output has the same bits */
size_t parts_between(const struct call *c, uint32_t from, uint32_t to); /* elements that go from one rank to another */
size_t parts_moved(const struct call *c, uint32_t from, uint32_t to);   /* ... if they are two, and this kind has such a part */
size_t parts_from(const struct call *c, uint32_t from, uint32_t to);    /* first of them in the input */
size_t parts_input(const struct call *c, uint32_t rank);
size_t parts_output(const struct call *c, uint32_t rank);
void parts_given(const struct cluster *cl, const struct view_record *v, const struct call *c, uint32_t rank, unsigned char *out);
bool parts_moved_right(const struct cluster *cl, const struct view_record *v, const struct call *c, uint32_t self);

/* program_pair.c */
void pair_begin(const struct cluster *cl, struct node *n);
bool pair_chosen(const struct cluster *cl, const struct node *n, uint32_t j); /* call j of the step is a message */
bool pair_used(const struct cluster *cl);
bool pair_mine_to_call(const struct cluster *cl, const struct node *n, uint32_t j);
void pair_shape(const struct cluster *cl, const struct node *n, struct call *c, struct op_params *p);
bool pair_launch_of(struct cluster *cl, struct node *n, struct call *c, struct session_launch *l); /* false: the other is lost */
void pair_unsaid(struct cluster *cl, const struct node *n, const struct call *c); /* it was not made, and will be called again */
bool pair_outcome(struct cluster *cl, const struct node *n, const struct call *c, const struct session_outcome *o); /* true: call again */

bool pair_is_member(const struct cluster *cl, const struct node *n, uint64_t id);
bool pair_has_left(const struct cluster *cl, uint64_t id);
bool pair_others_doing(const struct cluster *cl, const struct session_outcome *o); /* another one has left, which is no fault */

/* program_match.c */
bool match_used(const struct cluster *cl);
bool match_sends(const struct node *n, uint32_t j); /* whoever sends it does */
void match_begin(const struct cluster *cl, struct node *n);
void match_ends(const struct node *n, uint32_t j, uint64_t *from, uint64_t *to);
void match_shape(const struct cluster *cl, const struct node *n, struct call *c, struct op_params *p);
void match_launch_of(struct cluster *cl, struct node *n, struct call *c, struct session_launch *l);
bool match_pauses(struct cluster *cl, struct node *n); /* after a call: the next one comes later */
uint64_t match_word(const struct node *n, uint32_t sender, uint32_t op); /* the first of its content */

/* oracle_match.c */
void match_launched(struct cluster *cl, const struct node *n, struct call *c);
void match_unsaid(struct cluster *cl, const struct node *n, const struct call *c);
bool match_outcome(struct cluster *cl, const struct node *n, const struct call *c, const struct session_outcome *o); /* true: call again */

/* refused.c */
bool refused_step(const struct cluster *cl, uint64_t step); /* with such calls */
bool refused_one_by_one(const struct cluster *cl, const struct node *n); /* each call is made when the one before it has returned */
void refused_begin(struct cluster *cl, struct node *n);                  /* a step */
void refused_wish(struct cluster *cl, struct node *n, struct call *c, struct session_launch *launch);

/* program_body.c */
bool program_launch_all(struct cluster *cl, struct node *n);

/* program.c */
void program_turns(struct cluster *cl, struct node *n); /* until it waits */
/* Calls connect, or takes its result; false: still open. */
bool program_connect(struct cluster *cl, struct node *n, struct session_outcome *out);
bool program_vote(struct cluster *cl, struct node *n, uint8_t kind, struct session_outcome *out); /* false: still open */
uint32_t program_sync_at(const struct cluster *cl, const struct node *n, uint32_t ops); /* which of so many calls its sync comes before */

/* program_form.c */
void form_event(struct cluster *cl, struct node *n);
int64_t form_longest_ns(const struct options *o); /* that all calls of one program take where nothing goes wrong */
/* A call that creates a world has ended: as the others of the same formation; 0: the run tells which. */
void form_outcome(struct cluster *cl, const struct node *n, const struct session_outcome *o, uint64_t formation);

void form_again(struct cluster *cl, struct node *n); /* it has left: its next call */

/* program_inside.c */
bool inside_begin(struct cluster *cl, struct node *n); /* a world of a given size has begun; true: it works there */
bool inside_ends(const struct program *p);             /* with this step */
void inside_leave(struct cluster *cl, struct node *n);
bool inside_same(const struct node *n, uint64_t run);
bool inside_has_left(const struct cluster *cl, uint64_t id);

/* program_split.c */
void split_again(struct cluster *cl, struct node *n);
void split_event(struct cluster *cl, struct node *n);

/* program_bulk.c */
void program_bulk_begin(struct cluster *cl, struct node *n);
bool program_bulk_turn(struct cluster *cl, struct node *n); /* true: the list is over */
void program_bulk_ended(struct cluster *cl, struct node *n, uint32_t op, const struct session_outcome *o);
bool program_bulk_same(const struct program *p); /* all peers have made the same calls */

/* program_state.c */
void program_state_init(struct cluster *cl, struct node *n);
void program_state_vote(struct cluster *cl, struct node *n, struct msg_vote *vote);
void program_state_result(struct cluster *cl, struct node *n, const struct session_outcome *o);
void program_state_evolve(struct node *n);
void program_state_free(struct program *p);

/* oracle.c: what is checked of calls */
void oracle_call(struct cluster *cl, const struct node *n, const struct call *c, const struct session_outcome *o);
struct outcome_record *oracle_record(struct cluster *cl, uint64_t key); /* of that key, made if it is new */
void oracle_launched(struct cluster *cl, const struct call *c);
void oracle_agree(struct cluster *cl, const struct node *n, const char *what, uint64_t key, uint64_t value);

/* oracle_calm.c */
void oracle_calm(struct cluster *cl, const struct node *n, const struct call *c, const struct session_outcome *o);

/* oracle_bytes.c */
void oracle_bytes(struct cluster *cl, const struct node *n, const struct call *c, const struct session_outcome *o);

/* reference.c: an independent all-reduce */
bool reference_check(const struct cluster *cl, const struct view_record *view, const struct call *c, char *why, size_t size);

#endif
