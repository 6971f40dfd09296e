/* test_wire_codec.c - the cursors and the frame header: nothing is touched past an end, nothing wrong is believed.
 * SPDX-License-Identifier: MIT */
#include "tests/testing.h"

#include "core/bounds.h"
#include "core/random.h"
#include "wire/codec.h"
#include "wire/frame.h"
#include "wire/p2p.h"

TEST(integers_are_little_endian) /* a peer of another byte order would read other numbers */
{
    static const unsigned char expected[] = {0x01, 0x03, 0x02, 0x07, 0x06, 0x05, 0x04, 0xFF,
                                             0x0E, 0x0D, 0x0C, 0x0B, 0x0A, 0x09, 0x08};
    unsigned char out[15];
    struct writer w;
    writer_init(&w, out, sizeof out);
    put_u8(&w, 0x01);
    put_u16(&w, 0x0203);
    put_u32(&w, 0x04050607);
    put_u64(&w, 0x08090A0B0C0D0EFFu);
    EXPECT(!w.bad);
    EXPECT_EQ(w.used, 15);
    EXPECT(memcmp(out, expected, sizeof expected) == 0);
    struct reader r;
    reader_init(&r, expected, sizeof expected);
    EXPECT_EQ(get_u8(&r), 0x01);
    EXPECT_EQ(get_u16(&r), 0x0203);
    EXPECT_EQ(get_u32(&r), 0x04050607);
    EXPECT(get_u64(&r) == 0x08090A0B0C0D0EFFu);
    EXPECT(reader_done(&r));
}

TEST(a_bad_reader_stays_bad_and_reads_zeroes) /* half-read messages would be acted on */
{
    static const unsigned char bytes[] = {1, 2, 3, 4, 5};
    struct reader r;
    reader_init(&r, bytes, sizeof bytes);
    EXPECT_EQ(get_u64(&r), 0);
    EXPECT(r.bad);
    EXPECT_EQ(get_u8(&r), 0);
    EXPECT(get_bytes(&r, 0) == NULL);
    EXPECT_EQ(get_count(&r, 1, 5), 0);
    char text[4] = "abc";
    get_text(&r, text, sizeof text);
    EXPECT_STR(text, "");
    EXPECT(!reader_done(&r));
}

TEST(a_bad_writer_writes_nothing_more) /* a message with a hole would be sent */
{
    unsigned char out[4] = {9, 9, 9, 9};
    struct writer w;
    writer_init(&w, out, 3);
    put_u16(&w, 0x0101);
    put_u16(&w, 0x0202);
    EXPECT(w.bad);
    put_u8(&w, 3);
    EXPECT_EQ(w.used, 2);
    EXPECT_EQ(out[2], 9);
    EXPECT(w.bad);
    volatile size_t huge = SIZE_MAX; /* 2 + SIZE_MAX is 1, which would fit */
    writer_init(&w, out, sizeof out);
    put_u16(&w, 0x0101);
    put_bytes(&w, out, huge);
    EXPECT(w.bad);
    EXPECT_EQ(w.used, 2);
}

TEST(empty_input_is_done_at_once)
{
    struct reader r;
    reader_init(&r, NULL, 0);
    EXPECT(reader_done(&r));
    (void)get_bytes(&r, 0);
    EXPECT(reader_done(&r));
    (void)get_bytes(&r, SIZE_MAX);
    EXPECT(!reader_done(&r));
}

static uint32_t count_of(uint32_t value, size_t left, size_t item_bytes, uint32_t most, bool *bad)
{
    static unsigned char bytes[1 << 16];
    struct writer w;
    writer_init(&w, bytes, sizeof bytes);
    put_u32(&w, value);
    struct reader r;
    reader_init(&r, bytes, 4 + left);
    uint32_t count = get_count(&r, item_bytes, most);
    *bad = r.bad;
    return count;
}

