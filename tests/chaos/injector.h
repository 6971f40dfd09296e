/* injector.h - the faults of a plan, brought about and healed.
 *
 * SPDX-License-Identifier: MIT */
#ifndef PCCL_TESTS_INJECTOR_H
#define PCCL_TESTS_INJECTOR_H

#include "round.h"

/* Does what is due; returns when it wants to be called again (ms since the round began), INT64_MAX: never. */
int64_t injector_pass(struct round *r, int64_t now_ms);

/* True when every fault has begun and has been healed. */
bool injector_done(const struct round *r);

#endif
