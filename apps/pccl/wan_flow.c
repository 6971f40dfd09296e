/* wan_flow.c - see wan_flow.h.
 *
 * One idea: a packet knows when its first and its last segment come to the next link, so a link begins to send the first while the last is
 * still under way, and a super-packet costs no more time than its segments would.
 * SPDX-License-Identifier: MIT */
#include "pccl/wan_flow.h"

#include <stdlib.h>
#include <string.h>

#include "pccl/wan_clock.h"
#include "pccl/wan_frame.h"
#include "pccl/wan_loss.h"
#include "pccl/wan_store.h"

enum stage { STAGE_UP, STAGE_SITE_UP, STAGE_PATH, STAGE_SITE_DOWN, STAGE_DOWN, STAGE_DUE, STAGE_NOTICE };
enum verdict { KEPT, LOST, DROPPED };

struct pair {
    struct wan_clock clock;
    struct wan_loss loss;
    int64_t delay_ns, jitter_ns, arrived_ns; /* arrived_ns: the last one, which none after it overtakes */
    uint64_t jitter_count, mtu;
    bool cut;
    struct wan_counts counts;
};

struct packet {
    unsigned from, to;
    enum stage stage; /* that is next */
    int64_t first_ns, last_ns; /* when the first and the last segment come to it */
    struct wan_frame frame; /* of `bytes` */
    uint8_t bytes[];
};

struct event {
    int64_t at_ns;
    uint64_t number; /* of equal times the older one is first */
    struct packet *packet; /* owned */
};

struct wan_flow {
    const struct wan_network *network; /* borrowed */
    unsigned host_count;
    struct pair *pairs; /* owned */
    struct wan_clock *up, *down; /* owned; of hosts */
    struct wan_clock site_up[WAN_SITES_MOST], site_down[WAN_SITES_MOST];
    struct wan_store store;
    struct event *events; /* owned; a heap: none is before its parent */
    size_t event_count, event_room;
    uint64_t event_number, strays, overflow;
};

static struct pair *pair_of(const struct wan_flow *f, unsigned from, unsigned to)
{
    return &f->pairs[from * f->host_count + to];
}

/* ---- events ------------------------------------------------------------------------------------------------------ */

static bool is_before(const struct event *a, const struct event *b)
{
    return a->at_ns < b->at_ns || (a->at_ns == b->at_ns && a->number < b->number);
}

static bool push(struct wan_flow *f, struct packet *p, int64_t at_ns)
{
    if (f->event_count == f->event_room) {
        size_t room = f->event_room > 0 ? 2 * f->event_room : 4096;
        struct event *more = realloc(f->events, room * sizeof *more);
        if (more == NULL) {
            return false;
        }
        f->events = more;
        f->event_room = room;
    }
    struct event e = {.at_ns = at_ns, .number = f->event_number++, .packet = p};
    size_t i = f->event_count++;
    while (i > 0 && is_before(&e, &f->events[(i - 1) / 2])) {
        f->events[i] = f->events[(i - 1) / 2];
        i = (i - 1) / 2;
    }
    f->events[i] = e;
    return true;
}

static struct packet *pop(struct wan_flow *f)
{
    struct packet *first = f->events[0].packet;
    struct event e = f->events[--f->event_count];
    size_t i = 0;
    for (size_t child = 1; child < f->event_count; child = 2 * i + 1) {
        child += child + 1 < f->event_count && is_before(&f->events[child + 1], &f->events[child]);
        if (!is_before(&f->events[child], &e)) {
            break;
        }
        f->events[i] = f->events[child];
        i = child;
    }
    f->events[i] = e;
    return first;
}

/* ---- packets ----------------------------------------------------------------------------------------------------- */

static void packet_free(struct wan_flow *f, struct packet *p)
{
    wan_store_give(&f->store, p, sizeof *p + p->frame.size);
}

/* Some segments of a frame, which may be another packet's. */
static struct packet *packet_new(struct wan_flow *f, const struct wan_frame *frame, unsigned first, unsigned count)
{
    bool whole = count == frame->count;
    size_t size = whole ? frame->size : WAN_VNET_BYTES + frame->header_bytes;
    for (unsigned i = first; !whole && i < first + count; i++) {
        size += wan_frame_length(frame, i) - frame->header_bytes;
    }
    struct packet *p = wan_store_take(&f->store, sizeof *p + size);
    if (p == NULL) {
        f->overflow += count;
        return NULL;
    }
    *p = (struct packet){.first_ns = 0};
    (void)wan_frame_cut(frame, first, count, p->bytes);
    (void)wan_frame_parse(p->bytes, size, &p->frame);
    return p;
}

