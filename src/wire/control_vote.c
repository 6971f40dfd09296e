/* control_vote.c - messages of votes: asking, answering, electing a shared state, measuring edges.
 *
 * Put and get of one message stand together and read like its schema: the same fields in the same
 * order.
 * SPDX-License-Identifier: MIT */
#include "wire/control.h"
#include "wire/parts.h"

void put_vote(struct writer *w, const struct msg_vote *m)
{
    put_u32(w, m->number);
    put_u8(w, m->kind);
    if (m->kind == VOTE_UPDATE) {
        put_u32(w, m->idle);
        put_u8(w, m->first);
        put_u8(w, m->passed);
    }
    if (m->kind == VOTE_SYNC) {
        put_u8(w, m->strategy);
        put_u64(w, m->revision);
        put_u64(w, m->key_digest);
        put_u64(w, m->content_digest);
        put_u8(w, m->has_inequality);
    }
}

bool get_vote(struct reader *r, struct msg_vote *m)
{
    enum { LAST_STRATEGY = 2 }; /* pcclSharedStateSyncStrategy_t */
    *m = (struct msg_vote){0};
    m->number = get_u32(r);
    m->kind = parts_get_u8(r, VOTE_UPDATE, VOTE_SYNC);
    if (m->kind == VOTE_UPDATE) {
        m->idle = get_u32(r);
        m->first = parts_get_u8(r, 0, 1);
        m->passed = parts_get_u8(r, 0, m->first);
    }
    if (m->kind == VOTE_SYNC) {
        m->strategy = parts_get_u8(r, 0, LAST_STRATEGY);
        m->revision = get_u64(r);
        m->key_digest = get_u64(r);
        m->content_digest = get_u64(r);
        m->has_inequality = parts_get_u8(r, 0, 1);
    }
    return reader_done(r) && m->revision != UINT64_MAX; /* there is none after it */
}

void put_answer(struct writer *w, const struct msg_answer *m)
{
    put_u32(w, m->number);
    put_u8(w, m->kind);
    put_u8(w, m->result);
    put_u8(w, m->alone);
    put_u32(w, m->round);
    put_u64(w, m->view);
    put_u64(w, m->value);
    parts_put_sizes(w, &m->sizes);
    put_text(w, m->text);
}

bool get_answer(struct reader *r, struct msg_answer *m)
{
    m->number = get_u32(r);
    m->kind = parts_get_u8(r, VOTE_UPDATE, VOTE_SYNC);
    m->result = parts_get_u8(r, ANSWER_OK, ANSWER_REVISION);
    m->alone = parts_get_u8(r, 0, m->kind == VOTE_UPDATE);
    m->round = get_u32(r);
    m->view = get_u64(r);
    m->value = get_u64(r);
    parts_get_sizes(r, &m->sizes);
    get_text(r, m->text, sizeof m->text);
    return reader_done(r);
}

void put_elected(struct writer *w, const struct msg_elected *m)
{
    put_u32(w, m->number);
    put_u32(w, m->round);
    put_u8(w, m->role);
    put_u64(w, m->revision);
    put_u64(w, m->key_digest);
    put_u64(w, m->content_digest);
    put_u8(w, m->whole);
    put_u64(w, m->whole_source);
    put_u32(w, m->holders);
    put_u32(w, m->receivers);
}

bool get_elected(struct reader *r, struct msg_elected *m)
{
    m->number = get_u32(r);
    m->round = get_u32(r);
    m->role = parts_get_u8(r, SYNC_HOLDER, SYNC_RECEIVER);
    m->revision = get_u64(r);
    m->key_digest = get_u64(r);
    m->content_digest = get_u64(r);
    m->whole = parts_get_u8(r, 0, 1);
    m->whole_source = get_u64(r);
    m->holders = get_count(r, PARTS_ID_BYTES, PARTS_MEMBERS);
    m->receivers = get_count(r, PARTS_ID_BYTES, PARTS_MEMBERS);
    /* Nobody is both: together they are members, and together they must be in what is left. */
    uint32_t ids = m->holders + m->receivers;
    if (ids > PARTS_MEMBERS || ids > r->left / PARTS_ID_BYTES) {
        r->bad = true;
    }
    return !r->bad;
}

void put_staged(struct writer *w, const struct msg_staged *m)
{
    put_u32(w, m->number);
    put_u32(w, m->round);
    put_u8(w, m->status);
    put_u64(w, m->liar);
    if (m->status == STAGED_KEYS) {
        put_text(w, m->text);
    }
}

bool get_staged(struct reader *r, struct msg_staged *m)
{
    m->number = get_u32(r);
    m->round = get_u32(r);
    m->status = parts_get_u8(r, STAGED_OK, STAGED_KEYS);
    m->liar = get_u64(r);
    m->text[0] = '\0';
    if (m->status == STAGED_KEYS) {
        get_text(r, m->text, sizeof m->text);
    }
    return reader_done(r);
}

void put_probe(struct writer *w, const struct msg_probe *m)
{
    put_u32(w, m->round);
    put_u32(w, m->duration_ms);
    put_u64(w, m->to);
}

bool get_probe(struct reader *r, struct msg_probe *m)
{
    m->round = get_u32(r);
    m->duration_ms = get_u32(r);
    m->to = get_u64(r);
    return reader_done(r);
}

void put_measured(struct writer *w, const struct msg_measured *m)
{
    put_u32(w, m->round);
    put_u64(w, m->to);
    put_u64(w, m->bits_per_second);
    put_u32(w, m->rtt_us);
    put_u32(w, m->loss_ppm);
}

bool get_measured(struct reader *r, struct msg_measured *m)
{
    m->round = get_u32(r);
    m->to = get_u64(r);
    m->bits_per_second = get_u64(r);
    m->rtt_us = get_u32(r);
    m->loss_ppm = get_u32(r);
    return reader_done(r);
}

void put_took(struct writer *w, const struct msg_took *m)
{
    put_u8(w, m->kind);
    put_u16(w, m->permille);
    put_u64(w, m->bytes);
    put_u64(w, m->took_us);
}

bool get_took(struct reader *r, struct msg_took *m)
{
    m->kind = parts_get_u8(r, 0, TOOK_KINDS - 1);
    m->permille = parts_get_u16(r, 1, UINT16_MAX);
    m->bytes = get_u64(r);
    m->took_us = get_u64(r);
    return reader_done(r);
}
