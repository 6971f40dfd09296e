/* slots.h - the calls of the program, from their launch to their outcome.
 * SPDX-License-Identifier: MIT */
#ifndef PCCL_SESSION_SLOTS_H
#define PCCL_SESSION_SLOTS_H

#include "session/session_state.h"

size_t slot_table_bytes(uint32_t count);
void slot_table_use(struct session *s, void *storage, uint32_t count); /* in place of the present one */
/* Before the first change in a step: what it tells the shell is lost if it fails (poison.c). */
struct slot *slot_touch(struct session *s, uint32_t slot);
void slot_move(struct session *s, uint32_t slot, uint8_t phase);
void slot_end(struct session *s, uint32_t slot, enum session_result result, uint8_t cause, uint64_t culprit,
              struct outbox *out);
void slot_sizes(struct session *s, uint32_t slot, uint64_t view, const struct sizes *sizes);
void slot_stop(struct session *s, uint32_t slot, struct outbox *out);
void slot_idle(struct session *s, uint32_t slot, struct outbox *out);
void snapshot_take(struct session *s, uint64_t view, const struct sizes *sizes);
enum session_result slot_result(const struct slot *c, uint8_t cause);
void slot_return(struct session *s, uint32_t slot, struct outbox *out);
void slot_wait(struct session *s, uint32_t slot, bool waits); /* DEFERRED: without a number, until its deadline */
void slot_table_forget(struct session *s); /* it has no entries; the next that is used finds nothing to move */
void slot_open(struct session *s, uint32_t slot, const struct session_launch *l); /* DEFERRED */
void slot_close(struct session *s, uint32_t slot);
void slot_due(struct session *s, uint32_t slot, int64_t at); /* its deadline; INT64_MAX: none */
void snapshot_clear(struct session *s);

#endif
