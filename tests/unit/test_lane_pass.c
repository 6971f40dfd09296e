/* test_lane_pass.c - a lane by itself: orders that arrive while it serves its connections.
 *
 * The transport is the test's: what a connection "receives" is written here, and orders can be posted at the very moment at which the
 * lane reads, where real threads hit them once in a million passes.
 * SPDX-License-Identifier: MIT */
#include "engine/calls/await.h"
#include "engine/lanes/lane_exec.h"
#include "engine/threads/lane_hold.h"
#include "tests/testing.h"

#include <malloc.h>
#include <sys/eventfd.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "net/fds.h"
#include "engine/comm.h"
#include "engine/links/link.h"
#include "engine/tables/link_table.h"

enum { STREAMS = 3, VIEW = 7, SENT = 64 };

struct bench {
    struct engine engine;
    struct loop poller;
    struct comm comm;
    struct link link[STREAMS];
    struct stream *stream[STREAMS];
    struct lane *lane;
    struct lane_done done;
    bool posted;
    uint64_t tag[SENT]; /* of the frames sent, in their order */
    int sent, sent_fd;  /* so many, the last one over this */
    unsigned char in[256]; /* comes over in_fd, once */
    size_t in_bytes;
    int in_fd, ended_fd; /* ended_fd: nothing comes over it any more */
    int closed, closed_in_pass;
};

static struct bench *bench; /* of the running test: a transport has no user pointer */

/* The head of a frame. */
static size_t head_of(unsigned char *out, struct op_name name, uint32_t frame, uint32_t bytes)
{
    struct writer w;
    writer_init(&w, out + FRAME_HEADER_BYTES, P2P_DATA_PREFIX);
    put_data(&w, &(struct msg_data){.name = name, .frame = frame, .phase = 0});
    frame_put(out, &(struct frame_header){.type = FRAME_DATA, .lane = 1, .length = P2P_DATA_PREFIX + bytes, .view = VIEW});
    return FRAME_HEADER_BYTES + P2P_DATA_PREFIX;
}

/* A grant. */
static size_t credit_of(unsigned char *out, struct op_name name, uint32_t frames)
{
    struct writer w;
    writer_init(&w, out + FRAME_HEADER_BYTES, 64);
    put_credit(&w, &(struct msg_credit){.name = name, .frames = frames});
    frame_put(out, &(struct frame_header){.type = FRAME_CREDIT, .lane = 1, .length = (uint32_t)w.used, .view = VIEW});
    return FRAME_HEADER_BYTES + w.used;
}

/* Whoever destroys the communicator posts its order while this read is under way. */
static pccl_status fake_receive(struct transport *t, struct iovec *parts, int count, size_t *moved)
{
    if (t->fd == bench->ended_fd) {
        return PCCL_ERR_CLOSED;
    }
    if (t->fd == bench->in_fd && bench->in_bytes > 0) {
        struct iovec *last = &parts[count - 1]; /* heads go there */
        EXPECT(last->iov_len >= bench->in_bytes);
        memcpy(last->iov_base, bench->in, bench->in_bytes);
        *moved = bench->in_bytes;
        bench->in_bytes = 0;
        return PCCL_OK;
    }
    if (bench->posted) {
        return PCCL_ERR_AGAIN;
    }
    bench->posted = true;
    EXPECT(lane_post(bench->lane, &(struct lane_order){.kind = LANE_DROP, .comm = &bench->comm, .done = &bench->done}));
    EXPECT_EQ(count, 1);
    *moved = head_of(parts[0].iov_base, (struct op_name){.tag = 5, .seq = 1}, 0, 0); /* of an operation that is not here */
    return PCCL_OK;
}

/* Takes everything, and notes whose frames they are. */
static pccl_status fake_send(struct transport *t, struct iovec *parts, int count, size_t *moved)
{
    struct frame_header h;
    struct msg_data m;
    struct reader r;
    *moved = 0;
    for (int i = 0; i < count; i++) {
        *moved += parts[i].iov_len;
    }
    const unsigned char *head = parts[0].iov_base, *end = head + parts[0].iov_len;
    while (head < end) { /* grants, then at most one head of a data frame */
        EXPECT(frame_get(head, &h));
        bool data = h.type == FRAME_DATA;
        reader_init(&r, head + FRAME_HEADER_BYTES, data ? P2P_DATA_PREFIX : h.length);
        if (data && bench->sent < SENT) {
            EXPECT(get_data(&r, &m));
            bench->tag[bench->sent++] = m.name.tag;
            bench->sent_fd = t->fd;
        }
        head += FRAME_HEADER_BYTES + (data ? P2P_DATA_PREFIX : h.length);
    }
    return PCCL_OK;
}

