/* member_read.c - who is in the run, asked without changing anything.
 *
 * Its one idea: a member that is gone is nobody: whoever asks by id hears of pending and accepted ones only.
 * SPDX-License-Identifier: MIT */
#include "world/world_state.h"

struct group *member_group(const struct master *m, const struct member *mb)
{
    return &m->groups[mb->group];
}

struct member *member_find(const struct master *m, uint64_t id)
{
    for (uint32_t i = 0; i < m->config.max_members; i++) {
        struct member *mb = &m->members[i];
        if (mb->id == id && (mb->phase == MEMBER_PENDING || mb->phase == MEMBER_ACCEPTED)) {
            return mb;
        }
    }
    return NULL;
}

bool member_accepted_in(const struct master *m, const struct member *mb, const struct group *g)
{
    return mb->phase == MEMBER_ACCEPTED && (g == NULL || member_group(m, mb) == g);
}

uint32_t member_count(const struct master *m, const struct group *g, enum member_phase phase)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < m->config.max_members; i++) {
        const struct member *mb = &m->members[i];
        count += mb->phase == phase && (g == NULL || member_group(m, mb) == g);
    }
    return count;
}
