/* probing.c - what the master has asked to be measured, and the answers.
 * SPDX-License-Identifier: MIT */
#include "session/membership/probing.h"

void probing_clear(struct session *s)
{
    s->probing.count = 0;
}

void probing_add(struct session *s, const struct msg_probe *m, struct outbox *out)
{
    if (s->probing.count == SESSION_PROBES) { /* the master waits for none for ever: the oldest goes, unless it is of the same round */
        if (s->probing.at[0].round == m->round) {
            return;
        }
        memmove(&s->probing.at[0], &s->probing.at[1], --s->probing.count * sizeof s->probing.at[0]);
    }
    s->probing.at[s->probing.count++] = *m;
    struct action *a = outbox_add(out, ACT_PROBE);
    a->slot = m->round;
    a->id = m->to;
    a->value = m->duration_ms;
}

/* Of what the master has asked for in this membership: to a newcomer nothing was asked yet. */
static bool was_asked(struct session *s, const struct msg_measured *m)
{
    uint32_t at = 0;
    while (at < s->probing.count && (s->probing.at[at].to != m->to || s->probing.at[at].round != m->round)) {
        at++;
    }
    if (at == s->probing.count) {
        return false;
    }
    memmove(&s->probing.at[at], &s->probing.at[at + 1], (--s->probing.count - at) * sizeof s->probing.at[0]);
    return true;
}

void probing_measured(struct session *s, const struct session_event *e, struct outbox *out)
{
    bool counts = e->measured->round >= MEASURED_UNASKED ? s->view.world > 0 : was_asked(s, e->measured);
    if (counts && s->master.welcomed) {
        put_measured(outbox_frame(out, FRAME_MEASURED, s->run, s->view.view), e->measured);
        outbox_send(out, ACT_MASTER, 0);
    }
}
