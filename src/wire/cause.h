/* cause.h - causes as they travel, for people.
 * SPDX-License-Identifier: MIT */
#ifndef PCCL_WIRE_CAUSE_H
#define PCCL_WIRE_CAUSE_H

#include "wire/control.h"

/* What happened, in words; null for what is no cause.  Those of a member are said to itself. */
const char *cause_text(uint8_t cause);

#endif
