/* control_member.c - messages by which a peer and the master know, watch and dismiss each other.
 *
 * Put and get of one message stand together and read like its schema: the same fields in the same
 * order.
 * SPDX-License-Identifier: MIT */
#include <string.h>

#include "wire/control.h"
#include "wire/parts.h"

void put_world_name(struct writer *w, const char *name)
{
    size_t size = strnlen(name, BOUNDS_WORLD_NAME);
    w->bad = w->bad || size == BOUNDS_WORLD_NAME;
    put_u8(w, (uint8_t)size);
    put_bytes(w, name, size);
}

void get_world_name(struct reader *r, char name[BOUNDS_WORLD_NAME])
{
    uint8_t size = parts_get_u8(r, 0, BOUNDS_WORLD_NAME - 1);
    const unsigned char *at = get_bytes(r, size);
    memset(name, 0, BOUNDS_WORLD_NAME);
    bool derived = at != NULL && size == 1 + WORLD_DERIVED_DIGITS && at[0] == WORLD_DERIVED;
    for (uint8_t i = 0; at != NULL && i < size; i++) {
        bool digit = (at[i] >= '0' && at[i] <= '9') || (at[i] >= 'a' && at[i] <= 'f');
        r->bad = r->bad || (derived ? i > 0 && !digit : at[i] < 0x20 || at[i] == 0x7F);
        name[i] = r->bad ? '\0' : (char)at[i];
    }
}

static void put_claim_part(struct writer *w, const struct claim *c)
{
    put_u32(w, c->size);
    put_u32(w, c->rank);
    put_u64(w, c->attempt);
    put_u32(w, c->deadline_ms);
    put_u8(w, c->loss);
    put_u8(w, c->once);
    put_u8(w, c->join);
}

/* Bad unless it names a rank of the size and an attempt, or to join a rank alone, or none of all that. */
static void get_claim_part(struct reader *r, struct claim *c)
{
    c->size = parts_get_u32(r, 0, BOUNDS_MEMBERS);
    c->rank = get_u32(r);
    c->attempt = get_u64(r);
    c->deadline_ms = get_u32(r);
    c->loss = parts_get_u8(r, LOSS_END, LOSS_SHRINK);
    c->once = parts_get_u8(r, 0, 1);
    c->join = parts_get_u8(r, 0, 1);
    bool bare = c->attempt == 0 && c->deadline_ms == 0 && c->loss == 0 && c->once == 0, ranked = c->rank < c->size;
    bool good = c->size == 0     ? bare && c->rank == 0 && c->join == 0
                : c->join != 0 ? bare && (ranked || c->rank == CLAIM_ANY_RANK)
                               : c->attempt != 0 && ranked;
    r->bad = r->bad || !good;
}

void put_register(struct writer *w, const struct msg_register *m)
{
    put_u64(w, m->run);
    put_u64(w, m->id);
    put_u32(w, m->group);
    put_u16(w, m->lanes);
    put_u64(w, m->view);
    put_u64(w, m->frozen);
    put_u32(w, m->answered);
    put_u8(w, m->open_vote);
    put_u8(w, m->verify);
    put_u16(w, m->cores);
    parts_put_costs(w, &m->costs);
    put_u32(w, m->stall_ms);
    parts_put_addresses(w, m->address, m->addresses);
    put_claim_part(w, &m->claim);
    put_world_name(w, m->world);
}

static bool get_register_part(struct reader *r, struct msg_register *m)
{
    m->run = get_u64(r);
    m->id = get_u64(r);
    m->group = get_u32(r);
    m->lanes = parts_get_u16(r, 0, BOUNDS_LANES);
    m->view = get_u64(r);
    m->frozen = get_u64(r);
    m->answered = get_u32(r);
    m->open_vote = parts_get_u8(r, VOTE_NONE, VOTE_SYNC);
    m->verify = parts_get_u8(r, 0, 1);
    m->cores = get_u16(r);
    parts_get_costs(r, &m->costs);
    m->stall_ms = parts_get_stall(r);
    m->addresses = parts_get_addresses(r, m->address);
    get_claim_part(r, &m->claim);
    r->bad = r->bad || (m->claim.join != 0 && m->group != 0);
    get_world_name(r, m->world);
    bool creates = m->claim.size > 0 && m->claim.join == 0; /* nobody comes to a derived world by its name alone */
    r->bad = r->bad || (world_name_derived(m->world) && m->id == 0 && !creates);
    return !r->bad;
}

