/* link_why.h - why the data of a pair goes the way it does, in words.
 * SPDX-License-Identifier: MIT */
#ifndef PCCL_ENGINE_LINK_WHY_H
#define PCCL_ENGINE_LINK_WHY_H

#include "engine/links/link.h"

/* In enum share_why: what this end says of itself; what the other end has said, or met, seen from this one; in words. */
uint8_t link_share_own(const struct comm *c);
uint8_t link_share_told(uint8_t theirs);
uint8_t link_share_met(const struct comm *c, uint8_t theirs); /* by the end that dialled data; what this end lacks comes first */
void link_why_data(const struct link *l, enum transport_kind kind, char text[LINK_WHY_BYTES]);
void link_why_control(const struct link *l, bool shares, char text[LINK_WHY_BYTES]);

#endif
