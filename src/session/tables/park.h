/* park.h - payloads that came before they could be used.
 * SPDX-License-Identifier: MIT */
#ifndef PCCL_SESSION_PARK_H
#define PCCL_SESSION_PARK_H

#include "session/session_state.h"

void park_drop(struct session *s, struct op *op, uint32_t rank); /* gives the parked payload of that rank back */
unsigned char *park_at(struct session *s, uint32_t block);
void park_payload(struct session *s, struct op *op, uint32_t rank, const struct msg_eager *m, const void *payload); /* or drops it */
void park_ask(struct session *s, struct op *op, uint32_t rank, struct outbox *out); /* it was dropped: once more */
size_t park_table_bytes(const struct session_config *cfg, uint32_t blocks);
void park_table_use(struct session *s, void *storage, uint32_t blocks); /* in place of the present one */
void park_table_forget(struct session *s); /* it has no blocks; the next that is used finds nothing to move */

#endif
