/* window_target.c - what others ask of this peer's windows, carried out without its program.
 *
 * One receive from any source hears requests.  Bytes are put where they belong as they come; whatever waits for what came before it
 * (numbers, signals, what is read back) is done in the order of numbers, once all smaller ones of its origin are done: the answers
 * of an origin so go out in the order in which it waits for them.  A request of an operation that has been done is answered again; of
 * bytes that have come, it is refused as a message, as is what does not fit the window, or its rights: that tells the origin.
 * Invariant: a number is done once; nothing is written but between the window's bounds.
 * SPDX-License-Identifier: MIT */
#include "core/clock.h"
#include "core/mutant.h"
#include "window/window_state.h"

/* ---- Numbers of an origin --------------------------------------------------------------------------------------- */

static void floor_raise(struct window_peer *p, uint64_t to)
{
    if (to > p->floor) {
        p->done = to - p->floor < 64 ? p->done >> (to - p->floor) : 0;
        p->floor = to;
    }
    while (p->done & 1) {
        p->done >>= 1;
        p->floor++;
    }
}

static bool is_done(const struct window_peer *p, uint64_t seq)
{
    return seq < p->floor || (p->done >> (seq - p->floor) & 1) != 0;
}

static void set_done(struct window_peer *p, uint64_t seq)
{
    if (seq >= p->floor) {
        p->done |= UINT64_C(1) << (seq - p->floor);
        floor_raise(p, p->floor);
    }
}

/* ---- Messages ---------------------------------------------------------------------------------------------------- */

static void task_over(struct window_task *t)
{
    list_remove(&t->in);
    list_append(&t->peer->window->set->todo.done, &t->in);
}

static void task_due(struct window_task *t)
{
    struct window_peer *p = t->peer;
    list_append(&p->due, &t->in);
    if (list_empty(&p->owes)) {
        list_append(&p->window->set->due, &p->owes);
    }
}

static void task_launch(struct window_task *t)
{
    struct window_peer *p = t->peer;
    struct window *w = p->window;
    const struct window_request *q = &t->what;
    bool put = q->kind == WINDOW_PUT;
    unsigned char *at = w->base == NULL || t->bad ? NULL : (unsigned char *)w->base + q->offset;
    void *buffer = window_numbers(q->kind) ? (void *)&t->answer : at;
    struct window_launch launch = window_launch(w, put ? WINDOW_PUTS : WINDOW_ANSWERS, p->id, put, buffer, t->bad ? 0 : (size_t)q->bytes);
    launch.within = t->view;
    launch.deadline = CLOCK_NEVER;
    launch.bad_argument = t->bad;
    window_say(&t->message, &launch, false);
    room_take(&w->set->serves, p->id);
    list_append(&w->tasks, &t->in);
}

void target_launch(struct window_set *s)
{
    LIST_FOR_EACH(l, after, &s->due) { /* whoever gets some room has its next turn behind the others */
        struct window_peer *p = LIST_ENTRY(l, struct window_peer, owes);
        bool any = false;
        while (!list_empty(&p->due) && room_for(&s->serves, p->id, s->others)) {
            task_launch(LIST_ENTRY(list_pop(&p->due), struct window_task, in));
            any = true;
        }
        if (any || list_empty(&p->due)) {
            list_remove(&p->owes);
        }
        if (!list_empty(&p->due) && any) {
            list_append(&s->due, &p->owes);
        }
    }
}

/* ---- Answers ----------------------------------------------------------------------------------------------------- */

static bool number_once(struct window_task *t)
{
    struct window_peer *p = t->peer;
    struct window_set *s = p->window->set;
    const struct window_request *q = &t->what;
    if (p->answered == NULL) {
        p->answered = s->spare_answers;
        s->spare_answers = NULL;
    }
    if (p->answered == NULL) {
        return false;
    }
    if (!is_done(p, q->seq) || MUTANT(WINDOW_AGAIN)) {
        p->answered[q->seq % WINDOW_OPEN] = window_memory_number((unsigned char *)p->window->base + q->offset, q);
        set_done(p, q->seq);
    }
    t->answer = p->answered[q->seq % WINDOW_OPEN];
    return true;
}

