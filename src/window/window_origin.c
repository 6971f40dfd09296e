/* window_origin.c - what this peer does with the windows of others.
 *
 * An operation is a request and, for most, one message more, launched right behind each other and bound to one view.  If that view ends
 * first and the target is still there, both are sent again, with the number that they had: the target knows what it has done.
 * What ends in an error is made void at the target, which waits for every number (window_target.c).
 * Invariant: an operation has messages under way, or is in peer.queued or peer.waiters; numbers under way span at most 64.
 * SPDX-License-Identifier: MIT */
#include <stdlib.h>
#include <string.h>

#include "core/clock.h"
#include "window/window_state.h"

static struct window_peer *peer_of(const struct window_op *op)
{
    return &op->window->peer[op->what.rank];
}

struct window_op *origin_new(struct window *w, const struct window_call *call)
{
    struct window_op *op = calloc(1, sizeof *op);
    if (op == NULL) {
        return NULL;
    }
    list_init(&op->in);
    op->window = w;
    op->what = *call;
    for (uint32_t i = 0; i < 2; i++) {
        op->message[i] = (struct window_message){.role = WINDOW_ASKS, .window = w, .owner = op};
    }
    return op;
}

/* ---- Ends -------------------------------------------------------------------------------------------------------- */

static void settle(struct window_op *op, const struct session_outcome *o)
{
    struct comm_op *call = op->call;
    if (call == NULL) {
        return;
    }
    if (o->result == RESULT_OK && window_numbers(op->what.kind) && op->what.target != NULL) {
        memcpy(op->what.target, &op->answer, op->what.bytes); /* little-endian, as all that travels */
    }
    op->call = NULL;
    comm_op_settle(op->window->windows->comm, call, o);
}

static void forget(struct window_op *op)
{
    struct window *w = op->window;
    struct window_peer *p = peer_of(op);
    list_remove(&op->in);
    p->base = list_empty(&p->ops) ? p->next : LIST_ENTRY(p->ops.next, struct window_op, in)->seq;
    w->calls--;
    free(op);
    pthread_cond_broadcast(&w->windows->changed);
}

static void end_at_once(struct window_op *op, enum session_result result, uint8_t cause)
{
    struct session_outcome o = {.result = result, .cause = cause, .world = op->window->world, .since = clock_now_ns()};
    o.culprit = result == RESULT_LOST && cause != CAUSE_CANCEL ? peer_of(op)->id : 0;
    settle(op, &o);
    forget(op);
}

static void end_over(struct window_op *op)
{
    settle(op, &op->window->over);
    forget(op);
}

/* ---- Messages ---------------------------------------------------------------------------------------------------- */

static void transmit(struct window_op *op)
{
    struct window *w = op->window;
    struct window_peer *p = peer_of(op);
    const struct window_call *k = &op->what;
    struct window_message *messages[2] = {&op->message[0], &op->message[1]};
    struct comm_launch launches[2];
    bool number = window_numbers(k->kind), more = k->kind == WINDOW_PUT || window_answers(k->kind);
    uint64_t offset = more ? k->offset : 0, bytes = more ? k->bytes : 0;
    uint32_t n = 0;
    const struct window_request m = {.kind = k->kind, .width = number ? (uint8_t)k->bytes : 0, .seq = op->seq, .over = p->base,
                                     .offset = offset, .bytes = bytes, .operand = number ? k->operand : 0, .expected = k->kind == WINDOW_SWAP ? k->expected : 0};
    struct writer out;
    writer_init(&out, op->request, sizeof op->request);
    put_window_request(&out, &m);
    if (k->kind == WINDOW_PUT) {
        launches[n++] = window_launch(w, WINDOW_PUTS, p->id, false, (void *)(uintptr_t)k->source, k->bytes);
    } else if (more) {
        launches[n++] = window_launch(w, WINDOW_ANSWERS, p->id, true, number ? (void *)&op->answer : k->target, k->bytes);
    }
    launches[n] = window_launch(w, WINDOW_REQUESTS, p->id, false, op->request, sizeof op->request);
    launches[n].within = more ? SESSION_LAST_VIEW : 0;
    launches[n].patient = true; /* the target has its end of the other message for each request that it hears, and for no other */
    n++;
    op->failed = op->ended = false;
    op->under_way = (uint8_t)n;
    if (!window_send(w, messages, launches, n)) {
        op->under_way = 0;
        window_broken(w); /* what is open ends with that */
        end_at_once(op, RESULT_NO_MEMORY, CAUSE_NO_MEMORY);
        w->windows->open--;
    }
}

