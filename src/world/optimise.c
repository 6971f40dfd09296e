/* optimise.c - measuring the edges nobody knows yet, and a better ring made of all that is known.
 *
 * All groups are probed in one schedule: in a round a peer sends to at most one and receives from at most one.  The search for the
 * ring is done outside (MASTER_SOLVE), so that it never delays a client.
 * Invariant: a member lost on the way cancels the work, not the vote: those who are left start over (R9).
 * SPDX-License-Identifier: MIT */
#include <string.h>

#include "world/world_state.h"

static void forget_probes(struct world *w)
{
    w->optimise.waiting = 0;
    for (uint32_t i = 0; i < w->member_room; i++) {
        w->members[i].probing = 0;
    }
}

static void optimise_cancel(struct world *w, const char *why)
{
    w->optimise.deadline = NEVER;
    forget_probes(w);
    for (uint32_t i = 0; i < w->group_room; i++) {
        w->groups[i].solving = 0;
    }
    world_move(w, PHASE_OPTIMISE, &w->optimise.phase, OPTIMISE_IDLE, 0, 0, why);
}

static void start_round(struct world *w)
{
    struct optimise *o = &w->optimise;
    o->waiting = 0;
    o->deadline = w->common->now + w->common->config.probe_ns + w->common->config.register_ns;
    for (uint32_t i = 0; i < o->count; i++) {
        struct member *from = &w->members[o->slots[i]];
        uint16_t to = probe_rounds_to(&o->schedule, o->round, i);
        from->probing = 0;
        if (to == PROBE_ROUNDS_NONE || from->conn == SLOT_NONE) {
            continue;
        }
        from->probing = w->members[o->slots[to]].id;
        struct msg_probe p = {.round = o->first_round + o->round, .to = from->probing};
        p.duration_ms = (uint32_t)(w->common->config.probe_ns / 1000000);
        put_probe(outbox_frame(w->common->out, FRAME_PROBE, w->run, 0), &p);
        outbox_send(w->common->out, MASTER_SEND, from->conn);
        o->waiting++;
    }
}

/* The unmeasured edges of one group, its members being slots[first..count); edges that do not exist are not probed. */
static uint32_t add_edges(struct world *w, const struct group *g, uint32_t first, uint32_t edge_count)
{
    struct optimise *o = &w->optimise;
    uint32_t n = o->count - first;
    for (uint32_t i = 0; i < n; i++) {
        w->common->scratch_ids[i] = w->members[o->slots[first + i]].id;
    }
    size_t room = (size_t)w->probe_room * w->probe_room - edge_count;
    size_t found = bandwidth_missing(&w->bandwidth, w->common->scratch_ids, n, 0, o->edges + edge_count, room);
    uint32_t kept = edge_count;
    for (size_t i = 0; i < found; i++) {
        struct bandwidth_edge e = o->edges[edge_count + i];
        if (!edges_missing(&g->views[g->current], w->common->scratch_ids[e.from], w->common->scratch_ids[e.to])) {
            o->edges[kept++] = (struct bandwidth_edge){(uint16_t)(e.from + first), (uint16_t)(e.to + first)};
        }
    }
    return kept;
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

static void begin(struct world *w)
{
    struct optimise *o = &w->optimise;
    uint32_t edges = 0;
    o->count = 0;
    o->lost = false;
    if (member_count(w, NULL, MEMBER_ACCEPTED) > w->probe_room) { /* no memory, or too many: what is not known stays so */
        solve(w);
        return;
    }
    for (uint32_t i = 0; i < w->group_room; i++) {
        uint32_t first = o->count;
        for (uint32_t k = 0; k < w->member_room; k++) {
            if (member_accepted_in(w, &w->members[k], &w->groups[i])) {
                o->slots[o->count++] = k;
            }
        }
        edges = add_edges(w, &w->groups[i], first, edges);
    }
    o->first_round += o->rounds; /* numbers of rounds are not used twice: late answers are told apart */
    o->rounds = 0;
    if (edges == 0) {
        solve(w);
        return;
    }
    PCCL_ASSERT(probe_rounds_init(&o->schedule, o->count, o->edges, edges, o->storage));
    o->round = 0;
    o->rounds = (uint32_t)o->schedule.rounds;
    world_move(w, PHASE_OPTIMISE, &o->phase, OPTIMISE_PROBING, 0, 0, "edges are missing");
    start_round(w);
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

/* Whether a view with the ring that was found would send its data another way. */
static bool plan_differs(struct world *w, struct group *g)
{
    const struct view_record *v = view_current(g);
    return g->phase == GROUP_NORMAL && g->solved &&
           (ring_differs(v, g->solution) ||
            (v->edges == 0 && algorithm_choose(w, v, g->solution, v->plan.algorithm) != v->plan.algorithm));
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
    memcpy(next->ring, g->solution, next->members * sizeof *next->ring);
    if (next->edges == 0) {
        next->plan.algorithm = algorithm_choose(w, next, next->ring, next->plan.algorithm);
    }
    g->in_batch = true;
    return true;
}

static void finish(struct world *w)
{
    bool any = false;
    for (uint32_t i = 0; i < w->group_room; i++) {
        struct group *g = &w->groups[i];
        g->in_batch = false;
        bool better = plan_differs(w, g);
        if (better && !view_known_to_all(w, g)) {
            return; /* M5: heartbeats will soon say that the view arrived */
        }
        any = any || better;
    }
    for (uint32_t i = 0; i < w->group_room && any; i++) {
        struct group *g = &w->groups[i];
        bool better = plan_differs(w, g);
        if (better && !propose_ring(w, g)) {
            optimise_cancel(w, "a member cannot be linked");
            return;
        }
    }
    admit_fix_sizes(w);
    if (any) {
        world_move(w, PHASE_OPTIMISE, &w->optimise.phase, OPTIMISE_PERSISTING, 0, 0, "rings decided");
        w->optimise.persist = view_persist(w, NULL); /* M4 */
    } else {
        world_move(w, PHASE_OPTIMISE, &w->optimise.phase, OPTIMISE_IDLE, 0, 0, "no better ring");
        admit_publish(w, VOTE_OPTIMISE);
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
        if (o->waiting == 0 && ++o->round < o->rounds) {
            start_round(w);
            w->changed = true;
        } else if (o->waiting == 0) {
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
    if (o->phase != OPTIMISE_PROBING || ms->round != o->first_round + o->round || mb->probing == 0 ||
        mb->probing != ms->to) {
        return; /* of an earlier round, or timed out */
    }
    (void)bandwidth_set(&w->bandwidth, mb->id, ms->to, ms->bits_per_second, (uint64_t)w->common->now); /* full: stays unknown */
    mb->probing = 0;
    o->waiting--;
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
        world_move(w, PHASE_OPTIMISE, &w->optimise.phase, OPTIMISE_IDLE, 0, 0, "published");
        admit_publish(w, VOTE_OPTIMISE);
    }
}

void optimise_tick(struct world *w)
{
    if (w->optimise.phase == OPTIMISE_PROBING && w->common->now >= w->optimise.deadline) {
        forget_probes(w); /* what did not come stays unknown */
    }
}
