/* session.c - entry of the session: arena, dispatch of events, deadlines, what the API may read.
 *
 * One event in, actions out.  A failed assertion lands here: the machine is poisoned, every call in it ends with POISONED, links and
 * the master's connection are closed, so that nobody waits for it.  Invariant: nothing outside the arena is written but
 * the event's results, the outbox and result buffers of eager operations.
 * SPDX-License-Identifier: MIT */
#include <limits.h>
#include <stdio.h>

#include "session/session_state.h"

void session_trace(struct outbox *out, const char *text, uint64_t id, uint64_t value)
{
    struct action *a = outbox_add(out, ACT_TRACE);
    a->data = text;
    a->id = id;
    a->value = value;
}

/* ---- arena ---- */

struct carver {
    unsigned char *base; /* null: only measure */
    size_t used;
};

static void *carve(struct carver *c, size_t count, size_t size)
{
    size_t at = (c->used + 63) & ~(size_t)63;
    c->used = at + count * size;
    return c->base == NULL ? NULL : c->base + at;
}

static uint32_t op_capacity(const struct session_config *cfg)
{
    return cfg->max_live + cfg->max_records;
}

static size_t lay_out(const struct session_config *cfg, struct carver *c, struct session *s)
{
    struct session measure;
    struct session *t = s == NULL ? &measure : s;
    uint32_t ops = op_capacity(cfg);
    t->buckets = 1;
    while (t->buckets < ops) {
        t->buckets *= 2;
    }
    t->view.ids = carve(c, cfg->max_members, sizeof(uint64_t));
    t->view.peer = carve(c, cfg->max_members, sizeof(uint32_t));
    t->view.ring = carve(c, cfg->max_members, sizeof(uint32_t));
    t->view.weights = carve(c, cfg->max_members, sizeof(uint32_t));
    t->view.edge = carve(c, SESSION_EDGES, sizeof(struct missing_edge));
    t->scratch_members = carve(c, cfg->max_members, sizeof(struct member_info));
    t->scratch_ids = carve(c, 2 * cfg->max_members, sizeof(uint64_t));
    t->peers = carve(c, 2 * cfg->max_members, sizeof(struct peer));
    t->ops = carve(c, ops, sizeof(struct op));
    t->op_bucket = carve(c, t->buckets, sizeof(uint32_t));
    t->op_sets = carve(c, (size_t)ops * bitset_words(cfg->max_members), sizeof(uint64_t));
    t->marks = carve(c, (size_t)cfg->max_live * cfg->max_members, sizeof(struct mark));
    t->marks_free = carve(c, cfg->max_live, sizeof(uint32_t));
    t->tags = carve(c, cfg->max_tags, sizeof(struct tag));
    t->owed = carve(c, cfg->max_owed, sizeof(struct owed));
    t->slots = carve(c, cfg->max_ops, sizeof(struct slot));
    t->park = carve(c, cfg->park_blocks, cfg->park_block_bytes);
    t->park_free = carve(c, cfg->park_blocks, sizeof(uint32_t));
    t->wire = carve(c, 2 * BOUNDS_EAGER_BYTES + 256, 1);
    t->fetch.holders = carve(c, cfg->max_members, sizeof(uint64_t));
    t->fetch.holder_down = carve(c, cfg->max_members, sizeof(bool));
    t->fetch.asked = carve(c, cfg->max_members, sizeof(uint32_t));
    return c->used;
}

size_t session_arena_bytes(const struct session_config *config)
{
    struct carver c = {.used = sizeof(struct session)};
    return lay_out(config, &c, NULL) + 64;
}

