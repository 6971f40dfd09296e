/* model.c - forward, backward, Adam.  Plain loops over constant sizes, which compilers turn into vector code.
 * SPDX-License-Identifier: MIT */
#include "model.h"

#include <math.h>
#include <string.h>

struct activations {
    float input[MODEL_INPUT], hidden[MODEL_HIDDEN], probability[TEXT_SYMBOLS];
};

static double uniform(uint64_t *state)
{
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return (double)(*state >> 11) / 9007199254740992.0;
}

void model_init(float *params)
{
    uint64_t state = 1;
    memset(params, 0, MODEL_COUNT * sizeof *params);
    for (size_t i = 0; i < MODEL_COUNT; i++) {
        double scale = i < MODEL_AT_W1 ? 1.0 : i < MODEL_AT_W2 ? sqrt(3.0 / MODEL_INPUT) : sqrt(3.0 / MODEL_HIDDEN);
        bool bias = (i >= MODEL_AT_B1 && i < MODEL_AT_W2) || i >= MODEL_AT_B2;
        params[i] = bias ? 0 : (float)(scale * (2 * uniform(&state) - 1));
    }
}

static void forward(const float *params, const unsigned char *context, struct activations *a)
{
    float logit[TEXT_SYMBOLS], largest = -INFINITY, sum = 0;
    for (size_t c = 0; c < TEXT_CONTEXT; c++) {
        memcpy(a->input + c * MODEL_EMBED, params + context[c] * MODEL_EMBED, MODEL_EMBED * sizeof(float));
    }
    memcpy(a->hidden, params + MODEL_AT_B1, sizeof a->hidden);
    for (size_t i = 0; i < MODEL_INPUT; i++) {
        const float *row = params + MODEL_AT_W1 + i * MODEL_HIDDEN, x = a->input[i];
        for (size_t j = 0; j < MODEL_HIDDEN; j++) {
            a->hidden[j] += x * row[j];
        }
    }
    memcpy(logit, params + MODEL_AT_B2, sizeof logit);
    for (size_t j = 0; j < MODEL_HIDDEN; j++) {
        a->hidden[j] = tanhf(a->hidden[j]);
        const float *row = params + MODEL_AT_W2 + j * TEXT_SYMBOLS, h = a->hidden[j];
        for (size_t k = 0; k < TEXT_SYMBOLS; k++) {
            logit[k] += h * row[k];
        }
    }
    for (size_t k = 0; k < TEXT_SYMBOLS; k++) {
        largest = logit[k] > largest ? logit[k] : largest;
    }
    for (size_t k = 0; k < TEXT_SYMBOLS; k++) {
        a->probability[k] = expf(logit[k] - largest);
        sum += a->probability[k];
    }
    for (size_t k = 0; k < TEXT_SYMBOLS; k++) {
        a->probability[k] /= sum;
    }
}

/* Sum of products in eight lanes: a compiler may not reorder a float sum by itself. */
static float dot(const float *a, const float *b, size_t count)
{
    float lane[8] = {0};
    for (size_t i = 0; i < count; i += 8) {
        for (size_t l = 0; l < 8; l++) {
            lane[l] += a[i + l] * b[i + l];
        }
    }
    return ((lane[0] + lane[1]) + (lane[2] + lane[3])) + ((lane[4] + lane[5]) + (lane[6] + lane[7]));
}

static void backward(const float *params, const unsigned char *context, unsigned next, const struct activations *a,
                     float *gradient)
{
    float at_logit[TEXT_SYMBOLS], at_hidden[MODEL_HIDDEN];
    for (size_t k = 0; k < TEXT_SYMBOLS; k++) {
        at_logit[k] = a->probability[k] - (k == next ? 1.0f : 0.0f);
        gradient[MODEL_AT_B2 + k] += at_logit[k];
    }
    for (size_t j = 0; j < MODEL_HIDDEN; j++) {
        float *row = gradient + MODEL_AT_W2 + j * TEXT_SYMBOLS, h = a->hidden[j];
        for (size_t k = 0; k < TEXT_SYMBOLS; k++) {
            row[k] += h * at_logit[k];
        }
        at_hidden[j] = dot(params + MODEL_AT_W2 + j * TEXT_SYMBOLS, at_logit, TEXT_SYMBOLS) * (1 - h * h);
        gradient[MODEL_AT_B1 + j] += at_hidden[j];
    }
    for (size_t i = 0; i < MODEL_INPUT; i++) {
        float *row = gradient + MODEL_AT_W1 + i * MODEL_HIDDEN, x = a->input[i];
        for (size_t j = 0; j < MODEL_HIDDEN; j++) {
            row[j] += x * at_hidden[j];
        }
        gradient[context[i / MODEL_EMBED] * MODEL_EMBED + i % MODEL_EMBED] +=
            dot(params + MODEL_AT_W1 + i * MODEL_HIDDEN, at_hidden, MODEL_HIDDEN);
    }
}

float model_example(const float *params, const unsigned char *context, unsigned next, float *gradient)
{
    struct activations a;
    forward(params, context, &a);
    if (gradient != NULL) {
        backward(params, context, next, &a, gradient);
    }
    return -logf(a.probability[next] > 1e-30f ? a.probability[next] : 1e-30f);
}

double model_loss(const float *params, const struct text *t, const size_t *places, size_t place_count, size_t count)
{
    double loss = 0;
    count = count < place_count ? count : place_count;
    for (size_t i = 0; i < count; i++) {
        size_t at = places[i * place_count / count];
        loss += (double)model_example(params, t->symbols + at - TEXT_CONTEXT, t->symbols[at], NULL);
    }
    return loss / (double)count;
}

unsigned model_draw(const float *params, const unsigned char *context, double random)
{
    struct activations a;
    forward(params, context, &a);
    unsigned symbol = 0;
    for (; symbol + 1 < TEXT_SYMBOLS && random >= (double)a.probability[symbol]; symbol++) {
        random -= (double)a.probability[symbol];
    }
    return symbol;
}

void model_adam(float *params, float *m, float *v, const float *gradient, uint64_t step, float rate)
{
    const float keep_m = 0.9f, keep_v = 0.99f;
    float fix_m = 1 - powf(keep_m, (float)step), fix_v = 1 - powf(keep_v, (float)step);
    for (size_t i = 0; i < MODEL_COUNT; i++) {
        m[i] = keep_m * m[i] + (1 - keep_m) * gradient[i];
        v[i] = keep_v * v[i] + (1 - keep_v) * gradient[i] * gradient[i];
        params[i] -= rate * (m[i] / fix_m) / (sqrtf(v[i] / fix_v) + 1e-8f);
    }
}

uint64_t model_hash(uint64_t hash, const void *data, size_t size)
{
    const unsigned char *bytes = data;
    for (size_t i = 0; i < size; i++) {
        hash = (hash ^ bytes[i]) * UINT64_C(1099511628211);
    }
    return hash;
}
