/* test_fabric.c - connections through libfabric: bytes by value, credit, a way that is none.
 *
 * Two ports of one process talk to each other by libfabric's tcp provider over loopback; a socket pair stands for the TCP connections
 * that carried their greetings.
 * SPDX-License-Identifier: MIT */
#include "tests/testing.h"

#include <sys/socket.h>
#include <unistd.h>

#include "core/clock.h"
#include "fabric_pair.h"
#include "net/fabric_port.h"

/* False: there is no libfabric here, which the test says. */
static bool opened(struct pair *p)
{
    bool there = pair_open(p, &test_failures);
    if (!there) {
        test_skipped = "no libfabric, or a build without it";
    }
    return there;
}

TEST(bytes_arrive_in_order_on_every_link_both_ways) /* a provider may deliver a short message before a long one */
{
    enum { BYTES = 6 << 20 };
    struct pair p;
    struct rng rng = {11};
    if (!opened(&p)) {
        return;
    }
    for (int k = 0; k < LINKS; k++) {
        pair_link(&p, k);
        EXPECT(pair_open_end(&p.end[k][0]) && pair_open_end(&p.end[k][1]));
    }
    bool ended = false;
    for (bool all = false; !all && !ended;) {
        all = true;
        for (int k = 0; k < LINKS; k++) {
            pair_hear(&p, k);
            for (int i = 0; i < PORTS; i++) {
                size_t most = rng_below(&rng, 4) == 0 ? 100 : 300000;
                ended |= pair_say(&p, k, i, &rng, most) == PCCL_ERR_CLOSED;
                (void)pair_listen(&p, k, i, &rng);
                all = all && p.end[k][i].got >= BYTES;
            }
        }
        pair_turn(&p);
    }
    EXPECT(!ended);
    pair_close(&p);
}

TEST(an_end_that_opens_late_misses_nothing) /* a message that comes before its connection is known would be lost */
{
    struct pair p;
    struct rng rng = {12};
    if (!opened(&p)) {
        return;
    }
    pair_link(&p, 0);
    EXPECT(pair_open_end(&p.end[0][0]));
    for (int i = 0; i < 200; i++) {
        pair_hear(&p, 0);
        pair_turn(&p);
        EXPECT_EQ(pair_say(&p, 0, 0, &rng, 1000), PCCL_ERR_AGAIN); /* nobody is there yet */
    }
    EXPECT(pair_open_end(&p.end[0][1]));
    while (p.end[0][1].got < 100000) {
        pair_hear(&p, 0);
        (void)pair_say(&p, 0, 0, &rng, 1000);
        (void)pair_listen(&p, 0, 1, &rng);
        pair_turn(&p);
    }
    pair_close(&p);
}

TEST(who_does_not_read_holds_up_his_own_link_only)
{
    struct pair p;
    struct rng rng = {13};
    if (!opened(&p)) {
        return;
    }
    for (int k = 0; k < 2; k++) {
        pair_link(&p, k);
        EXPECT(pair_open_end(&p.end[k][0]) && pair_open_end(&p.end[k][1]));
    }
    uint64_t full = 0;
    while (p.end[1][1].got < (8u << 20)) {
        pair_hear(&p, 0);
        pair_hear(&p, 1);
        (void)pair_say(&p, 0, 0, &rng, 300000); /* never read */
        (void)pair_say(&p, 1, 0, &rng, 300000);
        (void)pair_listen(&p, 1, 1, &rng);
        pair_turn(&p);
        full = p.end[0][0].sent;
    }
    EXPECT(full > 0 && full < (2u << 20)); /* a window */
    EXPECT_EQ(pair_say(&p, 0, 0, &rng, 10), PCCL_ERR_AGAIN);
    while (p.end[0][1].got < full) {
        (void)pair_listen(&p, 0, 1, &rng);
        pair_turn(&p);
    }
    pair_close(&p);
}