struct session *session_init(const struct session_config *config, void *arena)
{
    memset(arena, 0, session_arena_bytes(config));
    struct session *s = arena;
    struct carver c = {.base = arena, .used = sizeof *s};
    s->cfg = *config;
    lay_out(config, &c, s);
    s->rng.state = config->seed;
    s->peer_count = 2 * config->max_members;
    s->op_count = op_capacity(config);
    for (uint32_t i = 0; i < s->op_count; i++) {
        s->ops[i].next = i + 1 < s->op_count ? i + 1 : NONE;
        s->ops[i].finished = s->op_sets + (size_t)i * bitset_words(config->max_members);
    }
    for (uint32_t i = 0; i < s->buckets; i++) {
        s->op_bucket[i] = NONE;
    }
    for (uint32_t i = 0; i < config->max_live; i++) {
        s->marks_free[i] = config->max_live - 1 - i;
    }
    s->marks_left = config->max_live;
    for (uint32_t i = 0; i < config->max_owed; i++) {
        s->owed[i].next = i + 1 < config->max_owed ? i + 1 : NONE;
    }
    s->owed_free = config->max_owed > 0 ? 0 : NONE;
    for (uint32_t i = 0; i < config->park_blocks; i++) {
        s->park_free[i] = i;
    }
    s->park_left = config->park_blocks;
    s->generation = 1;
    s->finished_by = INT64_MAX;
    s->next_heartbeat = 0;
    return s;
}

/* ---- events ---- */

static void on_peer_frame(struct session *s, struct session_event *e, struct outbox *out)
{
    uint32_t from = peer_find(s, e->peer);
    if (from == NONE || !s->peers[from].link_up) {
        return;
    }
    s->peers[from].heard = s->now;
    struct reader r;
    reader_init(&r, e->payload, e->header->length);
    const struct frame_header *h = e->header;
    if (h->type == FRAME_PING) {
        links_ping(s, from, h->view, out);
        return;
    }
    if (!s->peers[from].in_view || h->view > s->view.view) {
        return; /* members speak of a view only to those who said that they are in it */
    }
    bool current = h->view == s->view.view;
    switch (h->type) {
    case FRAME_HOLD:
        hold_message(s, from, h, &r, out);
        break;
    case FRAME_REFUSE:
        refusal_message(s, from, h, &r, out);
        break;
    case FRAME_FINISHED:
        hold_finished(s, from, h, &r, out);
        break;
    case FRAME_READY:
        if (current) {
            hold_ready(s, from, &r, out);
        }
        break;
    case FRAME_EAGER:
        if (current) {
            eager_message(s, from, &r, out);
        }
        break;
    case FRAME_WANT:
        if (current) {
            eager_want(s, from, &r, out);
        }
        break;
    default:
        links_down(s, e->peer, false, out); /* no business on a control link */
        break;
    }
}

/* A peer stands still while it waits for a third one that has not launched: that wait is for a program, not for a machine. */
static bool launched_by_all(struct session *s, struct op *op)
{
    for (uint32_t r = 0; r < s->view.world; r++) {
        if (r != s->view.rank && !op_mark(s, op, r)->ready) {
            return false;
        }
    }
    return true;
}

static void on_lanes(struct session *s, struct session_event *e, struct outbox *out)
{
    if (e->slot >= s->cfg.max_ops) {
        return;
    }
    struct slot *c = &s->slots[e->slot];
    struct op *op = c->op == NONE || c->phase != SLOT_RUNNING ? NULL : &s->ops[c->op];
    if (e->kind == SESSION_IDLE) {
        slot_idle(s, e->slot, out);
    } else if (op == NULL) {
        return; /* it ended while the lane was on its way here */
    } else if (e->kind == SESSION_DONE) {
        c->outcome.tx_bytes = e->tx_bytes;
        c->outcome.rx_bytes = e->rx_bytes;
        launch_done(s, op, e->digest, out);
    } else if (op->phase == OP_RUN && op->refused == 0 && !s->frozen) {
        uint32_t rank = view_rank(s, e->peer);
        if (rank != NONE && rank != s->view.rank && launched_by_all(s, op)) {
            links_suspect(s, SUSPECT_OPERATION, CAUSE_NO_PROGRESS, e->peer, &op->name, "no bytes moved", out);
        }
    }
}

static void on_cancel(struct session *s, struct session_event *e, struct outbox *out)
{
    if (e->slot < s->cfg.max_ops && s->slots[e->slot].phase == SLOT_RUNNING && s->slots[e->slot].op != NONE) {
        bool own = e->number == CAUSE_NO_MEMORY || e->number == CAUSE_INTERNAL;
        uint8_t why = own ? (uint8_t)e->number : CAUSE_CANCEL;
        refusal_request(s, &s->ops[s->slots[e->slot].op], why, out);
    }
}

