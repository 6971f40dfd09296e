/* test_master_hostile.c - a running master among strangers, foreign protocols, liars and idlers.
 *
 * One idea: after whatever was sent, an honest peer is let in, the process is the same, and its memory has a bound.  The
 * bytes come from the real codec, cut and bent.
 * SPDX-License-Identifier: MIT */
#define _GNU_SOURCE /* pipe2 */
#include "tests/testing.h"

#include <sys/resource.h>

#include "core/random.h"
#include "tests/wire_client.h"

enum { IDLE_CLIENTS = 900, FRESH_MOST = 64, MEMORY_MOST = 64 << 20 };

static struct program master;
static uint16_t master_port;
static long resident_before;

static void begin(char *dead_ms)
{
    char listen_option[] = "--listen", any_port[] = "127.0.0.1:0", level_option[] = "--log-level", level[] = "none",
         dead_option[] = "--dead-ms";
    master_port = master_start(&master, listen_option, any_port, level_option, level, dead_option, dead_ms, NULL);
    EXPECT(master_port != 0);
    EXPECT(client_visit(master_port));
    resident_before = program_resident(&master);
}

/* The master lives, lets an honest peer in, has not grown beyond the bound, and ends cleanly. */
static void end(void)
{
    EXPECT(client_visit(master_port));
    long grown = program_resident(&master) - resident_before;
    EXPECT(resident_before > 0 && grown < MEMORY_MOST);
    EXPECT_EQ(program_end(&master, SIGTERM), 0);
    if (master.status != 0) {
        fprintf(stderr, "%s", master.err_text);
    }
}

static char minute[] = "60000";

/* Sends it, ends our direction, and waits for the master to end the other. */
static bool swallowed(const void *bytes, size_t size)
{
    int fd = client_dial(master_port, false);
    if (fd < 0) {
        return false;
    }
    (void)client_send(fd, bytes, size); /* may be closed on the way */
    shutdown(fd, SHUT_WR);
    bool closed = client_closed(fd, SPAWN_PATIENCE_MS);
    close(fd);
    return closed;
}

/* Sends it and waits for the master to close of its own accord. */
static bool refused(const void *bytes, size_t size)
{
    int fd = client_dial(master_port, false);
    if (fd < 0) {
        return false;
    }
    (void)client_send(fd, bytes, size);
    bool closed = client_closed(fd, SPAWN_PATIENCE_MS);
    close(fd);
    return closed;
}

/* What was sent before this call has been read when it returns: the master has meanwhile served a later connection. */
static void let_the_master_read(void)
{
    EXPECT(refused("barrier barrier barrier barrier.", 32));
}

TEST(foreign_protocols_are_closed) /* a scanner ends the run */
{
    static const char http[] = "GET / HTTP/1.1\r\nHost: master\r\n\r\n";
    static const unsigned char tls[] = {
        0x16, 3, 1, 0, 0x2f, 1, 0, 0, 0x2b, 3, 3, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21,
        22, 23, 24, 25, 26, 27, 28, 29, 30, 31, 32, 0, 0, 4, 0x13, 1, 0x13, 2, 1, 0};
    static const unsigned char ssh[] = "SSH-2.0-OpenSSH_9.2p1 Debian-2\r\nxxxxxxxxxxxxxxxx";
    begin(minute);
    EXPECT(refused(http, sizeof http - 1));
    EXPECT(refused(tls, sizeof tls));
    EXPECT(refused(ssh, sizeof ssh - 1));
    EXPECT(swallowed("", 0));
    struct rng r = {.state = 8};
    for (int i = 0; i < 200; i++) {
        unsigned char noise[64];
        for (size_t at = 0; at < sizeof noise; at++) {
            noise[at] = (unsigned char)rng_next(&r);
        }
        EXPECT(refused(noise, sizeof noise));
    }
    end();
}

/* The original's undoing: 9 bytes with length 1, 8 with length 0, a body that is cut off, a length of 2^40. */
TEST(lengths_of_another_framing_are_closed)
{
    static const unsigned char one[] = {0, 0, 0, 0, 0, 0, 0, 1, 7}, none[8] = {0}, cut[] = {0, 0, 0, 0, 0, 0, 0, 2, 0, 1},
                               vast[] = {0, 0, 1, 0, 0, 0, 0, 0};
    begin(minute);
    EXPECT(swallowed(one, sizeof one));
    EXPECT(swallowed(none, sizeof none));
    EXPECT(swallowed(cut, sizeof cut));
    EXPECT(swallowed(vast, sizeof vast));
    end();
}

