/* derived.c - worlds that members of another one create together: split, duplicate, create from a list.
 *
 * Its one idea: such a formation stands at its parent while any of its worlds has not begun; each world is formed as any other,
 * and here it is decided for all of them, with one record, or given up for all (W10).  Who is expected is known, so nobody is
 * waited for who can come no more (W11).
 * Invariant: a formation is remembered as long as one of its worlds is, which are their own tombstones; one that was given up also for
 * as long as a caller may come whose world nobody has claimed.
 * SPDX-License-Identifier: MIT */
#include <string.h>

#include "core/bitset.h"
#include "master/master_state.h"

static void refuse(struct master *m, uint32_t conn, enum cause cause, const char *text)
{
    common_refuse(&m->common, conn, m->common.config.run, cause, text);
}

/* What has been decided already, to a call that was never counted. */
static void tell(struct master *m, uint32_t conn, const struct siblings *s)
{
    struct msg_given_up word = {.cause = s->cause, .culprit = s->culprit};
    memcpy(word.text, s->text, sizeof word.text);
    put_given_up(outbox_frame(m->common.out, FRAME_GIVEN_UP, s->parent, 0), &word);
    outbox_send(m->common.out, MASTER_SEND, conn);
    common_close(&m->common, conn);
}

bool derived_new(const struct master *m, const struct msg_expect *x)
{
    const struct world *parent = registry_run(m, x->parent);
    return parent != NULL && world_derives(parent, x->formation) == NULL && registry_claimed(m, &x->claim.reg) == NULL;
}

/* A caller of what has been given up: it is told why now, and does not come again; it may have been the last one. */
static void hears(struct master *m, struct siblings *s, uint64_t member)
{
    if (!siblings_has(s, member)) {
        (void)siblings_come(s, member); /* who is no caller hears it as well */
    }
    siblings_touch(&m->common, s);
}

/* The formation of this call, begun if there is none; null: it has been refused, or told what became of it. */
static struct siblings *formation_of(struct master *m, uint32_t conn, const struct msg_expect *x, struct reader *ids)
{
    struct world *parent = registry_run(m, x->parent);
    struct siblings *s = parent != NULL ? world_derives(parent, x->formation) : NULL;
    if (s != NULL && s->cause != CAUSE_NONE) {
        hears(m, s, x->member);
        tell(m, conn, s);
        return NULL;
    }
    if (parent == NULL || !world_member(parent, x->member)) { /* W11 */
        refuse(m, conn, CAUSE_KICK_STALE, "this peer is no member any more of the world whose members create this one");
        return NULL;
    }
    if (s == NULL && m->spare_callers < x->callers) {
        refuse(m, conn, CAUSE_KICK_FULL, "the master has no memory for so many that create a world together");
        return NULL;
    }
    if (s != NULL && !siblings_agree(s, x, ids)) { /* W9 */
        siblings_fail(&m->common, s, CAUSE_MISMATCH, x->member, "its callers do not name the same members");
        tell(m, conn, s);
        return NULL;
    }
    if (s == NULL) {
        s = siblings_init(m->spare_siblings, x, ids);
        m->spare_siblings = NULL;
        m->spare_callers = 0;
        world_adds(parent, s);
        siblings_touch(&m->common, s); /* of which there may never be a world */
    }
    return s;
}

/* Whoever could not claim is missing for all. */
static void join(struct master *m, uint32_t conn, const struct msg_expect *x, struct siblings *s)
{
    const struct msg_register *reg = &x->claim.reg;
    struct world *w = creation_world(m, conn, reg);
    if (w != NULL && world_siblings(w) == NULL && s->placed < s->room) {
        world_join_siblings(w, s);
    }
    if (w != NULL && world_siblings(w) == s) {
        world_claim(w, conn, reg);
        if (world_knows(w, &reg->claim) && !siblings_come(s, x->member)) {
            siblings_fail(&m->common, s, CAUSE_MISMATCH, x->member, "one of its callers is not expected by the others");
        }
    } else if (w != NULL) {
        refuse(m, conn, CAUSE_KICK_TAKEN, "a world of that name is being created by others");
    }
    if (w == NULL || !world_knows(w, &reg->claim)) {
        siblings_fail(&m->common, s, CAUSE_NO_MEMORY, x->member, "the master could not take one of its callers");
    }
    siblings_touch(&m->common, s);
    if (w != NULL) {
        registry_rest(m, w);
    }
}

