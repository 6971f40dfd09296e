/* sync_world.h - peers in one shared-state vote, without a master: real sessions, real frames, a queue per pair.
 *
 * A test says who holds what, hands out ELECTED, and pumps frames in any order between pairs (in order within a pair).  What
 * a session wants done is done or recorded.  Invariant: frames reach only peers that are alive.
 * SPDX-License-Identifier: MIT */
#ifndef PCCL_TESTS_SYNC_WORLD_H
#define PCCL_TESTS_SYNC_WORLD_H

#include "core/random.h"
#include "kernels/hash.h"
#include "session/session_state.h"
#include "session/state/entries.h"
#include "tests/testing.h"
#include "tests/whole_frame.h"

enum { WORLD_PEERS = 8, WORLD_ENTRIES = 5, WORLD_LEAVES = 256, WORLD_FRAMES = 2048, WORLD_LEAF_BYTES = 64 };

struct world_frame {
    uint32_t from, to;
    unsigned char *bytes; /* owned; header and payload */
    bool used;
};

struct world_peer {
    uint32_t index;
    uint64_t id;
    bool dead;
    void *arena;             /* owned */
    struct session *session; /* in arena */
    struct sync_state state;
    struct sync_entry entries[WORLD_ENTRIES];
    uint64_t leaf_hash[WORLD_LEAVES], want_hash[WORLD_LEAVES], stage_at[WORLD_LEAVES];
    unsigned char leaf_state[WORLD_LEAVES];
    unsigned char *data;     /* owned: all entries, one after the other, the first at an odd address */
    uint64_t data_bytes;
    unsigned char *staging;  /* owned */
    /* seen */
    uint32_t staged, manifests_asked, leaves_asked, applied, allocated, closed, voted, sync_frames;
    uint32_t asked_of[WORLD_PEERS], open_asks[WORLD_PEERS], most_open;
    uint64_t alloc_bytes, first_asked;
    struct msg_staged said;
    bool left, no_memory, hold_memory;
};

struct world {
    int64_t now;
    uint32_t count;
    struct world_peer peer[WORLD_PEERS];
    struct world_frame frame[WORLD_FRAMES];
    uint32_t frames;
    struct outbox out;
    void *out_memory[3];
    uint32_t round, skew; /* skew: added to the number of the vote in ELECTED */
    /* called for each frame that arrives: may spoil it; false: it is lost with its connection */
    bool (*meddle)(struct world *w, uint32_t from, uint32_t to, unsigned char *frame, uint32_t bytes);
};

static const uint64_t world_view = 1ull << 32 | 7;

static inline void world_write(struct world_peer *p, uint32_t entry, uint64_t seed)
{
    struct rng rng = {.state = seed * 977 + entry};
    for (uint64_t i = 0; i < p->entries[entry].bytes; i++) {
        p->entries[entry].data[i] = (unsigned char)rng_next(&rng);
    }
}

static inline void world_hash(struct world_peer *p)
{
    for (uint32_t i = 0; i < p->state.entry_count; i++) {
        for (uint32_t leaf = 0; leaf < p->entries[i].leaves; leaf++) {
            sync_hash_leaf(&p->state, i, leaf);
        }
    }
    sync_finish_hashes(&p->state);
}

