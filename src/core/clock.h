/* clock.h - the one clock: monotonic nanoseconds.  Only shells read it; pure files get the time as an argument.
 * SPDX-License-Identifier: MIT */
#ifndef PCCL_CORE_CLOCK_H
#define PCCL_CORE_CLOCK_H

#include <stdint.h>

#define CLOCK_MS INT64_C(1000000)   /* nanoseconds in a millisecond */
#define CLOCK_S INT64_C(1000000000) /* nanoseconds in a second */
#define CLOCK_NEVER INT64_MAX       /* a deadline that does not come */

/* Nanoseconds since an arbitrary start; never goes back; does not count the time a machine is suspended. */
int64_t clock_now_ns(void);

#endif