TEST(what_was_said_before_the_end_is_read_then_the_end)
{
    struct pair p;
    struct rng rng = {14};
    if (!opened(&p)) {
        return;
    }
    pair_link(&p, 0);
    EXPECT(pair_open_end(&p.end[0][0]) && pair_open_end(&p.end[0][1]));
    while (p.end[0][0].sent < 1000) {
        pair_hear(&p, 0);
        (void)pair_say(&p, 0, 0, &rng, 1000);
        pair_turn(&p);
    }
    p.end[0][1].told = false;
    while (p.end[0][1].got < 1 || p.end[0][1].told) { /* all of it is here */
        p.end[0][1].told = false;
        (void)pair_listen(&p, 0, 1, &rng);
        for (int i = 0; i < 100; i++) {
            pair_turn(&p);
        }
    }
    p.end[0][0].t.ops->shutdown(&p.end[0][0].t);
    EXPECT_EQ(p.end[0][1].t.ops->hear(&p.end[0][1].t), PCCL_ERR_CLOSED);
    EXPECT(!transport_fabric_failed(&p.end[0][1].t)); /* the other end has left, by a way that is good */
    pccl_status st;
    while ((st = pair_listen(&p, 0, 1, &rng)) == PCCL_OK) {
    }
    EXPECT_EQ(st, PCCL_ERR_CLOSED);
    EXPECT_EQ(p.end[0][1].got, p.end[0][0].sent);
    EXPECT_EQ(pair_say(&p, 0, 1, &rng, 10), PCCL_ERR_CLOSED);
    pair_close(&p);
}

TEST(a_socket_that_says_more_than_that_it_is_open_ends_the_link)
{
    struct pair p;
    if (!opened(&p)) {
        return;
    }
    pair_link(&p, 0);
    EXPECT(pair_open_end(&p.end[0][1]));
    EXPECT_EQ(write(p.end[0][0].t.fd, "xx", 2), 2);
    EXPECT_EQ(p.end[0][1].t.ops->hear(&p.end[0][1].t), PCCL_ERR_PROTOCOL);
    p.end[0][0].open = true;
    pair_close(&p);
}

TEST(messages_under_a_key_that_nobody_has_are_dropped) /* whoever knows the address of a port may send to it */
{
    struct pair p;
    struct rng rng = {15};
    if (!opened(&p)) {
        return;
    }
    pair_link(&p, 0);
    pair_link(&p, 1);
    p.end[1][0].name.key++;
    struct fabric_end wrong = p.end[1][1].name;
    wrong.key ^= 1;
    struct transport stray;
    int fd[2];
    EXPECT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fd), 0);
    transport_tcp_take(&stray, fd[0], &(struct sock_bulk){.buffers = {SOCK_BUFFER, SOCK_BUFFER}});
    EXPECT_EQ(transport_fabric_take(&stray, p.port[0], &p.end[1][0].name, &wrong), PCCL_OK);
    struct end hostile = {.t = stray};
    EXPECT(pair_open_end(&hostile) && pair_open_end(&p.end[0][0]) && pair_open_end(&p.end[0][1]));
    EXPECT_EQ(write(fd[1], "", 1), 1);
    p.end[1][0].open = p.end[1][1].open = true;
    while (p.end[0][1].got < (1u << 20)) {
        pair_hear(&p, 0);
        EXPECT_EQ(hostile.t.ops->hear(&hostile.t), PCCL_OK); /* its HELLO goes out, to nobody */
        (void)pair_say(&p, 0, 0, &rng, 300000);
        (void)pair_listen(&p, 0, 1, &rng);
        pair_turn(&p);
    }
    hostile.t.ops->close(&hostile.t);
    close(fd[1]);
    pair_close(&p);
}

