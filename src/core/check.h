/* check.h - assertions for our own bugs, on in release builds.
 *
 * A failed PCCL_ASSERT never ends the process.  Step functions install a landing pad (check_pad) for the current thread
 * at their entry; a failure jumps there and the machine is poisoned.  Outside a step a failure is recorded and
 * execution goes on with `check_failed` visible to tests.
 * SPDX-License-Identifier: MIT */
#ifndef PCCL_CORE_CHECK_H
#define PCCL_CORE_CHECK_H

#include <setjmp.h>
#include <stdbool.h>
#include <stdint.h>

struct check_pad {
    jmp_buf env;
    struct check_pad *outer; /* borrowed: pads nest when one machine's step runs inside another's */
    const char *what;        /* the condition that failed, static storage */
    const char *where;       /* file:line */
};

/* The pad in force for this thread; null outside steps. */
extern _Thread_local struct check_pad *check_current;

/* Failures of this thread outside any pad. */
extern _Thread_local unsigned check_failed;

/* Jumps to the pad if there is one; otherwise logs once and returns. */
void check_fail(const char *what, const char *where);

/* Steps of a machine between two looks at all that must hold in it, and the entries of its tables that put one step more
 * between them: each step in debug builds while the tables are small, and never a look that costs more than its steps. */
#ifdef NDEBUG
enum { CHECK_EVERY = 100, CHECK_ENTRIES = 8 };
#else
enum { CHECK_EVERY = 1, CHECK_ENTRIES = 256 };
#endif

/* `wanted` if it is not 0; else the above. */
static inline uint32_t check_interval(uint32_t wanted, uint32_t entries)
{
    return wanted != 0 ? wanted : CHECK_EVERY + entries / CHECK_ENTRIES;
}

#define PCCL_STRINGIFY_(x) #x
#define PCCL_STRINGIFY(x) PCCL_STRINGIFY_(x)
#define PCCL_ASSERT(cond)                                                                                              \
    do {                                                                                                               \
        if (__builtin_expect(!(cond), 0)) {                                                                            \
            check_fail(#cond, __FILE__ ":" PCCL_STRINGIFY(__LINE__));                                                  \
        }                                                                                                              \
    } while (0)

#endif
