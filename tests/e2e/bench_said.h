/* bench_said.h - "pccl bench" as tests start it, and what it said.
 * SPDX-License-Identifier: MIT */
#ifndef PCCL_TESTS_BENCH_SAID_H
#define PCCL_TESTS_BENCH_SAID_H

#include <stdbool.h>
#include <stdint.h>

#include "tests/spawn.h"

enum { COLLECTIVES = 14, MESSAGES = 1, IN_PLACE_TOO = 9 }; /* what "all" measures */

/* Starts pccl with the words of one text, blanks between them, and waits; its status, -1: it did not start. */
int bench_run(struct program *p, const char *words);

int bench_count(const char *text, const char *word);
bool bench_is_json(const char *text);
/* The number behind the first place of that name; -1: there is none. */
double bench_number(const char *text, const char *name);
/* The first line of the table, no comment, that holds this word; its words, and how many they are. */
int bench_words(const char *text, const char *word_of_it, char line[512], char *words[32]);
/* Runs it with --json -: how many results; -1: another status than 0, no sound JSON, words beside it, or a wrong element. */
int bench_right(struct program *p, const char *words);

#endif
