/* test_stripe.c - one stream of bytes over several sockets: every byte once and in order, whatever the sockets do.
 * SPDX-License-Identifier: MIT */
#include "tests/testing.h"

#include <pthread.h>
#include <sys/socket.h>
#include <unistd.h>

#include "core/random.h"
#include "net/fds.h"
#include "net/stripe.h"
#include "net/stripe_paths.h"

enum { PIECE = 200000 };

/* Two ends, the first of which dials, and what has gone each way. */
struct pair {
    struct transport end[2];
    struct stripe_budget budget;
    uint64_t sent[2], got[2];
    uint64_t wrong;
    bool over; /* it has broken */
    struct rng rng;
};

static unsigned char value_at(int from, uint64_t i)
{
    return (unsigned char)(i * 31 + (i >> 13) + (uint64_t)from * 7);
}

/* Sockets of which one end holds so few bytes; 0: as the system likes. */
static void sockets(int fd[2], int bytes)
{
    EXPECT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, fd), 0);
    for (int i = 0; i < 2; i++) {
        fd[i] = fds_own(fd[i]);
        if (bytes > 0) {
            EXPECT_EQ(setsockopt(fd[i], SOL_SOCKET, SO_SNDBUF, &bytes, sizeof bytes), 0);
        }
    }
}

static void end_open(struct pair *p, int i, int fd, uint32_t fixed)
{
    transport_tcp_take(&p->end[i], fd, &(struct sock_bulk){.buffers = {SOCK_BUFFER_AUTO, SOCK_BUFFER_AUTO}});
    const struct stripe_config config = {.token = 77, .dials = i == 0, .fixed = fixed, .most = STRIPE_SOCKETS, .budget = &p->budget};
    EXPECT_EQ(transport_stripe_take(&p->end[i], &config), PCCL_OK);
}

static void pair_open(struct pair *p, uint32_t fixed, uint64_t seed)
{
    int fd[2];
    *p = (struct pair){.rng = {seed}, .budget = {.most = 1000}};
    sockets(fd, 0);
    end_open(p, 0, fd[0], fixed);
    end_open(p, 1, fd[1], fixed);
}

static void join(struct pair *p, int bytes)
{
    int fd[2];
    sockets(fd, bytes);
    EXPECT(transport_stripe_add(&p->end[0], fd[0]));
    EXPECT(transport_stripe_add(&p->end[1], fd[1]));
}

/* One end wants so many, and sends on them. */
static void use(struct pair *p, int end, uint32_t count)
{
    p->end[end].stripe->use = p->end[end].stripe->keep = count;
    p->end[end].stripe->begun = STRIPE_BEGUN; /* the test says how many, not what is known of its path */
    p->end[end].stripe->unsettled = true;
}

static void pair_close(struct pair *p)
{
    for (int i = 0; i < 2; i++) {
        p->end[i].ops->close(&p->end[i]);
    }
    EXPECT_EQ(atomic_load(&p->budget.used), 0);
    EXPECT_EQ(p->wrong, 0);
}

static void hear(struct pair *p)
{
    for (int i = 0; i < 2; i++) {
        EXPECT_EQ(p->end[i].ops->hear(&p->end[i]), PCCL_OK);
    }
}

/* Sends a piece from `from`, at most `most` bytes, in two parts; the caller comes back with what did not go. */
static bool send_some(struct pair *p, int from, size_t most)
{
    static unsigned char out[PIECE];
    size_t bytes = most < sizeof out ? most : sizeof out, cut = rng_below(&p->rng, bytes + 1), moved;
    for (size_t i = 0; i < bytes; i++) {
        out[i] = value_at(from, p->sent[from] + i);
    }
    struct iovec parts[2] = {{out, cut}, {out + cut, bytes - cut}};
    pccl_status st = p->end[from].ops->send(&p->end[from], parts, 2, &moved);
    EXPECT(st == PCCL_OK || (st == PCCL_ERR_AGAIN && moved == 0));
    p->over |= st != PCCL_OK && st != PCCL_ERR_AGAIN;
    p->sent[from] += moved;
    return st == PCCL_OK;
}

