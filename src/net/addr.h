/* addr.h - internet addresses: between text, the wire's struct net_address and the system's sockaddr.
 *
 * An IPv4 address mapped into IPv6 is the IPv4 address: it is unmapped wherever it comes in, so equal means equal.
 * SPDX-License-Identifier: MIT */
#ifndef PCCL_NET_ADDR_H
#define PCCL_NET_ADDR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>

#include "core/status.h"
#include "wire/address.h"
#include "wire/control.h"

enum { ADDR_TEXT = 64 }; /* "[ffff:...:255.255.255.255]:65535" and its zero fit */

/* Bytes used of `out`. */
socklen_t addr_to_system(const struct net_address *a, struct sockaddr_storage *out);
/* False if the family is neither IPv4 nor IPv6. */
bool addr_from_system(struct net_address *out, const struct sockaddr_storage *in);

bool addr_equal(const struct net_address *a, const struct net_address *b); /* port included */
bool addr_is_any(const struct net_address *a);
bool addr_is_loopback(const struct net_address *a);

/* "1.2.3.4:5" or "[::1]:5" into `out`, which it returns. */
const char *addr_format(const struct net_address *a, char out[ADDR_TEXT]);

/* "host:port", "host", "1.2.3.4:5", "[::1]:5", "::1"; names are resolved, which may block.  Scopes ("fe80::1%eth0")
 * are refused. */
pccl_status addr_parse(const char *text, uint16_t default_port, struct net_address *out, struct err *err) PCCL_MUST_CHECK;

#endif
