/* lane_exec.c - the executors of a lane: found by the names of their operations, each known to the connections it has work for.
 *
 * After each step the executor names the partners for which a frame or a grant may have come up; their connections keep these in lists, frames
 * in the order of launches.  So no connection ever looks through the operations in flight.  What a step may have ended or starved is
 * looked at once, after the pass.
 *
 * Invariant: a partner whose connection is known, and for which exec_has_frame holds, is in that connection's list of work.
 * SPDX-License-Identifier: MIT */
#include <stdlib.h>
#include <string.h>

#include "core/clock.h"
#include "core/mix.h"
#include "engine/comm.h"
#include "engine/lanes/lane_bound.h"
#include "engine/lanes/lane_exec.h"
#include "engine/lanes/lane_room.h"

enum { LANE_BUCKETS_FIRST = 64, LANE_POOL_KEEP = 8, LANE_COPIES = 4 /* frames in a pass */ };

/* ---- By name ------------------------------------------------------------------------------------------------------------- */

static struct list *exec_bucket(struct lane *lane, const struct comm *comm, uint64_t view, const struct op_name *name)
{
    uint64_t h = mix64(mix64(mix64((uint64_t)(uintptr_t)comm, view), name->tag), name->seq | (uint64_t)name->space << 32);
    return &lane->buckets[h & (lane->bucket_count - 1)];
}

bool lane_execs_init(struct lane *lane)
{
    list_init(&lane->execs);
    list_init(&lane->stepped);
    lane->bucket_count = LANE_BUCKETS_FIRST;
    lane->buckets = malloc(lane->bucket_count * sizeof *lane->buckets);
    for (uint32_t i = 0; lane->buckets != NULL && i < lane->bucket_count; i++) {
        list_init(&lane->buckets[i]);
    }
    return lane->buckets != NULL;
}

/* Twice the buckets, if there is memory for them; else the lists grow. */
static void execs_grow(struct lane *lane)
{
    struct list *old = lane->buckets, *buckets = malloc(2 * (size_t)lane->bucket_count * sizeof *buckets);
    if (buckets == NULL) {
        return;
    }
    lane->bucket_count *= 2;
    lane->buckets = buckets;
    for (uint32_t i = 0; i < lane->bucket_count; i++) {
        list_init(&buckets[i]);
    }
    LIST_FOR_EACH(l, after, &lane->execs) {
        struct lane_exec *e = LIST_ENTRY(l, struct lane_exec, all);
        list_remove(&e->by_name);
        list_append(exec_bucket(lane, e->op->comm, e->op->run.view, &e->op->run.name), &e->by_name);
    }
    free(old);
}

/* Who reads from a connection knows one end of a pair by the connection's, and leaves its own open (0). */
static bool exec_named(const struct op_name *own, const struct op_name *heard)
{
    return own->tag == heard->tag && own->seq == heard->seq && own->space == heard->space &&
           (heard->from == 0 || heard->from == own->from) && (heard->to == 0 || heard->to == own->to);
}

struct lane_exec *lane_exec_find(struct lane *lane, const struct comm *comm, uint64_t view, const struct op_name *name)
{
    LIST_FOR_EACH(l, after, exec_bucket(lane, comm, view, name)) {
        struct lane_exec *e = LIST_ENTRY(l, struct lane_exec, by_name);
        if (e->op->comm == comm && e->op->run.view == view && exec_named(&e->op->run.name, name)) {
            return e;
        }
    }
    return NULL;
}

/* ---- Work for connections ------------------------------------------------------------------------------------------------ */

void stream_due(struct stream *s)
{
    if (list_empty(&s->due)) {
        list_append(&s->lane->due, &s->due);
    }
}

