/* session_bench.h - one session of a view of three, and hand-made frames of the other two and of the master.
 *
 * A test takes what it needs; nothing here expects more than that a frame is well made.
 * SPDX-License-Identifier: MIT */
#ifndef PCCL_TESTS_SESSION_BENCH_H
#define PCCL_TESTS_SESSION_BENCH_H

#include "tests/testing.h"

#include "core/mutant.h"
#include "kernels/kernels.h"
#include "session/session.h"
#include "tests/whole_frame.h"

enum { PEERS = 3 };
static const uint64_t self = 1ull << 32 | 1, run = 77;
static const char lost_text[] = "rank 1 (peer 1.2 at 10.0.0.2:48150), group 0: its connections closed";

struct bench {
    void *arena, *memory[3]; /* owned */
    struct session *s;
    void *table[SESSION_TABLES];    /* owned */
    size_t grown[SESSION_TABLES];   /* their bytes */
    bool no_memory;                 /* the shell refuses all growth */
    struct outbox out;
    int64_t now;
    struct session_outcome outcome; /* of the last event */
    bool returned;                  /* an OP_RETURN was seen */
    bool voted;
    uint32_t largest;               /* what its views say of another group; 0: as its own */
    uint32_t stall_ms;              /* of its views */
    bool edge;                      /* its views miss the edge between the other two, which this one relays */
    bool apart;                     /* ... between this one and peer 1, which peer 2 relays */
};

static inline uint64_t peer_id(uint32_t i)
{
    return self + i;
}

static inline uint64_t view_id(uint32_t number)
{
    return 1ull << 32 | number;
}

/* As a shell does before each event. */
static inline void bench_grow(struct bench *b, const struct session_event *next)
{
    struct session_growth g[SESSION_TABLES];
    uint32_t count = session_growth(b->s, next, g);
    for (uint32_t i = 0; i < count && !b->no_memory; i++) {
        void *storage = aligned_alloc(64, (g[i].bytes + 63) / 64 * 64);
        memset(storage, 0xA5, g[i].bytes);
        session_grow(b->s, &g[i], storage);
        free(b->table[g[i].table]);
        b->table[g[i].table] = storage;
        b->grown[g[i].table] = g[i].bytes;
    }
}

static inline void step(struct bench *b, struct session_event *e)
{
    bench_grow(b, e);
    outbox_reset(&b->out);
    session_step(b->s, ++b->now, e, &b->out);
    b->outcome = e->outcome;
    for (uint32_t i = 0; i < b->out.count; i++) {
        b->returned = b->returned || b->out.actions[i].kind == ACT_OP_RETURN;
        b->voted = b->voted || b->out.actions[i].kind == ACT_VOTED;
    }
}

/* Whether the last step sent a frame of this type, to whomever. */
static inline bool sent(const struct bench *b, uint8_t type)
{
    for (uint32_t i = 0; i < b->out.count; i++) {
        struct frame_header h;
        const struct action *a = &b->out.actions[i];
        bool frame = (a->kind == ACT_MASTER || a->kind == ACT_PEERS) && a->dests > 0;
        if (frame && frame_get(b->out.bytes + a->frame, &h) && h.type == type) {
            return true;
        }
    }
    return false;
}

/* A frame of this type that the last step sent by actions of this kind: *at is the index of its action, the first to be looked
 * at before, and the place after it then; `r` reads its message. */
static inline const struct action *sent_next(const struct bench *b, enum session_action kind, uint8_t type, uint32_t *at,
                                             struct reader *r)
{
    while (*at < b->out.count) {
        struct frame_header h;
        const struct action *a = &b->out.actions[(*at)++];
        if (a->kind == kind && frame_get(b->out.bytes + a->frame, &h) && h.type == type) {
            static unsigned char *whole; /* of what lies in two pieces, until the next one */
            const unsigned char *frame = b->out.bytes + a->frame;
            if (a->data_bytes > 0) {
                free(whole);
                frame = whole = whole_frame(&b->out, a);
            }
            reader_init(r, frame + FRAME_HEADER_BYTES, h.length);
            return a;
        }
    }
    return NULL;
}

