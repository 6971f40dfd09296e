/* test_spin.c - how long a call looks before it sleeps, learnt from its waits.
 * SPDX-License-Identifier: MIT */
#include "tests/testing.h"

#include "engine/threads/spin.h"

/* After so many equal waits, each of which looks as long as the ones before have taught. */
static int64_t taught(int64_t spin_ns, int64_t wait_ns, int waits, bool crowded)
{
    for (int i = 0; i < waits; i++) {
        struct spin_wait w = {.spin_ns = spin_ns, .waited_ns = wait_ns, .slept = wait_ns > spin_ns, .crowded = crowded};
        spin_ns = spin_learn(&w);
    }
    return spin_ns;
}

TEST(a_short_wait_that_was_slept_through_is_looked_through_next) /* else two processes on one core would sleep for ever */
{
    static const int64_t waits[] = {3000, 60000, 199999, SPIN_MOST_NS};
    for (size_t i = 0; i < sizeof waits / sizeof waits[0]; i++) {
        EXPECT(taught(SPIN_LEAST_NS, waits[i], 1, false) >= waits[i]);
        EXPECT(taught(SPIN_LEAST_NS, waits[i], 100, false) >= waits[i]);
    }
}

TEST(long_waits_are_slept_through) /* waiting for a program must cost no processor time */
{
    EXPECT_EQ(taught(SPIN_MOST_NS, SPIN_MOST_NS + 1, 20, false), SPIN_LEAST_NS);
    EXPECT_EQ(taught(SPIN_MOST_NS, 5000000, 1, false), SPIN_MOST_NS / 2);
}

TEST(it_fades_with_shorter_waits_and_stays_within_its_bounds)
{
    int64_t after = taught(SPIN_MOST_NS, 3000, 1000, false);
    EXPECT(after >= 6000 && after < 7000);
    EXPECT(taught(SPIN_MOST_NS, 3000, 40, false) > SPIN_MOST_NS / 2); /* a late one among many early ones is looked through, too */
    EXPECT_EQ(taught(SPIN_FIRST_NS, SPIN_MOST_NS, 50, false), SPIN_MOST_NS);
    EXPECT_EQ(taught(SPIN_FIRST_NS, 0, 1000, false), SPIN_LEAST_NS);
}

TEST(where_processes_outnumber_cores_looking_has_to_pay) /* whoever looks keeps a core from one that works */
{
    EXPECT_EQ(taught(SPIN_FIRST_NS, 60000, 1, true), SPIN_FIRST_NS / 2);
    EXPECT_EQ(taught(SPIN_FIRST_NS, 60000, 50, true), SPIN_LEAST_NS);
    EXPECT_EQ(taught(SPIN_FIRST_NS, 10000, 1, true), 2 * SPIN_FIRST_NS);
    EXPECT_EQ(taught(SPIN_FIRST_NS, 10000, 50, true), SPIN_MOST_CROWDED_NS);
}
