/* topo_text.c - a matrix and what was made of it, as text.
 *
 * Its one idea: up to 24 peers each pair is a cell; of more peers the text has the extremes and the slowest edges.
 * SPDX-License-Identifier: MIT */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "pccl/topo_show.h"

enum { TEXT_NAME = 22, TEXT_CELL = 9, TEXT_TIME = 12, TEXT_SLOWEST = 10, TEXT_COLUMNS = 100 };

/* ---- cells --------------------------------------------------------------------------------------------------------- */

enum column { COLUMN_RATE, COLUMN_RTT, COLUMN_LOSS, COLUMN_AGE, COLUMNS };

static const struct {
    const char *title;
} columns[COLUMNS] = {{"rate, Mb/s"}, {"round trip, ms"}, {"loss, %"}, {"age, s"}};

static bool has_value(const struct topo_cell *c, enum column of)
{
    return c->source != TOPO_UNKNOWN && (of == COLUMN_RATE || (of == COLUMN_RTT && c->rtt_us > 0) || (of == COLUMN_LOSS) ||
                                         (of == COLUMN_AGE && topo_source_measured(c->source)));
}

static double value_of(const struct topo_cell *c, enum column of)
{
    double rate = c->rate_bps == TOPO_NO_LIMIT ? INFINITY : (double)c->rate_bps / 1e6;
    const double values[COLUMNS] = {rate, c->rtt_us / 1e3, c->loss_ppm / 1e4, c->age_s};
    return values[of];
}

static void put_value(FILE *to, double v)
{
    if (isinf(v)) {
        fprintf(to, "%*s", TEXT_CELL, "no limit");
    } else {
        fprintf(to, "%*.*f", TEXT_CELL, v == 0 || v >= 99.95 ? 0 : v >= 9.995 ? 1 : 2, v);
    }
}

/* Whether any pair has a value that is not 0. */
static bool column_used(const struct topo_matrix *m, enum column of)
{
    for (uint32_t i = 0; i < m->count * m->count; i++) {
        if (has_value(&m->cells[i], of) && (of == COLUMN_AGE || value_of(&m->cells[i], of) > 0)) {
            return true;
        }
    }
    return false;
}

static void put_matrix(FILE *to, const struct topo_matrix *m, enum column of)
{
    fprintf(to, "\n%-*s", 4 + TEXT_NAME, columns[of].title);
    for (uint32_t k = 0; k < m->count; k++) {
        fprintf(to, "%*u", TEXT_CELL, k);
    }
    for (uint32_t i = 0; i < m->count; i++) {
        fprintf(to, "\n%3u %-*.*s", i, TEXT_NAME, TEXT_NAME, m->peers[i].name);
        for (uint32_t k = 0; k < m->count; k++) {
            const struct topo_cell *c = &m->cells[i * m->count + k];
            if (i == k || !has_value(c, of)) {
                fprintf(to, "%*s", TEXT_CELL, i == k ? "-" : "?");
            } else {
                put_value(to, value_of(c, of));
            }
        }
    }
    fputc('\n', to);
}

/* ---- many peers ---------------------------------------------------------------------------------------------------- */

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static void put_extremes(FILE *to, const struct topo_matrix *m, enum column of, double *scratch)
{
    size_t count = 0;
    for (uint32_t i = 0; i < m->count * m->count; i++) {
        if (has_value(&m->cells[i], of)) {
            scratch[count++] = value_of(&m->cells[i], of);
        }
    }
    if (count > 0) {
        qsort(scratch, count, sizeof *scratch, by_value);
        fprintf(to, "%-*s", TEXT_NAME, columns[of].title);
        put_value(to, scratch[0]);
        put_value(to, scratch[count / 2]);
        put_value(to, scratch[count - 1]);
        fputc('\n', to);
    }
}

static void put_slowest(FILE *to, const struct topo_matrix *m)
{
    const struct topo_cell *last = NULL;
    fprintf(to, "\nslowest edges\n");
    for (int shown = 0; shown < TEXT_SLOWEST; shown++) {
        const struct topo_cell *best = NULL;
        for (const struct topo_cell *c = m->cells; c < m->cells + (size_t)m->count * m->count; c++) {
            bool behind = last == NULL || c->rate_bps > last->rate_bps || (c->rate_bps == last->rate_bps && c > last);
            best = c->source != TOPO_UNKNOWN && behind && (best == NULL || c->rate_bps < best->rate_bps) ? c : best;
        }
        if (best == NULL) {
            return;
        }
        char rate[TOPO_WORD];
        size_t at = (size_t)(best - m->cells);
        topo_word_rate(best->rate_bps == TOPO_NO_LIMIT ? INFINITY : (double)best->rate_bps, rate);
        fprintf(to, "  %10s  %s to %s\n", rate, m->peers[at / m->count].name, m->peers[at % m->count].name);
        last = best;
    }
}