static void fake_nothing(struct transport *t)
{
    (void)t;
}

static void fake_close(struct transport *t)
{
    fds_close(t->fd);
    bench->closed++;
    bench->closed_in_pass += false;
}

static const struct transport_ops fake = {
    .send = fake_send, .receive = fake_receive, .finish = fake_nothing, .shutdown = fake_nothing, .close = fake_close, .begin = fake_nothing,
};

/* One more connection, of this bundle of a link. */
static struct stream *stream_add(struct bench *b, struct link *link, uint64_t number)
{
    struct stream *s = calloc(1, sizeof *s);
    link_ref(link);
    list_init(&s->all);
    s->transport = (struct transport){.ops = &fake, .fd = fds_own(eventfd(1, EFD_NONBLOCK | EFD_CLOEXEC))};
    s->source.fd = s->transport.fd;
    s->link = link;
    s->number = number;
    s->peer = link->peer;
    s->comm = &b->comm;
    s->index = 1;
    EXPECT(lane_post(b->lane, &(struct lane_order){.kind = LANE_STREAM, .stream = s}));
    return s;
}

static void bench_start(struct bench *b)
{
    memset(b, 0, sizeof *b);
    bench = b;
    EXPECT_EQ(loop_open(&b->poller, NULL), PCCL_OK);
    atomic_init(&b->engine.lanes, 1);
    b->lane = lane_new(&b->engine, 1, &engine_lane_calls, NULL); /* lane 0 has the control links, too */
    b->lane->poller = &b->poller;
    pthread_mutex_init(&b->comm.lock, NULL);
    pthread_mutex_init(&b->done.lock, NULL);
    pthread_cond_init(&b->done.zero, NULL);
    b->done.left = 1;
    for (uint32_t i = 0; i < STREAMS; i++) {
        b->link[i].comm = &b->comm;
        b->link[i].peer = 100 + i;
        atomic_init(&b->link[i].refs, 1);
        b->stream[i] = b->link[i].bundle.streams[1] = stream_add(b, &b->link[i], 1);
    }
}

static void bench_stop(struct bench *b)
{
    lane_free(b->lane);
    loop_close(&b->poller);
    pthread_mutex_destroy(&b->comm.lock);
    pthread_mutex_destroy(&b->done.lock);
    pthread_cond_destroy(&b->done.zero);
}

/* The connection that reads would be freed under its own feet, and the next one under the list's. */
TEST(a_communicator_dropped_while_a_frame_is_read_lets_go_after_the_pass)
{
    struct bench b;
    bench_start(&b);
    EXPECT(lane_try(b.lane));
    lane_serve(b.lane, 0);
    EXPECT(b.posted);
    EXPECT_EQ(b.closed_in_pass, 0);
    EXPECT_EQ(b.closed, STREAMS); /* in the same turn: whoever waits for it is not woken again */
    EXPECT_EQ(b.done.left, 0);
    EXPECT(list_empty(&b.lane->streams));
    for (uint32_t i = 0; i < STREAMS; i++) {
        EXPECT(b.link[i].bundle.streams[1] == NULL);
        EXPECT_EQ(atomic_load(&b.link[i].refs), 1);
    }
    lane_release(b.lane, false);
    bench_stop(&b);
}

enum { OPS = 200, ELEMENTS = 32 };

/* An operation of two ranks; this one is the first, the other one is the peer of the first connection.  Two frames go there. */
struct flight {
    struct comm_op op;
    struct plan_made made;
    struct plan_segment segments[2];
    struct plan_step steps[10];
    uint32_t partners[1];
    uint64_t ids[1];
    int32_t in[ELEMENTS], out[ELEMENTS];
};

