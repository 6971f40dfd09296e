/* bench_launch.c - what the session's share of one operation costs as views grow: nothing that is not exchanged may grow with them.
 *
 * One idea: one member alone, fed with the frames of the others, through the step function that the engine drives; no sockets, no threads,
 * no bytes of data.  A message is launched, announced, held and collected at its sender and at its receiver; an all-reduce by the ring is
 * told to two, and held in as many rounds as the view has binary digits; what travels with its launch (eager) is told to all, and heard of
 * all.  Beside them stands what hearing that all others have finished costs, a message of many names each; and below, what a lane's
 * executor costs that is laid out and stopped, at a member that exchanges data with one other.
 * 100,000 tags are known before anything is timed.  Invariant: every call returns with success.
 *
 *     bench_launch [members]      without arguments: 4, 64, 1,024 and 10,000
 * Time is that of the processor, since other work on the machine takes the clock's.
 * SPDX-License-Identifier: MIT */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "collectives/exec.h"
#include "core/bounds.h"
#include "kernels/kernels.h"
#include "session/session.h"

enum { TAGS = 100000, MOST_FLIGHT = 1000, NAMES = 64, EXECUTORS = 10000 };
static const uint64_t run = 77, first_id = UINT64_C(1) << 32 | 1, view_number = UINT64_C(1) << 32 | 1;

struct bench {
    struct session *s;
    struct session_config config;
    void *arena, *table[SESSION_TABLES], *out_memory; /* owned */
    struct outbox out;
    struct plan_view plan;
    uint32_t members, rank; /* this one is in the middle */
    int64_t now;
    struct session_outcome outcome;
};

static void fail(const char *what)
{
    fprintf(stderr, "bench_launch: %s\n", what);
    exit(1);
}

static uint64_t id_of(uint32_t rank)
{
    return first_id + rank;
}

/* ---- a step, as a shell makes it ------------------------------------------------------------------------------------- */

static void *allocate(size_t bytes)
{
    void *at = aligned_alloc(64, (bytes + 63) / 64 * 64);
    if (at == NULL) {
        fail("no memory");
    }
    return at;
}

static void step(struct bench *b, struct session_event *e)
{
    struct session_growth g[SESSION_TABLES];
    uint32_t count = session_growth(b->s, e, g);
    for (uint32_t i = 0; i < count; i++) {
        void *storage = allocate(g[i].bytes);
        session_grow(b->s, &g[i], storage);
        free(b->table[g[i].table]);
        b->table[g[i].table] = storage;
    }
    outbox_reset(&b->out);
    session_step(b->s, b->now, e, &b->out);
    b->outcome = e->outcome;
}

static unsigned char raw[1 << 20];

static struct writer *say(void)
{
    static struct writer w;
    writer_init(&w, raw, sizeof raw);
    return &w;
}

static void hear(struct bench *b, uint32_t rank, uint8_t type, const struct writer *w)
{
    struct frame_header h = {.type = type, .length = (uint32_t)w->used, .run = run, .view = view_number};
    step(b, &(struct session_event){.kind = SESSION_PEER_FRAME, .peer = id_of(rank), .header = &h, .payload = raw});
}

static void hear_master(struct bench *b, uint8_t type, uint64_t view, const struct writer *w)
{
    struct frame_header h = {.type = type, .length = (uint32_t)w->used, .run = run, .view = view};
    if (w->bad) {
        fail("a message is too long");
    }
    step(b, &(struct session_event){.kind = SESSION_MASTER_FRAME, .header = &h, .payload = raw});
}

/* ---- a view ---------------------------------------------------------------------------------------------------------- */

