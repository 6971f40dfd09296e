/* ranks.c - see ranks.h.
 * SPDX-License-Identifier: MIT */
#include "wire/ranks.h"

#include <stdio.h>

uint32_t ranks_missing(const struct seats *s)
{
    uint32_t missing = 0;
    for (uint32_t i = 0; i < s->count; i++) {
        missing += !ranks_claimed(s, i);
    }
    return missing;
}

void ranks_text(const struct seats *s, char *out, size_t size)
{
    enum { MOST = 12 };
    uint32_t missing = 0;
    size_t used = 0;
    out[0] = 0;
    for (uint32_t i = 0; i < s->count; i++) {
        if (!ranks_claimed(s, i) && missing++ < MOST) {
            used += (size_t)snprintf(out + used, size - used, "%s%u", missing > 1 ? ", " : "", i);
        }
    }
    if (missing > MOST) {
        snprintf(out + used, size - used, " and %u more", missing - MOST);
    }
}
