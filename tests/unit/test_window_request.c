/* test_window_request.c - requests to windows: what goes in comes out, and what no member means is refused.
 * SPDX-License-Identifier: MIT */
#include "tests/testing.h"

#include <string.h>

#include "core/random.h"
#include "wire/window_request.h"

static struct window_request any(struct rng *rng)
{
    struct window_request m = {.kind = (uint8_t)(WINDOW_PUT + rng_below(rng, WINDOW_KINDS - 1)), .seq = rng_next(rng) >> rng_below(rng, 64)};
    m.over = rng_below(rng, m.seq / 2 + 1);
    if (window_numbers(m.kind)) {
        m.width = rng_below(rng, 2) == 0 ? 4 : 8;
        m.bytes = m.width;
        m.operand = rng_next(rng) >> (64 - 8 * m.width);
        m.expected = m.kind == WINDOW_SWAP ? rng_next(rng) >> (64 - 8 * m.width) : 0;
    }
    if (m.kind == WINDOW_PUT || m.kind == WINDOW_GET) {
        m.bytes = rng_next(rng);
    }
    m.offset = m.bytes > 0 ? rng_next(rng) : 0;
    return m;
}

static bool take(const struct window_request *m, size_t size, struct window_request *out)
{
    unsigned char bytes[WINDOW_REQUEST_BYTES + 1] = {0};
    struct writer w;
    struct reader r;
    writer_init(&w, bytes, sizeof bytes);
    put_window_request(&w, m);
    EXPECT(!w.bad && w.used == WINDOW_REQUEST_BYTES);
    reader_init(&r, bytes, size);
    return get_window_request(&r, out);
}

TEST(a_request_comes_out_as_it_went_in)
{
    struct rng rng = {3};
    struct window_request out;
    for (int i = 0; i < 2000; i++) {
        struct window_request m = any(&rng);
        EXPECT(take(&m, WINDOW_REQUEST_BYTES, &out));
        EXPECT(out.kind == m.kind && out.width == m.width && out.seq == m.seq && out.over == m.over && out.offset == m.offset &&
               out.bytes == m.bytes && out.operand == m.operand && out.expected == m.expected);
        for (size_t size = 0; size < WINDOW_REQUEST_BYTES; size++) {
            EXPECT(!take(&m, size, &out));
        }
        EXPECT(!take(&m, WINDOW_REQUEST_BYTES + 1, &out));
    }
}

TEST(what_no_member_means_is_refused)
{
    static const struct window_request bad[] = {
        {.kind = 0}, {.kind = WINDOW_KINDS}, {.kind = 255},
        {.kind = WINDOW_PUT, .seq = 3, .over = 4},              /* over before it began */
        {.kind = WINDOW_PUT, .width = 4, .bytes = 4},           /* bytes have no width */
        {.kind = WINDOW_ADD, .width = 2, .bytes = 2},
        {.kind = WINDOW_ADD, .width = 8, .bytes = 4},
        {.kind = WINDOW_ADD, .width = 4, .bytes = 4, .operand = UINT64_C(1) << 32},
        {.kind = WINDOW_ADD, .width = 8, .bytes = 8, .expected = 1},
        {.kind = WINDOW_SWAP, .width = 4, .bytes = 4, .expected = UINT64_C(1) << 32},
        {.kind = WINDOW_GET, .bytes = 8, .operand = 1},
        {.kind = WINDOW_SIGNAL, .bytes = 1},
        {.kind = WINDOW_CLOSE, .offset = 1},
        {.kind = WINDOW_VOID, .operand = 1},
    };
    struct window_request out;
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        EXPECT(!take(&bad[i], WINDOW_REQUEST_BYTES, &out));
    }
}
