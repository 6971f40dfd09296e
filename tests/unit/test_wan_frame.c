/* test_wan_frame.c - super-packets that lose some of their segments: what is left must be what a network card would have sent of them.
 *
 * The second implementation here makes each segment from the fields that the packet was made of, with checksums of its own.
 * SPDX-License-Identifier: MIT */
#include "tests/testing.h"

#include <linux/virtio_net.h>

#include "pccl/wan_frame.h"

enum { IP = 20, TCP = 32 /* with options */, MSS = 1448, MOST = 70000 };

struct flow {
    uint32_t payload;   /* bytes */
    uint16_t id;
    uint32_t sequence;
    uint8_t flags;
};

static uint8_t byte_at(uint32_t i)
{
    return (uint8_t)(i * 131 + (i >> 8) * 7 + 3);
}

static void put(uint8_t *at, uint64_t value, int bytes)
{
    for (int i = bytes - 1; i >= 0; i--) {
        at[i] = (uint8_t)value;
        value >>= 8;
    }
}

/* RFC 1071, byte by byte, modulo 65535. */
static uint16_t sum(const uint8_t *at, size_t bytes, uint64_t start)
{
    for (size_t i = 0; i < bytes; i++) {
        start += i % 2 == 0 ? (uint64_t)at[i] << 8 : at[i];
    }
    return (uint16_t)(start == 0 ? 0 : start % 65535 == 0 ? 65535 : start % 65535);
}

static uint64_t pseudo(uint32_t tcp_bytes)
{
    uint8_t p[12] = {10, 77, 0, 1, 10, 77, 0, 2, 0, 6};
    put(p + 10, tcp_bytes, 2);
    return sum(p, sizeof p, 0);
}

/* Headers of `bytes` of the flow from `offset` on; `partial`: the TCP checksum is that of the pseudo-header alone. */
static size_t make_packet(const struct flow *f, uint32_t offset, uint32_t bytes, unsigned index, bool first, bool last, bool partial, uint8_t *ip)
{
    uint8_t *tcp = ip + IP;
    uint32_t length = IP + TCP + bytes;
    memset(ip, 0, IP + TCP);
    ip[0] = 0x45;
    put(ip + 2, length, 2);
    put(ip + 4, (uint64_t)f->id + index, 2);
    ip[6] = 0x40;
    ip[8] = 64;
    ip[9] = 6;
    put(ip + 12, 0x0A4D0001, 4);
    put(ip + 16, 0x0A4D0002, 4);
    put(ip + 10, (uint16_t)~sum(ip, IP, 0), 2);
    put(tcp, 4000, 2);
    put(tcp + 2, 5000, 2);
    put(tcp + 4, f->sequence + offset, 4);
    put(tcp + 8, 77, 4);
    tcp[12] = TCP / 4 << 4;
    tcp[13] = (uint8_t)(f->flags & ~(last ? 0 : 1 | 8) & ~(first ? 0 : 128));
    put(tcp + 14, 512, 2);
    memset(tcp + 20, 1, TCP - 20);
    for (uint32_t i = 0; i < bytes; i++) {
        tcp[TCP + i] = byte_at(offset + i);
    }
    put(tcp + 16, partial ? (uint16_t)pseudo(TCP + bytes) : (uint16_t)~sum(tcp, TCP + bytes, pseudo(TCP + bytes)), 2);
    return length;
}

static size_t make_super(const struct flow *f, uint8_t *out)
{
    struct virtio_net_hdr v = {.flags = VIRTIO_NET_HDR_F_NEEDS_CSUM, .gso_type = VIRTIO_NET_HDR_GSO_TCPV4, .hdr_len = IP + TCP, .gso_size = MSS,
                               .csum_start = IP, .csum_offset = 16};
    memcpy(out, &v, sizeof v);
    return WAN_VNET_BYTES + make_packet(f, 0, f->payload, 0, true, true, true, out + WAN_VNET_BYTES);
}