TEST(counts_are_held_to_what_is_left_and_to_the_limit) /* else four bytes make us allocate gigabytes */
{
    bool bad;
    EXPECT_EQ(count_of(0, 0, 8, 10, &bad), 0);
    EXPECT(!bad);
    EXPECT_EQ(count_of(1, 8, 8, 10, &bad), 1);
    EXPECT(!bad);
    EXPECT_EQ(count_of(10, 80, 8, 10, &bad), 10);
    EXPECT(!bad);
    EXPECT_EQ(count_of(10, 79, 8, 10, &bad), 0);
    EXPECT(bad);
    EXPECT_EQ(count_of(11, 1000, 8, 10, &bad), 0);
    EXPECT(bad);
    static const uint32_t huge[] = {0x80000000u, 0xFFFFFFFFu, 0x20000001u, 0x40000000u};
    for (size_t i = 0; i < sizeof huge / sizeof huge[0]; i++) {
        EXPECT_EQ(count_of(huge[i], 1000, 8, UINT32_MAX, &bad), 0);
        EXPECT(bad);
    }
}

TEST(texts_lose_their_control_characters) /* a peer could write into our terminal or forge a log line */
{
    unsigned char bytes[2 + 256] = {0, 1}; /* length 256 */
    for (int i = 0; i < 256; i++) {
        bytes[2 + i] = (unsigned char)i;
    }
    char out[300];
    struct reader r;
    reader_init(&r, bytes, sizeof bytes);
    get_text(&r, out, sizeof out);
    EXPECT(reader_done(&r));
    EXPECT_EQ(strlen(out), 256);
    for (int i = 0; i < 256; i++) {
        EXPECT_EQ((unsigned char)out[i], i < 32 || i == 127 ? '?' : i);
    }
}

TEST(texts_are_cut_where_they_are_read_and_where_they_are_written)
{
    static const unsigned char bytes[] = {5, 0, 'h', 'e', 'l', 'l', 'o', 42};
    char out[4] = {'x', 'x', 'x', 'x'};
    struct reader r;
    reader_init(&r, bytes, sizeof bytes);
    get_text(&r, out, sizeof out);
    EXPECT_STR(out, "hel");
    EXPECT_EQ(get_u8(&r), 42); /* the rest of the text was skipped, not read as what follows */
    EXPECT(reader_done(&r));
    reader_init(&r, bytes, 6); /* a text that ends after the bytes do */
    get_text(&r, out, sizeof out);
    EXPECT(r.bad);
    EXPECT_STR(out, "");

    char longest[2 * BOUNDS_TEXT];
    memset(longest, 'a', sizeof longest);
    longest[sizeof longest - 1] = '\0';
    unsigned char room[3 * BOUNDS_TEXT];
    struct writer w;
    writer_init(&w, room, sizeof room);
    put_text(&w, longest);
    EXPECT(!w.bad);
    EXPECT_EQ(w.used, 2 + BOUNDS_TEXT - 1);
}

TEST(header_is_the_documented_32_bytes)
{
    static const unsigned char expected[FRAME_HEADER_BYTES] = {
        'P', 'C', 'L', '1', 13, 48, 5, 0, 0x10, 0x20, 0, 0, 0, 0, 0, 0, 8, 7, 6, 5, 4, 3, 2, 1, 0x18, 0x17, 0x16, 0x15,
        0x14, 0x13, 0x12, 0x11};
    struct frame_header h = {.type = FRAME_DATA, .lane = 5, .length = 0x2010, .run = 0x0102030405060708u,
                             .view = 0x1112131415161718u};
    unsigned char out[FRAME_HEADER_BYTES];
    frame_put(out, &h);
    EXPECT(memcmp(out, expected, sizeof expected) == 0);
    struct frame_header back;
    EXPECT(frame_get(expected, &back));
    EXPECT_EQ(back.type, h.type);
    EXPECT_EQ(back.lane, h.lane);
    EXPECT_EQ(back.length, h.length);
    EXPECT(back.run == h.run && back.view == h.view);
}

