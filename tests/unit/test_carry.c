/* test_carry.c - a connection that moves from its socket into shared memory while frames are under way.
 * SPDX-License-Identifier: MIT */
#include "tests/testing.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <sys/socket.h>
#include <unistd.h>

#include "core/random.h"
#include "net/carry.h"
#include "net/conn.h"
#include "net/fds.h"
#include "net/shm_ring.h"

/* One end: its connection on a loop of its own, what it has said and heard. */
struct end {
    struct loop loop;
    struct conn *conn;
    uint64_t said, heard, wrong;
    pccl_status over; /* not AGAIN: the connection has ended so */
};

static void end_ready(struct source *source, uint32_t events)
{
    struct end *e = conn_of(source)->user;
    struct frame_header h;
    const void *payload;
    pccl_status next;
    if ((events & EPOLLOUT) != 0) {
        conn_flush(e->conn);
    }
    pccl_status st = conn_receive(e->conn);
    while ((next = conn_next(e->conn, &h, &payload)) == PCCL_OK) {
        const unsigned char *at = payload;
        bool right = h.view == e->heard++;
        for (uint32_t i = 0; i < h.length; i++) {
            right = right && at[i] == (unsigned char)(i * 7 + h.view);
        }
        e->wrong += !right;
    }
    e->over = next != PCCL_ERR_AGAIN ? next : st == PCCL_OK ? PCCL_ERR_AGAIN : st;
    if (e->over != PCCL_ERR_AGAIN) {
        conn_detach(e->conn);
    }
}

static void end_init(struct end *e, int fd)
{
    *e = (struct end){.over = PCCL_ERR_AGAIN};
    EXPECT_EQ(loop_open(&e->loop, NULL), PCCL_OK);
    e->conn = conn_new();
    conn_open_take(e->conn, fds_own(fd));
    EXPECT_EQ(conn_attach(e->conn, &e->loop, end_ready, e, NULL), PCCL_OK);
}

static void end_fini(struct end *e)
{
    if (e->conn != NULL) {
        conn_detach(e->conn);
        conn_unref(e->conn);
    }
    loop_close(&e->loop);
}

static void ends_init(struct end e[2])
{
    int fd[2];
    EXPECT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, fd), 0);
    end_init(&e[0], fd[0]);
    end_init(&e[1], fd[1]);
}

/* Memory that both ends have mapped and greeted each other over. */
static void memory_init(struct transport t[2])
{
    int fd[2];
    char text[8] = "hello";
    struct iovec part = {text, 5};
    size_t moved;
    EXPECT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, fd), 0);
    EXPECT_EQ(transport_shm_dial(&t[0], fds_own(fd[0]), SHM_RING_CONTROL_BYTES, NULL), PCCL_OK);
    EXPECT_EQ(transport_shm_accept(&t[1], fds_own(fd[1]), NULL), PCCL_OK);
    EXPECT_EQ(t[0].ops->send(&t[0], &part, 1, &moved), PCCL_OK);
    EXPECT_EQ(t[1].ops->receive(&t[1], &part, 1, &moved), PCCL_OK);
    EXPECT_EQ(transport_shm_map(&t[1], SHM_RING_CONTROL_BYTES, NULL), PCCL_OK);
}

static void say(struct end *e, uint32_t length)
{
    unsigned char frame[FRAME_HEADER_BYTES + 20000];
    frame_put(frame, &(struct frame_header){.type = FRAME_EAGER, .length = length, .view = e->said});
    for (uint32_t i = 0; i < length; i++) {
        frame[FRAME_HEADER_BYTES + i] = (unsigned char)(i * 7 + e->said);
    }
    e->said++;
    EXPECT_EQ(conn_append(e->conn, frame, FRAME_HEADER_BYTES + length, NULL, 0), PCCL_OK);
}

/* Both ends are ready for memory; the first moves at once. */
static void share(struct end e[2])
{
    struct transport t[2];
    memory_init(t);
    EXPECT_EQ(conn_share(e[1].conn, &t[1], false), PCCL_OK);
    EXPECT_EQ(conn_share(e[0].conn, &t[0], true), PCCL_OK);
}

static void poll_both(struct end e[2], uint64_t until)
{
    for (int i = 0; i < 1000000 && (e[0].heard < until || e[1].heard < until); i++) {
        loop_poll(&e[0].loop, 0);
        loop_poll(&e[1].loop, 0);
    }
}

