/* trace_text.c - a line of the master's log: "peer 1.2 (10.0.0.7:48150) of group 0 excluded from view 4: no sign of life for 10.0 s".
 * SPDX-License-Identifier: MIT */
#include <stdio.h>
#include <string.h>

#include "core/id.h"
#include "world/world_state.h"
#include "world/member_read.h"
#include "wire/address.h"

/* Also one that has gone in this step: its slot keeps its data until somebody else registers. */
static const struct member *traced(const struct world *w, uint64_t id)
{
    for (uint32_t i = 0; i < w->member_room; i++) {
        if (w->members[i].id == id) {
            return &w->members[i];
        }
    }
    return NULL;
}

/* " of world 'name'", nothing for the default one. */
static void of_world(const struct world *w, char out[BOUNDS_WORLD_NAME + 16])
{
    out[0] = 0;
    if (w->name[0] != 0) {
        snprintf(out, BOUNDS_WORLD_NAME + 16, " of world '%s'", world_name_shown(w->name));
    }
}

/* "world 'name'", or that it is the default one. */
static void the_world(const struct world *w, char out[BOUNDS_WORLD_NAME + 16])
{
    if (w->name[0] == 0) {
        snprintf(out, BOUNDS_WORLD_NAME + 16, "the default world");
    } else {
        snprintf(out, BOUNDS_WORLD_NAME + 16, "world '%s'", world_name_shown(w->name));
    }
}

enum log_level world_trace_level(const struct action *a)
{
    uint32_t machine = a->slot >> 16, to = a->slot & 0xFF;
    if (a->slot == 0) {
        return LOG_WARN; /* no transition: something to be told */
    }
    bool told = machine == PHASE_MACHINES || machine == PHASE_FORMATION || (machine == PHASE_MEMBER && to != MEMBER_FREE);
    return told ? LOG_INFO : LOG_DEBUG;
}

void world_trace_text(const struct world *w, const struct action *a, char *out, size_t size)
{
    char world[BOUNDS_WORLD_NAME + 16], the[BOUNDS_WORLD_NAME + 16];
    of_world(w, world);
    the_world(w, the);
    const char *why = a->data != NULL ? a->data : "";
    uint32_t view = (uint32_t)a->value;
    if (a->slot >> 16 == PHASE_MACHINES) {
        snprintf(out, size, "%s %s", the, why);
        return;
    }
    if (a->slot >> 16 == PHASE_FORMATION) {
        bool given_up = (a->slot & 0xFF) == FORM_GIVEN_UP;
        snprintf(out, size, "%s%s %s", the, given_up ? " was not created:" : ":", why);
        return;
    }
    if (a->slot >> 16 != PHASE_MEMBER) {
        snprintf(out, size, "group %llu%s, view %u: %s", (unsigned long long)a->id, world, view, why);
        return;
    }
    const struct member *mb = traced(w, a->id);
    char who[ADDRESS_TEXT + BOUNDS_WORLD_NAME + 80], where[ADDRESS_TEXT] = "?";
    if (mb != NULL) {
        address_text(&mb->info.address[0], where);
    }
    snprintf(who, sizeof who, "peer " ID_FORMAT " (%s) of group %u%s", ID_PARTS(a->id), where,
             mb != NULL ? member_group(w, mb)->label : 0, world);
    switch ((enum member_phase)(a->slot & 0xFF)) {
    case MEMBER_PENDING:
        snprintf(out, size, "%s registered, waits for %s", who, w->form.phase == FORM_FORMING ? "all ranks" : "the next update");
        return;
    case MEMBER_ACCEPTED:
        snprintf(out, size, "%s admitted to view %u", who, view);
        return;
    case MEMBER_GONE:
        if (strcmp(why, "left") == 0) {
            snprintf(out, size, "%s left view %u", who, view);
        } else if (strcmp(why, "revoked its world") == 0) {
            snprintf(out, size, "%s revoked the world in view %u", who, view);
        } else {
            snprintf(out, size, "%s excluded from view %u: %s", who, view, mb != NULL ? mb->gone_text : why);
        }
        return;
    case MEMBER_FREE:
        snprintf(out, size, "%s: %s", who, why);
        return;
    case MEMBER_PHASES:
        break;
    }
    snprintf(out, size, "%s: %s", who, why);
}