static bool receive_some(struct pair *p, int to, size_t most)
{
    static unsigned char in[PIECE];
    size_t bytes = most < sizeof in ? most : sizeof in, cut = rng_below(&p->rng, bytes + 1), moved;
    struct iovec parts[2] = {{in, cut}, {in + cut, bytes - cut}};
    pccl_status st = p->end[to].ops->receive(&p->end[to], parts, 2, &moved);
    EXPECT(st == PCCL_OK || (st == PCCL_ERR_AGAIN && moved == 0));
    p->over |= st != PCCL_OK && st != PCCL_ERR_AGAIN;
    for (size_t i = 0; i < moved; i++) {
        p->wrong += in[i] != value_at(1 - to, p->got[to] + i);
    }
    p->got[to] += moved;
    return st == PCCL_OK;
}

/* All that is under way comes, although neither end has anything more to send. */
static void drain(struct pair *p)
{
    for (int idle = 0; idle < 3;) {
        hear(p);
        bool moved = receive_some(p, 0, PIECE);
        moved |= receive_some(p, 1, PIECE);
        idle = moved ? 0 : idle + 1;
    }
    EXPECT_EQ(p->got[1], p->sent[0]);
    EXPECT_EQ(p->got[0], p->sent[1]);
}

/* The caller offers the rest of what an earlier call has taken a part of: like a data connection, at most one frame. */
static void exchange(struct pair *p, unsigned rounds, size_t most)
{
    size_t frame[2] = {0, 0};
    for (unsigned i = 0; i < rounds; i++) {
        for (int end = 0; end < 2; end++) {
            frame[end] = frame[end] > 0 ? frame[end] : 1 + rng_below(&p->rng, most);
            if (rng_below(&p->rng, 4) > 0) {
                uint64_t before = p->sent[end];
                send_some(p, end, frame[end]);
                frame[end] -= p->sent[end] - before;
            }
            if (rng_below(&p->rng, 3) > 0) {
                receive_some(p, end, 1 + rng_below(&p->rng, most));
            }
        }
        hear(p);
    }
    for (int end = 0; end < 2; end++) {
        while (frame[end] > 0 && !p->over) {
            uint64_t before = p->sent[end];
            send_some(p, end, frame[end]);
            frame[end] -= p->sent[end] - before;
            receive_some(p, 1 - end, PIECE);
            hear(p);
        }
    }
}

TEST(bytes_arrive_in_order_over_any_number_of_sockets_of_any_speed) /* records of a slow socket come last */
{
    for (uint32_t count = 1; count <= STRIPE_SOCKETS; count = count * 2 + (count == 2)) {
        struct pair p;
        pair_open(&p, count, count);
        for (uint32_t i = 1; i < count; i++) {
            join(&p, (int)rng_below(&p.rng, 2) * (2000 << rng_below(&p.rng, 6)));
        }
        exchange(&p, test_scaled(3000), count % 2 ? 3000 : PIECE);
        drain(&p);
        EXPECT(p.got[0] > 100000 && p.got[1] > 100000);
        pair_close(&p);
    }
}

TEST(every_length_arrives) /* a record is a byte, or as long as may be */
{
    for (uint32_t count = 1; count <= 2; count++) {
        struct pair p;
        pair_open(&p, count, 3);
        for (uint32_t i = 1; i < count; i++) {
            join(&p, 0);
        }
        for (size_t n = 1; n < 700; n++) {
            for (size_t left = n; left > 0 && !p.over;) {
                uint64_t before = p.sent[0];
                send_some(&p, 0, left);
                left -= p.sent[0] - before;
                hear(&p);
            }
            drain(&p);
        }
        pair_close(&p);
    }
}