static inline void from_master(struct bench *b, uint8_t type, uint64_t view, struct writer *w)
{
    struct frame_header h = {.type = type, .length = (uint32_t)w->used, .run = run, .view = view};
    EXPECT(!w->bad);
    step(b, &(struct session_event){.kind = SESSION_MASTER_FRAME, .header = &h, .payload = w->start});
}

static inline void from_peer(struct bench *b, uint32_t peer, uint8_t type, uint64_t view, struct writer *w)
{
    struct frame_header h = {.type = type, .length = (uint32_t)w->used, .run = run, .view = view};
    EXPECT(!w->bad);
    step(b, &(struct session_event){
                .kind = SESSION_PEER_FRAME, .peer = peer_id(peer), .header = &h, .payload = w->start});
}

static inline void ping(struct bench *b, uint32_t peer, uint64_t view)
{
    unsigned char nothing[1];
    struct writer w;
    writer_init(&w, nothing, 0);
    from_peer(b, peer, FRAME_PING, view, &w);
}

/* The next view with the same three members, with what was decided on an operation of the one before, and whose calls clash
 * where that is why; null: on none.  Its cause is why it came. */
static inline void decided(struct bench *b, uint32_t number, uint8_t cause, const struct op_decision *d,
                           const struct op_clash *clash)
{
    unsigned char raw[2048];
    struct writer w;
    writer_init(&w, raw, sizeof raw);
    struct msg_view m = {.view = view_id(number), .parent = number == 1 ? 0 : view_id(number - 1), .cause = cause,
                         .sizes = {PEERS, PEERS, 1, b->largest != 0 ? b->largest : PEERS},
                         .plan = {.lanes = 1, .frame_bytes = 4096, .eager_bytes = 1024,
                                  .stall_ms = b->stall_ms},
                         .members = PEERS, .added = number == 1 ? PEERS : 0, .weights = b->edge || b->apart ? PEERS : 0, .edges = b->edge || b->apart, .decisions = d != NULL};
    if (cause == CAUSE_PEER_LOST) {
        m.culprit = peer_id(1);
        memcpy(m.text, lost_text, sizeof lost_text);
    }
    put_view(&w, &m);
    for (uint32_t i = 0; i < m.added; i++) {
        put_member_info(&w, &(struct member_info){.id = peer_id(i), .lanes = 1});
    }
    for (uint32_t i = 0; i < PEERS; i++) {
        put_u32(&w, i);
    }
    for (uint32_t i = 0; i < m.weights; i++) {
        put_u32(&w, i == (b->apart ? 2 : 0));
    }
    if (b->apart) {
        put_missing_edge(&w, &(struct missing_edge){.a = self, .b = peer_id(1), .relay = peer_id(2)});
    } else if (b->edge) {
        put_missing_edge(&w, &(struct missing_edge){.a = peer_id(1), .b = peer_id(2), .relay = self});
    }
    if (d != NULL) {
        put_op_decision(&w, d);
    }
    if (clash != NULL) {
        put_op_clash(&w, clash);
    }
    from_master(b, FRAME_VIEW, m.view, &w);
}

/* The next view with the same three members; `abort` decides operation (tag 5, number 0) of the one before. */
static inline void install(struct bench *b, uint32_t number, bool abort)
{
    struct op_decision d = {.name.tag = 5, .outcome = OUTCOME_ABORT, .cause = CAUSE_LINK_LOST};
    decided(b, number, CAUSE_NONE, abort ? &d : NULL, NULL);
    for (uint32_t i = 1; i < PEERS; i++) {
        ping(b, i, view_id(number));
    }
}

