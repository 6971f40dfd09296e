/* wan_parser_none.c - a build without inih: "pccl wan" says so.
 * SPDX-License-Identifier: MIT */
#include "pccl/wan_parser.h"

const char *wan_parser_missing(void)
{
    return "this build of pccl cannot read network descriptions: install inih (Debian: libinih-dev), then build pccl again";
}

int wan_parser_run(char *(*next)(char *line, int size, void *user), int (*key)(void *user, const char *section, const char *name, const char *value),
                   void *user)
{
    (void)next;
    (void)key;
    (void)user;
    return -1;
}