TEST(frames_keep_their_order_when_a_connection_moves) /* those on the socket are before those in memory, whoever reads first */
{
    for (uint64_t seed = 1; seed <= test_scaled(200); seed++) {
        struct end e[2];
        struct rng rng = {seed};
        ends_init(e);
        uint64_t at = rng_below(&rng, 100);
        for (uint64_t i = 0; i < 200; i++) {
            if (i == at) {
                share(e);
            }
            for (int k = 0; k < 2; k++) {
                say(&e[k], (uint32_t)rng_below(&rng, 20000));
                if (rng_below(&rng, 3) != 0) {
                    conn_flush(e[k].conn);
                }
                if (rng_below(&rng, 4) == 0) {
                    loop_poll(&e[k].loop, 0);
                }
            }
        }
        conn_flush(e[0].conn);
        conn_flush(e[1].conn);
        poll_both(e, 200);
        for (int k = 0; k < 2; k++) {
            EXPECT_EQ(e[k].heard, 200);
            EXPECT_EQ(e[k].wrong, 0);
            EXPECT(conn_shares(e[k].conn));
            end_fini(&e[k]);
        }
    }
}

TEST(what_was_said_before_the_end_is_heard_then_the_end)
{
    struct end e[2];
    ends_init(e);
    say(&e[0], 10);
    share(e);
    conn_flush(e[0].conn);
    for (int i = 0; i < 100 && !(conn_shares(e[0].conn) && conn_shares(e[1].conn)); i++) {
        loop_poll(&e[0].loop, 0);
        loop_poll(&e[1].loop, 0);
    }
    say(&e[0], 3000);
    say(&e[0], 0);
    conn_flush(e[0].conn);
    end_fini(&e[0]); /* a process that dies closes all at once */
    for (int i = 0; i < 100 && e[1].over == PCCL_ERR_AGAIN; i++) {
        loop_poll(&e[1].loop, 0);
    }
    EXPECT_EQ(e[1].over, PCCL_ERR_CLOSED);
    EXPECT_EQ(e[1].heard, 3);
    EXPECT_EQ(e[1].wrong, 0);
    end_fini(&e[1]);
}

/* It waited too long for the answer, which was on its way: it goes on by the socket, and so must this end. */
TEST(memory_that_the_other_end_has_given_up_before_a_word_is_nothing_lost)
{
    struct end e[2];
    struct transport t[2];
    ends_init(e);
    memory_init(t);
    EXPECT_EQ(conn_share(e[1].conn, &t[1], false), PCCL_OK);
    t[0].ops->close(&t[0]);
    say(&e[1], 5);
    for (int i = 0; i < 10; i++) {
        loop_poll(&e[1].loop, 0);
    }
    say(&e[0], 3);
    say(&e[1], 7);
    conn_flush(e[0].conn);
    conn_flush(e[1].conn);
    poll_both(e, 1);
    EXPECT(e[0].over == PCCL_ERR_AGAIN && e[1].over == PCCL_ERR_AGAIN);
    EXPECT(e[0].heard == 2 && e[1].heard == 1 && e[0].wrong + e[1].wrong == 0);
    EXPECT(!conn_shares(e[0].conn) && !conn_shares(e[1].conn));
    end_fini(&e[0]);
    end_fini(&e[1]);
}

/* ---- Ends that sleep -------------------------------------------------------------------------------------------------- */

struct sleeper {
    struct end *e;
    uint64_t seed, count;
};

/* Says all that it has to say, now much, now little, and sleeps whenever it has nothing to do. */
static void *sleeper_run(void *argument)
{
    struct sleeper *s = argument;
    struct rng rng = {s->seed};
    while (s->e->heard < s->count || s->e->said < s->count || conn_queued(s->e->conn) > 0) {
        for (uint64_t n = rng_below(&rng, 30); n > 0 && s->e->said < s->count; n--) {
            say(s->e, (uint32_t)rng_below(&rng, 16000)); /* together more than a ring holds */
        }
        conn_flush(s->e->conn);
        loop_poll(&s->e->loop, s->e->said < s->count && rng_below(&rng, 2) == 0 ? 0 : -1);
    }
    return NULL;
}

