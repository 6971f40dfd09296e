/* test_window_memory.c - which memory of another member is mapped: only such as cannot shrink under whoever uses it.
 * SPDX-License-Identifier: MIT */
#define _GNU_SOURCE /* memfd_create */
#include "tests/testing.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "window/window_service.h"

enum { BYTES = 100, HEAD = 4096, TOTAL = HEAD + BYTES };

/* A window of two members, whose own part has memory. */
static struct window *window_with_memory(void)
{
    struct window *w = calloc(1, sizeof *w + 2 * sizeof w->peer[0]);
    w->world = 2;
    EXPECT(window_memory_make(w, BYTES) == PCCL_OK);
    return w;
}

static void window_end(struct window *w)
{
    window_memory_free(w);
    free(w);
}

/* The description by a member of this process that has the memory of `of` at this descriptor. */
static struct window_member member_at(const struct window *of, int fd)
{
    struct window_member m = {.bytes = BYTES, .rights = WINDOW_MAY_READ | WINDOW_MAY_WRITE, .process = (uint32_t)getpid(),
                              .descriptor = (uint32_t)fd};
    memcpy(m.token, of->token, sizeof m.token);
    return m;
}

static bool maps(struct window *w, const struct window_member *m)
{
    struct window_peer *p = &w->peer[1];
    window_memory_map(p, m);
    bool mapped = p->reach != NULL;
    EXPECT(mapped == (p->mapped != NULL));
    if (mapped) {
        munmap(p->mapped, p->mapped_bytes);
        *p = (struct window_peer){0};
    }
    return mapped;
}

TEST(memory_that_another_member_has_made_is_reached_with_its_bytes)
{
    struct window *of = window_with_memory(), *w = window_with_memory();
    struct window_member m = member_at(of, of->shared_fd);
    memcpy(of->base, "bytes", 5);
    window_memory_map(&w->peer[1], &m);
    EXPECT(w->peer[1].reach != NULL && memcmp(w->peer[1].reach, "bytes", 5) == 0);
    window_end(w); /* which unmaps it */
    window_end(of);
}

/* A read of bytes that the other process has cut off would be a signal that ends this one. */
TEST(memory_that_can_shrink_is_not_mapped)
{
    static const struct { unsigned flags; int seals; bool good; } files[] = {
        {MFD_CLOEXEC, 0, false}, {MFD_CLOEXEC | MFD_ALLOW_SEALING, 0, false}, {MFD_CLOEXEC | MFD_ALLOW_SEALING, F_SEAL_GROW, false},
        {MFD_CLOEXEC | MFD_ALLOW_SEALING, F_SEAL_SHRINK, true}};
    struct window *w = window_with_memory();
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        int fd = memfd_create("window", files[i].flags);
        EXPECT(ftruncate(fd, TOTAL) == 0 && pwrite(fd, w->token, sizeof w->token, 0) == (ssize_t)sizeof w->token);
        EXPECT(files[i].seals == 0 || fcntl(fd, F_ADD_SEALS, files[i].seals) == 0);
        struct window_member m = member_at(w, fd);
        EXPECT_EQ(maps(w, &m), files[i].good);
        close(fd);
    }
    FILE *file = tmpfile();
    if (file != NULL) { /* on a disk, where nothing is sealed */
        EXPECT(ftruncate(fileno(file), TOTAL) == 0 && pwrite(fileno(file), w->token, sizeof w->token, 0) == (ssize_t)sizeof w->token);
        struct window_member m = member_at(w, fileno(file));
        EXPECT(!maps(w, &m));
        fclose(file);
    }
    window_end(w);
}

TEST(memory_of_another_size_token_or_kind_is_not_mapped)
{
    struct window *of = window_with_memory(), *w = window_with_memory();
    struct window_member good = member_at(of, of->shared_fd), other;
    int ends[2];
    EXPECT(maps(w, &good));
    other = good;
    other.bytes = BYTES + 1;
    EXPECT(!maps(w, &other));
    other.bytes = BYTES - 1;
    EXPECT(!maps(w, &other));
    other = good;
    other.token[1] ^= 1;
    EXPECT(!maps(w, &other));
    other = good;
    other.process = 0; /* it shares none */
    EXPECT(!maps(w, &other));
    EXPECT(pipe(ends) == 0);
    other = member_at(of, ends[0]);
    EXPECT(!maps(w, &other));
    close(ends[0]);
    close(ends[1]);
    window_end(w);
    window_end(of);
}
