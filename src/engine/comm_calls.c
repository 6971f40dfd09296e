/* comm_calls.c - the program's calls about membership: connecting, votes, leaving, and who is inside the library.
 *
 * A call hands its event to the session and waits until a step says that it is over (comm_say_..., from act.c).
 *
 * Invariant: a connect begins when all calls of the last membership have been collected, the end when none is inside.
 * SPDX-License-Identifier: MIT */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/clock.h"
#include "core/condition.h"
#include "core/stall.h"
#include "engine/comm.h"
#include "engine/comm_calls.h"
#include "engine/threads/comm_step.h"
#include "engine/links/link.h"
#include "engine/links/control_link.h"
#include "kernels/kernels.h"
#include "net/addr.h"
#include "net/interfaces.h"
#include "engine/calls/op_lanes.h"

enum { CALLS_TAGS = 1 << 20, CALLS_FLUSH_NS = 1000000000 };

bool comm_idle(struct comm *c)
{
    struct session_info info;
    if (c->machine.session == NULL) {
        return true;
    }
    session_info(c->machine.session, &info);
    return !info.connected;
}

void comm_exit(struct comm *c)
{
    pthread_mutex_lock(&c->lock);
    comm_out(c);
    pthread_mutex_unlock(&c->lock);
}

void comm_say_connected(struct comm *c)
{
    c->calls.connected = true;
    pthread_cond_broadcast(&c->changed);
}

void comm_say_voted(struct comm *c)
{
    c->calls.voted = true;
    pthread_cond_broadcast(&c->changed);
}

void comm_say_apply(struct comm *c)
{
    c->calls.apply = true;
}

const char COMM_CONNECT[] = "connect";

/* Waits for a flag that steps set; false: the deadline passed before. */
static bool comm_wait(struct comm *c, const bool *flag, int64_t deadline)
{
    while (!*flag) {
        if (!cond_wait(&c->changed, &c->lock, deadline) && !*flag) {
            return false;
        }
    }
    return true;
}

/* ---- Connect ----------------------------------------------------------------------------------------------------- */

static void comm_config(const struct comm *c, struct session_config *k)
{
    struct net_address seen = {.family = 4, .port = c->engine->port}; /* 0.0.0.0: what the master sees */
    const char *verify = getenv("PCCL_VERIFY");
    *k = (struct session_config){
        .group = c->params.group, .lanes = c->params.lanes,
        .max_members = BOUNDS_MEMBERS, .max_ops = BOUNDS_OPS, .max_records = BOUNDS_RECORDS,
        .max_tags = CALLS_TAGS, .max_owed = BOUNDS_OWED,
        .park_blocks = 64, .park_block_bytes = 2 * BOUNDS_EAGER_BYTES + 256, .park_per_link = 16,
        .mesh_members = 32,
        .heartbeat_ns = stall_heartbeat_ns(c->params.stall_ns, CLOCK_S),
        .stall_ms = c->params.stall_ms, .stall_ns = c->params.stall_ns, .master_loss_ns = c->params.master_loss_ns,
        .connect_ns = c->params.connect_ns, .link_ns = 5 * CLOCK_S,
        .wishes = c->params.wishes, .costs = c->engine->costs, .cores = (uint16_t)(c->engine->shared_cores < UINT16_MAX ? c->engine->shared_cores : UINT16_MAX),
        .kernels = kernels_get(), .verify = verify != NULL && verify[0] == '1',
        .seed = (uint64_t)clock_now_ns() ^ (uint64_t)(uintptr_t)c,
    };
    memcpy(k->world, c->params.world, sizeof k->world);
    k->claim = c->params.claim;
    k->derived = c->params.derived;
    k->derived.ids = c->params.callers;
    if (c->calls.advertised.family != 0) {
        k->address[k->addresses++] = c->calls.advertised;
    }
    if (c->calls.interfaces[0] == '\0') {
        k->address[k->addresses++] = seen;
    }
    k->addresses += (uint8_t)interfaces_list(c->calls.interfaces, k->address + k->addresses, (size_t)BOUNDS_ADDRESSES - k->addresses,
                                             c->engine->port);
}

/* A session that has left, or none yet: a fresh one.  False: no memory. */
static bool comm_fresh_session(struct comm *c, struct comm_after *after)
{
    struct session_config config;
    comm_ops_detach(c, after);
    op_lanes_rest(c);
    comm_config(c, &config);
    return comm_session_start(c, &config);
}

