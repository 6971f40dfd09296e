/* siblings.c - see siblings.h.
 * SPDX-License-Identifier: MIT */
#include "world/siblings.h"

#include <stdio.h>
#include <string.h>

#include "core/bitset.h"
#include "core/id.h"
#include "core/layout.h"
#include "world/world_state.h"

/* ---- the formation ------------------------------------------------------------------------------------------------- */

static size_t lay_out(struct layout *l, uint32_t callers, struct siblings *s)
{
    (void)layout_take(l, 1, sizeof *s);
    s->ids = layout_take(l, callers, sizeof *s->ids);
    s->came_set = layout_take(l, bitset_words(callers), sizeof *s->came_set);
    s->place = layout_take(l, callers, sizeof *s->place);
    return l->used;
}

size_t siblings_bytes(uint32_t callers)
{
    struct layout l = {0};
    struct siblings scratch;
    return lay_out(&l, callers, &scratch);
}

struct siblings *siblings_init(void *memory, const struct msg_expect *first, struct reader *ids)
{
    struct layout l = {.base = memory};
    struct siblings *s = memory;
    *s = (struct siblings){.parent = first->parent, .room = first->callers, .callers = first->callers};
    memcpy(s->formation, first->formation, sizeof s->formation);
    (void)lay_out(&l, first->callers, s);
    bitset_clear(s->came_set, s->callers);
    for (uint32_t i = 0; i < s->callers; i++) {
        s->ids[i] = get_u64(ids);
    }
    return s;
}

bool siblings_agree(const struct siblings *s, const struct msg_expect *m, struct reader *ids)
{
    bool same = m->callers == s->callers;
    for (uint32_t i = 0; i < m->callers && same; i++) {
        same = get_u64(ids) == s->ids[i];
    }
    return same || MUTANT(LIST_FIRST);
}

static uint32_t caller_of(const struct siblings *s, uint64_t member)
{
    uint32_t low = 0, high = s->callers;
    while (low < high) {
        uint32_t mid = low + (high - low) / 2;
        low = s->ids[mid] < member ? mid + 1 : low;
        high = s->ids[mid] < member ? high : mid;
    }
    return low;
}

bool siblings_come(struct siblings *s, uint64_t member)
{
    uint32_t at = caller_of(s, member);
    if (at == s->callers || s->ids[at] != member || bitset_has(s->came_set, at)) {
        return false;
    }
    bitset_add(s->came_set, at);
    s->came++;
    return true;
}

void siblings_touch(struct common *c, struct siblings *s)
{
    if (!s->touched) {
        s->touched = true;
        s->touched_next = c->touched;
        c->touched = s;
    }
}

void siblings_fail(struct common *c, struct siblings *s, enum cause cause, uint64_t culprit, const char *text)
{
    if (s->cause != CAUSE_NONE || s->persist != 0) {
        return;
    }
    s->cause = (uint8_t)cause;
    s->culprit = culprit;
    snprintf(s->text, sizeof s->text, "%s", text);
    siblings_touch(c, s);
}

bool siblings_ready(const struct siblings *s)
{
    return s->cause == CAUSE_NONE && s->persist == 0 && s->came == s->callers && s->worlds > 0 && s->ready == s->worlds;
}

void siblings_missing_text(const struct siblings *s, char *out, size_t size)
{
    uint32_t first = 0;
    while (first < s->callers && bitset_has(s->came_set, first)) {
        first++;
    }
    if (first == s->callers) {
        snprintf(out, size, "its members could not be linked in time");
    } else {
        snprintf(out, size, "%u of its %u callers have not come in time, peer " ID_FORMAT " the first of them", s->callers - s->came,
                 s->callers, ID_PARTS(s->ids[first]));
    }
}

/* ---- one of the worlds --------------------------------------------------------------------------------------------- */

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

void siblings_leave(struct world *w)
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

bool siblings_wait(struct world *w)
{
    struct siblings *s = w->form.siblings;
    if (s == NULL || MUTANT(SPLIT_APART) || (MUTANT(NOCOLOR_EARLY) && w->form.size == 1)) {
        return false;
    }
    s->ready++;
    siblings_touch(w->common, s);
    return true;
}

void siblings_unready(struct world *w)
{
    w->form.siblings->ready--;
}

void siblings_durable(struct world *w)
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

void siblings_settle(struct world *w)
{
    const struct siblings *s = w->form.siblings;
    if (s != NULL && s->cause != CAUSE_NONE) {
        formation_fail(w, (enum cause)s->cause, s->culprit, "%s", s->text);
    }
}

/* ---- their parent -------------------------------------------------------------------------------------------------- */

struct siblings *world_derives(const struct world *w, const uint64_t formation[2])
{
    struct siblings *s = w->derived;
    while (s != NULL && (s->formation[0] != formation[0] || s->formation[1] != formation[1])) {
        s = s->next;
    }
    return s;
}

bool world_member(const struct world *w, uint64_t id)
{
    const struct member *mb = member_find(w, id);
    return mb != NULL && mb->phase == MEMBER_ACCEPTED;
}

/* W11: whoever is expected and has left before it has claimed. */
static void look(struct world *w, struct siblings *s)
{
    char text[BOUNDS_TEXT];
    for (uint32_t i = 0; i < s->callers && s->cause == CAUSE_NONE && s->came < s->callers; i++) {
        if (!bitset_has(s->came_set, i) && !world_member(w, s->ids[i])) {
            snprintf(text, sizeof text, "peer " ID_FORMAT " has left the world whose members create it, and has not come",
                     ID_PARTS(s->ids[i]));
            siblings_fail(w->common, s, CAUSE_PEER_LOST, s->ids[i], text);
        }
    }
}

void world_adds(struct world *w, struct siblings *s)
{
    s->next = w->derived;
    w->derived = s;
    if (!MUTANT(PARENT_LATE)) {
        look(w, s);
    }
}

void world_forgets(struct world *w, struct siblings *s)
{
    struct siblings **at = &w->derived;
    while (*at != NULL && *at != s) {
        at = &(*at)->next;
    }
    if (*at != NULL) {
        *at = s->next;
    }
}

void siblings_look(struct world *w)
{
    if (w->losses == w->losses_seen) {
        return;
    }
    w->losses_seen = w->losses;
    for (struct siblings *s = w->derived; s != NULL && !MUTANT(PARENT_NOT); s = s->next) {
        look(w, s);
    }
}

void siblings_orphan(struct world *w)
{
    for (struct siblings *s = w->derived; s != NULL && !MUTANT(PARENT_NOT); s = s->next) {
        if (s->came < s->callers) {
            siblings_fail(w->common, s, CAUSE_PEER_LOST, 0, "the world whose members create it has ended, and not all have come");
        }
    }
    w->derived = NULL;
}
