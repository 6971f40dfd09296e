/* stream.c - a data connection on a lane: frames straight from and into the buffers of operations.
 *
 * One read takes the rest of a payload into its place and the head of the next frame behind it; one write takes credits, a
 * head and its payload.  The descriptor is watched edge-triggered: can_in and can_out say what is known.
 *
 * Invariant: rx_exec and tx_exec are executors of this lane that have not been let go of; everything else goes through
 * scratch memory.
 * SPDX-License-Identifier: MIT */
#include <stdlib.h>
#include <string.h>

#include "core/clock.h"
#include "engine/comm.h"
#include "engine/links/link.h"
#include "engine/tables/link_table.h"
#include "net/conn.h"
#include "engine/lanes/lane_exec.h"
#include "engine/lanes/lane_flow.h"
#include "engine/lanes/stream.h"

enum {
    STREAM_BUDGET = 512 << 10, /* bytes per pass and direction, so that both keep moving */
    STREAM_CREDIT_BYTES = FRAME_HEADER_BYTES + P2P_CREDIT_BYTES,
};

struct stream *stream_new(struct link *link, uint64_t number, uint16_t index, struct conn *conn)
{
    struct stream *s = calloc(1, sizeof *s);
    if (s == NULL) {
        conn_unref(conn);
        return NULL;
    }
    conn_give_transport(conn, &s->transport);
    list_init(&s->all);
    s->source.fd = s->transport.fd;
    s->link = link;
    link_ref(link);
    s->comm = link->comm;
    s->peer = link->peer;
    s->number = number;
    s->beside = link->comm->links.count;
    s->index = index;
    atomic_init(&s->bound.window, FLOW_BASE);
    s->transport.ops->begin(&s->transport);
    return s;
}

void stream_free(struct stream *s)
{
    s->transport.ops->close(&s->transport);
    link_unref(s->link);
    free(s->tx_scratch);
    free(s);
}

bool stream_has_work(const struct stream *s)
{
    bool says = s->tx_open || s->work.first != NULL || !list_empty(&s->grants);
    return s->broken || s->can_in || (s->can_out && says);
}

/* Looks at what its transport tells without a system call, until that has told nothing for a while. */
static void stream_looks(struct stream *s)
{
    if (s->transport.ops->has != NULL) {
        loop_look_at(&s->lane->loop, &s->polled);
    }
}

static void stream_ready(struct source *source, uint32_t events)
{
    struct stream *s = LIST_ENTRY(source, struct stream, source);
    if (s->transport.ops->hear != NULL) { /* for either direction */
        s->broken |= s->transport.ops->hear(&s->transport) == PCCL_ERR_PROTOCOL;
        s->can_in = s->can_out = true;
        stream_looks(s);
    }
    if ((events & (EPOLLIN | EPOLLHUP | EPOLLERR | EPOLLRDHUP)) != 0) {
        s->can_in = true;
    }
    if ((events & EPOLLOUT) != 0) {
        s->can_out = true;
    }
    stream_due(s);
}

static bool stream_look(struct polled *p)
{
    struct stream *s = LIST_ENTRY(p, struct stream, polled);
    bool in = !s->can_in && s->transport.ops->has(&s->transport);
    bool out = !s->can_out && s->transport.ops->room(&s->transport, false);
    s->can_in |= in;
    s->can_out |= out;
    if (in || out) {
        stream_due(s);
    }
    return in || out;
}

/* By its transport, which is polled by itself. */
static void stream_told(void *user)
{
    struct stream *s = user;
    s->can_in = s->can_out = true;
    stream_due(s);
}

static bool stream_rest(struct polled *p)
{
    struct stream *s = LIST_ENTRY(p, struct stream, polled);
    bool room = !s->can_out && s->transport.ops->room(&s->transport, true);
    return s->transport.ops->rest(&s->transport) && !room;
}

