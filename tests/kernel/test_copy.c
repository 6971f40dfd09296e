/* test_copy.c - copies past the cache: every byte, and none beside them.
 * SPDX-License-Identifier: MIT */
#include "kernel_testing.h"

#include "kernels/copy.h"

TEST(a_copy_past_the_cache_is_a_copy_at_any_place_and_length)
{
    uint8_t *from = kt_guarded_new(), *to = kt_guarded_new();
    EXPECT(from != NULL && to != NULL);
    for (size_t i = 0; i < KT_GUARDED; i++) {
        from[i] = (uint8_t)(i * 7 + i / 251);
    }
    for (size_t n = 0; n < 400; n++) {
        for (size_t skew = 0; skew < 70; skew += 1 + n % 3) {
            size_t in = n * 3 % 67;
            memset(to, 0xEE, 600);
            copy_away(to + skew, from + in, n);
            EXPECT(memcmp(to + skew, from + in, n) == 0);
            for (size_t i = 0; i < 600; i++) {
                EXPECT((i >= skew && i < skew + n) || to[i] == 0xEE);
            }
            copy_away(to + KT_GUARDED - n, from + KT_GUARDED - n, n); /* up to a page that may not be touched */
            EXPECT(memcmp(to + KT_GUARDED - n, from + KT_GUARDED - n, n) == 0);
        }
    }
    kt_guarded_free(from);
    kt_guarded_free(to);
}
