/* tags.c - what operations are numbered in: the tags of the installed view, and the order of issue, which is the one tag of its
 * space; by hash, with the errors that are owed to their next calls.
 *
 * Its one idea: entries in use lie side by side, and each is in the chain of its bucket, so that nothing that was there before is ever
 * walked over: a table that is full, or was, costs a lookup nothing.  A new view forgets all tags but those that owe an error or
 * have a call.  Invariant: the first tags.used entries are in use and each in one chain; an error is owed to a tag that is known.
 * SPDX-License-Identifier: MIT */
#include "core/mix.h"
#include "core/rows.h"
#include "session/tables/tags.h"
#include "session/tables/storage.h"

static uint32_t *bucket_of(struct session *s, const struct op_name *name)
{
    uint64_t h = mix64(name->tag, 1 + (uint64_t)name->space);
    h = name->to != 0 ? mix64(mix64(h, name->from), name->to) : h;
    return &s->tags.bucket[h & (s->tags.buckets - 1)];
}

struct op_name tag_name(const struct tag *t)
{
    return (struct op_name){.tag = t->tag, .from = t->from, .to = t->to, .seq = t->next_seq, .space = t->space};
}

static uint32_t *bucket_in_use(struct session *s, uint32_t i)
{
    struct op_name name = tag_name(&s->tags.at[i]);
    return bucket_of(s, &name);
}

_Static_assert(BOUNDS_OPS <= UINT16_MAX, "struct tag counts in 16 bits the receives that wait");
_Static_assert(sizeof(struct tag) <= 88, "docs/guide/DEPLOY.md says what a tag costs");

size_t tag_table_bytes(uint32_t count)
{
    return count * sizeof(struct tag) + rows_for(1, count) * sizeof(uint32_t);
}

void tag_table_use(struct session *s, void *storage, uint32_t count)
{
    unsigned char *at = storage;
    struct tag *tags = storage_moved(&at, sizeof *tags, count, s->tags.at, s->tags.used);
    s->tags.at = tags;
    s->tags.count = count;
    s->tags.bucket = (uint32_t *)(void *)at;
    s->tags.buckets = rows_for(1, count);
    chains_clear(s->tags.bucket, s->tags.buckets);
    for (uint32_t i = 0; i < s->tags.used; i++) {
        uint32_t *head = bucket_in_use(s, i);
        tags[i].next = *head;
        *head = i;
    }
}

struct tag *tag_of(struct session *s, const struct op_name *name)
{
    for (uint32_t i = *bucket_of(s, name); i != NONE; i = s->tags.at[i].next) {
        const struct tag *t = &s->tags.at[i];
        s->tags.steps++;
        if (t->tag == name->tag && t->space == name->space && t->from == name->from && t->to == name->to) {
            return &s->tags.at[i];
        }
    }
    return NULL;
}

struct tag *tag_make(struct session *s, const struct op_name *name)
{
    struct tag *t = tag_of(s, name);
    if (t != NULL || s->tags.used == s->tags.count) {
        return t;
    }
    uint32_t *head = bucket_of(s, name);
    t = &s->tags.at[s->tags.used];
    *t = (struct tag){.tag = name->tag, .from = name->from, .to = name->to, .space = name->space, .slot = NONE, .owed = NONE,
                      .waiting = NONE, .waiting_last = NONE, .heard = NONE, .heard_last = NONE, .next = *head};
    *head = s->tags.used++;
    return t;
}

struct tag *tag_find(struct session *s, uint8_t space, uint64_t tag)
{
    return tag_of(s, &(struct op_name){.tag = tag, .space = space});
}

struct tag *tag_get(struct session *s, uint8_t space, uint64_t tag)
{
    return tag_make(s, &(struct op_name){.tag = tag, .space = space});
}

/* The link of a chain that names the entry. */
static uint32_t *link_to(struct session *s, uint32_t i)
{
    uint32_t *link = bucket_in_use(s, i);
    while (*link != i) {
        PCCL_ASSERT(*link != NONE);
        link = &s->tags.at[*link].next;
    }
    return link;
}

static void forget(struct session *s, uint32_t i)
{
    uint32_t last = --s->tags.used;
    *link_to(s, i) = s->tags.at[i].next;
    if (i != last) {
        *link_to(s, last) = i;
        s->tags.at[i] = s->tags.at[last];
    }
}

void tag_call(struct tag *t, uint32_t slot)
{
    if (t->space == SPACE_ORDERED) {
        t->open++;
    } else {
        t->slot = slot;
    }
}