TEST(every_flipped_bit_of_a_header_is_refused_or_means_something)
{
    struct frame_header h = {.type = FRAME_VIEW, .lane = 0, .length = 100, .run = 7, .view = 9};
    for (int bit = 0; bit < FRAME_HEADER_BYTES * 8; bit++) {
        unsigned char in[FRAME_HEADER_BYTES], out[FRAME_HEADER_BYTES];
        frame_put(in, &h);
        in[bit / 8] ^= (unsigned char)(1u << (bit % 8));
        struct frame_header back;
        bool good = frame_get(in, &back);
        if (bit < 40 || (bit >= 96 && bit < 128)) { /* magic, version, zero */
            EXPECT(!good);
        }
        if (good) {
            frame_put(out, &back);
            EXPECT(memcmp(in, out, sizeof in) == 0);
            EXPECT(back.length <= frame_limit(back.type));
        }
    }
}

TEST(another_version_is_told_from_another_protocol) /* both looked alike, and neither side could name what differs */
{
    unsigned char raw[FRAME_HEADER_BYTES];
    for (int version = 0; version < 256; version++) {
        frame_put(raw, &(struct frame_header){.type = FRAME_REGISTER});
        raw[4] = (unsigned char)version;
        memset(raw + 5, 0xEE, sizeof raw - 5); /* whatever the rest is by then */
        EXPECT_EQ(frame_other_version(raw), version == FRAME_VERSION ? 0 : version);
        raw[0] ^= 1;
        EXPECT_EQ(frame_other_version(raw), 0);
    }
}

TEST(lengths_are_held_to_the_limit_of_the_type) /* else a header alone makes us wait for, or keep, 4 GiB */
{
    unsigned char raw[FRAME_HEADER_BYTES];
    struct frame_header back;
    int known = 0;
    for (int type = 0; type < 256; type++) {
        uint32_t limit = frame_limit((uint8_t)type);
        bool named = strcmp(frame_name((uint8_t)type), "?") != 0;
        frame_put(raw, &(struct frame_header){.type = (uint8_t)type, .length = limit});
        EXPECT_EQ(frame_get(raw, &back), named);
        static const uint32_t above[] = {1, 0x10000000u};
        for (int i = 0; i < 2; i++) {
            frame_put(raw, &(struct frame_header){.type = (uint8_t)type, .length = limit + above[i]});
            EXPECT(!frame_get(raw, &back));
        }
        frame_put(raw, &(struct frame_header){.type = (uint8_t)type, .length = UINT32_MAX});
        EXPECT(!frame_get(raw, &back));
        known += named;
        EXPECT(named || limit == 0);
    }
    EXPECT_EQ(known, 49); /* as many as frame.h lists */
}

TEST(limits_are_those_of_the_protocol)
{
    EXPECT_EQ(frame_limit(FRAME_DATA), 2 * 131072 + 18);
    EXPECT_EQ(frame_limit(FRAME_LEAF), 1048576 + 64);
    EXPECT_EQ(frame_limit(FRAME_MANIFEST), 16 * 1048576);
    EXPECT_EQ(frame_limit(FRAME_EAGER), 2 * 65536 + 256);
    EXPECT_EQ(frame_limit(FRAME_PROBE_DATA), 262144);
    EXPECT_EQ(frame_limit(FRAME_VIEW), 1048576 - 32);
    EXPECT_EQ(frame_limit(FRAME_FROZEN), 1048576 - 32);
    EXPECT_EQ(frame_limit(FRAME_VIEW_PART), 1048576 - 32);
    EXPECT_EQ(frame_limit(FRAME_ADMIT), 1048576 - 32);
    EXPECT_EQ(frame_limit(FRAME_READY), 4096);
    static const uint8_t empty[] = {FRAME_PING, FRAME_SWITCH};
    for (size_t i = 0; i < sizeof empty; i++) {
        EXPECT_EQ(frame_limit(empty[i]), 0);
        EXPECT(strcmp(frame_name(empty[i]), "?") != 0);
    }
    EXPECT_STR(frame_name(FRAME_VIEW), "VIEW");
    EXPECT_STR(frame_name(FRAME_MANIFEST_WANT), "MANIFEST_WANT");
    EXPECT_STR(frame_name(255), "?");
}
