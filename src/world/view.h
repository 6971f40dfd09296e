/* view.h - ending a view and making the next.
 * SPDX-License-Identifier: MIT */
#ifndef PCCL_WORLD_VIEW_H
#define PCCL_WORLD_VIEW_H

#include "world/world_state.h"

void view_settle(struct world *w, struct group *g);
void view_frozen(struct world *w, struct member *mb, struct reader *r);
void view_tick(struct world *w);
int64_t view_deadline(const struct world *w);
void view_persisted(struct world *w, uint64_t number);
/* Begins the next view under a new number: members are the accepted ones of the group and, if asked, the joining ones. */
void view_propose(struct world *w, struct group *g, enum vote_kind answers, bool joining);
void view_publish(struct world *w, struct group *g);
void view_send(struct world *w, struct group *g, struct member *only); /* the published view, to one member or to all */
void view_send_freeze(struct world *w, struct group *g, struct member *only);
/* Ring, sizes and the rest of the next view, once its members and missing edges are known. */
void view_finish(struct world *w, struct group *g, bool joining);
/* The view has nobody left: the group is as if it had just been made, but for its numbers. */
void view_empty(struct world *w, struct group *g);
/* One MASTER_PERSIST with the next views of all groups (only: this one) that are marked in_batch. */
uint64_t view_persist(struct world *w, struct group *only);
/* The same in a batch that has begun, of this number: `behind` records follow. */
void view_put_batch(struct world *w, struct group *only, struct writer *to, uint64_t number, uint32_t behind);

#endif
