/* window_request.c - encoding and decoding of requests to windows.
 * SPDX-License-Identifier: MIT */
#include "wire/window_request.h"

#include <string.h>

void put_window_request(struct writer *w, const struct window_request *m)
{
    put_u8(w, m->kind);
    put_u8(w, m->width);
    put_u16(w, 0);
    put_u32(w, 0);
    put_u64(w, m->seq);
    put_u64(w, m->over);
    put_u64(w, m->offset);
    put_u64(w, m->bytes);
    put_u64(w, m->operand);
    put_u64(w, m->expected);
}

bool get_window_request(struct reader *r, struct window_request *m)
{
    memset(m, 0, sizeof *m);
    m->kind = get_u8(r);
    m->width = get_u8(r);
    r->bad = r->bad || (get_u16(r) | get_u32(r)) != 0;
    m->seq = get_u64(r);
    m->over = get_u64(r);
    m->offset = get_u64(r);
    m->bytes = get_u64(r);
    m->operand = get_u64(r);
    m->expected = get_u64(r);
    bool number = window_numbers(m->kind), place = number || m->kind == WINDOW_PUT || m->kind == WINDOW_GET;
    r->bad = r->bad || m->kind < WINDOW_PUT || m->kind >= WINDOW_KINDS || m->over > m->seq;
    r->bad = r->bad || (number ? (m->width != 4 && m->width != 8) || m->bytes != m->width : m->width != 0);
    r->bad = r->bad || (!place && (m->offset | m->bytes) != 0);
    r->bad = r->bad || (!number && m->operand != 0) || (m->kind != WINDOW_SWAP && m->expected != 0);
    r->bad = r->bad || (m->width == 4 && ((m->operand | m->expected) >> 32) != 0);
    return reader_done(r);
}
