/* probe_rounds.c - edge colouring by alternating paths (Koenig 1916).
 *
 * Its one idea: an edge takes a round in which both its ends are free; if there is none, a round `a` free at the sender
 * and a round `b` free at the receiver are exchanged along the path of a- and b-edges that starts at the receiver.  In
 * a bipartite graph that path cannot end at the sender, so `a` is then free at both.
 * Invariant: after each edge the colouring is proper and complete for the edges so far.
 * SPDX-License-Identifier: MIT */
#include "topology/probe_rounds.h"

#include <string.h>

/* Greatest number of edges at one sender or one receiver, counted in two arrays of the storage. */
static bool rounds_needed(struct probe_rounds *p, const struct bandwidth_edge *edges, size_t edge_count,
                          uint16_t *degree)
{
    size_t most = 0;
    memset(degree, 0, 2 * p->n * sizeof *degree);
    for (size_t e = 0; e < edge_count; e++) {
        size_t from = edges[e].from, to = edges[e].to;
        if (from >= p->n || to >= p->n || from == to) {
            return false;
        }
        size_t out = ++degree[from], in = ++degree[p->n + to];
        most = out > most ? out : most;
        most = in > most ? in : most;
        if (most >= p->n) {
            return false; /* some edge is there twice, and the tables have no room for it */
        }
    }
    p->rounds = most;
    return true;
}

static size_t round_free(const uint16_t *row, size_t rounds)
{
    size_t r = 0;
    while (r < rounds && row[r] != PROBE_ROUNDS_NONE) {
        r++;
    }
    return r;
}

/* Frees round `a` at receiver `to`, where `b` is free, by exchanging a and b along the path from there. */
static void rounds_exchange(struct probe_rounds *p, size_t to, size_t a, size_t b)
{
    size_t receiver = to;
    uint16_t sender = p->from[receiver * p->rounds + a];
    p->from[receiver * p->rounds + a] = PROBE_ROUNDS_NONE;
    while (sender != PROBE_ROUNDS_NONE) { /* the edge sender -> receiver moves from a to b */
        uint16_t *out = &p->to[(size_t)sender * p->rounds];
        uint16_t next = out[b];
        p->from[receiver * p->rounds + b] = sender;
        out[b] = (uint16_t)receiver;
        out[a] = PROBE_ROUNDS_NONE;
        if (next == PROBE_ROUNDS_NONE) {
            return;
        }
        uint16_t *in = &p->from[(size_t)next * p->rounds]; /* sender -> next moves from b to a */
        uint16_t follower = in[a];
        in[a] = sender;
        in[b] = PROBE_ROUNDS_NONE;
        out[a] = next;
        sender = follower;
        receiver = next;
    }
}

static void rounds_add(struct probe_rounds *p, size_t from, size_t to)
{
    uint16_t *out = &p->to[from * p->rounds], *in = &p->from[to * p->rounds];
    size_t r = (to + p->n - from - 1) % p->n % p->rounds; /* fits at once when all edges are missing */
    size_t tried = 0;
    while (tried < p->rounds && (out[r] != PROBE_ROUNDS_NONE || in[r] != PROBE_ROUNDS_NONE)) {
        r = r + 1 == p->rounds ? 0 : r + 1;
        tried++;
    }
    if (tried == p->rounds) {
        r = round_free(out, p->rounds); /* both exist: neither end has more than `rounds` edges */
        rounds_exchange(p, to, r, round_free(in, p->rounds));
    }
    out[r] = (uint16_t)to;
    in[r] = (uint16_t)from;
}

bool probe_rounds_init(struct probe_rounds *p, size_t n, const struct bandwidth_edge *edges, size_t edge_count,
                       uint16_t *storage)
{
    *p = (struct probe_rounds){.n = n, .to = storage};
    if (n > PROBE_ROUNDS_PEERS_MAX || !rounds_needed(p, edges, edge_count, storage)) {
        return false;
    }
    p->from = storage + n * p->rounds;
    memset(storage, 0xFF, 2 * n * p->rounds * sizeof *storage);
    for (size_t e = 0; e < edge_count; e++) {
        rounds_add(p, edges[e].from, edges[e].to);
    }
    return true;
}

uint16_t probe_rounds_to(const struct probe_rounds *p, size_t round, size_t sender)
{
    return p->to[sender * p->rounds + round];
}

uint16_t probe_rounds_from(const struct probe_rounds *p, size_t round, size_t receiver)
{
    return p->from[receiver * p->rounds + round];
}
