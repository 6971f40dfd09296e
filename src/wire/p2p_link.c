/* p2p_link.c - the first words on a connection between peers: what it is for, from whom, and
 * whether it is still wanted.
 *
 * Put and get of one message stand together and read like its schema: the same fields in the same
 * order.
 * SPDX-License-Identifier: MIT */
#include "wire/p2p.h"

#include "wire/parts.h"

void put_hello(struct writer *w, const struct msg_hello *m)
{
    put_u8(w, m->kind);
    put_u16(w, m->lane);
    put_u16(w, m->lanes);
    put_u32(w, m->group);
    put_u64(w, m->from);
    put_u64(w, m->to);
    put_u64(w, m->view);
    put_u64(w, m->number);
    put_u8(w, m->share);
    put_u8(w, m->net);
    put_u64(w, m->token);
    put_u32(w, m->socket);
    put_fabric_end(w, &m->fabric);
}

bool get_hello(struct reader *r, struct msg_hello *m)
{
    m->kind = parts_get_u8(r, LINK_CONTROL, LINK_STRIPE);
    m->lane = get_u16(r);
    m->lanes = parts_get_u16(r, 0, BOUNDS_LANES);
    if ((m->kind == LINK_DATA || m->kind == LINK_STRIPE) && m->lane >= m->lanes) {
        r->bad = true; /* outside its own bundle */
    }
    m->group = get_u32(r);
    m->from = get_u64(r);
    m->to = get_u64(r);
    m->view = get_u64(r);
    m->number = get_u64(r);
    m->share = parts_get_u8(r, SHARE_CAN, SHARE_BROKE);
    m->net = parts_get_u8(r, NET_CAN, NET_OTHER);
    m->token = get_u64(r);
    m->socket = get_u32(r);
    get_fabric_end(r, &m->fabric);
    return reader_done(r);
}

void put_hello_ack(struct writer *w, const struct msg_hello_ack *m)
{
    put_u8(w, m->verdict);
    put_u64(w, m->view);
    put_u64(w, m->host_name[0]);
    put_u64(w, m->host_name[1]);
    put_u8(w, m->share);
    put_u8(w, m->net);
    put_fabric_end(w, &m->fabric);
}

bool get_hello_ack(struct reader *r, struct msg_hello_ack *m)
{
    m->verdict = parts_get_u8(r, HELLO_OK, HELLO_NOT_YET);
    m->view = get_u64(r);
    m->host_name[0] = get_u64(r);
    m->host_name[1] = get_u64(r);
    m->share = parts_get_u8(r, SHARE_CAN, SHARE_BROKE);
    m->net = parts_get_u8(r, NET_CAN, NET_OTHER);
    get_fabric_end(r, &m->fabric);
    return reader_done(r);
}
