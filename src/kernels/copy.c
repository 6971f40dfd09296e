/* copy.c - see copy.h.  By the 16-byte stores that every x86-64 has: four of them fill a line, as wider ones do.
 * SPDX-License-Identifier: MIT */
#include "kernels/copy.h"

#include <stdint.h>
#include <string.h>

#if defined(__x86_64__)

#include <emmintrin.h>

enum { COPY_VECTOR = 16, COPY_LINE = 64 };

void copy_away(void *to, const void *from, size_t bytes)
{
    unsigned char *out = to;
    const unsigned char *in = from;
    size_t head = (COPY_LINE - (uintptr_t)out % COPY_LINE) % COPY_LINE;
    head = head < bytes ? head : bytes;
    memcpy(out, in, head);
    out += head;
    in += head;
    size_t lines = (bytes - head) / COPY_LINE;
    for (size_t i = 0; i < lines; i++, out += COPY_LINE, in += COPY_LINE) {
        __m128i v[COPY_LINE / COPY_VECTOR];
        memcpy(v, in, COPY_LINE);
        for (int k = 0; k < COPY_LINE / COPY_VECTOR; k++) {
            _mm_stream_si128((__m128i *)(void *)(out + k * COPY_VECTOR), v[k]);
        }
    }
    memcpy(out, in, (bytes - head) % COPY_LINE);
    _mm_sfence(); /* another thread may be told of it */
}

#else

void copy_away(void *to, const void *from, size_t bytes)
{
    memcpy(to, from, bytes);
}

#endif
