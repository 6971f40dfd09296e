/* text.h - the text that is learnt: symbols, a training and a validation part, and the bigram model to beat.
 *
 * Symbols are the 95 printable characters of ASCII and the line end; everything else counts as a space.  Of every 4,096
 * symbols the last 410 are for validation: both parts see every kind of text, and no context crosses a border.
 * SPDX-License-Identifier: MIT */
#ifndef EXAMPLE_TEXT_H
#define EXAMPLE_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { TEXT_SYMBOLS = 96, TEXT_BLOCK = 4096, TEXT_HELD_OUT = 410, TEXT_CONTEXT = 16 };

struct text {
    unsigned char *symbols; /* owned */
    size_t count;
    size_t *train, *held;   /* owned: places whose symbol is to be predicted */
    size_t train_count, held_count;
};

/* Reads a file, or all regular files of a directory in the order of their names.  False: `why` is set. */
bool text_load(struct text *t, const char *path, const char **why);
void text_free(struct text *t);

char text_char(unsigned symbol);

/* Mean loss (nats per character) on the validation part of the model that knows only the character before. */
double text_bigram_loss(const struct text *t);

#endif
