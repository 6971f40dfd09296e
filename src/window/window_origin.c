/* window_origin.c - what this peer does with the windows of others.
 *
 * An operation is a request and, for most, one message more, launched right behind each other and bound to one view.  If that view ends
 * first and the target is still there, both are sent again, with the number that they had: the target knows what it has done.  They wait
 * for whatever else that view has cut off, and nothing new begins before: in each view, numbers go out in their order.
 * What ends in an error is made void at the target, which waits for every number (window_target.c).
 * Invariant: an operation has messages under way, or is in peer.queued or peer.waiters, or is cut while another one of its target has
 * some; all that are under way to one target are bound to one view; numbers under way span at most 64.
 * SPDX-License-Identifier: MIT */
#include <stdio.h>
#include <string.h>

#include "core/clock.h"
#include "core/mutant.h"
#include "window/window_state.h"

static struct window_peer *peer_of(const struct window_op *op)
{
    return &op->window->peer[op->what.rank];
}

/* ---- Ends -------------------------------------------------------------------------------------------------------- */

static void settle(struct window_op *op, const struct session_outcome *o)
{
    if (op->settled) {
        return;
    }
    if (o->result == RESULT_OK && window_numbers(op->what.kind) && op->what.target != NULL) {
        memcpy(op->what.target, &op->answer, op->what.bytes); /* little-endian, as all that travels */
    }
    op->settled = true;
    if (o != &op->outcome) {
        op->outcome = *o;
    }
    list_append(&op->window->set->todo.settled, &op->told);
}

static void forget(struct window_op *op)
{
    struct window *w = op->window;
    struct window_peer *p = peer_of(op);
    list_remove(&op->in);
    if (op->numbered) {
        room_give(&w->set->asks, p->id);
    }
    w->waits -= op->what.kind == WINDOW_VOID && !op->numbered;
    p->cut -= op->cut;
    p->base = list_empty(&p->ops) ? p->next : LIST_ENTRY(p->ops.next, struct window_op, in)->seq;
    w->calls--;
    list_append(&w->set->todo.gone, &op->in);
}

static void end_with(struct window_op *op, const struct session_outcome *o)
{
    settle(op, o);
    forget(op);
}

static struct session_outcome outcome_of(const struct window_op *op, enum session_result result, uint8_t cause)
{
    struct session_outcome o = {.result = result, .cause = cause, .world = op->window->world, .since = op->window->set->now};
    if (result == RESULT_LOST && (cause == CAUSE_PEER_LOST || cause == CAUSE_PEER_SILENT)) {
        o.culprit = peer_of(op)->id;
        o.named = (struct member_name){.id = o.culprit, .ranked = op->what.rank + 1};
    }
    return o;
}

static void end_at_once(struct window_op *op, enum session_result result, uint8_t cause)
{
    struct session_outcome o = outcome_of(op, result, cause);
    end_with(op, &o);
}

static void end_over(struct window_op *op)
{
    end_with(op, &op->window->over);
}

/* It is on the program: one of the two has destroyed its window. */
static struct session_outcome closed_outcome(const struct window_op *op)
{
    const struct window *w = op->window;
    struct session_outcome o = {.result = RESULT_USAGE, .world = w->world, .since = w->set->now};
    if (op->what.rank == w->rank || w->closing) {
        snprintf(o.text, sizeof o.text, "this window is being destroyed");
    } else {
        snprintf(o.text, sizeof o.text, "rank %u has destroyed its window%s", op->what.rank,
                 op->what.kind == WINDOW_VOID ? " and signals no more" : "");
    }
    return o;
}

static void end_closed(struct window_op *op)
{
    struct session_outcome o = closed_outcome(op);
    end_with(op, &o);
}

/* ---- Messages ---------------------------------------------------------------------------------------------------- */

