/* peer_shell.c - one process: steps its session and does what the session asks.
 *
 * One idea: an action never steps a machine from inside another step; what must be answered comes back as an event.
 * Invariant: a step's actions are all carried out, in order, before the next step of the same process.
 * SPDX-License-Identifier: MIT */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/bitset.h"
#include "peer_probe.h"
#include "peer_room.h"
#include "peer_watch.h"
#include "reset_fault.h"
#include "sim_window.h"
#include "tests/whole_frame.h"

enum { REST_EVERY = 16 /* steps */ };

static void *memory_aligned(size_t bytes)
{
    void *memory = aligned_alloc(64, (bytes + 63) / 64 * 64);
    if (memory == NULL) {
        abort();
    }
    return memory;
}

void node_address(uint16_t node, struct net_address *out)
{
    *out = (struct net_address){.family = 4, .ip = {10, 0, (uint8_t)(node >> 8), (uint8_t)node}, .port = 48150};
}

/* In one seed of four some ask for a shorter stall time than the others have. */
int64_t node_stall_least(const struct options *o)
{
    return mix64(o->seed, 91) % 4 == 0 ? o->stall_ns / 4 * 3 : o->stall_ns;
}

static void config_stall(const struct options *o, struct node *n)
{
    if (node_stall_least(o) < o->stall_ns && mix64(o->seed, 3000 + n->index) % 2 == 0) {
        n->config.stall_ns = node_stall_least(o);
        n->config.stall_ms = (uint32_t)(n->config.stall_ns / CLOCK_MS);
    }
}

uint32_t node_tags(const struct cluster *cl)
{
    return cl->opt.burst != 0 || window_used(cl) ? 4096 : 64;
}

static void node_config(struct cluster *cl, struct node *n)
{
    const struct options *o = &cl->opt;
    uint32_t ops = match_used(cl) && o->ops < MATCH_CALLS ? MATCH_CALLS : o->ops, burst = o->burst + o->refused;
    uint32_t calls = (burst > ops ? burst : ops) + 2;
    n->config = (struct session_config){
        .group = n->group % CLUSTER_LABELS,
        .lanes = (uint16_t)(1 + (o->lanes > 1 ? rng_below(&cl->rng, o->lanes) : 0)),
        .addresses = 1,
        .max_members = o->max_members,
        .max_ops = calls + peer_window_slots(cl),
        .max_records = o->small_limits || o->growth ? 12 : 64,
        .max_tags = node_tags(cl),
        .first = o->small_limits || o->growth ? 1 : 0,
        .max_owed = 64 + o->burst + 4 * o->refused,
        .park_blocks = o->small_limits ? 2 : 32,
        .park_block_bytes = o->eager_bytes + 64,
        .park_per_link = o->small_limits ? 1 : 8,
        .mesh_members = o->mesh_members,
        .heartbeat_ns = o->heartbeat_ns,
        .stall_ns = o->stall_ns,
        .master_loss_ns = o->dead_ns,
        .connect_ns = 4 * o->dead_ns,
        .link_ns = 5 * CLOCK_S, /* longer than the stall time of the hasty profile, as in the library */
        .kernels = kernels_level("scalar"),
        .verify = o->verify,
        .seed = mix64(o->seed, n->index),
        .check_every = o->check_every,
    };
    n->config.lanes = n->config.lanes < 1 ? 1 : n->config.lanes;
    algorithms_config(o, n);
    config_stall(o, n);
    node_address(n->process, &n->config.address[0]);
    if (n->group >= CLUSTER_LABELS) {
        snprintf(n->config.world, sizeof n->config.world, "w%u", n->group / CLUSTER_LABELS);
    }
    form_config(cl, n, &n->config);
}

