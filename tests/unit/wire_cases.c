/* wire_cases.c - what is true of every message, checked in one place for all of them.
 * SPDX-License-Identifier: MIT */
#include "tests/unit/wire_cases.h"

#include <stdio.h>
#include <string.h>

static uint64_t case_struct[2][WIRE_CASE_STRUCT / 8];
static unsigned char case_bytes[2][WIRE_CASE_BYTES];

static void fail(int *failures, const struct wire_case *c, const char *what, size_t at)
{
    if ((*failures)++ < 20) {
        fprintf(stderr, "%s: %s (at %zu)\n", c->name, what, at);
    }
}

const struct wire_case *wire_case_find(const char *name)
{
    for (size_t i = 0; i < wire_control_case_count; i++) {
        if (strcmp(wire_control_cases[i].name, name) == 0) {
            return &wire_control_cases[i];
        }
    }
    for (size_t i = 0; i < wire_report_case_count; i++) {
        if (strcmp(wire_report_cases[i].name, name) == 0) {
            return &wire_report_cases[i];
        }
    }
    for (size_t i = 0; i < wire_status_case_count; i++) {
        if (strcmp(wire_status_cases[i].name, name) == 0) {
            return &wire_status_cases[i];
        }
    }
    for (size_t i = 0; i < wire_p2p_case_count; i++) {
        if (strcmp(wire_p2p_cases[i].name, name) == 0) {
            return &wire_p2p_cases[i];
        }
    }
    return NULL;
}

size_t wire_case_encode(const struct wire_case *c, struct rng *rng, void *m, void *out, size_t capacity)
{
    memset(m, 0, c->size);
    c->fill(m, rng);
    struct writer w;
    writer_init(&w, out, capacity);
    c->put(&w, m);
    return w.bad ? 0 : w.used;
}

static bool decode(const struct wire_case *c, const void *bytes, size_t size, void *m)
{
    memset(m, 0, c->size);
    struct reader r;
    reader_init(&r, bytes, size);
    return c->get(&r, m);
}

void wire_cases_check(const struct wire_case *cases, size_t count, uint64_t seeds, wire_check *check, int *failures)
{
    for (size_t i = 0; i < count; i++) {
        for (uint64_t seed = 0; seed < seeds; seed++) {
            check(&cases[i], seed, failures);
        }
    }
}

void wire_case_round_trip(const struct wire_case *c, uint64_t seed, int *failures)
{
    struct rng rng = {seed};
    size_t size = wire_case_encode(c, &rng, case_struct[0], case_bytes[0], WIRE_CASE_BYTES);
    if (size == 0 || size > frame_limit(c->frame)) {
        fail(failures, c, "encoding is empty or above the limit of its frame", size);
    }
    if (!decode(c, case_bytes[0], size, case_struct[1])) {
        fail(failures, c, "own encoding refused", size);
    }
    if (memcmp(case_struct[0], case_struct[1], c->size) != 0) {
        fail(failures, c, "decoded message differs", size);
    }
    struct writer w;
    for (size_t room = 0; room < size; room++) { /* one byte of room too few is noticed, and nothing is written past it */
        memset(case_bytes[1], 0xA5, sizeof case_bytes[1]);
        writer_init(&w, case_bytes[1], room);
        c->put(&w, case_struct[0]);
        if (!w.bad || case_bytes[1][room] != 0xA5) {
            fail(failures, c, "written past its room", room);
        }
    }
}

void wire_case_cut(const struct wire_case *c, uint64_t seed, int *failures)
{
    struct rng rng = {seed};
    size_t size = wire_case_encode(c, &rng, case_struct[0], case_bytes[0], WIRE_CASE_BYTES);
    for (size_t cut = 0; cut < size; cut++) {
        /* The bytes end where the buffer ends: a sanitizer sees a read past them. */
        unsigned char *end = case_bytes[1] + WIRE_CASE_BYTES;
        memcpy(end - cut, case_bytes[0], cut);
        if (decode(c, end - cut, cut, case_struct[1])) {
            fail(failures, c, "accepted when cut", cut);
        }
    }
}

