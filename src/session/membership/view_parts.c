/* view_parts.c - a VIEW or ADMIT that is too long for one message: its pieces, until the message itself comes.
 *
 * Its one idea: the message behind the pieces is empty, and read from here as if it had come whole; nobody else need know.
 * Invariant: the pieces are of one connection with the master, in order, and no more than they say they are in all.
 * SPDX-License-Identifier: MIT */
#include "session/membership/view_parts.h"
#include "session/tables/storage.h"

void view_parts_use(struct session *s, void *storage, uint32_t bytes)
{
    unsigned char *at = storage;
    s->parts.bytes = storage_moved(&at, 1, bytes, s->parts.bytes, s->parts.used);
    s->parts.room = bytes;
}

bool view_parts_take(struct session *s, struct reader *r)
{
    struct msg_view_part m;
    bool good = get_view_part(r, &m) && (s->parts.used == 0 || m.bytes == s->parts.all);
    if (!good || m.bytes > s->parts.room || m.size > m.bytes - s->parts.used) {
        return false;
    }
    memcpy(s->parts.bytes + s->parts.used, get_bytes(r, m.size), m.size);
    s->parts.all = m.bytes;
    s->parts.used += m.size;
    return true;
}

struct reader view_parts_payload(const struct session *s, const struct session_event *e)
{
    struct reader r;
    bool empty = e->header->length == 0, here = s->parts.used > 0 && frame_in_parts(e->header->type);
    reader_init(&r, here ? s->parts.bytes : e->payload, here ? s->parts.used : e->header->length);
    r.bad = here && (!empty || s->parts.used < s->parts.all);
    return r;
}

void view_parts_drop(struct session *s)
{
    s->parts.used = s->parts.all = 0;
}
