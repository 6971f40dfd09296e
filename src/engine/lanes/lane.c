/* lane.c - lanes: their life, the orders of others, and one pass over what is ready.
 *
 * Its one idea: a pass stands on streams and executors, so orders, which may free one, are carried out between passes.
 * SPDX-License-Identifier: MIT */
#include "engine/lanes/lane.h"
#include "engine/lanes/lane_exec.h"
#include "engine/lanes/lane_room.h"
#include "engine/lanes/stream.h"
#include "engine/threads/lane_hold.h"

#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/timerfd.h>

#include "core/clock.h"
#include "core/mix.h"
#include "engine/comm.h"
#include "net/fabric.h"

enum { LANE_GRACE_NS = 500000 };

static void lane_outer_ready(struct source *source, uint32_t events);

struct lane *lane_new(struct engine *engine, uint32_t index, const struct lane_calls *calls, struct err *err)
{
    struct lane *lane = calloc(1, sizeof *lane);
    if (lane != NULL) {
        lane->engine = engine;
    }
    if (lane == NULL || !lane_room_init(lane) || !lane_execs_init(lane)) {
        (void)err_set(err, PCCL_ERR_NOMEM, "make lane %u: no memory: free some", index);
        goto fail;
    }
    if (loop_open(&lane->loop, err) != PCCL_OK) {
        goto fail;
    }
    buckets_init(&lane->peers, lane_peer_hash);
    pthread_mutex_init(&lane->lock, NULL);
    pthread_mutex_init(&lane->mask_lock, NULL);
    pthread_mutex_init(&lane->inbox_lock, NULL);
    list_init(&lane->inbox);
    list_init(&lane->later);
    list_init(&lane->streams);
    list_init(&lane->due);
    lane->calls = calls;
    lane->index = index;
    lane->outer.fd = lane->loop.epoll;
    lane->outer.ready = lane_outer_ready;
    return lane;
fail:
    if (lane != NULL) {
        lane_room_free(lane);
        free(lane->buckets);
    }
    free(lane);
    return NULL;
}

void lane_free(struct lane *lane)
{
    for (struct list *l = list_pop(&lane->inbox); l != NULL; l = list_pop(&lane->inbox)) {
        free(LIST_ENTRY(l, struct lane_order, all));
    }
    if (lane->fabric != NULL) {
        fabric_port_unwatch(lane->fabric);
        fabric_port_close(lane->fabric);
    }
    loop_close(&lane->loop);
    lane_room_free(lane);
    pthread_mutex_destroy(&lane->lock);
    pthread_mutex_destroy(&lane->mask_lock);
    pthread_mutex_destroy(&lane->inbox_lock);
    buckets_fini(&lane->peers);
    free(lane->buckets);
    while (lane->pool.first != NULL) {
        free(frame_pool_take(&lane->pool));
    }
    free(lane);
}

/* ---- Who holds it, who looks at it --------------------------------------------------------------------------------------- */

static void lane_grace_timer(struct lane *lane, int64_t ns)
{
    int timer = lane->engine->poller[0].timer.fd;
    struct itimerspec at = {.it_value = {.tv_nsec = ns}};
    atomic_store(&lane->grace_timed, true);
    if (timerfd_settime(timer, 0, &at, NULL) != 0) {
        lane_unmask(lane);
    }
}

/* Shows lane 0 again when the grace is over, unless a call comes back before.  The timer is set once in a while, not by every call. */
static void lane_grace(struct lane *lane)
{
    atomic_store(&lane->grace_until, clock_now_ns() + LANE_GRACE_NS);
    if (!atomic_load(&lane->grace_timed)) {
        lane_grace_timer(lane, LANE_GRACE_NS);
    }
}

void lane_grace_over(struct lane *lane)
{
    atomic_store(&lane->grace_timed, false); /* whoever sets it from here on is heard */
    int64_t left = atomic_load(&lane->grace_until) - clock_now_ns();
    if (left > 0) {
        lane_grace_timer(lane, left);
    } else {
        lane_unmask(lane);
    }
}

