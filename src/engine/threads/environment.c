/* environment.c - what the variables of the environment say of the engine.
 *
 * Read once, when the engine starts.  Invariant: a value that is refused is named, with what may be said instead.
 * SPDX-License-Identifier: MIT */
#include "engine/threads/environment.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "core/log.h"
#include "engine/engine.h"
#include "net/fds.h"
#include "net/sock.h"
#include "wire/stripe_record.h"

/* A whole number; *out stays as it is where the variable says nothing. */
static pccl_status read_number(const char *name, int64_t least, int64_t most, const char *unit, int64_t *out, struct err *err)
{
    const char *text = getenv(name);
    char *end = NULL;
    if (text == NULL || *text == '\0') {
        return PCCL_OK;
    }
    long long value = strtoll(text, &end, 10);
    if (*text < '0' || *text > '9' || *end != '\0' || value < least || value > most) {
        return err_set(err, PCCL_ERR_INVALID, "%s '%.20s': expected %" PRId64 " to %" PRId64 " %s", name, text, least, most, unit);
    }
    *out = value;
    return PCCL_OK;
}

static pccl_status read_spin(struct engine *e, struct err *err)
{
    int64_t us = -1;
    pccl_status st = read_number("PCCL_SPIN_US", 0, ENGINE_SPIN_MOST_US, "microseconds", &us, err);
    e->spin_ns = us < 0 ? -1 : us * 1000;
    return st;
}

static pccl_status read_staging(struct engine *e, struct err *err)
{
    e->staging_most = ENGINE_STAGING_BYTES;
    return read_number("PCCL_STAGING_BYTES", 0, ENGINE_STAGING_MOST, "bytes", &e->staging_most, err);
}

static pccl_status read_buffer(const char *name, atomic_int *buffer, struct err *err)
{
    const char *text = getenv(name);
    char *end = NULL;
    if (text == NULL || *text == '\0') {
        atomic_store(buffer, SOCK_BUFFER);
        return PCCL_OK;
    }
    long long bytes = strtoll(text, &end, 10);
    if (*end != '\0' || !sock_buffer_good(bytes)) {
        return err_set(err, PCCL_ERR_INVALID, "%s '%.20s': expected %d to %d bytes, or -1: as the kernel tunes it", name, text, SOCK_BUFFER_LEAST,
                       SOCK_BUFFER_MOST);
    }
    atomic_store(buffer, (int)bytes);
    return PCCL_OK;
}

/* BBR beyond near hosts, or what PCCL_TCP_CONGESTION names beyond a host, as far as the kernel gives it. */
static pccl_status read_congestion(struct engine *e, struct err *err)
{
    const char *text = getenv("PCCL_TCP_CONGESTION");
    bool named = text != NULL && *text != '\0';
    const char *name = named ? text : "bbr";
    if (strlen(name) >= SOCK_CONGESTION_NAME) {
        return err_set(err, PCCL_ERR_INVALID, "PCCL_TCP_CONGESTION '%.40s': expected the name of a TCP congestion control, such as bbr or cubic", text);
    }
    int why = sock_congestion_refused(name);
    snprintf(e->bulk.congestion, sizeof e->bulk.congestion, "%s", why == 0 ? name : "");
    e->bulk.near_too = named;
    if (why != 0) {
        log_line(named ? LOG_WARN : LOG_INFO, "%s%s%s cannot be used, so data to other hosts goes by the system's default congestion control: %s",
                 named ? "PCCL_TCP_CONGESTION '" : "congestion control ", name, named ? "'" : "",
                 why == EPERM    ? "it is not in net.ipv4.tcp_allowed_congestion_control: add it there with sysctl"
                 : why == ENOENT ? "this kernel has none of that name: load its module (as root: modprobe tcp_NAME)"
                                 : strerror(why));
    }
    return PCCL_OK;
}

/* A process keeps descriptors for itself, whatever its stripes gain. */
static pccl_status read_stripe(struct engine *e, struct err *err)
{
    struct rlimit limit = {.rlim_cur = 0};
    int64_t sockets = 0;
    e->stripes.most = getrlimit(RLIMIT_NOFILE, &limit) != 0 ? 0 : limit.rlim_cur / 4 < FDS_MOST ? (uint32_t)(limit.rlim_cur / 4) : FDS_MOST;
    pccl_status st = read_number("PCCL_STRIPE", 1, STRIPE_SOCKETS, "sockets per data connection", &sockets, err);
    e->stripe = (uint32_t)sockets;
    return st;
}

static pccl_status read_sharing(struct engine *e, struct err *err)
{
    const char *off = getenv("PCCL_SHM_DISABLE");
    if (off != NULL && strcmp(off, "") != 0 && strcmp(off, "0") != 0 && strcmp(off, "1") != 0) {
        return err_set(err, PCCL_ERR_INVALID, "PCCL_SHM_DISABLE '%.20s': expected 0 or 1", off);
    }
    e->share = off == NULL || strcmp(off, "1") != 0;
    return PCCL_OK;
}

pccl_status environment_read(struct engine *e, struct err *err)
{
    pccl_status st = read_spin(e, err);
    if (st == PCCL_OK) {
        st = read_staging(e, err);
    }
    if (st == PCCL_OK) {
        st = read_buffer("PCCL_SOCKET_SNDBUF", &e->send_buffer, err);
    }
    if (st == PCCL_OK) {
        st = read_buffer("PCCL_SOCKET_RCVBUF", &e->receive_buffer, err);
    }
    if (st == PCCL_OK) {
        sock_read_limits(&e->bulk);
        st = read_congestion(e, err);
    }
    if (st == PCCL_OK) {
        st = read_stripe(e, err);
    }
    if (st == PCCL_OK) {
        st = fabric_read_choice("PCCL_NET", getenv("PCCL_NET"), &e->net, err);
    }
    return st == PCCL_OK ? read_sharing(e, err) : st;
}
