/* copy.h - copies of what is not read again soon.
 * SPDX-License-Identifier: MIT */
#ifndef PCCL_KERNELS_COPY_H
#define PCCL_KERNELS_COPY_H

#include <stddef.h>

/* As memcpy; what is written goes past the cache, where the processor can do that: no line is fetched only to be written over, and
 * none that somebody needs makes room for it. */
void copy_away(void *to, const void *from, size_t bytes);

#endif
