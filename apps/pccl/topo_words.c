/* topo_words.c - figures with their units, for people.
 * SPDX-License-Identifier: MIT */
#include <math.h>

#include "pccl/topo_show.h"

/* Three digits, or all there are before the point. */
static void put(char out[TOPO_WORD], double value, const char *unit)
{
    int places = value >= 99.95 ? 0 : value >= 9.995 ? 1 : 2;
    snprintf(out, TOPO_WORD, "%.*f %s", places, value, unit);
}

const char *topo_word_rate(double bps, char out[TOPO_WORD])
{
    if (isinf(bps)) {
        snprintf(out, TOPO_WORD, "no limit");
    } else if (!(bps > 0)) {
        snprintf(out, TOPO_WORD, "none");
    } else if (bps < 1e6) {
        put(out, bps / 1e3, "kb/s");
    } else if (bps < 1e9) {
        put(out, bps / 1e6, "Mb/s");
    } else {
        put(out, bps / 1e9, "Gb/s");
    }
    return out;
}

const char *topo_word_time(double s, char out[TOPO_WORD])
{
    if (!(s < 1e6)) {
        snprintf(out, TOPO_WORD, "never");
    } else if (s < 1e-3) {
        put(out, s * 1e6, "us");
    } else if (s < 1) {
        put(out, s * 1e3, "ms");
    } else {
        put(out, s, "s");
    }
    return out;
}

const char *topo_word_bytes(double bytes, char out[TOPO_WORD])
{
    static const char *const units[] = {"B", "KiB", "MiB", "GiB"};
    int unit = 0;
    for (; unit < 3 && bytes >= 1024; unit++) {
        bytes /= 1024;
    }
    snprintf(out, TOPO_WORD, "%.4g %s", bytes, units[unit]);
    return out;
}

double topo_gap(const struct topo_solution *s)
{
    return s->ring_proven || !(s->bound_bps > 0) || isinf(s->bound_bps) ? 0 : 100 * (1 - s->ring_bps / s->bound_bps);
}
