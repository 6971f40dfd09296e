/* bench_said.c - "pccl bench" started with a line of words, and what it said taken apart.
 * SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#include "tests/e2e/bench_said.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { WORDS_MOST = 32 };

/* Starts pccl with the words of one text, blanks between them; the words are written to `room`. */
static bool start_pccl(struct program *p, char room[512], const char *words)
{
    char path[PATH_MAX], name[] = "pccl", *args[WORDS_MOST] = {name};
    size_t count = 1;
    snprintf(room, 512, "%s", words);
    for (char *at = room; *at != 0 && count + 1 < WORDS_MOST;) {
        args[count++] = at;
        at += strcspn(at, " ");
        if (*at != 0) {
            *at++ = 0;
        }
    }
    args[count] = NULL;
    spawn_path("bin/pccl", path);
    return program_start(p, path, args);
}

int bench_run(struct program *p, const char *words)
{
    char room[512];
    return start_pccl(p, room, words) ? program_wait(p) : -1;
}

int bench_count(const char *text, const char *word)
{
    int count = 0;
    for (const char *at = text; (at = strstr(at, word)) != NULL; at += strlen(word)) {
        count++;
    }
    return count;
}

/* ---- JSON -------------------------------------------------------------------------------------------------------- */

static const char *skip_value(const char *at);

static const char *skip_space(const char *at)
{
    return at + strspn(at, " \n");
}

static const char *skip_string(const char *at)
{
    const char *end = *at == '"' ? strpbrk(at + 1, "\"\\") : NULL; /* ours need no escapes */
    return end != NULL && *end == '"' ? end + 1 : NULL;
}

/* What stands between braces or brackets; null: that is not JSON. */
static const char *skip_list(const char *at, char end, bool named)
{
    at = skip_space(at + 1);
    for (bool first = true; *at != end; first = false) {
        if (!first) {
            if (*at != ',') {
                return NULL;
            }
            at = skip_space(at + 1);
        }
        if (named) {
            at = skip_string(at);
            if (at == NULL || *at != ':') {
                return NULL;
            }
            at = skip_space(at + 1);
        }
        at = skip_value(at);
        if (at == NULL) {
            return NULL;
        }
        at = skip_space(at);
    }
    return at + 1;
}

static const char *skip_value(const char *at)
{
    static const char *const words[] = {"null", "true", "false"};
    char *end;
    for (int i = 0; i < 3; i++) {
        if (strncmp(at, words[i], strlen(words[i])) == 0) {
            return at + strlen(words[i]);
        }
    }
    if (*at == '{' || *at == '[') {
        return skip_list(at, *at == '{' ? '}' : ']', *at == '{');
    }
    if (*at == '"') {
        return skip_string(at);
    }
    (void)strtod(at, &end);
    return end != at && *at != 'n' && *at != 'i' ? end : NULL; /* nan and inf are no numbers there */
}

bool bench_is_json(const char *text)
{
    const char *end = skip_value(text);
    return end != NULL && *skip_space(end) == 0;
}

/* ---- The table --------------------------------------------------------------------------------------------------- */

double bench_number(const char *text, const char *name)
{
    const char *at = strstr(text, name);
    return at == NULL ? -1 : strtod(at + strlen(name), NULL);
}

int bench_words(const char *text, const char *word_of_it, char line[512], char *words[32])
{
    int count = 0;
    for (const char *at = text, *end; (end = strchr(at, '\n')) != NULL; at = end + 1) {
        size_t length = (size_t)(end - at);
        const char *there = *at != '#' && length < 512 ? strstr(at, word_of_it) : NULL;
        if (there != NULL && there > at && there[-1] == ' ' && there < end) {
            memcpy(line, at, length);
            line[length] = 0;
            for (char *word = strtok(line, " "); word != NULL && count < 32; word = strtok(NULL, " ")) {
                words[count++] = word;
            }
            break;
        }
    }
    return count;
}

/* ---- A whole run ------------------------------------------------------------------------------------------------- */

int bench_right(struct program *p, const char *words)
{
    char all[400];
    snprintf(all, sizeof all, "bench %s --json -", words);
    bool sound = bench_run(p, all) == 0 && p->err_text[0] == 0 && bench_is_json(p->out_text);
    int results = bench_count(p->out_text, "\"in_place\": "), right = bench_count(p->out_text, "\"wrong\": 0");
    return sound && right == results + 1 ? results : -1; /* the sum of all says so as well */
}
