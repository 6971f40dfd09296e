/* wire_p2p_cases.c - the messages between peers as cases (see wire_cases.h).
 * SPDX-License-Identifier: MIT */
#include <stdio.h>
#include <string.h>

#include "tests/unit/wire_cases.h"

/* A message whose payload follows: kept beside it. */
#define PAYLOAD(name)                                                                                                  \
    struct whole_##name {                                                                                              \
        struct msg_##name m;                                                                                           \
        unsigned char payload[WIRE_CASE_PAYLOAD];                                                                      \
    };                                                                                                                 \
    static void name##_put(struct writer *w, const void *at)                                                           \
    {                                                                                                                  \
        const struct whole_##name *x = at;                                                                             \
        put_##name(w, &x->m);                                                                                          \
        put_bytes(w, x->payload, x->m.bytes);                                                                          \
    }                                                                                                                  \
    static bool name##_get(struct reader *r, void *at)                                                                 \
    {                                                                                                                  \
        struct whole_##name *x = at;                                                                                   \
        const void *payload;                                                                                           \
        bool good = get_##name(r, &x->m, &payload) && x->m.bytes <= WIRE_CASE_PAYLOAD;                                 \
        if (good) {                                                                                                    \
            memcpy(x->payload, payload, x->m.bytes);                                                                   \
        }                                                                                                              \
        return good;                                                                                                   \
    }

static void fill_params(struct rng *rng, struct op_params *p)
{
    p->kind = (uint8_t)rng_below(rng, 6);
    p->root = p->kind == 0 ? 0 : rng_next(rng);
    p->layout = p->kind == 0 ? 0 : rng_below(rng, 2) == 0 ? LAYOUT_PAIRS : rng_next(rng);
    p->count = rng_next(rng);
    p->dtype = (uint8_t)rng_below(rng, 12);
    p->op = (uint8_t)rng_below(rng, 5);
    p->quant = (uint8_t)rng_below(rng, 3);
    p->quant_dtype = (uint8_t)rng_below(rng, 12);
    p->algorithm = (uint8_t)rng_below(rng, 8);
}

/* By a relay: from one of two to the other. */
static void fill_part_name(struct rng *rng, uint8_t space, struct op_name *n)
{
    n->space = space;
    n->tag = space == SPACE_PART ? 0 : rng_next(rng);
    n->seq = (uint32_t)rng_next(rng);
    n->from = 1 + rng_below(rng, 1000);
    n->to = 1001 + rng_below(rng, 1000);
}

static uint32_t fill_payload(struct rng *rng, unsigned char *out)
{
    uint32_t bytes = (uint32_t)rng_below(rng, WIRE_CASE_PAYLOAD + 1);
    wire_rnd_bytes(rng, out, bytes);
    return bytes;
}

static void fill_fabric(struct rng *rng, struct fabric_end *end)
{
    end->bytes = (uint8_t)(rng_below(rng, 2) * rng_below(rng, FABRIC_ADDRESS_BYTES + 1));
    if (end->bytes > 0) {
        end->provider = rng_next(rng);
        end->key = rng_next(rng);
        wire_rnd_bytes(rng, end->address, end->bytes);
    }
}

static void hello_fill(void *at, struct rng *rng)
{
    struct msg_hello *m = at;
    m->kind = (uint8_t)(1 + rng_below(rng, LINK_STRIPE));
    m->lanes = (uint16_t)(1 + rng_below(rng, BOUNDS_LANES));
    m->lane = (uint16_t)rng_below(rng, m->lanes);
    m->group = (uint32_t)rng_next(rng);
    m->from = rng_next(rng);
    m->to = rng_next(rng);
    m->view = rng_next(rng);
    m->number = rng_next(rng);
    m->share = (uint8_t)rng_below(rng, SHARE_BROKE + 1);
    m->net = (uint8_t)rng_below(rng, NET_OTHER + 1);
    m->token = rng_next(rng);
    m->socket = (uint32_t)rng_next(rng);
    fill_fabric(rng, &m->fabric);
}
WIRE_PLAIN(hello)

static void hello_ack_fill(void *at, struct rng *rng)
{
    struct msg_hello_ack *m = at;
    m->verdict = (uint8_t)(1 + rng_below(rng, 3));
    m->view = rng_next(rng);
    m->host_name[0] = rng_next(rng);
    m->host_name[1] = rng_next(rng);
    m->share = (uint8_t)rng_below(rng, SHARE_BROKE + 1);
    m->net = (uint8_t)rng_below(rng, NET_OTHER + 1);
    fill_fabric(rng, &m->fabric);
}
WIRE_PLAIN(hello_ack)

