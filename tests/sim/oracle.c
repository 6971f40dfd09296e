/* oracle.c - what must hold, checked as it happens.
 *
 * One idea: programs are aligned, so a call has one name in a life of its group; the first return under a name is remembered and
 * every other one is compared with it, whoever made it: crashed, excluded and late ones count too (G1).  Views are read
 * from the master after each of its steps.
 * Invariant: nothing here is told to the machines.
 * SPDX-License-Identifier: MIT */
#include <stdlib.h>
#include <string.h>

#include "program.h"
#include "records_kept.h"

static bool agree(const struct cluster *cl, uint64_t id)
{
    return oracle_node_of(cl, id) != CLUSTER_NOBODY;
}

void oracle_init(struct cluster *cl)
{
    memset(&cl->oracle, 0, sizeof cl->oracle);
}

void oracle_fini(struct cluster *cl)
{
    free(cl->oracle.views);
    free(cl->oracle.formations);
    free(cl->oracle.matches);
    free(cl->oracle.outcomes);
    free(cl->oracle.ids);
    memset(&cl->oracle, 0, sizeof cl->oracle);
}

/* ---- identities and views ------------------------------------------------------------------------------------------- */
uint16_t oracle_node_of(const struct cluster *cl, uint64_t id)
{
    for (uint32_t i = cl->oracle.id_count; i > 0; i--) {
        if (cl->oracle.ids[i - 1].id == id) {
            return cl->oracle.ids[i - 1].node;
        }
    }
    return CLUSTER_NOBODY;
}

static struct id_record *oracle_id(struct cluster *cl, uint64_t id)
{
    for (uint32_t i = 0; i < cl->oracle.id_count; i++) {
        if (cl->oracle.ids[i].id == id) {
            return &cl->oracle.ids[i];
        }
    }
    struct oracle *o = &cl->oracle;
    o->ids = cluster_grow(o->ids, &o->id_capacity, o->id_count + 1, sizeof *o->ids);
    o->ids[o->id_count] = (struct id_record){.id = id, .node = CLUSTER_NOBODY};
    return &o->ids[o->id_count++];
}

void oracle_key(struct cluster *cl, uint64_t id, uint32_t key)
{
    oracle_id(cl, id)->key = key;
}

static uint32_t key_of(const struct cluster *cl, uint64_t id)
{
    uint32_t i = 0;
    while (i < cl->oracle.id_count && cl->oracle.ids[i].id != id) {
        i++;
    }
    return i < cl->oracle.id_count ? cl->oracle.ids[i].key : 0;
}

/* They are in the order of their ids. */
void oracle_by_keys(const struct cluster *cl, struct view_record *v)
{
    for (uint32_t i = 1; i < v->members; i++) {
        for (uint32_t k = i; k > 0 && key_of(cl, v->ids[k]) < key_of(cl, v->ids[k - 1]); k--) {
            uint64_t id = v->ids[k];
            v->ids[k] = v->ids[k - 1];
            v->ids[k - 1] = id;
        }
    }
}

static const struct view_record *oracle_view(const struct cluster *cl, uint64_t run, uint32_t group, uint64_t view)
{
    for (uint32_t i = cl->oracle.view_count; i > 0; i--) {
        const struct view_record *v = &cl->oracle.views[i - 1];
        if (v->run == run && v->group == group && v->view == view) {
            return v;
        }
    }
    return NULL;
}

static bool view_has(const struct view_record *v, uint64_t id)
{
    for (uint32_t i = 0; i < v->members; i++) {
        if (v->ids[i] == id) {
            return true;
        }
    }
    return false;
}

/* Nobody comes back under its id, so who is of one life never shares a view with who is of another, and they are promised nothing about
 * each other: a member that the master has forgotten may begin, alone, the step that the newcomers after it begin, too. */
static uint64_t life_of(const struct view_record *v, const struct view_record *before)
{
    for (uint32_t i = 0; before != NULL && i < before->members; i++) {
        if (view_has(v, before->ids[i])) {
            return before->life;
        }
    }
    return before == NULL ? 1 : before->life + 1;
}

