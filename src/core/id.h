/* id.h - peer ids for people: epoch and counter, "1.7".
 * SPDX-License-Identifier: MIT */
#ifndef PCCL_CORE_ID_H
#define PCCL_CORE_ID_H

#include <stdint.h>

#define ID_FORMAT "%u.%u"
#define ID_PARTS(id) (uint32_t)((uint64_t)(id) >> 32), (uint32_t)(id)

#endif
