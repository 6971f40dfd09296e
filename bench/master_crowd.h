/* master_crowd.h - a master driven by its step function and codec, and peers that are a few numbers each.
 *
 * One idea: real frames, no sockets.  What peers say is encoded by the real encoders and delivered in order; what the master
 * says is decoded, once for all that it goes to, and answered at once.  So ten thousand peers cost little beside the master.
 * Invariant: time is read around the step and the growth of tables alone.
 * SPDX-License-Identifier: MIT */
#ifndef PCCL_BENCH_MASTER_CROWD_H
#define PCCL_BENCH_MASTER_CROWD_H

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/clock.h"
#include "master/master.h"

enum { REPORTS = 4, CONTROL_MOST = 1 << 16 };

struct peer {
    uint64_t id, run, view;
    uint32_t conn, world, rank, answered;
    uint8_t kind;                /* of the vote that it waits in */
    bool open;
    uint64_t content;            /* of its shared state */
    uint32_t elected;            /* rounds of a sync that it was told of */
};

struct crowd {
    struct master_config config;
    struct master *master;
    void *arena;
    struct outbox out;
    int64_t now;                 /* the peers' and the master's virtual clock */
    struct peer *peers;
    uint32_t *of_conn;           /* connection -> peer + 1 */
    uint32_t worlds, members, count;
    bool sized;
    bool lenient;                /* who is refused is counted; else the program fails */
    uint32_t refused, solves, probes;
    char refusal[BOUNDS_TEXT];   /* the last one's reason */
    const char *listen;          /* borrowed: counted are the lines of the log that have this in them */
    uint32_t heard;
    uint32_t edges;              /* missing ones of the last view */
    struct peer_wait told;       /* to the first peer: whom the one that it waits for waits for in the end */
    /* frames on their way to the master, in order */
    unsigned char *queue;
    size_t queue_at, queue_used, queue_capacity;
    uint64_t durable[CONTROL_MOST];
    uint32_t durable_count;
    size_t table_bytes;
    uint32_t out_most;
    /* of the phase under way */
    uint64_t taken, sent;
    int64_t busy_ns;
};

struct queued {
    uint32_t conn, size;
};

__attribute__((noreturn)) static void crowd_fail(const char *what)
{
    fprintf(stderr, "%s\n", what);
    exit(1);
}

static void *crowd_memory(size_t bytes)
{
    void *at = aligned_alloc(64, (bytes + 63) / 64 * 64);
    if (at == NULL) {
        crowd_fail("no memory");
    }
    return at;
}

/* ---- what peers say ------------------------------------------------------------------------------------------------ */

static unsigned char payload_bytes[CONTROL_MOST];
static struct writer payload;

static struct writer *say(void)
{
    writer_init(&payload, payload_bytes, sizeof payload_bytes);
    return &payload;
}

static void said(struct crowd *b, uint32_t conn, uint8_t type, uint64_t run, uint64_t view)
{
    struct queued q = {.conn = conn, .size = FRAME_HEADER_BYTES + (uint32_t)payload.used};
    struct frame_header h = {.type = type, .length = (uint32_t)payload.used, .run = run, .view = view};
    size_t want = b->queue_used + sizeof q + q.size;
    if (want > b->queue_capacity) {
        b->queue_capacity = 2 * want;
        b->queue = realloc(b->queue, b->queue_capacity);
        if (b->queue == NULL) {
            crowd_fail("no memory");
        }
    }
    memcpy(b->queue + b->queue_used, &q, sizeof q);
    frame_put(b->queue + b->queue_used + sizeof q, &h);
    memcpy(b->queue + b->queue_used + sizeof q + FRAME_HEADER_BYTES, payload_bytes, payload.used);
    b->queue_used = want;
}

static struct msg_register registering(const struct crowd *b, const struct peer *p)
{
    struct msg_register reg = {.lanes = 2, .addresses = 1};
    reg.address[0] = (struct net_address){.family = 4, .port = 48150};
    if (b->sized) {
        reg.claim = (struct claim){.size = b->members, .rank = p->rank, .attempt = p->conn + 1, .loss = LOSS_SHRINK};
    }
    if (b->worlds > 1 || b->sized) {
        snprintf(reg.world, sizeof reg.world, "world %u", p->world);
    }
    return reg;
}

static void say_vote(struct crowd *b, struct peer *p, uint8_t kind)
{
    struct msg_vote v = {.number = p->answered, .kind = kind, .revision = 1, .key_digest = 7, .content_digest = p->content};
    p->kind = kind;
    put_vote(say(), &v);
    said(b, p->conn, FRAME_VOTE, p->run, p->view);
}

