/* text.c - reading and splitting the text; the bigram model.
 * SPDX-License-Identifier: MIT */
#define _DEFAULT_SOURCE /* scandir, lstat */
#include "text.h"

#include <dirent.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

static unsigned char text_symbol(int c)
{
    if (c == '\n') {
        return TEXT_SYMBOLS - 1;
    }
    return c >= ' ' && c <= '~' ? (unsigned char)(c - ' ') : 0;
}

char text_char(unsigned symbol)
{
    return symbol == TEXT_SYMBOLS - 1 ? '\n' : (char)(' ' + symbol);
}

static bool text_append(struct text *t, const char *path)
{
    FILE *f = fopen(path, "rb");
    if (f == NULL) {
        return false;
    }
    for (int c; (c = fgetc(f)) != EOF;) {
        if ((t->count & (t->count - 1)) == 0) { /* grows at every power of two */
            unsigned char *grown = realloc(t->symbols, t->count == 0 ? 1 : 2 * t->count);
            if (grown == NULL) {
                fclose(f);
                return false;
            }
            t->symbols = grown;
        }
        t->symbols[t->count++] = text_symbol(c);
    }
    fclose(f);
    return true;
}

static bool text_append_directory(struct text *t, const char *path)
{
    struct dirent **names;
    int count = scandir(path, &names, NULL, alphasort);
    bool ok = count >= 0;
    for (int i = 0; i < count; i++) {
        char file[4096];
        struct stat st;
        snprintf(file, sizeof file, "%s/%s", path, names[i]->d_name);
        if (ok && lstat(file, &st) == 0 && S_ISREG(st.st_mode)) { /* links would count twice */
            ok = text_append(t, file);
        }
        free(names[i]);
    }
    if (count >= 0) {
        free(names);
    }
    return ok;
}

static bool text_split(struct text *t)
{
    t->train = malloc(t->count * sizeof *t->train);
    t->held = malloc(t->count * sizeof *t->held);
    if (t->train == NULL || t->held == NULL) {
        return false;
    }
    for (size_t at = 0; at < t->count; at++) {
        size_t in_block = at % TEXT_BLOCK, border = TEXT_BLOCK - TEXT_HELD_OUT;
        if (in_block >= border + TEXT_CONTEXT) {
            t->held[t->held_count++] = at;
        } else if (in_block >= TEXT_CONTEXT && in_block < border) {
            t->train[t->train_count++] = at;
        }
    }
    return true;
}

bool text_load(struct text *t, const char *path, const char **why)
{
    struct stat st;
    memset(t, 0, sizeof *t);
    bool ok = stat(path, &st) == 0 && (S_ISDIR(st.st_mode) ? text_append_directory(t, path) : text_append(t, path));
    *why = "cannot be read";
    if (ok && t->count < 2 * TEXT_BLOCK) {
        *why = "is too short: at least 8192 characters are needed";
        ok = false;
    }
    if (ok) {
        *why = "is too long for this machine's memory";
        ok = text_split(t);
    }
    if (!ok) {
        text_free(t);
    }
    return ok;
}

void text_free(struct text *t)
{
    free(t->symbols);
    free(t->train);
    free(t->held);
    memset(t, 0, sizeof *t);
}

double text_bigram_loss(const struct text *t)
{
    static double pair[TEXT_SYMBOLS][TEXT_SYMBOLS], first[TEXT_SYMBOLS];
    double loss = 0, smoothing = 0.1;
    for (size_t i = 0; i < t->train_count; i++) {
        size_t at = t->train[i];
        pair[t->symbols[at - 1]][t->symbols[at]] += 1;
        first[t->symbols[at - 1]] += 1;
    }
    for (size_t i = 0; i < t->held_count; i++) {
        unsigned before = t->symbols[t->held[i] - 1], next = t->symbols[t->held[i]];
        loss -= log((pair[before][next] + smoothing) / (first[before] + smoothing * TEXT_SYMBOLS));
    }
    return loss / (double)t->held_count;
}