void lane_release(struct lane *lane, bool grace)
{
    if (grace && atomic_load(&lane->busy)) {
        lane_serve(lane, 0); /* an executor that ended may have left nothing: no reason to wake the poller */
    }
    for (;;) {
        lane_let(lane);
        if (!atomic_load(&lane->inbox_full) || !lane_try(lane)) {
            break; /* nothing came, or somebody else holds it and will look */
        }
        lane_serve(lane, 0);
    }
    bool busy = atomic_load(&lane->busy);
    if (grace && !busy && atomic_load(&lane->sleepers) == 0) {
        lane_grace(lane);
        return;
    }
    lane_unmask(lane);
    if (busy) {
        loop_wake(&lane->loop);
    }
}

/* On the poller's thread. */
static void lane_outer_ready(struct source *source, uint32_t events)
{
    struct lane *lane = LIST_ENTRY(source, struct lane, outer);
    (void)events;
    if (!lane_try(lane)) {
        lane_mask(lane);
        if (!lane_try(lane)) {
            return; /* the holder shows it again */
        }
    }
    lane_serve(lane, 0);
    lane_release(lane, false);
}

/* ---- Orders --------------------------------------------------------------------------------------------------------------- */

/* The newest connection with a peer. */
static struct stream *lane_stream(struct lane *lane, const struct comm *comm, uint64_t peer)
{
    struct stream *newest = NULL;
    LIST_FOR_EACH(l, after, lane_peers(lane, peer)) {
        struct stream *s = LIST_ENTRY(l, struct stream, by_peer);
        if (s->comm == comm && s->peer == peer && !s->broken && (newest == NULL || s->number > newest->number)) {
            newest = s;
        }
    }
    return newest;
}

static struct lane_exec *lane_exec_of(struct lane *lane, const struct lane_order *o)
{
    return lane_exec_find(lane, o->comm, o->view, &o->name);
}

static void lane_ready(struct lane *lane, const struct lane_order *o)
{
    struct lane_exec *e = lane_exec_of(lane, o);
    if (e != NULL) { /* else stopped meanwhile */
        lane_exec_ready(lane, e, lane_stream(lane, o->comm, o->peer), o);
    }
}

/* Lets go of all that belongs to a communicator. */
static void lane_drop(struct lane *lane, struct comm *comm, struct lane_done *done)
{
    LIST_FOR_EACH(l, after, &lane->execs) {
        struct lane_exec *e = LIST_ENTRY(l, struct lane_exec, all);
        if (e->op->comm == comm) {
            lane_exec_end(lane, e);
        }
    }
    LIST_FOR_EACH(l, after, &lane->streams) {
        struct stream *s = LIST_ENTRY(l, struct stream, all);
        if (s->comm == comm) {
            stream_close(s);
        }
    }
    if (lane->index == 0) {
        lane->calls->drop(comm);
    }
    pthread_mutex_lock(&done->lock);
    if (--done->left == 0) {
        pthread_cond_broadcast(&done->zero);
    }
    pthread_mutex_unlock(&done->lock);
}

static void lane_look(struct lane *lane, struct lane_exec *e, int64_t now)
{
    struct comm_op *op = e->op;
    struct exec_wait wait = exec_waits_for(&e->x);
    struct exec_look look = {
        .now = now, .stall_ns = op->run.stall_ns, .own_bytes = atomic_load(&op->moved), .own = op->run.launch,
        .lane_bytes = lane->received,
    };
    bool lane_moves = lane->received != e->watch.lane_bytes;
    bool other = wait.partner != PLAN_NOBODY;
    if (other) {
        const struct lane_partner *p = &e->partner[wait.partner];
        look.edge = p->stream != NULL ? &p->stream->edge : NULL;
        look.theirs = p->launch;
    }
    if (exec_watch_stalled(&e->watch, &wait, &look) && other && !e->x.done) {
        lane->calls->stalled(op, op->plan.made->ids[wait.partner]);
    }
    lane_tell(lane, e);
    if (e->x.starved && lane_moves) {
        struct exec_out out;
        lane_step(lane, e, &(struct exec_event){.kind = EXEC_TELL, .moved = {now, 0}}, &out);
    }
}

