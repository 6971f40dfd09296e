/* tree_set.c - whether a set of trees can be followed.
 * SPDX-License-Identifier: MIT */
#include "topology/tree_set.h"

/* Each member reaches the root in fewer steps than there are members, and there is one root. */
static bool spans(const uint16_t *parent, uint32_t members)
{
    uint32_t roots = 0;
    for (uint32_t r = 0; r < members; r++) {
        uint32_t at = r;
        for (uint32_t step = 0; parent[at] < members && parent[at] != at && step < members; step++) {
            at = parent[at];
        }
        if (parent[at] != at) {
            return false;
        }
        roots += parent[r] == r;
    }
    return roots == 1;
}

bool tree_set_valid(const struct tree_set *s)
{
    uint64_t sum = 0;
    if (s->members == 0 || s->members > TREE_SET_MEMBERS || s->count == 0 || s->count > TREE_SET_MOST) {
        return false;
    }
    for (uint32_t t = 0; t < s->count; t++) {
        if (s->share[t] == 0 || !spans(s->parent + (uint64_t)t * s->members, s->members)) {
            return false;
        }
        sum += s->share[t];
    }
    return sum == TREE_SET_WHOLE;
}

uint32_t tree_set_root(const struct tree_set *s, uint32_t tree)
{
    const uint16_t *parent = s->parent + (uint64_t)tree * s->members;
    uint32_t root = 0;
    while (parent[root] != root) {
        root++;
    }
    return root;
}