static void flight_init(struct flight *f, struct comm *comm, uint64_t launch)
{
    struct plan_params p = {.algorithm = PLAN_DIRECT, .world = 2, .count = ELEMENTS, .align = 1, .frame_elements = 4};
    f->made.ids = f->ids;
    f->ids[0] = 100;
    f->op = (struct comm_op){
        .comm = comm, .given.out = f->out, .plan = {.made = &f->made, .plan = &f->made.plan},
        .run = {.view = VIEW, .name = {.tag = launch}, .lanes = 2, .in = f->in, .launch = launch},
    };
    plan_make(&f->made.plan, &p, f->segments, f->steps, NULL, f->partners);
    EXPECT(numeric_init(&f->op.run.numeric, DTYPE_I32, REDOP_SUM, QUANT_NONE, DTYPE_U8, kernels_get()));
    atomic_init(&f->op.share.done_left, 3); /* more than there are: the session is not asked */
    atomic_init(&f->op.share.idle_left, 3);
}

/* Found through the hash table while it grows; a connection sends in the order of launches, whatever the order in which it may. */
TEST(frames_leave_in_the_order_of_launches_however_many_are_in_flight)
{
    struct bench b;
    struct flight *f = calloc(OPS, sizeof *f);
    bench_start(&b);
    b.posted = true; /* nothing is received */
    for (uint64_t k = 0; k < OPS; k++) {
        flight_init(&f[k], &b.comm, k + 1);
        EXPECT(lane_post(b.lane, &(struct lane_order){.kind = LANE_START, .op = &f[k].op}));
    }
    for (uint64_t n = 0; n < OPS; n += 10) {
        uint64_t k = n * 7 % OPS; /* in another order */
        EXPECT(lane_post(b.lane, &(struct lane_order){.kind = LANE_READY, .comm = &b.comm, .view = VIEW, .name = f[k].op.run.name,
                                                      .peer = 100, .launch = k + 1, .credit = 8}));
    }
    EXPECT(lane_try(b.lane));
    lane_serve(b.lane, 0);
    EXPECT_EQ(b.lane->exec_count, OPS);
    EXPECT_EQ(b.sent, 2 * OPS / 10);
    for (int i = 0; i < b.sent; i++) {
        EXPECT_EQ(b.tag[i], 1 + 10 * (i / 2));
    }
    EXPECT(lane_exec_find(b.lane, &b.comm, VIEW, &f[OPS - 1].op.run.name) != NULL);
    EXPECT(lane_exec_find(b.lane, &b.comm, VIEW + 1, &f[OPS - 1].op.run.name) == NULL);
    EXPECT(lane_post(b.lane, &(struct lane_order){.kind = LANE_DROP, .comm = &b.comm, .done = &b.done}));
    lane_serve(b.lane, 0);
    EXPECT_EQ(b.lane->exec_count, 0);
    EXPECT_EQ(b.closed, STREAMS);
    EXPECT_EQ((uint32_t)(b.lane->room.half_a + b.lane->room.half_b), b.lane->room.slot_count);
    lane_release(b.lane, false);
    bench_stop(&b);
    free(f);
}

static bool no_memory;

/* In the place of the system's, which cannot be made to fail at that moment. */
void *aligned_alloc(size_t alignment, size_t bytes)
{
    void *memory = NULL;
    return no_memory || posix_memalign(&memory, alignment, bytes) != 0 ? NULL : memory;
}

static struct {
    int cancels, idles;
    enum cause why;
} told;

static void note_cancel(struct comm *comm, struct comm_op *op, enum cause why)
{
    (void)comm, (void)op;
    told.cancels++;
    told.why = why;
}

static void note_idle(struct comm_op *op, uint64_t tx_bytes, uint64_t rx_bytes)
{
    told.idles++;
    EXPECT(op != NULL && tx_bytes == 0 && rx_bytes == 0);
}

/* Each such operation would take room that the next ones lack, until none is left. */
TEST(an_operation_that_there_is_no_memory_for_gives_its_room_back)
{
    struct bench b;
    struct flight f;
    bench_start(&b);
    b.posted = true;
    struct lane_calls calls = engine_lane_calls;
    calls.cancel = note_cancel;
    calls.idle = note_idle;
    b.lane->calls = &calls;
    flight_init(&f, &b.comm, 1);
    f.op.room.reserved = room_reserve(&b.lane->room, 4);
    EXPECT(f.op.room.reserved == 4 && !room_whole(&b.lane->room));
    EXPECT(lane_post(b.lane, &(struct lane_order){.kind = LANE_START, .op = &f.op}));
    EXPECT(lane_try(b.lane));
    no_memory = true;
    lane_serve(b.lane, 0);
    no_memory = false;
    EXPECT(told.cancels == 1 && told.why == CAUSE_NO_MEMORY && told.idles == 1);
    EXPECT_EQ(b.lane->exec_count, 0);
    EXPECT(room_whole(&b.lane->room));
    EXPECT(lane_post(b.lane, &(struct lane_order){.kind = LANE_DROP, .comm = &b.comm, .done = &b.done}));
    lane_serve(b.lane, 0);
    lane_release(b.lane, false);
    bench_stop(&b);
}

