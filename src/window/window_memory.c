/* window_memory.c - memory of windows: of their own, shared with the processes of the host, and what is done there.
 *
 * It is a file without a name: who is told its process and descriptor opens it by way of /proc, which fails in another container, and
 * believes it by the token that it begins with.  Nothing is left of it when its processes are gone.
 * SPDX-License-Identifier: MIT */
#define _GNU_SOURCE /* memfd_create */
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include "net/fds.h"
#include "window/window_service.h"

enum { WINDOW_HEAD = 4096 }; /* bytes before those of the window, which begin a page */

static void *memory_map(int fd, size_t bytes, bool writes)
{
    void *at = mmap(NULL, bytes, PROT_READ | (writes ? PROT_WRITE : 0), MAP_SHARED, fd, 0);
    return at == MAP_FAILED ? NULL : at;
}

pccl_status window_memory_make(struct window *w, size_t bytes)
{
    if (bytes > SIZE_MAX / 2 || getrandom(w->token, sizeof w->token, 0) != sizeof w->token) {
        return PCCL_ERR_NOMEM;
    }
    size_t total = bytes + WINDOW_HEAD;
    w->shared_fd = fds_own(memfd_create("pccl-window", MFD_CLOEXEC | MFD_ALLOW_SEALING));
    bool made = w->shared_fd >= 0 && fallocate(w->shared_fd, 0, 0, (off_t)total) == 0 &&
                fcntl(w->shared_fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) == 0;
    w->shared = made ? memory_map(w->shared_fd, total, true) : NULL;
    if (w->shared == NULL) {
        fds_close(w->shared_fd);
        w->shared_fd = -1;
        return PCCL_ERR_NOMEM;
    }
    w->shared_bytes = total;
    memcpy(w->shared, w->token, sizeof w->token);
    w->base = (unsigned char *)w->shared + WINDOW_HEAD;
    return PCCL_OK;
}

void window_memory_map(struct window_peer *p, const struct window_member *m)
{
    char path[64];
    struct stat st;
    if (m->process == 0 || m->bytes > SIZE_MAX / 2) {
        return;
    }
    size_t total = (size_t)m->bytes + WINDOW_HEAD;
    snprintf(path, sizeof path, "/proc/%u/fd/%u", m->process, m->descriptor);
    if (stat(path, &st) != 0 || !S_ISREG(st.st_mode)) { /* opening something else might wait, or mean something */
        return;
    }
    int fd = fds_own(open(path, O_RDWR | O_CLOEXEC | O_NONBLOCK));
    bool sealed = fd >= 0 && fcntl(fd, F_GET_SEALS) >= 0 && (fcntl(fd, F_GET_SEALS) & F_SEAL_SHRINK) != 0;
    if (sealed && fstat(fd, &st) == 0 && (uint64_t)st.st_size == total) {
        void *at = memory_map(fd, total, (m->rights & ~(uint32_t)WINDOW_MAY_READ) != 0);
        if (at != NULL && memcmp(at, m->token, sizeof m->token) == 0) {
            p->mapped = at;
            p->mapped_bytes = total;
            p->reach = (unsigned char *)at + WINDOW_HEAD;
        } else if (at != NULL) {
            munmap(at, total);
        }
    }
    fds_close(fd);
}

void window_memory_free(struct window *w)
{
    for (uint32_t r = 0; r < w->world; r++) {
        if (w->peer[r].mapped != NULL) {
            munmap(w->peer[r].mapped, w->peer[r].mapped_bytes);
        }
    }
    if (w->shared != NULL) {
        munmap(w->shared, w->shared_bytes);
    }
    fds_close(w->shared_fd);
}
