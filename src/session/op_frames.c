/* op_frames.c - what peers say of operations: decoded, checked, and given to the class of the operation.
 *
 * READY and EAGER are noted as the call of that member before the class sees them.
 * Invariant: a class hears nothing in a frozen view but FINISHED, and nothing that the peer of that link may not say.
 * SPDX-License-Identifier: MIT */
#include "session/session_state.h"

static const struct op_class *class_of(const struct session *s, const struct op_name *name)
{
    return &s->classes[name->space];
}

static void on_ready(struct session *s, const struct said *said, struct reader *r, struct outbox *out)
{
    struct msg_ready m;
    uint32_t rank;
    if (!get_ready(r, &m) || !class_of(s, &m.name)->speaker(s, said->from, &m.name, TO_EITHER, &rank)) {
        links_bad(s, s->peers[said->from].id, out);
        return;
    }
    struct op_name name = path_operation(&m.name);
    struct op *op = s->frozen ? NULL : op_hear(s, said->from, rank, &name);
    if (op == NULL) {
        return;
    }
    struct peer *p = &s->peers[s->view.peer[rank]];
    struct mark *mark = mark_of(s, op, rank); /* as it was heard */
    bool again = mark->ready && op_relayed(s, op, rank); /* of what goes by a relay, as PATH asks too: its parts would come twice */
    mismatch_hear(s, op, rank, &m.params);
    mark->expects = m.expects;
    mark->window = m.window;
    mark->bundle = m.bundle;
    mark->launch = m.launch;
    if (m.bundle == p->bundle) {
        p->bundle_view = s->view.view;
    }
    op->class->ready(s, op, rank, again, out);
}

/* The rank that says it for itself: no relay passes it on.  NONE: that peer may not. */
static uint32_t own_word(const struct session *s, uint32_t from, const struct op_name *name, enum word_to to)
{
    uint32_t rank;
    return class_of(s, name)->speaker(s, from, name, to, &rank) && rank == s->peers[from].rank ? rank : NONE;
}

static void on_eager(struct session *s, const struct said *said, struct reader *r, struct outbox *out)
{
    struct msg_eager m;
    const void *payload;
    uint64_t id = s->peers[said->from].id;
    bool good = get_eager(r, &m, &payload) && eager_fits(s, id, &m);
    uint32_t rank = good ? own_word(s, said->from, &m.name, TO_RECEIVER) : NONE;
    if (rank == NONE) {
        links_bad(s, id, out);
        return;
    }
    struct op *op = s->frozen ? NULL : op_hear(s, said->from, rank, &m.name);
    if (op != NULL) {
        mismatch_hear(s, op, rank, &m.params);
        op->class->eager(s, op, rank, &m, payload, out);
    }
}

static void on_want(struct session *s, const struct said *said, struct reader *r, struct outbox *out)
{
    struct msg_want m;
    uint32_t rank = get_want(r, &m) ? own_word(s, said->from, &m.name, TO_SENDER) : NONE;
    if (rank == NONE) {
        links_bad(s, s->peers[said->from].id, out);
        return;
    }
    struct op *op = op_find(s, &m.name);
    if (op != NULL && op->eager && (op->phase == OP_RUN || op->phase == OP_HOLDING) && op->refused == 0 && !s->frozen) {
        announce_to(s, op, rank, out);
    }
}

static void on_hold(struct session *s, const struct said *said, struct reader *r, struct outbox *out)
{
    struct msg_hold m;
    if (!get_hold(r, &m)) {
        links_bad(s, s->peers[said->from].id, out);
        return;
    }
    if ((said->header->view != s->view.view && !MUTANT(STALE_VIEW)) || (s->frozen && !MUTANT(LATE_HOLD))) {
        return; /* P4, P8 */
    }
    class_of(s, &m.name)->hold(s, said, &m, out);
}

static void on_refuse(struct session *s, const struct said *said, struct reader *r, struct outbox *out)
{
    struct msg_refuse m;
    if (!get_refuse(r, &m)) {
        links_bad(s, s->peers[said->from].id, out);
        return;
    }
    if (said->header->view != s->view.view || (s->frozen && !MUTANT(REFUSE_LATE))) {
        return; /* P8, P4 */
    }
    class_of(s, &m.name)->refuse(s, said, &m, out);
}

static void on_finished(struct session *s, const struct said *said, struct reader *r, struct outbox *out)
{
    struct msg_finished m;
    uint32_t own = s->peers[said->from].rank;
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
    if (!good || !reader_done(r)) {
        links_bad(s, s->peers[said->from].id, out);
    } else if (rank != NONE) {
        peers_relay(s, said->from, m.origin, said->header, said->payload, out);
    }
}

bool op_frame(struct session *s, const struct said *said, struct outbox *out)
{
    struct reader r;
    reader_init(&r, said->payload, said->header->length);
    bool current = said->header->view == s->view.view;
    switch (said->header->type) {
    case FRAME_HOLD:
        on_hold(s, said, &r, out);
        return true;
    case FRAME_REFUSE:
        on_refuse(s, said, &r, out);
        return true;
    case FRAME_FINISHED:
        on_finished(s, said, &r, out);
        return true;
    case FRAME_READY:
        if (current) {
            on_ready(s, said, &r, out);
        }
        return true;
    case FRAME_EAGER:
        if (current) {
            on_eager(s, said, &r, out);
        }
        return true;
    case FRAME_WANT:
        if (current) {
            on_want(s, said, &r, out);
        }
        return true;
    default:
        return false;
    }
}
