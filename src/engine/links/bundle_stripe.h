/* bundle_stripe.h - the sockets of a data connection.
 * SPDX-License-Identifier: MIT */
#ifndef PCCL_ENGINE_BUNDLE_STRIPE_H
#define PCCL_ENGINE_BUNDLE_STRIPE_H

#include "engine/links/link.h"
#include "engine/links/bundle.h"

uint64_t bundle_token(const struct engine *e); /* for one that is dialled; 0: it is to be a plain socket */
/* With comm.lock.  False: no memory. */
bool bundle_stripe_begin(struct stream *s, const struct bundle_end *end);
/* Whether the HELLO of a socket may join; takes its connection, whose HELLO has been acknowledged. */
bool bundle_stripe_may_join(const struct link *l, const struct msg_hello *m);
void bundle_stripe_join(struct link *l, const struct msg_hello *m, struct conn *conn);
int64_t bundle_stripe_tick(struct link *l, int64_t now);

#endif
