/* master_peers.h - a master with fake peers around it: they decode what they are sent with the real codec, and answer as a
 * well-behaved session would unless a test tells them not to.
 * SPDX-License-Identifier: MIT */
#ifndef PCCL_TESTS_MASTER_PEERS_H
#define PCCL_TESTS_MASTER_PEERS_H

#include "master/journal.h"
#include "master/master.h"
#include "topology/tree_set.h"

enum { PEERS_MOST = 66, PEERS_OPS = 32, PEERS_LOG = 4096, PEERS_RECORDS = 64, PEER_PROBES = 66 };

/* Where a peer says that it is. */
struct peer_place {
    uint16_t port; /* 0: 48150 */
    uint8_t host;  /* the last byte of its address; 0: what the master sees */
    uint8_t lan;   /* ... of its address behind a router; 0: it has none */
};

struct peer {
    uint32_t conn;
    bool open;         /* the master has not closed its connection */
    uint64_t id;
    uint32_t group;
    char world[BOUNDS_WORLD_NAME];
    uint64_t run;      /* of its world */
    struct claim claim; /* size 0: none */
    uint32_t stall_ms; /* that it asks of its world; 0: none */
    uint32_t delay_ns; /* one way to others, as it says */
    uint32_t site;     /* others at it are near; 0: nothing is known of the ways from and to it */
    struct peer_place place;
    struct msg_expect expect; /* a derived one: callers, formation, parent, member; else zero */
    uint64_t callers[8];
    bool no_claim;     /* does not answer WELCOME */
    struct msg_given_up given_up;
    bool mute;         /* answers nothing by itself */
    bool no_link;      /* does not answer ADMIT */
    bool no_trip;      /* does not tell round trips */
    bool no_frozen;    /* does not answer FREEZE */
    uint64_t view, parent;
    uint64_t members[PEERS_MOST];
    struct member_info infos[PEERS_MOST]; /* of those that the last VIEW added */
    uint32_t member_count, ring[PEERS_MOST], weights[PEERS_MOST];
    struct tree_set trees;
    uint16_t tree_parent[BOUNDS_TREES * PEERS_MOST];
    uint32_t answered;
    bool voting;
    uint8_t vote_kind;
    struct msg_vote vote;
    uint32_t idle;     /* tags that its updates say it knows */
    char differs[BOUNDS_TEXT]; /* what it says with STAGED_KEYS */
    struct op_report reports[PEERS_OPS]; /* what it lists when frozen */
    struct op_clash clash[PEERS_OPS];    /* ... with the cause MISMATCH */
    uint32_t report_count;
    uint64_t unreachable; /* named in LINKED, 0 nobody */
    struct op_decision decisions[PEERS_OPS + 1]; /* of many the first, and the last */
    struct op_clash decided_clash[PEERS_OPS + 1];
    uint32_t decision_count;
    struct missing_edge edges[PEERS_OPS];
    uint32_t edge_count;
    struct msg_welcome welcome;
    struct msg_freeze freeze;
    struct msg_view last_view;
    struct msg_answer answer;
    struct msg_admit admit;
    struct msg_fence fence;
    struct msg_elected elected;
    uint64_t holders[PEERS_MOST], receivers[PEERS_MOST];
    struct msg_probe probe[PEER_PROBES]; /* asked for and not answered, the oldest first */
    uint32_t probes;
    struct peer_wait wait;     /* what its heartbeats say, until its view changes */
    struct msg_heartbeat told; /* the master's last one */
    struct msg_status_page page;
    struct world_status worlds[STATUS_PAGE_WORLDS]; /* of it */
    struct msg_topology_page links;
    struct topology_member linked[PEERS_MOST]; /* of it, the first ones */
    struct topology_edge measured[TOPOLOGY_PAGE_EDGES];
    char log[PEERS_LOG]; /* names of the frames received, in order, heartbeats left out */
    unsigned char parts[65536]; /* of a VIEW or ADMIT that comes in parts */
    uint32_t parts_used;
};

