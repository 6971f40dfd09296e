/* test_conn.c - framed connections over a socket pair, and addresses as text.
 * SPDX-License-Identifier: MIT */
#include "tests/testing.h"

#include <sched.h>
#include <stdatomic.h>
#include <sys/socket.h>
#include <unistd.h>

#include "core/clock.h"
#include "net/addr.h"
#include "net/conn.h"
#include "net/fds.h"

static struct conn *pair(int *other)
{
    int fd[2] = {-1, -1};
    EXPECT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, fd), 0);
    struct conn *c = conn_new();
    conn_open_take(c, fds_own(fd[0]));
    *other = fd[1];
    return c;
}

static size_t frame_make(unsigned char *out, uint8_t type, uint32_t length, uint64_t view)
{
    frame_put(out, &(struct frame_header){.type = type, .length = length, .run = 1, .view = view});
    for (uint32_t i = 0; i < length; i++) {
        out[FRAME_HEADER_BYTES + i] = (unsigned char)(i * 7 + view);
    }
    return FRAME_HEADER_BYTES + length;
}

static bool frame_right(const struct frame_header *h, const unsigned char *payload)
{
    for (uint32_t i = 0; i < h->length; i++) {
        if (payload[i] != (unsigned char)(i * 7 + h->view)) {
            return false;
        }
    }
    return true;
}

TEST(frames_split_at_any_byte_are_put_together) /* the original dropped clients below 8 header bytes */
{
    unsigned char bytes[512];
    size_t size = frame_make(bytes, FRAME_VOTE, 37, 1);
    size += frame_make(bytes + size, FRAME_PING, 0, 2);
    size += frame_make(bytes + size, FRAME_VOTE, 90, 3);
    for (size_t cut = 0; cut <= size; cut++) {
        int other;
        struct conn *c = pair(&other);
        uint64_t seen = 0;
        for (int part = 0; part < 2; part++) {
            size_t from = part == 0 ? 0 : cut, length = part == 0 ? cut : size - cut;
            EXPECT_EQ(write(other, bytes + from, length), length);
            struct frame_header h;
            const void *payload;
            pccl_status st = conn_receive(c);
            EXPECT(st == (length > 0 ? PCCL_OK : PCCL_ERR_AGAIN));
            while ((st = conn_next(c, &h, &payload)) == PCCL_OK) {
                EXPECT_EQ(h.view, ++seen);
                EXPECT(frame_right(&h, payload));
            }
            EXPECT_EQ(st, PCCL_ERR_AGAIN); /* a part of a frame is no mistake */
        }
        EXPECT_EQ(seen, 3);
        close(other);
        EXPECT_EQ(conn_receive(c), PCCL_ERR_CLOSED);
        conn_unref(c);
    }
}

TEST(one_frame_is_read_before_a_connection_is_handed_on) /* bytes behind it belong to the next owner */
{
    unsigned char bytes[256];
    int other;
    struct conn *c = pair(&other);
    struct frame_header h;
    const void *payload;
    size_t first = frame_make(bytes, FRAME_HELLO, 50, 1), all = first + frame_make(bytes + first, FRAME_PING, 0, 2);
    c->single = true;
    c->most = 4096;
    EXPECT_EQ(write(other, bytes, all), all);
    EXPECT_EQ(conn_receive(c), PCCL_OK);
    EXPECT_EQ(conn_receive(c), PCCL_OK);
    EXPECT_EQ(conn_next(c, &h, &payload), PCCL_OK);
    EXPECT_EQ(h.type, FRAME_HELLO);
    EXPECT_EQ(read(other, bytes, 0), 0);
    EXPECT_EQ(recv(c->transport.fd, bytes, sizeof bytes, MSG_PEEK), all - first);
    conn_unref(c);
    close(other);
}