bool stream_open(struct stream *s, struct lane *lane)
{
    s->lane = lane;
    s->source.ready = stream_ready;
    list_init(&s->partners);
    list_init(&s->grants);
    list_append(&lane->streams, &s->all);
    buckets_add(&lane->peers, &s->by_peer);
    s->can_in = s->can_out = true;
    list_init(&s->due);
    list_init(&s->polled.all);
    s->polled.look = stream_look;
    s->polled.rest = stream_rest;
    stream_looks(s);
    stream_due(s);
    exec_edge_clear(&s->edge);
    lane_flow_begin(s);
    if (s->transport.ops->open != NULL && !s->transport.ops->open(&s->transport, stream_told, s)) {
        return false;
    }
    /* A socket that is a bell only is always writable; each bell taken from it would say so again to the end that rang. */
    uint32_t out = s->transport.ops->hear != NULL ? 0 : EPOLLOUT;
    return loop_add(&lane->loop, &s->source, EPOLLIN | out | EPOLLRDHUP | EPOLLET, NULL) == PCCL_OK;
}

void stream_close(struct stream *s)
{
    lane_flow_end(s);
    loop_remove(&s->lane->loop, &s->source);
    loop_look_away(&s->lane->loop, &s->polled);
    list_remove(&s->all);
    list_remove(&s->by_peer);
    list_remove(&s->due);
    LIST_FOR_EACH(l, after, &s->partners) {
        lane_unbind(LIST_ENTRY(l, struct lane_partner, bound));
    }
    s->lane->calls->gone(s);
    stream_free(s);
}

/* ---- Receiving ------------------------------------------------------------------------------------------------------------ */

/* The operation has moved at the other end. */
static void stream_moved(struct stream *s, struct lane_exec *e, uint32_t partner, const struct msg_credit *m)
{
    if (m->moved_ms > 0) {
        struct exec_move move = {exec_move_at(m->moved_ms, clock_now_ns()), m->moved_far};
        struct exec_wait wait = exec_waits_for(&e->x);
        exec_watch_heard(&e->watch, &wait, e->op->plan.made->asked.world, partner, &move);
        lane_tell(s->lane, e);
    }
}

static bool stream_credit(struct stream *s, const struct frame_header *h, struct reader *r)
{
    struct msg_credit m;
    struct exec_out out;
    if (!get_credit(r, &m)) {
        return false;
    }
    m.name.to = space_pairs(m.name.space) ? s->peer : 0;
    struct lane_exec *e = lane_find(s->lane, s->comm, h->view, &m.name);
    if (e != NULL) {
        uint32_t partner = plan_made_partner(e->op->plan.made, s->peer);
        struct exec_event event = {.kind = EXEC_CREDIT, .partner = partner, .credit = m.frames, .sums = m.ready};
        if (partner != PLAN_NOBODY && lane_bind(e, partner, s)) {
            if (m.frames > 0) {
                exec_edge_note(&s->edge.granted, e->partner[partner].launch);
            }
            lane_step(s->lane, e, &event, &out);
            stream_moved(s, e, partner, &m);
        }
    }
    return true;
}

static bool stream_data(struct stream *s, const struct frame_header *h, struct reader *r)
{
    struct msg_data m;
    struct exec_out out;
    uint32_t bytes = h->length - P2P_DATA_PREFIX;
    if (!get_data(r, &m)) {
        return false;
    }
    m.name.from = space_pairs(m.name.space) ? s->peer : 0;
    struct lane_exec *e = lane_find(s->lane, s->comm, h->view, &m.name);
    stream_drain(s);
    s->rx_left = bytes;
    if (e == NULL || !lane_exec_buffer(s->lane, e)) {
        return true; /* of an operation that has been stopped, or is about to be: drained */
    }
    uint32_t partner = plan_made_partner(e->op->plan.made, s->peer);
    struct exec_event event = {.kind = EXEC_HEADER, .partner = partner, .frame = m.frame, .phase = m.phase, .bytes = bytes};
    if (partner == PLAN_NOBODY) {
        return false; /* nothing of this operation comes from there */
    }
    if (!lane_bind(e, partner, s)) {
        return true; /* frames before this one were lost: its view is about to end */
    }
    lane_step(s->lane, e, &event, &out);
    if (out.refused || (out.dst == NULL && bytes > 0)) {
        return false;
    }
    s->rx_exec = e;
    s->rx_partner = partner;
    s->rx_contributes = m.phase == 0;
    s->rx_dst = out.dst;
    s->rx_element = s->transport.ops->lend != NULL ? out.lend : 0;
    s->part_used = 0;
    return true;
}

