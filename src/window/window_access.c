/* window_access.c - what may be done at a window's memory, and is.
 * SPDX-License-Identifier: MIT */
#include <string.h>

#include "window/window_state.h"

bool window_allows(size_t bytes, uint32_t rights, uint8_t kind, uint64_t offset, uint64_t length)
{
    uint32_t needed = kind == WINDOW_PUT ? WINDOW_MAY_WRITE : kind == WINDOW_GET ? WINDOW_MAY_READ : WINDOW_MAY_COUNT;
    bool aligned = !window_numbers(kind) || offset % length == 0;
    return (rights & needed) == needed && aligned && length <= bytes && offset <= bytes - length;
}

/* ---- Numbers ----------------------------------------------------------------------------------------------------- */

uint64_t window_memory_number(void *at, const struct window_request *r)
{
    if (r->width == 4) {
        uint32_t *number = at, was = (uint32_t)r->expected;
        if (r->kind == WINDOW_ADD) {
            return __atomic_fetch_add(number, (uint32_t)r->operand, __ATOMIC_SEQ_CST);
        }
        (void)__atomic_compare_exchange_n(number, &was, (uint32_t)r->operand, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);
        return was;
    }
    uint64_t *number = at, was = r->expected;
    if (r->kind == WINDOW_ADD) {
        return __atomic_fetch_add(number, r->operand, __ATOMIC_SEQ_CST);
    }
    (void)__atomic_compare_exchange_n(number, &was, r->operand, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);
    return was;
}

void window_memory_do(void *base, struct window_op *op)
{
    const struct window_call *k = &op->what;
    unsigned char *at = k->bytes > 0 ? (unsigned char *)base + k->offset : base;
    if (window_numbers(k->kind)) {
        const struct window_request r = {.kind = k->kind, .width = (uint8_t)k->bytes, .operand = k->operand, .expected = k->expected};
        op->answer = window_memory_number(at, &r);
    } else if (k->bytes > 0 && k->kind == WINDOW_PUT) {
        memmove(at, k->source, k->bytes);
    } else if (k->bytes > 0 && k->kind == WINDOW_GET) {
        memmove(k->target, at, k->bytes);
    }
}
