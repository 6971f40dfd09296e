/* bench_plot.c - bus bandwidth over size as a picture: SVG, both axes logarithmic, a curve for each collective.
 *
 * One idea: a curve is the lines of the table that have collective, type, operator and placement in common; in place is
 * dashed, plain links are dotted.  The legend shows each curve's line beside its name.  The numbers stand in the file as they
 * are in the table, only scaled.
 * SPDX-License-Identifier: MIT */
#include "pccl/bench_report.h"

#include <math.h>

enum { WIDTH = 960, HEIGHT = 520, LEFT = 76, RIGHT = 300, TOP = 44, BOTTOM = 64, COLOURS = 8, SAMPLE = 34 };

struct range {
    double least, most; /* logarithms, base 2 of sizes, base 10 of GB/s */
};

struct scale {
    struct range x, y;
};

enum curve { OUT_OF_PLACE, IN_PLACE, PLAIN, CURVES };

static const char *const style[CURVES] = {"stroke-width=\"2.5\"", "stroke-width=\"2\" stroke-dasharray=\"8 4\"",
                                          "stroke-width=\"1.5\" stroke-dasharray=\"2 3\""};

static const char *const colours[COLOURS] = {"#1f77b4", "#d62728", "#2ca02c", "#9467bd",
                                             "#ff7f0e", "#17becf", "#8c564b", "#7f7f7f"};

/* GB/s on the bus; 0: there is no such point. */
static double value_of(const struct bench_results *all, const struct bench_line *line, enum curve curve)
{
    switch (curve) {
    case OUT_OF_PLACE: return line->out_of_place.there ? line->out_of_place.busbw : 0;
    case IN_PLACE: return line->in_place.there ? line->in_place.busbw : 0;
    case PLAIN:
        return line->plain_us > 0
                   ? bench_call_busbw(line->job.call, (double)line->job.size / 1e3 / line->plain_us, all->options->world)
                   : 0;
    case CURVES: break;
    }
    return 0;
}

static void widen(struct range *r, double value)
{
    r->least = value < r->least ? value : r->least;
    r->most = value > r->most ? value : r->most;
}

/* Whole powers around all points. */
static struct scale scale_of(const struct bench_results *all)
{
    struct scale s = {{1e9, -1e9}, {1e9, -1e9}};
    for (size_t i = 0; i < all->line_count; i++) {
        widen(&s.x, log2((double)all->lines[i].job.size));
        for (enum curve c = OUT_OF_PLACE; c < CURVES; c++) {
            double value = value_of(all, &all->lines[i], c);
            if (value > 0) {
                widen(&s.y, log10(value));
            }
        }
    }
    if (s.y.least > s.y.most) { /* one rank moves nothing */
        s.y = (struct range){0, 1};
    }
    s.x = (struct range){floor(s.x.least), floor(s.x.least) < ceil(s.x.most) ? ceil(s.x.most) : s.x.most + 1};
    s.y = (struct range){floor(s.y.least), floor(s.y.least) < ceil(s.y.most) ? ceil(s.y.most) : s.y.most + 1};
    return s;
}

static double place(double value, struct range r, double from, double to)
{
    return from + (value - r.least) / (r.most - r.least) * (to - from);
}

static double x_of(const struct scale *s, double log_size)
{
    return place(log_size, s->x, LEFT, WIDTH - RIGHT);
}

static double y_of(const struct scale *s, double log_value)
{
    return place(log_value, s->y, HEIGHT - BOTTOM, TOP);
}

static void print_size(FILE *out, int power)
{
    static const char *const units[] = {"B", "KB", "MB", "GB", "TB"};
    fprintf(out, "%d %s", 1 << (power % 10), units[power / 10]);
}