/* Each end speaks and listens by turns, and both are at rest in between: a bell that is not rung leaves them asleep. */
TEST(no_sleeper_is_forgotten_on_either_way)
{
    for (uint64_t seed = 1; seed <= test_scaled(20); seed++) {
        struct end e[2];
        pthread_t thread;
        ends_init(e);
        share(e);
        struct sleeper s[2] = {{&e[0], seed, 3000}, {&e[1], seed + 1000, 3000}};
        EXPECT_EQ(pthread_create(&thread, NULL, sleeper_run, &s[0]), 0);
        sleeper_run(&s[1]);
        /* The last frame of this end may wait for room, of which only this end is told: it has none left when it returns. */
        pthread_join(thread, NULL);
        EXPECT_EQ(e[0].wrong + e[1].wrong, 0);
        end_fini(&e[0]);
        end_fini(&e[1]);
    }
}

TEST(one_that_was_put_to_rest_by_its_loop_is_woken_by_the_next_frame) /* looked at no more, it must tell */
{
    struct end e[2];
    ends_init(e);
    share(e);
    say(&e[0], 1);
    say(&e[1], 1);
    conn_flush(e[0].conn);
    conn_flush(e[1].conn);
    poll_both(e, 1);
    for (int i = 0; i < 2 * LOOP_IDLE; i++) {
        loop_poll(&e[1].loop, 0);
    }
    EXPECT(!atomic_load(&e[1].loop.any_polled));
    say(&e[0], 1);
    conn_flush(e[0].conn);
    loop_poll(&e[1].loop, -1);
    EXPECT_EQ(e[1].heard, 2);
    EXPECT(atomic_load(&e[1].loop.any_polled));
    end_fini(&e[0]);
    end_fini(&e[1]);
}

/* ---- Liars ------------------------------------------------------------------------------------------------------------ */

/* What becomes of an end that is sent these frames by socket; `ready`: it has memory. */
static pccl_status told_by_socket(const uint8_t *types, int count, bool ready)
{
    int fd[2];
    struct end e;
    struct transport t[2];
    unsigned char bytes[8 * FRAME_HEADER_BYTES];
    EXPECT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, fd), 0);
    end_init(&e, fd[0]);
    memory_init(t);
    if (ready) {
        EXPECT_EQ(conn_share(e.conn, &t[1], false), PCCL_OK);
    }
    for (int i = 0; i < count; i++) {
        frame_put(bytes + (size_t)i * FRAME_HEADER_BYTES, &(struct frame_header){.type = types[i]});
    }
    EXPECT_EQ(write(fd[1], bytes, (size_t)count * FRAME_HEADER_BYTES), count * FRAME_HEADER_BYTES);
    loop_poll(&e.loop, 0);
    loop_poll(&e.loop, 0);
    pccl_status over = e.over;
    end_fini(&e);
    t[0].ops->close(&t[0]);
    if (!ready) {
        t[1].ops->close(&t[1]);
    }
    close(fd[1]);
    return over;
}

TEST(a_move_that_was_not_agreed_on_ends_the_connection) /* else memory is read that nobody has mapped, or two streams at once */
{
    EXPECT_EQ(told_by_socket((const uint8_t[]){FRAME_PING, FRAME_SWITCH}, 2, true), PCCL_ERR_AGAIN);
    EXPECT_EQ(told_by_socket((const uint8_t[]){FRAME_PING, FRAME_SWITCH}, 2, false), PCCL_ERR_PROTOCOL);
    EXPECT_EQ(told_by_socket((const uint8_t[]){FRAME_SWITCH, FRAME_PING}, 2, true), PCCL_ERR_PROTOCOL);
    EXPECT_EQ(told_by_socket((const uint8_t[]){FRAME_SWITCH, FRAME_SWITCH}, 2, true), PCCL_ERR_PROTOCOL);
}

TEST(bytes_on_the_socket_after_the_move_end_the_connection)
{
    struct end e[2];
    ends_init(e);
    share(e);
    for (int i = 0; i < 100 && !conn_shares(e[1].conn); i++) {
        loop_poll(&e[0].loop, 0);
        loop_poll(&e[1].loop, 0);
    }
    EXPECT_EQ(send(e[0].conn->source.fd, "x", 1, 0), 1);
    loop_poll(&e[1].loop, 0);
    EXPECT_EQ(e[1].over, PCCL_ERR_PROTOCOL);
    end_fini(&e[0]);
    end_fini(&e[1]);
}
