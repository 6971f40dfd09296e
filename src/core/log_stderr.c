/* log_stderr.c - log lines on standard error, with the date, the process and a name for its part.
 *
 * Its one idea: one line is one write, so that the lines of several processes on one terminal do not mix.  Dates are UTC: the
 * lines of several sites are in one order.  A line never waits for a reader: the thread that logs may be the one that sends
 * heartbeats, and a full pipe would cost a healthy peer its place.
 * SPDX-License-Identifier: MIT */
#include <poll.h>
#include <stdio.h>
#include <strings.h>
#include <time.h>
#include <unistd.h>

#include "core/bounds.h"
#include "core/log.h"

enum { LOG_DAY_S = 86400, LOG_ERA_DAYS = 146097 /* 400 years */ };

void log_date(int64_t second, char *out, size_t size)
{
    int64_t days = second / LOG_DAY_S + 719468; /* since the first of March of the year 0: leap days come last */
    int64_t rest = second % LOG_DAY_S, era = days / LOG_ERA_DAYS, day = days % LOG_ERA_DAYS;
    int64_t year = (day - day / 1460 + day / 36524 - day / 146096) / 365;
    day -= 365 * year + year / 4 - year / 100;
    int64_t month = (5 * day + 2) / 153; /* from March */
    day -= (153 * month + 2) / 5;
    month += month < 10 ? 3 : -9;
    snprintf(out, size, "%04d-%02d-%02d %02d:%02d:%02d", (int)(year + era * 400 + (month <= 2)), (int)month, (int)day + 1,
             (int)(rest / 3600), (int)(rest / 60 % 60), (int)(rest % 60));
}

/* Drops the line where it would block, or where no reader is left, which would raise SIGPIPE. */
static void write_line(const char *line, size_t size)
{
    struct pollfd at = {.fd = STDERR_FILENO, .events = POLLOUT};
    if (poll(&at, 1, 0) == 1 && at.revents == POLLOUT) {
        ssize_t written = write(STDERR_FILENO, line, size);
        (void)written; /* nobody is left to tell */
    }
}

void log_stderr(enum log_level level, const char *message, const struct log_to *to)
{
    char line[BOUNDS_LOG_LINE + 96], date[32];
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    log_date(now.tv_sec, date, sizeof date);
    int length = snprintf(line, sizeof line, "%s.%03ldZ %s[%ld] %-5s %s\n", date, now.tv_nsec / 1000000,
                          to->user != NULL ? (const char *)to->user : "pccl", (long)getpid(), log_level_name(level), message);
    if (length > 0) {
        write_line(line, (size_t)length < sizeof line ? (size_t)length : sizeof line - 1);
    }
}

bool log_level_read(const char *text, enum log_level *out)
{
    static const struct {
        const char *word;
        enum log_level level;
    } words[] = {{"trace", LOG_TRACE}, {"debug", LOG_DEBUG}, {"info", LOG_INFO},   {"warn", LOG_WARN},
                 {"error", LOG_ERROR}, {"err", LOG_ERROR},   {"fatal", LOG_ERROR}, {"none", LOG_NONE}};
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++) {
        if (strcasecmp(text, words[i].word) == 0) {
            *out = words[i].level;
            return true;
        }
    }
    return false;
}
