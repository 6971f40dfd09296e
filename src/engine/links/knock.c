/* knock.c - whether a peer still listens after its control link has closed (M11).
 *
 * Its one idea: a process that has ended refuses new connections at once; one whose connections were reset takes them.  The end
 * that dials a link learns it by dialling; the other end connects to the peer's address, says nothing and closes.
 * Invariant: a refusal counts only where the peer was reached before, or where none of its addresses answers.
 * SPDX-License-Identifier: MIT */
#include <string.h>

#include "core/clock.h"
#include "engine/links/link.h"
#include "engine/links/dial.h"
#include "engine/links/knock.h"
#include "net/addr.h"
#include "net/fds.h"
#include "net/sock.h"
#include "engine/threads/comm_step.h"

#define KNOCK_FIRST_NS INT64_C(250000) /* a process that ends may close its listener last */
#define KNOCK_FOR_NS INT64_C(1000000000) /* the master waits no longer for a member whose connections have closed */

void knock_reached(struct link *l, const struct net_address *at)
{
    memset(&l->knock.reached, 0, sizeof l->knock.reached);
    for (uint8_t i = 0; i < l->want.info.addresses; i++) {
        if (address_same_host(&l->want.info.address[i], at)) {
            l->knock.reached = l->want.info.address[i];
            return;
        }
    }
}

void knock_lost(struct link *l)
{
    l->knock.lost_at = clock_now_ns();
    l->knock.at = 0;
    l->knock.wait_ns = KNOCK_FIRST_NS;
}

void knock_forget(struct link *l)
{
    l->knock.dial = NULL;
}

static bool asks(const struct link *l, int64_t now)
{
    return l->control.conn == NULL && !l->want.spare && l->knock.lost_at != 0 && now - l->knock.lost_at < KNOCK_FOR_NS;
}

static void tell(struct link *l, struct comm_after *after)
{
    comm_step(l->comm, &(struct session_event){.kind = SESSION_LINK_REFUSED, .peer = l->peer}, after);
}

/* Within a host the answer comes with the call: nobody has to wake the service thread. */
bool knock_at_once(const struct link *l, bool near)
{
    int fd = -1;
    struct err err;
    if (!near || l->want.spare || l->knock.reached.family == 0 || sock_dial(&l->knock.reached, &fd, &err) != PCCL_OK) {
        return false;
    }
    bool refused = sock_refused(fd);
    fds_close(fd);
    return refused;
}

/* Where the peer was reached before comes first; the others follow. */
uint8_t knock_addresses(const struct link *l, struct net_address out[BOUNDS_ADDRESSES], bool *known)
{
    uint8_t count = 0;
    *known = asks(l, clock_now_ns()) && l->knock.reached.family != 0;
    if (*known) {
        out[count++] = l->knock.reached;
    }
    for (uint8_t i = 0; i < l->want.info.addresses; i++) {
        if (!*known || !addr_equal(&l->want.info.address[i], &l->knock.reached)) {
            out[count++] = l->want.info.address[i];
        }
    }
    return count;
}

void knock_dialled(struct link *l, const struct dial *d, struct comm_after *after)
{
    if (d->known && d->next == 1 && d->met == DIAL_MET_NOBODY && asks(l, clock_now_ns())) {
        tell(l, after);
    }
}

static void answered(struct dial *d, struct conn *conn, uint64_t stale_view, struct comm_after *after)
{
    struct link *l = d->user;
    (void)stale_view;
    l->knock.dial = NULL;
    l->knock.at = clock_now_ns() + l->knock.wait_ns;
    l->knock.wait_ns *= 2;
    engine_arm(l->comm->engine, l->knock.at);
    if (conn != NULL) {
        conn_unref(conn); /* it still listens: asked again */
    } else if (d->met == DIAL_MET_NOBODY && asks(l, clock_now_ns())) {
        tell(l, after);
    }
}

int64_t knock_tick(struct link *l, int64_t now)
{
    if (l->want.dial || l->knock.dial != NULL || !asks(l, now)) {
        return CLOCK_NEVER;
    }
    if (l->knock.at <= now) {
        const struct msg_hello none = {.kind = 0};
        const struct net_address *at = &l->knock.reached;
        bool known = at->family != 0;
        l->knock.dial = dial_start(l->comm, &none, NULL, known ? at : l->want.info.address, known ? 1 : l->want.info.addresses, answered, l);
        l->knock.at = now + l->knock.wait_ns; /* if there was no memory */
        return l->knock.dial != NULL ? CLOCK_NEVER : l->knock.at;
    }
    return l->knock.at;
}
