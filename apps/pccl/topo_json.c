/* topo_json.c - a matrix and what was made of it, as JSON that topo_parse.c reads again.
 *
 * Rates are whole numbers of bits per second: 0 of a link stands for one that is not known or has no limit, null of an edge for no limit.
 * SPDX-License-Identifier: MIT */
#include <inttypes.h>
#include <math.h>

#include "pccl/topo_show.h"

static void put_string(FILE *to, const char *text)
{
    fputc('"', to);
    for (; *text != 0; text++) {
        unsigned char c = (unsigned char)*text;
        if (c < 0x20 || c == 0x7F) {
            fprintf(to, "\\u%04x", c);
        } else {
            fprintf(to, c == '"' || c == '\\' ? "\\%c" : "%c", c);
        }
    }
    fputc('"', to);
}

static void put_order(FILE *to, const char *name, const uint16_t *order, uint32_t count)
{
    fprintf(to, "  \"%s\": ", name);
    for (uint32_t i = 0; order != NULL && i < count; i++) {
        fprintf(to, "%s%u", i == 0 ? "[" : ", ", order[i]);
    }
    fputs(order != NULL ? "],\n" : "null,\n", to);
}

/* Null where there is none, or no limit. */
static void put_rate(FILE *to, const char *name, double bps)
{
    fprintf(to, isfinite(bps) && bps > 0 ? "  \"%s\": %.0f,\n" : "  \"%s\": null,\n", name, bps);
}

static void put_peers(FILE *to, const struct topo_matrix *m)
{
    fputs("  \"sites\": [", to);
    for (uint32_t i = 0; i < m->site_count; i++) {
        fputs(i == 0 ? "\n    {\"name\": " : ",\n    {\"name\": ", to);
        put_string(to, m->sites[i].name);
        fprintf(to, ", \"up_bps\": %" PRIu64 ", \"down_bps\": %" PRIu64 "}", m->sites[i].up_bps, m->sites[i].down_bps);
    }
    fputs("\n  ],\n  \"peers\": [", to);
    for (uint32_t i = 0; i < m->count; i++) {
        const struct topo_peer *p = &m->peers[i];
        fputs(i == 0 ? "\n    {\"name\": " : ",\n    {\"name\": ", to);
        put_string(to, p->name);
        fprintf(to, ", \"site\": %u, \"up_bps\": %" PRIu64 ", \"down_bps\": %" PRIu64, p->site, p->up_bps, p->down_bps);
        if (p->far_up_bps > 0 || p->far_down_bps > 0) {
            fprintf(to, ", \"far_up_bps\": %" PRIu64 ", \"far_down_bps\": %" PRIu64, p->far_up_bps, p->far_down_bps);
        }
        fputc('}', to);
    }
    fputs("\n  ],\n", to);
}

static void put_edges(FILE *to, const struct topo_matrix *m)
{
    bool first = true;
    fputs("  \"edges\": [", to);
    for (uint32_t pair = 0; pair < m->count * m->count; pair++) {
        const struct topo_cell *c = &m->cells[pair];
        if (c->source == TOPO_UNKNOWN) {
            continue;
        }
        fprintf(to, "%s\n    {\"from\": %u, \"to\": %u, \"rate_bps\": ", first ? "" : ",", pair / m->count, pair % m->count);
        fprintf(to, c->rate_bps == TOPO_NO_LIMIT ? "null" : "%" PRIu64, c->rate_bps);
        fprintf(to, ", \"rtt_us\": %u, \"loss_ppm\": %u", c->rtt_us, c->loss_ppm);
        if (topo_source_measured(c->source)) {
            fprintf(to, ", \"age_s\": %u", c->age_s);
        }
        fprintf(to, ", \"source\": \"%s\"}", topo_source_name(c->source));
        first = false;
    }
    fputs("\n  ],\n", to);
}

static void put_times(FILE *to, const struct topo_matrix *m)
{
    bool first = true;
    fputs("  \"operations\": {", to);
    for (int kind = 0; kind < TOPO_KINDS; kind++) {
        const struct topo_time *t = &m->times[kind];
        if (t->permille > 0) {
            fprintf(to, "%s\"%s\": {\"permille\": %u, \"bytes\": %" PRIu64 ", \"took_us\": %" PRIu64 "}", first ? "" : ", ",
                    topo_kind_name((enum topo_kind)kind), t->permille, t->bytes, t->took_us);
            first = false;
        }
    }
    fputs("},\n", to);
}

static void put_predicted(FILE *to, const char *name, const double *seconds)
{
    bool first = true;
    fprintf(to, "  \"%s\": {", name);
    for (unsigned a = 0; a < COST_ALGO_COUNT; a++) {
        if (isfinite(seconds[a])) {
            fprintf(to, "%s\"%s\": %.6g", first ? "" : ", ", topo_algorithm_name((enum cost_algo)a), seconds[a]);
            first = false;
        }
    }
    fputs("},\n", to);
}

static void put_plans(FILE *to, const struct topo_matrix *m, const struct topo_solution *s)
{
    fprintf(to, "  \"shares\": ");
    for (uint32_t i = 0; i < m->count; i++) {
        fprintf(to, "%s%.6f", i == 0 ? "[" : ", ", s->share[i]);
    }
    fprintf(to, "],\n  \"trees\": [");
    for (uint32_t t = 0; t < s->trees.count; t++) {
        fprintf(to, "%s\n    {\"share\": %.6f, \"parents\": ", t == 0 ? "" : ",", (double)s->trees.share[t] / TREE_SET_WHOLE);
        for (uint32_t i = 0; i < m->count; i++) {
            fprintf(to, "%s%u", i == 0 ? "[" : ", ", s->trees.parent[(size_t)t * m->count + i]);
        }
        fprintf(to, "]}");
    }
    fprintf(to, "],\n");
    put_rate(to, "trees_bps", s->tree_bps);
    put_rate(to, "trees_bound_bps", s->tree_bound_bps);
    fprintf(to, "  \"algorithm\": \"%s\",\n", topo_algorithm_name(s->choice.algo));
    put_predicted(to, "predicted_s", s->choice.predicted_s);
    put_predicted(to, "expected_s", s->expected_s);
}

void topo_json_write(FILE *to, const struct topo_matrix *m, const struct topo_solution *s)
{
    fputs("{\n  \"title\": ", to);
    put_string(to, m->title);
    fputs(",\n", to);
    put_peers(to, m);
    put_edges(to, m);
    put_times(to, m);
    put_order(to, "ring_in_use", m->ring, m->count);
    put_rate(to, "ring_in_use_bps", s->used_bps);
    put_order(to, "best_ring", s->known > 0 ? s->ring : NULL, m->count);
    put_rate(to, "best_ring_bps", s->ring_bps);
    put_rate(to, "best_ring_bound_bps", s->known == s->pairs ? s->bound_bps : 0);
    if (s->no_plan == NULL) {
        put_plans(to, m, s);
    }
    fprintf(to, "  \"size_bytes\": %.0f\n}\n", s->job.bytes);
}