TEST(sockets_join_and_leave_while_bytes_are_under_way) /* what a socket that leaves still carries is not lost */
{
    struct pair p;
    pair_open(&p, 0, 11);
    unsigned joined = 0;
    p.end[0].stripe->look_at = p.end[1].stripe->look_at = INT64_MAX; /* and not what a slow machine measures */
    for (unsigned round = 0; round < test_scaled(200); round++) {
        uint32_t count = 1 + (uint32_t)rng_below(&p.rng, 12);
        use(&p, (int)rng_below(&p.rng, 2), count);
        hear(&p);
        for (uint32_t missing = transport_stripe_missing(&p.end[0]); missing > 0; missing--) {
            join(&p, (int)rng_below(&p.rng, 2) * 4000);
            joined++;
        }
        exchange(&p, 10, 50000);
    }
    EXPECT(joined > test_scaled(50));
    use(&p, 0, 1);
    use(&p, 1, 1);
    drain(&p);
    for (int i = 0; i < 2; i++) {
        EXPECT_EQ(p.end[i].stripe->count, 1); /* those that are not wanted have gone at both ends */
    }
    EXPECT_EQ(atomic_load(&p.budget.used), 0);
    pair_close(&p);
}

TEST(socket_that_joins_holds_little_that_others_wait_for) /* one that lost its first packets kept 256 KiB from the others for a second */
{
    struct pair p;
    pair_open(&p, 0, 3);
    use(&p, 0, 2);
    drain(&p);
    join(&p, 0);
    hear(&p);
    for (int i = 0; i < 2; i++) {
        EXPECT_EQ(p.end[i].stripe->count, 2);
        EXPECT(p.end[i].stripe->socket[0]->bound > STRIPE_UNSENT_LEAST);
        EXPECT_EQ(p.end[i].stripe->socket[1]->bound, STRIPE_UNSENT_LEAST);
    }
    pair_close(&p);
}

TEST(accepting_end_has_sockets_dialled_that_it_wants) /* else what it sends would stay on one */
{
    struct pair p;
    pair_open(&p, 0, 5);
    use(&p, 1, 8);
    drain(&p);
    EXPECT_EQ(transport_stripe_missing(&p.end[0]), 7);
    EXPECT_EQ(transport_stripe_missing(&p.end[1]), 0);
    use(&p, 1, 2);
    drain(&p);
    EXPECT_EQ(transport_stripe_missing(&p.end[0]), 1);
    p.budget.most = 0; /* the process has no descriptors left for it */
    EXPECT_EQ(transport_stripe_missing(&p.end[0]), 0);
    pair_close(&p);
}

TEST(sockets_that_a_trial_leaves_idle_stay) /* if it loses, they would have to be dialled, and begin slowly */
{
    struct pair p;
    pair_open(&p, 0, 6);
    p.end[0].stripe->look_at = p.end[1].stripe->look_at = INT64_MAX;
    use(&p, 0, 4);
    for (int i = 1; i < 4; i++) {
        join(&p, 0);
    }
    drain(&p);
    p.end[0].stripe->use = 2;
    p.end[0].stripe->unsettled = true;
    exchange(&p, 50, 50000);
    drain(&p);
    EXPECT_EQ(p.end[0].stripe->count, 4);
    EXPECT_EQ(transport_stripe_missing(&p.end[0]), 0);
    use(&p, 0, 2);
    drain(&p);
    EXPECT_EQ(p.end[0].stripe->count, 2);
    pair_close(&p);
}

/* A stripe on the path of that name, which shares it with others. */
static void on_path(struct pair *p, struct stripe_paths *paths, uint64_t path, uint32_t lanes)
{
    int fd[2];
    *p = (struct pair){.rng = {8}, .budget = {.most = 1000}};
    sockets(fd, 0);
    for (int i = 0; i < 2; i++) {
        transport_tcp_take(&p->end[i], fd[i], &(struct sock_bulk){.buffers = {SOCK_BUFFER_AUTO, SOCK_BUFFER_AUTO}});
        const struct stripe_config config = {
            .token = 77, .dials = i == 0, .most = STRIPE_SOCKETS, .budget = &p->budget, .paths = i == 0 ? paths : NULL, .path = path, .lanes = lanes,
        };
        EXPECT_EQ(transport_stripe_take(&p->end[i], &config), PCCL_OK);
        p->end[i].stripe->look_at = INT64_MAX;
    }
}

