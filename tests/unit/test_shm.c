/* test_shm.c - shared memory as a transport: bytes, sleepers, and other ends that lie.
 * SPDX-License-Identifier: MIT */
#define _GNU_SOURCE /* memfd_create, seals */
#include "tests/testing.h"

#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "core/random.h"
#include "net/fds.h"
#include "net/shm_ring.h"
#include "net/transport.h"

static void no_bell(int fd)
{
    (void)fd;
}

static unsigned char value_at(uint64_t i)
{
    return (unsigned char)(i * 31 + (i >> 13));
}

/* Both ends of one ring in this process, mapped twice as two processes would. */
static void ring_pair(struct shm_ring *a, struct shm_ring *b)
{
    int fd = -1;
    struct err err = {.text = ""};
    EXPECT_EQ(shm_ring_make(SHM_RING_BYTES, &fd, &err), PCCL_OK);
    EXPECT_EQ(shm_ring_map(a, fd, SHM_RING_BYTES, true, &err), PCCL_OK);
    EXPECT_EQ(shm_ring_map(b, fd, SHM_RING_BYTES, false, &err), PCCL_OK);
    fds_close(fd);
}

TEST(bytes_arrive_in_order_over_many_rounds_of_the_ring) /* a wrap in the middle of a piece tears it */
{
    static unsigned char out[300000], in[300000];
    struct shm_ring a, b;
    struct rng rng = {7};
    uint64_t sent = 0, got = 0;
    size_t wrong = 0;
    ring_pair(&a, &b);
    while (got < 40u * SHM_RING_BYTES) {
        size_t n = 1 + rng_below(&rng, sizeof out), moved, cut = rng_below(&rng, n);
        for (size_t i = 0; i < n; i++) {
            out[i] = value_at(sent + i);
        }
        struct iovec parts[2] = {{out, cut}, {out + cut, n - cut}};
        pccl_status st = shm_ring_write(&a, parts, 2, &moved, no_bell, -1);
        EXPECT(st == PCCL_OK || (st == PCCL_ERR_AGAIN && moved == 0 && sent - got == SHM_RING_BYTES));
        sent += moved;
        n = 1 + rng_below(&rng, sizeof in);
        cut = rng_below(&rng, n);
        struct iovec into[2] = {{in, cut}, {in + cut, n - cut}};
        st = shm_ring_read(&b, into, 2, &moved, no_bell, -1);
        EXPECT(st == PCCL_OK || (st == PCCL_ERR_AGAIN && moved == 0 && sent == got));
        for (size_t i = 0; i < moved; i++) {
            wrong += in[i] != value_at(got + i);
        }
        got += moved;
    }
    EXPECT_EQ(wrong, 0);
    shm_ring_unmap(&a);
    shm_ring_unmap(&b);
}

static int bells_rung;

static void count_bell(int fd)
{
    (void)fd;
    bells_rung++;
}

TEST(who_found_no_room_looks_for_it_and_is_rung_only_if_it_sleeps) /* a bell costs more than the bytes it is for */
{
    static unsigned char bytes[SHM_RING_BYTES];
    struct shm_ring a, b;
    struct iovec all = {bytes, sizeof bytes}, piece = {bytes, SHM_RING_PIECE};
    size_t moved;
    ring_pair(&a, &b);
    for (int sleeps = 0; sleeps < 2; sleeps++) {
        bells_rung = 0;
        EXPECT_EQ(shm_ring_write(&a, &all, 1, &moved, no_bell, -1), PCCL_OK);
        EXPECT_EQ(shm_ring_write(&a, &all, 1, &moved, no_bell, -1), PCCL_ERR_AGAIN);
        EXPECT(!shm_ring_room(&a, sleeps == 1));
        EXPECT_EQ(shm_ring_read(&b, &piece, 1, &moved, count_bell, -1), PCCL_OK);
        EXPECT(shm_ring_room(&a, false));
        EXPECT_EQ(bells_rung, 0); /* for half a ring, or all there was */
        EXPECT_EQ(shm_ring_read(&b, &all, 1, &moved, count_bell, -1), PCCL_OK);
        EXPECT_EQ(moved, sizeof bytes - SHM_RING_PIECE);
        EXPECT_EQ(bells_rung, sleeps);
    }
    atomic_store(&a.out.words->taken, UINT64_MAX / 2);
    EXPECT(shm_ring_room(&a, false)); /* the write finds the lie */
    EXPECT_EQ(shm_ring_write(&a, &piece, 1, &moved, no_bell, -1), PCCL_ERR_PROTOCOL);
    shm_ring_unmap(&a);
    shm_ring_unmap(&b);
}

