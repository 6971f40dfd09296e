/* tree_packing.c - column generation, the choice of the few trees that are kept, and their shares.
 *
 * One idea: rows of the programme are members, sites, and those pairs that some tree uses.  A pair that no tree uses
 * limits nothing.  Entries are load / rate / the time of the first packing, so that the programme is of the order of 1.
 * SPDX-License-Identifier: MIT */
#include "topology/tree_packing.h"

#include <string.h>

#include "topology/packing.h"
#include "topology/tree_slices.h"

enum {
    SLICES = 64,         /* that the programme begins with */
    ROWS_PAIRS = 8192,   /* pairs that may have a row */
    NO_ROW = UINT32_MAX,
    SHARE_LEAST = 128,   /* units: a smaller slice costs more than it carries */
    /* Cells of the programme that may be changed: some 25 ms in the search, then some each time that trees go. */
    WORK_SEARCH = 25000000,
    WORK_FEW = 4000000,
    LARGE = 64, /* members above which four times the work is allowed */
};

static const double good_enough = 1e-6; /* how much cheaper than the time of the set the cheapest tree may be */

struct search {
    const struct network *net;
    enum tree_shape shape;
    double *member_cost, *site_cost; /* 1 / rate in units of the programme; 0: no limit */
    double *row_price, *pair_price;
    double *z;
    double scale_s; /* the unit of time */
    double bound_s;
    uint32_t *pair_row, *degree;
    uint16_t *trees; /* [columns_most + 1][n]; the last one is the tree that is being made */
    bool *taken;     /* [columns_most] */
    struct packing_entry *entries;
    void *grow, *lp_storage;
    struct packing lp;
};

static size_t columns_for(size_t n)
{
    return n <= 32 ? 256 : n <= 64 ? 160 : 96;
}

static size_t rows_for(size_t n, size_t sites)
{
    size_t pairs = n * (n - 1) / 2;
    return n + sites + (pairs < ROWS_PAIRS ? pairs : ROWS_PAIRS);
}

static uint64_t work_for(size_t n, uint64_t work)
{
    return n > LARGE ? 4 * work : work;
}

static size_t eight(size_t bytes)
{
    return (bytes + 7) / 8 * 8;
}

/* Parts of the storage, one after the other. */
static void *part(char **at, size_t bytes)
{
    char *here = *at;
    *at += eight(bytes);
    return here;
}

static size_t search_room(size_t n, size_t sites)
{
    size_t columns = columns_for(n), rows = rows_for(n, sites);
    return 8 * (n + sites + rows + n * n + columns) + eight(4 * (n * (n - 1) / 2)) + eight(4 * (n + sites)) +
           eight(2 * (columns + 1) * n) + eight(columns) + sizeof(struct packing_entry) * (2 * n + sites) +
           tree_grow_room(n, sites) + packing_room(rows, columns);
}

static size_t most(size_t a, size_t b)
{
    return a > b ? a : b;
}

size_t tree_packing_room(size_t n, size_t sites)
{
    return search_room(n, sites) + most(tree_slices_room(n, sites), 8 * tree_load_room(n, sites));
}

static double cost_of(const struct search *s, double bps)
{
    return 1 / (bps * s->scale_s); /* 0 for an infinite rate */
}

static void search_init(struct search *s, const struct network *net, enum tree_shape shape, char *at)
{
    size_t n = net->n, sites = net->sites, columns = columns_for(n), rows = rows_for(n, sites);
    *s = (struct search){.net = net, .shape = shape};
    s->member_cost = part(&at, 8 * n);
    s->site_cost = part(&at, 8 * sites);
    s->row_price = part(&at, 8 * rows);
    s->pair_price = part(&at, 8 * n * n);
    s->z = part(&at, 8 * columns);
    s->pair_row = part(&at, 4 * (n * (n - 1) / 2));
    s->degree = part(&at, 4 * (n + sites));
    s->trees = part(&at, 2 * (columns + 1) * n);
    s->taken = part(&at, columns);
    s->entries = part(&at, sizeof(struct packing_entry) * (2 * n + sites));
    s->grow = part(&at, tree_grow_room(n, sites));
    s->lp_storage = at;
    memset(s->taken, 0, columns);
}

