/* edges.h - pairs of a view without a link.
 * SPDX-License-Identifier: MIT */
#ifndef PCCL_WORLD_EDGES_H
#define PCCL_WORLD_EDGES_H

#include "world/world_state.h"

bool edges_missing(const struct view_record *v, uint64_t x, uint64_t y);
bool edges_misses(struct view_record *v, uint64_t from, uint64_t to, uint32_t capacity); /* says a member of a view being made; false: no room */
/* Counts a break of the edge; true if it has become a missing one of the views to come.  Unreachable: it could not be made
 * at all, which once is enough, provided that somebody can stand in. */
bool edges_broken(struct world *w, struct group *g, const struct edge_report *e);
/* The breaks of this member's edges that this view has counted so far do not count. */
void edges_pardon(const struct world *w, struct group *g, uint64_t id);
void edges_give_up(struct world *w, struct group *g, uint64_t a, uint64_t b); /* without counting */
/* LINKED that nobody asked for: a member has a link again where its view misses one. */
void edges_linked(struct world *w, struct member *mb, const struct msg_linked *l, uint64_t view, struct reader *r);
void edges_unlinked(struct group *g, uint64_t from, uint64_t to); /* ... and has lost it */
void edges_unlinked_all(struct group *g, uint64_t from); /* its connection was resumed: it will say again which it has */
bool edges_healed(const struct world *w, const struct group *g); /* a next view would miss fewer */
/* Into the next view: the missing edges of the published one that have not healed. */
void edges_inherit(struct world *w, struct group *g);
/* All that is missing is noted, LINKED of all included: adds what breaks too often and names relays; the id of a member that cannot be relayed
 * and has to go, 0 if all is well.  *again: not before one more attempt, since one end of a pair has the link that the other had given up
 * before the first heard of this one; *doubted: that was so before, or is now. */
uint64_t edges_close_linked(struct world *w, struct group *g, bool *doubted, bool *again);
/* The same where nobody has been asked to make links yet: true if that has to be tried before anybody loses its place. */
bool edges_unsure(struct world *w, struct group *g);
/* The member that edges_close_linked has returned loses its place: it is told whom it has no link with, and at which addresses these were tried. */
void edges_exclude(struct world *w, struct group *g, uint64_t id);

#endif
