/* source.c - who gives the elected state to whom.
 *
 * A receiver is told of the election when it reaches somebody that has the state: a holder, or, if it has a link with none of them,
 * a third that has staged it.  Some member is linked with all, so sooner or later everybody can be told.
 * Invariant: ELECTED names sources that its receiver has a link with, in the view that it is sent in.
 * SPDX-License-Identifier: MIT */
#include "world/world_state.h"
#include "world/edges.h"
#include "world/roll.h"
#include "world/source.h"
#include "world/view_read.h"

struct member *voter_next(const struct world *w, const struct group *g, uint32_t *at)
{
    const struct view_record *v = &g->views[g->current];
    while (*at < v->members) {
        struct member *mb = member_find(w, v->ids[(*at)++]);
        if (mb != NULL && mb->phase == MEMBER_ACCEPTED && mb->vote.kind == VOTE_SYNC) {
            return mb;
        }
    }
    return NULL;
}

bool source_has(const struct member *mb)
{
    return mb->role == SYNC_HOLDER || (mb->role == SYNC_RECEIVER && mb->staged);
}

/* The next source of this receiver at or behind *at: holders if `held`, else thirds. */
static const struct member *next_of(const struct world *w, const struct group *g, const struct member *to, bool held, uint32_t *at)
{
    for (const struct member *mb; (mb = voter_next(w, g, at)) != NULL;) {
        bool has = source_has(mb) && !mb->distrusted && (mb->role == SYNC_HOLDER) == held;
        if (mb != to && has && !edges_missing(&g->views[g->current], mb->id, to->id)) {
            return mb;
        }
    }
    return NULL;
}

/* Whether its sources are holders; false: thirds, or nobody yet. */
static bool reaches_holder(const struct world *w, const struct group *g, const struct member *to)
{
    uint32_t at = 0;
    return next_of(w, g, to, true, &at) != NULL;
}

/* For the entries that are not compared: the lowest of its sources that took part in the last sync, else the lowest; 0: none. */
static uint64_t whole_source(const struct world *w, const struct group *g, const struct member *to)
{
    bool held = reaches_holder(w, g, to);
    uint64_t first = 0;
    uint32_t at = 0;
    for (const struct member *mb; (mb = next_of(w, g, to, held, &at)) != NULL;) {
        if (mb->synced) {
            return mb->id;
        }
        first = first == 0 ? mb->id : first;
    }
    return first;
}

static bool can_be_told(const struct world *w, const struct group *g, const struct member *to)
{
    return source_has(to) || whole_source(w, g, to) != 0;
}

static void put_elected_frame(struct world *w, struct group *g, const struct member *to)
{
    struct msg_elected e = {.number = to->answered, .round = g->sync.round, .role = to->role,
                            .revision = g->sync.revision, .key_digest = g->sync.key_digest,
                            .content_digest = g->sync.content_digest, .whole = to->whole,
                            .whole_source = to->whole ? whole_source(w, g, to) : 0};
    bool held = reaches_holder(w, g, to);
    uint32_t at = 0;
    while (next_of(w, g, to, held, &at) != NULL) {
        e.holders++;
    }
    e.holders += to->role == SYNC_HOLDER;
    at = 0;
    for (const struct member *mb; (mb = voter_next(w, g, &at)) != NULL;) {
        e.receivers += mb->role == SYNC_RECEIVER;
    }
    struct writer *frame = outbox_frame(w->common->out, FRAME_ELECTED, w->run, view_current(g)->view);
    put_elected(frame, &e);
    at = 0;
    bool own = to->role == SYNC_HOLDER;
    for (const struct member *mb; (mb = next_of(w, g, to, held, &at)) != NULL;) {
        if (own && to->id < mb->id) {
            put_u64(frame, to->id);
            own = false;
        }
        put_u64(frame, mb->id);
    }
    if (own) {
        put_u64(frame, to->id);
    }
    at = 0;
    for (const struct member *mb; (mb = voter_next(w, g, &at)) != NULL;) {
        if (mb->role == SYNC_RECEIVER) {
            put_u64(frame, mb->id);
        }
    }
}

static void send_elected(struct world *w, struct group *g, const struct member *to)
{
    if (to->conn != SLOT_NONE) {
        put_elected_frame(w, g, to);
        outbox_send(w->common->out, MASTER_SEND, to->conn);
    }
}

void source_tell(struct world *w, struct group *g)
{
    uint32_t at = g->tally.untold == 0 ? view_current(g)->members : 0;
    for (struct member *mb; (mb = voter_next(w, g, &at)) != NULL;) {
        if (!outbox_half_free(w->common->out)) {
            g->sync.elect_at = w->common->now; /* the others in the next step */
            return;
        }
        if (mb->role != 0 && !mb->told && can_be_told(w, g, mb)) {
            roll_out(w, mb);
            mb->told = true;
            roll_in(w, mb);
            send_elected(w, g, mb);
        }
    }
}

void source_tell_again(struct world *w, struct group *g, const struct member *mb)
{
    if (mb->told && mb->phase == MEMBER_ACCEPTED && mb->vote.kind == VOTE_SYNC) {
        send_elected(w, g, mb);
    }
}