/* The payload announced last is complete. */
static void stream_arrived(struct stream *s)
{
    struct lane_exec *e = s->rx_exec;
    struct exec_out out;
    stream_drain(s);
    if (e != NULL) {
        lane_step(s->lane, e, &(struct exec_event){.kind = EXEC_ARRIVED, .partner = s->rx_partner}, &out);
        if (s->rx_contributes) {
            lane_flow_arrived(s);
        }
    }
}

/* Payload of an operation has come. */
static void stream_count(struct stream *s, struct lane_exec *e, size_t payload)
{
    atomic_fetch_add_explicit(&e->op->moved, payload, memory_order_relaxed);
    exec_edge_note(&s->edge.received, e->partner[s->rx_partner].launch);
    s->lane->received += payload;
}

static void stream_lend(struct stream *s, const void *data, size_t bytes)
{
    struct exec_out out;
    if (bytes > 0) {
        struct exec_event event = {.kind = EXEC_LENT, .partner = s->rx_partner, .data = data, .bytes = (uint32_t)bytes};
        lane_step(s->lane, s->rx_exec, &event, &out);
    }
}

/* The next bytes of the payload: to their place, or element by element to the executor. */
static void stream_take(struct stream *s, const unsigned char *data, uint32_t bytes)
{
    if (s->rx_element == 0) {
        if (s->rx_dst != NULL) {
            memcpy(s->rx_dst, data, bytes);
            s->rx_dst += bytes;
        }
        return;
    }
    if (s->part_used > 0) {
        uint32_t rest = s->rx_element - s->part_used;
        rest = rest < bytes ? rest : bytes;
        memcpy(s->part + s->part_used, data, rest);
        s->part_used += rest;
        data += rest;
        bytes -= rest;
        if (s->part_used < s->rx_element) {
            return;
        }
        stream_lend(s, s->part, s->part_used);
    }
    s->part_used = bytes % s->rx_element;
    stream_lend(s, data, bytes - s->part_used);
    memcpy(s->part, data + bytes - s->part_used, s->part_used);
}

/* So many bytes of the payload are where they belong. */
static void stream_took(struct stream *s, uint32_t bytes)
{
    s->rx_left -= bytes;
    if (bytes > 0 && s->rx_exec != NULL) {
        stream_count(s, s->rx_exec, bytes);
    }
    if (s->rx_left == 0) {
        stream_arrived(s);
    }
}

/* Takes the next head out of `small` and what is there of its payload.  AGAIN: more bytes are needed. */
static pccl_status stream_parse(struct stream *s)
{
    struct frame_header h;
    struct reader r;
    uint32_t have = s->small_used - s->small_at;
    const unsigned char *at = s->small + s->small_at;
    if (have < FRAME_HEADER_BYTES) {
        return PCCL_ERR_AGAIN;
    }
    if (!frame_get(at, &h) || (h.type != FRAME_DATA && h.type != FRAME_CREDIT)) {
        return PCCL_ERR_PROTOCOL;
    }
    uint32_t fixed = h.type == FRAME_DATA ? P2P_DATA_PREFIX : h.length;
    if (h.length < fixed || fixed > STREAM_AHEAD - FRAME_HEADER_BYTES) {
        return PCCL_ERR_PROTOCOL;
    }
    if (have < FRAME_HEADER_BYTES + fixed) {
        return PCCL_ERR_AGAIN;
    }
    s->small_at += FRAME_HEADER_BYTES + fixed;
    reader_init(&r, at + FRAME_HEADER_BYTES, fixed);
    if (h.type == FRAME_CREDIT) {
        return stream_credit(s, &h, &r) ? PCCL_OK : PCCL_ERR_PROTOCOL;
    }
    if (!stream_data(s, &h, &r)) {
        return PCCL_ERR_PROTOCOL;
    }
    uint32_t here = s->small_used - s->small_at;
    here = here < s->rx_left ? here : s->rx_left;
    stream_take(s, s->small + s->small_at, here);
    s->small_at += here;
    stream_took(s, here);
    return PCCL_OK;
}

/* A piece of a payload that is lent. */
static pccl_status stream_borrow(struct stream *s, size_t *moved)
{
    const void *data;
    pccl_status st = s->transport.ops->lend(&s->transport, &data, moved);
    if (st != PCCL_OK) {
        return st;
    }
    *moved = *moved < s->rx_left ? *moved : s->rx_left;
    stream_take(s, data, (uint32_t)*moved);
    s->transport.ops->lent(&s->transport, *moved);
    stream_took(s, (uint32_t)*moved);
    return PCCL_OK;
}