static void on_measured(struct session *s, const struct session_event *e, struct outbox *out)
{
    if (s->welcomed) {
        struct msg_measured m = {.round = e->slot, .to = e->peer, .bits_per_second = e->number};
        put_measured(outbox_frame(out, FRAME_MEASURED, s->run, s->view.view), &m);
        outbox_send(out, ACT_MASTER, 0);
    }
}

static void check_deadlines(struct session *s, struct outbox *out)
{
    for (uint32_t i = 0; s->slots_used > 0 && i < s->cfg.max_ops; i++) {
        struct slot *c = &s->slots[i];
        if (c->phase == SLOT_RUNNING && c->op != NONE && s->now >= c->launch.deadline) {
            c->launch.deadline = INT64_MAX;
            refusal_request(s, &s->ops[c->op], CAUSE_DEADLINE, out);
        }
    }
}

static void on_tick(struct session *s, struct outbox *out)
{
    check_deadlines(s, out);
    if (s->now >= s->finished_by) {
        hold_flush_finished(s, out);
    }
    links_tick(s, out);
    join_tick(s, out);
}

/* Calls of the program. */
static bool dispatch_call(struct session *s, struct session_event *e, struct outbox *out)
{
    switch ((uint32_t)e->kind) {
    case SESSION_CONNECT:
        join_connect(s, e, out);
        return true;
    case SESSION_LEAVE:
        join_leave(s, CAUSE_PEER_LEFT, RESULT_GONE, e->text != NULL ? e->text : "this peer left the run", true, out);
        return true;
    case SESSION_LAUNCH:
        launch_call(s, e, out);
        return true;
    case SESSION_CANCEL:
        on_cancel(s, e, out);
        return true;
    case SESSION_COLLECT:
        launch_collect(s, e);
        return true;
    case SESSION_VOTE:
        ballot_call(s, e, out);
        return true;
    case SESSION_COLLECT_VOTE:
        ballot_collect(s, e);
        return true;
    case SESSION_COLLECT_CONNECT:
        e->outcome = s->connect_outcome;
        e->outcome.result = s->connect_ended ? s->connect_outcome.result : RESULT_USAGE;
        s->connecting = s->connecting && !s->connect_ended;
        return true;
    default:
        return false;
    }
}

/* What links to peers say. */
static bool dispatch_link(struct session *s, struct session_event *e, struct outbox *out)
{
    switch ((uint32_t)e->kind) {
    case SESSION_HELLO:
        links_hello(s, e);
        return true;
    case SESSION_LINK_UP:
        links_up(s, e, out);
        return true;
    case SESSION_LINK_DOWN:
        links_down(s, e->peer, false, out);
        return true;
    case SESSION_LINK_FAILED:
        links_failed(s, e->peer, out);
        return true;
    case SESSION_LINK_STALE:
        links_stale(s, e->view, out);
        return true;
    case SESSION_PEER_FRAME:
        on_peer_frame(s, e, out);
        return true;
    case SESSION_DATA_UP:
        links_data_up(s, e, out);
        return true;
    case SESSION_DATA_DOWN:
        links_data_down(s, e, out);
        return true;
    case SESSION_SYNC_FRAME:
        fetch_frame(s, e, out);
        return true;
    case SESSION_SYNC_DOWN:
        fetch_down(s, e->peer, out);
        return true;
    default:
        return false;
    }
}

static void dispatch(struct session *s, struct session_event *e, struct outbox *out)
{
    if (dispatch_call(s, e, out) || dispatch_link(s, e, out)) {
        return;
    }
    switch ((uint32_t)e->kind) {
    case SESSION_MASTER_UP:
        join_master_up(s, out);
        break;
    case SESSION_MASTER_DOWN:
        join_master_down(s, e->text, out);
        break;
    case SESSION_MASTER_FRAME:
        join_master_frame(s, e, out);
        break;
    case SESSION_DONE:
    case SESSION_IDLE:
    case SESSION_STALLED:
        on_lanes(s, e, out);
        break;
    case SESSION_MEMORY:
        fetch_memory(s, e->memory, out);
        break;
    case SESSION_MEASURED:
        on_measured(s, e, out);
        break;
    case SESSION_TICK:
        on_tick(s, out);
        break;
    default:
        PCCL_ASSERT(false); /* every kind is somebody's */
        break;
    }
}

