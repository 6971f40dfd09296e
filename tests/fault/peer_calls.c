/* peer_calls.c - see peer_calls.h.
 *
 * One idea: each function is one call of the library with its checks.
 * SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#include <linux/tcp.h>
#include <netinet/in.h>
#include <pthread.h>
#include <sched.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>

#include "tests/fault/peer_calls.h"

bool peers_start(struct processes *all, const struct processes_options *options)
{
    if (!processes_start(all, options)) {
        return false;
    }
    processes_do(all, processes_set(options->count), peer_join, &options->count, sizeof options->count, NULL);
    return true;
}

bool peers_start_on(struct processes *all, const struct network *net, const struct processes_options *options)
{
    struct processes_options o = *options;
    o.listen = "10.77.0.100:0";
    o.master_space = net->bridge;
    for (int i = 0; i < o.count; i++) {
        o.space[i] = net->name[i];
    }
    return peers_start(all, &o);
}

float job_value(int index, size_t i, uint64_t tag)
{
    return (float)(((i * 31 + (size_t)index * 177 + (size_t)tag * 7) & 1023)) - 511.0f;
}

float job_sum(unsigned members, size_t i, uint64_t tag)
{
    float sum = 0;
    for (int k = 0; k < PROCESSES_MOST; k++) {
        sum += (members >> k & 1) != 0 ? job_value(k, i, tag) : 0.0f;
    }
    return sum;
}

pcclComm_t *peer_world(struct peer *self, const pcclCommCreateParamsEx_t *params)
{
    pcclCommCreateParamsEx_t p = *params;
    pcclComm_t *comm = NULL;
    if (p.master_address.port == 0) {
        p.master_address = self->master;
    }
    PEER_EXPECT(self, pcclInit() == pcclSuccess);
    PEER_EXPECT(self, pcclCreateCommunicatorEx(&p, &comm) == pcclSuccess);
    PEER_EXPECT(self, pcclConnect(comm) == pcclSuccess);
    return comm;
}

int peer_size(struct peer *self, pcclAttribute_t attribute)
{
    int size = -1;
    return pcclGetAttribute(self->comm, attribute, &size) == pcclSuccess ? size : -1;
}

pcclReduceDescriptor_t peer_floats(size_t count, uint64_t tag)
{
    pcclReduceDescriptor_t d = {.count = count, .op = pcclSum, .tag = tag};
    d.src_descriptor.datatype = pcclFloat;
    return d;
}

uint64_t peer_moved(struct peer *self)
{
    pcclConnectionStats_t stats[256];
    size_t count = 0;
    uint64_t sum = 0;
    if (pcclGetConnectionStats(self->comm, stats, 256, &count) != pcclSuccess) {
        return 0;
    }
    for (size_t i = 0; i < count && i < 256; i++) {
        sum += stats[i].tx_bytes + stats[i].rx_bytes;
    }
    return sum;
}

uint64_t peer_socket_bytes(struct peer *self)
{
    (void)self;
    uint64_t sum = 0;
    for (int fd = 3; fd < 256; fd++) {
        struct tcp_info info;
        socklen_t size = sizeof info;
        memset(&info, 0, sizeof info);
        if (getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &size) == 0) {
            sum += info.tcpi_bytes_acked + info.tcpi_bytes_received;
        }
    }
    return sum;
}

/* ---- Memory ------------------------------------------------------------------------------------------------------------ */

static int64_t status_kilobytes(const char *name)
{
    char line[128];
    int64_t kilobytes = 0;
    FILE *f = fopen("/proc/self/status", "re");
    while (f != NULL && fgets(line, sizeof line, f) != NULL) {
        if (strncmp(line, name, strlen(name)) == 0) {
            kilobytes = atoll(line + strlen(name));
        }
    }
    if (f != NULL) {
        fclose(f);
    }
    return kilobytes * 1024;
}

int64_t peer_resident(void)
{
    return status_kilobytes("VmRSS:");
}

void peer_peak_reset(void)
{
    int fd = open("/proc/self/clear_refs", O_WRONLY | O_CLOEXEC);
    if (fd < 0 || write(fd, "5", 1) != 1) {
        fprintf(stderr, "clear_refs: cannot reset the peak\n");
    }
    if (fd >= 0) {
        close(fd);
    }
}

int64_t peer_peak(void)
{
    return status_kilobytes("VmHWM:");
}

/* ---- Watch ---------------------------------------------------------------------------------------------------------- */

static void *watch_main(void *argument)
{
    struct watch *w = argument;
    (void)setpriority(PRIO_PROCESS, (id_t)syscall(SYS_gettid), -10); /* it must not come too late on a busy machine */
    for (bool last = false; !last;) {
        last = atomic_load(&w->stop); /* it may all have moved between two looks */
        if (w->moved(w->peer) >= w->until) {
            w->fired = true;
            if (w->signal == 0) {
                peer_note(w->peer, 1);
            } else {
                raise(w->signal);
            }
            break;
        }
        sched_yield();
    }
    return NULL;
}

void watch_start(struct watch *w, struct peer *self, uint64_t (*moved)(struct peer *self), uint64_t after, int number)
{
    memset(w, 0, sizeof *w);
    w->peer = self;
    w->moved = moved;
    w->until = moved(self) + after;
    w->signal = number;
    if (pthread_create(&w->thread, NULL, watch_main, w) != 0) {
        abort();
    }
}

bool watch_end(struct watch *w)
{
    atomic_store(&w->stop, true);
    pthread_join(w->thread, NULL);
    return w->fired;
}

