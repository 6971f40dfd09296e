/* trace.c - a line for the log; the shell writes it when its locks are given back.
 * SPDX-License-Identifier: MIT */
#include <stdarg.h>
#include <stdio.h>

#include "session/tables/trace.h"

void session_trace(struct outbox *out, enum trace_for reader, const char *fmt, ...)
{
    char text[BOUNDS_LOG_LINE - 32]; /* the shell puts the own id in front */
    va_list args;
    va_start(args, fmt);
    vsnprintf(text, sizeof text, fmt, args);
    va_end(args);
    outbox_text(out, ACT_TRACE, reader == TRACE_EVERYBODY, text);
}
