/* trial.h - one collective call whose inputs are known: what each rank gives, what it must have in the end, and the call itself.
 *
 * Inputs are a function of (call, rank, element), small integers that all types hold exactly.  What must come out is computed from
 * everybody's inputs, without the library; what lies between and behind the parts of an output must stay as it was.
 * SPDX-License-Identifier: MIT */
#ifndef PCCL_TESTS_TRIAL_H
#define PCCL_TESTS_TRIAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "pccl.h"

enum trial_kind { ALL_REDUCE, REDUCE_SCATTER, ALL_GATHER, BROADCAST, SCATTER, ALL_TO_ALL, REDUCE, GATHER, BARRIER, TRIAL_KINDS };
enum { TRIAL_TYPES = 15, TRIAL_MOST_WORLD = 9 };

struct trial {
    enum trial_kind kind;
    pcclDataType_t type;
    pcclRedOp_t op;
    size_t count;
    bool uneven, in_place, async;
    uint32_t root;
    uint32_t number; /* of the call: names its inputs */
};

struct trial_buffers {
    size_t in_count, out_count;
    unsigned char *in, *out, *want;
};

bool trial_reduces(enum trial_kind kind);
/* Whether there is a form with counts. */
bool trial_has_lists(enum trial_kind kind);

/* Elements from the beginning of a rank's input or output to the end of its last part that is not empty. */
size_t trial_reach(const struct trial *t, bool in, uint32_t world, uint32_t self);
/* The element at which its own part begins, of the buffer that holds parts of all. */
size_t trial_own_place(const struct trial *t, uint32_t self);

/* The buffers of rank `self`; owned by the caller, who ends them with trial_buffers_free. */
struct trial_buffers trial_make(const struct trial *t, uint32_t world, uint32_t self);
void trial_buffers_free(struct trial_buffers *b);
/* `op` null: blocks. */
pcclResult_t trial_call(const struct trial *t, pcclComm_t *comm, uint32_t world, uint32_t self, const struct trial_buffers *b,
                        pcclAsyncOp_t *op);
/* After a success: whether every byte is as it must be.  Prints the call if not. */
bool trial_is_right(const struct trial *t, uint32_t world, uint32_t self, const struct trial_buffers *b);
/* After an error: whether what this rank gave, in place or not, is as it was.  Prints the call if not. */
bool trial_is_intact(const struct trial *t, uint32_t world, uint32_t self, const struct trial_buffers *b);

#endif