struct node *node_new(struct cluster *cl, uint32_t group, int64_t delay)
{
    if (cl->node_count == CLUSTER_NODES) {
        return NULL;
    }
    struct node *n = &cl->nodes[cl->node_count];
    memset(n, 0, sizeof *n);
    n->index = (uint16_t)cl->node_count++;
    n->used = n->alive = true;
    n->group = group;
    n->process = process_of(&cl->opt, n->index);
    node_config(cl, n);
    rooms_new(cl, n);
    n->run = calloc(n->config.max_ops, sizeof *n->run);
    uint32_t words = bitset_words(n->config.max_ops);
    n->at_work = calloc(3 * words, sizeof *n->at_work);
    if (n->run == NULL || n->at_work == NULL) {
        abort();
    }
    n->stepped = n->at_work + words;
    n->starving = n->stepped + words;
    n->arena_bytes = session_arena_bytes(&n->config);
    n->arena = memory_aligned(n->arena_bytes);
    n->session = session_init(&n->config, n->arena);
    struct outbox_bounds most = session_out_bounds(&n->config, n->config.max_members);
    n->out_memory = memory_aligned(outbox_memory(&most));
    outbox_use(&n->out, n->out_memory, &most);
    n->tick_at = n->links_at = CLOCK_NEVER;
    n->poison_after = POISON_NEVER;
    n->program = program_new(cl, n);
    peer_window_new(cl, n);
    cluster_post(cl, delay, EVENT_PROGRAM, n->index, 0, 0, 0);
    cl->stats.joins++;
    return n;
}

static void node_free_session(struct node *n)
{
    free(n->arena);
    for (uint32_t i = 0; i < SESSION_TABLES; i++) {
        free(n->table[i]);
    }
    free(n->report);
    n->report = NULL;
    free(n->out_memory);
    for (void **b = n->buffers; b != NULL; b = n->buffers) {
        n->buffers = b[0];
        free(b);
    }
    free(n->room_list);
    for (uint32_t i = 0; i < n->link_count; i++) {
        for (uint32_t k = 0; k < CLUSTER_LANES; k++) {
            free(n->links[i]->data_connection[k].scratch);
        }
        free(n->links[i]->sync_queue);
        free(n->links[i]);
    }
    free(n->links);
    for (uint32_t i = 0; i < n->config.max_ops; i++) {
        free(n->run[i].segments);
        free(n->run[i].steps);
        free(n->run[i].pieces);
        free(n->run[i].backup);
        free(n->run[i].sums);
        free(n->run[i].saved);
        for (uint32_t k = 0; k < CLUSTER_LANES; k++) {
            free(n->run[i].arena[k]);
        }
    }
    free(n->run);
    free(n->at_work);
    free(n->staging);
}

void node_fini(struct node *n)
{
    if (n->used) {
        node_free_session(n);
        program_free(n);
        peer_window_free(n);
        n->used = false;
    }
}

static void session_kill(struct cluster *cl, struct node *n, bool silent)
{
    cluster_trace(cl, n->index, silent ? "host gone" : "killed", n->id, 0);
    n->alive = false;
    n->gone_host = silent;
    if (silent) {
        for (uint16_t i = 0; i <= CLUSTER_NODES; i++) {
            cluster_cut(cl, n->index, i, true);
            cluster_cut(cl, i, n->index, true);
        }
        return;
    }
    for (uint32_t i = 0; i < cl->channel_count; i++) {
        for (int end = 0; end < 2; end++) {
            if (cl->channels[i].open && cl->channels[i].end[end].node == n->index) {
                channel_reset_owner(cl, i, end);
            }
        }
    }
}

/* The process ends, with all of its sessions; `silent`: its machine does, so that nobody is told. */
void node_kill(struct cluster *cl, struct node *n, bool silent)
{
    for (uint32_t i = 0; i < cl->node_count; i++) {
        if (cl->nodes[i].alive && process_same(cl, n->index, i)) {
            session_kill(cl, &cl->nodes[i], silent);
        }
    }
}

/* ---- the master's connection ---------------------------------------------------------------------------------------- */
static void node_master_close(struct cluster *cl, struct node *n)
{
    n->master_dials++;
    if (n->master_up && channel_valid(cl, n->master_channel, n->master_generation)) {
        channel_close(cl, n->master_channel, 0);
    }
    n->master_up = false;
}