TEST(every_type_with_every_length_is_survived) /* a length that is believed before it is checked */
{
    static const uint32_t lengths[] = {0, 1, 32, 4064, 4065, 1 << 20, (1 << 20) + 1, 1u << 31, UINT32_MAX};
    static unsigned char bytes[FRAME_HEADER_BYTES + 8192];
    begin(minute);
    for (unsigned type = 0; type < 256; type += type < 80 ? 1 : 25) {
        for (size_t i = 0; i < sizeof lengths / sizeof lengths[0]; i++) {
            struct frame_header h = {.type = (uint8_t)type, .length = lengths[i]};
            frame_put(bytes, &h);
            size_t follow = lengths[i] < 8192 ? lengths[i] : 8192;
            EXPECT(swallowed(bytes, FRAME_HEADER_BYTES));
            EXPECT(swallowed(bytes, FRAME_HEADER_BYTES + follow));
        }
    }
    end();
}

TEST(a_stranger_cannot_make_the_master_hold_more_than_4_kib)
{
    static unsigned char bytes[1 << 20];
    struct frame_header h = {.type = FRAME_REGISTER, .length = 4065};
    begin(minute);
    frame_put(bytes, &h);
    int fd = client_dial(master_port, false);
    EXPECT(client_send(fd, bytes, FRAME_HEADER_BYTES));
    let_the_master_read();
    EXPECT(client_closed(fd, 0)); /* on the header alone, not when its time to register is over */
    close(fd);
    EXPECT(refused(bytes, sizeof bytes));
    end();
}

TEST(register_cut_at_every_byte_is_survived)
{
    struct frame_bytes f;
    client_register_frame(&f, 0);
    begin(minute);
    for (size_t cut = 0; cut < f.size; cut++) {
        EXPECT(swallowed(f.at, cut));
    }
    end();
}

TEST(register_with_every_bit_flipped_is_survived)
{
    struct frame_bytes f;
    client_register_frame(&f, 0);
    begin(minute);
    for (size_t bit = 0; bit < f.size * 8; bit++) {
        f.at[bit / 8] ^= (unsigned char)(1u << bit % 8);
        EXPECT(swallowed(f.at, f.size));
        f.at[bit / 8] ^= (unsigned char)(1u << bit % 8);
    }
    end();
}

TEST(register_split_at_every_byte_works) /* an honest peer is dropped for how the network cuts its bytes */
{
    struct frame_bytes f;
    struct frame_header h;
    unsigned char payload[CLIENT_FRAME];
    client_register_frame(&f, 0);
    begin(minute);
    for (size_t cut = 1; cut < f.size; cut++) {
        int fd = client_dial(master_port, false);
        EXPECT(client_send(fd, f.at, cut));
        let_the_master_read();
        EXPECT(client_send(fd, f.at + cut, f.size - cut));
        EXPECT(client_await(fd, FRAME_WELCOME, &h, payload));
        close(fd);
    }
    end();
}

TEST(register_byte_by_byte_works)
{
    struct frame_bytes f;
    struct frame_header h;
    unsigned char payload[CLIENT_FRAME];
    client_register_frame(&f, 0);
    begin(minute);
    int fd = client_dial(master_port, false);
    for (size_t at = 0; at < f.size; at++) {
        EXPECT(client_send(fd, f.at + at, 1));
        let_the_master_read();
    }
    EXPECT(client_await(fd, FRAME_WELCOME, &h, payload));
    close(fd);
    end();
}

/* Registers and sends one frame of `size` bytes; the master ends the connection. */
static bool member_swallowed(const void *bytes, size_t size)
{
    struct msg_welcome welcome;
    int fd = client_dial(master_port, false);
    bool ok = fd >= 0 && client_register(fd, &welcome);
    if (ok) {
        (void)client_send(fd, bytes, size);
        shutdown(fd, SHUT_WR);
        ok = client_closed(fd, SPAWN_PATIENCE_MS);
    }
    close(fd);
    return ok;
}

TEST(members_may_not_send_what_no_peer_sends) /* every type from a registered peer: empty, with zeros, with ones */
{
    unsigned char bytes[FRAME_HEADER_BYTES + 256];
    begin(minute);
    for (unsigned type = 0; type < 80; type++) {
        for (int fill = 0; fill < 3; fill++) {
            struct frame_header h = {.type = (uint8_t)type, .length = fill > 0 ? 256 : 0};
            memset(bytes, fill == 2 ? 0xFF : 0, sizeof bytes);
            frame_put(bytes, &h);
            EXPECT(member_swallowed(bytes, FRAME_HEADER_BYTES + h.length));
        }
    }
    end();
}