/* As in node.group: worlds have groups of the same labels. */
static uint32_t group_key(const struct master_group_view *g)
{
    uint32_t world = g->world[0] == 0 ? 0 : (uint32_t)(g->world[1] - '0');
    return world * CLUSTER_LABELS + g->group;
}

static void oracle_new_view(struct cluster *cl, const struct master_group_view *g, const uint64_t *ids)
{
    struct oracle *o = &cl->oracle;
    o->views = cluster_grow(o->views, &o->view_capacity, o->view_count + 1, sizeof *o->views);
    struct view_record *v = &o->views[o->view_count++];
    v->run = g->run;
    v->group = group_key(g);
    v->view = g->view;
    v->members = g->members < CLUSTER_NODES ? g->members : CLUSTER_NODES;
    memcpy(v->ids, ids, v->members * sizeof *ids);
    const struct view_record *before = NULL;
    for (uint32_t i = o->view_count - 1; i > 0 && before == NULL; i--) {
        bool same = o->views[i - 1].run == g->run || !form_world(&cl->opt, v->group / CLUSTER_LABELS); /* a name that is used again */
        before = same && o->views[i - 1].group == v->group ? &o->views[i - 1] : NULL;
    }
    if (before != NULL && before->view >= g->view) {
        cluster_fail(cl, "view of group %u went back from %llx to %llx", group_key(g), (unsigned long long)before->view,
                     (unsigned long long)g->view);
    }
    v->life = life_of(v, before);
    for (uint32_t i = 0; before != NULL && i < before->members; i++) {
        if (!view_has(v, before->ids[i])) {
            oracle_id(cl, before->ids[i])->excluded = true;
            oracle_kept(cl, before->ids[i]);
        }
    }
    for (uint32_t i = 0; i < v->members; i++) {
        if (oracle_id(cl, v->ids[i])->excluded) {
            cluster_fail(cl, "member %llx was excluded and is in view %llx", (unsigned long long)v->ids[i],
                         (unsigned long long)g->view);
        }
        uint16_t node = oracle_node_of(cl, v->ids[i]);
        if (node != CLUSTER_NOBODY && cl->nodes[node].group != v->group) {
            cluster_fail(cl, "member %llx of view %llx is of another group or world", (unsigned long long)v->ids[i],
                         (unsigned long long)g->view);
        }
        if (i > 0 && v->ids[i] <= v->ids[i - 1]) {
            cluster_fail(cl, "members of view %llx are not in order", (unsigned long long)g->view);
        }
    }
    cl->stats.views++;
}

void oracle_views(struct cluster *cl)
{
    struct oracle *o = &cl->oracle;
    uint32_t groups = master_group_count(cl->master.master);
    for (uint32_t index = 0; index < groups; index++) {
        struct master_group_view g;
        master_group_get(cl->master.master, index, &g, NULL, 0);
        uint32_t i = group_key(&g);
        if (g.revision < o->revision[i] && g.revision != 0) {
            cluster_fail(cl, "revision of group %u went back from %llu to %llu", i,
                         (unsigned long long)o->revision[i], (unsigned long long)g.revision);
        }
        o->revision[i] = g.revision;
        bool shared = form_world(&cl->opt, i / CLUSTER_LABELS); /* several of that name may live at once */
        if (shared ? g.view != 0 && oracle_view(cl, g.run, i, g.view) == NULL : g.view != o->group_view[i]) {
            uint64_t ids[CLUSTER_NODES];
            master_group_get(cl->master.master, index, &g, ids, CLUSTER_NODES);
            o->group_view[i] = g.view;
            if (g.view != 0 && g.members != 0) {
                records_published(cl, &g, ids);
                oracle_new_view(cl, &g, ids);
            }
        }
    }
}

/* Staging is nobody's while no operation is. */
static void check_rooms(struct cluster *cl, const struct node *n)
{
    for (uint32_t i = 0; i < n->config.max_ops; i++) {
        if (n->run[i].taken) {
            return;
        }
    }
    for (uint32_t lane = 0; lane < CLUSTER_LANES; lane++) {
        const struct room *r = &n->room[lane];
        if (!room_whole(r)) {
            cluster_fail(cl, "peer %u: no operation is left, but lane %u has %d + %d grants and %u slots of %u", n->index, lane,
                         r->half_a, r->half_b, r->free_slots, r->slot_count);
        }
    }
}

