/* ccoip_inet.h - internet addresses as plain values.
 *
 * Zero is a valid default: protocol 0 is IPv4, address 0.0.0.0, port 0 ("any").
 * SPDX-License-Identifier: MIT */
#ifndef CCOIP_INET_H
#define CCOIP_INET_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef enum ccoip_inet_protocol_t { inetIPv4, inetIPv6 } ccoip_inet_protocol_t;

/* Address bytes in network order: 127.0.0.1 is {127, 0, 0, 1}. */
typedef struct ccoip_ipv4_address_t {
    uint8_t data[4];
} ccoip_ipv4_address_t;

typedef struct ccoip_ipv6_address_t {
    uint8_t data[16];
} ccoip_ipv6_address_t;

/* Only the member that `protocol` names is read. */
typedef struct ccoip_inet_address_t {
    ccoip_inet_protocol_t protocol;
    ccoip_ipv4_address_t ipv4;
    ccoip_ipv6_address_t ipv6;
} ccoip_inet_address_t;

/* `port` is in host byte order. */
typedef struct ccoip_socket_address_t {
    ccoip_inet_address_t inet;
    uint16_t port;
} ccoip_socket_address_t;

#ifdef __cplusplus
}
#endif

#endif
