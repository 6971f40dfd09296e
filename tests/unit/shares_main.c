/* shares_main.c - reads networks from standard input and prints the best shares of each; scripts/solver_oracle.py asks.
 *
 * A network is "n sites", then n rows "up down leaf site", n rows of n path rates, and `sites` rows "up down"; "inf" is
 * a rate without limit.  The answer is a line: the time per bit and n shares, or "none".
 * SPDX-License-Identifier: MIT */
#include <stdio.h>
#include <stdlib.h>

#include "topology/owner_shares.h"

enum { MEMBERS = 64, SITES = 64 };

static double up[MEMBERS], down[MEMBERS], path[MEMBERS * MEMBERS], site_up[SITES], site_down[SITES], share[MEMBERS];
static bool leaf[MEMBERS];
static uint16_t site[MEMBERS];

static bool numbers_read(double *a, double *b)
{
    return scanf("%lf", a) == 1 && scanf("%lf", b) == 1;
}

static bool network_read(struct network *net)
{
    size_t n = net->n;
    for (size_t i = 0; i < n; i++) {
        int is_leaf;
        if (!numbers_read(&up[i], &down[i]) || scanf("%d %hu", &is_leaf, &site[i]) != 2) {
            return false;
        }
        leaf[i] = is_leaf != 0;
    }
    for (size_t i = 0; i < n * n; i++) {
        if (scanf("%lf", &path[i]) != 1) {
            return false;
        }
    }
    for (size_t g = 0; g < net->sites; g++) {
        if (!numbers_read(&site_up[g], &site_down[g])) {
            return false;
        }
    }
    return true;
}

int main(void)
{
    struct network net = {.up_bps = up, .down_bps = down, .path_bps = path, .leaf = leaf};
    void *storage = malloc(shares_room(MEMBERS, SITES));
    while (storage != NULL && scanf("%zu %zu", &net.n, &net.sites) == 2) {
        if (net.n > MEMBERS || net.sites > SITES || !network_read(&net)) {
            fprintf(stderr, "shares_main: a network has too many members or sites, or lacks numbers\n");
            free(storage);
            return 1;
        }
        net.site = net.sites == 0 ? NULL : site;
        net.site_up_bps = net.sites == 0 ? NULL : site_up;
        net.site_down_bps = net.sites == 0 ? NULL : site_down;
        double s_per_bit;
        if (!shares_solve(&net, storage, share, &s_per_bit)) {
            printf("none\n");
            continue;
        }
        printf("%.12g", s_per_bit);
        for (size_t i = 0; i < net.n; i++) {
            printf(" %.12g", share[i]);
        }
        printf("\n");
    }
    free(storage);
    return 0;
}