/* Pages of the bytes that this end writes. */
static size_t resident(const struct shm_ring *r)
{
    unsigned char pages[SHM_RING_BYTES / 4096];
    size_t count = 0;
    EXPECT_EQ(mincore(r->out.bytes, SHM_RING_BYTES, pages), 0);
    for (size_t i = 0; i < sizeof pages; i++) {
        count += pages[i] & 1;
    }
    return count;
}

TEST(the_pages_of_an_empty_ring_are_given_back_and_taken_again) /* rings of worlds that are idle would keep a megabyte a link */
{
    static unsigned char out[3 * SHM_RING_BYTES / 4], in[sizeof out];
    unsigned char few[100] = {0};
    struct shm_ring a, b;
    struct iovec from = {out, sizeof out}, into = {in, sizeof in};
    ring_pair(&a, &b);
    for (uint64_t round = 0; round < 5; round++) {
        size_t moved, wrong = 0;
        for (size_t i = 0; i < sizeof out; i++) {
            out[i] = value_at(round * 1000 + i);
        }
        EXPECT_EQ(shm_ring_write(&a, &from, 1, &moved, no_bell, -1), PCCL_OK);
        EXPECT_EQ(moved, sizeof out);
        shm_ring_spare(&a); /* but for what nobody has read */
        EXPECT_EQ(resident(&a), sizeof out / 4096);
        EXPECT_EQ(shm_ring_read(&b, &into, 1, &moved, no_bell, -1), PCCL_OK);
        for (size_t i = 0; i < moved; i++) {
            wrong += in[i] != out[i];
        }
        EXPECT_EQ(moved, sizeof out);
        EXPECT_EQ(wrong, 0);
        shm_ring_spare(&a);
        EXPECT_EQ(resident(&a), 0);
        for (int i = 0; i < SHM_RING_PAGE; i++) { /* a hundred pages, some at a time */
            struct iovec word = {few, sizeof few};
            EXPECT_EQ(shm_ring_write(&a, &word, 1, &moved, no_bell, -1), PCCL_OK);
            EXPECT_EQ(shm_ring_read(&b, &word, 1, &moved, no_bell, -1), PCCL_OK);
            if (i % 40 == 0) {
                shm_ring_spare(&a);
                EXPECT_EQ(resident(&a), 0); /* the one that is begun, too */
            }
        }
        shm_ring_spare(&a);
        EXPECT_EQ(resident(&b), SHM_RING_BYTES / 4096); /* that direction is its own */
    }
    shm_ring_unmap(&a);
    shm_ring_unmap(&b);
}

