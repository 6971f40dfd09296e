/* program_inside.c - what programs do in a world of a given size once it has begun: the loop of all programs, until they leave together.
 *
 * One idea: what they do follows from the run and the step, which all members share, joiners too; half of the worlds work, the others
 * vote, wait and leave (program_form.c), or are left at once (program_split.c).
 * Invariant: several worlds of one name may live at once: what is compared of calls has the run in its name (program_name).
 * SPDX-License-Identifier: MIT */
#include "program.h"

enum { INSIDE_LEAVES = 3 /* of so many steps, one is the last */ };

bool inside_begin(struct cluster *cl, struct node *n)
{
    struct program *p = n->program;
    struct session_info info;
    session_info(n->session, &info);
    struct session_member own = {0};
    (void)session_member(n->session, info.called_rank, &own);
    oracle_key(cl, info.id, own.key);
    p->inside = info.run;
    p->works = mix64(info.run, 9) % 2 == 0;
    p->first = true;
    p->step = 0;
    p->attempt = p->align_attempt = p->lonely = 0;
    p->query_asked = false;
    p->phase = PROGRAM_SIZES;
    cl->stats.worked += p->works;
    return p->works;
}

bool inside_ends(const struct program *p)
{
    return p->inside != 0 && mix64(mix64(p->inside, 11), p->step) % INSIDE_LEAVES == 0;
}

/* Some end the world for all; whoever is in it still has made the same calls. */
void inside_leave(struct cluster *cl, struct node *n)
{
    struct program *p = n->program;
    bool revokes = mix64(mix64(p->inside, 5), n->index) % 8 == 0;
    struct session_event e = {.kind = revokes ? SESSION_REVOKE : SESSION_LEAVE};
    p->status[PROGRAM_OPS] = OP_TODO;
    p->attempt = p->align_attempt = 0;
    node_step(cl, n, &e);
    if (split_world(&cl->opt, n->group / CLUSTER_LABELS)) {
        split_again(cl, n);
    } else {
        form_again(cl, n);
    }
}

/* Of the world it works in. */
bool inside_same(const struct node *n, uint64_t run)
{
    return n->program->inside == 0 || n->program->inside == run;
}

bool inside_has_left(const struct cluster *cl, uint64_t id)
{
    struct session_info info;
    uint16_t node = oracle_node_of(cl, id);
    if (node >= CLUSTER_NODES || cl->nodes[node].program->inside == 0) {
        return false;
    }
    session_info(cl->nodes[node].session, &info);
    return info.id != id || !info.connected;
}
