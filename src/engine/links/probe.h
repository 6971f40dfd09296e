/* probe.h - measuring an edge; with comm.lock.
 * SPDX-License-Identifier: MIT */
#ifndef PCCL_ENGINE_PROBE_H
#define PCCL_ENGINE_PROBE_H

#include "engine/links/link.h"

void probe_start(struct comm *c, uint64_t peer, uint32_t round, uint64_t duration_ms);
void probe_adopt(struct comm *c, uint64_t from, uint32_t number, struct conn *conn); /* the number that the master has given it */
int64_t probe_tick(struct comm *c, int64_t now, struct comm_after *after);
void probe_end_all(struct comm *c); /* of the membership that is over; the service thread takes them away */
void probe_drop_all(struct comm *c);

#endif
