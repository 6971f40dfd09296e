/* packing.c - the simplex method on a condensed tableau (Dantzig 1963; Tucker's form, which swaps labels at a pivot).
 *
 * One idea: inside_i = right_i - sum_j cells_ij * outside_j, sum = value + sum_j gain_j * outside_j.  A pivot exchanges
 * one variable of each kind.  A new plan takes a_r of resource r, as if the slack of r were slack + a_r * z: so its
 * column is a sum of columns that are there.
 * SPDX-License-Identifier: MIT */
#include "topology/packing.h"

#include <string.h>

#include "core/random.h"

#define COLUMN 0x80000000u /* set in the label of a column's variable, clear in that of a row's slack */
#define OUTSIDE 0x80000000u /* set in a place if the slack is outside the basis */

enum { LANES = 2 }; /* cells in one operation */

/* Two cells at once, in the order of memory: the same sums on every machine. */
typedef double cells_pair __attribute__((vector_size(16), aligned(8)));

static const double gain_least = 1e-10, pivot_least = 1e-9;

static size_t eight(size_t bytes)
{
    return (bytes + 7) / 8 * 8;
}

static size_t even(size_t columns)
{
    return (columns + LANES - 1) / LANES * LANES;
}

size_t packing_room(size_t rows_most, size_t columns_most)
{
    columns_most = even(columns_most);
    return 8 * (rows_most * columns_most + rows_most + 2 * columns_most) + 2 * eight(4 * rows_most) +
           eight(4 * columns_most);
}

void packing_init(struct packing *p, size_t rows_most, size_t columns_most, void *storage)
{
    columns_most = even(columns_most);
    *p = (struct packing){.rows_most = rows_most, .columns_most = columns_most};
    p->cells = storage;
    p->right = p->cells + rows_most * columns_most;
    p->gain = p->right + rows_most;
    p->mix = p->gain + columns_most;
    char *words = (char *)(p->mix + columns_most);
    p->inside = (uint32_t *)(void *)words;
    p->place = (uint32_t *)(void *)(words + eight(4 * rows_most));
    p->outside = (uint32_t *)(void *)(words + 2 * eight(4 * rows_most));
}

static double *row_of(const struct packing *p, size_t i)
{
    return p->cells + i * p->columns_most;
}

bool packing_add_row(struct packing *p)
{
    if (p->rows == p->rows_most) {
        return false;
    }
    struct rng r = {.state = p->rows};
    size_t i = p->rows++;
    memset(row_of(p, i), 0, p->columns_most * sizeof *p->cells);
    p->right[i] = 1 + 1e-8 * (double)(rng_next(&r) >> 11) / 9007199254740992.0;
    p->inside[i] = p->place[i] = (uint32_t)i;
    return true;
}

/* The sum of the products. */
static double row_mix(const double *row, const double *mix, size_t columns)
{
    cells_pair sum = {0, 0};
    for (size_t j = 0; j < columns; j += LANES) {
        sum += *(const cells_pair *)(const void *)(row + j) * *(const cells_pair *)(const void *)(mix + j);
    }
    return sum[0] + sum[1];
}

/* row -= f * own */
static void row_reduce(double *row, const double *own, double f, size_t columns)
{
    const cells_pair both = {f, f};
    for (size_t j = 0; j < columns; j += LANES) {
        *(cells_pair *)(void *)(row + j) -= both * *(const cells_pair *)(const void *)(own + j);
    }
}

bool packing_add_column(struct packing *p, uint32_t name, const struct packing_entry *entries, size_t count)
{
    if (p->columns == p->columns_most) {
        return false;
    }
    size_t at = p->columns++, mixed = 0;
    double gain = 1;
    memset(p->mix, 0, p->columns_most * sizeof *p->mix);
    for (size_t k = 0; k < count; k++) {
        uint32_t place = p->place[entries[k].row];
        if ((place & OUTSIDE) != 0) {
            p->mix[place & ~OUTSIDE] += entries[k].value;
            gain += entries[k].value * p->gain[place & ~OUTSIDE];
            mixed++;
        }
    }
    for (size_t i = 0; i < p->rows; i++) {
        double *row = row_of(p, i);
        row[at] = 0;
        row[at] = mixed > 0 ? row_mix(row, p->mix, at) : 0;
    }
    for (size_t k = 0; k < count; k++) {
        uint32_t place = p->place[entries[k].row];
        if ((place & OUTSIDE) == 0) {
            row_of(p, place)[at] += entries[k].value;
        }
    }
    p->work += p->rows * (mixed > 0 ? at : 1);
    p->gain[at] = gain;
    p->outside[at] = name | COLUMN;
    return true;
}

