/* pair_match.c - which message a receive gets: receives of a tag wait in one line, in the order of their calls.
 *
 * The first of the line is matched as soon as it can be: one from a named source at once, with the next number of that pair; one from any
 * source with what was announced first, or with an error that a source is owed to end (B12, B13).  Whoever stands behind has no number yet.
 * Invariant: the first of a line is a receive from any source that nothing fits; what is listed as heard is a ghost of this view.
 * SPDX-License-Identifier: MIT */
#include "session/calls/slots.h"
#include "session/pair/pair.h"
#include "session/tables/peers.h"
#include "session/tables/tags.h"

/* ---- messages that were announced before their receive was called, in the order in which they were heard of ---- */

struct tag *heard_box(struct session *s, uint8_t space, uint64_t tag, bool make)
{
    struct op_name name = {.space = space, .tag = tag, .to = s->id};
    return make ? tag_make(s, &name) : tag_of(s, &name);
}

void heard_listen(struct session *s, struct op *op)
{
    struct tag *box = heard_box(s, op->name.space, op->name.tag, true);
    struct op_name name = op->name;
    if (op->listed || op->phase != OP_GHOST) {
        return;
    }
    if (box == NULL || tag_make(s, &name) == NULL) {
        peers_unheard(s, op->name.from);
        return;
    }
    uint32_t i = (uint32_t)(op - s->ops.at);
    op->listed = true;
    op->heard_next = NONE;
    op->heard_prev = box->heard_last;
    *(box->heard == NONE ? &box->heard : &s->ops.at[box->heard_last].heard_next) = i;
    box->heard_last = i;
}

void heard_unlist(struct session *s, struct op *op)
{
    struct tag *box = op->listed ? heard_box(s, op->name.space, op->name.tag, false) : NULL;
    if (box == NULL) {
        return;
    }
    op->listed = false;
    *(op->heard_prev == NONE ? &box->heard : &s->ops.at[op->heard_prev].heard_next) = op->heard_next;
    *(op->heard_next == NONE ? &box->heard_last : &s->ops.at[op->heard_next].heard_prev) = op->heard_prev;
}

/* ---- receives that wait ---- */

/* The name of a receive that waits in a line, without its number. */
static struct op_name name_in(const struct session *s, const struct tag *box, const struct slot *c)
{
    return (struct op_name){.space = box->space, .tag = box->tag, .from = c->partner, .to = s->id};
}

bool pair_wait(struct session *s, uint32_t slot)
{
    struct slot *c = &s->slots.at[slot];
    struct tag *box = heard_box(s, c->launch.call.space, c->launch.call.tag, true);
    if (box == NULL) {
        return false;
    }
    if (c->partner != 0) {
        struct op_name name = name_in(s, box, c);
        struct tag *t = tag_make(s, &name);
        if (t == NULL) {
            return false;
        }
        t->queued++;
    }
    c->next = NONE;
    c->prev = box->waiting_last;
    *(box->waiting == NONE ? &box->waiting : &s->slots.at[box->waiting_last].next) = slot;
    box->waiting_last = slot;
    slot_wait(s, slot, true);
    return true;
}

void pair_leave_line(struct session *s, struct tag *box, uint32_t slot)
{
    struct slot *c = &s->slots.at[slot];
    PCCL_ASSERT(c->prev != NONE || box->waiting == slot);
    *(c->prev == NONE ? &box->waiting : &s->slots.at[c->prev].next) = c->next;
    *(c->next == NONE ? &box->waiting_last : &s->slots.at[c->next].prev) = c->prev;
    if (c->partner != 0) {
        struct op_name name = name_in(s, box, c);
        struct tag *t = tag_of(s, &name);
        PCCL_ASSERT(t != NULL && t->queued > 0);
        t->queued--;
    }
    c->next = c->prev = NONE;
    slot_wait(s, slot, false);
}

void pair_close_lines(struct session *s)
{
    for (uint32_t i = 0; i < s->tags.used; i++) {
        s->tags.at[i].waiting = s->tags.at[i].waiting_last = NONE;
        s->tags.at[i].queued = 0;
    }
}

/* ---- the first of the line ---- */

/* B13: a source whose message has failed, but fails no receive yet.  Looked for once when errors have come to be owed, then for each that
 * is taken. */
static struct tag *owing(struct session *s, struct tag *box)
{
    struct tag *first = NULL;
    for (uint32_t i = 0; box->unowed != s->owed.ever && i < s->tags.used; i++) {
        struct tag *t = &s->tags.at[i];
        bool fits = t->space == box->space && t->tag == box->tag && t->to == s->id && t->from != 0 && t->owed != NONE;
        if (fits && (first == NULL || t->from < first->from)) {
            first = t;
        }
    }
    box->unowed = first == NULL ? s->owed.ever : box->unowed;
    return first;
}

/* Messages of one source have come in any order after a link was made again: the one with its next number. */
static struct tag *announced(struct session *s, const struct tag *box)
{
    for (uint32_t i = box->heard; i != NONE; i = s->ops.at[i].heard_next) {
        const struct op *op = &s->ops.at[i];
        struct tag *t = tag_of(s, &op->name);
        if (t != NULL && t->next_seq == op->name.seq && (op->refused == 0 || !MUTANT(FAILED_SKIP))) {
            return t;
        }
    }
    return NULL;
}

struct tag *pair_next(struct session *s, struct tag *box, uint64_t *source)
{
    const struct slot *c = &s->slots.at[box->waiting];
    struct op_name name = name_in(s, box, c);
    struct tag *t = c->partner != 0 ? tag_of(s, &name) : NULL;
    if (c->partner == 0) {
        t = MUTANT(OWED_UNSEEN) ? NULL : owing(s, box);
        t = t != NULL ? t : announced(s, box);
    }
    *source = t != NULL ? t->from : 0;
    return t;
}