TEST(lists_that_announce_more_than_they_bring_are_closed) /* memory from a count off the wire */
{
    static const uint32_t counts[] = {1, 8192, 1u << 31, UINT32_MAX};
    unsigned char bytes[64];
    struct frame_bytes f;
    begin(minute);
    for (size_t i = 0; i < sizeof counts / sizeof counts[0]; i++) {
        struct writer w;
        writer_init(&w, bytes, sizeof bytes);
        put_frozen(&w, &(struct msg_frozen){.view = 1, .attempt = 1, .reports = counts[i]});
        client_frame(&f, FRAME_FROZEN, 0, &w);
        EXPECT(member_swallowed(f.at, f.size));
        writer_init(&w, bytes, sizeof bytes);
        put_linked(&w, &(struct msg_linked){.attempt = 1, .failed = counts[i]});
        client_frame(&f, FRAME_LINKED, 0, &w);
        EXPECT(member_swallowed(f.at, f.size));
    }
    end();
}

/* One message of each kind that a member sends, as large as they come without lists. */
static void member_message(unsigned kind, struct writer *w, uint8_t *type)
{
    static const uint8_t types[] = {FRAME_HEARTBEAT, FRAME_SUSPECT, FRAME_FROZEN, FRAME_VOTE,
                                    FRAME_LINKED, FRAME_STAGED, FRAME_MEASURED, FRAME_TOOK};
    *type = types[kind];
    switch (*type) {
    case FRAME_HEARTBEAT:
        put_heartbeat(w, &(struct msg_heartbeat){.sent_ns = 1, .wait = {.on = 99, .phase = WAIT_LAUNCH}});
        break;
    case FRAME_SUSPECT:
        put_suspect(w, &(struct msg_suspect){.view = 7, .target = SUSPECT_PEER, .cause = CAUSE_PEER_LOST, .text = "text"});
        break;
    case FRAME_FROZEN:
        put_frozen(w, &(struct msg_frozen){.view = 7, .attempt = 3, .reports = 1});
        put_op_report(w, &(struct op_report){.name = {.tag = 1, .seq = 1}, .state = OP_HELD});
        break;
    case FRAME_VOTE:
        put_vote(w, &(struct msg_vote){.number = 77, .kind = VOTE_SYNC, .strategy = 2, .revision = 5});
        break;
    case FRAME_LINKED:
        put_linked(w, &(struct msg_linked){.attempt = 12345, .failed = 1});
        put_u64(w, 4711);
        break;
    case FRAME_STAGED:
        put_staged(w, &(struct msg_staged){.number = 4, .round = 5});
        break;
    case FRAME_MEASURED:
        put_measured(w, &(struct msg_measured){.round = 9, .to = 4711, .bits_per_second = 1});
        break;
    default:
        put_took(w, &(struct msg_took){.kind = TOOK_RING, .permille = 1500, .bytes = 1 << 20, .took_us = 77});
        break;
    }
}
enum { MEMBER_MESSAGES = 8 };

TEST(every_message_of_a_member_cut_anywhere_is_survived) /* a frame of the right form around a message that ends too soon */
{
    unsigned char bytes[512];
    struct frame_bytes f;
    uint8_t type;
    begin(minute);
    for (unsigned kind = 0; kind < MEMBER_MESSAGES; kind++) {
        struct writer w;
        writer_init(&w, bytes, sizeof bytes);
        member_message(kind, &w, &type);
        for (size_t whole = w.used; w.used > 0; w.used--) {
            client_frame(&f, type, 0, &w);
            EXPECT(w.used == whole || member_swallowed(f.at, f.size));
            EXPECT(member_swallowed(f.at, f.size - 1)); /* and the frame itself cut */
        }
    }
    end();
}

