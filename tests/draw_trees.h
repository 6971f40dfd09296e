/* draw_trees.h - random sets of trees: any shapes, roots and shares that a valid set may have.
 * SPDX-License-Identifier: MIT */
#ifndef PCCL_TESTS_DRAW_TREES_H
#define PCCL_TESTS_DRAW_TREES_H

#include "core/random.h"
#include "topology/tree_set.h"

/* Each rank joins one that has joined before: the first alone a star, the one before it a chain, any of them a tree. */
static inline void draw_tree(struct rng *rng, uint32_t members, uint16_t *parent)
{
    uint16_t order[TREE_SET_MEMBERS];
    uint64_t shape = rng_below(rng, 4);
    for (uint32_t i = 0; i < members; i++) {
        uint32_t j = (uint32_t)rng_below(rng, i + 1);
        order[i] = order[j];
        order[j] = (uint16_t)i;
    }
    for (uint32_t i = 0; i < members; i++) {
        uint32_t before = i == 0 ? 0 : shape == 0 ? 0 : shape == 1 ? i - 1 : (uint32_t)rng_below(rng, i);
        parent[order[i]] = order[before];
    }
}

/* `parent`: room for TREE_SET_MOST x members ranks; it becomes the set's. */
static inline void draw_trees(struct rng *rng, uint32_t members, uint32_t most, struct tree_set *set, uint16_t *parent)
{
    uint32_t left = TREE_SET_WHOLE;
    *set = (struct tree_set){.members = members, .count = 1 + (uint32_t)rng_below(rng, most), .parent = parent};
    for (uint32_t t = 0; t < set->count; t++) {
        uint32_t after = set->count - 1 - t, rest = left - after;
        set->share[t] = after == 0 ? left : 1 + (uint32_t)rng_below(rng, rng_below(rng, 3) == 0 ? rest : rest / (after + 1) + 1);
        set->share[t] = set->share[t] > rest ? rest : set->share[t];
        left -= set->share[t];
        draw_tree(rng, members, parent + (uint64_t)t * members);
    }
}

#endif