static void costs_fill(struct search *s, double scale_s)
{
    s->scale_s = scale_s;
    for (size_t i = 0; i < s->net->n; i++) {
        s->member_cost[i] = cost_of(s, network_member_bps(s->net, i));
    }
    for (size_t g = 0; s->net->site != NULL && g < s->net->sites; g++) {
        s->site_cost[g] = cost_of(s, network_site_bps(s->net, g));
    }
}

static uint16_t *tree_at(const struct search *s, size_t slot)
{
    return s->trees + slot * s->net->n;
}

static uint32_t *pair_row(const struct search *s, size_t i, size_t j)
{
    return i > j ? &s->pair_row[i * (i - 1) / 2 + j] : &s->pair_row[j * (j - 1) / 2 + i];
}

/* The column of a tree; 0 entries and *ok false if its pairs do not all get a row. */
static size_t entries_fill(struct search *s, const uint16_t *parent, bool *ok)
{
    const struct network *net = s->net;
    size_t n = net->n, count = 0;
    *ok = true;
    memset(s->degree, 0, (n + net->sites) * sizeof *s->degree);
    for (size_t i = 0; i < n; i++) {
        size_t up = parent[i];
        if (up == i) {
            continue;
        }
        s->degree[i]++;
        s->degree[up]++;
        if (net->site != NULL && net->site[i] != net->site[up]) {
            s->degree[n + net->site[i]]++;
            s->degree[n + net->site[up]]++;
        }
        double cost = cost_of(s, network_pair_bps(net, i, up));
        uint32_t *row = pair_row(s, i, up);
        if (!(cost > 0)) {
            continue;
        }
        if (*row == NO_ROW) {
            if (!packing_add_row(&s->lp)) {
                *ok = false;
                return 0;
            }
            *row = (uint32_t)s->lp.rows - 1;
        }
        s->entries[count++] = (struct packing_entry){*row, cost};
    }
    for (size_t r = 0; r < n + net->sites; r++) {
        double cost = r < n ? s->member_cost[r] : s->site_cost[r - n];
        if (s->degree[r] > 0 && cost > 0) {
            s->entries[count++] = (struct packing_entry){(uint32_t)r, s->degree[r] * cost};
        }
    }
    return count;
}

static bool tree_enter(struct search *s, size_t slot)
{
    bool ok;
    size_t count = entries_fill(s, tree_at(s, slot), &ok);
    return ok && packing_add_column(&s->lp, (uint32_t)slot, s->entries, count);
}

/* Keeps the tree in the last place, unless it is there already; the slot is `columns` if not. */
static size_t tree_keep(struct search *s)
{
    size_t bytes = 2 * s->net->n, columns = columns_for(s->net->n), empty = columns;
    const uint16_t *made = tree_at(s, columns);
    for (size_t slot = columns; slot-- > 0;) {
        if (!s->taken[slot]) {
            empty = slot;
        } else if (memcmp(tree_at(s, slot), made, bytes) == 0) {
            return columns;
        }
    }
    if (empty != columns) {
        memcpy(tree_at(s, empty), made, bytes);
        s->taken[empty] = true;
    }
    return empty;
}

static bool tree_add(struct search *s)
{
    size_t slot = tree_keep(s);
    if (slot == columns_for(s->net->n)) {
        return false;
    }
    s->taken[slot] = tree_enter(s, slot);
    return s->taken[slot];
}

/* A programme of the trees that are kept, not solved. */
static void programme_begin(struct search *s)
{
    size_t n = s->net->n, columns = columns_for(n);
    packing_init(&s->lp, rows_for(n, s->net->sites), columns, s->lp_storage);
    for (size_t i = 0; i < n + s->net->sites; i++) {
        (void)packing_add_row(&s->lp);
    }
    for (size_t k = 0; k < n * (n - 1) / 2; k++) {
        s->pair_row[k] = NO_ROW;
    }
    for (size_t slot = 0; slot < columns; slot++) {
        s->taken[slot] = s->taken[slot] && tree_enter(s, slot);
    }
}

