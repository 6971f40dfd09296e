/* cores.h - how many cores this process may use, and how many the processes of its host share.
 * SPDX-License-Identifier: MIT */
#ifndef PCCL_ENGINE_CORES_H
#define PCCL_ENGINE_CORES_H

#include <stdint.h>

/* What this thread may run on; at least 1. */
uint32_t cores_own(void);
/* What all processes of this host may run on together, inside a container those of the container; at least cores_own().  A process that
 * its launcher has bound to some of them says nothing of where the others are. */
uint32_t cores_shared(void);
/* The cores in a list as the kernel writes it, "0-3,8"; 0: it is none. */
uint32_t cores_listed(const char *text);

#endif
