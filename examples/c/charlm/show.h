/* show.h - what a person sees: lines with times, the loss curve, a sample of what the model writes.
 * SPDX-License-Identifier: MIT */
#ifndef EXAMPLE_SHOW_H
#define EXAMPLE_SHOW_H

#include "model.h"

/* Times count from `began` (seconds since 1970); lines begin with time and `who`. */
void show_begin(double began, const char *who);
double show_seconds(void);
void show_line(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Remembers the loss after a step for the curve. */
void show_remember(uint64_t step, double loss);

/* Draws what was remembered, and a line at the height of the bigram model. */
void show_curve(double bigram_loss);

/* Lets the model go on from a place of the validation text. */
void show_sample(const float *params, const struct text *t, size_t length);

#endif
