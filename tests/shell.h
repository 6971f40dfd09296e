/* shell.h - a command of the system, for tests that set up hosts and networks: run in silence, true if it succeeded.
 * SPDX-License-Identifier: MIT */
#ifndef PCCL_TESTS_SHELL_H
#define PCCL_TESTS_SHELL_H

#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

__attribute__((format(printf, 1, 2))) static inline bool shell_run(const char *format, ...)
{
    static const char silence[] = " >/dev/null 2>&1 </dev/null";
    char command[1024];
    va_list list;
    va_start(list, format);
    int n = vsnprintf(command, sizeof command - sizeof silence, format, list);
    va_end(list);
    if (n < 0 || (size_t)n >= sizeof command - sizeof silence) {
        return false;
    }
    memcpy(command + n, silence, sizeof silence);
    return system(command) == 0;
}

#endif
