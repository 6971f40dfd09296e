/* suspect.h - what peers say about one another, and whom the master blames.
 * SPDX-License-Identifier: MIT */
#ifndef PCCL_WORLD_SUSPECT_H
#define PCCL_WORLD_SUSPECT_H

#include "world/world_state.h"

void suspect_report(struct world *w, struct member *from, const struct msg_suspect *s);
void suspect_blocked(struct world *w, struct member *from, const struct peer_wait *wait);
/* Fills what a heartbeat tells of whom `mb` waits for. */
void suspect_tell_wait(const struct world *w, const struct member *mb, struct msg_heartbeat *hb);
void suspect_tick(struct world *w);
int64_t suspect_deadline(const struct world *w);
/* A freeze with the same members is wanted. */
void suspect_group(struct world *w, struct group *g, enum cause cause, uint64_t culprit, const char *text);

#endif