/* Sockets that a new stripe wants once it has sent so many bytes. */
static uint32_t wants(struct stripe_paths *paths, uint64_t path, uint32_t lanes, size_t bytes)
{
    struct pair p;
    on_path(&p, paths, path, lanes);
    while (p.sent[0] < bytes && !p.over) {
        send_some(&p, 0, bytes - p.sent[0]);
        receive_some(&p, 1, PIECE);
    }
    hear(&p);
    uint32_t all = 1 + transport_stripe_missing(&p.end[0]);
    drain(&p);
    pair_close(&p);
    return all;
}

TEST(stripe_begins_with_what_the_last_one_on_its_path_needed) /* each new link would search for seconds */
{
    static struct stripe_paths paths; /* large */
    stripe_paths_init(&paths);
    EXPECT_EQ(wants(&paths, 5, 1, STRIPE_BEGUN), 1);
    stripe_paths_note(&paths, 5, 1, &(struct stripe_settled){.count = 32});
    stripe_paths_note(&paths, 6, 4, &(struct stripe_settled){.count = 3});
    EXPECT_EQ(wants(&paths, 5, 1, STRIPE_BEGUN), 32);
    EXPECT_EQ(wants(&paths, 5, 1, STRIPE_BEGUN - 1), 1); /* grants alone: a world that does nothing holds no 64 descriptors */
    EXPECT_EQ(wants(&paths, 5, 4, STRIPE_BEGUN), 8);     /* together as many */
    EXPECT_EQ(wants(&paths, 6, 1, STRIPE_BEGUN), 12);
    EXPECT_EQ(wants(&paths, 6, 5, STRIPE_BEGUN), 3);
    EXPECT_EQ(wants(&paths, 6, 64, STRIPE_BEGUN), 1);
    EXPECT_EQ(wants(&paths, 7, 1, STRIPE_BEGUN), 1);
    stripe_paths_note(&paths, 6, 64, &(struct stripe_settled){.count = 3});
    EXPECT_EQ(wants(&paths, 6, 1, STRIPE_BEGUN), STRIPE_SOCKETS);
    stripe_paths_note(&paths, 5, 1, &(struct stripe_settled){.count = 1}); /* the path has got better */
    EXPECT_EQ(wants(&paths, 5, 1, STRIPE_BEGUN), 1);
}

TEST(few_sockets_come_before_there_is_data) /* the first call would begin on one, and the others come too late to help */
{
    static struct stripe_paths paths; /* large */
    struct pair p;
    stripe_paths_init(&paths);
    stripe_paths_note(&paths, 5, 1, &(struct stripe_settled){.count = 32});
    on_path(&p, &paths, 5, 1);
    stripe_start(p.end[0].stripe, 4);
    hear(&p);
    EXPECT_EQ(transport_stripe_missing(&p.end[0]), 3);
    pair_close(&p);
}

TEST(a_stripe_that_has_decided_nothing_leaves_its_path_as_it_was) /* an idle world would undo what a busy one has found */
{
    static struct stripe_paths paths;
    struct stripe_settled found;
    struct pair p;
    stripe_paths_init(&paths);
    on_path(&p, &paths, 5, 1);
    stripe_paths_note(&paths, 5, 1, &(struct stripe_settled){.count = 32});
    for (int i = 0; i < 20; i++) {
        p.end[0].stripe->look_at = 0; /* measured with each call */
        exchange(&p, 10, PIECE);
    }
    drain(&p);
    pair_close(&p);
    stripe_paths_find(&paths, 5, 1, &found);
    EXPECT_EQ(found.count, 32);
}

