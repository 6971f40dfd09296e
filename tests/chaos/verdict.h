/* verdict.h - what must hold of a finished round, judged by what its processes have said.
 *
 * SPDX-License-Identifier: MIT */
#ifndef PCCL_TESTS_VERDICT_H
#define PCCL_TESTS_VERDICT_H

#include "round.h"

/* Compares the outcomes of every call that several peers have made; each breach is a finding. */
void verdict_on_calls(struct round *r);

/* Looks at how the processes have ended and at what they have written where nothing should be. */
void verdict_on_processes(struct round *r);

/* Where nothing has happened that may cost a peer its place, nobody has lost it. */
void verdict_on_places(struct round *r);

#endif
