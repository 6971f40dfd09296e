/* bench_quant.c - a quantised all-reduce over a slow link and over loopback: its time, its bytes on the wire, its error.
 *
 * Two peers, each in a network namespace of its own, behind a token bucket of 100 Mb/s in either direction, then without it; both
 * forms of quantisation and plain floats in turns, out of place, values with the spread of gradients.  Time is the median over the
 * rounds at peer 0; bytes are what the operation says it has sent, beside those of the floats; the error is the largest of all
 * elements, against the sum in double, as a part of the range of all inputs.
 * Usage: bench_quant [MIB], of floats; by default 32.  Without the right to make namespaces: over loopback only.
 * SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <libgen.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <poll.h>
#include <time.h>
#include <unistd.h>

#include "core/random.h"
#include "tests/fault/peer_calls.h"

enum { ROUNDS = 3, FORMS = 5 };

static int failures;

static const struct form {
    const char *name;
    pcclQuantizationAlgorithm_t algorithm;
    pcclDataType_t type;
} forms[FORMS] = {
    {"floats", pcclQuantNone, pcclUint8},
    {"MinMax u8", pcclQuantMinMax, pcclUint8},
    {"MinMax u16", pcclQuantMinMax, pcclUint16},
    {"ZeroPointScale i8", pcclQuantZeroPointScale, pcclInt8},
    {"ZeroPointScale i16", pcclQuantZeroPointScale, pcclInt16},
};

struct job {
    size_t count;
    int form;
};

/* Three of four within a tenth of the range, as gradients are. */
static float value_of(int peer, size_t i)
{
    struct rng rng = {(uint64_t)i * 2 + (uint64_t)peer + 1};
    float wide = (float)rng_below(&rng, 2000001) / 1000000 - 1;
    return rng_below(&rng, 4) == 0 ? wide : wide / 10;
}

/* value[0]: ns; [1]: bytes sent; [2]: the largest error, in 1e-9 of the range 4 of sums of two. */
static void reduce(struct peer *self, const void *argument, struct reply *reply)
{
    const struct job *job = argument;
    const struct form *form = &forms[job->form];
    float *in = peer_buffer(self, 0, job->count * sizeof *in), *out = peer_buffer(self, 1, job->count * sizeof *out);
    pcclReduceDescriptor_t d = peer_floats(job->count, 1);
    pcclReduceInfo_t info = {0};
    struct timespec begin, end;
    for (size_t i = 0; i < job->count; i++) {
        in[i] = value_of(self->index, i);
    }
    d.quantization_options = (pcclQuantizationOptions_t){form->type, form->algorithm};
    peer_result(reply, pcclBarrier(self->comm, NULL)); /* they have not made their inputs in the same time */
    clock_gettime(CLOCK_MONOTONIC, &begin);
    peer_result(reply, pcclAllReduce(in, out, &d, self->comm, &info));
    clock_gettime(CLOCK_MONOTONIC, &end);
    double worst = 0;
    for (size_t i = 0; i < job->count; i++) {
        double error = fabs((double)out[i] - ((double)value_of(0, i) + (double)value_of(1, i)));
        worst = error > worst ? error : worst;
    }
    reply->value[0] = (end.tv_sec - begin.tv_sec) * INT64_C(1000000000) + end.tv_nsec - begin.tv_nsec;
    reply->value[1] = (int64_t)info.tx_bytes;
    reply->value[2] = (int64_t)(worst / 4 * 1e9);
}

/* ---- The limit: as many bytes through one plain socket, both ways at once ----------------------------------------------- */

struct plain {
    size_t bytes;
    bool spaces; /* the peers are in namespaces: 10.77.0.1 and 10.77.0.2 */
};

static int plain_connect(const struct peer *self, const struct plain *p)
{
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_port = htons(41999)};
    inet_pton(AF_INET, p->spaces ? "10.77.0.1" : "127.0.0.1", &at.sin_addr);
    int on = 1, fd = socket(AF_INET, SOCK_STREAM, 0);
    if (self->index == 0) {
        setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
        int got = bind(fd, (struct sockaddr *)&at, sizeof at) == 0 && listen(fd, 1) == 0 ? accept(fd, NULL, NULL) : -1;
        close(fd);
        return got;
    }
    for (int i = 0; connect(fd, (struct sockaddr *)&at, sizeof at) != 0; i++) {
        close(fd);
        if (i == 1000) {
            return -1;
        }
        usleep(10000); /* until the other end listens */
        fd = socket(AF_INET, SOCK_STREAM, 0);
    }
    return fd;
}

