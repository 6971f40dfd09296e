/* membership_text.c - what happens to this peer's membership, one sentence for each event: who came and went, and why.
 *
 * "view 5: rank 2 (peer 1.3 at 10.0.0.4:48150), group 0: its connections closed; 2 members".
 *
 * Its one idea: only in the step that installs a view are both its members and those of the view before known, with their
 * addresses; so the sentence is made there, and the shell writes it to the log when its locks are given back.
 * SPDX-License-Identifier: MIT */
#include <stdio.h>

#include "core/id.h"
#include "session/calls/sentence.h"
#include "session/membership/membership_text.h"
#include "session/tables/peers.h"
#include "session/tables/trace.h"
#include "wire/cause.h"

enum {
    TEXT_LINE = BOUNDS_LOG_LINE - 32, /* the shell puts the own id in front */
    TEXT_TAIL = 140,                  /* of a view: its size and missing edges, which must not be cut */
    TEXT_NAMED = 3,                   /* of many that come, go or have no link */
};

void membership_say_registered(const struct session *s, struct outbox *out)
{
    bool named = s->cfg.world[0] != 0;
    if (s->creating.attempt != 0) {
        session_trace(out, TRACE_EVERYBODY, "registered as rank %u of %u of world '%s', waits for all of them", s->cfg.claim.rank,
                      s->cfg.claim.size, world_name_shown(s->cfg.world));
        return;
    }
    if (s->cfg.claim.join != 0) {
        char rank[40] = "with any rank";
        if (s->cfg.claim.rank != CLAIM_ANY_RANK) {
            snprintf(rank, sizeof rank, "as rank %u", s->cfg.claim.rank);
        }
        session_trace(out, TRACE_EVERYBODY, "registered to join world '%s' %s, waits until the members update", s->cfg.world, rank);
        return;
    }
    session_trace(out, TRACE_EVERYBODY, "registered for group %u%s%s%s, waits until the members update", s->cfg.group,
                  named ? " of world '" : "", s->cfg.world, named ? "'" : "");
}

void membership_say_master_lost(struct outbox *out, const char *why)
{
    session_trace(out, TRACE_EVERYBODY, "the master is out of reach%s%s: operations go on, it is dialled again",
                  why != NULL ? ": " : "", why != NULL ? why : "");
}

void membership_say_master_back(const struct session *s, struct outbox *out)
{
    session_trace(out, TRACE_EVERYBODY, "the master is back after %.1f s",
                  s->master.lost != 0 ? (double)(s->clock.now - s->master.lost) / 1e9 : 0.0);
}

void membership_say_freeze(const struct session *s, const struct msg_freeze *m, struct outbox *out)
{
    char text[TEXT_LINE];
    struct sentence t = {.out = text, .size = sizeof text};
    const char *why = m->cause >= CAUSE_KICK_PROTOCOL ? "a peer was excluded" : cause_text(m->cause);
    say(&t, "view %u is being ended", (uint32_t)m->view);
    if (why != NULL) {
        say(&t, ": %s", why);
    }
    if (m->culprit != 0) {
        say(&t, ", ");
        say_rank(&t, s, m->culprit);
    }
    session_trace(out, TRACE_EVERYBODY, "%s", text);
}

/* ---- a view --------------------------------------------------------------------------------------------------------- */

static void say_more(struct sentence *t, uint32_t count, const char *what)
{
    if (count > TEXT_NAMED) {
        say(t, "; %u more %s", count - TEXT_NAMED, what);
    }
}

static void say_gone(struct sentence *t, const struct session *s, const struct msg_view *m)
{
    uint32_t count = 0, at = 0;
    for (uint32_t rank = 0; rank < s->view.world; rank++) { /* both lists ascend */
        uint64_t id = s->view.ids[rank];
        while (at < m->members && s->scratch_members[at].id < id) {
            at++;
        }
        bool stays = at < m->members && s->scratch_members[at].id == id;
        bool told = id == m->culprit && m->text[0] != 0; /* the master's text is about it */
        if (!stays && !told && count++ < TEXT_NAMED) {
            say(t, t->used > 0 ? "; " : "");
            say_rank(t, s, id);
            say(t, " is gone");
        }
    }
    say_more(t, count, "are gone");
}

static void say_joined(struct sentence *t, const struct session *s, const struct msg_view *m)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < m->members; i++) {
        if (view_rank(s, s->scratch_members[i].id) == NONE && count++ < TEXT_NAMED) {
            say(t, t->used > 0 ? "; " : "");
            say_member(t, &s->scratch_members[i]);
            say(t, " joined");
        }
    }
    say_more(t, count, "joined");
}

static void say_edges(struct sentence *t, const struct view *v)
{
    for (uint32_t i = 0; i < v->edges && i < TEXT_NAMED; i++) {
        say(t, "%s" ID_FORMAT " and " ID_FORMAT, i == 0 ? "; no link between " : ", ", ID_PARTS(v->edge[i].a),
            ID_PARTS(v->edge[i].b));
    }
    say_more(t, v->edges, "pairs");
}

void membership_say_view(const struct session *s, const struct msg_view *m, struct outbox *out)
{
    char what[TEXT_LINE - TEXT_TAIL] = "", tail[TEXT_TAIL];
    struct sentence t = {.out = what, .size = sizeof what}, end = {.out = tail, .size = sizeof tail};
    bool joining = s->phase == PHASE_JOINING; /* whoever comes new knows nobody: the end of connect says the rest */
    if (joining && s->view.edges == 0) {
        return;
    }
    if (!joining) {
        say(&t, "%s", m->text);
        say_gone(&t, s, m);
        say_joined(&t, s, m);
    }
    say(&end, "%u member%s", m->members, m->members == 1 ? "" : "s");
    say_edges(&end, &s->view);
    session_trace(out, TRACE_EVERYBODY, "view %u: %s%s%s", (uint32_t)m->view, what, what[0] != 0 ? "; " : joining ? "" : "the same ", tail);
}

void membership_say_left(const struct session *s, bool excluded, struct outbox *out)
{
    const char *why = s->left.text[0] != 0 ? s->left.text : cause_text(s->left.cause);
    session_trace(out, TRACE_EVERYBODY, "%s the run%s%s", excluded ? "excluded from" : "out of", why != NULL ? ": " : "",
                  why != NULL ? why : "");
}