TEST(a_position_that_cannot_be_breaks_the_link_and_touches_nothing) /* else the other end reads and writes our memory */
{
    static const uint64_t lies[] = {SHM_RING_BYTES + 1, UINT64_MAX, UINT64_C(1) << 63, UINT64_C(1) << 32};
    unsigned char byte[64] = {0};
    struct iovec part = {byte, sizeof byte};
    size_t moved;
    for (size_t i = 0; i < sizeof lies / sizeof lies[0]; i++) {
        struct shm_ring a, b;
        ring_pair(&a, &b);
        atomic_store(&a.out.words->written, lies[i]);
        EXPECT_EQ(shm_ring_read(&b, &part, 1, &moved, no_bell, -1), PCCL_ERR_PROTOCOL);
        EXPECT_EQ(moved, 0);
        atomic_store(&a.in.words->taken, 0 - lies[i]);
        EXPECT_EQ(shm_ring_write(&b, &part, 1, &moved, no_bell, -1), PCCL_ERR_PROTOCOL);
        EXPECT_EQ(moved, 0);
        shm_ring_unmap(&a);
        shm_ring_unmap(&b);
    }
    /* Backwards, after honest bytes. */
    struct shm_ring a, b;
    ring_pair(&a, &b);
    EXPECT_EQ(shm_ring_write(&a, &part, 1, &moved, no_bell, -1), PCCL_OK);
    EXPECT_EQ(shm_ring_read(&b, &part, 1, &moved, no_bell, -1), PCCL_OK);
    atomic_store(&a.out.words->written, 3);
    EXPECT_EQ(shm_ring_read(&b, &part, 1, &moved, no_bell, -1), PCCL_ERR_PROTOCOL);
    shm_ring_unmap(&a);
    shm_ring_unmap(&b);
}

static void expect_refused(int fd)
{
    struct shm_ring r = {0};
    struct err err = {.text = ""};
    EXPECT(shm_ring_map(&r, fd, SHM_RING_BYTES, false, &err) != PCCL_OK);
    EXPECT(err.text[0] != 0);
    EXPECT(r.memory == NULL);
    close(fd);
}

TEST(a_ring_of_half_the_size_is_mapped_as_such_by_who_accepts_it_and_no_smaller_one)
{
    struct shm_ring made, taken;
    unsigned char sent = 7, got = 0;
    struct iovec out = {&sent, 1}, in = {&got, 1};
    size_t moved;
    int fd, small;
    EXPECT_EQ(shm_ring_make(SHM_RING_BYTES / 2, &fd, NULL), PCCL_OK);
    EXPECT_EQ(shm_ring_map(&made, fd, SHM_RING_BYTES / 2, true, NULL), PCCL_OK);
    EXPECT_EQ(shm_ring_map(&taken, fd, SHM_RING_BYTES, false, NULL), PCCL_OK);
    EXPECT_EQ(taken.bytes, SHM_RING_BYTES / 2);
    uint64_t count = 0;
    while (shm_ring_write(&made, &out, 1, &moved, NULL, -1) == PCCL_OK) {
        count++;
    }
    EXPECT_EQ(count, SHM_RING_BYTES / 2);
    EXPECT_EQ(shm_ring_read(&taken, &in, 1, &moved, NULL, -1), PCCL_OK);
    EXPECT_EQ(got, 7);
    shm_ring_unmap(&made);
    shm_ring_unmap(&taken);
    fds_close(fd);
    EXPECT_EQ(shm_ring_make(SHM_RING_BYTES / 4, &small, NULL), PCCL_OK);
    expect_refused(small);
}

TEST(memory_that_could_shrink_or_has_another_size_is_not_mapped) /* an access behind its end would kill this process */
{
    int seals = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL, pipes[2];
    for (int missing = 0; missing < 3; missing++) {
        static const int each[] = {F_SEAL_SHRINK, F_SEAL_GROW, F_SEAL_SEAL};
        int fd = memfd_create("t", MFD_CLOEXEC | MFD_ALLOW_SEALING);
        EXPECT_EQ(ftruncate(fd, (off_t)shm_ring_total(SHM_RING_BYTES)), 0);
        EXPECT_EQ(fcntl(fd, F_ADD_SEALS, seals & ~each[missing]), 0);
        expect_refused(fd);
    }
    for (int more = -1; more <= 1; more += 2) {
        int fd = memfd_create("t", MFD_CLOEXEC | MFD_ALLOW_SEALING);
        EXPECT_EQ(ftruncate(fd, (off_t)shm_ring_total(SHM_RING_BYTES) + more * 4096), 0);
        EXPECT_EQ(fcntl(fd, F_ADD_SEALS, seals), 0);
        expect_refused(fd);
    }
    int closed = memfd_create("t", MFD_CLOEXEC | MFD_ALLOW_SEALING); /* nobody could write */
    EXPECT_EQ(ftruncate(closed, (off_t)shm_ring_total(SHM_RING_BYTES)), 0);
    EXPECT_EQ(fcntl(closed, F_ADD_SEALS, seals | F_SEAL_WRITE), 0);
    expect_refused(closed);
    EXPECT_EQ(pipe2(pipes, O_CLOEXEC), 0);
    expect_refused(pipes[0]);
    close(pipes[1]);
}