/* What a network card does with a run: every segment by itself, its checksum completed from the partial one. */
static void expect_segments(const struct flow *f, const uint8_t *run, size_t size, unsigned first, unsigned count)
{
    static uint8_t segment[MOST], want[MOST];
    struct virtio_net_hdr v;
    const uint8_t *ip = run + WAN_VNET_BYTES;
    memcpy(&v, run, sizeof v);
    size_t payload = size - WAN_VNET_BYTES - IP - TCP, step = v.gso_type == VIRTIO_NET_HDR_GSO_NONE ? payload : v.gso_size;
    EXPECT_EQ(v.flags, VIRTIO_NET_HDR_F_NEEDS_CSUM);
    EXPECT_EQ(v.csum_start, IP);
    EXPECT_EQ(v.csum_offset, 16);
    EXPECT_EQ(v.gso_type == VIRTIO_NET_HDR_GSO_NONE, count == 1);
    EXPECT_EQ(v.gso_size, count == 1 ? 0 : MSS);
    EXPECT_EQ(ip[2] << 8 | ip[3], size - WAN_VNET_BYTES);
    EXPECT_EQ(sum(ip, IP, 0), 65535);
    EXPECT_EQ((ip[IP + 16] << 8 | ip[IP + 17]) % 65535, (int)(pseudo((uint32_t)(TCP + payload)) % 65535));
    for (unsigned i = 0; i < count; i++) {
        uint32_t offset = (first + i) * MSS, bytes = f->payload - offset < MSS ? f->payload - offset : MSS;
        bool last = i + 1 == count;
        size_t length = make_packet(f, offset, bytes, first + i, first + i == 0, offset + bytes == f->payload, false, want);
        EXPECT(i * step + bytes <= payload);
        memcpy(segment, ip, IP + TCP);
        memcpy(segment + IP + TCP, ip + IP + TCP + i * step, bytes);
        put(segment + 2, IP + TCP + bytes, 2);
        put(segment + 4, ((unsigned)ip[4] << 8 | ip[5]) + i, 2);
        put(segment + 10, 0, 2);
        put(segment + 10, (uint16_t)~sum(segment, IP, 0), 2);
        uint32_t sequence = (uint32_t)ip[IP + 4] << 24 | (uint32_t)ip[IP + 5] << 16 | (uint32_t)ip[IP + 6] << 8 | ip[IP + 7];
        put(segment + IP + 4, sequence + i * (uint32_t)step, 4);
        segment[IP + 13] = (uint8_t)(ip[IP + 13] & ~(last ? 0 : 1 | 8) & ~(i == 0 ? 0 : 128));
        put(segment + IP + 16, 0, 2);
        put(segment + IP + 16, (uint16_t)~sum(segment + IP, TCP + bytes, pseudo(TCP + bytes)), 2);
        EXPECT(memcmp(segment, want, length) == 0);
    }
}

TEST(every_run_of_segments_is_what_a_network_card_would_have_sent) /* wrong lengths, numbers, flags or checksums: TCP would drop them, or worse */
{
    static uint8_t super[MOST], run[MOST];
    static const uint32_t payloads[] = {MSS + 1, 2 * MSS, 3 * MSS - 7, 10 * MSS, 44 * MSS + 5, 45 * MSS - 1};
    for (size_t p = 0; p < sizeof payloads / sizeof payloads[0]; p++) {
        const struct flow flow = {.payload = payloads[p], .id = 65530, .sequence = 0xFFFFF000, .flags = 0x10 | 8 | 1 | 128};
        struct wan_frame frame;
        EXPECT(wan_frame_parse(super, make_super(&flow, super), &frame));
        EXPECT_EQ(frame.count, (flow.payload + MSS - 1) / MSS);
        EXPECT_EQ(frame.source, 0x0A4D0001);
        EXPECT_EQ(frame.target, 0x0A4D0002);
        for (unsigned first = 0; first < frame.count; first++) {
            for (unsigned count = 1; first + count <= frame.count; count++) {
                size_t size = wan_frame_cut(&frame, first, count, run);
                EXPECT(size <= frame.size);
                expect_segments(&flow, run, size, first, count);
                struct wan_frame again;
                EXPECT(wan_frame_parse(run, size, &again) && again.count == count);
            }
        }
    }
}

