/* wan_parser.h - the library inih, which takes lines apart, or its absence: cmake/programs.cmake chooses the file.
 * SPDX-License-Identifier: MIT */
#ifndef PCCL_WAN_PARSER_H
#define PCCL_WAN_PARSER_H

/* Null; else one sentence that says what to install. */
const char *wan_parser_missing(void);
/* Calls `next` for each line, like fgets, and `key` for each key with its value.  0, or the number of the first line that it cannot read. */
int wan_parser_run(char *(*next)(char *line, int size, void *user), int (*key)(void *user, const char *section, const char *name, const char *value),
                   void *user);

#endif