/* ---- The transport over a pair of Unix sockets ----------------------------------------------------------------------- */

static void sockets(int fd[2])
{
    EXPECT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, fd), 0);
    fds_own(fd[0]);
    fds_own(fd[1]);
}

/* Both ends have greeted each other. */
static void transport_pair(struct transport *a, struct transport *b)
{
    int fd[2];
    char text[8] = "hello";
    struct iovec part = {text, 5};
    size_t moved;
    sockets(fd);
    EXPECT_EQ(transport_shm_dial(a, fd[0], SHM_RING_BYTES, NULL), PCCL_OK);
    EXPECT_EQ(transport_shm_accept(b, fd[1], NULL), PCCL_OK);
    EXPECT_EQ(a->ops->send(a, &part, 1, &moved), PCCL_OK);
    EXPECT_EQ(b->ops->receive(b, &part, 1, &moved), PCCL_OK);
    EXPECT_EQ(moved, 5);
    EXPECT_EQ(transport_shm_map(b, SHM_RING_BYTES, NULL), PCCL_OK);
    a->ops->begin(a);
    b->ops->begin(b);
}

struct half {
    struct transport *t;
    uint64_t bytes, wrong;
    uint64_t seed;
    bool sends;
};

/* `in`: for bytes; else for room. */
static void half_wait(struct transport *t, bool in)
{
    struct pollfd p = {.fd = t->fd, .events = POLLIN};
    if (in ? t->ops->rest(t) : !t->ops->room(t, true)) {
        EXPECT(poll(&p, 1, 30000) > 0);
        EXPECT_EQ(t->ops->hear(t), PCCL_OK);
    }
}

/* One direction, sleeping whenever there is nothing to do. */
static void *half_run(void *argument)
{
    struct half *h = argument;
    struct rng rng = {7};
    unsigned char *buffer = malloc(100000);
    rng.state = h->seed;
    for (uint64_t at = 0; at < h->bytes;) {
        size_t n = 1 + rng_below(&rng, 100000), moved;
        n = n < h->bytes - at ? n : (size_t)(h->bytes - at);
        struct iovec part = {buffer, n};
        for (size_t i = 0; h->sends && i < n; i++) {
            buffer[i] = value_at(at + i);
        }
        pccl_status st = h->sends ? h->t->ops->send(h->t, &part, 1, &moved) : h->t->ops->receive(h->t, &part, 1, &moved);
        if (st == PCCL_ERR_AGAIN && h->sends) {
            half_wait(h->t, false);
            continue;
        }
        if (st == PCCL_ERR_AGAIN) {
            half_wait(h->t, true);
            continue;
        }
        EXPECT_EQ(st, PCCL_OK);
        if (st != PCCL_OK) {
            break;
        }
        for (size_t i = 0; !h->sends && i < moved; i++) {
            h->wrong += buffer[i] != value_at(at + i);
        }
        at += moved;
    }
    free(buffer);
    return NULL;
}

TEST(no_sleeper_is_forgotten) /* a bell that is not rung leaves both ends asleep */
{
    struct transport a, b;
    pthread_t thread;
    transport_pair(&a, &b);
    struct half out = {.t = &a, .bytes = 64u << 20, .seed = 1, .sends = true}, in = {.t = &b, .bytes = 64u << 20, .seed = 2};
    EXPECT_EQ(pthread_create(&thread, NULL, half_run, &out), 0);
    half_run(&in);
    pthread_join(thread, NULL);
    EXPECT_EQ(in.wrong, 0);
    a.ops->close(&a);
    b.ops->close(&b);
}