/* The own input is copied by the lane when it has time, and an operation of copies alone ends. */
TEST(own_input_is_copied_between_the_frames_of_others)
{
    enum { LONG = 4 * 40 }; /* 40 frames on two lanes: several passes */
    static int32_t in[LONG], out[LONG];
    struct bench b;
    struct flight f;
    bench_start(&b);
    b.posted = true;
    flight_init(&f, &b.comm, 1);
    for (int i = 0; i < LONG; i++) {
        in[i] = i + 1;
    }
    struct plan_params p = {.kind = PLAN_BROADCAST, .algorithm = PLAN_TREE, .world = 2, .count = LONG, .align = 1, .frame_elements = 4};
    plan_make(&f.made.plan, &p, f.segments, f.steps, NULL, f.partners);
    f.op.run.in = in;
    f.op.given.out = out;
    EXPECT(lane_post(b.lane, &(struct lane_order){.kind = LANE_START, .op = &f.op}));
    EXPECT(lane_try(b.lane));
    for (int pass = 0; pass < 3 + LONG / 8; pass++) {
        lane_serve(b.lane, 0);
    }
    for (int i = 0; i < LONG; i++) {
        EXPECT_EQ(out[i], i / 4 % 2 == 1 ? i + 1 : 0); /* this is lane 1 of 2 */
    }
    EXPECT_EQ(atomic_load(&f.op.share.done_left), 2); /* told, once */
    EXPECT_EQ(b.sent, 0); /* the other one has not launched */
    EXPECT(!atomic_load(&b.lane->busy));
    EXPECT(lane_post(b.lane, &(struct lane_order){.kind = LANE_DROP, .comm = &b.comm, .done = &b.done}));
    lane_serve(b.lane, 0);
    lane_release(b.lane, false);
    bench_stop(&b);
}

/* The pass in which an executor ends asks for another one, for whoever starved for its room; as a rule nobody did. */
TEST(who_gives_a_lane_back_with_nothing_left_to_do_wakes_nobody)
{
    struct bench b;
    struct flight f;
    bench_start(&b);
    b.posted = true;
    b.engine.poller[0].timer.fd = fds_own(timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC));
    flight_init(&f, &b.comm, 1);
    struct plan_params p = {.kind = PLAN_ALL_GATHER, .algorithm = PLAN_DIRECT, .world = 1, .count = 8, .align = 1, .frame_elements = 4};
    plan_make(&f.made.plan, &p, f.segments, f.steps, NULL, f.partners);
    EXPECT(lane_try(b.lane));
    while (!list_empty(&b.lane->due) || !list_empty(&b.lane->inbox)) {
        lane_serve(b.lane, 0); /* the connections come in */
    }
    lane_mask(b.lane);
    EXPECT(lane_post(b.lane, &(struct lane_order){.kind = LANE_START, .op = &f.op}));
    lane_serve(b.lane, 0);
    EXPECT_EQ(b.lane->exec_count, 0);
    EXPECT(atomic_load(&b.lane->busy));
    lane_release(b.lane, true);
    EXPECT(!atomic_load(&b.lane->loop.woken));
    EXPECT(b.lane->masked); /* for a moment: the same thread is likely to be back */
    EXPECT(lane_try(b.lane));
    EXPECT(lane_post(b.lane, &(struct lane_order){.kind = LANE_DROP, .comm = &b.comm, .done = &b.done}));
    lane_serve(b.lane, 0);
    lane_release(b.lane, false);
    fds_close(b.engine.poller[0].timer.fd);
    bench_stop(&b);
}

