/* probe_rounds.h - which edges are probed at the same time.
 *
 * Its one idea: in one round a peer sends at most one probe and receives at most one, so links that are full duplex do
 * not disturb each other; that is an edge colouring of the bipartite graph senders x receivers, and Koenig's theorem
 * gives as many rounds as the busiest peer has probes to send, or to receive, and never more (n - 1 when nothing is
 * known).
 * Invariant: to[from][round] == to  <=>  from[to][round] == from.
 * SPDX-License-Identifier: MIT */
#ifndef PCCL_TOPOLOGY_PROBE_ROUNDS_H
#define PCCL_TOPOLOGY_PROBE_ROUNDS_H

#include "topology/bandwidth.h"

enum { PROBE_ROUNDS_PEERS_MAX = 1024, PROBE_ROUNDS_NONE = 0xFFFF };

struct probe_rounds {
    size_t n;       /* peers */
    size_t rounds;  /* as few as possible */
    uint16_t *to;   /* borrowed storage, [sender][round]: receiver or NONE */
    uint16_t *from; /* borrowed storage, [receiver][round]: sender or NONE */
};

/* uint16_t that the storage of _init must have, whatever the edges are. */
#define PROBE_ROUNDS_ROOM(n) (2 * (size_t)(n) * (size_t)(n))

/* Schedules each of the edges once.  They must differ, as those of bandwidth_missing do.  False if n is over the limit,
 * an edge is out of range or loops, or a peer has n of them. */
bool probe_rounds_init(struct probe_rounds *p, size_t n, const struct bandwidth_edge *edges, size_t edge_count,
                       uint16_t *storage);

/* Whom `sender` probes in `round`; PROBE_ROUNDS_NONE: nobody. */
uint16_t probe_rounds_to(const struct probe_rounds *p, size_t round, size_t sender);

/* Who probes `receiver` in `round`; PROBE_ROUNDS_NONE: nobody. */
uint16_t probe_rounds_from(const struct probe_rounds *p, size_t round, size_t receiver);

#endif
