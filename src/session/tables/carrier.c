/* carrier.c - what an operation has with one member: by their link as its class does, or by a relay as relayed parts do.
 * SPDX-License-Identifier: MIT */
#include "session/tables/carrier.h"

bool carrier_relays(const struct session *s, const struct op *op, uint32_t rank)
{
    return op->slot != NONE && s->view.edges > 0 && bitset_has(s->view.apart, rank) && op->class->apart(s, op, rank);
}

static const struct op_class *carrier_of(const struct session *s, const struct op *op, uint32_t rank)
{
    return &s->classes[carrier_relays(s, op, rank) ? SPACE_PART : op->name.space];
}

void carrier_announce(struct session *s, struct op *op, uint32_t rank, struct outbox *out)
{
    bool over = op->phase == OP_GHOST || op->phase == OP_DONE || op->refused != 0;
    if (!over && op->class->hears(s, op, rank) && op->class->tells(s, op)) {
        carrier_of(s, op, rank)->announce(s, op, rank, out);
    }
}

void carrier_feed(struct session *s, struct op *op, uint32_t rank, struct outbox *out)
{
    carrier_of(s, op, rank)->feed(s, op, rank, out);
}
