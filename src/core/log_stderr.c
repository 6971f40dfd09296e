/* log_stderr.c - log lines on standard error, with the date, the process and a name for its part.
 *
 * Its one idea: one line is one write, so that the lines of several processes on one terminal do not mix.
 * SPDX-License-Identifier: MIT */
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <time.h>
#include <unistd.h>

#include "core/bounds.h"
#include "core/log.h"

void log_stderr(enum log_level level, const char *message, const struct log_to *to)
{
    char line[BOUNDS_LOG_LINE + 96], date[32];
    struct timespec now;
    struct tm parts;
    clock_gettime(CLOCK_REALTIME, &now);
    localtime_r(&now.tv_sec, &parts);
    strftime(date, sizeof date, "%Y-%m-%d %H:%M:%S", &parts);
    int length = snprintf(line, sizeof line, "%s.%03ld %s[%ld] %-5s %s\n", date, now.tv_nsec / 1000000,
                          to->user != NULL ? (const char *)to->user : "pccl", (long)getpid(), log_level_name(level), message);
    if (length > 0) {
        size_t size = (size_t)length < sizeof line ? (size_t)length : sizeof line - 1;
        ssize_t written = write(STDERR_FILENO, line, size);
        (void)written; /* nobody is left to tell */
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
