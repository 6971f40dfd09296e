/* optimise.c - the vote for a better ring: edges that nobody knows are measured (measuring.h), and a ring is made of all that is known.
 *
 * All groups are measured together.  The search for the ring is done outside (MASTER_SOLVE), so that it never delays a client.
 * Invariant: a member lost on the way cancels the work, not the vote: those who are left start over (R9).
 * SPDX-License-Identifier: MIT */
#include <string.h>

#include "world/measuring.h"
#include "world/admit.h"
#include "world/edges.h"
#include "world/ending.h"
#include "world/member_read.h"
#include "world/moves.h"
#include "world/optimise.h"
#include "world/suspect.h"
#include "world/view.h"
#include "world/view_plan.h"
#include "world/view_read.h"
#include "world/view_trees.h"
#include "world/vote.h"

static void optimise_cancel(struct world *w, const char *why)
{
    w->optimise.deadline = NEVER;
    edge_probes_forget(w);
    edge_asks_forget(w);
    for (uint32_t i = 0; i < w->group_room; i++) {
        w->groups[i].solving = 0;
    }
    world_move(w, PHASE_OPTIMISE, &w->optimise.phase, OPTIMISE_IDLE, 0, 0, why);
}

static void solve(struct world *w)
{
    w->optimise.deadline = NEVER;
    world_move(w, PHASE_OPTIMISE, &w->optimise.phase, OPTIMISE_SOLVING, 0, 0, "edges are known");
    for (uint32_t i = 0; i < w->group_room; i++) {
        struct group *g = &w->groups[i];
        g->solving = 0;
        g->solved = false;
        if (g->phase == GROUP_NORMAL && view_current(g)->members > BOUNDS_RING) {
            world_tell(w, "a group keeps its ring: it has more members than a search is made for");
        } else if (g->phase == GROUP_NORMAL && view_current(g)->members > 2) { /* of two there is one ring */
            g->solving = common_number(&w->common->next_solve, w->slot);
            struct action *a = outbox_add(w->common->out, MASTER_SOLVE);
            a->value = g->solving;
        }
    }
}

static void end_trips(struct world *w)
{
    edge_trips_end(w);
    edge_probes_plan(w);
    w->optimise.step = MEASURE_NEAR;
}

static void measure_pairs(struct world *w)
{
    edge_probes_plan_far(w);
    w->optimise.step = MEASURE_PAIRS;
}

static void measure_back(struct world *w)
{
    edge_probes_plan_back(w);
    w->optimise.step = MEASURE_BACK;
}

static void end_together(struct world *w)
{
    probe_together_end(w);
    edge_asks_forget(w);
    measure_back(w);
}

/* Begins what may begin now: first round trips, then pairs that nobody knows, those within sites first, then all edges at once, then the
 * other directions; true: something is being measured. */
static bool measure(struct world *w)
{
    struct optimise *o = &w->optimise;
    if (o->waiting > 0) {
        return true;
    }
    if (o->step == MEASURE_TRIPS) {
        end_trips(w);
    }
    if (o->step == MEASURE_NEAR) {
        if (edge_probes_start(w)) {
            return true;
        }
        measure_pairs(w);
    }
    if (o->step == MEASURE_PAIRS) {
        if (edge_probes_start(w)) {
            return true;
        }
        edge_guess(w);
        if (w->common->now < o->until && probe_together_start(w)) {
            o->step = MEASURE_TOGETHER;
            return true;
        }
        measure_back(w);
    } else if (o->step == MEASURE_TOGETHER) {
        end_together(w);
    }
    bool more = edge_probes_start(w);
    if (!more) {
        edge_guess(w); /* between sites whose first pair could not be measured */
    }
    return more;
}

static void begin(struct world *w)
{
    struct optimise *o = &w->optimise;
    o->lost = false;
    if (member_count(w, NULL, MEMBER_ACCEPTED) > w->probe_room) { /* no memory, or too many: what is not known stays so */
        edge_probes_forget(w);
        solve(w);
        return;
    }
    o->until = w->common->now + w->common->config.measure_ns;
    edge_probes_expire(w); /* of members that have gone */
    o->step = MEASURE_TRIPS;
    if (edge_trips_start(w) || measure(w)) {
        world_move(w, PHASE_OPTIMISE, &o->phase, OPTIMISE_PROBING, 0, 0, "edges are not known");
    } else {
        solve(w);
    }
}

/* Whether the ring found differs from the one in use; both begin with rank 0 after turning. */
static bool ring_differs(const struct view_record *v, uint32_t *found)
{
    uint32_t n = v->members, a = 0, b = 0;
    while (v->ring[a] != 0) {
        a++;
    }
    while (found[b] != 0) {
        b++;
    }
    for (uint32_t i = 0; i < n; i++) {
        if (v->ring[(a + i) % n] != found[(b + i) % n]) {
            return true;
        }
    }
    return false;
}

/* Whether a view with the ring that was found would send its data another way, or count with other costs. */
static bool plan_differs(struct world *w, struct group *g)
{
    const struct view_record *v = view_current(g);
    bool way = g->solved && (ring_differs(v, g->solution) || view_trees_differ(w, g));
    return g->phase == GROUP_NORMAL && (way || view_plan_differs(w, v));
}

