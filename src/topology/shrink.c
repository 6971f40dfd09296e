/* shrink.c - James and Stein's estimator, in logarithms: the part of the scatter that is not error is kept.
 * SPDX-License-Identifier: MIT */
#include "topology/shrink.h"

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

static const double ln_two = 0.6931471805599453;

/* The natural logarithm of a positive, finite number from + - * / alone: the C library's differs between machines. */
static double ln(double x)
{
    uint64_t bits;
    int64_t exponent = 0;
    for (; x < 1e-300; exponent -= 64) { /* so that it is not a subnormal number */
        x *= 18446744073709551616.0;
    }
    memcpy(&bits, &x, sizeof bits);
    exponent += (int64_t)(bits >> 52) - 1023;
    bits = (bits & 0xFFFFFFFFFFFFFu) | UINT64_C(1023) << 52;
    memcpy(&x, &bits, sizeof x); /* in [1, 2) */
    if (x > 1.5) {
        x /= 2;
        exponent++;
    }
    double t = (x - 1) / (x + 1), square = t * t, sum = 0;
    for (int k = 25; k > 0; k -= 2) {
        sum = sum * square + 1.0 / k;
    }
    return 2 * t * sum + (double)exponent * ln_two;
}

static double power_of_e(double x)
{
    int64_t twos = (int64_t)(x / ln_two + (x < 0 ? -0.5 : 0.5));
    double rest = x - (double)twos * ln_two, sum = 1;
    for (int k = 16; k > 0; k--) {
        sum = 1 + rest / k * sum;
    }
    for (; twos > 0; twos--) {
        sum *= 2;
    }
    for (; twos < 0; twos++) {
        sum /= 2;
    }
    return sum;
}

static bool moves(double rate)
{
    return rate > 0 && rate < __builtin_inf();
}

void shrink_rates(double *rates, size_t count, double error)
{
    double sum = 0, squares = 0;
    size_t moved = 0;
    for (size_t i = 0; i < count; i++) {
        sum += moves(rates[i]) ? ln(rates[i]) : 0;
        moved += moves(rates[i]);
    }
    if (moved <= 3) { /* of so few nothing can be told */
        return;
    }
    double mean = sum / (double)moved;
    for (size_t i = 0; i < count; i++) {
        double off = moves(rates[i]) ? ln(rates[i]) - mean : 0;
        squares += off * off;
    }
    double noise = ((double)moved - 3) * error * error;
    double keep = squares > noise ? 1 - noise / squares : 0;
    for (size_t i = 0; i < count; i++) {
        rates[i] = moves(rates[i]) ? power_of_e(mean + keep * (ln(rates[i]) - mean)) : rates[i];
    }
}
