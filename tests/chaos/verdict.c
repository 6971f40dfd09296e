/* verdict.c - see verdict.h.
 *
 * A call is named alike by all who made it.  Whoever left, or was excluded, in the middle of it says "connect again", which
 * agrees with everything; what it was told before it had to leave counts like everybody's.
 * SPDX-License-Identifier: MIT */
#include "verdict.h"

#include <inttypes.h>
#include <string.h>

/* Of pcclResult_t and pcclCause_t; this program has no use for the library otherwise. */
enum { SUCCESS = 0, USAGE = 4, TOO_FEW = 5, REJOIN = 6, MISMATCH = 8, KICKED = 12 };

struct call { /* all that was said about it */
    const struct record *first;
    size_t count;
    const struct record *success, *failure; /* one of each; rejoin is neither */
    uint64_t began; /* 1 << key of those who have begun it */
};

static void show(struct round *r, const struct call *c, const char *what)
{
    round_finding(r, "%s: %s", c->first->name, what);
    for (size_t i = 0; i < c->count; i++) {
        const struct record *e = &c->first[i];
        if (e->kind == 'E') {
            printf("    %+7" PRId64 " ms peer %2d: result %d, cause %d (%" PRIx64 "), world %u, digest %016" PRIx64 ", who %" PRIx64
                   ", tx %" PRIu64 ", rx %" PRIu64 "\n",
                   e->at_ms - r->began_ms, e->key, e->code, e->cause, e->culprit, e->world, e->digest, e->who, e->tx_bytes,
                   e->rx_bytes);
        } else {
            printf("    %+7" PRId64 " ms peer %2d: begins\n", e->at_ms - r->began_ms, e->key);
        }
    }
}

/* The last word of a name says what kind of call it was: "a0" a single one, "b3" one of a bulk call, "bulk", "sync". */
static bool is_kind(const struct call *c, const char *kind)
{
    return strncmp(strrchr(c->first->name, '.') + 1, kind, strlen(kind)) == 0;
}

/* Everybody who has the result has the same one, from the same peers. */
static const char *compare_successes(const struct call *c)
{
    const struct record *s = c->success;
    bool counted = !is_kind(c, "bulk");
    for (size_t i = 0; i < c->count; i++) {
        const struct record *e = &c->first[i];
        if (e->kind != 'E' || e->code != SUCCESS || !counted) {
            continue;
        }
        if (e->digest != s->digest) {
            return "the results differ";
        }
        if (e->who != s->who || e->world != s->world) {
            return "the peers differ in who took part";
        }
        if (e->who != 0 && (e->who >> e->key & 1) == 0) {
            return "success without the peer's own contribution";
        }
    }
    return NULL;
}

/* One cause and one culprit for all; of a mismatch each is told a member whose call differs from its own. */
static const char *compare_failures(const struct call *c)
{
    for (size_t i = 0; i < c->count; i++) {
        const struct record *e = &c->first[i];
        bool counts = e->kind == 'E' && e->code != SUCCESS && e->code != REJOIN && e->code != TOO_FEW;
        if (counts && (e->code != c->failure->code || e->cause != c->failure->cause)) {
            return "the errors differ";
        }
        if (counts && e->cause != MISMATCH && e->culprit != c->failure->culprit) {
            return "the errors name different peers";
        }
    }
    return NULL;
}

/* What one has sent, another has received; asked where all who took part have told. */
static const char *compare_bytes(const struct call *c)
{
    uint64_t told = 0, tx = 0, rx = 0;
    for (size_t i = 0; i < c->count; i++) {
        const struct record *e = &c->first[i];
        if (e->kind == 'E' && e->code == SUCCESS) {
            told |= UINT64_C(1) << e->key;
            tx += e->tx_bytes;
            rx += e->rx_bytes;
        }
    }
    return told == c->success->who && tx != rx ? "bytes sent and received differ" : NULL;
}

static void judge(struct round *r, const struct call *c)
{
    const char *wrong = NULL;
    r->result->calls++;
    r->result->successes += c->success != NULL;
    if (c->success != NULL && c->failure != NULL) {
        wrong = "success at one, an error at another";
    }
    if (wrong == NULL && c->success != NULL) {
        wrong = compare_successes(c);
        bool launched = is_kind(c, "a");
        if (wrong == NULL && launched && (c->success->who & ~c->began) != 0) {
            wrong = "one took part that never began the call";
        }
        if (wrong == NULL && launched) {
            wrong = compare_bytes(c);
        }
    }
    if (wrong == NULL && c->failure != NULL) {
        wrong = compare_failures(c);
    }
    if (wrong != NULL) {
        show(r, c, wrong);
    }
}

