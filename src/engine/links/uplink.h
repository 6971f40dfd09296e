/* uplink.h - the connection with the master.
 * SPDX-License-Identifier: MIT */
#ifndef PCCL_ENGINE_UPLINK_H
#define PCCL_ENGINE_UPLINK_H

#include "engine/links/link.h"

/* With comm.lock, on the service thread. */
int64_t uplink_tick(struct comm *c, int64_t now, struct comm_after *after);
struct uplink {
    struct list all; /* in comm.uplinks */
    struct comm *comm;
    struct conn *conn; /* one reference; comm.master while it is the current one */
};
void uplink_init(struct comm *c);
/* With comm.lock, any thread. */
void uplink_dial_at(struct comm *c, int64_t when);
void uplink_close(struct comm *c);
/* On the service thread. */
void uplink_drop_all(struct comm *c);

#endif