/* Entries: f32 of `elements`, 7 bytes, nothing, an inequality entry of 300 bytes, 129 bytes. */
static inline void world_state(struct world_peer *p, uint64_t elements)
{
    static const struct sync_entry keys[WORLD_ENTRIES] = {
        {.name_hash = 11, .dtype = DTYPE_F32},
        {.name_hash = 12, .dtype = DTYPE_U8, .count = 7},
        {.name_hash = 13, .dtype = DTYPE_F64},
        {.name_hash = 14, .dtype = DTYPE_U16, .count = 150, .inequality = true},
        {.name_hash = 15, .dtype = DTYPE_I8, .count = 129},
    };
    memcpy(p->entries, keys, sizeof keys);
    p->entries[0].count = elements;
    p->data = malloc(elements * 4 + 1024);
    p->state = (struct sync_state){.entries = p->entries,
                                   .entry_count = WORLD_ENTRIES,
                                   .leaf_hash = p->leaf_hash,
                                   .leaf_bytes = WORLD_LEAF_BYTES,
                                   .want_hash = p->want_hash,
                                   .stage_at = p->stage_at,
                                   .leaf_state = p->leaf_state};
    p->data_bytes = 1;
    for (uint32_t i = 0; i < WORLD_ENTRIES; i++) {
        struct sync_entry *e = &p->entries[i];
        e->bytes = e->count * dtype_size(e->dtype);
        e->data = p->data + p->data_bytes;
        e->first_leaf = p->state.leaf_count;
        e->leaves = (uint32_t)sync_leaves(e->bytes, WORLD_LEAF_BYTES);
        p->data_bytes += e->bytes;
        p->state.leaf_count += e->leaves;
        world_write(p, i, 1);
    }
    world_hash(p);
}

static inline struct session_config world_config(void)
{
    return (struct session_config){.check_every = 1, .lanes = 1, .max_members = WORLD_PEERS, .max_ops = 4, .first = WORLD_PEERS, .max_records = 8,
                                   .max_tags = 8, .max_owed = 8, .park_blocks = 2, .park_block_bytes = 256,
                                   .park_per_link = 1, .mesh_members = 32, .heartbeat_ns = 1000000000,
                                   .stall_ns = 10000000000, .master_loss_ns = 10000000000,
                                   .connect_ns = 10000000000, .link_ns = 5000000000, .kernels = kernels_get()};
}

/* A member of the view as it is after an admission. */
static inline void world_join(struct world *w, struct world_peer *p)
{
    struct session_config cfg = world_config();
    size_t bytes = session_arena_bytes(&cfg);
    p->arena = aligned_alloc(64, (bytes + 63) / 64 * 64);
    struct session *s = session_init(&cfg, p->arena);
    p->session = s;
    s->phase = PHASE_MEMBER;
    s->run = 9;
    s->id = p->id;
    s->master.up = s->master.welcomed = true;
    s->vote.answered = 20 + p->index; /* every peer counts its own */
    s->view.view = world_view;
    s->view.world = w->count;
    for (uint32_t r = 0; r < w->count; r++) {
        s->view.ids[r] = w->peer[r].id;
        s->view.peer[r] = r == p->index ? NONE : r;
        s->view.ring[r] = s->view.places[r] = r;
        if (r != p->index) {
            s->peers.at[r] = (struct peer){.id = w->peer[r].id, .in_view = true, .rank = r, .replay = NONE};
        }
    }
    s->view.rank = p->index;
}

static inline struct world *world_new(uint32_t peers, uint64_t elements)
{
    struct world *w = calloc(1, sizeof *w);
    struct session_config cfg = world_config();
    struct outbox_bounds most = session_out_bounds(&cfg, cfg.max_members);
    w->out_memory[0] = calloc(most.actions, sizeof(struct action));
    w->out_memory[1] = calloc(1, most.bytes);
    w->out_memory[2] = calloc(most.dests, sizeof(uint64_t));
    outbox_init(&w->out, w->out_memory[0], most.actions, w->out_memory[1], most.bytes, w->out_memory[2], most.dests);
    w->count = peers;
    w->round = 5;
    w->now = 1000;
    for (uint32_t i = 0; i < peers; i++) {
        w->peer[i].index = i;
        w->peer[i].id = 1ull << 32 | (100 + i);
    }
    for (uint32_t i = 0; i < peers; i++) {
        world_state(&w->peer[i], elements);
        world_join(w, &w->peer[i]);
    }
    return w;
}

