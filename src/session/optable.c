/* optable.c - the operations of the installed view, and parked payloads.
 *
 * An operation enters when it is launched here or when somebody else speaks of it (a ghost); its marks (what each member
 * said) go when it is finished, its entry when every member is known to have finished it (P5).
 * Invariant: entries in use of each arena = its capacity - what its free list holds.
 * SPDX-License-Identifier: MIT */
#include "core/mix.h"
#include "core/rows.h"
#include "session/session_state.h"

static uint32_t op_hash(const struct session *s, const struct op_name *name)
{
    uint64_t h = mix64(name->tag, name->seq | (uint64_t)name->space << 32);
    h = space_pairs(name->space) ? mix64(mix64(h, name->from), name->to) : h;
    return (uint32_t)h & (s->buckets - 1);
}

struct op *op_find(struct session *s, const struct op_name *name)
{
    for (uint32_t i = s->op_bucket[op_hash(s, name)]; i != NONE; i = s->ops[i].next) {
        if (op_name_equal(&s->ops[i].name, name)) {
            return &s->ops[i];
        }
    }
    return NULL;
}

/* ---- the table of operations, in one block ---- */

struct op_layout {
    size_t sets, buckets, marks, marks_free, bytes;
    uint32_t bucket_count;
};

static size_t op_section(size_t *at, size_t bytes)
{
    size_t from = *at;
    *at = (from + bytes + 63) & ~(size_t)63;
    return from;
}

static struct op_layout op_lay_out(const struct session_growth *g)
{
    struct op_layout l = {.bucket_count = rows_for(1, g->entries)};
    size_t at = 0;
    (void)op_section(&at, g->entries * sizeof(struct op));
    l.sets = op_section(&at, (size_t)g->entries * bitset_words(g->width) * sizeof(uint64_t));
    l.buckets = op_section(&at, l.bucket_count * sizeof(uint32_t));
    l.marks = op_section(&at, (size_t)g->rows * g->width * sizeof(struct mark));
    l.marks_free = op_section(&at, g->rows * sizeof(uint32_t));
    l.bytes = at;
    return l;
}

size_t op_table_bytes(const struct session_growth *g)
{
    return op_lay_out(g).bytes;
}

/* What the present table holds, to one that is larger in one way or another. */
static void op_table_move(struct session *s, unsigned char *block, const struct op_layout *l, const struct session_growth *g)
{
    uint32_t words = bitset_words(s->op_width), more_words = bitset_words(g->width);
    memcpy(block, s->ops, s->op_count * sizeof *s->ops);
    for (uint32_t i = 0; i < s->op_count; i++) {
        uint64_t *set = (uint64_t *)(void *)(block + l->sets) + (size_t)i * more_words;
        memset(set, 0, more_words * sizeof *set);
        memcpy(set, s->op_sets + (size_t)i * words, words * sizeof *set);
    }
    for (uint32_t i = 0; i < s->op_live; i++) {
        memcpy((struct mark *)(void *)(block + l->marks) + (size_t)i * g->width, s->marks + (size_t)i * s->op_width,
               s->op_width * sizeof *s->marks);
    }
    memcpy(block + l->marks_free, s->marks_free, s->marks_left * sizeof *s->marks_free);
}

void op_table_use(struct session *s, void *storage, const struct session_growth *g)
{
    unsigned char *block = storage;
    struct op_layout l = op_lay_out(g);
    uint32_t before = s->op_count, rows = s->op_live;
    if (before > 0) {
        op_table_move(s, block, &l, g);
    }
    s->ops = (struct op *)(void *)block;
    s->op_sets = (uint64_t *)(void *)(block + l.sets);
    s->op_bucket = (uint32_t *)(void *)(block + l.buckets);
    s->marks = (struct mark *)(void *)(block + l.marks);
    s->marks_free = (uint32_t *)(void *)(block + l.marks_free);
    s->op_count = g->entries;
    s->buckets = l.bucket_count;
    s->op_live = g->rows;
    s->op_width = g->width;
    s->op_free = NONE;
    for (uint32_t i = 0; i < s->buckets; i++) {
        s->op_bucket[i] = NONE;
    }
    for (uint32_t i = g->entries; i-- > 0;) {
        struct op *op = &s->ops[i];
        uint32_t *head = &s->op_free;
        op->finished = s->op_sets + (size_t)i * bitset_words(g->width);
        if (i < before && op->phase != OP_FREE) {
            head = &s->op_bucket[op_hash(s, &op->name)];
        } else {
            op->phase = OP_FREE;
        }
        op->next = *head;
        *head = i;
    }
    for (uint32_t i = g->rows; i-- > rows;) {
        s->marks_free[s->marks_left++] = i;
    }
}

