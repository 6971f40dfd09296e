/* topo_solve.h - what the library's own solvers make of a matrix: a ring, shares, trees, and how long an all-reduce takes.
 *
 * Its one idea: these are the functions that the master and its peers use, so the figures are those by which they decide.
 * Invariant: a part that cannot be made says why.
 * SPDX-License-Identifier: MIT */
#ifndef PCCL_TOPO_SOLVE_H
#define PCCL_TOPO_SOLVE_H

#include "pccl/topo_matrix.h"
#include "topology/cost.h"
#include "topology/rates.h"
#include "topology/tree_set.h"

struct topo_solution {
    uint32_t known, pairs; /* measured or described, and all */
    uint16_t *ring;        /* owned, as all here: the best that was found */
    bool ring_proven;      /* there is no better one */
    double ring_bps;       /* of its slowest edge; 0: one cannot connect */
    double bound_bps;      /* proven: no ring has a faster slowest edge */
    double used_bps;       /* the same of the ring in use; 0: it is not known */
    const char *no_plan;   /* null: all that follows is there */
    double *share;         /* of each member, as owner of a part */
    struct tree_set trees; /* count 0: */
    const char *no_trees;  /* ... why not */
    double tree_bps, tree_bound_bps; /* the rate at which the trees carry a buffer, and what no set of trees can beat */
    struct cost_job job;
    struct cost_choice choice; /* predicted from the links alone; the algorithm is the one that is expected to be fastest */
    double expected_s[COST_ALGO_COUNT]; /* with what operations have shown */
    struct rates_sites sites;  /* whose links were measured; count 0: none was */
    double *load; /* [count][count], of the chosen algorithm: copies of the buffer over each pair, row: from */
};

/* Null: no memory. */
struct topo_solution *topo_solve(const struct topo_matrix *m, double bytes);
void topo_solution_free(struct topo_solution *s);

const char *topo_algorithm_name(enum cost_algo algo); /* as PCCL_ALGO names it, where it does */

#endif