TEST(paths_that_were_noted_longest_ago_make_room) /* a run may meet any number of hosts */
{
    static struct stripe_paths paths;
    struct stripe_settled found;
    stripe_paths_init(&paths);
    for (uint64_t i = 0; i <= 2 * STRIPE_PATHS; i++) {
        stripe_paths_note(&paths, i, 1, &(struct stripe_settled){.count = 1 + (uint32_t)i % STRIPE_SOCKETS, .not_before = (int64_t)i, .fewer_at = 9});
        stripe_paths_note(&paths, 0, 1, &(struct stripe_settled){.count = 4});
    }
    for (uint64_t i = 1; i <= 2 * STRIPE_PATHS; i++) {
        bool kept = i > STRIPE_PATHS + 1;
        stripe_paths_find(&paths, i, 1, &found);
        EXPECT_EQ(found.count, kept ? 1 + i % STRIPE_SOCKETS : 0);
        EXPECT_EQ(found.not_before, kept ? (int64_t)i : 0);
        EXPECT_EQ(found.fewer_at, kept ? 9 : 0);
    }
    stripe_paths_find(&paths, 0, 1, &found);
    EXPECT_EQ(found.count, 4);
}

TEST(a_single_socket_copies_nothing) /* the rest of a record stays with the caller */
{
    struct pair p;
    size_t left = PIECE;
    pair_open(&p, 1, 2);
    while (left > 0) {
        uint64_t before = p.sent[0];
        if (!send_some(&p, 0, left)) {
            break;
        }
        left -= p.sent[0] - before;
        left = left > 0 ? left : PIECE;
    }
    EXPECT(p.end[0].stripe->socket[0]->tail == NULL);
    while (left > 0 && !p.over) {
        uint64_t before = p.sent[0];
        receive_some(&p, 1, 70000);
        hear(&p);
        send_some(&p, 0, left);
        left -= p.sent[0] - before;
        EXPECT(p.end[0].stripe->socket[0]->tail == NULL);
    }
    drain(&p);
    pair_close(&p);
}

/* ---- One end is this test ------------------------------------------------------------------------------------------------ */

/* An accepting end of two sockets, whose other ends are the test's. */
struct bare {
    struct pair pair;
    int fd[2];
};

static void bare_open(struct bare *b, bool dials)
{
    int fd[2];
    b->pair = (struct pair){.rng = {1}, .budget = {.most = 10}};
    sockets(fd, 0);
    b->fd[0] = fd[1];
    end_open(&b->pair, dials ? 0 : 1, fd[0], 2);
    sockets(fd, 0);
    b->fd[1] = fd[1];
    EXPECT(transport_stripe_add(&b->pair.end[dials ? 0 : 1], fd[0]));
    EXPECT_EQ(b->pair.end[dials ? 0 : 1].ops->hear(&b->pair.end[dials ? 0 : 1]), PCCL_OK);
}

static void bare_close(struct bare *b, bool dials)
{
    struct transport *t = &b->pair.end[dials ? 0 : 1];
    t->ops->close(t);
    fds_close(b->fd[0]);
    fds_close(b->fd[1]);
    EXPECT_EQ(atomic_load(&b->pair.budget.used), 0);
}

static void put_head(int fd, uint32_t number, uint32_t word)
{
    unsigned char head[STRIPE_HEAD_BYTES];
    struct writer w;
    writer_init(&w, head, sizeof head);
    put_u32(&w, number);
    put_u32(&w, word);
    EXPECT_EQ(write(fd, head, sizeof head), (ssize_t)sizeof head);
}

#define WORD(kind, length) ((uint32_t)(kind) << 24 | (uint32_t)(length))

static pccl_status receive_once(struct transport *t, size_t *moved)
{
    static unsigned char in[4096];
    return t->ops->receive(t, &(struct iovec){in, sizeof in}, 1, moved);
}

