/* sim_cluster.h - a whole cluster on virtual time: the third shell of the step functions.
 *
 * One thread, one seeded generator, one heap of events ordered by (time, sequence).  The master, the sessions and the executors are
 * the library's own; connections, programs, memory and faults are made here.  Whatever a seed decides is drawn from
 * cluster.rng or computed from the seed, so that the same seed gives the same trace.
 *
 * Invariant: machines are stepped from cluster_run only, one event at a time; what a step asks for is done before the next one.
 * SPDX-License-Identifier: MIT */
#ifndef PCCL_TESTS_SIM_CLUSTER_H
#define PCCL_TESTS_SIM_CLUSTER_H

#include <stdbool.h>
#include <stdint.h>

#include "collectives/exec_wait.h"
#include "collectives/flow_window.h"
#include "core/clock.h"
#include "core/mix.h"
#include "core/random.h"
#include "master/master.h"
#include "session/session.h"
#include "process.h"
#include "sim_match.h"
#include "used_algorithms.h"

enum {
    CLUSTER_NODES = 80,      /* processes of a run, dead ones included */
    CLUSTER_LANES = 4,
    CLUSTER_WORLDS = 4,
    SPLIT_WORLD = 2,         /* if there are splits: of the world before */
    CLUSTER_LABELS = 4,    /* peer groups of one world, at most */
    CLUSTER_GROUPS = CLUSTER_WORLDS * CLUSTER_LABELS,
    CLUSTER_BYTES = 16384,   /* largest buffer of an operation; most seeds keep to options.op_bytes */
    PLACES_APART = 8,        /* latencies: how much further two may be apart than others */
    CLUSTER_MASTER = CLUSTER_NODES,   /* event target and end of connections: the master */
    CLUSTER_NOBODY = 0xFFFF, /* event target: the cluster itself */
    CLUSTER_TAIL = 400,      /* lines of trace kept for a failing seed */
    CLUSTER_LINE = 200,
};

/* ---- faults and the phases they hit --------------------------------------------------------------------------------- */
#define FAULT_LIST(X)                                                                                                  \
    X(CRASH, "crash") X(POWER, "host gone") X(FREEZE, "freeze") X(PARTITION, "partition") X(ONE_WAY, "one way cut") X(APART, "pair cut for good") \
    X(MASTER_LINE, "master line lost") X(MASTER_CUT, "master cut off") X(LINK, "control link reset")                   \
    X(BUNDLE, "data reset") X(DIAL, "dial fails") X(DUPLICATE, "late hello") X(MEMORY, "no backup memory")             \
    X(STAGING, "no staging memory") X(LIAR, "lying source") X(HOSTILE, "hostile frame") X(LATE, "late call")           \
    X(CANCEL, "cancel") X(DEADLINE, "deadline") X(MISMATCH, "mismatch") X(DRIFT, "state differs") X(STALE, "old revision") X(LEAVE, "leave")    \
    X(JOIN, "join")                                                                                                    \
    X(MASTER_PAUSE, "master paused") X(MASTER_DEATH, "master dead") X(RETURN, "leave and return") \
    X(VOTE, "vote, no launch") X(SLOW, "slow link")                     \
    X(POISON, "failed invariant") X(RESULT, "wrong result") X(EXECUTOR, "failed executor") \
    X(PAIR, "pair cut") X(SPARSE, "many pairs cut") X(RELAY, "relay lost")                                               \
    X(LIE_READY, "wrong READY") X(LIE_HOLD, "wrong HOLD") X(LIE_FINISHED, "wrong FINISHED")                            \
    X(LIE_STAGED, "wrong STAGED") X(GROWTH, "no memory to grow") X(REVOKE, "revoke") X(NO_DATA, "no descriptors for data") X(RESET, "all reset")
#define FAULT_NAME_(name, text) FAULT_##name,
enum fault_kind { FAULT_LIST(FAULT_NAME_) FAULT_COUNT, FAULT_DRAWN = FAULT_NO_DATA /* the rest has draws of its own */ };
#undef FAULT_NAME_