void oracle_node(struct cluster *cl, struct node *n)
{
    if (!n->alive || cl->failed) {
        return;
    }
    check_rooms(cl, n);
    struct session_info info;
    session_info(n->session, &info);
    if (info.id != n->id && info.id != 0) {
        oracle_id(cl, info.id)->node = n->index;
        n->id = info.id;
        n->view = n->view_before = 0;
    }
    if (info.view != n->view && info.view != 0) {
        if (info.view < n->view) {
            cluster_fail(cl, "peer %u went back from view %llx to %llx", n->index, (unsigned long long)n->view,
                         (unsigned long long)info.view);
        }
        n->view_before = n->view;
        n->view = info.view;
        const struct view_record *v = oracle_view(cl, info.run, n->group, info.view);
        if (v == NULL || !view_has(v, info.id) || v->members != info.world) {
            cluster_fail(cl, "peer %u installed view %llx, which the master did not publish so", n->index,
                         (unsigned long long)info.view);
            return;
        }
        n->life = v->life;
    }
}

/* ---- calls ---------------------------------------------------------------------------------------------------------- */
static struct outcome_record *oracle_slot(struct cluster *cl, uint64_t key)
{
    struct oracle *o = &cl->oracle;
    if (o->outcome_count * 2 >= o->outcome_capacity) {
        uint32_t old = o->outcome_capacity, capacity = old == 0 ? 256 : old * 2;
        struct outcome_record *from = o->outcomes;
        o->outcomes = calloc(capacity, sizeof *o->outcomes);
        if (o->outcomes == NULL) {
            abort();
        }
        o->outcome_capacity = capacity;
        o->outcome_count = 0;
        for (uint32_t i = 0; i < old; i++) {
            if (from[i].key != 0) {
                *oracle_slot(cl, from[i].key) = from[i];
                o->outcome_count++;
            }
        }
        free(from);
    }
    uint32_t i = (uint32_t)key & (o->outcome_capacity - 1);
    while (o->outcomes[i].key != 0 && o->outcomes[i].key != key) {
        i = (i + 1) & (o->outcome_capacity - 1);
    }
    return &o->outcomes[i];
}

struct outcome_record *oracle_record(struct cluster *cl, uint64_t key)
{
    struct outcome_record *r = oracle_slot(cl, key);
    if (r->key == 0) {
        *r = (struct outcome_record){.key = key};
        cl->oracle.outcome_count++;
    }
    return r;
}

/* All who come here with the same key bring the same value. */
void oracle_agree(struct cluster *cl, const struct node *n, const char *what, uint64_t key, uint64_t value)
{
    struct outcome_record *r = oracle_slot(cl, key | 1);
    if (lie_is_liar(n)) {
        return;
    }
    if (r->key == 0) {
        *r = (struct outcome_record){.key = key | 1, .result_hash = value, .by = n->index};
        cl->oracle.outcome_count++;
    } else if (r->result_hash != value) {
        cluster_fail(cl, "%s: peer %u has %llx, peer %u had %llx (step %llu)", what, n->index, (unsigned long long)value, r->by,
                     (unsigned long long)r->result_hash, (unsigned long long)n->program->step);
    }
}

void oracle_launched(struct cluster *cl, const struct call *c)
{
    struct outcome_record *r = oracle_slot(cl, c->key | 1);
    if (r->key == 0) {
        *r = (struct outcome_record){.key = c->key | 1};
        cl->oracle.outcome_count++;
    }
    r->launched[c->node->index / 64] |= UINT64_C(1) << (c->node->index % 64);
}

/* Nobody succeeds before all members have launched; of what a member may hold without the others, all that are left of them. */
static bool all_launched(const struct cluster *cl, const struct node *n, const struct call *c, const struct view_record *v,
                         const struct outcome_record *r)
{
    struct session_info info;
    session_info(n->session, &info);
    const struct view_record *now = c->params.kind == PLAN_ALL_REDUCE ? v : oracle_view(cl, info.run, n->group, info.view);
    for (uint32_t i = 0; i < v->members; i++) {
        uint16_t node = oracle_node_of(cl, v->ids[i]);
        bool left = now != NULL && view_has(now, v->ids[i]);
        if (left && node < CLUSTER_NODES && (r->launched[node / 64] >> (node % 64) & 1) == 0) {
            return false;
        }
    }
    return true;
}

