/* pccl_main.c - the command "pccl": one sub-command for each thing to do.
 *
 * One idea: a row for each sub-command; the first word chooses it, the rest is its own.  Exit status of a word that has to be
 * mended: 2.
 * SPDX-License-Identifier: MIT */
#include <stdio.h>
#include <string.h>

#include "kernels/kernels.h"
#include "pccl.h"
#include "pccl/bench_command.h"
#include "pccl/topo_command.h"
#include "pccl/wan_command.h"
#include "wire/frame.h"

#ifdef __clang__
#define COMPILER "" /* its version begins with its name */
#else
#define COMPILER "gcc "
#endif

static const struct command {
    const char *name, *summary;
    int (*run)(int count, char **words); /* with the words behind its name; the exit status */
} commands[] = {
    {"bench", "measure collectives between processes of this host, and check them", bench_command},
    {"topo", "show how the members of a run are linked, and what is made of it", topo_command},
    {"wan", "emulate a wide area on this machine, and run programs in it", wan_command},
};

enum { COMMANDS = sizeof commands / sizeof commands[0] };

static int print_help(void)
{
    printf("usage: pccl COMMAND [WORDS...]\n"
           "\n"
           "Tools for PCCL, the library of collective communication between processes that may join, crash and leave\n"
           "at any time.\n"
           "\n");
    for (int i = 0; i < COMMANDS; i++) {
        printf("  %-14s %s\n", commands[i].name, commands[i].summary);
    }
    printf("\n"
           "  -h, --help     print this and exit; pccl COMMAND --help tells of one command\n"
           "  -V, --version  print the version and how it was built, and exit\n"
           "\n"
           "The master of a run is a program of its own: ccoip_master --help.\n");
    return 0;
}

/* The version, then what a report of a fault has to say of this build, a fact to a line; PCCL_BUILT_* are CMake's. */
static int print_version(void)
{
    printf("pccl %d.%d.%d\n", PCCL_VERSION_MAJOR, PCCL_VERSION_MINOR, PCCL_VERSION_PATCH);
    printf("compiler:  %s%s, %s\n", COMPILER, __VERSION__, PCCL_BUILT_AS);
    printf("kernels:   %s on this processor\n", kernels_get()->name);
    printf("protocol:  version %d\n", FRAME_VERSION);
    printf("libfabric: %s\n", PCCL_BUILT_WITH_LIBFABRIC ? "can be loaded" : "not built in");
    return 0;
}

int main(int argc, char **argv)
{
    const char *word = argc > 1 ? argv[1] : "";
    if (strcmp(word, "-h") == 0 || strcmp(word, "--help") == 0) {
        return print_help();
    }
    if (strcmp(word, "-V") == 0 || strcmp(word, "--version") == 0) {
        return print_version();
    }
    for (int i = 0; i < COMMANDS; i++) {
        if (strcmp(word, commands[i].name) == 0) {
            return commands[i].run(argc - 2, argv + 2);
        }
    }
    if (argc < 2) {
        fprintf(stderr, "pccl: a command is missing, try --help\n");
    } else {
        fprintf(stderr, "pccl: unknown %s '%s', try --help\n", word[0] == '-' ? "option" : "command", word);
    }
    return 2;
}
