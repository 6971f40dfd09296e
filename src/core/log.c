/* log.c - the sink and its level.
 *
 * Words that belong together (sink, what comes with it, level) are read by any thread without a lock around the call: a writer
 * fills the slot that is not in use and then publishes its number, so a reader sees one slot or the other.  Invariant: a
 * slot is rewritten only after LOG_SLOTS further changes of the sink.
 * SPDX-License-Identifier: MIT */
#include "core/log.h"

#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdio.h>

#include "core/bounds.h"

enum { LOG_SLOTS = 8 };

struct log_slot {
    _Atomic(log_sink) sink;
    void *_Atomic user; /* borrowed */
    void (*_Atomic function)(void);
};

static struct log_slot log_slots[LOG_SLOTS];
static atomic_uint log_slot_current;
static atomic_int log_level_current = LOG_NONE;
static bool log_chosen; /* with log_writer: a sink was set */
static pthread_mutex_t log_writer = PTHREAD_MUTEX_INITIALIZER; /* one change of the sink at a time */

/* With log_writer. */
static void log_publish(log_sink sink, enum log_level level, struct log_to to)
{
    unsigned next = (atomic_load(&log_slot_current) + 1) % LOG_SLOTS;
    atomic_store(&log_slots[next].sink, sink);
    atomic_store(&log_slots[next].user, to.user);
    atomic_store(&log_slots[next].function, to.function);
    atomic_store(&log_slot_current, next);
    atomic_store(&log_level_current, sink != NULL ? (int)level : (int)LOG_NONE);
    log_chosen = true;
}

void log_set_sink(log_sink sink, enum log_level level, struct log_to to)
{
    pthread_mutex_lock(&log_writer);
    log_publish(sink, level, to);
    pthread_mutex_unlock(&log_writer);
}

void log_set_default(log_sink sink, enum log_level level)
{
    pthread_mutex_lock(&log_writer);
    if (!log_chosen) {
        log_publish(sink, level, (struct log_to){0});
    }
    pthread_mutex_unlock(&log_writer);
}

bool log_enabled(enum log_level level)
{
    int least = atomic_load_explicit(&log_level_current, memory_order_relaxed);
    return least != LOG_NONE && (int)level >= least;
}

void log_line(enum log_level level, const char *fmt, ...)
{
    if (!log_enabled(level)) {
        return;
    }
    const struct log_slot *slot = &log_slots[atomic_load(&log_slot_current)];
    log_sink sink = atomic_load(&slot->sink);
    if (sink == NULL) {
        return;
    }
    char line[BOUNDS_LOG_LINE];
    va_list args;
    va_start(args, fmt);
    vsnprintf(line, sizeof line, fmt, args);
    va_end(args);
    sink(level, line, &(struct log_to){.user = atomic_load(&slot->user), .function = atomic_load(&slot->function)});
}

const char *log_level_name(enum log_level level)
{
    switch (level) {
    case LOG_TRACE:
        return "trace";
    case LOG_DEBUG:
        return "debug";
    case LOG_INFO:
        return "info";
    case LOG_WARN:
        return "warn";
    case LOG_ERROR:
        return "error";
    case LOG_NONE:
        return "none";
    }
    return "?";
}