TEST(bytes_that_are_no_records_break_their_stripe) /* each costs the sender its connection, nothing else */
{
    static const struct {
        uint32_t number, word;
        int socket;
        bool dials;
    } lies[] = {
        {0, WORD(0, 4), 0, false}, {0, WORD(4, 4), 0, false}, {0, WORD(STRIPE_DATA, 0), 0, false},
        {0, WORD(STRIPE_DATA, STRIPE_RECORD_MOST + 1), 0, false}, {UINT32_MAX, WORD(STRIPE_DATA, 4), 0, false},
        {0, WORD(STRIPE_LEAVE, 0), 0, false}, {1, WORD(STRIPE_LEAVE, 0), 1, false}, {0, WORD(STRIPE_LEAVE, 1), 1, false},
        {2, WORD(STRIPE_WANT, 0), 0, false}, {2, WORD(STRIPE_WANT, 0), 1, true}, {0, WORD(STRIPE_WANT, 0), 0, true},
        {STRIPE_SOCKETS + 1, WORD(STRIPE_WANT, 0), 0, true}, {2, WORD(STRIPE_WANT, 1), 0, true},
    };
    for (size_t i = 0; i < sizeof lies / sizeof lies[0]; i++) {
        struct bare b;
        size_t moved;
        bare_open(&b, lies[i].dials);
        struct transport *t = &b.pair.end[lies[i].dials ? 0 : 1];
        put_head(b.fd[lies[i].socket], lies[i].number, lies[i].word);
        pccl_status st = receive_once(t, &moved);
        EXPECT(st == PCCL_ERR_PROTOCOL && moved == 0);
        EXPECT_EQ(receive_once(t, &moved), PCCL_ERR_CLOSED); /* for good */
        EXPECT_EQ(t->ops->send(t, &(struct iovec){&b, 8}, 1, &moved), PCCL_ERR_CLOSED);
        bare_close(&b, lies[i].dials);
    }
}

TEST(a_number_that_comes_twice_breaks_the_stripe)
{
    struct bare b;
    size_t moved;
    bare_open(&b, false);
    put_head(b.fd[0], 5, WORD(STRIPE_DATA, 4));
    EXPECT_EQ(receive_once(&b.pair.end[1], &moved), PCCL_ERR_AGAIN);
    put_head(b.fd[1], 5, WORD(STRIPE_DATA, 4));
    EXPECT_EQ(b.pair.end[1].ops->hear(&b.pair.end[1]), PCCL_OK);
    EXPECT_EQ(receive_once(&b.pair.end[1], &moved), PCCL_ERR_PROTOCOL);
    bare_close(&b, false);
}

TEST(a_later_record_waits_in_its_socket) /* memory would be the other end's to fill */
{
    struct bare b;
    size_t moved;
    unsigned char bytes[64] = {1, 2, 3};
    bare_open(&b, false);
    put_head(b.fd[1], 1, WORD(STRIPE_DATA, sizeof bytes));
    EXPECT_EQ(write(b.fd[1], bytes, sizeof bytes), (ssize_t)sizeof bytes);
    EXPECT_EQ(receive_once(&b.pair.end[1], &moved), PCCL_ERR_AGAIN);
    EXPECT_EQ(recv(b.pair.end[1].stripe->socket[1]->fd, bytes, sizeof bytes, MSG_PEEK), (ssize_t)sizeof bytes);
    put_head(b.fd[0], 0, WORD(STRIPE_DATA, 3));
    EXPECT_EQ(write(b.fd[0], bytes, 3), 3);
    EXPECT_EQ(b.pair.end[1].ops->hear(&b.pair.end[1]), PCCL_OK);
    EXPECT_EQ(receive_once(&b.pair.end[1], &moved), PCCL_OK);
    EXPECT_EQ(moved, 3 + sizeof bytes);
    bare_close(&b, false);
}