#define PHASE_LIST(X)                                                                                                  \
    X(REGISTERING, "register") X(CONNECTING, "connect") X(IDLE, "idle") X(ANNOUNCED, "announce") X(FIRST, "first")     \
    X(MIDDLE, "middle") X(LAST, "last") X(HOLD, "hold") X(FROZEN, "frozen") X(DECIDING, "decide")                      \
    X(INSTALLING, "install") X(VOTING, "vote") X(LINKING, "link up") X(PROBING, "probe") X(STAGING, "staging")         \
    X(STAGING_FROZEN, "staging*")
#define PHASE_NAME_(name, text) PHASE_##name,
enum phase { PHASE_LIST(PHASE_NAME_) PHASE_COUNT };
#undef PHASE_NAME_

struct fault {
    enum fault_kind kind;
    bool armed;          /* fires when `node` enters `phase`; otherwise at its time */
    bool done;
    uint16_t node, other;
    enum phase phase;
    int64_t for_ns;      /* of those that end */
};

enum { FAULTS_MAX = 24 };

/* ---- what a seed chooses -------------------------------------------------------------------------------------------- */
struct options {
    uint64_t seed;
    uint32_t worlds;         /* at the master, by name; the first is the default one */
    bool forming, together;  /* the others have a given size: programs create them, one after the other; processes are in all worlds */
    uint32_t peers, groups, lanes, steps, ops, op_bytes;
    uint32_t max_members;    /* of the run, and of a view */
    uint32_t part_bytes;     /* longer lists of the master travel in parts; 0: as long as the library's */
    uint32_t max_edges;      /* missing ones of a view */
    uint32_t idle_tags;      /* of a voter, before an update makes a view */
    bool small_limits, verify, think, windows; /* windows: of contributions grow with their links, and rooms with them */
    bool bulk;               /* bodies are lists with retry, with different windows */
    uint32_t query_percent, optimise_percent, sync_percent, update_on_error_percent, update_first_percent;
    uint32_t repeat_percent; /* syncs to which all members come with the revision of the last one */
    bool places;             /* some pairs, of which the master may be one, are further apart than others */
    int64_t latency_ns, jitter_ns, heartbeat_ns, dead_ns, stall_ns, persist_ns, fault_ns, measure_ns;
    uint32_t split_percent;  /* deliveries cut into pieces */
    uint32_t socket_bytes;   /* room of a data connection */
    uint32_t rate;           /* bytes a second from one process to another; 0: no limit */
    uint32_t frame_bytes, eager_bytes, mesh_members, room_slots, leaf_bytes, faults;
    bool ring;           /* programs wish for what goes round it or along it */
    const struct choose_wishes *wishes; /* borrowed: what all wish for, from sim_run --algo; null: as drawn */
    uint32_t check_every;    /* steps of a machine between two looks at all of its invariants */
    uint32_t burst;          /* calls of the first and third step, launched in a few turns; 0: as many as `ops` */
    uint32_t burst_at;       /* how many of one process are launched when something goes wrong */
    uint32_t refused, refused_by; /* calls of some steps, each of which is refused, and why (refused.c); 0: there are none */
    bool crowd, refused_ahead; /* 33 to 64 peers; one of them makes those calls ahead of the rest */
    bool growth;             /* small tables, many calls at once */
    bool scripted;           /* named scenarios: no drawn faults, programs given by the test */
};

