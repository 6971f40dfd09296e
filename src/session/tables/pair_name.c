/* pair_name.c - whose message an operation of two is.
 * SPDX-License-Identifier: MIT */
#include "session/tables/pair_name.h"
#include "session/tables/peers.h"

/* Of this peer and that one, or one that it relays for. */
static bool is_mine(const struct session *s, uint32_t from, const struct op_name *name)
{
    uint64_t peer = s->peers.at[from].id, other = name->from == s->id ? name->to : name->to == s->id ? name->from : 0;
    return other != 0 && (other == peer || view_relay(s, s->id, other) == peer);
}

bool pair_owner(const struct session *s, const struct op_name *name)
{
    return name->to == s->id;
}

uint32_t pair_partner(const struct session *s, const struct op_name *name)
{
    return view_rank(s, pair_owner(s, name) ? name->from : name->to);
}

bool pair_speaker(const struct session *s, uint32_t from, const struct op_name *name, enum word_to to, uint32_t *rank)
{
    bool mine = is_mine(s, from, name), fits = to == TO_EITHER || pair_owner(s, name) == (to == TO_RECEIVER);
    *rank = mine ? pair_partner(s, name) : NONE;
    return mine && fits;
}

bool pair_concerns(const struct session *s, const struct op *op, uint32_t rank)
{
    return rank == pair_partner(s, &op->name);
}
