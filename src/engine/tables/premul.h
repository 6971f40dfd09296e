/* premul.h - operators that a program made of a factor of its own: pre-multiplied sums, by number.
 * SPDX-License-Identifier: MIT */
#ifndef PCCL_ENGINE_PREMUL_H
#define PCCL_ENGINE_PREMUL_H

#include "core/dtype.h"

struct comm;

struct premul_op {
    bool used;
    enum dtype dtype;
    const void *from; /* borrowed: where the factor is at each launch; null: it is `factor` */
    uint64_t factor;  /* its bits in that type */
    uint32_t uses;    /* of its place before */
};

/* Written by premul.c, with comm.lock. */
struct premul_ops {
    struct premul_op *at; /* owned */
    uint32_t room;
};

/* False: no memory, or BOUNDS_PREMUL_OPS of them are used. */
bool premul_add(struct comm *c, enum dtype dtype, const void *factor, bool by_pointer, uint32_t *number_out);
/* As it is now, read where it is to be read; false: there is none of that number. */
bool premul_find(struct comm *c, uint32_t number, struct premul_op *out);
bool premul_drop(struct comm *c, uint32_t number);
void premul_fini(struct comm *c);

#endif