static void schedule(struct wan_flow *f, struct packet *p, int64_t at_ns)
{
    if (!push(f, p, at_ns)) {
        f->overflow += p->frame.count;
        packet_free(f, p);
    }
}

/* ---- links ------------------------------------------------------------------------------------------------------- */

static struct wan_clock *clock_of(struct wan_flow *f, const struct packet *p)
{
    int from = f->network->hosts[p->from].site, to = f->network->hosts[p->to].site;
    switch (p->stage) {
    case STAGE_UP: return &f->up[p->from];
    case STAGE_SITE_UP: return from >= 0 && from != to ? &f->site_up[from] : NULL;
    case STAGE_PATH: return &pair_of(f, p->from, p->to)->clock;
    case STAGE_SITE_DOWN: return to >= 0 && from != to ? &f->site_down[to] : NULL;
    case STAGE_DOWN: return &f->down[p->to];
    case STAGE_DUE:
    case STAGE_NOTICE: break;
    }
    return NULL;
}

/* The delay behind the path; jitter adds to it, and order is kept. */
static void delay(struct pair *pair, struct packet *p)
{
    int64_t at = p->first_ns + pair->delay_ns;
    if (pair->jitter_ns > 0) {
        at += (int64_t)(wan_loss_draw(~pair->loss.seed, pair->jitter_count++) * (double)pair->jitter_ns);
    }
    at = at > pair->arrived_ns ? at : pair->arrived_ns;
    p->last_ns += at - p->first_ns;
    p->first_ns = at;
    pair->arrived_ns = p->last_ns;
}

static void onward(struct wan_flow *f, struct packet *p);

static bool is_lost(struct pair *pair, enum stage stage)
{
    return stage == STAGE_UP && wan_loss_next(&pair->loss);
}

/* Counts what happens to each segment at this link, and when it leaves. */
static void judge(struct pair *pair, const struct packet *p, struct wan_clock *c, uint8_t *verdicts, int64_t *leaves)
{
    const struct wan_frame *frame = &p->frame;
    for (unsigned i = 0; i < frame->count; i++) {
        int64_t comes = frame->count == 1 ? p->last_ns : p->first_ns + (p->last_ns - p->first_ns) * i / (frame->count - 1);
        uint64_t backlog = wan_clock_backlog(c, comes);
        pair->counts.highest_queue_bytes = backlog > pair->counts.highest_queue_bytes ? backlog : pair->counts.highest_queue_bytes;
        verdicts[i] = KEPT;
        if (is_lost(pair, p->stage)) {
            verdicts[i] = LOST;
            pair->counts.lost++;
        } else if (!wan_clock_pass(c, comes, wan_frame_length(frame, i), &leaves[i])) {
            verdicts[i] = DROPPED;
            pair->counts.dropped++;
        }
    }
}

static void leave(struct wan_flow *f, struct packet *p, enum stage passed, int64_t first_ns, int64_t last_ns)
{
    p->stage = passed + 1;
    p->first_ns = first_ns;
    p->last_ns = last_ns;
    if (passed == STAGE_PATH) {
        delay(pair_of(f, p->from, p->to), p);
    }
    onward(f, p);
}

/* Through one link.  What is left of the packet goes on, in as many packets as there are runs of segments. */
static void pass(struct wan_flow *f, struct packet *p, struct wan_clock *c)
{
    uint8_t verdicts[WAN_SEGMENTS_MOST];
    int64_t leaves[WAN_SEGMENTS_MOST];
    const struct wan_frame *frame = &p->frame;
    enum stage stage = p->stage;
    judge(pair_of(f, p->from, p->to), p, c, verdicts, leaves);
    for (unsigned i = 0, end; i < frame->count; i = end) {
        for (end = i + 1; end < frame->count && verdicts[end] == verdicts[i]; end++) {
        }
        if (verdicts[i] == KEPT && end - i == frame->count) {
            leave(f, p, stage, leaves[0], leaves[end - 1]);
            return;
        }
        struct packet *run = verdicts[i] == KEPT ? packet_new(f, frame, i, end - i) : NULL;
        if (run != NULL) {
            run->from = p->from;
            run->to = p->to;
            leave(f, run, stage, leaves[i], leaves[end - 1]);
        }
    }
    packet_free(f, p);
}

