/* world_read.c - what the master, its solver, oracles and displays read of a world.
 *
 * Its one idea: nothing here changes anything that a step decides by.
 * SPDX-License-Identifier: MIT */
#include <math.h>
#include <string.h>

#include "topology/tour.h"
#include "world/world_state.h"
#include "world/election.h"
#include "world/formation.h"
#include "world/member_read.h"
#include "world/roll.h"
#include "world/suspect.h"
#include "world/view.h"
#include "world/view_read.h"
#include "world/view_ring.h"

uint32_t world_slot(const struct world *w)
{
    return w->slot;
}

uint64_t world_run(const struct world *w)
{
    return w->run;
}

const char *world_name(const struct world *w)
{
    return w->name;
}

static int64_t sooner(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

int64_t world_deadline(const struct world *w)
{
    int64_t due = sooner(w->admit.deadline, w->optimise.deadline);
    due = sooner(due, heap_least(&w->due));
    due = sooner(due, view_deadline(w));
    due = sooner(due, election_deadline(w));
    due = sooner(due, formation_deadline(w));
    due = world_called(w) ? sooner(due, w->common->now) : due;
    return sooner(due, suspect_deadline(w));
}

bool world_empty(const struct world *w)
{
    return member_used(w) == 0 && world_group_count(w) == 0 && !formation_kept(w);
}

void world_count(const struct world *w, struct world_census *c)
{
    for (uint32_t i = 0; i < w->member_room; i++) {
        const struct member *mb = &w->members[i];
        c->registered += member_registered(mb);
        c->quiet += member_quiet(w, mb);
    }
}

bool world_holds(const struct world *w, uint32_t member, uint32_t conn)
{
    return member < w->member_room && member_registered(&w->members[member]) && w->members[member].conn == conn;
}

uint32_t world_matrix(const struct world *w, uint64_t search, double *cost, uint32_t *current_ring, uint32_t capacity)
{
    const struct group *g = NULL;
    for (uint32_t i = 0; i < w->group_room && g == NULL; i++) {
        bool wanted = w->groups[i].phase != GROUP_FREE && w->groups[i].solving == search;
        g = wanted ? &w->groups[i] : NULL;
    }
    if (search == 0 || g == NULL || g->views[g->current].members > capacity) {
        return 0;
    }
    const struct view_record *v = &g->views[g->current];
    uint64_t *known = w->common->scratch_cost;
    uint32_t n = ring_costs(w, v, known);
    for (uint32_t i = 0; i < n * n; i++) {
        cost[i] = known[i] >= TOUR_FORBIDDEN ? (double)INFINITY : (double)known[i] * 1e9 / (double)TOUR_FORBIDDEN;
    }
    memcpy(current_ring, v->ring, n * sizeof *current_ring);
    return n;
}

uint32_t world_group_count(const struct world *w)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < w->group_room; i++) {
        count += w->groups[i].phase != GROUP_FREE;
    }
    return count;
}

void world_group_get(const struct world *w, uint32_t index, struct master_group_view *out, uint64_t *ids, uint32_t capacity)
{
    memset(out, 0, sizeof *out);
    for (uint32_t i = 0; i < w->group_room; i++) {
        const struct group *g = &w->groups[i];
        if (g->phase == GROUP_FREE || index-- != 0) {
            continue;
        }
        const struct view_record *v = &g->views[g->current];
        *out = (struct master_group_view){.run = w->run, .group = g->label, .view = v->view,
                                          .freezing = view_ending(g), .members = v->members, .revision = g->revision};
        memcpy(out->world, w->name, sizeof out->world);
        uint32_t count = v->members < capacity ? v->members : capacity;
        if (count > 0) {
            memcpy(ids, v->ids, count * sizeof *ids);
        }
        return;
    }
}

uint32_t world_pending_count(const struct world *w)
{
    return member_count(w, NULL, MEMBER_PENDING);
}

uint64_t world_known_view(const struct world *w, uint64_t id)
{
    const struct member *mb = member_find(w, id);
    return mb != NULL && mb->phase == MEMBER_ACCEPTED ? mb->known_view : 0;
}