static inline void freeze(struct bench *b, uint32_t number)
{
    unsigned char raw[256];
    struct writer w;
    writer_init(&w, raw, sizeof raw);
    put_freeze(&w, &(struct msg_freeze){.view = view_id(number), .attempt = 1, .cause = CAUSE_LINK_LOST,
                                        .survivors = PEERS});
    for (uint32_t i = 0; i < PEERS; i++) {
        put_u64(&w, peer_id(i));
    }
    from_master(b, FRAME_FREEZE, view_id(number), &w);
}

/* View 2: without peers `from` to `to` - 1, for this cause. */
static inline void view_between(struct bench *b, uint32_t from, uint32_t to, uint8_t cause, uint32_t culprit)
{
    unsigned char raw[1024];
    struct writer w;
    uint32_t members = PEERS - (to - from);
    struct msg_view m = {.view = view_id(2), .parent = view_id(1), .cause = cause, .culprit = peer_id(culprit),
                         .sizes = {members, members, 1, members},
                         .plan = {.lanes = 1, .frame_bytes = 4096, .eager_bytes = 1024},
                         .members = members, .removed = to - from, .text = "why"};
    writer_init(&w, raw, sizeof raw);
    put_view(&w, &m);
    for (uint32_t i = from; i < to; i++) {
        put_u64(&w, peer_id(i));
    }
    for (uint32_t i = 0; i < members; i++) {
        put_u32(&w, i);
    }
    freeze(b, 1);
    from_master(b, FRAME_VIEW, m.view, &w);
}

static inline struct session_config bench_config(void)
{
    return (struct session_config){.check_every = 1, .lanes = 1, .max_members = 8, .max_ops = 8, .max_records = 16,
                                   .max_tags = 16, .max_owed = 16, .park_blocks = 4, .park_block_bytes = 1024,
                                   .park_per_link = 2, .mesh_members = 32, .heartbeat_ns = 1000000000,
                                   .stall_ns = 10000000000, .master_loss_ns = 10000000000, .connect_ns = 10000000000,
                                   .link_ns = 5000000000, .kernels = kernels_level("scalar"), .seed = 1};
}

/* A session with these limits that has not been connected. */
static inline struct bench *bench_idle(const struct session_config *config)
{
    struct bench *b = calloc(1, sizeof *b);
    struct session_config c = *config;
    b->arena = aligned_alloc(64, (session_arena_bytes(&c) + 63) / 64 * 64);
    memset(b->arena, 0xA5, session_arena_bytes(&c));
    b->s = session_init(&c, b->arena);
    struct outbox_bounds most = session_out_bounds(&c, c.max_members);
    b->memory[0] = calloc(most.actions, sizeof(struct action));
    b->memory[1] = malloc(most.bytes);
    b->memory[2] = calloc(most.dests, sizeof(uint64_t));
    outbox_init(&b->out, b->memory[0], most.actions, b->memory[1], most.bytes, b->memory[2], most.dests);
    return b;
}

/* The shell has connected; a member of view 1. */
/* A connection to the master is made, for the first time or again. */
static inline void master_back(struct bench *b)
{
    unsigned char raw[256];
    struct writer w;
    step(b, &(struct session_event){.kind = SESSION_MASTER_UP});
    writer_init(&w, raw, sizeof raw);
    put_welcome(&w, &(struct msg_welcome){.run = run, .id = self, .epoch = 1, .heartbeat_ms = 1000, .dead_ms = 10000});
    from_master(b, FRAME_WELCOME, 0, &w);
}

static inline void bench_begin(struct bench *b)
{
    step(b, &(struct session_event){.kind = SESSION_CONNECT});
    master_back(b);
    install(b, 1, false);
    for (uint32_t i = 1; i < PEERS; i++) {
        step(b, &(struct session_event){.kind = SESSION_LINK_UP, .peer = peer_id(i)});
        ping(b, i, view_id(1));
    }
    step(b, &(struct session_event){.kind = SESSION_COLLECT_CONNECT});
    EXPECT_EQ(b->outcome.result, RESULT_OK);
}

