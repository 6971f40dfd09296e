/* peer_shell.c - one process: steps its session and does what the session asks.
 *
 * One idea: an action never steps a machine from inside another step; what must be answered comes back as an event.
 * Invariant: a step's actions are all carried out, in order, before the next step of the same process.
 * SPDX-License-Identifier: MIT */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "program.h"
#include "world.h"

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

static void node_config(struct world *w, struct node *n)
{
    const struct options *o = &w->opt;
    uint32_t calls = (o->burst > o->ops ? o->burst : o->ops) + 2;
    n->config = (struct session_config){
        .group = n->group,
        .lanes = (uint16_t)(1 + (o->lanes > 1 ? rng_below(&w->rng, o->lanes) : 0)),
        .addresses = 1,
        .max_members = o->max_members,
        .max_ops = calls,
        .max_records = o->small_limits || o->growth ? 12 : 64,
        .max_tags = o->burst != 0 ? 4096 : 64,
        .first = o->small_limits || o->growth ? 1 : 0,
        .max_owed = 64 + o->burst,
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
    node_address(n->index, &n->config.address[0]);
}

static void node_rooms(struct world *w, struct node *n)
{
    uint32_t slots = w->opt.room_slots, bytes = w->opt.frame_bytes + 64;
    n->room_memory = malloc((size_t)WORLD_LANES * slots * bytes);
    n->room_list = malloc((size_t)WORLD_LANES * slots * sizeof *n->room_list);
    if (n->room_memory == NULL || n->room_list == NULL) {
        abort();
    }
    for (uint32_t lane = 0; lane < WORLD_LANES; lane++) {
        room_init(&n->room[lane], n->room_memory + (size_t)lane * slots * bytes, bytes, slots, n->room_list + lane * slots);
    }
}

struct node *node_new(struct world *w, uint32_t group, int64_t delay)
{
    if (w->node_count == WORLD_NODES) {
        return NULL;
    }
    struct node *n = &w->nodes[w->node_count];
    memset(n, 0, sizeof *n);
    n->index = (uint16_t)w->node_count++;
    n->used = n->alive = true;
    n->group = group;
    node_config(w, n);
    node_rooms(w, n);
    n->run = calloc(n->config.max_ops, sizeof *n->run);
    if (n->run == NULL) {
        abort();
    }
    n->arena_bytes = session_arena_bytes(&n->config);
    n->arena = memory_aligned(n->arena_bytes);
    n->session = session_init(&n->config, n->arena);
    uint32_t actions, bytes, dests;
    session_out_bounds(&n->config, &actions, &bytes, &dests);
    size_t action_bytes = actions * sizeof(struct action), dest_bytes = dests * sizeof(uint64_t);
    n->out_memory = memory_aligned(action_bytes + dest_bytes + bytes);
    unsigned char *at = n->out_memory;
    outbox_init(&n->out, (struct action *)(void *)at, actions, at + action_bytes + dest_bytes, bytes,
                (uint64_t *)(void *)(at + action_bytes), dests);
    n->tick_at = n->links_at = CLOCK_NEVER;
    n->poison_after = POISON_NEVER;
    n->program = program_new(w, n);
    world_post(w, delay, EVENT_PROGRAM, n->index, 0, 0, 0);
    w->stats.joins++;
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
    free(n->room_memory);
    for (void **b = n->buffers; b != NULL; b = n->buffers) {
        n->buffers = b[0];
        free(b);
    }
    free(n->room_list);
    for (uint32_t i = 0; i < n->link_count; i++) {
        for (uint32_t k = 0; k < WORLD_LANES; k++) {
            free(n->links[i]->data_connection[k].scratch);
        }
        free(n->links[i]->sync_queue);
        free(n->links[i]);
    }
    free(n->links);
    for (uint32_t i = 0; i < n->config.max_ops; i++) {
        free(n->run[i].segments);
        free(n->run[i].steps);
        for (uint32_t k = 0; k < WORLD_LANES; k++) {
            free(n->run[i].arena[k]);
        }
    }
    free(n->run);
    free(n->staging);
}

void node_fini(struct node *n)
{
    if (n->used) {
        node_free_session(n);
        program_free(n);
        n->used = false;
    }
}

/* The process ends; `silent`: its machine does, so that nobody is told. */
void node_kill(struct world *w, struct node *n, bool silent)
{
    world_trace(w, n->index, silent ? "host gone" : "killed", n->id, 0);
    n->alive = false;
    n->gone_host = silent;
    if (silent) {
        for (uint16_t i = 0; i <= WORLD_NODES; i++) {
            world_cut(w, n->index, i, true);
            world_cut(w, i, n->index, true);
        }
        return;
    }
    for (uint32_t i = 0; i < w->channel_count; i++) {
        for (int end = 0; end < 2; end++) {
            if (w->channels[i].open && w->channels[i].end[end].node == n->index) {
                channel_reset_owner(w, i, end);
            }
        }
    }
}

/* ---- the master's connection ---------------------------------------------------------------------------------------- */
static void node_master_close(struct world *w, struct node *n)
{
    n->master_dials++;
    if (n->master_up && channel_valid(w, n->master_channel, n->master_generation)) {
        channel_close(w, n->master_channel, 0);
    }
    n->master_up = false;
}

static void node_dial_master(struct world *w, struct node *n, const struct event *e)
{
    if (e->b != n->master_dials) {
        return; /* given up since */
    }
    if (w->cut[n->index][WORLD_MASTER] || w->cut[WORLD_MASTER][n->index] || w->master.frozen || n->fail_dials > 0) {
        n->fail_dials -= n->fail_dials > 0;
        node_step(w, n, &(struct session_event){.kind = SESSION_MASTER_DOWN, .text = "connect: timed out"});
        return;
    }
    uint32_t channel = channel_new(w, n->index, WORLD_MASTER);
    n->master_channel = channel;
    n->master_generation = w->channels[channel].generation;
    w->channels[channel].end[0].role = ROLE_MASTER;
    if (!master_shell_accept(w, channel)) {
        w->channels[channel].end[0].closed = w->channels[channel].end[1].closed = true;
        w->channels[channel].open = false;
        node_step(w, n, &(struct session_event){.kind = SESSION_MASTER_DOWN, .text = "connect: refused"});
        return;
    }
    n->master_up = true;
    node_step(w, n, &(struct session_event){.kind = SESSION_MASTER_UP});
}

static void node_master_readable(struct world *w, struct node *n, uint32_t channel)
{
    uint32_t generation = w->channels[channel].generation;
    while (n->alive && n->master_up && n->master_channel == channel && channel_valid(w, channel, generation)) {
        struct frame_header header;
        bool bad;
        const unsigned char *frame = channel_frame(w, channel, 0, &header, &bad);
        if (bad) {
            world_fail(w, "the master sent bytes that are no frame");
        }
        if (frame == NULL) {
            return;
        }
        world_trace(w, n->index, frame_name(header.type), header.view, 0);
        oracle_decisions(w, n, &header, frame + FRAME_HEADER_BYTES);
        oracle_links(w, n, &header, frame + FRAME_HEADER_BYTES);
        n->elected = n->elected || (header.type == FRAME_ELECTED && n->program->vote == VOTE_SYNC);
        struct session_event e = {.kind = SESSION_MASTER_FRAME, .header = &header, .payload = frame + FRAME_HEADER_BYTES};
        node_step(w, n, &e);
        if (channel_valid(w, channel, generation)) {
            channel_take(w, channel, 0, FRAME_HEADER_BYTES + header.length);
        }
    }
}

void node_readable(struct world *w, struct node *n, uint32_t channel, int end)
{
    if (w->channels[channel].end[end].role == ROLE_MASTER) {
        node_master_readable(w, n, channel);
    } else {
        line_readable(w, n, channel, end);
    }
}

void node_closed(struct world *w, struct node *n, uint32_t channel, int end)
{
    if (w->channels[channel].end[end].role != ROLE_MASTER) {
        line_closed(w, n, channel, end);
        return;
    }
    if (n->master_up && n->master_channel == channel && n->master_generation == w->channels[channel].generation) {
        n->master_up = false;
        n->master_dials++;
        node_step(w, n, &(struct session_event){.kind = SESSION_MASTER_DOWN, .text = "closed by the master"});
    }
}

/* ---- actions -------------------------------------------------------------------------------------------------------- */
static void node_op_returned(struct world *w, struct node *n, uint32_t slot)
{
    struct run *r = &n->run[slot];
    if (!r->taken || r->returned) {
        world_fail(w, "peer %u: return of slot %u, which waits for none", n->index, slot);
        return;
    }
    if (r->started && !r->idle) {
        world_fail(w, "G3: peer %u: call of slot %u returns while lanes hold its buffers", n->index, slot);
    }
    r->returned = true;
    program_op_returned(w, n, slot);
}

static void node_alloc(struct world *w, struct node *n, uint64_t bytes)
{
    free(n->staging);
    n->staging = NULL;
    if (n->fail_staging) {
        n->fail_staging = false;
    } else {
        n->staging = malloc(bytes + 1);
        memset(n->staging, 0xA5, bytes);
    }
    world_post(w, 0, EVENT_STEP, n->index, SESSION_MEMORY, 0, 0);
}

static void node_op_action(struct world *w, struct node *n, const struct action *a)
{
    if (a->slot >= n->config.max_ops) {
        world_fail(w, "peer %u: action %u for slot %u", n->index, a->kind, a->slot);
        return;
    }
    switch (a->kind) {
    case ACT_OP_START:
        lanes_start(w, n, a->slot, (uint32_t)a->value);
        break;
    case ACT_OP_READY:
        lanes_ready(w, n, a);
        break;
    case ACT_OP_STOP:
        lanes_stop_later(w, n, a->slot);
        break;
    default:
        node_op_returned(w, n, a->slot);
        break;
    }
}

static void node_act(struct world *w, struct node *n, const struct action *a)
{
    const unsigned char *frame = n->out.bytes + a->frame;
    switch ((enum session_action)a->kind) {
    case ACT_MASTER:
        oracle_frozen(n, frame, a->frame_bytes);
        if (n->master_up && channel_valid(w, n->master_channel, n->master_generation)) {
            channel_send(w, n->master_channel, 0, lie_tell(w, n, frame, a->frame_bytes), a->frame_bytes);
        }
        break;
    case ACT_DIAL_MASTER:
        node_master_close(w, n);
        world_post(w, ((int64_t)a->value > w->now ? (int64_t)a->value - w->now : 0) + 2 * world_delay(w), EVENT_MASTER_DIAL,
                   n->index, 0, n->master_dials, 0);
        break;
    case ACT_CLOSE_MASTER:
        node_master_close(w, n);
        break;
    case ACT_PEERS:
        for (uint32_t i = 0; i < a->dests; i++) {
            line_send(w, n, n->out.dest_ids[a->dest + i], frame, a->frame_bytes);
        }
        break;
    case ACT_SYNC:
        sync_link_send(w, n, a);
        break;
    case ACT_SYNC_CLOSE:
        sync_link_close_all(w, n);
        break;
    case ACT_LINKS:
        line_update(w, n);
        break;
    case ACT_UNLINK:
        line_unlink(w, n, a->id);
        break;
    case ACT_OP_START:
    case ACT_OP_READY:
    case ACT_OP_STOP:
    case ACT_OP_RETURN:
        node_op_action(w, n, a);
        break;
    case ACT_VOTED:
        program_voted(w, n);
        break;
    case ACT_CONNECTED:
        program_connected(w, n);
        break;
    case ACT_LEFT:
        line_close_all(w, n, true);
        program_left(w, n);
        break;
    case ACT_SYNC_ALLOC:
        node_alloc(w, n, a->value);
        break;
    case ACT_SYNC_APPLY:
        program_apply(w, n);
        break;
    case ACT_PROBE:
        n->probes++;
        world_post(w, (int64_t)a->value * CLOCK_MS + world_delay(w), EVENT_MEASURED, n->index, a->slot, a->id, 0);
        break;
    case ACT_TRACE:
        world_trace(w, n->index, (const char *)n->out.bytes + a->frame, a->frame_bytes, a->value);
        break;
    }
}

static void node_deadlines(struct world *w, struct node *n)
{
    int64_t due = session_deadline(n->session);
    if (due < n->tick_at) {
        n->tick_at = due;
        world_post(w, due - w->now, EVENT_TICK, n->index, 0, 0, 0);
    }
}

/* As the library's shell does: tables grow between steps, if there is memory. */
static void node_grow(struct world *w, struct node *n, const struct session_event *next)
{
    struct session_growth g[SESSION_TABLES];
    uint32_t count = session_growth(n->session, next, g);
    for (uint32_t i = 0; i < count; i++) {
        if (!growth_succeeds(w, n)) {
            continue;
        }
        void *storage = memory_aligned(g[i].bytes);
        session_grow(n->session, &g[i], storage);
        free(n->table[g[i].table]);
        n->table[g[i].table] = storage;
        n->table_bytes[g[i].table] = g[i].bytes;
    }
}

void node_step(struct world *w, struct node *n, struct session_event *e)
{
    if (!n->alive) {
        return;
    }
    if (n->stepping) {
        world_fail(w, "the simulator stepped peer %u inside its own step", n->index);
        return;
    }
    n->stepping = true;
    node_grow(w, n, e);
    outbox_reset(&n->out);
    poison_arm(n, e);
    session_step(n->session, w->now, e, &n->out);
    poison_stepped(w, n, e);
    if (n->out.overflow) {
        world_fail(w, "peer %u: the session's outbox overflowed (event %d)", n->index, (int)e->kind);
    }
    w->trace_hash = mix64(w->trace_hash, (uint64_t)e->kind << 32 | n->out.count);
    for (uint32_t i = 0; i < n->out.count && !w->failed; i++) {
        node_act(w, n, &n->out.actions[i]);
    }
    n->stepping = false;
    node_deadlines(w, n);
    if (w->armed != 0) {
        faults_check(w, n);
    }
}

/* ---- events --------------------------------------------------------------------------------------------------------- */
static void node_later_step(struct world *w, struct node *n, const struct event *e)
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
    node_step(w, n, &s);
}

