/* waits_text.c - what a wait is, in one sentence: whom for, to do what, and what that one does instead.
 *
 * "waits for peer 1.10 (10.0.0.3:48150) to launch tag 1; it waits for this peer to launch tag 2".
 * SPDX-License-Identifier: MIT */
#include "core/id.h"
#include "session/calls/sentence.h"
#include "session/membership/waits.h"
#include "wire/ranks.h"

/* "for peer 1.2 to launch tag 7" */
static void say_op(struct sentence *t, const struct session *s, const char *phase, uint64_t peer,
                   const struct op_name *name)
{
    bool data = strcmp(phase, "data") == 0, launch = strcmp(phase, "launch") == 0;
    say(t, data ? "for data from " : "for ");
    if (peer == 0) {
        say(t, "any member");
    } else {
        say_peer(t, s, peer);
    }
    say(t, data ? " in " : launch ? " to launch " : " to complete ");
    if (name->space != SPACE_ORDERED) {
        say(t, "tag %llu", (unsigned long long)name->tag);
    } else {
        say(t, "operation %u in the order of issue", name->seq);
    }
}

static const char *vote_noun(const char *phase)
{
    static const char *const names[][2] = {{"update", "an update"}, {"query", "a query"}, {"optimise", "an optimisation"},
                                           {"sync", "a synchronisation"}, {"connect", "an admission"}};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        if (strcmp(phase, names[i][0]) == 0) {
            return names[i][1];
        }
    }
    return NULL;
}

void session_wait_text(const struct session *s, const struct session_wait *w, char *out, size_t size)
{
    struct sentence t = {.out = out, .size = size};
    const char *vote = vote_noun(w->phase);
    char missing[128];
    say(&t, "waits ");
    if (strcmp(w->phase, "formation") == 0 && w->peer != 0) {
        say(&t, "for peer " ID_FORMAT " to make the call that creates this world", ID_PARTS(w->peer));
        return;
    }
    if (strcmp(w->phase, "formation") == 0) {
        ranks_text(&s->vote.told.seats, missing, sizeof missing);
        say(&t, "for these ranks of world '%s' to come: %s", s->cfg.world, missing);
        return;
    }
    if (vote == NULL) {
        say_op(&t, s, w->phase, w->peer, &w->name);
    } else {
        say(&t, "in %s for ", vote);
        if (w->peer == 0) {
            say(&t, "the master");
            return;
        }
        say_peer(&t, s, w->peer);
        say(&t, w->phase[0] == 'c' ? " to update" : " to call it");
    }
    if (w->then_phase != NULL) {
        say(&t, "; it waits in turn ");
        say_op(&t, s, w->then_phase, w->then, &w->then_name);
    }
    if (w->then_vote != NULL) {
        say(&t, "; %s waits in %s", w->then_phase != NULL ? "that one" : "it", vote_noun(w->then_vote));
    } else if (w->told && w->then_phase == NULL) {
        say(&t, "; its program is in no call");
    }
}

void session_wait_others(const struct session *s, const struct session_wait *w, const struct session_wait *all, uint32_t count, char *out,
                         size_t size)
{
    enum { NAMED = 3 };
    struct sentence t = {.out = out, .size = size};
    uint32_t others = 0;
    out[0] = 0;
    for (uint32_t i = 0; i < count; i++) {
        const struct session_wait *o = &all[i];
        if (w->slot == SESSION_NO_SLOT || o->slot != w->slot || o->peer == w->peer || strcmp(o->phase, w->phase) != 0) {
            continue;
        }
        if (others++ < NAMED) {
            say(&t, others == 1 ? ", and for " : ", ");
            say_peer(&t, s, o->peer);
        }
    }
    if (others > NAMED) {
        say(&t, " and %u more", others - NAMED);
    }
}

bool session_wait_of_program(const struct session_wait *w)
{
    bool measures = strcmp(w->phase, "optimise") == 0 && w->peer == 0; /* all have called it: the edges take a while */
    return (vote_noun(w->phase) != NULL && !measures) || strcmp(w->phase, "launch") == 0 || strcmp(w->phase, "formation") == 0 ||
           (w->then_phase != NULL && strcmp(w->then_phase, "launch") == 0);
}
