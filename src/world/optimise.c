/* optimise.c - measuring the edges nobody knows yet, and a better ring made of all that is known.
 *
 * All groups are probed in one schedule: in a round a peer sends to at most one and receives from at most one.  Two that probe each other do
 * it one after the other: what queues in one direction delays the acknowledgements of the other, and a stream that begins then grows too
 * slowly.  The search for the
 * ring is done outside (MASTER_SOLVE), so that it never delays a client.
 * Invariant: a member lost on the way cancels the work, not the vote: those who are left start over (R9).
 * SPDX-License-Identifier: MIT */
#include <string.h>

#include "topology/probe_meter.h"
#include "topology/rates.h"
#include "world/world_state.h"

#define OPTIMISE_SURE_NS INT64_C(30000000000) /* a member that doubts all the time costs no more than a probe in that */

static void forget_probes(struct world *w)
{
    w->optimise.waiting = 0;
    for (uint32_t i = 0; i < w->member_room; i++) {
        w->members[i].probing = 0;
        w->members[i].probe_held = false;
        w->members[i].together = 0;
    }
    w->optimise.together = false;
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

/* When probes of this length have been answered, or never will be. */
static int64_t answered_by(const struct world *w, int64_t probe_ns)
{
    return w->common->now + PROBE_METER_LIMIT * probe_ns + w->common->config.register_ns;
}

static bool start_together(struct world *w)
{
    w->optimise.deadline = answered_by(w, probe_together_ns(w));
    return !w->optimise.together_over && probe_together_start(w);
}

static void send_probe(struct world *w, struct member *from)
{
    struct optimise *o = &w->optimise;
    struct msg_probe p = {.round = o->first_round + o->round, .to = from->probing, .duration_ms = (uint32_t)(w->common->config.probe_ns / 1000000)};
    o->deadline = answered_by(w, w->common->config.probe_ns);
    from->probe_held = false;
    put_probe(outbox_frame(w->common->out, FRAME_PROBE, w->run, 0), &p);
    outbox_send(w->common->out, MASTER_SEND, from->conn);
}

static void start_round(struct world *w)
{
    struct optimise *o = &w->optimise;
    o->waiting = 0;
    for (uint32_t i = 0; i < o->count; i++) {
        struct member *from = &w->members[o->slots[i]];
        uint16_t to = probe_rounds_to(&o->schedule, o->round, i);
        from->probing = 0;
        from->probe_held = false;
        if (to == PROBE_ROUNDS_NONE || from->conn == SLOT_NONE) {
            continue;
        }
        bool mutual = probe_rounds_to(&o->schedule, o->round, to) == i && w->members[o->slots[to]].conn != SLOT_NONE;
        from->probing = w->members[o->slots[to]].id;
        from->probe_held = mutual && to < i;
        if (!from->probe_held) {
            send_probe(w, from);
        }
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
    const uint64_t *keys = member_rates_keys(w, w->common->scratch_ids, n);
    size_t found = bandwidth_missing(&w->bandwidth, keys, n, 0, o->edges + edge_count, room);
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
    o->lost = o->together_over = false;
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
    o->round = 0;
    if (edges == 0) {
        if (start_together(w)) {
            world_move(w, PHASE_OPTIMISE, &o->phase, OPTIMISE_PROBING, 0, 0, "links are not known");
        } else {
            solve(w);
        }
        return;
    }
    PCCL_ASSERT(probe_rounds_init(&o->schedule, o->count, o->edges, edges, o->storage));
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
           (ring_differs(v, g->solution) || view_trees_differ(w, g) ||
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
        } else if (o->waiting == 0 && !o->together && start_together(w)) {
            w->changed = true;
        } else if (o->waiting == 0) {
            if (o->together) {
                probe_together_end(w);
            }
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

static void keep(struct world *w, struct member *from, struct member *to, const struct msg_measured *ms)
{
    if (bandwidth_set(&w->bandwidth, from->rates_key, to->rates_key, ms->bits_per_second, (uint64_t)w->common->now)) { /* full: stays unknown */
        (void)bandwidth_set_way(&w->bandwidth, from->rates_key, to->rates_key, ms->rtt_us, ms->loss_ppm);
        from->rated = to->rated = true;
    }
}

/* The edge is measured again with the next vote, and what its ends carry in all.  What was measured a moment ago is not doubted. */
static void doubt(struct world *w, const struct member *mb, const struct msg_measured *ms)
{
    const struct member *to = member_find(w, ms->to);
    const struct bandwidth_entry *e = to != NULL ? bandwidth_find(&w->bandwidth, mb->rates_key, to->rates_key) : NULL;
    if (e != NULL && w->common->now - (int64_t)e->seen_ns >= OPTIMISE_SURE_NS && bandwidth_doubt(&w->bandwidth, e->from, e->to)) {
        (void)bandwidth_doubt(&w->bandwidth, mb->rates_key, RATES_ALL);
        (void)bandwidth_doubt(&w->bandwidth, RATES_ALL, to->rates_key);
    }
}

void optimise_measured(struct world *w, struct member *mb, const struct msg_measured *ms)
{
    struct optimise *o = &w->optimise;
    if (ms->round == MEASURED_DOUBT) {
        doubt(w, mb, ms);
        return;
    }
    if (o->phase != OPTIMISE_PROBING || ms->round != o->first_round + o->round) {
        return; /* of an earlier round */
    }
    if (o->together) {
        o->waiting -= probe_together_measured(w, mb, ms);
        return;
    }
    if (mb->probing == 0 || mb->probing != ms->to) {
        return; /* timed out */
    }
    mb->probing = 0;
    o->waiting--;
    struct member *other = member_find(w, ms->to);
    if (other == NULL) {
        return;
    }
    keep(w, mb, other, ms);
    if (!other->probe_held || other->probing != mb->id) {
        return;
    }
    if (other->conn != SLOT_NONE) {
        send_probe(w, other);
    } else { /* away for a while: its edge stays unknown */
        other->probing = 0;
        other->probe_held = false;
        o->waiting--;
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
        world_move(w, PHASE_OPTIMISE, &w->optimise.phase, OPTIMISE_IDLE, 0, 0, "published");
        admit_publish(w, VOTE_OPTIMISE);
    }
}

void optimise_tick(struct world *w)
{
    if (w->optimise.phase == OPTIMISE_PROBING && w->common->now >= w->optimise.deadline) {
        if (w->optimise.together) {
            probe_together_end(w); /* of groups that have answered */
        }
        forget_probes(w); /* what did not come stays unknown */
    }
}