/* ---- events --------------------------------------------------------------------------------------------------------- */
enum event_kind {
    EVENT_DELIVER = 1, /* a: channel, b: generation, c: direction and bytes */
    EVENT_CLOSED,      /* a, b: channel; c: end that is told */
    EVENT_STUCK,       /* a, b: channel; c: since when */
    EVENT_WRITABLE,    /* a, b: channel; c: end */
    EVENT_DIALLED,     /* a: kind and lane of the link, b: peer id, c: number */
    EVENT_DIAL_FAILED, /* as before */
    EVENT_MASTER_DIAL, /* b: dial count */
    EVENT_TICK,
    EVENT_LINKS,       /* timers of the links */
    EVENT_STEP,        /* a: session_event_kind, b: peer or slot, c: number */
    EVENT_LANES_STOP,  /* a: slot, b: use */
    EVENT_PROGRESS,    /* lanes look whether operations move */
    EVENT_PROGRAM,     /* the program's thread runs; b: what woke it */
    EVENT_WINDOW,      /* a: enum window_turn; b: of the program, which window */
    EVENT_FAULT,       /* a: index */
    EVENT_FAULT_END,   /* a: index */
    EVENT_HEAL,
    EVENT_PERSISTED, EVENT_SOLVED, EVENT_MEASURED, EVENT_KNOCK, /* reset_fault.c */
};

struct event {
    int64_t at;
    uint64_t order;
    uint16_t kind, node;
    uint32_t a;
    uint64_t b, c;
};

/* ---- connections ---------------------------------------------------------------------------------------------------- */
enum role { ROLE_NONE, ROLE_MASTER, ROLE_DIALLING, ROLE_HELLO, ROLE_HELD, ROLE_CONTROL, ROLE_DATA, ROLE_SYNC };

struct channel_end {
    uint16_t node;      /* or CLUSTER_MASTER */
    uint8_t role;       /* enum role */
    uint8_t link_kind;  /* enum link_kind while dialling */
    uint16_t lane;
    bool closed;        /* by its owner, or told */
    uint64_t peer;      /* id of the other side; at the master: slot of the connection */
    uint64_t number;
};

struct pipe { /* one direction */
    unsigned char *bytes;
    uint32_t capacity, used, delivered, consumed, held;
    int64_t last_at;
    uint16_t pace;       /* counts changes of its rate: arrivals that were posted before the last one are void */
    bool eof, eof_held, blocked;
};

struct channel {
    uint32_t generation;
    bool open;
    int64_t stuck_since;
    struct channel_end end[2];
    struct pipe pipe[2]; /* [i]: sent by end i */
};

/* ---- one process ---------------------------------------------------------------------------------------------------- */
struct data_connection {
    uint32_t channel, generation;
    bool up;
    /* sending: one frame in hand */
    bool busy;
    unsigned char head[64];
    uint32_t head_bytes, body_bytes, sent, tx_slot, tx_partner;
    const unsigned char *body;   /* borrowed from the operation, or scratch */
    unsigned char *scratch;
    /* receiving: payload of the frame at hand */
    bool rx_frame, rx_given;     /* given: against a grant */
    unsigned char *rx_at;        /* null: to nowhere */
    uint32_t rx_left, rx_slot, rx_partner;
    uint32_t rx_lend;            /* not 0: lent to the executor, in elements of so many bytes */
    struct exec_edge edge;       /* what it has moved since the last look */
    struct flow_window flow;
};

enum link_state { LINK_DOWN, LINK_DIALLING, LINK_UP };

struct link {
    uint64_t peer;
    uint8_t offers;               /* bit per lane: something may go out there now */
    uint32_t rank;                /* in the operation that lanes looked at last */
    bool wanted, dial, data, spare, failed_told;
    struct member_info info;
    enum link_state state;
    uint32_t channel, generation;
    uint64_t number;              /* of the control link */
    int64_t missing_since, lost_at, retry_at, retry_ns;
    enum link_state bundle_state;
    uint64_t bundle;
    uint16_t bundle_lanes, bundle_ready;
    int64_t bundle_retry_at, bundle_missing_since; /* since: wanted beside a control link, and not up; 0: it is, or is not wanted */
    struct data_connection data_connection[CLUSTER_LANES];
    uint32_t sync_channel[2], sync_generation[2]; /* dialled here, dialled by the peer */
    bool sync_up[2], sync_dialling;
    unsigned char *sync_queue;    /* frames that wait for the connection being dialled */
    uint32_t sync_queued, sync_capacity;
};

struct call; /* program.h */

