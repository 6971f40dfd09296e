/* process.c - processes with several sessions: each node of the cluster is one session, and one of each world makes a process.
 *
 * One idea: a process crashes, stands still and loses links as one, in all of its worlds; everything else that goes wrong belongs to one
 * session, and then nothing may happen in other worlds, whoever is in both (W1): there no call is lost (oracle_calm).
 * Invariant: nodes of one process are members of different worlds.
 * SPDX-License-Identifier: MIT */
#include "process.h"

#include <string.h>

#include "reset_fault.h"

/* In most clusters of several worlds; without a draw of its own. */
void process_options(struct options *o)
{
    uint64_t draw = mix64(o->seed, 85);
    o->together = o->worlds > 1 && draw % 4 != 0;
    uint32_t whole = o->worlds * (2 + (uint32_t)(draw >> 8) % 3); /* two to four processes, in all worlds */
    if (o->together && o->peers < whole) {
        o->max_members += o->small_limits ? whole - o->peers : 0;
        o->peers = whole;
    }
}

uint16_t process_of(const struct options *o, uint16_t node)
{
    return o->together && node < o->peers ? (uint16_t)(node - node % o->worlds) : node;
}

bool process_same(const struct cluster *cl, uint32_t a, uint32_t b)
{
    bool nodes = a < cl->node_count && b < cl->node_count;
    return a == b || (nodes && cl->nodes[a].process == cl->nodes[b].process);
}

/* All sessions of a process listen at one port; HELLO says which one it is for. */
uint16_t process_at(const struct cluster *cl, const struct node *dials, const struct net_address *a)
{
    uint16_t first = (uint16_t)(a->ip[2] << 8 | a->ip[3]);
    for (uint16_t i = 0; i < cl->node_count; i++) {
        if (process_same(cl, first, i) && cl->nodes[i].group / CLUSTER_LABELS == dials->group / CLUSTER_LABELS) {
            return i;
        }
    }
    return first;
}

uint32_t process_others(const struct cluster *cl, const struct node *n)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < cl->node_count; i++) {
        count += cl->nodes[i].alive && cl->nodes[i].process != n->process;
    }
    return count;
}

static void touch(struct cluster *cl, uint32_t node)
{
    for (uint32_t i = 0; node < cl->node_count && i < cl->node_count; i++) {
        if (process_same(cl, node, i)) {
            cl->touched[cl->nodes[i].group / CLUSTER_LABELS] = true;
        }
    }
}

enum scope { OF_ALL, OF_PROCESSES, OF_SESSION };

static enum scope scope_of(enum fault_kind kind)
{
    switch ((int)kind) {
    case FAULT_PARTITION:
    case FAULT_SPARSE:
    case FAULT_MASTER_PAUSE:
    case FAULT_MASTER_DEATH:
    case FAULT_POISON: /* whoever meets it first */
    case FAULT_HOSTILE:
        return OF_ALL;
    case FAULT_CRASH:
    case FAULT_POWER:
    case FAULT_FREEZE:
    case FAULT_ONE_WAY:
    case FAULT_APART:
    case FAULT_PAIR:
    case FAULT_SLOW:
    case FAULT_MASTER_CUT:
    case FAULT_RELAY:
    case FAULT_RESET:
        return OF_PROCESSES;
    default:
        return OF_SESSION;
    }
}

void process_touch(struct cluster *cl, const struct fault *f, uint16_t relay)
{
    if (f->kind == FAULT_RESET) {
        reset_touch(cl, f->node);
        return;
    }
    switch (scope_of(f->kind)) {
    case OF_ALL:
        memset(cl->touched, true, sizeof cl->touched);
        break;
    case OF_PROCESSES:
        touch(cl, f->node);
        touch(cl, f->other);
        touch(cl, relay);
        break;
    case OF_SESSION:
        cl->touched[cl->nodes[f->node].group / CLUSTER_LABELS] = true;
        break;
    }
}

/* In half of these clusters all that goes wrong does in one world; what would be of whole processes is of one session instead. */
void process_confine(struct cluster *cl)
{
    static const uint8_t instead[] = {FAULT_LINK, FAULT_MASTER_LINE, FAULT_RETURN, FAULT_MASTER_LINE, FAULT_LATE, FAULT_BUNDLE};
    uint64_t draw = mix64(cl->opt.seed, 86);
    for (uint32_t i = 0; cl->opt.together && draw % 2 == 0 && i < cl->fault_count; i++) {
        struct fault *f = &cl->faults[i];
        uint32_t world = (uint32_t)(draw >> 8) % cl->opt.worlds, node = f->node - f->node % cl->opt.worlds + world;
        f->node = (uint16_t)(node < cl->opt.peers ? node : world);
        f->kind = scope_of(f->kind) == OF_SESSION ? f->kind : (enum fault_kind)instead[mix64(draw, i) % sizeof instead];
    }
}

bool process_calm(const struct cluster *cl, const struct node *n)
{
    return !cl->touched[n->group / CLUSTER_LABELS] && !cl->shaken[n->group / CLUSTER_LABELS];
}
