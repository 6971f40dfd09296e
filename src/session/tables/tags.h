/* tags.h - the tags of the installed view, and the errors that are owed to their calls.
 * SPDX-License-Identifier: MIT */
#ifndef PCCL_SESSION_TAGS_H
#define PCCL_SESSION_TAGS_H

#include "session/session_state.h"

size_t tag_table_bytes(uint32_t count);
void tag_table_use(struct session *s, void *storage, uint32_t count); /* in place of the present one */
struct op_name tag_name(const struct tag *t); /* of its next operation */
struct tag *tag_of(struct session *s, const struct op_name *name);
struct tag *tag_make(struct session *s, const struct op_name *name); /* adds; null if full */
struct tag *tag_find(struct session *s, uint8_t space, uint64_t tag); /* of other spaces than PAIR */
struct tag *tag_get(struct session *s, uint8_t space, uint64_t tag); /* adds; null if full */
void tag_call(struct tag *t, uint32_t slot); /* it has one more un-collected call */
uint32_t tag_refusals(const struct session *s, const struct tag *t);
void tag_refused(struct session *s, struct tag *t);
void tag_taken(struct session *s, struct tag *t);     /* ... all members have launched one of those */
void tag_caught_up(struct session *s, struct tag *t); /* ... and both ends of a pair all of those */
bool owed_add(struct session *s, const struct owed *what);
bool owed_take(struct session *s, struct tag *t, struct owed *what);
void owed_clear(struct session *s);
void owed_table_use(struct session *s, void *storage, uint32_t count); /* in place of the present one */
void tags_renew(struct session *s); /* a new view, or none */
void tags_no_refusals(struct session *s); /* all members begin anew */

#endif