void node_event(struct world *w, struct node *n, const struct event *e)
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
        node_step(w, n, &(struct session_event){.kind = SESSION_TICK});
        break;
    case EVENT_DIALLED:
    case EVENT_DIAL_FAILED:
        line_dialled(w, n, e, e->kind == EVENT_DIALLED);
        break;
    case EVENT_MASTER_DIAL:
        node_dial_master(w, n, e);
        break;
    case EVENT_LINKS:
        line_timers(w, n);
        break;
    case EVENT_STEP:
        node_later_step(w, n, e);
        break;
    case EVENT_LANES_STOP:
        if (n->run[e->a].taken && n->run[e->a].use == e->b) {
            lanes_stop(w, n, e->a);
        }
        break;
    case EVENT_PROGRESS:
        watch_look(w, n);
        break;
    case EVENT_PROGRAM:
        program_event(w, n, e);
        break;
    case EVENT_MEASURED: {
        n->probes--;
        uint16_t to = world_node_of(w, e->b);
        bool ok = to != WORLD_NOBODY && w->nodes[to].alive && !w->cut[n->index][to] && !w->cut[to][n->index];
        node_step(w, n, &(struct session_event){.kind = SESSION_MEASURED, .peer = e->b, .slot = e->a,
                                               .number = ok ? sync_bandwidth(w, n->index, to) : 0});
        break;
    }
    default:
        break;
    }
}