struct run { /* an operation slot */
    uint64_t use;                 /* counts uses of the slot */
    bool taken, started, done, idle, stopping, returned;
    uint8_t failing;              /* cause of its executor's failure, 0 none */
    uint32_t window_reserved, senders;
    struct session_op op;
    uint64_t ranks[CLUSTER_NODES];
    struct link *link[CLUSTER_NODES]; /* by partner, null until asked for */
    uint64_t bundle[CLUSTER_NODES]; /* by partner: the one its frames go over, 0 none yet; never over another */
    uint64_t launch[CLUSTER_NODES]; /* by partner: number among its launches, 0: it has not launched, so it cannot keep grants */
    uint64_t moved;               /* payload bytes, both ways */
    struct exec_watch watch[CLUSTER_LANES];
    struct plan plan;
    struct plan_segment *segments;
    struct plan_step *steps;
    struct plan_piece *pieces;
    uint32_t partners[CLUSTER_NODES];
    uint32_t segment_capacity, step_capacity, piece_capacity;
    struct exec exec[CLUSTER_LANES];
    void *arena[CLUSTER_LANES];
    size_t arena_bytes[CLUSTER_LANES];
    bool lazy;                    /* in place on lanes: what is written over is saved frame by frame */
    unsigned char *backup, *sums; /* sums: what its plan only sums up or hands on */
    uint8_t *saved;
    struct call *call;
};

struct program;

struct node {
    uint16_t index, process;      /* process.c */
    bool used, alive, frozen, gone_host;
    uint32_t group;               /* world * CLUSTER_LABELS + label: unique in the cluster, the label is not */
    struct session_config config;
    struct session *session;
    void *arena;
    void *table[SESSION_TABLES];  /* owned: the session's tables once they have grown */
    size_t table_bytes[SESSION_TABLES], steps;
    size_t arena_bytes;
    struct outbox out;
    void *out_memory;
    size_t out_bytes;
    int64_t tick_at, links_at;
    bool stepping, in_timers, watching;
    int64_t reset_at;          /* its connections, last; 0: never */
    uint64_t lane_bytes[CLUSTER_LANES]; /* payload received */
    uint64_t id;                  /* last one seen */
    uint64_t view, view_before, life; /* installed, the one before; the life of the group that it is of */
    uint64_t ready_view;          /* the last one in which an operation used data connections */
    uint32_t master_channel, master_generation;
    bool master_up;
    uint64_t master_dials;
    struct link **links;          /* owned, never moved */
    uint32_t link_count, link_capacity;
    uint64_t last_number;
    uint32_t held[16], held_generation[16], held_count;
    int64_t held_until[16];
    struct room room[CLUSTER_LANES];
    struct frame_pool pool;
    void **buffers;               /* owned: all that the pool has ever got, linked through their first word */
    struct room_slot *room_list;
    struct run *run;              /* owned, of config.max_ops entries */
    uint64_t *at_work;            /* owned, a set: the slots that lanes work at, started and not idle */
    uint64_t *stepped, *starving; /* ... whose executors were stepped since the last turn; whose senders wait for room */
    struct program *program;
    void *staging;
    bool fail_memory, fail_staging, lie, no_data; /* the last: it has descriptors for control links alone */
    uint8_t lie_type;             /* frames of this type say what is not so */
    uint32_t lies;                /* so many of them */
    uint64_t lied_as;             /* its id when it lied last, 0 never */
    uint32_t fail_growth;         /* percent of the times that a table of its wants to grow */
    bool starved;                 /* it has wanted to, and did not */
    bool elected;                 /* it was told of an election, and its sync is not answered yet */
    unsigned char *report;        /* owned: its last FROZEN */
    uint32_t report_bytes;
    uint64_t report_view, report_id, report_run;
    uint32_t fail_dials;
    bool fail_executor;           /* no memory for its next plan, or a failed invariant in its executor */
    bool wrong_result;            /* its next result has other bits than the others' */
    bool poisoned;                /* its session failed, as was wished, and has not been replaced yet */
    uint32_t poison_kind;         /* of the step that is to fail (enum session_event_kind), 0 any */
    uint32_t poison_after;        /* so many actions; POISON_AT_END: all of them; POISON_NEVER */
    uint32_t probes;              /* edges being measured */
    int64_t cut_at;               /* a cut of its began or ended last */
    uint32_t edges;               /* missing ones of its last VIEW, and who relays the first of them */
    uint64_t relay;
    struct peer_windows *windows; /* owned; null: its program has none */
};

