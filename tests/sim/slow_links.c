/* slow_links.c - links on which bytes take time: all of a run's, or one pair's for a while.
 *
 * One idea: a byte leaves when the one before it has, in pieces as small as packets, so that a long frame is seen to move.  What is
 * under way when a rate changes goes on at the new one.
 * Invariant: no direction between two processes carries more than its rate.
 * SPDX-License-Identifier: MIT */
#include "sim_cluster.h"

enum { SLOW_PIECES = 16 /* a second */ };

uint32_t slow_rate(const struct cluster *cl, uint16_t from, uint16_t to)
{
    if (from >= CLUSTER_NODES || to >= CLUSTER_NODES) {
        return 0; /* the master's messages are small */
    }
    uint32_t of_pair = cl->slow[from][to], of_all = cl->opt.rate;
    return of_pair == 0 || (of_all != 0 && of_all < of_pair) ? of_all : of_pair;
}

uint32_t slow_piece(uint32_t rate, uint32_t size)
{
    uint32_t most = 1 + rate / SLOW_PIECES;
    return rate != 0 && size > most ? most : size;
}

int64_t slow_ns(uint32_t rate, uint32_t size)
{
    return rate == 0 ? 0 : (int64_t)size * CLOCK_S / rate;
}

void slow_set(struct cluster *cl, const struct fault *f, bool on)
{
    uint32_t rate = on ? 1000 + f->other % 8 * 1000u : 0;
    for (uint16_t i = 0; i < cl->node_count; i++) {
        for (uint16_t k = 0; process_same(cl, i, f->node) && k < cl->node_count; k++) {
            if (process_same(cl, k, f->other)) {
                cl->slow[i][k] = cl->slow[k][i] = rate;
                channel_repace(cl, i, k);
                channel_repace(cl, k, i);
            }
        }
    }
}

void slow_end(struct cluster *cl)
{
    for (uint16_t i = 0; i < cl->node_count; i++) {
        for (uint16_t k = 0; k < cl->node_count; k++) {
            if (cl->slow[i][k] != 0) {
                cl->slow[i][k] = 0;
                channel_repace(cl, i, k);
            }
        }
    }
}