static void exec_offer(struct lane_exec *e, uint32_t partner)
{
    struct lane_partner *p = &e->partner[partner];
    if (p->stream == NULL) {
        return;
    }
    if (!turn_waits(&p->work) && exec_has_frame(&e->x, partner)) {
        turns_add(&p->stream->work, &p->work, e->op->run.launch);
        stream_due(p->stream);
    }
    /* Only to those who have launched: before, nobody there could keep the number. */
    if (list_empty(&p->grants) && p->launch != 0 && exec_has_credit(&e->x, partner)) {
        list_append(&p->stream->grants, &p->grants);
        stream_due(p->stream);
    }
}

/* After whatever may have changed it. */
static void exec_changed(struct lane *lane, struct lane_exec *e)
{
    for (uint32_t partner = exec_touched(&e->x); partner != PLAN_NOBODY; partner = exec_touched(&e->x)) {
        exec_offer(e, partner);
    }
    if (list_empty(&e->stepped)) {
        list_append(&lane->stepped, &e->stepped);
    }
    lane->moved = true;
}

void lane_step(struct lane *lane, struct lane_exec *e, const struct exec_event *event, struct exec_out *out)
{
    memset(out, 0, sizeof *out);
    exec_step(&e->x, event, out);
    exec_changed(lane, e);
}

bool lane_bind(struct lane_exec *e, uint32_t partner, struct stream *s)
{
    struct lane_partner *p = &e->partner[partner];
    if (p->bundle == 0) {
        p->bundle = s->number;
        p->stream = s;
        list_append(&s->partners, &p->bound);
        if (s->flow.frames > FLOW_BASE) {
            struct exec_out out;
            lane_step(s->lane, e, &(struct exec_event){.kind = EXEC_WINDOW, .partner = partner, .credit = s->flow.frames}, &out);
        }
        exec_offer(e, partner);
    }
    return p->stream == s;
}

void lane_unbind(struct lane_partner *p)
{
    list_remove(&p->bound);
    turn_leave(&p->work);
    list_remove(&p->grants);
    p->stream = NULL;
}

/* ---- Start and end ------------------------------------------------------------------------------------------------------- */

void lane_exec_start(struct lane *lane, struct comm_op *op)
{
    uint32_t partners = op->plan.plan->partner_count;
    struct lane_exec *e = calloc(1, sizeof *e + partners * sizeof e->partner[0]);
    struct exec_config config = {
        .plan = op->plan.plan, .numeric = &op->run.numeric, .room = &lane->room, .pool = &lane->pool, .in = op->run.in, .out = op->given.out,
        .scratch = op->memory.sums,
        .backup = op->plan.saved != NULL ? op->memory.backup : NULL, .saved = op->plan.saved,
        .lane = lane->index, .lanes = op->run.lanes, .window = op->room.window, .verify = op->run.verify,
    };
    size_t bytes = (exec_arena_bytes(&config) + 63) / 64 * 64;
    void *arena = e != NULL ? aligned_alloc(64, bytes > 0 ? bytes : 64) : NULL;
    if (arena == NULL) {
        free(e);
        room_unreserve(&lane->room, op->room.reserved);
        lane->calls->cancel(op->comm, op, CAUSE_NO_MEMORY);
        lane->calls->idle(op, 0, 0);
        return;
    }
    e->op = op;
    e->arena = arena;
    for (uint32_t i = 0; i < partners; i++) {
        e->partner[i].exec = e;
        list_init(&e->partner[i].bound);
        list_init(&e->partner[i].grants);
    }
    list_init(&e->stepped);
    exec_watch_start(&e->watch, clock_now_ns());
    exec_init(&e->x, &config, arena);
    list_append(&lane->execs, &e->all);
    list_append(exec_bucket(lane, op->comm, op->run.view, &op->run.name), &e->by_name);
    if (++lane->exec_count > lane->bucket_count) {
        execs_grow(lane);
    }
    exec_changed(lane, e);
}

