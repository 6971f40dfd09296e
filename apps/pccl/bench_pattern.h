/* bench_pattern.h - what every rank gives and what must come out: small whole numbers that say whose they are and where.
 *
 * One idea: all of it repeats after a short period, so that hundreds of megabytes are filled and compared block by block, with
 * blocks that no part of the library has computed.  Every number is exact in every type, or is rounded once.
 * SPDX-License-Identifier: MIT */
#ifndef PCCL_BENCH_PATTERN_H
#define PCCL_BENCH_PATTERN_H

#include "core/dtype.h"

enum { BENCH_NOBODY = -1 };

struct bench_pattern {
    size_t period;         /* elements */
    size_t element_bytes;
    unsigned world;        /* of those who are there */
    unsigned char *blocks; /* owned: one period of each rank, then one of what is reduced */
};

/* `without`: what the others of those ranks gave, and what comes out, when one is lost; BENCH_NOBODY: all are there.  Ranks
 * close up.  False: no memory. */
bool bench_pattern_init(struct bench_pattern *p, enum dtype type, enum redop op, unsigned world, int without);
void bench_pattern_fini(struct bench_pattern *p);

/* By which a rank multiplies what it gives to a pre-multiplied sum: one number of that type. */
void bench_pattern_factor(enum dtype type, unsigned rank, unsigned char out[8]);

/* Elements `first` .. first + count - 1 of what rank `source` gives; source == world: of what is reduced. */
void bench_pattern_fill(const struct bench_pattern *p, unsigned source, size_t first, void *out, size_t count);
/* How many of the elements at `data` differ from them. */
uint64_t bench_pattern_wrong(const struct bench_pattern *p, unsigned source, size_t first, const void *data, size_t count);

#endif