static void node_dial_master(struct cluster *cl, struct node *n, const struct event *e)
{
    if (e->b != n->master_dials) {
        return; /* given up since */
    }
    if (cl->cut[n->index][CLUSTER_MASTER] || cl->cut[CLUSTER_MASTER][n->index] || cl->master.frozen || n->fail_dials > 0) {
        n->fail_dials -= n->fail_dials > 0;
        node_step(cl, n, &(struct session_event){.kind = SESSION_MASTER_DOWN, .text = "connect: timed out"});
        return;
    }
    uint32_t channel = channel_new(cl, n->index, CLUSTER_MASTER);
    n->master_channel = channel;
    n->master_generation = cl->channels[channel].generation;
    cl->channels[channel].end[0].role = ROLE_MASTER;
    if (!master_shell_accept(cl, channel)) {
        cl->channels[channel].end[0].closed = cl->channels[channel].end[1].closed = true;
        cl->channels[channel].open = false;
        node_step(cl, n, &(struct session_event){.kind = SESSION_MASTER_DOWN, .text = "connect: refused"});
        return;
    }
    n->master_up = true;
    node_step(cl, n, &(struct session_event){.kind = SESSION_MASTER_UP});
}

static void node_master_readable(struct cluster *cl, struct node *n, uint32_t channel)
{
    uint32_t generation = cl->channels[channel].generation;
    while (n->alive && n->master_up && n->master_channel == channel && channel_valid(cl, channel, generation)) {
        struct frame_header header;
        bool bad;
        const unsigned char *frame = channel_frame(cl, channel, 0, &header, &bad);
        if (bad) {
            cluster_fail(cl, "the master sent bytes that are no frame");
        }
        if (frame == NULL) {
            return;
        }
        cluster_trace(cl, n->index, frame_name(header.type), header.view, 0);
        oracle_decisions(cl, n, &header, frame + FRAME_HEADER_BYTES);
        oracle_links(cl, n, &header, frame + FRAME_HEADER_BYTES);
        n->elected = n->elected || (header.type == FRAME_ELECTED && n->program->vote == VOTE_SYNC);
        struct session_event e = {.kind = SESSION_MASTER_FRAME, .header = &header, .payload = frame + FRAME_HEADER_BYTES};
        node_step(cl, n, &e);
        if (channel_valid(cl, channel, generation)) {
            channel_take(cl, channel, 0, FRAME_HEADER_BYTES + header.length);
        }
    }
}

void node_readable(struct cluster *cl, struct node *n, uint32_t channel, int end)
{
    if (cl->channels[channel].end[end].role == ROLE_MASTER) {
        node_master_readable(cl, n, channel);
    } else {
        line_readable(cl, n, channel, end);
    }
}

void node_closed(struct cluster *cl, struct node *n, uint32_t channel, int end)
{
    if (cl->channels[channel].end[end].role != ROLE_MASTER) {
        line_closed(cl, n, channel, end);
        return;
    }
    if (n->master_up && n->master_channel == channel && n->master_generation == cl->channels[channel].generation) {
        n->master_up = false;
        n->master_dials++;
        node_step(cl, n, &(struct session_event){.kind = SESSION_MASTER_DOWN, .text = "closed by the master"});
    }
}

/* ---- actions -------------------------------------------------------------------------------------------------------- */
static void node_op_returned(struct cluster *cl, struct node *n, uint32_t slot)
{
    struct run *r = &n->run[slot];
    if (!r->taken || r->returned) {
        cluster_fail(cl, "peer %u: return of slot %u, which waits for none", n->index, slot);
        return;
    }
    if (r->started && !r->idle) {
        cluster_fail(cl, "G3: peer %u: call of slot %u returns while lanes hold its buffers", n->index, slot);
    }
    r->returned = true;
    if (r->call->window != NULL) {
        peer_window_returned(cl, n, slot);
    } else {
        program_op_returned(cl, n, slot);
    }
}

static void node_alloc(struct cluster *cl, struct node *n, uint64_t bytes)
{
    free(n->staging);
    n->staging = NULL;
    if (n->fail_staging) {
        n->fail_staging = false;
    } else {
        n->staging = malloc(bytes + 1);
        memset(n->staging, 0xA5, bytes);
    }
    cluster_post(cl, 0, EVENT_STEP, n->index, SESSION_MEMORY, 0, 0);
}

