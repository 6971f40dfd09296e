/* ccoip.h - default ports.
 *
 * A peer needs one port only (data, shared state and probes share it); the other two constants exist for programs
 * written against older versions.
 * SPDX-License-Identifier: MIT */
#ifndef CCOIP_H
#define CCOIP_H

#define CCOIP_PROTOCOL_PORT_MASTER 48148
#define CCOIP_PROTOCOL_PORT_SHARED_STATE 48149
#define CCOIP_PROTOCOL_PORT_P2P 48150
#define CCOIP_PROTOCOL_PORT_BANDWIDTH_BENCHMARK 48151

#endif
