/* test_tree_packing.c - packings of trees against all spanning trees tried at once, proven bounds, and known networks.
 *
 * One idea: five members have 125 spanning trees, which the programme takes all together; column generation must find
 * the same time without seeing them all.
 * SPDX-License-Identifier: MIT */
#include "tests/testing.h"

#include "tests/drawn_network.h"
#include "topology/packing.h"
#include "topology/tree_packing.h"
#include "topology/tree_slices.h"

enum { FEW = 5, MANY = 64 };

static struct drawn d;
static uint16_t parent[TREE_SET_MOST * TREE_SET_MEMBERS];
static struct tree_set set = {.parent = parent};
static struct tree_forecast forecast;
static uint64_t lp_storage[65536];

static bool near(double got, double want, double part)
{
    double off = got > want ? got - want : want - got;
    if (!(off <= part * want)) {
        fprintf(stderr, "got %.9f, wanted %.9f\n", got, want);
        return false;
    }
    return true;
}

static bool solve_shape(enum tree_shape shape)
{
    void *storage = malloc(tree_packing_room(d.net.n, d.net.sites));
    bool ok = storage != NULL && tree_packing_solve(&d.net, shape, storage, &set, &forecast);
    free(storage);
    return ok;
}

/* Time per bit of loads counted edge by edge, in each direction by itself. */
static double time_plainly(const struct network *net, const struct tree_set *s)
{
    static double up[MANY], down[MANY], path[MANY * MANY], out[MANY], in[MANY];
    double most = 0;
    memset(up, 0, sizeof up);
    memset(down, 0, sizeof down);
    memset(path, 0, sizeof path);
    memset(out, 0, sizeof out);
    memset(in, 0, sizeof in);
    for (uint32_t t = 0; t < s->count; t++) {
        for (size_t i = 0; i < net->n; i++) {
            size_t p = s->parent[t * net->n + i];
            for (unsigned back = 0; p != i && back < 2; back++) {
                size_t from = back == 0 ? i : p, to = back == 0 ? p : i;
                double share = s->share[t] / 65536.0;
                up[from] += share;
                down[to] += share;
                path[from * net->n + to] += share;
                if (net->site != NULL && net->site[from] != net->site[to]) {
                    out[net->site[from]] += share;
                    in[net->site[to]] += share;
                }
            }
        }
    }
    for (size_t i = 0; i < net->n; i++) {
        most = fmax(most, fmax(up[i] / net->up_bps[i], down[i] / net->down_bps[i]));
        for (size_t j = 0; j < net->n; j++) {
            most = path[i * net->n + j] > 0 ? fmax(most, path[i * net->n + j] / network_path_bps(net, i, j)) : most;
        }
    }
    for (size_t g = 0; net->site != NULL && g < net->sites; g++) {
        most = fmax(most, fmax(out[g] / net->site_up_bps[g], in[g] / net->site_down_bps[g]));
    }
    return most;
}

/* The tree that a sequence of n - 2 numbers stands for (Pruefer 1918), as pairs. */
static void pairs_of(size_t n, size_t code, size_t pairs[][2])
{
    size_t degree[FEW], rest[FEW], count = 0;
    for (size_t i = 0; i < n; i++) {
        degree[i] = 1;
    }
    for (size_t k = 0; k + 2 < n; k++, code /= n) {
        rest[k] = code % n;
        degree[rest[k]]++;
    }
    for (size_t k = 0; k + 2 < n; k++) {
        size_t i = 0;
        while (degree[i] != 1) {
            i++;
        }
        pairs[count][0] = i;
        pairs[count++][1] = rest[k];
        degree[i]--;
        degree[rest[k]]--;
    }
    size_t ends = 0;
    for (size_t i = 0; i < n; i++) {
        if (degree[i] == 1) {
            pairs[count][ends++] = i;
        }
    }
}

