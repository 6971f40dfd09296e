/* view_table.h - the storage of the installed view, and what follows from it.
 * SPDX-License-Identifier: MIT */
#ifndef PCCL_SESSION_VIEW_TABLE_H
#define PCCL_SESSION_VIEW_TABLE_H

#include "session/session_state.h"

size_t view_table_bytes(uint32_t members);
void view_table_use(struct session *s, void *storage, uint32_t members); /* in place of the present one */
size_t view_edges_bytes(uint32_t edges);
void view_edges_use(struct session *s, void *storage, uint32_t edges);
void view_init(struct session *s);
void view_clear(struct session *s); /* none is installed */
void view_stall(struct session *s, uint32_t stall_ms); /* the view's stall time, if it is less than the own */
void view_relays(struct session *s); /* a view was installed: for whom this peer stands in, whom it has no link with */

#endif
