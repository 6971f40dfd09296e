/* finished.c - telling the others which operations have finished everywhere, many in one message.
 * SPDX-License-Identifier: MIT */
#include "session/calls/finished.h"
#include "session/tables/peers.h"

void finished_note(struct session *s, const struct op_name *name, struct outbox *out)
{
    PCCL_ASSERT(s->finished_count < SESSION_FINISHED_BATCH);
    s->finished[s->finished_count++] = *name;
    if (s->finished_count == 1) {
        s->finished_by = s->now + 100000000;
    }
    if (s->finished_count == SESSION_FINISHED_BATCH) {
        finished_flush(s, out);
    }
}

static uint32_t finished_for(const struct session *s, uint64_t to)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < s->finished_count; i++) {
        n += s->finished[i].to == to;
    }
    return n;
}

void finished_flush(struct session *s, struct outbox *out)
{
    s->finished_by = INT64_MAX;
    while (s->finished_count > 0) {
        uint64_t to = s->finished[0].to; /* 0: all members; of a pair its receiver alone */
        struct writer *w = outbox_frame(out, FRAME_FINISHED, s->run, s->view.view);
        uint32_t left = 0;
        put_finished(w, &(struct msg_finished){.origin = s->id, .names = finished_for(s, to)});
        for (uint32_t i = 0; i < s->finished_count; i++) {
            if (s->finished[i].to == to) {
                put_op_name(w, &s->finished[i]);
            } else {
                s->finished[left++] = s->finished[i];
            }
        }
        s->finished_count = left;
        if (to == 0) {
            peers_send_all(s, out);
        } else {
            peers_send(s, view_rank(s, to), out);
        }
    }
}
