/* optable.c - the operations of the installed view.
 *
 * An operation enters when it is launched here or when somebody else speaks of it (a ghost); its marks (what each member
 * said) go when it is finished, its entry when every member is known to have finished it (P5).  By then its set is full, and serves the
 * next one the other way round: so it is cleared for none.
 * Invariant: entries in use of each arena = its capacity - what its free list holds.
 * SPDX-License-Identifier: MIT */
#include "core/mix.h"
#include "core/rows.h"
#include "session/tables/marks.h"
#include "session/tables/optable.h"
#include "session/tables/park.h"
#include "session/tables/peers.h"
#include "session/tables/storage.h"
#include "session/tables/tags.h"
#include "session/tables/transitions.h"

static uint32_t op_hash(const struct session *s, const struct op_name *name)
{
    uint64_t h = mix64(name->tag, name->seq | (uint64_t)name->space << 32);
    h = name->to != 0 ? mix64(mix64(h, name->from), name->to) : h;
    return (uint32_t)h & (s->ops.buckets - 1);
}

struct op *op_find(struct session *s, const struct op_name *name)
{
    for (uint32_t i = s->ops.bucket[op_hash(s, name)]; i != NONE; i = s->ops.at[i].next) {
        if (op_name_equal(&s->ops.at[i].name, name)) {
            return &s->ops.at[i];
        }
    }
    return NULL;
}

/* ---- the table of operations, in one block ---- */

struct op_layout {
    size_t sets, buckets, bytes;
    uint32_t bucket_count;
};

static size_t op_section(size_t *at, size_t bytes)
{
    size_t from = *at;
    *at = storage_lines(from + bytes);
    return from;
}

static struct op_layout op_lay_out(const struct session_growth *g)
{
    struct op_layout l = {.bucket_count = rows_for(1, g->entries)};
    size_t at = 0;
    (void)op_section(&at, g->entries * sizeof(struct op));
    l.sets = op_section(&at, (size_t)g->entries * bitset_words(g->width) * sizeof(uint64_t));
    l.buckets = op_section(&at, l.bucket_count * sizeof(uint32_t));
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
    uint32_t words = bitset_words(s->ops.width), more_words = bitset_words(g->width);
    memcpy(block, s->ops.at, s->ops.count * sizeof *s->ops.at);
    for (uint32_t i = 0; i < s->ops.count; i++) {
        uint64_t *set = (uint64_t *)(void *)(block + l->sets) + (size_t)i * more_words;
        memcpy(set, s->ops.sets + (size_t)i * words, words * sizeof *set);
    }
}

void op_table_use(struct session *s, void *storage, const struct session_growth *g)
{
    unsigned char *block = storage;
    struct op_layout l = op_lay_out(g);
    uint32_t before = s->ops.count, words = bitset_words(g->width);
    memset(block + l.sets, 0, (size_t)g->entries * words * sizeof(uint64_t));
    if (before > 0) {
        op_table_move(s, block, &l, g);
    }
    s->ops.at = (struct op *)(void *)block;
    s->ops.sets = (uint64_t *)(void *)(block + l.sets);
    s->ops.bucket = (uint32_t *)(void *)(block + l.buckets);
    s->ops.count = g->entries;
    s->ops.buckets = l.bucket_count;
    s->ops.width = g->width;
    s->ops.free = NONE;
    chains_clear(s->ops.bucket, s->ops.buckets);
    for (uint32_t i = g->entries; i-- > 0;) {
        struct op *op = &s->ops.at[i];
        uint32_t *head = &s->ops.free;
        op->finished = s->ops.sets + (size_t)i * words;
        op->turned = i < before && op->turned;
        if (i < before && op->phase != OP_FREE) {
            head = &s->ops.bucket[op_hash(s, &op->name)];
        } else {
            op->phase = OP_FREE;
        }
        op->next = *head;
        *head = i;
    }
}

struct op *op_make(struct session *s, const struct op_name *name)
{
    struct op *op = op_find(s, name);
    if (op != NULL) {
        return op;
    }
    if (s->ops.free == NONE || !marks_begin(s, &s->ops.at[s->ops.free])) {
        return NULL;
    }
    uint32_t i = s->ops.free;
    op = &s->ops.at[i];
    s->ops.free = op->next;
    s->ops.used++;
    *op = (struct op){.finished = op->finished, .turned = op->turned, .marks = op->marks};
    op->name = *name;
    op->class = &s->classes[name->space];
    op->settled = UINT32_MAX;
    op->opener = NONE;
    phase_move(MACHINE_OPERATION, &op->phase, OP_GHOST);
    op->slot = NONE;
    uint32_t b = op_hash(s, name);
    op->next = s->ops.bucket[b];
    s->ops.bucket[b] = i;
    return op;
}

void op_drop_marks(struct session *s, struct op *op)
{
    if (op->marks == NONE) {
        return;
    }
    op_taken(s, op);
    op->class->stop(s, op);
    for (uint32_t i = op->marks; i != NONE; i = s->marks.at[i].after) {
        if (s->marks.at[i].park != 0) {
            park_drop(s, op, s->marks.at[i].rank);
        }
    }
    marks_drop(s, op);
}

/* ---- who has finished it ---- */

bool op_has_finished(const struct session *s, const struct op *op, uint32_t rank)
{
    PCCL_ASSERT(rank < s->view.world);
    return bitset_has(op->finished, rank) != op->turned;
}

bool op_finished(struct session *s, struct op *op, uint32_t rank)
{
    if (!op_has_finished(s, op, rank)) {
        (op->turned ? bitset_remove : bitset_add)(op->finished, rank);
        op->finished_count++;
    }
    return op->finished_count == s->view.world;
}

