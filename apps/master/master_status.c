/* master_status.c - see master_status.h.
 *
 * Its one idea: a connection for each page, since the master ends it with the answer; nothing is kept between two.
 * Invariant: no wait is longer than the deadline.
 * SPDX-License-Identifier: MIT */
#include "master_status.h"

#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <string.h>

#include "core/clock.h"
#include "net/addr.h"
#include "net/conn.h"
#include "net/fds.h"
#include "net/sock.h"

#define STATUS_PATIENCE_NS (10 * CLOCK_S)

/* ---- asking -------------------------------------------------------------------------------------------------------- */

static pccl_status wait_for(int fd, short events, int64_t deadline, struct err *err)
{
    struct pollfd p = {.fd = fd, .events = events};
    int64_t left_ms = (deadline - clock_now_ns()) / CLOCK_MS;
    if (left_ms <= 0) {
        return err_set(err, PCCL_ERR_TIMEOUT, "no answer in 10 s: is the address right, and does a ccoip_master run there?");
    }
    return poll(&p, 1, (int)left_ms) >= 0 || errno == EINTR ? PCCL_OK : err_errno(err, "poll");
}

static pccl_status connect_to(const struct net_address *to, int64_t deadline, struct conn *c, struct err *err)
{
    int fd;
    pccl_status st = sock_dial(to, &fd, err);
    if (st != PCCL_OK) {
        return st;
    }
    do {
        st = wait_for(fd, POLLOUT, deadline, err);
        st = st == PCCL_OK ? sock_connected(fd, to, err) : st;
    } while (st == PCCL_ERR_AGAIN);
    if (st != PCCL_OK) {
        struct err why = *err;
        fds_close(fd);
        return st == PCCL_ERR_CLOSED ? err_set(err, st, "%.200s: is ccoip_master running there?", why.text) : st;
    }
    conn_open_take(c, fd);
    return PCCL_OK;
}

static pccl_status send_request(struct conn *c, uint32_t from, int64_t deadline, struct err *err)
{
    unsigned char bytes[FRAME_HEADER_BYTES + 16];
    struct writer w;
    writer_init(&w, bytes + FRAME_HEADER_BYTES, sizeof bytes - FRAME_HEADER_BYTES);
    put_status(&w, &(struct msg_status){.from = from});
    frame_put(bytes, &(struct frame_header){.type = FRAME_STATUS, .length = (uint32_t)w.used});
    pccl_status st = conn_append(c, bytes, FRAME_HEADER_BYTES + w.used, NULL, 0);
    for (st = st == PCCL_OK ? conn_flush(c) : st; st == PCCL_ERR_AGAIN; st = conn_flush(c)) {
        st = wait_for(c->source.fd, POLLOUT, deadline, err);
        if (st != PCCL_OK) {
            return st;
        }
    }
    return st == PCCL_OK ? st : err_set(err, st, "the connection to the master broke");
}

/* What came instead of an answer. */
static pccl_status misunderstood(struct conn *c, struct err *err)
{
    uint8_t version = conn_other_version(c);
    if (version != 0) {
        return err_set(err, PCCL_ERR_PROTOCOL, "the master speaks version %u of the protocol, this program version %d", version,
                       FRAME_VERSION);
    }
    return err_set(err, PCCL_ERR_PROTOCOL, "the program that listens there is not a running ccoip_master");
}

static pccl_status receive_page(struct conn *c, int64_t deadline, struct reader *page, struct err *err)
{
    struct frame_header h;
    const void *payload;
    for (;;) {
        pccl_status st = conn_receive(c), next = conn_next(c, &h, &payload);
        if (next == PCCL_OK && h.type == FRAME_STATUS_PAGE) {
            reader_init(page, payload, h.length);
            return PCCL_OK;
        }
        if (next != PCCL_ERR_AGAIN || st == PCCL_ERR_CLOSED || st == PCCL_ERR_PROTOCOL) {
            return misunderstood(c, err);
        }
        st = st == PCCL_ERR_AGAIN ? wait_for(c->source.fd, POLLIN, deadline, err) : st;
        if (st != PCCL_OK) {
            return st;
        }
    }
}

/* ---- printing ------------------------------------------------------------------------------------------------------ */

static const char *phase_word(const struct world_status *s)
{
    static const char *const words[] = {[STATUS_OPEN] = "open", [STATUS_FORMING] = "forming", [STATUS_FORMED] = "begun",
                                        [STATUS_OVER] = "over", [STATUS_GIVEN_UP] = "failed"};
    return s->freezing > 0 ? "freezing" : words[s->phase];
}

static void print_world(FILE *out, const struct world_status *s)
{
    char name[BOUNDS_WORLD_NAME + 2], size[24] = "any", members[32];
    snprintf(name, sizeof name, "'%s'", s->name);
    if (s->size > 0) {
        snprintf(size, sizeof size, "%u %s%s", s->size, s->loss == LOSS_END ? "end" : "shrink", s->once ? " once" : "");
    }
    snprintf(members, sizeof members, s->pending > 0 ? "%u + %u" : "%u", s->members, s->pending);
    fprintf(out, "%-16s %016" PRIx64 " %-12s %-8s %6u %6u %-9s %s\n", name, s->run, size, members, s->groups, (uint32_t)s->view,
            phase_word(s), s->waits);
}

static pccl_status print_page(FILE *out, struct reader *r, bool first, struct msg_status_page *m, struct err *err)
{
    struct world_status s;
    bool good = get_status_page(r, m);
    if (good && first) {
        fprintf(out, "%-16s %-16s %-12s %-8s %6s %6s %-9s %s\n", "WORLD", "RUN", "SIZE", "MEMBERS", "GROUPS", "VIEW", "PHASE",
                "WAITS FOR");
    }
    for (uint32_t i = 0; good && i < m->worlds; i++) {
        good = get_world_status(r, &s);
        if (good) {
            print_world(out, &s);
        }
    }
    return good && reader_done(r) ? PCCL_OK : err_set(err, PCCL_ERR_PROTOCOL, "the master sent an answer that cannot be read");
}

/* ---- one page after the other -------------------------------------------------------------------------------------- */

static pccl_status one_page(const struct net_address *master, FILE *out, uint32_t from, struct msg_status_page *m, struct err *err)
{
    int64_t deadline = clock_now_ns() + STATUS_PATIENCE_NS;
    struct conn *c = conn_new();
    struct reader page;
    if (c == NULL) {
        return err_set(err, PCCL_ERR_NOMEM, "no memory");
    }
    c->most = STATUS_PAGE_BYTES;
    pccl_status st = connect_to(master, deadline, c, err);
    st = st == PCCL_OK ? send_request(c, from, deadline, err) : st;
    st = st == PCCL_OK ? receive_page(c, deadline, &page, err) : st;
    st = st == PCCL_OK ? print_page(out, &page, from == 0, m, err) : st;
    conn_unref(c);
    return st;
}

pccl_status master_status(const struct net_address *master, FILE *out, struct err *err)
{
    struct msg_status_page m = {0};
    pccl_status st;
    do {
        uint32_t from = m.next;
        st = one_page(master, out, from, &m, err);
        if (st == PCCL_OK && m.next != 0 && m.next <= from) {
            st = err_set(err, PCCL_ERR_PROTOCOL, "the master's answers do not come to an end");
        }
    } while (st == PCCL_OK && m.next != 0);
    return st;
}