TEST(messages_that_come_at_the_wrong_time_are_survived) /* whole ones, from a newcomer and from an accepted member */
{
    unsigned char bytes[512];
    struct frame_bytes f, leave;
    struct msg_welcome welcome;
    struct msg_view view;
    uint8_t type;
    begin(minute);
    for (unsigned kind = 0; kind < MEMBER_MESSAGES; kind++) {
        struct writer w;
        writer_init(&w, bytes, sizeof bytes);
        member_message(kind, &w, &type);
        client_frame(&f, type, 0, &w);
        EXPECT(member_swallowed(f.at, f.size));
        int fd = client_dial(master_port, false);
        EXPECT(client_become_first(fd, &welcome, &view));
        client_leave(&leave, welcome.run);
        (void)client_send(fd, f.at, f.size); /* taken, ignored, or the end of this one */
        (void)client_send(fd, leave.at, leave.size);
        EXPECT(client_closed(fd, SPAWN_PATIENCE_MS));
        close(fd);
    }
    end();
}

/* Fields of half a message would be acted on; and whoever sends it goes alone. */
TEST(an_accepted_member_that_sends_half_a_message_is_closed_and_nobody_else)
{
    unsigned char bytes[512];
    struct frame_bytes f;
    struct msg_welcome welcome;
    struct msg_view view;
    uint8_t type;
    begin(minute);
    for (unsigned kind = 0; kind < MEMBER_MESSAGES; kind++) {
        struct writer w;
        int fd = client_dial(master_port, false), newcomer = client_dial(master_port, false);
        EXPECT(client_become_first(fd, &welcome, &view));
        EXPECT(client_register(newcomer, &welcome));
        writer_init(&w, bytes, sizeof bytes);
        member_message(kind, &w, &type);
        if (type == FRAME_VOTE) { /* one that would count, were it whole */
            writer_init(&w, bytes, sizeof bytes);
            put_vote(&w, &(struct msg_vote){.number = view.vote_number, .kind = VOTE_SYNC, .revision = 1});
        }
        w.used--;
        client_frame(&f, type, welcome.run, &w);
        EXPECT(client_send(fd, f.at, f.size));
        EXPECT(client_closed(fd, SPAWN_PATIENCE_MS));
        let_the_master_read();
        EXPECT(!client_closed(newcomer, 0));
        close(fd);
        client_leave(&f, welcome.run);
        EXPECT(client_send(newcomer, f.at, f.size) && client_closed(newcomer, SPAWN_PATIENCE_MS));
        close(newcomer);
    }
    end();
}

TEST(an_id_that_is_nobodys_cannot_be_resumed)
{
    unsigned char bytes[512], payload[CLIENT_FRAME];
    struct msg_welcome welcome;
    struct frame_header h;
    struct frame_bytes f;
    begin(minute);
    int member = client_dial(master_port, false);
    EXPECT(client_register(member, &welcome));
    uint64_t ids[] = {1, welcome.id + 1, UINT64_MAX}, runs[] = {welcome.run, welcome.run + 2, 0};
    for (size_t i = 0; i < 9; i++) {
        struct writer w;
        struct msg_register m = {.run = runs[i / 3], .id = ids[i % 3], .lanes = 1, .addresses = 1,
                                 .address = {{.family = 4, .port = 9}}};
        int fd = client_dial(master_port, false);
        writer_init(&w, bytes, sizeof bytes);
        put_register(&w, &m);
        client_frame(&f, FRAME_REGISTER, 0, &w);
        EXPECT(client_send(fd, f.at, f.size) && client_await(fd, FRAME_FENCE, &h, payload));
        EXPECT(client_closed(fd, SPAWN_PATIENCE_MS));
        close(fd);
    }
    EXPECT(!client_closed(member, 0)); /* the one who is there is not disturbed */
    close(member);
    end();
}

TEST(a_frame_of_another_run_is_closed)
{
    struct frame_bytes f;
    begin(minute);
    client_leave(&f, 12345);
    EXPECT(member_swallowed(f.at, f.size));
    end();
}

TEST(an_honest_peer_gets_in_beside_900_idlers) /* all places taken by connections that say nothing */
{
    struct rlimit files;
    static int idle[IDLE_CLIENTS];
    int closed = 0;
    getrlimit(RLIMIT_NOFILE, &files);
    files.rlim_cur = files.rlim_max;
    setrlimit(RLIMIT_NOFILE, &files);
    begin(minute);
    for (int i = 0; i < IDLE_CLIENTS; i++) {
        idle[i] = client_dial(master_port, false);
        EXPECT(idle[i] >= 0);
        if (i % 50 == 49) {
            EXPECT(client_visit(master_port));
        }
    }
    for (int i = 0; i < IDLE_CLIENTS; i++) {
        closed += client_closed(idle[i], 0);
    }
    EXPECT(closed >= IDLE_CLIENTS - FRESH_MOST);
    EXPECT(client_visit(master_port));
    for (int i = 0; i < IDLE_CLIENTS; i++) {
        close(idle[i]);
    }
    end();
}

