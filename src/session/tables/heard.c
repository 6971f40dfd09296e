/* heard.c - messages that were announced before their receive was called: by tag, in the order in which they were heard of.
 * SPDX-License-Identifier: MIT */
#include "session/session_state.h"

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
    uint32_t i = (uint32_t)(op - s->ops);
    op->listed = true;
    op->heard_next = NONE;
    op->heard_prev = box->heard_last;
    *(box->heard == NONE ? &box->heard : &s->ops[box->heard_last].heard_next) = i;
    box->heard_last = i;
}

void heard_unlist(struct session *s, struct op *op)
{
    struct tag *box = op->listed ? heard_box(s, op->name.space, op->name.tag, false) : NULL;
    if (box == NULL) {
        return;
    }
    op->listed = false;
    *(op->heard_prev == NONE ? &box->heard : &s->ops[op->heard_prev].heard_next) = op->heard_next;
    *(op->heard_next == NONE ? &box->heard_last : &s->ops[op->heard_next].heard_prev) = op->heard_prev;
}