static void ready_fill(void *at, struct rng *rng)
{
    struct msg_ready *m = at;
    wire_rnd_name(rng, &m->name);
    fill_params(rng, &m->params);
    m->window = (uint32_t)rng_next(rng);
    m->bundle = rng_next(rng);
    m->launch = 1 + (rng_next(rng) >> 1);
    m->expects = m->params.layout == LAYOUT_PAIRS ? rng_next(rng) : 0;
    if (m->params.layout == LAYOUT_PAIRS && rng_below(rng, 2) == 0) {
        fill_part_name(rng, SPACE_PART, &m->name);
    }
}
WIRE_PLAIN(ready)

PAYLOAD(eager)
static void eager_fill(void *at, struct rng *rng)
{
    struct whole_eager *x = at;
    wire_rnd_name(rng, &x->m.name);
    fill_params(rng, &x->m.params);
    x->m.bytes = fill_payload(rng, x->payload);
}

static void path_fill(void *at, struct rng *rng)
{
    struct msg_path *m = at;
    m->with = rng_next(rng);
    m->up = (uint8_t)rng_below(rng, 2);
}
WIRE_PLAIN(path)

PAYLOAD(part)
static void part_fill(void *at, struct rng *rng)
{
    struct whole_part *x = at;
    fill_part_name(rng, (uint8_t)(SPACE_PAIR + rng_below(rng, 3)), &x->m.name);
    x->m.offset = rng_next(rng);
    x->m.bytes = 1 + (uint32_t)rng_below(rng, WIRE_CASE_PAYLOAD);
    wire_rnd_bytes(rng, x->payload, x->m.bytes);
}

static void got_fill(void *at, struct rng *rng)
{
    struct msg_got *m = at;
    fill_part_name(rng, (uint8_t)(SPACE_PAIR + rng_below(rng, 3)), &m->name);
    m->offset = rng_next(rng);
    m->anew = (uint8_t)rng_below(rng, 2);
}
WIRE_PLAIN(got)

static void want_fill(void *at, struct rng *rng)
{
    struct msg_want *m = at;
    wire_rnd_name(rng, &m->name);
}
WIRE_PLAIN(want)

static void hold_fill(void *at, struct rng *rng)
{
    struct msg_hold *m = at;
    wire_rnd_name(rng, &m->name);
    m->origin = rng_next(rng);
    m->round = (uint8_t)rng_next(rng);
    m->params = rng_next(rng);
    m->digest = rng_next(rng);
}
WIRE_PLAIN(hold)

static void refuse_fill(void *at, struct rng *rng)
{
    struct msg_refuse *m = at;
    wire_rnd_name(rng, &m->name);
    m->origin = rng_next(rng);
    m->cause = (uint8_t)(CAUSE_OLD_VIEW - rng_below(rng, CAUSE_OLD_VIEW));
    m->culprit = rng_next(rng);
    m->settled = (uint32_t)rng_next(rng);
    if (m->cause == CAUSE_MISMATCH && m->culprit > 1) {
        m->clash = (struct op_clash){.id = {1, m->culprit}};
        fill_params(rng, &m->clash.params[0]);
        fill_params(rng, &m->clash.params[1]);
    }
}
WIRE_PLAIN(refuse)

struct whole_finished {
    struct msg_finished m;
    struct op_name names[WIRE_CASE_ITEMS];
};
static void finished_fill(void *at, struct rng *rng)
{
    struct whole_finished *f = at;
    f->m.origin = rng_next(rng);
    f->m.names = wire_rnd_items(rng);
    for (uint32_t i = 0; i < f->m.names; i++) {
        wire_rnd_name(rng, &f->names[i]);
    }
}
static void finished_put(struct writer *w, const void *at)
{
    const struct whole_finished *f = at;
    put_finished(w, &f->m);
    for (uint32_t i = 0; i < f->m.names; i++) {
        put_op_name(w, &f->names[i]);
    }
}
static bool finished_get(struct reader *r, void *at)
{
    struct whole_finished *f = at;
    bool good = get_finished(r, &f->m) && f->m.names <= WIRE_CASE_ITEMS;
    for (uint32_t i = 0; good && i < f->m.names; i++) {
        good = get_op_name(r, &f->names[i]);
    }
    return good && reader_done(r);
}

static void data_fill(void *at, struct rng *rng)
{
    struct msg_data *m = at;
    wire_rnd_name(rng, &m->name);
    m->frame = (uint32_t)rng_next(rng);
    m->phase = (uint8_t)rng_below(rng, 2);
}
static void data_put(struct writer *w, const void *m)
{
    put_data(w, m);
}
static bool data_get(struct reader *r, void *m)
{
    return get_data(r, m) && reader_done(r); /* a frame without payload */
}

static void credit_fill(void *at, struct rng *rng)
{
    struct msg_credit *m = at;
    wire_rnd_name(rng, &m->name);
    m->frames = (uint32_t)rng_next(rng);
    m->ready = (uint32_t)rng_next(rng);
    m->moved_ms = (uint32_t)rng_next(rng);
    m->moved_far = (uint16_t)rng_next(rng);
}
WIRE_PLAIN(credit)

