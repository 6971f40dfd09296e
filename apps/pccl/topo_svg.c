/* topo_svg.c - a matrix and what was made of it, as a picture.
 *
 * Its one idea: colour says how fast an edge is, width how much of a buffer the predicted algorithm sends over it.
 * The picture has a ground of its own, so it can be read on any page; a reader with a dark theme gets a dark one.
 * SPDX-License-Identifier: MIT */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "pccl/topo_show.h"

enum { SVG_WIDTH = 1060, SVG_HEIGHT = 780, SVG_LEGEND = 800, SVG_COLOURS = 5, SVG_NAME = 24 };

/* Slow to fast; each can be told from both grounds. */
static const char *const colours[SVG_COLOURS] = {"#d0342c", "#e8871e", "#b59a00", "#2a9d5c", "#2f7fd0"};

static const double half_turn = 3.141592653589793;

struct drawing {
    FILE *to;
    const struct topo_matrix *m;
    const struct topo_solution *s;
    struct topo_point *at; /* owned */
    double least, most;    /* rates, finite ones above 0 */
    double heaviest;       /* load of a pair, its heavier direction */
    bool all_pairs;        /* or only the loaded ones */
};

static void put_text(FILE *to, const char *text, size_t most)
{
    for (size_t i = 0; text[i] != 0 && i < most; i++) {
        unsigned char c = (unsigned char)text[i];
        if (c == '<' || c == '>' || c == '&' || c == '"') {
            fprintf(to, "&#%u;", c);
        } else {
            fputc(c < 0x20 || c >= 0x7F ? '?' : c, to);
        }
    }
    fputs(strlen(text) > most ? "..." : "", to);
}

/* ---- edges --------------------------------------------------------------------------------------------------------- */

static double cell_rate(const struct topo_cell *c)
{
    return c->rate_bps == TOPO_NO_LIMIT ? INFINITY : (double)c->rate_bps;
}

/* Of the slower direction; negative: neither is known. */
static double pair_rate(const struct drawing *d, uint32_t i, uint32_t k)
{
    const struct topo_cell *there = &d->m->cells[i * d->m->count + k], *back = &d->m->cells[k * d->m->count + i];
    if (there->source == TOPO_UNKNOWN || back->source == TOPO_UNKNOWN) {
        return there->source != TOPO_UNKNOWN ? cell_rate(there) : back->source != TOPO_UNKNOWN ? cell_rate(back) : -1;
    }
    return fmin(cell_rate(there), cell_rate(back));
}

static double pair_load(const struct drawing *d, uint32_t i, uint32_t k)
{
    return fmax(d->s->load[i * d->m->count + k], d->s->load[k * d->m->count + i]);
}

/* The rate from which on a colour is used: equal steps of the logarithm. */
static double colour_from(const struct drawing *d, int colour)
{
    return d->least * pow(d->most / d->least, (double)colour / SVG_COLOURS);
}

static const char *colour_of(const struct drawing *d, double rate)
{
    int colour = SVG_COLOURS - 1;
    while (colour > 0 && d->most > d->least && rate < colour_from(d, colour) * (1 - 1e-9)) {
        colour--;
    }
    return colours[colour];
}

static void measure(struct drawing *d)
{
    uint32_t n = d->m->count, loaded = 0;
    d->least = INFINITY;
    for (uint32_t i = 0; i < n; i++) {
        for (uint32_t k = i + 1; k < n; k++) {
            double rate = pair_rate(d, i, k), load = pair_load(d, i, k);
            d->least = rate > 0 && rate < d->least ? rate : d->least;
            d->most = isfinite(rate) && rate > d->most ? rate : d->most;
            d->heaviest = load > d->heaviest ? load : d->heaviest;
            loaded += load > 0;
        }
    }
    d->least = isfinite(d->least) ? d->least : d->most;
    d->all_pairs = n <= TOPO_MATRIX_MOST;
    if (!d->all_pairs && (loaded == 0 || loaded > 4 * n)) { /* too many to be seen: the ring alone */
        memset(d->s->load, 0, (size_t)n * n * sizeof *d->s->load);
        for (uint32_t i = 0; i < n; i++) {
            d->s->load[d->s->ring[i] * n + d->s->ring[(i + 1) % n]] = 1;
        }
        d->heaviest = 0;
    }
}

/* Of what is drawn; those with the least load first, so that the others lie on top. */
struct line {
    uint32_t from, to;
    double rate, load;
};

static int by_load(const void *a, const void *b)
{
    const struct line *x = a, *y = b;
    return x->load != y->load ? (x->load > y->load) - (x->load < y->load) : (x->rate < y->rate) - (x->rate > y->rate);
}