/* Whatever has nothing before it any more. */
static void answer(struct window_peer *p)
{
    while (!list_empty(&p->answers)) {
        struct window_task *t = LIST_ENTRY(p->answers.next, struct window_task, in);
        const struct window_request *q = &t->what;
        if (p->floor != q->seq && !is_done(p, q->seq) && !MUTANT(WINDOW_EARLY)) {
            return; /* something before it is on its way */
        }
        list_remove(&t->in);
        list_init(&t->in);
        if (!window_answers(q->kind)) {
            bool counts = !MUTANT(WINDOW_SIGNAL_LATE) || !is_done(p, q->seq);
            set_done(p, q->seq);
            p->signals += q->kind == WINDOW_SIGNAL && counts;
            p->closed = p->closed || q->kind == WINDOW_CLOSE;
            task_over(t);
            origin_signals(p);
            continue;
        }
        if (window_numbers(q->kind) && !t->bad && !number_once(t)) {
            window_broken(p->window);
            task_over(t);
            return;
        }
        set_done(p, q->seq);
        task_due(t);
    }
}

/* ---- Requests ---------------------------------------------------------------------------------------------------- */

void target_hear(struct window *w)
{
    while (w->present < w->world && (w->present == w->rank || w->peer[w->present].missing)) {
        w->present++;
    }
    if (w->served || w->quiet || w->present == w->world || w->over.result != RESULT_PENDING) {
        return;
    }
    struct window_launch launch = window_launch(w, WINDOW_REQUESTS, 0, true, w->heard, sizeof w->heard);
    launch.known = w->seen;
    launch.deadline = CLOCK_NEVER;
    w->served = true;
    window_say(&w->hears, &launch, false);
}

static struct window_peer *peer_by_id(struct window *w, uint64_t id)
{
    uint32_t low = 0, high = w->world;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (w->peer[w->peer[middle].nth].id < id) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    struct window_peer *p = low < w->world ? &w->peer[w->peer[low].nth] : NULL;
    return p != NULL && p->id == id && p != &w->peer[w->rank] ? p : NULL;
}

/* Among the numbers that the origin may have under way, done here or not; any other is a lie, and nobody waits for it. */
static bool number_possible(struct window_peer *p, const struct window_request *q)
{
    if (q->seq > INT64_MAX || q->seq - q->over >= WINDOW_OPEN) {
        return false;
    }
    floor_raise(p, q->over);
    return q->seq < p->floor ? p->floor - q->seq <= WINDOW_OPEN : q->seq - p->floor < WINDOW_OPEN;
}

static void drop_older(struct list *list, uint64_t view)
{
    LIST_FOR_EACH(l, after, list) {
        struct window_task *t = LIST_ENTRY(l, struct window_task, in);
        if (t->view < view && (t->what.kind == WINDOW_PUT || window_answers(t->what.kind))) {
            task_over(t);
        }
    }
}

/* What waits for messages of a view that has ended comes again, in the order of numbers, before anything else of the next view. */
static void next_view(struct window_peer *p, uint64_t view)
{
    if (view > p->asked_in) {
        p->asked_in = view;
        if (MUTANT(WINDOW_KEPT)) {
            return;
        }
        drop_older(&p->answers, view);
        drop_older(&p->due, view);
    }
}

static bool is_due(const struct window_peer *p, uint64_t seq)
{
    LIST_FOR_EACH(l, after, &p->due) {
        if (LIST_ENTRY(l, struct window_task, in)->what.seq == seq) {
            return true;
        }
    }
    return false;
}

/* Nothing more is to be done under that number.  A signal that waits for what came before it is dropped, and never counted too early; a last
 * word that waits is kept, since nobody says it again. */
static void withdraw(struct window_peer *p, uint64_t seq)
{
    LIST_FOR_EACH(l, after, &p->answers) {
        struct window_task *t = LIST_ENTRY(l, struct window_task, in);
        if (t->what.seq == seq && t->what.kind == WINDOW_CLOSE) {
            return;
        }
        if (t->what.seq == seq && t->what.kind == WINDOW_SIGNAL && !MUTANT(WINDOW_VOID_COUNTS)) {
            task_over(t);
        }
    }
    set_done(p, seq);
}

/* Its place among answers, before those of greater numbers; null: it is there already. */
static struct list *place_among(struct window_peer *p, uint64_t seq)
{
    struct list *place = &p->answers;
    while (place->prev != &p->answers && LIST_ENTRY(place->prev, struct window_task, in)->what.seq >= seq) {
        place = place->prev;
        if (LIST_ENTRY(place, struct window_task, in)->what.seq == seq) {
            return NULL;
        }
    }
    return place;
}

