/* master_shell.c - the master's shell: connections, journal and ring search on virtual time.
 *
 * One idea: carry out the actions in their order; what takes time comes back as an event.
 * Invariant: a connection's slot is reused only after MASTER_CLOSE or the event MASTER_CLOSED.
 * SPDX-License-Identifier: MIT */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "topology/tour_exact.h"
#include "topology/tour_local.h"
#include "records_kept.h"
#include "sim_cluster.h"

enum { MASTER_CONNECTIONS = 256 };

static void master_config_fill(const struct cluster *cl, struct master_config *c)
{
    const struct options *o = &cl->opt;
    uint32_t tags = node_tags(cl);
    *c = (struct master_config){
        .run = mix64(o->seed, 76 + cl->master.life) | 1,
        .epoch = cl->master.life,
        .max_connections = MASTER_CONNECTIONS,
        .max_registered = MASTER_CONNECTIONS,
        .max_worlds = split_world(o, SPLIT_WORLD) ? 64 * CLUSTER_WORLDS : CLUSTER_WORLDS, /* W5: all that are given up are remembered */
        .max_used_names = 65536,
        .max_members = o->max_members,
        .max_groups = CLUSTER_LABELS,
        .max_edges = o->max_edges,
        .idle_tags = o->idle_tags < tags / 2 ? o->idle_tags : tags / 2, /* the rest is for the tags of one step */
        .max_operations = 2048, /* a burst of calls that a freeze meets */
        .heartbeat_ns = o->heartbeat_ns,
        .dead_ns = o->dead_ns,
        .reconnect_ns = o->dead_ns / 5,
        .redial_ns = o->dead_ns / 5 < CLOCK_S ? o->dead_ns / 5 : CLOCK_S,
        .register_ns = 5 * CLOCK_S,
        .admit_ns = 5 * CLOCK_S,
        .collect_ns = 200 * CLOCK_MS,
        .probe_ns = 20 * CLOCK_MS,
        .measure_ns = o->measure_ns,
        .replan_ns = o->dead_ns / 3,
        .plan = {.lanes = (uint16_t)o->lanes,
                 .frame_bytes = o->frame_bytes,
                 .eager_bytes = o->eager_bytes},
        .tour_moves = 2000,
        .seed = o->seed,
        .check_every = o->check_every,
    };
}

static void *aligned_new(size_t bytes)
{
    void *memory = aligned_alloc(64, (bytes + 63) / 64 * 64);
    if (memory == NULL) {
        abort();
    }
    return memory;
}

void master_shell_init(struct cluster *cl)
{
    struct master_shell *s = &cl->master;
    memset(s, 0, sizeof *s);
    s->life = 1;
    master_config_fill(cl, &s->config);
    s->arena_bytes = master_arena_bytes(&s->config);
    s->arena = aligned_new(s->arena_bytes);
    s->master = master_init(&s->config, s->arena);
    struct outbox_bounds most = master_out_most(&s->config);
    s->out_memory = aligned_new(outbox_memory(&most));
    outbox_use(&s->out, s->out_memory, &most);
    s->out.part_bytes = cl->opt.part_bytes;
    s->tick_at = CLOCK_NEVER;
}

static void master_shell_release(struct master_shell *s)
{
    for (void *memory; (memory = master_release(s->master)) != NULL;) {
        free(memory);
    }
}

void master_shell_fini(struct cluster *cl)
{
    master_shell_release(&cl->master);
    records_clear(cl);
    free(cl->master.arena);
    free(cl->master.out_memory);
    cl->master.arena = cl->master.out_memory = NULL;
}

void master_shell_kill(struct cluster *cl)
{
    struct master_shell *s = &cl->master;
    if (s->frozen) {
        cluster_freeze(cl, CLUSTER_MASTER, false);
    }
    for (uint32_t i = 0; i < cl->channel_count; i++) {
        if (cl->channels[i].open && cl->channels[i].end[1].node == CLUSTER_MASTER) {
            channel_reset_owner(cl, i, 1);
        }
    }
    memset(s->connected, 0, sizeof s->connected);
    records_clear(cl);
    s->dead = true;
    s->persisting = 0;
    s->tick_at = CLOCK_NEVER;
}

