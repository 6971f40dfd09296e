/* bench_allreduce.c - all-reduce between processes of one host in the columns of nccl-tests, beside plain sockets of the same run.
 *
 * One idea: everything is measured three times, in turns, and the best of three is printed: the machine is shared, and
 * what others take away is not what is asked for.  Time is the median over the iterations at peer 0.  algbw = size /
 * time, busbw = algbw * 2(n-1)/n; #wrong counts elements that differ from the exact sum, over all peers.
 * Beside the all-reduce: an update that changes nothing, and the sync of an unchanged 64 MB state next to a plain read
 * of the same memory by as many processes.
 * Data goes through shared memory, with PCCL_SHM_DISABLE=1 over TCP.
 * Usage: bench_allreduce [PEERS [SMALLEST LARGEST]] in bytes; by default 2 and 4 peers, 4 B to 256 MB.
 * SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <sys/socket.h>

#include "bench_peers.h"

enum { RUNS = 3, SIZES = 14, STATE_BYTES = 64 << 20, STREAM_BYTES = 256 << 20, STREAM_PIECE = 256 << 10, MOST_TIMES = 2000 };
enum kind { OUT_OF_PLACE, IN_PLACE, UPDATE, SYNC, READ, KINDS };

static double times[MOST_TIMES];

/* 4 B, 16 B, ... 256 MB. */
static size_t size_at(int i)
{
    return (size_t)4 << (2 * i);
}

/* Which sizes are wanted; the peers inherit it. */
static bool wanted(size_t size)
{
    const char *least = getenv("BENCH_SMALLEST"), *most = getenv("BENCH_LARGEST");
    return (least == NULL || size >= strtoull(least, NULL, 10)) && (most == NULL || size <= strtoull(most, NULL, 10));
}

static int iterations_of(size_t size)
{
    return size <= 4096 ? 2000 : size <= 65536 ? 500 : size <= (1 << 20) ? 100 : size <= (64 << 20) ? 10 : 4;
}

/* ---- a peer -------------------------------------------------------------------------------------------------------- */

struct peer {
    pcclComm_t *comm;
    int world, index;
    float *in, *out;
    pcclReduceDescriptor_t what;
};

/* Small whole numbers: every sum is exact, in any order. */
static float input_at(size_t i, int index)
{
    return (float)(i % 13) + (float)index;
}

static void fill(const struct peer *p, float *data, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        data[i] = input_at(i, p->index);
    }
}

static uint64_t count_wrong(const struct peer *p, const float *data, size_t count)
{
    uint64_t wrong = 0;
    for (size_t i = 0; i < count; i++) {
        float expected = (float)p->world * (float)(i % 13) + (float)(p->world * (p->world - 1) / 2);
        wrong += data[i] != expected;
    }
    return wrong;
}

static double reduce_us(const struct peer *p, const float *in, float *out)
{
    double start = bench_now_us();
    bench_must(pcclAllReduce(in, out, &p->what, p->comm, NULL), "all-reduce");
    return bench_now_us() - start;
}

/* The wrong elements of all peers. */
static uint64_t sum_wrong(const struct peer *p, uint64_t wrong)
{
    uint64_t sum = 0;
    pcclReduceDescriptor_t what = {.count = 1, .op = pcclSum, .tag = 1, .src_descriptor = {.datatype = pcclUint64}};
    bench_must(pcclAllReduce(&wrong, &sum, &what, p->comm, NULL), "sum up what is wrong");
    return sum;
}