static void put_summary(FILE *to, const struct topo_matrix *m)
{
    double *scratch = calloc((size_t)m->count * m->count, sizeof *scratch);
    if (scratch != NULL) {
        fprintf(to, "\n%-*s%*s%*s%*s\n", TEXT_NAME, "over all edges", TEXT_CELL, "least", TEXT_CELL, "median", TEXT_CELL, "most");
        for (int of = 0; of < COLUMNS; of++) {
            put_extremes(to, m, (enum column)of, scratch);
        }
        put_slowest(to, m);
    }
    free(scratch);
}

/* ---- ring, shares, trees, time ------------------------------------------------------------------------------------- */

static void put_order(FILE *to, const char *title, const uint16_t *order, uint32_t count)
{
    int used = fprintf(to, "%s", title);
    for (uint32_t i = 0; i < count; i++) {
        if (used > TEXT_COLUMNS - 6) {
            used = fprintf(to, "\n%*s", 14, "") - 1;
        }
        used += fprintf(to, " %u", order[i]);
    }
    fputc('\n', to);
}

static void put_ring(FILE *to, const struct topo_matrix *m, const struct topo_solution *s)
{
    char rate[TOPO_WORD], bound[TOPO_WORD];
    if (s->known == 0) {
        return;
    }
    fputc('\n', to);
    put_order(to, "best ring    ", s->ring, m->count);
    fprintf(to, "slowest edge  %s", topo_word_rate(s->ring_bps, rate));
    if (s->known < s->pairs) {
        fprintf(to, ", of those that are measured\n");
    } else if (s->ring_proven) {
        fprintf(to, ", gap 0.0 %%: no ring has a faster one\n");
    } else {
        fprintf(to, ", gap %.1f %%: no ring has one faster than %s\n", topo_gap(s), topo_word_rate(s->bound_bps, bound));
    }
    if (m->ring != NULL) {
        put_order(to, "ring in use  ", m->ring, m->count);
        fprintf(to, "slowest edge  %s\n", topo_word_rate(s->used_bps, rate));
    }
}

/* Links that the members of a site share, as they were measured. */
static void put_sites(FILE *to, const struct topo_matrix *m, const struct topo_solution *s)
{
    char up[TOPO_WORD], down[TOPO_WORD];
    for (uint32_t g = 0; g < s->sites.count; g++) {
        if (!isfinite(s->sites.up_bps[g]) && !isfinite(s->sites.down_bps[g])) {
            continue;
        }
        fprintf(to, "\npeers");
        for (uint32_t i = 0; i < m->count; i++) {
            if (s->sites.site[i] == g) {
                fprintf(to, " %u", i);
            }
        }
        fprintf(to, " send %s together to other sites, and receive %s", topo_word_rate(s->sites.up_bps[g], up), topo_word_rate(s->sites.down_bps[g], down));
    }
    fputs(s->sites.count > 0 ? "\n" : "", to);
}

static void put_shares(FILE *to, const struct topo_matrix *m, const struct topo_solution *s)
{
    if (m->count > TOPO_MATRIX_MOST) {
        uint32_t owners = 0;
        double most = 0;
        for (uint32_t i = 0; i < m->count; i++) {
            owners += s->share[i] > 0.00005;
            most = fmax(most, s->share[i]);
        }
        fprintf(to, "\nshares: %u of the peers own parts, of at most %.2f %%\n", owners, 100 * most);
        return;
    }
    fprintf(to, "\nshares of the peers that own parts, in %%\n");
    for (uint32_t i = 0, shown = 0; i < m->count; i++) {
        if (s->share[i] > 0.00005) {
            fprintf(to, "%s%5u: %.2f", shown > 0 && shown % 8 == 0 ? "\n" : "", i, 100 * s->share[i]);
            shown++;
        }
    }
    fputc('\n', to);
}

/* "2(0(1) 3)": below each peer those whose parent it is. */
static void put_tree(FILE *to, const uint16_t *parent, uint32_t count, uint32_t root)
{
    bool any = false;
    fprintf(to, "%u", root);
    for (uint32_t i = 0; i < count; i++) {
        if (i != root && parent[i] == root) {
            fputc(any ? ' ' : '(', to);
            any = true;
            put_tree(to, parent, count, i);
        }
    }
    fputs(any ? ")" : "", to);
}