TEST(an_end_to_which_there_is_no_way_is_given_up) /* then the next connection is TCP */
{
    struct pair p;
    struct rng rng = {16};
    if (!opened(&p)) {
        return;
    }
    pair_link(&p, 0);
    int fd[2];
    EXPECT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fd), 0);
    struct end lonely = {.open = false};
    transport_tcp_take(&lonely.t, fd[0], &(struct sock_bulk){.buffers = {SOCK_BUFFER, SOCK_BUFFER}});
    EXPECT(fabric_port_offer(p.port[0], &lonely.name));
    EXPECT_EQ(transport_fabric_take(&lonely.t, p.port[0], &lonely.name, &p.end[0][1].name), PCCL_OK);
    p.port[0]->patience_ns = 20 * CLOCK_MS;
    EXPECT(pair_open_end(&lonely));
    EXPECT_EQ(write(fd[1], "", 1), 1); /* it lives, and nothing of it comes through the fabric */
    EXPECT_EQ(lonely.t.ops->hear(&lonely.t), PCCL_OK);
    struct iovec part = {&rng, 1};
    size_t moved;
    while (lonely.t.ops->send(&lonely.t, &part, 1, &moved) == PCCL_ERR_AGAIN) {
        loop_poll(&p.loop[0], -1); /* a timer ends it */
        loop_poll(&p.loop[1], 0);
    }
    EXPECT(lonely.told && transport_fabric_failed(&lonely.t));
    EXPECT_EQ(lonely.t.ops->send(&lonely.t, &part, 1, &moved), PCCL_ERR_CLOSED);
    lonely.t.ops->close(&lonely.t);
    close(fd[1]);
    p.end[0][0].open = p.end[0][1].open = true;
    pair_close(&p);
}

TEST(a_way_that_goes_in_one_direction_only_is_given_up) /* it was heard, and hears nothing: no operation may be given to it */
{
    struct pair p;
    if (!opened(&p)) {
        return;
    }
    struct end deaf = {.open = false}, *mute = &p.end[0][1];
    int fd[2];
    pair_link(&p, 0);
    EXPECT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fd), 0);
    struct fabric_end nobody = mute->name;
    nobody.key ^= 1;
    transport_tcp_take(&deaf.t, fd[0], &(struct sock_bulk){.buffers = {SOCK_BUFFER, SOCK_BUFFER}});
    EXPECT_EQ(transport_fabric_take(&deaf.t, p.port[0], &p.end[0][0].name, &nobody), PCCL_OK);
    p.port[0]->patience_ns = 60 * CLOCK_S;
    EXPECT(pair_open_end(&deaf) && pair_open_end(mute)); /* HELLO of `mute` comes; what `deaf` says reaches nobody */
    EXPECT_EQ(write(fd[1], "", 1), 1);
    EXPECT_EQ(write(p.end[0][0].t.fd, "", 1), 1);
    EXPECT_EQ(deaf.t.ops->hear(&deaf.t), PCCL_OK);
    EXPECT_EQ(mute->t.ops->hear(&mute->t), PCCL_OK);
    unsigned char byte = 0;
    struct iovec part = {&byte, 1};
    size_t moved;
    while (deaf.t.ops->send(&deaf.t, &part, 1, &moved) == PCCL_ERR_AGAIN) {
        EXPECT(!deaf.t.ops->good(&deaf.t));
        EXPECT_EQ(mute->t.ops->send(&mute->t, &part, 1, &moved), PCCL_ERR_AGAIN);
        loop_poll(&p.loop[0], 1);
        loop_poll(&p.loop[1], 0);
        p.port[0]->patience_ns = deaf.t.fabric->heard ? 0 : 60 * CLOCK_S;
    }
    EXPECT(deaf.t.fabric->heard && transport_fabric_failed(&deaf.t));
    EXPECT_EQ(deaf.t.ops->send(&deaf.t, &part, 1, &moved), PCCL_ERR_CLOSED);
    deaf.t.ops->close(&deaf.t);
    close(fd[1]);
    p.end[0][0].open = true;
    pair_close(&p);
}

TEST(PCCL_NET_takes_two_words)
{
    static const struct {
        const char *text;
        enum fabric_choice choice;
        pccl_status st;
    } cases[] = {
        {NULL, FABRIC_AUTO, PCCL_OK}, {"", FABRIC_AUTO, PCCL_OK}, {"Socket", FABRIC_NEVER, PCCL_OK}, {"socket", FABRIC_NEVER, PCCL_OK},
        {"OFI", FABRIC_ALWAYS, PCCL_OK}, {"ofi", FABRIC_ALWAYS, PCCL_OK}, {"IB", FABRIC_AUTO, PCCL_ERR_INVALID},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct err err = {.text = ""};
        enum fabric_choice choice;
        EXPECT_EQ(fabric_read_choice("PCCL_NET", cases[i].text, &choice, &err), cases[i].st);
        EXPECT_EQ(choice, cases[i].choice);
        EXPECT((cases[i].st != PCCL_OK) == (strstr(err.text, "expected Socket or OFI") != NULL));
    }
}
