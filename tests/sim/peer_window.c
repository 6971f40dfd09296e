/* peer_window.c - the shell of a process's windows: messages are launched in slots of their own, and told when they have ended.
 *
 * One idea: as in the library, ends wait in a queue until the service comes, which passes all on that are there, then looks who is lost.
 * Here it comes after a drawn time, so that other things happen first.
 * Invariant: every message that was said ends once, in the order in which messages have returned.
 * SPDX-License-Identifier: MIT */
#include <stdlib.h>
#include <string.h>

#include "peer_room.h"
#include "sim_window.h"

enum { SERVICE_NS = 5000 };

/* As the library keeps them: for its own messages, two each, those of the others, and the receive of requests. */
uint32_t peer_window_slots(const struct cluster *cl)
{
    return window_used(cl) ? WINDOW_SLOTS : 0;
}

void peer_window_new(struct cluster *cl, struct node *n)
{
    if (!window_used(cl) || n->config.claim.size > 0) {
        return;
    }
    struct peer_windows *pw = calloc(1, sizeof *pw);
    if (pw == NULL) {
        abort();
    }
    window_set_init(&pw->set);
    pw->first_slot = n->config.max_ops - WINDOW_SLOTS;
    pw->pass_at = CLOCK_NEVER;
    n->windows = pw;
}

static void task_list_free(struct list *list)
{
    while (!list_empty(list)) {
        free(LIST_ENTRY(list_pop(list), struct window_task, in));
    }
}

static void op_list_free(struct list *list)
{
    while (!list_empty(list)) {
        free(LIST_ENTRY(list_pop(list), struct window_op, in));
    }
}

static void todo_free(struct window_todo *todo)
{
    while (!list_empty(&todo->done)) {
        free(LIST_ENTRY(list_pop(&todo->done), struct window_task, in));
    }
    op_list_free(&todo->gone);
}

void peer_window_free(struct node *n)
{
    struct peer_windows *pw = n->windows;
    if (pw == NULL) {
        return;
    }
    while (!list_empty(&pw->set.all)) { /* of who was killed in the middle */
        struct window *w = LIST_ENTRY(pw->set.all.next, struct window, all);
        for (uint32_t r = 0; r < w->world; r++) {
            struct window_peer *p = &w->peer[r];
            op_list_free(&p->ops);
            op_list_free(&p->queued);
            op_list_free(&p->waiters);
            task_list_free(&p->answers);
            task_list_free(&p->due);
        }
        task_list_free(&w->tasks);
        peer_window_bury(w);
    }
    todo_free(&pw->set.todo);
    free(pw->set.spare);
    free(pw->set.spare_answers);
    free(pw->ended);
    free(pw);
    n->windows = NULL;
}

/* ---- The service comes -------------------------------------------------------------------------------------------- */

void peer_window_wake(struct cluster *cl, struct node *n, bool woken)
{
    struct peer_windows *pw = n->windows;
    if (pw == NULL) {
        return;
    }
    pw->woken = pw->woken || woken;
    int64_t delay = SERVICE_NS;
    if (rng_below(&cl->rng, 4) == 0) {
        delay += (int64_t)rng_below(&cl->rng, 3 * (uint64_t)cl->opt.latency_ns + 1);
    }
    if (cl->now + delay < pw->pass_at) {
        pw->pass_at = cl->now + delay;
        cluster_post(cl, delay, EVENT_WINDOW, n->index, WINDOW_TURN_SERVICE, 0, 0);
    }
}

static void ended_add(struct cluster *cl, struct node *n, const struct window_ended *e)
{
    struct peer_windows *pw = n->windows;
    pw->ended = cluster_grow(pw->ended, &pw->ended_capacity, pw->ended_count + 1, sizeof *pw->ended);
    pw->ended[pw->ended_count++] = *e;
    peer_window_wake(cl, n, false);
}

void peer_window_returned(struct cluster *cl, struct node *n, uint32_t slot)
{
    ended_add(cl, n, &(struct window_ended){.message = n->program->call[slot].window, .slot = slot});
}

/* ---- Messages ------------------------------------------------------------------------------------------------------ */

