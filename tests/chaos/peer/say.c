/* say.c - see say.h.
 * SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#include "say.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static _Thread_local unsigned say_key;

void say_as(unsigned key)
{
    say_key = key;
}

int64_t say_now_ms(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

__attribute__((format(printf, 2, 0))) static void say(char kind, const char *format, va_list list)
{
    char line[SAY_LINE];
    int head = snprintf(line, sizeof line, "%c %" PRId64 " %u ", kind, say_now_ms(), say_key);
    int n = vsnprintf(line + head, sizeof line - (size_t)head - 1, format, list);
    size_t size = (size_t)head + (n < 0 ? 0 : (size_t)n);
    if (size > sizeof line - 2) {
        size = sizeof line - 2;
    }
    for (size_t i = 0; i < size; i++) {
        line[i] = line[i] == '\n' ? ' ' : line[i];
    }
    line[size] = '\n';
    if (write(SAY_DESCRIPTOR, line, size + 1) < 0) {
        _exit(9); /* the runner has gone */
    }
}

__attribute__((format(printf, 2, 3))) static void say_line(char kind, const char *format, ...)
{
    va_list list;
    va_start(list, format);
    say(kind, format, list);
    va_end(list);
}

void say_begin(const char *key)
{
    say_line('B', "%s", key);
}

void say_end(const char *key, const struct say_outcome *o)
{
    pcclErrorInfo_t e = {.result = pcclSuccess};
    if (o->result != pcclSuccess) {
        (void)pcclGetLastErrorInfo(&e);
    }
    say_line('E', "%s %d %d %u %" PRIu64 " %" PRIu64 " %016" PRIx64 " %" PRIx64 " %" PRIx64 " %s", key, (int)o->result,
             (int)e.cause, o->world, o->tx_bytes, o->rx_bytes, o->digest, o->who, e.peer, e.text);
}

void say_call(const char *name)
{
    say_line('C', "%s", name);
}

void say_return(const char *name, pcclResult_t result)
{
    pcclErrorInfo_t e = {.result = pcclSuccess};
    if (result != pcclSuccess) {
        (void)pcclGetLastErrorInfo(&e);
    }
    say_line('R', "%s %d %d %s", name, (int)result, (int)e.cause, e.text);
}

void say_progress(uint32_t group, uint64_t lineage, uint64_t revision, uint64_t step, int world, int global)
{
    say_line('P', "%u %" PRIx64 " %" PRIu64 " %" PRIu64 " %d %d", group, lineage, revision, step, world, global);
}

void say_finding(const char *format, ...)
{
    va_list list;
    va_start(list, format);
    say('!', format, list);
    va_end(list);
}

void say_algorithm(const char *name)
{
    say_line('A', "%s", name);
}

void say_note(const char *format, ...)
{
    va_list list;
    va_start(list, format);
    say('I', format, list);
    va_end(list);
}
