/* consumer.c - the smallest program that needs the header, the library and its initialisation.
 * SPDX-License-Identifier: MIT */
#include <pccl.h>
#include <stdio.h>

int main(void)
{
    pcclBuildInfo_t info;
    if (pcclInit() != pcclSuccess || pcclGetBuildInfo(&info) != pcclSuccess) {
        return 1;
    }
    printf("%s\n", pcclGetResultString(pcclSuccess));
    return 0;
}