struct master_shell {
    struct master *master;
    struct master_config config;
    void *arena;
    size_t arena_bytes;
    struct outbox out;
    void *out_memory;
    struct records_kept *kept;    /* records_kept.c */
    int64_t tick_at;
    uint32_t channel[256], generation[256];
    bool connected[256];
    uint32_t persisting;          /* batches on their way to the journal */
    uint32_t solve_order[CLUSTER_GROUPS][CLUSTER_NODES]; /* one per group at work */
    uint32_t solves;
    bool frozen;
    bool dead, gone;              /* no process; and none will come back */
    uint32_t life;                /* of the process, from 1: events of an earlier one are void */
};

/* ---- what the oracle remembers -------------------------------------------------------------------------------------- */
struct view_record {
    uint64_t run;
    uint32_t group;
    uint64_t view, life;      /* life: of the group, from 1; a view with nobody of the one before begins another */
    uint32_t members;
    uint64_t ids[CLUSTER_NODES];
};

struct id_record { /* an identity that the master gave */
    uint64_t id;
    uint16_t node;
    bool excluded;
    uint32_t key;         /* in a world of a given size: what ranks are counted by */
};

struct outcome_record { /* per call of the aligned programs */
    uint8_t told[2], told_cause[2]; /* of a message: sender, receiver */
    uint64_t told_culprit[2];
    uint64_t key;
    uint64_t result_hash;  /* of a success */
    uint8_t first;         /* enum session_result + 1 of the first return */
    uint8_t cause;
    uint64_t culprit;
    uint16_t by;
    uint64_t launched[2];  /* bit per process */
    bool unsaid;           /* of the messages of a pair on one tag: one was not made, so its number went to a later one */
};

struct formation_record { /* a world of a given size: what the calls that created it returned */
    uint64_t run;
    uint32_t calls;
    bool begun;
    uint8_t cause;
    uint64_t culprit;
    uint64_t ranks[2];     /* bit per rank that has begun */
};

struct oracle {
    struct match_record *matches;
    uint32_t match_count, match_capacity;
    struct formation_record *formations;
    uint32_t formation_count, formation_capacity;
    uint64_t only[8][CLUSTER_WORLDS]; /* by epoch: run of the only world under a name that is for one; 0: none has begun */
    struct view_record *views;
    uint32_t view_count, view_capacity;
    struct id_record *ids;
    uint32_t id_count, id_capacity;
    struct outcome_record *outcomes;
    uint32_t outcome_count, outcome_capacity;   /* capacity is a power of two */
    uint64_t revision[CLUSTER_GROUPS];
    uint64_t group_view[CLUSTER_GROUPS];
    uint64_t steps[CLUSTER_GROUPS];           /* highest step that anybody of each group has begun: newcomers go on behind it */
};

struct stats {
    uint64_t splits, splits_given_up, worked, calm; /* worked: in a world of a given size; calm: calls beside faults of other worlds */
    uint64_t events, faults, operations, successes, aborts, refusals, votes, views, joins, bytes, formed, given_up, joined;
    uint64_t windows, windows_left, window_calls, window_ok, window_messages;
    uint64_t parts, call_parts, paths_lost; /* of messages between two without a link, of calls; times that their relay has lost one of them */
    uint64_t cell[FAULT_COUNT][PHASE_COUNT];
    uint64_t match[MATCH_KINDS][MATCH_TOLD]; /* receives of lines, by how they stood and what they were told */
    uint64_t poisoned[SESSION_TICK + 1]; /* steps failed, by what they handled */
    struct algorithm_stats algorithms;
};