static void message_launch(struct cluster *cl, struct node *n, struct window_message *m)
{
    struct peer_windows *pw = n->windows;
    const struct window_launch *l = &m->launch;
    uint32_t slot = pw->first_slot;
    while (slot < n->config.max_ops && n->run[slot].taken) {
        slot++;
    }
    if (slot == n->config.max_ops) {
        cluster_fail(cl, "peer %u: its windows want more messages than there are slots kept for them", n->index);
        return;
    }
    struct run *r = &n->run[slot];
    struct call *c = &n->program->call[slot];
    c->op = PROGRAM_WINDOW;
    c->window = m;
    c->failed = c->in_place = false;
    r->use++;
    r->taken = true;
    r->started = r->done = r->idle = r->stopping = r->returned = r->lazy = false;
    r->failing = 0;
    r->call = c;
    struct session_launch launch = {.call = {.space = SPACE_WINDOW, .tag = l->tag,
                                             .params = {.kind = PLAN_SEND, .dtype = DTYPE_U8, .count = l->bytes}, .known = l->known,
                                             .count = l->bytes, .bad_argument = l->bad_argument,
                                             .in = l->receives ? NULL : l->buffer, .out = l->receives ? l->buffer : NULL,
                                             .receives = l->receives, .partner = l->partner, .within = l->within,
                                             .deadline = l->deadline}};
    r->senders = session_folding_senders(n->session, &launch.call.params, 0);
    launch.window = r->window_reserved = lanes_reserve(n, r->senders, 1 + (uint32_t)rng_below(&cl->rng, 3));
    m->handle = r;
    struct session_event e = {.kind = SESSION_LAUNCH, .slot = slot, .launch = &launch};
    cl->stats.window_messages++;
    node_step(cl, n, &e);
    cluster_trace(cl, n->index, l->receives ? "window receives" : "window sends", l->tag % WINDOW_TAGS, (uint64_t)e.outcome.result);
    if (e.outcome.result == RESULT_PENDING) {
        return;
    }
    lanes_unreserve(n, r->senders * r->window_reserved);
    r->window_reserved = 0;
    r->taken = false;
    ended_add(cl, n, &(struct window_ended){.message = m, .slot = SESSION_NO_SLOT, .outcome = e.outcome});
}

/* Takes its outcome; its slot is free. */
static void message_collect(struct cluster *cl, struct node *n, struct window_ended *e)
{
    struct run *r = &n->run[e->slot];
    struct session_event collect = {.kind = SESSION_COLLECT, .slot = e->slot};
    node_step(cl, n, &collect);
    if (r->window_reserved != 0) { /* never started */
        lanes_unreserve(n, r->senders * r->window_reserved);
        r->window_reserved = 0;
    }
    r->taken = false;
    n->program->call[e->slot].window = NULL;
    e->outcome = collect.outcome;
}

/* ---- Steps --------------------------------------------------------------------------------------------------------- */

static void see(struct node *n)
{
    struct session_info info;
    session_info(n->session, &info);
    LIST_FOR_EACH(l, after, &n->windows->set.all) {
        struct window *w = LIST_ENTRY(l, struct window, all);
        bool other = window_seen(w, info.connected, info.id, info.view);
        for (uint32_t r = 0; other && r < w->world; r++) {
            w->peer[r].missing = !session_present(n->session, w->peer[r].id);
        }
    }
}

static void supply(struct window_set *s)
{
    s->spare = s->spare != NULL ? s->spare : calloc(1, sizeof *s->spare);
    s->spare_answers = s->spare_answers != NULL ? s->spare_answers : calloc(WINDOW_OPEN, sizeof *s->spare_answers);
}

static void machine(struct cluster *cl, struct node *n, const struct window_event *e)
{
    struct window_set *s = &n->windows->set;
    see(n);
    supply(s);
    window_step(s, cl->now, e);
}

/* The first that was said, with the one right behind it: if there is memory. */
static void say_first(struct cluster *cl, struct node *n)
{
    struct peer_windows *pw = n->windows;
    struct list *says = &pw->set.todo.says;
    struct window_message *m = LIST_ENTRY(list_pop(says), struct window_message, says);
    struct window_message *second = NULL;
    if (!list_empty(says) && LIST_ENTRY(says->next, struct window_message, says)->behind) {
        second = LIST_ENTRY(list_pop(says), struct window_message, says);
    }
    if (pw->refuse) {
        pw->refuse = false;
        cluster_trace(cl, n->index, "no memory for a message of a window", 0, 0);
        machine(cl, n, &(struct window_event){.kind = WINDOW_EVENT_UNSENT, .message = m});
        return;
    }
    message_launch(cl, n, m);
    if (second != NULL) {
        message_launch(cl, n, second);
    }
}

static void act(struct cluster *cl, struct node *n)
{
    struct window_todo *todo = &n->windows->set.todo;
    enum window_act first;
    while ((first = window_first(todo)) != WINDOW_ACT_OTHERS) {
        if (first == WINDOW_ACT_SETTLE) {
            window_settled(cl, n, LIST_ENTRY(list_pop(&todo->settled), struct window_op, told));
        } else if (first == WINDOW_ACT_LEAVE) {
            todo->leaves = false;
            cl->touched[n->group / CLUSTER_LABELS] = true; /* it has no memory for its windows: others lose calls that they have with it */
            node_step(cl, n, &(struct session_event){.kind = SESSION_LEAVE});
        } else {
            say_first(cl, n);
        }
    }
    while (!list_empty(&todo->stops)) {
        struct window_message *m = LIST_ENTRY(list_pop(&todo->stops), struct window_message, stops);
        const struct run *r = m->handle;
        if (r != NULL && r->taken && !r->returned && r->call->window == m) { /* else its end waits for the service */
            node_step(cl, n, &(struct session_event){.kind = SESSION_CANCEL, .slot = (uint32_t)(r - n->run), .number = CAUSE_CANCEL});
        }
    }
    todo_free(todo);
    if (todo->wakes) {
        peer_window_wake(cl, n, true);
    }
    todo->wakes = false;
}