struct op *op_make(struct session *s, const struct op_name *name)
{
    struct op *op = op_find(s, name);
    if (op != NULL) {
        return op;
    }
    if (s->op_free == NONE || s->marks_left == 0) {
        return NULL;
    }
    uint32_t i = s->op_free;
    op = &s->ops[i];
    s->op_free = op->next;
    s->op_used++;
    uint64_t *set = op->finished;
    memset(op, 0, sizeof *op);
    op->finished = set;
    bitset_clear(set, s->view.world);
    op->name = *name;
    op->settled = UINT32_MAX;
    op->opener = NONE;
    phase_move(MACHINE_OPERATION, &op->phase, OP_GHOST);
    op->slot = NONE;
    op->marks = s->marks_free[--s->marks_left];
    memset(&s->marks[(size_t)op->marks * s->op_width], 0, sizeof(struct mark) * s->view.world);
    uint32_t b = op_hash(s, name);
    op->next = s->op_bucket[b];
    s->op_bucket[b] = i;
    return op;
}

void op_drop_marks(struct session *s, struct op *op)
{
    if (op->marks == NONE) {
        return;
    }
    op_taken(s, op);
    path_stop(s, op);
    for (uint32_t r = 0; r < s->view.world; r++) {
        if (op_mark(s, op, r)->park != 0) {
            park_drop(s, op, r);
        }
    }
    s->marks_free[s->marks_left++] = op->marks;
    op->marks = NONE;
}

void op_drop(struct session *s, struct op *op)
{
    uint32_t i = (uint32_t)(op - s->ops);
    heard_unlist(s, op);
    uint32_t *link = &s->op_bucket[op_hash(s, &op->name)];
    while (*link != i) {
        PCCL_ASSERT(*link != NONE);
        link = &s->ops[*link].next;
    }
    *link = op->next;
    op_drop_marks(s, op);
    if (op->phase == OP_DONE) {
        PCCL_ASSERT(s->records > 0);
        s->records--;
    }
    phase_move(MACHINE_OPERATION, &op->phase, OP_FREE);
    op->next = s->op_free;
    s->op_free = i;
    s->op_used--;
}

void op_clear(struct session *s)
{
    if (s->op_used == 0) {
        return;
    }
    for (uint32_t i = 0; i < s->op_count; i++) {
        if (s->ops[i].phase != OP_FREE) {
            op_drop(s, &s->ops[i]);
        }
    }
}

bool op_past(struct session *s, const struct op_name *name)
{
    struct tag *t = tag_of(s, name);
    return t != NULL && name->seq < t->next_seq && op_find(s, name) == NULL;
}

/* ---- what others open here ---- */

void op_taken(struct session *s, struct op *op)
{
    for (uint32_t r = 0; op->marks != NONE && r < s->view.world; r++) {
        struct mark *m = op_mark(s, op, r);
        if (m->named) {
            m->named = false;
            s->peers[s->view.peer[r]].named--;
        }
    }
    if (op->opener != NONE) {
        struct peer *p = &s->peers[s->view.peer[op->opener]];
        *(op->answered ? &p->answered : &p->opened) -= 1;
        op->opener = NONE;
    }
}

/* It names more than it may: its link is given up, unless a relay only passes it on. */
static void names_too_many(struct session *s, uint32_t from, uint32_t rank)
{
    if (rank == s->peers[from].rank) {
        s->wish.bad = s->peers[from].id;
    }
}

