/* master_peers.c - see master_peers.h.
 *
 * Answers of the peers are queued and delivered one by one, so that the order of everything is fixed.
 * SPDX-License-Identifier: MIT */
#include "master_peers.h"

#include <stdlib.h>
#include <string.h>

#include "core/mutant.h"

enum { QUEUE_MOST = 4096, MS = 1000000 };

/* Frames on their way to the master. */
struct queued {
    struct queued *next;
    uint32_t conn;
    uint32_t size;
    unsigned char bytes[];
};

static struct queued *queue_first, **queue_last = &queue_first;
static bool conn_open[256];
static uint32_t next_conn;

static void queue_frame(uint32_t conn, uint8_t type, uint64_t run, uint64_t view, const void *payload, uint32_t size)
{
    struct queued *q = malloc(sizeof *q + FRAME_HEADER_BYTES + size);
    struct frame_header h = {.type = type, .length = size, .run = run, .view = view};
    *q = (struct queued){.conn = conn, .size = FRAME_HEADER_BYTES + size};
    frame_put(q->bytes, &h);
    if (size > 0) {
        memcpy(q->bytes + FRAME_HEADER_BYTES, payload, size);
    }
    *queue_last = q;
    queue_last = &q->next;
}

/* Payload of the frame that is being made. */
static unsigned char payload_bytes[4096];
static struct writer outgoing;

static struct writer *payload_begin(void)
{
    writer_init(&outgoing, payload_bytes, sizeof payload_bytes);
    return &outgoing;
}

static void payload_send(const struct peer *p, uint8_t type)
{
    queue_frame(p->conn, type, p->run, p->view, payload_bytes, (uint32_t)outgoing.used);
}

static struct msg_register register_of(const struct peer *p)
{
    struct msg_register reg = {.run = p->id == 0 ? 0 : p->run, .id = p->id, .group = p->group, .lanes = 2,
                               .view = p->view, .answered = p->answered, .stall_ms = p->stall_ms, .costs.delay_ns = p->delay_ns,
                               .open_vote = p->voting ? p->vote_kind : VOTE_NONE};
    peer_put_addresses(&p->place, &reg);
    memcpy(reg.world, p->world, sizeof reg.world);
    if (p->id == 0) {
        reg.claim = p->claim;
    }
    return reg;
}

static void send_claim(const struct peer *p, uint64_t run, uint32_t epoch)
{
    struct msg_claim claim = {.run = run, .epoch = epoch, .reg = register_of(p)};
    uint8_t type = peer_put_claim(payload_begin(), p, &claim);
    queue_frame(p->conn, type, 0, 0, payload_bytes, (uint32_t)outgoing.used);
}

/* ---- what peers receive -------------------------------------------------------------------------------------------- */

static void take_frame(const struct cluster *c, struct peer *p, const struct frame_header h, const unsigned char *payload)
{
    struct reader r;
    bool parts = h.length == 0 && frame_in_parts(h.type);
    reader_init(&r, parts ? p->parts : payload, parts ? p->parts_used : h.length);
    peer_log_frame(p, h.type);
    switch (h.type) {
    case FRAME_WELCOME:
        (void)get_welcome(&r, &p->welcome);
        p->id = p->welcome.id;
        p->run = p->id == 0 ? 0 : p->welcome.run;
        if (p->id == 0 && !p->no_claim) {
            send_claim(p, p->welcome.run, p->welcome.epoch);
        }
        break;
    case FRAME_GIVEN_UP:
        (void)get_given_up(&r, &p->given_up);
        break;
    case FRAME_ADMIT:
        (void)get_admit(&r, &p->admit);
        if (!p->no_link && !p->mute) {
            peer_linked(p);
        }
        break;
    case FRAME_VIEW:
        peer_take_view(p, &r);
        p->wait = (struct peer_wait){.phase = WAIT_NONE};
        break;
    case FRAME_VIEW_PART:
        peer_take_part(p, &r);
        return;
    case FRAME_FREEZE:
        (void)get_freeze(&r, &p->freeze);
        if (!p->no_frozen && !p->mute) {
            peer_frozen(p);
        }
        break;
    case FRAME_ANSWER:
        peer_take_answer(p, &r);
        break;
    case FRAME_FENCE:
        (void)get_fence(&r, &p->fence);
        break;
    case FRAME_ELECTED:
        peer_take_elected(p, &r);
        break;
    case FRAME_PROBE:
        if (peer_take_probe(c, p, &r, payload_begin())) {
            payload_send(p, FRAME_MEASURED);
        }
        break;
    case FRAME_HEARTBEAT:
        (void)get_heartbeat(&r, &p->told);
        break;
    default:
        peer_take_answered(p, h.type, &r);
    }
    p->parts_used = 0;
}