static void join(struct bench *b)
{
    step(b, &(struct session_event){.kind = SESSION_CONNECT});
    step(b, &(struct session_event){.kind = SESSION_MASTER_UP});
    struct writer *w = say();
    put_welcome(w, &(struct msg_welcome){.run = run, .id = id_of(b->rank), .epoch = 1, .heartbeat_ms = 1000, .dead_ms = 10000});
    hear_master(b, FRAME_WELCOME, 0, w);
    uint32_t n = b->members;
    w = say();
    put_view(w, &(struct msg_view){.view = view_number, .sizes = {n, n, 1, n}, .plan = b->plan, .members = n, .added = n});
    for (uint32_t i = 0; i < n; i++) {
        put_member_info(w, &(struct member_info){.id = id_of(i), .lanes = 1});
    }
    for (uint32_t i = 0; i < n; i++) {
        put_u32(w, i);
    }
    hear_master(b, FRAME_VIEW, view_number, w);
    for (uint32_t i = 0; i < n; i++) {
        if (i != b->rank) {
            step(b, &(struct session_event){.kind = SESSION_LINK_UP, .peer = id_of(i)});
            step(b, &(struct session_event){.kind = SESSION_DATA_UP, .peer = id_of(i), .number = 1});
            hear(b, i, FRAME_PING, say());
        }
    }
    step(b, &(struct session_event){.kind = SESSION_COLLECT_CONNECT});
    if (b->outcome.result != RESULT_OK) {
        fail("it is in no view");
    }
}

static struct bench *bench_new(uint32_t members)
{
    struct bench *b = calloc(1, sizeof *b);
    if (b == NULL) {
        fail("no memory");
    }
    b->members = members;
    b->rank = members / 2;
    b->plan = (struct plan_view){.lanes = 1, .frame_bytes = 131072, .eager_bytes = 1024};
    b->config = (struct session_config){
        .lanes = 1, .max_members = BOUNDS_MEMBERS, .max_ops = BOUNDS_OPS, .max_records = BOUNDS_RECORDS, .max_tags = 1 << 20,
        .max_owed = BOUNDS_OWED, .park_blocks = 4096, .park_block_bytes = 1024, .park_per_link = 16, .mesh_members = 32,
        .heartbeat_ns = INT64_MAX / 4, .stall_ns = INT64_MAX / 4, .master_loss_ns = INT64_MAX / 4, .connect_ns = INT64_MAX / 4,
        .link_ns = INT64_MAX / 4, .kernels = kernels_get(), .seed = 1};
    b->arena = allocate(session_arena_bytes(&b->config));
    b->s = session_init(&b->config, b->arena);
    struct outbox_bounds most = session_out_bounds(&b->config, members);
    b->out_memory = allocate(outbox_memory(&most));
    outbox_use(&b->out, b->out_memory, &most);
    join(b);
    return b;
}

static void bench_free(struct bench *b)
{
    for (uint32_t i = 0; i < SESSION_TABLES; i++) {
        free(b->table[i]);
    }
    free(b->out_memory);
    free(b->arena);
    free(b);
}

/* ---- operations ------------------------------------------------------------------------------------------------------ */

static float buffers[2][1];

/* One kind of operation: launching the `number`-th of it in a slot, and all that leads to its end. */
struct work {
    void (*launch)(struct bench *b, uint32_t slot, uint32_t number);
    void (*end)(struct bench *b, uint32_t slot, uint32_t number);
    bool finished; /* all others say that they have finished it; else it leaves nothing behind */
    uint32_t most; /* members, 0: any number */
};

static void launch(struct bench *b, uint32_t slot, struct session_launch *l)
{
    l->call.in = buffers[0];
    l->call.out = buffers[1];
    l->call.deadline = INT64_MAX;
    l->call.known = view_number;
    l->call.world = b->members;
    step(b, &(struct session_event){.kind = SESSION_LAUNCH, .slot = slot, .launch = l});
    if (b->outcome.result != RESULT_PENDING) {
        fail("a call was refused");
    }
}

static void collect(struct bench *b, uint32_t slot)
{
    step(b, &(struct session_event){.kind = SESSION_COLLECT, .slot = slot});
    if (b->outcome.result != RESULT_OK) {
        fail("a call has failed");
    }
}