void lane_exec_end(struct lane *lane, struct lane_exec *e)
{
    struct comm_op *op = e->op;
    struct exec_out out;
    for (uint32_t i = 0; i < op->plan.plan->partner_count; i++) {
        if (e->partner[i].stream != NULL) {
            stream_let_go(e->partner[i].stream, e);
            lane_unbind(&e->partner[i]);
        }
    }
    exec_step(&e->x, &(struct exec_event){.kind = EXEC_STOP}, &out);
    lane->moved = true;
    uint64_t tx_bytes = e->x.tx_bytes, rx_bytes = e->x.rx_bytes;
    list_remove(&e->all);
    list_remove(&e->by_name);
    list_remove(&e->stepped);
    turn_leave(&e->starving);
    turn_leave(&e->starving_next);
    lane->exec_count--;
    free(e->arena);
    free(e);
    lane->calls->idle(op, tx_bytes, rx_bytes);
}

void lane_exec_ready(struct lane *lane, struct lane_exec *e, struct stream *s, const struct lane_order *o)
{
    struct exec_out out;
    e->partner[o->partner].launch = o->launch;
    exec_watch_again(&e->watch, clock_now_ns());
    if (s != NULL) {
        lane_bind(e, o->partner, s);
    }
    lane_step(lane, e, &(struct exec_event){.kind = EXEC_READY, .partner = o->partner, .credit = o->credit}, &out);
    lane_tell(lane, e);
}

void lane_tell(struct lane *lane, struct lane_exec *e)
{
    struct exec_out out;
    bool tells = exec_watch_tells(&e->watch, e->op->run.stall_ns);
    for (uint32_t i = 0; tells && i < e->op->plan.plan->partner_count; i++) {
        const struct lane_partner *p = &e->partner[i];
        if (p->stream == NULL || !exec_edge_shows(&p->stream->edge, e->op->run.launch)) {
            lane_step(lane, e, &(struct exec_event){.kind = EXEC_MOVED, .partner = i, .moved = e->watch.moved}, &out);
        }
    }
}

bool lane_exec_buffer(struct lane *lane, struct lane_exec *e)
{
    if (e->given_up || e->x.direct_bytes || lane->pool.first != NULL) {
        return !e->given_up;
    }
    void *buffer = malloc(LANE_SLOT_BYTES);
    if (buffer == NULL) {
        e->given_up = true;
        lane->calls->cancel(e->op->comm, e->op, CAUSE_NO_MEMORY);
        return false;
    }
    frame_pool_give(&lane->pool, buffer);
    return true;
}

/* ---- After a pass -------------------------------------------------------------------------------------------------------- */

static void turn_set(struct turns *all, struct turn *t, bool waits, uint64_t number)
{
    if (!waits) {
        turn_leave(t);
    } else if (!turn_waits(t)) {
        turns_add(all, t, number);
    }
}

static void starving_set(struct lane *lane, struct lane_exec *e)
{
    turn_set(&lane->starving, &e->starving, e->x.starved, e->op->run.launch);
    turn_set(&lane->starving_next, &e->starving_next, e->x.starved && e->x.starved_next > 0, e->op->run.launch);
}

/* Grants for those that starve, in the order of launches, for as long as there are any: half A of the room may serve any of them, half B
 * only whoever folds the frame on arrival. */
static void sweep_starving(struct lane *lane)
{
    if (lane->starving.first != NULL && !room_has_a(&lane->room)) {
        lane_room_grow(lane);
    }
    for (;;) {
        struct turn *any = room_has_a(&lane->room) ? lane->starving.first : NULL;
        struct turn *next = any == NULL && room_has_b(&lane->room) ? lane->starving_next.first : NULL;
        if (any == NULL && next == NULL) {
            return;
        }
        struct lane_exec *e = any != NULL ? LIST_ENTRY(any, struct lane_exec, starving)
                                          : LIST_ENTRY(next, struct lane_exec, starving_next);
        struct exec_out out = {0};
        exec_step(&e->x, &(struct exec_event){.kind = EXEC_ROOM}, &out);
        starving_set(lane, e);
        if (out.granted) {
            exec_changed(lane, e);
            lane->again = true;
        } else if (turn_waits(any != NULL ? any : next)) {
            return; /* another thread was quicker: looked at again with the next pass */
        }
    }
}