/* A frame, or several: a list that travels in parts. */
static void peer_take(const struct cluster *c, struct peer *p, const unsigned char *frame, uint32_t size)
{
    struct frame_header h;
    for (uint32_t at = 0; at < size; at += FRAME_HEADER_BYTES + h.length) {
        if (!frame_get(frame + at, &h) || h.length > size - at - FRAME_HEADER_BYTES || (p->run != 0 && h.run != p->run)) {
            abort();
        }
        take_frame(c, p, h, frame + at + FRAME_HEADER_BYTES);
    }
}

/* ---- the shell ----------------------------------------------------------------------------------------------------- */

static void run_event(struct cluster *c, const struct master_event *e);

static void persist_all(struct cluster *c)
{
    while (c->durable < c->persists) {
        struct master_event e = {.kind = MASTER_PERSISTED, .number = c->persists_at[c->durable++ % PEERS_RECORDS]};
        run_event(c, &e);
    }
}

static void carry_out(struct cluster *c)
{
    struct outbox *o = &c->out;
    c->most_actions = o->count > c->most_actions ? o->count : c->most_actions;
    c->most_bytes = o->used > c->most_bytes ? o->used : c->most_bytes;
    c->most_dests = o->dests > c->most_dests ? o->dests : c->most_dests;
    for (uint32_t i = 0; i < o->count; i++) {
        const struct action *a = &o->actions[i];
        size_t used = strlen(c->trace);
        switch ((enum master_action)a->kind) {
        case MASTER_SEND:
            for (uint32_t k = 0; k < a->dests; k++) {
                for (uint32_t p = 0; p < c->count; p++) {
                    if (c->peers[p].open && c->peers[p].conn == o->dest_ids[a->dest + k]) {
                        peer_take(c, &c->peers[p], o->bytes + a->frame, a->frame_bytes);
                    }
                }
            }
            break;
        case MASTER_CLOSE:
            conn_open[a->slot] = false;
            for (uint32_t p = 0; p < c->count; p++) {
                c->peers[p].open = c->peers[p].open && c->peers[p].conn != a->slot;
            }
            break;
        case MASTER_PERSIST:
            if (!journal_append(&c->journal, o->bytes + a->frame, a->frame_bytes)) {
                abort();
            }
            c->persists_at[c->persists++ % PEERS_RECORDS] = a->value;
            break;
        case MASTER_SOLVE:
            c->solve = a->value;
            c->solves++;
            break;
        case MASTER_TRACE:
            master_trace_text(c->master, a, c->line, sizeof c->line);
            if (master_trace_level(a) >= LOG_INFO && strstr(c->line, c->listen) != NULL) {
                memcpy(c->heard, c->line, sizeof c->heard);
            }
            if (used + strlen(a->data) + 2 < sizeof c->trace) {
                memcpy(c->trace + used, a->data, strlen(a->data) + 1);
                strncat(c->trace, "\n", 2);
            }
            break;
        }
    }
    outbox_reset(o);
    if (!c->hold_persist) {
        persist_all(c);
    }
}

static void *table_new(const struct cluster *c, size_t bytes)
{
    return memset(aligned_alloc(64, (bytes + 63) & ~(size_t)63), c->fill, bytes);
}

static void run_event(struct cluster *c, const struct master_event *e)
{
    struct master_want want;
    while (!c->no_memory && master_growth(c->master, e, &want)) {
        free(master_grow(c->master, &want, table_new(c, want.bytes)));
    }
    struct outbox_bounds need = master_out_need(c->master); /* no more than it says that it needs */
    outbox_limit(&c->out, &need);
    master_step(c->master, c->now, e, &c->out);
    carry_out(c);
    for (void *memory; (memory = master_reclaim(c->master)) != NULL;) {
        free(memory);
    }
}

