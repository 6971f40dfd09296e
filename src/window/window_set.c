/* window_set.c - one step of a communicator's windows: whose message has ended, who is lost, what is over.
 *
 * It passes the end of a message on to whose it was, then sees to what follows from it for the window.
 * SPDX-License-Identifier: MIT */
#include "window/window_set.h"

#include "core/clock.h"
#include "core/mix.h"
#include "core/mutant.h"
#include "window/window_state.h"

/* ---- Life ---------------------------------------------------------------------------------------------------------- */

void window_set_init(struct window_set *s)
{
    *s = (struct window_set){.look_at = CLOCK_NEVER};
    struct list *const lists[] = {&s->all, &s->asking, &s->due, &s->todo.says, &s->todo.stops, &s->todo.settled, &s->todo.gone, &s->todo.done};
    for (uint32_t i = 0; i < sizeof lists / sizeof *lists; i++) {
        list_init(lists[i]);
    }
}

void window_init(struct window *w, struct window_set *s, void *base, size_t bytes, uint32_t rights, uint32_t world)
{
    list_init(&w->all);
    list_init(&w->tasks);
    w->set = s;
    w->base = base;
    w->bytes = bytes;
    w->rights = rights;
    w->world = world;
    window_message_init(&w->hears, w, WINDOW_HEARS, NULL);
    for (uint32_t r = 0; r < world; r++) {
        struct window_peer *p = &w->peer[r];
        p->window = w;
        struct list *const lists[] = {&p->ops, &p->queued, &p->asks, &p->answers, &p->due, &p->owes, &p->waiters};
        for (uint32_t i = 0; i < sizeof lists / sizeof *lists; i++) {
            list_init(lists[i]);
        }
    }
}

void window_op_init(struct window_op *op, struct window *w, const struct window_call *call)
{
    *op = (struct window_op){.window = w, .what = *call};
    list_init(&op->in);
    list_init(&op->told);
    for (uint32_t i = 0; i < 2; i++) {
        window_message_init(&op->message[i], w, WINDOW_ASKS, op);
    }
}

bool window_seen(struct window *w, bool connected, uint64_t id, uint64_t view)
{
    w->alive = w->joined && connected && id == w->peer[w->rank].id; /* who has left and joined again is another */
    bool other = w->alive && view != w->seen;
    w->seen = w->alive ? view : w->seen;
    return other;
}

void window_out(struct window *w)
{
    list_remove(&w->all);
    for (uint32_t r = 0; r < w->world; r++) {
        list_remove(&w->peer[r].asks);
        list_remove(&w->peer[r].owes);
    }
}

/* Ascending; most are already. */
static void sort_ids(struct window *w)
{
    for (uint32_t r = 0; r < w->world; r++) {
        uint32_t i = r;
        for (; i > 0 && w->peer[w->peer[i - 1].nth].id > w->peer[r].id; i--) {
            w->peer[i].nth = w->peer[i - 1].nth;
        }
        w->peer[i].nth = r;
    }
}

static void joined(struct window *w, const struct window_member *members, uint32_t rank)
{
    struct window_set *s = w->set;
    w->rank = rank;
    w->joined = true;
    w->number = mix64(mix64(1, members[0].id), members[0].serial) / WINDOW_TAGS * WINDOW_TAGS;
    for (uint32_t r = 0; r < w->world; r++) {
        struct window_peer *p = &w->peer[r];
        p->id = members[r].id;
        p->bytes = (size_t)members[r].bytes;
        p->rights = members[r].rights;
        p->reach = r == rank ? w->base : NULL;
    }
    sort_ids(w);
    s->others = w->world - 1 > s->others ? w->world - 1 : s->others;
}

/* No operation or message of it is to be under way any more. */
static void quiet(struct window *w)
{
    w->quiet = true;
    window_over(w, &(struct session_outcome){.result = RESULT_GONE});
    origin_over(w);
    target_stop(w);
}

static void closing(struct window *w)
{
    w->closing = true;
    w->peer[w->rank].closed = true;
    origin_signals(&w->peer[w->rank]);
}

bool window_closed_by_all(const struct window *w)
{
    for (uint32_t r = 0; r < w->world; r++) {
        const struct window_peer *p = &w->peer[r];
        if (r != w->rank && !p->closed && !p->missing) {
            return false;
        }
    }
    return true;
}

/* Operations of the program with that member. */
static bool acts_on(const struct window_peer *p)
{
    LIST_FOR_EACH(l, after, &p->ops) {
        if (!p->silent || !LIST_ENTRY(l, struct window_op, in)->settled) {
            return true;
        }
    }
    return !list_empty(&p->queued);
}

bool window_acts(const struct window *w)
{
    for (uint32_t r = 0; r < w->world; r++) {
        if (acts_on(&w->peer[r])) {
            return true;
        }
    }
    return false;
}

bool window_waits(const struct window *w)
{
    if (w->over.result != RESULT_PENDING) {
        return w->calls > 0;
    }
    for (uint32_t r = 0; r < w->world; r++) {
        const struct window_peer *p = &w->peer[r];
        bool open = acts_on(p) || !list_empty(&p->waiters) || (!p->closed && !p->missing);
        if (r != w->rank && !p->silent && open) {
            return true;
        }
    }
    return false;
}

bool window_done(const struct window *w)
{
    return w->calls == 0 && (w->over.result != RESULT_PENDING || window_closed_by_all(w));
}

