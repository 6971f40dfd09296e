/* wan_stream_main.c - plain sockets between hosts of an emulated network, for its calibration.
 *
 *   wan_stream_main pong             answers datagrams, until it is killed
 *   wan_stream_main ping HOST N      sends one datagram after the other; prints the least and the mean time to the answer, in ms
 *   wan_stream_main steady HOST      the same without end; prints "answer" and "silence" when that changes
 *   wan_stream_main burst HOST N     sends N datagrams at once, and waits until they have arrived, or been lost
 *   wan_stream_main take             accepts one connection and reads it; prints Mb/s from the first byte on and from the fifth second on
 *   wan_stream_main give HOST S CC   sends for S seconds under that congestion control
 *
 * Whoever comes first waits for the other: a connect is repeated for 10 s.
 * SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum { PORT = 47100, BLOCK = 256 << 10, TRIES = 100, TRY_MS = 100, WARM_S = 5, SILENT = 10, STEP_MS = 50, ARRIVAL_MS = 500 };

static double now_s(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static int fail(const char *what)
{
    fprintf(stderr, "%s: %s\n", what, strerror(errno));
    return 1;
}

static int new_socket(int type, const char *host, bool binds)
{
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_port = htons(PORT), .sin_addr.s_addr = htonl(INADDR_ANY)};
    const struct sockaddr *address = (const struct sockaddr *)(const void *)&at;
    int fd = socket(AF_INET, type, 0), on = 1;
    if (host != NULL && inet_pton(AF_INET, host, &at.sin_addr) != 1) {
        errno = EINVAL;
        return -1;
    }
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    return (binds ? bind(fd, address, sizeof at) : connect(fd, address, sizeof at)) == 0 ? fd : (close(fd), -1);
}

static int pong(void)
{
    char text[64];
    struct sockaddr_in from;
    int fd = new_socket(SOCK_DGRAM, NULL, true);
    for (;;) {
        socklen_t size = sizeof from;
        ssize_t n = recvfrom(fd, text, sizeof text, 0, (struct sockaddr *)(void *)&from, &size);
        if (n < 0 || sendto(fd, text, (size_t)n, 0, (const struct sockaddr *)(const void *)&from, size) != n) {
            return fail("pong");
        }
    }
}

static int ping(const char *host, int count)
{
    int fd = new_socket(SOCK_DGRAM, host, false), answers = 0;
    double least = 1e9, sum = 0;
    for (int i = 0; i < 4 * count + TRIES && answers < count; i++) {
        double sent = now_s();
        int number = -1;
        struct pollfd p = {.fd = fd, .events = POLLIN};
        if (send(fd, &i, sizeof i, 0) != (ssize_t)sizeof i) {
            return fail("send");
        }
        while (number != i && poll(&p, 1, 2000) > 0) { /* an old answer is none */
            if (recv(fd, &number, sizeof number, 0) < 0 && errno != ECONNREFUSED) {
                return fail("receive");
            }
            if (number < 0) { /* nobody there yet */
                (void)poll(NULL, 0, TRY_MS);
                break;
            }
        }
        if (number == i) {
            double ms = (now_s() - sent) * 1e3;
            least = ms < least ? ms : least;
            sum += ms;
            answers++;
        }
    }
    printf("rtt least %.3f mean %.3f of %d\n", least, answers > 0 ? sum / answers : 0.0, answers);
    return answers < count;
}

__attribute__((noreturn)) static void steady(const char *host)
{
    int fd = new_socket(SOCK_DGRAM, host, false), silent = 0, state = -1;
    char byte = 0;
    for (;;) {
        struct pollfd p = {.fd = fd, .events = POLLIN};
        (void)!send(fd, &byte, 1, 0); /* refused while nobody listens yet: silence */
        bool answered = poll(&p, 1, STEP_MS) > 0 && recv(fd, &byte, 1, 0) == 1;
        silent = answered ? 0 : silent + 1;
        int now = answered ? 1 : silent > SILENT ? 0 : state;
        if (now != state) {
            state = now;
            puts(state == 1 ? "answer" : "silence");
            fflush(stdout);
        }
    }
}

static int burst(const char *host, int count)
{
    int fd = new_socket(SOCK_DGRAM, host, false);
    for (int i = 0; i < count;) {
        bool sent = send(fd, &i, sizeof i, 0) == (ssize_t)sizeof i;
        if (!sent && errno != ECONNREFUSED) { /* which tells of an earlier one: nobody listens, nor needs to */
            return fail("burst");
        }
        i += sent;
    }
    (void)poll(NULL, 0, ARRIVAL_MS);
    return 0;
}

static int take(void)
{
    char *block = malloc(BLOCK);
    int listener = new_socket(SOCK_STREAM, NULL, true);
    int fd = listener >= 0 && listen(listener, 1) == 0 ? accept(listener, NULL, NULL) : -1;
    if (fd < 0 || block == NULL) {
        return fail("take");
    }
    double first = 0, warm = 0, last = 0;
    uint64_t all = 0, since = 0;
    for (ssize_t n; (n = read(fd, block, BLOCK)) > 0;) {
        last = now_s();
        first = all == 0 ? last : first;
        all += (uint64_t)n;
        if (last - first >= WARM_S) {
            since += warm > 0 ? (uint64_t)n : 0;
            warm = warm > 0 ? warm : last;
        }
    }
    free(block);
    printf("taken %.2f Mb/s warm %.2f Mb/s\n", last > first ? (double)all * 8e-6 / (last - first) : 0.0,
           last > warm && warm > 0 ? (double)since * 8e-6 / (last - warm) : 0.0);
    return 0;
}

static int give(const char *host, double seconds, const char *congestion)
{
    char *block = calloc(1, BLOCK);
    int fd = -1;
    for (int i = 0; i < TRIES && fd < 0; i++) {
        fd = new_socket(SOCK_STREAM, host, false);
        if (fd < 0) {
            (void)poll(NULL, 0, TRY_MS);
        }
    }
    if (fd < 0 || block == NULL || setsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, congestion, (socklen_t)strlen(congestion)) != 0) {
        return fail("give");
    }
    for (double end = now_s() + seconds; now_s() < end;) {
        if (write(fd, block, BLOCK) < 0) {
            return fail("write");
        }
    }
    free(block);
    struct linger off = {.l_onoff = 1, .l_linger = 0}; /* what is still queued is not waited for */
    struct tcp_info info;
    socklen_t size = sizeof info;
    if (getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &size) == 0) {
        printf("given, retransmitted %u of mss %u\n", info.tcpi_total_retrans, info.tcpi_snd_mss);
    }
    setsockopt(fd, SOL_SOCKET, SO_LINGER, &off, sizeof off);
    return close(fd) != 0;
}

int main(int argc, char **argv)
{
    if (argc == 2 && strcmp(argv[1], "pong") == 0) {
        return pong();
    }
    if (argc == 4 && strcmp(argv[1], "ping") == 0) {
        return ping(argv[2], atoi(argv[3]));
    }
    if (argc == 3 && strcmp(argv[1], "steady") == 0) {
        steady(argv[2]);
    }
    if (argc == 4 && strcmp(argv[1], "burst") == 0) {
        return burst(argv[2], atoi(argv[3]));
    }
    if (argc == 2 && strcmp(argv[1], "take") == 0) {
        return take();
    }
    if (argc == 5 && strcmp(argv[1], "give") == 0) {
        return give(argv[2], atof(argv[3]), argv[4]);
    }
    fprintf(stderr, "usage: see the head of wan_stream_main.c\n");
    return 2;
}