/* The answer to the update that is under way has come, and the program has it. */
static inline void update_answered(struct bench *b)
{
    unsigned char raw[512];
    struct writer w;
    writer_init(&w, raw, sizeof raw);
    put_answer(&w, &(struct msg_answer){.kind = VOTE_UPDATE, .result = ANSWER_OK, .view = view_id(1), .sizes = {PEERS, PEERS, 1, PEERS}});
    b->voted = false;
    from_master(b, FRAME_ANSWER, view_id(1), &w);
    EXPECT(b->voted);
    step(b, &(struct session_event){.kind = SESSION_COLLECT_VOTE});
    EXPECT_EQ(b->outcome.result, RESULT_OK);
}

static inline struct bench *bench_of(const struct session_config *config, bool edge)
{
    struct bench *b = bench_idle(config);
    b->edge = edge;
    bench_begin(b);
    return b;
}

static inline struct bench *bench_apart(void)
{
    struct session_config c = bench_config();
    struct bench *b = bench_idle(&c);
    b->apart = true;
    bench_begin(b);
    return b;
}

static inline struct bench *bench_with(uint32_t mesh_members, bool edge)
{
    struct session_config c = bench_config();
    c.mesh_members = mesh_members;
    return bench_of(&c, edge);
}

static inline struct bench *bench_new(void)
{
    return bench_with(32, false);
}

static inline void bench_free(struct bench *b)
{
    for (int i = 0; i < 3; i++) {
        free(b->memory[i]);
    }
    for (uint32_t i = 0; i < SESSION_TABLES; i++) {
        free(b->table[i]);
    }
    free(b->arena);
    free(b);
}

static const struct op_params one_float = {.count = 1, .dtype = DTYPE_F32, .op = REDOP_SUM};

static inline void launch(struct bench *b, uint32_t slot, uint64_t tag, const float *in, float *out)
{
    struct session_launch l = {.call = {.tag = tag, .params = one_float, .in = in, .out = out, .deadline = INT64_MAX}};
    b->returned = false;
    step(b, &(struct session_event){.kind = SESSION_LAUNCH, .slot = slot, .launch = &l});
    EXPECT_EQ(b->outcome.result, RESULT_PENDING);
}

static inline void eager(struct bench *b, uint32_t peer, uint32_t view, uint64_t tag, float value)
{
    unsigned char raw[128];
    struct writer w;
    writer_init(&w, raw, sizeof raw);
    put_eager(&w, &(struct msg_eager){.name = {.tag = tag}, .params = one_float, .bytes = 4});
    put_bytes(&w, &value, 4);
    from_peer(b, peer, FRAME_EAGER, view_id(view), &w);
}

static inline void refusal_from(struct bench *b, uint32_t peer, const struct msg_refuse *m)
{
    unsigned char raw[128];
    struct writer w;
    writer_init(&w, raw, sizeof raw);
    put_refuse(&w, m);
    from_peer(b, peer, FRAME_REFUSE, view_id(1), &w);
}

static inline void hold(struct bench *b, uint32_t peer, uint32_t view, uint64_t tag)
{
    struct plan_view plan = {.lanes = 1, .frame_bytes = 4096, .eager_bytes = 1024};
    unsigned char raw[128];
    struct writer w;
    writer_init(&w, raw, sizeof raw);
    put_hold(&w, &(struct msg_hold){.name = {.tag = tag}, .origin = peer_id(peer),
                                    .params = p2p_params_hash(&one_float, &plan)});
    from_peer(b, peer, FRAME_HOLD, view_id(view), &w);
}

static inline enum session_result collect(struct bench *b, uint32_t slot)
{
    step(b, &(struct session_event){.kind = SESSION_COLLECT, .slot = slot});
    return b->outcome.result;
}

#endif
