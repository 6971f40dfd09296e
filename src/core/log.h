/* log.h - lines for people, handed to one sink.
 *
 * The library itself never prints: without a sink the lines go nowhere, and their arguments are not even formatted.  The
 * sink is one of the few mutable globals; it may be changed at any time, from any thread, and is called without locks.
 * SPDX-License-Identifier: MIT */
#ifndef PCCL_CORE_LOG_H
#define PCCL_CORE_LOG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/status.h"

/* Values as in pccl.h. */
enum log_level { LOG_TRACE = 0, LOG_DEBUG, LOG_INFO, LOG_WARN, LOG_ERROR, LOG_NONE };

/* `to`: what came with the sink, a function of the program's own type among it, which the sink knows and casts back. */
struct log_to {
    void *user; /* borrowed */
    void (*function)(void);
};

typedef void (*log_sink)(enum log_level level, const char *message, const struct log_to *to);

/* Lines at or above `level` go to `sink`; null: nowhere.  A call of the old sink that has begun in another thread may still be
 * running when this returns. */
void log_set_sink(log_sink sink, enum log_level level, struct log_to to);

/* Whether a line of this level would be seen; cheap. */
bool log_enabled(enum log_level level);

/* One line, without a line end; longer ones are cut at BOUNDS_LOG_LINE. */
void log_line(enum log_level level, const char *fmt, ...) PCCL_PRINTF(2, 3);

const char *log_level_name(enum log_level level); /* "info" */

/* The level of a word in upper or lower case: a name of the above, or "err", "fatal" as in the original; false: none of them. */
bool log_level_read(const char *text, enum log_level *out);

/* Sends lines to `sink` unless log_set_sink was ever called: what the program says goes before what its environment says. */
void log_set_default(log_sink sink, enum log_level level);

/* Date and time of a second since 1970, UTC.  The C library's own functions take a lock, which a fork may leave locked for ever. */
void log_date(int64_t second, char *out, size_t size);

/* A sink: date, time, `user` (a name, or null), process id, level and message as a line on standard error. */
void log_stderr(enum log_level level, const char *message, const struct log_to *to);

#endif
