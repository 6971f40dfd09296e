/* formation.c - how a world of a given size begins.
 *
 * Its one idea: a formation is an admission that waits until every seat is claimed; whatever fails before its record ends it
 * for all (W5, W6), after it nothing does.  Failures are noted here; seats.c carries the word out.
 * Invariant: the first failure stands.
 * SPDX-License-Identifier: MIT */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "wire/address.h"
#include "wire/ranks.h"
#include "world/world_state.h"
#include "world/formation.h"
#include "world/member_read.h"
#include "world/moves.h"
#include "world/roll.h"

/* ---- asked --------------------------------------------------------------------------------------------------------- */

bool world_sized(const struct world *w)
{
    return w->form.size > 0;
}

bool world_seats(const struct world *w, uint32_t size)
{
    return w->seat_room >= size;
}

bool world_forming(const struct world *w)
{
    return w->form.phase == FORM_FORMING && w->admit.phase != ADMIT_PERSISTING;
}

bool world_once(const struct world *w)
{
    return w->form.once && !w->form.noted && w->form.phase == FORM_FORMING;
}

bool world_uses_name(struct world *w)
{
    bool decided = w->form.phase == FORM_FORMED || (w->form.phase == FORM_FORMING && w->admit.phase == ADMIT_PERSISTING);
    bool now = w->form.once && !w->form.noted && decided;
    w->form.noted = w->form.noted || now;
    return now;
}

int64_t world_tombstone(const struct world *w)
{
    bool only = formation_kept(w) && member_used(w) == 0;
    return only ? w->form.deadline : NEVER;
}

bool world_knows(const struct world *w, const struct claim *c)
{
    return c->rank < w->form.size && w->form.seats[c->rank].attempt == c->attempt;
}

int64_t world_owes(const struct world *w, const struct claim *c)
{
    bool owed = w->form.phase == FORM_GIVEN_UP && c->rank < w->form.size && w->form.seats[c->rank].attempt == 0 && !MUTANT(NOTOMB); /* W7 */
    return owed ? w->form.deadline : NEVER;
}

static bool all_claimed(const struct world *w)
{
    uint32_t claimed = 0;
    while (claimed < w->form.size && w->form.seats[claimed].attempt != 0) {
        claimed++;
    }
    return claimed == w->form.size;
}

bool formation_complete(const struct world *w)
{
    return w->form.phase == FORM_FORMING && w->form.cause == CAUSE_NONE &&
           member_count(w, NULL, MEMBER_PENDING) == w->form.size && all_claimed(w);
}

bool formation_kept(const struct world *w)
{
    bool asked = w->form.phase == FORM_GIVEN_UP || w->form.unheard;
    return asked && w->common->now < w->form.deadline;
}

int64_t formation_deadline(const struct world *w)
{
    return w->form.phase == FORM_FORMING ? w->form.deadline : world_tombstone(w);
}

uint32_t formation_key(const struct world *w, uint64_t id)
{
    for (uint32_t i = 0; i < w->form.size; i++) {
        const struct seat *s = &w->form.seats[i];
        if (s->id == id || s->holder == id) {
            return i;
        }
    }
    return 0;
}

void formation_seats(const struct world *w, struct seats *out)
{
    memset(out, 0, sizeof *out);
    out->count = w->form.phase == FORM_FORMING ? (uint16_t)w->form.size : 0;
    if (out->count > 0) {
        memcpy(out->claimed, w->form.claimed, formation_claimed_bytes(out->count));
    }
}

void formation_check(const struct world *w)
{
    for (uint32_t i = 0; i < w->form.size; i++) {
        PCCL_ASSERT(((w->form.claimed[i / 8] >> (i % 8)) & 1) == (w->form.seats[i].attempt != 0));
    }
}

/* ---- what fails ------------------------------------------------------------------------------------------------------- */

void formation_fail(struct world *w, enum cause cause, uint64_t culprit, const char *format, ...)
{
    struct formation *f = &w->form;
    bool open = world_forming(w) || (MUTANT(CLOSE_FORMED) && f->phase == FORM_FORMING);
    if (!open || f->cause != CAUSE_NONE) {
        return;
    }
    va_list args;
    va_start(args, format);
    vsnprintf(f->text, sizeof f->text, format, args);
    va_end(args);
    if (f->siblings != NULL) { /* W10: one that has failed before counts, also if this world has not been told yet */
        siblings_fail(w->common, f->siblings, cause, culprit, f->text);
        cause = (enum cause)f->siblings->cause;
        culprit = f->siblings->culprit;
        snprintf(f->text, sizeof f->text, "%s", f->siblings->text);
    }
    f->cause = (uint8_t)cause;
    f->culprit = culprit;
    w->changed = true;
}

bool formation_loses(struct world *w, struct member *mb, enum cause cause, const char *text)
{
    char who[MEMBER_TEXT];
    if (!world_forming(w) && !(MUTANT(CLOSE_FORMED) && w->form.phase == FORM_FORMING)) {
        return false;
    }
    member_text(mb->id, mb->info.key, &mb->info.address[0], who);
    formation_fail(w, cause, mb->id, "%s: %s", who, text);
    if (mb->conn == SLOT_NONE) { /* the others, and who has a connection, hear of it by the same word */
        roll_move(w, mb, MEMBER_GONE, 0, "lost while its world was created");
    }
    return true;
}

void formation_begin(struct world *w, const struct claim *c)
{
    w->form.size = c->size;
    w->form.loss = c->loss;
    w->form.once = c->once != 0;
    w->form.deadline = NEVER;
    memset(w->form.seats, 0, c->size * sizeof *w->form.seats);
    memset(w->form.claimed, 0, formation_claimed_bytes(c->size));
    world_move(w, PHASE_FORMATION, &w->form.phase, FORM_FORMING, 0, 0, "somebody creates it");
}

/* ---- time, and the first view -------------------------------------------------------------------------------------- */

void formation_tick(struct world *w)
{
    struct seats seats;
    char missing[BOUNDS_TEXT / 2];
    if (w->form.phase != FORM_FORMING || w->common->now < w->form.deadline) {
        return;
    }
    w->form.deadline = NEVER;
    if (w->form.siblings != NULL) {
        char text[BOUNDS_TEXT];
        siblings_missing_text(w->form.siblings, text, sizeof text);
        formation_fail(w, CAUSE_DEADLINE, 0, "%s", text);
        return;
    }
    formation_seats(w, &seats);
    ranks_text(&seats, missing, sizeof missing);
    formation_fail(w, CAUSE_DEADLINE, 0,
                   missing[0] != 0 ? "these ranks have not come in time: %s" : "its members could not be linked in time%s", missing);
}

void formation_formed(struct world *w)
{
    if (w->form.phase == FORM_FORMING) {
        w->form.deadline = w->form.unheard ? w->form.deadline : NEVER;
        world_move(w, PHASE_FORMATION, &w->form.phase, FORM_FORMED, 0, 0, "its first view is on record");
    }
}

void formation_gone(struct world *w, const struct member *mb, enum cause cause)
{
    bool begun = w->form.phase == FORM_FORMING || w->form.phase == FORM_FORMED || w->form.phase == FORM_OVER;
    bool called = world_sized(w) && w->form.seats[mb->info.key].id == mb->id; /* not a joiner: that may come again */
    if (begun && called && mb->known_view == 0 && !member_went(cause)) {
        w->form.unheard = true;
        w->form.deadline = w->common->now + FORMATION_ASKED_NS;
    }
}
