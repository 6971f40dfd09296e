/* command_error.h - how each command of "pccl" says what is wrong.
 * SPDX-License-Identifier: MIT */
#ifndef PCCL_COMMAND_ERROR_H
#define PCCL_COMMAND_ERROR_H

#include <stdarg.h>

/* One line on standard error, behind the names of the program and the command. */
__attribute__((format(printf, 2, 0))) void command_error(const char *command, const char *format, va_list list);

#endif