/* Not all have finished it when its view ends, or when it was refused. */
static void forget_finished(struct session *s, struct op *op)
{
    if (op->finished_count == s->view.world) {
        op->turned = !op->turned;
    } else if (op->finished_count > 0) {
        memset(op->finished, op->turned ? 0xFF : 0, bitset_words(s->view.world) * sizeof *op->finished);
    }
    op->finished_count = 0;
}

bool op_untaken(const struct op *op)
{
    return op->phase == OP_DONE && op->refused != 0 && !op->class->two;
}

void op_record(struct session *s, struct op *op)
{
    phase_move(MACHINE_OPERATION, &op->phase, OP_DONE);
    s->ops.records++;
    s->ops.untaken += op_untaken(op);
}

void op_drop(struct session *s, struct op *op)
{
    uint32_t i = (uint32_t)(op - s->ops.at), *link = &s->ops.bucket[op_hash(s, &op->name)];
    while (*link != i) {
        PCCL_ASSERT(*link != NONE);
        link = &s->ops.at[*link].next;
    }
    *link = op->next;
    op_drop_marks(s, op);
    forget_finished(s, op);
    if (op->phase == OP_DONE) {
        PCCL_ASSERT(s->ops.records > 0);
        s->ops.records--;
    }
    if (op_untaken(op)) {
        PCCL_ASSERT(s->ops.untaken > 0);
        s->ops.untaken--;
        tag_taken(s, tag_of(s, &op->name));
    }
    phase_move(MACHINE_OPERATION, &op->phase, OP_FREE);
    op->next = s->ops.free;
    s->ops.free = i;
    s->ops.used--;
}

void op_clear(struct session *s)
{
    for (uint32_t i = 0; i < s->ops.count; i++) {
        if (s->ops.at[i].phase != OP_FREE) {
            op_drop(s, &s->ops.at[i]);
        }
        s->ops.at[i].turned = false;
    }
    memset(s->ops.sets, 0, (size_t)s->ops.count * bitset_words(s->ops.width) * sizeof *s->ops.sets);
}

bool op_past(struct session *s, const struct op_name *name)
{
    struct tag *t = tag_of(s, name);
    return t != NULL && name->seq < t->next_seq && op_find(s, name) == NULL;
}

/* ---- what others open here ---- */

void op_taken(struct session *s, struct op *op)
{
    for (uint32_t i = op->marks; i != NONE; i = s->marks.at[i].after) {
        struct mark *m = &s->marks.at[i];
        if (m->named) {
            m->named = false;
            s->peers.at[s->view.peer[m->rank]].named--;
        }
    }
    if (op->opener != NONE) {
        struct peer *p = &s->peers.at[s->view.peer[op->opener]];
        *(op->answered ? &p->answered : &p->opened) -= 1;
        op->opener = NONE;
    }
}

/* It names more than it may: its link is given up, unless a relay only passes it on. */
static void names_too_many(struct session *s, uint32_t from, uint32_t rank)
{
    if (rank == s->peers.at[from].rank) {
        peers_bad(s, s->peers.at[from].id);
    }
}

/* The operation of which a member spoke over the link of peer `from`, with room for its words; made if it is new.  Null: there is no
 * memory, so that all is said again over the next link. */
static struct op *marked(struct session *s, uint32_t from, uint32_t rank, struct op *op, const struct op_name *name)
{
    bool fresh = op == NULL;
    op = fresh ? op_make(s, name) : op;
    if (op != NULL && mark_of(s, op, rank) != NULL) {
        return op;
    }
    if (op != NULL && fresh) {
        op_drop(s, op);
    }
    peers_bad(s, s->peers.at[from].id); /* as peers_unheard */
    return NULL;
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
        return op == NULL || op->phase == OP_DONE ? NULL : marked(s, from, rank, op, name);
    }
    if (op != NULL && op->opener != NONE) {
        return marked(s, from, rank, op, name); /* refused: it is whoever did so that keeps it open */
    }
    struct peer *speaker = &s->peers.at[s->view.peer[rank]];
    bool again = op != NULL && op_mark(s, op, rank)->named;
    if (!again && speaker->named >= MOST_NAMED) {
        names_too_many(s, from, rank);
        return NULL;
    }
    op = marked(s, from, rank, op, name);
    s->ops.passed = s->ops.passed || op != NULL;
    if (op != NULL && !again) {
        mark_of(s, op, rank)->named = true;
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
        return op == NULL || op->phase == OP_DONE ? NULL : marked(s, from, rank, op, &m->name);
    }
    if (op != NULL && op->opener != NONE) {
        return marked(s, from, rank, op, &m->name);
    }
    if (op_refusal_of(m->cause, m->culprit, &m->clash, s->id)) {
        return NULL; /* of a call that this peer has not made: repeated, it would be the own word of this one */
    }
    struct peer *speaker = &s->peers.at[s->view.peer[rank]];
    bool answers = !op_refusal_of(m->cause, m->culprit, &m->clash, s->view.ids[rank]);
    if (answers && speaker->answered >= MOST_ANSWERED) {
        return NULL; /* whom it answers is heard in time, and then it says so again */
    }
    if (!answers && speaker->opened >= MOST_OPENED) {
        names_too_many(s, from, rank);
        return NULL;
    }
    op = marked(s, from, rank, op, &m->name);
    s->ops.passed = s->ops.passed || op != NULL;
    if (op != NULL) {
        op_taken(s, op); /* none of those who run it can go on */
        op->opener = rank;
        op->answered = answers;
        *(answers ? &speaker->answered : &speaker->opened) += 1;
    }
    return op;
}

bool op_take_passed(struct session *s)
{
    bool passed = s->ops.passed;
    s->ops.passed = false;
    return passed;
}

void op_table_forget(struct session *s)
{
    s->ops.count = 0;
}
