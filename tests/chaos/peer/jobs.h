/* jobs.h - one all-reduce of a plan: drawn, filled, described, and judged when it has ended.
 *
 * SPDX-License-Identifier: MIT */
#ifndef PCCL_TESTS_JOBS_H
#define PCCL_TESTS_JOBS_H

#include "contribution.h"
#include "chaos_member.h"
#include "tests/chaos/dice.h"

enum { JOB_KEY = 64 };

struct job {
    struct contribution c;
    uint64_t tag;
    bool in_place;
    void *send, *recv;  /* owned; the same memory if in place */
    int number, attempt; /* of the operation in its revision; of this call of it */
    char key[JOB_KEY];  /* name of the call: group, lineage, revision, number, attempt */
    bool done;          /* a call of it has succeeded */
    pcclAsyncReduceOp_t handle;
    pcclResult_t result; /* of the last call */
};

/* What the dice say, at most `most_bytes`; false: no memory. */
bool job_draw(struct job *j, struct member *m, struct dice *d, size_t most_bytes, uint64_t tag);
void job_free(struct job *j);

/* Names the next call of this operation and fills its input; `form` tells apart calls that are compared differently. */
void job_prepare(struct job *j, const struct member *m, char form);
pcclReduceDescriptor_t job_descriptor(const struct job *j);

/* After the end of the call: values, input, world; writes the log.  Returns `result`. */
pcclResult_t job_judge(struct job *j, const struct member *m, pcclResult_t result, const pcclReduceInfo_t *info);

/* Whether an in-place or other buffer holds either the input or a right result: after a bulk call that has failed. */
void job_judge_either(struct job *j, const struct member *m);

#endif