/* Of those who are left with it. */
static bool others_launched(const struct cluster *cl, const struct node *n, const struct outcome_record *r)
{
    struct session_info info;
    session_info(n->session, &info);
    const struct view_record *now = oracle_view(cl, info.run, n->group, info.view);
    for (uint32_t i = 0; now != NULL && i < now->members; i++) {
        uint16_t node = oracle_node_of(cl, now->ids[i]);
        if (node < CLUSTER_NODES && node != n->index && (r->launched[node / 64] >> (node % 64) & 1) != 0) {
            return true;
        }
    }
    return false;
}

static const char *class_name(uint8_t class)
{
    static const char *const names[] = {"?", "success", "abort", "refusal", "mismatch", "digest", "no memory"};
    return names[class];
}

/* Outcomes that all members share: 0 for those that are of one peer alone. */
static uint8_t outcome_class(const struct session_outcome *o)
{
    switch (o->result) {
    case RESULT_OK:
        return 1;
    case RESULT_LOST:
        return o->cause != CAUSE_NONE && o->cause < CAUSE_PEER_LOST ? 3 : 2;
    case RESULT_MISMATCH:
        return 4;
    case RESULT_DIGEST:
        return 5;
    case RESULT_NO_MEMORY: /* the same refusal, at who caused it */
    case RESULT_ARGUMENT:
        return 3;
    case RESULT_PENDING:
    case RESULT_ALONE:
    case RESULT_GONE:
    case RESULT_GIVEN_UP:
    case RESULT_OVER:
    case RESULT_USAGE:
    case RESULT_PENDING_OPS:
    case RESULT_TAG_IN_USE:
    case RESULT_FULL:
    case RESULT_AHEAD:
    case RESULT_TAGS:
    case RESULT_SETUP:
    case RESULT_UNREACHABLE:
    case RESULT_REFUSED:
    case RESULT_NO_CANDIDATE:
    case RESULT_REVISION:
    case RESULT_RETRY:
        break;
    case RESULT_POISONED: /* its executor failed */
        return o->cause == CAUSE_INTERNAL ? 3 : 0;
    }
    return 0;
}

/* G3: an input is what it was, in place or not. */
static void check_inputs(struct cluster *cl, const struct call *c, bool ok)
{
    if (program_hash(c->in, c->bytes) != c->input_hash) {
        cluster_fail(cl, "G3: peer %u: an input was written", c->node->index);
    }
    if (!ok && c->in_place && program_hash(c->out, c->out_bytes) != c->input_hash) {
        cluster_fail(cl, "G3: peer %u: an in-place input was not restored after an error", c->node->index);
    }
}

static void check_result(struct cluster *cl, const struct node *n, const struct call *c, const struct session_outcome *o,
                         const struct outcome_record *r)
{
    char why[200] = "no view of that size, or a member has not launched it";
    if (c->odd && others_launched(cl, n, r)) {
        cluster_fail(cl, "peer %u: success with parameters that differ from the others'", n->index);
    }
    for (uint32_t i = cl->oracle.view_count; i > 0; i--) { /* it may be collected views later */
        const struct view_record *v = &cl->oracle.views[i - 1];
        if (v->group == n->group && v->members == o->world && view_has(v, n->id) && agree(cl, v->ids[0]) && (c->bytes == 0 || all_launched(cl, n, c, v, r)) &&
            reference_check(cl, v, c, why, sizeof why)) {
            return;
        }
    }
    cluster_fail(cl, "G2: peer %u: wrong result of op %u in step %llu: %s", n->index, c->op,
                 (unsigned long long)n->program->step, why);
}

