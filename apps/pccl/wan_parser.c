/* wan_parser.c - lines taken apart by inih.
 * SPDX-License-Identifier: MIT */
#include "pccl/wan_parser.h"

#include <ini.h>
#include <stddef.h>

const char *wan_parser_missing(void)
{
    return NULL;
}

int wan_parser_run(char *(*next)(char *line, int size, void *user), int (*key)(void *user, const char *section, const char *name, const char *value),
                   void *user)
{
    return ini_parse_stream(next, user, key, user);
}