/* The least time per bit over all packings of all trees; infinite if there is no tree. */
static double best_of_all_trees(const struct network *net)
{
    size_t n = net->n, all = 1, names = 0;
    struct packing p;
    packing_init(&p, n * n + n + DRAWN_SITES, 128, lp_storage);
    for (size_t i = 0; i < n * n + n + DRAWN_SITES; i++) {
        (void)packing_add_row(&p);
    }
    for (size_t k = 0; k + 2 < n; k++) {
        all *= n;
    }
    for (size_t code = 0; code < all; code++) {
        struct packing_entry entries[FEW * FEW + FEW + DRAWN_SITES];
        double load[FEW * FEW + FEW + DRAWN_SITES] = {0};
        size_t pairs[FEW][2], count = 0, degree[FEW] = {0};
        bool possible = true;
        pairs_of(n, code, pairs);
        for (size_t k = 0; k + 1 < n; k++) {
            size_t i = pairs[k][0], j = pairs[k][1];
            possible = possible && network_linked(net, i, j);
            degree[i]++;
            degree[j]++;
            load[i > j ? i * n + j : j * n + i] += 1 / network_pair_bps(net, i, j);
            load[n * n + i] += 1 / network_member_bps(net, i);
            load[n * n + j] += 1 / network_member_bps(net, j);
            if (net->site != NULL && net->site[i] != net->site[j]) {
                load[n * n + n + net->site[i]] += 1 / network_site_bps(net, net->site[i]);
                load[n * n + n + net->site[j]] += 1 / network_site_bps(net, net->site[j]);
            }
        }
        for (size_t i = 0; i < n; i++) {
            possible = possible && (!network_leaf(net, i) || degree[i] == 1);
        }
        for (uint32_t r = 0; r < n * n + n + DRAWN_SITES; r++) {
            if (load[r] > 0) {
                entries[count++] = (struct packing_entry){r, load[r]};
            }
        }
        names += possible && packing_add_column(&p, (uint32_t)names, entries, count);
    }
    double z[128], sum = 0;
    uint32_t unbounded;
    if (names == 0) {
        return INFINITY;
    }
    EXPECT(packing_solve(&p, UINT64_MAX, &unbounded));
    packing_values(&p, z, names);
    for (size_t k = 0; k < names; k++) {
        sum += z[k];
    }
    return 1 / sum;
}

static void pairs_cut(struct rng *r, unsigned one_in)
{
    for (size_t i = 0; i < d.net.n; i++) {
        for (size_t j = 0; j < d.net.n; j++) {
            if (rng_below(r, one_in) == 0) {
                d.path[i * d.net.n + j] = 0;
            }
        }
        d.leaf[i] = rng_below(r, one_in) == 0;
    }
    d.net.leaf = d.leaf;
}

TEST(few_members_get_the_best_of_all_packings) /* also with pairs that are not linked, members that are leaves, sites */
{
    struct rng r = {.state = 1};
    unsigned impossible = 0;
    for (unsigned round = 0; round < 1200; round++) {
        drawn_network(&d, (enum drawn_kind)(round % DRAWN_KINDS), 3 + round / 12 % 3, round);
        if (round % 3 != 0) {
            pairs_cut(&r, 3 + round % 5);
        }
        double want = best_of_all_trees(&d.net);
        bool ok = solve_shape(TREE_ANY);
        EXPECT(ok == isfinite(want));
        impossible += !ok;
        if (ok) {
            EXPECT(tree_set_valid(&set));
            EXPECT(near(forecast.s_per_bit, want, 0.01)); /* tiny shares are dropped */
            EXPECT(near(forecast.s_per_bit, time_plainly(&d.net, &set), 1e-9));
            EXPECT(forecast.bound_s_per_bit <= want * (1 + 1e-6));
            EXPECT(forecast.bound_s_per_bit >= want * (1 - 1e-4));
        }
    }
    EXPECT(impossible > 50 && impossible < 600); /* both answers were asked for */
}