/* The next view of one group, with the ring that was found; false if links have to be made for it: a freeze does that. */
static bool propose_ring(struct world *w, struct group *g)
{
    struct view_record *next = view_next(g);
    view_propose(w, g, VOTE_OPTIMISE, false);
    edges_inherit(w, g);
    if (edges_unsure(w, g)) {
        suspect_group(w, g, CAUSE_LINK_LOST, 0, "a pair of members has neither a link nor a relay");
        return false;
    }
    view_finish(w, g, false);
    if (g->solved) { /* else the ring stays: of two members there is one, and of very many none is searched */
        memcpy(next->ring, g->solution, next->members * sizeof *next->ring);
        view_plan_ring(w, view_current(g), next);
    }
    g->in_batch = true;
    return true;
}

static void end_vote(struct world *w, const char *why)
{
    world_move(w, PHASE_OPTIMISE, &w->optimise.phase, OPTIMISE_IDLE, 0, 0, why);
    if (edge_probes_beside(w)) {
        world_tell(w, "edges that there was no time for are measured beside other work");
    }
    admit_publish(w, VOTE_OPTIMISE);
}

static void finish(struct world *w)
{
    bool any = false;
    for (uint32_t i = 0; i < w->group_room; i++) {
        struct group *g = &w->groups[i];
        g->in_batch = false;
        g->outdated = plan_differs(w, g);
        if (g->outdated && !view_known_to_all(w, g)) {
            return; /* M5: heartbeats will soon say that the view arrived */
        }
        any = any || g->outdated;
    }
    for (uint32_t i = 0; i < w->group_room && any; i++) {
        struct group *g = &w->groups[i];
        if (g->outdated && !propose_ring(w, g)) {
            optimise_cancel(w, "a member cannot be linked");
            return;
        }
    }
    admit_fix_sizes(w);
    if (any) {
        world_move(w, PHASE_OPTIMISE, &w->optimise.phase, OPTIMISE_PERSISTING, 0, 0, "rings decided");
        w->optimise.persist = view_persist(w, NULL); /* M4 */
    } else {
        end_vote(w, "no better ring");
    }
}

static bool all_solved(const struct world *w)
{
    for (uint32_t i = 0; i < w->group_room; i++) {
        if (w->groups[i].solving != 0) {
            return false;
        }
    }
    return true;
}

void optimise_settle(struct world *w)
{
    struct optimise *o = &w->optimise;
    bool working = o->phase == OPTIMISE_PROBING || o->phase == OPTIMISE_SOLVING;
    if (working && (o->lost || !vote_quiet(w, NULL))) {
        optimise_cancel(w, "a view ends");
        return; /* the vote goes on: those who are left start over */
    }
    switch ((enum optimise_phase)o->phase) {
    case OPTIMISE_IDLE:
        if (vote_all_in(w, NULL, VOTE_OPTIMISE) && vote_quiet(w, NULL)) {
            begin(w);
        }
        break;
    case OPTIMISE_PROBING:
        if (!measure(w)) {
            solve(w);
        }
        break;
    case OPTIMISE_SOLVING:
        if (all_solved(w)) {
            finish(w);
        }
        break;
    case OPTIMISE_PERSISTING:
    case OPTIMISE_PHASES:
        break;
    }
}

void optimise_measured(struct world *w, struct member *mb, const struct msg_measured *ms)
{
    struct optimise *o = &w->optimise;
    if (edge_words_take(w, mb, ms)) {
        return;
    }
    if (o->phase == OPTIMISE_PROBING && o->step == MEASURE_TOGETHER) {
        probe_together_answer(w, mb, ms);
        return;
    }
    if (o->phase == OPTIMISE_PROBING && o->step == MEASURE_TRIPS) {
        edge_trips_answer(w, mb, ms);
    }
    if (o->phase == OPTIMISE_PROBING || o->phase == OPTIMISE_IDLE) {
        edge_probes_measured(w, mb, ms);
    }
}

void optimise_solved(struct world *w, const struct master_event *e)
{
    for (uint32_t i = 0; i < w->group_room; i++) {
        struct group *g = &w->groups[i];
        if (g->solving == 0 || g->solving != e->number) {
            continue;
        }
        g->solving = 0;
        PCCL_ASSERT(e->count == view_current(g)->members);
        for (uint32_t k = 0; k < e->count; k++) {
            g->solution[k] = SLOT_NONE;
        }
        for (uint32_t k = 0; k < e->count; k++) { /* every rank once */
            PCCL_ASSERT(e->order[k] < e->count && g->solution[e->order[k]] == SLOT_NONE);
            g->solution[e->order[k]] = 0;
        }
        memcpy(g->solution, e->order, e->count * sizeof *g->solution);
        g->solved = true;
    }
}

void optimise_persisted(struct world *w, uint64_t number)
{
    if (w->optimise.phase == OPTIMISE_PERSISTING && w->optimise.persist == number) {
        end_vote(w, "published");
    }
}

/* What did not come stays unknown; groups that have answered are kept. */
static void give_up_answers(struct world *w)
{
    struct optimise *o = &w->optimise;
    if (o->phase != OPTIMISE_PROBING || o->waiting == 0 || w->common->now < o->answers_by) {
        return;
    }
    if (o->step == MEASURE_TOGETHER) {
        end_together(w);
    } else {
        edge_asks_forget(w);
    }
}

void optimise_tick(struct world *w)
{
    struct optimise *o = &w->optimise;
    if (w->common->now < o->deadline) {
        return;
    }
    if (o->phase == OPTIMISE_IDLE && ending_begun(w)) {
        edge_probes_forget(w);
        o->deadline = NEVER;
    } else if (o->phase == OPTIMISE_IDLE) {
        edge_probes_beside_look(w);
    } else {
        give_up_answers(w);
        edge_probes_expire(w);
    }
}