/* ---- Calls ---------------------------------------------------------------------------------------------------------- */

void peer_create(struct peer *self, const void *argument, struct reply *reply)
{
    (void)argument;
    pcclCommCreateParams_t params = {
        .master_address = self->master, .peer_group = self->group, .p2p_connection_pool_size = self->pool};
    if (peer_result(reply, pcclInit()) != pcclSuccess ||
        peer_result(reply, pcclCreateCommunicator(&params, &self->comm)) != pcclSuccess) {
        return;
    }
    if (self->stall_ms != 0) {
        peer_result(reply, pcclSetOption(self->comm, PCCL_OPTION_STALL_TIMEOUT_MS, self->stall_ms));
    }
    if (self->loss_ms != 0) {
        peer_result(reply, pcclSetOption(self->comm, PCCL_OPTION_MASTER_LOSS_TIMEOUT_MS, self->loss_ms));
    }
}

void peer_connect(struct peer *self, const void *argument, struct reply *reply)
{
    if (self->comm == NULL) {
        peer_create(self, argument, reply);
        PEER_EXPECT(self, reply->result == (int)pcclSuccess);
    }
    peer_result(reply, pcclConnect(self->comm));
}

void peer_join(struct peer *self, const void *argument, struct reply *reply)
{
    peer_connect(self, argument, reply);
    PEER_EXPECT(self, reply->result == (int)pcclSuccess);
    if (reply->result == (int)pcclSuccess) {
        peer_update_until(self, argument, reply);
    }
    if (reply->result != (int)pcclSuccess) {
        fprintf(stderr, "peer %d: join: %s\n", self->index, reply->text);
    }
}

void peer_update_until(struct peer *self, const void *argument, struct reply *reply)
{
    int want = *(const int *)argument;
    pcclResult_t result = pcclSuccess;
    while (result == pcclSuccess && peer_size(self, PCCL_ATTRIBUTE_GLOBAL_WORLD_SIZE) != want) {
        result = pcclUpdateTopology(self->comm);
        PEER_EXPECT(self, result == pcclSuccess);
    }
    peer_result(reply, result);
}

void peer_update(struct peer *self, const void *argument, struct reply *reply)
{
    (void)argument;
    peer_result(reply, pcclUpdateTopology(self->comm));
}

void peer_optimise(struct peer *self, const void *argument, struct reply *reply)
{
    (void)argument;
    peer_result(reply, pcclOptimizeTopology(self->comm));
}

void peer_destroy(struct peer *self, const void *argument, struct reply *reply)
{
    (void)argument;
    peer_result(reply, pcclDestroyCommunicator(self->comm));
    self->comm = NULL;
}

void peer_look(struct peer *self, const void *argument, struct reply *reply)
{
    (void)argument;
    pcclPeerInfo_t members[PROCESSES_MOST], own = {0};
    size_t count = 0;
    for (int a = 0; a < 4; a++) {
        reply->value[a] = peer_size(self, (pcclAttribute_t)(PCCL_ATTRIBUTE_GLOBAL_WORLD_SIZE + a));
    }
    peer_result(reply, pcclGetMembers(self->comm, members, PROCESSES_MOST, &count));
    reply->value[4] = (int64_t)count;
    for (size_t i = 0; i < count && i < PROCESSES_MOST; i++) {
        if (members[i].ring_position < 8) {
            reply->value[8 + members[i].ring_position] = (int64_t)members[i].id;
        }
    }
    if (pcclGetSelf(self->comm, &own) == pcclSuccess) {
        reply->value[5] = own.ring_position;
        reply->value[6] = (int64_t)own.id;
    }
}

static int64_t now_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

void peer_reduce(struct peer *self, const void *argument, struct reply *reply)
{
    struct reduce_job job;
    struct watch watch;
    memcpy(&job, argument, sizeof job);
    float *in = peer_buffer(self, 0, job.count * sizeof(float));
    float *out = job.in_place ? in : peer_buffer(self, 1, job.count * sizeof(float));
    for (size_t i = 0; i < job.count; i++) {
        in[i] = job_value(self->index, i, job.tag);
    }
    pcclReduceDescriptor_t d = peer_floats(job.count, job.tag);
    pcclReduceInfo_t info = {0};
    bool watched = job.victim == self->index && (job.signal != 0 || job.note);
    if (watched) {
        watch_start(&watch, self, peer_moved, job.after, job.signal);
    }
    int64_t begin = now_ns();
    if (job.announce) {
        pcclAsyncReduceOp_t handle;
        pcclResult_t launched = pcclAllReduceAsync(in, out, &d, self->comm, &handle);
        peer_note(self, job.tag + 1);
        peer_result(reply, launched != pcclSuccess ? launched : pcclAwaitAsyncReduce(&handle, &info));
    } else {
        peer_result(reply, pcclAllReduce(in, out, &d, self->comm, &info));
    }
    reply->value[1] = now_ns() - begin;
    if (watched) {
        PEER_EXPECT(self, watch_end(&watch));
    }
    reply->value[0] = info.local_world_size;
    reply->value[2] = (int64_t)info.tx_bytes;
    bool ok = reply->result == (int)pcclSuccess;
    for (size_t i = 0; i < job.count; i++) {
        if (ok) {
            PEER_EXPECT(self, out[i] == job_sum(job.members, i, job.tag));
        }
        if (!ok || !job.in_place) {
            PEER_EXPECT(self, in[i] == job_value(self->index, i, job.tag));
        }
    }
}
