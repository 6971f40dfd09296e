/* fuzz_window.c - any bytes as a request to a window.
 *
 * What was accepted must come out byte by byte as it went in.
 * SPDX-License-Identifier: MIT */
#include <stdlib.h>
#include <string.h>

#include "fuzz/echo.h"
#include "wire/window_request.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    unsigned char again[WINDOW_REQUEST_BYTES];
    struct window_request m;
    struct reader r;
    struct writer w;
    reader_init(&r, data, size);
    writer_init(&w, again, sizeof again);
    if (get_window_request(&r, &m)) {
        swallow(&m, sizeof m);
        put_window_request(&w, &m);
        if (w.bad || w.used != size || memcmp(again, data, size) != 0) {
            abort();
        }
    }
    return 0;
}