/* The column that gains most; the count of columns if none gains. */
static size_t entering(const struct packing *p)
{
    size_t best = p->columns;
    double most = gain_least;
    for (size_t j = 0; j < p->columns; j++) {
        if (p->gain[j] > most) {
            most = p->gain[j];
            best = j;
        }
    }
    return best;
}

/* The row that ends the growth of column j first; the count of rows if none does. */
static size_t leaving(const struct packing *p, size_t j)
{
    size_t best = p->rows;
    double least = __builtin_inf();
    for (size_t i = 0; i < p->rows; i++) {
        double a = row_of(p, i)[j];
        if (a > pivot_least && p->right[i] < least * a) {
            least = p->right[i] / a;
            best = i;
        }
    }
    return best;
}

static void place_note(struct packing *p, uint32_t label, uint32_t place)
{
    if ((label & COLUMN) == 0) {
        p->place[label] = place;
    }
}

static void pivot(struct packing *p, size_t at, size_t j)
{
    size_t columns = p->columns;
    double *own = row_of(p, at), a = own[j];
    for (size_t k = 0; k < columns; k++) {
        own[k] /= a;
    }
    own[j] = 1 / a;
    p->right[at] /= a;
    for (size_t i = 0; i < p->rows; i++) {
        double *row = row_of(p, i), f = row[j];
        if (i == at || (f <= 0 && f >= 0)) {
            continue;
        }
        row[j] = 0;
        row_reduce(row, own, f, columns);
        double right = p->right[i] - f * p->right[at];
        p->right[i] = right > 0 ? right : 0;
        p->work += columns;
    }
    double g = p->gain[j];
    p->gain[j] = 0;
    for (size_t k = 0; k < columns; k++) {
        p->gain[k] -= g * own[k];
    }
    uint32_t label = p->inside[at];
    p->inside[at] = p->outside[j];
    p->outside[j] = label;
    place_note(p, label, (uint32_t)j | OUTSIDE);
    place_note(p, p->inside[at], (uint32_t)at);
    p->work += p->rows + columns;
}

bool packing_solve(struct packing *p, uint64_t work_limit, uint32_t *unbounded_out)
{
    *unbounded_out = UINT32_MAX;
    for (size_t j = entering(p); j < p->columns; j = entering(p)) {
        size_t at = leaving(p, j);
        if (at == p->rows) {
            if ((p->outside[j] & COLUMN) != 0) {
                *unbounded_out = p->outside[j] & ~COLUMN;
            }
            return false;
        }
        if (p->work >= work_limit) {
            return false;
        }
        pivot(p, at, j);
    }
    return true;
}

void packing_values(const struct packing *p, double *z_out, size_t count)
{
    memset(z_out, 0, count * sizeof *z_out);
    for (size_t i = 0; i < p->rows; i++) {
        uint32_t name = p->inside[i] & ~COLUMN;
        if ((p->inside[i] & COLUMN) != 0 && name < count) {
            z_out[name] = p->right[i];
        }
    }
}

void packing_prices(const struct packing *p, double *price_out)
{
    memset(price_out, 0, p->rows * sizeof *price_out);
    for (size_t j = 0; j < p->columns; j++) {
        if ((p->outside[j] & COLUMN) == 0 && p->gain[j] < 0) {
            price_out[p->outside[j]] = -p->gain[j];
        }
    }
}

bool packing_drop_column(struct packing *p, uint32_t *name_out)
{
    size_t worst = p->columns;
    for (size_t j = 0; j < p->columns; j++) {
        if ((p->outside[j] & COLUMN) != 0 && (worst == p->columns || p->gain[j] < p->gain[worst])) {
            worst = j;
        }
    }
    if (worst == p->columns) {
        return false;
    }
    *name_out = p->outside[worst] & ~COLUMN;
    size_t last = --p->columns;
    if (worst != last) {
        for (size_t i = 0; i < p->rows; i++) {
            row_of(p, i)[worst] = row_of(p, i)[last];
        }
        p->gain[worst] = p->gain[last];
        p->outside[worst] = p->outside[last];
        place_note(p, p->outside[worst], (uint32_t)worst | OUTSIDE);
    }
    return true;
}
