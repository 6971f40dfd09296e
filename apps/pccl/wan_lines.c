/* wan_lines.c - see wan_lines.h.
 * SPDX-License-Identifier: MIT */
#include "pccl/wan_lines.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static void write_line(const struct wan_lines *l, const char *text, size_t size)
{
    char line[WAN_LINE_MOST + 64];
    int head = snprintf(line, sizeof line, "[%s] ", l->name);
    memcpy(line + head, text, size);
    size_t all = (size_t)head + size;
    line[all++] = '\n';
    for (size_t at = 0; at < all;) {
        ssize_t n = write(l->to, line + at, all - at);
        if (n < 0 && errno != EINTR) {
            return; /* nobody reads any more */
        }
        at += n > 0 ? (size_t)n : 0;
    }
}

bool wan_lines_pass(struct wan_lines *l)
{
    ssize_t n = read(l->from, l->text + l->used, sizeof l->text - l->used);
    if (n < 0 && (errno == EINTR || errno == EAGAIN)) {
        return true;
    }
    l->used += n > 0 ? (size_t)n : 0;
    size_t at = 0;
    for (char *end; (end = memchr(l->text + at, '\n', l->used - at)) != NULL; at = (size_t)(end - l->text) + 1) {
        write_line(l, l->text + at, (size_t)(end - l->text) - at);
    }
    l->used -= at;
    memmove(l->text, l->text + at, l->used);
    if (l->used > 0 && (n <= 0 || l->used == sizeof l->text)) {
        write_line(l, l->text, l->used);
        l->used = 0;
    }
    if (n <= 0) {
        close(l->from);
        l->from = -1;
    }
    return n > 0;
}
