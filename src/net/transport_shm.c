/* transport_shm.c - bytes through shared memory, between processes of one host.
 *
 * A Unix socket carries the greeting and, with the dialler's first byte, the memory.  From then on it carries no data: it is the
 * bell, one byte for an end that sleeps, and the sign of life: a process that dies closes it at once.
 * SPDX-License-Identifier: MIT */
#define _GNU_SOURCE /* struct ucred */
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "net/fds.h"
#include "net/shm_ring.h"
#include "net/sock.h"
#include "net/transport.h"

struct shm {
    struct shm_ring ring;
    int memory; /* owned: to be passed on, or received and not mapped yet; -1 */
    bool ended; /* the other end has closed the socket */
};

enum {
    SHM_BELLS = 64,  /* taken at once */
    SHM_ROUNDS = 16, /* ... so often for one call of the descriptor: an honest end rings once for each direction */
    SHM_DESCRIPTORS = 4,
};

union shm_control { /* aligned as the system wants it */
    struct cmsghdr head;
    unsigned char bytes[CMSG_SPACE(SHM_DESCRIPTORS * sizeof(int))];
};

/* ---- The greeting ------------------------------------------------------------------------------------------------ */

static pccl_status greeting_send(struct transport *t, struct iovec *parts, int count, size_t *moved)
{
    union shm_control control;
    struct shm *shm = t->shm;
    struct msghdr m = {.msg_iov = parts, .msg_iovlen = (size_t)count};
    if (shm->memory >= 0) {
        memset(&control, 0, sizeof control);
        m.msg_control = control.bytes;
        m.msg_controllen = CMSG_SPACE(sizeof(int));
        struct cmsghdr *head = CMSG_FIRSTHDR(&m);
        head->cmsg_level = SOL_SOCKET;
        head->cmsg_type = SCM_RIGHTS;
        head->cmsg_len = CMSG_LEN(sizeof(int));
        memcpy(CMSG_DATA(head), &shm->memory, sizeof(int));
    }
    pccl_status st = sock_moved(sendmsg(t->fd, &m, MSG_NOSIGNAL | MSG_DONTWAIT), moved);
    if (st == PCCL_OK) {
        fds_close(shm->memory);
        shm->memory = -1;
    }
    return st;
}

/* Keeps the first descriptor that comes, closes all others. */
static void greeting_take(struct shm *shm, struct msghdr *m)
{
    for (struct cmsghdr *head = CMSG_FIRSTHDR(m); head != NULL; head = CMSG_NXTHDR(m, head)) {
        if (head->cmsg_level != SOL_SOCKET || head->cmsg_type != SCM_RIGHTS) {
            continue;
        }
        for (size_t at = CMSG_LEN(0); at + sizeof(int) <= head->cmsg_len; at += sizeof(int)) {
            int fd;
            memcpy(&fd, CMSG_DATA(head) + (at - CMSG_LEN(0)), sizeof fd);
            fd = fds_own(fd);
            if (shm->memory < 0 && shm->ring.memory == NULL) {
                shm->memory = fd;
            } else {
                fds_close(fd);
            }
        }
    }
}

