/* creation.c - calls that create a world of a given size: which incarnation of its name each is for.
 *
 * Its one idea: a call counts once its connection has answered a WELCOME (W3), and then what is settled comes first: the
 * incarnation that knows it, the tombstone that waits for it, a name that is used, the one that is forming (W4, W7, W12, W2).
 * Invariant: of a name one incarnation at most is forming.
 * SPDX-License-Identifier: MIT */
#include <stdio.h>

#include "core/mutant.h"
#include "master/master_state.h"

static void refuse(struct master *m, uint32_t conn, enum cause cause, const char *text)
{
    common_refuse(&m->common, conn, m->common.config.run, cause, text);
}

struct world *creation_world(struct master *m, uint32_t conn, const struct msg_register *reg)
{
    const struct master_config *cfg = &m->common.config;
    char text[BOUNDS_TEXT];
    if (reg->claim.size > cfg->max_members) {
        snprintf(text, sizeof text, "a world of %u ranks is larger than this master takes, %u", reg->claim.size, cfg->max_members);
        refuse(m, conn, CAUSE_KICK_FULL, text);
        return NULL;
    }
    if (common_full(&m->common)) {
        refuse(m, conn, CAUSE_KICK_FULL, "the master has no place for more peers, in whatever world");
        return NULL;
    }
    struct world *w = registry_forming(m, reg->world);
    if (w == NULL && reg->claim.once != 0 && !used_fits(&m->used, m->onces + 1)) {
        refuse(m, conn, CAUSE_KICK_FULL, "the master has no memory to keep that name used");
        return NULL;
    }
    w = w != NULL ? w : registry_begin(m, reg->world, &reg->claim);
    if (w == NULL) {
        refuse(m, conn, CAUSE_KICK_FULL, "no room for another world at this master");
    }
    return w;
}

/* The incarnation that a claim is for; null: it has been refused. */
static struct world *world_created(struct master *m, uint32_t conn, const struct msg_claim *c)
{
    struct world *w = registry_claimed(m, &c->reg);
    bool of_now = creation_of_now(m, c);
    if (w != NULL && (of_now || world_knows(w, &c->reg.claim))) {
        return w; /* W4: before anything else */
    }
    if (!of_now && !MUTANT(GOES_ON)) { /* W8: the others may have begun */
        refuse(m, conn, CAUSE_KICK_STALE, "the master has begun anew since this peer asked for the world");
        return NULL;
    }
    if (registry_used(m, c->reg.world) && !(MUTANT(ONCE_FIRST) && c->reg.claim.rank > 0)) { /* W12 */
        refuse(m, conn, CAUSE_KICK_USED, "a world was created under that name to be the only one");
        return NULL;
    }
    if (c->reg.world[0] == 0 || registry_named(m, c->reg.world) != NULL) {
        refuse(m, conn, CAUSE_KICK_TAKEN, "the world of that name is open to all who join: it has no size");
        return NULL;
    }
    return creation_world(m, conn, &c->reg);
}

bool creation_of_now(const struct master *m, const struct msg_claim *c)
{
    const struct master_config *cfg = &m->common.config;
    return c->run == cfg->run && c->epoch == cfg->epoch;
}

bool creation_answers(struct master *m, uint32_t conn, const struct msg_claim *c)
{
    const struct conn *own = &m->common.conns[conn];
    if (own->attempt == 0 || c->reg.claim.attempt != own->attempt) {
        return false;
    }
    for (uint32_t i = own->before, next; i != SLOT_NONE; i = next) { /* W3: what is unread in earlier ones means nothing any more */
        const struct conn *earlier = &m->common.conns[i];
        next = earlier->before;
        if (earlier->attempt == own->attempt && !MUTANT(STALE_CLAIM)) {
            common_close(&m->common, i);
        }
    }
    return true;
}

void creation_take(struct master *m, const struct master_event *e, struct reader *r)
{
    struct msg_claim c;
    if (!get_claim(r, &c) || !creation_answers(m, e->connection, &c)) {
        common_close(&m->common, e->connection);
        return;
    }
    struct world *w = world_created(m, e->connection, &c);
    if (w != NULL) {
        world_claim(w, e->connection, &c.reg);
        registry_rest(m, w);
    }
}