static void say_staged(struct crowd *b, struct peer *p, const struct msg_elected *e)
{
    struct msg_staged s = {.number = e->number, .round = e->round, .status = STAGED_OK};
    p->content = e->content_digest;
    put_staged(say(), &s);
    said(b, p->conn, FRAME_STAGED, p->run, p->view);
}

static void say_lost(struct crowd *b, const struct peer *p, uint64_t lost, enum cause cause)
{
    struct msg_suspect s = {.view = p->view, .target = SUSPECT_LINK, .cause = (uint8_t)cause, .peer = lost};
    put_suspect(say(), &s);
    said(b, p->conn, FRAME_SUSPECT, p->run, p->view);
}

/* What had been launched when the view froze: alike at all, and complete. */
static void say_frozen(struct crowd *b, const struct peer *p, uint32_t attempt)
{
    struct msg_frozen f = {.view = p->view, .attempt = attempt, .reports = REPORTS};
    struct writer *w = say();
    put_frozen(w, &f);
    for (uint32_t i = 0; i < REPORTS; i++) {
        struct op_report r = {.name = {.tag = i, .seq = 1}, .state = OP_HELD, .params = 5, .digest = 6, .call = {.count = 1}};
        put_op_report(w, &r);
    }
    said(b, p->conn, FRAME_FROZEN, p->run, p->view);
}

/* ---- what peers hear ----------------------------------------------------------------------------------------------- */

static void answered(struct peer *p, uint8_t kind)
{
    if (kind != VOTE_NONE && p->kind == kind) {
        p->kind = VOTE_NONE;
        p->answered++;
    }
}

static void hear_welcome(struct crowd *b, struct peer *p, const struct msg_welcome *m)
{
    if (m->id == 0) {
        struct msg_claim claim = {.run = m->run, .epoch = m->epoch, .reg = registering(b, p)};
        put_claim(say(), &claim);
        said(b, p->conn, FRAME_CLAIM, 0, 0);
        return;
    }
    p->id = m->id;
    p->run = m->run;
}

static void hear_view(struct crowd *b, struct peer *p, const struct msg_view *m)
{
    b->edges = m->edges;
    p->view = m->view;
    if (m->parent == 0) {
        p->answered = m->vote_number;
        p->kind = VOTE_NONE;
    } else {
        answered(p, m->answers);
    }
}

union heard {
    struct msg_welcome welcome;
    struct msg_admit admit;
    struct msg_view view;
    struct msg_freeze freeze;
    struct msg_answer answer;
    struct msg_elected elected;
    struct msg_fence fence;
    struct msg_given_up given_up;
    struct msg_heartbeat heartbeat;
};

/* What an action sends, decoded once for all that it goes to; its type. */
static uint8_t hear_once(struct crowd *b, const struct action *a, union heard *m)
{
    struct frame_header h;
    struct reader r;
    static unsigned char whole[BOUNDS_VIEW_BYTES];
    uint32_t parts = 0, at = a->frame;
    while (frame_get(b->out.bytes + at, &h) && h.type == FRAME_VIEW_PART) {
        memcpy(whole + parts, b->out.bytes + at + FRAME_HEADER_BYTES + 8, h.length - 8);
        parts += h.length - 8;
        at += FRAME_HEADER_BYTES + h.length;
    }
    reader_init(&r, parts > 0 ? whole : b->out.bytes + at + FRAME_HEADER_BYTES, parts > 0 ? parts : h.length);
    bool good = h.type == FRAME_WELCOME     ? get_welcome(&r, &m->welcome)
                : h.type == FRAME_ADMIT     ? get_admit(&r, &m->admit)
                : h.type == FRAME_VIEW      ? get_view(&r, &m->view)
                : h.type == FRAME_FREEZE    ? get_freeze(&r, &m->freeze)
                : h.type == FRAME_ANSWER    ? get_answer(&r, &m->answer)
                : h.type == FRAME_ELECTED   ? get_elected(&r, &m->elected)
                : h.type == FRAME_FENCE     ? get_fence(&r, &m->fence)
                : h.type == FRAME_GIVEN_UP  ? get_given_up(&r, &m->given_up)
                : h.type == FRAME_HEARTBEAT ? get_heartbeat(&r, &m->heartbeat)
                                            : h.type == FRAME_PROBE;
    if (!good || (h.type == FRAME_FENCE && !b->lenient)) {
        crowd_fail(good ? m->fence.text : "the master sent what cannot be read");
    }
    return h.type;
}

