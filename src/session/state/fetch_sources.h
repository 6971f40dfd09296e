/* fetch_sources.h - the members that this peer receives shared state from, and the leaves that it has asked of each.
 * SPDX-License-Identifier: MIT */
#ifndef PCCL_SESSION_FETCH_SOURCES_H
#define PCCL_SESSION_FETCH_SOURCES_H

#include "session/session_state.h"

uint32_t source_find(const struct session *s, uint64_t id); /* its index; NONE */
bool source_in_reach(const struct session *s, uint64_t id);
uint32_t source_idle(const struct session *s, uint32_t limit);
void source_add(struct session *s, uint64_t id);
uint32_t source_asked(const struct session *s, uint32_t source, uint32_t leaf); /* index of what it was asked; NONE: it was not */
void source_answered(struct session *s, uint32_t ask);
void source_lost(struct session *s, uint32_t source, bool lied);
size_t source_table_bytes(uint32_t members);
void source_table_use(struct session *s, void *storage, uint32_t members); /* in place of the present one */

#endif