void wire_case_overlong(const struct wire_case *c, uint64_t seed, int *failures)
{
    struct rng rng = {seed};
    size_t size = wire_case_encode(c, &rng, case_struct[0], case_bytes[0], WIRE_CASE_BYTES);
    case_bytes[0][size] = (unsigned char)rng_next(&rng);
    if (decode(c, case_bytes[0], size + 1, case_struct[1])) {
        fail(failures, c, "accepted with a byte too many", size);
    }
}

void wire_case_flips(const struct wire_case *c, uint64_t seed, int *failures)
{
    struct rng rng = {seed};
    size_t size = wire_case_encode(c, &rng, case_struct[0], case_bytes[0], WIRE_CASE_BYTES);
    for (size_t bit = 0; bit < size * 8; bit++) {
        case_bytes[0][bit / 8] ^= (unsigned char)(1u << (bit % 8));
        if (decode(c, case_bytes[0], size, case_struct[1])) {
            /* No bit is without meaning: what was read says what was sent, control characters of texts apart. */
            struct writer w;
            writer_init(&w, case_bytes[1], WIRE_CASE_BYTES);
            c->put(&w, case_struct[1]);
            unsigned char sent = case_bytes[0][bit / 8];
            bool same = !w.bad && w.used == size && memcmp(case_bytes[0], case_bytes[1], size) == 0;
            bool control = (sent < 0x20 || sent == 0x7F) && case_bytes[1][bit / 8] == '?';
            if (!same && !control) {
                fail(failures, c, "a bit without meaning", bit);
            }
        }
        case_bytes[0][bit / 8] ^= (unsigned char)(1u << (bit % 8));
    }
}

void wire_case_accepted(const struct wire_case *c, size_t offset, bool accepted[256])
{
    struct rng rng = {1};
    size_t size = wire_case_encode(c, &rng, case_struct[0], case_bytes[0], WIRE_CASE_BYTES);
    for (int v = 0; v < 256; v++) {
        case_bytes[0][offset] = (unsigned char)v;
        accepted[v] = offset < size && decode(c, case_bytes[0], size, case_struct[1]);
    }
}

uint8_t wire_rnd_cause(struct rng *rng)
{
    static const uint8_t known[] = {0, 1, 2, 3, 4, 5, 6, 7, 16, 17, 18, 19, 20, 21, 22, 32, 33, 34, 35, 36, 37, 38, 39, 40, 41};
    return known[rng_below(rng, sizeof known)];
}

void wire_rnd_text(struct rng *rng, char out[BOUNDS_TEXT])
{
    size_t size = rng_below(rng, BOUNDS_TEXT);
    for (size_t i = 0; i < size; i++) {
        int c = 0x20 + (int)rng_below(rng, 0xE0 - 1);
        out[i] = (char)(c >= 0x7F ? c + 1 : c);
    }
}

void wire_rnd_address(struct rng *rng, struct net_address *a)
{
    a->family = rng_below(rng, 2) ? 4 : 6;
    a->port = (uint16_t)rng_next(rng);
    wire_rnd_bytes(rng, a->ip, a->family == 4 ? 4 : 16);
}

void wire_rnd_bytes(struct rng *rng, void *out, size_t size)
{
    unsigned char *at = out;
    for (size_t i = 0; i < size; i++) {
        at[i] = (unsigned char)rng_next(rng);
    }
}

/* Of any length, and of any bytes that a name may have. */
void wire_rnd_world(struct rng *rng, char *name)
{
    uint64_t size = rng_below(rng, BOUNDS_WORLD_NAME);
    for (uint64_t i = 0; i < size; i++) {
        uint64_t byte = 0x20 + rng_below(rng, 0xFF - 0x20);
        name[i] = (char)(byte < 0x7F ? byte : byte + 1);
    }
}

void wire_rnd_name(struct rng *rng, struct op_name *n)
{
    n->space = (uint8_t)rng_below(rng, 2);
    n->tag = n->space == SPACE_TAG ? rng_next(rng) : 0;
    n->seq = (uint32_t)rng_next(rng);
}

uint32_t wire_rnd_items(struct rng *rng)
{
    return (uint32_t)rng_below(rng, WIRE_CASE_ITEMS + 1);
}
