/* state_link.h - connections on which shared state travels, one per direction of asking.
 * SPDX-License-Identifier: MIT */
#ifndef PCCL_ENGINE_STATE_LINK_H
#define PCCL_ENGINE_STATE_LINK_H

#include "engine/links/link.h"
#include "engine/links/dial.h"

struct sync_link {
    struct list all; /* in comm.sync_links */
    struct comm *comm;
    uint64_t peer;
    bool dialled;    /* by this end */
    bool wanted;     /* still to be dialled */
    bool ended;      /* the vote is over */
    struct dial *dial;
    struct conn *conn;
};
/* With comm.lock, any thread. */
void sync_link_send(struct comm *c, uint64_t peer, bool answer, const void *bytes, size_t size, const void *data,
                    size_t data_size, struct comm_after *after);
void sync_link_end_all(struct comm *c);
/* With comm.lock, on the service thread. */
void sync_link_adopt(struct comm *c, uint64_t peer, struct conn *conn, struct comm_after *after);
void sync_link_tick(struct comm *c, struct comm_after *after);
void sync_link_drop_all(struct comm *c);

#endif