TEST(wrong_and_oversized_frames_are_refused)
{
    unsigned char bytes[FRAME_HEADER_BYTES];
    struct frame_header h;
    const void *payload;
    for (int kind = 0; kind < 3; kind++) {
        int other;
        struct conn *c = pair(&other);
        c->most = kind == 1 ? 100 : UINT32_MAX;
        frame_put(bytes, &(struct frame_header){.type = FRAME_VOTE, .length = kind == 2 ? 1u << 30 : 200});
        bytes[0] ^= kind == 0;
        EXPECT_EQ(write(other, bytes, sizeof bytes), sizeof bytes);
        EXPECT_EQ(conn_receive(c), PCCL_OK);
        EXPECT_EQ(conn_next(c, &h, &payload), PCCL_ERR_PROTOCOL);
        EXPECT(c->in_capacity < 1 << 20); /* nothing was reserved for what it claims */
        conn_unref(c);
        close(other);
    }
}

static void conn_drain(struct source *source, uint32_t events)
{
    if ((events & EPOLLOUT) != 0) {
        conn_flush(conn_of(source));
    }
}

/* A connection whose loop sends what is left, and one that reads from it. */
static void ends_open(struct conn *c, struct conn *r, int other, struct loop *loop)
{
    conn_open_take(r, fds_own(other));
    EXPECT_EQ(loop_open(loop, NULL), PCCL_OK);
    EXPECT_EQ(conn_attach(c, loop, conn_drain, NULL, NULL), PCCL_OK);
}

static void ends_close(struct conn *c, struct conn *r, struct loop *loop)
{
    conn_detach(c);
    conn_unref(c);
    conn_unref(r);
    loop_close(loop);
}

/* How many frames came until the end of what was queued, in the order of their numbers. */
static uint64_t read_to_end(struct conn *c, struct conn *r, struct loop *loop)
{
    uint64_t seen = 0;
    conn_finish(c);
    for (pccl_status st = PCCL_OK; st != PCCL_ERR_CLOSED;) {
        struct frame_header h;
        const void *payload;
        loop_poll(loop, 0);
        st = conn_receive(r);
        while (conn_next(r, &h, &payload) == PCCL_OK) {
            EXPECT_EQ(h.view, ++seen);
            EXPECT(frame_right(&h, payload));
        }
    }
    return seen;
}

TEST(a_queue_is_sent_in_order_when_the_other_end_reads_at_last)
{
    enum { FRAMES = 3000, LENGTH = 3000 };
    static unsigned char bytes[FRAME_HEADER_BYTES + LENGTH];
    int other;
    struct conn *c = pair(&other), *r = conn_new();
    struct loop loop;
    ends_open(c, r, other, &loop);
    for (uint64_t i = 1; i <= FRAMES; i++) {
        size_t size = frame_make(bytes, FRAME_VOTE, LENGTH, i);
        EXPECT_EQ(conn_append(c, bytes, FRAME_HEADER_BYTES, bytes + FRAME_HEADER_BYTES, size - FRAME_HEADER_BYTES), PCCL_OK);
        conn_flush(c);
    }
    EXPECT(conn_queued(c) > 0);
    uint64_t seen = read_to_end(c, r, &loop);
    EXPECT_EQ(seen, FRAMES);
    EXPECT_EQ(conn_queued(c), 0);
    ends_close(c, r, &loop);
}

TEST(what_is_lent_is_whole_though_its_owner_writes_over_it_after_the_flush) /* sent in part, or behind others */
{
    enum { FRAMES = 400, LENGTH = 50000 };
    static unsigned char bytes[2][FRAME_HEADER_BYTES + LENGTH];
    int other;
    struct conn *c = pair(&other), *r = conn_new();
    struct loop loop;
    ends_open(c, r, other, &loop);
    for (uint64_t i = 1; i <= FRAMES; i += 2) {
        for (uint64_t k = 0; k < 2; k++) {
            unsigned char *at = bytes[k];
            frame_make(at, FRAME_EAGER, LENGTH, i + k);
            bool lent = k == 0 || i % 4 == 1;
            EXPECT_EQ((lent ? conn_lend : conn_append)(c, at, FRAME_HEADER_BYTES, at + FRAME_HEADER_BYTES, LENGTH), PCCL_OK);
        }
        conn_flush(c);
        memset(bytes, 0, sizeof bytes);
    }
    EXPECT(conn_queued(c) > 0);
    uint64_t seen = read_to_end(c, r, &loop);
    EXPECT_EQ(seen, FRAMES);
    ends_close(c, r, &loop);
}

