/* window_todo.c - what a step of windows wants done, noted for its shell.
 * SPDX-License-Identifier: MIT */
#include "core/mutant.h"
#include "window/window_state.h"

void window_message_init(struct window_message *m, struct window *w, enum window_role role, void *owner)
{
    *m = (struct window_message){.role = role, .window = w, .owner = owner};
    list_init(&m->says);
    list_init(&m->stops);
}

struct window_launch window_launch(const struct window *w, uint32_t tag, uint64_t partner, bool receives, void *buffer, size_t bytes)
{
    return (struct window_launch){.tag = w->number + tag, .partner = partner, .receives = receives, .buffer = buffer, .bytes = bytes};
}

void window_say(struct window_message *m, const struct window_launch *launch, bool behind)
{
    m->launch = *launch;
    m->behind = behind;
    m->under_way = true;
    m->window->under_way++;
    list_append(&m->window->set->todo.says, &m->says);
}

void window_stop(struct window_message *m)
{
    if (m->under_way && list_empty(&m->stops)) {
        list_append(&m->window->set->todo.stops, &m->stops);
    }
}

enum window_act window_first(const struct window_todo *todo)
{
    bool says = !list_empty(&todo->says);
    if (!list_empty(&todo->settled)) {
        return WINDOW_ACT_SETTLE;
    }
    if (todo->leaves && !(says && MUTANT(WINDOW_SAYS_ON))) { /* O3: the next message would be taken for the one that is missing */
        return WINDOW_ACT_LEAVE;
    }
    return says ? WINDOW_ACT_SAY : WINDOW_ACT_OTHERS;
}

void window_broken(struct window *w)
{
    w->set->todo.leaves = true;
}

void window_over(struct window *w, const struct session_outcome *o)
{
    if (w->over.result == RESULT_PENDING) {
        w->over = *o;
        w->over.view_ended = false;
    }
}

void window_over_by(struct window *w, const struct session_outcome *o)
{
    bool says = o->result == RESULT_GONE || o->result == RESULT_OVER || o->result == RESULT_POISONED || o->result == RESULT_NO_MEMORY;
    window_over(w, says ? o : &(struct session_outcome){.result = RESULT_GONE});
}