bool window_lend(struct window *w, bool (*lent)(void *shell, const struct window_message *m), void *shell)
{
    bool any = false;
    for (uint32_t r = 0; r < w->world; r++) {
        struct window_peer *p = &w->peer[r];
        LIST_FOR_EACH(l, after, &p->ops) {
            struct window_op *op = LIST_ENTRY(l, struct window_op, in);
            for (uint32_t i = 0; (p->silent || w->left) && i < 2; i++) {
                op->message[i].lent = lent(shell, &op->message[i]);
                any = any || (op->given_up && op->message[i].lent);
            }
        }
    }
    LIST_FOR_EACH(l, after, &w->tasks) {
        any = any || (w->left && lent(shell, &LIST_ENTRY(l, struct window_task, in)->message));
    }
    return any;
}

/* The program's, with members that have been silent for long. */
static void abandon(struct window *w)
{
    for (uint32_t r = 0; r < w->world; r++) {
        if (w->peer[r].silent && !MUTANT(WINDOW_WAITS)) {
            origin_abandon(&w->peer[r]);
        }
    }
}

/* From here on the window refuses all that others ask for. */
static void left(struct window *w)
{
    w->left = true;
    w->base = NULL;
    w->bytes = 0;
    w->rights = 0;
    target_leave(w);
}

/* ---- Who is lost --------------------------------------------------------------------------------------------------- */

/* Whoever is missing now is lost once the messages that have ended so far have been looked at: some may be signals of theirs. */
static void mark(struct window *w)
{
    if (w->followed == w->seen) {
        return;
    }
    w->followed = w->seen;
    w->follows = true;
    for (uint32_t r = 0; r < w->world; r++) {
        w->peer[r].going = w->peer[r].missing;
    }
}

/* What is open with members that are lost ends, and with the window all of it. */
static void follow(struct window *w)
{
    for (uint32_t r = 0; w->follows && r < w->world; r++) {
        struct window_peer *p = &w->peer[r];
        if (p->going && !p->lost) {
            p->lost = true;
            origin_lost(p);
            target_lost(p);
        }
    }
    w->follows = false;
    if (w->over.result != RESULT_PENDING) {
        origin_over(w);
    }
}

int64_t window_deadline(const struct window_set *s)
{
    int64_t until = s->look_at;
    LIST_FOR_EACH(l, after, &s->all) { /* no longer where somebody was found missing meanwhile */
        until = LIST_ENTRY(l, struct window, all)->follows ? 0 : until;
    }
    return until;
}

/* ---- Events -------------------------------------------------------------------------------------------------------- */

/* O3: a request that has failed at this end, for want of memory or a failed invariant.  The target never knows what it was, and the message
 * that goes with it has no other end. */
static bool place_lost(const struct window_message *m, const struct session_outcome *o)
{
    bool here = o->result == RESULT_NO_MEMORY || o->result == RESULT_POISONED;
    return here && m->window->alive && m->launch.tag == m->window->number + WINDOW_REQUESTS;
}

static void ended(struct window_set *s, struct window_message *m, const struct session_outcome *o)
{
    m->window->under_way--;
    m->under_way = false;
    if (place_lost(m, o) && !MUTANT(WINDOW_STAYS)) {
        window_broken(m->window);
    }
    switch (m->role) {
    case WINDOW_HEARS:
        target_heard(m->window, o);
        break;
    case WINDOW_ASKS:
        origin_ended(m->owner, o);
        break;
    case WINDOW_SERVES:
        target_ended(m->owner, o);
        break;
    }
    target_launch(s);
}

static void unsent(struct window_message *m)
{
    if (m->role == WINDOW_ASKS) {
        origin_unsent(m->owner);
    } else {
        target_unsent(m);
    }
}

/* What has been cancelled, has no time left, or lasts until this peer leaves. */
static void woken(struct window_set *s, struct window *w)
{
    if (!w->joined) {
        return;
    }
    if (!w->alive) {
        window_over(w, &(struct session_outcome){.result = RESULT_GONE});
    }
    origin_give_up(w);
    origin_late(w, s->now, &s->look_at);
}

static void of_all(struct window_set *s, enum window_event_kind kind)
{
    if (kind == WINDOW_EVENT_WOKEN) {
        s->look_at = CLOCK_NEVER;
    }
    LIST_FOR_EACH(l, after, &s->all) {
        struct window *w = LIST_ENTRY(l, struct window, all);
        if (kind == WINDOW_EVENT_WOKEN) {
            woken(s, w);
        } else if (kind == WINDOW_EVENT_MARK) {
            mark(w);
        } else {
            follow(w);
        }
    }
}

void window_step(struct window_set *s, int64_t now, const struct window_event *e)
{
    s->now = now;
    switch (e->kind) {
    case WINDOW_EVENT_CALLED:
        origin_start(e->op);
        break;
    case WINDOW_EVENT_ENDED:
        ended(s, e->message, e->outcome);
        break;
    case WINDOW_EVENT_UNSENT:
        unsent(e->message);
        break;
    case WINDOW_EVENT_WOKEN:
    case WINDOW_EVENT_MARK:
    case WINDOW_EVENT_FOLLOW:
        of_all(s, e->kind);
        break;
    case WINDOW_EVENT_JOINED:
        joined(e->window, e->members, e->rank);
        break;
    case WINDOW_EVENT_SERVED:
        target_hear(e->window);
        break;
    case WINDOW_EVENT_CLOSING:
        closing(e->window);
        break;
    case WINDOW_EVENT_ABANDON:
        abandon(e->window);
        break;
    case WINDOW_EVENT_LEFT:
        left(e->window);
        break;
    case WINDOW_EVENT_QUIET:
        quiet(e->window);
        break;
    }
}
