/* stripe_record.c - the heads of records on the sockets of a stripe.
 *
 * Put and get of one message stand together and read like its schema: the same fields in the same order.
 * SPDX-License-Identifier: MIT */
#include "wire/stripe_record.h"

#include "wire/parts.h"

void put_stripe_record(struct writer *w, const struct stripe_record *m)
{
    put_u32(w, m->number);
    put_u32(w, m->length | (uint32_t)m->kind << 24);
}

bool get_stripe_record(struct reader *r, struct stripe_record *m)
{
    m->number = get_u32(r);
    uint32_t word = get_u32(r);
    m->length = word & 0xffffff;
    m->kind = (uint8_t)(word >> 24);
    switch (m->kind) {
    case STRIPE_DATA:
        r->bad |= m->length == 0 || m->length > STRIPE_RECORD_MOST;
        break;
    case STRIPE_LEAVE:
        r->bad |= m->number != 0 || m->length != 0;
        break;
    case STRIPE_WANT:
        r->bad |= m->number == 0 || m->number > STRIPE_SOCKETS || m->length != 0;
        break;
    default:
        r->bad = true;
    }
    return reader_done(r);
}
