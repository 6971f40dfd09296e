/* calibration.h - how many times as long as predicted operations take on a world's links.
 *
 * Predictions know the rate of each link, not how well many streams share it.  Members tell how long their operations took, and the next view
 * counts with that.  Of what members say the median counts, and only of more than half of them: one that lies changes nothing.
 * Invariant: a view's calibration is that of the view before, times what its members have told of it.
 * SPDX-License-Identifier: MIT */
#ifndef PCCL_WORLD_CALIBRATION_H
#define PCCL_WORLD_CALIBRATION_H

#include "wire/control.h"

struct world;
struct member;
struct view_record;

enum { CALIBRATION_ONE = 1000 }; /* as predicted from the links alone */

struct calibration {
    uint16_t permille[TOOK_KINDS]; /* 0: as CALIBRATION_ONE */
};

/* The last word of a member about each kind of plan. */
struct calibration_words {
    uint64_t view;                   /* in which they were used */
    struct msg_took word[TOOK_KINDS]; /* permille 0: none */
};

void calibration_take(const struct world *w, struct member *mb, uint64_t view, const struct msg_took *m);

/* Of the view that follows `from`. */
struct calibration calibration_next(const struct world *w, const struct view_record *from);

/* What the links take, in any unit, as it is calibrated. */
double calibration_apply(const struct calibration *c, enum took_kind kind, double links);

/* What a view counts with, and what its members have told since; permille 0: nothing is known of that kind. */
void calibration_tell(const struct world *w, const struct view_record *v, enum took_kind kind, struct topology_took *out);

/* Whether any of these kinds would be predicted to take clearly more or less. */
bool calibration_differs(const struct calibration *a, const struct calibration *b);

#endif
