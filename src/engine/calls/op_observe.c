/* op_observe.c - what operations move over each edge in a while, told to the master, which keeps the rates of edges.
 *
 * Operations share links, wait and compute, so they show how much an edge carries at least.  Both ends look: the master believes neither alone.
 * Invariant: nothing is told before this member has measured an edge, nor of anything but TCP.
 * SPDX-License-Identifier: MIT */
#include "core/clock.h"
#include "core/id.h"
#include "engine/links/link.h"
#include "engine/tables/link_table.h"
#include "topology/rates.h"
#include "engine/calls/op_observe.h"
#include "engine/threads/comm_step.h"

#define OBSERVE_LEAST_NS (100 * CLOCK_MS) /* bursts of a shorter time are about buffers */

enum { OBSERVE_WORDS = 16 }; /* of one look; the rest comes with the next */

struct moved {
    uint64_t tx, rx;
};

struct words {
    struct msg_measured word[OBSERVE_WORDS];
    uint32_t count;
};

static struct moved moved_by(const struct link *l)
{
    struct moved m = {0, 0};
    for (uint32_t lane = 0; lane < BOUNDS_LANES; lane++) {
        const struct stream *s = l->bundle.streams[lane];
        if (s != NULL && transport_kind(&s->transport) == TRANSPORT_TCP) {
            m.tx += atomic_load(&s->tx_bytes);
            m.rx += atomic_load(&s->rx_bytes);
        }
    }
    return m;
}

static void look_from(struct edge_work *w, struct moved m, int64_t now)
{
    w->since = now;
    w->tx = m.tx;
    w->rx = m.rx;
}

static void add_word(struct words *words, struct edge_rate *told, const struct msg_measured *m, int64_t now)
{
    if (words->count < OBSERVE_WORDS && forecast_worth_telling(told->bps, m->bits_per_second, now - told->at)) {
        words->word[words->count++] = *m;
        *told = (struct edge_rate){.bps = m->bits_per_second, .at = now};
    }
}

/* An operation has ended. */
static void look_at(struct link *l, int64_t now, struct words *words)
{
    struct edge_work *w = &l->work;
    struct moved m = moved_by(l);
    int64_t took = now - w->since;
    if (m.tx < w->tx || m.rx < w->rx) { /* its connections were made again */
        look_from(w, m, now);
    } else if (took >= OBSERVE_LEAST_NS) {
        struct msg_measured sent = {.round = MEASURED_SENT_AT_WORK, .to = l->peer, .bits_per_second = rate_of(m.tx - w->tx, took)};
        struct msg_measured heard = {.round = MEASURED_HEARD_AT_WORK, .to = l->peer, .bits_per_second = rate_of(m.rx - w->rx, took)};
        add_word(words, &w->sent, &sent, now);
        add_word(words, &w->heard, &heard, now);
        look_from(w, m, now);
    }
}

void op_observe_begin(struct comm *c, int64_t now)
{
    LIST_FOR_EACH(i, after, &c->links.all) {
        struct link *l = LIST_ENTRY(i, struct link, all);
        look_from(&l->work, moved_by(l), now);
    }
}

void op_observe_ready(struct comm *c, uint64_t peer, int64_t now)
{
    struct link *l = link_find(c, peer);
    if (l != NULL) {
        struct moved m = moved_by(l);
        if (m.tx == l->work.tx && m.rx == l->work.rx) {
            l->work.since = now;
        }
    }
}

void op_observe_end(struct comm *c, int64_t now, struct comm_after *after)
{
    struct words words = {.count = 0};
    LIST_FOR_EACH(i, following, &c->links.all) {
        look_at(LIST_ENTRY(i, struct link, all), now, &words);
    }
    for (uint32_t i = 0; i < words.count; i++) {
        const struct msg_measured *m = &words.word[i];
        comm_say(after, LOG_DEBUG, "peer " ID_FORMAT ": operations have %s %.1f Mb/s", ID_PARTS(m->to),
                 m->round == MEASURED_SENT_AT_WORK ? "sent it" : "got from it", (double)m->bits_per_second / 1e6);
        comm_step(c, &(struct session_event){.kind = SESSION_MEASURED, .measured = m}, after);
    }
}
