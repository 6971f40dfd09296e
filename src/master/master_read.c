/* master_read.c - what shells, oracles and displays read of all worlds of a master.
 *
 * Its one idea: whoever asks by a number or an id need not know the world; both say it, or are in one only.
 * SPDX-License-Identifier: MIT */
#include <stdio.h>
#include <string.h>

#include "master/master_state.h"

uint32_t master_matrix(const struct master *m, uint64_t number, double *cost, uint32_t *current_ring, uint32_t capacity)
{
    const struct world *w = registry_at(m, common_world_of(number));
    return w == NULL ? 0 : world_matrix(w, number, cost, current_ring, capacity);
}

uint32_t master_place(uint64_t number)
{
    return common_world_of(number);
}

enum log_level master_trace_level(const struct action *a)
{
    return world_trace_level(a);
}

void master_trace_text(const struct master *m, const struct action *a, char *out, size_t size)
{
    const struct world *w = a->order < m->place_count ? m->places[a->order].world : NULL; /* over, too: its end is told */
    if (w == NULL) {
        snprintf(out, size, "%s", a->data != NULL ? (const char *)a->data : "");
        return;
    }
    world_trace_text(w, a, out, size);
}

const char *master_world_name(const struct master *m, uint32_t slot)
{
    const struct world *w = registry_at(m, slot);
    return w != NULL ? world_name_shown(world_name(w)) : "";
}

uint32_t master_world_count(const struct master *m)
{
    uint32_t count = 0;
    for (const struct world *w = registry_after(m, NULL); w != NULL; w = registry_after(m, w)) {
        count++;
    }
    return count;
}

size_t master_world_bytes(const struct master *m)
{
    size_t bytes = m->spare != NULL ? world_bytes(m->spare) : 0;
    for (uint32_t i = 0; i < m->place_count; i++) {
        bytes += m->places[i].world != NULL ? world_bytes(m->places[i].world) : 0;
    }
    return bytes;
}

uint32_t master_group_count(const struct master *m)
{
    uint32_t count = 0;
    for (const struct world *w = registry_after(m, NULL); w != NULL; w = registry_after(m, w)) {
        count += world_group_count(w);
    }
    return count;
}

void master_group_get(const struct master *m, uint32_t index, struct master_group_view *out, uint64_t *ids,
                      uint32_t capacity)
{
    memset(out, 0, sizeof *out);
    for (const struct world *w = registry_after(m, NULL); w != NULL; w = registry_after(m, w)) {
        uint32_t groups = world_group_count(w);
        if (index < groups) {
            world_group_get(w, index, out, ids, capacity);
            return;
        }
        index -= groups;
    }
}

uint32_t master_pending_count(const struct master *m)
{
    uint32_t count = 0;
    for (const struct world *w = registry_after(m, NULL); w != NULL; w = registry_after(m, w)) {
        count += world_pending_count(w);
    }
    return count;
}

uint64_t master_known_view(const struct master *m, uint64_t id)
{
    for (const struct world *w = registry_after(m, NULL); w != NULL; w = registry_after(m, w)) {
        uint64_t view = world_known_view(w, id);
        if (view != 0) {
            return view;
        }
    }
    return 0;
}