/* Whether calls have still to collect what the last membership left them; they end by themselves. */
static bool comm_calls_left(const struct comm *c)
{
    if (c->calls.voters > 0) {
        return true;
    }
    for (uint32_t i = 0; i < c->ops.fresh; i++) {
        const struct comm_op *op = c->ops.at[i];
        if (op != NULL && (op->given.awaited || !atomic_load(&op->end.returned.over))) {
            return true;
        }
    }
    return false;
}

/* Which interfaces others may dial: the communicator's own choice before the environment's. */
static pccl_status comm_interfaces(struct comm *c, struct err *err)
{
    const char *own = c->params.interfaces, *named = getenv("PCCL_SOCKET_IFNAME");
    const char *choice = own[0] != '\0' ? own : named != NULL ? named : "";
    const char *what = own[0] != '\0' ? "socket_ifname" : "PCCL_SOCKET_IFNAME";
    struct net_address one;
    char here[128];
    if (strlen(choice) >= sizeof c->calls.interfaces) {
        return err_set(err, PCCL_ERR_INVALID, "%s '%.20s...' is %zu bytes long, %zu is the most", what, choice, strlen(choice),
                       sizeof c->calls.interfaces - 1);
    }
    if (choice[0] != '\0' && interfaces_list(choice, &one, 1, 0) == 0) {
        interfaces_names(here, sizeof here);
        return err_set(err, PCCL_ERR_INVALID, "%s '%.40s': no interface that is up and has an address is named so; here are %s", what, choice, here);
    }
    memcpy(c->calls.interfaces, choice, strlen(choice) + 1);
    return PCCL_OK;
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
    c->calls.advertised = (struct net_address){.family = 0};
    const char *verify = getenv("PCCL_VERIFY"), *cpu = getenv("PCCL_CPU");
    if (verify != NULL && strcmp(verify, "") != 0 && strcmp(verify, "0") != 0 && strcmp(verify, "1") != 0) {
        return err_set(err, PCCL_ERR_INVALID, "PCCL_VERIFY '%.20s': expected 0 or 1", verify);
    }
    if (cpu != NULL && *cpu != 0 && !kernels_known(cpu)) {
        return err_set(err, PCCL_ERR_INVALID, "PCCL_CPU '%.20s': expected scalar, avx2, avx512 or neon", cpu);
    }
    const char *advertise = getenv("PCCL_ADVERTISE"); /* host, or host:port where a port is mapped */
    if (advertise != NULL && *advertise != 0) {
        st = addr_parse(advertise, c->engine->port, &c->calls.advertised, &why);
    }
    return st == PCCL_OK ? comm_interfaces(c, err) : err_set(err, st, "PCCL_ADVERTISE: %.200s", why.text);
}

/* Nobody else connects until comm_connect_end; false: not now. */
static bool connect_claim(struct comm *c, struct session_outcome *outcome)
{
    pthread_mutex_lock(&c->lock);
    const char *in_the_way = c->calls.closing      ? "pcclDestroyCommunicator is under way in another thread"
                             : c->calls.connect != NULL ? "pcclConnectAsync is under way: await its handle"
                             : c->calls.connecting ? "pcclConnect is under way in another thread"
                             : !comm_idle(c)       ? "already connected: pcclLeave comes first"
                                                   : NULL;
    c->calls.connecting = c->calls.connecting || in_the_way == NULL;
    c->calls.revoked = c->calls.revoked && in_the_way != NULL;
    c->calls.connect_began = in_the_way == NULL ? clock_now_ns() : c->calls.connect_began;
    pthread_mutex_unlock(&c->lock);
    if (in_the_way != NULL) {
        comm_fail(outcome, RESULT_USAGE, in_the_way);
    }
    return in_the_way == NULL;
}

static const char COMM_ORPHANED[] = "the program left the world that was to create it";

/* With the lock; the operation `ends`, if any, ends with it when it is pending. */
static void connect_begin(struct comm *c, struct comm_op *ends, struct session_outcome *outcome, struct comm_after *after)
{
    while (comm_calls_left(c) && !c->calls.closing && !c->calls.revoked) {
        pthread_cond_wait(&c->changed, &c->lock);
    }
    c->calls.connected = false;
    controls_forget_foreign(c);
    if (c->calls.closing || c->calls.revoked || c->calls.orphaned) { /* meanwhile: it has left already, and its end waits for this call */
        comm_fail(outcome, RESULT_GONE, c->calls.orphaned  ? COMM_ORPHANED
                                        : c->calls.closing ? "the communicator was destroyed"
                                                           : "the program revoked the world");
        outcome->cause = CAUSE_PEER_LEFT;
    } else if (!comm_fresh_session(c, after)) {
        comm_fail(outcome, RESULT_NO_MEMORY, "no memory for the session");
        outcome->left = true;
    } else {
        struct session_event e = {.kind = SESSION_CONNECT};
        comm_step(c, &e, after);
        *outcome = e.outcome;
        c->calls.connect = outcome->result == RESULT_PENDING ? ends : NULL;
    }
}

