/* member_entry.c - what VIEW and ADMIT say of a member, one that is gone included.
 * SPDX-License-Identifier: MIT */
#include "world/world_state.h"
#include "world/formation.h"
#include "world/member_entry.h"
#include "world/roll.h"

void member_put(const struct world *w, struct writer *frame, uint64_t id)
{
    const struct member *mb = member_find(w, id);
    if (mb != NULL) {
        put_member_info(frame, &mb->info);
        return;
    }
    struct member_info gone = {.id = id, .key = formation_key(w, id), .lanes = 1};
    put_member_info(frame, &gone);
}
