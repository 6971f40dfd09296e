/* environment.h - what the variables of the environment say of the engine.
 * SPDX-License-Identifier: MIT */
#ifndef PCCL_ENGINE_ENVIRONMENT_H
#define PCCL_ENGINE_ENVIRONMENT_H

#include "core/status.h"

struct engine;

/* Reads them into an engine that starts.  INVALID: err names the variable and what may be said. */
pccl_status environment_read(struct engine *e, struct err *err) PCCL_MUST_CHECK;

#endif
