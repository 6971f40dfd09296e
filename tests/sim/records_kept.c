/* records_kept.c - what a master puts on record, read as one that starts again would read it.
 *
 * Each record is decoded when it is written, whole and to its last byte.  A view that is published must stand in a durable record with
 * the same members, and the name of a world that is created once must be on record with its first view.
 * Invariant: nothing is taken from the master but its records.
 * SPDX-License-Identifier: MIT */
#include <stdlib.h>
#include <string.h>

#include "core/mix.h"
#include "records_kept.h"
#include "wire/frame.h"
#include "wire/record.h"
#include "world/common.h"

/* A view as its record tells it. */
struct kept_view {
    uint64_t run, view, number;
    uint32_t group, members;
    bool durable;
    uint64_t ids[CLUSTER_NODES];
    uint64_t parent, culprit, decided; /* decided: a hash over its decisions, in their order */
    uint32_t decisions;
    uint8_t answers, cause;
    bool over;
};

struct records_kept {
    struct kept_view *views;
    uint32_t capacity, count;
    uint64_t ended[64]; /* runs that have ended, the last ones; a ring */
    uint32_t ends;
};

void records_clear(struct cluster *cl)
{
    struct records_kept *k = cl->master.kept;
    if (k != NULL) {
        free(k->views);
        free(k);
        cl->master.kept = NULL;
    }
}

static struct records_kept *kept_of(struct cluster *cl)
{
    if (cl->master.kept == NULL) {
        cl->master.kept = calloc(1, sizeof *cl->master.kept);
    }
    return cl->master.kept;
}

static uint64_t decision_mix(uint64_t h, const struct op_decision *d)
{
    h = mix64(mix64(h, d->name.tag), (uint64_t)d->name.space << 32 | d->name.seq);
    h = mix64(mix64(h, d->name.from), d->name.to);
    return mix64(h, (uint64_t)d->outcome << 8 | d->cause) + mix64(d->culprit, 1);
}

/* The members, decisions and seats behind the body of a view. */
static bool read_lists(struct reader *r, const struct record_view *body, struct kept_view *v)
{
    for (uint32_t i = 0; i < body->members; i++) {
        struct member_info info;
        if (!get_member_info(r, &info) || i == CLUSTER_NODES || (i > 0 && info.id <= v->ids[i - 1])) {
            return false;
        }
        v->ids[i] = info.id;
    }
    for (uint32_t i = 0; i < body->decisions; i++) {
        struct op_decision d;
        if (!get_op_decision(r, &d)) {
            return false;
        }
        v->decided = decision_mix(v->decided, &d);
    }
    for (uint32_t i = 0; i < body->seats; i++) {
        struct record_seat seat;
        if (!get_record_seat(r, &seat)) {
            return false;
        }
    }
    return true;
}

static bool read_view(struct cluster *cl, const struct record *rec, struct reader *r, bool used)
{
    struct records_kept *k = kept_of(cl);
    struct record_view body;
    struct kept_view v = {.run = rec->run, .view = rec->value, .number = rec->number, .group = rec->group};
    if (!get_record_view(r, &body) || !read_lists(r, &body, &v)) {
        return false;
    }
    v.members = body.members;
    v.decisions = body.decisions;
    v.parent = body.parent;
    v.culprit = body.culprit;
    v.answers = body.answers;
    v.cause = body.cause;
    v.over = body.over;
    if (body.once && body.seats > 0 && !used) {
        cluster_fail(cl, "the first view of '%s' is on record without its name, which is for one world only", rec->name);
    }
    for (uint32_t i = 0; i < k->ends && i < sizeof k->ended / sizeof k->ended[0]; i++) {
        if (k->ended[i] == rec->run) {
            cluster_fail(cl, "a view of '%s' is on record behind the end of its world", rec->name);
        }
    }
    k->views = cluster_grow(k->views, &k->capacity, k->count + 1, sizeof *k->views);
    k->views[k->count++] = v;
    return true;
}

static bool read_end(struct cluster *cl, const struct record *rec, struct reader *r)
{
    struct records_kept *k = kept_of(cl);
    struct record_end body;
    bool good = get_record_end(r, &body);
    for (uint32_t i = 0; good && i < body.seats; i++) {
        struct record_seat seat;
        good = get_record_seat(r, &seat);
    }
    k->ended[k->ends++ % (sizeof k->ended / sizeof k->ended[0])] = rec->run;
    return good;
}

static bool read_body(struct cluster *cl, const struct record *rec, bool used)
{
    struct reader r;
    struct record_revision revision;
    reader_init(&r, rec->body, rec->body_bytes);
    switch ((enum record_kind)rec->kind) {
    case RECORD_VIEW:
        return read_view(cl, rec, &r, used) && reader_done(&r);
    case RECORD_REVISION:
        return get_record_revision(&r, &revision) && revision.elected < rec->value && reader_done(&r);
    case RECORD_END:
        return read_end(cl, rec, &r) && reader_done(&r);
    case RECORD_USED:
        return reader_done(&r);
    }
    return false;
}

