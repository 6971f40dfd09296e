/* op_observe.c - what operations move over each edge in a while, told to the master, which keeps the rates of edges.
 *
 * Operations share links, wait and compute, so they show how much an edge carries at least.  Both ends look: the master believes neither alone.
 * Invariant: nothing is told before this member has measured an edge, nor of anything but TCP.
 * SPDX-License-Identifier: MIT */
#include "core/clock.h"
#include "core/id.h"
#include "engine/link.h"
#include "topology/rates.h"

#define OBSERVE_LEAST_NS (100 * CLOCK_MS) /* bursts of a shorter time are about buffers */

enum { OBSERVE_WORDS = 16 }; /* of one look; the rest comes with the next */

struct look {
    struct comm *c;
    int64_t now;
    bool ended;          /* an operation has: what was moved counts; else it begins alone, and so does a time to look at */
    uint64_t peer, tx, rx; /* of the connections so far; peer 0: none */
    struct msg_measured word[OBSERVE_WORDS];
    uint32_t words;
};

static void add_word(struct look *look, struct edge_rate *told, uint32_t round, uint64_t bytes, int64_t ns)
{
    uint64_t bps = rate_of(bytes, ns);
    if (look->words < OBSERVE_WORDS && forecast_worth_telling(told->bps, bps, look->now - told->at)) {
        look->word[look->words++] = (struct msg_measured){.round = round, .to = look->peer, .bits_per_second = bps};
        *told = (struct edge_rate){.bps = bps, .at = look->now};
    }
}

static void end_peer(struct look *look)
{
    struct link *l = look->peer != 0 ? link_find(look->c, look->peer) : NULL;
    if (l == NULL) {
        return;
    }
    struct edge_work *w = &l->work;
    int64_t took = look->now - w->since;
    bool anew = look->tx < w->tx || look->rx < w->rx; /* its connections were made again */
    bool counts = look->ended && !anew && took >= OBSERVE_LEAST_NS;
    if (counts) {
        add_word(look, &w->sent, MEASURED_SENT_AT_WORK, look->tx - w->tx, took);
        add_word(look, &w->heard, MEASURED_HEARD_AT_WORK, look->rx - w->rx, took);
    }
    if (counts || anew || !look->ended) {
        w->since = look->now;
        w->tx = look->tx;
        w->rx = look->rx;
    }
}

static void add_connection(void *user, const struct comm_traffic *one)
{
    struct look *look = user;
    if (one->transport == NULL || one->by != TRANSPORT_TCP) {
        return;
    }
    if (one->peer != look->peer) {
        end_peer(look);
        look->peer = one->peer;
        look->tx = look->rx = 0;
    }
    look->tx += one->tx_bytes;
    look->rx += one->rx_bytes;
}

static void look_at_all(struct look *look)
{
    comm_traffic(look->c, add_connection, look);
    end_peer(look);
}

void op_observe_begin(struct comm *c, int64_t now)
{
    struct look look = {.c = c, .now = now};
    look_at_all(&look);
}

void op_observe_end(struct comm *c, int64_t now, struct comm_after *after)
{
    struct look look = {.c = c, .now = now, .ended = true};
    look_at_all(&look);
    for (uint32_t i = 0; i < look.words; i++) {
        const struct msg_measured *m = &look.word[i];
        comm_say(after, LOG_DEBUG, "peer " ID_FORMAT ": operations have %s %.1f Mb/s", ID_PARTS(m->to),
                 m->round == MEASURED_SENT_AT_WORK ? "sent it" : "got from it", (double)m->bits_per_second / 1e6);
        comm_step(c, &(struct session_event){.kind = SESSION_MEASURED, .measured = &look.word[i]}, after);
    }
}
