/* test_server.c - the master's server in this process: how much it takes from whom, and what it keeps of worlds that have ended.
 * SPDX-License-Identifier: MIT */
#define _GNU_SOURCE /* pipe2 */
#include "tests/testing.h"

#include <malloc.h>

#define client_send server_client_send /* the other header has functions of these names, too */
#define client_leave server_client_leave
#include "server/server_state.h"
#undef client_send
#undef client_leave
#include "server/server.h"
#include "tests/wire_client.h"

static struct server *server_begin(uint16_t *port)
{
    const struct net_address any_port = {.family = 4, .ip = {127, 0, 0, 1}};
    struct net_address bound = {0};
    struct server *s = NULL;
    struct err err;
    EXPECT(server_new(&any_port, NULL, &s, &err) == PCCL_OK && server_start(s, &err) == PCCL_OK);
    EXPECT(server_address(s, &bound) == PCCL_OK);
    *port = bound.port;
    return s;
}

static void server_close(struct server *s)
{
    EXPECT(server_stop(s) == PCCL_OK && server_wait(s) == PCCL_OK);
}

/* A connection that has asked to enter this world, and has been asked to link with its members, who are none; -1: it has not. */
static int enter(uint16_t port, const char *world, struct msg_welcome *welcome, struct msg_admit *admit)
{
    struct msg_register m = {.lanes = 1, .addresses = 1, .address = {{.family = 4, .ip = {127, 0, 0, 1}, .port = 9}}};
    unsigned char payload[CLIENT_FRAME];
    struct frame_bytes f;
    struct frame_header h;
    struct writer w;
    struct reader r;
    snprintf(m.world, sizeof m.world, "%s", world);
    int fd = client_dial(port, false);
    writer_init(&w, payload, sizeof payload);
    put_register(&w, &m);
    client_frame(&f, FRAME_REGISTER, 0, &w);
    bool good = fd >= 0 && client_send(fd, f.at, f.size) && client_await(fd, FRAME_WELCOME, &h, payload);
    reader_init(&r, payload, h.length);
    good = good && get_welcome(&r, welcome) && client_await(fd, FRAME_ADMIT, &h, payload);
    reader_init(&r, payload, h.length);
    good = good && get_admit(&r, admit);
    EXPECT(good);
    return good ? fd : -1;
}

/* Says that it has linked, but not with these many that are nobody; whether it is a member then. */
static bool link_up(int fd, const struct msg_welcome *welcome, const struct msg_admit *admit, uint32_t failed)
{
    size_t room = FRAME_HEADER_BYTES + 64 + 8 * (size_t)failed;
    unsigned char *bytes = calloc(1, room), payload[CLIENT_FRAME];
    struct frame_header h;
    struct writer w;
    writer_init(&w, bytes + FRAME_HEADER_BYTES, room - FRAME_HEADER_BYTES);
    put_linked(&w, &(struct msg_linked){.attempt = admit->attempt, .failed = failed});
    for (uint32_t i = 0; i < failed; i++) {
        put_u64(&w, (uint64_t)1 << 40 | i);
    }
    frame_put(bytes, &(struct frame_header){.type = FRAME_LINKED, .run = welcome->run, .length = (uint32_t)w.used});
    bool good = client_send(fd, bytes, FRAME_HEADER_BYTES + w.used) && client_await(fd, FRAME_VIEW, &h, payload);
    free(bytes);
    return good;
}

/* A stranger may send 4 KiB, a member lists of any length that a world may need. */
TEST(a_member_may_send_more_than_a_stranger)
{
    enum { FAILED = 2 * SERVER_FRESH_BYTES / 8 };
    struct msg_welcome welcome = {0};
    struct msg_admit admit = {0};
    uint16_t port;
    struct server *s = server_begin(&port);
    int fd = enter(port, "", &welcome, &admit);
    EXPECT(link_up(fd, &welcome, &admit, FAILED));
    close(fd);
    server_close(s);
    EXPECT(server_free(s) == PCCL_OK);
}

/* Begins a world, and ends it. */
static void begin_and_end(uint16_t port, const char *world)
{
    struct msg_welcome welcome = {0};
    struct msg_admit admit = {0};
    struct frame_bytes leave;
    int fd = enter(port, world, &welcome, &admit);
    EXPECT(link_up(fd, &welcome, &admit, 0));
    client_leave(&leave, welcome.run);
    EXPECT(client_send(fd, leave.at, leave.size) && client_closed(fd, SPAWN_PATIENCE_MS));
    close(fd);
}

/* Each place that a world ever had would cost memory until the master ends. */
TEST(of_a_world_that_has_ended_no_journal_is_kept)
{
    struct msg_welcome welcome = {0};
    struct msg_admit admit = {0};
    uint16_t port;
    uint32_t kept = 0;
    struct server *s = server_begin(&port);
    int member = enter(port, "stays", &welcome, &admit);
    EXPECT(link_up(member, &welcome, &admit, 0));
    begin_and_end(port, "goes");
    server_close(s);
    close(member);
    for (uint32_t i = 0; i < s->journal_count; i++) {
        const struct journal *j = &s->journals[i];
        EXPECT((j->bytes != NULL) == (j->used > 0) && (j->capacity > 0) == (j->used > 0));
        kept += j->bytes != NULL;
    }
    EXPECT_EQ(kept, 1); /* of the one that has a member */
    EXPECT(server_free(s) == PCCL_OK);
}

/* A journal is larger than LEAST bytes.  With sanitizers nothing is counted here; those tell of what is lost. */
TEST(worlds_that_begin_and_end_cost_no_memory)
{
    enum { WORLDS = 500, LEAST = 64 };
    uint16_t port;
    struct server *s = server_begin(&port);
    for (int i = 0; i < 20; i++) {
        begin_and_end(port, "goes");
    }
    size_t before = mallinfo2().uordblks;
    for (int i = 0; i < WORLDS; i++) {
        begin_and_end(port, "goes");
    }
    size_t after = mallinfo2().uordblks;
    EXPECT(after < before + WORLDS * LEAST);
    server_close(s);
    EXPECT(server_free(s) == PCCL_OK);
}