void records_put(struct cluster *cl, const void *batch, size_t size, uint64_t number)
{
    struct record rec;
    char used[BOUNDS_WORLD_NAME] = "";
    size_t at = 0;
    while (record_next(batch, size, &at, &rec)) {
        if (rec.kind == RECORD_USED) {
            memcpy(used, rec.name, sizeof used);
        }
        if (rec.number != number && common_world_of(rec.number) == common_world_of(number)) {
            cluster_fail(cl, "a record of batch %llx says that it is of %llx", (unsigned long long)number, (unsigned long long)rec.number);
        }
        if (!read_body(cl, &rec, used[0] != 0 && strcmp(used, rec.name) == 0)) {
            cluster_fail(cl, "a record of kind %u of '%s' cannot be read", rec.kind, rec.name);
        }
    }
    if (at != size) {
        cluster_fail(cl, "a batch of records ends at byte %zu of %zu", at, size);
    }
}

/* Worlds that were decided together are in one batch, each record with the place of its own world. */
static bool is_of(uint64_t number, uint64_t batch)
{
    return common_number_of(number, 0) == common_number_of(batch, 0);
}

void records_durable(struct cluster *cl, uint64_t number)
{
    struct records_kept *k = kept_of(cl);
    for (uint32_t i = 0; i < k->count; i++) {
        k->views[i].durable = k->views[i].durable || is_of(k->views[i].number, number);
    }
}

/* Of its group, those before that view, whose frames may be sent again. */
static void forget_before(struct records_kept *k, const struct kept_view *last)
{
    uint64_t run = last->run, view = last->view;
    uint32_t group = last->group, kept = 0;
    for (uint32_t i = 0; i < k->count; i++) {
        const struct kept_view *v = &k->views[i];
        if (v->run != run || v->group != group || v->view >= view) {
            k->views[kept++] = *v;
        }
    }
    k->count = kept;
}

void records_published(struct cluster *cl, const struct master_group_view *g, const uint64_t *ids)
{
    struct records_kept *k = kept_of(cl);
    for (uint32_t i = k->count; i-- > 0;) {
        const struct kept_view *v = &k->views[i];
        if (v->run != g->run || v->group != g->group || v->view != g->view) {
            continue;
        }
        bool same = v->durable && v->members == g->members && memcmp(v->ids, ids, v->members * sizeof *ids) == 0;
        if (!same) {
            cluster_fail(cl, "view %llx differs from its record, or was published before that was durable", (unsigned long long)g->view);
        }
        forget_before(k, v);
        return;
    }
    cluster_fail(cl, "view %llx is on no record", (unsigned long long)g->view);
}

/* The hash over the decisions of a VIEW, which are its last list; false: it cannot be read. */
static bool frame_decided(const struct msg_view *m, struct reader *r, uint64_t *decided)
{
    uint32_t share;
    static uint16_t parent[BOUNDS_TREE_MEMBERS];
    struct member_info info;
    struct missing_edge edge;
    struct op_decision d;
    struct op_clash clash;
    bool good = get_bytes(r, m->removed * sizeof(uint64_t)) != NULL || m->removed == 0;
    for (uint32_t i = 0; good && i < m->added; i++) {
        good = get_member_info(r, &info);
    }
    good = good && (get_bytes(r, (m->members + (size_t)m->weights) * sizeof(uint32_t)) != NULL || m->members == 0);
    for (uint32_t i = 0; good && i < m->trees; i++) {
        good = get_view_tree(r, &share, parent, m->members);
    }
    for (uint32_t i = 0; good && i < m->edges; i++) {
        good = get_missing_edge(r, &edge);
    }
    *decided = 0;
    for (uint32_t i = 0; good && i < m->decisions; i++) {
        good = get_op_decision(r, &d) && (d.cause != CAUSE_MISMATCH || get_op_clash(r, &clash));
        *decided = decision_mix(*decided, &d);
    }
    return good && reader_done(r);
}

void records_sent(struct cluster *cl, const void *bytes, size_t size)
{
    struct frame_header h;
    struct msg_view m;
    struct reader r;
    uint64_t decided;
    bool whole = frame_get(bytes, &h) && h.type == FRAME_VIEW && h.length > 0; /* else it has come in parts */
    reader_init(&r, (const unsigned char *)bytes + FRAME_HEADER_BYTES, size - FRAME_HEADER_BYTES);
    if (!whole || !get_view(&r, &m)) {
        return;
    }
    const struct records_kept *k = kept_of(cl);
    bool found = false, good = frame_decided(&m, &r, &decided);
    for (uint32_t i = 0; i < k->count && !found; i++) {
        const struct kept_view *v = &k->views[i];
        bool same = v->run == h.run && v->view == m.view;
        found = same && good && v->durable && v->members == m.members && v->decisions == m.decisions && v->decided == decided &&
                v->answers == m.answers && v->cause == m.cause && v->culprit == m.culprit && v->over == (m.over != 0) &&
                (m.parent == 0 || v->parent == m.parent);
    }
    if (!found) {
        cluster_fail(cl, "a VIEW of %llx leaves that no durable record tells", (unsigned long long)m.view);
    }
}
