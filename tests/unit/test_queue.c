/* test_queue.c - completion queues by themselves: order, wakes, the descriptor, the end.
 * SPDX-License-Identifier: MIT */
#include "tests/testing.h"

#include <poll.h>

#include "core/clock.h"
#include "engine/tables/queue.h"

static void entry_init(struct queue_entry *e, struct queue *q, uint64_t cookie)
{
    list_init(&e->all);
    e->queue = q;
    e->cookie = cookie;
}

static uint64_t take(struct queue *q)
{
    struct queue_entry *e = queue_take(q);
    queue_let(q);
    return e != NULL ? e->cookie : 0;
}

static bool readable(int fd)
{
    struct pollfd p = {.fd = fd, .events = POLLIN};
    return poll(&p, 1, 0) == 1;
}

TEST(what_ends_is_taken_once_in_that_order) /* lost, or told twice */
{
    enum { MANY = 10000 };
    static struct queue_entry e[MANY];
    struct queue *q = queue_new();
    EXPECT_EQ(queue_wait(q, 0), QUEUE_TIMEOUT);
    for (uint64_t i = 0; i < MANY; i++) {
        entry_init(&e[i], q, i + 1);
        EXPECT(queue_append(&e[i]) && queue_has(&e[i]));
    }
    EXPECT_EQ(queue_wait(q, CLOCK_NEVER), QUEUE_ENDED);
    for (uint64_t i = 0; i < MANY; i++) {
        EXPECT_EQ(take(q), i + 1);
        EXPECT(!queue_has(&e[i]));
    }
    EXPECT_EQ(take(q), 0);
    queue_drop(q);
}

TEST(a_descriptor_tells_what_a_wait_would) /* a loop sleeps although something is there, or spins although nothing is */
{
    struct queue_entry e[2];
    struct queue *q = queue_new();
    int fd = -1, again = -1;
    entry_init(&e[0], q, 1);
    entry_init(&e[1], q, 2);
    EXPECT(queue_append(&e[0]));
    EXPECT_EQ(queue_descriptor(q, &fd), PCCL_OK);
    EXPECT_EQ(queue_descriptor(q, &again), PCCL_OK);
    EXPECT(fd >= 0 && again == fd);
    EXPECT(readable(fd)); /* of what was there before it was opened */
    EXPECT(queue_append(&e[1]));
    EXPECT_EQ(take(q), 1);
    EXPECT(readable(fd));
    queue_wake(q);
    EXPECT_EQ(take(q), 2);
    EXPECT(readable(fd)); /* by the wake */
    EXPECT_EQ(queue_wait(q, CLOCK_NEVER), QUEUE_WOKEN);
    EXPECT(!readable(fd));
    EXPECT(queue_append(&e[0]));
    EXPECT_EQ(take(q), 1);
    EXPECT(!readable(fd));
    queue_wake(q);
    EXPECT(readable(fd)); /* a wake alone is enough */
    queue_wake(q);
    EXPECT_EQ(queue_wait(q, CLOCK_NEVER), QUEUE_WOKEN);
    EXPECT(!readable(fd));
    EXPECT_EQ(queue_wait(q, 0), QUEUE_TIMEOUT); /* two wakes were one */
    queue_drop(q);
}

TEST(a_closed_queue_takes_nothing_more) /* what ends later would lie in it for ever */
{
    struct queue_entry e[2];
    struct queue *q = queue_new();
    entry_init(&e[0], q, 1);
    entry_init(&e[1], q, 2);
    EXPECT(queue_append(&e[0]));
    queue_use(q);
    queue_close(q);
    EXPECT_EQ(queue_wait(q, CLOCK_NEVER), QUEUE_CLOSED);
    EXPECT(!queue_append(&e[1]) && !queue_has(&e[1]));
    EXPECT_EQ(take(q), 1);
    queue_drop(q);
    queue_drop(q);
}
