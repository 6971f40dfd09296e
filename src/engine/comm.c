/* comm.c - a communicator: connecting, votes, life and death.
 * SPDX-License-Identifier: MIT */
#include "engine/comm.h"

#include <errno.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "core/clock.h"
#include "kernels/kernels.h"
#include "net/addr.h"
#include "engine/link.h"

enum { COMM_TAGS = 1 << 20, COMM_FLUSH_NS = 1000000000 };

/* ---- Connect, votes, leave ------------------------------------------------------------------------------------------------ */

/* Waits for a flag that steps set; false: the deadline passed before. */
static bool comm_wait(struct comm *c, const bool *flag, int64_t deadline)
{
    while (!*flag) {
        if (deadline == CLOCK_NEVER) {
            pthread_cond_wait(&c->changed, &c->lock);
            continue;
        }
        struct timespec at = {.tv_sec = deadline / CLOCK_S, .tv_nsec = deadline % CLOCK_S};
        if (pthread_cond_timedwait(&c->changed, &c->lock, &at) == ETIMEDOUT && !*flag) {
            return false;
        }
    }
    return true;
}

static void comm_config(struct comm *c)
{
    struct session_config *k = &c->config;
    struct net_address seen = {.family = 4, .port = c->engine->port}; /* 0.0.0.0: what the master sees */
    const char *verify = getenv("PCCL_VERIFY");
    *k = (struct session_config){
        .group = c->params.group, .lanes = c->params.lanes,
        .max_members = COMM_MEMBERS, .max_ops = BOUNDS_OPS, .max_records = BOUNDS_RECORDS,
        .max_tags = COMM_TAGS, .max_owed = 4096,
        .park_blocks = 64, .park_block_bytes = 2 * BOUNDS_EAGER_BYTES + 256, .park_per_link = 16,
        .mesh_members = 32,
        .heartbeat_ns = c->params.stall_ns / 5 < CLOCK_S ? c->params.stall_ns / 5 : CLOCK_S,
        .stall_ns = c->params.stall_ns, .master_loss_ns = c->params.master_loss_ns,
        .connect_ns = c->params.connect_ns, .link_ns = 5 * CLOCK_S,
        .kernels = kernels_get(), .verify = verify != NULL && verify[0] == '1',
        .seed = (uint64_t)clock_now_ns() ^ (uint64_t)(uintptr_t)c,
    };
    if (c->advertised.family != 0) {
        k->address[k->addresses++] = c->advertised;
    }
    k->address[k->addresses++] = seen;
    k->addresses += (uint8_t)addr_interfaces(k->address + k->addresses, (size_t)BOUNDS_ADDRESSES - k->addresses,
                                             c->engine->port);
}

static void comm_free_tables(struct comm *c)
{
    for (uint32_t i = 0; i < SESSION_TABLES; i++) {
        free(c->table[i]);
        c->table[i] = NULL;
    }
}

/* A session that has left, or none yet: a fresh one.  False: no memory. */
static bool comm_fresh_session(struct comm *c, struct comm_after *after)
{
    uint32_t actions, bytes, dests;
    comm_ops_detach(c, after);
    c->session = NULL;
    comm_free_tables(c);
    comm_config(c);
    session_out_bounds(&c->config, &actions, &bytes, &dests);
    if (c->arena == NULL) {
        c->arena_bytes = (session_arena_bytes(&c->config) + 63) / 64 * 64;
        c->arena = aligned_alloc(64, c->arena_bytes);
        c->out_storage[0] = calloc(actions, sizeof(struct action));
        c->out_storage[1] = malloc(bytes);
        c->out_storage[2] = calloc(dests, sizeof(uint64_t));
        if (c->arena == NULL || c->out_storage[0] == NULL || c->out_storage[1] == NULL || c->out_storage[2] == NULL) {
            for (int i = 0; i < 3; i++) {
                free(c->out_storage[i]);
                c->out_storage[i] = NULL;
            }
            free(c->arena);
            c->arena = NULL;
            return false;
        }
    }
    outbox_init(&c->out, c->out_storage[0], actions, c->out_storage[1], bytes, c->out_storage[2], dests);
    c->session = session_init(&c->config, c->arena);
    return c->session != NULL;
}

bool comm_idle(struct comm *c)
{
    struct session_info info;
    if (c->session == NULL) {
        return true;
    }
    session_info(c->session, &info);
    return !info.connected;
}

/* Whether calls have still to collect what the last membership left them; they end by themselves. */
static bool comm_calls_left(const struct comm *c)
{
    if (c->voters > 0) {
        return true;
    }
    for (uint32_t i = 0; i < BOUNDS_OPS; i++) {
        const struct comm_op *op = c->ops[i];
        if (op != NULL && (op->awaited || !atomic_load(&op->returned.over))) {
            return true;
        }
    }
    return false;
}

