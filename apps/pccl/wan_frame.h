/* wan_frame.h - what a TUN device with offload hands over: a vnet header and an IPv4 packet, which may stand for many TCP segments.
 *
 * One idea: a super-packet stays whole as long as all of its segments fare alike; otherwise runs of segments are cut out of it, each again
 * a super-packet.  Invariant: the segments of all runs that cover a packet carry the bytes, numbers and flags that a
 * network card would have given them.
 * SPDX-License-Identifier: MIT */
#ifndef PCCL_WAN_FRAME_H
#define PCCL_WAN_FRAME_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    WAN_VNET_BYTES = 10,
    WAN_PACKET_MOST = 65535 + WAN_VNET_BYTES,
    WAN_SEGMENTS_MOST = 2048,
    WAN_TOOBIG_BYTES = WAN_VNET_BYTES + 20 + 8 + 60 + 8
};

struct wan_frame {
    const uint8_t *bytes; /* borrowed; from the vnet header on */
    size_t size;
    uint32_t source, target; /* host byte order */
    uint32_t ip_bytes, header_bytes; /* of the IP header; of all headers */
    uint32_t payload_bytes, segment_bytes; /* behind the headers: of all segments; of each but the last */
    unsigned count; /* segments */
    bool may_fragment;
};

/* False: no IPv4 packet that can be passed on. */
bool wan_frame_parse(const uint8_t *bytes, size_t size, struct wan_frame *out);
/* Length of the IP packet of one segment. */
uint32_t wan_frame_length(const struct wan_frame *f, unsigned segment);
/* Writes the segments from `first` on, with a vnet header; the bytes written, at most f->size. */
size_t wan_frame_cut(const struct wan_frame *f, unsigned first, unsigned count, uint8_t *out);
/* Writes the ICMP message "fragmentation needed" (RFC 1191) that answers it; the bytes written. */
size_t wan_frame_toobig(const struct wan_frame *f, uint32_t mtu, uint8_t out[WAN_TOOBIG_BYTES]);

#endif