void peer_window_step(struct cluster *cl, struct node *n, const struct window_event *e)
{
    machine(cl, n, e);
    bool told = !list_empty(&n->windows->set.todo.settled);
    act(cl, n);
    if (told && n->windows->record != NULL) {
        oracle_window_stepped(cl, n->windows->record, n->windows->rank);
    }
}

void peer_window_bury(struct window *w)
{
    window_out(w);
    for (uint32_t r = 0; r < w->world; r++) {
        free(w->peer[r].answered);
    }
    free(w);
}

void peer_window_silence(struct cluster *cl, struct node *n)
{
    struct window *w = n->windows->window;
    for (uint32_t r = 0; r < w->world; r++) {
        w->peer[r].silent = r != w->rank && session_silent_at(n->session, w->peer[r].id) <= cl->now;
        n->windows->record->seat[w->rank].silent[r] |= w->peer[r].silent;
    }
}

static bool lent(void *shell, const struct window_message *m)
{
    const struct node *n = shell;
    const struct run *r = m->handle;
    return r != NULL && r->taken && r->call->window == m && session_lent(n->session, (uint32_t)(r - n->run));
}

bool peer_window_lends(struct node *n)
{
    return window_lend(n->windows->window, lent, n);
}

void peer_windows_quiet(struct cluster *cl, struct node *n)
{
    LIST_FOR_EACH(l, after, &n->windows->set.all) {
        peer_window_step(cl, n, &(struct window_event){.kind = WINDOW_EVENT_QUIET, .window = LIST_ENTRY(l, struct window, all)});
    }
}

/* Windows that their program has left. */
static void bury(struct cluster *cl, struct node *n)
{
    LIST_FOR_EACH(l, after, &n->windows->set.all) {
        struct window *w = LIST_ENTRY(l, struct window, all);
        if (w->kept && !w->quiet && window_done(w)) {
            peer_window_step(cl, n, &(struct window_event){.kind = WINDOW_EVENT_QUIET, .window = w});
        }
        if (w->kept && w->quiet && w->under_way == 0 && w->calls == 0) {
            peer_window_bury(w);
        }
    }
}

bool peer_window_quiet(const struct node *n)
{
    const struct window *w = n->windows->window;
    return w->under_way == 0 && w->calls == 0;
}

static void pass(struct cluster *cl, struct node *n)
{
    struct peer_windows *pw = n->windows;
    if (cl->now < pw->pass_at) {
        return; /* there was one meanwhile */
    }
    pw->pass_at = CLOCK_NEVER;
    bool woken = pw->woken;
    pw->woken = false;
    uint32_t count = pw->ended_count;
    for (uint32_t i = 0; i < count && !cl->failed; i++) {
        struct window_ended e = pw->ended[i];
        if (e.slot != SESSION_NO_SLOT) {
            message_collect(cl, n, &e);
        }
        e.message->handle = NULL;
        peer_window_step(cl, n, &(struct window_event){.kind = WINDOW_EVENT_ENDED, .message = e.message, .outcome = &e.outcome});
    }
    pw->ended_count -= count;
    if (pw->ended_count > 0) {
        memmove(pw->ended, pw->ended + count, pw->ended_count * sizeof *pw->ended);
    }
    if (woken || cl->now >= pw->set.look_at) {
        peer_window_step(cl, n, &(struct window_event){.kind = WINDOW_EVENT_WOKEN});
    }
    peer_window_step(cl, n, &(struct window_event){.kind = WINDOW_EVENT_FOLLOW});
    peer_window_step(cl, n, &(struct window_event){.kind = WINDOW_EVENT_MARK});
    bury(cl, n);
    int64_t until = window_deadline(&pw->set);
    if (pw->ended_count > 0 || until <= cl->now || pw->woken) {
        peer_window_wake(cl, n, false);
    } else if (until < pw->pass_at) {
        pw->pass_at = until;
        cluster_post(cl, until - cl->now, EVENT_WINDOW, n->index, WINDOW_TURN_SERVICE, 0, 0);
    }
    if (pw->phase >= WINDOW_CLOSES) { /* its program waits for that */
        cluster_post(cl, 0, EVENT_PROGRAM, n->index, 0, 0, 0);
    }
}

void window_event(struct cluster *cl, struct node *n, const struct event *e)
{
    if (e->a == WINDOW_TURN_SERVICE) {
        pass(cl, n);
    } else if (e->b == n->windows->serial) { /* else of an earlier window */
        window_program(cl, n);
    }
}