static void transmit(struct window_op *op)
{
    struct window *w = op->window;
    struct window_peer *p = peer_of(op);
    const struct window_call *k = &op->what;
    struct window_launch launches[2];
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
    launches[0].deadline = k->limit;
    launches[n].deadline = CLOCK_NEVER; /* the target has its end of the other message for each request that it hears, and for no other */
    n++;
    launches[n - 1].within = MUTANT(WINDOW_UNBOUND) ? 0 : SESSION_LAST_VIEW; /* a request goes out behind the other message only */
    launches[0].within = n == 1 && MUTANT(WINDOW_UNBOUND) ? 0 : p->view;
    op->failed = op->ended = false;
    p->cut -= op->cut;
    op->cut = false;
    for (uint32_t i = 0; i < n; i++) {
        window_say(&op->message[i], &launches[i], i > 0);
    }
    op->under_way = (uint8_t)n;
    p->sent++;
}

/* Whether it may go out with a new number.  In the view that is installed: behind what that has cut off.  The last word: behind all else, which
 * may have to be made void before the target is gone. */
static bool may_go(struct window_peer *p, const struct window_op *op)
{
    const struct window *w = p->window;
    bool same = p->sent == 0 || p->view == w->seen || MUTANT(WINDOW_HASTY);
    if (op->what.kind == WINDOW_CLOSE && !list_empty(&p->ops) && !MUTANT(WINDOW_LAST_EARLY)) {
        return false;
    }
    return room_for(&w->set->asks, p->id, w->set->others) && p->next - p->base < WINDOW_OPEN && (p->cut == 0 || MUTANT(WINDOW_HASTY)) && same;
}

static void go(struct window_op *op)
{
    struct window_peer *p = peer_of(op);
    p->view = p->sent == 0 || MUTANT(WINDOW_HASTY) ? op->window->seen : p->view;
    op->seq = p->next++;
    op->numbered = true;
    room_take(&op->window->set->asks, p->id);
    list_append(&p->ops, &op->in);
    transmit(op);
}

static void enqueue(struct window_op *op)
{
    struct window_peer *p = peer_of(op);
    list_append(&p->queued, &op->in);
    if (list_empty(&p->asks)) {
        list_append(&op->window->set->asking, &p->asks);
    }
}