static void put_line(const struct drawing *d, const struct line *l)
{
    const struct topo_point *a = &d->at[l->from], *b = &d->at[l->to];
    double width = d->heaviest > 0 ? (l->load > 0 ? 1 + 6 * l->load / d->heaviest : 0.8) : d->all_pairs || d->m->site_count < d->m->count ? 1.6 : 5; /* a ring at the rim is thick */
    bool faint = d->heaviest > 0 && !(l->load > 0);
    char there[TOPO_WORD], back[TOPO_WORD];
    topo_word_rate(cell_rate(&d->m->cells[l->from * d->m->count + l->to]), there);
    topo_word_rate(cell_rate(&d->m->cells[l->to * d->m->count + l->from]), back);
    fprintf(d->to, "<line x1=\"%.1f\" y1=\"%.1f\" x2=\"%.1f\" y2=\"%.1f\" stroke=\"%s\" stroke-width=\"%.1f\"%s><title>%u to %u: %s, back %s</title></line>\n",
            a->x, a->y, b->x, b->y, colour_of(d, l->rate), width, faint ? " stroke-opacity=\"0.45\"" : "", l->from, l->to, there, back);
}

static bool put_edges(const struct drawing *d)
{
    uint32_t n = d->m->count;
    struct line *lines = calloc((size_t)n * n, sizeof *lines);
    size_t count = 0;
    for (uint32_t i = 0; lines != NULL && i < n; i++) {
        for (uint32_t k = i + 1; k < n; k++) {
            struct line l = {i, k, pair_rate(d, i, k), pair_load(d, i, k)};
            if (l.rate > 0 && (d->all_pairs || l.load > 0)) {
                lines[count++] = l;
            }
        }
    }
    if (lines != NULL) {
        qsort(lines, count, sizeof *lines, by_load);
    }
    fputs("<g stroke-linecap=\"round\">\n", d->to);
    for (size_t i = 0; i < count; i++) {
        put_line(d, &lines[i]);
    }
    fputs("</g>\n", d->to);
    free(lines);
    return lines != NULL;
}

/* ---- sites --------------------------------------------------------------------------------------------------------- */

/* A band behind the peers of each site that has several. */
static void put_sites(const struct drawing *d, struct topo_frame frame)
{
    for (uint32_t s = 0; d->m->site_count < d->m->count && s < d->m->site_count; s++) {
        double from = INFINITY, to = -INFINITY;
        for (uint32_t i = 0; i < d->m->count; i++) {
            bool here = d->m->peers[i].site == s;
            from = here ? fmin(from, d->at[i].angle) : from;
            to = here ? fmax(to, d->at[i].angle) : to;
        }
        if (to > from) {
            fprintf(d->to, "<path class=\"site\" d=\"M %.1f %.1f A %.1f %.1f 0 %d 1 %.1f %.1f\"><title>", frame.x + frame.radius * cos(from),
                    frame.y + frame.radius * sin(from), frame.radius, frame.radius, to - from > half_turn, frame.x + frame.radius * cos(to),
                    frame.y + frame.radius * sin(to));
            put_text(d->to, d->m->sites[s].name, SVG_NAME);
            fputs("</title></path>\n", d->to);
        }
    }
}

/* ---- peers --------------------------------------------------------------------------------------------------------- */

struct label {
    double x, y, size, turned; /* degrees */
    const char *anchor;
};

static void put_label(const struct drawing *d, uint32_t i, const struct label *l, const char *class)
{
    fprintf(d->to, "<text%s x=\"%.1f\" y=\"%.1f\" font-size=\"%.1f\" text-anchor=\"%s\"", class, l->x, l->y, l->size, l->anchor);
    if (d->all_pairs) {
        fprintf(d->to, ">%u ", i);
    } else { /* turned, so that neighbours do not meet */
        fprintf(d->to, " transform=\"rotate(%.1f %.1f %.1f)\">", l->turned, l->x, l->y);
    }
    put_text(d->to, d->m->peers[i].name, SVG_NAME);
    fputs("</text>\n", d->to);
}

