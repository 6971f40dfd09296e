/* bench_master.c - the master at scale: its step function and codec, driven by peers that are a few numbers each.
 *
 * One idea: real frames, no sockets.  What peers say is encoded by the real encoders, taken apart and answered by
 * master_step; a message is a frame of a peer that the master takes.  All worlds live at one master: all join, hear of
 * each other for a heartbeat, update, query, synchronise, lose a member, admit one.
 * Invariant: time is read around the step and the growth of tables alone, so what the peers of this program cost is not
 * in it; at the end of each phase every peer has the answer, or the view, that it is owed, else the program fails.
 *
 *     bench_master [worlds members [sized]]      without arguments: the cases of docs/PERFORMANCE.md
 * SPDX-License-Identifier: MIT */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/clock.h"
#include "master/master.h"

enum { REPORTS = 4, CONTROL_MOST = 1 << 16 };
#define RATE_GOAL 100000.0       /* messages a second */
#define VIEW_GOAL_MS 1000.0      /* a view change, of 1,000 peers */
#define PEER_GOAL_BYTES 4096.0

struct peer {
    uint64_t id, run, view;
    uint32_t conn, world, rank, answered;
    uint8_t kind;                /* of the vote that it waits in */
    bool open;
};

struct bench {
    struct master_config config;
    struct master *master;
    void *arena;
    struct outbox out;
    int64_t now;                 /* the peers' and the master's virtual clock */
    struct peer *peers;
    uint32_t *of_conn;           /* connection -> peer + 1 */
    uint32_t worlds, members, count;
    bool sized;
    /* frames on their way to the master, in order */
    unsigned char *queue;
    size_t queue_at, queue_used, queue_capacity;
    uint64_t durable[CONTROL_MOST];
    uint32_t durable_count;
    size_t table_bytes, table_most;
    uint32_t out_most;
    /* of the phase under way */
    uint64_t taken, sent;
    int64_t busy_ns;
};

struct queued {
    uint32_t conn, size;
};

__attribute__((noreturn)) static void fail(const char *what)
{
    fprintf(stderr, "bench_master: %s\n", what);
    exit(1);
}

