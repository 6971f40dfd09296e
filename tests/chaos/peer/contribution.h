/* contribution.h - what a peer puts into an operation, and what must come out.
 *
 * One idea: each input is a known function of (name of the call, key of the peer, element), and its first elements say who
 * took part and how often; so whoever holds a result can compute it again from nothing but the name of the call, and sees a
 * missing, doubled or stale contribution for what it is.
 * Invariant: contribution_fill writes `count` elements and reads nothing; the same arguments give the same bytes.
 * SPDX-License-Identifier: MIT */
#ifndef PCCL_TESTS_CONTRIBUTION_H
#define PCCL_TESTS_CONTRIBUTION_H

#include <pccl.h>

enum { CONTRIBUTION_TEXT = 160 };

struct contribution {
    uint64_t call;  /* hash of the call's name */
    size_t count;
    pcclDataType_t type;
    pcclRedOp_t op;
    pcclQuantizationAlgorithm_t quantised;
    pcclDataType_t quantised_to;
    bool rough;     /* values whose sum depends on the order: compared with a tolerance here, bit by bit between the peers */
};

size_t contribution_element_bytes(pcclDataType_t type);
size_t contribution_bytes(const struct contribution *c);

/* Least count whose result says who took part. */
size_t contribution_telling(const struct contribution *c);

void contribution_fill(const struct contribution *c, unsigned key, void *buffer);

/* True if `buffer` holds what contribution_fill writes. */
bool contribution_unchanged(const struct contribution *c, unsigned key, const void *buffer);

/* Reads from a result who took part (1 << key), checks every element against a fold of its own and the number of those who
 * took part against `world`; false with a text that says what is wrong.  Too short to tell: *who_out is 0. */
bool contribution_check(const struct contribution *c, const void *result, uint32_t world, uint64_t *who_out,
                        char text[CONTRIBUTION_TEXT]);

uint64_t contribution_digest(const void *bytes, size_t size);

#endif
