/* lane.c - lanes: locks, masks, the inbox, and one pass over what is ready.
 *
 * A lock that is held is never waited for: the poller hides the lane and goes on, a poster leaves an order and a wake-up, a
 * call sleeps on its operation.  So whoever gives the lock back looks at the inbox once more and shows the lane again.
 * SPDX-License-Identifier: MIT */
#include "engine/lane.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/timerfd.h>

#include "core/clock.h"
#include "engine/comm.h"
#include "engine/link.h"

enum { LANE_GRACE_NS = 500000 };

static _Thread_local struct lane *lane_held;

static void lane_outer_ready(struct source *source, uint32_t events);

struct lane *lane_new(struct engine *engine, uint32_t index)
{
    struct lane *lane = calloc(1, sizeof *lane);
    if (lane == NULL) {
        return NULL;
    }
    lane->slots = mmap(NULL, LANE_ROOM_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (lane->slots == MAP_FAILED) {
        free(lane);
        return NULL;
    }
    int rc = madvise(lane->slots, LANE_ROOM_BYTES, MADV_HUGEPAGE);
    (void)rc; /* only faster */
    if (loop_open(&lane->loop, NULL) != PCCL_OK) {
        munmap(lane->slots, LANE_ROOM_BYTES);
        free(lane);
        return NULL;
    }
    pthread_mutex_init(&lane->lock, NULL);
    pthread_mutex_init(&lane->mask_lock, NULL);
    pthread_mutex_init(&lane->inbox_lock, NULL);
    list_init(&lane->inbox);
    list_init(&lane->streams);
    list_init(&lane->execs);
    room_init(&lane->room, lane->slots, LANE_SLOT_BYTES, LANE_SLOTS, lane->free_list);
    lane->engine = engine;
    lane->index = index;
    lane->outer.fd = lane->loop.epoll;
    lane->outer.ready = lane_outer_ready;
    return lane;
}

void lane_free(struct lane *lane)
{
    for (struct list *l = list_pop(&lane->inbox); l != NULL; l = list_pop(&lane->inbox)) {
        free(LIST_ENTRY(l, struct lane_order, all));
    }
    loop_close(&lane->loop);
    munmap(lane->slots, LANE_ROOM_BYTES);
    pthread_mutex_destroy(&lane->lock);
    pthread_mutex_destroy(&lane->mask_lock);
    pthread_mutex_destroy(&lane->inbox_lock);
    free(lane);
}

/* ---- Who holds it, who looks at it --------------------------------------------------------------------------------------- */

bool lane_is_mine(const struct lane *lane)
{
    return lane_held == lane;
}

bool lane_try(struct lane *lane)
{
    if (pthread_mutex_trylock(&lane->lock) != 0) {
        return false;
    }
    lane_held = lane;
    return true;
}

void lane_mask(struct lane *lane)
{
    pthread_mutex_lock(&lane->mask_lock);
    if (!lane->masked) {
        lane->masked = true;
        loop_change(lane->poller, &lane->outer, 0);
    }
    pthread_mutex_unlock(&lane->mask_lock);
}

void lane_unmask(struct lane *lane)
{
    pthread_mutex_lock(&lane->mask_lock);
    if (lane->masked && !atomic_load(&lane->driven)) {
        lane->masked = false;
        loop_change(lane->poller, &lane->outer, EPOLLIN);
    }
    pthread_mutex_unlock(&lane->mask_lock);
}

/* Shows lane 0 again when the grace is over, unless a call comes back before. */
static void lane_grace(struct lane *lane)
{
    int timer = lane->engine->poller[0].timer.fd;
    struct itimerspec at = {.it_value = {.tv_nsec = LANE_GRACE_NS}};
    if (timerfd_settime(timer, 0, &at, NULL) != 0) {
        lane_unmask(lane);
    }
}

void lane_release(struct lane *lane, bool grace)
{
    for (;;) {
        lane_held = NULL;
        pthread_mutex_unlock(&lane->lock);
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

bool lane_post(struct lane *lane, const struct lane_order *order)
{
    struct lane_order *copy = malloc(sizeof *copy);
    if (copy == NULL) {
        return false;
    }
    *copy = *order;
    pthread_mutex_lock(&lane->inbox_lock);
    list_append(&lane->inbox, &copy->all);
    atomic_store(&lane->inbox_full, true);
    pthread_mutex_unlock(&lane->inbox_lock);
    return true;
}

void lane_poke(struct lane *lane)
{
    if (lane_held == lane) {
        return; /* this thread looks before it sleeps or lets go */
    }
    lane_unmask(lane);
    loop_wake(&lane->loop);
}

static struct lane_exec *lane_exec_of(struct lane *lane, uint64_t serial)
{
    LIST_FOR_EACH(l, after, &lane->execs) {
        struct lane_exec *e = LIST_ENTRY(l, struct lane_exec, all);
        if (e->op->serial == serial) {
            return e;
        }
    }
    return NULL;
}

void lane_step(struct lane *lane, struct lane_exec *e, const struct exec_event *event, struct exec_out *out)
{
    memset(out, 0, sizeof *out);
    exec_step(&e->x, event, out);
    lane->moved = true;
}

static void lane_exec_free(struct lane_exec *e)
{
    list_remove(&e->all);
    free(e->arena);
    free(e->ready);
    free(e);
}

/* Takes an executor out and tells its operation. */
static void lane_exec_end(struct lane *lane, struct lane_exec *e)
{
    struct comm_op *op = e->op;
    struct exec_out out;
    LIST_FOR_EACH(l, after, &lane->streams) {
        stream_let_go(LIST_ENTRY(l, struct stream, all), e);
    }
    lane_step(lane, e, &(struct exec_event){.kind = EXEC_STOP}, &out);
    lane_exec_free(e);
    comm_op_lane_idle(op);
}

static void lane_start(struct lane *lane, struct comm_op *op)
{
    struct lane_exec *e = calloc(1, sizeof *e);
    struct exec_config config = {
        .plan = &op->plan, .numeric = &op->numeric, .room = &lane->room, .in = op->in, .out = op->out,
        .lane = lane->index, .lanes = op->lanes, .window = op->window, .verify = op->verify,
    };
    size_t bytes = (exec_arena_bytes(&config) + 63) / 64 * 64;
    void *arena = e != NULL ? aligned_alloc(64, bytes > 0 ? bytes : 64) : NULL;
    uint64_t *ready = arena != NULL ? calloc((op->world + 63) / 64, sizeof *ready) : NULL;
    if (ready == NULL) {
        free(arena);
        free(e);
        room_unreserve(&lane->room, op->reserved);
        comm_cancel(op->comm, op, CAUSE_NO_MEMORY);
        comm_op_lane_idle(op);
        return;
    }
    e->op = op;
    e->arena = arena;
    e->ready = ready;
    exec_init(&e->x, &config, arena);
    list_append(&lane->execs, &e->all);
    lane->moved = true;
}

static uint32_t lane_rank(const struct comm_op *op, uint64_t peer)
{
    for (uint32_t low = 0, high = op->world; low < high;) {
        uint32_t middle = low + (high - low) / 2;
        if (op->ranks[middle] == peer) {
            return middle;
        }
        if (op->ranks[middle] < peer) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return UINT32_MAX;
}

uint32_t stream_rank(struct stream *s, const struct comm_op *op)
{
    if (s->rank_view != op->view) {
        s->rank = lane_rank(op, s->peer);
        s->rank_view = op->view;
    }
    return s->rank;
}

static void lane_ready(struct lane *lane, const struct lane_order *o)
{
    struct lane_exec *e = lane_exec_of(lane, o->serial);
    uint32_t rank = e != NULL ? lane_rank(e->op, o->peer) : UINT32_MAX;
    struct exec_out out;
    if (rank == UINT32_MAX) {
        return; /* stopped meanwhile */
    }
    e->ready[rank / 64] |= UINT64_C(1) << (rank % 64);
    lane_step(lane, e, &(struct exec_event){.kind = EXEC_READY, .rank = rank, .credit = o->credit}, &out);
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
        link_detach_controls(comm);
    }
    pthread_mutex_lock(&done->lock);
    if (--done->left == 0) {
        pthread_cond_broadcast(&done->zero);
    }
    pthread_mutex_unlock(&done->lock);
}

static void lane_watch(struct lane *lane, uint64_t serial)
{
    struct lane_exec *e = lane_exec_of(lane, serial);
    if (e == NULL || e->x.done) {
        return;
    }
    struct comm_op *op = e->op;
    uint32_t rank = exec_waits_for(&e->x);
    if (rank == op->rank || rank >= op->world) {
        return;
    }
    comm_op_stalled(op, op->ranks[rank]);
}

static void lane_order(struct lane *lane, const struct lane_order *o)
{
    struct lane_exec *e;
    lane->moved = true;
    switch (o->kind) {
    case LANE_START:
        lane_start(lane, o->op);
        break;
    case LANE_READY:
        lane_ready(lane, o);
        break;
    case LANE_STOP:
        e = lane_exec_of(lane, o->serial);
        if (e != NULL) {
            lane_exec_end(lane, e);
        }
        break;
    case LANE_STREAM:
        if (!stream_open(o->stream, lane)) {
            stream_close(o->stream);
        }
        break;
    case LANE_DROP:
        lane_drop(lane, o->comm, o->done);
        break;
    case LANE_WATCH:
        lane_watch(lane, o->serial);
        break;
    }
}

static void lane_inbox(struct lane *lane)
{
    while (atomic_load(&lane->inbox_full)) {
        pthread_mutex_lock(&lane->inbox_lock);
        struct list *l = list_pop(&lane->inbox);
        if (l == NULL) {
            atomic_store(&lane->inbox_full, false);
        }
        pthread_mutex_unlock(&lane->inbox_lock);
        if (l != NULL) {
            struct lane_order *o = LIST_ENTRY(l, struct lane_order, all);
            lane_order(lane, o);
            free(o);
        }
    }
}

/* ---- One pass ------------------------------------------------------------------------------------------------------------- */

static struct lane_exec *lane_look(struct lane *lane, struct comm *comm, uint64_t view, const struct op_name *name)
{
    LIST_FOR_EACH(l, after, &lane->execs) {
        struct lane_exec *e = LIST_ENTRY(l, struct lane_exec, all);
        if (e->op->comm == comm && e->op->view == view && e->op->name.tag == name->tag && e->op->name.seq == name->seq) {
            return e;
        }
    }
    return NULL;
}

struct lane_exec *lane_find(struct lane *lane, struct comm *comm, uint64_t view, const struct op_name *name)
{
    struct lane_exec *e = lane_look(lane, comm, view, name);
    if (e == NULL && atomic_load(&lane->inbox_full)) {
        /* Its start was posted before our READY left, and so before this frame could: it is there now. */
        lane_inbox(lane);
        e = lane_look(lane, comm, view, name);
    }
    return e;
}

/* Executors that have finished or starve. */
static void lane_sweep(struct lane *lane)
{
    LIST_FOR_EACH(l, after, &lane->execs) {
        struct lane_exec *e = LIST_ENTRY(l, struct lane_exec, all);
        struct exec_out out;
        if (e->x.starved) {
            exec_step(&e->x, &(struct exec_event){.kind = EXEC_ROOM}, &out);
            lane->again |= out.granted;
        }
        if (e->x.failed) {
            comm_cancel(e->op->comm, e->op, CAUSE_INTERNAL);
        } else if (e->x.done && !e->told_done) {
            e->told_done = true;
            comm_op_lane_done(e->op, &e->x);
        }
        if (e->x.idle || e->x.failed) {
            lane_exec_end(lane, e);
            lane->again = true; /* its room may be what one before it in the list starves for */
        }
    }
}

static bool lane_pass(struct lane *lane)
{
    bool moved = false;
    lane->again = false;
    LIST_FOR_EACH(l, after, &lane->streams) {
        struct stream *s = LIST_ENTRY(l, struct stream, all);
        if (s->can_in && !s->broken) {
            moved |= stream_receive(s);
        }
    }
    LIST_FOR_EACH(l, after, &lane->streams) {
        struct stream *s = LIST_ENTRY(l, struct stream, all);
        if (s->can_out && !s->broken) {
            moved |= stream_send(s);
        }
    }
    lane_sweep(lane);
    bool busy = lane->again;
    LIST_FOR_EACH(l, after, &lane->streams) {
        struct stream *s = LIST_ENTRY(l, struct stream, all);
        if (s->broken) {
            link_stream_down(s);
            stream_close(s);
        } else {
            busy |= s->can_in || s->more;
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
    return moved || lane->moved || served > 0;
}
