/* measuring.h - what is measured for a vote that asks for a better ring: round trips, then edges one by one, those within sites first, then all
 * edges at once.
 * SPDX-License-Identifier: MIT */
#ifndef PCCL_WORLD_MEASURING_H
#define PCCL_WORLD_MEASURING_H

#include "world/world_state.h"

enum { MEASURE_MEMBERS = 64 }; /* of a group that is asked for all of its edges at once: a bit for each of them */

/* edge_asks.c: a member is asked for edges at once, and answers each of them. */
void edge_asks_begin(struct world *w, int64_t by);      /* with a number of their own, until then */
void edge_ask(struct world *w, struct member *from, uint32_t rank, uint32_t duration_ms); /* the edge to that rank of its view */
/* The rank of the edge that is answered; SLOT_NONE: it was not asked for, or for the second time. */
uint32_t edge_answered(struct world *w, struct member *mb, const struct msg_measured *ms);
void edge_asks_forget(struct world *w); /* nobody waits for answers any more */

/* edge_trips.c: which members are near each other. */
bool edge_trips_start(struct world *w); /* false: nothing is asked for */
void edge_trips_answer(struct world *w, struct member *mb, const struct msg_measured *ms);
void edge_trips_end(struct world *w); /* each member has a site */

/* edge_words.c: what members say of edges unasked; false: it was asked for. */
bool edge_words_take(struct world *w, struct member *mb, const struct msg_measured *ms);

/* edge_probes.c: each peer measures at most one edge at a time, and each site one to others. */
void edge_probes_plan(struct world *w);      /* pairs within sites that nobody knows are to be measured, in one direction */
void edge_probes_plan_far(struct world *w);  /* the others are, of those between two sites one, between the members with the fastest links */
void edge_probes_plan_back(struct world *w); /* the other directions are */
bool edge_probes_start(struct world *w); /* those that may begin now; true: some are under way */
void edge_probes_measured(struct world *w, struct member *mb, const struct msg_measured *ms); /* an answer, perhaps too late */
void edge_probes_heard(struct world *w, struct member *mb, const struct msg_measured *ms); /* the word of the end that a probe goes to */
void edge_probes_expire(struct world *w); /* gives up those that should have been answered */
bool edge_probes_beside(struct world *w); /* the vote has ended: edges that are left are measured beside other work; false: none is */
void edge_probes_beside_look(struct world *w); /* it is time to do so */
void edge_probes_forget(struct world *w); /* nobody waits for answers any more */
int64_t edge_probes_answered_by(const struct world *w, int64_t probe_ns); /* probes of that length that begin now */

/* edge_guess.c: edges between two sites are taken to be alike. */
bool edge_guess_counts(const struct bandwidth_entry *e); /* it was measured, and connects; null does not */
bool edge_guess_more(uint64_t bps, uint64_t than_bps);   /* by a quarter: rates that differ by less are alike */
/* The best edge that was measured from the site of a member of a view to that of another one; null: none was. */
const struct bandwidth_entry *edge_guess_way(const struct world *w, const struct view_record *v, const struct member *one,
                                             const struct member *other);
void edge_guess(struct world *w); /* those that nobody knows get its rate until they are measured, or that of their ends' links */

/* probe_together.c: all at once. */
bool probe_together_start(struct world *w); /* false: nothing is left to measure */
void probe_together_answer(struct world *w, struct member *mb, const struct msg_measured *ms);
void probe_together_end(struct world *w);   /* keeps what is complete */

#endif