struct cluster {
    struct master_config config;
    struct master *master;
    void *arena;
    int64_t now;
    struct outbox out;
    struct peer peers[PEERS_MOST];
    uint32_t count;
    int64_t beat_ms;   /* between heartbeats of peers */
    uint32_t stall_ms; /* of peers that register from now on */
    uint32_t delay_ns; /* the same: how far away they are */
    uint8_t host;      /* the last byte of the address that they connect from; 0: each connection has one of its own */
    struct peer_place place; /* the same */
    uint32_t rtt_us;   /* of all edges that are measured from now on */
    bool hold_persist; /* MASTER_PERSIST is not answered by itself */
    uint32_t persists; /* so many in all, */
    uint32_t durable;  /* ... of which so many have been answered, in that order */
    uint64_t persists_at[PEERS_RECORDS]; /* their numbers, the last ones */
    bool no_memory;    /* tables of the master do not grow */
    uint8_t fill;      /* every byte of a new table: whatever is not set up shows */
    uint64_t solve;    /* number of the last MASTER_SOLVE */
    uint32_t solves;
    struct journal journal;
    unsigned char journal_bytes[1 << 20];
    char trace[1 << 16];
    char line[400], heard[400]; /* of the log; the last one for everybody with the word `listen` in it */
    char listen[40];
    uint32_t most_actions, most_bytes, most_dests; /* high water, to check the computed bounds */
};

struct cluster *cluster_new(void);
struct cluster *cluster_with(const struct master_config *config);
void cluster_free(struct cluster *c);
struct master_config cluster_config(void);

/* Lets `ms` pass, ticking when the master wants it; living peers keep sending heartbeats unless mute. */
void cluster_pass(struct cluster *c, int64_t ms);
void cluster_bug(struct cluster *c); /* an event that its shell must never make */
void cluster_persisted(struct cluster *c); /* all that are held */
void cluster_solved(struct cluster *c, uint64_t number, const uint32_t *order, uint32_t count);

/* Opens a connection and registers; the peer is peers[count - 1] afterwards. */
struct peer *peer_join(struct cluster *c, uint32_t group);
/* The same, and claims a rank; attempts count on from 1 unless the test sets them. */
struct peer *peer_create(struct cluster *c, const char *world, const struct claim *claim);
void peer_claim(struct cluster *c, struct peer *p, const struct claim *claim, uint64_t run, uint32_t epoch);
/* What a member of `parent` creates with others: callers are the first `count` of `ids`, its own peer there is `member`. */
struct peer *peer_derive(struct cluster *c, const struct peer *member, const char *world, const struct claim *claim, uint64_t formation,
                         const uint64_t *ids, uint32_t count);
/* The same call again, on a new connection. */
void peer_create_again(struct cluster *c, struct peer *p);
struct peer *peer_join_world(struct cluster *c, uint32_t group, const char *world);
/* Members of one view of a named world, which nobody was in. */
void cluster_world(struct cluster *c, uint32_t count, uint32_t group, const char *world);
/* Peers that are members of one view: joined, updated. */
void cluster_members(struct cluster *c, uint32_t count, uint32_t group);
/* A newcomer's, that has done nothing since its admission; passed: it hears of an operation that others launched. */
void peer_first_update(struct cluster *c, struct peer *p, bool passed);
void peer_vote(struct cluster *c, struct peer *p, enum vote_kind kind);
void peer_sync(struct cluster *c, struct peer *p, uint8_t strategy, uint64_t revision, uint64_t keys, uint64_t content,
               bool inequality);
void peer_crash(struct cluster *c, struct peer *p);  /* its connections close, and its address refuses new ones */
void peer_cut(struct cluster *c, struct peer *p);    /* its control connection closes */
void peer_resume(struct cluster *c, struct peer *p); /* on a new connection */
void peer_suspect(struct cluster *c, struct peer *p, enum suspect_target target, enum cause cause, const struct peer *at);
void peer_frozen(struct peer *p);
void peer_linked(struct peer *p);
void peer_staged(struct cluster *c, struct peer *p, enum staged_status status, uint64_t liar);
bool peer_asked(struct peer *p, struct msg_probe *out); /* the oldest probe that it has been asked for, once; false: none */
void peer_waits(struct cluster *c, struct peer *p, const struct peer_wait *wait); /* says so at once, and with each heartbeat */
void peer_reports(struct peer *p, uint64_t tag, uint32_t seq, enum op_state state, enum cause cause);
/* Index of the decision; decision_count if there is none. */
static inline uint32_t peer_decided(const struct peer *p, uint64_t tag, uint32_t seq)
{
    uint32_t i = 0;
    while (i < p->decision_count && i < PEERS_OPS && (p->decisions[i].name.tag != tag || p->decisions[i].name.seq != seq)) {
        i++;
    }
    return i;
}

/* The decision a peer was given; outcome 0 if none. */
static inline struct op_decision peer_decision(const struct peer *p, uint64_t tag, uint32_t seq)
{
    uint32_t i = peer_decided(p, tag, seq);
    return i < p->decision_count && i < PEERS_OPS ? p->decisions[i] : (struct op_decision){0};
}