/* Whatever state the tables are in: every call ends, everything is closed. */
static void poison(struct session *s, const struct check_pad *pad, struct outbox *out)
{
    s->poisoned = true;
    outbox_reset(out);
    snprintf(s->left_text, sizeof s->left_text, "failed invariant %s at %s", pad->what, pad->where);
    for (uint32_t i = 0; i < s->cfg.max_ops; i++) {
        struct slot *c = &s->slots[i];
        if (c->phase == SLOT_FREE || c->phase == SLOT_RETURNED) {
            continue;
        }
        c->outcome.result = RESULT_POISONED;
        c->outcome.restore = c->launch.in_place && !c->launch.no_memory;
        c->phase = SLOT_ENDING;
        slot_stop(s, i, out);
        if (!c->started) {
            c->phase = SLOT_RETURNED;
            outbox_add(out, ACT_OP_RETURN)->slot = i;
        }
    }
    s->vote_outcome.result = RESULT_POISONED;
    if (s->vote != VOTE_NONE && !s->vote_ended) {
        s->vote_ended = true;
        outbox_add(out, ACT_VOTED);
    }
    s->connect_outcome.result = RESULT_POISONED;
    if (s->connecting && !s->connect_ended) {
        s->connect_ended = true;
        outbox_add(out, ACT_CONNECTED);
    }
    s->phase = PHASE_IDLE;
    s->view.world = 0;
    memset(s->peers, 0, sizeof *s->peers * s->peer_count);
    outbox_add(out, ACT_CLOSE_MASTER);
    outbox_add(out, ACT_LINKS);
    outbox_add(out, ACT_LEFT);
}

static void step_poisoned(struct session *s, struct session_event *e, struct outbox *out)
{
    memset(&e->outcome, 0, sizeof e->outcome);
    e->outcome.result = RESULT_POISONED;
    memcpy(e->outcome.text, s->left_text, sizeof e->outcome.text);
    if (e->kind == SESSION_HELLO) {
        e->verdict = HELLO_STALE;
        e->view = 0;
    }
    if (e->slot >= s->cfg.max_ops) {
        return;
    }
    struct slot *c = &s->slots[e->slot];
    if (e->kind == SESSION_IDLE) {
        slot_idle(s, e->slot, out);
    } else if (e->kind == SESSION_COLLECT && c->phase == SLOT_RETURNED) {
        e->outcome = c->outcome;
        c->phase = SLOT_FREE;
        s->slots_used--;
    }
}

/* setjmp lives in a frame of its own: nothing but the pad changes between it and the jump. */
static bool dispatch_guarded(struct session *s, struct session_event *e, struct outbox *out, struct check_pad *pad)
{
    if (setjmp(pad->env) != 0) {
        return false;
    }
    check_current = pad;
    dispatch(s, e, out);
    PCCL_ASSERT(!out->overflow);
    return true;
}

void session_step(struct session *s, int64_t now, struct session_event *event, struct outbox *out)
{
    s->now = now;
    if (s->poisoned) {
        step_poisoned(s, event, out);
        return;
    }
    struct check_pad pad = {.outer = check_current};
    bool good = dispatch_guarded(s, event, out, &pad);
    check_current = pad.outer;
    if (good) {
        s->last_step = event->kind == SESSION_TICK ? now : s->last_step;
    } else {
        poison(s, &pad, out);
        step_poisoned(s, event, out);
    }
}

/* ---- reading ---- */

