/* used_names.c - see used_names.h.
 * SPDX-License-Identifier: MIT */
#include "master/used_names.h"

#include <string.h>

#include "core/check.h"
#include "core/layout.h"
#include "core/rows.h"

enum { USED_FIRST = 64 };

/* ---- the index: open addressing, the next free entry is taken ---- */

static uint32_t home_of(const struct used_names *u, uint64_t hash)
{
    return (uint32_t)hash & (u->index_size - 1);
}

/* Of this hash, or the free one where it would be. */
static uint32_t entry_of(const struct used_names *u, uint64_t hash)
{
    uint32_t at = home_of(u, hash);
    while (u->index[at] != 0 && u->hash[u->index[at] - 1] != hash) {
        at = (at + 1) & (u->index_size - 1);
    }
    return at;
}

static uint32_t place_home(const void *of, uint32_t place)
{
    const struct used_names *u = of;
    return home_of(u, u->hash[place]);
}

bool used_has(const struct used_names *u, uint64_t hash)
{
    return u->count > 0 && u->index[entry_of(u, hash)] != 0;
}

bool used_fits(const struct used_names *u, uint32_t more)
{
    return u->room == u->most || (more <= u->room && u->count <= u->room - more);
}

void used_note(struct used_names *u, uint64_t hash)
{
    PCCL_ASSERT(u->room > 0);
    if (used_has(u, hash)) {
        return; /* formed twice, before anybody asked for it to be the only one */
    }
    uint32_t place = (u->oldest + u->count) % u->room;
    if (u->count == u->room) {
        rows_close(u->index, u->index_size, entry_of(u, u->hash[place]), place_home, u);
        u->oldest = (u->oldest + 1) % u->room;
        u->count--;
    }
    u->hash[place] = hash;
    u->index[entry_of(u, hash)] = place + 1;
    u->count++;
}

/* ---- memory ---- */

static size_t lay_out(struct layout *l, uint32_t room, struct used_names *u)
{
    u->index_size = rows_for(1, 2 * room);
    u->hash = layout_take(l, room, sizeof *u->hash);
    u->index = layout_take(l, u->index_size, sizeof *u->index);
    return l->used;
}

uint32_t used_wanted(const struct used_names *u, uint32_t more)
{
    return layout_doubled(u->room, USED_FIRST, u->count + more, u->most);
}

size_t used_bytes(uint32_t room)
{
    struct layout l = {0};
    struct used_names scratch;
    return lay_out(&l, room, &scratch);
}

void *used_move(struct used_names *u, uint32_t room, void *memory)
{
    struct used_names old = *u;
    struct layout l = {.base = memory};
    (void)lay_out(&l, room, u);
    memset(u->index, 0, u->index_size * sizeof *u->index);
    u->room = room;
    u->count = u->oldest = 0;
    for (uint32_t i = 0; i < old.count; i++) {
        used_note(u, old.hash[(old.oldest + i) % old.room]);
    }
    return old.hash;
}
