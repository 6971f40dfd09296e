/* chaos_records.h - what the peers have said, as records that can be compared.
 *
 * SPDX-License-Identifier: MIT */
#ifndef PCCL_TESTS_RECORDS_H
#define PCCL_TESTS_RECORDS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { RECORD_NAME = 80 };

struct record {
    char kind;     /* 'B' a comparable call began, 'E' it ended, 'C' and 'R' the same of any other call */
    int key;       /* of the peer */
    int64_t at_ms;
    char name[RECORD_NAME]; /* of the call */
    int code, cause;
    uint32_t world;
    uint64_t tx_bytes, rx_bytes, digest, who, culprit;
};

struct records {
    struct record *at; /* owned */
    size_t count, capacity;
};

/* Reads a line of a log into *out; false: a line that is no record. */
bool record_read(const char *line, struct record *out);
bool records_add(struct records *all, const struct record *r);
void records_free(struct records *all);

/* By name, then in the order of their arrival. */
void records_sort(struct records *all);

#endif
