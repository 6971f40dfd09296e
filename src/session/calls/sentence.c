/* sentence.c - see sentence.h.
 * SPDX-License-Identifier: MIT */
#include "session/calls/culprit.h"
#include "session/calls/sentence.h"
#include "session/tables/peers.h"

#include <stdarg.h>
#include <stdio.h>

#include "core/id.h"
#include "wire/address.h"

void say(struct sentence *t, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    int n = vsnprintf(t->out + t->used, t->size - t->used, fmt, args);
    va_end(args);
    t->used += n < 0 ? 0 : (size_t)n < t->size - t->used ? (size_t)n : t->size - t->used - 1;
}

void say_member(struct sentence *t, const struct member_info *member)
{
    char where[ADDRESS_TEXT];
    if (member->addresses == 0) {
        say(t, "peer " ID_FORMAT, ID_PARTS(member->id));
        return;
    }
    address_text(&member->address[0], where);
    say(t, "peer " ID_FORMAT " (%s)", ID_PARTS(member->id), where);
}

void say_peer(struct sentence *t, const struct session *s, uint64_t id)
{
    uint32_t i = peer_find(s, id);
    if (id == s->id) {
        say(t, "this peer");
    } else if (i == NONE) {
        say(t, "peer " ID_FORMAT, ID_PARTS(id)); /* of another group */
    } else {
        say_member(t, &s->peers.at[i].info);
    }
}

void say_rank(struct sentence *t, const struct session *s, uint64_t id)
{
    struct member_name name = culprit_find(s, id);
    char text[MEMBER_TEXT];
    member_text(id, (int64_t)name.ranked - 1, &name.address, text);
    say(t, "%s", id == s->id ? "this peer" : text);
}