void derived_take(struct master *m, const struct master_event *e, struct reader *r)
{
    struct msg_expect x;
    uint32_t conn = e->connection;
    if (!get_expect(r, &x) || !creation_answers(m, conn, &x.claim)) {
        common_close(&m->common, conn);
        return;
    }
    struct world *known = registry_claimed(m, &x.claim.reg);
    bool of_now = creation_of_now(m, &x.claim);
    if (known != NULL && (of_now || world_knows(known, &x.claim.reg.claim))) { /* W4 */
        struct siblings *over = world_siblings(known);
        if (over != NULL && over->cause != CAUSE_NONE) {
            hears(m, over, x.member);
        }
        world_claim(known, conn, &x.claim.reg);
        registry_rest(m, known);
        return;
    }
    if (!of_now) { /* W8 */
        refuse(m, conn, CAUSE_KICK_STALE, "the master has begun anew since this peer asked for the world");
        return;
    }
    struct siblings *s = formation_of(m, conn, &x, r);
    if (s != NULL && siblings_has(s, x.member)) {
        refuse(m, conn, CAUSE_KICK_TAKEN, "this peer has claimed its rank already, by another call");
    } else if (s != NULL) { /* also if a caller has gone already: then its world is the tombstone */
        join(m, conn, &x, s);
    }
}

/* ---- behind each event --------------------------------------------------------------------------------------------- */

/* Each of its worlds that is of it still. */
static struct world *world_of(const struct master *m, const struct siblings *s, uint32_t i)
{
    struct world *w = registry_at(m, s->place[i]);
    return w != NULL && world_siblings(w) == s ? w : NULL;
}

/* W10: one batch of the journal. */
static void decide(struct master *m, struct siblings *s)
{
    struct outbox *o = m->common.out;
    uint32_t left = s->worlds;
    s->persist = common_number(&m->common.next_persist, s->place[0]);
    writer_init(&o->writer, o->bytes + o->used, o->bytes_capacity - o->used);
    for (uint32_t i = 0; i < s->placed; i++) {
        struct world *w = world_of(m, s, i);
        if (w != NULL) {
            world_decide(w, &o->writer, s->persist, --left);
            registry_due_again(m, w);
        }
    }
    common_persist(o, s->persist);
}

static void forget(struct master *m, struct siblings *s)
{
    struct world *parent = registry_run(m, s->parent);
    if (parent != NULL) {
        world_forgets(parent, s);
    }
    s->next = m->forgotten;
    m->forgotten = s;
}

static void settle(struct master *m, struct siblings *s)
{
    if (s->came == s->callers && s->seats != s->callers) { /* then some seat is nobody's */
        siblings_fail(&m->common, s, CAUSE_MISMATCH, 0, "its callers do not agree on who belongs to which world");
    }
    if (siblings_ready(s)) {
        decide(m, s);
    }
    for (uint32_t i = 0; i < s->placed; i++) { /* one after the other, as time comes to them */
        struct world *w = world_of(m, s, i);
        if (w != NULL && world_called(w)) {
            registry_due_again(m, w);
        }
    }
}

/* Its parent knows a caller that has not come, and may: it must hear what the others have heard. */
static bool remembered(const struct master *m, const struct siblings *s)
{
    const struct world *parent = registry_run(m, s->parent);
    bool stands = s->cause != CAUSE_NONE && parent != NULL && world_derives(parent, s->formation) == s;
    for (uint32_t i = 0; stands && s->came < s->callers && i < s->callers; i++) {
        if (!bitset_has(s->came_set, i) && world_member(parent, s->ids[i])) {
            return true;
        }
    }
    return false;
}

void derived_settle(struct master *m)
{
    for (struct siblings *s; (s = m->common.touched) != NULL;) {
        m->common.touched = s->touched_next;
        s->touched = false;
        if (s->worlds != 0) {
            settle(m, s);
        } else if (!remembered(m, s)) {
            forget(m, s);
        }
    }
}
