/* bundle.h - bundles of data connections; with comm.lock unless it says otherwise.
 * SPDX-License-Identifier: MIT */
#ifndef PCCL_ENGINE_BUNDLE_H
#define PCCL_ENGINE_BUNDLE_H

#include "engine/links/link.h"

/* A connection has been accepted or dialled and both ends have agreed.  Takes `conn`. */
void bundle_add(struct link *l, const struct bundle_end *end, struct conn *conn, struct comm_after *after);
void bundle_end(struct link *l);
/* It may be dialled at once, whatever failed before. */
void bundle_retry_now(struct link *l);
int64_t bundle_tick(struct link *l, int64_t now, struct comm_after *after);
/* From a lane, no lock held: one of its connections can be used; broke; is about to be freed. */
void bundle_stream_good(struct stream *s);
void bundle_stream_down(struct stream *s);
void bundle_stream_gone(struct stream *s);

#endif