/* Numbers begin again in every view. */
void tags_renew(struct session *s)
{
    for (uint32_t i = s->tags.used; i-- > 0;) {
        struct tag *t = &s->tags.at[i];
        if (t->owed == NONE && t->slot == NONE && t->open == 0 && t->waiting == NONE && t->queued == 0) {
            forget(s, i);
        } else {
            if (t->owed != NONE && t->owed_view != s->owed.at[t->owed].view) { /* of the view that ends now */
                t->owed_view = s->owed.at[t->owed].view;
                t->owed_next = t->next_seq;
            }
            t->next_seq = t->refusals = 0;
        }
    }
    s->tags.refusals = 0;
}

/* The answer to an update skips what was refused, so all members begin anew with it. */
uint32_t tag_refusals(const struct session *s, const struct tag *t)
{
    return t->settled == s->vote.settled ? t->refusals : 0;
}

void tags_no_refusals(struct session *s)
{
    s->tags.refusals = 0;
}

void tag_caught_up(struct session *s, struct tag *t)
{
    s->tags.refusals -= tag_refusals(s, t);
    t->refusals = 0;
}

void tag_taken(struct session *s, struct tag *t)
{
    if (tag_refusals(s, t) > 0) {
        t->refusals--;
        s->tags.refusals--;
    }
}

void tag_refused(struct session *s, struct tag *t)
{
    t->refusals = tag_refusals(s, t) + 1;
    t->settled = s->vote.settled;
    s->tags.refusals++;
}

/* ---- errors that are owed ---- */

void owed_table_use(struct session *s, void *storage, uint32_t count)
{
    unsigned char *at = storage;
    struct owed *owed = storage_moved(&at, sizeof *owed, count, s->owed.at, s->owed.count);
    s->owed.free = s->owed.count == 0 ? NONE : s->owed.free;
    s->owed.at = owed;
    for (uint32_t i = count; i-- > s->owed.count;) {
        owed[i] = (struct owed){.next = s->owed.free};
        s->owed.free = i;
    }
    s->owed.count = count;
}

bool owed_add(struct session *s, const struct owed *what)
{
    struct tag *t = tag_make(s, &what->name);
    if (t == NULL || s->owed.free == NONE) {
        return false;
    }
    uint32_t i = s->owed.free;
    s->owed.free = s->owed.at[i].next;
    s->owed.used++;
    s->owed.ever++;
    s->owed.at[i] = *what;
    /* In the order of the numbers, whatever the order of the decisions: calls take them one by one. */
    uint32_t *link = &t->owed;
    while (*link != NONE && (s->owed.at[*link].view < what->view || s->owed.at[*link].name.seq < what->name.seq)) {
        link = &s->owed.at[*link].next;
    }
    s->owed.at[i].next = *link;
    *link = i;
    return true;
}

/* P12: in the order of issue a number may be owed an error while one before it, which is not launched here either, is not: only who is
 * lost had launched that one.  It is aborted by the loss, for all who are left alike. */
static bool owes_one_before(const struct session *s, struct tag *t, struct owed *what)
{
    if (t->owed_view != s->owed.at[t->owed].view) { /* nothing was launched in the view that this one followed: errors came first */
        t->owed_view = s->owed.at[t->owed].view;
        t->owed_next = 0;
    }
    uint32_t number = t->owed_next++;
    *what = s->owed.at[t->owed];
    if (what->name.seq <= number || MUTANT(OWED_GAPS)) {
        t->owed_next = what->name.seq + 1;
        return false;
    }
    what->outcome = OUTCOME_ABORT;
    what->cause = what->loss;
    what->culprit = what->lost;
    return true;
}

/* B1: of another pair that uses the same tag. */
static struct tag *owed_by_tag(struct session *s, struct tag *t)
{
    uint32_t i = 0;
    while (i < s->tags.used && (s->tags.at[i].owed == NONE || s->tags.at[i].tag != t->tag || s->tags.at[i].space != t->space)) {
        i++;
    }
    return i < s->tags.used ? &s->tags.at[i] : t;
}

bool owed_take(struct session *s, struct tag *t, struct owed *what)
{
    t = MUTANT(OWE_TAG) && t->to != 0 ? owed_by_tag(s, t) : t;
    if (t->owed == NONE) {
        return false;
    }
    if (t->space == SPACE_ORDERED && owes_one_before(s, t, what)) {
        return true;
    }
    uint32_t i = t->owed;
    *what = s->owed.at[i];
    t->owed = what->next;
    s->owed.at[i] = (struct owed){.next = s->owed.free};
    s->owed.free = i;
    s->owed.used--;
    return true;
}

void owed_clear(struct session *s)
{
    for (uint32_t i = 0; s->owed.used > 0 && i < s->owed.count; i++) {
        struct tag *t = s->owed.at[i].outcome == 0 ? NULL : tag_of(s, &s->owed.at[i].name);
        struct owed ignored;
        while (t != NULL && owed_take(s, t, &ignored)) {
        }
    }
}
