/* claim.c - creating a world of a given size: the claim to a rank.
 *
 * Its one idea: REGISTER says who calls, CLAIM that the connection works both ways; only then the call counts (W3).  A connection
 * that breaks is dialled again under the same attempt.  Of a world that members of another one create together, EXPECT is the claim:
 * it names them all.
 * Invariant: the epoch that a claim names is the one in which the call was first counted (W8).
 * SPDX-License-Identifier: MIT */
#include "session/membership/claim.h"

void claim_begin(struct session *s)
{
    memset(&s->creating, 0, sizeof s->creating);
    s->creating.attempt = s->cfg.claim.size > 0 && s->cfg.claim.join == 0 ? rng_next(&s->rng) | 1 : 0;
}

bool claim_expects(const struct session *s, const struct msg_welcome *m)
{
    return m->id == 0 && s->creating.attempt != 0 && s->phase == PHASE_DIALING;
}

void claim_send(struct session *s, const struct msg_welcome *m, const struct msg_register *reg, struct outbox *out)
{
    if (s->creating.welcome.run == 0 || MUTANT(EPOCH_LAST)) { /* W8 */
        s->creating.welcome = *m;
    }
    struct msg_claim c = {.run = s->creating.welcome.run, .epoch = s->creating.welcome.epoch, .reg = *reg};
    const struct derivation *d = &s->cfg.derived;
    if (d->callers > 0) {
        struct msg_expect x = {.claim = c, .parent = d->parent, .member = d->member, .callers = d->callers};
        memcpy(x.formation, d->formation, sizeof x.formation);
        struct writer *frame = outbox_frame(out, FRAME_EXPECT, 0, 0);
        put_expect(frame, &x);
        for (uint32_t i = 0; i < d->callers; i++) {
            put_u64(frame, d->ids[i]);
        }
    } else {
        put_claim(outbox_frame(out, FRAME_CLAIM, 0, 0), &c);
    }
    outbox_send(out, ACT_MASTER, 0);
}

bool claim_decline(struct session *s, struct outbox *out)
{
    if (s->creating.attempt == 0 || s->phase != PHASE_JOINING) {
        return false;
    }
    struct msg_decline m = {.cause = CAUSE_NO_MEMORY};
    put_decline(outbox_frame(out, FRAME_DECLINE, s->run, 0), &m);
    outbox_send(out, ACT_MASTER, 0);
    return true;
}