/* What came with it; zeros if nothing. */
static inline struct op_clash peer_clash(const struct peer *p, uint64_t tag, uint32_t seq)
{
    uint32_t i = peer_decided(p, tag, seq);
    return i < p->decision_count ? p->decided_clash[i] : (struct op_clash){0};
}

/* Raw: any bytes as payload of any type. */
void cluster_frame_of(struct cluster *c, uint32_t conn, uint8_t type, const void *payload, uint32_t size, uint64_t run, uint64_t view);
static inline void cluster_frame(struct cluster *c, uint32_t conn, uint8_t type, const void *payload, uint32_t size, uint64_t run)
{
    cluster_frame_of(c, conn, type, payload, size, run, 0);
}
uint32_t cluster_open(struct cluster *c); /* a connection that has sent nothing yet */
bool cluster_closed(const struct cluster *c, uint32_t conn);

/* With what it lists as its last words; revoking: without. */
static inline void peer_goes(struct cluster *c, const struct peer *p, bool revoke)
{
    unsigned char bytes[PEERS_OPS * 256];
    struct writer w;
    writer_init(&w, bytes, sizeof bytes);
    put_leave(&w, &(struct msg_leave){.revoke = revoke, .view = p->view, .reports = revoke ? 0 : p->report_count});
    for (uint32_t i = 0; !revoke && i < p->report_count; i++) {
        put_op_report(&w, &p->reports[i]);
        if (p->reports[i].state == OP_REFUSED && p->reports[i].cause == CAUSE_MISMATCH) {
            put_op_clash(&w, &p->clash[i]);
        }
    }
    cluster_frame(c, p->conn, FRAME_LEAVE, bytes, (uint32_t)w.used, p->run);
}
static inline void peer_leave(struct cluster *c, const struct peer *p)
{
    peer_goes(c, p, false);
}
static inline void peer_revoke(struct cluster *c, const struct peer *p)
{
    peer_goes(c, p, true);
}

/* peer_measures.c */
uint32_t peer_trip_us(const struct cluster *c, uint64_t from, uint64_t to); /* by their sites; of an edge without, the cluster's; 0: unknown */
void peer_says_measured(struct cluster *c, const struct peer *p, const struct msg_measured *ms);
void peer_heard(struct cluster *c, const struct peer *p, const struct msg_probe *probe, uint64_t bps); /* by the other end of p's probe */
void peer_measured(struct cluster *c, struct peer *p, const struct msg_probe *probe, uint64_t bps); /* as both ends say */
struct cluster *cluster_voted(uint32_t count); /* new members, all of which have asked for a better ring */
typedef uint64_t peer_rate(const struct cluster *c, uint64_t from, uint64_t to); /* of an edge, by ids */
/* Answers all probes until none comes any more.  Edges that are measured at once share the member's link, which is as fast as one of them if
 * `shared`.  Returns how many. */
uint32_t cluster_measure(struct cluster *c, peer_rate *rate, bool shared);
/* Somebody asks, on a connection of its own, and has the last place for peers. */
const struct peer *cluster_ask(struct cluster *c, uint8_t type, const void *bytes, uint32_t size);
const struct peer *cluster_ask_links(struct cluster *c, const struct msg_topology *asked);
uint64_t peer_rate_alike(const struct cluster *c, uint64_t from, uint64_t to); /* 100 Mb/s */

/* peer_place.c */
void peer_put_addresses(const struct peer_place *at, struct msg_register *to);

/* peer_expect.c */
uint8_t peer_put_claim(struct writer *w, const struct peer *p, const struct msg_claim *claim); /* CLAIM, or EXPECT; its type */

/* peer_take.c */
void peer_take_view(struct peer *p, struct reader *r);
void peer_log_frame(struct peer *p, uint8_t type);
void peer_take_part(struct peer *p, struct reader *r);
void peer_take_elected(struct peer *p, struct reader *r);
void peer_take_answer(struct peer *p, struct reader *r);
/* The round trip of a connection is told at once, as an engine does: true, `answer` has it.  What is to be measured is the test's. */
bool peer_take_probe(const struct cluster *c, struct peer *p, struct reader *r, struct writer *answer);
void peer_take_answered(struct peer *p, uint8_t type, struct reader *r); /* who only asks: a page */

bool peer_saw(const struct peer *p, const char *frames); /* the log holds this sequence */
void peer_forget(struct peer *p);                        /* the log begins afresh */

#endif
