/* marks.c - what members have said of operations, by hash, each from its first word on.
 *
 * Its one idea: a member that says nothing of an operation costs it nothing, however many there are: neither memory nor a look.  Whoever
 * looks finds an empty mark; whoever wants to know what was said goes through the operation's list of those who spoke.
 * Invariant: an operation that is not on record has the own mark; an entry in use is in one chain and in its operation's list.
 * SPDX-License-Identifier: MIT */
#include "core/mix.h"
#include "core/rows.h"
#include "session/tables/marks.h"
#include "session/tables/peers.h"
#include "session/tables/storage.h"

static uint32_t *bucket_of(const struct session *s, uint32_t op, uint32_t rank)
{
    return &s->marks.bucket[mix64(op, (uint64_t)rank << 32) & (s->marks.buckets - 1)];
}

size_t mark_table_bytes(uint32_t count)
{
    return count * sizeof(struct mark) + rows_for(1, count) * sizeof(uint32_t);
}

void mark_table_use(struct session *s, void *storage, uint32_t count)
{
    unsigned char *at = storage;
    struct mark *marks = storage_moved(&at, sizeof *marks, count, s->marks.at, s->marks.count);
    s->marks.at = marks;
    s->marks.bucket = (uint32_t *)(void *)at;
    s->marks.buckets = rows_for(1, count);
    s->marks.free = NONE;
    chains_clear(s->marks.bucket, s->marks.buckets);
    for (uint32_t i = count; i-- > 0;) {
        bool used = i < s->marks.count && marks[i].op != NONE;
        uint32_t *head = used ? bucket_of(s, marks[i].op, marks[i].rank) : &s->marks.free;
        marks[i].op = used ? marks[i].op : NONE;
        marks[i].next = *head;
        *head = i;
    }
    s->marks.count = count;
}

/* NONE: it has said nothing. */
static uint32_t find(const struct session *s, const struct op *op, uint32_t rank)
{
    uint32_t of = (uint32_t)(op - s->ops.at);
    PCCL_ASSERT(op->marks != NONE && rank < s->view.world);
    uint32_t i = *bucket_of(s, of, rank);
    while (i != NONE && (s->marks.at[i].op != of || s->marks.at[i].rank != rank)) {
        i = s->marks.at[i].next;
    }
    return i;
}

const struct mark *op_mark(const struct session *s, const struct op *op, uint32_t rank)
{
    static const struct mark nothing;
    uint32_t i = find(s, op, rank);
    return i != NONE ? &s->marks.at[i] : &nothing;
}

static struct mark *add(struct session *s, struct op *op, uint32_t rank)
{
    uint32_t i = s->marks.free, of = (uint32_t)(op - s->ops.at), *head = bucket_of(s, of, rank);
    if (i == NONE) {
        return NULL;
    }
    s->marks.free = s->marks.at[i].next;
    s->marks.used++;
    s->marks.at[i] = (struct mark){.op = of, .rank = rank, .next = *head, .after = op->marks};
    *head = op->marks = i;
    return &s->marks.at[i];
}

bool marks_begin(struct session *s, struct op *op)
{
    op->marks = NONE;
    return add(s, op, s->view.rank) != NULL;
}

struct mark *mark_of(struct session *s, struct op *op, uint32_t rank)
{
    uint32_t i = find(s, op, rank);
    return i != NONE ? &s->marks.at[i] : add(s, op, rank);
}

struct mark *mark_heard(struct session *s, struct op *op, uint32_t rank)
{
    struct mark *m = mark_of(s, op, rank);
    if (m == NULL) {
        peers_unheard(s, s->view.ids[rank]);
    }
    return m;
}

void marks_drop(struct session *s, struct op *op)
{
    while (op->marks != NONE) {
        uint32_t i = op->marks, *link = bucket_of(s, s->marks.at[i].op, s->marks.at[i].rank);
        while (*link != i) {
            link = &s->marks.at[*link].next;
        }
        *link = s->marks.at[i].next;
        op->marks = s->marks.at[i].after;
        s->marks.at[i].op = NONE;
        s->marks.at[i].next = s->marks.free;
        s->marks.free = i;
        s->marks.used--;
    }
}

void mark_table_forget(struct session *s)
{
    s->marks.count = 0;
}
