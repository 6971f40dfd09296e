/* test_packing.c - the simplex: optimal by its own duals, equal to all vertices tried one by one, warm or cold.
 *
 * One idea: a feasible z and feasible prices of the same value prove each other; no second solver has to be believed.
 * SPDX-License-Identifier: MIT */
#include "tests/testing.h"

#include "core/random.h"
#include "topology/packing.h"

enum { ROWS = 40, COLUMNS = 40, SMALL = 4 };

static double matrix[ROWS][COLUMNS];
static uint64_t storage[16384];

static void matrix_draw(struct rng *r, size_t rows, size_t columns, unsigned kind)
{
    for (size_t i = 0; i < rows; i++) {
        for (size_t j = 0; j < columns; j++) {
            bool empty = kind % 2 == 1 && rng_below(r, 3) != 0;
            matrix[i][j] = empty ? 0 : (double)(1 + rng_below(r, kind < 2 ? 3 : 1000)) / 100;
        }
    }
    for (size_t j = 0; j < columns; j++) { /* no column without entries */
        matrix[rng_below(r, rows)][j] += 0.01;
    }
}

static void column_add(struct packing *p, size_t rows, size_t j)
{
    struct packing_entry entries[ROWS];
    size_t count = 0;
    for (size_t i = 0; i < rows; i++) {
        if (matrix[i][j] > 0) {
            entries[count++] = (struct packing_entry){(uint32_t)i, matrix[i][j]};
        }
    }
    EXPECT(packing_add_column(p, (uint32_t)j, entries, count));
}

static void programme(struct packing *p, size_t rows, size_t columns)
{
    EXPECT(packing_room(ROWS, COLUMNS) <= sizeof storage);
    packing_init(p, ROWS, COLUMNS, storage);
    for (size_t i = 0; i < rows; i++) {
        EXPECT(packing_add_row(p));
    }
    for (size_t j = 0; j < columns; j++) {
        column_add(p, rows, j);
    }
}

/* The sum of z, if z is feasible and the prices prove that it is the most. */
static double proven(const struct packing *p, size_t rows, size_t columns)
{
    double z[COLUMNS], price[ROWS], sum = 0, bound = 0;
    packing_values(p, z, columns);
    packing_prices(p, price);
    for (size_t i = 0; i < rows; i++) {
        double used = 0;
        for (size_t j = 0; j < columns; j++) {
            EXPECT(z[j] >= 0);
            used += matrix[i][j] * z[j];
        }
        EXPECT(used <= 1 + 1e-7 && price[i] >= 0);
        bound += price[i];
    }
    for (size_t j = 0; j < columns; j++) {
        double cost = 0;
        for (size_t i = 0; i < rows; i++) {
            cost += matrix[i][j] * price[i];
        }
        EXPECT(cost >= 1 - 1e-7);
        sum += z[j];
    }
    EXPECT(bound - sum < 1e-6 * bound && sum - bound < 1e-6 * bound);
    return sum;
}

/* Solves the k x k system of the chosen constraints by elimination; false if they do not meet in a point. */
static bool point_solve(double a[SMALL][SMALL + 1], size_t k, double *z)
{
    for (size_t c = 0; c < k; c++) {
        size_t best = c;
        for (size_t i = c; i < k; i++) {
            best = a[i][c] * a[i][c] > a[best][c] * a[best][c] ? i : best;
        }
        if (a[best][c] * a[best][c] < 1e-18) {
            return false;
        }
        for (size_t j = 0; j <= k; j++) {
            double keep = a[c][j];
            a[c][j] = a[best][j];
            a[best][j] = keep;
        }
        for (size_t i = 0; i < k; i++) {
            double f = i == c ? 0 : a[i][c] / a[c][c];
            for (size_t j = 0; j <= k; j++) {
                a[i][j] -= f * a[c][j];
            }
        }
    }
    for (size_t c = 0; c < k; c++) {
        z[c] = a[c][k] / a[c][c];
    }
    return true;
}

/* The most over all vertices: each choice of `columns` constraints among rows and signs. */
static double best_vertex(size_t rows, size_t columns)
{
    double most = 0;
    for (unsigned chosen = 0; chosen < 1u << (rows + columns); chosen++) {
        double a[SMALL][SMALL + 1] = {{0}}, z[SMALL], sum = 0;
        size_t k = 0;
        if ((size_t)__builtin_popcount(chosen) != columns) {
            continue;
        }
        for (size_t i = 0; i < rows + columns; i++) {
            for (size_t j = 0; (chosen >> i & 1) != 0 && j < columns; j++) {
                a[k][j] = i < rows ? matrix[i][j] : j == i - rows;
                a[k][columns] = i < rows;
            }
            k += chosen >> i & 1;
        }
        bool inside = point_solve(a, columns, z);
        for (size_t i = 0; inside && i < rows; i++) {
            double used = 0;
            for (size_t j = 0; j < columns; j++) {
                used += matrix[i][j] * z[j];
            }
            inside = used <= 1 + 1e-9;
        }
        for (size_t j = 0; inside && j < columns; j++) {
            inside = z[j] >= -1e-9;
            sum += z[j];
        }
        most = inside && sum > most ? sum : most;
    }
    return most;
}

