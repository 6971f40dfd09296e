/* wan_loss.c - see wan_loss.h.
 * SPDX-License-Identifier: MIT */
#include "pccl/wan_loss.h"

#include "core/mix.h"

double wan_loss_draw(uint64_t seed, uint64_t number)
{
    return (double)(mix64(seed, number) >> 11) * 0x1p-53;
}

uint64_t wan_loss_seed(uint64_t seed, unsigned from, unsigned to)
{
    return mix64(mix64(mix64(0x77616E, seed), from), to);
}

bool wan_loss_next(struct wan_loss *l)
{
    double u = wan_loss_draw(l->seed, l->count++);
    if (l->burst <= 1) {
        return u < l->share;
    }
    double ends = 1 / l->burst, begins = l->share < 1 ? ends * l->share / (1 - l->share) : 1;
    l->bad = l->bad ? u >= ends : u < begins;
    return l->bad;
}