/* A mismatch names another peer, by its rank if it is still a member, and both calls. */
static void check_told(struct cluster *cl, const struct node *n, const struct session_outcome *o)
{
    struct session_info info;
    session_info(n->session, &info);
    const char *other = session_present(n->session, o->differs) ? "; rank " : "; peer ";
    bool both = strstr(o->text, "this peer has ") == o->text && (strstr(o->text, "; rank ") != NULL || strstr(o->text, other) != NULL);
    if (cl->lies == 0 && (!both || o->differs == 0 || o->differs == info.id)) {
        cluster_fail(cl, "peer %u is told of a mismatch with %llx: %s", n->index, (unsigned long long)o->differs, o->text);
    }
}

void oracle_call(struct cluster *cl, const struct node *n, const struct call *c, const struct session_outcome *o)
{
    uint8_t class = outcome_class(o);
    bool stops = o->result == RESULT_NO_MEMORY || (o->result == RESULT_POISONED && !n->poisoned);
    if ((stops && !c->failed) || (o->cause == CAUSE_NO_MEMORY && c->no_memory && !stops)) {
        cluster_fail(cl, "peer %u: result %d for cause %u, which is %s", n->index, (int)o->result, o->cause,
                     c->failed ? "its own" : "another's");
    }
    if (o->result == RESULT_PENDING || (o->result == RESULT_POISONED && !n->poisoned && !c->failed) || o->result == RESULT_USAGE) {
        cluster_fail(cl, "peer %u: a call ended with result %d", n->index, (int)o->result);
    }
    check_inputs(cl, c, o->result == RESULT_OK);
    if (class == 1) {
        oracle_bytes(cl, n, c, o);
    }
    oracle_calm(cl, n, c, o);
    cl->stats.successes += class == 1;
    cl->stats.aborts += class == 2;
    cl->stats.refusals += class >= 3;
    if (c->op == PROGRAM_OPS) {
        if (class >= 4 && cl->lies == 0) {
            cluster_fail(cl, "peer %u: the aligning call ended with %s: calls have slipped", n->index, class_name(class));
        }
        return;
    }
    if (class == 0 || lie_is_liar(n)) {
        return;
    }
    if (o->result == RESULT_MISMATCH) {
        check_told(cl, n, o);
    }
    struct outcome_record *r = oracle_slot(cl, c->key | 1);
    uint64_t hash = class == 1 && parts_same_for_all(c) ? program_hash(c->out, c->out_bytes) : 0;
    if (r->first == 0) {
        r->result_hash = hash;
        r->first = class;
        r->cause = o->cause;
        r->culprit = o->culprit;
        r->by = n->index;
        if (r->key == 0) {
            r->key = c->key | 1;
            cl->oracle.outcome_count++;
        }
        if (class == 1 && cl->lies == 0) { /* a liar that has lost its place in the program passes what it likes */
            check_result(cl, n, c, o, r);
            cl->stats.bytes += c->bytes;
        }
        return;
    }
    if (class == 1 && cl->lies == 0 && !parts_same_for_all(c)) {
        check_result(cl, n, c, o, r); /* each its own */
    }
    if (r->first != class) {
        cluster_fail(cl, "G1: step %llu op %u attempt %u: %s at peer %u beside %s at peer %u",
                     (unsigned long long)n->program->step, c->op, n->program->attempt, class_name(class), n->index,
                     class_name(r->first), r->by);
    } else if (r->result_hash != hash) {
        cluster_fail(cl, "G2: step %llu op %u: peer %u and peer %u have different bits", (unsigned long long)n->program->step,
                     c->op, n->index, r->by);
    } else if (class != 1 && (r->cause != o->cause || r->culprit != o->culprit)) {
        cluster_fail(cl, "G1: step %llu op %u: cause %u of %llx at peer %u beside cause %u of %llx at peer %u",
                     (unsigned long long)n->program->step, c->op, o->cause, (unsigned long long)o->culprit, n->index, r->cause,
                     (unsigned long long)r->culprit, r->by);
    }
}

/* ---- at the end ----------------------------------------------------------------------------------------------------- */
void oracle_end(struct cluster *cl)
{
    for (uint32_t i = 0; i < cl->node_count; i++) {
        struct node *n = &cl->nodes[i];
        if (!n->alive) {
            continue;
        }
        check_rooms(cl, n);
    }
}