static void measure_reduce(struct peer *p, size_t size, enum kind kind)
{
    size_t count = size / sizeof(float);
    int n = iterations_of(size);
    const float *in = kind == IN_PLACE ? p->out : p->in;
    p->what.count = count;
    fill(p, p->in, count);
    fill(p, p->out, count); /* in place the sums grow from one to the next, which costs nothing */
    for (int i = 0; i < n / 10 + 1; i++) {
        (void)reduce_us(p, in, p->out);
    }
    for (int i = 0; i < n; i++) {
        times[i] = reduce_us(p, in, p->out);
    }
    fill(p, p->out, count);
    (void)reduce_us(p, in, p->out);
    uint64_t wrong = sum_wrong(p, count_wrong(p, p->out, count));
    if (p->index == 0) {
        bench_tell(kind, size, bench_quantile(times, (size_t)n, 0.5), wrong);
    }
}

static void measure_update(struct peer *p)
{
    enum { TIMES = 300 };
    for (int i = 0; i < TIMES; i++) {
        double start = bench_now_us();
        bench_must(pcclUpdateTopology(p->comm), "update");
        times[i] = bench_now_us() - start;
    }
    if (p->index == 0) {
        bench_tell(UPDATE, 0, bench_quantile(times, TIMES, 0.5), 0);
    }
}

/* All peers begin at the same time. */
static void barrier(const struct peer *p)
{
    (void)sum_wrong(p, 0);
}

static void measure_state(struct peer *p)
{
    enum { TIMES = 9 };
    size_t words = STATE_BYTES / sizeof(uint64_t);
    uint64_t *state = malloc(STATE_BYTES);
    double sync_us[TIMES], read_us[TIMES];
    volatile uint64_t sink = 0; /* so that the sums are wanted */
    if (state == NULL) {
        exit(1);
    }
    for (size_t i = 0; i < words; i++) {
        state[i] = i * 0x9E3779B97F4A7C15u;
    }
    pcclTensorInfo_t tensor = {.name = "state", .data = state, .count = words, .datatype = pcclUint64};
    pcclSharedState_t shared = {.count = 1, .infos = &tensor};
    for (int i = 0; i < TIMES; i++) {
        pcclSharedStateSyncInfo_t info = {0};
        barrier(p);
        double start = bench_now_us();
        shared.revision++;
        bench_must(pcclSynchronizeSharedState(p->comm, &shared, PCCL_SHARED_STATE_SYNC_STRATEGY_ENFORCE_POPULAR, &info),
                   "sync");
        sync_us[i] = bench_now_us() - start;
        barrier(p);
        start = bench_now_us();
        uint64_t sum[8] = {0};
        for (size_t w = 0; w < words; w += 8) {
            for (size_t l = 0; l < 8; l++) {
                sum[l] += state[w + l];
            }
        }
        for (size_t l = 0; l < 8; l++) {
            sink += sum[l];
        }
        read_us[i] = bench_now_us() - start;
        barrier(p); /* the slowest reader ends before the next sync begins */
    }
    if (p->index == 0) {
        bench_tell(SYNC, STATE_BYTES, bench_quantile(sync_us, TIMES, 0.5), 0);
        bench_tell(READ, STATE_BYTES, bench_quantile(read_us, TIMES, 0.5), 0);
    }
    (void)sink;
    free(state);
}

static int peer_main(uint16_t port, int world, int index)
{
    struct peer p = {.world = world, .index = index};
    size_t most = size_at(SIZES - 1);
    p.what = (pcclReduceDescriptor_t){.op = pcclSum, .src_descriptor = {.datatype = pcclFloat}};
    p.in = malloc(most);
    p.out = malloc(most);
    if (p.in == NULL || p.out == NULL) {
        fprintf(stderr, "no memory\n");
        return 1;
    }
    p.comm = bench_join(port, world);
    for (int i = 0; i < SIZES; i++) {
        if (wanted(size_at(i))) {
            measure_reduce(&p, size_at(i), OUT_OF_PLACE);
            measure_reduce(&p, size_at(i), IN_PLACE);
        }
    }
    measure_update(&p);
    measure_state(&p);
    bench_must(pcclDestroyCommunicator(p.comm), "destroy");
    free(p.in);
    free(p.out);
    return 0;
}

/* ---- plain sockets ------------------------------------------------------------------------------------------------- */