/* Whoever begins something has its next turn behind the others. */
static void start_queued(struct window_set *s)
{
    LIST_FOR_EACH(l, after, &s->asking) {
        struct window_peer *p = LIST_ENTRY(l, struct window_peer, asks);
        bool any = false;
        while (!list_empty(&p->queued) && may_go(p, LIST_ENTRY(p->queued.next, struct window_op, in))) {
            go(LIST_ENTRY(list_pop(&p->queued), struct window_op, in));
            any = true;
        }
        if (any || list_empty(&p->queued)) {
            list_remove(&p->asks);
        }
        if (any && !list_empty(&p->queued)) {
            list_append(&s->asking, &p->asks);
        }
    }
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

static void start_wait(struct window_op *op)
{
    struct window *w = op->window;
    struct window_peer *p = peer_of(op);
    list_append(&p->waiters, &op->in);
    if (!w->alive) {
        window_over(w, &(struct session_outcome){.result = RESULT_GONE});
        end_over(op);
        return;
    }
    origin_signals(p);
    if (p->lost) {
        origin_lost(p);
    }
    if (!op->settled && op->what.deadline < w->set->look_at) {
        w->set->look_at = op->what.deadline;
        w->set->todo.wakes = true;
    }
}

void origin_start(struct window_op *op)
{
    struct window *w = op->window;
    struct window_peer *p = peer_of(op);
    bool own = op->what.rank == w->rank;
    bool reached = p->reach != NULL && (op->what.kind == WINDOW_PUT || window_answers(op->what.kind));
    w->calls++;
    w->waits += op->what.kind == WINDOW_VOID;
    if (w->over.result != RESULT_PENDING) {
        end_over(op);
    } else if (w->closing && op->what.kind != WINDOW_CLOSE) {
        end_closed(op);
    } else if (op->what.kind == WINDOW_VOID) {
        start_wait(op);
    } else if (!own && p->missing) {
        end_at_once(op, RESULT_LOST, CAUSE_PEER_LOST);
    } else if (own || reached) {
        start_here(op);
    } else if (list_empty(&p->queued) && may_go(p, op)) {
        go(op);
    } else {
        enqueue(op);
    }
}

/* ---- A message has ended ----------------------------------------------------------------------------------------- */

/* Its target has left the window: it allows nothing any more of what it has said that it does. */
static bool refused_by_closed(const struct window_op *op)
{
    const struct window_peer *p = peer_of(op);
    const struct window_call *k = &op->what;
    bool refused = op->outcome.cause == CAUSE_ARGUMENT || (op->outcome.cause == CAUSE_CANCEL && op->outcome.culprit == p->id);
    return p->closed && refused && window_allows(p->bytes, p->rights, k->kind, k->offset, k->bytes);
}

/* The program learns now that it is given up, or has failed; the target next. */
static void make_void(struct window_op *op)
{
    struct window_peer *p = peer_of(op);
    if (op->silenced) {
        op->outcome = outcome_of(op, RESULT_LOST, CAUSE_PEER_SILENT);
    } else if (!op->ended) {
        op->outcome = (struct session_outcome){.result = RESULT_LOST, .cause = CAUSE_CANCEL, .world = op->window->world};
    } else if (refused_by_closed(op)) {
        op->outcome = closed_outcome(op);
    }
    settle(op, &op->outcome);
    if (op->what.kind == WINDOW_CLOSE) { /* what does not get there does not come from there */
        p->closed = true;
        origin_signals(p);
    }
    op->what.kind = WINDOW_VOID;
    op->given_up = false;
}

static void cut(struct window_op *op)
{
    peer_of(op)->cut += !op->cut;
    op->cut = op->repeated = true;
}

/* All its messages have ended, and some have failed. */
static void failed(struct window_op *op)
{
    struct window *w = op->window;
    bool ended = op->ended;
    if (w->over.result != RESULT_PENDING) {
        end_over(op);
    } else if (peer_of(op)->missing) {
        end_at_once(op, RESULT_LOST, CAUSE_PEER_LOST);
    } else if (!ended && MUTANT(WINDOW_CUT_LOST)) {
        end_at_once(op, RESULT_LOST, CAUSE_PEER_LOST);
    } else if (op->what.kind == WINDOW_VOID && ended) { /* the next request says it, too */
        forget(op);
    } else {
        if (ended || op->given_up) {
            make_void(op);
        }
        if (ended && MUTANT(WINDOW_NOVOID)) {
            forget(op);
        } else if (ended) { /* behind its request, in the same view; what comes behind it may wait for that */
            transmit(op);
        } else {
            cut(op);
        }
    }
}

/* The view has ended, and so has the last message that was bound to it. */
static void send_again(struct window_peer *p)
{
    struct window *w = p->window;
    if (p->cut == 0 || (p->sent > 0 && !MUTANT(WINDOW_HASTY))) {
        return;
    }
    p->view = w->seen;
    LIST_FOR_EACH(l, after, &p->ops) {
        struct window_op *op = LIST_ENTRY(l, struct window_op, in);
        if (!op->cut || MUTANT(WINDOW_DROPPED)) {
            continue;
        }
        if (w->over.result != RESULT_PENDING) {
            end_over(op);
        } else if (p->missing) {
            end_at_once(op, RESULT_LOST, CAUSE_PEER_LOST);
        } else {
            transmit(op);
        }
    }
}

/* Its bytes had come, by a request of an earlier view: the target does not take them again. */
static bool has_been_put(const struct window_op *op, const struct session_outcome *o)
{
    return op->what.kind == WINDOW_PUT && op->repeated && o->result == RESULT_ARGUMENT;
}

static void succeeded(struct window_op *op, const struct session_outcome *o)
{
    op->outcome = *o;
    op->outcome.result = RESULT_OK;
    op->outcome.cause = CAUSE_NONE;
    op->outcome.world = op->window->world;
    op->outcome.tx_bytes = op->what.kind == WINDOW_PUT ? op->what.bytes : 0;
    op->outcome.rx_bytes = op->what.kind == WINDOW_GET ? op->what.bytes : 0;
    end_with(op, &op->outcome);
}

void origin_ended(struct window_op *op, const struct session_outcome *o)
{
    struct window *w = op->window;
    struct window_peer *p = peer_of(op);
    bool bad = o->result != RESULT_OK && !has_been_put(op, o);
    if (bad && (!op->failed || (!op->ended && !o->view_ended))) {
        op->outcome = *o;
    }
    op->failed = op->failed || bad;
    op->ended = op->ended || (bad && !o->view_ended);
    if (op->ended && !w->alive) {
        window_over_by(w, o);
    }
    if (--op->under_way > 0) {
        return;
    }
    p->sent--;
    if (op->failed) {
        failed(op);
    } else {
        succeeded(op, o);
    }
    send_again(p);
    start_queued(w->set);
}

void origin_unsent(struct window_op *op)
{
    struct window *w = op->window;
    struct window_peer *p = peer_of(op);
    for (uint32_t i = 0; i < op->under_way; i++) {
        op->message[i].under_way = false;
    }
    w->under_way -= op->under_way;
    p->sent--;
    window_broken(w); /* what is open ends with that */
    end_at_once(op, RESULT_NO_MEMORY, CAUSE_NO_MEMORY);
    send_again(p);
    start_queued(w->set);
}

/* ---- What ends without messages ---------------------------------------------------------------------------------- */

void origin_signals(struct window_peer *p)
{
    while (p->signals > 0 && !list_empty(&p->waiters)) {
        p->signals--;
        end_at_once(LIST_ENTRY(p->waiters.next, struct window_op, in), RESULT_OK, CAUSE_NONE);
    }
    while (p->closed && !list_empty(&p->waiters)) {
        end_closed(LIST_ENTRY(p->waiters.next, struct window_op, in));
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

/* Wanted no more.  The request is short, and tells the target what else it has to wait for: only what goes with it is cancelled. */
static void stop(struct window_op *op)
{
    bool more = op->what.kind == WINDOW_PUT || window_answers(op->what.kind);
    if (more && !op->given_up) {
        window_stop(&op->message[0]);
    }
    op->given_up = true;
}

/* The program learns that the other one is silent; the other one learns nothing before it is heard again. */
static void abandon(struct window_op *op)
{
    struct session_outcome o = outcome_of(op, RESULT_LOST, CAUSE_PEER_SILENT);
    if (op->settled || op->what.kind == WINDOW_CLOSE) {
        return;
    }
    if (!op->numbered) {
        end_with(op, &o);
        return;
    }
    op->silenced = true;
    if (op->cut) { /* no message of it is under way */
        make_void(op);
        return;
    }
    stop(op);
    if (!op->message[0].lent && !op->message[1].lent) {
        settle(op, &o);
    }
}

void origin_abandon(struct window_peer *p)
{
    struct list *const lists[] = {&p->ops, &p->queued, &p->waiters};
    for (uint32_t i = 0; i < 3; i++) {
        LIST_FOR_EACH(l, after, lists[i]) {
            abandon(LIST_ENTRY(l, struct window_op, in));
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
    if (op->settled || op->given_up || !op->unwanted) {
        return;
    }
    if (!op->numbered) {
        end_at_once(op, RESULT_LOST, CAUSE_CANCEL);
        return;
    }
    if (op->cut) {
        make_void(op);
        return;
    }
    stop(op);
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
