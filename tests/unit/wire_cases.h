/* wire_cases.h - every message of the wire as one uniform thing: fill with random values, put, get.
 *
 * A case is a whole payload, its list items and payload bytes included, so that a test about all messages is one loop.
 * Filled structs have zeroed padding and unused tails: two equal messages are equal bytes.
 * SPDX-License-Identifier: MIT */
#ifndef PCCL_TESTS_WIRE_CASES_H
#define PCCL_TESTS_WIRE_CASES_H

#include "core/random.h"
#include "wire/frame.h"
#include "wire/p2p.h"

enum {
    WIRE_CASE_ITEMS = 4,     /* most items per list in a filled case */
    WIRE_CASE_PAYLOAD = 40,  /* most payload bytes */
    WIRE_CASE_STRUCT = 8192, /* no case struct is larger */
    WIRE_CASE_BYTES = 8192,  /* nor is its encoding */
};

struct wire_case {
    const char *name;
    uint8_t frame; /* enum frame_type */
    size_t size;   /* of the struct */
    void (*fill)(void *m, struct rng *rng);
    void (*put)(struct writer *w, const void *m);
    bool (*get)(struct reader *r, void *m); /* true only if nothing is left over */
};

extern const struct wire_case wire_control_cases[];
extern const size_t wire_control_case_count;
extern const struct wire_case wire_report_cases[];
extern const size_t wire_report_case_count;
extern const struct wire_case wire_status_cases[];
extern const size_t wire_status_case_count;
extern const struct wire_case wire_p2p_cases[];
extern const size_t wire_p2p_case_count;

/* A message without lists: the functions of the case are those of the message, with untyped arguments. */
#define WIRE_PLAIN(name)                                                                                               \
    static void name##_put(struct writer *w, const void *m)                                                            \
    {                                                                                                                  \
        put_##name(w, m);                                                                                              \
    }                                                                                                                  \
    static bool name##_get(struct reader *r, void *m)                                                                  \
    {                                                                                                                  \
        return get_##name(r, m);                                                                                       \
    }
#define WIRE_ROW(name, frame, type)                                                                                    \
    {                                                                                                                  \
        #name, frame, sizeof(type), name##_fill, name##_put, name##_get                                                \
    }

/* Null if there is none of that name. */
const struct wire_case *wire_case_find(const char *name);

/* Fills a case and encodes it; returns the bytes used. */
size_t wire_case_encode(const struct wire_case *c, struct rng *rng, void *m, void *out, size_t capacity);

/* What all messages have in common: each is a check, wire_cases_check runs one over a family and many seeds. */
typedef void wire_check(const struct wire_case *c, uint64_t seed, int *failures);
void wire_cases_check(const struct wire_case *cases, size_t count, uint64_t seeds, wire_check *check, int *failures);
wire_check wire_case_round_trip;
wire_check wire_case_cut;
wire_check wire_case_overlong;
wire_check wire_case_flips;

/* Which values of the byte at `offset` are accepted in a message that is otherwise as it was. */
void wire_case_accepted(const struct wire_case *c, size_t offset, bool accepted[256]);

/* Random pieces. */
uint8_t wire_rnd_cause(struct rng *rng);
void wire_rnd_text(struct rng *rng, char out[BOUNDS_TEXT]);
void wire_rnd_address(struct rng *rng, struct net_address *a);
void wire_rnd_bytes(struct rng *rng, void *out, size_t size);
uint32_t wire_rnd_items(struct rng *rng);
void wire_rnd_world(struct rng *rng, char *name);
void wire_rnd_name(struct rng *rng, struct op_name *n);

#endif
