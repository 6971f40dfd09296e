/* topo_command.c - the words of "pccl topo".
 *
 * One idea: what is a file is read, anything else is asked as a master.
 * SPDX-License-Identifier: MIT */
#include "pccl/topo_command.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "pccl/command_error.h"
#include "pccl/topo_show.h"

enum { TOPO_FINE = 0, TOPO_WORDS = 2 };

static int print_help(void)
{
    printf("usage: pccl topo MASTER|FILE [FLAG VALUE]...\n"
           "\n"
           "Shows the links of a group: rate, round trip, loss and age of each edge; the best ring with the gap to a proven\n"
           "bound, shares, trees, and the predicted time of an all-reduce by each algorithm.  Processors are left out of it.\n"
           "\n"
           "MASTER is the address of a running ccoip_master, HOST[:PORT]; nothing is measured and nobody has to wait.\n"
           "FILE is a description of a network (pccl wan --help), or what pccl topo --json has written.\n"
           "\n"
           "  --world NAME            the world at that master (default: the one without a name)\n"
           "  --group N               the group in that world (default: 0)\n"
           "  --size BYTES            of the all-reduce (default: 64M); K, M and G are powers of 1024\n"
           "  --json                  print JSON instead of text\n"
           "  --svg FILE              write a picture there, too\n"
           "  -h, --help              print this and exit\n"
           "\n"
           "Of more than 24 peers the text has the extremes instead of a matrix.\n"
           "\n"
           "Exit status: 0; 2 for an argument or a file that has to be fixed, or a master that does not answer.\n");
    return TOPO_FINE;
}

__attribute__((format(printf, 1, 2))) static int refuse(const char *format, ...)
{
    va_list list;
    va_start(list, format);
    command_error("topo", format, list);
    va_end(list);
    return TOPO_WORDS;
}

struct words {
    const char *target, *world, *svg, *size, *group;
    bool json;
    double bytes;
    uint32_t group_number;
};

static bool read_size(const char *text, double *out)
{
    char *end;
    errno = 0;
    double value = text[0] >= '0' && text[0] <= '9' ? strtod(text, &end) : (end = NULL, 0);
    const char *units = "KMG", *unit = end != NULL && *end != 0 ? strchr(units, *end) : NULL;
    for (const char *u = units; unit != NULL && u <= unit; u++) {
        value *= 1024;
    }
    *out = value;
    return end != NULL && (*end == 0 || (unit != NULL && end[1] == 0)) && errno == 0 && value >= 1 && value <= 1e15;
}

static bool read_group(const char *text, uint32_t *out)
{
    char *end;
    errno = 0;
    unsigned long long value = strtoull(text, &end, 10);
    *out = (uint32_t)value;
    return text[0] >= '0' && text[0] <= '9' && *end == 0 && errno == 0 && value <= UINT32_MAX;
}

/* False: it was refused. */
static bool read_words(struct words *w, int count, char **words)
{
    for (int i = 0; i < count; i++) {
        const char *word = words[i];
        const char **to = strcmp(word, "--world") == 0  ? &w->world
                          : strcmp(word, "--group") == 0 ? &w->group
                          : strcmp(word, "--size") == 0  ? &w->size
                          : strcmp(word, "--svg") == 0   ? &w->svg
                                                         : NULL;
        if (strcmp(word, "--json") == 0) {
            w->json = true;
        } else if (to != NULL && i + 1 < count && words[i + 1][0] != 0) {
            *to = words[++i];
        } else if (to != NULL) {
            (void)refuse("a value is missing after '%s', try --help", word);
            return false;
        } else if (word[0] == '-' || word[0] == 0 || w->target != NULL) {
            (void)refuse(word[0] == '-' ? "unknown flag '%s', try --help" : "'%s' is one word too many: give one master or file", word);
            return false;
        } else {
            w->target = word;
        }
    }
    if (w->target == NULL) {
        (void)refuse("a master or a file is missing: pccl topo HOST:PORT, or pccl topo NETWORK.ini");
        return false;
    }
    if (!read_size(w->size, &w->bytes)) {
        (void)refuse("--size %s: give a number of bytes such as 64M, up to 1e15", w->size);
        return false;
    }
    if (!read_group(w->group, &w->group_number)) {
        (void)refuse("--group %s: give the number of a peer group, 0 to 4294967295", w->group);
        return false;
    }
    if (strlen(w->world) > 63) {
        (void)refuse("--world %s: a name has at most 63 bytes", w->world);
        return false;
    }
    return true;
}

static bool looks_like_file(const char *target)
{
    return access(target, F_OK) == 0 || strchr(target, '/') != NULL || strstr(target, ".ini") != NULL || strstr(target, ".json") != NULL;
}

static int write_svg(const struct words *w, const struct topo_matrix *m, const struct topo_solution *s)
{
    FILE *f = fopen(w->svg, "we");
    if (f == NULL) {
        return refuse("--svg '%s' cannot be written: %s: give another path", w->svg, strerror(errno));
    }
    bool whole = topo_svg_write(f, m, s);
    if (fclose(f) != 0) {
        return refuse("--svg '%s': %s", w->svg, strerror(errno));
    }
    return whole ? TOPO_FINE : refuse("no memory");
}

static int show(const struct words *w, const struct topo_matrix *m)
{
    struct topo_solution *s = topo_solve(m, w->bytes);
    if (s == NULL) {
        return refuse("no memory");
    }
    if (w->json) {
        topo_json_write(stdout, m, s);
    } else {
        topo_text_write(stdout, m, s);
    }
    int status = fflush(stdout) == 0 && !ferror(stdout) ? TOPO_FINE : refuse("standard output: %s", strerror(errno));
    status = status == TOPO_FINE && w->svg != NULL ? write_svg(w, m, s) : status;
    topo_solution_free(s);
    return status;
}

int topo_command(int count, char **words)
{
    struct words w = {.world = "", .group = "0", .size = "64M"};
    char error[TOPO_ERROR];
    for (int i = 0; i < count; i++) {
        if (strcmp(words[i], "-h") == 0 || strcmp(words[i], "--help") == 0) {
            return print_help();
        }
    }
    if (!read_words(&w, count, words)) {
        return TOPO_WORDS;
    }
    struct topo_matrix *m = looks_like_file(w.target) ? topo_read(w.target, error) : topo_ask(w.target, w.world, w.group_number, error);
    if (m == NULL) {
        return refuse("%s", error);
    }
    int status = show(&w, m);
    topo_matrix_free(m);
    return status;
}