/* Delivers what peers have sent, until they are silent. */
static void deliver(struct cluster *c)
{
    while (queue_first != NULL) {
        struct queued *q = queue_first;
        queue_first = q->next;
        queue_last = queue_first == NULL ? &queue_first : queue_last;
        struct frame_header h;
        if (!frame_get(q->bytes, &h)) {
            abort();
        }
        if (conn_open[q->conn]) {
            struct master_event e = {.kind = MASTER_FRAME, .connection = q->conn, .header = &h,
                                     .payload = q->bytes + FRAME_HEADER_BYTES};
            run_event(c, &e);
        }
        free(q);
    }
}

struct master_config cluster_config(void)
{
    return (struct master_config){
        .run = 77, .epoch = 1, .max_connections = 64, .max_registered = 64, .max_worlds = 40, .max_used_names = 100,
        .max_members = 24, .max_groups = 4, .max_edges = BOUNDS_EDGES, .idle_tags = 1000, .max_operations = 64,
        .heartbeat_ns = 1000LL * MS, .dead_ns = 10000LL * MS, .reconnect_ns = 2000LL * MS, .redial_ns = 1000LL * MS, .register_ns = 5000LL * MS,
        .admit_ns = 5000LL * MS, .collect_ns = 200LL * MS, .probe_ns = 200LL * MS, .measure_ns = 15000LL * MS, .replan_ns = 30000LL * MS,
        .plan = {.lanes = 4, .frame_bytes = 65536, .eager_bytes = 16384},
        .tour_moves = 10000, .seed = 1, .check_every = 1};
}

struct cluster *cluster_with(const struct master_config *config)
{
    struct cluster *c = calloc(1, sizeof *c);
    c->config = *config;
    c->now = 1000LL * MS;
    c->beat_ms = 500;
    c->fill = 0xA5;
    c->arena = table_new(c, master_arena_bytes(config));
    c->master = master_init(config, c->arena);
    struct outbox_bounds most = master_out_most(config);
    outbox_init(&c->out, calloc(most.actions, sizeof(struct action)), most.actions, malloc(most.bytes), most.bytes,
                calloc(most.dests, sizeof(uint64_t)), most.dests);
    journal_init(&c->journal, c->journal_bytes, sizeof c->journal_bytes);
    memset(conn_open, 0, sizeof conn_open);
    next_conn = 0;
    return c;
}

struct cluster *cluster_new(void)
{
    struct master_config config = cluster_config();
    return cluster_with(&config);
}

void cluster_free(struct cluster *c)
{
    for (void *memory; (memory = master_release(c->master)) != NULL;) {
        free(memory);
    }
    free(c->out.actions);
    free(c->out.bytes);
    free(c->out.dest_ids);
    free(c->arena);
    free(c);
}

uint32_t cluster_open(struct cluster *c)
{
    while (conn_open[next_conn % c->config.max_connections]) {
        next_conn++;
    }
    uint32_t conn = next_conn++ % c->config.max_connections;
    conn_open[conn] = true;
    struct master_event e = {.kind = MASTER_OPENED, .connection = conn};
    e.address = (struct net_address){.family = 4, .ip = {10, 0, c->host != 0, c->host != 0 ? c->host : (uint8_t)(conn + 1)}, .port = 1234};
    run_event(c, &e);
    return conn;
}

bool cluster_closed(const struct cluster *c, uint32_t conn)
{
    (void)c;
    return !conn_open[conn];
}

void cluster_frame_of(struct cluster *c, uint32_t conn, uint8_t type, const void *payload, uint32_t size, uint64_t run, uint64_t view)
{
    queue_frame(conn, type, run, view, payload, size);
    deliver(c);
}

static void tick(struct cluster *c)
{
    struct master_event e = {.kind = MASTER_TICK};
    run_event(c, &e);
    deliver(c);
}

static void send_heartbeats(struct cluster *c)
{
    for (uint32_t i = 0; i < c->count; i++) {
        struct msg_heartbeat hb = {.sent_ns = (uint64_t)c->now, .echo_ns = c->peers[i].told.sent_ns, .wait = c->peers[i].wait};
        put_heartbeat(payload_begin(), &hb);
        if (c->peers[i].open && !c->peers[i].mute) {
            payload_send(&c->peers[i], FRAME_HEARTBEAT);
        }
    }
    deliver(c);
}