/* Ids and views of another life are greater ones here, so that the oracle can tell them apart; peers tell the run. */
void master_shell_start(struct cluster *cl)
{
    struct master_shell *s = &cl->master;
    s->dead = false;
    s->life++;
    master_config_fill(cl, &s->config);
    master_shell_release(s);
    s->master = master_init(&s->config, s->arena);
    memset(cl->oracle.revision, 0, sizeof cl->oracle.revision);
    memset(cl->oracle.group_view, 0, sizeof cl->oracle.group_view);
    cluster_trace(cl, CLUSTER_MASTER, "starts again", s->life, 0);
}

/* Exact to TOUR_EXACT_MAX peers, local search above; answers after a while. */
static void master_shell_solve(struct cluster *cl, const struct action *a)
{
    struct master_shell *s = &cl->master;
    static double seconds[CLUSTER_NODES * CLUSTER_NODES];
    static uint64_t cost[CLUSTER_NODES * CLUSTER_NODES];
    uint32_t ring[CLUSTER_NODES];
    uint16_t order[CLUSTER_NODES], start[CLUSTER_NODES];
    struct tour_score score;
    uint32_t n = master_matrix(s->master, a->value, seconds, ring, CLUSTER_NODES);
    for (uint32_t i = 0; i < n * n; i++) {
        cost[i] = isinf(seconds[i]) || seconds[i] <= 0 ? TOUR_FORBIDDEN : tour_edge_cost((uint64_t)(1e9 / seconds[i]));
    }
    for (uint32_t i = 0; i < n; i++) {
        start[i] = (uint16_t)ring[i];
    }
    if (n <= TOUR_EXACT_MAX) {
        if (!tour_exact_solve(cost, n, order, &score)) {
            cluster_fail(cl, "no ring for %u members", n);
        }
    } else {
        static uint16_t storage[TOUR_LOCAL_ROOM(CLUSTER_NODES)];
        struct tour_local t;
        if (!tour_local_init(&t, cost, n, start, 2, 3000, cl->opt.seed, storage)) {
            cluster_fail(cl, "the master's ring of %u members is no permutation", n);
            return;
        }
        while (!tour_local_step(&t, 1000)) {
        }
        tour_local_best(&t, order);
    }
    for (uint32_t i = 0; i < n; i++) {
        s->solve_order[s->solves % CLUSTER_GROUPS][i] = order[i];
    }
    cluster_post(cl, (int64_t)rng_below(&cl->rng, 20 * CLOCK_MS), EVENT_SOLVED, CLUSTER_MASTER, s->solves++ % CLUSTER_GROUPS, a->value,
                 (uint64_t)s->life << 32 | n);
}

static void master_shell_send(struct cluster *cl, const struct action *a)
{
    struct master_shell *s = &cl->master;
    records_sent(cl, s->out.bytes + a->frame, a->frame_bytes);
    for (uint32_t i = 0; i < a->dests; i++) {
        uint64_t slot = s->out.dest_ids[a->dest + i];
        if (slot < MASTER_CONNECTIONS && s->connected[slot] && channel_valid(cl, s->channel[slot], s->generation[slot])) {
            channel_send(cl, s->channel[slot], 1, s->out.bytes + a->frame, a->frame_bytes);
        }
    }
}

static void master_shell_act(struct cluster *cl)
{
    struct master_shell *s = &cl->master;
    for (uint32_t i = 0; i < s->out.count; i++) {
        const struct action *a = &s->out.actions[i];
        switch ((enum master_action)a->kind) {
        case MASTER_SEND:
            master_shell_send(cl, a);
            break;
        case MASTER_CLOSE:
            if (a->slot < MASTER_CONNECTIONS && s->connected[a->slot]) {
                s->connected[a->slot] = false;
                if (channel_valid(cl, s->channel[a->slot], s->generation[a->slot])) {
                    channel_close(cl, s->channel[a->slot], 1);
                }
            }
            break;
        case MASTER_PERSIST:
            s->persisting++;
            records_put(cl, s->out.bytes + a->frame, a->frame_bytes, a->value);
            cluster_post(cl, (int64_t)rng_below(&cl->rng, (uint64_t)cl->opt.persist_ns + 1), EVENT_PERSISTED, CLUSTER_MASTER, 0,
                         a->value, (uint64_t)s->life << 32);
            break;
        case MASTER_SOLVE:
            master_shell_solve(cl, a);
            break;
        case MASTER_TRACE:
            cluster_trace(cl, CLUSTER_MASTER, a->data != NULL ? a->data : "?", a->id, a->value);
            break;
        }
    }
}

