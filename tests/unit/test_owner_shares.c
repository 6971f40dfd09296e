/* test_owner_shares.c - shares of the direct exchange against all vertices of their programme, and against the closed form.
 *
 * One idea: the programme is written down a second time, in its own variables (shares and the time), and each choice of
 * tight inequalities is tried.  scripts/test_solver.sh compares larger networks with another solver.
 * SPDX-License-Identifier: MIT */
#include "tests/testing.h"

#include "tests/drawn_network.h"
#include "topology/owner_shares.h"

enum { FEW = 4, ROWS = 20 };

static struct drawn d;
static uint64_t storage[700000];
static double share[DRAWN_MEMBERS];

static bool near(double got, double want, double part)
{
    double off = got > want ? got - want : want - got;
    if (!(off <= part * want)) {
        fprintf(stderr, "got %.9f, wanted %.9f\n", got, want);
        return false;
    }
    return true;
}

static bool solve(double *t)
{
    EXPECT(shares_room(d.net.n, d.net.sites) <= sizeof storage);
    return shares_solve(&d.net, storage, share, t);
}

/* Inequalities a x + b T >= c, of n shares and the time. */
struct rows {
    double a[ROWS][FEW], b[ROWS], c[ROWS];
    size_t count;
};

static double *row_add(struct rows *r, double b, double c)
{
    size_t k = r->count++;
    memset(r->a[k], 0, sizeof r->a[k]);
    r->b[k] = b;
    r->c[k] = c;
    return r->a[k];
}

static void rows_write(struct rows *r, const struct network *net)
{
    size_t n = net->n;
    r->count = 0;
    for (size_t i = 0; i < n; i++) {
        row_add(r, 0, 0)[i] = 1;
        row_add(r, network_member_bps(net, i), 1)[i] = -((double)n - 2);
        for (size_t j = 0; j < i; j++) {
            if (network_linked(net, i, j)) {
                double *a = row_add(r, network_pair_bps(net, i, j), 0);
                a[i] = a[j] = -1;
            }
        }
    }
    for (size_t g = 0; net->site != NULL && g < net->sites; g++) {
        double members = (double)network_site_members(net, g);
        if (members < 1 || members >= (double)n) {
            continue;
        }
        double *a = row_add(r, network_site_bps(net, g), members); /* members (1 - X) + (n - members) X <= T U */
        for (size_t i = 0; i < n; i++) {
            a[i] = net->site[i] == g ? members - ((double)n - members) : 0;
        }
    }
}

/* Solves by elimination; m[k] holds a row of the system and its right side. */
static bool point_solve(double m[FEW + 1][FEW + 2], size_t k, double *x)
{
    for (size_t c = 0; c < k; c++) {
        size_t best = c;
        for (size_t i = c; i < k; i++) {
            best = fabs(m[i][c]) > fabs(m[best][c]) ? i : best;
        }
        if (fabs(m[best][c]) < 1e-9) {
            return false;
        }
        for (size_t j = 0; j <= k; j++) {
            double keep = m[c][j];
            m[c][j] = m[best][j];
            m[best][j] = keep;
        }
        for (size_t i = 0; i < k; i++) {
            double f = i == c ? 0 : m[i][c] / m[c][c];
            for (size_t j = 0; j <= k && i != c; j++) {
                m[i][j] -= f * m[c][j];
            }
        }
    }
    for (size_t c = 0; c < k; c++) {
        x[c] = m[c][k] / m[c][c];
    }
    return true;
}

/* Whether member i may own: it is linked with all others and can be dialled. */
static bool owns(const struct network *net, size_t i)
{
    bool may = !network_leaf(net, i);
    for (size_t j = 0; j < net->n; j++) {
        may = may && (i == j || network_linked(net, i, j));
    }
    return may;
}

/* The least time over all points where enough inequalities are tight; infinite if nobody may own. */
static double best_vertex(const struct network *net)
{
    struct rows r;
    double best = INFINITY;
    size_t n = net->n;
    rows_write(&r, net);
    for (unsigned chosen = 0; chosen < 1u << r.count; chosen++) {
        double m[FEW + 1][FEW + 2] = {{0}}, x[FEW + 1];
        size_t k = 1;
        if ((size_t)__builtin_popcount(chosen) != n) {
            continue;
        }
        for (size_t j = 0; j < n; j++) {
            m[0][j] = 1;
        }
        m[0][n + 1] = 1; /* shares add up to 1 */
        for (size_t i = 0; i < r.count; i++) {
            if ((chosen >> i & 1) != 0) {
                memcpy(m[k], r.a[i], n * sizeof m[k][0]);
                m[k][n] = r.b[i];
                m[k++][n + 1] = r.c[i];
            }
        }
        if (!point_solve(m, n + 1, x) || x[n] >= best) {
            continue;
        }
        bool inside = true;
        for (size_t i = 0; i < r.count; i++) {
            double left = r.b[i] * x[n];
            for (size_t j = 0; j < n; j++) {
                left += r.a[i][j] * x[j];
            }
            inside = inside && left >= r.c[i] - 1e-7;
        }
        for (size_t j = 0; j < n; j++) {
            inside = inside && (owns(net, j) || fabs(x[j]) < 1e-9);
        }
        best = inside ? x[n] : best;
    }
    return best;
}

