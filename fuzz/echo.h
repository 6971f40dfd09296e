/* echo.h - a message decoded and encoded again, for the fuzz targets of messages.
 * SPDX-License-Identifier: MIT */
#ifndef PCCL_FUZZ_ECHO_H
#define PCCL_FUZZ_ECHO_H

#include <stddef.h>
#include <stdint.h>

#include "wire/frame.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* What was decoded goes here, so that no read of it is optimised away. */
static volatile uint64_t sink;

static void swallow(const void *m, size_t size)
{
    const unsigned char *at = m;
    uint64_t sum = 0;
    for (size_t i = 0; i < size; i++) {
        sum += at[i];
    }
    sink = sum;
}

/* A message without lists: decode, encode. */
#define PLAIN(name)                                                                                                    \
    static bool echo_##name(struct reader *r, struct writer *w)                                                        \
    {                                                                                                                  \
        struct msg_##name m = {0};                                                                                     \
        if (!get_##name(r, &m)) {                                                                                      \
            return false;                                                                                              \
        }                                                                                                              \
        swallow(&m, sizeof m);                                                                                         \
        put_##name(w, &m);                                                                                             \
        return true;                                                                                                   \
    }

#endif