static inline void world_free(struct world *w)
{
    for (uint32_t i = 0; i < w->frames; i++) {
        free(w->frame[i].used ? w->frame[i].bytes : NULL);
    }
    for (uint32_t i = 0; i < w->count; i++) {
        EXPECT(!session_poisoned(w->peer[i].session));
        free(w->peer[i].arena);
        free(w->peer[i].data);
        free(w->peer[i].staging);
    }
    for (int i = 0; i < 3; i++) {
        free(w->out_memory[i]);
    }
    free(w);
}

static inline uint32_t world_index(const struct world *w, uint64_t id)
{
    for (uint32_t i = 0; i < w->count; i++) {
        if (w->peer[i].id == id) {
            return i;
        }
    }
    return NONE;
}

static inline void world_step(struct world *w, struct world_peer *p, struct session_event *e);

static inline void world_memory(struct world *w, struct world_peer *p)
{
    struct session_event e = {.kind = SESSION_MEMORY, .memory = p->staging};
    world_step(w, p, &e);
}

static inline void world_sync_frame(struct world *w, struct world_peer *p, const struct action *a)
{
    const unsigned char *frame = w->out.bytes + a->frame;
    uint32_t to = world_index(w, w->out.dest_ids[a->dest]);
    struct frame_header h;
    EXPECT_EQ(a->dests, 1);
    EXPECT(frame_get(frame, &h) && h.length == a->frame_bytes - FRAME_HEADER_BYTES + a->data_bytes);
    p->sync_frames++;
    p->manifests_asked += h.type == FRAME_MANIFEST_WANT;
    if (p->first_asked == 0) {
        p->first_asked = w->out.dest_ids[a->dest];
    }
    if (h.type == FRAME_LEAF_WANT) {
        p->leaves_asked++;
        p->asked_of[to]++;
        if (++p->open_asks[to] > p->most_open) {
            p->most_open = p->open_asks[to];
        }
    }
    if (w->peer[to].dead) {
        return;
    }
    EXPECT(w->frames < WORLD_FRAMES);
    struct world_frame *f = &w->frame[w->frames++];
    *f = (struct world_frame){.from = p->index, .to = to, .used = true};
    f->bytes = whole_frame(&w->out, a);
}

static inline void world_action(struct world *w, struct world_peer *p, const struct action *a)
{
    struct frame_header h;
    struct reader r;
    switch (a->kind) {
    case ACT_SYNC:
        world_sync_frame(w, p, a);
        break;
    case ACT_SYNC_CLOSE:
        p->closed++;
        break;
    case ACT_SYNC_ALLOC:
        p->allocated++;
        p->alloc_bytes = a->value;
        free(p->staging);
        p->staging = p->no_memory ? NULL : malloc(a->value);
        break;
    case ACT_SYNC_APPLY:
        p->applied++;
        sync_apply(&p->state);
        break;
    case ACT_VOTED:
        p->voted++;
        break;
    case ACT_LEFT:
        p->left = true;
        break;
    case ACT_MASTER:
        EXPECT(frame_get(w->out.bytes + a->frame, &h));
        if (h.type == FRAME_STAGED) {
            reader_init(&r, w->out.bytes + a->frame + FRAME_HEADER_BYTES, h.length);
            EXPECT(get_staged(&r, &p->said));
            p->staged++;
        }
        break;
    default:
        break;
    }
}

static inline void world_step(struct world *w, struct world_peer *p, struct session_event *e)
{
    uint32_t asked = p->allocated;
    outbox_reset(&w->out);
    session_step(p->session, w->now, e, &w->out);
    for (uint32_t i = 0; i < w->out.count; i++) {
        world_action(w, p, &w->out.actions[i]);
    }
    if (p->allocated > asked && !p->hold_memory) {
        world_memory(w, p);
    }
}

