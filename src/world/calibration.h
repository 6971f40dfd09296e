/* calibration.h - how many times as long as predicted operations take on a group's links.
 *
 * Predictions know the rate of each link, not how well many streams share it.  Members tell how long their operations took, and the next view
 * counts with that.  The upper quartile of what members say counts, and only if more than half of them say something.  What nobody has
 * told for a while fades.  Until they tell, a group that is far apart counts by its size.
 * Invariant: of data that go the same ways a time is learnt, not a factor: links that are measured again do not count twice.
 * SPDX-License-Identifier: MIT */
#ifndef PCCL_WORLD_CALIBRATION_H
#define PCCL_WORLD_CALIBRATION_H

#include "wire/control.h"

enum { WORLD_FAR_NS = 2500000 }; /* one way: from here on links are taken for long ones */

struct world;
struct member;
struct view_record;

struct calibration {
    struct calibration_kind {
        uint16_t permille; /* the view counts with it, beside what its size lets expect; 0: nothing is known */
        double links;      /* what the view predicts from links alone, in any unit; 0: they are not measured */
        uint16_t told;     /* what members made of it when they last told something, */
        int64_t at;        /* ... and when */
    } kind[TOOK_KINDS];
};

/* The last word of a member about each kind of plan. */
struct calibration_words {
    uint64_t view;                    /* in which they were used */
    struct msg_took word[TOOK_KINDS]; /* permille 0: none */
};

void calibration_take(const struct world *w, struct member *mb, uint64_t view, const struct msg_took *m);

/* How many times as long as its links alone the operations of a view are expected to take, by its size. */
double calibration_untold(const struct view_record *v);
/* Predicts that kind for a view after `from`, whose links alone are predicted to take `links`; 0: they are not measured.  `same`: data go the
 * same ways as in `from`. */
double calibration_apply(const struct world *w, const struct view_record *from, struct view_record *v, enum took_kind kind, bool same,
                         double links);

/* Tells what a view counts with, and what its members have told since; permille 0: nothing is known of that kind. */
void calibration_tell(const struct world *w, const struct view_record *v, enum took_kind kind, struct topology_took *out);

#endif
