/* fuzz_stripe.c - any bytes as the head of a record on a socket of a stripe.
 *
 * What was accepted must come out byte by byte as it went in.
 * SPDX-License-Identifier: MIT */
#include <stdlib.h>
#include <string.h>

#include "fuzz/echo.h"
#include "wire/stripe_record.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    unsigned char again[STRIPE_HEAD_BYTES];
    struct stripe_record m;
    struct reader r;
    struct writer w;
    reader_init(&r, data, size);
    writer_init(&w, again, sizeof again);
    if (get_stripe_record(&r, &m)) {
        swallow(&m, sizeof m);
        put_stripe_record(&w, &m);
        if (w.bad || w.used != size || memcmp(again, data, size) != 0 || m.length > STRIPE_RECORD_MOST) {
            abort();
        }
    }
    return 0;
}
