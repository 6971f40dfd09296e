/* test_window_step.c - what window_step decides, without a communicator: why what is open ends, and when.
 * SPDX-License-Identifier: MIT */
#include "tests/testing.h"

#include <string.h>

#include "core/clock.h"
#include "window/window_set.h"

enum { WORLD = 2, SELF = 0, OTHER = 1, BYTES = 64 };

struct bench {
    struct window_set set;
    struct window *window;
    unsigned char memory[BYTES];
    bool connected;
};

static void step(struct bench *b, const struct window_event *e)
{
    (void)window_seen(b->window, b->connected, 100 + SELF, 7);
    window_step(&b->set, CLOCK_S, e);
}

static struct bench *bench_new(void)
{
    struct bench *b = calloc(1, sizeof *b);
    struct window_member members[WORLD] = {{.id = 100, .bytes = BYTES, .rights = 7}, {.id = 101, .bytes = BYTES, .rights = 7}};
    b->window = calloc(1, sizeof *b->window + WORLD * sizeof b->window->peer[0]);
    b->connected = true;
    window_set_init(&b->set);
    window_init(b->window, &b->set, b->memory, BYTES, 7, WORLD);
    list_append(&b->set.all, &b->window->all);
    step(b, &(struct window_event){.kind = WINDOW_EVENT_JOINED, .window = b->window, .members = members, .rank = SELF});
    return b;
}

static void bench_free(struct bench *b)
{
    free(b->window);
    free(b);
}

static void call(struct bench *b, struct window_op *op, struct window_call what)
{
    window_op_init(op, b->window, &what);
    step(b, &(struct window_event){.kind = WINDOW_EVENT_CALLED, .op = op});
}

/* Programs would be told that a call of theirs was wrong, or cancelled, which another one was. */
TEST(what_is_open_when_this_peer_has_left_ends_with_that_and_not_with_another_ones_reason)
{
    struct bench *b = bench_new();
    struct window_op wait, put;
    char byte = 1;
    call(b, &wait, (struct window_call){.kind = WINDOW_VOID, .rank = OTHER, .deadline = CLOCK_NEVER});
    call(b, &put, (struct window_call){.kind = WINDOW_PUT, .rank = OTHER, .bytes = 1, .source = &byte, .limit = CLOCK_NEVER});
    EXPECT(put.message[0].under_way && put.message[1].under_way && put.message[1].behind && !wait.settled);
    b->connected = false;
    const struct session_outcome refused = {.result = RESULT_ARGUMENT, .cause = CAUSE_ARGUMENT}, gone = {.result = RESULT_GONE};
    step(b, &(struct window_event){.kind = WINDOW_EVENT_ENDED, .message = &put.message[0], .outcome = &refused});
    step(b, &(struct window_event){.kind = WINDOW_EVENT_ENDED, .message = &put.message[1], .outcome = &gone});
    step(b, &(struct window_event){.kind = WINDOW_EVENT_FOLLOW});
    EXPECT(put.settled && wait.settled);
    EXPECT_EQ(wait.outcome.result, RESULT_GONE);
    EXPECT_EQ(put.outcome.result, RESULT_GONE);
    bench_free(b);
}

TEST(a_message_that_cannot_be_launched_ends_its_operation_and_the_membership) /* the other end would take the next one for it */
{
    struct bench *b = bench_new();
    struct window_op get;
    char byte = 0;
    call(b, &get, (struct window_call){.kind = WINDOW_GET, .rank = OTHER, .bytes = 1, .target = &byte, .limit = CLOCK_NEVER});
    EXPECT(list_pop(&b->set.todo.says) == &get.message[0].says && list_pop(&b->set.todo.says) == &get.message[1].says);
    step(b, &(struct window_event){.kind = WINDOW_EVENT_UNSENT, .message = &get.message[0]});
    EXPECT(get.settled && b->set.todo.leaves && b->window->under_way == 0 && b->window->calls == 0);
    EXPECT_EQ(get.outcome.result, RESULT_NO_MEMORY);
    bench_free(b);
}
