/* finished.c - telling the others which operations have finished everywhere, many in one message.
 * SPDX-License-Identifier: MIT */
#include "session/calls/finished.h"
#include "session/tables/peers.h"

void finished_note(struct session *s, const struct op_name *name, struct outbox *out)
{
    PCCL_ASSERT(s->finished.count < SESSION_FINISHED_BATCH);
    s->finished.names[s->finished.count++] = *name;
    if (s->finished.count == 1) {
        s->finished.by = s->clock.now + 100000000;
    }
    if (s->finished.count == SESSION_FINISHED_BATCH) {
        finished_flush(s, out);
    }
}

void finished_forget(struct session *s)
{
    s->finished.count = 0;
    s->finished.by = INT64_MAX;
}

static uint32_t finished_for(const struct session *s, uint64_t to)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < s->finished.count; i++) {
        n += s->finished.names[i].to == to;
    }
    return n;
}

void finished_flush(struct session *s, struct outbox *out)
{
    s->finished.by = INT64_MAX;
    while (s->finished.count > 0) {
        uint64_t to = s->finished.names[0].to; /* 0: all members; of a pair its receiver alone */
        struct writer *w = outbox_frame(out, FRAME_FINISHED, s->run, s->view.view);
        uint32_t left = 0;
        put_finished(w, &(struct msg_finished){.origin = s->id, .names = finished_for(s, to)});
        for (uint32_t i = 0; i < s->finished.count; i++) {
            if (s->finished.names[i].to == to) {
                put_op_name(w, &s->finished.names[i]);
            } else {
                s->finished.names[left++] = s->finished.names[i];
            }
        }
        s->finished.count = left;
        if (to == 0) {
            peers_send_all(s, out);
        } else {
            peers_send(s, view_rank(s, to), out);
        }
    }
}
