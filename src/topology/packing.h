/* packing.h - the linear programme of all plans: the most sum of z with A z <= 1 and z >= 0, where no entry is < 0.
 *
 * One idea: row r is a resource, column t a plan, the entry what plan t takes of resource r.  z / sum z are the shares
 * of the plans, 1 / sum z is their time.  z = 0 is feasible, so one phase of the simplex is enough.  A column takes
 * part at once if the programme was solved before, which column generation needs.
 * The tableau holds only the columns of variables outside the basis.  Right sides differ from 1 by at most 1e-8, which
 * keeps the simplex from cycling; whoever wants the exact time computes it from the shares.
 * Invariant: right sides are >= 0; equal calls give equal results on every machine, since only + - * / are used.
 * SPDX-License-Identifier: MIT */
#ifndef PCCL_TOPOLOGY_PACKING_H
#define PCCL_TOPOLOGY_PACKING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct packing {
    size_t rows, columns, rows_most, columns_most;
    double *cells;     /* borrowed, [rows_most][columns_most] */
    double *right;     /* borrowed, [rows_most] */
    double *gain;      /* borrowed, [columns_most], what one unit of a variable outside the basis adds to the sum */
    double *mix;       /* borrowed, [columns_most], the columns that a new one is the sum of */
    uint32_t *inside;  /* borrowed, [rows_most], the variable in the basis of each row of the tableau */
    uint32_t *outside; /* borrowed, [columns_most], the variable of each column of the tableau */
    uint32_t *place;   /* borrowed, [rows_most], where the slack of a resource is in the tableau */
    uint64_t work;     /* cells read or changed so far */
};

/* An entry of a column. */
struct packing_entry {
    uint32_t row;
    double value; /* > 0 */
};

/* Bytes of storage that _init needs, aligned to 8. */
size_t packing_room(size_t rows_most, size_t columns_most);

/* Starts without rows and columns. */
void packing_init(struct packing *p, size_t rows_most, size_t columns_most, void *storage);

/* Adds a row without entries; its number is the count of rows before.  False if there is no room. */
bool packing_add_row(struct packing *p);

/* Adds a column named `name` (< 2^31), with its entries.  False if there is no room. */
bool packing_add_column(struct packing *p, uint32_t name, const struct packing_entry *entries, size_t count);

/* Pivots to the optimum, or until `work` passes the limit.  Returns whether it is optimal.  A column without entries
 * has no optimum: the result is false, and *unbounded_out its name (else UINT32_MAX). */
bool packing_solve(struct packing *p, uint64_t work_limit, uint32_t *unbounded_out);

/* The values of the columns, by name; names at or above `count` are left out. */
void packing_values(const struct packing *p, double *z_out, size_t count);

/* The prices of the rows (dual values), all >= 0. */
void packing_prices(const struct packing *p, double *price_out);

/* Removes the column outside the basis that would gain least, and tells its name; false if all are in the basis. */
bool packing_drop_column(struct packing *p, uint32_t *name_out);

#endif
