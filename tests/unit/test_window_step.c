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
    _Alignas(8) unsigned char memory[BYTES];
    bool connected;
    uint64_t view;
};

static void step(struct bench *b, const struct window_event *e)
{
    (void)window_seen(b->window, b->connected, 100 + SELF, b->view);
    b->set.spare = b->set.spare != NULL ? b->set.spare : calloc(1, sizeof *b->set.spare);
    b->set.spare_answers = b->set.spare_answers != NULL ? b->set.spare_answers : calloc(WINDOW_OPEN, sizeof *b->set.spare_answers);
    window_step(&b->set, CLOCK_S, e);
}

/* Of members 100 and 101, or others from there on; its first member has made so many windows before. */
static struct bench *bench_of(uint64_t first, uint64_t serial)
{
    struct bench *b = calloc(1, sizeof *b);
    struct window_member members[WORLD] = {{.id = first, .bytes = BYTES, .rights = 7, .serial = serial}, {.id = first + 1, .bytes = BYTES, .rights = 7}};
    b->window = calloc(1, sizeof *b->window + WORLD * sizeof b->window->peer[0]);
    b->connected = true;
    b->view = 7;
    window_set_init(&b->set);
    window_init(b->window, &b->set, b->memory, BYTES, 7, WORLD);
    list_append(&b->set.all, &b->window->all);
    step(b, &(struct window_event){.kind = WINDOW_EVENT_JOINED, .window = b->window, .members = members, .rank = SELF});
    return b;
}

static struct bench *bench_new(void)
{
    return bench_of(100, 0);
}

static void bench_free(struct bench *b)
{
    while (!list_empty(&b->set.todo.done)) {
        free(LIST_ENTRY(list_pop(&b->set.todo.done), struct window_task, in));
    }
    free(b->set.spare);
    free(b->set.spare_answers);
    free(b->window->peer[OTHER].answered);
    free(b->window);
    free(b);
}

static void call(struct bench *b, struct window_op *op, struct window_call what)
{
    window_op_init(op, b->window, &what);
    step(b, &(struct window_event){.kind = WINDOW_EVENT_CALLED, .op = op});
}

/* The first message that was said; null: none. */
static struct window_message *said(struct bench *b)
{
    struct list *l = list_pop(&b->set.todo.says);
    return l != NULL ? LIST_ENTRY(l, struct window_message, says) : NULL;
}

/* The first that was said behind the next receive of requests, which stays said. */
static struct window_message *said_behind(struct bench *b)
{
    struct list *hears = list_pop(&b->set.todo.says);
    struct window_message *m = said(b);
    list_append(&b->set.todo.says, hears);
    return m;
}

static void message_ended(struct bench *b, struct window_message *m, bool lost)
{
    const struct session_outcome o = {.result = lost ? RESULT_LOST : RESULT_OK, .view_ended = lost, .view = b->view, .partner = 100 + OTHER};
    step(b, &(struct window_event){.kind = WINDOW_EVENT_ENDED, .message = m, .outcome = &o});
}

/* The other one's request comes; the next may. */
static void hear(struct bench *b, uint8_t kind, uint64_t seq)
{
    struct window_message *hears = said(b);
    struct writer w;
    EXPECT(hears != NULL && hears->role == WINDOW_HEARS);
    writer_init(&w, b->window->heard, sizeof b->window->heard);
    put_window_request(&w, &(struct window_request){.kind = kind, .width = kind == WINDOW_ADD ? 8 : 0, .seq = seq,
                                                    .bytes = kind == WINDOW_PUT || kind == WINDOW_ADD ? 8 : 0, .operand = kind == WINDOW_ADD});
    message_ended(b, hears, false);
}