/* The partner of all messages is the first member; its params are those of the call. */
static const struct op_params message = {.count = 1, .dtype = DTYPE_F32, .kind = PLAN_SEND, .algorithm = PLAN_TINY};

static void send_with(struct bench *b, uint32_t slot, uint64_t tag)
{
    launch(b, slot, &(struct session_launch){.call = {.space = SPACE_PAIR, .tag = tag, .params = message, .root_rank = 0}});
}

static void send_ends(struct bench *b, uint32_t slot, uint64_t tag, uint32_t number)
{
    struct op_name name = {.space = SPACE_PAIR, .tag = tag, .from = id_of(b->rank), .to = id_of(0), .seq = number};
    struct writer *w = say();
    put_hold(w, &(struct msg_hold){.name = name, .origin = id_of(0), .params = p2p_params_hash(&message, &b->plan)});
    hear(b, 0, FRAME_HOLD, w);
    collect(b, slot);
}

static void send_launch(struct bench *b, uint32_t slot, uint32_t number)
{
    (void)number;
    send_with(b, slot, 0);
}

static void send_end(struct bench *b, uint32_t slot, uint32_t number)
{
    send_ends(b, slot, 0, number);
}

static void receive_launch(struct bench *b, uint32_t slot, uint32_t number)
{
    (void)number;
    launch(b, slot, &(struct session_launch){.call = {.space = SPACE_PAIR, .tag = 1, .params = message, .root_rank = 0,
                                                      .receives = true}});
}

static void receive_end(struct bench *b, uint32_t slot, uint32_t number)
{
    struct op_name name = {.space = SPACE_PAIR, .tag = 1, .from = id_of(0), .to = id_of(b->rank), .seq = number};
    struct writer *w = say();
    put_eager(w, &(struct msg_eager){.name = name, .params = message, .bytes = sizeof(float)});
    put_bytes(w, buffers[0], sizeof(float));
    hear(b, 0, FRAME_EAGER, w);
    collect(b, slot);
    w = say();
    put_finished(w, &(struct msg_finished){.origin = id_of(0), .names = 1});
    put_op_name(w, &name);
    hear(b, 0, FRAME_FINISHED, w);
}

static void heard_hold(struct bench *b, uint32_t rank, uint8_t round, const struct op_name *name, uint64_t params)
{
    struct writer *w = say();
    put_hold(w, &(struct msg_hold){.name = *name, .origin = id_of(rank), .round = round, .params = params});
    hear(b, rank, FRAME_HOLD, w);
}

/* The HOLD of all others, or above 32 members of the rounds that are for this one. */
static void heard_holds(struct bench *b, const struct op_name *name, const struct op_params *params)
{
    uint32_t n = b->members;
    uint64_t hash = p2p_params_hash(params, &b->plan);
    for (uint32_t i = 1; n <= b->config.mesh_members && i < n; i++) {
        heard_hold(b, (b->rank + i) % n, 0, name, hash);
    }
    for (uint32_t k = 0; n > b->config.mesh_members && UINT32_C(1) << k < n; k++) {
        heard_hold(b, (b->rank + n - (UINT32_C(1) << k)) % n, (uint8_t)k, name, hash);
    }
}

static struct op_params reduce_of(struct bench *b, size_t count)
{
    struct op_params p = {.count = count, .dtype = DTYPE_F32, .op = REDOP_SUM, .kind = PLAN_ALL_REDUCE};
    p.algorithm = (uint8_t)session_plan(b->s, &p).algorithm;
    return p;
}

enum { LARGE = 1 << 22 };

static void ring_launch(struct bench *b, uint32_t slot, uint32_t number)
{
    (void)number;
    struct op_params p = {.count = LARGE, .dtype = DTYPE_F32, .op = REDOP_SUM, .kind = PLAN_ALL_REDUCE};
    launch(b, slot, &(struct session_launch){.call = {.space = SPACE_ORDERED, .params = p}});
}