TEST(lengths_of_segments_add_up) /* a rate that counts other bytes than go over the wire */
{
    static uint8_t super[MOST];
    const struct flow flow = {.payload = 10 * MSS + 3, .id = 1, .sequence = 1, .flags = 0x10};
    struct wan_frame frame;
    uint32_t all = 0;
    EXPECT(wan_frame_parse(super, make_super(&flow, super), &frame));
    for (unsigned i = 0; i < frame.count; i++) {
        all += wan_frame_length(&frame, i);
    }
    EXPECT_EQ(all, flow.payload + 11 * (IP + TCP));
    EXPECT_EQ(wan_frame_length(&frame, 0), 1500);
    EXPECT_EQ(wan_frame_length(&frame, 10), IP + TCP + 3);
}

TEST(packets_that_cannot_be_passed_on_are_refused) /* a read beyond the end */
{
    static uint8_t super[MOST], bad[MOST];
    const struct flow flow = {.payload = 5 * MSS, .id = 1, .sequence = 1, .flags = 0x10};
    struct wan_frame frame;
    size_t size = make_super(&flow, super);
    static const struct {
        size_t at;
        uint8_t value;
    } changes[] = {
        {WAN_VNET_BYTES, 0x65},      /* IPv6 */
        {WAN_VNET_BYTES, 0x44},      /* a short header */
        {WAN_VNET_BYTES + 2, 0},     /* another length */
        {WAN_VNET_BYTES + 9, 17},    /* segments of UDP */
        {WAN_VNET_BYTES + IP + 12, 0x40}, /* a short TCP header */
        {1, 9},                      /* an unknown kind of segments */
    };
    EXPECT(wan_frame_parse(super, size, &frame));
    for (size_t i = 0; i < sizeof changes / sizeof changes[0]; i++) {
        memcpy(bad, super, size);
        bad[changes[i].at] = changes[i].value;
        EXPECT(!wan_frame_parse(bad, size, &frame));
    }
    memcpy(bad, super, size);
    memset(bad + 4, 0, 2); /* segments of no size */
    EXPECT(!wan_frame_parse(bad, size, &frame));
    memcpy(bad, super, size);
    bad[4] = 1; /* of one byte: more than can be told apart */
    bad[5] = 0;
    EXPECT(!wan_frame_parse(bad, size, &frame));
    for (size_t cut = 0; cut < size; cut += cut < 100 ? 1 : 997) {
        EXPECT(!wan_frame_parse(super, cut, &frame));
    }
}

TEST(the_answer_to_a_packet_that_is_too_big_names_the_size_and_the_packet) /* a path that swallows packets: TCP would stall for ever */
{
    static uint8_t super[MOST];
    uint8_t answer[WAN_TOOBIG_BYTES];
    const struct flow flow = {.payload = 5 * MSS, .id = 1, .sequence = 99, .flags = 0x10};
    struct wan_frame frame;
    EXPECT(wan_frame_parse(super, make_super(&flow, super), &frame));
    EXPECT(!frame.may_fragment);
    size_t size = wan_frame_toobig(&frame, 1400, answer);
    const uint8_t *ip = answer + WAN_VNET_BYTES, *icmp = ip + 20;
    EXPECT_EQ(size, WAN_VNET_BYTES + 20 + 8 + 28);
    EXPECT_EQ(ip[2] << 8 | ip[3], 56);
    EXPECT_EQ(ip[9], 1);
    EXPECT(memcmp(ip + 12, super + WAN_VNET_BYTES + 16, 4) == 0 && memcmp(ip + 16, super + WAN_VNET_BYTES + 12, 4) == 0);
    EXPECT_EQ(sum(ip, 20, 0), 65535);
    EXPECT(icmp[0] == 3 && icmp[1] == 4);
    EXPECT_EQ(icmp[6] << 8 | icmp[7], 1400);
    EXPECT_EQ(sum(icmp, 36, 0), 65535);
    EXPECT(memcmp(icmp + 8, super + WAN_VNET_BYTES, 28) == 0);
}