void verdict_on_calls(struct round *r)
{
    records_sort(&r->records);
    for (size_t i = 0; i < r->records.count;) {
        struct call c = {.first = &r->records.at[i]};
        for (; i < r->records.count && strcmp(r->records.at[i].name, c.first->name) == 0; i++, c.count++) {
            struct record *e = &r->records.at[i];
            if (e->code == USAGE && r->process[e->key % PLAN_PROCESSES].told_to_go) {
                e->code = REJOIN; /* called after the communicator had been destroyed */
            }
            if (e->kind == 'B') {
                c.began |= UINT64_C(1) << e->key;
            } else if (e->kind == 'E' && e->code == SUCCESS) {
                c.success = e;
            } else if (e->kind == 'E' && e->code != REJOIN && (c.failure == NULL || c.failure->code == TOO_FEW)) {
                c.failure = e;
            }
        }
        if (strchr(c.first->name, '.') != NULL) { /* others are not named alike */
            judge(r, &c);
        }
    }
}

void verdict_on_processes(struct round *r)
{
    for (int i = 0; i < r->processes; i++) {
        const struct actor *a = &r->actor[i];
        if (a->status != 0 && !(a->killed && a->status == 128 + 9)) {
            round_finding(r, "process %d ended with status %d", i, a->status);
        }
        if (a->noise_size > 0) {
            round_finding(r, "process %d wrote to its standard output or error: %.300s", i, a->noise_text);
        }
    }
    if (r->master.status != 0) {
        round_finding(r, "the master ended with status %d", r->master.status);
    }
}

enum { REDIAL_MS = 100, RESUMES = 5 }; /* until a peer is connected again; the master waits for one part of so many of the stall time */

/* Whether the faults of this round leave everybody who was not told to go where he is: all that lasts is short against the
 * stall time, and no peer can have lost its connections to the master and to others together, which is how a death looks. */
static bool is_mild(const struct round *r)
{
    const struct plan *p = &r->plan;
    int lasting_ms = 0, cuts = 0;
    bool master = false, peers = false;
    for (int i = 0; i < p->faults; i++) {
        const struct fault *f = &p->fault[i];
        bool both = f->kind == FAULT_SOCKET_KILL || f->kind == FAULT_UNPLUG || f->kind == FAULT_STOP;
        master = master || both || (f->kind >= FAULT_MASTER_CUT && f->kind <= FAULT_MASTER_KILL);
        peers = peers || both || (f->kind >= FAULT_CUT && f->kind <= FAULT_BLACK_HOLE);
        cuts += f->kind == FAULT_MASTER_CUT;
        lasting_ms += f->kind == FAULT_SLOW ? 0 : f->lasted_ms;
        if (f->kind == FAULT_MASTER_KILL) {
            return false;
        }
    }
    bool resumes = cuts * REDIAL_MS < p->stall_ms / RESUMES; /* though each cut meets the connection that was made after the one before */
    return p->vote_ms == 0 && !(master && peers) && resumes && lasting_ms < p->stall_ms / 3 && r->worst_lag_ms < p->stall_ms / 4;
}

void verdict_on_places(struct round *r)
{
    if (!is_mild(r)) {
        return;
    }
    r->result->mild = true;
    for (size_t i = 0; i < r->records.count; i++) {
        const struct record *e = &r->records.at[i];
        bool strategies = e->cause == KICKED && r->plan.sync != SYNC_POPULAR; /* a newcomer's may not fit the others' */
        bool member = strcmp(e->name, "connect") != 0; /* who is none has no place to lose */
        if (e->kind != 'B' && e->code == REJOIN && member && !strategies && e->at_ms < r->ended_ms &&
            !r->process[e->key % PLAN_PROCESSES].told_to_go) {
            round_finding(r, "peer %d lost its place in %s (cause %d), %+" PRId64 " ms, though no fault touched it", e->key,
                          e->name, e->cause, e->at_ms - r->began_ms);
        }
    }
}