/* To the next link, at once where only this pair passes it, else in order of arrival. */
static void onward(struct wan_flow *f, struct packet *p)
{
    while (p->stage != STAGE_DUE) {
        struct wan_clock *c = clock_of(f, p);
        if (p->stage == STAGE_PATH) {
            pass(f, p, c);
            return;
        }
        if (c != NULL && c->rate_bps > 0) {
            schedule(f, p, p->first_ns);
            return;
        }
        p->stage++;
    }
    schedule(f, p, p->last_ns);
}

/* ---- in and out -------------------------------------------------------------------------------------------------- */

static bool find_host(const struct wan_flow *f, uint32_t address, unsigned *out)
{
    for (unsigned i = 0; i < f->host_count; i++) {
        if (f->network->hosts[i].values.address == address) {
            *out = i;
            return true;
        }
    }
    return false;
}

/* The path does not take it: its source is told, unless it allows fragments, which this network does not make. */
static void refuse_size(struct wan_flow *f, unsigned from, unsigned to, const struct wan_frame *frame, int64_t now_ns)
{
    struct pair *pair = pair_of(f, from, to);
    uint8_t message[WAN_TOOBIG_BYTES];
    struct wan_frame answer;
    pair->counts.too_big += frame->count;
    size_t size = wan_frame_toobig(frame, (uint32_t)pair->mtu, message);
    if (frame->may_fragment || !wan_frame_parse(message, size, &answer)) {
        return;
    }
    struct packet *p = packet_new(f, &answer, 0, 1);
    if (p != NULL) {
        p->from = to;
        p->to = from;
        p->stage = STAGE_NOTICE;
        p->last_ns = now_ns + pair->delay_ns;
        schedule(f, p, p->last_ns);
    }
}

void wan_flow_take(struct wan_flow *f, unsigned from, const uint8_t *bytes, size_t size, int64_t now_ns)
{
    struct wan_frame frame;
    unsigned to = 0;
    if (!wan_frame_parse(bytes, size, &frame) || !find_host(f, frame.target, &to) || to == from) {
        f->strays++;
        return;
    }
    struct pair *pair = pair_of(f, from, to);
    if (pair->cut) {
        pair->counts.cut += frame.count;
        return;
    }
    if (wan_frame_length(&frame, 0) > pair->mtu) {
        refuse_size(f, from, to, &frame, now_ns);
        return;
    }
    struct packet *p = packet_new(f, &frame, 0, frame.count);
    if (p != NULL) {
        p->from = from;
        p->to = to;
        p->stage = STAGE_UP;
        p->first_ns = p->last_ns = now_ns;
        pass(f, p, clock_of(f, p));
    }
}

int64_t wan_flow_next(const struct wan_flow *f)
{
    return f->event_count > 0 ? f->events[0].at_ns : INT64_MAX;
}

static void deliver(struct wan_flow *f, struct packet *p, const struct wan_output *out)
{
    struct pair *pair = pair_of(f, p->from, p->to);
    struct wan_counts *c = &pair->counts;
    const struct wan_frame *frame = &p->frame;
    int64_t at = 0;
    if (pair->cut) {
        c->cut += frame->count;
    } else if (!out->write(out->user, p->to, p->bytes, frame->size, &at)) {
        f->strays += frame->count;
    } else if (p->stage == STAGE_DUE) {
        int64_t late_ns = at - p->last_ns;
        c->forwarded += frame->count;
        c->forwarded_bytes += (uint64_t)frame->count * frame->header_bytes + frame->payload_bytes;
        c->writes++;
        c->late += late_ns > WAN_LATE_NS;
        c->latest_ns = late_ns > c->latest_ns ? late_ns : c->latest_ns;
    }
    packet_free(f, p);
}

unsigned wan_flow_run(struct wan_flow *f, int64_t now_ns, unsigned most, const struct wan_output *out)
{
    unsigned done = 0;
    for (; done < most && wan_flow_next(f) <= now_ns; done++) {
        struct packet *p = pop(f);
        if (p->stage == STAGE_DUE || p->stage == STAGE_NOTICE) {
            deliver(f, p, out);
        } else {
            pass(f, p, clock_of(f, p));
        }
    }
    return done;
}

/* ---- the network -------------------------------------------------------------------------------------------------- */