static void node_op_action(struct cluster *cl, struct node *n, const struct action *a)
{
    if (a->slot >= n->config.max_ops) {
        cluster_fail(cl, "peer %u: action %u for slot %u", n->index, a->kind, a->slot);
        return;
    }
    switch (a->kind) {
    case ACT_OP_START:
        lanes_start(cl, n, a->slot, (uint32_t)a->value);
        break;
    case ACT_OP_READY:
        lanes_ready(cl, n, a);
        break;
    case ACT_OP_STOP:
        lanes_stop_later(cl, n, a->slot);
        break;
    default:
        node_op_returned(cl, n, a->slot);
        break;
    }
}

static void node_tell(struct cluster *cl, struct node *n, const struct action *a)
{
    unsigned char *frame = whole_frame(&n->out, a);
    for (uint32_t i = 0; i < a->dests; i++) {
        line_send(cl, n, n->out.dest_ids[a->dest + i], frame, (uint32_t)whole_frame_bytes(a));
    }
    free(frame);
}

static void node_act(struct cluster *cl, struct node *n, const struct action *a)
{
    const unsigned char *frame = n->out.bytes + a->frame;
    switch ((enum session_action)a->kind) {
    case ACT_MASTER:
        oracle_frozen(n, frame, a->frame_bytes);
        if (n->master_up && channel_valid(cl, n->master_channel, n->master_generation)) {
            channel_send(cl, n->master_channel, 0, lie_tell(cl, n, frame, a->frame_bytes), a->frame_bytes);
        }
        break;
    case ACT_DIAL_MASTER:
        node_master_close(cl, n);
        cluster_post(cl, ((int64_t)a->value > cl->now ? (int64_t)a->value - cl->now : 0) + 2 * cluster_delay(cl), EVENT_MASTER_DIAL,
                     n->index, 0, n->master_dials, 0);
        break;
    case ACT_CLOSE_MASTER:
        node_master_close(cl, n);
        break;
    case ACT_PEERS:
        node_tell(cl, n, a);
        break;
    case ACT_SYNC:
        sync_link_send(cl, n, a);
        break;
    case ACT_SYNC_CLOSE:
        sync_link_close_all(cl, n);
        break;
    case ACT_LINKS:
        line_update(cl, n);
        break;
    case ACT_UNLINK:
        line_unlink(cl, n, a->id);
        break;
    case ACT_OP_START:
    case ACT_OP_READY:
    case ACT_OP_STOP:
    case ACT_OP_RETURN:
        node_op_action(cl, n, a);
        break;
    case ACT_VOTED:
        program_voted(cl, n);
        break;
    case ACT_CONNECTED:
        program_connected(cl, n);
        break;
    case ACT_LEFT:
        n->ready_view = 0; /* the next world counts its views anew */
        line_close_all(cl, n, true);
        program_left(cl, n);
        peer_window_wake(cl, n, true);
        break;
    case ACT_SYNC_ALLOC:
        node_alloc(cl, n, a->value);
        break;
    case ACT_SYNC_APPLY:
        program_apply(cl, n);
        break;
    case ACT_PROBE:
        probe_start(cl, n, a);
        break;
    case ACT_TRACE:
        cluster_trace(cl, n->index, (const char *)n->out.bytes + a->frame, a->frame_bytes, a->value);
        break;
    }
}

static void node_deadlines(struct cluster *cl, struct node *n)
{
    int64_t due = session_deadline(n->session);
    if (due < n->tick_at) {
        n->tick_at = due;
        cluster_post(cl, due - cl->now, EVENT_TICK, n->index, 0, 0, 0);
    }
}

/* As the library's shell does: tables grow between steps, if there is memory. */
static void node_grow(struct cluster *cl, struct node *n, const struct session_event *next)
{
    struct session_growth g[SESSION_TABLES];
    uint32_t count = session_growth(n->session, next, g);
    for (uint32_t i = 0; i < count; i++) {
        if (!growth_succeeds(cl, n)) {
            continue;
        }
        void *storage = memory_aligned(g[i].bytes);
        session_grow(n->session, &g[i], storage);
        free(n->table[g[i].table]);
        n->table[g[i].table] = storage;
        n->table_bytes[g[i].table] = g[i].bytes;
    }
}

/* More often than the library's shell, which waits until nothing has been launched for a while. */
static void node_rest(struct node *n)
{
    bool given[SESSION_TABLES];
    if (++n->steps % REST_EVERY != 0) {
        return;
    }
    session_rest(n->session, given);
    for (uint32_t i = 0; i < SESSION_TABLES; i++) {
        if (given[i]) {
            free(n->table[i]);
            n->table[i] = NULL;
            n->table_bytes[i] = 0;
        }
    }
}