TEST(optimum_is_the_best_vertex) /* a pivot too few, or a wrong sign, gives a worse vertex */
{
    struct rng r = {.state = 1};
    for (unsigned round = 0; round < 2000; round++) {
        size_t rows = 1 + rng_below(&r, 5), columns = 1 + rng_below(&r, SMALL);
        struct packing p;
        uint32_t unbounded;
        matrix_draw(&r, rows, columns, round % 4);
        programme(&p, rows, columns);
        EXPECT(packing_solve(&p, UINT64_MAX, &unbounded));
        double sum = proven(&p, rows, columns), best = best_vertex(rows, columns);
        EXPECT(sum - best < 1e-6 * best && best - sum < 1e-6 * best);
    }
}

TEST(prices_prove_the_optimum_of_larger_ones) /* also where many vertices are the same point */
{
    struct rng r = {.state = 2};
    for (unsigned round = 0; round < 1000; round++) {
        size_t rows = 1 + rng_below(&r, ROWS), columns = 1 + rng_below(&r, COLUMNS);
        struct packing p;
        uint32_t unbounded;
        matrix_draw(&r, rows, columns, round % 4);
        programme(&p, rows, columns);
        EXPECT(packing_solve(&p, UINT64_MAX, &unbounded));
        EXPECT_EQ(unbounded, UINT32_MAX);
        (void)proven(&p, rows, columns);
    }
}

TEST(columns_that_come_later_are_as_good) /* column generation: they join a solved programme, others leave */
{
    struct rng r = {.state = 3};
    for (unsigned round = 0; round < 300; round++) {
        size_t rows = 2 + rng_below(&r, ROWS - 2), columns = 2 + rng_below(&r, COLUMNS - 2);
        struct packing p;
        uint32_t unbounded;
        matrix_draw(&r, rows, columns, round % 4);
        for (size_t j = 0; j < columns / 2; j++) { /* the last row is used by later columns only */
            matrix[rows - 1][j] = 0;
            matrix[0][j] += 0.01;
        }
        programme(&p, rows - 1, 0);
        for (size_t j = 0; j < columns; j++) {
            if (j == columns / 2) {
                EXPECT(packing_add_row(&p));
            }
            column_add(&p, j < columns / 2 ? rows - 1 : rows, j);
            EXPECT(packing_solve(&p, UINT64_MAX, &unbounded));
        }
        double warm = proven(&p, rows, columns);
        uint32_t dropped;
        if (packing_drop_column(&p, &dropped)) { /* what is outside the basis carries nothing */
            double z[COLUMNS], sum = 0;
            column_add(&p, rows, dropped);
            EXPECT(packing_solve(&p, UINT64_MAX, &unbounded));
            packing_values(&p, z, columns);
            for (size_t j = 0; j < columns; j++) {
                sum += z[j];
            }
            EXPECT(sum - warm < 1e-9 * warm && warm - sum < 1e-9 * warm);
        }
        programme(&p, rows, columns);
        EXPECT(packing_solve(&p, UINT64_MAX, &unbounded));
        double cold = proven(&p, rows, columns);
        EXPECT(cold - warm < 1e-6 * warm && warm - cold < 1e-6 * warm);
    }
}

TEST(bounds_of_room_and_work_are_kept) /* nothing is written beyond the storage; a search ends */
{
    struct rng r = {.state = 4};
    struct packing p;
    uint32_t unbounded;
    matrix_draw(&r, ROWS, COLUMNS, 2);
    programme(&p, ROWS, COLUMNS);
    EXPECT(!packing_add_row(&p));
    EXPECT(!packing_add_column(&p, 0, NULL, 0));
    EXPECT(!packing_solve(&p, 0, &unbounded));
    EXPECT_EQ(unbounded, UINT32_MAX);
    EXPECT(packing_solve(&p, UINT64_MAX, &unbounded));
    programme(&p, ROWS, COLUMNS - 1);
    EXPECT(packing_add_column(&p, 77, NULL, 0)); /* it takes nothing, so there can be any number of it */
    EXPECT(!packing_solve(&p, UINT64_MAX, &unbounded));
    EXPECT_EQ(unbounded, 77);
}