/* One read: the rest of a payload, then heads. */
static pccl_status stream_read(struct stream *s, size_t *moved)
{
    struct iovec parts[2];
    int count = 0;
    if (s->rx_element > 0 && s->small_at == s->small_used) {
        return stream_borrow(s, moved);
    }
    if (s->small_at == s->small_used) {
        s->small_at = s->small_used = 0;
    } else if (s->small_at > 0) {
        memmove(s->small, s->small + s->small_at, s->small_used - s->small_at);
        s->small_used -= s->small_at;
        s->small_at = 0;
    }
    uint32_t want = s->rx_left;
    if (want > 0) {
        if (s->rx_dst == NULL && want > LANE_SCRATCH) {
            want = LANE_SCRATCH;
        }
        parts[count].iov_base = s->rx_dst != NULL ? s->rx_dst : s->lane->scratch;
        parts[count++].iov_len = want;
    }
    /* Few bytes behind a payload, so that most of the next one goes straight to its place, too; none of it, if it may be lent. */
    size_t most = s->transport.ops->lend != NULL && s->small_used < STREAM_HEAD ? STREAM_HEAD : STREAM_AHEAD;
    size_t heads = want == s->rx_left ? most - s->small_used : 0;
    if (heads > 0) {
        parts[count].iov_base = s->small + s->small_used;
        parts[count++].iov_len = heads;
    }
    pccl_status st = s->transport.ops->receive(&s->transport, parts, count, moved);
    if (st != PCCL_OK) {
        return st;
    }
    size_t payload = *moved < want ? *moved : want;
    if (s->rx_dst != NULL) {
        s->rx_dst += payload;
    }
    s->small_used += (uint32_t)(*moved - payload);
    if (payload > 0) {
        stream_took(s, (uint32_t)payload);
    }
    return PCCL_OK;
}

bool stream_receive(struct stream *s)
{
    size_t total = 0;
    while (s->can_in && !s->broken && total < STREAM_BUDGET) {
        size_t moved = 0;
        pccl_status st = stream_read(s, &moved);
        if (st == PCCL_ERR_AGAIN) {
            s->can_in = false;
            break;
        }
        if (st != PCCL_OK) {
            s->broken = true;
            break;
        }
        total += moved;
        while (s->rx_left == 0 && (st = stream_parse(s)) == PCCL_OK) {
        }
        if (st == PCCL_ERR_PROTOCOL) {
            s->broken = true;
        }
    }
    atomic_fetch_add_explicit(&s->rx_bytes, total, memory_order_relaxed);
    return total > 0;
}

/* ---- Sending -------------------------------------------------------------------------------------------------------------- */

static void stream_head(struct stream *s, uint8_t type, uint32_t length, uint64_t view)
{
    struct frame_header h = {
        .type = type, .lane = (uint16_t)s->lane->index, .length = length, .run = s->comm->master.run, .view = view,
    };
    frame_put(s->head + s->head_used, &h);
    s->head_used += FRAME_HEADER_BYTES;
}

/* Grants that wait to be told, as far as the head buffer goes. */
static void stream_credits(struct stream *s)
{
    while (!list_empty(&s->grants) && s->head_used + STREAM_CREDIT_BYTES <= STREAM_CREDITS) {
        struct lane_partner *p = LIST_ENTRY(list_pop(&s->grants), struct lane_partner, grants);
        const struct comm_op *op = p->exec->op;
        struct exec_credit credit;
        if (exec_take_credit(&p->exec->x, (uint32_t)(p - p->exec->partner), &credit)) {
            struct msg_credit m = {.name = op->run.name, .frames = credit.frames, .ready = credit.sums, .moved_far = credit.moved.far};
            m.moved_ms = credit.moved.at != 0 ? exec_move_ms(credit.moved.at, clock_now_ns()) : 0;
            struct writer w;
            stream_head(s, FRAME_CREDIT, STREAM_CREDIT_BYTES - FRAME_HEADER_BYTES, op->run.view);
            writer_init(&w, s->head + s->head_used, STREAM_CREDIT_BYTES - FRAME_HEADER_BYTES);
            put_credit(&w, &m);
            s->head_used += (uint32_t)w.used;
        }
    }
}

