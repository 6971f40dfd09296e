/* test_scale.c - many peers on real sockets: thousands of connections of one world at a master program, and processes in hundreds of
 * worlds that all lose the same member at once.  SCALE_PEERS says how many connections.
 * SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#include "tests/testing.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/resource.h>

#include "core/mix.h"
#include "server/server.h"
#include "tests/fault/peer_calls.h"
#include "tests/wire_client.h"

/* ---- connections that speak the protocol by hand ------------------------------------------------------------------- */

enum { WIRE_PEERS = 2000, WIRE_SPARE = 200, WIRE_READ = 1 << 16, WIRE_EVENTS = 256 };

struct wire_peer {
    int fd;
    unsigned char *in;      /* owned: what has come of the frame under way */
    size_t used, capacity;
    uint64_t id, run, view, removed; /* removed: by the last view, if it was one */
    uint64_t members;       /* ids of the present view, mixed in order; known if the view came whole */
    uint32_t count, answered;
    uint8_t kind;
};

struct wire_crowd {
    struct wire_peer *peer; /* owned */
    uint32_t count;
    int epoll;
    uint32_t views, answers, bad; /* heard since they were last cleared */
};

static void wire_say(struct wire_crowd *c, struct wire_peer *p, uint8_t type, const struct writer *payload)
{
    struct frame_bytes f;
    client_frame(&f, type, p->run, payload);
    struct frame_header h;
    EXPECT(frame_get(f.at, &h));
    h.view = p->view;
    frame_put(f.at, &h);
    c->bad += !client_send(p->fd, f.at, f.size);
}

static void wire_vote(struct wire_crowd *c, struct wire_peer *p, uint8_t kind)
{
    unsigned char bytes[256];
    struct writer w;
    writer_init(&w, bytes, sizeof bytes);
    p->kind = kind;
    put_vote(&w, &(struct msg_vote){.number = p->answered, .kind = kind});
    wire_say(c, p, FRAME_VOTE, &w);
}

static void hear_view(struct wire_crowd *c, struct wire_peer *p, struct reader *r)
{
    struct msg_view m;
    if (!get_view(r, &m)) {
        c->bad++;
        return;
    }
    p->view = m.view;
    p->count = m.members;
    for (uint32_t i = 0; i < m.removed; i++) {
        p->removed = get_u64(r);
    }
    p->members = m.parent == 0 ? 0 : p->members;
    for (uint32_t i = 0; i < m.added; i++) {
        struct member_info info;
        c->bad += !get_member_info(r, &info);
        p->members = mix64(p->members, info.id);
    }
    bool answer = m.parent != 0 && m.answers != VOTE_NONE && p->kind == m.answers;
    p->answered = m.parent == 0 ? m.vote_number : p->answered + answer;
    p->kind = m.parent == 0 || answer ? VOTE_NONE : p->kind;
    c->views++;
}

static void hear(struct wire_crowd *c, struct wire_peer *p, const struct frame_header *h, const unsigned char *payload)
{
    unsigned char bytes[64];
    struct reader r;
    struct writer w;
    struct msg_welcome welcome;
    struct msg_admit admit;
    struct msg_freeze freeze;
    struct msg_answer answer;
    reader_init(&r, payload, h->length);
    writer_init(&w, bytes, sizeof bytes);
    switch (h->type) {
    case FRAME_WELCOME:
        c->bad += !get_welcome(&r, &welcome);
        p->id = welcome.id;
        p->run = welcome.run;
        break;
    case FRAME_ADMIT:
        c->bad += !get_admit(&r, &admit);
        put_linked(&w, &(struct msg_linked){.attempt = admit.attempt});
        wire_say(c, p, FRAME_LINKED, &w);
        break;
    case FRAME_VIEW:
        hear_view(c, p, &r);
        break;
    case FRAME_FREEZE:
        c->bad += !get_freeze(&r, &freeze);
        put_frozen(&w, &(struct msg_frozen){.view = freeze.view, .attempt = freeze.attempt});
        wire_say(c, p, FRAME_FROZEN, &w);
        break;
    case FRAME_ANSWER:
        c->bad += !get_answer(&r, &answer) || answer.result != ANSWER_OK || answer.kind != p->kind;
        p->kind = VOTE_NONE;
        p->answered++;
        c->answers++;
        break;
    default:
        c->bad += h->type != FRAME_HEARTBEAT;
        break;
    }
}

