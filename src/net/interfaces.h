/* interfaces.h - the addresses of this host's interfaces.
 * SPDX-License-Identifier: MIT */
#ifndef PCCL_NET_INTERFACES_H
#define PCCL_NET_INTERFACES_H

#include "wire/control.h"

/* Whether a choice, which is not "", has that name in it: "eth,ib" names that begin so, "=eth0,ib0" these only, "^docker" and
 * "^=docker0" all but those. */
bool interfaces_chosen(const char *choice, const char *name);

/* Addresses of those that are up and chosen ("": all), link-local ones left out, and loopback unless it is named; returns how many
 * were written. */
size_t interfaces_list(const char *choice, struct net_address *out, size_t capacity, uint16_t port);

/* Names of those that are up, for a person. */
void interfaces_names(char *out, size_t size);

#endif