static void draw_grid(FILE *out, const struct scale *s)
{
    for (int p = (int)s->x.least; p <= (int)s->x.most; p++) {
        if ((p - (int)s->x.least) % 2 != 0) {
            continue;
        }
        double x = x_of(s, p);
        fprintf(out, "<path class=\"grid\" d=\"M%.1f %d V%d\"/><text x=\"%.1f\" y=\"%d\" text-anchor=\"middle\">", x, TOP,
                HEIGHT - BOTTOM, x, HEIGHT - BOTTOM + 18);
        print_size(out, p);
        fprintf(out, "</text>\n");
    }
    static const double between[] = {1, 2, 5}; /* a factor of two or so from line to line */
    bool all = s->y.most - s->y.least <= 3;    /* of more decades each has one label */
    for (int p = (int)s->y.least; p <= (int)s->y.most; p++) {
        for (int k = 0; k < (all && p < (int)s->y.most ? 3 : 1); k++) {
            double y = y_of(s, p + log10(between[k]));
            fprintf(out, "<path class=\"grid\" d=\"M%d %.1f H%d\"/><text x=\"%d\" y=\"%.1f\" text-anchor=\"end\">%g</text>\n", LEFT,
                    y, WIDTH - RIGHT, LEFT - 8, y + 4, between[k] * pow(10, p));
        }
    }
    fprintf(out, "<path class=\"axis\" d=\"M%d %d V%d H%d\"/>\n", LEFT, TOP, HEIGHT - BOTTOM, WIDTH - RIGHT);
    fprintf(out, "<text x=\"%d\" y=\"%d\" font-size=\"14\" text-anchor=\"middle\">size of the buffer (1 KB is 1024 bytes)</text>\n",
            (LEFT + WIDTH - RIGHT) / 2, HEIGHT - 16);
    fprintf(out, "<text transform=\"translate(22 %d) rotate(-90)\" font-size=\"14\" text-anchor=\"middle\">bus bandwidth (GB/s)</text>\n",
            (TOP + HEIGHT - BOTTOM) / 2);
}

static bool same_curve(const struct bench_job *a, const struct bench_job *b)
{
    return a->call == b->call && a->type == b->type && a->op == b->op;
}

/* The points of a curve, from line `first` on; false: there are none. */
static bool draw_curve(FILE *out, const struct bench_results *all, size_t first, const struct scale *s, enum curve curve,
                       const char *colour)
{
    bool begun = false;
    for (size_t i = first; i < all->line_count && same_curve(&all->lines[first].job, &all->lines[i].job); i++) {
        double value = value_of(all, &all->lines[i], curve);
        if (value <= 0) {
            continue;
        }
        if (!begun) {
            fprintf(out, "<path fill=\"none\" stroke=\"%s\" %s d=\"", colour, style[curve]);
        }
        fprintf(out, "%s%.1f %.1f", begun ? " L" : "M", x_of(s, log2((double)all->lines[i].job.size)), y_of(s, log10(value)));
        begun = true;
    }
    fputs(begun ? "\"/>\n" : "", out);
    return begun;
}

static void draw_curves(FILE *out, const struct bench_results *all, const struct scale *s)
{
    static const char *const names[CURVES] = {"", ", in place", ", plain links"};
    int legend = 0, colour = 0;
    for (size_t i = 0; i < all->line_count; i++) {
        const struct bench_job *job = &all->lines[i].job;
        if (i > 0 && same_curve(&all->lines[i - 1].job, job)) {
            continue;
        }
        for (enum curve c = OUT_OF_PLACE; c < CURVES; c++) {
            if (draw_curve(out, all, i, s, c, colours[colour % COLOURS])) {
                int y = TOP + 10 + 18 * legend++, x = WIDTH - RIGHT + 16;
                fprintf(out, "<line x1=\"%d\" y1=\"%d\" x2=\"%d\" y2=\"%d\" stroke=\"%s\" %s/>", x, y - 4, x + SAMPLE, y - 4,
                        colours[colour % COLOURS], style[c]);
                fprintf(out, "<text x=\"%d\" y=\"%d\">%s %s%s%s%s</text>\n", x + SAMPLE + 8, y, job->call->name, job->call->reduces ? bench_op_name(job) : "",
                        job->call->reduces ? " " : "", bench_type_name(job->type), names[c]);
            }
        }
        colour++;
    }
}

void bench_plot_write(FILE *out, const struct bench_results *all)
{
    struct scale s = scale_of(all);
    fprintf(out,
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%d\" height=\"%d\" viewBox=\"0 0 %d %d\" "
            "font-family=\"sans-serif\" font-size=\"12\">\n<style>.grid{stroke:#ddd;fill:none}.axis{stroke:#444;fill:none}</style>\n"
            "<rect width=\"100%%\" height=\"100%%\" fill=\"white\"/>\n",
            WIDTH, HEIGHT, WIDTH, HEIGHT);
    fprintf(out, "<text x=\"%d\" y=\"22\" font-size=\"15\">pccl bench: %u ranks of one host, data over %s</text>\n", LEFT,
            all->options->world, all->transport);
    draw_grid(out, &s);
    draw_curves(out, all, &s);
    fprintf(out, "</svg>\n");
}
