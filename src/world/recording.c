/* recording.c - what a world puts on record: all that a master needs to go on with it.
 *
 * Ranks are not on record: members are counted by (key, id), and both are.  The name of a world that is created once is on record with its
 * first view (W12).
 * Invariant: nothing is published before its record is durable (M4).
 * SPDX-License-Identifier: MIT */
#include <string.h>

#include "wire/record.h"
#include "world/common.h"
#include "world/formation.h"
#include "world/member_entry.h"
#include "world/recording.h"
#include "world/view_read.h"

static struct record head_of(const struct world *w, enum record_kind kind, uint64_t number, uint32_t left)
{
    struct record head = {.kind = (uint8_t)kind, .left = left, .run = w->run, .epoch = w->common->config.epoch, .number = number};
    memcpy(head.name, w->name, sizeof head.name);
    return head;
}

/* Of a world of a given size. */
static uint32_t seats_of(const struct world *w)
{
    return w->form.phase == FORM_ELASTIC ? 0 : w->form.size;
}

static void put_seats(const struct world *w, struct writer *to, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        const struct seat *s = &w->form.seats[i];
        put_record_seat(to, &(struct record_seat){.attempt = s->attempt, .id = s->id});
    }
}

void recording_view(struct world *w, struct group *g, struct writer *to, uint64_t number, uint32_t left)
{
    const struct view_record *v = view_next(g);
    bool first = v->parent == 0;
    struct record head = head_of(w, RECORD_VIEW, number, left);
    struct record_view body = {.parent = v->parent, .answers = v->answers, .over = v->over, .cause = v->cause, .culprit = v->culprit,
                               .revision = view_next_revision(g), .members = v->members, .decisions = v->decisions,
                               .seats = first ? seats_of(w) : 0, .loss = w->form.loss, .once = w->form.once};
    memcpy(body.text, v->text, sizeof body.text);
    head.group = g->label;
    head.value = v->view;
    size_t at = record_begin(to, &head);
    put_record_view(to, &body);
    for (uint32_t i = 0; i < v->members; i++) {
        member_put(w, to, v->ids[i]);
    }
    for (uint32_t i = 0; i < v->decisions; i++) {
        put_op_decision(to, &v->decision[i]);
    }
    put_seats(w, to, body.seats);
    record_end(to, at);
}

void recording_used(struct world *w, struct writer *to, uint64_t number, uint32_t left)
{
    struct record head = head_of(w, RECORD_USED, number, left);
    head.value = w->common->used_recorded++ % w->common->config.max_used_names;
    record_end(to, record_begin(to, &head));
}

void recording_revision(struct world *w, struct group *g, struct writer *to, uint64_t number)
{
    struct record head = head_of(w, RECORD_REVISION, number, 0);
    head.group = g->label;
    head.value = view_next_revision(g);
    size_t at = record_begin(to, &head);
    put_record_revision(to, &(struct record_revision){.elected = g->sync.revision, .round = g->sync.round});
    record_end(to, at);
}

void recording_end(struct world *w, struct writer *to, uint64_t number)
{
    struct record head = head_of(w, RECORD_END, number, 0);
    size_t at = record_begin(to, &head);
    put_record_end(to, &(struct record_end){.seats = seats_of(w)});
    put_seats(w, to, seats_of(w));
    record_end(to, at);
}
