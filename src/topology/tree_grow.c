/* tree_grow.c - Prim's minimum spanning tree, and the cheapest star of stars.
 *
 * One idea: members that cannot be dialled are hung onto the tree of the others, each at its cheapest place.
 * SPDX-License-Identifier: MIT */
#include "topology/tree_grow.h"

#include <string.h>

struct scratch {
    double *best;   /* [n]: the price of the cheapest pair that ends at this member */
    double *inside; /* [n]: the price of a star around this member in its site */
    double *least;  /* [sites or n]: the price of the best member of a site */
    uint16_t *from; /* [n]: the other end of `best` */
    uint16_t *pick; /* [sites or n]: the best member of a site */
    bool *in_tree;  /* [n] */
};

static size_t groups(size_t n, size_t sites)
{
    return sites > n ? sites : n;
}

size_t tree_grow_room(size_t n, size_t sites)
{
    return (8 * (2 * n + groups(n, sites)) + 2 * (n + groups(n, sites)) + n + 7) / 8 * 8;
}

static struct scratch scratch_of(const struct network *net, void *memory)
{
    struct scratch s;
    size_t n = net->n, all = groups(n, net->sites);
    s.best = memory;
    s.inside = s.best + n;
    s.least = s.inside + n;
    s.from = (uint16_t *)(void *)(s.least + all);
    s.pick = s.from + n;
    s.in_tree = (bool *)(void *)(s.pick + all);
    return s;
}

static size_t first_hub(const struct network *net)
{
    size_t i = 0;
    while (i < net->n && network_leaf(net, i)) {
        i++;
    }
    return i;
}

/* The cheapest pair of each member not in the tree is renewed by the pairs of `added`. */
static void prim_add(const struct network *net, const double *price, struct scratch *s, size_t added)
{
    const double *row = price + added * net->n;
    s->in_tree[added] = true;
    for (size_t i = 0; i < net->n; i++) {
        if (!s->in_tree[i] && row[i] < s->best[i]) {
            s->best[i] = row[i];
            s->from[i] = (uint16_t)added;
        }
    }
}

static double grow_any(const struct network *net, const double *price, uint16_t *parent, struct scratch *s, size_t root)
{
    double sum = 0;
    for (size_t i = 0; i < net->n; i++) {
        s->best[i] = __builtin_inf();
    }
    memset(s->in_tree, 0, net->n * sizeof *s->in_tree);
    parent[root] = (uint16_t)root;
    prim_add(net, price, s, root);
    for (;;) { /* leaves come last: nothing may hang on them */
        size_t next = net->n;
        for (size_t i = 0; i < net->n; i++) {
            if (!s->in_tree[i] && !network_leaf(net, i) && (next == net->n || s->best[i] < s->best[next])) {
                next = i;
            }
        }
        if (next == net->n) {
            break;
        }
        sum += s->best[next];
        if (!(sum < __builtin_inf())) {
            return sum;
        }
        parent[next] = s->from[next];
        prim_add(net, price, s, next);
    }
    for (size_t i = 0; i < net->n; i++) {
        if (!s->in_tree[i]) {
            sum += s->best[i];
            parent[i] = s->from[i];
        }
    }
    return sum;
}

static size_t group_of(const struct network *net, size_t i)
{
    return net->site == NULL ? i : net->site[i];
}

/* For each site its best member, if `hub` is the middle of the star of sites; returns the whole price. */
static double stars_around(const struct network *net, const double *price, struct scratch *s, size_t hub)
{
    size_t all = net->site == NULL ? net->n : net->sites;
    for (size_t g = 0; g < all; g++) {
        s->least[g] = __builtin_inf();
        s->pick[g] = UINT16_MAX;
    }
    for (size_t i = 0; i < net->n; i++) {
        size_t g = group_of(net, i);
        double whole = s->inside[i] + (i == hub ? 0 : price[hub * net->n + i]);
        if ((g != group_of(net, hub) || i == hub) && whole < s->least[g]) {
            s->least[g] = whole;
            s->pick[g] = (uint16_t)i;
        }
    }
    double sum = 0;
    for (size_t i = 0; i < net->n; i++) { /* an empty site has no member that asks for it */
        size_t g = group_of(net, i);
        if (s->pick[g] == i) {
            sum += s->least[g];
        } else if (s->pick[g] == UINT16_MAX) {
            return __builtin_inf();
        }
    }
    return sum;
}

static double grow_sites(const struct network *net, const double *price, uint16_t *parent, struct scratch *s)
{
    size_t n = net->n, best_hub = n;
    double best = __builtin_inf();
    for (size_t i = 0; i < n; i++) {
        s->inside[i] = 0;
        for (size_t j = 0; j < n; j++) {
            if (j != i && network_together(net, i, j)) {
                s->inside[i] += network_leaf(net, i) ? __builtin_inf() : price[i * n + j];
            }
        }
    }
    for (size_t hub = 0; hub < n; hub++) {
        double sum = network_leaf(net, hub) ? __builtin_inf() : stars_around(net, price, s, hub);
        if (sum < best) {
            best = sum;
            best_hub = hub;
        }
    }
    if (best_hub == n) {
        return best;
    }
    (void)stars_around(net, price, s, best_hub);
    for (size_t i = 0; i < n; i++) {
        size_t middle = s->pick[group_of(net, i)];
        parent[i] = (uint16_t)(middle == i ? best_hub : middle);
    }
    return best;
}

double tree_grow(const struct network *net, enum tree_shape shape, const double *price, uint16_t *parent_out,
                 void *scratch)
{
    struct scratch s = scratch_of(net, scratch);
    size_t root = first_hub(net);
    if (net->n == 1) {
        parent_out[0] = 0;
        return 0;
    }
    if (root == net->n) {
        return __builtin_inf();
    }
    if (shape == TREE_ANY) {
        return grow_any(net, price, parent_out, &s, root);
    }
    double sum = grow_sites(net, price, parent_out, &s);
    if (sum < __builtin_inf()) {
        tree_turn(parent_out, root);
    }
    return sum;
}

void tree_turn(uint16_t *parent, size_t root)
{
    size_t at = root, below = root;
    for (;;) {
        size_t above = parent[at];
        parent[at] = (uint16_t)below;
        if (above == at) {
            return;
        }
        below = at;
        at = above;
    }
}