static void pair_prices_fill(struct search *s)
{
    const struct network *net = s->net;
    size_t n = net->n;
    for (size_t i = 0; i < n; i++) {
        for (size_t j = 0; j < i; j++) {
            uint32_t row = *pair_row(s, i, j);
            double sum = s->row_price[i] * s->member_cost[i] + s->row_price[j] * s->member_cost[j];
            if (row != NO_ROW && s->row_price[row] > 0) {
                sum += s->row_price[row] * cost_of(s, network_pair_bps(net, i, j));
            }
            if (net->site != NULL && net->site[i] != net->site[j]) {
                sum += s->row_price[n + net->site[i]] * s->site_cost[net->site[i]];
                sum += s->row_price[n + net->site[j]] * s->site_cost[net->site[j]];
            }
            s->pair_price[i * n + j] = s->pair_price[j * n + i] = network_linked(net, i, j) ? sum : __builtin_inf();
        }
    }
    s->lp.work += n * n;
}

/* Makes the cheapest tree at the prices of the solved programme, in the last place; raises the proven bound.  Returns
 * what the tree costs, where the trees of the set cost 1. */
static double tree_price(struct search *s)
{
    double sum = 0;
    packing_prices(&s->lp, s->row_price);
    for (size_t r = 0; r < s->lp.rows; r++) {
        sum += s->row_price[r];
    }
    pair_prices_fill(s);
    double cost = tree_grow(s->net, s->shape, s->pair_price, tree_at(s, columns_for(s->net->n)), s->grow);
    double bound_s = cost / sum * s->scale_s;
    s->bound_s = bound_s > s->bound_s && bound_s < __builtin_inf() ? bound_s : s->bound_s;
    return cost;
}

/* Keeps only that tree; one that nothing limits needs no others. */
static void keep_alone(struct search *s, uint32_t slot)
{
    memset(s->z, 0, columns_for(s->net->n) * sizeof *s->z);
    s->z[slot] = 1;
}

/* Solves the programme over the trees that are there. */
static bool shares_solve(struct search *s, uint64_t limit)
{
    uint32_t unbounded;
    bool best = packing_solve(&s->lp, limit, &unbounded);
    packing_values(&s->lp, s->z, columns_for(s->net->n));
    if (unbounded != UINT32_MAX) {
        keep_alone(s, unbounded);
    }
    return best;
}

static void generate(struct search *s, uint64_t limit)
{
    uint32_t dropped;
    while (shares_solve(s, limit) && tree_price(s) < 1 - good_enough && s->lp.work < limit) {
        if (s->lp.columns == s->lp.columns_most) {
            if (!packing_drop_column(&s->lp, &dropped)) {
                return;
            }
            s->taken[dropped] = false;
        }
        if (!tree_add(s)) {
            return;
        }
    }
}

/* The share of a slot in units, not rounded. */
static double units_of(const struct search *s, size_t slot, double sum)
{
    return s->taken[slot] ? s->z[slot] / sum * TREE_SET_WHOLE : 0;
}

static double values_sum(const struct search *s)
{
    double sum = 0;
    for (size_t slot = 0; slot < columns_for(s->net->n); slot++) {
        sum += s->taken[slot] ? s->z[slot] : 0;
    }
    return sum;
}

static size_t trees_count(const struct search *s)
{
    size_t count = 0;
    for (size_t slot = 0; slot < columns_for(s->net->n); slot++) {
        count += s->taken[slot];
    }
    return count;
}

static size_t smallest(const struct search *s)
{
    size_t least = columns_for(s->net->n);
    for (size_t slot = 0; slot < columns_for(s->net->n); slot++) {
        if (s->taken[slot] && (least == columns_for(s->net->n) || s->z[slot] < s->z[least])) {
            least = slot;
        }
    }
    return least;
}

/* Lets go of the trees without a share, then of the smallest until `keep` are left, then of those with tiny shares.
 * Returns whether a tree with a share went. */
