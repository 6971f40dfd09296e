/* fabric.h - an endpoint of libfabric for a lane: InfiniBand, RoCE, EFA, or whatever else its providers reach.
 *
 * One reliable datagram endpoint serves all connections of a lane; each message names its connection by a key that only its two ends
 * know.  libfabric is loaded when it is asked for; a process that has none, or a build without its headers, does without.
 *
 * A port is opened and closed by any thread while nobody polls it, and its name never changes; everything else belongs to the thread
 * that polls its loop.
 * SPDX-License-Identifier: MIT */
#ifndef PCCL_NET_FABRIC_H
#define PCCL_NET_FABRIC_H

#include "core/status.h"
#include "net/loop.h"
#include "net/transport.h"
#include "wire/p2p.h"

struct fabric_port;

/* What PCCL_NET, or a communicator, says; `what` is its name in an error. */
enum fabric_choice {
    FABRIC_AUTO,    /* where there is hardware that gains by it */
    FABRIC_NEVER,   /* "Socket" */
    FABRIC_ALWAYS   /* "OFI": any provider, and none is an error */
};
pccl_status fabric_read_choice(const char *what, const char *text, enum fabric_choice *choice_out, struct err *err) PCCL_MUST_CHECK;

/* Loads libfabric at the first call; takes the provider that libfabric prefers, which its own variables may name (FI_PROVIDER).
 * *port_out: null with PCCL_OK where FABRIC_AUTO finds nothing worth it. */
pccl_status fabric_port_open(enum fabric_choice choice, struct fabric_port **port_out, struct err *err) PCCL_MUST_CHECK;
void fabric_port_close(struct fabric_port *port);
/* From now on the loop's thread polls it. */
pccl_status fabric_port_watch(struct fabric_port *port, struct loop *loop, struct err *err) PCCL_MUST_CHECK;
void fabric_port_unwatch(struct fabric_port *port);

/* Offers a new connection: how the other end reaches it, with a fresh key.  False: no random number. */
bool fabric_port_offer(const struct fabric_port *port, struct fabric_end *end_out) PCCL_MUST_CHECK;
/* Whether ends of these two can talk. */
bool fabric_fits(const struct fabric_port *port, const struct fabric_end *theirs);
/* Whether a connection by that choice goes through it: one that was opened for another choice may be there. */
bool fabric_suits(const struct fabric_port *port, enum fabric_choice choice);
const char *fabric_port_provider(const struct fabric_port *port);

/* Makes a connected TCP transport one whose bytes go through the port; the socket stays as the sign of life.  `ours` is what was
 * offered to the other end.  NOMEM: it is TCP still. */
pccl_status transport_fabric_take(struct transport *t, struct fabric_port *port, const struct fabric_end *ours,
                                  const struct fabric_end *theirs) PCCL_MUST_CHECK;
/* Of such a transport that has ended: whether the way through the fabric is to blame, not the other end's leaving. */
bool transport_fabric_failed(const struct transport *t);

#endif
