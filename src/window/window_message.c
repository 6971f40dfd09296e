/* window_message.c - what windows have of their communicator: messages, and who is still there.
 * SPDX-License-Identifier: MIT */
#include "window/window_state.h"

struct comm_launch window_launch(const struct window *w, uint32_t tag, uint64_t partner, bool receives, void *buffer, size_t bytes)
{
    return (struct comm_launch){.space = SPACE_WINDOW, .tag = w->number + tag, .params = {.kind = PLAN_SEND, .dtype = DTYPE_U8, .count = bytes},
                                .partner = partner, .receives = receives, .count = bytes, .in = receives ? NULL : buffer,
                                .out = receives ? buffer : NULL, .awaited = true};
}

bool window_send(struct window *w, struct window_message *const *messages, const struct comm_launch *launches, uint32_t count)
{
    struct op_own own[2];
    for (uint32_t i = 0; i < count; i++) {
        own[i] = (struct op_own){.launch = launches[i], .cookie = (uint64_t)(uintptr_t)messages[i]};
    }
    if (!op_own_launch(w->windows->comm, w->windows->queue, own, count)) {
        return false;
    }
    for (uint32_t i = 0; i < count; i++) {
        messages[i]->op = own[i].op;
    }
    w->under_way += count;
    return true;
}

void window_broken(struct window *w)
{
    comm_leave(w->windows->comm, "no memory for a message of a window");
}

/* As the member that made it: who has left and joined again is another. */
static bool window_connected(const struct window *w, const struct session_info *info)
{
    return info->connected && info->id == w->peer[w->rank].id;
}

bool window_alive(const struct window *w)
{
    struct comm *c = w->windows->comm;
    struct session_info info = {0};
    pthread_mutex_lock(&c->lock);
    if (c->machine.session != NULL) {
        session_info(c->machine.session, &info);
    }
    pthread_mutex_unlock(&c->lock);
    return window_connected(w, &info);
}

uint64_t window_look(struct window *w)
{
    struct comm *c = w->windows->comm;
    struct session_info info = {0};
    pthread_mutex_lock(&c->lock);
    if (c->machine.session != NULL) {
        session_info(c->machine.session, &info);
    }
    bool connected = window_connected(w, &info);
    for (uint32_t r = 0; connected && info.view != w->seen && r < w->world; r++) {
        w->peer[r].missing = !session_present(c->machine.session, w->peer[r].id);
    }
    pthread_mutex_unlock(&c->lock);
    w->seen = connected ? info.view : w->seen;
    return w->seen;
}

void window_over(struct window *w, const struct session_outcome *o)
{
    if (w->over.result == RESULT_PENDING) {
        w->over = *o;
        w->over.view_ended = false;
    }
}
