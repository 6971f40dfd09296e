/* spares.h - memory of calls that have ended, kept for the next ones: fresh memory costs a fault for each page.
 *
 * Backups of in-place inputs, which may be as many as operations are in flight.  Blocks have sizes of a class, four to an octave, so that
 * those of about the same size serve each other; larger ones, up to four times, do before they would be dropped.  Invariant: kept and in
 * use together are never more than were in use at once since spares_rest.  Not thread-safe.
 * SPDX-License-Identifier: MIT */
#ifndef PCCL_ENGINE_SPARES_H
#define PCCL_ENGINE_SPARES_H

#include <stddef.h>

enum { SPARES_CLASSES = 4 * 32 }; /* from 16 KiB on */

struct spare;

/* Cleared: there are none. */
struct spares {
    struct spare *first[SPARES_CLASSES]; /* owned; by class */
    size_t kept, used, most;             /* bytes: in these lists, with callers, that were with them at once */
};

/* A block of *bytes at least, which it makes as many as the block has.  Its contents are arbitrary.  Null: there is no memory. */
void *spares_take(struct spares *s, size_t *bytes);
/* Back, with the size that take has told. */
void spares_give(struct spares *s, void *at, size_t bytes);
/* Frees what is kept. */
void spares_rest(struct spares *s);

#endif
