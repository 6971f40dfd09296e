/* together.c - a world that begins with others, or not at all: what it waits for, and what it is told.
 *
 * Its one idea: between being linked and its record it waits until all are; whatever ends one of them before ends it, too (W10).
 * Invariant: it is one of its siblings until its first view is on record, or it is forgotten.
 * SPDX-License-Identifier: MIT */
#include "world/world_state.h"
#include "world/formation.h"
#include "world/together.h"

struct siblings *world_siblings(const struct world *w)
{
    return w->form.siblings;
}

void world_join_siblings(struct world *w, struct siblings *s)
{
    PCCL_ASSERT(w->form.siblings == NULL && s->placed < s->room);
    w->form.siblings = s;
    s->place[s->placed++] = w->slot;
    s->worlds++;
    s->seats += w->form.size;
}

void together_leave(struct world *w)
{
    struct siblings *s = w->form.siblings;
    if (s != NULL) {
        w->form.siblings = NULL;
        s->worlds--;
        siblings_touch(w->common, s);
    }
}

struct siblings *world_drop_siblings(struct world *w)
{
    struct siblings *s = w->form.siblings;
    w->form.siblings = NULL;
    return s != NULL && --s->worlds == 0 ? s : NULL;
}

bool together_wait(struct world *w)
{
    struct siblings *s = w->form.siblings;
    if (s == NULL || MUTANT(SPLIT_APART) || (MUTANT(NOCOLOR_EARLY) && w->form.size == 1)) {
        return false;
    }
    s->ready++;
    siblings_touch(w->common, s);
    return true;
}

void together_unready(struct world *w)
{
    w->form.siblings->ready--;
}

void together_durable(struct world *w)
{
    if (w->form.siblings != NULL && w->form.siblings->persist == w->admit.persist) {
        w->form.siblings->durable = true;
    }
}

bool world_called(const struct world *w)
{
    const struct siblings *s = w->form.siblings;
    bool fails = s != NULL && s->cause != CAUSE_NONE && w->form.phase == FORM_FORMING && w->admit.phase != ADMIT_PERSISTING;
    return fails || (s != NULL && s->durable && w->admit.phase == ADMIT_PERSISTING);
}

void together_settle(struct world *w)
{
    const struct siblings *s = w->form.siblings;
    if (s != NULL && s->cause != CAUSE_NONE) {
        formation_fail(w, (enum cause)s->cause, s->culprit, "%s", s->text);
    }
}