/* The operation of which somebody spoke, made if it is new. */
static struct op *open_for(struct session *s, uint32_t from, struct op *op, const struct op_name *name)
{
    op = op != NULL ? op : op_make(s, name);
    if (op == NULL) {
        s->wish.bad = s->peers[from].id; /* no memory for it: it is said again over the next link */
    } else {
        s->wish.passed = true;
    }
    return op;
}

/* Launched here, or over: whoever speaks of it opens nothing. */
static bool is_settled(struct session *s, const struct op *op, const struct op_name *name)
{
    return op == NULL ? op_past(s, name) : op->phase != OP_GHOST;
}

struct op *op_hear(struct session *s, uint32_t from, uint32_t rank, const struct op_name *name)
{
    struct op *op = op_find(s, name);
    if (is_settled(s, op, name)) {
        return op == NULL || op->phase == OP_DONE ? NULL : op;
    }
    if (op != NULL && op->opener != NONE) {
        return op; /* refused: it is whoever did so that keeps it open */
    }
    struct peer *speaker = &s->peers[s->view.peer[rank]];
    bool again = op != NULL && op_mark(s, op, rank)->named;
    if (!again && speaker->named >= MOST_NAMED) {
        names_too_many(s, from, rank);
        return NULL;
    }
    op = open_for(s, from, op, name);
    if (op != NULL && !again) {
        op_mark(s, op, rank)->named = true;
        speaker->named++;
    }
    return op;
}

bool op_refusal_of(uint8_t cause, uint64_t culprit, const struct op_clash *clash, uint64_t id)
{
    return culprit == id || (cause == CAUSE_MISMATCH && (clash->id[0] == id || clash->id[1] == id));
}

/* P10: every session answers what it hears refused, so a member may be heard before those whom it answers, and answers as much as
 * they all have refused: that is not its doing, and costs it nothing. */
struct op *op_hear_refusal(struct session *s, uint32_t from, uint32_t rank, const struct msg_refuse *m)
{
    struct op *op = op_find(s, &m->name);
    if (is_settled(s, op, &m->name)) {
        return op == NULL || op->phase == OP_DONE ? NULL : op;
    }
    if (op != NULL && op->opener != NONE) {
        return op;
    }
    if (op_refusal_of(m->cause, m->culprit, &m->clash, s->id)) {
        return NULL; /* of a call that this peer has not made: repeated, it would be the own word of this one */
    }
    struct peer *speaker = &s->peers[s->view.peer[rank]];
    bool answers = !op_refusal_of(m->cause, m->culprit, &m->clash, s->view.ids[rank]);
    if (answers && speaker->answered >= MOST_ANSWERED) {
        return NULL; /* whom it answers is heard in time, and then it says so again */
    }
    if (!answers && speaker->opened >= MOST_OPENED) {
        names_too_many(s, from, rank);
        return NULL;
    }
    op = open_for(s, from, op, &m->name);
    if (op != NULL) {
        op_taken(s, op); /* none of those who run it can go on */
        op->opener = rank;
        op->answered = answers;
        *(answers ? &speaker->answered : &speaker->opened) += 1;
    }
    return op;
}

uint32_t park_take(struct session *s)
{
    return s->park_left == 0 ? 0 : s->park_free[--s->park_left] + 1;
}

void park_give(struct session *s, uint32_t block)
{
    PCCL_ASSERT(block > 0 && s->park_left < s->park_count);
    s->park_free[s->park_left++] = block - 1;
}

unsigned char *park_at(struct session *s, uint32_t block)
{
    return s->park + (size_t)(block - 1) * s->park_pitch;
}

void park_drop(struct session *s, const struct op *op, uint32_t rank)
{
    struct mark *m = op_mark(s, op, rank);
    struct peer *p = &s->peers[s->view.peer[rank]];
    PCCL_ASSERT(p->parked > 0);
    p->parked--;
    park_give(s, m->park);
    m->park = 0;
}
