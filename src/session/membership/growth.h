/* growth.h - what the next event needs of memory.
 * SPDX-License-Identifier: MIT */
#ifndef PCCL_SESSION_GROWTH_H
#define PCCL_SESSION_GROWTH_H

#include "session/session_state.h"

void growth_init(struct session *s); /* all tables, in the arena */
bool growth_met(const struct session *s, const struct session_event *e); /* what the master sent finds room */

#endif