/* The environment is understood, the engine runs; names are resolved here, where no lock is held. */
static pccl_status comm_prepare(struct comm *c, struct err *err)
{
    struct err why;
    pccl_status st = atomic_load(&c->joined) ? PCCL_OK : engine_join(c->engine, c, c->params.lanes, err);
    if (st != PCCL_OK) {
        return st;
    }
    atomic_store(&c->joined, true);
    c->advertised = (struct net_address){.family = 0};
    const char *verify = getenv("PCCL_VERIFY"), *cpu = getenv("PCCL_CPU");
    if (verify != NULL && strcmp(verify, "") != 0 && strcmp(verify, "0") != 0 && strcmp(verify, "1") != 0) {
        return err_set(err, PCCL_ERR_INVALID, "PCCL_VERIFY '%.20s': expected 0 or 1", verify);
    }
    if (cpu != NULL && *cpu != 0 && !kernels_known(cpu)) {
        return err_set(err, PCCL_ERR_INVALID, "PCCL_CPU '%.20s': expected scalar, avx2, avx512 or neon", cpu);
    }
    const char *advertise = getenv("PCCL_ADVERTISE"); /* host, or host:port where a port is mapped */
    if (advertise != NULL && *advertise != 0) {
        st = addr_parse(advertise, c->engine->port, &c->advertised, &why);
    }
    return st == PCCL_OK ? st : err_set(err, st, "PCCL_ADVERTISE: %.200s", why.text);
}

void comm_connect(struct comm *c, struct session_outcome *outcome)
{
    struct comm_after after;
    struct err err;
    comm_lock(c, &after);
    bool idle = !c->connecting && comm_idle(c) && !c->closing;
    if (idle) {
        c->connecting = true;
    }
    comm_unlock(c, &after);
    if (!idle) {
        comm_fail(outcome, RESULT_USAGE, "already connected, or another thread is connecting");
        return;
    }
    if (comm_prepare(c, &err) != PCCL_OK) {
        comm_fail(outcome, RESULT_SETUP, err.text);
        comm_lock(c, &after);
        c->connecting = false;
        comm_unlock(c, &after);
        return;
    }
    comm_lock(c, &after);
    while (comm_calls_left(c) && !c->closing) {
        pthread_cond_wait(&c->changed, &c->lock);
    }
    c->connected = false;
    c->foreign[0] = 0;
    if (c->closing) { /* destroyed meanwhile: it has left already, and waits for this call */
        comm_fail(outcome, RESULT_GONE, "the communicator was destroyed");
        outcome->cause = CAUSE_PEER_LEFT;
    } else if (!comm_fresh_session(c, &after)) {
        comm_fail(outcome, RESULT_NO_MEMORY, "no memory for the session");
    } else {
        struct session_event e = {.kind = SESSION_CONNECT};
        comm_step(c, &e, &after);
        *outcome = e.outcome;
        if (outcome->result == RESULT_PENDING) {
            comm_unlock(c, &after);
            comm_lock(c, &after);
            comm_wait(c, &c->connected, CLOCK_NEVER);
            e = (struct session_event){.kind = SESSION_COLLECT_CONNECT};
            comm_step(c, &e, &after);
            *outcome = e.outcome;
        }
        if (outcome->cause == CAUSE_KICK_UNREACHABLE && c->foreign[0] != 0) { /* that is why it could not be linked */
            outcome->cause = CAUSE_KICK_VERSION;
            memcpy(outcome->text, c->foreign, sizeof outcome->text);
        }
    }
    c->was_member = c->was_member || outcome->result == RESULT_OK;
    c->connecting = false;
    pthread_cond_broadcast(&c->changed);
    comm_unlock(c, &after);
}

void comm_vote(struct comm *c, const struct msg_vote *vote, struct sync_state *state, struct session_outcome *outcome)
{
    struct comm_after after;
    int64_t deadline = c->params.vote_ns > 0 ? clock_now_ns() + c->params.vote_ns : CLOCK_NEVER;
    struct session_event e = {.kind = SESSION_VOTE, .vote = vote, .state = state};
    comm_lock(c, &after);
    if (c->session == NULL) {
        comm_fail(outcome, RESULT_USAGE, "not connected");
        comm_unlock(c, &after);
        return;
    }
    bool ended = c->voted; /* another thread's vote, not collected yet: this one is refused and must not hide it */
    c->voted = false;
    comm_step(c, &e, &after);
    *outcome = e.outcome;
    bool pending = outcome->result == RESULT_PENDING;
    c->voted = c->voted || (ended && !pending);
    c->voters += pending;
    comm_unlock(c, &after);
    if (!pending) {
        return;
    }
    comm_lock(c, &after);
    if (!comm_wait(c, &c->voted, deadline)) {
        e = (struct session_event){.kind = SESSION_LEAVE, .text = "the deadline of a vote passed"};
        comm_step(c, &e, &after);
        comm_wait(c, &c->voted, CLOCK_NEVER);
    }
    if (c->apply) {
        c->apply = false;
        pthread_mutex_unlock(&c->lock);
        sync_apply(state);
        pthread_mutex_lock(&c->lock);
    }
    e = (struct session_event){.kind = SESSION_COLLECT_VOTE};
    comm_step(c, &e, &after);
    *outcome = e.outcome;
    if (outcome->result == RESULT_USAGE && outcome->cause == CAUSE_NONE) {
        outcome->cause = CAUSE_BLOCKED; /* it was legal here: peers wait for each other in different votes */
    }
    if (state != NULL) {
        free(c->staging);
        c->staging = NULL;
    }
    c->voters--;
    pthread_cond_broadcast(&c->changed);
    comm_unlock(c, &after);
}

