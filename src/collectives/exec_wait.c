/* exec_wait.c - see exec_wait.h.
 * SPDX-License-Identifier: MIT */
#include "collectives/exec_wait.h"

#include "collectives/exec_state.h"
#include "core/clock.h"
#include "core/mutant.h"

enum { TELL_MOST = 16 /* times in a stall time */ };

/* A partner that has not yet taken what this rank sends. */
static uint32_t unsent_to(const struct exec *x, bool final_only)
{
    for (uint32_t i = 0; i < x->plan->partner_count; i++) {
        const struct exec_peer *p = &x->peers[i];
        bool lead = p->lead_next < p->lead_end;
        bool final = p->queue[1].head != p->queue[1].tail || (p->busy && p->out_phase == 1) || (lead && p->lead_phase == 1);
        bool first = lead || p->queue[0].head != p->queue[0].tail || p->busy;
        if (final || (!final_only && first)) {
            return i;
        }
    }
    return PLAN_NOBODY;
}

static struct exec_wait wait_take(const struct exec *x, bool final_only)
{
    uint32_t partner = unsent_to(x, final_only);
    return (struct exec_wait){partner == PLAN_NOBODY ? EXEC_WAIT_NOBODY : EXEC_WAIT_TAKE, partner};
}

static bool may_send(const struct exec_peer *p)
{
    return p->receiving || p->announced < p->granted;
}

/* Our own room is short: it comes back from those who hold it. */
static struct exec_wait wait_room(const struct exec *x)
{
    struct exec_wait w = {EXEC_WAIT_ROOM, PLAN_NOBODY};
    for (uint32_t i = 0; i < x->plan->partner_count; i++) {
        if (x->peers[i].ready && !x->peers[i].in_place && may_send(&x->peers[i])) {
            w.partner = i;
        }
    }
    return w;
}

struct exec_wait exec_waits_for(const struct exec *x)
{
    if (x->stopped) {
        return (struct exec_wait){EXEC_WAIT_NOBODY, PLAN_NOBODY};
    }
    if (x->done) {
        return wait_take(x, false);
    }
    struct exec_view v = exec_view(x, x->oldest);
    const struct plan_step *step = &x->plan->steps[v.segment->step + v.state->step];
    if (step->kind == STEP_FOLD && step->partner == PLAN_NOBODY) {
        step++; /* the own input waits for the first that comes to it */
    }
    if (step->kind == STEP_COPY || step->kind == STEP_PACK) {
        return (struct exec_wait){EXEC_WAIT_NOBODY, PLAN_NOBODY};
    }
    if (step->kind != STEP_FOLD && step->kind != STEP_RECV) {
        return wait_take(x, true);
    }
    const struct exec_peer *p = &x->peers[step->partner];
    bool short_of_room = step->kind == STEP_FOLD && p->starved && !may_send(p) && exec_next_is_ready(x, p);
    return short_of_room ? wait_room(x) : (struct exec_wait){EXEC_WAIT_DATA, step->partner};
}

void exec_edge_clear(struct exec_edge *edge)
{
    *edge = (struct exec_edge){UINT64_MAX, UINT64_MAX, UINT64_MAX};
}

void exec_edge_note(uint64_t *least, uint64_t launch)
{
    *least = launch < *least ? launch : *least;
}

bool exec_edge_shows(const struct exec_edge *edge, uint64_t own)
{
    return edge->sent <= own;
}

void exec_watch_start(struct exec_watch *w, int64_t now)
{
    *w = (struct exec_watch){.looked_at = now, .moved.at = now, .told_at = now};
}

void exec_watch_again(struct exec_watch *w, int64_t now)
{
    w->moved = (struct exec_move){now, 0};
    w->looked_at = now;
}

static bool moves(const struct exec_watch *w, const struct exec_wait *wait, const struct exec_look *look)
{
    if (MUTANT(SLOW_IS_STILL)) {
        return wait->kind == EXEC_WAIT_NOBODY;
    }
    switch (wait->kind) {
    case EXEC_WAIT_NOBODY:
        return true;
    case EXEC_WAIT_ROOM:
        return look->lane_bytes != w->lane_bytes;
    case EXEC_WAIT_DATA:
        return look->edge != NULL && look->edge->received <= look->theirs;
    case EXEC_WAIT_TAKE:
        return look->edge != NULL && (look->edge->granted <= look->theirs || look->edge->sent <= look->own);
    }
    return true;
}

bool exec_watch_stalled(struct exec_watch *w, const struct exec_wait *wait, const struct exec_look *look)
{
    bool slept = look->now - w->looked_at > look->stall_ns; /* this process stood still itself */
    bool moved = look->own_bytes != w->own_bytes || moves(w, wait, look);
    w->looked_at = look->now;
    w->own_bytes = look->own_bytes;
    w->lane_bytes = look->lane_bytes;
    if (slept || moved) {
        w->moved = (struct exec_move){look->now, 0};
        return false;
    }
    int64_t since = w->reported_at > w->moved.at ? w->reported_at : w->moved.at;
    if (look->now - since < look->stall_ns) {
        return false;
    }
    w->reported_at = look->now;
    return true;
}

void exec_watch_heard(struct exec_watch *w, const struct exec_wait *wait, uint32_t world, uint32_t partner, const struct exec_move *move)
{
    bool round = move->far + 2u > world && !MUTANT(MOVES_ROUND);
    if (wait->partner == partner && move->at > w->moved.at && !round && !MUTANT(MOVES_UNHEARD)) {
        w->moved = (struct exec_move){move->at, (uint16_t)(move->far + 1)};
    }
}

bool exec_watch_tells(struct exec_watch *w, int64_t stall_ns)
{
    if (w->moved.at - w->told_at < stall_ns / TELL_MOST) {
        return false;
    }
    w->told_at = w->moved.at;
    return true;
}

uint32_t exec_move_ms(int64_t at, int64_t now)
{
    int64_t ms = (now - at) / CLOCK_MS;
    return ms < UINT32_MAX - 1 ? (uint32_t)(ms + 1) : UINT32_MAX;
}

int64_t exec_move_at(uint32_t ms, int64_t now)
{
    return now - ((int64_t)ms - 1) * CLOCK_MS;
}