static void lane_watch(struct lane *lane, struct comm *comm)
{
    int64_t now = clock_now_ns();
    LIST_FOR_EACH(l, after, &lane->execs) {
        struct lane_exec *e = LIST_ENTRY(l, struct lane_exec, all);
        if (e->op->comm == comm) {
            lane_look(lane, e, now);
        }
    }
    LIST_FOR_EACH(l, after, &lane->streams) {
        struct stream *s = LIST_ENTRY(l, struct stream, all);
        if (s->comm == comm) {
            exec_edge_clear(&s->edge);
        }
    }
}

static void lane_rest(struct lane *lane, struct comm *comm)
{
    LIST_FOR_EACH(l, after, &lane->streams) {
        struct stream *s = LIST_ENTRY(l, struct stream, all);
        if (s->comm == comm && s->transport.ops->spare != NULL) {
            s->transport.ops->spare(&s->transport);
        }
    }
    lane_room_rest(lane);
    if (lane->index == 0) {
        lane->calls->rest(comm);
    }
}

static void lane_order(struct lane *lane, const struct lane_order *o)
{
    struct lane_exec *e;
    lane->moved = true;
    switch (o->kind) {
    case LANE_START:
        break; /* lane_take has seen to it */
    case LANE_READY:
        lane_ready(lane, o);
        break;
    case LANE_STOP:
        e = lane_exec_of(lane, o);
        if (e != NULL) {
            lane_exec_end(lane, e);
        }
        break;
    case LANE_STREAM:
        o->stream->broken = !stream_open(o->stream, lane); /* then the pass ends it */
        break;
    case LANE_DROP:
        lane_drop(lane, o->comm, o->done);
        break;
    case LANE_REST:
        lane_rest(lane, o->comm);
        break;
    case LANE_WATCH:
        lane_watch(lane, o->comm);
        break;
    }
}

/* Carries out what has come, between passes. */
static void lane_inbox(struct lane *lane)
{
    lane_take(lane);
    for (struct list *l = list_pop(&lane->later); l != NULL; l = list_pop(&lane->later)) {
        struct lane_order *o = LIST_ENTRY(l, struct lane_order, all);
        lane_order(lane, o);
        free(o);
    }
}

/* ---- One pass ------------------------------------------------------------------------------------------------------------- */

static bool lane_pass(struct lane *lane)
{
    bool moved = false;
    lane->again = false;
    LIST_FOR_EACH(l, after, &lane->due) {
        struct stream *s = LIST_ENTRY(l, struct stream, due);
        if (s->can_in && !s->broken) {
            moved |= stream_receive(s);
        }
    }
    LIST_FOR_EACH(l, after, &lane->due) {
        struct stream *s = LIST_ENTRY(l, struct stream, due);
        if (s->can_out && !s->broken) {
            moved |= stream_send(s);
        }
    }
    lane_sweep(lane);
    bool busy = lane->again;
    LIST_FOR_EACH(l, after, &lane->due) {
        struct stream *s = LIST_ENTRY(l, struct stream, due);
        if (s->untried && !s->broken && s->transport.ops->good(&s->transport)) {
            s->untried = false;
            lane->calls->good(s);
        }
        if (s->broken) {
            lane->calls->broken(s);
            stream_close(s);
        } else if (stream_has_work(s)) {
            busy = true;
        } else {
            list_remove(&s->due);
        }
    }
    atomic_store(&lane->busy, busy);
    return moved;
}

bool lane_serve(struct lane *lane, int64_t timeout_ns)
{
    lane->moved = false;
    lane_inbox(lane);
    if (lane->moved || atomic_load(&lane->busy)) {
        timeout_ns = 0;
    }
    int served = loop_poll(&lane->loop, timeout_ns);
    lane_inbox(lane);
    bool moved = lane_pass(lane);
    lane_inbox(lane);
    if (!list_empty(&lane->due)) {
        atomic_store(&lane->busy, true); /* an order that came in the pass has made something to send */
    }
    return moved || lane->moved || served > 0;
}
