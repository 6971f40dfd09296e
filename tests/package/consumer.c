/* consumer.c [VERSION] - the smallest program that needs the header, the library and its initialisation; with VERSION both
 * must be of it.
 * SPDX-License-Identifier: MIT */
#include <pccl.h>
#include <stdio.h>
#include <string.h>

int main(int argc, char **argv)
{
    int version;
    char text[32];
    if (pcclInit() != pcclSuccess || pcclGetVersion(&version) != pcclSuccess || version != PCCL_VERSION) {
        return 1;
    }
    snprintf(text, sizeof text, "%d.%d.%d", version / 10000, version / 100 % 100, version % 100);
    puts(text);
    return argc > 1 && strcmp(argv[1], text) != 0;
}
