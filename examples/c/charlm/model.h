/* model.h - a small neural network that predicts the next character from the sixteen before it.
 *
 * Each character of the context becomes a learnt vector; one hidden layer (tanh) sees them all; a softmax over the
 * symbols comes out.  All numbers lie in one array, so that a gradient is one all-reduce and the model is one tensor.
 * SPDX-License-Identifier: MIT */
#ifndef EXAMPLE_MODEL_H
#define EXAMPLE_MODEL_H

#include "text.h"

enum {
    MODEL_EMBED = 16,
    MODEL_INPUT = TEXT_CONTEXT * MODEL_EMBED,
    MODEL_HIDDEN = 128,
    MODEL_AT_W1 = TEXT_SYMBOLS * MODEL_EMBED,            /* where each part begins */
    MODEL_AT_B1 = MODEL_AT_W1 + MODEL_INPUT * MODEL_HIDDEN,
    MODEL_AT_W2 = MODEL_AT_B1 + MODEL_HIDDEN,
    MODEL_AT_B2 = MODEL_AT_W2 + MODEL_HIDDEN * TEXT_SYMBOLS,
    MODEL_COUNT = MODEL_AT_B2 + TEXT_SYMBOLS,
};

/* Equal on all peers: a fixed seed. */
void model_init(float *params);

/* Adds the gradient of the loss of one prediction to `gradient` (null: none wanted); returns the loss in nats. */
float model_example(const float *params, const unsigned char *context, unsigned next, float *gradient);

/* Mean loss at `count` of the places, evenly spread. */
double model_loss(const float *params, const struct text *t, const size_t *places, size_t place_count, size_t count);

/* Draws the next symbol; `random` is in [0, 1). */
unsigned model_draw(const float *params, const unsigned char *context, double random);

/* One step of Adam, elementwise: equal inputs give equal bits on all peers.  `step` counts from 1. */
void model_adam(float *params, float *m, float *v, const float *gradient, uint64_t step, float rate);

/* FNV-1a over bytes, to compare what peers hold. */
uint64_t model_hash(uint64_t hash, const void *data, size_t size);
#define MODEL_HASH_START UINT64_C(14695981039346656037)

#endif
