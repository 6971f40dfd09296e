/* linking.c - one round of making links: ADMIT goes out, LINKED comes in.
 *
 * Its one idea: an admission and the end of a view that leaves a pair without a relay ask the same of their members, each
 * under an attempt of its own.  Invariant: attempts are never reused.
 * SPDX-License-Identifier: MIT */
#include "world/world_state.h"
#include "world/linking.h"
#include "world/member_entry.h"
#include "world/member_read.h"
#include "world/roll.h"
#include "world/view_read.h"

bool linking_takes_part(const struct member *mb)
{
    return mb->phase == MEMBER_ACCEPTED || (mb->phase == MEMBER_PENDING && mb->joining);
}

void linking_send(struct world *w, struct group *g, uint32_t attempt, struct member *only)
{
    const struct view_record *v = view_next(g);
    struct msg_admit a = {.view = v->view, .attempt = attempt, .members = v->members};
    struct writer *frame = outbox_frame(w->common->out, FRAME_ADMIT, w->run, v->view);
    put_admit(frame, &a);
    for (uint32_t i = 0; i < v->members; i++) {
        member_put(w, frame, v->ids[i]);
    }
    struct action *act = outbox_send_many(w->common->out, MASTER_SEND);
    for (uint32_t i = 0; i < v->members; i++) {
        const struct member *mb = member_find(w, v->ids[i]);
        if (mb != NULL && mb->conn != SLOT_NONE && linking_takes_part(mb) && (only == NULL || only == mb)) {
            outbox_dest(w->common->out, act, mb->conn);
        }
    }
}

uint32_t linking_begin(struct world *w, struct group *g)
{
    view_next(g)->edges = 0; /* LINKED will name them */
    g->unlinked = member_count(w, g, MEMBER_ACCEPTED);
    for (uint32_t i = 0; i < w->member_room; i++) {
        if (member_group(w, &w->members[i]) == g) {
            w->members[i].linked = false;
        }
    }
    return ++w->admit.attempt;
}