struct cluster {
    struct options opt;
    bool poison_any; /* the first to meet it fails */
    struct rng rng;
    int64_t now;
    uint64_t order;
    struct event *heap;
    uint32_t heap_count, heap_capacity;
    struct event *parked;          /* of frozen processes */
    uint32_t parked_count, parked_capacity;
    struct channel *channels;
    uint32_t channel_count, channel_capacity, channel_first_free;
    struct master_shell master;
    struct node nodes[CLUSTER_NODES];
    uint32_t node_count;
    bool cut[CLUSTER_NODES + 1][CLUSTER_NODES + 1]; /* [from][to] */
    bool apart[CLUSTER_NODES][CLUSTER_NODES];       /* cuts that never heal */
    bool apart_any;
    uint32_t slow[CLUSTER_NODES][CLUSTER_NODES];    /* [from][to] bytes a second; 0: as all */
    int64_t still_at;                           /* a process stood still, or could not dial or be dialled, last */
    uint32_t cuts;
    uint64_t bandwidth_seed;
    bool plain_probes; /* peers say what they measure, once; else some say nonsense, or nothing */
    struct fault faults[FAULTS_MAX];
    uint32_t fault_count, armed;
    bool healed, touched[CLUSTER_WORLDS], shaken[CLUSTER_WORLDS]; /* something has gone wrong there; connections were reset at least */
    int64_t heal_at, end_at;
    struct oracle oracle;
    struct stats stats;
    uint64_t trace_hash;
    bool trace;
    char (*tail)[CLUSTER_LINE];
    uint32_t tail_count;
    bool failed;
    char violation[400];
    uint64_t idle_steps;
    uint32_t odd_ops, burst_launched;
    uint32_t lies;                              /* told by members so far */
    struct window_record *window_records;       /* owned: oracle_window.c */
};

