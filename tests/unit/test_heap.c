/* test_heap.c - the heap of times against a search through all of them, with random operations.
 * SPDX-License-Identifier: MIT */
#include "tests/testing.h"

#include "core/heap.h"
#include "core/random.h"

enum { MOST = 300 };

static int64_t least_of(const int64_t *key, uint32_t count)
{
    int64_t least = INT64_MAX;
    for (uint32_t i = 0; i < count; i++) {
        least = key[i] < least ? key[i] : least;
    }
    return least;
}

TEST(least_of_a_heap_is_the_least_of_all) /* a deadline is missed, or the session wakes for one that is gone */
{
    for (uint64_t seed = 1; seed <= 200; seed++) {
        struct rng rng = {.state = seed};
        struct heap h = {0};
        int64_t key[MOST];
        uint32_t count = 1 + rng_below(&rng, 8), range = 1 + rng_below(&rng, 200);
        void *storage = malloc(heap_bytes(count));
        heap_use(&h, storage, count);
        for (uint32_t i = 0; i < MOST; i++) {
            key[i] = INT64_MAX;
        }
        for (uint32_t n = 0; n < 2000; n++) {
            if (count < MOST && rng_below(&rng, 100) == 0) { /* it grows under use */
                uint32_t more = count + 1 + rng_below(&rng, MOST - count);
                void *larger = malloc(heap_bytes(more));
                heap_use(&h, larger, more);
                free(storage);
                storage = larger;
                count = more;
            }
            uint32_t i = rng_below(&rng, count);
            key[i] = rng_below(&rng, 3) == 0 ? INT64_MAX : (int64_t)rng_below(&rng, range) - 20;
            heap_set(&h, i, key[i]);
            EXPECT_EQ(heap_least(&h), least_of(key, count));
            EXPECT(h.used == 0 || key[heap_first(&h)] == heap_least(&h));
        }
        EXPECT(heap_sound(&h));
        for (int64_t last = INT64_MIN; h.used > 0;) { /* in order to the end */
            EXPECT(heap_least(&h) >= last);
            last = heap_least(&h);
            heap_set(&h, heap_first(&h), INT64_MAX);
        }
        free(storage);
    }
}
