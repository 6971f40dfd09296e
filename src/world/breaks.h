/* breaks.h - the edges of a group that broke, or were given up.
 * SPDX-License-Identifier: MIT */
#ifndef PCCL_WORLD_BREAKS_H
#define PCCL_WORLD_BREAKS_H

#include "world/world_state.h"

struct edge_break *breaks_find(const struct world *w, const struct group *g, uint64_t x, uint64_t y); /* null: there is none */
/* Makes it if there is none, in the place of the oldest if there is no room. */
struct edge_break *breaks_get(const struct world *w, struct group *g, uint64_t x, uint64_t y);
void breaks_since(struct group *g, struct edge_break *k, int64_t since);
void breaks_rebuild(const struct world *w, struct group *g); /* the table lies elsewhere */
void breaks_clear(const struct world *w, struct group *g);
void breaks_check(const struct world *w, const struct group *g);

#endif