static void wire_receive(struct wire_crowd *c, struct wire_peer *p)
{
    if (p->capacity - p->used < WIRE_READ) {
        p->capacity = p->used + 2 * WIRE_READ;
        p->in = realloc(p->in, p->capacity);
    }
    ssize_t n = recv(p->fd, p->in + p->used, p->capacity - p->used, MSG_DONTWAIT);
    size_t at = 0;
    struct frame_header h;
    if (n <= 0) {
        c->bad += n == 0 || errno != EAGAIN;
        return;
    }
    p->used += (size_t)n;
    while (p->used - at >= FRAME_HEADER_BYTES && frame_get(p->in + at, &h) && p->used - at >= FRAME_HEADER_BYTES + h.length) {
        hear(c, p, &h, p->in + at + FRAME_HEADER_BYTES);
        at += FRAME_HEADER_BYTES + h.length;
    }
    memmove(p->in, p->in + at, p->used - at);
    p->used -= at;
    if (p->used == 0) {
        free(p->in);
        p->in = NULL;
        p->capacity = 0;
    }
}

/* Until so many views, answers or welcomes have been heard; false: something is wrong, or nothing comes any more. */
static bool wire_until(struct wire_crowd *c, const uint32_t *heard, uint32_t wanted)
{
    struct epoll_event events[WIRE_EVENTS];
    while (*heard < wanted && c->bad == 0) {
        int n = epoll_wait(c->epoll, events, WIRE_EVENTS, SPAWN_PATIENCE_MS);
        for (int i = 0; i < n; i++) {
            wire_receive(c, &c->peer[events[i].data.u32]);
        }
        if (n <= 0) {
            return false;
        }
    }
    return c->bad == 0;
}

static bool wire_join(struct wire_crowd *c, uint16_t port)
{
    struct wire_peer *p = &c->peer[c->count];
    struct frame_bytes f;
    struct epoll_event e = {.events = EPOLLIN, .data.u32 = c->count};
    *p = (struct wire_peer){.fd = client_dial(port, false)};
    client_register_frame(&f, 0);
    if (p->fd < 0 || !client_send(p->fd, f.at, f.size) || epoll_ctl(c->epoll, EPOLL_CTL_ADD, p->fd, &e) != 0) {
        return false;
    }
    c->count++;
    while (p->id == 0 && c->bad == 0 && client_readable(p->fd, SPAWN_PATIENCE_MS)) {
        wire_receive(c, p);
    }
    return p->id != 0;
}

/* How many descriptors this process may have, all that can be had. */
static uint32_t descriptors(void)
{
    struct rlimit most;
    EXPECT(getrlimit(RLIMIT_NOFILE, &most) == 0);
    most.rlim_cur = most.rlim_max; /* the library never does */
    EXPECT(setrlimit(RLIMIT_NOFILE, &most) == 0);
    return most.rlim_cur > 1 << 20 ? 1 << 20 : (uint32_t)most.rlim_cur;
}

/* All that live are in one view of so many, and know the same members. */
static uint32_t astray(const struct wire_crowd *c, uint32_t dead, uint32_t members, uint64_t lost)
{
    uint32_t wrong = 0, first = dead == 1 ? 2 : 1;
    for (uint32_t i = 1; i < c->count; i++) { /* the first has heard of the others as newcomers */
        const struct wire_peer *p = &c->peer[i];
        wrong += i != dead && (p->view != c->peer[0].view || p->count != members || p->kind != VOTE_NONE || p->removed != lost ||
                               p->members != c->peer[first].members);
    }
    return wrong;
}