static void *memory(size_t bytes)
{
    void *at = aligned_alloc(64, (bytes + 63) / 64 * 64);
    if (at == NULL) {
        fail("no memory");
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

static void said(struct bench *b, uint32_t conn, uint8_t type, uint64_t run, uint64_t view)
{
    struct queued q = {.conn = conn, .size = FRAME_HEADER_BYTES + (uint32_t)payload.used};
    struct frame_header h = {.type = type, .length = (uint32_t)payload.used, .run = run, .view = view};
    size_t want = b->queue_used + sizeof q + q.size;
    if (want > b->queue_capacity) {
        b->queue_capacity = 2 * want;
        b->queue = realloc(b->queue, b->queue_capacity);
        if (b->queue == NULL) {
            fail("no memory");
        }
    }
    memcpy(b->queue + b->queue_used, &q, sizeof q);
    frame_put(b->queue + b->queue_used + sizeof q, &h);
    memcpy(b->queue + b->queue_used + sizeof q + FRAME_HEADER_BYTES, payload_bytes, payload.used);
    b->queue_used = want;
}

static struct msg_register registering(const struct bench *b, const struct peer *p)
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

static void say_vote(struct bench *b, struct peer *p, uint8_t kind)
{
    struct msg_vote v = {.number = p->answered, .kind = kind, .revision = 1, .key_digest = 7, .content_digest = 8};
    p->kind = kind;
    put_vote(say(), &v);
    said(b, p->conn, FRAME_VOTE, p->run, p->view);
}

static void say_heartbeat(struct bench *b, const struct peer *p)
{
    struct msg_heartbeat hb = {.sent_ns = (uint64_t)b->now, .echo_ns = (uint64_t)b->now};
    put_heartbeat(say(), &hb);
    said(b, p->conn, FRAME_HEARTBEAT, p->run, p->view);
}

/* What had been launched when the view froze: alike at all, and complete. */
static void say_frozen(struct bench *b, const struct peer *p, uint32_t attempt)
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

static void answered(struct bench *b, struct peer *p, uint8_t kind)
{
    (void)b;
    if (kind != VOTE_NONE && p->kind == kind) {
        p->kind = VOTE_NONE;
        p->answered++;
    }
}

static void hear_welcome(struct bench *b, struct peer *p, const struct msg_welcome *m)
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

static void hear_view(struct bench *b, struct peer *p, const struct msg_view *m)
{
    p->view = m->view;
    if (m->parent == 0) {
        p->answered = m->vote_number;
        p->kind = VOTE_NONE;
    } else {
        answered(b, p, m->answers);
    }
}

/* One frame, to each of its destinations: it is decoded once, and acted upon by all. */
static void hear(struct bench *b, const struct action *a)
{
    struct frame_header h;
    struct reader r;
    static unsigned char whole[BOUNDS_VIEW_BYTES];
    uint32_t parts = 0, at = a->frame;
    union {
        struct msg_welcome welcome;
        struct msg_admit admit;
        struct msg_view view;
        struct msg_freeze freeze;
        struct msg_answer answer;
    } m;
    while (frame_get(b->out.bytes + at, &h) && h.type == FRAME_VIEW_PART) {
        memcpy(whole + parts, b->out.bytes + at + FRAME_HEADER_BYTES + 8, h.length - 8);
        parts += h.length - 8;
        at += FRAME_HEADER_BYTES + h.length;
    }
    reader_init(&r, parts > 0 ? whole : b->out.bytes + at + FRAME_HEADER_BYTES, parts > 0 ? parts : h.length);
    bool good = h.type == FRAME_WELCOME  ? get_welcome(&r, &m.welcome)
                : h.type == FRAME_ADMIT  ? get_admit(&r, &m.admit)
                : h.type == FRAME_VIEW   ? get_view(&r, &m.view)
                : h.type == FRAME_FREEZE ? get_freeze(&r, &m.freeze)
                : h.type == FRAME_ANSWER ? get_answer(&r, &m.answer)
                                         : h.type == FRAME_HEARTBEAT;
    if (!good) {
        struct msg_fence fence = {0};
        fail(h.type == FRAME_FENCE && get_fence(&r, &fence) ? fence.text : "the master sent what cannot be read");
    }
    b->sent += a->dests;
    for (uint32_t i = 0; i < a->dests; i++) {
        struct peer *p = &b->peers[b->of_conn[b->out.dest_ids[a->dest + i]] - 1];
        switch (h.type) {
        case FRAME_WELCOME:
            hear_welcome(b, p, &m.welcome);
            break;
        case FRAME_ADMIT:
            put_linked(say(), &(struct msg_linked){.attempt = m.admit.attempt});
            said(b, p->conn, FRAME_LINKED, p->run, p->view);
            break;
        case FRAME_VIEW:
            hear_view(b, p, &m.view);
            break;
        case FRAME_FREEZE:
            say_frozen(b, p, m.freeze.attempt);
            break;
        case FRAME_ANSWER:
            answered(b, p, m.answer.kind);
            break;
        default:
            break;
        }
    }
}

/* ---- the shell ----------------------------------------------------------------------------------------------------- */

static void grow(struct bench *b, const struct master_event *e)
{
    struct master_want want;
    while (master_growth(b->master, e, &want)) {
        size_t *given = memory(want.bytes + 64); /* how many bytes it is stands in front */
        *given = want.bytes;
        b->table_bytes += want.bytes;
        b->table_most = b->table_bytes > b->table_most ? b->table_bytes : b->table_most;
        unsigned char *old = master_grow(b->master, &want, (unsigned char *)given + 64);
        if (old != NULL) {
            b->table_bytes -= *(size_t *)(void *)(old - 64);
            free(old - 64);
        }
    }
}

/* The box is empty between steps. */
static void box_fit(struct bench *b)
{
    struct master_bounds need = master_out_need(b->master);
    if (need.actions <= b->out.capacity && need.bytes <= b->out.bytes_capacity && need.dests <= b->out.dest_capacity) {
        return;
    }
    free(b->out.actions);
    free(b->out.bytes);
    free(b->out.dest_ids);
    outbox_init(&b->out, memory(need.actions * sizeof(struct action)), need.actions, memory(need.bytes), need.bytes,
                memory(need.dests * sizeof(uint64_t)), need.dests);
}

static void run(struct bench *b, const struct master_event *e)
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
        fail("the master failed");
    }
    for (uint32_t i = 0; i < b->out.count; i++) {
        const struct action *a = &b->out.actions[i];
        if (a->kind == MASTER_SEND) {
            hear(b, a);
        } else if (a->kind == MASTER_PERSIST) {
            b->durable[b->durable_count++ % CONTROL_MOST] = a->value;
        } else if (a->kind == MASTER_CLOSE) {
            fail("the master closed a connection");
        }
    }
    outbox_reset(&b->out);
    for (unsigned char *old; (old = master_reclaim(b->master)) != NULL;) {
        b->table_bytes -= *(size_t *)(void *)(old - 64);
        free(old - 64);
    }
}

