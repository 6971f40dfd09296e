/* address.c - see address.h.
 * SPDX-License-Identifier: MIT */
#include "wire/address.h"

#include <stdio.h>

void address_text(const struct net_address *a, char *out)
{
    if (a->family == 4) {
        snprintf(out, ADDRESS_TEXT, "%u.%u.%u.%u:%u", a->ip[0], a->ip[1], a->ip[2], a->ip[3], a->port);
        return;
    }
    if (a->family != 6) {
        snprintf(out, ADDRESS_TEXT, "?");
        return;
    }
    size_t used = (size_t)snprintf(out, ADDRESS_TEXT, "[");
    for (int i = 0; i < 16; i += 2) {
        used += (size_t)snprintf(out + used, ADDRESS_TEXT - used, "%s%x", i == 0 ? "" : ":",
                                 (unsigned)(a->ip[i] << 8 | a->ip[i + 1]));
    }
    snprintf(out + used, ADDRESS_TEXT - used, "]:%u", a->port);
}
