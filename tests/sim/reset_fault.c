/* reset_fault.c - all connections of a process closed at once, and how others find out whether it lives.
 *
 * One idea: to its peers a process whose connections were all reset looks like one that has ended, until they dial it: the
 * ended one refuses.  In a fifth of the clusters resets are all that goes wrong, and then nobody may lose its place.
 * Invariant: a function of the seed alone; other seeds draw nothing here.
 * SPDX-License-Identifier: MIT */
#include "reset_fault.h"

enum { RESET_SEEDS = 6, RESET_MOST = 3, KNOCK_NS = 50000000 };

void reset_draw(struct cluster *cl)
{
    struct rng r = {.state = mix64(cl->opt.seed, 103)};
    bool alone = cl->opt.faults == 0;
    if (rng_below(&r, alone ? 2 : RESET_SEEDS) != 0) {
        return;
    }
    uint32_t resets = 1 + (uint32_t)rng_below(&r, RESET_MOST);
    for (uint32_t i = 0; i < resets && cl->fault_count < FAULTS_MAX; i++) {
        const struct fault f = {.kind = FAULT_RESET, .node = (uint16_t)rng_below(&r, cl->opt.peers), .armed = rng_below(&r, 4) != 0,
                                .phase = (enum phase)rng_below(&r, PHASE_COUNT)};
        faults_add(cl, &f, &r);
    }
}

void reset_fire(struct cluster *cl, uint16_t node)
{
    for (uint32_t i = 0; i < cl->channel_count; i++) {
        const struct channel *c = &cl->channels[i];
        if (c->open && (process_same(cl, c->end[0].node, node) || process_same(cl, c->end[1].node, node))) {
            channel_break(cl, i);
        }
    }
}

/* The end is heard, the master is dialled, and REGISTER is there, before the master gives the place away: if nothing resets it again meanwhile. */
static bool in_time(const struct cluster *cl)
{
    int64_t hop_ns = cl->opt.latency_ns * (cl->opt.places ? 1 + PLACES_APART : 1) + cl->opt.jitter_ns;
    return 5 * hop_ns + CLOCK_S / 5 < cl->master.config.redial_ns;
}

void reset_touch(struct cluster *cl, uint16_t node)
{
    for (uint32_t i = 0; i < cl->node_count; i++) {
        uint32_t world = cl->nodes[i].group / CLUSTER_LABELS;
        if (process_same(cl, node, i)) {
            int64_t *last = &cl->nodes[i].reset_at;
            bool again = *last != 0 && cl->now - *last < cl->master.config.redial_ns; /* the first one's time runs on */
            *last = cl->now;
            cl->shaken[world] = true;
            cl->touched[world] = cl->touched[world] || again || !in_time(cl);
        }
    }
}

bool reset_keeps(const struct cluster *cl, const struct node *n)
{
    return !cl->touched[n->group / CLUSTER_LABELS];
}

static bool refuses(const struct cluster *cl, const struct node *n, const struct link *l)
{
    uint16_t to = process_at(cl, n, &l->info.address[0]);
    return to < cl->node_count && !cl->nodes[to].alive && !cl->nodes[to].gone_host && !cl->cut[n->index][to] && !cl->cut[to][n->index];
}

static bool asks(const struct cluster *cl, const struct link *l)
{
    return l->wanted && !l->spare && l->state != LINK_UP && l->lost_at != 0 && cl->now - l->lost_at < CLOCK_S;
}

static void tell(struct cluster *cl, struct node *n, const struct link *l)
{
    node_step(cl, n, &(struct session_event){.kind = SESSION_LINK_REFUSED, .peer = l->peer});
}

void reset_failed(struct cluster *cl, struct node *n, struct link *l)
{
    if (asks(cl, l) && refuses(cl, n, l)) {
        tell(cl, n, l);
    }
}

void reset_lost(struct cluster *cl, struct node *n, struct link *l)
{
    l->lost_at = cl->now;
    if (!l->dial) { /* else the dial itself finds out */
        cluster_post(cl, 2 * cl->opt.latency_ns, EVENT_KNOCK, n->index, 0, l->peer, (uint64_t)cl->now);
    }
}

void reset_event(struct cluster *cl, struct node *n, const struct event *e)
{
    struct link *l = line_find(n, e->b);
    if (l == NULL || l->lost_at != (int64_t)e->c || !asks(cl, l)) {
        return;
    }
    cluster_post(cl, KNOCK_NS, EVENT_KNOCK, n->index, 0, e->b, e->c);
    if (refuses(cl, n, l)) {
        tell(cl, n, l);
    }
}
