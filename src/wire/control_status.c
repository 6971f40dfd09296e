/* control_status.c - messages by which anybody asks a master what becomes of its worlds.
 *
 * Its one idea: the answer comes in pages of few worlds, so that nobody has to hold much for somebody who only looks.
 * SPDX-License-Identifier: MIT */
#include "wire/control.h"
#include "wire/parts.h"

void put_status(struct writer *w, const struct msg_status *m)
{
    put_u32(w, m->from);
}

bool get_status(struct reader *r, struct msg_status *m)
{
    m->from = get_u32(r);
    return reader_done(r);
}

void put_status_page(struct writer *w, const struct msg_status_page *m)
{
    put_u32(w, m->next);
    put_u16(w, m->worlds);
}

bool get_status_page(struct reader *r, struct msg_status_page *m)
{
    m->next = get_u32(r);
    m->worlds = parts_get_u16(r, 0, STATUS_PAGE_WORLDS);
    return !r->bad;
}

void put_world_status(struct writer *w, const struct world_status *m)
{
    put_world_name(w, m->name);
    put_u64(w, m->run);
    put_u64(w, m->view);
    put_u8(w, m->phase);
    put_u16(w, m->size);
    put_u8(w, m->loss);
    put_u8(w, m->once);
    put_u32(w, m->members);
    put_u32(w, m->pending);
    put_u32(w, m->groups);
    put_u32(w, m->freezing);
    put_text(w, m->waits);
}

bool get_world_status(struct reader *r, struct world_status *m)
{
    get_world_name(r, m->name);
    m->run = get_u64(r);
    m->view = get_u64(r);
    m->phase = parts_get_u8(r, STATUS_OPEN, STATUS_GIVEN_UP);
    m->size = parts_get_u16(r, 0, BOUNDS_MEMBERS);
    m->loss = parts_get_u8(r, LOSS_END, LOSS_SHRINK);
    m->once = parts_get_u8(r, 0, 1);
    m->members = get_u32(r);
    m->pending = get_u32(r);
    m->groups = get_u32(r);
    m->freezing = get_u32(r);
    get_text(r, m->waits, sizeof m->waits);
    return !r->bad;
}
