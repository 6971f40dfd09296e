/* api_wishes.c - which algorithms the environment asks for.
 * SPDX-License-Identifier: MIT */
#include <stdlib.h>

#include "api/api.h"

pcclResult_t api_wishes(const char *phase, struct choose_wishes *out)
{
    const char *text = getenv("PCCL_ALGO");
    char why[256];
    *out = choose_all();
    if (text == NULL || choose_read(text, out, why, sizeof why)) {
        return pcclSuccess;
    }
    return api_fail(pcclInvalidArgument, pcclCauseUsage, phase, "PCCL_ALGO \"%.80s\": %s; unset it to let the library choose", text, why);
}
