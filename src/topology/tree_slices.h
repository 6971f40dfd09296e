/* tree_slices.h - a packing of trees by multiplicative weights (Garg and Koenemann's idea): one slice after the other.
 *
 * One idea: each slice of the buffer takes the tree that is cheapest at the prices of the moment.  The price of a
 * resource grows exponentially with how full it is beside the fullest one.  64 slices reach 93 to 100 % of the best
 * packing of 9 members, 75 % of that of 64.
 * Invariant: equal networks give equal trees on every machine; the exponential is a table made by multiplication.
 * SPDX-License-Identifier: MIT */
#ifndef PCCL_TOPOLOGY_TREE_SLICES_H
#define PCCL_TOPOLOGY_TREE_SLICES_H

#include "topology/tree_grow.h"

enum { TREE_SLICES_STEPS = 1024 }; /* of the table */

struct tree_slices {
    const struct network *net; /* borrowed */
    enum tree_shape shape;
    uint32_t count;                              /* slices so far */
    double fullest;                              /* greatest load / rate, of loads in slices */
    double *price;                               /* borrowed, [n][n] */
    double *pair_load, *member_load, *site_load; /* borrowed, [n][n], [n], [sites], in slices */
    void *grow;                                  /* borrowed scratch memory */
    double power[TREE_SLICES_STEPS + 1];         /* exp(12 k / STEPS) */
};

/* Bytes of storage, aligned to 8. */
size_t tree_slices_room(size_t n, size_t sites);

/* The network is valid and stays unchanged. */
void tree_slices_init(struct tree_slices *s, const struct network *net, enum tree_shape shape, void *storage);

/* Writes the tree of the next slice; false if no tree reaches all members. */
bool tree_slices_next(struct tree_slices *s, uint16_t *parent_out);

/* The time per bit of the buffer if all slices so far are equal parts of it. */
double tree_slices_s_per_bit(const struct tree_slices *s);

#endif
