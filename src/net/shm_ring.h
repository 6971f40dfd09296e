/* shm_ring.h - a stream of bytes in each direction through memory that two processes share.
 *
 * The memory is two rings of bytes, each with four words: what the writer has written in all, what the reader has taken in
 * all, and whether either sleeps.  Nothing in it is believed: an end keeps its own position to itself and reads the other's, which must
 * lie within one ring of it; bytes are read once, copied out or added to a sum, so they are what bytes from a network are.
 * Nobody sleeps on memory: who finds nothing says so, looks again, and waits for the bell; who moves bytes afterwards rings.
 *
 * Invariant: an access never leaves the mapping, whatever the other end writes into it, and the mapping never shrinks (seals).
 * SPDX-License-Identifier: MIT */
#ifndef PCCL_NET_SHM_RING_H
#define PCCL_NET_SHM_RING_H

#include <stdalign.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/uio.h>

#include "core/status.h"

enum {
    SHM_RING_BYTES = 1 << 20,         /* of one direction, for data: neither end waits for the other within a megabyte; sizes are powers of 2 */
    SHM_RING_CONTROL_BYTES = 128 << 10, /* for control frames */
    SHM_RING_PIECE = 32 << 10,       /* told to the other end at once, so that it copies while we do */
    SHM_RING_PAGE = 4096,
    SHM_RING_WORDS = SHM_RING_PAGE / 2, /* of one direction: both in one page, before all bytes */
};

/* The memory of both directions. */
static inline size_t shm_ring_total(uint32_t bytes)
{
    return 2 * ((size_t)SHM_RING_WORDS + bytes);
}

/* One direction, as it lies in shared memory: every word on a cache line of its own. */
struct shm_words {
    alignas(64) _Atomic uint64_t written;
    alignas(64) _Atomic uint64_t taken;
    alignas(64) _Atomic uint32_t reader_sleeps;
    alignas(64) _Atomic uint32_t writer_sleeps;
};

/* One direction as one end sees it. */
struct shm_end {
    struct shm_words *words; /* borrowed, of the mapping */
    unsigned char *bytes;    /* borrowed, of the mapping */
    uint64_t at;             /* moved by this end, in all */
    uint32_t size;           /* of the ring */
};

struct shm_ring {
    void *memory;            /* owned; null: not mapped */
    uint32_t bytes;          /* of one direction */
    struct shm_end in, out;
    uint64_t paged;          /* the pages of `out` have been taken again up to there, */
    uint32_t bare;           /* ... all but so many bytes, from there on */
};

/* A descriptor of fresh memory for it, allocated in full and sealed; the caller's to close.  `bytes`: of one direction. */
pccl_status shm_ring_make(uint32_t bytes, int *fd_out, struct err *err) PCCL_MUST_CHECK;
/* Maps it for one end; `first` is the end that made it, and may have made half as much.  Refuses memory that could shrink under us, or is
 * of another size. */
pccl_status shm_ring_map(struct shm_ring *r, int fd, uint32_t bytes, bool first, struct err *err) PCCL_MUST_CHECK;
void shm_ring_unmap(struct shm_ring *r);

/* Moves what goes; *moved > 0 with OK.  AGAIN: nothing (the other end rings only after shm_ring_rest, or shm_ring_room with `sleep`);
 * PROTOCOL: the other end wrote a position that cannot be; NOMEM.  `ring` is called, possibly several times, when the other end sleeps. */
pccl_status shm_ring_write(struct shm_ring *r, const struct iovec *parts, int count, size_t *moved, void (*ring)(int), int fd);
pccl_status shm_ring_read(struct shm_ring *r, const struct iovec *parts, int count, size_t *moved, void (*ring)(int), int fd);
/* The next bytes where they lie, at most a piece of them, with OK; they are there until they are taken, but the other end can change them. */
pccl_status shm_ring_lend(const struct shm_ring *r, const void **data, size_t *bytes);
void shm_ring_take(struct shm_ring *r, size_t bytes, void (*ring)(int), int fd);

/* Whether there is something to read, or a lie; tells the other end nothing. */
bool shm_ring_has(const struct shm_ring *r);
/* Tells the other end to ring for the next bytes; false: some have come. */
bool shm_ring_rest(struct shm_ring *r);

/* Whether a write that found no room would find a piece of it now, or a lie; with `sleep` the other end rings for it, if not. */
bool shm_ring_room(struct shm_ring *r, bool sleep);

/* Gives back the pages of what this end writes and the other end has taken.  A write takes those again
 * that it needs; where there are none it says NOMEM and has moved nothing. */
void shm_ring_spare(struct shm_ring *r);

#endif