TEST(no_two_windows_use_the_same_tags) /* else one hears what is still said on another that was left */
{
    enum { FIRSTS = 40, SERIALS = 40 };
    static uint64_t numbers[FIRSTS * SERIALS];
    for (uint32_t i = 0; i < FIRSTS * SERIALS; i++) {
        struct bench *b = bench_of(100 + i / SERIALS, i % SERIALS);
        numbers[i] = b->window->number;
        for (uint32_t k = 0; k < i; k++) {
            EXPECT(numbers[k] + WINDOW_TAGS <= numbers[i] || numbers[i] + WINDOW_TAGS <= numbers[k]);
        }
        bench_free(b);
    }
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

TEST(an_operation_on_the_window_of_a_lost_member_names_that_by_its_rank) /* or another rank's, or none */
{
    struct bench *b = bench_new();
    struct window_op put;
    char byte = 1;
    b->window->peer[OTHER].missing = true;
    call(b, &put, (struct window_call){.kind = WINDOW_PUT, .rank = OTHER, .bytes = 1, .source = &byte, .limit = CLOCK_NEVER});
    EXPECT(put.settled && put.outcome.result == RESULT_LOST && put.outcome.cause == CAUSE_PEER_LOST);
    EXPECT(put.outcome.culprit == 100 + OTHER && put.outcome.named.id == 100 + OTHER);
    EXPECT_EQ(put.outcome.named.ranked, OTHER + 1);
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

TEST(nothing_is_said_behind_a_message_that_could_not_be_launched) /* the origin of a read took the answer of the next one for it */
{
    struct bench *b = bench_new();
    struct window_op get, next;
    char byte = 0;
    call(b, &get, (struct window_call){.kind = WINDOW_GET, .rank = OTHER, .bytes = 1, .target = &byte, .limit = CLOCK_NEVER});
    call(b, &next, (struct window_call){.kind = WINDOW_GET, .rank = OTHER, .bytes = 1, .target = &byte, .limit = CLOCK_NEVER});
    EXPECT(window_first(&b->set.todo) == WINDOW_ACT_SAY);
    EXPECT(list_pop(&b->set.todo.says) == &get.message[0].says && list_pop(&b->set.todo.says) == &get.message[1].says);
    step(b, &(struct window_event){.kind = WINDOW_EVENT_UNSENT, .message = &get.message[0]});
    EXPECT(window_first(&b->set.todo) == WINDOW_ACT_SETTLE);
    EXPECT(list_pop(&b->set.todo.settled) == &get.told);
    EXPECT(window_first(&b->set.todo) == WINDOW_ACT_LEAVE);
    b->set.todo.leaves = false;
    EXPECT(window_first(&b->set.todo) == WINDOW_ACT_SAY);
    bench_free(b);
}

enum failing { HEARD, ASKED, ANSWERED };

static bool leaves_by(enum failing which, enum session_result result, uint8_t cause)
{
    struct bench *b = bench_new();
    struct window_op get;
    char byte = 0;
    call(b, &get, (struct window_call){.kind = WINDOW_GET, .rank = OTHER, .bytes = 1, .target = &byte, .limit = CLOCK_NEVER});
    while (list_pop(&b->set.todo.says) != NULL) {
    }
    step(b, &(struct window_event){.kind = WINDOW_EVENT_SERVED, .window = b->window});
    struct window_message *m = which == HEARD ? &b->window->hears : &get.message[which == ASKED];
    const struct session_outcome o = {.result = result, .cause = cause, .view = b->view, .partner = 100 + OTHER};
    step(b, &(struct window_event){.kind = WINDOW_EVENT_ENDED, .message = m, .outcome = &o});
    bool leaves = b->set.todo.leaves;
    bench_free(b);
    return leaves;
}

TEST(a_request_that_fails_at_this_end_ends_the_membership) /* or its answer is waited for for ever, and the window is never closed */
{
    EXPECT(leaves_by(HEARD, RESULT_POISONED, CAUSE_INTERNAL) && leaves_by(HEARD, RESULT_NO_MEMORY, CAUSE_NO_MEMORY));
    EXPECT(leaves_by(ASKED, RESULT_POISONED, CAUSE_INTERNAL) && leaves_by(ASKED, RESULT_NO_MEMORY, CAUSE_NO_MEMORY));
    EXPECT(!leaves_by(HEARD, RESULT_LOST, CAUSE_INTERNAL) && !leaves_by(ASKED, RESULT_LOST, CAUSE_NO_MEMORY)); /* the other one does */
    EXPECT(!leaves_by(ANSWERED, RESULT_POISONED, CAUSE_INTERNAL)); /* both know its number */
}

TEST(a_member_whose_request_has_failed_is_heard_again_in_the_next_view) /* or its bytes land where those of its next put belong */
{
    struct bench *b = bench_new();
    step(b, &(struct window_event){.kind = WINDOW_EVENT_SERVED, .window = b->window});
    const struct session_outcome failed = {.result = RESULT_LOST, .cause = CAUSE_NO_MEMORY, .culprit = 100 + OTHER, .view = 7, .partner = 100 + OTHER};
    step(b, &(struct window_event){.kind = WINDOW_EVENT_ENDED, .message = said(b), .outcome = &failed});
    hear(b, WINDOW_PUT, 1);
    struct list *hears = list_pop(&b->set.todo.says);
    EXPECT(hears == &b->window->hears.says && said(b) == NULL);
    list_append(&b->set.todo.says, hears);
    b->view = 8;
    hear(b, WINDOW_PUT, 0);
    EXPECT(list_pop(&b->set.todo.says) == hears);
    struct window_message *bytes = said(b);
    EXPECT(bytes != NULL && bytes->role == WINDOW_SERVES && bytes->launch.within == 8);
    message_ended(b, bytes, false);
    bench_free(b);
}

TEST(what_waits_for_bytes_of_a_view_that_has_ended_is_answered_in_the_view_that_it_is_asked_again_in) /* or its origin waits for ever */
{
    struct bench *b = bench_new();
    step(b, &(struct window_event){.kind = WINDOW_EVENT_SERVED, .window = b->window});
    hear(b, WINDOW_PUT, 0);
    struct window_message *bytes = said_behind(b);
    EXPECT(bytes->role == WINDOW_SERVES && bytes->launch.within == 7 && bytes->launch.receives);
    hear(b, WINDOW_ADD, 1);
    b->view = 8;
    message_ended(b, bytes, true);
    hear(b, WINDOW_PUT, 0);
    bytes = said_behind(b);
    EXPECT(bytes->role == WINDOW_SERVES && bytes->launch.within == 8);
    hear(b, WINDOW_ADD, 1);
    (void)list_pop(&b->set.todo.says); /* the next receive of requests */
    EXPECT(said(b) == NULL); /* it waits for the bytes */
    message_ended(b, bytes, false);
    struct window_message *answer = said(b);
    EXPECT(answer != NULL && answer->launch.within == 8 && !answer->launch.receives && answer->launch.bytes == 8);
    EXPECT_EQ(b->memory[0], 1);
    message_ended(b, answer, false);
    EXPECT(b->window->under_way == 1); /* that receive */
    bench_free(b);
}

TEST(a_signal_that_is_given_up_does_not_come_before_the_bytes_that_were_put_before_it)
{
    struct bench *b = bench_new();
    struct window_peer *other = &b->window->peer[OTHER];
    step(b, &(struct window_event){.kind = WINDOW_EVENT_SERVED, .window = b->window});
    hear(b, WINDOW_PUT, 0);
    struct window_message *bytes = said_behind(b);
    hear(b, WINDOW_SIGNAL, 1);
    EXPECT_EQ(other->signals, 0);
    b->view = 8;
    message_ended(b, bytes, true);
    hear(b, WINDOW_PUT, 0);
    bytes = said_behind(b);
    hear(b, WINDOW_VOID, 1); /* its program has cancelled it meanwhile */
    EXPECT_EQ(other->signals, 0);
    message_ended(b, bytes, false);
    EXPECT_EQ(other->signals, 0); /* withdrawn */
    EXPECT_EQ(other->floor, 2);
    bench_free(b);
}

TEST(the_last_word_of_a_member_waits_for_its_bytes_although_it_is_made_void)
{
    struct bench *b = bench_new();
    struct window_peer *other = &b->window->peer[OTHER];
    step(b, &(struct window_event){.kind = WINDOW_EVENT_SERVED, .window = b->window});
    hear(b, WINDOW_PUT, 0);
    struct window_message *bytes = said_behind(b);
    hear(b, WINDOW_CLOSE, 1);
    hear(b, WINDOW_VOID, 1);
    EXPECT(!other->closed);
    message_ended(b, bytes, false);
    EXPECT(other->closed);
    bench_free(b);
}

static void sends_all(struct bench *b)
{
    while (list_pop(&b->set.todo.says) != NULL) {
    }
}

static void abandon(struct bench *b)
{
    b->window->peer[OTHER].silent = true;
    step(b, &(struct window_event){.kind = WINDOW_EVENT_ABANDON, .window = b->window});
}

static void expect_silent(const struct window_op *op)
{
    EXPECT(op->settled);
    EXPECT_EQ(op->outcome.result, RESULT_LOST);
    EXPECT_EQ(op->outcome.cause, CAUSE_PEER_SILENT);
    EXPECT_EQ(op->outcome.culprit, 100 + OTHER);
}

TEST(what_is_open_with_a_silent_member_ends_when_no_lane_holds_its_buffers)
{
    struct bench *b = bench_new();
    struct window_op put, wait, last;
    char byte = 1;
    call(b, &put, (struct window_call){.kind = WINDOW_PUT, .rank = OTHER, .bytes = 1, .source = &byte, .limit = CLOCK_NEVER});
    call(b, &wait, (struct window_call){.kind = WINDOW_VOID, .rank = OTHER, .deadline = CLOCK_NEVER});
    sends_all(b);
    step(b, &(struct window_event){.kind = WINDOW_EVENT_CLOSING, .window = b->window});
    EXPECT(window_acts(b->window));
    put.message[0].lent = true;
    abandon(b);
    EXPECT(list_pop(&b->set.todo.stops) == &put.message[0].stops && list_pop(&b->set.todo.stops) == NULL);
    expect_silent(&wait);
    EXPECT(!put.settled && window_acts(b->window));
    put.message[0].lent = false;
    abandon(b);
    expect_silent(&put);
    EXPECT(list_pop(&b->set.todo.stops) == NULL); /* once */
    EXPECT(!window_acts(b->window) && !window_waits(b->window) && !window_done(b->window));
    call(b, &last, (struct window_call){.kind = WINDOW_CLOSE, .rank = OTHER});
    abandon(b);
    EXPECT(!last.settled && last.under_way == 0); /* it goes behind what ends the put */
    b->window->peer[OTHER].silent = false;
    EXPECT(window_waits(b->window));
    message_ended(b, &put.message[0], false);
    message_ended(b, &put.message[1], false);
    message_ended(b, said(b), false);
    EXPECT(last.settled && window_waits(b->window)); /* for the other one's last word */
    bench_free(b);
}

TEST(the_last_word_goes_behind_what_it_gives_up) /* or the target, which has gone with it, never hears what is made void: this window stayed */
{
    struct bench *b = bench_new();
    struct window_op get, last;
    char byte = 1;
    call(b, &get, (struct window_call){.kind = WINDOW_GET, .rank = OTHER, .bytes = 1, .target = &byte, .limit = CLOCK_NEVER});
    sends_all(b);
    step(b, &(struct window_event){.kind = WINDOW_EVENT_CLOSING, .window = b->window});
    abandon(b);
    EXPECT(get.settled && !window_acts(b->window));
    call(b, &last, (struct window_call){.kind = WINDOW_CLOSE, .rank = OTHER});
    EXPECT(said(b) == NULL);
    const struct session_outcome cancelled = {.result = RESULT_LOST, .cause = CAUSE_CANCEL, .culprit = 100 + SELF, .view = 7, .partner = 100 + OTHER};
    step(b, &(struct window_event){.kind = WINDOW_EVENT_ENDED, .message = &get.message[0], .outcome = &cancelled});
    EXPECT(said(b) == NULL);
    message_ended(b, &get.message[1], false);
    struct window_message *voids = said(b);
    EXPECT(voids == &get.message[0] && get.what.kind == WINDOW_VOID && said(b) == NULL);
    message_ended(b, voids, false);
    EXPECT(said(b) == &last.message[0] && last.under_way == 1);
    message_ended(b, &last.message[0], false);
    EXPECT(last.settled && b->window->calls == 0 && !window_done(b->window)); /* for the other one's last word */
    bench_free(b);
}

TEST(what_is_cancelled_for_a_silent_member_does_not_say_that_its_program_has_cancelled_it)
{
    struct bench *b = bench_new();
    struct window_op get;
    char byte = 1;
    call(b, &get, (struct window_call){.kind = WINDOW_GET, .rank = OTHER, .bytes = 1, .target = &byte, .limit = CLOCK_NEVER});
    sends_all(b);
    step(b, &(struct window_event){.kind = WINDOW_EVENT_CLOSING, .window = b->window});
    get.message[0].lent = true;
    abandon(b);
    EXPECT(!get.settled);
    const struct session_outcome cancelled = {.result = RESULT_LOST, .cause = CAUSE_CANCEL, .culprit = 100 + SELF, .view = 7, .partner = 100 + OTHER};
    step(b, &(struct window_event){.kind = WINDOW_EVENT_ENDED, .message = &get.message[0], .outcome = &cancelled});
    message_ended(b, &get.message[1], false);
    expect_silent(&get);
    bench_free(b);
}

TEST(what_a_view_has_cut_off_is_made_void_when_its_member_is_silent)
{
    struct bench *b = bench_new();
    struct window_op put, get;
    char byte = 1;
    call(b, &put, (struct window_call){.kind = WINDOW_PUT, .rank = OTHER, .bytes = 1, .source = &byte, .limit = CLOCK_NEVER});
    call(b, &get, (struct window_call){.kind = WINDOW_GET, .rank = OTHER, .bytes = 1, .target = &byte, .limit = CLOCK_NEVER});
    sends_all(b);
    message_ended(b, &put.message[0], true);
    message_ended(b, &put.message[1], true);
    EXPECT(put.cut && !put.settled);
    abandon(b);
    expect_silent(&put);
    EXPECT_EQ(put.what.kind, WINDOW_VOID); /* what is said again has no bytes of the program's */
    b->view = 8;
    message_ended(b, &get.message[0], true);
    message_ended(b, &get.message[1], true);
    struct window_message *again = said(b);
    EXPECT(again == &put.message[0] && again->launch.tag == b->window->number + WINDOW_REQUESTS);
    bench_free(b);
}

TEST(who_asks_for_a_window_that_was_left_is_refused_and_told)
{
    struct bench *b = bench_new();
    struct window_peer *other = &b->window->peer[OTHER];
    step(b, &(struct window_event){.kind = WINDOW_EVENT_SERVED, .window = b->window});
    hear(b, WINDOW_PUT, 0);
    struct window_message *bytes = said_behind(b);
    hear(b, WINDOW_ADD, 1); /* it waits for the bytes */
    step(b, &(struct window_event){.kind = WINDOW_EVENT_CLOSING, .window = b->window});
    step(b, &(struct window_event){.kind = WINDOW_EVENT_LEFT, .window = b->window});
    EXPECT(list_pop(&b->set.todo.stops) == &bytes->stops);
    message_ended(b, bytes, true);
    hear(b, WINDOW_VOID, 0); /* it was cancelled here */
    struct window_message *answer = said_behind(b);
    EXPECT(answer != NULL && answer->launch.bad_argument);
    message_ended(b, answer, true);
    hear(b, WINDOW_CLOSE, 2);
    EXPECT(other->closed && window_done(b->window));
    EXPECT_EQ(b->memory[0], 0);
    bench_free(b);
}

TEST(an_operation_that_a_closed_window_refuses_says_that_it_was_destroyed)
{
    struct bench *b = bench_new();
    struct window_op get;
    char byte = 1;
    step(b, &(struct window_event){.kind = WINDOW_EVENT_SERVED, .window = b->window});
    struct list *hears = list_pop(&b->set.todo.says);
    call(b, &get, (struct window_call){.kind = WINDOW_GET, .rank = OTHER, .bytes = 1, .target = &byte, .limit = CLOCK_NEVER});
    sends_all(b);
    list_append(&b->set.todo.says, hears);
    hear(b, WINDOW_CLOSE, 0);
    const struct session_outcome refused = {.result = RESULT_ARGUMENT, .cause = CAUSE_ARGUMENT, .view = 7, .partner = 100 + OTHER};
    step(b, &(struct window_event){.kind = WINDOW_EVENT_ENDED, .message = &get.message[0], .outcome = &refused});
    message_ended(b, &get.message[1], false);
    EXPECT(get.settled);
    EXPECT_EQ(get.outcome.result, RESULT_USAGE);
    EXPECT(strcmp(get.outcome.text, "rank 1 has destroyed its window") == 0);
    bench_free(b);
}
