/* window_member.c - encoding and decoding of what a member tells of its window.
 * SPDX-License-Identifier: MIT */
#include "window/window_set.h"

void put_window_member(struct writer *w, const struct window_member *m)
{
    put_u64(w, m->id);
    put_u64(w, m->serial);
    put_u64(w, m->bytes);
    put_u64(w, m->token[0]);
    put_u64(w, m->token[1]);
    put_u32(w, m->rights);
    put_u32(w, m->process);
    put_u32(w, m->descriptor);
    put_u32(w, m->status);
    put_u64(w, 0);
}

bool get_window_member(struct reader *r, struct window_member *m)
{
    m->id = get_u64(r);
    m->serial = get_u64(r);
    m->bytes = get_u64(r);
    m->token[0] = get_u64(r);
    m->token[1] = get_u64(r);
    m->rights = get_u32(r);
    m->process = get_u32(r);
    m->descriptor = get_u32(r);
    m->status = get_u32(r);
    (void)get_u64(r);
    return !r->bad;
}
