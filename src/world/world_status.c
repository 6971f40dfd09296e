/* world_status.c - what becomes of a world, for people: its size, who is in it, and what it waits for.
 *
 * Its one idea: whatever a world waits for is a level of its state, so the first that is found is told, the nearest one first.
 * Invariant: nothing changes by being asked.
 * SPDX-License-Identifier: MIT */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "core/id.h"
#include "wire/address.h"
#include "wire/ranks.h"
#include "world/world_state.h"
#include "world/formation.h"
#include "world/linking.h"
#include "world/member_read.h"
#include "world/roll.h"
#include "world/view_read.h"
#include "world/vote.h"

__attribute__((format(printf, 2, 3))) static void say(struct world_status *s, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    vsnprintf(s->waits, sizeof s->waits, format, args);
    va_end(args);
}

/* "the report on view 4 of peer 1.2 at 10.0.0.1:5 and 2 more", of those for whom `waited` holds. */
static bool say_members(const struct world *w, struct world_status *s, const char *what,
                        bool (*waited)(const struct world *w, const struct member *mb))
{
    const struct member *first = NULL;
    char where[ADDRESS_TEXT], more[32] = "";
    uint32_t count = 0;
    for (uint32_t i = 0; i < w->member_room; i++) {
        const struct member *mb = &w->members[i];
        if (member_registered(mb) && waited(w, mb)) {
            first = first == NULL || mb->id < first->id ? mb : first;
            count++;
        }
    }
    if (first == NULL) {
        return false;
    }
    if (count > 1) {
        snprintf(more, sizeof more, " and %u more", count - 1);
    }
    address_text(&first->info.address[0], where);
    say(s, "%s of peer " ID_FORMAT " at %s%s", what, ID_PARTS(first->id), where, more);
    return true;
}

static bool owes_report(const struct world *w, const struct member *mb)
{
    return mb->phase == MEMBER_ACCEPTED && member_group(w, mb)->phase == GROUP_FREEZING && !mb->reported;
}

static bool owes_links(const struct world *w, const struct member *mb)
{
    bool freeze = mb->phase == MEMBER_ACCEPTED && member_group(w, mb)->phase == GROUP_LINKING;
    return (freeze || (w->admit.phase == ADMIT_LINKING && linking_takes_part(mb))) && !mb->linked;
}

static bool owes_state(const struct world *w, const struct member *mb)
{
    return member_group(w, mb)->sync.phase == SYNC_STAGING && mb->role == SYNC_RECEIVER && !mb->staged;
}

static bool is_accepted(const struct world *w, const struct member *mb)
{
    (void)w;
    return mb->phase == MEMBER_ACCEPTED;
}

static bool persisting(const struct world *w)
{
    bool any = w->admit.phase == ADMIT_PERSISTING || w->optimise.phase == OPTIMISE_PERSISTING;
    for (uint32_t i = 0; i < w->group_room; i++) {
        any = any || w->groups[i].phase == GROUP_PERSISTING || w->groups[i].sync.phase == SYNC_PERSISTING;
    }
    return any;
}

/* Who waits for whom: in a vote, or at the door. */
static bool say_votes(struct world *w, struct world_status *s)
{
    char where[ADDRESS_TEXT];
    for (uint32_t i = 0; i < w->member_room; i++) {
        const struct member *mb = &w->members[i];
        const struct member *on = member_registered(mb) ? member_find(w, vote_waits_for(w, mb)) : NULL;
        if (on != NULL) {
            enum vote_kind kind = mb->phase == MEMBER_PENDING ? VOTE_UPDATE : (enum vote_kind)mb->vote.kind;
            address_text(&on->info.address[0], where);
            say(s, "%s: peer " ID_FORMAT " at %s has not called it", vote_name(kind), ID_PARTS(on->id), where);
            return true;
        }
    }
    return false;
}

static bool say_formation(const struct world *w, struct world_status *s)
{
    struct seats seats;
    char missing[BOUNDS_TEXT / 2];
    formation_seats(w, &seats);
    if (w->form.phase == FORM_GIVEN_UP) {
        say(s, "its last callers; %s", w->form.text);
    } else if (ranks_missing(&seats) > 0) {
        ranks_text(&seats, missing, sizeof missing);
        say(s, "ranks %s", missing);
    } else if (w->form.phase == FORM_OVER && !say_members(w, s, "the end", is_accepted)) {
        say(s, "its last callers");
    }
    return s->waits[0] != 0;
}

static void say_waits(struct world *w, struct world_status *s)
{
    bool told = say_formation(w, s) || say_members(w, s, "the report on its view", owes_report) ||
                say_members(w, s, "links", owes_links);
    if (!told && persisting(w)) {
        say(s, "the journal");
    } else if (!told && w->optimise.phase != OPTIMISE_IDLE) {
        say(s, w->optimise.phase == OPTIMISE_PROBING ? "measurements of edges" : "a ring");
    } else if (!told && !say_members(w, s, "the shared state", owes_state) && !say_votes(w, s)) {
        say(s, "nothing");
    }
}

void world_tell_status(struct world *w, struct world_status *out)
{
    static const uint8_t shown[] = {[FORM_ELASTIC] = STATUS_OPEN, [FORM_FORMING] = STATUS_FORMING, [FORM_FORMED] = STATUS_FORMED,
                                    [FORM_OVER] = STATUS_OVER, [FORM_GIVEN_UP] = STATUS_GIVEN_UP};
    bool ended = w->form.revoked != 0;
    *out = (struct world_status){.run = w->run, .phase = ended ? STATUS_OVER : shown[w->form.phase], .size = (uint16_t)w->form.size,
                                 .loss = w->form.loss, .once = w->form.once};
    snprintf(out->name, sizeof out->name, "%s", world_name_shown(w->name));
    out->members = member_count(w, NULL, MEMBER_ACCEPTED);
    out->pending = member_count(w, NULL, MEMBER_PENDING);
    for (uint32_t i = 0; i < w->group_room; i++) {
        const struct group *g = &w->groups[i];
        const struct view_record *v = &g->views[g->current];
        bool lives = g->phase != GROUP_FREE && v->members > 0;
        out->groups += lives;
        out->view = lives && v->view > out->view ? v->view : out->view;
        out->freezing += view_ending(g);
    }
    say_waits(w, out);
}
