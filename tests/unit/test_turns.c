/* test_turns.c - turns against a search through all of them, with random operations.
 * SPDX-License-Identifier: MIT */
#include "tests/testing.h"

#include "core/random.h"
#include "core/turns.h"

enum { MOST = 200 };

/* The one with the least number that waits, MOST if none does. */
static uint32_t first_of(const struct turn *t)
{
    uint32_t first = MOST;
    for (uint32_t i = 0; i < MOST; i++) {
        first = turn_waits(&t[i]) && (first == MOST || t[i].number < t[first].number) ? i : first;
    }
    return first;
}

TEST(first_turn_is_the_least_of_all_that_wait) /* frames leave in another order than that of the launches */
{
    for (uint64_t seed = 1; seed <= 200; seed++) {
        struct rng rng = {.state = seed};
        struct turn t[MOST] = {{0}};
        struct turns all = {0};
        for (uint32_t n = 0; n < 2000; n++) {
            uint32_t i = (uint32_t)rng_below(&rng, MOST), first = first_of(t);
            if (rng_below(&rng, 4) == 0) {
                struct turn *taken = turns_pop(&all);
                EXPECT(taken == (first == MOST ? NULL : &t[first]));
                EXPECT(taken == NULL || !turn_waits(taken));
            } else if (turn_waits(&t[i])) {
                turn_leave(&t[i]);
                turn_leave(&t[i]); /* nothing more */
            } else {
                turns_add(&all, &t[i], rng_below(&rng, 1000) * MOST + i);
            }
            first = first_of(t);
            EXPECT(all.first == (first == MOST ? NULL : &t[first]));
        }
        for (uint32_t first = first_of(t); first != MOST; first = first_of(t)) {
            EXPECT(turns_pop(&all) == &t[first]);
        }
        EXPECT(all.first == NULL);
    }
}