/* Nobody drives the lane for a thread that sleeps: its poller has to, and at once. */
TEST(who_sleeps_until_calls_have_ended_shows_the_lane_to_its_poller)
{
    struct bench b;
    bench_start(&b);
    b.posted = true;
    b.engine.lane[0] = b.lane;
    b.comm.engine = &b.engine;
    atomic_store(&b.comm.joined, true);
    lane_mask(b.lane);
    EXPECT_EQ(comm_drain(&b.comm, INT64_MAX), 0);
    EXPECT(!b.lane->masked && atomic_load(&b.lane->sleepers) == 0);
    EXPECT(lane_try(b.lane));
    EXPECT(lane_post(b.lane, &(struct lane_order){.kind = LANE_DROP, .comm = &b.comm, .done = &b.done}));
    lane_serve(b.lane, 0);
    lane_release(b.lane, false);
    bench_stop(&b);
}

/* What was under way when a connection ended is lost, and so would be what the executor takes for sent: it neither goes on over the
 * next connection nor holds what comes there against the peer.  Only the end of the view ends the operation. */
TEST(an_operation_does_not_go_on_over_another_connection)
{
    struct bench b;
    struct flight f;
    bench_start(&b);
    b.posted = true;
    flight_init(&f, &b.comm, 1);
    EXPECT(lane_post(b.lane, &(struct lane_order){.kind = LANE_START, .op = &f.op}));
    struct lane_order ready = {.kind = LANE_READY, .comm = &b.comm, .view = VIEW, .name = f.op.run.name, .peer = 100, .launch = 1,
                               .credit = 1};
    EXPECT(lane_post(b.lane, &ready));
    b.in_fd = b.stream[0]->transport.fd;
    b.in_bytes = head_of(b.in, f.op.run.name, 1, 16); /* and none of its payload */
    EXPECT(lane_try(b.lane));
    lane_serve(b.lane, 0);
    EXPECT_EQ(b.sent, 1);
    EXPECT_EQ(b.sent_fd, b.stream[0]->transport.fd);
    struct stream *next = stream_add(&b, &b.link[0], 2); /* even while the first one has not been seen to end */
    b.in_fd = next->transport.fd;
    b.in_bytes = head_of(b.in, f.op.run.name, 1, 16) + 16; /* the peer knew nothing of the first one */
    EXPECT(lane_post(b.lane, &ready)); /* more grants */
    b.link[0].bundle.number = 2;       /* the session hears of no loss here: the first one's number is not its */
    lane_serve(b.lane, 0);
    EXPECT_EQ(b.in_bytes, 0);
    EXPECT(!next->broken && next->rx_exec == NULL && next->rx_left == 0);
    EXPECT_EQ(b.sent, 2); /* over the first one */
    EXPECT(b.sent_fd == b.stream[0]->transport.fd);
    b.ended_fd = b.stream[0]->transport.fd;
    b.stream[0]->can_in = true;
    stream_due(b.stream[0]);
    lane_serve(b.lane, 0);
    EXPECT_EQ(b.closed, 1);
    b.in_bytes = head_of(b.in, f.op.run.name, 3, 16) + 16;
    b.in_bytes += credit_of(b.in + b.in_bytes, f.op.run.name, 7); /* nor do grants count that come over the next one */
    next->can_in = true;
    stream_due(next);
    EXPECT(lane_post(b.lane, &ready));
    lane_serve(b.lane, 0);
    EXPECT(!next->broken && next->rx_left == 0);
    EXPECT_EQ(b.sent, 2);
    EXPECT_EQ(b.lane->exec_count, 1);
    EXPECT_EQ(next->edge.granted, UINT64_MAX); /* its grant was not taken for progress */
    EXPECT(lane_post(b.lane, &(struct lane_order){.kind = LANE_DROP, .comm = &b.comm, .done = &b.done}));
    lane_serve(b.lane, 0);
    EXPECT_EQ(b.closed, STREAMS + 1);
    EXPECT_EQ((uint32_t)(b.lane->room.half_a + b.lane->room.half_b), b.lane->room.slot_count);
    lane_release(b.lane, false);
    bench_stop(&b);
}

/* ---- Partners ------------------------------------------------------------------------------------------------------- */