TEST(shares_of_few_are_the_best_vertex) /* with pairs that are not linked, leaves and sites */
{
    struct rng r = {.state = 1};
    unsigned impossible = 0, rounds = test_scaled(600);
    for (unsigned round = 0; round < rounds; round++) {
        double t, want;
        drawn_network(&d, (enum drawn_kind)(round % DRAWN_KINDS), 3 + round % 8 / 7, round);
        for (size_t i = 0; i < d.net.n * d.net.n && round % 3 == 0; i++) {
            d.path[i] = rng_below(&r, 8) == 0 ? 0 : d.path[i];
        }
        for (size_t i = 0; i < d.net.n; i++) {
            d.leaf[i] = round % 2 == 0 && rng_below(&r, 3) == 0;
        }
        d.net.leaf = d.leaf;
        /* An infinite rate limits nothing; the vertices need a number. */
        for (size_t i = 0; i < d.net.n * d.net.n; i++) {
            d.path[i] = isinf(d.path[i]) ? 1e4 : d.path[i];
        }
        for (size_t g = 0; g < d.net.sites; g++) {
            d.site_up[g] = isinf(d.site_up[g]) ? 1e4 : d.site_up[g];
        }
        want = best_vertex(&d.net);
        bool ok = solve(&t);
        EXPECT(ok == isfinite(want));
        EXPECT(!ok || near(t, want, 1e-6));
        impossible += !ok;
    }
    EXPECT(impossible > rounds / 60 && impossible < rounds / 2);
}

TEST(shares_add_up_and_take_the_time_that_is_told) /* also for 64 members with a limit for each pair */
{
    struct rng r = {.state = 2};
    for (unsigned round = 0; round < 120; round++) {
        size_t n = round % 20 == 19 ? 64 : 1 + rng_below(&r, 24);
        double t, sum = 0;
        drawn_network(&d, (enum drawn_kind)(round % DRAWN_KINDS), n, round);
        for (size_t i = 0; i < n; i++) {
            d.leaf[i] = rng_below(&r, 4) == 0;
        }
        d.leaf[round % n] = false;
        d.net.leaf = d.leaf;
        EXPECT(solve(&t));
        for (size_t i = 0; i < n; i++) {
            EXPECT(share[i] >= 0 && (!d.leaf[i] || share[i] <= 0));
            sum += share[i];
        }
        EXPECT(near(sum, 1, 1e-9));
        EXPECT(near(t, shares_load(&d.net, share).s_per_bit, 1e-9));
        EXPECT(t >= network_link_bound_s_per_bit(&d.net) * (1 - 1e-9) || n == 1);
    }
}

TEST(closed_form_is_met_where_only_links_limit) /* T = max(1 / min m, (n - 2 + |H|) / sum of m over H) */
{
    struct rng r = {.state = 3};
    for (unsigned round = 0; round < 2000; round++) {
        size_t n = 2 + rng_below(&r, 31);
        double t, least = INFINITY, owned = 0, owners = 0;
        drawn_network(&d, DRAWN_ACCESS_ONE, n, round);
        for (size_t i = 0; i < n; i++) {
            d.leaf[i] = i != round % n && rng_below(&r, 4) == 0;
            owned += d.leaf[i] ? 0 : network_member_bps(&d.net, i);
            owners += !d.leaf[i];
            least = fmin(least, network_member_bps(&d.net, i));
        }
        d.net.leaf = d.leaf;
        EXPECT(solve(&t));
        double want = n > 2 ? fmax(1 / least, ((double)n - 2 + owners) / owned) : 1 / least;
        EXPECT(near(t, want, 1e-9));
        for (size_t i = 0; i < n; i++) {
            EXPECT(1 + ((double)n - 2) * share[i] <= t * network_member_bps(&d.net, i) * (1 + 1e-9));
        }
    }
}

TEST(equal_members_get_equal_shares) /* not a corner of the programme that gives all to one owner */
{
    double t;
    drawn_network(&d, DRAWN_SITES_EQUAL, 9, 1);
    for (size_t i = 0; i < 81; i++) {
        d.path[i] = 5;
    }
    d.up[0] = d.down[0] = 1; /* it decides, whoever of the others owns what */
    EXPECT(solve(&t) && near(t, 1, 1e-9));
    for (size_t i = 1; i < 9; i++) {
        EXPECT(near(share[i], 0.125, 1e-9));
    }
    drawn_four_cities(&d);
    EXPECT(solve(&t) && near(t * 536.870912, 2.33, 0.005));
    EXPECT(share[2] < 0.005); /* London has the slowest paths */
}

TEST(what_has_no_answer_is_refused) /* no owner, no rate, no member */
{
    double t = 5;
    drawn_network(&d, DRAWN_UNIFORM, 2, 1);
    EXPECT(solve(&t) && near(share[0], 0.5, 0));
    EXPECT(near(t, 1 / fmin(fmin(d.up[0], d.up[1]), fmin(d.down[0], d.down[1])), 1e-12));
    memset(d.leaf, true, 2);
    d.net.leaf = d.leaf;
    EXPECT(!solve(&t));
    d.leaf[1] = false;
    EXPECT(solve(&t) && near(share[1], 1, 0) && share[0] <= 0);
    d.path[1] = 0;
    EXPECT(!solve(&t));
    d.path[1] = 1;
    d.up[0] = NAN;
    EXPECT(!solve(&t));
    drawn_network(&d, DRAWN_UNIFORM, 1, 1);
    EXPECT(solve(&t) && near(share[0], 1, 0) && t <= 0);
    d.net.n = 0;
    EXPECT(!solve(&t));
    d.net.n = SHARES_MEMBERS + 1;
    EXPECT(!shares_solve(&d.net, storage, share, &t));
}