static bool trees_drop(struct search *s, size_t keep)
{
    size_t columns = columns_for(s->net->n);
    double sum = values_sum(s);
    bool gone = false;
    for (size_t slot = 0; slot < columns; slot++) {
        s->taken[slot] = s->taken[slot] && s->z[slot] > 0;
    }
    for (size_t count = trees_count(s); count > 1; count--) {
        size_t least = smallest(s);
        if (count <= keep && (keep > TREE_SET_MOST || units_of(s, least, sum) >= SHARE_LEAST)) {
            break;
        }
        s->taken[least] = false;
        gone = true;
    }
    return gone;
}

/* Fewer and fewer trees, whose shares adapt each time. */
static void few_keep(struct search *s)
{
    size_t keep = trees_count(s);
    do {
        keep = keep > TREE_SET_MOST ? most(TREE_SET_MOST, keep * 3 / 4) : TREE_SET_MOST;
        if (!trees_drop(s, keep) && keep == TREE_SET_MOST) {
            return;
        }
        programme_begin(s);
        (void)shares_solve(s, work_for(s->net->n, WORK_FEW));
    } while (trees_count(s) > 1);
}

/* Cuts the shares to units; the largest comes first. */
static void set_write(const struct search *s, struct tree_set *out)
{
    size_t columns = columns_for(s->net->n), n = s->net->n, order[TREE_SET_MOST];
    double sum = values_sum(s), left_over[TREE_SET_MOST];
    uint32_t whole = 0;
    out->members = (uint32_t)n;
    out->count = 0;
    for (size_t slot = 0; slot < columns; slot++) {
        if (units_of(s, slot, sum) < 1) {
            continue;
        }
        size_t at = out->count++;
        for (; at > 0 && s->z[order[at - 1]] < s->z[slot]; at--) {
            order[at] = order[at - 1];
        }
        order[at] = slot;
    }
    for (uint32_t t = 0; t < out->count; t++) {
        double units = units_of(s, order[t], sum);
        out->share[t] = (uint32_t)units;
        left_over[t] = units - out->share[t];
        whole += out->share[t];
        memcpy(out->parent + t * n, tree_at(s, order[t]), 2 * n);
    }
    for (; whole < TREE_SET_WHOLE; whole++) { /* each gets less than one unit: the largest remainders come first */
        uint32_t best = 0;
        for (uint32_t t = 1; t < out->count; t++) {
            best = left_over[t] > left_over[best] ? t : best;
        }
        out->share[best]++;
        left_over[best] = -1;
    }
}

/* The first trees and the unit of time; false if no tree reaches all members. */
static bool search_begin(struct search *s, const struct network *net, enum tree_shape shape, char *storage)
{
    struct tree_slices slices;
    search_init(s, net, shape, storage);
    tree_slices_init(&slices, net, shape, storage + search_room(net->n, net->sites));
    for (size_t k = 0; k < SLICES; k++) {
        if (!tree_slices_next(&slices, tree_at(s, columns_for(net->n)))) {
            return false;
        }
        (void)tree_keep(s);
    }
    double scale_s = tree_slices_s_per_bit(&slices);
    costs_fill(s, scale_s > 0 ? scale_s : 1);
    programme_begin(s);
    return true;
}

static double larger(double a, double b)
{
    return a > b ? a : b;
}

bool tree_packing_solve(const struct network *net, enum tree_shape shape, void *storage, struct tree_set *out,
                        struct tree_forecast *forecast)
{
    struct search s;
    if (net->n > TREE_SET_MEMBERS || !network_valid(net) || !search_begin(&s, net, shape, storage)) {
        return false;
    }
    generate(&s, work_for(net->n, WORK_SEARCH));
    few_keep(&s);
    set_write(&s, out);
    double *scratch = (double *)(void *)((char *)storage + search_room(net->n, net->sites));
    for (uint32_t t = 0; t < out->count; t++) {
        uint16_t *parent = out->parent + t * net->n;
        tree_turn(parent, tree_centre(net, parent, scratch));
    }
    tree_load(net, out, forecast, scratch);
    forecast->bound_s_per_bit =
        larger(s.bound_s, larger(network_link_bound_s_per_bit(net), network_path_bound_s_per_bit(net)));
    return true;
}