TEST(thousands_of_connections_join_vote_and_lose_one) /* the master refuses them, forgets one, or scans all for each */
{
    struct program master;
    char dead[] = "--dead-ms", ms[] = "60000", listen[] = "--listen", any[] = "127.0.0.1:0"; /* nobody of these sends heartbeats */
    char level[] = "--log-level", warn[] = "warn"; /* a line for each would fill the pipe */
    const char *asked = getenv("SCALE_PEERS");
    uint32_t wanted = asked != NULL ? (uint32_t)atoi(asked) : WIRE_PEERS, most = descriptors();
    struct wire_crowd c = {.epoll = epoll_create1(EPOLL_CLOEXEC)};
    uint32_t peers = most < wanted + WIRE_SPARE ? most - WIRE_SPARE : wanted;
    uint16_t port = master_start(&master, listen, any, dead, ms, level, warn, NULL);
    c.peer = calloc(peers, sizeof *c.peer);
    int64_t before = program_resident(&master), begin = spawn_now_ms();
    EXPECT(port != 0);
    while (c.count < peers && wire_join(&c, port)) {
    }
    EXPECT_EQ(c.count, peers);
    EXPECT(wire_until(&c, &c.views, 1)); /* the first was admitted at once, the others wait for its update */
    int64_t joined = spawn_now_ms(), waiting = program_resident(&master);
    c.views = 0;
    wire_vote(&c, &c.peer[0], VOTE_UPDATE);
    EXPECT(wire_until(&c, &c.views, peers));
    EXPECT_EQ(astray(&c, 0, peers, 0), 0);
    int64_t admitted = spawn_now_ms();
    for (uint32_t i = 0; i < peers; i++) {
        wire_vote(&c, &c.peer[i], VOTE_UPDATE);
    }
    EXPECT(wire_until(&c, &c.answers, peers));
    int64_t updated = spawn_now_ms();
    uint32_t victim = peers / 2;
    unsigned char bytes[512];
    struct writer w;
    c.views = 0;
    EXPECT(epoll_ctl(c.epoll, EPOLL_CTL_DEL, c.peer[victim].fd, NULL) == 0);
    close(c.peer[victim].fd);
    for (uint32_t i = 0; i < 8; i++) { /* who was linked with it */
        writer_init(&w, bytes, sizeof bytes);
        put_suspect(&w, &(struct msg_suspect){.view = c.peer[i].view, .target = SUSPECT_LINK, .cause = CAUSE_LINK_LOST,
                                              .peer = c.peer[victim].id});
        wire_say(&c, &c.peer[i], FRAME_SUSPECT, &w);
    }
    EXPECT(wire_until(&c, &c.views, peers - 1));
    EXPECT_EQ(astray(&c, victim, peers - 1, c.peer[victim].id), 0);
    int64_t changed = spawn_now_ms();
    printf("# %u connections: registered in %lld ms, admitted in %lld, an update in %lld, the view after a death in %lld; the master holds "
           "%lld bytes for each that waits\n", peers, (long long)(joined - begin), (long long)(admitted - joined),
           (long long)(updated - admitted), (long long)(changed - updated), (long long)(waiting - before) / peers);
    for (uint32_t i = 0; i < peers; i++) {
        free(c.peer[i].in);
        if (i != victim) {
            close(c.peer[i].fd);
        }
    }
    close(c.epoll);
    free(c.peer);
    EXPECT_EQ(program_end(&master, SIGTERM), 0);
}

TEST(one_too_many_is_refused_with_the_reason) /* a member more than its tables, or those of all others, hold */
{
    enum { MEMBERS = 5 };
    int member[MEMBERS];
    struct msg_welcome welcome;
    struct msg_fence fence;
    struct frame_bytes f;
    struct frame_header h;
    struct reader r;
    unsigned char payload[CLIENT_FRAME];
    struct server *s = NULL;
    struct net_address at = {.family = 4, .ip = {127, 0, 0, 1}};
    EXPECT_EQ(server_new(&at, &(struct server_options){.max_members = MEMBERS}, &s, NULL), PCCL_OK);
    EXPECT_EQ(server_start(s, NULL), PCCL_OK);
    EXPECT_EQ(server_address(s, &at), PCCL_OK);
    for (int i = 0; i < MEMBERS; i++) {
        member[i] = client_dial(at.port, false);
        EXPECT(client_register(member[i], &welcome));
    }
    int fd = client_dial(at.port, false);
    client_register_frame(&f, 0);
    EXPECT(client_send(fd, f.at, f.size) && client_await(fd, FRAME_FENCE, &h, payload));
    reader_init(&r, payload, h.length);
    EXPECT(get_fence(&r, &fence) && fence.cause == CAUSE_KICK_FULL && fence.text[0] != 0);
    EXPECT(client_closed(fd, SPAWN_PATIENCE_MS));
    close(fd);
    client_leave(&f, welcome.run);
    for (int i = 0; i < MEMBERS; i++) {
        EXPECT(client_send(member[i], f.at, f.size) && client_closed(member[i], SPAWN_PATIENCE_MS));
        close(member[i]);
    }
    EXPECT(server_stop(s) == PCCL_OK && server_wait(s) == PCCL_OK && server_free(s) == PCCL_OK);
}

