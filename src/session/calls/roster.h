/* roster.h - the members that the ranks of a program mean.
 * SPDX-License-Identifier: MIT */
#ifndef PCCL_SESSION_ROSTER_H
#define PCCL_SESSION_ROSTER_H

#include "session/session_state.h"

void roster_lose(struct session *s, uint64_t view, uint32_t rank);
void roster_order(struct session *s); /* those lost have left the view */
void roster_moved(struct session *s); /* the snapshot did */
uint64_t roster_member(const struct session *s, uint32_t called); /* 0: there is none of that rank */
uint32_t roster_rank(const struct session *s, uint64_t id);      /* NONE: it is not in it */
size_t roster_bytes(uint32_t members);
void roster_use(struct session *s, void *storage, uint32_t members); /* in place of the present one */
void roster_clear(struct session *s); /* views count anew */

#endif