/* sim_cluster.c */
void random_trees_begin(const struct options *o); /* random_trees.c: a cluster with these begins */
void cluster_init(struct cluster *cl, const struct options *opt, bool trace);
bool cluster_step(struct cluster *cl);            /* one event; false: nothing is left, or a violation */
void cluster_run(struct cluster *cl);             /* to the end of all programs */
void cluster_fini(struct cluster *cl);
void cluster_post(struct cluster *cl, int64_t delay, enum event_kind kind, uint16_t node, uint32_t a, uint64_t b, uint64_t c);
void cluster_fail(struct cluster *cl, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void cluster_trace(struct cluster *cl, uint16_t node, const char *text, uint64_t a, uint64_t b);
bool cluster_chance(struct cluster *cl, uint32_t percent);
int64_t cluster_delay(struct cluster *cl);        /* one way */
int64_t cluster_distance(const struct cluster *cl, uint16_t from, uint16_t to); /* ... of these two it takes so much longer */
void cluster_freeze(struct cluster *cl, uint16_t node, bool frozen);
void cluster_cut(struct cluster *cl, uint16_t from, uint16_t to, bool cut);
uint16_t cluster_node_of(const struct cluster *cl, uint64_t id);
void *cluster_grow(void *memory, uint32_t *capacity, uint32_t need, size_t item);

/* program_form.c */
bool form_world(const struct options *o, uint32_t world); /* it has a given size */
bool split_world(const struct options *o, uint32_t world); /* ... and its worlds are what the members of another create together */
void form_config(const struct cluster *cl, const struct node *n, struct session_config *config);

/* options.c */
void options_draw(struct options *opt, uint64_t seed);
void options_print(const struct options *opt);

/* poison_fault.c */
enum { POISON_NEVER = 0xFFFFFFFF, POISON_AT_END = 0xFFFFFFFE };
void poison_draw(struct cluster *cl);
void poison_wish(struct cluster *cl, struct node *n);
void poison_arm(struct node *n, const struct session_event *e);                        /* before a step */
void poison_stepped(struct cluster *cl, struct node *n, const struct session_event *e);   /* after it */
void poison_renew(struct cluster *cl, struct node *n);
void node_renew(struct node *n); /* a fresh session, of its configuration */

/* lie.c */
void lie_wish(struct cluster *cl, struct node *n, enum fault_kind kind);
void lie_ends(struct cluster *cl, struct node *n);
bool lie_is_liar(const struct node *n);
const void *lie_tell(struct cluster *cl, struct node *n, const void *bytes, uint32_t size); /* what leaves in place of a frame */

/* growth_fault.c */
void growth_options(struct options *opt);
void growth_draw(struct cluster *cl);
void growth_fail(struct node *n, const struct fault *f);
bool growth_succeeds(struct cluster *cl, struct node *n);

/* crowd.c, burst.c, refused.c */
void crowd_draw(struct options *opt);
void crowd_fault(struct cluster *cl);
void burst_draw(struct options *opt);
void refused_draw(struct options *opt);
void burst_launched(struct cluster *cl, uint16_t node); /* one more call of its program */

/* channel.c */
uint32_t channel_new(struct cluster *cl, uint16_t from, uint16_t to);
void channel_send(struct cluster *cl, uint32_t channel, int end, const void *bytes, uint32_t size);
uint32_t channel_room(const struct cluster *cl, uint32_t channel, int end);
void channel_close(struct cluster *cl, uint32_t channel, int end); /* after what was sent */
void channel_break(struct cluster *cl, uint32_t channel);          /* both ends are told, what is under way is lost */
void channel_reset_owner(struct cluster *cl, uint32_t channel, int end); /* its process died */
bool channel_valid(const struct cluster *cl, uint32_t channel, uint32_t generation);
void channel_event(struct cluster *cl, const struct event *e);
void channel_healed(struct cluster *cl, uint16_t from, uint16_t to);
/* The rate between two processes has changed: what is under way goes on at the new one. */
void channel_repace(struct cluster *cl, uint16_t from, uint16_t to);
/* The next whole frame of what `end` has received, or null; consumed by channel_take. */
const unsigned char *channel_frame(struct cluster *cl, uint32_t channel, int end, struct frame_header *header, bool *bad);
const unsigned char *channel_peek(const struct cluster *cl, uint32_t channel, int end, uint32_t *size);
void channel_take(struct cluster *cl, uint32_t channel, int end, uint32_t size);

/* master_shell.c */
void master_shell_init(struct cluster *cl);
void master_shell_fini(struct cluster *cl);
void master_shell_event(struct cluster *cl, const struct event *e);
bool master_shell_accept(struct cluster *cl, uint32_t channel); /* false: no room */
void master_shell_readable(struct cluster *cl, uint32_t channel, int end);
void master_shell_closed(struct cluster *cl, uint32_t channel, int end);
void master_shell_kill(struct cluster *cl);
void master_shell_start(struct cluster *cl); /* after a death: a fresh master, which knows nothing and serves another run */

/* peer_shell.c */
struct node *node_new(struct cluster *cl, uint32_t group, int64_t delay);
void node_fini(struct node *n);
void node_step(struct cluster *cl, struct node *n, struct session_event *e);
void node_event(struct cluster *cl, struct node *n, const struct event *e);
void node_kill(struct cluster *cl, struct node *n, bool silent);
void node_readable(struct cluster *cl, struct node *n, uint32_t channel, int end);
void node_closed(struct cluster *cl, struct node *n, uint32_t channel, int end);
void node_address(uint16_t node, struct net_address *out);
int64_t node_stall_least(const struct options *o); /* of all members */
enum phase node_phase(const struct cluster *cl, const struct node *n);

/* peer_line.c */
struct link *line_find(struct node *n, uint64_t peer);
void line_update(struct cluster *cl, struct node *n);
void line_unlink(struct cluster *cl, struct node *n, uint64_t peer);
void line_timers(struct cluster *cl, struct node *n);
void line_dialled(struct cluster *cl, struct node *n, const struct event *e, bool ok);
void line_readable(struct cluster *cl, struct node *n, uint32_t channel, int end);
void line_closed(struct cluster *cl, struct node *n, uint32_t channel, int end);
void line_send(struct cluster *cl, struct node *n, uint64_t peer, const void *bytes, uint32_t size);
void line_close_all(struct cluster *cl, struct node *n, bool flush);
void line_dial(struct cluster *cl, struct node *n, uint8_t kind, uint16_t lane, uint64_t peer, uint64_t number);
void line_bundle_drop(struct cluster *cl, struct node *n, struct link *l, bool tell);
void line_wake(struct cluster *cl, struct node *n, int64_t at);
void line_shut(struct cluster *cl, uint32_t channel, uint32_t generation, const struct node *n);

/* peer_accept.c */
void line_hello(struct cluster *cl, struct node *n, uint32_t channel);

/* peer_sync.c */
void sync_link_send(struct cluster *cl, struct node *n, const struct action *a);
void sync_link_up(struct cluster *cl, struct node *n, struct link *l, uint32_t channel, int side);
void sync_link_readable(struct cluster *cl, struct node *n, uint32_t channel, int end);
void sync_link_closed(struct cluster *cl, struct node *n, uint32_t channel, int end);
void sync_link_failed(struct cluster *cl, struct node *n, uint64_t peer);
void sync_link_close_all(struct cluster *cl, struct node *n);

/* peer_lanes.c */
void lanes_start(struct cluster *cl, struct node *n, uint32_t slot, uint32_t window);
void lanes_ready(struct cluster *cl, struct node *n, const struct action *a);
void lanes_stop_later(struct cluster *cl, struct node *n, uint32_t slot);
void lanes_stop(struct cluster *cl, struct node *n, uint32_t slot);
void lanes_readable(struct cluster *cl, struct node *n, uint32_t channel, int end);
uint32_t node_tags(const struct cluster *cl); /* so many a process has room for */
void lanes_pump(struct cluster *cl, struct node *n);
void lanes_bytes(const struct run *r, struct session_event *idle); /* payload that it has moved */
void lanes_forget_connection(struct node *n, struct data_connection *d);
void lanes_offer(struct link *l);                        /* its bundle is up */

/* slow_links.c */
uint32_t slow_rate(const struct cluster *cl, uint16_t from, uint16_t to); /* 0: no limit */
uint32_t slow_piece(uint32_t rate, uint32_t size);
int64_t slow_ns(uint32_t rate, uint32_t size);
void slow_set(struct cluster *cl, const struct fault *f, bool on);
void slow_end(struct cluster *cl); /* all links are as fast as the run's */

/* program.c */
struct program *program_new(struct cluster *cl, struct node *n);
void program_free(struct node *n);
void program_event(struct cluster *cl, struct node *n, const struct event *e);
void program_op_returned(struct cluster *cl, struct node *n, uint32_t slot);
void program_voted(struct cluster *cl, struct node *n);
void program_connected(struct cluster *cl, struct node *n);
void program_left(struct cluster *cl, struct node *n);
void program_apply(struct cluster *cl, struct node *n);
bool program_ended(const struct node *n);
void program_describe(const struct node *n, char *out, size_t size);
void program_wish(struct node *n, enum fault_kind kind);

/* faults.c */
void faults_add(struct cluster *cl, const struct fault *f, struct rng *r); /* one that is not armed comes at a moment drawn from r */
void faults_draw(struct cluster *cl);
void faults_draw_own(struct cluster *cl); /* of kinds that are not drawn alike */
void faults_fire(struct cluster *cl, uint32_t index);
void faults_end(struct cluster *cl, uint32_t index);
void faults_check(struct cluster *cl, const struct node *n);
void faults_heal(struct cluster *cl);
enum phase run_phase(const struct run *r);
const char *fault_name(enum fault_kind kind);
const char *phase_name(enum phase phase);

/* master_fault.c */
void master_fault_begin(struct cluster *cl, uint32_t index);
void master_fault_end(struct cluster *cl);

/* faults_chain.c: several faults that need one another */
bool faults_draw_chain(struct cluster *cl);

#include "oracle.h"

#endif
