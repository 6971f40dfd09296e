/* testing.h - the test runner: TEST(name) registers itself; main() runs all, or those whose names contain argv[1].
 *
 * The name is a claim, the first comment says what would break.  A failed EXPECT is printed, the test goes on, and counts
 * as failed once; one that cannot be done here says why (TEST_SKIP) and counts as neither.  The last line is
 * "N passed, N failed"; exit status 1 if any failed.
 * SPDX-License-Identifier: MIT */
#ifndef PCCL_TESTS_TESTING_H
#define PCCL_TESTS_TESTING_H

#include <inttypes.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct test_case {
    const char *name;
    void (*run)(void);
    struct test_case *next;
};

static struct test_case *test_first, **test_last = &test_first;
static int test_failures; /* of the running test */
static const char *test_skipped; /* why the running test cannot be done here */

/* Ends the running test, which counts neither as passed nor as failed. */
#define TEST_SKIP(reason)                                                                                              \
    do {                                                                                                               \
        test_skipped = (reason);                                                                                       \
        return;                                                                                                        \
    } while (0)

/* How much of a long test to do: all of it, or a tenth where sanitizers slow everything down, and in `make test`. */
static inline unsigned test_scaled(unsigned work)
{
    return getenv("PCCL_SANITIZED") != NULL || getenv("PCCL_TEST_QUICK") != NULL ? (work + 9) / 10 : work;
}

/* The step of a loop over sizes of worlds: all of them, or every third one, odd and even, there. */
static inline unsigned test_step(void)
{
    return test_scaled(30) == 30 ? 1 : 3;
}

#define TEST(test_name)                                                                                                \
    static void test_##test_name(void);                                                                               \
    __attribute__((constructor)) static void test_register_##test_name(void)                                           \
    {                                                                                                                  \
        static struct test_case c = {#test_name, test_##test_name, NULL};                                              \
        *test_last = &c;                                                                                               \
        test_last = &c.next;                                                                                           \
    }                                                                                                                  \
    static void test_##test_name(void)

#define EXPECT(cond)                                                                                                   \
    do {                                                                                                               \
        if (!(cond)) {                                                                                                 \
            if (test_failures++ < 20) {                                                                                \
                fprintf(stderr, "%s:%d: expected %s\n", __FILE__, __LINE__, #cond);                                    \
            }                                                                                                          \
        }                                                                                                              \
    } while (0)

#define EXPECT_EQ(a, b)                                                                                                \
    do {                                                                                                               \
        long long test_a_ = (long long)(a), test_b_ = (long long)(b);                                                  \
        if (test_a_ != test_b_) {                                                                                      \
            if (test_failures++ < 20) {                                                                                \
                fprintf(stderr, "%s:%d: %s = %lld, expected %s = %lld\n", __FILE__, __LINE__, #a, test_a_, #b,         \
                        test_b_);                                                                                      \
            }                                                                                                          \
        }                                                                                                              \
    } while (0)

#define EXPECT_STR(a, b)                                                                                               \
    do {                                                                                                               \
        const char *test_a_ = (a), *test_b_ = (b);                                                                     \
        if (strcmp(test_a_, test_b_) != 0) {                                                                           \
            test_failures++;                                                                                           \
            fprintf(stderr, "%s:%d: \"%s\", expected \"%s\"\n", __FILE__, __LINE__, test_a_, test_b_);                 \
        }                                                                                                              \
    } while (0)

int main(int argc, char **argv)
{
    int passed = 0, failed = 0, skipped = 0;
    for (struct test_case *c = test_first; c != NULL; c = c->next) {
        if (argc > 1 && strstr(c->name, argv[1]) == NULL) {
            continue;
        }
        test_failures = 0;
        test_skipped = NULL;
        c->run();
        if (test_failures == 0 && test_skipped != NULL) {
            skipped++;
            printf("SKIPPED %s: %s\n", c->name, test_skipped);
        } else if (test_failures != 0) {
            failed++;
            printf("FAILED %s\n", c->name);
        } else {
            passed++;
        }
        fflush(stdout);
    }
    if (skipped != 0) {
        printf("%d skipped\n", skipped);
    }
    printf("%d passed, %d failed\n", passed, failed);
    return failed != 0;
}

#endif