static void put_trees(FILE *to, const struct topo_matrix *m, const struct topo_solution *s)
{
    char rate[TOPO_WORD], bound[TOPO_WORD];
    if (s->no_trees != NULL) {
        fprintf(to, "\ntrees: none, %s\n", s->no_trees);
        return;
    }
    fprintf(to, "\ntrees carry %s of the buffer together", topo_word_rate(s->tree_bps, rate));
    fprintf(to, s->tree_bound_bps > 0 ? "; no trees carry more than %s\n" : "\n", topo_word_rate(s->tree_bound_bps, bound));
    for (uint32_t t = 0; t < s->trees.count; t++) {
        fprintf(to, "%7.2f %%  ", 100.0 * s->trees.share[t] / TREE_SET_WHOLE);
        put_tree(to, s->trees.parent + (size_t)t * m->count, m->count, tree_set_root(&s->trees, t));
        fputc('\n', to);
    }
}

/* The last operation by that algorithm, behind some space. */
static void put_last(FILE *to, const struct topo_matrix *m, enum cost_algo algo, int space)
{
    char size[TOPO_WORD], time[TOPO_WORD];
    for (int kind = 0; kind < TOPO_KINDS; kind++) {
        const struct topo_time *t = &m->times[kind];
        if (t->bytes > 0 && strcmp(topo_kind_name((enum topo_kind)kind), topo_algorithm_name(algo)) == 0) {
            fprintf(to, "%*slast: %s for %s", space, "", topo_word_time((double)t->took_us / 1e6, time), topo_word_bytes((double)t->bytes, size));
        }
    }
}

static void put_times(FILE *to, const struct topo_matrix *m, const struct topo_solution *s)
{
    char size[TOPO_WORD], time[TOPO_WORD], expected[TOPO_WORD];
    bool shown = m->times[TOPO_DIRECT].permille > 0 || m->times[TOPO_RING].permille > 0 || m->times[TOPO_FOREST].permille > 0;
    fprintf(to, "\nall-reduce of %s, predicted from the links alone%s\n", topo_word_bytes(s->job.bytes, size),
            shown ? ", then with what operations have shown" : "");
    for (unsigned a = 0; a < COST_ALGO_COUNT; a++) {
        if (!isfinite(s->choice.predicted_s[a])) {
            continue;
        }
        fprintf(to, "%c %-20s %s", a == s->choice.algo ? '*' : ' ', topo_algorithm_name((enum cost_algo)a),
                topo_word_time(s->choice.predicted_s[a], time));
        if (shown) {
            fprintf(to, "%*s%s", TEXT_TIME - (int)strlen(time), "", topo_word_time(s->expected_s[a], expected));
            put_last(to, m, (enum cost_algo)a, TEXT_TIME - (int)strlen(expected));
        }
        fputc('\n', to);
    }
}

static void put_peers(FILE *to, const struct topo_matrix *m)
{
    fputc('\n', to);
    for (uint32_t s = 0; s < m->site_count && m->site_count < m->count; s++) {
        int used = fprintf(to, "%-13.60s", m->sites[s].name);
        for (uint32_t i = 0; i < m->count; i++) {
            if (m->peers[i].site == s) {
                used = used > TEXT_COLUMNS - 6 ? fprintf(to, "\n%13s", "") - 1 : used;
                used += fprintf(to, " %u", i);
            }
        }
        fputc('\n', to);
    }
}

static void put_title(FILE *to, const struct topo_matrix *m, const struct topo_solution *s)
{
    bool probed = column_used(m, COLUMN_AGE);
    uint32_t observed = 0, assumed = 0;
    for (uint32_t i = 0; i < m->count * m->count; i++) {
        observed += m->cells[i].source == TOPO_OBSERVED;
        assumed += m->cells[i].source == TOPO_ASSUMED;
    }
    fprintf(to, "%s: %u peer%s, %u of %u edges %s", m->title, m->count, m->count == 1 ? "" : "s", s->known - assumed, s->pairs,
            probed || s->known == 0 ? "measured by probes" : "described");
    if (observed > 0) {
        fprintf(to, ", of which operations have raised %u", observed);
    }
    if (assumed > 0) {
        fprintf(to, ", %u assumed to be like others between the same sites", assumed);
    }
    fputc('\n', to);
}

void topo_text_write(FILE *to, const struct topo_matrix *m, const struct topo_solution *s)
{
    put_title(to, m, s);
    if (m->site_count < m->count) {
        put_peers(to, m);
    }
    if (m->count > TOPO_MATRIX_MOST) {
        put_summary(to, m);
    } else {
        for (int of = 0; of < COLUMNS; of++) {
            if (of == COLUMN_RATE || column_used(m, (enum column)of)) {
                put_matrix(to, m, (enum column)of);
            }
        }
    }
    put_ring(to, m, s);
    if (s->no_plan != NULL) {
        fprintf(to, "\nno shares, trees and times: %s\n", s->no_plan);
        return;
    }
    put_sites(to, m, s);
    put_shares(to, m, s);
    put_trees(to, m, s);
    put_times(to, m, s);
}
