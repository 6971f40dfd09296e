/* distant.h - what the programs of distant.py have in common: they begin each call together, and say when it began and ended.
 *
 * One idea: the hosts of an emulated network share this machine's clock and files.  So ranks meet in a file, which moves no
 * packet: the first call finds connections as they are, and all implementations begin alike.  Byte 0 of the file is an order of
 * rank 0, or the word of one that failed; byte 1 + r counts the meetings of rank r.
 * Invariant: all ranks make the same calls, since each reads the order behind the same meeting.
 * SPDX-License-Identifier: MIT */
#ifndef DISTANT_H
#define DISTANT_H

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

enum { DISTANT_MOST = 64, DISTANT_LOOK_US = 200, DISTANT_PERIOD = 13 };
enum { DISTANT_GO_ON, DISTANT_STOP, DISTANT_FAILED };

struct distant {
    size_t bytes;             /* of the buffer */
    int calls;                /* warm ones, at most */
    double budget_s, idle_s;  /* of the warm calls together, at least one of them; before the last call, 0: no such call */
    int rank, world;
    unsigned char *file;      /* mapped */
    unsigned char meetings;
};

static unsigned char *distant_file; /* for the end of a process that has not finished */

static inline double distant_now_s(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static inline void distant_fail(const char *what, const char *why)
{
    fprintf(stderr, "%s: %s\n", what, why);
    exit(1);
}

static inline void distant_at_exit(void)
{
    if (distant_file != NULL) {
        __atomic_store_n(distant_file, DISTANT_FAILED, __ATOMIC_RELEASE);
    }
}

static inline const char *distant_variable(const char *name)
{
    const char *text = getenv(name);
    if (text == NULL) {
        distant_fail(name, "is not set: distant.py starts this program under pccl wan run");
    }
    return text;
}

/* From the words BYTES CALLS BUDGET_S IDLE_S, behind which `more` others must stand. */
static inline void distant_begin(struct distant *d, int argc, char **argv, int more)
{
    if (argc != 5 + more) {
        distant_fail("usage", "PROGRAM BYTES CALLS BUDGET_S IDLE_S ..., as distant.py gives them");
    }
    *d = (struct distant){.bytes = strtoull(argv[1], NULL, 10), .calls = atoi(argv[2]), .budget_s = atof(argv[3]), .idle_s = atof(argv[4])};
    d->rank = atoi(distant_variable("PCCL_WAN_RANK"));
    d->world = atoi(distant_variable("PCCL_WAN_HOSTS"));
    int fd = open(distant_variable("DISTANT_MEET"), O_RDWR | O_CLOEXEC);
    void *file = fd >= 0 ? mmap(NULL, 1 + DISTANT_MOST, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0) : MAP_FAILED;
    if (file == MAP_FAILED || d->world > DISTANT_MOST || d->rank >= d->world || d->bytes < sizeof(float)) {
        distant_fail("meeting, ranks or bytes", strerror(errno));
    }
    close(fd);
    d->file = distant_file = file;
    atexit(distant_at_exit);
}

/* Waits for all ranks; ends this process if one of them has failed. */
static inline void distant_meet(struct distant *d)
{
    d->meetings++;
    __atomic_store_n(&d->file[1 + d->rank], d->meetings, __ATOMIC_RELEASE);
    for (int r = 0; r < d->world; r++) {
        while ((signed char)(__atomic_load_n(&d->file[1 + r], __ATOMIC_ACQUIRE) - d->meetings) < 0) {
            if (__atomic_load_n(d->file, __ATOMIC_ACQUIRE) == DISTANT_FAILED) {
                distant_fail("meeting", "another rank has failed");
            }
            usleep(DISTANT_LOOK_US);
        }
    }
}

static inline void distant_end(struct distant *d)
{
    distant_meet(d);
    distant_file = NULL;
    munmap(d->file, 1 + DISTANT_MOST);
}

/* An implementation: `begin` makes the buffers what they are before a call, `wrong` counts the elements that are not as they must be. */
struct distant_calls {
    void (*begin)(void *), (*call)(void *);
    long (*wrong)(void *);
    void *context; /* borrowed */
};

/* At rank 0; a word of failure stays. */
static inline void distant_order(struct distant *d, unsigned char from, unsigned char order)
{
    if (d->rank == 0) {
        (void)__atomic_compare_exchange_n(d->file, &from, order, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE);
    }
}

/* One call; its seconds, negative: the order was to stop. */
static inline double distant_once(struct distant *d, const struct distant_calls *c, const char *kind)
{
    c->begin(c->context);
    distant_meet(d);
    if (__atomic_load_n(d->file, __ATOMIC_ACQUIRE) == DISTANT_STOP) {
        return -1;
    }
    double start = distant_now_s();
    c->call(c->context);
    double end = distant_now_s();
    printf("{\"kind\": \"%s\", \"rank\": %d, \"start_s\": %.6f, \"end_s\": %.6f, \"wrong\": %ld}\n", kind, d->rank, start, end,
           c->wrong(c->context));
    fflush(stdout);
    return end - start;
}

static inline void distant_measure(struct distant *d, const struct distant_calls *c)
{
    distant_order(d, DISTANT_STOP, DISTANT_GO_ON); /* of the measuring before */
    double spent = 0, one = distant_once(d, c, "first");
    for (int i = 0; one >= 0; i++) {
        if (i >= d->calls || (i > 0 && spent >= d->budget_s)) {
            distant_order(d, DISTANT_GO_ON, DISTANT_STOP); /* read behind the next meeting */
        }
        one = distant_once(d, c, "warm");
        spent += one;
    }
    distant_meet(d); /* all have read the order */
    if (d->idle_s > 0) {
        struct timespec t = {.tv_sec = (time_t)d->idle_s, .tv_nsec = (long)((d->idle_s - (double)(time_t)d->idle_s) * 1e9)};
        distant_order(d, DISTANT_STOP, DISTANT_GO_ON);
        nanosleep(&t, NULL);
        (void)distant_once(d, c, "idle");
    }
}

/* Small whole numbers, whose sums are exact. */
static inline float distant_given(int rank, size_t i)
{
    return (float)(i % DISTANT_PERIOD + (size_t)rank);
}

static inline float distant_sum(int world, size_t i)
{
    return (float)((size_t)world * (i % DISTANT_PERIOD)) + (float)(world * (world - 1) / 2);
}

static inline void *distant_memory(size_t bytes)
{
    void *p = malloc(bytes);
    if (p == NULL) {
        distant_fail("memory", "there is too little");
    }
    return memset(p, 0, bytes);
}

#endif