static int64_t earlier(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

int64_t session_deadline(const struct session *s)
{
    if (s->poisoned || s->phase == PHASE_IDLE) {
        return INT64_MAX;
    }
    int64_t at = earlier(s->next_heartbeat, s->finished_by);
    if (s->phase == PHASE_DIALING) {
        at = earlier(at, s->connect_by);
    }
    if (s->proposal != 0 && !s->linked_sent) {
        at = earlier(at, s->link_by);
    }
    if (s->replaying) {
        at = s->now;
    }
    for (uint32_t i = 0; s->slots_used > 0 && i < s->cfg.max_ops; i++) {
        if (s->slots[i].phase == SLOT_RUNNING) {
            at = earlier(at, s->slots[i].launch.deadline);
        }
    }
    return at;
}

bool session_poisoned(const struct session *s)
{
    return s->poisoned;
}

/* A step answers one message or ends everything: each slot and peer once, each live operation said again in part. */
void session_out_bounds(const struct session_config *config, uint32_t *actions, uint32_t *bytes, uint32_t *dests)
{
    uint32_t ops = op_capacity(config);
    *actions = 4 * ops + 8 * config->max_ops + 8 * config->max_members + 256;
    *bytes = 2 * (2 * BOUNDS_EAGER_BYTES + 512) + ops * 384 + config->max_members * 256 + BOUNDS_CONTROL_FRAME;
    *dests = *actions + ops * config->max_members;
}

const struct session_op *session_op(const struct session *s, uint32_t slot)
{
    return &s->slots[slot].run;
}

void session_info(const struct session *s, struct session_info *out)
{
    *out = (struct session_info){
        .connected = s->phase == PHASE_MEMBER && !s->poisoned,
        .run = s->run,
        .id = s->id,
        .view = s->view.view,
        .newest = s->proposal > s->view.view ? s->proposal : s->view.view,
        .rank = s->view.rank,
        .world = s->view.world,
        .snapshot = s->snapshot,
        .open_slots = s->slots_used,
        .voting = s->vote != VOTE_NONE,
        .frozen = s->frozen,
    };
}

void session_gone(const struct session *s, struct session_outcome *out)
{
    *out = (struct session_outcome){.result = RESULT_GONE, .cause = s->left_cause, .since = s->left_since};
    memcpy(out->text, s->left_text, sizeof out->text);
}

bool session_member(const struct session *s, uint32_t rank, struct member_info *out, uint32_t *ring_position)
{
    if (rank >= s->view.world) {
        return false;
    }
    memset(out, 0, sizeof *out);
    out->id = s->view.ids[rank];
    if (s->view.peer[rank] != NONE) {
        *out = s->peers[s->view.peer[rank]].info;
    } else {
        out->lanes = s->cfg.lanes;
        out->addresses = s->cfg.addresses;
        memcpy(out->address, s->cfg.address, sizeof out->address);
    }
    for (uint32_t i = 0; i < s->view.world; i++) {
        if (s->view.ring[i] == rank) {
            *ring_position = i;
        }
    }
    return true;
}

static const char *vote_phase(uint8_t kind)
{
    switch ((enum vote_kind)kind) {
    case VOTE_UPDATE:
        return "update";
    case VOTE_QUERY:
        return "query";
    case VOTE_OPTIMISE:
        return "optimise";
    case VOTE_SYNC:
        return "sync";
    case VOTE_NONE:
        break;
    }
    return "";
}

uint32_t session_waits(const struct session *s, struct session_wait *out, uint32_t capacity)
{
    uint32_t n = 0;
    if (s->connecting && !s->connect_ended && n < capacity) {
        out[n++] = (struct session_wait){
            .peer = s->vote_waits_for, .since = s->connect_since, .phase = "connect"};
    }
    if (s->vote != VOTE_NONE && !s->vote_ended && n < capacity) {
        out[n++] = (struct session_wait){
            .peer = s->vote_waits_for, .since = s->vote_since, .phase = vote_phase(s->vote)};
    }
    for (uint32_t i = 0; s->op_used > 0 && i < s->op_count; i++) {
        const struct op *op = &s->ops[i];
        if (op->phase != OP_RUN && op->phase != OP_HOLDING) {
            continue;
        }
        for (uint32_t r = 0; r < s->view.world && n < capacity; r++) {
            const struct mark *m = &s->marks[(size_t)op->marks * s->cfg.max_members + r];
            if (r == s->view.rank || m->held) {
                continue;
            }
            const char *phase = !m->ready ? "launch" : op->phase == OP_RUN ? "data" : "hold";
            out[n++] = (struct session_wait){
                .tag = op->name.tag, .peer = s->view.ids[r], .since = op->since, .phase = phase};
        }
    }
    return n;
}
