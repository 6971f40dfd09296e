/* op_frames.c - what peers say of operations: decoded, checked, and given to the class of the operation.
 *
 * Its one idea: each function returns whether the peer of the link may say it, and here alone the link of one that lies is given up.
 * READY and EAGER are noted as the call of that member before the class sees them.
 * Invariant: a class hears nothing in a frozen view but FINISHED.
 * SPDX-License-Identifier: MIT */
#include "session/calls/mismatch.h"
#include "session/group/eager.h"
#include "session/links/peer_links.h"
#include "session/op_frames.h"
#include "session/relay/path.h"
#include "session/tables/carrier.h"
#include "session/tables/marks.h"
#include "session/tables/optable.h"
#include "session/tables/peers.h"

static const struct op_class *class_of(const struct session *s, const struct op_name *name)
{
    return &s->classes[name->space];
}

static bool on_ready(struct session *s, const struct said *said, struct reader *r, struct outbox *out)
{
    struct msg_ready m;
    uint32_t rank;
    if (!get_ready(r, &m) || !class_of(s, &m.name)->speaker(s, said->from, &m.name, TO_EITHER, &rank)) {
        return false;
    }
    struct op_name name = path_operation(&m.name);
    struct op *op = s->view.frozen ? NULL : op_hear(s, said->from, rank, &name);
    if (op == NULL) {
        return true;
    }
    struct peer *p = &s->peers.at[s->view.peer[rank]];
    struct mark *mark = mark_of(s, op, rank); /* as it was heard */
    bool again = mark->ready && carrier_relays(s, op, rank); /* of what goes by a relay, as PATH asks too: its parts would come twice */
    mismatch_hear(s, op, rank, &m.params);
    mark->expects = m.expects;
    mark->window = m.window;
    mark->bundle = m.bundle;
    mark->launch = m.launch;
    if (m.bundle == p->bundle) {
        p->bundle_view = s->view.view;
    }
    op->class->ready(s, op, rank, again, out);
    return true;
}

/* The rank that says it for itself: no relay passes it on.  NONE: that peer may not. */
static uint32_t own_word(const struct session *s, uint32_t from, const struct op_name *name, enum word_to to)
{
    uint32_t rank;
    return class_of(s, name)->speaker(s, from, name, to, &rank) && rank == s->peers.at[from].rank ? rank : NONE;
}

static bool on_eager(struct session *s, const struct said *said, struct reader *r, struct outbox *out)
{
    struct msg_eager m;
    const void *payload;
    bool good = get_eager(r, &m, &payload) && eager_fits(s, s->peers.at[said->from].id, &m);
    uint32_t rank = good ? own_word(s, said->from, &m.name, TO_RECEIVER) : NONE;
    if (rank == NONE) {
        return false;
    }
    struct op *op = s->view.frozen ? NULL : op_hear(s, said->from, rank, &m.name);
    if (op != NULL) {
        mismatch_hear(s, op, rank, &m.params);
        op->class->eager(s, op, rank, &m, payload, out);
    }
    return true;
}

static bool on_want(struct session *s, const struct said *said, struct reader *r, struct outbox *out)
{
    struct msg_want m;
    uint32_t rank = get_want(r, &m) ? own_word(s, said->from, &m.name, TO_SENDER) : NONE;
    if (rank == NONE) {
        return false;
    }
    struct op *op = op_find(s, &m.name);
    if (op != NULL && op->eager && (op->phase == OP_RUN || op->phase == OP_HOLDING) && op->refused == 0 && !s->view.frozen) {
        carrier_announce(s, op, rank, out);
    }
    return true;
}

static bool on_hold(struct session *s, const struct said *said, struct reader *r, struct outbox *out)
{
    struct msg_hold m;
    if (!get_hold(r, &m)) {
        return false;
    }
    if ((said->header->view != s->view.view && !MUTANT(STALE_VIEW)) || (s->view.frozen && !MUTANT(LATE_HOLD))) {
        return true; /* P4, P8 */
    }
    return class_of(s, &m.name)->hold(s, said, &m, out);
}

static bool on_refuse(struct session *s, const struct said *said, struct reader *r, struct outbox *out)
{
    struct msg_refuse m;
    if (!get_refuse(r, &m)) {
        return false;
    }
    if (said->header->view != s->view.view || (s->view.frozen && !MUTANT(REFUSE_LATE))) {
        return true; /* P8, P4 */
    }
    return class_of(s, &m.name)->refuse(s, said, &m, out);
}

static bool on_finished(struct session *s, const struct said *said, struct reader *r, struct outbox *out)
{
    struct msg_finished m;
    uint32_t own = s->peers.at[said->from].rank;
    bool good = get_finished(r, &m), current = good && said->header->view == s->view.view;
    uint32_t rank = current ? origin_rank(s, said->from, m.origin) : NONE;
    good = good && !(current && rank == NONE); /* else it speaks for somebody else */
    for (uint32_t i = 0; good && i < m.names; i++) {
        struct op_name name;
        good = get_op_name(r, &name);
        struct op *op = good && rank != NONE ? op_find(s, &name) : NULL;
        if (op != NULL) { /* else all have finished it and it was forgotten */
            good = op->class->finished(s, op, rank, out) || rank != own; /* a relay only passes it on */
        }
    }
    good = good && reader_done(r);
    if (good && rank != NONE) {
        peers_relay(s, said->from, m.origin, said->header, said->payload, out);
    }
    return good;
}

/* Words that count in no view but the one in which they were said. */
static bool on_view_frame(struct session *s, const struct said *said, struct reader *r, struct outbox *out)
{
    switch (said->header->type) {
    case FRAME_READY:
        return on_ready(s, said, r, out);
    case FRAME_EAGER:
        return on_eager(s, said, r, out);
    case FRAME_WANT:
        return on_want(s, said, r, out);
    case FRAME_PATH:
        return path_message(s, said->from, r);
    case FRAME_PART:
        return path_part(s, said->from, r, out);
    default:
        return path_got(s, said->from, r);
    }
}

static bool dispatch(struct session *s, const struct said *said, struct outbox *out)
{
    struct reader r;
    reader_init(&r, said->payload, said->header->length);
    bool current = said->header->view == s->view.view;
    enum path_pass pass = current ? path_passes(s, said, out) : PATH_OWN;
    if (pass != PATH_OWN) {
        return pass == PATH_PASSED;
    }
    switch (said->header->type) {
    case FRAME_HOLD:
        return on_hold(s, said, &r, out);
    case FRAME_REFUSE:
        return on_refuse(s, said, &r, out);
    case FRAME_FINISHED:
        return on_finished(s, said, &r, out);
    case FRAME_READY:
    case FRAME_EAGER:
    case FRAME_WANT:
    case FRAME_PATH:
    case FRAME_PART:
    case FRAME_GOT:
        return !current || on_view_frame(s, said, &r, out);
    default:
        return false; /* no business on a control link */
    }
}

void op_frame(struct session *s, const struct said *said, struct outbox *out)
{
    uint64_t id = s->peers.at[said->from].id;
    if (!dispatch(s, said, out)) {
        links_bad(s, id, out);
    }
}