TEST(what_is_left_to_the_loop_goes_out_in_one_piece_with_what_follows) /* never, or by whoever left it */
{
    unsigned char bytes[4][FRAME_HEADER_BYTES + 16], got[sizeof bytes + 1];
    static unsigned char large[1 << 16];
    int other;
    struct conn *c = pair(&other);
    struct loop loop;
    EXPECT_EQ(loop_open(&loop, NULL), PCCL_OK);
    EXPECT_EQ(conn_attach(c, &loop, conn_drain, NULL, NULL), PCCL_OK);
    for (uint64_t i = 0; i < 4; i++) {
        frame_make(bytes[i], FRAME_VOTE, 16, i + 1);
        EXPECT_EQ(conn_append(c, bytes[i], sizeof bytes[i], NULL, 0), PCCL_OK);
        conn_leave(c);
    }
    EXPECT_EQ(read(other, got, sizeof got), -1);
    EXPECT_EQ(loop_poll(&loop, 0), 1);
    EXPECT_EQ(read(other, got, sizeof got), sizeof bytes);
    EXPECT(memcmp(got, bytes, sizeof bytes) == 0);
    EXPECT_EQ(loop_poll(&loop, 0), 0); /* it does not ask again */
    EXPECT_EQ(conn_append(c, large, sizeof large, NULL, 0), PCCL_OK);
    conn_leave(c);
    EXPECT(read(other, got, sizeof got) > 0); /* so much waits for nobody */
    conn_detach(c);
    conn_leave(c); /* no loop: it sends what is left */
    conn_unref(c);
    close(other);
    loop_close(&loop);
}

TEST(a_queue_that_nobody_reads_is_bounded)
{
    static unsigned char megabyte[1 << 20];
    int other;
    struct conn *c = pair(&other);
    int pieces = 0;
    while (pieces < 1000 && conn_append(c, megabyte, sizeof megabyte, NULL, 0) == PCCL_OK) {
        pieces++;
    }
    EXPECT_EQ(pieces, CONN_QUEUE_BYTES >> 20);
    conn_unref(c);
    close(other);
}

struct sender {
    struct conn *conn;
    uint64_t id;
};

enum { SENDERS = 4, SENDER_FRAMES = 20000 };

static void *send_frames(void *argument)
{
    struct sender *s = argument;
    unsigned char bytes[FRAME_HEADER_BYTES + 16];
    for (uint32_t i = 1; i <= test_scaled(SENDER_FRAMES); i++) {
        size_t size = frame_make(bytes, FRAME_VOTE, 16, s->id << 32 | i);
        conn_append(s->conn, bytes, size, NULL, 0);
        conn_flush(s->conn);
    }
    return NULL;
}

TEST(no_frame_is_left_behind_when_many_threads_send) /* a lost wake-up would park the last one for ever */
{
    int other;
    struct conn *c = pair(&other), *r = conn_new();
    struct loop loop;
    struct sender sender[SENDERS];
    pthread_t thread[SENDERS];
    uint64_t last[SENDERS] = {0}, seen = 0;
    int64_t until = clock_now_ns() + 60 * CLOCK_S;
    ends_open(c, r, other, &loop);
    for (uint64_t i = 0; i < SENDERS; i++) {
        sender[i] = (struct sender){c, i};
        EXPECT_EQ(pthread_create(&thread[i], NULL, send_frames, &sender[i]), 0);
    }
    while (seen < (uint64_t)SENDERS * test_scaled(SENDER_FRAMES) && clock_now_ns() < until) {
        struct frame_header h;
        const void *payload;
        loop_poll(&loop, 0);
        if (conn_receive(r) != PCCL_OK) {
            continue;
        }
        while (conn_next(r, &h, &payload) == PCCL_OK) {
            EXPECT_EQ(h.view & UINT32_MAX, ++last[h.view >> 32]);
            EXPECT(frame_right(&h, payload));
            seen++;
        }
    }
    EXPECT_EQ(seen, SENDERS * test_scaled(SENDER_FRAMES));
    for (int i = 0; i < SENDERS; i++) {
        pthread_join(thread[i], NULL);
    }
    ends_close(c, r, &loop);
}

enum { ROUNDS = 20000, ROUND_FRAMES = 12, ROUND_LENGTH = 700 };