static void put_peer(const struct drawing *d, uint32_t i, double dot, double size)
{
    const struct topo_point *p = &d->at[i];
    double gap = dot + (d->m->site_count < d->m->count ? 10 : 5), x = p->x + gap * cos(p->angle), y = p->y + gap * sin(p->angle), turned = p->angle * 180 / half_turn;
    bool left = cos(p->angle) < -1e-9, above = d->all_pairs && fabs(cos(p->angle)) < 0.2; /* at the top and bottom a label is centred */
    struct label l = {x, y, size, left ? turned + 180 : turned, above ? "middle" : left ? "end" : "start"};
    double down = above ? (sin(p->angle) > 0 ? size * 0.8 : -2) : size * 0.35; /* from the middle of the letters to their foot */
    double tilt = d->all_pairs ? 0 : p->angle + (left ? half_turn : 0);
    l.x -= down * sin(tilt);
    l.y += down * cos(tilt);
    fprintf(d->to, "<circle class=\"peer\" cx=\"%.1f\" cy=\"%.1f\" r=\"%.1f\"/>\n", p->x, p->y, dot);
    if (d->all_pairs) {
        put_label(d, i, &l, " class=\"halo\""); /* where edges pass below it */
    }
    put_label(d, i, &l, "");
}

static double label_size(const struct topo_matrix *m)
{
    double crowd = (double)m->count / TOPO_MATRIX_MOST;
    return crowd <= 1 ? 14 : fmax(5.5, 13 / pow(crowd, 0.45));
}

static void put_peers(const struct drawing *d)
{
    double crowd = (double)d->m->count / TOPO_MATRIX_MOST, dot = crowd <= 1 ? 7 : fmax(1.2, 4 / sqrt(crowd));
    for (uint32_t i = 0; i < d->m->count; i++) {
        put_peer(d, i, dot, label_size(d->m));
    }
}

/* The circle leaves room for the longest label. */
static struct topo_frame frame_for(const struct topo_matrix *m)
{
    size_t longest = 0;
    for (uint32_t i = 0; i < m->count; i++) {
        size_t length = strlen(m->peers[i].name);
        longest = length > longest ? length : longest;
    }
    bool few = m->count <= TOPO_MATRIX_MOST; /* with numbers before the names */
    double letters = (double)(longest < SVG_NAME ? longest : SVG_NAME + 3) + (few ? 3 : 0);
    return (struct topo_frame){395, 410, fmin(few ? 260 : 310, (few ? 375 : 345) - letters * label_size(m) * 0.6)};
}

/* ---- legend -------------------------------------------------------------------------------------------------------- */

static int put_row(const struct drawing *d, int y, const char *text)
{
    fprintf(d->to, "<text x=\"%d\" y=\"%d\">%s</text>\n", SVG_LEGEND, y, text);
    return y + 20;
}

static int put_rates(const struct drawing *d, int y)
{
    char rate[TOPO_WORD], row[64];
    if (!(d->most > 0)) {
        return y; /* no edge has a rate */
    }
    fprintf(d->to, "<text class=\"head\" x=\"%d\" y=\"%d\">Rate of an edge, slower direction</text>\n", SVG_LEGEND, y);
    int first = d->most > d->least ? 0 : SVG_COLOURS - 1;
    for (int i = SVG_COLOURS - 1; i >= first; i--) {
        y += 20;
        topo_word_rate(first > 0 ? d->most : colour_from(d, i), rate);
        snprintf(row, sizeof row, first > 0 ? "%s" : "from %s", rate);
        fprintf(d->to, "<line x1=\"%d\" y1=\"%d\" x2=\"%d\" y2=\"%d\" stroke=\"%s\" stroke-width=\"4\"/>\n<text x=\"%d\" y=\"%d\">%s</text>\n",
                SVG_LEGEND, y - 4, SVG_LEGEND + 36, y - 4, colours[i], SVG_LEGEND + 46, y, row);
    }
    return y + 32;
}

static int put_load(const struct drawing *d, int y)
{
    if (!(d->heaviest > 0)) {
        return d->all_pairs ? y : put_row(d, y, "Only the best ring is drawn") + 12;
    }
    fprintf(d->to, "<text class=\"head\" x=\"%d\" y=\"%d\">Load, copies of the buffer</text>\n", SVG_LEGEND, y);
    for (int i = 2; i >= (d->all_pairs ? 0 : 1); i--) {
        double part = d->heaviest * i / 2;
        y += 20;
        fprintf(d->to, "<line class=\"load\" x1=\"%d\" y1=\"%d\" x2=\"%d\" y2=\"%d\" stroke-width=\"%.1f\"/>\n<text x=\"%d\" y=\"%d\">%.2f</text>\n",
                SVG_LEGEND, y - 4, SVG_LEGEND + 36, y - 4, i > 0 ? 1 + 3.0 * i : 0.8, SVG_LEGEND + 46, y, part);
    }
    return y + 32;
}

