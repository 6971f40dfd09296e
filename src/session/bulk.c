/* bulk.c - see bulk.h.
 * SPDX-License-Identifier: MIT */
#include "session/bulk.h"

#include <string.h>

#include "core/check.h"
#include "core/mutant.h"

void bulk_init(struct bulk *b, unsigned char *state, size_t count, size_t window)
{
    PCCL_ASSERT(window > 0);
    *b = (struct bulk){.state = state, .count = count, .window = window, .bad = BULK_NONE};
    memset(state, BULK_READY, count);
}

size_t bulk_end(const struct bulk *b)
{
    return b->window < b->count - b->low ? b->low + b->window : b->count;
}

/* Whether something behind the next one is in flight. */
static bool bulk_rest(const struct bulk *b)
{
    for (size_t i = b->next; i < bulk_end(b); i++) {
        if (b->state[i] == BULK_FLYING) {
            return true;
        }
    }
    return false;
}

size_t bulk_next(struct bulk *b)
{
    size_t end = b->halted ? 0 : bulk_end(b);
    while (b->next < end && b->state[b->next] != BULK_READY) {
        b->next++;
    }
    if (MUTANT(BULK_REST) && bulk_rest(b)) {
        return BULK_NONE;
    }
    return b->next < end ? b->next : BULK_NONE;
}

size_t bulk_behind(const struct bulk *b, size_t index)
{
    for (size_t i = index + 1; i < bulk_end(b); i++) {
        if (b->state[i] == BULK_READY) {
            return i;
        }
    }
    return BULK_NONE;
}

void bulk_launched(struct bulk *b, size_t index)
{
    PCCL_ASSERT(b->state[index] == BULK_READY && index < bulk_end(b));
    b->state[index] = BULK_FLYING;
    b->flying++;
}

/* Its next attempt may succeed: it ended with its view.  What was refused, for lack of memory at one peer too, is for programs to
 * decide, and so is what a peer called something else against: that peer waits for all, so no attempt ever will. */
static bool bulk_again(const struct session_outcome *o)
{
    return o->result == RESULT_LOST && (o->cause == CAUSE_NONE || o->cause >= CAUSE_PEER_LOST) && o->cause != CAUSE_BLOCKED &&
           o->cause != CAUSE_REVOKED;
}

/* Refused at its launch for a reason of this peer alone: it has no number, so that the next of its tag would have the one that it
 * has at the others. */
static bool bulk_unsaid(const struct bulk *b, size_t index, const struct session_outcome *o)
{
    bool shared = o->result == RESULT_OK || o->result == RESULT_LOST || o->result == RESULT_MISMATCH || o->result == RESULT_DIGEST;
    return b->state[index] == BULK_READY && !shared;
}

void bulk_ended(struct bulk *b, size_t index, const struct session_outcome *outcome)
{
    b->halted = b->halted || bulk_unsaid(b, index, outcome);
    b->flying -= b->state[index] == BULK_FLYING;
    if (outcome->result == RESULT_OK) {
        b->state[index] = BULK_DONE;
        while (b->low < b->count && b->state[b->low] == BULK_DONE) {
            b->low++;
        }
    } else if (bulk_again(outcome)) {
        b->state[index] = BULK_READY;
        b->next = index < b->next ? index : b->next;
    } else {
        b->state[index] = BULK_BAD;
        if (index < b->bad) { /* BULK_NONE is above all */
            b->bad = index;
            b->error = *outcome;
        }
    }
}

bool bulk_doomed(const struct bulk *b, size_t index)
{
    return index > b->bad && b->state[index] == BULK_FLYING;
}
