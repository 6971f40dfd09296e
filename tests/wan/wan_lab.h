/* wan_lab.h - "pccl wan run" as tests start it: the description of a network as text, commands, and what is said at the end.
 *
 * Where there can be no emulator a test is skipped, by name and with the reason; with PCCL_WAN_REQUIRED=1, as in the project's own runs, it
 * fails.  Invariant: the files that a lab makes are gone when it ends.
 * SPDX-License-Identifier: MIT */
#ifndef PCCL_TESTS_WAN_LAB_H
#define PCCL_TESTS_WAN_LAB_H

#include "tests/spawn.h"

enum { LAB_WORDS = 32, LAB_TRIES = 3, LAB_VOID = 75, LAB_FAILED = 125 };

struct lab {
    struct program emulator;
    char network[64], report[64]; /* paths */
    char stream[PATH_MAX];        /* of wan_stream_main */
    char json[1 << 16];           /* the report */
};

/* Why there can be no emulator here; null: there can. */
static inline const char *lab_missing(void)
{
    static char why[400];
    static int known = -1;
    char path[PATH_MAX], name[] = "/tmp/pccl-wan-XXXXXX", pccl[] = "pccl", wan[] = "wan", run[] = "run", dashes[] = "--", program[] = "true";
    if (known < 0) {
        struct program p;
        int fd = mkstemp(name);
        bool ok = fd >= 0 && write(fd, "[host a]\n", 9) == 9;
        char *args[] = {pccl, wan, run, name, dashes, program, NULL};
        spawn_path("bin/pccl", path);
        known = ok && program_start(&p, path, args) ? program_wait(&p) : LAB_FAILED;
        snprintf(why, sizeof why, "%.*s", (int)strcspn(p.err_text, "\n"), p.err_text);
        close(fd);
        unlink(name);
    }
    return known == 0 || known == LAB_VOID ? NULL : why;
}

/* Ends the running test where there can be no emulator. */
#define LAB_NEEDED()                                                                                                   \
    do {                                                                                                               \
        if (lab_missing() != NULL) {                                                                                   \
            if (getenv("PCCL_WAN_REQUIRED") != NULL) {                                                                 \
                EXPECT_STR(lab_missing(), "an emulator");                                                              \
            }                                                                                                          \
            TEST_SKIP(lab_missing());                                                                                  \
        }                                                                                                              \
    } while (0)

/* Starts an emulator with the words behind the network's file, up to a null. */
static inline bool lab_start(struct lab *l, const char *network, char *const words[])
{
    char path[PATH_MAX], pccl[] = "pccl", wan[] = "wan", run[] = "run", json[] = "--json";
    char *args[LAB_WORDS + 8] = {pccl, wan, run, l->network, json, l->report};
    snprintf(l->network, sizeof l->network, "/tmp/pccl-wan-XXXXXX");
    snprintf(l->report, sizeof l->report, "/tmp/pccl-wan-XXXXXX");
    int fd = mkstemp(l->network), report = mkstemp(l->report);
    bool ok = fd >= 0 && report >= 0 && write(fd, network, strlen(network)) == (ssize_t)strlen(network);
    close(fd);
    close(report);
    for (int i = 0; words[i] != NULL && i < LAB_WORDS; i++) {
        args[6 + i] = words[i];
    }
    spawn_path("bin/pccl", path);
    return ok && program_start(&l->emulator, path, args);
}

/* Reads the report, after the end. */
static inline int lab_end(struct lab *l)
{
    int status = program_wait(&l->emulator);
    FILE *f = fopen(l->report, "re");
    size_t size = f != NULL ? fread(l->json, 1, sizeof l->json - 1, f) : 0;
    l->json[size] = 0;
    if (f != NULL) {
        fclose(f);
    }
    unlink(l->network);
    unlink(l->report);
    return status;
}

/* From start to end; a run that is void, since the machine was too busy, is repeated twice at most. */
static inline int lab_run(struct lab *l, const char *network, char *const words[])
{
    int status = LAB_VOID;
    for (int i = 0; i < LAB_TRIES && status == LAB_VOID; i++) {
        status = lab_start(l, network, words) ? lab_end(l) : -1;
    }
    return status;
}

/* A number of the report's line for an ordered pair; -1: there is none. */
static inline double lab_count(const struct lab *l, const char *from, const char *to, const char *name)
{
    char head[80], field[40];
    snprintf(head, sizeof head, "{\"from\": \"%s\", \"to\": \"%s\"", from, to);
    snprintf(field, sizeof field, "\"%s\": ", name);
    const char *at = strstr(l->json, head), *end = at != NULL ? strchr(at, '}') : NULL;
    at = at != NULL ? strstr(at, field) : NULL;
    return at != NULL && at < end ? atof(at + strlen(field)) : -1;
}

/* The number behind a text of the output; -1: it is not there. */
static inline double lab_said(const struct lab *l, const char *text)
{
    const char *at = strstr(l->emulator.out_text, text);
    return at != NULL ? atof(at + strlen(text)) : -1;
}

#endif