static bool has_room(const struct window_peer *p)
{
    return p->window->windows->open < WINDOW_OPEN && p->next - p->base < WINDOW_OPEN && list_empty(&p->queued);
}

static void go(struct window_op *op)
{
    struct window_peer *p = peer_of(op);
    op->seq = p->next++;
    list_append(&p->ops, &op->in);
    op->window->windows->open++;
    transmit(op);
}

/* ---- Start ------------------------------------------------------------------------------------------------------- */

static void start_here(struct window_op *op)
{
    struct window_peer *p = peer_of(op);
    if (op->what.kind == WINDOW_SIGNAL) {
        p->signals++;
    } else {
        window_memory_do(p->reach, op);
    }
    end_at_once(op, RESULT_OK, CAUSE_NONE);
    origin_signals(p);
}

void origin_start(struct window_op *op)
{
    struct window *w = op->window;
    struct window_peer *p = peer_of(op);
    bool own = op->what.rank == w->rank, waits = op->what.kind == WINDOW_VOID;
    bool reached = p->reach != NULL && (op->what.kind == WINDOW_PUT || window_answers(op->what.kind));
    w->calls++;
    if (w->over.result != RESULT_PENDING) {
        end_over(op);
    } else if (waits) {
        list_append(&p->waiters, &op->in);
        origin_signals(p);
        if ((window_look(w), p->missing) && !list_empty(&p->waiters)) {
            origin_lost(p);
        } else {
            origin_late(w, INT64_MIN, &w->windows->look_at);
            queue_wake(w->windows->queue); /* which may have to look earlier than it meant to */
        }
    } else if (!own && (window_look(w), p->missing)) {
        end_at_once(op, RESULT_LOST, CAUSE_PEER_LOST);
    } else if (own || reached) {
        start_here(op);
    } else if (has_room(p)) {
        go(op);
    } else {
        list_append(&p->queued, &op->in);
    }
}

static void start_queued(struct windows *ws)
{
    LIST_FOR_EACH(l, after, &ws->all) {
        struct window *w = LIST_ENTRY(l, struct window, all);
        for (uint32_t r = 0; r < w->world && ws->open < WINDOW_OPEN; r++) {
            struct window_peer *p = &w->peer[r];
            while (!list_empty(&p->queued) && ws->open < WINDOW_OPEN && p->next - p->base < WINDOW_OPEN) {
                go(LIST_ENTRY(list_pop(&p->queued), struct window_op, in));
            }
        }
    }
}

/* ---- A message has ended ----------------------------------------------------------------------------------------- */

/* All its messages have ended, and some have failed. */
static void failed(struct window_op *op)
{
    struct window *w = op->window;
    struct window_peer *p = peer_of(op);
    struct windows *ws = w->windows;
    if (w->over.result != RESULT_PENDING) {
        ws->open--;
        end_over(op);
    } else if (window_look(w), p->missing) {
        ws->open--;
        end_at_once(op, RESULT_LOST, CAUSE_PEER_LOST);
    } else if (op->what.kind == WINDOW_VOID && op->ended) { /* the next request says it, too */
        ws->open--;
        forget(op);
    } else if (!op->ended && !op->given_up) {
        transmit(op); /* the view has ended, and that was all */
    } else {
        if (op->given_up && !op->ended) {
            op->outcome = (struct session_outcome){.result = RESULT_LOST, .cause = CAUSE_CANCEL};
        }
        settle(op, &op->outcome);
        p->closed = p->closed || op->what.kind == WINDOW_CLOSE; /* what does not get there does not come from there */
        op->what.kind = WINDOW_VOID;
        op->given_up = false;
        transmit(op);
    }
}

