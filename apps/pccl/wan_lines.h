/* wan_lines.h - the output of several commands on one stream: whole lines, each with a name in front.
 * SPDX-License-Identifier: MIT */
#ifndef PCCL_WAN_LINES_H
#define PCCL_WAN_LINES_H

#include <stdbool.h>
#include <stddef.h>

enum { WAN_LINE_MOST = 8192 };

struct wan_lines {
    int from, to;     /* from: owned; -1: at its end */
    const char *name; /* borrowed */
    size_t used;
    char text[WAN_LINE_MOST];
};

/* Passes on what has come.  A line that is longer than the room is broken; false: the stream has ended. */
bool wan_lines_pass(struct wan_lines *l);

#endif
