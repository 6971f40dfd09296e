/* ask.h - one question to a master, by a program that is no member of anything there.
 *
 * Its one idea: a connection for each question, since the master ends it with the answer; nothing is kept between two.
 * Invariant: no wait is longer than the deadline.
 * SPDX-License-Identifier: MIT */
#ifndef PCCL_NET_ASK_H
#define PCCL_NET_ASK_H

#include "net/conn.h"
#include "wire/control.h"

struct ask {
    const struct net_address *master; /* borrowed, as all here */
    int64_t deadline;                 /* of clock_now_ns */
    uint8_t question, answer;         /* enum frame_type */
    const void *payload;              /* of the question */
    uint32_t size;
};

/* Asks.  *answer_out reads the payload of the answer, which lives as long as the connection `c`, a new one of conn_new: the caller gives it
 * back. */
pccl_status ask_master(const struct ask *a, struct conn *c, struct reader *answer_out, struct err *err) PCCL_MUST_CHECK;

#endif
