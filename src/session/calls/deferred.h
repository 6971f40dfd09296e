/* deferred.h - calls that are not launched yet, in their order.
 * SPDX-License-Identifier: MIT */
#ifndef PCCL_SESSION_DEFERRED_H
#define PCCL_SESSION_DEFERRED_H

#include "session/session_state.h"

void deferred_clear(struct session *s);
void deferred_add(struct session *s, uint32_t slot); /* the last one; until its deadline */
void deferred_remove(struct session *s, uint32_t before, uint32_t slot); /* `before`: the one in front of it, NONE: it is the first */
void deferred_wait(struct session *s, uint32_t last, bool all); /* those up to `last` wait for members that are behind; so do all */

#endif