bool get_register(struct reader *r, struct msg_register *m)
{
    return get_register_part(r, m) && reader_done(r);
}

void put_claim(struct writer *w, const struct msg_claim *m)
{
    put_u64(w, m->run);
    put_u32(w, m->epoch);
    put_register(w, &m->reg);
}

static bool get_claim_of(struct reader *r, struct msg_claim *m, bool derived)
{
    m->run = get_u64(r);
    m->epoch = get_u32(r);
    return get_register_part(r, &m->reg) && m->reg.id == 0 && m->reg.group == 0 && m->reg.claim.size > 0 &&
           m->reg.claim.join == 0 && world_name_derived(m->reg.world) == derived;
}

bool get_claim(struct reader *r, struct msg_claim *m)
{
    return get_claim_of(r, m, false) && reader_done(r);
}

void put_expect(struct writer *w, const struct msg_expect *m)
{
    put_claim(w, &m->claim);
    put_u64(w, m->formation[0]);
    put_u64(w, m->formation[1]);
    put_u64(w, m->parent);
    put_u64(w, m->member);
    put_u32(w, m->callers);
}

/* The items are looked at ahead of their being got. */
bool get_expect(struct reader *r, struct msg_expect *m)
{
    bool good = get_claim_of(r, &m->claim, true), sender = false;
    m->formation[0] = get_u64(r);
    m->formation[1] = get_u64(r);
    m->parent = get_u64(r);
    m->member = get_u64(r);
    m->callers = get_count(r, PARTS_ID_BYTES, PARTS_MEMBERS);
    struct reader ahead = *r;
    uint64_t last = 0;
    for (uint32_t i = 0; i < m->callers; i++) {
        uint64_t id = get_u64(&ahead);
        good = good && id > last;
        sender = sender || id == m->member;
        last = id;
    }
    bool fits = m->claim.reg.claim.size <= m->callers && m->claim.reg.claim.once == 0;
    return good && sender && fits && m->parent != 0 && reader_done(&ahead);
}

void put_decline(struct writer *w, const struct msg_decline *m)
{
    put_u8(w, m->cause);
}

bool get_decline(struct reader *r, struct msg_decline *m)
{
    m->cause = parts_get_u8(r, CAUSE_DEADLINE, CAUSE_INTERNAL);
    return reader_done(r);
}

void put_given_up(struct writer *w, const struct msg_given_up *m)
{
    put_u8(w, m->cause);
    put_u64(w, m->culprit);
    put_text(w, m->text);
}

bool get_given_up(struct reader *r, struct msg_given_up *m)
{
    m->cause = parts_get_cause(r);
    m->culprit = get_u64(r);
    get_text(r, m->text, sizeof m->text);
    return reader_done(r);
}

void put_welcome(struct writer *w, const struct msg_welcome *m)
{
    put_u64(w, m->run);
    put_u64(w, m->id);
    put_u32(w, m->epoch);
    put_u32(w, m->heartbeat_ms);
    put_u32(w, m->dead_ms);
    parts_put_address(w, &m->seen);
}

bool get_welcome(struct reader *r, struct msg_welcome *m)
{
    m->run = get_u64(r);
    m->id = get_u64(r);
    m->epoch = get_u32(r);
    m->heartbeat_ms = get_u32(r);
    m->dead_ms = get_u32(r);
    parts_get_address(r, &m->seen, true);
    return reader_done(r);
}

void put_heartbeat(struct writer *w, const struct msg_heartbeat *m)
{
    put_u64(w, m->sent_ns);
    put_u64(w, m->echo_ns);
    put_u64(w, m->vote_on);
    put_u64(w, m->about);
    put_u8(w, m->vote);
    put_op_name(w, &m->wait.name);
    put_u64(w, m->wait.on);
    put_u32(w, m->wait.ms);
    put_u8(w, m->wait.phase);
    put_u16(w, m->seats.count);
    put_bytes(w, m->seats.claimed, (m->seats.count + 7u) / 8);
}