/* ---- processes in many worlds -------------------------------------------------------------------------------------- */

enum { WORLDS = 100, MEMBERS = 4 };

struct many {
    pcclComm_t *comm[WORLDS];
};

static void create_all(struct peer *self, const void *argument, struct reply *reply)
{
    struct many *m = self->own = calloc(1, sizeof *m);
    (void)argument;
    (void)descriptors();
    PEER_EXPECT(self, pcclInit() == pcclSuccess);
    for (int k = 0; k < WORLDS; k++) {
        char name[16];
        snprintf(name, sizeof name, "many %d", k);
        pcclCommCreateParamsEx_t params = {.size = sizeof params, .master_address = self->master, .world = name,
                                           .world_size = MEMBERS, .rank = (uint32_t)self->index, .loss_rule = PCCL_LOSS_SHRINK};
        PEER_EXPECT(self, pcclCreateCommunicatorEx(&params, &m->comm[k]) == pcclSuccess);
        PEER_EXPECT(self, pcclConnect(m->comm[k]) == pcclSuccess);
    }
    peer_result(reply, pcclSuccess);
}

/* argument: int, the members whose parts must be in the sum.  Again and again until it succeeds in each world. */
static void reduce_all(struct peer *self, const void *argument, struct reply *reply)
{
    struct many *m = self->own;
    unsigned members = *(const unsigned *)argument;
    for (int k = 0; k < WORLDS; k++) {
        float x[8], y[8] = {0};
        const pcclReduceDescriptor_t d = peer_floats(8, 3);
        pcclReduceInfo_t info = {0};
        pcclResult_t result = pcclRankConnectionLost;
        for (int tries = 0; tries < 10 && result == pcclRankConnectionLost; tries++) {
            for (size_t i = 0; i < 8; i++) {
                x[i] = job_value(self->index, i, (uint64_t)k);
            }
            result = pcclAllReduce(x, y, &d, m->comm[k], &info);
        }
        PEER_EXPECT(self, result == pcclSuccess && info.local_world_size == (uint32_t)__builtin_popcount(members));
        for (size_t i = 0; i < 8; i++) {
            PEER_EXPECT(self, y[i] == job_sum(members, i, (uint64_t)k));
        }
        PEER_EXPECT(self, pcclUpdateTopology(m->comm[k]) == pcclSuccess);
    }
    peer_result(reply, pcclSuccess);
}

static void leave_all(struct peer *self, const void *argument, struct reply *reply)
{
    struct many *m = self->own;
    (void)argument;
    for (int k = 0; k < WORLDS; k++) {
        PEER_EXPECT(self, pcclDestroyCommunicator(m->comm[k]) == pcclSuccess);
    }
    free(m);
    peer_result(reply, pcclSuccess);
}

TEST(a_process_that_dies_in_a_hundred_worlds_costs_each_of_them_one_member)
{
    struct processes all;
    unsigned full = (1u << MEMBERS) - 1, left = full & ~2u;
    if (!processes_start(&all, &(struct processes_options){.count = MEMBERS, .failures = &test_failures})) {
        return;
    }
    processes_do(&all, full, create_all, NULL, 0, NULL);
    processes_do(&all, full, reduce_all, &full, sizeof full, NULL);
    int64_t begin = spawn_now_ms();
    process_signal(&all, 1, SIGKILL);
    processes_do(&all, left, reduce_all, &left, sizeof left, NULL);
    printf("# %d worlds of %d: all have reduced without the one that was killed after %lld ms\n", WORLDS, MEMBERS,
           (long long)(spawn_now_ms() - begin));
    processes_do(&all, left & ~1u, leave_all, NULL, 0, NULL); /* one after the other ends */
    processes_do(&all, 1, leave_all, NULL, 0, NULL);
    processes_stop(&all);
}