static inline void world_from_master(struct world *w, struct world_peer *p, uint8_t type, struct writer *payload)
{
    struct frame_header h = {.type = type, .length = (uint32_t)payload->used, .run = 9, .view = world_view};
    struct session_event e = {.kind = SESSION_MASTER_FRAME, .header = &h, .payload = payload->start};
    EXPECT(!payload->bad);
    world_step(w, p, &e);
}

static inline void world_vote(struct world *w, uint32_t peer)
{
    struct world_peer *p = &w->peer[peer];
    struct msg_vote vote = {.kind = VOTE_SYNC, .revision = 3};
    struct session_event e = {.kind = SESSION_VOTE, .vote = &vote, .state = &p->state};
    world_step(w, p, &e);
    EXPECT_EQ(e.outcome.result, RESULT_PENDING);
}

/* ELECTED to one peer: content of peer `content`; bit sets of holders and receivers; inequality entries from `whole` (NONE: own). */
static inline void world_elect(struct world *w, uint32_t to, uint32_t content, uint32_t holders, uint32_t receivers,
                               uint32_t whole)
{
    unsigned char raw[512];
    struct writer out;
    const struct world_peer *c = &w->peer[content];
    struct msg_elected m = {.number = w->peer[to].session->vote.answered + w->skew,
                            .round = w->round,
                            .role = (holders >> to & 1) != 0 ? SYNC_HOLDER : SYNC_RECEIVER,
                            .revision = 3,
                            .key_digest = c->state.key_digest,
                            .content_digest = c->state.content_digest,
                            .whole = whole != NONE,
                            .whole_source = whole == NONE ? 0 : w->peer[whole].id,
                            .holders = (uint32_t)__builtin_popcount(holders),
                            .receivers = (uint32_t)__builtin_popcount(receivers)};
    writer_init(&out, raw, sizeof raw);
    put_elected(&out, &m);
    for (uint32_t i = 0; i < w->count; i++) {
        if ((holders >> i & 1) != 0) {
            put_u64(&out, w->peer[i].id);
        }
    }
    for (uint32_t i = 0; i < w->count; i++) {
        if ((receivers >> i & 1) != 0) {
            put_u64(&out, w->peer[i].id);
        }
    }
    world_from_master(w, &w->peer[to], FRAME_ELECTED, &out);
}

static inline void world_answer(struct world *w, uint32_t to, enum answer_result result)
{
    unsigned char raw[512];
    struct writer out;
    struct msg_answer m = {.number = w->peer[to].session->vote.answered, .kind = VOTE_SYNC, .result = (uint8_t)result, .round = w->round,
                           .view = world_view, .value = 3};
    writer_init(&out, raw, sizeof raw);
    put_answer(&out, &m);
    world_from_master(w, &w->peer[to], FRAME_ANSWER, &out);
}

static inline void world_down(struct world *w, uint32_t at, uint32_t peer)
{
    struct session_event e = {.kind = SESSION_SYNC_DOWN, .peer = w->peer[peer].id};
    world_step(w, &w->peer[at], &e);
}

/* Its frames are gone, and everybody sees its connections close. */
static inline void world_kill(struct world *w, uint32_t peer)
{
    w->peer[peer].dead = true;
    for (uint32_t i = 0; i < w->frames; i++) {
        struct world_frame *f = &w->frame[i];
        if (f->used && (f->from == peer || f->to == peer)) {
            free(f->bytes);
            f->used = false;
        }
    }
    for (uint32_t i = 0; i < w->count; i++) {
        if (!w->peer[i].dead) {
            world_down(w, i, peer);
        }
    }
}