static void manifest_want_fill(void *at, struct rng *rng)
{
    struct msg_manifest_want *m = at;
    m->number = (uint32_t)rng_next(rng);
    m->round = (uint32_t)rng_next(rng);
}
WIRE_PLAIN(manifest_want)

PAYLOAD(manifest)
static void manifest_fill(void *at, struct rng *rng)
{
    struct whole_manifest *x = at;
    x->m.number = (uint32_t)rng_next(rng);
    x->m.round = (uint32_t)rng_next(rng);
    x->m.bytes = fill_payload(rng, x->payload);
}

static void leaf_want_fill(void *at, struct rng *rng)
{
    struct msg_leaf_want *m = at;
    m->number = (uint32_t)rng_next(rng);
    m->round = (uint32_t)rng_next(rng);
    m->entry = (uint32_t)rng_next(rng);
    m->leaf = rng_next(rng);
}
WIRE_PLAIN(leaf_want)

PAYLOAD(leaf)
static void leaf_fill(void *at, struct rng *rng)
{
    struct whole_leaf *x = at;
    x->m.number = (uint32_t)rng_next(rng);
    x->m.round = (uint32_t)rng_next(rng);
    x->m.entry = (uint32_t)rng_next(rng);
    x->m.leaf = rng_next(rng);
    x->m.bytes = fill_payload(rng, x->payload);
}

static void entries_want_fill(void *at, struct rng *rng)
{
    struct msg_entries_want *m = at;
    m->number = (uint32_t)rng_next(rng);
    m->round = (uint32_t)rng_next(rng);
    m->first = (uint32_t)rng_next(rng);
}
WIRE_PLAIN(entries_want)

struct whole_entries {
    struct msg_entries m;
    struct entry_key keys[WIRE_CASE_ITEMS];
};
static void entries_fill(void *at, struct rng *rng)
{
    struct whole_entries *x = at;
    x->m.number = (uint32_t)rng_next(rng);
    x->m.round = (uint32_t)rng_next(rng);
    x->m.first = (uint32_t)rng_next(rng);
    x->m.total = (uint32_t)rng_next(rng);
    x->m.entries = wire_rnd_items(rng);
    for (uint32_t i = 0; i < x->m.entries; i++) {
        struct entry_key *k = &x->keys[i];
        k->name_hash = rng_next(rng);
        k->count = rng_next(rng);
        k->dtype = (uint8_t)rng_below(rng, 12);
        k->inequality = (uint8_t)rng_below(rng, 2);
        snprintf(k->name, sizeof k->name, "w%u", (unsigned)rng_below(rng, 1000));
    }
}
static void entries_put(struct writer *w, const void *at)
{
    const struct whole_entries *x = at;
    put_entries(w, &x->m);
    for (uint32_t i = 0; i < x->m.entries; i++) {
        put_entry_key(w, &x->keys[i]);
    }
}
static bool entries_get(struct reader *r, void *at)
{
    struct whole_entries *x = at;
    bool good = get_entries(r, &x->m) && x->m.entries <= WIRE_CASE_ITEMS;
    for (uint32_t i = 0; good && i < x->m.entries; i++) {
        good = get_entry_key(r, &x->keys[i]);
    }
    return good && reader_done(r);
}

const struct wire_case wire_p2p_cases[] = {
    WIRE_ROW(hello, FRAME_HELLO, struct msg_hello),
    WIRE_ROW(hello_ack, FRAME_HELLO_ACK, struct msg_hello_ack),
    WIRE_ROW(ready, FRAME_READY, struct msg_ready),
    WIRE_ROW(eager, FRAME_EAGER, struct whole_eager),
    WIRE_ROW(want, FRAME_WANT, struct msg_want),
    WIRE_ROW(path, FRAME_PATH, struct msg_path),
    WIRE_ROW(part, FRAME_PART, struct whole_part),
    WIRE_ROW(got, FRAME_GOT, struct msg_got),
    WIRE_ROW(hold, FRAME_HOLD, struct msg_hold),
    WIRE_ROW(refuse, FRAME_REFUSE, struct msg_refuse),
    WIRE_ROW(finished, FRAME_FINISHED, struct whole_finished),
    WIRE_ROW(data, FRAME_DATA, struct msg_data),
    WIRE_ROW(credit, FRAME_CREDIT, struct msg_credit),
    WIRE_ROW(manifest_want, FRAME_MANIFEST_WANT, struct msg_manifest_want),
    WIRE_ROW(manifest, FRAME_MANIFEST, struct whole_manifest),
    WIRE_ROW(leaf_want, FRAME_LEAF_WANT, struct msg_leaf_want),
    WIRE_ROW(leaf, FRAME_LEAF, struct whole_leaf),
    WIRE_ROW(entries_want, FRAME_ENTRIES_WANT, struct msg_entries_want),
    WIRE_ROW(entries, FRAME_ENTRIES, struct whole_entries),
};
const size_t wire_p2p_case_count = sizeof wire_p2p_cases / sizeof wire_p2p_cases[0];