/* Until nothing is on its way any more. */
static void deliver(struct bench *b)
{
    static uint32_t told;
    while (b->queue_at < b->queue_used || told < b->durable_count) {
        if (told < b->durable_count) {
            run(b, &(struct master_event){.kind = MASTER_PERSISTED, .number = b->durable[told++ % CONTROL_MOST]});
            continue;
        }
        struct queued q;
        struct frame_header h;
        memcpy(&q, b->queue + b->queue_at, sizeof q);
        unsigned char *frame = b->queue + b->queue_at + sizeof q;
        b->queue_at += sizeof q + q.size;
        unsigned char *copy = memory(q.size); /* answers may move the queue */
        memcpy(copy, frame, q.size);
        if (!frame_get(copy, &h)) {
            fail("a peer said what is no frame");
        }
        b->taken++;
        run(b, &(struct master_event){
                   .kind = MASTER_FRAME, .connection = q.conn, .header = &h, .payload = copy + FRAME_HEADER_BYTES});
        free(copy);
    }
    b->queue_at = b->queue_used = 0;
    b->durable_count = told = 0;
}

/* ---- phases -------------------------------------------------------------------------------------------------------- */

static void begin(struct bench *b)
{
    b->taken = b->sent = 0;
    b->busy_ns = 0;
}

static void report(const struct bench *b, const char *name)
{
    double s = (double)b->busy_ns / 1e9, rate = (double)b->taken / s;
    printf("%-34s %9" PRIu64 " %9" PRIu64 " %9.1f ms %8.2f us %12.0f /s%s\n", name, b->taken, b->sent, s * 1e3,
           s * 1e6 / (double)b->taken, rate, rate < RATE_GOAL ? "  BELOW" : "");
}

static void expect_rest(const struct bench *b, bool one_view)
{
    for (uint32_t i = 0; i < b->count; i++) {
        const struct peer *p = &b->peers[i];
        if (p->open && (p->view == 0 || p->kind != VOTE_NONE)) {
            fail("a peer has no view, or no answer");
        }
        if (p->open && one_view && p->view != b->peers[p->world * b->members + 1].view) {
            fail("two peers of one world are in different views");
        }
    }
}

static void open_peer(struct bench *b, uint32_t index, uint32_t world, uint32_t rank)
{
    struct peer *p = &b->peers[index];
    *p = (struct peer){.conn = index, .world = world, .rank = rank, .open = true};
    b->of_conn[p->conn] = index + 1;
    b->count = index + 1 > b->count ? index + 1 : b->count;
    struct master_event e = {.kind = MASTER_OPENED, .connection = p->conn};
    e.address = (struct net_address){.family = 4, .ip = {10, (uint8_t)(index >> 16), (uint8_t)(index >> 8), (uint8_t)index}, .port = 1};
    run(b, &e);
    struct msg_register reg = registering(b, p);
    put_register(say(), &reg);
    said(b, p->conn, FRAME_REGISTER, 0, 0);
    deliver(b);
}

static void all_vote(struct bench *b, uint8_t kind)
{
    for (uint32_t i = 0; i < b->count; i++) {
        if (b->peers[i].open && b->peers[i].view != 0) {
            say_vote(b, &b->peers[i], kind);
        }
    }
    deliver(b);
}

static void join_all(struct bench *b)
{
    for (uint32_t w = 0; w < b->worlds; w++) {
        for (uint32_t i = 0; i < b->members; i++) {
            open_peer(b, w * b->members + i, w, i);
        }
    }
    if (!b->sized) { /* the first of each was admitted at once, the others wait for its update */
        all_vote(b, VOTE_UPDATE);
    }
    expect_rest(b, true);
}

/* Each peer's heartbeat, and the master's to each of them. */
static void heartbeats(struct bench *b)
{
    b->now += b->config.heartbeat_ns;
    while (master_deadline(b->master) <= b->now) {
        run(b, &(struct master_event){.kind = MASTER_TICK});
    }
    for (uint32_t i = 0; i < b->count; i++) {
        if (b->peers[i].open) {
            say_heartbeat(b, &b->peers[i]);
        }
    }
    deliver(b);
}

/* The first of each world dies, and all that were linked with it say so: everybody. */
static void lose_one_each(struct bench *b)
{
    for (uint32_t w = 0; w < b->worlds; w++) {
        struct peer *dead = &b->peers[w * b->members];
        dead->open = false;
        run(b, &(struct master_event){.kind = MASTER_CLOSED, .connection = dead->conn});
        for (uint32_t i = 1; i < b->members; i++) {
            const struct peer *p = dead + i;
            struct msg_suspect s = {.view = p->view, .target = SUSPECT_LINK, .cause = CAUSE_LINK_LOST, .peer = dead->id};
            put_suspect(say(), &s);
            said(b, p->conn, FRAME_SUSPECT, p->run, p->view);
        }
        deliver(b);
    }
    expect_rest(b, true);
}