/* Delivers one frame: the first of a pair that the number picks, none from `slow`.  False: there is none. */
static inline bool world_deliver_but(struct world *w, uint64_t pick, uint32_t slow)
{
    uint32_t first[WORLD_PEERS * WORLD_PEERS], pairs = 0;
    bool seen[WORLD_PEERS][WORLD_PEERS] = {{false}};
    for (uint32_t i = 0; i < w->frames; i++) {
        struct world_frame *f = &w->frame[i];
        if (f->used && f->from != slow && !seen[f->from][f->to]) {
            seen[f->from][f->to] = true;
            first[pairs++] = i;
        }
    }
    if (pairs == 0) {
        return false;
    }
    struct world_frame f = w->frame[first[pick % pairs]];
    w->frame[first[pick % pairs]].used = false;
    struct frame_header h;
    EXPECT(frame_get(f.bytes, &h));
    if (h.type == FRAME_LEAF) {
        w->peer[f.to].open_asks[f.from]--;
    }
    if (w->meddle == NULL || w->meddle(w, f.from, f.to, f.bytes, FRAME_HEADER_BYTES + h.length)) {
        struct session_event e = {.kind = SESSION_SYNC_FRAME, .peer = w->peer[f.from].id, .header = &h,
                                  .payload = f.bytes + FRAME_HEADER_BYTES};
        world_step(w, &w->peer[f.to], &e);
    }
    free(f.bytes);
    return true;
}

static inline bool world_deliver(struct world *w, uint64_t pick)
{
    bool more = world_deliver_but(w, pick, NONE);
    w->frames = more ? w->frames : 0;
    return more;
}

static inline void world_run(struct world *w)
{
    for (uint64_t i = 0; world_deliver(w, i); i++) {
    }
}

/* ---- many at once ---- */

static inline bool same_bytes(const struct world_peer *a, const struct world_peer *b, bool inequality)
{
    for (uint32_t i = 0; i < WORLD_ENTRIES; i++) {
        if (a->entries[i].inequality == inequality && a->entries[i].bytes > 0 &&
            memcmp(a->entries[i].data, b->entries[i].data, a->entries[i].bytes) != 0) {
            return false;
        }
    }
    return true;
}

/* Peer holds other bytes than the others in every entry. */
static inline void make_stale(struct world *w, uint32_t peer, uint64_t seed)
{
    for (uint32_t i = 0; i < WORLD_ENTRIES; i++) {
        world_write(&w->peer[peer], i, seed);
    }
    world_hash(&w->peer[peer]);
}

static inline void vote_all(struct world *w)
{
    for (uint32_t i = 0; i < w->count; i++) {
        world_vote(w, i);
    }
}

static inline void elect_all(struct world *w, uint32_t content, uint32_t holders, uint32_t receivers, uint32_t whole)
{
    for (uint32_t i = 0; i < w->count; i++) {
        if (!w->peer[i].dead && ((holders | receivers) >> i & 1) != 0) {
            world_elect(w, i, content, holders, receivers, whole);
        }
    }
}

static inline void expect_staged(const struct world_peer *p, uint32_t times, enum staged_status status, uint64_t liar)
{
    EXPECT_EQ(p->staged, times);
    EXPECT_EQ(p->said.status, status);
    EXPECT_EQ(p->said.liar, liar);
    EXPECT_EQ(p->said.number, p->session->vote.answered);
}

/* ---- who spoils what ---- */

static uint32_t meddle_peer, meddle_left;
static uint8_t meddle_type;

/* Flips a bit in the payload of frames of meddle_type from meddle_peer, once meddle_left such frames have passed. */
static inline bool spoil(struct world *w, uint32_t from, uint32_t to, unsigned char *frame, uint32_t bytes)
{
    struct frame_header h;
    (void)w, (void)to;
    if (frame_get(frame, &h) && h.type == meddle_type && from == meddle_peer && meddle_left-- == 0) {
        frame[bytes - 1] ^= 1;
        meddle_left = 0;
    }
    return true;
}

static inline bool die(struct world *w, uint32_t from, uint32_t to, unsigned char *frame, uint32_t bytes)
{
    struct frame_header h;
    (void)bytes, (void)to;
    if (frame_get(frame, &h) && h.type == meddle_type && from == meddle_peer && meddle_left-- == 0) {
        world_kill(w, from);
        return false;
    }
    return true;
}

#endif
