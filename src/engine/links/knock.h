/* knock.h - whether a peer still listens after its control link has closed (M11); with comm.lock, on the service thread but for knock_lost.
 * SPDX-License-Identifier: MIT */
#ifndef PCCL_ENGINE_KNOCK_H
#define PCCL_ENGINE_KNOCK_H

#include "engine/links/link.h"
#include "engine/links/dial.h"

/* The control link was made with the peer at this address; its port is left out. */
void knock_reached(struct link *l, const struct net_address *at);
void knock_lost(struct link *l);
/* Whether it is known already that nobody listens any more; `near`: both ends were on one host. */
bool knock_at_once(const struct link *l, bool near);
void knock_forget(struct link *l); /* the caller cancels its dial */
/* Where to dial the control link, in order; `known`: a refusal at the first one is the answer. */
uint8_t knock_addresses(const struct link *l, struct net_address out[BOUNDS_ADDRESSES], bool *known);
/* A dial of the control link has failed. */
void knock_dialled(struct link *l, const struct dial *d, struct comm_after *after);
int64_t knock_tick(struct link *l, int64_t now);

#endif
