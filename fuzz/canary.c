/* canary.c - a parser with a planted mistake, which the fuzzer must find in seconds.
 *
 * Guards against a fuzzing set-up that sees nothing: no coverage, no sanitizer, no value profile.  The mistake: a length
 * behind a four-byte magic number and a checksum is believed.
 * SPDX-License-Identifier: MIT */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    uint32_t magic;
    if (size < 6) {
        return 0;
    }
    memcpy(&magic, data, sizeof magic);
    uint8_t length = data[4], checksum = data[5];
    if (magic != 0x4c434350u || (uint8_t)(length ^ 0x5a) != checksum) {
        return 0;
    }
    uint8_t *copy = malloc(size);
    if (copy == NULL) {
        return 0;
    }
    memcpy(copy, data, size);
    volatile uint8_t sum = 0;
    for (size_t i = 0; i < length; i++) { /* the mistake: never compared with size */
        sum = (uint8_t)(sum + copy[6 + i]);
    }
    free(copy);
    return 0;
}
