/* wan_refuse.c - see wan_refuse.h.
 * SPDX-License-Identifier: MIT */
#include "pccl/wan_refuse.h"

#include <stdio.h>

#include "pccl/command_error.h"

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
    va_start(list, format);
    command_error("wan", format, list);
    va_end(list);
}
