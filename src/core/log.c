/* log.c - the sink and its level.
 *
 * Words that belong together (sink, what comes with it, level) are read by any thread without a lock around the call: a writer
 * fills the slot of the next number and then publishes it; a reader takes all words at once, and again if so many changes were
 * made meanwhile that its slot may have been filled anew.  Invariant: a slot is rewritten only after LOG_SLOTS further changes.
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
static atomic_uint log_current; /* counts the changes; its slot is that modulo LOG_SLOTS */
static atomic_int log_level_current = LOG_NONE;
static bool log_chosen; /* with log_writer: a sink was set */
static pthread_mutex_t log_writer = PTHREAD_MUTEX_INITIALIZER; /* one change of the sink at a time */
static pthread_once_t log_fork = PTHREAD_ONCE_INIT;

/* In the child, where whoever held it is not. */
static void log_forked(void)
{
    pthread_mutex_init(&log_writer, NULL);
}

static void log_expect_fork(void)
{
    (void)pthread_atfork(NULL, NULL, log_forked);
}

static void log_lock(void)
{
    pthread_once(&log_fork, log_expect_fork);
    pthread_mutex_lock(&log_writer);
}

/* With log_writer. */
static void log_publish(log_sink sink, enum log_level level, struct log_to to)
{
    unsigned next = atomic_load(&log_current) + 1;
    struct log_slot *slot = &log_slots[next % LOG_SLOTS];
    atomic_store(&slot->sink, sink);
    atomic_store(&slot->user, to.user);
    atomic_store(&slot->function, to.function);
    atomic_store(&log_current, next);
    atomic_store(&log_level_current, sink != NULL ? (int)level : (int)LOG_NONE);
    log_chosen = true;
}

/* The sink of one moment, with what came with it. */
static log_sink log_now(struct log_to *to)
{
    log_sink sink;
    unsigned number;
    do {
        number = atomic_load(&log_current);
        const struct log_slot *slot = &log_slots[number % LOG_SLOTS];
        sink = atomic_load(&slot->sink);
        to->user = atomic_load(&slot->user);
        to->function = atomic_load(&slot->function);
    } while (atomic_load(&log_current) - number >= LOG_SLOTS - 1); /* the next change fills it anew, or has begun to */
    return sink;
}

void log_set_sink(log_sink sink, enum log_level level, struct log_to to)
{
    log_lock();
    log_publish(sink, level, to);
    pthread_mutex_unlock(&log_writer);
}

void log_set_default(log_sink sink, enum log_level level)
{
    log_lock();
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
    struct log_to to;
    log_sink sink = log_now(&to);
    if (sink == NULL) {
        return;
    }
    char line[BOUNDS_LOG_LINE];
    va_list args;
    va_start(args, fmt);
    vsnprintf(line, sizeof line, fmt, args);
    va_end(args);
    sink(level, line, &to);
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