TEST(packings_come_near_their_bound) /* 32 trees are enough; the bound holds for any number of them */
{
    for (unsigned kind = 0; kind < DRAWN_KINDS; kind++) {
        const size_t sizes[3] = {9, 16, 32};
        for (size_t k = 0; k < 3; k++) {
            drawn_network(&d, (enum drawn_kind)kind, sizes[k], 5);
            EXPECT(solve_shape(TREE_ANY) && tree_set_valid(&set));
            EXPECT(forecast.bound_s_per_bit <= forecast.s_per_bit * (1 + 1e-7));
            EXPECT(near(forecast.s_per_bit, time_plainly(&d.net, &set), 1e-9));
            bool many_trees = kind == DRAWN_PAIR_8 || kind == DRAWN_SPHERE; /* hundreds in the best packing */
            EXPECT(forecast.bound_s_per_bit >= (many_trees ? 0.9 : 0.995) * forecast.s_per_bit);
            for (uint32_t t = 0; t < set.count; t++) {
                EXPECT(set.share[t] >= 100); /* a tree with a tiny share costs more than it carries */
            }
        }
    }
}

TEST(slices_reach_most_of_the_best) /* multiplicative weights: 64 equal slices, here at 9 members */
{
    for (unsigned kind = 0; kind < DRAWN_KINDS; kind++) {
        drawn_network(&d, (enum drawn_kind)kind, 9, 6);
        EXPECT(solve_shape(TREE_ANY));
        struct tree_slices s;
        void *storage = malloc(tree_slices_room(9, d.net.sites));
        tree_slices_init(&s, &d.net, TREE_ANY, storage);
        for (unsigned k = 0; k < 64; k++) {
            EXPECT(tree_slices_next(&s, parent));
        }
        EXPECT(tree_slices_s_per_bit(&s) >= forecast.bound_s_per_bit);
        EXPECT(forecast.bound_s_per_bit >= 0.9 * tree_slices_s_per_bit(&s));
        free(storage);
    }
}

TEST(four_cities_need_1_16_seconds_for_64_mib) /* a published network: over the path between Tokyo and Seoul */
{
    drawn_four_cities(&d);
    EXPECT(solve_shape(TREE_ANY));
    EXPECT(near(forecast.s_per_bit * 536.870912, 1.155, 0.005));
    EXPECT(set.count <= 8);
    for (uint32_t t = 0; t < set.count; t++) {
        const uint16_t *p = &parent[t * 4];
        EXPECT(p[0] == 1 || p[1] == 0);
    }
}

static double eccentricity(const uint16_t *p, size_t n, size_t root)
{
    uint16_t turned[MANY];
    double most = 0;
    memcpy(turned, p, n * sizeof *p);
    tree_turn(turned, root);
    for (size_t i = 0; i < n; i++) {
        double sum = 0;
        for (size_t at = i; turned[at] != at; at = turned[at]) {
            sum += (network_delay_s(&d.net, at, turned[at]) + network_delay_s(&d.net, turned[at], at)) / 2;
        }
        most = sum > most ? sum : most;
    }
    return most;
}

TEST(roots_are_centres) /* another root makes small buffers wait longer */
{
    for (unsigned round = 0; round < 20; round++) {
        drawn_network(&d, round % 2 == 0 ? DRAWN_SPHERE : DRAWN_PAIR_8, 4 + round, round);
        double radius_s = 0;
        EXPECT(solve_shape(TREE_ANY));
        for (uint32_t t = 0; t < set.count; t++) {
            const uint16_t *p = &parent[t * d.net.n];
            double here = eccentricity(p, d.net.n, tree_set_root(&set, t));
            radius_s = here > radius_s ? here : radius_s;
            for (size_t i = 0; i < d.net.n; i++) {
                EXPECT(here <= eccentricity(p, d.net.n, i) * (1 + 1e-12));
            }
        }
        EXPECT(near(forecast.radius_s, radius_s, 1e-12));
    }
}

TEST(stars_of_stars_have_two_hops) /* the shape for few hops: a representative per site */
{
    for (unsigned round = 0; round < 12; round++) {
        drawn_network(&d, round % 2 == 0 ? DRAWN_SITES_EQUAL : DRAWN_SITES_RANDOM, 12, round);
        EXPECT(solve_shape(TREE_ANY));
        double any_s = forecast.s_per_bit;
        EXPECT(solve_shape(TREE_SITES) && tree_set_valid(&set));
        EXPECT(forecast.radius_hops <= 2);
        EXPECT(forecast.s_per_bit >= any_s * 0.99);
        for (uint32_t t = 0; t < set.count; t++) {
            unsigned across = 0;
            for (size_t i = 0; i < 12; i++) {
                across += d.site[i] != d.site[parent[t * 12 + i]];
            }
            EXPECT(across <= 2); /* each site is entered once */
        }
    }
    drawn_network(&d, DRAWN_PAIR_8, 9, 1); /* without sites they are stars */
    EXPECT(solve_shape(TREE_SITES) && forecast.radius_hops == 1);
}