/* Copies that wait for time, a few in a turn, so that the connections keep their turns.  True: there are more. */
static bool exec_work(struct lane *lane, struct lane_exec *e)
{
    for (int i = 0; i < LANE_COPIES && e->x.work; i++) {
        struct exec_out out;
        lane_step(lane, e, &(struct exec_event){.kind = EXEC_WORK}, &out);
    }
    return e->x.work;
}

void lane_sweep(struct lane *lane)
{
    struct list more;
    list_init(&more);
    for (struct list *l = list_pop(&lane->stepped); l != NULL; l = list_pop(&lane->stepped)) {
        struct lane_exec *e = LIST_ENTRY(l, struct lane_exec, stepped);
        bool again = exec_work(lane, e);
        list_remove(&e->stepped);
        starving_set(lane, e);
        if (e->x.starved && lane->bound != LANE_BOUND_NONE) {
            lane_bound_note(e);
        }
        if (e->x.failed) {
            log_line(LOG_ERROR, "assertion failed: %s at %s; this is a bug, please report it", e->x.failed_what, e->x.failed_where);
            lane->calls->cancel(e->op->comm, e->op, CAUSE_INTERNAL);
        } else if (e->x.done && !e->told_done) {
            e->told_done = true;
            lane->calls->done(e->op, &e->x);
        }
        if (e->x.idle || e->x.failed) {
            lane_exec_end(lane, e);
            lane->again = true; /* its room may be what others starve for */
        } else if (again) {
            list_append(&more, &e->stepped);
            lane->again = true;
        }
    }
    for (struct list *l = list_pop(&more); l != NULL; l = list_pop(&more)) {
        list_append(&lane->stepped, l);
    }
    sweep_starving(lane);
    while (lane->pool.count > LANE_POOL_KEEP) {
        free(frame_pool_take(&lane->pool));
    }
}

void lane_take(struct lane *lane)
{
    while (atomic_load(&lane->inbox_full)) {
        pthread_mutex_lock(&lane->inbox_lock);
        struct list *l = list_pop(&lane->inbox);
        if (l == NULL) {
            atomic_store(&lane->inbox_full, false);
        }
        pthread_mutex_unlock(&lane->inbox_lock);
        struct lane_order *o = l != NULL ? LIST_ENTRY(l, struct lane_order, all) : NULL;
        if (o != NULL && o->kind == LANE_START) {
            lane_exec_start(lane, o->op);
            free(o);
        } else if (o != NULL) {
            list_append(&lane->later, &o->all);
        }
    }
}

struct lane_exec *lane_find(struct lane *lane, struct comm *comm, uint64_t view, const struct op_name *name)
{
    struct lane_exec *e = lane_exec_find(lane, comm, view, name);
    if (e == NULL && atomic_load(&lane->inbox_full)) {
        /* Its start was posted before our READY left, and so before this frame could: it is there now. */
        lane_take(lane);
        e = lane_exec_find(lane, comm, view, name);
    }
    return e;
}

void stream_drain(struct stream *s)
{
    s->rx_exec = NULL;
    s->rx_dst = NULL;
    s->rx_element = 0;
}

void stream_let_go(struct stream *s, struct lane_exec *e)
{
    if (s->rx_exec == e) {
        stream_drain(s);
    }
    if (s->tx_exec == e) {
        s->tx_exec = NULL;
        if (s->tx_left > 0) {
            free(s->tx_scratch);
            s->tx_scratch = malloc(s->tx_left);
            if (s->tx_scratch == NULL) {
                s->broken = true; /* cannot end the frame: the connection goes */
                stream_due(s);
                s->tx_left = 0;
                return;
            }
            memcpy(s->tx_scratch, s->tx_data, s->tx_left);
            s->tx_data = s->tx_scratch;
        }
    }
}