static void ring_end(struct bench *b, uint32_t slot, uint32_t number)
{
    struct op_params p = {.count = LARGE, .dtype = DTYPE_F32, .op = REDOP_SUM, .kind = PLAN_ALL_REDUCE};
    struct op_name name = {.space = SPACE_ORDERED, .seq = number};
    for (uint32_t i = 0; i < 2; i++) {
        struct writer *w = say();
        put_ready(w, &(struct msg_ready){.name = name, .params = p, .bundle = 1, .launch = number + 1});
        hear(b, (b->rank + (i == 0 ? 1 : b->members - 1)) % b->members, FRAME_READY, w);
    }
    step(b, &(struct session_event){.kind = SESSION_DONE, .slot = slot});
    heard_holds(b, &name, &p);
    step(b, &(struct session_event){.kind = SESSION_IDLE, .slot = slot});
    collect(b, slot);
}

static void eager_launch(struct bench *b, uint32_t slot, uint32_t number)
{
    (void)number;
    struct op_params p = {.count = 1, .dtype = DTYPE_F32, .op = REDOP_SUM, .kind = PLAN_ALL_REDUCE};
    launch(b, slot, &(struct session_launch){.call = {.space = SPACE_ORDERED, .params = p}});
}

static void eager_end(struct bench *b, uint32_t slot, uint32_t number)
{
    struct op_params p = reduce_of(b, 1);
    struct op_name name = {.space = SPACE_ORDERED, .seq = number};
    for (uint32_t i = 0; i < b->members; i++) {
        if (i != b->rank) {
            struct writer *w = say();
            put_eager(w, &(struct msg_eager){.name = name, .params = p, .bytes = sizeof(float)});
            put_bytes(w, buffers[0], sizeof(float));
            hear(b, i, FRAME_EAGER, w);
        }
    }
    heard_holds(b, &name, &p);
    collect(b, slot);
}

/* All others have finished so many, from this one on. */
static void all_finished(struct bench *b, uint32_t first, uint32_t count)
{
    for (uint32_t i = 0; i < b->members; i++) {
        struct writer *w = say();
        put_finished(w, &(struct msg_finished){.origin = id_of(i), .names = count});
        for (uint32_t k = 0; k < count; k++) {
            put_op_name(w, &(struct op_name){.space = SPACE_ORDERED, .seq = first + k});
        }
        if (i != b->rank) {
            hear(b, i, FRAME_FINISHED, w);
        }
    }
}

/* ---- measuring ------------------------------------------------------------------------------------------------------- */

struct cost {
    double each_ns, finished_ns;
};

static int64_t processor_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

/* `flight` at a time, until so many have ended; numbered from *number on. */
static struct cost measure(struct bench *b, const struct work *w, uint32_t flight, uint32_t all, uint32_t *number)
{
    int64_t busy = 0, finished = 0;
    uint32_t unsaid = *number, done = 0;
    while (done < all) {
        int64_t begin = processor_ns();
        for (uint32_t i = 0; i < flight; i++) {
            w->launch(b, i, *number + i);
        }
        for (uint32_t i = 0; i < flight; i++) {
            w->end(b, i, *number + i);
        }
        int64_t end = processor_ns();
        busy += end - begin;
        *number += flight;
        done += flight;
        while (w->finished && (*number - unsaid >= NAMES || (done >= all && unsaid < *number))) {
            uint32_t names = *number - unsaid < NAMES ? *number - unsaid : NAMES;
            all_finished(b, unsaid, names);
            unsaid += names;
        }
        finished += w->finished ? processor_ns() - end : 0;
    }
    return (struct cost){(double)busy / done, (double)finished / done};
}

static void tell(const char *name, struct bench *b, const struct work *w, uint32_t all, uint32_t *number)
{
    if (w->most != 0 && b->members > w->most) {
        return;
    }
    (void)measure(b, w, MOST_FLIGHT, MOST_FLIGHT, number); /* tables have grown */
    struct cost one = measure(b, w, 1, all, number), many = measure(b, w, MOST_FLIGHT, all, number);
    printf("%8u  %-34s %10.0f ns %10.0f ns", b->members, name, one.each_ns, many.each_ns);
    if (w->finished) {
        printf(" %12.0f ns", one.finished_ns);
    }
    printf("\n");
    fflush(stdout);
}

