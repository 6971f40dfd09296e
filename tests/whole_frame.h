/* whole_frame.h - an action's frame in one piece, as a connection carries it: the bytes of the outbox, then what was lent.
 * SPDX-License-Identifier: MIT */
#ifndef PCCL_TESTS_WHOLE_FRAME_H
#define PCCL_TESTS_WHOLE_FRAME_H

#include <stdlib.h>
#include <string.h>

#include "wire/outbox.h"

static inline size_t whole_frame_bytes(const struct action *a)
{
    return a->frame_bytes + (size_t)a->data_bytes;
}

/* The caller frees it. */
static inline unsigned char *whole_frame(const struct outbox *out, const struct action *a)
{
    unsigned char *frame = malloc(whole_frame_bytes(a));
    if (frame == NULL) {
        abort();
    }
    memcpy(frame, out->bytes + a->frame, a->frame_bytes);
    if (a->data_bytes > 0) {
        memcpy(frame + a->frame_bytes, a->data, (size_t)a->data_bytes);
    }
    return frame;
}

#endif
