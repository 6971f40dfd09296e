/* address.h - addresses as they travel, for people.
 * SPDX-License-Identifier: MIT */
#ifndef PCCL_WIRE_ADDRESS_H
#define PCCL_WIRE_ADDRESS_H

#include "wire/control.h"

enum { ADDRESS_TEXT = 56 };

/* "10.0.0.7:48150", "[fd00:0:0:0:0:0:0:1]:48150"; "?" if unset.  `out` holds ADDRESS_TEXT bytes. */
void address_text(const struct net_address *a, char *out);

#endif
