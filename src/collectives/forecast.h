/* forecast.h - whether operations take as long as predicted, and which edge explains it if they do not.
 *
 * Predictions stand on rates that were measured once.  One operation may be late because a member was; three in a row show that the network has
 * changed.  The prediction decides, not a rate: edges that share a link deliver less than each does alone, and predictions know that.
 * Invariant: an edge is looked for at most once in a view.
 * SPDX-License-Identifier: MIT */
#ifndef PCCL_COLLECTIVES_FORECAST_H
#define PCCL_COLLECTIVES_FORECAST_H

#include <stdbool.h>
#include <stdint.h>

enum { FORECAST_CALLS = 3, FORECAST_LEAST_NS = 50000000 /* shorter predictions are about processors */ };
#define FORECAST_TELL_NS INT64_C(30000000000)

struct forecast {
    uint64_t view;     /* of the operations that are counted */
    uint32_t wrong;    /* the last operations, in a row; FORECAST_CALLS: an edge has been looked for */
    bool slower;       /* these took longer than predicted, not shorter */
};

/* An operation of that view has ended.  True: the third in a row that missed its prediction by more than 30 %, on the same side (`slower`). */
bool forecast_missed(struct forecast *f, uint64_t view, int64_t predicted_ns, int64_t took_ns);

/* An edge out of this member. */
struct forecast_edge {
    uint64_t peer;         /* 0: none */
    uint64_t bps;          /* what it delivers now */
    uint64_t measured_bps;
};

/* Keeps in `worst` the edge that misses its measurement by more, if that is over 30 %, on the side of the operations. */
void forecast_edge(const struct forecast *f, struct forecast_edge *worst, const struct forecast_edge *edge);

/* Whether what operations move over an edge is news, since `told_bps` were told `told_ns` ago (0: never): clearly more, or told long ago. */
bool forecast_worth_telling(uint64_t told_bps, uint64_t bps, int64_t told_ns);

#endif