void origin_ended(struct window_op *op, const struct session_outcome *o)
{
    struct window *w = op->window;
    struct windows *ws = w->windows;
    bool bad = o->result != RESULT_OK;
    if (bad && (!op->failed || (!op->ended && !o->view_ended))) {
        op->outcome = *o;
    }
    op->failed = op->failed || bad;
    op->ended = op->ended || (bad && !o->view_ended);
    if (op->ended && !window_alive(w)) {
        window_over(w, o);
    }
    if (--op->under_way > 0) {
        return;
    }
    if (op->failed) {
        failed(op);
    } else {
        op->outcome = *o;
        op->outcome.world = w->world;
        op->outcome.tx_bytes = op->what.kind == WINDOW_PUT ? op->what.bytes : 0;
        op->outcome.rx_bytes = op->what.kind == WINDOW_GET ? op->what.bytes : 0;
        ws->open--;
        settle(op, &op->outcome);
        forget(op);
    }
    start_queued(ws);
}

/* ---- What ends without messages ---------------------------------------------------------------------------------- */

void origin_signals(struct window_peer *p)
{
    while (p->signals > 0 && !list_empty(&p->waiters)) {
        p->signals--;
        end_at_once(LIST_ENTRY(p->waiters.next, struct window_op, in), RESULT_OK, CAUSE_NONE);
    }
}

static void end_list(struct list *list, enum session_result result)
{
    while (!list_empty(list)) {
        struct window_op *op = LIST_ENTRY(list->next, struct window_op, in);
        if (result == RESULT_LOST) {
            end_at_once(op, RESULT_LOST, CAUSE_PEER_LOST);
        } else {
            end_over(op);
        }
    }
}

void origin_lost(struct window_peer *p)
{
    end_list(&p->queued, RESULT_LOST); /* those under way end by themselves */
    end_list(&p->waiters, RESULT_LOST);
}

void origin_over(struct window *w)
{
    for (uint32_t r = 0; r < w->world; r++) {
        end_list(&w->peer[r].queued, RESULT_OK);
        end_list(&w->peer[r].waiters, RESULT_OK);
    }
}

void origin_late(struct window *w, int64_t now, int64_t *next)
{
    for (uint32_t r = 0; r < w->world; r++) {
        LIST_FOR_EACH(l, after, &w->peer[r].waiters) {
            struct window_op *op = LIST_ENTRY(l, struct window_op, in);
            if (op->what.deadline <= now) {
                end_at_once(op, RESULT_LOST, CAUSE_DEADLINE);
            } else if (op->what.deadline < *next) {
                *next = op->what.deadline;
            }
        }
    }
}

static void give_up(struct window_op *op)
{
    struct comm *c = op->window->windows->comm;
    if (op->call == NULL || op->given_up || !comm_op_given_up(c, op->call)) {
        return;
    }
    op->given_up = true;
    if (op->under_way == 0) {
        end_at_once(op, RESULT_LOST, CAUSE_CANCEL);
        return;
    }
    bool more = op->what.kind == WINDOW_PUT || window_answers(op->what.kind);
    if (more && op->message[0].op != NULL) { /* the request is short, and tells the target what else it has to wait for */
        comm_cancel(c, op->message[0].op, CAUSE_CANCEL);
    }
}

void origin_give_up(struct window *w)
{
    for (uint32_t r = 0; r < w->world; r++) {
        struct window_peer *p = &w->peer[r];
        struct list *const lists[] = {&p->ops, &p->queued, &p->waiters};
        for (uint32_t i = 0; i < 3; i++) {
            LIST_FOR_EACH(l, after, lists[i]) {
                give_up(LIST_ENTRY(l, struct window_op, in));
            }
        }
    }
}
