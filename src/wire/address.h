/* address.h - addresses as they travel, for people.
 * SPDX-License-Identifier: MIT */
#ifndef PCCL_WIRE_ADDRESS_H
#define PCCL_WIRE_ADDRESS_H

#include "wire/control.h"

enum { ADDRESS_TEXT = 56 };

/* "10.0.0.7:48150", "[fd00:0:0:0:0:0:0:1]:48150"; "?" if unset.  `out` holds ADDRESS_TEXT bytes. */
void address_text(const struct net_address *a, char *out);

/* Ports aside. */
bool address_same_host(const struct net_address *a, const struct net_address *b);

enum { MEMBER_TEXT = ADDRESS_TEXT + 56 };

/* "rank 2 (peer 1.6 at 10.0.0.7:48150)"; without its rank "peer 1.6 at 10.0.0.7:48150"; without an address that is not set, or null.
 * `out` holds MEMBER_TEXT bytes. */
void member_text(uint64_t id, int64_t rank, const struct net_address *address, char *out);

#endif
