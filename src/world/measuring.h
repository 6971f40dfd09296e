/* measuring.h - probes of edges, one by one and then all at once, for a vote that asks for a better ring.
 * SPDX-License-Identifier: MIT */
#ifndef PCCL_WORLD_MEASURING_H
#define PCCL_WORLD_MEASURING_H

#include "world/world_state.h"

/* edge_words.c: what members say of edges unasked; false: it was asked for. */
bool edge_words_take(struct world *w, struct member *mb, const struct msg_measured *ms);

/* edge_probes.c: each peer measures at most one edge at a time. */
void edge_probes_plan(struct world *w);  /* pairs of members that nobody knows are to be measured, in one direction */
void edge_probes_plan_rest(struct world *w); /* the other directions, and edges that are doubted, are */
bool edge_probes_start(struct world *w); /* those that may begin now; true: some are under way */
void edge_probes_measured(struct world *w, struct member *mb, const struct msg_measured *ms); /* an answer, perhaps too late */
void edge_probes_heard(struct world *w, struct member *mb, const struct msg_measured *ms); /* the word of the end that a probe goes to */
void edge_probes_expire(struct world *w); /* gives up those that should have been answered */
bool edge_probes_beside(struct world *w); /* the vote has ended: edges that are left are measured beside other work; false: none is */
void edge_probes_beside_look(struct world *w); /* it is time to do so */
void edge_probes_forget(struct world *w); /* nobody waits for answers any more */
int64_t edge_probes_answered_by(const struct world *w, int64_t probe_ns); /* probes of that length that begin now */

/* probe_together.c: all at once. */
bool probe_together_start(struct world *w); /* false: nothing is left to measure */
bool probe_together_measured(struct world *w, struct member *mb, const struct msg_measured *ms); /* false: it was not waited for */
void probe_together_end(struct world *w);   /* keeps what is complete */
int64_t probe_together_ns(const struct world *w); /* of each probe */

#endif
