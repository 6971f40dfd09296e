/* tree_set.h - the trees that a view's large sums go along, with the part of the buffer that each one carries.
 *
 * One idea: a slice of the buffer is summed up its tree to the root, and the sum goes down the same tree.  A star is the direct exchange's
 * share of one owner; stars of stars are hierarchical; so one form holds them all.
 * Invariant of a valid set: shares are above 0 and add up to TREE_SET_WHOLE; each tree spans all members and has one root.
 * SPDX-License-Identifier: MIT */
#ifndef PCCL_TOPOLOGY_TREE_SET_H
#define PCCL_TOPOLOGY_TREE_SET_H

#include <stdbool.h>
#include <stdint.h>

enum {
    TREE_SET_MOST = 32,          /* trees of one set */
    TREE_SET_MEMBERS = 256,      /* members of a view that has trees; larger worlds have none */
    TREE_SET_WHOLE = 1 << 16,    /* the whole buffer, in units of a share */
};

struct tree_set {
    uint32_t members;            /* of the view, by rank; 0: there are no trees */
    uint32_t count;
    uint32_t share[TREE_SET_MOST];
    uint16_t *parent;            /* owned by whoever made the set: count rows of `members` ranks; a root is its own parent */
};

/* Whether the invariant holds; cycles and ranks beyond the members are found. */
bool tree_set_valid(const struct tree_set *s);
/* The rank of that tree's root; the set is valid. */
uint32_t tree_set_root(const struct tree_set *s, uint32_t tree);

#endif
