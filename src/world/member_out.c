/* member_out.c - how a member, or a stranger, is put out: told why if it can still hear, its loss noted where it counts.
 *
 * Its one idea: nothing follows from a loss here; it is noted at the group, the admission and the vote, and master_settle
 * sees to the rest (M1).  Invariant: who is out has no connection and waits in no vote.
 * SPDX-License-Identifier: MIT */
#include <stdio.h>

#include "core/id.h"
#include "world/world_state.h"
#include "wire/address.h"

void member_close(struct master *m, uint32_t conn)
{
    struct action *a = outbox_add(m->out, MASTER_CLOSE);
    a->slot = conn;
    m->conns[conn].state = CONN_FREE;
}

void member_fence(struct master *m, uint32_t conn, uint64_t view, enum cause cause, const char *text)
{
    struct msg_fence f = {.view = view, .cause = (uint8_t)cause};
    snprintf(f.text, sizeof f.text, "%s", text);
    put_fence(outbox_frame(m->out, FRAME_FENCE, m->config.run, view), &f);
    outbox_send(m->out, MASTER_SEND, conn);
}

/* Notes the loss of an accepted member in its group; the graver story is kept: a loss before a mere suspicion. */
static void group_lose(struct master *m, struct group *g, const struct member *mb, enum cause cause, const char *text)
{
    bool told = g->lost || (view_ending(g) && (g->cause == CAUSE_PEER_LOST || g->cause == CAUSE_PEER_LEFT ||
                                                          g->cause == CAUSE_PEER_SILENT || g->cause > CAUSE_BLOCKED));
    g->lost = true;
    if (!told) { /* M8: cause and culprit are part of the decision */
        g->cause = (uint8_t)cause;
        g->culprit = mb->id;
        char where[ADDRESS_TEXT];
        address_text(&mb->info.address[0], where);
        snprintf(g->text, sizeof g->text, "peer " ID_FORMAT " at %s, group %u: %s", ID_PARTS(mb->id), where, g->label,
                 text);
    }
    if (MUTANT(NOSHRINK) && mb->vote.kind == VOTE_NONE) {
        for (uint32_t i = 0; i < m->config.max_members; i++) {
            m->ghost = m->ghost || m->members[i].vote.kind != VOTE_NONE;
        }
    }
}

/* `why` is static: it goes to traces; `text` is copied: it goes to the log, to the others and to the excluded one. */
void member_exclude_told(struct master *m, struct member *mb, enum cause cause, const char *why, const char *text)
{
    struct group *g = member_group(m, mb);
    bool accepted = mb->phase == MEMBER_ACCEPTED;
    if (mb->phase != MEMBER_PENDING && !accepted) {
        return;
    }
    if (accepted) {
        group_lose(m, g, mb, cause, text);
        m->optimise.lost = true;
    }
    if (m->admit.phase == ADMIT_LINKING && (accepted || mb->joining)) {
        m->admit.again = true; /* M10: a new attempt, without FREEZE */
    }
    snprintf(mb->gone_text, sizeof mb->gone_text, "%s", text);
    mb->vote.kind = VOTE_NONE; /* M6: a vote loses only the voters that leave */
    mb->role = 0;
    master_move(m, PHASE_MEMBER, &mb->phase, MEMBER_GONE, mb->id, view_current(g)->view, why);
    if (mb->conn != SLOT_NONE) {
        if (cause != CAUSE_PEER_LEFT) {
            member_fence(m, mb->conn, view_current(g)->view, cause, text);
        }
        member_close(m, mb->conn);
        mb->conn = SLOT_NONE;
    }
}

void member_exclude(struct master *m, struct member *mb, enum cause cause, const char *text)
{
    member_exclude_told(m, mb, cause, text, text);
}

void member_violation(struct master *m, uint32_t conn, const char *what)
{
    struct conn *c = &m->conns[conn];
    if (c->state == CONN_MEMBER) {
        member_exclude(m, &m->members[c->member], CAUSE_KICK_PROTOCOL, what);
    } else if (c->state == CONN_OPEN) {
        member_close(m, conn);
    }
}
