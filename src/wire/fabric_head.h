/* fabric_head.h - what a connection through libfabric needs on the wire: where an end is, and the head of each message.
 * SPDX-License-Identifier: MIT */
#ifndef PCCL_WIRE_FABRIC_HEAD_H
#define PCCL_WIRE_FABRIC_HEAD_H

#include "wire/codec.h"

enum { FABRIC_ADDRESS_BYTES = 128 };

/* Where an end of a data connection can be reached; in HELLO and HELLO_ACK. */
struct fabric_end {
    uint64_t provider; /* a hash of its name and form of address: both ends must have the same */
    uint64_t key;      /* of this connection at that end: a secret of the two */
    uint8_t bytes;     /* of the address; 0: none, and nothing else in the message */
    unsigned char address[FABRIC_ADDRESS_BYTES];
};

void put_fabric_end(struct writer *w, const struct fabric_end *m);
void get_fabric_end(struct reader *r, struct fabric_end *m); /* bad where it is none */

enum fabric_kind {
    FABRIC_HELLO = 1, /* the first of an end, once the other has opened its side */
    FABRIC_BYTES = 2, /* of the stream; they follow */
    FABRIC_GRANT = 3, /* nothing but room */
};

enum { FABRIC_HEAD_BYTES = 16 };

struct fabric_head {
    uint64_t key;    /* of the connection, at the receiver */
    uint32_t number; /* of the message, from 0 at each end */
    uint8_t kind;    /* enum fabric_kind */
    uint8_t grant;   /* messages with bytes that its sender has room for, more than before */
};

void put_fabric_head(struct writer *w, const struct fabric_head *m);
/* False: no head. */
bool get_fabric_head(struct reader *r, struct fabric_head *m);

#endif