static pccl_status greeting_receive(struct transport *t, struct iovec *parts, int count, size_t *moved)
{
    union shm_control control;
    struct msghdr m = {.msg_iov = parts, .msg_iovlen = (size_t)count, .msg_control = control.bytes, .msg_controllen = sizeof control.bytes};
    ssize_t n = recvmsg(t->fd, &m, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
    pccl_status st = sock_moved(n, moved);
    if (n >= 0) {
        greeting_take(t->shm, &m);
    }
    return st;
}

/* ---- The ring ---------------------------------------------------------------------------------------------------- */

/* A full socket holds bells that the other end has not heard yet: it looks after it has. */
static void shm_bell(int fd)
{
    ssize_t rc = send(fd, "", 1, MSG_NOSIGNAL | MSG_DONTWAIT);
    (void)rc; /* a closed one is met by whoever reads */
}

static pccl_status shm_send(struct transport *t, struct iovec *parts, int count, size_t *moved)
{
    return shm_ring_write(&t->shm->ring, parts, count, moved, shm_bell, t->fd);
}

static pccl_status shm_receive(struct transport *t, struct iovec *parts, int count, size_t *moved)
{
    bool ended = t->shm->ended; /* what was written before the end counts */
    pccl_status st = shm_ring_read(&t->shm->ring, parts, count, moved, shm_bell, t->fd);
    return st == PCCL_ERR_AGAIN && ended ? PCCL_ERR_CLOSED : st;
}

static pccl_status shm_lend(struct transport *t, const void **data, size_t *bytes)
{
    bool ended = t->shm->ended;
    pccl_status st = shm_ring_lend(&t->shm->ring, data, bytes);
    return st == PCCL_ERR_AGAIN && ended ? PCCL_ERR_CLOSED : st;
}

static void shm_lent(struct transport *t, size_t bytes)
{
    shm_ring_take(&t->shm->ring, bytes, shm_bell, t->fd);
}

static void shm_finish(struct transport *t)
{
    shutdown(t->fd, SHUT_WR);
}

static void shm_shutdown(struct transport *t)
{
    shutdown(t->fd, SHUT_RDWR);
}

static void shm_close(struct transport *t)
{
    fds_close(t->fd);
    t->fd = -1;
    fds_close(t->shm->memory);
    shm_ring_unmap(&t->shm->ring);
    free(t->shm);
    t->shm = NULL;
}

static void shm_begin(struct transport *t);

static bool shm_has(const struct transport *t)
{
    return shm_ring_has(&t->shm->ring);
}

static bool shm_rest(struct transport *t)
{
    return shm_ring_rest(&t->shm->ring);
}

static bool shm_roomy(struct transport *t, bool sleep)
{
    return shm_ring_room(&t->shm->ring, sleep);
}

static void shm_spare(struct transport *t)
{
    shm_ring_spare(&t->shm->ring);
}

static pccl_status shm_hear(struct transport *t)
{
    for (int round = 0; round < SHM_ROUNDS; round++) {
        unsigned char bells[SHM_BELLS];
        size_t heard;
        pccl_status st = sock_moved(recv(t->fd, bells, sizeof bells, MSG_DONTWAIT), &heard);
        if (st != PCCL_OK) {
            t->shm->ended |= st == PCCL_ERR_CLOSED;
            return st == PCCL_ERR_AGAIN ? PCCL_OK : st;
        }
    }
    return PCCL_ERR_PROTOCOL; /* it does nothing but ring */
}

static const struct transport_ops greeting_ops = {
    .send = greeting_send, .receive = greeting_receive, .finish = shm_finish, .shutdown = shm_shutdown, .close = shm_close, .begin = shm_begin,
};
static const struct transport_ops shm_ops = {
    .send = shm_send, .receive = shm_receive, .finish = shm_finish, .shutdown = shm_shutdown, .close = shm_close, .begin = shm_begin,
    .lend = shm_lend, .lent = shm_lent, .has = shm_has, .rest = shm_rest, .room = shm_roomy, .spare = shm_spare, .hear = shm_hear,
};

static void shm_begin(struct transport *t)
{
    t->ops = &shm_ops;
}

/* ---- Both ends --------------------------------------------------------------------------------------------------- */

static pccl_status shm_take(struct transport *t, int fd, struct err *err)
{
    struct ucred who;
    socklen_t size = sizeof who;
    struct shm *shm = NULL;
    pccl_status st = PCCL_OK;
    if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &who, &size) != 0 || who.uid != geteuid()) {
        st = err_set(err, PCCL_ERR_PROTOCOL, "the other end of the Unix socket is another user's");
    } else if ((shm = calloc(1, sizeof *shm)) == NULL) {
        st = err_set(err, PCCL_ERR_NOMEM, "shared memory: no memory");
    }
    if (st != PCCL_OK) {
        fds_close(fd);
        return st;
    }
    shm->memory = -1;
    *t = (struct transport){.ops = &greeting_ops, .fd = fd, .shm = shm};
    return PCCL_OK;
}

pccl_status transport_shm_dial(struct transport *t, int fd, uint32_t bytes, struct err *err)
{
    pccl_status st = shm_take(t, fd, err);
    if (st != PCCL_OK) {
        return st;
    }
    st = shm_ring_make(bytes, &t->shm->memory, err);
    if (st == PCCL_OK) {
        st = shm_ring_map(&t->shm->ring, t->shm->memory, bytes, true, err);
    }
    if (st != PCCL_OK) {
        shm_close(t);
    }
    return st;
}

pccl_status transport_shm_accept(struct transport *t, int fd, struct err *err)
{
    return shm_take(t, fd, err);
}

pccl_status transport_shm_map(struct transport *t, uint32_t bytes, struct err *err)
{
    struct shm *shm = t->shm;
    if (shm->memory < 0) {
        return err_set(err, PCCL_ERR_PROTOCOL, "no shared memory came with the greeting");
    }
    pccl_status st = shm_ring_map(&shm->ring, shm->memory, bytes, false, err);
    fds_close(shm->memory);
    shm->memory = -1;
    return st;
}