/* With the lock: the session has said that it is over. */
static void connect_collect(struct comm *c, struct session_outcome *outcome, struct comm_after *after)
{
    struct session_event e = {.kind = SESSION_COLLECT_CONNECT};
    comm_step(c, &e, after);
    *outcome = e.outcome;
    if (outcome->cause == CAUSE_KICK_UNREACHABLE && c->controls.foreign[0] != 0) {
        /* that is why it could not be linked */
        outcome->cause = CAUSE_KICK_VERSION;
        memcpy(outcome->text, c->controls.foreign, sizeof outcome->text);
    }
}

/* With the lock: until the session says that it is over. */
static void connect_wait(struct comm *c, struct comm_after *after)
{
    bool left = false;
    while (!c->calls.connected) {
        if (c->calls.orphaned && !left) {
            left = true;
            comm_step(c, &(struct session_event){.kind = SESSION_LEAVE, .text = COMM_ORPHANED}, after);
        } else {
            pthread_cond_wait(&c->changed, &c->lock);
        }
    }
}

/* An error that lies with the master names it, whoever noticed, and says what was met there. */
static void connect_name_master(const struct comm *c, struct session_outcome *o)
{
    char master[ADDR_TEXT], text[sizeof o->text];
    bool unreachable = o->result == RESULT_UNREACHABLE;
    if (o->cause == CAUSE_KICK_VERSION || (!unreachable && o->result != RESULT_REFUSED)) {
        return; /* it names who is of another version */
    }
    addr_format(&c->params.master, master);
    if (strstr(o->text, master) == NULL) {
        snprintf(text, sizeof text, "%s: %.134s", master, o->text);
        memcpy(o->text, text, sizeof text);
    }
    if (unreachable) {
        o->met = c->master.met;
        o->since = c->calls.connect_began;
    }
}

/* With the lock. */
static void connect_end(struct comm *c, struct session_outcome *outcome)
{
    connect_name_master(c, outcome);
    c->calls.was_member = c->calls.was_member || outcome->result == RESULT_OK;
    c->calls.connecting = false;
    pthread_cond_broadcast(&c->changed);
}

void comm_connect(struct comm *c, struct session_outcome *outcome)
{
    struct comm_after after;
    struct err err;
    if (!connect_claim(c, outcome)) {
        return;
    }
    bool ready = comm_prepare(c, &err) == PCCL_OK;
    comm_lock(c, &after);
    if (!ready) {
        comm_fail(outcome, RESULT_SETUP, err.text);
    } else {
        connect_begin(c, NULL, outcome, &after);
    }
    if (outcome->result == RESULT_PENDING) {
        comm_unlock(c, &after);
        comm_lock(c, &after);
        connect_wait(c, &after);
        connect_collect(c, outcome, &after);
    }
    connect_end(c, outcome);
    comm_unlock(c, &after);
}

void comm_derive(struct comm *parent, struct comm *c, struct session_outcome *outcome)
{
    pthread_mutex_lock(&parent->lock);
    c->calls.orphaned = comm_idle(parent);
    list_append(&parent->deriving, &c->in_parent);
    pthread_mutex_unlock(&parent->lock);
    comm_connect(c, outcome);
    pthread_mutex_lock(&parent->lock);
    list_remove(&c->in_parent);
    bool orphaned = c->calls.orphaned; /* no other thread knows of it any more */
    pthread_mutex_unlock(&parent->lock);
    if (orphaned && outcome->result != RESULT_OK) { /* the master may have said so first, in other words */
        comm_fail(outcome, RESULT_GONE, COMM_ORPHANED);
        outcome->cause = CAUSE_PEER_LEFT;
    }
}

/* With comm.lock: the program leaves; what its other calls are making of this one ends with it. */
static void comm_orphan(struct comm *parent)
{
    LIST_FOR_EACH(l, next, &parent->deriving) {
        struct comm *c = LIST_ENTRY(l, struct comm, in_parent);
        pthread_mutex_lock(&c->lock);
        c->calls.orphaned = true;
        pthread_cond_broadcast(&c->changed);
        pthread_mutex_unlock(&c->lock);
    }
}

