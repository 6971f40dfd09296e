/* test_eager.c - what a small all-reduce costs: two frames each way and no other thread.
 *
 * One process per peer; both are inside the call nearly all the time.  Frames are counted by bytes: the encoders say how
 * long each message is, so the bytes of the control link say how many there were.
 * SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#include "tests/testing.h"

#include <dirent.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "tests/fault/peer_calls.h"
#include "wire/frame.h"
#include "wire/p2p.h"

enum { BATCH = 64, ROUND = 4 * BATCH, ROUNDS = 10, OPERATIONS = ROUNDS * ROUND };

/* Voluntary context switches of all threads of this process but the calling one: each wake-up ends in one. */
static int64_t others_switches(void)
{
    int64_t sum = 0;
    pid_t self = (pid_t)syscall(SYS_gettid);
    DIR *tasks = opendir("/proc/self/task");
    for (struct dirent *e = tasks != NULL ? readdir(tasks) : NULL; e != NULL; e = readdir(tasks)) {
        char path[300], line[128];
        snprintf(path, sizeof path, "/proc/self/task/%s/status", e->d_name);
        FILE *f = atoi(e->d_name) > 0 && atoi(e->d_name) != self ? fopen(path, "r") : NULL;
        while (f != NULL && fgets(line, sizeof line, f) != NULL) {
            long long n;
            sum += sscanf(line, "voluntary_ctxt_switches: %lld", &n) == 1 ? n : 0;
        }
        if (f != NULL) {
            fclose(f);
        }
    }
    if (tasks != NULL) {
        closedir(tasks);
    }
    return sum;
}

/* How often the machine has taken the calling thread off its core. */
static int64_t own_preemptions(void)
{
    struct rusage u;
    return getrusage(RUSAGE_THREAD, &u) == 0 ? u.ru_nivcsw : 0;
}

/* value[0], [1]: bytes sent and received on the control link; value[2]: wake-ups of other threads in the quietest round,
 * beyond one for each preemption of the caller; [3]: ns. */
static void small_reduces(struct peer *self, const void *argument, struct reply *reply)
{
    int count = *(const int *)argument;
    pcclReduceDescriptor_t d = peer_floats(1, 3);
    pcclConnectionStats_t before[4], after[4];
    size_t links = 0;
    struct timespec begin, end;
    EXPECT_EQ(pcclGetConnectionStats(self->comm, before, 4, &links), pcclSuccess);
    int64_t switches = others_switches() - own_preemptions();
    reply->value[2] = INT64_MAX;
    clock_gettime(CLOCK_MONOTONIC, &begin);
    for (int i = 0; i < count; i++) {
        float in = (float)(self->index + i), out = 0;
        EXPECT_EQ(pcclAllReduce(&in, &out, &d, self->comm, NULL), pcclSuccess);
        EXPECT(out == (float)(2 * i + 1));
        if ((i + 1) % ROUND == 0) {
            int64_t now = others_switches() - own_preemptions();
            reply->value[2] = now - switches < reply->value[2] ? now - switches : reply->value[2];
            switches = now;
        }
    }
    clock_gettime(CLOCK_MONOTONIC, &end);
    reply->value[3] = (end.tv_sec - begin.tv_sec) * INT64_C(1000000000) + end.tv_nsec - begin.tv_nsec;
    EXPECT_EQ(pcclGetConnectionStats(self->comm, after, 4, &links), pcclSuccess);
    for (size_t i = 0; i < links && i < 4; i++) {
        if (after[i].lane == UINT32_MAX) {
            reply->value[0] = (int64_t)(after[i].tx_bytes - before[i].tx_bytes);
            reply->value[1] = (int64_t)(after[i].rx_bytes - before[i].rx_bytes);
        }
    }
}

/* Bytes of EAGER with one float and of HOLD, and of a FINISHED with a batch. */
static int64_t bytes_of_operations(int count)
{
    unsigned char raw[2048];
    struct writer w;
    writer_init(&w, raw, sizeof raw);
    put_eager(&w, &(struct msg_eager){.bytes = 4});
    put_hold(&w, &(struct msg_hold){.round = 0});
    int64_t each = (int64_t)w.used + 4 + 2 * FRAME_HEADER_BYTES;
    writer_init(&w, raw, sizeof raw);
    put_finished(&w, &(struct msg_finished){.names = BATCH});
    for (int i = 0; i < BATCH; i++) {
        put_op_name(&w, &(struct op_name){.tag = 3});
    }
    return count * each + count / BATCH * ((int64_t)w.used + FRAME_HEADER_BYTES);
}

TEST(small_reduce_is_two_frames_each_way_and_wakes_no_thread) /* a hand-over or a third message doubles the latency */
{
    struct processes all;
    struct reply reply[PROCESSES_MOST];
    struct processes_options o = {.count = 2, .failures = &test_failures, .pool = 1};
    if (!processes_start(&all, &o)) {
        EXPECT(!"start");
        return;
    }
    int two = 2, warm = BATCH, count = OPERATIONS;
    processes_do(&all, 3, peer_join, &two, sizeof two, NULL);
    processes_do(&all, 3, small_reduces, &warm, sizeof warm, NULL);
    processes_do(&all, 3, small_reduces, &count, sizeof count, reply);
    for (int i = 0; i < 2; i++) {
        /* Beside the operations: heartbeats of 32 bytes a second, and FINISHED sent early by its timer. */
        int64_t seconds = reply[i].value[3] / 1000000000 + 2;
        int64_t slack = seconds * FRAME_HEADER_BYTES + (seconds * 10 + 2) * 2 * FRAME_HEADER_BYTES;
        int64_t expected = bytes_of_operations(OPERATIONS);
        printf("peer %d: %lld bytes sent, %lld expected of 2 frames per operation; %lld wake-ups beyond preemptions in %d\n", i,
               (long long)reply[i].value[0], (long long)expected, (long long)reply[i].value[2], ROUND);
        EXPECT(reply[i].value[0] >= expected - 1024 && reply[i].value[0] <= expected + slack);
        EXPECT(reply[i].value[1] >= expected - 1024 && reply[i].value[1] <= expected + slack);
        /* Clocks wake other threads, and a poller looks after the lane when a busy machine preempts the caller between two
         * calls.  A hand-over would be one wake-up per operation or more. */
        EXPECT(reply[i].value[2] <= ROUND / 2);
    }
    processes_stop(&all);
}
