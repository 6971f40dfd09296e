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

bool siblings_has(const struct siblings *s, uint64_t member)
{
    uint32_t at = caller_of(s, member);
    return at < s->callers && s->ids[at] == member && bitset_has(s->came_set, at);
}

bool siblings_come(struct siblings *s, uint64_t member)
{
    uint32_t at = caller_of(s, member);
    if (at == s->callers || s->ids[at] != member) {
        return false;
    }
    PCCL_ASSERT(!bitset_has(s->came_set, at));
    bitset_add(s->came_set, at);
    s->came++;
    return true;
}

void siblings_check(const struct siblings *s)
{
    uint32_t came = 0;
    for (uint32_t i = 0; i < s->callers; i++) {
        PCCL_ASSERT(i == 0 || s->ids[i - 1] < s->ids[i]);
        came += bitset_has(s->came_set, i);
    }
    bool open = s->cause == CAUSE_NONE && s->persist == 0; /* later they leave one by one */
    PCCL_ASSERT(came == s->came && s->worlds <= s->placed && s->placed <= s->room && (s->ready <= s->worlds || !open));
    PCCL_ASSERT(s->persist == 0 || (s->cause == CAUSE_NONE && came == s->callers));
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

uint64_t siblings_missing(const struct siblings *s)
{
    uint32_t first = 0;
    while (first < s->callers && bitset_has(s->came_set, first)) {
        first++;
    }
    return first < s->callers ? s->ids[first] : 0;
}

void siblings_missing_text(const struct siblings *s, char *out, size_t size)
{
    uint64_t first = siblings_missing(s);
    if (first == 0) {
        snprintf(out, size, "its members could not be linked in time");
    } else {
        snprintf(out, size, "%u of its %u callers have not come in time, peer " ID_FORMAT " the first of them", s->callers - s->came,
                 s->callers, ID_PARTS(first));
    }
}
