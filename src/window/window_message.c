/* window_message.c - what steps of windows want done, by their communicator: messages, operations that have ended.
 * SPDX-License-Identifier: MIT */
#include <stdlib.h>

#include "core/clock.h"
#include "window/window_service.h"
#include "engine/calls/await.h"
#include "engine/calls/op_end.h"
#include "engine/calls/op_own.h"
#include "engine/comm_calls.h"

/* ---- Before a step ------------------------------------------------------------------------------------------------- */

static void see_window(struct comm *c, struct window *w, const struct session_info *info)
{
    if (!window_seen(w, info->connected, info->id, info->view)) {
        return;
    }
    for (uint32_t r = 0; r < w->world; r++) {
        w->peer[r].missing = !session_present(c->machine.session, w->peer[r].id);
    }
}

void windows_see(struct windows *ws)
{
    struct comm *c = ws->comm;
    struct session_info info = {0};
    bool news = false;
    pthread_mutex_lock(&c->lock);
    if (c->machine.session != NULL) {
        session_info(c->machine.session, &info);
    }
    LIST_FOR_EACH(l, after, &ws->set.all) {
        struct window *w = LIST_ENTRY(l, struct window, all);
        see_window(c, w, &info);
        news = news || w->seen != w->followed;
    }
    pthread_mutex_unlock(&c->lock);
    if (news) { /* the service follows it, whoever has seen it first: a call of the program may be the only one that looks */
        queue_wake(ws->queue);
    }
}

int64_t windows_silence(struct windows *ws, struct window *w)
{
    struct comm *c = ws->comm;
    int64_t now = clock_now_ns(), next = CLOCK_NEVER;
    pthread_mutex_lock(&c->lock);
    for (uint32_t r = 0; r < w->world; r++) {
        struct window_peer *p = &w->peer[r];
        int64_t at = c->machine.session != NULL && r != w->rank ? session_silent_at(c->machine.session, p->id) : CLOCK_NEVER;
        p->silent = at <= now;
        next = at > now && at < next ? at : next;
    }
    pthread_mutex_unlock(&c->lock);
    return next;
}

static bool lent(void *shell, const struct window_message *m)
{
    return m->handle != NULL && op_own_lent(((struct windows *)shell)->comm, m->handle);
}

bool windows_lend(struct windows *ws, struct window *w)
{
    return window_lend(w, lent, ws);
}

/* What a step may need, or not: there is one of each. */
static void supply(struct window_set *s)
{
    s->spare = s->spare != NULL ? s->spare : calloc(1, sizeof *s->spare);
    s->spare_answers = s->spare_answers != NULL ? s->spare_answers : calloc(WINDOW_OPEN, sizeof *s->spare_answers);
}

/* ---- After it ------------------------------------------------------------------------------------------------------ */

static struct comm_launch launch_of(const struct window_launch *l)
{
    return (struct comm_launch){.call = {.space = SPACE_WINDOW, .tag = l->tag,
                                         .params = {.kind = PLAN_SEND, .dtype = DTYPE_U8, .count = l->bytes}, .known = l->known,
                                         .count = l->bytes, .bad_argument = l->bad_argument, .in = l->receives ? NULL : l->buffer,
                                         .out = l->receives ? l->buffer : NULL, .receives = l->receives, .partner = l->partner,
                                         .within = l->within, .deadline = l->deadline, .awaited = true}};
}

/* The first that is to be launched, with the one right behind it. */
static void launch_first(struct windows *ws)
{
    struct list *says = &ws->set.todo.says;
    struct window_message *messages[2];
    struct op_own own[2];
    uint32_t count = 0;
    do {
        struct window_message *m = LIST_ENTRY(list_pop(says), struct window_message, says);
        own[count] = (struct op_own){.launch = launch_of(&m->launch), .cookie = (uint64_t)(uintptr_t)m};
        messages[count++] = m;
    } while (count < 2 && !list_empty(says) && LIST_ENTRY(says->next, struct window_message, says)->behind);
    bool launched = op_own_launch(ws->comm, ws->queue, own, count);
    for (uint32_t i = 0; i < count; i++) {
        messages[i]->handle = launched ? own[i].op : NULL;
    }
    if (!launched) {
        windows_see(ws);
        window_step(&ws->set, clock_now_ns(), &(struct window_event){.kind = WINDOW_EVENT_UNSENT, .message = messages[0]});
    }
}

static void settle(struct windows *ws, struct window_op *op)
{
    struct comm_op *call = op->call;
    op->call = NULL;
    if (call != NULL) { /* else it is the library's own */
        comm_op_settle(ws->comm, call, &op->outcome);
    }
}

static void act(struct windows *ws)
{
    struct window_todo *todo = &ws->set.todo;
    enum window_act first;
    while ((first = window_first(todo)) != WINDOW_ACT_OTHERS) {
        if (first == WINDOW_ACT_SETTLE) {
            settle(ws, LIST_ENTRY(list_pop(&todo->settled), struct window_op, told));
        } else if (first == WINDOW_ACT_LEAVE) {
            todo->leaves = false;
            comm_leave(ws->comm, "no memory for a message of a window, or its executor failed");
        } else {
            launch_first(ws);
        }
    }
    while (!list_empty(&todo->stops)) {
        comm_cancel(ws->comm, LIST_ENTRY(list_pop(&todo->stops), struct window_message, stops)->handle, CAUSE_CANCEL);
    }
    while (!list_empty(&todo->gone)) {
        free(LIST_ENTRY(list_pop(&todo->gone), struct window_op, in));
    }
    while (!list_empty(&todo->done)) {
        free(LIST_ENTRY(list_pop(&todo->done), struct window_task, in));
    }
    if (todo->wakes) {
        queue_wake(ws->queue);
    }
    todo->wakes = false;
    pthread_cond_broadcast(&ws->changed);
}

void windows_step(struct windows *ws, const struct window_event *e)
{
    windows_see(ws);
    supply(&ws->set);
    window_step(&ws->set, clock_now_ns(), e);
    act(ws);
}
