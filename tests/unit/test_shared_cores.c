/* test_shared_cores.c - how many cores there are for this process, and for all of its host.
 * SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#include "tests/testing.h"

#include <sched.h>

#include "engine/threads/cores.h"

TEST(lists_of_the_kernel_are_counted)
{
    EXPECT_EQ(cores_listed("0\n"), 1);
    EXPECT_EQ(cores_listed("0-3\n"), 4);
    EXPECT_EQ(cores_listed("0-3,8,10-11"), 7);
    EXPECT_EQ(cores_listed(""), 0);
    EXPECT_EQ(cores_listed("\n"), 0);
    EXPECT_EQ(cores_listed("max\n"), 0);
    EXPECT_EQ(cores_listed("3-1\n"), 0);
    EXPECT_EQ(cores_listed("0-99999999999999999999\n"), 0);
}

TEST(who_is_bound_to_a_core_has_one_and_shares_as_many_as_before) /* ranks that mpirun has bound would count as crowded */
{
    cpu_set_t all, one;
    uint32_t own = cores_own(), shared = cores_shared();
    EXPECT(own >= 1 && shared >= own);
    EXPECT_EQ(sched_getaffinity(0, sizeof all, &all), 0);
    CPU_ZERO(&one);
    for (int core = 0; core < CPU_SETSIZE && CPU_COUNT(&one) == 0; core++) {
        if (CPU_ISSET(core, &all)) {
            CPU_SET(core, &one);
        }
    }
    EXPECT_EQ(sched_setaffinity(0, sizeof one, &one), 0);
    EXPECT_EQ(cores_own(), 1);
    EXPECT_EQ(cores_shared(), shared);
    EXPECT_EQ(sched_setaffinity(0, sizeof all, &all), 0);
}