/* Of memory that the shell has put ready; null: there was none. */
static struct window_task *task_new(struct window_peer *p, const struct window_request *q, uint64_t view)
{
    struct window_set *s = p->window->set;
    struct window_task *t = s->spare;
    s->spare = NULL;
    if (t != NULL) {
        *t = (struct window_task){.peer = p, .what = *q, .view = view};
        list_init(&t->in);
        window_message_init(&t->message, p->window, WINDOW_SERVES, t);
    }
    return t;
}

static void request(struct window_peer *p, const struct window_request *q, uint64_t view)
{
    struct window *w = p->window;
    bool passed = view == p->unheard && !MUTANT(WINDOW_HEARD_ON); /* O3: the message of the one that failed would be taken for this one's */
    if (p->lost || passed || !number_possible(p, q)) {
        return;
    }
    next_view(p, view);
    if (q->kind == WINDOW_VOID) {
        withdraw(p, q->seq);
        answer(p);
        return;
    }
    bool again = q->kind == WINDOW_SIGNAL && is_done(p, q->seq); /* said now: while it waits, its origin may say of its number that it is over */
    struct list *place = again || is_due(p, q->seq) ? NULL : place_among(p, q->seq);
    struct window_task *t = place != NULL ? task_new(p, q, view) : NULL;
    if (place == NULL) { /* it waits already, or has been */
        answer(p);
        return;
    }
    if (t == NULL) {
        window_broken(w);
        return;
    }
    bool put = q->kind == WINDOW_PUT;
    t->bad = !MUTANT(WINDOW_BEYOND) && (put || window_answers(q->kind)) && !window_allows(w->bytes, w->rights, q->kind, q->offset, q->bytes);
    if (put) {
        t->bad = t->bad || (is_done(p, q->seq) && !MUTANT(WINDOW_PUT_AGAIN)); /* its bytes may be others by now: to be refused tells the origin enough */
        task_due(t);
    } else {
        list_insert(place, &t->in);
    }
    answer(p);
}

void target_heard(struct window *w, const struct session_outcome *o)
{
    struct window_request q;
    struct reader r;
    w->served = false;
    if (o->result != RESULT_OK && !o->view_ended && !w->alive) {
        window_over_by(w, o);
    }
    reader_init(&r, w->heard, sizeof w->heard);
    struct window_peer *p = peer_by_id(w, o->partner);
    if (p != NULL && o->result != RESULT_OK) {
        p->unheard = o->view;
    } else if (p != NULL && get_window_request(&r, &q)) {
        request(p, &q, o->view);
    }
    target_hear(w);
}

void target_ended(struct window_task *t, const struct session_outcome *o)
{
    struct window_peer *p = t->peer;
    room_give(&p->window->set->serves, p->id);
    if (t->what.kind == WINDOW_PUT && (o->result == RESULT_OK || t->bad)) { /* else it comes again, or is made void */
        set_done(p, t->what.seq);
    }
    task_over(t);
    answer(p);
}

void target_unsent(struct window_message *m)
{
    struct window *w = m->window;
    m->under_way = false;
    w->under_way--;
    window_broken(w);
    if (m->role == WINDOW_HEARS) {
        w->served = false;
        return;
    }
    struct window_task *t = m->owner;
    room_give(&w->set->serves, t->peer->id);
    task_over(t);
}

void target_lost(struct window_peer *p)
{
    struct list *const lists[] = {&p->answers, &p->due};
    for (uint32_t i = 0; i < 2; i++) {
        while (!list_empty(lists[i])) {
            task_over(LIST_ENTRY(lists[i]->next, struct window_task, in));
        }
    }
    list_remove(&p->owes);
}

static void refuse_all(struct list *tasks)
{
    LIST_FOR_EACH(l, after, tasks) {
        struct window_task *t = LIST_ENTRY(l, struct window_task, in);
        t->bad = t->what.kind == WINDOW_PUT || window_answers(t->what.kind);
    }
}

void target_leave(struct window *w)
{
    LIST_FOR_EACH(l, after, &w->tasks) {
        struct window_task *t = LIST_ENTRY(l, struct window_task, in);
        if (t->what.kind == WINDOW_PUT || t->what.kind == WINDOW_GET) {
            window_stop(&t->message);
        }
    }
    for (uint32_t r = 0; r < w->world; r++) {
        refuse_all(&w->peer[r].answers);
        refuse_all(&w->peer[r].due);
    }
}

void target_stop(struct window *w)
{
    for (uint32_t r = 0; r < w->world; r++) {
        target_lost(&w->peer[r]);
    }
    LIST_FOR_EACH(l, after, &w->tasks) {
        window_stop(&LIST_ENTRY(l, struct window_task, in)->message);
    }
    window_stop(&w->hears);
}
