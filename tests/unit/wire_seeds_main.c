/* wire_seeds_main.c - writes the seed corpora of the fuzz targets from the encoders.
 *
 * Run: wire_seeds_main fuzz/corpus   Three folders must be there: frame, control, p2p.  A seed of `control` and `p2p` is
 * the frame type and a payload; one of `frame` is a header.  The same seeds come out every time.
 * SPDX-License-Identifier: MIT */
#include <stdio.h>

#include "tests/unit/wire_cases.h"

enum { SEEDS_PER_CASE = 3 };

static uint64_t seeds_struct[WIRE_CASE_STRUCT / 8];
static unsigned char seeds_bytes[1 + WIRE_CASE_BYTES];

static bool write_file(const char *root, const char *folder, const char *name, int number, const void *data, size_t size)
{
    char path[1024];
    snprintf(path, sizeof path, "%s/%s/%s-%d", root, folder, name, number);
    FILE *f = fopen(path, "wb");
    if (f == NULL) {
        perror(path);
        return false;
    }
    bool good = fwrite(data, 1, size, f) == size;
    return fclose(f) == 0 && good;
}

static bool write_case(const char *root, const char *folder, const struct wire_case *c, struct rng *rng)
{
    bool good = true;
    for (int i = 0; i < SEEDS_PER_CASE; i++) {
        seeds_bytes[0] = c->frame;
        size_t size = wire_case_encode(c, rng, seeds_struct, seeds_bytes + 1, WIRE_CASE_BYTES);
        good = good && size > 0 && write_file(root, folder, c->name, i, seeds_bytes, size + 1);
        struct frame_header h = {.type = c->frame, .length = (uint32_t)size, .run = rng_next(rng)};
        unsigned char header[FRAME_HEADER_BYTES];
        frame_put(header, &h);
        good = good && (i > 0 || write_file(root, "frame", c->name, i, header, sizeof header));
    }
    return good;
}

int main(int argc, char **argv)
{
    if (argc != 2) {
        fprintf(stderr, "usage: wire_seeds_main FOLDER\n");
        return 2;
    }
    struct rng rng = {1};
    bool good = true;
    for (size_t i = 0; i < wire_control_case_count; i++) {
        good = good && write_case(argv[1], "control", &wire_control_cases[i], &rng);
    }
    for (size_t i = 0; i < wire_report_case_count; i++) {
        good = good && write_case(argv[1], "control", &wire_report_cases[i], &rng);
    }
    for (size_t i = 0; i < wire_status_case_count; i++) {
        good = good && write_case(argv[1], "control", &wire_status_cases[i], &rng);
    }
    for (size_t i = 0; i < wire_p2p_case_count; i++) {
        good = good && write_case(argv[1], "p2p", &wire_p2p_cases[i], &rng);
    }
    return good ? 0 : 1;
}