static void hear_as(struct crowd *b, struct peer *p, uint8_t type, const union heard *m)
{
    switch (type) {
    case FRAME_WELCOME:
        hear_welcome(b, p, &m->welcome);
        break;
    case FRAME_ADMIT:
        put_linked(say(), &(struct msg_linked){.attempt = m->admit.attempt});
        said(b, p->conn, FRAME_LINKED, p->run, p->view);
        break;
    case FRAME_VIEW:
        hear_view(b, p, &m->view);
        break;
    case FRAME_FREEZE:
        say_frozen(b, p, m->freeze.attempt);
        break;
    case FRAME_ANSWER:
        answered(p, m->answer.kind);
        break;
    case FRAME_HEARTBEAT:
        b->told = p == b->peers ? m->heartbeat.wait : b->told;
        break;
    case FRAME_ELECTED:
        p->elected++;
        if (m->elected.role == SYNC_RECEIVER) {
            say_staged(b, p, &m->elected);
        }
        break;
    case FRAME_FENCE:
        b->refused++;
        memcpy(b->refusal, m->fence.text, sizeof b->refusal);
        break;
    default:
        break;
    }
}

static void hear(struct crowd *b, const struct action *a)
{
    union heard m;
    uint8_t type = hear_once(b, a, &m);
    b->sent += a->dests;
    b->probes += type == FRAME_PROBE ? a->dests : 0;
    for (uint32_t i = 0; i < a->dests; i++) {
        hear_as(b, &b->peers[b->of_conn[b->out.dest_ids[a->dest + i]] - 1], type, &m);
    }
}

/* ---- the shell ----------------------------------------------------------------------------------------------------- */

static void grow(struct crowd *b, const struct master_event *e)
{
    struct master_want want;
    while (master_growth(b->master, e, &want)) {
        size_t *given = crowd_memory(want.bytes + 64); /* how many bytes it is stands in front */
        *given = want.bytes;
        b->table_bytes += want.bytes;
        unsigned char *old = master_grow(b->master, &want, (unsigned char *)given + 64);
        if (old != NULL) {
            b->table_bytes -= *(size_t *)(void *)(old - 64);
            free(old - 64);
        }
    }
}

/* The box is empty between steps. */
static void box_fit(struct crowd *b)
{
    struct outbox_bounds need = master_out_need(b->master);
    if (outbox_holds(&b->out, &need)) {
        return;
    }
    free(b->out.actions);
    free(b->out.bytes);
    free(b->out.dest_ids);
    outbox_init(&b->out, crowd_memory(need.actions * sizeof(struct action)), need.actions, crowd_memory(need.bytes), need.bytes,
                crowd_memory(need.dests * sizeof(uint64_t)), need.dests);
}

static void crowd_run(struct crowd *b, const struct master_event *e)
{
    int64_t begin = clock_now_ns();
    grow(b, e);
    box_fit(b);
    master_step(b->master, b->now, e, &b->out);
    b->busy_ns += clock_now_ns() - begin;
    b->out_most = b->out.used > b->out_most ? b->out.used : b->out_most;
    if (master_poisoned(b->master)) {
        const char *where, *what = master_failure(b->master, &where);
        fprintf(stderr, "%s at %s\n", what, where);
        crowd_fail("the master failed");
    }
    for (uint32_t i = 0; i < b->out.count; i++) {
        const struct action *a = &b->out.actions[i];
        if (a->kind == MASTER_SEND) {
            hear(b, a);
        } else if (a->kind == MASTER_PERSIST) {
            b->durable[b->durable_count++ % CONTROL_MOST] = a->value;
        } else if (a->kind == MASTER_SOLVE) {
            b->solves++;
        } else if (a->kind == MASTER_TRACE && b->listen != NULL) {
            char line[400];
            master_trace_text(b->master, a, line, sizeof line);
            b->heard += strstr(line, b->listen) != NULL;
        } else if (a->kind == MASTER_CLOSE && b->lenient && b->of_conn[a->slot] != 0) {
            b->peers[b->of_conn[a->slot] - 1].open = false;
        } else if (a->kind == MASTER_CLOSE) {
            crowd_fail("the master closed a connection");
        }
    }
    outbox_reset(&b->out);
    for (unsigned char *old; (old = master_reclaim(b->master)) != NULL;) {
        b->table_bytes -= *(size_t *)(void *)(old - 64);
        free(old - 64);
    }
}