void wan_flow_set(struct wan_flow *f, unsigned from, unsigned to, const struct wan_values *v)
{
    struct pair *p = pair_of(f, from, to);
    if ((v->given & 1u << WAN_RATE) != 0) {
        p->clock.rate_bps = v->rate_bps;
        p->clock.part = 0;
        p->clock.queue_bytes = wan_network_queue(v->rate_bps);
    }
    p->clock.queue_bytes = (v->given & 1u << WAN_QUEUE) != 0 ? v->queue_bytes : p->clock.queue_bytes;
    p->delay_ns = (v->given & 1u << WAN_DELAY) != 0 ? v->delay_ns : p->delay_ns;
    p->jitter_ns = (v->given & 1u << WAN_JITTER) != 0 ? v->jitter_ns : p->jitter_ns;
    p->loss.share = (v->given & 1u << WAN_LOSS) != 0 ? v->loss : p->loss.share;
    p->loss.burst = (v->given & 1u << WAN_BURST) != 0 ? v->burst : p->loss.burst;
    p->mtu = (v->given & 1u << WAN_MTU) != 0 ? v->mtu : p->mtu;
}

void wan_flow_cut(struct wan_flow *f, unsigned from, unsigned to, bool on)
{
    pair_of(f, from, to)->cut = on;
}

double wan_flow_burst(const struct wan_flow *f, unsigned from, unsigned to)
{
    return pair_of(f, from, to)->loss.burst;
}

double wan_flow_loss(const struct wan_flow *f, unsigned from, unsigned to)
{
    return pair_of(f, from, to)->loss.share;
}

const struct wan_counts *wan_flow_counts(const struct wan_flow *f, unsigned from, unsigned to)
{
    return &pair_of(f, from, to)->counts;
}

uint64_t wan_flow_strays(const struct wan_flow *f)
{
    return f->strays;
}

uint64_t wan_flow_overflow(const struct wan_flow *f)
{
    return f->overflow;
}

static void clock_init(struct wan_clock *c, uint64_t rate_bps, uint64_t queue_bytes)
{
    *c = (struct wan_clock){.rate_bps = rate_bps, .queue_bytes = queue_bytes};
}

static void set_up(struct wan_flow *f, const struct wan_network *n)
{
    for (unsigned i = 0; i < n->host_count; i++) {
        const struct wan_values *v = &n->hosts[i].values;
        clock_init(&f->up[i], v->uplink_bps, v->uplink_queue_bytes);
        clock_init(&f->down[i], v->downlink_bps, v->downlink_queue_bytes);
    }
    for (unsigned i = 0; i < n->site_count; i++) {
        const struct wan_values *v = &n->sites[i].values;
        clock_init(&f->site_up[i], v->uplink_bps, v->uplink_queue_bytes);
        clock_init(&f->site_down[i], v->downlink_bps, v->downlink_queue_bytes);
    }
    for (unsigned i = 0; i < n->host_count * n->host_count; i++) {
        const struct wan_values *v = &n->pair[i];
        struct pair *p = &f->pairs[i];
        clock_init(&p->clock, v->rate_bps, v->queue_bytes);
        p->loss = (struct wan_loss){.share = v->loss, .burst = v->burst,
                                    .seed = wan_loss_seed(n->defaults.seed, i / n->host_count, i % n->host_count)};
        p->delay_ns = v->delay_ns;
        p->jitter_ns = v->jitter_ns;
        p->mtu = v->mtu;
    }
}

struct wan_flow *wan_flow_new(const struct wan_network *n, size_t most_bytes)
{
    struct wan_flow *f = calloc(1, sizeof *f);
    if (f == NULL) {
        return NULL;
    }
    f->network = n;
    f->host_count = n->host_count;
    f->store.most_bytes = most_bytes;
    f->pairs = calloc((size_t)n->host_count * n->host_count, sizeof *f->pairs);
    f->up = calloc(n->host_count, sizeof *f->up);
    f->down = calloc(n->host_count, sizeof *f->down);
    if (f->pairs == NULL || f->up == NULL || f->down == NULL) {
        wan_flow_free(f);
        return NULL;
    }
    set_up(f, n);
    return f;
}

void wan_flow_free(struct wan_flow *f)
{
    if (f == NULL) {
        return;
    }
    while (f->event_count > 0) {
        packet_free(f, pop(f));
    }
    wan_store_fini(&f->store);
    free(f->events);
    free(f->pairs);
    free(f->up);
    free(f->down);
    free(f);
}
