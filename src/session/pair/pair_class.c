/* pair_class.c - what the table of classes asks of messages, for each call and each operation.
 * SPDX-License-Identifier: MIT */
#include "session/calls/roster.h"
#include "session/pair/pair.h"
#include "session/relay/path.h"
#include "session/tables/pair_name.h"

/* Whom it is with; 0: any source. */
static enum session_result check(const struct session *s, bool any, uint64_t partner, struct call_of *call)
{
    *call = (struct call_of){.partner = any ? 0 : partner};
    return !any && (partner == 0 || partner == s->id) ? RESULT_ARGUMENT : RESULT_PENDING;
}

enum session_result pair_check(struct session *s, const struct session_launch *l, struct call_of *call)
{
    bool any = l->call.receives && l->call.root_rank == SESSION_ANY;
    return check(s, any, any ? 0 : roster_member(s, l->call.root_rank), call);
}

enum session_result pair_check_window(struct session *s, const struct session_launch *l, struct call_of *call)
{
    return check(s, l->call.receives && l->call.partner == 0, l->call.partner, call);
}

/* A receiver has nothing to give; a sender that cannot send has said so. */
bool pair_tells(const struct session *s, const struct op *op)
{
    return pair_owner(s, &op->name) ? !op->eager : !op->whole;
}

void pair_arrived(struct session *s, struct op *op, struct outbox *out)
{
    pair_complete(s, op, op->digest, out);
}

/* A sender that has given up sends no more. */
bool pair_wanted(const struct session *s, const struct op *op, uint32_t rank)
{
    (void)s;
    (void)rank;
    return !op->whole;
}

void pair_stop(struct session *s, struct op *op)
{
    heard_unlist(s, op);
    path_stop(s, op);
}