void cluster_pass(struct cluster *c, int64_t ms)
{
    int64_t end = c->now + ms * MS, beat = c->now + c->beat_ms * MS;
    while (c->now < end) {
        int64_t due = master_deadline(c->master);
        int64_t next = beat < end ? beat : end;
        c->now = due <= next ? (due > c->now ? due : c->now) : next;
        if (due <= next) {
            tick(c);
        }
        if (c->now >= beat) {
            send_heartbeats(c);
            beat = c->now + c->beat_ms * MS;
        }
    }
}

void cluster_bug(struct cluster *c)
{
    struct master_event e = {.kind = MASTER_OPENED, .connection = c->config.max_connections};
    run_event(c, &e);
}

void cluster_persisted(struct cluster *c)
{
    persist_all(c);
    deliver(c);
}

void cluster_solved(struct cluster *c, uint64_t number, const uint32_t *order, uint32_t count)
{
    struct master_event e = {.kind = MASTER_SOLVED, .number = number, .order = order, .count = count};
    run_event(c, &e);
    deliver(c);
}

/* ---- what peers do ------------------------------------------------------------------------------------------------- */

static void send_register(struct peer *p)
{
    struct msg_register reg = register_of(p);
    put_register(payload_begin(), &reg);
    queue_frame(p->conn, FRAME_REGISTER, reg.run, 0, payload_bytes, (uint32_t)outgoing.used);
}

static struct peer *peer_new(struct cluster *c, uint32_t group, const char *world, const struct claim *claim)
{
    struct peer *p = &c->peers[c->count];
    memset(p, 0, sizeof *p);
    p->group = group;
    strncpy(p->world, world, sizeof p->world - 1);
    p->claim = *claim;
    p->stall_ms = c->stall_ms;
    p->delay_ns = c->delay_ns;
    p->place = c->place;
    p->conn = cluster_open(c);
    p->open = true;
    c->count++;
    send_register(p);
    deliver(c);
    return p;
}

struct peer *peer_join_world(struct cluster *c, uint32_t group, const char *world)
{
    return peer_new(c, group, world, &(struct claim){0});
}

struct peer *peer_create(struct cluster *c, const char *world, const struct claim *claim)
{
    struct claim own = *claim;
    own.attempt = own.attempt != 0 ? own.attempt : c->count + 1;
    return peer_new(c, 0, world, &own);
}

void peer_claim(struct cluster *c, struct peer *p, const struct claim *claim, uint64_t run, uint32_t epoch)
{
    p->claim = *claim;
    send_claim(p, run, epoch);
    deliver(c);
}

void peer_create_again(struct cluster *c, struct peer *p)
{
    p->id = p->run = 0;
    p->conn = cluster_open(c);
    p->open = true;
    send_register(p);
    deliver(c);
}

struct peer *peer_join(struct cluster *c, uint32_t group)
{
    return peer_join_world(c, group, "");
}

void cluster_world(struct cluster *c, uint32_t count, uint32_t group, const char *world)
{
    uint32_t first = c->count;
    for (uint32_t i = 0; i < count; i++) {
        peer_join_world(c, group, world);
    }
    peer_vote(c, &c->peers[first], VOTE_UPDATE); /* it was admitted at once; the others wait for it */
}

void cluster_members(struct cluster *c, uint32_t count, uint32_t group)
{
    uint32_t before = c->count;
    for (uint32_t i = 0; i < count; i++) {
        peer_join(c, group);
    }
    for (uint32_t i = 0; i < before + 1 && c->peers[before + count - 1].view == 0; i++) {
        peer_vote(c, &c->peers[i], VOTE_UPDATE);
    }
}

static void send_vote(struct peer *p)
{
    put_vote(payload_begin(), &p->vote);
    payload_send(p, FRAME_VOTE);
}

void peer_first_update(struct cluster *c, struct peer *p, bool passed)
{
    p->voting = true;
    p->vote_kind = VOTE_UPDATE;
    p->vote = (struct msg_vote){.number = p->answered, .kind = VOTE_UPDATE, .first = 1, .passed = passed};
    send_vote(p);
    deliver(c);
}