TEST(members_that_cannot_be_dialled_have_nobody_below) /* they are no roots either */
{
    struct rng r = {.state = 7};
    for (unsigned round = 0; round < 60; round++) {
        drawn_network(&d, (enum drawn_kind)(round % DRAWN_KINDS), 12, round);
        for (size_t i = 0; i < 12; i++) {
            d.leaf[i] = rng_below(&r, 2) == 0;
        }
        d.leaf[round % 12] = false;
        d.net.leaf = d.leaf;
        if (solve_shape(round % 2 == 0 ? TREE_ANY : TREE_SITES)) {
            for (uint32_t k = 0; k < set.count * 12; k++) {
                EXPECT(!d.leaf[parent[k]]);
            }
        } else {
            EXPECT(d.net.site != NULL && round % 2 != 0); /* a site of two leaves has no star */
        }
    }
}

TEST(what_has_no_tree_is_refused)
{
    drawn_network(&d, DRAWN_UNIFORM, 4, 1);
    memset(d.leaf, true, 4);
    d.net.leaf = d.leaf;
    EXPECT(!solve_shape(TREE_ANY) && !solve_shape(TREE_SITES));
    d.net.leaf = NULL;
    for (size_t i = 0; i < 4; i++) { /* two halves */
        for (size_t j = 0; j < 4; j++) {
            d.path[i * 4 + j] = i / 2 == j / 2 ? 1 : 0;
        }
    }
    EXPECT(!solve_shape(TREE_ANY) && !solve_shape(TREE_SITES));
    d.path[1 * 4 + 2] = 1; /* one direction is not enough */
    EXPECT(!solve_shape(TREE_ANY));
    d.path[2 * 4 + 1] = 1;
    EXPECT(solve_shape(TREE_ANY) && set.count == 1);
    d.up[0] = NAN;
    EXPECT(!solve_shape(TREE_ANY));
}

TEST(one_member_and_links_without_limits_have_a_tree)
{
    drawn_network(&d, DRAWN_UNIFORM, 1, 1);
    EXPECT(solve_shape(TREE_ANY) && tree_set_valid(&set) && set.count == 1 && forecast.s_per_bit <= 0);
    drawn_network(&d, DRAWN_UNIFORM, 5, 1);
    for (size_t i = 0; i < 5; i++) {
        d.up[i] = d.down[i] = INFINITY;
    }
    EXPECT(solve_shape(TREE_ANY) && tree_set_valid(&set) && forecast.s_per_bit <= 0);
}

TEST(the_same_network_gives_the_same_trees_on_every_machine) /* the members of a view compare what they were given */
{
    struct rng r = {.state = 9};
    uint64_t hash = 14695981039346656037u;
    for (unsigned round = 0; round < 8; round++) { /* drawn without a logarithm: those differ between C libraries */
        drawn_network(&d, DRAWN_SHARED_1, 10 + round, 0);
        for (size_t i = 0; i < d.net.n * d.net.n; i++) {
            d.path[i] = (double)(1 + rng_below(&r, 1000));
        }
        for (size_t i = 0; i < d.net.n; i++) {
            d.up[i] = (double)(1000 + rng_below(&r, 4000));
            d.down[i] = (double)(1000 + rng_below(&r, 4000));
        }
        for (size_t g = 0; g < DRAWN_SITES; g++) {
            d.site_up[g] = d.site_down[g] = (double)(1000 + rng_below(&r, 4000));
        }
        EXPECT(solve_shape(TREE_ANY));
        for (uint32_t t = 0; t < set.count; t++) {
            hash = (hash ^ set.share[t]) * 1099511628211u;
            for (size_t i = 0; i < d.net.n; i++) {
                hash = (hash ^ parent[t * d.net.n + i]) * 1099511628211u;
            }
        }
    }
    EXPECT_EQ(hash, INT64_C(7353429950353031174));
}