/* value[0]: ns. */
static void plain(struct peer *self, const void *argument, struct reply *reply)
{
    const struct plain *p = argument;
    static char bytes[128 << 10];
    size_t sent = 0, got = 0;
    int fd = plain_connect(self, p);
    struct timespec begin, end;
    clock_gettime(CLOCK_MONOTONIC, &begin);
    while (fd >= 0 && (sent < p->bytes || got < p->bytes)) {
        struct pollfd ready = {.fd = fd, .events = (short)((sent < p->bytes ? POLLOUT : 0) | (got < p->bytes ? POLLIN : 0))};
        ssize_t n = poll(&ready, 1, 10000);
        size_t left = p->bytes - sent;
        if ((ready.revents & POLLIN) != 0 && (n = recv(fd, bytes, sizeof bytes, MSG_DONTWAIT)) > 0) {
            got += (size_t)n;
        }
        if ((ready.revents & POLLOUT) != 0 && (n = send(fd, bytes, left < sizeof bytes ? left : sizeof bytes, MSG_DONTWAIT)) > 0) {
            sent += (size_t)n;
        }
        if (n <= 0 && (ready.revents & (POLLHUP | POLLERR)) != 0) {
            break;
        }
    }
    clock_gettime(CLOCK_MONOTONIC, &end);
    reply->result = fd >= 0 && got == p->bytes ? pcclSuccess : pcclInternalError;
    reply->value[0] = (end.tv_sec - begin.tv_sec) * INT64_C(1000000000) + end.tv_nsec - begin.tv_nsec;
    close(fd);
}

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static void measure(struct processes *all, size_t count, bool spaces, const char *link)
{
    double limit[ROUNDS], ms[FORMS][ROUNDS] = {{0}}, bytes[FORMS] = {0}, worst[FORMS] = {0};
    struct reply reply[PROCESSES_MOST];
    for (int round = 0; round < ROUNDS; round++) {
        struct plain p = {count * 4, spaces};
        processes_do(all, 3, plain, &p, sizeof p, reply);
        failures += reply[0].result != pcclSuccess || reply[1].result != pcclSuccess;
        limit[round] = (double)reply[0].value[0] / 1e6;
        for (int f = 0; f < FORMS; f++) {
            struct job job = {count, f};
            processes_do(all, 3, reduce, &job, sizeof job, reply);
            failures += reply[0].result != pcclSuccess || reply[1].result != pcclSuccess;
            ms[f][round] = (double)reply[0].value[0] / 1e6;
            bytes[f] = (double)reply[0].value[1];
            worst[f] = (double)reply[0].value[2] / 1e9;
        }
    }
    printf("# %s, %.1f MiB of floats, 2 peers\n%-20s %10s %8s %12s %8s %12s\n", link, (double)count * 4 / (1 << 20), "form", "ms",
           "faster", "bytes sent", "part", "error/range");
    for (int f = 0; f < FORMS; f++) {
        qsort(ms[f], ROUNDS, sizeof ms[f][0], by_value);
    }
    qsort(limit, ROUNDS, sizeof limit[0], by_value);
    printf("%-20s %10.2f %8.2f %12.0f\n", "plain stream", limit[ROUNDS / 2], ms[0][ROUNDS / 2] / limit[ROUNDS / 2], (double)count * 4);
    for (int f = 0; f < FORMS; f++) {
        printf("%-20s %10.2f %8.2f %12.0f %8.3f %12.2e\n", forms[f].name, ms[f][ROUNDS / 2], ms[0][ROUNDS / 2] / ms[f][ROUNDS / 2],
               bytes[f], bytes[f] / bytes[0], worst[f]);
    }
}

/* Where the master's program is: the build folder, two levels above this one. */
static void find_build(void)
{
    char path[PATH_MAX];
    if (realpath("/proc/self/exe", path) != NULL) {
        setenv("PCCL_BUILD_DIR", dirname(dirname(path)), 0);
    }
}

int main(int argc, char **argv)
{
    find_build();
    struct processes all;
    struct network net;
    struct processes_options options = {.count = 2, .failures = &failures, .pool = 1};
    size_t count = (argc > 1 ? strtoull(argv[1], NULL, 10) : 32) << 18;
    const char *why = network_start(&net, 2);
    if (why != NULL) {
        printf("# no slow link: %s\n", why);
    } else {
        for (int i = 0; i < 2; i++) {
            failures += !network_shape(&net, i) || !network_limit(&net, i, 1 - i, "100mbit");
        }
        if (peers_start_on(&all, &net, &options)) {
            measure(&all, count, true, "100 Mb/s each way");
            processes_stop(&all);
        }
        network_stop(&net);
    }
    setenv("PCCL_SHM_DISABLE", "1", 1);
    if (peers_start(&all, &options)) {
        measure(&all, count, false, "loopback TCP");
        processes_stop(&all);
    }
    return failures != 0;
}