bool get_heartbeat(struct reader *r, struct msg_heartbeat *m)
{
    m->sent_ns = get_u64(r);
    m->echo_ns = get_u64(r);
    m->vote_on = get_u64(r);
    m->about = get_u64(r);
    m->vote = parts_get_u8(r, VOTE_NONE, VOTE_SYNC);
    parts_get_wait_name(r, &m->wait.name);
    m->wait.on = get_u64(r);
    m->wait.ms = get_u32(r);
    m->wait.phase = parts_get_u8(r, WAIT_NONE, WAIT_HOLD);
    bool any = space_pairs(m->wait.name.space) && m->wait.name.from == 0;
    r->bad = r->bad || (any && (m->wait.on != 0 || m->wait.phase != WAIT_LAUNCH));
    memset(&m->seats, 0, sizeof m->seats);
    m->seats.count = parts_get_u16(r, 0, BOUNDS_MEMBERS);
    size_t bytes = (m->seats.count + 7u) / 8;
    const unsigned char *at = get_bytes(r, bytes);
    if (at != NULL) {
        memcpy(m->seats.claimed, at, bytes);
    }
    return reader_done(r);
}

void put_leave(struct writer *w, const struct msg_leave *m)
{
    put_u8(w, m->revoke);
    put_u64(w, m->view);
    put_u32(w, m->reports);
}

bool get_leave(struct reader *r, struct msg_leave *m)
{
    m->revoke = parts_get_u8(r, 0, 1);
    m->view = get_u64(r);
    m->reports = get_count(r, PARTS_REPORT_BYTES, BOUNDS_LAST_WORDS);
    return !r->bad;
}

void put_suspect(struct writer *w, const struct msg_suspect *m)
{
    put_u64(w, m->view);
    put_u8(w, m->target);
    put_u8(w, m->cause);
    put_u64(w, m->peer);
    put_op_name(w, &m->name);
    put_text(w, m->text);
}

bool get_suspect(struct reader *r, struct msg_suspect *m)
{
    m->view = get_u64(r);
    m->target = parts_get_u8(r, SUSPECT_PEER, SUSPECT_OPERATION);
    m->cause = parts_get_cause(r);
    m->peer = get_u64(r);
    (void)get_op_name(r, &m->name);
    get_text(r, m->text, sizeof m->text);
    return reader_done(r);
}

void put_fence(struct writer *w, const struct msg_fence *m)
{
    put_u64(w, m->view);
    put_u8(w, m->cause);
    put_text(w, m->text);
}

bool get_fence(struct reader *r, struct msg_fence *m)
{
    m->view = get_u64(r);
    m->cause = parts_get_cause(r);
    get_text(r, m->text, sizeof m->text);
    return reader_done(r);
}

void put_member_info(struct writer *w, const struct member_info *m)
{
    put_u64(w, m->id);
    put_u32(w, m->key);
    put_u16(w, m->lanes);
    parts_put_addresses(w, m->address, m->addresses);
}

bool get_member_info(struct reader *r, struct member_info *m)
{
    m->id = get_u64(r);
    m->key = get_u32(r);
    m->lanes = parts_get_u16(r, 0, BOUNDS_LANES);
    m->addresses = parts_get_addresses(r, m->address);
    return !r->bad;
}

void put_admit(struct writer *w, const struct msg_admit *m)
{
    put_u64(w, m->view);
    put_u32(w, m->attempt);
    put_u32(w, m->members);
}

bool get_admit(struct reader *r, struct msg_admit *m)
{
    m->view = get_u64(r);
    m->attempt = get_u32(r);
    m->members = get_count(r, PARTS_MEMBER_BYTES, PARTS_MEMBERS);
    return !r->bad;
}

void put_linked(struct writer *w, const struct msg_linked *m)
{
    put_u32(w, m->attempt);
    put_u32(w, m->failed);
}

bool get_linked(struct reader *r, struct msg_linked *m)
{
    m->attempt = get_u32(r);
    m->failed = get_count(r, PARTS_ID_BYTES, PARTS_MEMBERS);
    return !r->bad;
}
