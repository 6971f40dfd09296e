/* fuzz_fabric.c - any bytes as the head of a message through libfabric.
 *
 * What was accepted must come out byte by byte as it went in.
 * SPDX-License-Identifier: MIT */
#include <stdlib.h>
#include <string.h>

#include "fuzz/echo.h"
#include "wire/fabric_head.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    unsigned char again[FABRIC_HEAD_BYTES];
    struct fabric_head m;
    struct reader r;
    struct writer w;
    reader_init(&r, data, size);
    writer_init(&w, again, sizeof again);
    if (get_fabric_head(&r, &m)) {
        swallow(&m, sizeof m);
        put_fabric_head(&w, &m);
        if (w.bad || w.used != size || memcmp(again, data, size) != 0) {
            abort();
        }
    }
    return 0;
}