TEST(a_socket_that_ends_without_a_word_ends_the_stripe) /* its records would be missing for ever */
{
    for (int lost = 0; lost < 2; lost++) {
        struct bare b;
        size_t moved;
        bare_open(&b, false);
        fds_close(b.fd[lost]);
        b.fd[lost] = -1;
        EXPECT_EQ(b.pair.end[1].ops->hear(&b.pair.end[1]), PCCL_OK);
        EXPECT_EQ(receive_once(&b.pair.end[1], &moved), PCCL_ERR_CLOSED);
        bare_close(&b, false);
    }
}

/* Bytes of records that a test's socket has got so far, and their numbers; *left: what is missing of the last one. */
static size_t read_records(int fd, bool *seen, uint32_t *left)
{
    static unsigned char in[STRIPE_RECORD_MOST];
    size_t total = 0;
    for (;;) {
        struct stripe_record m = {.length = 0};
        struct reader r;
        unsigned char head[STRIPE_HEAD_BYTES];
        while (*left > 0) {
            ssize_t n = read(fd, in, *left);
            if (n <= 0) {
                return total;
            }
            *left -= (uint32_t)n;
            total += (size_t)n;
        }
        if (recv(fd, head, sizeof head, MSG_PEEK | MSG_DONTWAIT) < (ssize_t)sizeof head) {
            return total;
        }
        EXPECT_EQ(read(fd, head, sizeof head), (ssize_t)sizeof head);
        reader_init(&r, head, sizeof head);
        EXPECT(get_stripe_record(&r, &m) && m.kind == STRIPE_DATA && m.number < 4096 && !seen[m.number]);
        seen[m.number & 4095] = true;
        *left = m.length;
    }
}

TEST(a_slow_socket_carries_less) /* a frame bound to a socket would wait for the slowest */
{
    struct bare b;
    bool seen[4096] = {false};
    size_t got[2] = {0, 0};
    uint32_t left[2] = {0, 0};
    bare_open(&b, true);
    struct transport *t = &b.pair.end[0];
    for (int round = 0; round < 200; round++) {
        while (send_some(&b.pair, 0, 40000)) {
        }
        got[0] += read_records(b.fd[0], seen, &left[0]);
        EXPECT_EQ(t->ops->hear(t), PCCL_OK);
    }
    got[1] += read_records(b.fd[1], seen, &left[1]);
    EXPECT(got[0] > 10 * got[1] && got[1] > 0);
    bare_close(&b, true);
}

TEST(a_token_that_is_forged_or_a_number_that_comes_again_is_refused) /* who listens in on a greeting could join with it */
{
    struct pair p;
    pair_open(&p, 0, 1);
    EXPECT(!transport_stripe_admit(&p.end[1], 76, 1));
    EXPECT(!transport_stripe_admit(&p.end[1], 77, 0));
    EXPECT(!transport_stripe_admit(&p.end[0], 77, 1)); /* nobody dials the end that dials */
    EXPECT(transport_stripe_admit(&p.end[1], 77, 3));
    EXPECT(transport_stripe_admit(&p.end[1], 77, 1)); /* dials overtake each other */
    EXPECT(!transport_stripe_admit(&p.end[1], 77, 3));
    EXPECT(!transport_stripe_admit(&p.end[1], 77, 1));
    EXPECT(transport_stripe_admit(&p.end[1], 77, 2));
    EXPECT(transport_stripe_admit(&p.end[1], 77, 1000));
    EXPECT(!transport_stripe_admit(&p.end[1], 77, 1000 - 64)); /* too long ago to know */
    EXPECT(transport_stripe_admit(&p.end[1], 77, 1000 - 63));
    EXPECT(!transport_stripe_admit(&p.end[1], 77, 1000 - 63));
    p.budget.most = 0;
    EXPECT(!transport_stripe_admit(&p.end[1], 77, 1001));
    struct transport plain = {.fd = -1};
    EXPECT(!transport_stripe_admit(&plain, 0, 1));
    EXPECT_EQ(transport_stripe_token(&plain), 0);
    pair_close(&p);
}
