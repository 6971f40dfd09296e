/* wan_frame.c - see wan_frame.h.
 * SPDX-License-Identifier: MIT */
#include "pccl/wan_frame.h"

#include <linux/virtio_net.h>
#include <string.h>

enum { IP_LEAST = 20, TCP_LEAST = 20, PROTOCOL_ICMP = 1, PROTOCOL_TCP = 6 };
enum { TCP_FIN = 1, TCP_PSH = 8, TCP_CWR = 128, TCP_FLAGS_AT = 13, TCP_CHECKSUM_AT = 16 };

static uint32_t get16(const uint8_t *at)
{
    return (uint32_t)at[0] << 8 | at[1];
}

static uint32_t get32(const uint8_t *at)
{
    return get16(at) << 16 | get16(at + 2);
}

static void put16(uint8_t *at, uint32_t value)
{
    at[0] = (uint8_t)(value >> 8);
    at[1] = (uint8_t)value;
}

static void put32(uint8_t *at, uint32_t value)
{
    put16(at, value >> 16);
    put16(at + 2, value);
}

/* The one's complement sum of 16-bit words (RFC 1071). */
static uint32_t add_words(uint32_t sum, const uint8_t *at, size_t bytes)
{
    for (size_t i = 0; i + 1 < bytes; i += 2) {
        sum += get16(at + i);
    }
    sum += bytes % 2 != 0 ? (uint32_t)at[bytes - 1] << 8 : 0;
    return sum;
}

static uint32_t fold(uint32_t sum)
{
    sum = (sum & 0xFFFF) + (sum >> 16);
    return (sum & 0xFFFF) + (sum >> 16);
}

static struct virtio_net_hdr vnet_of(const uint8_t *bytes)
{
    struct virtio_net_hdr v;
    memcpy(&v, bytes, sizeof v);
    return v;
}

bool wan_frame_parse(const uint8_t *bytes, size_t size, struct wan_frame *f)
{
    _Static_assert(sizeof(struct virtio_net_hdr) == WAN_VNET_BYTES, "the header that TUN puts in front");
    if (size < WAN_VNET_BYTES + IP_LEAST || size > WAN_PACKET_MOST) {
        return false;
    }
    const uint8_t *ip = bytes + WAN_VNET_BYTES;
    struct virtio_net_hdr v = vnet_of(bytes);
    uint32_t length = (uint32_t)(size - WAN_VNET_BYTES), kind = v.gso_type & ~(uint32_t)VIRTIO_NET_HDR_GSO_ECN;
    *f = (struct wan_frame){.bytes = bytes, .size = size, .ip_bytes = (ip[0] & 15u) * 4, .count = 1};
    if (ip[0] >> 4 != 4 || f->ip_bytes < IP_LEAST || f->ip_bytes > length || get16(ip + 2) != length) {
        return false;
    }
    f->source = get32(ip + 12);
    f->target = get32(ip + 16);
    f->may_fragment = (ip[6] & 0x40) == 0;
    f->header_bytes = f->ip_bytes;
    f->payload_bytes = f->segment_bytes = length - f->ip_bytes;
    if (kind == VIRTIO_NET_HDR_GSO_NONE) {
        return true;
    }
    if (kind != VIRTIO_NET_HDR_GSO_TCPV4 || ip[9] != PROTOCOL_TCP || length < f->ip_bytes + TCP_LEAST) {
        return false;
    }
    uint32_t tcp_bytes = (ip[f->ip_bytes + 12] >> 4) * 4u;
    f->header_bytes += tcp_bytes;
    if (tcp_bytes < TCP_LEAST || f->header_bytes >= length || v.gso_size == 0) {
        return false;
    }
    f->payload_bytes = length - f->header_bytes;
    f->segment_bytes = v.gso_size;
    f->count = (f->payload_bytes + v.gso_size - 1u) / v.gso_size;
    return f->count <= WAN_SEGMENTS_MOST;
}