bool comm_connect_async(struct comm *c, uint64_t *number_out, struct session_outcome *outcome)
{
    struct comm_after after;
    struct err err;
    if (!connect_claim(c, outcome)) {
        return false;
    }
    struct comm_op *op = NULL;
    bool ready = comm_prepare(c, &err) == PCCL_OK;
    if (ready && (op = comm_op_begin(c, COMM_CONNECT, NULL)) != NULL) {
        *number_out = op->given.tag;
    }
    comm_lock(c, &after);
    if (!ready) {
        comm_fail(outcome, RESULT_SETUP, err.text);
    } else if (op == NULL) {
        comm_fail(outcome, RESULT_NO_MEMORY, "no memory for the connect");
        outcome->left = true;
    } else {
        connect_begin(c, op, outcome, &after);
    }
    bool pending = outcome->result == RESULT_PENDING;
    if (!pending) {
        connect_end(c, outcome);
    }
    comm_unlock(c, &after);
    if (op != NULL && !pending) {
        comm_op_settle(c, op, outcome);
    }
    return op != NULL;
}

void comm_connect_ended(struct comm *c, struct comm_after *after)
{
    struct comm_op *op = c->calls.connect;
    struct session_outcome o;
    if (op == NULL || !c->calls.connected) {
        return;
    }
    c->calls.connect = NULL;
    connect_collect(c, &o, after);
    if (o.result != RESULT_OK && op->given.given_up) {
        o.cause = CAUSE_CANCEL;
    }
    connect_end(c, &o);
    comm_op_settle_locked(c, op, &o, after);
}

/* ---- Votes, leaving ---------------------------------------------------------------------------------------------- */

void comm_vote(struct comm *c, const struct msg_vote *vote, struct sync_state *state, struct session_outcome *outcome)
{
    struct comm_after after;
    int64_t deadline = c->params.vote_ns > 0 ? clock_now_ns() + c->params.vote_ns : CLOCK_NEVER;
    struct session_event e = {.kind = SESSION_VOTE, .vote = vote, .state = state};
    comm_lock(c, &after);
    if (c->machine.session == NULL) {
        comm_fail(outcome, RESULT_USAGE, "not connected");
        comm_unlock(c, &after);
        return;
    }
    bool ended = c->calls.voted; /* another thread's vote, not collected yet: this one is refused, and hides it not */
    c->calls.voted = false;
    comm_step(c, &e, &after);
    *outcome = e.outcome;
    bool pending = outcome->result == RESULT_PENDING;
    c->calls.voted = c->calls.voted || (ended && !pending);
    c->calls.voters += pending;
    comm_unlock(c, &after);
    if (!pending) {
        return;
    }
    comm_lock(c, &after);
    if (!comm_wait(c, &c->calls.voted, deadline)) {
        e = (struct session_event){.kind = SESSION_LEAVE, .text = "the deadline of a vote passed"};
        comm_step(c, &e, &after);
        comm_wait(c, &c->calls.voted, CLOCK_NEVER);
    }
    if (c->calls.apply) {
        c->calls.apply = false;
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
        comm_staging_free(c);
    }
    c->calls.voters--;
    pthread_cond_broadcast(&c->changed);
    comm_unlock(c, &after);
}

void comm_leave(struct comm *c, const char *why)
{
    struct comm_after after;
    comm_lock(c, &after);
    if (c->machine.session != NULL) {
        comm_step(c, &(struct session_event){.kind = SESSION_LEAVE, .text = why}, &after);
    }
    comm_orphan(c);
    comm_unlock(c, &after);
}

bool comm_revoke(struct comm *c)
{
    struct comm_after after;
    comm_lock(c, &after);
    bool any = c->calls.was_member || c->calls.connecting;
    c->calls.revoked = true; /* a connect that has not come to its session yet ends with that */
    pthread_cond_broadcast(&c->changed);
    if (c->machine.session != NULL) {
        comm_step(c, &(struct session_event){.kind = SESSION_REVOKE}, &after);
    }
    comm_orphan(c);
    comm_unlock(c, &after);
    return any;
}

void comm_wait_out(struct comm *c)
{
    pthread_mutex_lock(&c->lock);
    while (atomic_load(&c->calls.inside) > 0) {
        pthread_cond_wait(&c->changed, &c->lock);
    }
    pthread_mutex_unlock(&c->lock);
}

void comm_close(struct comm *c)
{
    struct comm_after after;
    comm_lock(c, &after);
    c->calls.closing = true;
    if (c->machine.session != NULL) {
        comm_step(c, &(struct session_event){.kind = SESSION_LEAVE, .text = "the communicator was destroyed"}, &after);
    }
    comm_orphan(c);
    comm_unlock(c, &after);
    comm_wait_out(c);
    int64_t until = clock_now_ns() + CALLS_FLUSH_NS;
    pthread_mutex_lock(&c->lock);
    while (!link_flushed(c) && cond_wait(&c->changed, &c->lock, until)) {
    }
    pthread_mutex_unlock(&c->lock);
}