/* One byte at a time, some three a second, until the master has had enough; the last of them comes long after its limit. */
static bool trickle_until_closed(int fd, const struct frame_bytes *f)
{
    for (size_t at = 0; at < f->size; at++) {
        if (!client_send(fd, f->at + at, 1)) {
            return true;
        }
        if (client_closed(fd, 350)) {
            return true;
        }
    }
    return false;
}

TEST(a_stranger_that_trickles_is_closed) /* 64 of them would keep everybody out */
{
    struct frame_bytes f;
    client_register_frame(&f, 0);
    begin(minute);
    int fd = client_dial(master_port, false);
    EXPECT(trickle_until_closed(fd, &f));
    close(fd);
    end();
}

TEST(a_member_that_never_finishes_a_frame_is_closed)
{
    static unsigned char bytes[64];
    struct frame_bytes f;
    struct writer w;
    struct msg_welcome welcome;
    struct msg_view view;
    begin(minute);
    int slow = client_dial(master_port, false), idle = client_dial(master_port, false);
    EXPECT(client_become_first(slow, &welcome, &view)); /* else its admission has a limit of its own */
    EXPECT(client_register(idle, &welcome));
    writer_init(&w, bytes, sizeof bytes);
    put_heartbeat(&w, &(struct msg_heartbeat){.sent_ns = 1});
    client_frame(&f, FRAME_HEARTBEAT, welcome.run, &w);
    EXPECT(trickle_until_closed(slow, &f));
    client_frame(&f, FRAME_HEARTBEAT, welcome.run, &w);
    EXPECT(client_send(idle, f.at, f.size)); /* silence between frames is another matter: the dead time's */
    let_the_master_read();
    EXPECT(!client_closed(idle, 0));
    close(slow);
    close(idle);
    end();
}

TEST(a_member_that_does_not_read_is_closed) /* answers pile up without a bound */
{
    struct msg_welcome welcome;
    struct msg_view view = {0};
    struct frame_bytes f;
    struct msg_vote vote = {.kind = VOTE_QUERY};
    unsigned char bytes[128];
    int small = 4096;
    begin(minute);
    int fd = client_dial(master_port, false);
    setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &small, sizeof small);
    EXPECT(client_become_first(fd, &welcome, &view));
    vote.number = view.vote_number;
    bool closed = false;
    for (int i = 0; i < 1000000 && !closed; i++) {
        struct writer w;
        writer_init(&w, bytes, sizeof bytes);
        put_vote(&w, &vote);
        client_frame(&f, FRAME_VOTE, welcome.run, &w);
        struct frame_header h = {.type = FRAME_VOTE, .run = welcome.run, .view = view.view, .length = (uint32_t)w.used};
        frame_put(f.at, &h);
        closed = !client_send(fd, f.at, f.size);
        vote.number++;
    }
    EXPECT(closed);
    close(fd);
    end();
}

/* Half closed, then reset, while an answer to it is on its way: writing there is the signal that ends a process. */
TEST(answers_to_whoever_is_gone_do_not_end_the_master)
{
    struct linger reset = {.l_onoff = 1};
    struct frame_bytes f;
    struct msg_welcome welcome;
    begin(minute);
    for (int round = 0; round < 5 && test_failures == 0; round++) {
        int fd = client_dial(master_port, false);
        EXPECT(client_register(fd, &welcome));
        EXPECT(program_stop(&master));
        client_frame(&f, FRAME_VOTE, welcome.run, NULL); /* is answered by a fence */
        EXPECT(client_send(fd, f.at, f.size));
        shutdown(fd, SHUT_WR);
        setsockopt(fd, SOL_SOCKET, SO_LINGER, &reset, sizeof reset);
        close(fd);
        kill(master.pid, SIGCONT);
        EXPECT(client_visit(master_port));
    }
    end();
}

TEST(a_thousand_resets_are_survived)
{
    struct linger reset = {.l_onoff = 1};
    struct frame_bytes f;
    client_register_frame(&f, 0);
    begin(minute);
    for (int i = 0; i < 1000; i++) {
        int fd = client_dial(master_port, false);
        if (i % 2 == 1) {
            (void)client_send(fd, f.at, f.size);
        }
        setsockopt(fd, SOL_SOCKET, SO_LINGER, &reset, sizeof reset);
        close(fd);
    }
    end();
}
