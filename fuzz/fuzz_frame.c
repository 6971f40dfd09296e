/* fuzz_frame.c - any 32 bytes as a frame header: what is accepted is within its limit and says what its bytes say.
 * SPDX-License-Identifier: MIT */
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "wire/frame.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* What was decoded goes here, so that no read of it is optimised away. */
static volatile uint64_t sink;

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < FRAME_HEADER_BYTES) {
        return 0;
    }
    struct frame_header header;
    if (!frame_get(data, &header)) {
        return 0;
    }
    unsigned char again[FRAME_HEADER_BYTES];
    frame_put(again, &header);
    if (memcmp(again, data, sizeof again) != 0 || header.length > frame_limit(header.type) ||
        strcmp(frame_name(header.type), "?") == 0) {
        abort();
    }
    sink = header.type + header.lane + header.length + header.run + header.view;
    return 0;
}