/* One more comes into each world, in an update of all. */
static void admit_one_each(struct bench *b)
{
    for (uint32_t w = 0; w < b->worlds; w++) {
        open_peer(b, w * b->members, w, 0);
    }
    all_vote(b, VOTE_UPDATE);
    expect_rest(b, true);
}

static struct master_config config_of(uint32_t worlds, uint32_t members)
{
    uint32_t peers = worlds * members;
    return (struct master_config){
        .run = 77, .epoch = 1, .max_connections = peers + 64, .max_registered = peers, .max_worlds = worlds + 1,
        .max_members = members, .max_groups = members < 64 ? members : 64, .max_edges = BOUNDS_EDGES,
        .idle_tags = 16384, .max_operations = 2 * BOUNDS_DECISIONS,
        .heartbeat_ns = CLOCK_S, .dead_ns = 10 * CLOCK_S, .reconnect_ns = 2 * CLOCK_S, .register_ns = 5 * CLOCK_S,
        .admit_ns = 5 * CLOCK_S, .collect_ns = 200 * CLOCK_MS, .probe_ns = 200 * CLOCK_MS,
        .plan = {.lanes = 4, .frame_bytes = BOUNDS_FRAME_BYTES, .eager_bytes = BOUNDS_EAGER_BYTES, .algorithm = 1},
        .tour_moves = 20000, .seed = 1};
}

static struct bench *bench_new(uint32_t worlds, uint32_t members, bool sized)
{
    struct bench *b = calloc(1, sizeof *b);
    if (b == NULL) {
        fail("no memory");
    }
    b->config = config_of(worlds, members);
    b->worlds = worlds;
    b->members = members;
    b->sized = sized;
    b->now = 1000 * CLOCK_S;
    size_t arena_bytes = master_arena_bytes(&b->config);
    if (arena_bytes == 0) {
        fail("a limit is out of range");
    }
    b->arena = memory(arena_bytes);
    b->master = master_init(&b->config, b->arena);
    b->peers = calloc((size_t)worlds * members, sizeof *b->peers);
    b->of_conn = calloc(b->config.max_connections, sizeof *b->of_conn);
    if (b->peers == NULL || b->of_conn == NULL) {
        fail("no memory");
    }
    return b;
}

static void bench_free(struct bench *b)
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

static void bench_case(uint32_t worlds, uint32_t members, bool sized)
{
    struct bench *b = bench_new(worlds, members, sized);
    uint32_t peers = worlds * members;
    printf("\n%u world%s of %u%s: %u peers\n%-34s %9s %9s %12s %11s %15s\n", worlds, worlds == 1 ? "" : "s", members,
           sized ? ", created by all their ranks" : "", peers, "", "taken", "sent", "busy", "each", "");
    begin(b);
    join_all(b);
    report(b, "join");
    size_t idle = b->table_bytes;
    begin(b);
    for (int i = 0; i < 5; i++) {
        heartbeats(b);
    }
    report(b, "5 heartbeats");
    begin(b);
    all_vote(b, VOTE_UPDATE);
    expect_rest(b, true);
    report(b, "update that changes nothing");
    begin(b);
    all_vote(b, VOTE_QUERY);
    expect_rest(b, true);
    report(b, "query");
    begin(b);
    all_vote(b, VOTE_SYNC);
    expect_rest(b, true);
    report(b, "sync of a state that is alike");
    begin(b);
    lose_one_each(b);
    report(b, worlds == 1 ? "view change by a death" : "view changes by a death in each");
    double change_ms = (double)b->busy_ns / 1e6 / worlds;
    if (!sized) {
        begin(b);
        admit_one_each(b);
        report(b, worlds == 1 ? "one more is admitted" : "one more is admitted to each");
    }
    printf("view change: %.2f ms%s (goal %.0f for 1,000 peers)\n", change_ms,
           change_ms * 1000 / members > VIEW_GOAL_MS && change_ms > VIEW_GOAL_MS ? " ABOVE" : "", VIEW_GOAL_MS);
    printf("memory: %.0f bytes a peer%s (goal %.0f), %.0f a world; largest step says %.1f MB\n", (double)idle / peers,
           (double)idle / peers > PEER_GOAL_BYTES ? " ABOVE" : "", PEER_GOAL_BYTES, (double)idle / worlds,
           (double)b->out_most / 1e6);
    fflush(stdout);
    bench_free(b);
}

int main(int argc, char **argv)
{
    if (argc >= 3) {
        bench_case((uint32_t)strtoul(argv[1], NULL, 10), (uint32_t)strtoul(argv[2], NULL, 10), argc > 3);
        return 0;
    }
    bench_case(1, 1000, false);
    bench_case(1, 10000, false);
    bench_case(1000, 10, false);
    bench_case(1000, 10, true);
    return 0;
}
