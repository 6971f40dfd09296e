/* owner_shares.c - the closed form, and the programme for networks whose paths or sites limit.
 *
 *   T = max(1 / min m, (n - 2 + |H|) / sum of m over H),   x_i = max(0, T m_i - 1) / sum,   H = members that may own
 *
 * One idea: most pairs never limit.  The programme has rows for those that the last shares would overload, and is
 * solved again until there are none.
 * SPDX-License-Identifier: MIT */
#include "topology/owner_shares.h"

#include <string.h>

#include "topology/packing.h"

enum { PAIRS_MOST = 4096 };

static const double as_fast = 1 + 1e-9;

struct solver {
    const struct network *net;
    double *share;
    bool *owns, *chosen; /* [n], [n (n - 1) / 2]: pairs that have a row */
    uint32_t *pairs;     /* [rows], i * n + j of each of those rows */
    size_t pair_count;
    struct packing_entry *entries;
    void *lp_storage;
    struct packing lp;
};

static size_t eight(size_t bytes)
{
    return (bytes + 7) / 8 * 8;
}

static size_t pairs_for(size_t n)
{
    size_t pairs = n * (n - 1) / 2;
    return pairs < PAIRS_MOST ? pairs : PAIRS_MOST;
}

static size_t rows_for(size_t n, size_t sites)
{
    return n + sites + pairs_for(n);
}

size_t shares_room(size_t n, size_t sites)
{
    return 8 * n + eight(n) + eight(n * (n - 1) / 2) + eight(4 * pairs_for(n)) +
           sizeof(struct packing_entry) * rows_for(n, sites) + packing_room(rows_for(n, sites), n);
}

static void *part(char **at, size_t bytes)
{
    char *here = *at;
    *at += eight(bytes);
    return here;
}

static void solver_init(struct solver *s, const struct network *net, void *storage)
{
    size_t n = net->n;
    char *at = storage;
    *s = (struct solver){.net = net};
    s->share = part(&at, 8 * n);
    s->owns = part(&at, n);
    s->chosen = part(&at, n * (n - 1) / 2);
    s->pairs = part(&at, 4 * pairs_for(n));
    s->entries = part(&at, sizeof(struct packing_entry) * rows_for(n, net->sites));
    s->lp_storage = at;
    memset(s->chosen, 0, n * (n - 1) / 2);
}

static void fullest_add(struct shares_load *f, double load, double bps)
{
    if (load > 0 && !(load / bps <= f->s_per_bit)) {
        f->s_per_bit = load / bps;
        f->bps = bps;
    }
}

struct shares_load shares_load(const struct network *net, const double *share)
{
    struct shares_load f = {0, __builtin_inf()};
    size_t n = net->n;
    for (size_t i = 0; i < n && n > 1; i++) {
        fullest_add(&f, 1 + ((double)n - 2) * share[i], network_member_bps(net, i));
        for (size_t j = 0; j < i; j++) {
            fullest_add(&f, share[i] + share[j], network_linked(net, i, j) ? network_pair_bps(net, i, j) : 0);
        }
    }
    for (size_t g = 0; net->site != NULL && g < net->sites; g++) {
        double owned = 0, members = 0;
        for (size_t i = 0; i < n; i++) {
            owned += net->site[i] == g ? share[i] : 0;
            members += net->site[i] == g;
        }
        if (members > 0 && members < (double)n) {
            fullest_add(&f, members * (1 - owned) + ((double)n - members) * owned, network_site_bps(net, g));
        }
    }
    return f;
}

/* Who is linked with all others and can be dialled; returns how many. */
static size_t owners_find(struct solver *s)
{
    size_t count = 0;
    for (size_t i = 0; i < s->net->n; i++) {
        s->owns[i] = !network_leaf(s->net, i);
        for (size_t j = 0; j < s->net->n && s->owns[i]; j++) {
            s->owns[i] = j == i || network_linked(s->net, i, j);
        }
        count += s->owns[i];
    }
    return count;
}

static void shares_equal(const struct solver *s, size_t owners, double *share)
{
    for (size_t i = 0; i < s->net->n; i++) {
        share[i] = s->owns[i] ? 1 / (double)owners : 0;
    }
}

/* The best shares if nothing but members' links limited; equal ones where even these do not, or n <= 2. */
static void shares_closed(const struct solver *s, size_t owners, double *share)
{
    size_t n = s->net->n;
    double slowest = __builtin_inf(), owned_bps = 0, headroom = 0;
    for (size_t i = 0; i < n; i++) {
        double m = network_member_bps(s->net, i);
        slowest = m < slowest ? m : slowest;
        owned_bps += s->owns[i] ? m : 0;
    }
    double full = (double)(n - 2 + owners) / owned_bps, t = 1 / slowest;
    t = n > 2 && full > t ? full : t;
    for (size_t i = 0; i < n; i++) {
        double h = t * network_member_bps(s->net, i) - 1;
        share[i] = s->owns[i] && h > 0 ? h : 0;
        headroom += share[i];
    }
    if (n <= 2 || !(headroom > 0 && headroom < __builtin_inf())) {
        shares_equal(s, owners, share);
        return;
    }
    for (size_t i = 0; i < n; i++) {
        share[i] /= headroom;
    }
}