struct rounds {
    struct conn *conn;
    _Atomic uint64_t seen; /* frames that have arrived */
    _Atomic uint64_t all;  /* frames that will have been sent */
    _Atomic bool enough;   /* no more rounds: on a busy machine each takes its time */
    _Atomic bool over;
};

static void *send_rounds(void *argument)
{
    struct rounds *s = argument;
    unsigned char bytes[FRAME_HEADER_BYTES + ROUND_LENGTH];
    uint64_t sent = 0;
    while (sent < (uint64_t)ROUNDS * ROUND_FRAMES && !atomic_load(&s->enough) && !atomic_load(&s->over)) {
        for (int i = 0; i < ROUND_FRAMES; i++) {
            size_t size = frame_make(bytes, FRAME_VOTE, ROUND_LENGTH, ++sent);
            conn_append(s->conn, bytes, size, NULL, 0);
            conn_flush(s->conn);
        }
        while (atomic_load(&s->seen) < sent && !atomic_load(&s->over)) {
            sched_yield();
        }
    }
    atomic_store(&s->all, sent);
    return NULL;
}

/* After each burst nobody sends until all has arrived, so that no later frame makes up for a wake-up that was lost. */
TEST(no_wake_up_is_lost_while_another_thread_drains)
{
    int other, small = 1;
    struct conn *c = pair(&other), *r = conn_new();
    struct loop loop;
    struct rounds s = {.conn = c, .all = (uint64_t)ROUNDS * ROUND_FRAMES};
    pthread_t thread;
    uint64_t seen = 0;
    int64_t enough_at = clock_now_ns() + test_scaled(5000) * CLOCK_MS, lost_at = enough_at + 30 * CLOCK_S;
    setsockopt(c->transport.fd, SOL_SOCKET, SO_SNDBUF, &small, sizeof small); /* the system's least: a few frames */
    ends_open(c, r, other, &loop);
    EXPECT_EQ(pthread_create(&thread, NULL, send_rounds, &s), 0);
    while (seen < atomic_load(&s.all) && clock_now_ns() < lost_at) {
        struct frame_header h;
        const void *payload;
        if (clock_now_ns() > enough_at) {
            atomic_store(&s.enough, true);
        }
        loop_poll(&loop, 0);
        if (conn_receive(r) != PCCL_OK) {
            continue;
        }
        while (conn_next(r, &h, &payload) == PCCL_OK) {
            EXPECT_EQ(h.view, ++seen);
        }
        lost_at = clock_now_ns() + 30 * CLOCK_S; /* nothing for so long: it never comes */
        atomic_store(&s.seen, seen);
    }
    EXPECT_EQ(seen, atomic_load(&s.all));
    atomic_store(&s.over, true);
    pthread_join(thread, NULL);
    ends_close(c, r, &loop);
}

TEST(addresses_survive_text_and_system_forms)
{
    static const char *const good[][2] = {
        {"1.2.3.4:5", "1.2.3.4:5"}, {"1.2.3.4", "1.2.3.4:99"}, {"[::1]:5", "[::1]:5"}, {"[::1]", "[::1]:99"},
        {"::1", "[::1]:99"}, {"127.0.0.1:65535", "127.0.0.1:65535"}, {"::ffff:10.0.0.1", "10.0.0.1:99"},
    };
    static const char *const bad[] = {"", ":5", "1.2.3.4:", "1.2.3.4:65536", "1.2.3.4:x", "[::1", "[::1]5", "1.2.3.4:-1",
                                      "[fe80::1%lo]:5", "fe80::1%1", "[::1%]:5"};
    struct err err;
    char text[ADDR_TEXT];
    for (size_t i = 0; i < sizeof good / sizeof good[0]; i++) {
        struct net_address a, back;
        struct sockaddr_storage ss;
        EXPECT_EQ(addr_parse(good[i][0], 99, &a, &err), PCCL_OK);
        EXPECT_STR(addr_format(&a, text), good[i][1]);
        addr_to_system(&a, &ss);
        EXPECT(addr_from_system(&back, &ss) && addr_equal(&a, &back));
    }
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        struct net_address a;
        err.text[0] = 0;
        EXPECT_EQ(addr_parse(bad[i], 99, &a, &err), PCCL_ERR_INVALID);
        EXPECT(err.text[0] != 0);
    }
}
