/* test_dispatch.c - PCCL_CPU limits the level of a whole process; each case is a child, since the choice is made once.
 * SPDX-License-Identifier: MIT */
#include <sys/wait.h>

#include "tests/kernel/kernel_testing.h"

/* Index of the level that a process with this mask chooses, null for no mask; negative if it crashed. */
static int chosen_with(const char *mask)
{
    const pid_t child = fork();
    if (child == 0) {
        if (mask == NULL) {
            unsetenv("PCCL_CPU");
        } else {
            setenv("PCCL_CPU", mask, 1);
        }
        for (int level = 0; level < KT_LEVELS; level++) {
            if (kernels_get() == kernels_level(kt_level_names[level])) {
                _exit(level);
            }
        }
        _exit(KT_LEVELS);
    }
    int status = 0;
    return waitpid(child, &status, 0) == child && WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static int best_up_to(int limit)
{
    int best = 0;
    for (int level = 0; level <= limit; level++) {
        best = kt_level(level) != NULL ? level : best;
    }
    return best;
}

TEST(the_mask_is_the_best_level_allowed)
{
    EXPECT_EQ(chosen_with("scalar"), 0);
    EXPECT_EQ(chosen_with(NULL), best_up_to(KT_LEVELS - 1));
    EXPECT_EQ(chosen_with("no such level"), best_up_to(KT_LEVELS - 1));
    for (int level = 1; level < KT_LEVELS; level++) {
        if (kt_level(level) != NULL) {
            EXPECT_EQ(chosen_with(kt_level_names[level]), level);
        }
    }
}