/* Until nothing is on its way any more. */
static void crowd_deliver(struct crowd *b)
{
    static uint32_t told;
    while (b->queue_at < b->queue_used || told < b->durable_count) {
        if (told < b->durable_count) {
            crowd_run(b, &(struct master_event){.kind = MASTER_PERSISTED, .number = b->durable[told++ % CONTROL_MOST]});
            continue;
        }
        struct queued q;
        struct frame_header h;
        memcpy(&q, b->queue + b->queue_at, sizeof q);
        unsigned char *frame = b->queue + b->queue_at + sizeof q;
        b->queue_at += sizeof q + q.size;
        unsigned char *copy = crowd_memory(q.size); /* answers may move the queue */
        memcpy(copy, frame, q.size);
        if (!frame_get(copy, &h)) {
            crowd_fail("a peer said what is no frame");
        }
        b->taken++;
        crowd_run(b, &(struct master_event){
                   .kind = MASTER_FRAME, .connection = q.conn, .header = &h, .payload = copy + FRAME_HEADER_BYTES});
        free(copy);
    }
    b->queue_at = b->queue_used = 0;
    b->durable_count = told = 0;
}

/* ---- what happens to all ---------------------------------------------------------------------------------------------- */

/* What is due by now. */
static void crowd_ticks(struct crowd *b)
{
    while (master_deadline(b->master) <= b->now) {
        crowd_run(b, &(struct master_event){.kind = MASTER_TICK});
        crowd_deliver(b);
    }
}

static void crowd_open_peer(struct crowd *b, uint32_t index, uint32_t world, uint32_t rank)
{
    struct peer *p = &b->peers[index];
    *p = (struct peer){.conn = index, .world = world, .rank = rank, .open = true, .content = 8};
    b->of_conn[p->conn] = index + 1;
    b->count = index + 1 > b->count ? index + 1 : b->count;
    struct master_event e = {.kind = MASTER_OPENED, .connection = p->conn};
    e.address = (struct net_address){.family = 4, .ip = {10, (uint8_t)(index >> 16), (uint8_t)(index >> 8), (uint8_t)index}, .port = 1};
    crowd_run(b, &e);
    struct msg_register reg = registering(b, p);
    put_register(say(), &reg);
    said(b, p->conn, FRAME_REGISTER, 0, 0);
    crowd_deliver(b);
}

static void crowd_all_vote(struct crowd *b, uint8_t kind)
{
    for (uint32_t i = 0; i < b->count; i++) {
        if (b->peers[i].open && b->peers[i].view != 0) {
            say_vote(b, &b->peers[i], kind);
        }
    }
    crowd_deliver(b);
}

static struct master_config config_of(uint32_t worlds, uint32_t members)
{
    uint32_t peers = worlds * members;
    return (struct master_config){
        .run = 77, .epoch = 1, .max_connections = peers + 64, .max_registered = peers + 32, .max_worlds = worlds + 1, .max_used_names = 100,
        .max_members = members, .max_groups = members < 64 ? members : 64, .max_edges = BOUNDS_EDGES,
        .idle_tags = 16384, .max_operations = 2 * BOUNDS_DECISIONS,
        .heartbeat_ns = CLOCK_S, .dead_ns = 10 * CLOCK_S, .reconnect_ns = 2 * CLOCK_S, .redial_ns = CLOCK_S, .register_ns = 5 * CLOCK_S,
        .admit_ns = 5 * CLOCK_S, .collect_ns = 200 * CLOCK_MS, .probe_ns = 200 * CLOCK_MS, .measure_ns = 15 * CLOCK_S, .replan_ns = 30 * CLOCK_S,
        .plan = {.lanes = 4, .frame_bytes = BOUNDS_FRAME_BYTES, .eager_bytes = BOUNDS_EAGER_BYTES},
        .tour_moves = 20000, .seed = 1};
}

static struct crowd *crowd_new(uint32_t worlds, uint32_t members, bool sized)
{
    struct crowd *b = calloc(1, sizeof *b);
    if (b == NULL) {
        crowd_fail("no memory");
    }
    b->config = config_of(worlds, members);
    b->worlds = worlds;
    b->members = members;
    b->sized = sized;
    b->now = 1000 * CLOCK_S;
    size_t arena_bytes = master_arena_bytes(&b->config);
    if (arena_bytes == 0) {
        crowd_fail("a limit is out of range");
    }
    b->arena = crowd_memory(arena_bytes);
    b->master = master_init(&b->config, b->arena);
    b->peers = calloc(b->config.max_connections, sizeof *b->peers);
    b->of_conn = calloc(b->config.max_connections, sizeof *b->of_conn);
    if (b->peers == NULL || b->of_conn == NULL) {
        crowd_fail("no memory");
    }
    return b;
}

static void crowd_free(struct crowd *b)
{
    for (unsigned char *old; (old = master_release(b->master)) != NULL;) {
        free(old - 64);
    }
    free(b->out.actions);
    free(b->out.bytes);
    free(b->out.dest_ids);
    free(b->arena);
    free(b->peers);
    free(b->of_conn);
    free(b->queue);
    free(b);
}

#endif
