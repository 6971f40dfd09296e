/* shm_ring.c - a stream of bytes in each direction through memory that two processes share.
 *
 * A position is stored and the other's sleep word is loaded in sequential consistency, and the sleeper does the same the other way
 * round: so one of the two sees the other (Dekker), and no sleeper is forgotten.
 * SPDX-License-Identifier: MIT */
#define _GNU_SOURCE /* memfd_create, seals */
#include "net/shm_ring.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "net/fds.h"

enum { SHM_SEALS = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL };

pccl_status shm_ring_make(uint32_t bytes, int *fd_out, struct err *err)
{
    int fd = fds_own(memfd_create("pccl", MFD_CLOEXEC | MFD_ALLOW_SEALING));
    if (fd < 0) {
        return err_errno(err, "make shared memory");
    }
    if (fallocate(fd, 0, 0, (off_t)shm_ring_total(bytes)) != 0 || fcntl(fd, F_ADD_SEALS, SHM_SEALS) != 0) {
        pccl_status st = err_errno(err, "allocate shared memory");
        fds_close(fd);
        return st;
    }
    *fd_out = fd;
    return PCCL_OK;
}

pccl_status shm_ring_map(struct shm_ring *r, int fd, uint32_t bytes, bool first, struct err *err)
{
    struct stat stat;
    int seals = fcntl(fd, F_GET_SEALS);
    if (seals < 0 || (seals & SHM_SEALS) != SHM_SEALS) {
        return err_set(err, PCCL_ERR_PROTOCOL, "shared memory of the peer is not sealed: it could shrink");
    }
    bool known = fstat(fd, &stat) == 0;
    bytes = !first && known && stat.st_size == (off_t)shm_ring_total(bytes / 2) ? bytes / 2 : bytes;
    size_t total = shm_ring_total(bytes);
    if (!known || stat.st_size != (off_t)total) {
        return err_set(err, PCCL_ERR_PROTOCOL, "shared memory of the peer has another size than %zu bytes", total);
    }
    if (fallocate(fd, 0, 0, (off_t)total) != 0) { /* who made it may have left holes */
        return err_errno(err, "allocate shared memory");
    }
    unsigned char *memory = mmap(NULL, total, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (memory == MAP_FAILED) {
        return err_errno(err, "map shared memory");
    }
    int rc = madvise(memory, total, MADV_DONTFORK);
    (void)rc; /* a child would keep the memory, nothing else */
    struct shm_end way[2];
    for (int i = 0; i < 2; i++) {
        union {
            unsigned char *bytes;
            struct shm_words *words;
        } at = {.bytes = memory + i * SHM_RING_WORDS}; /* of the first page */
        way[i] = (struct shm_end){at.words, memory + 2 * SHM_RING_WORDS + (size_t)i * bytes, 0, bytes};
    }
    r->memory = memory;
    r->bytes = bytes;
    r->bare = 0;
    r->out = way[first ? 0 : 1];
    r->in = way[first ? 1 : 0];
    return PCCL_OK;
}

void shm_ring_unmap(struct shm_ring *r)
{
    if (r->memory != NULL) {
        munmap(r->memory, shm_ring_total(r->bytes));
        r->memory = NULL;
    }
}

static uint64_t shm_page(uint64_t at)
{
    return at & ~(uint64_t)(SHM_RING_PAGE - 1);
}

/* Takes pages for the next bytes.  Where memory has run out, a write to a page that is not there is a signal. */
static bool shm_populate(struct shm_ring *r, size_t bytes)
{
    const struct shm_end *end = &r->out;
    uint64_t to = shm_page(end->at + bytes + SHM_RING_PAGE - 1);
    while (r->bare > 0 && r->paged < to) {
        size_t at = (size_t)(r->paged & (end->size - 1)), run = end->size - at;
        run = run < to - r->paged ? run : (size_t)(to - r->paged);
        run = run < r->bare ? run : r->bare;
        if (madvise(end->bytes + at, run, MADV_POPULATE_WRITE) != 0 && errno != EINVAL) { /* before Linux 5.14 there is no such order */
            return false;
        }
        r->paged += run;
        r->bare -= (uint32_t)run;
    }
    return true;
}

/* Copies between the ring and one part, from the end's position on. */
static void shm_copy(const struct shm_end *end, unsigned char *part, size_t bytes, bool out)
{
    uint64_t from = end->at;
    while (bytes > 0) {
        size_t at = (size_t)(from & (end->size - 1)), run = end->size - at;
        run = run < bytes ? run : bytes;
        if (out) {
            memcpy(end->bytes + at, part, run);
        } else {
            memcpy(part, end->bytes + at, run);
        }
        from += run;
        part += run;
        bytes -= run;
    }
}

static void shm_wake(_Atomic uint32_t *sleeps, void (*ring)(int), int fd)
{
    if (atomic_load(sleeps) != 0 && atomic_exchange(sleeps, 0) != 0) {
        ring(fd);
    }
}

/* What the reader has left us; more than a ring: it lies. */
static uint64_t shm_room(const struct shm_end *end)
{
    uint64_t used = end->at - atomic_load(&end->words->taken);
    return used <= end->size ? end->size - used : UINT64_MAX;
}

/* What the writer has for us; more than a ring: it lies. */
static uint64_t shm_filled(const struct shm_end *end)
{
    uint64_t filled = atomic_load(&end->words->written) - end->at;
    return filled <= end->size ? filled : UINT64_MAX;
}

/* Shows the reader what there is. */
static void shm_tell(struct shm_end *end, void (*ring)(int), int fd)
{
    atomic_store(&end->words->written, end->at);
    shm_wake(&end->words->reader_sleeps, ring, fd);
}

pccl_status shm_ring_write(struct shm_ring *r, const struct iovec *parts, int count, size_t *moved, void (*ring)(int), int fd)
{
    struct shm_end *end = &r->out;
    *moved = 0;
    uint64_t room = shm_room(end);
    if (r->bare > 0 && room != UINT64_MAX) {
        size_t bytes = 0;
        for (int i = 0; i < count; i++) {
            bytes += parts[i].iov_len;
        }
        if (!shm_populate(r, bytes < room ? bytes : (size_t)room)) {
            return PCCL_ERR_NOMEM;
        }
    }
    size_t untold = 0;
    for (int i = 0; i < count && room != UINT64_MAX && room > 0; i++) {
        unsigned char *part = parts[i].iov_base;
        for (size_t left = parts[i].iov_len; left > 0 && room > 0;) {
            size_t piece = left < SHM_RING_PIECE - untold ? left : SHM_RING_PIECE - untold;
            piece = piece < room ? piece : (size_t)room;
            shm_copy(end, part, piece, true);
            end->at += piece;
            *moved += piece;
            part += piece;
            left -= piece;
            room -= piece;
            untold += piece;
            if (untold == SHM_RING_PIECE) {
                shm_tell(end, ring, fd);
                untold = 0;
            }
        }
    }
    if (untold > 0) {
        shm_tell(end, ring, fd);
    }
    if (room == UINT64_MAX) {
        return PCCL_ERR_PROTOCOL;
    }
    return *moved > 0 ? PCCL_OK : PCCL_ERR_AGAIN;
}

/* Shows the writer what is free.  It is woken for a piece of work: half a ring, or all that there was. */
static void shm_taken(struct shm_end *end, uint64_t filled, void (*ring)(int), int fd)
{
    atomic_store(&end->words->taken, end->at);
    if (filled <= end->size / 2) {
        shm_wake(&end->words->writer_sleeps, ring, fd);
    }
}

pccl_status shm_ring_read(struct shm_ring *r, const struct iovec *parts, int count, size_t *moved, void (*ring)(int), int fd)
{
    struct shm_end *end = &r->in;
    *moved = 0;
    uint64_t filled = shm_filled(end);
    if (filled == UINT64_MAX) {
        return PCCL_ERR_PROTOCOL;
    }
    for (int i = 0; i < count && filled > 0; i++) {
        unsigned char *part = parts[i].iov_base;
        for (size_t left = parts[i].iov_len; left > 0 && filled > 0;) {
            size_t piece = left < SHM_RING_PIECE ? left : SHM_RING_PIECE;
            piece = piece < filled ? piece : (size_t)filled;
            shm_copy(end, part, piece, false);
            end->at += piece;
            *moved += piece;
            part += piece;
            left -= piece;
            filled -= piece;
            shm_taken(end, filled, ring, fd);
        }
    }
    return *moved > 0 ? PCCL_OK : PCCL_ERR_AGAIN;
}

pccl_status shm_ring_lend(const struct shm_ring *r, const void **data, size_t *bytes)
{
    const struct shm_end *end = &r->in;
    uint64_t filled = shm_filled(end);
    size_t at = (size_t)(end->at & (end->size - 1)), run = end->size - at;
    if (filled == UINT64_MAX) {
        return PCCL_ERR_PROTOCOL;
    }
    run = run < SHM_RING_PIECE ? run : SHM_RING_PIECE;
    *data = end->bytes + at;
    *bytes = run < filled ? run : (size_t)filled;
    return filled > 0 ? PCCL_OK : PCCL_ERR_AGAIN;
}

void shm_ring_take(struct shm_ring *r, size_t bytes, void (*ring)(int), int fd)
{
    r->in.at += bytes;
    shm_taken(&r->in, shm_filled(&r->in), ring, fd);
}

bool shm_ring_has(const struct shm_ring *r)
{
    return atomic_load_explicit(&r->in.words->written, memory_order_acquire) != r->in.at;
}

bool shm_ring_rest(struct shm_ring *r)
{
    atomic_store(&r->in.words->reader_sleeps, 1);
    return atomic_load(&r->in.words->written) == r->in.at;
}

bool shm_ring_room(struct shm_ring *r, bool sleep)
{
    if (sleep) {
        atomic_store(&r->out.words->writer_sleeps, 1);
    }
    return shm_room(&r->out) >= SHM_RING_PIECE;
}

/* The other end looks at no byte that it has taken, until it is written again. */
void shm_ring_spare(struct shm_ring *r)
{
    const struct shm_end *end = &r->out;
    uint64_t room = shm_room(end), to = shm_page(end->at + room);
    uint64_t first = shm_page(end->at + (room < end->size ? SHM_RING_PAGE - 1 : 0)); /* what is begun holds nothing if all was taken */
    if (room == UINT64_MAX) {
        return;
    }
    r->paged = first;
    for (r->bare = 0; first < to;) {
        size_t at = (size_t)(first & (end->size - 1)), run = end->size - at;
        run = run < to - first ? run : (size_t)(to - first);
        if (madvise(end->bytes + at, run, MADV_REMOVE) != 0) {
            return;
        }
        first += run;
        r->bare += (uint32_t)run;
    }
}
