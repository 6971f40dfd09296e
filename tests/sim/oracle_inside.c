/* oracle_inside.c - what is asked of the machines themselves, not of what they say.
 *
 * One idea: a deadline is honest if a tick just before it does nothing, and the master knows of a member what that member
 * has.  Both are looked at in the seeds that check all invariants.  Invariant: a machine that was asked is put back.
 * SPDX-License-Identifier: MIT */
#include <stdlib.h>
#include <string.h>

#include "sim_cluster.h"

/* M5: a member is believed to have a view only if it has it. */
/* Sizes count the peers of one world. */
void oracle_world(struct cluster *cl, const struct node *n, const struct sizes *s)
{
    uint32_t most = 0;
    for (uint32_t i = 0; i < cl->node_count; i++) {
        most += cl->nodes[i].group / CLUSTER_LABELS == n->group / CLUSTER_LABELS;
    }
    if (s->global > most || s->groups > CLUSTER_LABELS) {
        cluster_fail(cl, "peer %u reads %u peers in %u groups, its world never had more than %u", n->index, s->global, s->groups,
                     most);
    }
}

void oracle_known_views(struct cluster *cl)
{
    for (uint32_t i = 0; cl->opt.check_every == 1 && i < cl->node_count; i++) {
        struct session_info info;
        if (!cl->nodes[i].alive) {
            continue;
        }
        session_info(cl->nodes[i].session, &info);
        uint64_t known = info.connected ? master_known_view(cl->master.master, info.id) : 0;
        if (info.view < known) {
            cluster_fail(cl, "M5: the master takes peer %u to have view %llx, but it has %llx", i, (unsigned long long)known,
                         (unsigned long long)info.view);
        }
    }
}

/* Silence is looked at with each heartbeat, so it may be noticed by so much later: told to the master, and by a relay to the two that
 * it stands between; a spare link that is silent is closed. */
static bool waits_for_heartbeat(const struct node *n, const struct action *a)
{
    struct frame_header header;
    bool frame = (a->kind == ACT_MASTER || a->kind == ACT_PEERS) && frame_get(n->out.bytes + a->frame, &header);
    bool silence = frame && header.type == (a->kind == ACT_MASTER ? FRAME_SUSPECT : FRAME_PATH);
    return silence || a->kind == ACT_UNLINK || a->kind == ACT_CLOSE_MASTER || a->kind == ACT_DIAL_MASTER || a->kind == ACT_TRACE;
}

/* The master's silence ends what is under way with it: all of the step follows from that. */
static bool gives_up_master(const struct outbox *out)
{
    for (uint32_t i = 0; i < out->count; i++) {
        if (out->actions[i].kind == ACT_CLOSE_MASTER) {
            return true;
        }
    }
    return false;
}

/* Copies all that a session remembers, its tables behind its arena: there, or back. */
static void remember(struct node *n, unsigned char *copy, bool back)
{
    memcpy(back ? n->arena : copy, back ? copy : n->arena, n->arena_bytes);
    copy += n->arena_bytes;
    for (uint32_t i = 0; i < SESSION_TABLES; i++) {
        if (n->table_bytes[i] > 0) {
            memcpy(back ? n->table[i] : copy, back ? copy : n->table[i], n->table_bytes[i]);
            copy += n->table_bytes[i];
        }
    }
}

/* Nothing else is due before the deadline that a session names: it would be done late. */
void oracle_deadline(struct cluster *cl, struct node *n)
{
    int64_t due = session_deadline(n->session);
    bool asked = cl->opt.check_every == 1 && n->alive && due > cl->now + 1 && due != CLOCK_NEVER && !n->poisoned;
    if (!asked || mix64(cl->order, n->index) % 8 != 0) {
        return;
    }
    size_t bytes = n->arena_bytes;
    for (uint32_t i = 0; i < SESSION_TABLES; i++) {
        bytes += n->table_bytes[i];
    }
    unsigned char *before = malloc(bytes);
    if (before == NULL) {
        abort();
    }
    remember(n, before, false);
    outbox_reset(&n->out);
    session_step(n->session, due - 1, &(struct session_event){.kind = SESSION_TICK}, &n->out);
    for (uint32_t i = 0; i < n->out.count && !gives_up_master(&n->out); i++) {
        if (!waits_for_heartbeat(n, &n->out.actions[i])) {
            cluster_fail(cl, "peer %u: action %u is due before its deadline", n->index, n->out.actions[i].kind);
        }
    }
    remember(n, before, true);
    outbox_reset(&n->out);
    free(before);
}