static int put_times(const struct drawing *d, int y)
{
    char size[TOPO_WORD], time[TOPO_WORD], row[96];
    fprintf(d->to, "<text class=\"head\" x=\"%d\" y=\"%d\">All-reduce of %s, expected</text>\n", SVG_LEGEND, y,
            topo_word_bytes(d->s->job.bytes, size));
    y += 20;
    for (unsigned a = 0; a < COST_ALGO_COUNT; a++) {
        if (isfinite(d->s->choice.predicted_s[a])) {
            bool drawn = a == d->s->choice.algo && d->heaviest > 0;
            snprintf(row, sizeof row, "%s: %s%s", topo_algorithm_name((enum cost_algo)a), topo_word_time(d->s->expected_s[a], time),
                     drawn ? " (its load is drawn)" : "");
            y = put_row(d, y, row);
        }
    }
    return y + 12;
}

/* With sites that have several peers. */
static void put_site_names(const struct drawing *d, int y)
{
    enum { SHOWN = 10 };
    fprintf(d->to, "<text class=\"head\" x=\"%d\" y=\"%d\">Sites, clockwise</text>\n", SVG_LEGEND, y);
    for (uint32_t s = 0; s < d->m->site_count && s < SHOWN; s++) {
        y += 20;
        fprintf(d->to, "<text x=\"%d\" y=\"%d\">", SVG_LEGEND, y);
        put_text(d->to, d->m->sites[s].name, SVG_NAME);
        fputs(s + 1 == SHOWN && s + 1 < d->m->site_count ? ", and more</text>\n" : "</text>\n", d->to);
    }
}

static void put_legend(const struct drawing *d)
{
    char rate[TOPO_WORD], row[96];
    int y = put_load(d, put_rates(d, 70));
    if (d->s->known > 0) {
        fprintf(d->to, "<text class=\"head\" x=\"%d\" y=\"%d\">Best ring</text>\n", SVG_LEGEND, y);
        snprintf(row, sizeof row, "slowest edge: %s", topo_word_rate(d->s->ring_bps, rate));
        y = put_row(d, y + 20, row);
        if (d->s->known == d->s->pairs) {
            snprintf(row, sizeof row, "gap to the proven bound: %.1f %%", topo_gap(d->s));
            y = put_row(d, y, row);
        }
        y += 12;
    }
    if (d->s->no_plan == NULL) {
        y = put_times(d, y);
    } else {
        snprintf(row, sizeof row, "%u of %u edges are known", d->s->known, d->s->pairs);
        y = put_row(d, y, row) + 12;
    }
    if (d->m->site_count < d->m->count) {
        put_site_names(d, y);
    }
}

bool topo_svg_write(FILE *to, const struct topo_matrix *m, const struct topo_solution *s)
{
    struct drawing d = {.to = to, .m = m, .s = s, .at = calloc(m->count, sizeof *d.at)};
    struct topo_frame frame = frame_for(m);
    if (d.at == NULL || !topo_place(m, s->ring, frame, d.at)) {
        free(d.at);
        return false;
    }
    measure(&d);
    fprintf(to, "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %d %d\" width=\"%d\" height=\"%d\" font-family=\"sans-serif\" font-size=\"13\">\n",
            SVG_WIDTH, SVG_HEIGHT, SVG_WIDTH, SVG_HEIGHT);
    fputs("<style>\n.ground { fill: #fcfcfa; stroke: #c8c8c4 } text { fill: #1d1f24 } .head { font-weight: bold }\n"
          ".site { fill: none; stroke: #dcdcd6; stroke-width: 30; stroke-linecap: round } .halo { stroke: #fcfcfa; stroke-width: 4; stroke-linejoin: round } .peer { fill: #3b3f4a } .load { stroke: #6b7080 }\n"
          "@media (prefers-color-scheme: dark) {\n.ground { fill: #17191e; stroke: #3a3d45 } text { fill: #e6e6e2 }\n"
          ".site { stroke: #2b2e36 } .halo { stroke: #17191e } .peer { fill: #c9ccd4 } .load { stroke: #9aa0b0 } }\n</style>\n", to);
    fprintf(to, "<rect class=\"ground\" x=\"0.5\" y=\"0.5\" width=\"%d\" height=\"%d\" rx=\"8\"/>\n<text x=\"24\" y=\"34\" font-size=\"18\">", SVG_WIDTH - 1,
            SVG_HEIGHT - 1);
    put_text(to, m->title, 80);
    fprintf(to, ": %u peer%s</text>\n", m->count, m->count == 1 ? "" : "s");
    put_sites(&d, frame);
    bool good = put_edges(&d);
    put_peers(&d);
    put_legend(&d);
    fputs("</svg>\n", to);
    free(d.at);
    return good;
}
