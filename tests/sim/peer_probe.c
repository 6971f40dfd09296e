/* peer_probe.c - what a peer's probes of edges find, what the other end says of them, and what nobody has asked for.
 *
 * Invariant: a rate is a function of the seed and the edge, but for peers that say nonsense.
 * SPDX-License-Identifier: MIT */
#include "peer_probe.h"

uint64_t probe_bandwidth(const struct cluster *cl, uint16_t from, uint16_t to)
{
    return 1000000 + mix64(mix64(cl->bandwidth_seed, from), to) % 1000000000;
}

void probe_start(struct cluster *cl, struct node *n, const struct action *a)
{
    if (a->value == 0) { /* only the round trip */
        cluster_post(cl, 0, EVENT_MEASURED, n->index, a->slot, a->id, 1);
        return;
    }
    int64_t ns = (int64_t)a->value * CLOCK_MS * (1 + (int64_t)(a->slot % 3)); /* they do not end together */
    n->probes++;
    cluster_post(cl, ns + cluster_delay(cl), EVENT_MEASURED, n->index, a->slot, a->id, 0);
}

/* Two of three pairs are at two sites. */
uint32_t probe_trip_us(const struct cluster *cl, uint32_t a, uint32_t b)
{
    uint64_t drawn = mix64(mix64(cl->bandwidth_seed, a < b ? a : b), a < b ? b : a);
    return drawn % 3 == 0 ? 300 : 40000;
}

static void tell(struct cluster *cl, struct node *n, uint32_t round, uint64_t to, uint64_t bps, bool trip)
{
    struct msg_measured m = {.round = round, .to = to, .bits_per_second = bps};
    m.rtt_us = bps > 0 || trip ? probe_trip_us(cl, n->index, cluster_node_of(cl, to)) : 0;
    if (n->alive) {
        node_step(cl, n, &(struct session_event){.kind = SESSION_MEASURED, .measured = &m});
    }
}

void probe_tell_took(struct cluster *cl, struct node *n)
{
    struct session_info info;
    session_info(n->session, &info);
    uint64_t alike = mix64(mix64(cl->opt.seed, 0x700C), info.view), own = mix64(alike, n->index);
    for (uint32_t kind = 0; kind < TOOK_KINDS && !cl->opt.scripted && alike % 2 == 0; kind++) {
        uint64_t drawn = own % 4 == 0 ? own >> 8 : alike >> 8 * (kind + 1); /* most of them say the same */
        struct msg_took m = {.kind = (uint8_t)kind, .permille = own % 64 == 0 ? UINT16_MAX : (uint16_t)(500 + drawn % 2000), .bytes = drawn, .took_us = own};
        node_step(cl, n, &(struct session_event){.kind = SESSION_TOOK, .view = own % 32 == 1 ? info.view - 1 : info.view, .took = &m});
    }
}

void probe_event(struct cluster *cl, struct node *n, const struct event *e)
{
    if (e->a >= MEASURED_UNASKED) {
        tell(cl, n, e->a, e->b, e->c, false);
        return;
    }
    if (e->c == 1) {
        tell(cl, n, e->a, e->b, 0, mix64(e->a, e->b) % 8 != 0); /* else it is not known */
        return;
    }
    n->probes--;
    uint16_t to = cluster_node_of(cl, e->b);
    bool ok = to != CLUSTER_NOBODY && cl->nodes[to].alive && !cl->cut[n->index][to] && !cl->cut[to][n->index];
    uint64_t bps = ok ? probe_bandwidth(cl, n->index, to) : 0, kind = cl->plain_probes ? 4 : mix64(e->a, n->index) % 16;
    if (ok && kind != 0) { /* else its word is lost */
        cluster_post(cl, cluster_delay(cl), EVENT_MEASURED, to, MEASURED_HEARD | e->a, n->id, kind == 1 ? UINT64_MAX : bps);
    }
    if (ok && kind >= 12) { /* operations show more */
        cluster_post(cl, cluster_delay(cl), EVENT_MEASURED, to, MEASURED_HEARD_AT_WORK, n->id, bps + bps / 4);
        cluster_post(cl, cluster_delay(cl), EVENT_MEASURED, n->index, MEASURED_SENT_AT_WORK, e->b, kind == 12 ? UINT64_MAX : bps + bps / 4);
    }
    tell(cl, n, e->a, e->b, kind == 2 ? UINT64_MAX : bps, false);
    if (kind % 4 == 3) { /* operations miss their prediction */
        tell(cl, n, MEASURED_DOUBT, e->b, bps, false);
    }
}