/* A gather to the peer of the first connection, in which that of the second one is a member, too: neither has data for this rank. */
TEST(data_of_who_has_nothing_to_send_breaks_the_connection_and_a_grant_does_not)
{
    for (uint32_t i = 0; i < 2; i++) {
        struct bench b;
        struct flight f;
        bench_start(&b);
        b.posted = true;
        flight_init(&f, &b.comm, 1);
        struct plan_params p = {.kind = PLAN_GATHER, .algorithm = PLAN_PAIRWISE, .world = 3, .root = 1, .lanes = 2, .count = 8, .align = 1,
                                .frame_elements = 4};
        plan_make(&f.made.plan, &p, f.segments, f.steps, NULL, f.partners);
        EXPECT_EQ(f.made.plan.partner_count, 1);
        EXPECT(lane_post(b.lane, &(struct lane_order){.kind = LANE_START, .op = &f.op}));
        b.in_fd = b.stream[i]->transport.fd;
        b.in_bytes = credit_of(b.in, f.op.run.name, 7);
        EXPECT(lane_try(b.lane));
        lane_serve(b.lane, 0);
        EXPECT(b.in_bytes == 0 && b.closed == 0 && b.lane->exec_count == 1);
        b.in_bytes = head_of(b.in, f.op.run.name, 1, 16);
        b.stream[i]->can_in = true;
        stream_due(b.stream[i]);
        b.link[i].bundle.number = 2; /* the session hears of no loss here */
        lane_serve(b.lane, 0);
        EXPECT(b.in_bytes == 0 && b.closed == 1);
        EXPECT_EQ(b.lane->exec_count, 1);
        EXPECT(lane_post(b.lane, &(struct lane_order){.kind = LANE_DROP, .comm = &b.comm, .done = &b.done}));
        lane_serve(b.lane, 0);
        lane_release(b.lane, false);
        bench_stop(&b);
    }
}

/* What a lane keeps of a leaf of a tree. */
static size_t bytes_among(uint32_t world)
{
    struct bench b;
    struct flight f;
    bench_start(&b);
    b.posted = true;
    flight_init(&f, &b.comm, 1);
    struct plan_params p = {.algorithm = PLAN_TREE, .world = world, .root = 1, .count = 8, .align = 1, .frame_elements = 4};
    p.rank = 2;
    plan_make(&f.made.plan, &p, f.segments, f.steps, NULL, f.partners);
    EXPECT(lane_post(b.lane, &(struct lane_order){.kind = LANE_START, .op = &f.op}));
    EXPECT(lane_try(b.lane));
    lane_serve(b.lane, 0);
    struct lane_exec *e = lane_exec_find(b.lane, &b.comm, VIEW, &f.op.run.name);
    size_t bytes = malloc_usable_size(e) + malloc_usable_size(e->arena);
    EXPECT(lane_post(b.lane, &(struct lane_order){.kind = LANE_DROP, .comm = &b.comm, .done = &b.done}));
    lane_serve(b.lane, 0);
    lane_release(b.lane, false);
    bench_stop(&b);
    return bytes;
}

TEST(who_has_to_do_with_few_takes_no_more_of_a_lane_in_a_view_of_thousands) /* 3 MB for each call in a view of 10,000 */
{
    size_t few = bytes_among(64), many = bytes_among(8192);
    EXPECT(many < few + 64); /* allocations are rounded up */
}

/* ---- Putting rings to rest -------------------------------------------------------------------------------------------- */

struct resting {
    struct polled polled;
    struct bench *bench;
};

static bool never(struct polled *p)
{
    (void)p;
    return false;
}

/* Somebody who gives the lane back meets its holder here, and leaves his order to him: nothing else wakes the poller. */
static bool rest_and_post(struct polled *p)
{
    struct bench *b = LIST_ENTRY(p, struct resting, polled)->bench;
    EXPECT(lane_post(b->lane, &(struct lane_order){.kind = LANE_DROP, .comm = &b->comm, .done = &b->done}));
    return true;
}

TEST(an_order_that_is_left_to_whoever_puts_rings_to_rest_is_carried_out)
{
    struct bench b;
    bench_start(&b);
    struct resting r = {.polled = {.look = never, .rest = rest_and_post}, .bench = &b};
    b.posted = true;
    list_init(&r.polled.all);
    EXPECT_EQ(loop_add(&b.poller, &b.lane->outer, EPOLLIN, NULL), PCCL_OK);
    EXPECT(lane_try(b.lane));
    loop_look_at(&b.lane->loop, &r.polled);
    lane_let(b.lane);
    lane_unmask(b.lane);
    for (int i = 0; i < 10 && b.done.left > 0; i++) {
        loop_poll(&b.poller, 0);
    }
    EXPECT_EQ(b.done.left, 0);
    EXPECT(!atomic_load(&b.lane->inbox_full));
    bench_stop(&b);
}