static void master_shell_step(struct cluster *cl, const struct master_event *e)
{
    struct master_shell *s = &cl->master;
    struct master_want want;
    outbox_reset(&s->out);
    while (master_growth(s->master, e, &want)) {
        free(master_grow(s->master, &want, aligned_new(want.bytes)));
    }
    struct outbox_bounds need = master_out_need(s->master); /* a step that says more than that fails */
    outbox_limit(&s->out, &need);
    master_step(s->master, cl->now, e, &s->out);
    if (s->out.overflow) {
        cluster_fail(cl, "the master's outbox overflowed");
    }
    if (master_poisoned(s->master)) {
        const char *where, *what = master_failure(s->master, &where);
        cluster_fail(cl, "the master is poisoned (event %d): %s at %s", (int)e->kind, what, where);
    }
    master_shell_act(cl);
    for (void *memory; (memory = master_reclaim(s->master)) != NULL;) {
        free(memory);
    }
    oracle_views(cl);
    oracle_known_views(cl);
    int64_t due = master_deadline(s->master);
    if (due < s->tick_at) {
        s->tick_at = due;
        cluster_post(cl, due - cl->now, EVENT_TICK, CLUSTER_MASTER, 0, 0, (uint64_t)s->life << 32);
    }
}

bool master_shell_accept(struct cluster *cl, uint32_t channel)
{
    struct master_shell *s = &cl->master;
    uint32_t slot = 0;
    while (slot < MASTER_CONNECTIONS && s->connected[slot]) {
        slot++;
    }
    if (slot == MASTER_CONNECTIONS || s->dead) {
        return false;
    }
    struct channel *c = &cl->channels[channel];
    s->connected[slot] = true;
    s->channel[slot] = channel;
    s->generation[slot] = c->generation;
    c->end[1].peer = slot;
    c->end[1].role = ROLE_MASTER;
    struct master_event e = {.kind = MASTER_OPENED, .connection = slot};
    node_address(cl->nodes[c->end[0].node].process, &e.address);
    master_shell_step(cl, &e);
    return true;
}

void master_shell_readable(struct cluster *cl, uint32_t channel, int end)
{
    uint32_t generation = cl->channels[channel].generation;
    uint32_t slot = (uint32_t)cl->channels[channel].end[end].peer;
    while (channel_valid(cl, channel, generation) && !cl->channels[channel].end[end].closed) {
        struct frame_header header;
        bool bad;
        const unsigned char *frame = channel_frame(cl, channel, end, &header, &bad);
        if (bad) { /* no protocol of ours: the connection is closed, nothing else happens */
            struct master_event e = {.kind = MASTER_CLOSED, .connection = slot};
            cl->master.connected[slot] = false;
            channel_close(cl, channel, end);
            master_shell_step(cl, &e);
            return;
        }
        if (frame == NULL) {
            return;
        }
        cluster_trace(cl, CLUSTER_MASTER, frame_name(header.type), slot, header.view);
        struct master_event e = {.kind = MASTER_FRAME, .connection = slot, .header = &header,
                                 .payload = frame + FRAME_HEADER_BYTES};
        master_shell_step(cl, &e);
        if (channel_valid(cl, channel, generation)) {
            channel_take(cl, channel, end, FRAME_HEADER_BYTES + header.length);
        }
    }
}

void master_shell_closed(struct cluster *cl, uint32_t channel, int end)
{
    uint32_t slot = (uint32_t)cl->channels[channel].end[end].peer;
    struct master_shell *s = &cl->master;
    if (s->connected[slot] && s->channel[slot] == channel) {
        s->connected[slot] = false;
        master_shell_step(cl, &(struct master_event){.kind = MASTER_CLOSED, .connection = slot});
    }
}

void master_shell_event(struct cluster *cl, const struct event *e)
{
    struct master_shell *s = &cl->master;
    struct master_event m = {.kind = MASTER_TICK};
    if (s->dead || e->c >> 32 != s->life) {
        return; /* of a process that is no more */
    }
    switch (e->kind) {
    case EVENT_TICK:
        if (e->at != s->tick_at && s->tick_at > cl->now) {
            return; /* a later deadline was replaced by an earlier one */
        }
        s->tick_at = CLOCK_NEVER;
        break;
    case EVENT_PERSISTED:
        s->persisting--;
        records_durable(cl, e->b);
        m.kind = MASTER_PERSISTED;
        m.number = e->b;
        break;
    case EVENT_SOLVED:
        m.kind = MASTER_SOLVED;
        m.number = e->b;
        m.order = s->solve_order[e->a];
        m.count = (uint32_t)e->c;
        break;
    default:
        return;
    }
    master_shell_step(cl, &m);
}
