/* ask.c - see ask.h.
 * SPDX-License-Identifier: MIT */
#include "net/ask.h"

#include <errno.h>
#include <poll.h>

#include "core/clock.h"
#include "net/addr.h"
#include "net/fds.h"
#include "net/sock.h"

static pccl_status wait_for(const struct ask *a, int fd, short events, struct err *err)
{
    struct pollfd p = {.fd = fd, .events = events};
    int64_t left = a->deadline - clock_now_ns();
    if (left <= 0) {
        char where[ADDR_TEXT];
        return err_set(err, PCCL_ERR_TIMEOUT, "no answer from %s in time: is the address right, and does a ccoip_master run there?",
                       addr_format(a->master, where));
    }
    int64_t left_ms = left / CLOCK_MS + 1;
    return poll(&p, 1, left_ms < INT32_MAX ? (int)left_ms : INT32_MAX) >= 0 || errno == EINTR ? PCCL_OK : err_errno(err, "poll");
}

static pccl_status connect_to(const struct ask *a, struct conn *c, struct err *err)
{
    int fd;
    pccl_status st = sock_dial(a->master, &fd, err);
    if (st != PCCL_OK) {
        return st;
    }
    do {
        st = wait_for(a, fd, POLLOUT, err);
        st = st == PCCL_OK ? sock_connected(fd, a->master, err) : st;
    } while (st == PCCL_ERR_AGAIN);
    if (st != PCCL_OK) {
        struct err why = *err;
        fds_close(fd);
        return st == PCCL_ERR_CLOSED ? err_set(err, st, "%.200s: is ccoip_master running there?", why.text) : st;
    }
    conn_open_take(c, fd);
    return PCCL_OK;
}

static pccl_status send_question(const struct ask *a, struct conn *c, struct err *err)
{
    unsigned char head[FRAME_HEADER_BYTES];
    frame_put(head, &(struct frame_header){.type = a->question, .length = a->size});
    pccl_status st = conn_append(c, head, sizeof head, a->payload, a->size);
    for (st = st == PCCL_OK ? conn_flush(c) : st; st == PCCL_ERR_AGAIN; st = conn_flush(c)) {
        st = wait_for(a, c->source.fd, POLLOUT, err);
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

static pccl_status receive_answer(const struct ask *a, struct conn *c, struct reader *out, struct err *err)
{
    struct frame_header h;
    const void *payload;
    for (;;) {
        pccl_status st = conn_receive(c), next = conn_next(c, &h, &payload);
        if (next == PCCL_OK && h.type == a->answer) {
            reader_init(out, payload, h.length);
            return PCCL_OK;
        }
        if (next != PCCL_ERR_AGAIN || st == PCCL_ERR_CLOSED || st == PCCL_ERR_PROTOCOL) {
            return misunderstood(c, err);
        }
        st = st == PCCL_ERR_AGAIN ? wait_for(a, c->source.fd, POLLIN, err) : st;
        if (st != PCCL_OK) {
            return st;
        }
    }
}

pccl_status ask_master(const struct ask *a, struct conn *c, struct reader *answer_out, struct err *err)
{
    c->most = frame_limit(a->answer);
    pccl_status st = connect_to(a, c, err);
    st = st == PCCL_OK ? send_question(a, c, err) : st;
    return st == PCCL_OK ? receive_answer(a, c, answer_out, err) : st;
}
