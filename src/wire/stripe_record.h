/* stripe_record.h - the heads of records on the sockets of a stripe.
 *
 * A stripe carries one stream of bytes over several sockets.  Each socket carries whole records, each a head and its bytes.
 * SPDX-License-Identifier: MIT */
#ifndef PCCL_WIRE_STRIPE_RECORD_H
#define PCCL_WIRE_STRIPE_RECORD_H

#include "wire/codec.h"

enum stripe_record_kind {
    STRIPE_DATA = 1,  /* number: of the record within the stream, from 0, modulo 2^32; length: bytes that follow */
    STRIPE_LEAVE = 2, /* the last record of its sender on this socket */
    STRIPE_WANT = 3,  /* on the first socket, by the end that accepted it.  number: sockets that it wants to send on */
};

enum {
    STRIPE_HEAD_BYTES = 8,
    STRIPE_RECORD_MOST = 256 << 10, /* bytes of a record */
    STRIPE_SOCKETS = 64,            /* of a stripe */
};

struct stripe_record {
    uint32_t number;
    uint32_t length;
    uint8_t kind; /* enum stripe_record_kind */
};

void put_stripe_record(struct writer *w, const struct stripe_record *m);
bool get_stripe_record(struct reader *r, struct stripe_record *m);

#endif
