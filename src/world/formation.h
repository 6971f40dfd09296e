/* formation.h - how a world of a given size begins.
 * SPDX-License-Identifier: MIT */
#ifndef PCCL_WORLD_FORMATION_H
#define PCCL_WORLD_FORMATION_H

#include "world/world_state.h"

bool formation_complete(const struct world *w);   /* every seat is claimed, and nothing has failed */
bool formation_kept(const struct world *w);       /* nobody is in it, and somebody may still ask what became of a call */
int64_t formation_deadline(const struct world *w);
void formation_seats(const struct world *w, struct seats *out); /* while it is forming */
void formation_check(const struct world *w);
uint32_t formation_key(const struct world *w, uint64_t id); /* of one that is gone */
/* Before the record of the first view a loss ends all: noted, and true; the member is told with the others. */
bool formation_loses(struct world *w, struct member *mb, enum cause cause, const char *text);
/* A member has gone: if it may not have heard of the first view, its call will ask. */
void formation_gone(struct world *w, const struct member *mb, enum cause cause);
void formation_begin(struct world *w, const struct claim *c);
void formation_tick(struct world *w);
void formation_formed(struct world *w);           /* the first view is on record */
/* Ends it for all, unless its record is on its way or something else has; `format` says why. */
__attribute__((format(printf, 4, 5))) void formation_fail(struct world *w, enum cause cause, uint64_t culprit, const char *format, ...);

#endif