uint32_t wan_frame_length(const struct wan_frame *f, unsigned segment)
{
    uint32_t before = segment * f->segment_bytes, left = f->payload_bytes - before;
    return f->header_bytes + (left < f->segment_bytes ? left : f->segment_bytes);
}

/* Lengths, numbers, flags and checksums of a run that begins `skipped` bytes behind the first one's. */
static void renumber(const struct wan_frame *f, unsigned first, uint32_t skipped, uint32_t length, bool last, uint8_t *ip)
{
    uint8_t *tcp = ip + f->ip_bytes, pseudo[12];
    put16(ip + 2, length);
    put16(ip + 4, get16(ip + 4) + first);
    put16(ip + 10, 0);
    put16(ip + 10, ~fold(add_words(0, ip, f->ip_bytes)));
    put32(tcp + 4, get32(tcp + 4) + skipped);
    tcp[TCP_FLAGS_AT] &= (uint8_t)~(last ? 0 : TCP_FIN | TCP_PSH);
    tcp[TCP_FLAGS_AT] &= (uint8_t)~(first == 0 ? 0 : TCP_CWR);
    memcpy(pseudo, ip + 12, 8);
    pseudo[8] = 0;
    pseudo[9] = PROTOCOL_TCP;
    put16(pseudo + 10, length - f->ip_bytes);
    put16(tcp + TCP_CHECKSUM_AT, fold(add_words(0, pseudo, sizeof pseudo))); /* of the pseudo-header: the receiver's kernel adds the rest */
}

size_t wan_frame_cut(const struct wan_frame *f, unsigned first, unsigned count, uint8_t *out)
{
    struct virtio_net_hdr v = vnet_of(f->bytes);
    if (f->count == 1 || count == f->count) {
        memcpy(out, f->bytes, f->size);
        return f->size;
    }
    uint32_t skipped = first * f->segment_bytes, bytes = 0;
    for (unsigned i = first; i < first + count; i++) {
        bytes += wan_frame_length(f, i) - f->header_bytes;
    }
    if (count == 1) {
        v.gso_type = VIRTIO_NET_HDR_GSO_NONE;
        v.gso_size = 0;
    }
    memcpy(out, &v, sizeof v);
    memcpy(out + WAN_VNET_BYTES, f->bytes + WAN_VNET_BYTES, f->header_bytes);
    memcpy(out + WAN_VNET_BYTES + f->header_bytes, f->bytes + WAN_VNET_BYTES + f->header_bytes + skipped, bytes);
    renumber(f, first, skipped, f->header_bytes + bytes, first + count == f->count, out + WAN_VNET_BYTES);
    return WAN_VNET_BYTES + f->header_bytes + bytes;
}

size_t wan_frame_toobig(const struct wan_frame *f, uint32_t mtu, uint8_t out[WAN_TOOBIG_BYTES])
{
    uint32_t there = (uint32_t)f->size - WAN_VNET_BYTES, quoted = f->ip_bytes + 8;
    uint8_t *ip = out + WAN_VNET_BYTES, *icmp = ip + IP_LEAST;
    quoted = quoted < there ? quoted : there;
    uint32_t length = IP_LEAST + 8 + quoted;
    memset(out, 0, WAN_VNET_BYTES + IP_LEAST + 8);
    ip[0] = 0x45;
    put16(ip + 2, length);
    ip[8] = 64;
    ip[9] = PROTOCOL_ICMP;
    put32(ip + 12, f->target);
    put32(ip + 16, f->source);
    put16(ip + 10, ~fold(add_words(0, ip, IP_LEAST)));
    icmp[0] = 3; /* destination unreachable */
    icmp[1] = 4; /* fragmentation needed */
    put16(icmp + 6, mtu);
    memcpy(icmp + 8, f->bytes + WAN_VNET_BYTES, quoted);
    put16(icmp + 2, ~fold(add_words(0, icmp, 8 + quoted)));
    return WAN_VNET_BYTES + length;
}
