/* seats.c - the calls that create a world of a given size: a seat for each, and one word that gives up all (W5, W9).
 *
 * Its one idea: what was given up stays as its own tombstone, whose seats remember which calls have been told (W7).  A claim
 * counts over the connection that answered last (W3), and a call that is known hears its outcome first (W4).
 * Invariant: a seat that has been claimed names that call for ever.
 * SPDX-License-Identifier: MIT */
#include <stdio.h>
#include <string.h>

#include "core/id.h"
#include "wire/address.h"
#include "world/world_state.h"
#include "world/admit.h"
#include "world/formation.h"
#include "world/member.h"
#include "world/moves.h"
#include "world/roll.h"
#include "world/seats.h"
#include "world/together.h"

#define SEATS_KEPT_NS 300000000000 /* whoever comes later than that is not of the formation that was given up */

/* ---- giving up ----------------------------------------------------------------------------------------------------- */

static void put_word(struct world *w)
{
    struct msg_given_up word = {.cause = w->form.cause, .culprit = w->form.culprit};
    memcpy(word.text, w->form.text, sizeof word.text);
    put_given_up(outbox_frame(w->common->out, FRAME_GIVEN_UP, w->run, 0), &word);
}

/* Whoever has claimed may have to ask again; a rank that has not come, comes some day. */
static void keep(struct world *w)
{
    const struct siblings *s = w->form.siblings;
    bool awaited = s != NULL && s->came < s->callers;
    for (uint32_t i = 0; i < w->form.size; i++) {
        awaited = awaited || w->form.seats[i].attempt == 0;
    }
    int64_t asked = w->common->now + FORMATION_ASKED_NS;
    w->form.deadline = awaited ? w->form.given_up + SEATS_KEPT_NS : asked;
}

/* To a connection that is no member's. */
static void say(struct world *w, uint32_t conn)
{
    put_word(w);
    outbox_send(w->common->out, MASTER_SEND, conn);
    common_close(w->common, conn);
}

static void tell(struct world *w, uint32_t conn)
{
    say(w, conn);
    keep(w);
}

static void give_up(struct world *w)
{
    struct action *a = NULL;
    admit_stop(w, "its world is not created");
    for (uint32_t i = 0; i < w->member_room; i++) {
        if (w->members[i].phase == MEMBER_PENDING) {
            if (a == NULL) {
                put_word(w);
                a = outbox_send_many(w->common->out, MASTER_SEND);
            }
            outbox_dest(w->common->out, a, w->members[i].conn);
        }
    }
    for (uint32_t i = 0; i < w->member_room; i++) {
        struct member *mb = &w->members[i];
        if (mb->phase == MEMBER_PENDING) {
            snprintf(mb->gone_text, sizeof mb->gone_text, "its world was not created: %.120s", w->form.text);
            common_close(w->common, mb->conn);
            mb->conn = SLOT_NONE;
            roll_move(w, mb, MEMBER_GONE, 0, "its world was not created");
        }
    }
    w->form.given_up = w->common->now;
    keep(w);
    world_move(w, PHASE_FORMATION, &w->form.phase, FORM_GIVEN_UP, 0, 0, w->form.text);
}

void seats_settle(struct world *w)
{
    together_settle(w);
    if (w->form.phase == FORM_FORMING && w->form.cause != CAUSE_NONE) {
        give_up(w);
    }
}

/* ---- claims -------------------------------------------------------------------------------------------------------- */

/* The call that a seat is for, from now on. */
static struct seat *take_seat(struct formation *f, const struct claim *c)
{
    struct seat *seat = &f->seats[c->rank];
    seat->attempt = c->attempt;
    f->claimed[c->rank / 8] |= (uint8_t)(1 << (c->rank % 8));
    return seat;
}

/* W4: the outcome that this call has had; or its claim goes on over the new connection. */
static void claim_again(struct world *w, uint32_t conn, struct seat *seat)
{
    struct member *mb = member_find(w, seat->id);
    if (w->form.phase == FORM_GIVEN_UP) {
        tell(w, conn);
    } else if (mb == NULL) {
        common_refuse(w->common, conn, w->run, CAUSE_KICK_STALE, "the world was created, and has lost this rank since");
    } else {
        member_reclaim(w, mb, conn);
    }
}

static const char *loss_name(uint8_t loss)
{
    return loss == LOSS_END ? "end" : "shrink";
}

static const char *once_name(bool once)
{
    return once ? " for once" : "";
}

static void claim_seat(struct world *w, uint32_t conn, const struct msg_register *reg)
{
    const struct claim *c = &reg->claim;
    const struct seat *seat = &w->form.seats[c->rank];
    char text[BOUNDS_TEXT], holder[ADDRESS_TEXT], here[ADDRESS_TEXT];
    if (seat->attempt != 0) {
        const struct member *mb = member_find(w, seat->id);
        address_text(mb != NULL ? &mb->info.address[0] : &w->common->conns[conn].seen, holder);
        address_text(&w->common->conns[conn].seen, here);
        snprintf(text, sizeof text, "rank %u of the world is claimed by peer " ID_FORMAT " at %s already, not only from %s", c->rank,
                 ID_PARTS(seat->id), holder, here);
        common_refuse(w->common, conn, w->run, CAUSE_KICK_TAKEN, text);
        return;
    }
    struct member *mb = member_newcomer(w, conn, reg);
    if (mb == NULL) {
        return;
    }
    take_seat(&w->form, c)->id = mb->id;
    int64_t by = c->deadline_ms > 0 ? w->common->now + (int64_t)c->deadline_ms * 1000000 : NEVER;
    w->form.deadline = by < w->form.deadline ? by : w->form.deadline;
}

void world_claim(struct world *w, uint32_t conn, const struct msg_register *reg)
{
    const struct claim *c = &reg->claim;
    struct formation *f = &w->form;
    if (world_knows(w, c)) {
        claim_again(w, conn, &f->seats[c->rank]);
    } else if (f->phase == FORM_GIVEN_UP) {
        take_seat(f, c); /* W7: this rank's call of what was given up */
        tell(w, conn);
    } else if (MUTANT(SIZE_ALONE) && c->size != f->size) {
        f->cause = CAUSE_MISMATCH;
        say(w, conn);
        f->cause = CAUSE_NONE;
    } else if (c->size != f->size || c->loss != f->loss || c->once != f->once) { /* W9 */
        formation_fail(w, CAUSE_MISMATCH, 0, "it is created%s with %u ranks and the loss rule '%s', and%s with %u and '%s'",
                       once_name(f->once), f->size, loss_name(f->loss), once_name(c->once != 0), c->size, loss_name(c->loss));
        give_up(w);
        if (c->rank < f->size && f->seats[c->rank].attempt == 0) {
            take_seat(f, c);
        }
        tell(w, conn);
    } else {
        claim_seat(w, conn, reg);
    }
}