/* One executor at a time of a plan that is kept; its member is a leaf. */
static void tell_executor(const char *name, uint32_t members, enum plan_kind kind, enum plan_algorithm algorithm)
{
    static unsigned char slots[64];
    static struct room_slot room_slots[64];
    struct plan_params p = {.kind = kind, .algorithm = algorithm, .world = members, .rank = members / 2 + 1, .lanes = 1, .count = 1 << 16,
                            .align = 1, .frame_elements = 1 << 14};
    struct plan_segment *segments = allocate(plan_max_segments(&p) * sizeof *segments);
    struct plan_step *steps = allocate(plan_max_steps(&p) * sizeof *steps);
    uint32_t *partners = allocate(plan_max_partners(&p) * sizeof *partners);
    struct room room;
    struct plan plan;
    struct numeric numeric;
    room_init(&room, slots, 1 << 16, 64, room_slots);
    if (!numeric_init(&numeric, DTYPE_F32, REDOP_SUM, QUANT_NONE, DTYPE_U8, kernels_get())) {
        fail("no such type");
    }
    plan_make(&plan, &p, segments, steps, NULL, partners);
    struct exec_config config = {.plan = &plan, .numeric = &numeric, .room = &room, .lanes = 1};
    int64_t begin = processor_ns();
    for (uint32_t i = 0; i < EXECUTORS; i++) {
        struct exec x;
        struct exec_out out;
        void *arena = allocate(exec_arena_bytes(&config));
        exec_init(&x, &config, arena);
        exec_step(&x, &(struct exec_event){.kind = EXEC_STOP}, &out);
        free(arena);
    }
    printf("%8u  %-34s %10.0f ns %10zu bytes\n", members, name, (double)(processor_ns() - begin) / EXECUTORS, exec_arena_bytes(&config));
    free(segments);
    free(steps);
    free(partners);
}

static void know_tags(struct bench *b)
{
    for (uint64_t tag = 0; tag < TAGS; tag++) {
        send_with(b, 0, 1000 + tag);
        send_ends(b, 0, 1000 + tag, 0);
    }
}

static void bench_members(uint32_t members)
{
    static const struct work send = {send_launch, send_end, false, 0}, receive = {receive_launch, receive_end, false, 0},
                             ring = {ring_launch, ring_end, true, 0}, eager = {eager_launch, eager_end, true, 1024};
    struct bench *b = bench_new(members);
    uint32_t sent = 0, received = 0, ordered = 0, slow = members > 1000 ? 2 : 20;
    know_tags(b);
    tell("a message sent", b, &send, 20 * MOST_FLIGHT, &sent);
    tell("a message received", b, &receive, 20 * MOST_FLIGHT, &received);
    tell("all-reduce by the ring", b, &ring, slow * MOST_FLIGHT, &ordered);
    tell("all-reduce that is eager, with all", b, &eager, members > 100 ? MOST_FLIGHT : slow * MOST_FLIGHT, &ordered);
    if (session_poisoned(b->s)) {
        fail("an assertion has failed");
    }
    bench_free(b);
    tell_executor("executor: broadcast by the tree", members, PLAN_BROADCAST, PLAN_TREE);
    tell_executor("executor: all-reduce by the tree", members, PLAN_ALL_REDUCE, PLAN_TREE);
    tell_executor("executor: what is gathered", members, PLAN_GATHER, PLAN_PAIRWISE);
}

int main(int argc, char **argv)
{
    static const uint32_t sizes[] = {4, 64, 1024, 10000};
    printf(" members  a launch with its end%11s 1 in flight  %d in flight   FINISHED of all\n", "", MOST_FLIGHT);
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        if (argc < 2 || sizes[i] == (uint32_t)strtoul(argv[1], NULL, 10)) {
            bench_members(sizes[i]);
        }
    }
    return 0;
}
