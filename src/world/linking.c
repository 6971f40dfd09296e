/* linking.c - one round of making links: ADMIT goes out, LINKED comes in.
 *
 * Its one idea: an admission and the end of a view that leaves a pair without a relay ask the same of their members, each
 * under an attempt of its own.  Invariant: attempts are never reused.
 * SPDX-License-Identifier: MIT */
#include "world/world_state.h"

bool linking_takes_part(const struct member *mb)
{
    return mb->phase == MEMBER_ACCEPTED || (mb->phase == MEMBER_PENDING && mb->joining);
}

void linking_send(struct master *m, struct group *g, uint32_t attempt, struct member *only)
{
    const struct view_record *v = view_next(g);
    struct msg_admit a = {.view = v->view, .attempt = attempt, .members = v->members};
    struct writer *w = outbox_frame(m->out, FRAME_ADMIT, m->config.run, v->view);
    put_admit(w, &a);
    for (uint32_t i = 0; i < v->members; i++) {
        const struct member *mb = member_find(m, v->ids[i]);
        struct member_info gone = {.id = v->ids[i], .lanes = 1}; /* lost since: a new attempt is on its way */
        put_member_info(w, mb != NULL ? &mb->info : &gone);
    }
    struct action *act = outbox_send_many(m->out, MASTER_SEND);
    for (uint32_t i = 0; i < v->members; i++) {
        const struct member *mb = member_find(m, v->ids[i]);
        if (mb != NULL && mb->conn != SLOT_NONE && linking_takes_part(mb) && (only == NULL || only == mb)) {
            outbox_dest(m->out, act, mb->conn);
        }
    }
}

uint32_t linking_begin(struct master *m, struct group *g)
{
    view_next(g)->edges = 0; /* LINKED will name them */
    for (uint32_t i = 0; i < m->config.max_members; i++) {
        if (member_group(m, &m->members[i]) == g) {
            m->members[i].linked = false;
        }
    }
    return ++m->admit.attempt;
}

bool linking_all(const struct master *m, const struct group *g)
{
    for (uint32_t i = 0; i < m->config.max_members; i++) {
        const struct member *mb = &m->members[i];
        bool asked = g == NULL ? linking_takes_part(mb) : member_accepted_in(m, mb, g);
        if (asked && !mb->linked) {
            return false;
        }
    }
    return true;
}
