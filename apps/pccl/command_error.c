/* command_error.c - see command_error.h.
 * SPDX-License-Identifier: MIT */
#include "pccl/command_error.h"

#include <stdio.h>

void command_error(const char *command, const char *format, va_list list)
{
    fprintf(stderr, "pccl %s: ", command);
    vfprintf(stderr, format, list);
    fputc('\n', stderr);
}