static void socket_pair(int fds[2])
{
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof at;
    int on = 1, listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    struct sockaddr *address = (struct sockaddr *)(void *)&at;
    fds[0] = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (bind(listener, address, size) != 0 || listen(listener, 1) != 0 || getsockname(listener, address, &size) != 0 ||
        connect(fds[0], address, size) != 0 || (fds[1] = accept(listener, NULL, NULL)) < 0) {
        perror("sockets");
        exit(1);
    }
    for (int i = 0; i < 2; i++) {
        setsockopt(fds[i], IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
        setsockopt(fds[i], IPPROTO_TCP, TCP_CONGESTION, "cubic", 5); /* as the library does on loopback */
    }
    close(listener);
}

static void move_all(int fd, bool out, size_t bytes)
{
    static char piece[2][STREAM_PIECE];
    while (bytes > 0) {
        size_t want = bytes < STREAM_PIECE ? bytes : STREAM_PIECE;
        ssize_t n = out ? send(fd, piece[0], want, MSG_NOSIGNAL) : recv(fd, piece[1], want, 0);
        if (n <= 0) {
            exit(1);
        }
        bytes -= (size_t)n;
    }
}

static void *sender_main(void *fd)
{
    move_all(*(int *)fd, true, STREAM_BYTES);
    return NULL;
}

static void stream_both_ways(int fd)
{
    pthread_t sender;
    if (pthread_create(&sender, NULL, sender_main, &fd) != 0) {
        exit(1);
    }
    move_all(fd, false, STREAM_BYTES);
    pthread_join(sender, NULL);
}

/* Median round trip of 4 bytes in us, and GB/s in each direction of one connection that is busy in both. */
static void measure_plain(double *round_trip_us, double *stream_gbps)
{
    enum { ROUNDS = 2000 };
    int fds[2];
    char word[4] = {0};
    socket_pair(fds);
    pid_t child = fork();
    int fd = child == 0 ? fds[1] : fds[0];
    for (int i = 0; i < ROUNDS; i++) {
        double start = bench_now_us();
        bool ok = child == 0 ? recv(fd, word, 4, MSG_WAITALL) == 4 && send(fd, word, 4, MSG_NOSIGNAL) == 4
                             : send(fd, word, 4, MSG_NOSIGNAL) == 4 && recv(fd, word, 4, MSG_WAITALL) == 4;
        times[i] = bench_now_us() - start;
        if (!ok) {
            _exit(1);
        }
    }
    double start = bench_now_us();
    stream_both_ways(fd);
    if (child == 0) {
        _exit(0);
    }
    *stream_gbps = (double)STREAM_BYTES / 1e3 / (bench_now_us() - start);
    *round_trip_us = bench_quantile(times, ROUNDS, 0.5);
    waitpid(child, NULL, 0);
    close(fds[0]);
    close(fds[1]);
}

/* ---- the table ----------------------------------------------------------------------------------------------------- */

struct best {
    double us[KINDS][SIZES];
    uint64_t wrong[KINDS][SIZES];
    double round_trip_us, stream_gbps;
    int peers_failed;
};

static void keep_best(struct best *b, const struct bench_record *r)
{
    int at = 0;
    while (r->kind <= IN_PLACE && size_at(at) != r->size) {
        at++;
    }
    double *us = &b->us[r->kind][at];
    *us = *us == 0 || r->value < *us ? r->value : *us;
    b->wrong[r->kind][at] += r->wrong;
}

static void run_once(struct best *b, int world)
{
    pcclMasterInstance_t *master;
    double round_trip, stream;
    measure_plain(&round_trip, &stream);
    b->round_trip_us = b->round_trip_us == 0 || round_trip < b->round_trip_us ? round_trip : b->round_trip_us;
    b->stream_gbps = stream > b->stream_gbps ? stream : b->stream_gbps;
    uint16_t port = bench_master_start(&master);
    pid_t pids[BENCH_PEERS_MAX];
    int records[BENCH_PEERS_MAX];
    for (int i = 0; i < world; i++) {
        pids[i] = bench_peer_start(port, world, i, &records[i]);
    }
    struct bench_record r;
    while (bench_hear(records[0], &r)) {
        keep_best(b, &r);
    }
    for (int i = 0; i < world; i++) {
        int status = 0;
        waitpid(pids[i], &status, 0);
        b->peers_failed += status != 0;
        close(records[i]);
    }
    bench_master_end(master);
}

static void print_side(const struct best *b, enum kind kind, int at, int world)
{
    double us = b->us[kind][at], algbw = us > 0 ? (double)size_at(at) / 1e3 / us : 0;
    printf(" %10.1f %7.3f %7.3f %7" PRIu64, us, algbw, algbw * 2 * (world - 1) / world, b->wrong[kind][at]);
}

static void print_table(const struct best *b, int world)
{
    printf("\n# all-reduce, %d peers of one host, pool 1, best of %d runs (time: median of the iterations at peer 0)\n",
           world, RUNS);
    printf("# plain sockets in the same runs: 4-byte ping-pong %.1f us; two-way stream %.2f GB/s in each direction\n",
           b->round_trip_us, b->stream_gbps);
    printf("#%43s %-34s  %-34s\n", "", "          out-of-place", "          in-place");
    printf("#%10s %12s %9s %8s %10s %7s %7s %7s %10s %7s %7s %7s\n", "size", "count", "type", "redop", "time", "algbw",
           "busbw", "#wrong", "time", "algbw", "busbw", "#wrong");
    printf("#%10s %12s %9s %8s %10s %7s %7s %7s %10s %7s %7s %7s\n", "(B)", "(elements)", "", "", "(us)", "(GB/s)",
           "(GB/s)", "", "(us)", "(GB/s)", "(GB/s)", "");
    for (int at = 0; at < SIZES; at++) {
        if (!wanted(size_at(at))) {
            continue;
        }
        printf(" %10zu %12zu %9s %8s", size_at(at), size_at(at) / sizeof(float), "float", "sum");
        print_side(b, OUT_OF_PLACE, at, world);
        print_side(b, IN_PLACE, at, world);
        printf("\n");
    }
    double limit_ms = 0.5 + 2 * b->us[READ][0] / 1e3;
    printf("# update that changes nothing: %.3f ms\n", b->us[UPDATE][0] / 1e3);
    printf("# sync of an unchanged 64 MB state: %.2f ms; plain read of the same memory by %d processes: %.2f ms "
           "(0.5 ms + twice that: %.2f ms)\n",
           b->us[SYNC][0] / 1e3, world, b->us[READ][0] / 1e3, limit_ms);
    fflush(stdout);
}

int main(int argc, char **argv)
{
    if (argc == 5 && strcmp(argv[1], "peer") == 0) {
        return peer_main((uint16_t)atoi(argv[2]), atoi(argv[3]), atoi(argv[4]));
    }
    int failed = 0, first = argc > 1 ? atoi(argv[1]) : 2, last = argc > 1 ? first : 4;
    if (first < 2 || first > BENCH_PEERS_MAX || (argc != 1 && argc != 2 && argc != 4)) {
        fprintf(stderr, "usage: bench_allreduce [PEERS [SMALLEST LARGEST]]\n");
        return 2;
    }
    if (argc == 4) {
        setenv("BENCH_SMALLEST", argv[2], 1);
        setenv("BENCH_LARGEST", argv[3], 1);
    }
    for (int world = first; world <= last; world += 2) {
        struct best b = {0};
        for (int run = 0; run < RUNS; run++) {
            run_once(&b, world);
        }
        print_table(&b, world);
        failed += b.peers_failed;
    }
    if (failed > 0) {
        printf("# %d peers ended with an error\n", failed);
    }
    return failed != 0;
}
