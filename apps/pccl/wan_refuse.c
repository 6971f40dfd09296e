/* wan_refuse.c - see wan_refuse.h.
 * SPDX-License-Identifier: MIT */
#include "pccl/wan_refuse.h"

#include <stdarg.h>
#include <stdio.h>

bool wan_refuse(char error[WAN_ERROR], const char *format, ...)
{
    va_list list;
    va_start(list, format);
    vsnprintf(error, WAN_ERROR, format, list);
    va_end(list);
    return false;
}

void wan_complain(const char *format, ...)
{
    va_list list;
    fputs("pccl wan: ", stderr);
    va_start(list, format);
    vfprintf(stderr, format, list);
    va_end(list);
    fputc('\n', stderr);
}