TEST(what_was_written_before_the_end_is_read_then_the_end) /* a death is seen at once, and nothing before it is lost */
{
    struct transport a, b;
    unsigned char bytes[100] = {1, 2, 3};
    struct iovec part = {bytes, 100};
    size_t moved;
    transport_pair(&a, &b);
    EXPECT_EQ(b.ops->receive(&b, &part, 1, &moved), PCCL_ERR_AGAIN);
    EXPECT_EQ(a.ops->send(&a, &part, 1, &moved), PCCL_OK);
    a.ops->close(&a);
    EXPECT_EQ(b.ops->hear(&b), PCCL_ERR_CLOSED);
    EXPECT_EQ(b.ops->receive(&b, &part, 1, &moved), PCCL_OK);
    EXPECT_EQ(moved, 100);
    EXPECT_EQ(bytes[2], 3);
    EXPECT_EQ(b.ops->receive(&b, &part, 1, &moved), PCCL_ERR_CLOSED);
    b.ops->close(&b);
}

TEST(bells_without_bytes_end_the_link) /* else whoever rings keeps this lane from everybody else */
{
    struct transport a, b;
    unsigned char bells[4096] = {0};
    transport_pair(&a, &b);
    EXPECT_EQ(send(a.fd, bells, sizeof bells, MSG_DONTWAIT), sizeof bells);
    EXPECT_EQ(b.ops->hear(&b), PCCL_ERR_PROTOCOL);
    a.ops->close(&a);
    b.ops->close(&b);
}

static int descriptors(void)
{
    int count = 0;
    for (int fd = 0; fd < 1024; fd++) {
        count += fcntl(fd, F_GETFD) >= 0;
    }
    return count;
}

TEST(a_greeting_without_memory_or_with_too_much_of_it_is_refused) /* and its descriptors are closed */
{
    int fd[2], before = descriptors();
    char text[8] = "hello";
    struct iovec part = {text, 5};
    size_t moved;
    struct transport b;
    sockets(fd);
    EXPECT_EQ(transport_shm_accept(&b, fd[1], NULL), PCCL_OK);
    EXPECT_EQ(send(fd[0], text, 5, 0), 5);
    EXPECT_EQ(b.ops->receive(&b, &part, 1, &moved), PCCL_OK);
    EXPECT(transport_shm_map(&b, SHM_RING_BYTES, NULL) != PCCL_OK);
    union {
        struct cmsghdr head;
        unsigned char bytes[CMSG_SPACE(3 * sizeof(int))];
    } control = {.bytes = {0}};
    struct msghdr m = {.msg_iov = &part, .msg_iovlen = 1, .msg_control = control.bytes, .msg_controllen = sizeof control.bytes};
    int three[3] = {0, 0, 0};
    CMSG_FIRSTHDR(&m)->cmsg_level = SOL_SOCKET;
    CMSG_FIRSTHDR(&m)->cmsg_type = SCM_RIGHTS;
    CMSG_FIRSTHDR(&m)->cmsg_len = CMSG_LEN(sizeof three);
    memcpy(CMSG_DATA(CMSG_FIRSTHDR(&m)), three, sizeof three);
    EXPECT_EQ(sendmsg(fd[0], &m, 0), 5);
    EXPECT_EQ(b.ops->receive(&b, &part, 1, &moved), PCCL_OK);
    EXPECT(transport_shm_map(&b, SHM_RING_BYTES, NULL) != PCCL_OK); /* standard input is no memory */
    b.ops->close(&b);
    fds_close(fd[0]);
    EXPECT_EQ(descriptors(), before);
}

TEST(the_other_end_must_be_of_the_same_user)
{
    int fd[2];
    struct transport t;
    struct err err = {.text = ""};
    if (geteuid() != 0) {
        return; /* only root can be somebody else for a moment */
    }
    sockets(fd);
    EXPECT_EQ(seteuid(65534), 0);
    EXPECT(transport_shm_accept(&t, fd[1], &err) != PCCL_OK);
    EXPECT_EQ(seteuid(0), 0);
    EXPECT(strstr(err.text, "another user") != NULL);
    fds_close(fd[0]);
}