void peer_vote(struct cluster *c, struct peer *p, enum vote_kind kind)
{
    p->voting = true;
    p->vote_kind = (uint8_t)kind;
    p->vote = (struct msg_vote){.number = p->answered, .kind = (uint8_t)kind, .idle = kind == VOTE_UPDATE ? p->idle : 0};
    send_vote(p);
    deliver(c);
}

void peer_sync(struct cluster *c, struct peer *p, uint8_t strategy, uint64_t revision, uint64_t keys, uint64_t content,
               bool inequality)
{
    p->voting = true;
    p->vote_kind = VOTE_SYNC;
    p->vote = (struct msg_vote){.number = p->answered, .kind = VOTE_SYNC, .strategy = strategy, .revision = revision,
                                .key_digest = keys, .content_digest = content, .has_inequality = inequality};
    send_vote(p);
    deliver(c);
}

void peer_cut(struct cluster *c, struct peer *p)
{
    struct master_event e = {.kind = MASTER_CLOSED, .connection = p->conn};
    p->open = false;
    conn_open[p->conn] = false;
    run_event(c, &e);
    deliver(c);
}

void peer_resume(struct cluster *c, struct peer *p)
{
    p->conn = cluster_open(c);
    p->open = true;
    send_register(p);
    if (p->voting) {
        send_vote(p);
    }
    deliver(c);
}

void peer_suspect(struct cluster *c, struct peer *p, enum suspect_target target, enum cause cause, const struct peer *at)
{
    struct msg_suspect s = {.view = p->view, .target = (uint8_t)target, .cause = (uint8_t)cause,
                            .peer = at == NULL ? 0 : at->id, .text = "as seen from here"};
    put_suspect(payload_begin(), &s);
    payload_send(p, FRAME_SUSPECT);
    deliver(c);
}

void peer_crash(struct cluster *c, struct peer *p)
{
    peer_cut(c, p);
    for (uint32_t i = 0; i < c->count; i++) {
        struct peer *o = &c->peers[i];
        if (o != p && o->open && o->group == p->group && o->view != 0 && o->view == p->view) {
            peer_suspect(c, o, SUSPECT_LINK, CAUSE_PEER_LOST, p);
            return;
        }
    }
}

void peer_frozen(struct peer *p)
{
    struct msg_frozen f = {.view = p->freeze.view, .attempt = p->freeze.attempt, .reports = p->report_count};
    put_frozen(payload_begin(), &f);
    for (uint32_t i = 0; i < p->report_count; i++) {
        put_op_report(&outgoing, &p->reports[i]);
        if (p->reports[i].state == OP_REFUSED && p->reports[i].cause == CAUSE_MISMATCH) {
            put_op_clash(&outgoing, &p->clash[i]);
        }
    }
    payload_send(p, FRAME_FROZEN);
}

void peer_linked(struct peer *p)
{
    struct msg_linked l = {.attempt = p->admit.attempt, .failed = p->unreachable != 0};
    put_linked(payload_begin(), &l);
    if (p->unreachable != 0) {
        put_u64(&outgoing, p->unreachable);
    }
    payload_send(p, FRAME_LINKED);
}

void peer_staged(struct cluster *c, struct peer *p, enum staged_status status, uint64_t liar)
{
    struct msg_staged s = {.number = p->elected.number, .round = p->elected.round, .status = (uint8_t)status,
                           .liar = liar};
    memcpy(s.text, p->differs, sizeof s.text);
    put_staged(payload_begin(), &s);
    payload_send(p, FRAME_STAGED);
    deliver(c);
}

void peer_waits(struct cluster *c, struct peer *p, const struct peer_wait *wait)
{
    struct msg_heartbeat hb = {.sent_ns = (uint64_t)c->now, .wait = *wait};
    p->wait = *wait;
    put_heartbeat(payload_begin(), &hb);
    payload_send(p, FRAME_HEARTBEAT);
    deliver(c);
}

void peer_reports(struct peer *p, uint64_t tag, uint32_t seq, enum op_state state, enum cause cause)
{
    p->reports[p->report_count++] = (struct op_report){.name = {.tag = tag, .seq = seq}, .state = (uint8_t)state,
                                                       .cause = (uint8_t)cause, .params = 42, .digest = 9};
}

bool peer_saw(const struct peer *p, const char *frames)
{
    return strstr(p->log, frames) != NULL;
}

void peer_forget(struct peer *p)
{
    p->log[0] = '\0';
}
