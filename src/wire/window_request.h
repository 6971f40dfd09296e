/* window_request.h - what a member asks another one's window for: the payload of a message of the tag WINDOW_REQUESTS.
 * SPDX-License-Identifier: MIT */
#ifndef PCCL_WIRE_WINDOW_REQUEST_H
#define PCCL_WIRE_WINDOW_REQUEST_H

#include "wire/codec.h"

/* The tags of a window, whose number is a multiple of WINDOW_TAGS: what travels on each is in the order of the requests. */
enum { WINDOW_REQUESTS = 0, WINDOW_PUTS = 1, WINDOW_ANSWERS = 2, WINDOW_TAGS = 4 };

enum window_kind {
    WINDOW_PUT = 1, /* bytes follow, by WINDOW_PUTS */
    WINDOW_GET,     /* bytes come back, by WINDOW_ANSWERS, as what lay there comes of the next two */
    WINDOW_ADD,     /* a number of `width` bytes, operand is added */
    WINDOW_SWAP,    /* the same, operand takes its place if it is `expected` */
    WINDOW_SIGNAL,
    WINDOW_CLOSE,   /* the last of this origin */
    WINDOW_VOID,    /* given up: nothing more is to be waited for under this number */
    WINDOW_KINDS,
};

enum { WINDOW_REQUEST_BYTES = 56 };

struct window_request {
    uint8_t kind, width;        /* of a number: 4 or 8; else 0 */
    uint64_t seq;               /* of this origin and target, from 0 */
    uint64_t over;              /* all before it are over at the origin */
    uint64_t offset, bytes;     /* in the window; of a number: width; of what moves none: 0 */
    uint64_t operand, expected;
};

void put_window_request(struct writer *w, const struct window_request *m);
/* False: no request. */
bool get_window_request(struct reader *r, struct window_request *m);

static inline bool window_numbers(uint8_t kind)
{
    return kind == WINDOW_ADD || kind == WINDOW_SWAP;
}

static inline bool window_answers(uint8_t kind)
{
    return kind == WINDOW_GET || window_numbers(kind);
}

#endif