void node_step(struct cluster *cl, struct node *n, struct session_event *e)
{
    if (!n->alive) {
        return;
    }
    if (n->stepping) {
        cluster_fail(cl, "the simulator stepped peer %u inside its own step", n->index);
        return;
    }
    n->stepping = true;
    node_grow(cl, n, e);
    outbox_reset(&n->out);
    poison_arm(n, e);
    struct outbox_bounds bounds = session_out_bounds(&n->config, session_members(n->session));
    outbox_limit(&n->out, &bounds); /* a step that says more than its tables make possible fails */
    session_step(n->session, cl->now, e, &n->out);
    poison_stepped(cl, n, e);
    if (n->out.overflow) {
        cluster_fail(cl, "peer %u: the session's outbox overflowed (event %d)", n->index, (int)e->kind);
    }
    cl->trace_hash = mix64(cl->trace_hash, (uint64_t)e->kind << 32 | n->out.count);
    for (uint32_t i = 0; i < n->out.count && !cl->failed; i++) {
        node_act(cl, n, &n->out.actions[i]);
    }
    node_rest(n);
    n->stepping = false;
    node_deadlines(cl, n);
    if (cl->armed != 0) {
        faults_check(cl, n);
    }
}

/* ---- events --------------------------------------------------------------------------------------------------------- */
static void node_later_step(struct cluster *cl, struct node *n, const struct event *e)
{
    struct session_event s = {.kind = (enum session_event_kind)e->a, .peer = e->b, .slot = (uint32_t)e->b, .number = e->c};
    struct run *r = s.slot < n->config.max_ops ? &n->run[s.slot] : NULL;
    switch ((int)s.kind) {
    case SESSION_DONE:
    case SESSION_IDLE:
        if (!r->taken || r->use != e->c) {
            return;
        }
        if (s.kind == SESSION_DONE) {
            for (uint32_t i = 0; i < r->op.lanes; i++) {
                s.digest += r->exec[i].digest;
            }
            bool wrong = n->wrong_result && r->op.verify && r->call->op != PROGRAM_OPS;
            s.digest += wrong;
            n->wrong_result = n->wrong_result && !wrong;
        } else {
            lanes_bytes(r, &s);
        }
        break;
    case SESSION_CANCEL:
        if (!r->taken || r->use != e->c) {
            return;
        }
        s.number = r->failing; /* 0: the program's wish */
        r->call->failed = r->call->failed || r->failing != 0;
        break;
    case SESSION_MEMORY:
        s.memory = n->staging;
        break;
    default:
        break;
    }
    node_step(cl, n, &s);
}

void node_event(struct cluster *cl, struct node *n, const struct event *e)
{
    if (!n->alive) {
        return;
    }
    switch (e->kind) {
    case EVENT_TICK:
        if (e->at < n->tick_at && n->tick_at != CLOCK_NEVER) {
            return;
        }
        n->tick_at = CLOCK_NEVER;
        node_step(cl, n, &(struct session_event){.kind = SESSION_TICK});
        break;
    case EVENT_DIALLED:
    case EVENT_DIAL_FAILED:
        line_dialled(cl, n, e, e->kind == EVENT_DIALLED);
        break;
    case EVENT_MASTER_DIAL:
        node_dial_master(cl, n, e);
        break;
    case EVENT_LINKS:
        line_timers(cl, n);
        break;
    case EVENT_STEP:
        node_later_step(cl, n, e);
        break;
    case EVENT_LANES_STOP:
        if (n->run[e->a].taken && n->run[e->a].use == e->b) {
            lanes_stop(cl, n, e->a);
        }
        break;
    case EVENT_PROGRESS:
        watch_look(cl, n);
        break;
    case EVENT_PROGRAM:
        program_event(cl, n, e);
        break;
    case EVENT_WINDOW:
        window_event(cl, n, e);
        break;
    case EVENT_KNOCK:
        reset_event(cl, n, e);
        break;
    case EVENT_MEASURED:
        probe_event(cl, n, e);
        break;
    default:
        break;
    }
}
