/* deferred.c - calls that are not launched yet, in their order.
 * SPDX-License-Identifier: MIT */
#include "session/calls/deferred.h"
#include "session/calls/slots.h"

void deferred_clear(struct session *s)
{
    s->deferred = (struct deferred){.first = NONE, .last = NONE, .passed = NONE};
}

void deferred_add(struct session *s, uint32_t slot)
{
    const struct slot *c = &s->slots.at[slot];
    slot_due(s, slot, c->launch.call.deadline);
    *(s->deferred.first == NONE ? &s->deferred.first : &s->slots.at[s->deferred.last].next) = slot;
    s->deferred.last = slot;
    s->deferred.count++;
    s->deferred.tags += s->classes[c->launch.call.space].tags_later;
}

void deferred_remove(struct session *s, uint32_t before, uint32_t slot)
{
    struct slot *c = &s->slots.at[slot];
    *(before == NONE ? &s->deferred.first : &s->slots.at[before].next) = c->next;
    s->deferred.last = s->deferred.last == slot ? before : s->deferred.last;
    s->deferred.count--;
    s->deferred.tags -= s->classes[c->launch.call.space].tags_later;
    c->next = NONE;
    slot_due(s, slot, INT64_MAX);
}

void deferred_wait(struct session *s, uint32_t last, bool all)
{
    s->deferred.passed = last;
    s->deferred.behind = all;
}