void comm_leave(struct comm *c)
{
    struct comm_after after;
    comm_lock(c, &after);
    if (c->session != NULL) {
        comm_step(c, &(struct session_event){.kind = SESSION_LEAVE, .text = "the program left the run"}, &after);
    }
    comm_unlock(c, &after);
}

/* ---- Life ----------------------------------------------------------------------------------------------------------------- */

pccl_status comm_new(struct engine *engine, const struct comm_params *params, struct comm **out)
{
    struct comm *c = calloc(1, sizeof *c);
    pthread_condattr_t attr;
    if (c == NULL) {
        return PCCL_ERR_NOMEM;
    }
    if (!comm_ops_init(c)) {
        free(c);
        return PCCL_ERR_NOMEM;
    }
    c->engine = engine;
    c->seam = &comm_acts;
    c->generation = atomic_load(&engine->generation);
    c->params = *params;
    c->master_at = CLOCK_NEVER;
    list_init(&c->in_engine);
    list_init(&c->links);
    list_init(&c->controls);
    list_init(&c->uplinks);
    list_init(&c->sync_links);
    list_init(&c->probes);
    pthread_mutex_init(&c->lock, NULL);
    pthread_condattr_init(&attr);
    pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    pthread_cond_init(&c->changed, &attr);
    pthread_condattr_destroy(&attr);
    *out = c;
    return PCCL_OK;
}

static void comm_free_memory(struct comm *c)
{
    comm_free_tables(c);
    comm_ops_fini(c);
    for (int i = 0; i < 3; i++) {
        free(c->out_storage[i]);
    }
    free(c->arena);
    free(c->staging);
    free(c->spare);
    free(c);
}

void comm_abandon(struct comm *c)
{
    comm_free_memory(c);
}

/* On the service thread. */
static void comm_detach(void *argument)
{
    struct comm *c = argument;
    struct comm_after after;
    pthread_mutex_lock(&c->engine->lock);
    list_remove(&c->in_engine);
    pthread_mutex_unlock(&c->engine->lock);
    comm_lock(c, &after);
    LIST_FOR_EACH(l, next, &c->engine->dials) {
        struct dial *d = LIST_ENTRY(l, struct dial, all);
        if (d->comm == c) {
            dial_cancel(d);
        }
    }
    sync_link_drop_all(c);
    probe_drop_all(c);
    uplink_drop_all(c);
    comm_unlock(c, &after);
}

static void comm_drop_lanes(struct comm *c)
{
    uint32_t lanes = atomic_load(&c->engine->lanes);
    struct lane_done done = {.left = lanes};
    pthread_mutex_init(&done.lock, NULL);
    pthread_cond_init(&done.zero, NULL);
    for (uint32_t i = 0; i < lanes; i++) {
        struct lane_order order = {.kind = LANE_DROP, .comm = c, .done = &done};
        lane_post_surely(c->engine->lane[i], &order);
        lane_poke(c->engine->lane[i]);
    }
    pthread_mutex_lock(&done.lock);
    while (done.left > 0) {
        pthread_cond_wait(&done.zero, &done.lock);
    }
    pthread_mutex_unlock(&done.lock);
    pthread_cond_destroy(&done.zero);
    pthread_mutex_destroy(&done.lock);
}

void comm_free(struct comm *c)
{
    struct comm_after after;
    comm_lock(c, &after);
    c->closing = true;
    if (c->session != NULL) {
        comm_step(c, &(struct session_event){.kind = SESSION_LEAVE, .text = "the communicator was destroyed"}, &after);
    }
    comm_unlock(c, &after);
    int64_t until = clock_now_ns() + COMM_FLUSH_NS;
    pthread_mutex_lock(&c->lock);
    while (atomic_load(&c->calls) > 0) {
        pthread_cond_wait(&c->changed, &c->lock);
    }
    while (!link_flushed(c)) {
        struct timespec at = {.tv_sec = until / CLOCK_S, .tv_nsec = until % CLOCK_S};
        if (pthread_cond_timedwait(&c->changed, &c->lock, &at) == ETIMEDOUT) {
            break;
        }
    }
    pthread_mutex_unlock(&c->lock);
    if (atomic_load(&c->joined)) {
        engine_run(c->engine, comm_detach, c);
        comm_drop_lanes(c);
        comm_ops_unreserve(c);
        engine_leave(c->engine);
    }
    LIST_FOR_EACH(l, next, &c->links) {
        struct link *link = LIST_ENTRY(l, struct link, all);
        list_remove(&link->all);
        link_unref(link);
    }
    pthread_cond_destroy(&c->changed);
    pthread_mutex_destroy(&c->lock);
    comm_free_memory(c);
}
