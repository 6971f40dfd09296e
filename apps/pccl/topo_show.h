/* topo_show.h - a matrix and what was made of it: as text, as JSON, as a picture.
 *
 * Its one idea: each form is a function of the two structures alone, so equal ones give equal bytes.
 * SPDX-License-Identifier: MIT */
#ifndef PCCL_TOPO_SHOW_H
#define PCCL_TOPO_SHOW_H

#include <stdio.h>

#include "pccl/topo_solve.h"

enum { TOPO_MATRIX_MOST = 24 }; /* peers whose matrix is printed, and whose pairs are all drawn */

void topo_text_write(FILE *to, const struct topo_matrix *m, const struct topo_solution *s);
void topo_json_write(FILE *to, const struct topo_matrix *m, const struct topo_solution *s);
/* False: no memory. */
bool topo_svg_write(FILE *to, const struct topo_matrix *m, const struct topo_solution *s);

enum { TOPO_WORD = 24 };
/* "120 Mb/s", "1.5 Gb/s", "no limit", "none"; "1.25 s", "never"; "64 MiB". */
const char *topo_word_rate(double bps, char out[TOPO_WORD]);
const char *topo_word_time(double s, char out[TOPO_WORD]);
const char *topo_word_bytes(double bytes, char out[TOPO_WORD]);
/* The gap of the ring to the bound, in per cent. */
double topo_gap(const struct topo_solution *s);

/* topo_place.c: where the picture has its peers. */
struct topo_point {
    double x, y;
    double angle; /* from the middle of the circle */
};
struct topo_frame {
    double x, y, radius; /* of the circle that all peers lie in */
};
/* On a circle in the order of the ring; where peers share sites, one site after the other with gaps between them.  False: no memory. */
bool topo_place(const struct topo_matrix *m, const uint16_t *ring, struct topo_frame frame, struct topo_point *out);

#endif
