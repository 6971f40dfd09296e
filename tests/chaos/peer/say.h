/* say.h - the log of a peer program: lines to the runner, through a pipe of their own.
 *
 * One line is one write of at most a pipe's atomic size: a process that is killed leaves whole lines, and threads do not mix
 * theirs.  The first character is the kind of line (chaos_records.h of the runner reads them).
 * SPDX-License-Identifier: MIT */
#ifndef PCCL_TESTS_SAY_H
#define PCCL_TESTS_SAY_H

#include <pccl.h>

enum { SAY_DESCRIPTOR = 3, SAY_LINE = 1024 };

struct say_outcome { /* of a call that all members of a group make alike */
    pcclResult_t result;
    uint32_t world;
    uint64_t tx_bytes, rx_bytes, digest, who;
};

int64_t say_now_ms(void);

/* Whose lines this thread writes, by key; each line says so. */
void say_as(unsigned key);

/* "B key": such a call begins.  "E key ...": it has ended; after an error, the cause is read here. */
void say_begin(const char *key);
void say_end(const char *key, const struct say_outcome *o);
/* "C name", "R name result cause": any other call. */
void say_call(const char *name);
void say_return(const char *name, pcclResult_t result);
/* "P group lineage revision step world global": a step is complete. */
void say_progress(uint32_t group, uint64_t lineage, uint64_t revision, uint64_t step, int world, int global);
/* "A name": of the algorithm that large sums take from now on. */
void say_algorithm(const char *name);
/* "! text": something that must not be. */
__attribute__((format(printf, 1, 2))) void say_finding(const char *format, ...);
/* "I text": for a reader. */
__attribute__((format(printf, 1, 2))) void say_note(const char *format, ...);

#endif