/* Picks the next frame, in the order of launches; false: there is none. */
static bool stream_pull(struct stream *s)
{
    for (struct turn *t = turns_pop(&s->work); t != NULL; t = turns_pop(&s->work)) {
        struct lane_partner *p = LIST_ENTRY(t, struct lane_partner, work);
        struct lane_exec *e = p->exec;
        uint32_t partner = (uint32_t)(p - e->partner);
        struct exec_out out;
        if (!lane_exec_buffer(s->lane, e)) {
            continue;
        }
        lane_step(s->lane, e, &(struct exec_event){.kind = EXEC_PULL, .partner = partner}, &out);
        if (out.data == NULL) {
            continue; /* it is offered again when it has one */
        }
        struct msg_data m = {.name = e->op->run.name, .frame = out.frame, .phase = (uint8_t)out.phase};
        struct writer w;
        stream_head(s, FRAME_DATA, P2P_DATA_PREFIX + out.bytes, e->op->run.view);
        writer_init(&w, s->head + s->head_used, P2P_DATA_PREFIX);
        put_data(&w, &m);
        s->head_used += P2P_DATA_PREFIX;
        s->tx_open = true;
        s->tx_exec = e;
        s->tx_partner = partner;
        s->tx_data = out.data;
        s->tx_left = out.bytes;
        return true;
    }
    return false;
}

static void stream_sent(struct stream *s)
{
    struct lane_exec *e = s->tx_exec;
    struct exec_out out;
    s->tx_open = false;
    s->tx_exec = NULL;
    s->tx_data = NULL;
    if (e != NULL) {
        lane_step(s->lane, e, &(struct exec_event){.kind = EXEC_SENT, .partner = s->tx_partner}, &out);
        s->lane->again |= !e->op->run.numeric.plain; /* results wait for such buffers, whose streams may have had their turn */
    }
}

static pccl_status stream_write(struct stream *s, size_t *moved)
{
    struct iovec parts[2];
    int count = 0;
    if (s->head_at < s->head_used) {
        parts[count].iov_base = s->head + s->head_at;
        parts[count++].iov_len = s->head_used - s->head_at;
    }
    if (s->tx_left > 0) {
        union {
            const unsigned char *in;
            void *out;
        } data = {.in = s->tx_data}; /* iovec has no const form */
        parts[count].iov_base = data.out;
        parts[count++].iov_len = s->tx_left;
    }
    pccl_status st = s->transport.ops->send(&s->transport, parts, count, moved);
    if (st != PCCL_OK) {
        return st;
    }
    size_t head = s->head_used - s->head_at;
    head = *moved < head ? *moved : head;
    s->head_at += (uint32_t)head;
    if (s->head_at == s->head_used) {
        s->head_at = s->head_used = 0;
    }
    uint32_t payload = (uint32_t)(*moved - head);
    if (payload > 0) { /* else there may be no data at all, not even an address */
        s->tx_data += payload;
        s->tx_left -= payload;
    }
    if (payload > 0 && s->tx_exec != NULL) {
        atomic_fetch_add_explicit(&s->tx_exec->op->moved, payload, memory_order_relaxed);
        exec_edge_note(&s->edge.sent, s->tx_exec->op->run.launch);
    }
    return PCCL_OK;
}

bool stream_send(struct stream *s)
{
    size_t total = 0;
    while (s->can_out && !s->broken) {
        if (!s->tx_open && s->head_at == s->head_used) {
            if (total >= STREAM_BUDGET) {
                break; /* what is left for it waits in its lists */
            }
            stream_credits(s);
            stream_pull(s);
            if (s->head_at == s->head_used) {
                break; /* nothing to say */
            }
        }
        size_t moved = 0;
        pccl_status st = stream_write(s, &moved);
        total += moved;
        if (st == PCCL_ERR_AGAIN) {
            s->can_out = false;
            stream_looks(s);
        } else if (st != PCCL_OK) {
            s->broken = true;
        } else if (s->tx_open && s->head_at == s->head_used && s->tx_left == 0) {
            stream_sent(s);
        }
    }
    atomic_fetch_add_explicit(&s->tx_bytes, total, memory_order_relaxed);
    return total > 0;
}

