/* report.h - the reports of one freeze.
 * SPDX-License-Identifier: MIT */
#ifndef PCCL_WORLD_REPORT_H
#define PCCL_WORLD_REPORT_H

#include "world/world_state.h"

void report_reset(const struct world *w, struct group *g); /* last words stay */
/* Whether a report of this freeze and attempt is waited for from the member (M2); only such a one is worth memory. */
bool report_counts(const struct world *w, const struct group *g, const struct member *mb, uint64_t view, uint32_t attempt);
/* Whether the last words of a member that leaves, about this view, count (B11); takes them, false: they cannot be. */
bool report_last_counts(const struct world *w, const struct group *g, const struct member *mb, uint64_t view);
bool report_last_words(struct world *w, struct group *g, struct member *mb, uint32_t reports, struct reader *r);
void report_index(const struct world *w, struct group *g); /* the records have moved */
enum report_verdict report_take(struct world *w, struct group *g, struct member *mb, const struct msg_frozen *f, struct reader *r);
void report_decide(struct world *w, struct group *g, struct view_record *next); /* M3 */

#endif