static bool pair_choose(struct solver *s, size_t i, size_t j)
{
    bool *chosen = i > j ? &s->chosen[i * (i - 1) / 2 + j] : &s->chosen[j * (j - 1) / 2 + i];
    if (*chosen || s->pair_count == pairs_for(s->net->n)) {
        return false;
    }
    *chosen = true;
    s->pairs[s->pair_count++] = (uint32_t)(i * s->net->n + j);
    return true;
}

/* Rows for pairs that these shares overload within time t; false if there are none. */
static bool pairs_add(struct solver *s, const double *share, double t)
{
    bool added = false;
    for (size_t i = 0; i < s->net->n; i++) {
        for (size_t j = 0; j < i; j++) {
            if (share[i] + share[j] > t * network_pair_bps(s->net, i, j) * as_fast) {
                added = pair_choose(s, i, j) || added;
            }
        }
    }
    return added;
}

/* The star around `owner` as a column; time is in units of `scale_s`. */
static void star_enter(struct solver *s, size_t owner, double scale_s)
{
    const struct network *net = s->net;
    size_t n = net->n, count = 0;
    for (size_t i = 0; i < n; i++) {
        double cost = (i == owner ? (double)n - 1 : 1) / (network_member_bps(net, i) * scale_s);
        s->entries[count] = (struct packing_entry){(uint32_t)i, cost};
        count += cost > 0;
    }
    for (size_t g = 0; net->site != NULL && g < net->sites; g++) {
        size_t members = network_site_members(net, g);
        double copies = (double)(net->site[owner] == g ? n - members : members);
        double cost = copies / (network_site_bps(net, g) * scale_s);
        s->entries[count] = (struct packing_entry){(uint32_t)(n + g), cost};
        count += cost > 0;
    }
    for (size_t k = 0; k < s->pair_count; k++) {
        size_t i = s->pairs[k] / n, j = s->pairs[k] % n;
        double cost = 1 / (network_pair_bps(net, i, j) * scale_s);
        s->entries[count] = (struct packing_entry){(uint32_t)(n + net->sites + k), cost};
        count += (i == owner || j == owner) && cost > 0;
    }
    (void)packing_add_column(&s->lp, (uint32_t)owner, s->entries, count);
}

/* One solution over the rows chosen; false if a star has no limit at all, which leaves nothing to improve. */
static bool programme_solve(struct solver *s, double scale_s, double *share, double *t_out)
{
    size_t n = s->net->n;
    uint32_t unbounded;
    double sum = 0;
    packing_init(&s->lp, rows_for(n, s->net->sites), n, s->lp_storage);
    for (size_t r = 0; r < n + s->net->sites + s->pair_count; r++) {
        (void)packing_add_row(&s->lp);
    }
    for (size_t i = 0; i < n; i++) {
        if (s->owns[i]) {
            star_enter(s, i, scale_s);
        }
    }
    if (!packing_solve(&s->lp, UINT64_MAX, &unbounded)) {
        return false;
    }
    packing_values(&s->lp, share, n);
    for (size_t i = 0; i < n; i++) {
        sum += share[i];
    }
    for (size_t i = 0; i < n; i++) {
        share[i] /= sum;
    }
    *t_out = scale_s / sum;
    return true;
}

/* Takes the shares as the answer if they are clearly faster. */
static void answer_take(const struct solver *s, const double *share, double *share_out, double *s_per_bit)
{
    double t = shares_load(s->net, share).s_per_bit;
    if (t * as_fast < *s_per_bit) {
        *s_per_bit = t;
        memcpy(share_out, share, s->net->n * sizeof *share);
    }
}

bool shares_solve(const struct network *net, void *storage, double *share_out, double *s_per_bit_out)
{
    struct solver s;
    if (net->n > SHARES_MEMBERS || !network_valid(net)) {
        return false;
    }
    solver_init(&s, net, storage);
    size_t owners = owners_find(&s);
    if (owners == 0) {
        return false;
    }
    double t = 0;
    shares_closed(&s, owners, share_out);
    *s_per_bit_out = shares_load(net, share_out).s_per_bit;
    shares_equal(&s, owners, s.share);
    answer_take(&s, s.share, share_out, s_per_bit_out);
    double scale_s = *s_per_bit_out, bound_s = network_link_bound_s_per_bit(net);
    if (net->n < 3 || scale_s <= bound_s * as_fast) {
        return true;
    }
    (void)pairs_add(&s, share_out, bound_s);
    while (programme_solve(&s, scale_s, s.share, &t)) {
        answer_take(&s, s.share, share_out, s_per_bit_out);
        if (!pairs_add(&s, s.share, t)) {
            break;
        }
    }
    return true;
}
