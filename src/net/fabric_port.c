/* fabric_port.c - messages of all connections of a port: which connection each is of, in what order, and room for them.
 *
 * A connection's receiver has FABRIC_WINDOW buffers for it, so one that is not read keeps no other waiting.  Nothing in a message is
 * believed: a key that nobody has is dropped, an order or a length that cannot be ends the connection.
 *
 * Invariant: posted + held buffers are what the connections of the port are granted; a buffer is in one place only.
 * SPDX-License-Identifier: MIT */
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "core/clock.h"
#include "core/mutant.h"
#include "core/mix.h"
#include "core/pages.h"
#include "net/fabric_port.h"

enum { FABRIC_BATCH = 16, FABRIC_ROUNDS = 8, FABRIC_TICK_NS = CLOCK_MS };

/* ---- Buffers --------------------------------------------------------------------------------------------------------------- */

static bool fabric_more_buffers(struct fabric_port *p)
{
    const size_t bytes = (size_t)FABRIC_SLAB * FABRIC_BUFFER_BYTES;
    struct fabric_slab *slab = calloc(1, sizeof *slab);
    if (slab == NULL) {
        return false;
    }
    slab->memory = pages_new(bytes);
    bool local = (p->info->domain_attr->mr_mode & FI_MR_LOCAL) != 0;
    if (slab->memory == NULL ||
        (local && fi_mr_reg(p->domain, slab->memory, bytes, FI_SEND | FI_RECV, 0, p->made, 0, &slab->mr, NULL) != 0)) {
        pages_free(slab->memory, bytes);
        free(slab);
        return false;
    }
    if (local) { /* else a fork moves this process's copy away from the pages that the device knows */
        int rc = madvise(slab->memory, bytes, MADV_DONTFORK);
        (void)rc;
    }
    p->made += FABRIC_SLAB;
    for (int i = 0; i < FABRIC_SLAB; i++) {
        struct fabric_buffer *b = &slab->buffer[i];
        b->bytes = slab->memory + (size_t)i * FABRIC_BUFFER_BYTES;
        b->desc = slab->mr != NULL ? fi_mr_desc(slab->mr) : NULL;
        list_append(&p->spare, &b->all);
    }
    list_append(&p->slabs, &slab->all);
    return true;
}

struct fabric_buffer *fabric_take_buffer(struct fabric_port *p)
{
    if (list_empty(&p->spare) && !fabric_more_buffers(p)) {
        return NULL;
    }
    struct fabric_buffer *b = LIST_ENTRY(list_pop(&p->spare), struct fabric_buffer, all);
    b->at = FABRIC_HEAD_BYTES;
    b->used = FABRIC_HEAD_BYTES;
    b->owner = NULL;
    return b;
}

static uint32_t fabric_wanted(const struct fabric_port *p)
{
    return p->connections * (FABRIC_WINDOW + FABRIC_WORDS);
}

/* Receives may take no buffer that sends need: so many are there for one connection more. */
static bool fabric_reserve(struct fabric_port *p)
{
    while (p->made < (uint64_t)(p->connections + 1) * (FABRIC_WINDOW + FABRIC_WORDS + FABRIC_SENDS)) {
        if (!fabric_more_buffers(p)) {
            return false;
        }
    }
    return true;
}

static bool fabric_no_room(ssize_t rc)
{
    return rc == -FI_EAGAIN || rc == -FI_ENOMEM;
}

/* All connections end when the port is looked at next. */
static void fabric_fail(struct fabric_port *p)
{
    p->failed = true;
    loop_look_at(p->loop, &p->polled);
}

/* As many buffers receive as connections are granted; what the provider has no room for is tried again later. */
static void fabric_post(struct fabric_port *p)
{
    while (p->posted + p->held < fabric_wanted(p)) {
        struct fabric_buffer *b = fabric_take_buffer(p);
        if (b == NULL) {
            return;
        }
        ssize_t rc = fi_recv(p->ep, b->bytes, FABRIC_BUFFER_BYTES, b->desc, FI_ADDR_UNSPEC, &b->context);
        if (rc != 0) {
            list_prepend(&p->spare, &b->all);
            if (!fabric_no_room(rc)) {
                fabric_fail(p);
            }
            return;
        }
        p->posted++;
    }
}

void fabric_give_buffer(struct fabric_port *p, struct fabric_buffer *b)
{
    list_remove(&b->all);
    list_prepend(&p->spare, &b->all); /* the next one is in cache */
}

static void fabric_drop(struct fabric_port *p, struct fabric_buffer *b)
{
    p->held--;
    fabric_give_buffer(p, b);
}

void fabric_was_read(struct fabric *f, struct fabric_buffer *b)
{
    fabric_drop(f->port, b);
    f->freed++;
    fabric_post(f->port);
}

/* ---- Connections ------------------------------------------------------------------------------------------------------------- */

static struct list *fabric_bucket(struct fabric_port *p, uint64_t key)
{
    return &p->by_key[mix64(0, key) % FABRIC_BUCKETS];
}

static struct fabric *fabric_find(struct fabric_port *p, uint64_t key)
{
    LIST_FOR_EACH(l, after, fabric_bucket(p, key)) {
        struct fabric *f = LIST_ENTRY(l, struct fabric, by_key);
        if (f->ours.key == key) {
            return f;
        }
    }
    return NULL;
}

static struct fabric_peer *fabric_peer_of(struct fabric_port *p, const struct fabric_end *end)
{
    LIST_FOR_EACH(l, after, &p->peers) {
        struct fabric_peer *peer = LIST_ENTRY(l, struct fabric_peer, all);
        if (peer->end.bytes == end->bytes && memcmp(peer->end.address, end->address, end->bytes) == 0) {
            peer->refs++;
            return peer;
        }
    }
    struct fabric_peer *peer = calloc(1, sizeof *peer);
    if (peer == NULL) {
        return NULL;
    }
    peer->refs = 1;
    peer->end = *end;
    if (fi_av_insert(p->av, peer->end.address, 1, &peer->at, 0, NULL) != 1) {
        free(peer);
        return NULL;
    }
    list_append(&p->peers, &peer->all);
    return peer;
}

static void fabric_peer_drop(struct fabric_port *p, struct fabric_peer *peer)
{
    if (--peer->refs == 0) {
        int rc = fi_av_remove(p->av, &peer->at, 1, 0);
        (void)rc; /* it is not used again */
        list_remove(&peer->all);
        free(peer);
    }
}

/* It has a word to say that found no room: tried again whenever the port is looked at. */
static void fabric_owe(struct fabric *f)
{
    if (list_empty(&f->owing)) {
        list_append(&f->port->owing, &f->owing);
    }
    loop_look_at(f->port->loop, &f->port->polled);
}

void fabric_wait(struct fabric *f)
{
    f->blocked = true;
    fabric_owe(f);
}

/* Greetings, and sends and receives that found no room, go on with the time: not every provider tells of its own progress. */
static void fabric_tick(struct fabric_port *p)
{
    bool short_of = p->posted + p->held < fabric_wanted(p);
    bool needed = !p->failed && p->connections > 0 && (!p->waits || p->greeting > 0 || short_of || !list_empty(&p->owing));
    if (needed && !p->ticking) {
        struct itimerspec at = {.it_value = {.tv_nsec = FABRIC_TICK_NS}};
        p->ticking = timerfd_settime(p->tick.fd, 0, &at, NULL) == 0;
    }
}

bool fabric_enter(struct fabric *f)
{
    struct fabric_port *p = f->port;
    f->peer = p->failed || !fabric_reserve(p) ? NULL : fabric_peer_of(p, &f->theirs);
    if (f->peer == NULL) {
        return false;
    }
    f->open = true;
    f->granted = FABRIC_WINDOW;
    list_append(fabric_bucket(p, f->ours.key), &f->by_key);
    p->connections++;
    p->greeting++;
    fabric_post(p);
    fabric_tick(p);
    loop_look_at(p->loop, &p->polled);
    return true;
}

static void fabric_free(struct fabric *f)
{
    list_remove(&f->closing);
    fabric_peer_drop(f->port, f->peer);
    free(f);
}

void fabric_leave(struct fabric *f)
{
    struct fabric_port *p = f->port;
    if (!f->open) {
        free(f);
        return;
    }
    while (!list_empty(&f->early)) {
        fabric_drop(p, LIST_ENTRY(f->early.next, struct fabric_buffer, all));
    }
    while (!list_empty(&f->arrived)) {
        fabric_drop(p, LIST_ENTRY(f->arrived.next, struct fabric_buffer, all));
    }
    list_remove(&f->by_key);
    list_remove(&f->owing);
    p->connections--;
    p->greeting -= !f->good;
    f->closed = true;
    list_append(&p->closing, &f->closing);
    if (f->sends == 0) {
        fabric_free(f);
    }
}

static void fabric_break(struct fabric *f)
{
    f->broken = true;
    f->told(f->user);
}

/* ---- Sending ----------------------------------------------------------------------------------------------------------------- */

pccl_status fabric_send(struct fabric *f, enum fabric_kind kind, struct fabric_buffer *b)
{
    struct fabric_port *p = f->port;
    uint8_t grant = (uint8_t)(kind == FABRIC_HELLO ? FABRIC_WINDOW : f->freed);
    struct writer w;
    writer_init(&w, b->bytes, FABRIC_HEAD_BYTES);
    put_fabric_head(&w, &(struct fabric_head){.key = f->theirs.key, .number = f->sent, .kind = (uint8_t)kind, .grant = grant});
    ssize_t rc = p->failed ? -FI_EOTHER : fi_send(p->ep, b->bytes, b->used, b->desc, f->peer->at, &b->context);
    if (fabric_no_room(rc)) {
        fabric_wait(f);
        return PCCL_ERR_AGAIN;
    }
    if (rc != 0) {
        f->broken = true;
        return PCCL_ERR_CLOSED;
    }
    loop_look_at(p->loop, &p->polled); /* a send may go on only while somebody looks */
    b->owner = f;
    f->sends++;
    f->sent++;
    if (kind != FABRIC_HELLO) {
        f->granted += grant;
        f->freed = 0;
    }
    f->answered |= kind != FABRIC_HELLO;
    f->greeted = true;
    return PCCL_OK;
}

/* HELLO, once the other end has room for it; an answer to its own; a grant, when half a window is free. */
static bool fabric_owes(const struct fabric *f)
{
    return f->lives && (!f->greeted || (f->heard && !f->answered) || f->freed >= FABRIC_WINDOW / 2);
}

void fabric_say(struct fabric *f)
{
    while (!f->broken && fabric_owes(f)) {
        enum fabric_kind kind = f->greeted ? FABRIC_GRANT : FABRIC_HELLO;
        struct fabric_buffer *b = fabric_take_buffer(f->port);
        pccl_status st = b != NULL ? fabric_send(f, kind, b) : PCCL_ERR_AGAIN;
        if (st != PCCL_OK) {
            if (b != NULL) {
                fabric_give_buffer(f->port, b);
            }
            fabric_owe(f);
            return;
        }
    }
}

static void fabric_sent(struct fabric_port *p, struct fabric_buffer *b, bool lost)
{
    struct fabric *f = b->owner;
    f->sends--;
    fabric_give_buffer(p, b);
    if (!f->closed) {
        if (lost) {
            fabric_break(f);
        }
    } else if (f->sends == 0) {
        fabric_free(f);
    }
}

/* ---- Receiving --------------------------------------------------------------------------------------------------------------- */

/* The next message in order.  False: no honest end sends that. */
static bool fabric_accept(struct fabric *f, struct fabric_buffer *b)
{
    bool bytes = b->kind == FABRIC_BYTES;
    if ((b->kind == FABRIC_HELLO) == f->heard || f->credit + b->grant > FABRIC_WINDOW || bytes != (b->used > FABRIC_HEAD_BYTES) ||
        (bytes && f->granted == 0)) {
        return false;
    }
    f->received++;
    f->credit += b->grant;
    if (f->heard && !f->good) { /* whoever says more has heard our HELLO, too */
        f->good = true;
        f->port->greeting--;
    }
    f->heard = true;
    if (bytes) {
        f->granted--;
        list_append(&f->arrived, &b->all);
        return true;
    }
    fabric_drop(f->port, b);
    return true;
}

/* Among the early ones, by number.  False: there is one of that number, or it is further ahead than its end has room for. */
static bool fabric_line_up(struct fabric *f, struct fabric_buffer *b)
{
    struct list *place = &f->early;
    uint32_t ahead = b->number - f->received;
    while (place->prev != &f->early) {
        uint32_t other = LIST_ENTRY(place->prev, struct fabric_buffer, all)->number - f->received;
        if (other < ahead) {
            break;
        }
        if (other == ahead) {
            return false;
        }
        place = place->prev;
    }
    list_insert(place, &b->all);
    return ahead < FABRIC_WINDOW + FABRIC_WORDS;
}

static bool fabric_in_turn(const struct fabric *f)
{
    return !list_empty(&f->early) &&
           (LIST_ENTRY(f->early.next, struct fabric_buffer, all)->number == f->received || MUTANT(FABRIC_UNORDERED));
}

/* A message that is long may be overtaken by one that is short. */
static void fabric_take(struct fabric *f, struct fabric_buffer *b)
{
    f->port->held++;
    if (!fabric_line_up(f, b)) {
        f->broken = true;
        fabric_drop(f->port, b);
    }
    while (!f->broken && fabric_in_turn(f)) {
        struct fabric_buffer *first = LIST_ENTRY(list_pop(&f->early), struct fabric_buffer, all);
        if (!fabric_accept(f, first)) {
            f->broken = true;
            fabric_drop(f->port, first);
        }
    }
    fabric_say(f);
    f->told(f->user);
}

static void fabric_received(struct fabric_port *p, struct fabric_buffer *b, size_t bytes)
{
    struct reader r;
    p->posted--;
    reader_init(&r, b->bytes, bytes < FABRIC_HEAD_BYTES ? bytes : FABRIC_HEAD_BYTES);
    struct fabric_head h;
    struct fabric *f = get_fabric_head(&r, &h) && bytes <= FABRIC_BUFFER_BYTES ? fabric_find(p, h.key) : NULL;
    b->number = h.number;
    b->kind = h.kind;
    b->grant = h.grant;
    b->at = FABRIC_HEAD_BYTES;
    b->used = (uint32_t)bytes;
    if (f != NULL && !f->broken) {
        fabric_take(f, b);
    } else {
        list_prepend(&p->spare, &b->all); /* nobody waits for it */
    }
}

/* ---- What the provider has ----------------------------------------------------------------------------------------------------- */

static void fabric_error(struct fabric_port *p)
{
    struct fi_cq_err_entry e = {.err = 0};
    ssize_t n = fi_cq_readerr(p->cq, &e, 0);
    struct fabric_buffer *b = n > 0 ? e.op_context : NULL; /* its first member */
    if (b == NULL) { /* about a process that has gone, say, of which its socket tells; a queue that ran over has lost what was in it */
        if ((n < 0 && n != -FI_EAGAIN) || e.err == FI_EOVERRUN) {
            fabric_fail(p);
        }
        return;
    }
    if (b->owner != NULL) {
        fabric_sent(p, b, true);
    } else { /* a message that was cut, or the endpoint closes */
        p->posted--;
        list_prepend(&p->spare, &b->all);
    }
}

static int fabric_batch(struct fabric_port *p)
{
    struct fi_cq_msg_entry entry[FABRIC_BATCH];
    ssize_t n = fi_cq_read(p->cq, entry, FABRIC_BATCH);
    if (n == -FI_EAVAIL) {
        fabric_error(p);
        return 1;
    }
    for (ssize_t i = 0; i < n; i++) {
        struct fabric_buffer *b = entry[i].op_context;
        if (b->owner != NULL) {
            fabric_sent(p, b, false);
        } else {
            fabric_received(p, b, entry[i].len);
        }
    }
    if (n < 0 && n != -FI_EAGAIN && n != -FI_EINTR) {
        fabric_fail(p);
    }
    return n > 0 ? (int)n : 0;
}

/* The provider may have room now for who found none. */
static void fabric_retry(struct fabric_port *p)
{
    struct list now;
    list_init(&now);
    for (struct list *l = list_pop(&p->owing); l != NULL; l = list_pop(&p->owing)) {
        list_append(&now, l);
    }
    for (struct list *l = list_pop(&now); l != NULL; l = list_pop(&now)) {
        struct fabric *f = LIST_ENTRY(l, struct fabric, owing);
        f->blocked = false;
        fabric_say(f);
        f->told(f->user);
    }
}

static void fabric_fail_all(struct fabric_port *p)
{
    for (int i = 0; i < FABRIC_BUCKETS; i++) {
        LIST_FOR_EACH(l, after, &p->by_key[i]) {
            struct fabric *f = LIST_ENTRY(l, struct fabric, by_key);
            if (!f->broken) {
                fabric_break(f);
            }
        }
    }
}

bool fabric_progress(struct fabric_port *p)
{
    bool moved = false;
    for (int round = 0; round < FABRIC_ROUNDS && !p->failed; round++) {
        int n = fabric_batch(p);
        moved |= n > 0;
        if (n < FABRIC_BATCH) {
            break;
        }
    }
    if (!p->failed) {
        fabric_post(p);
        fabric_retry(p);
    }
    if (p->failed) {
        fabric_fail_all(p);
    }
    return moved;
}

bool fabric_look(struct polled *p)
{
    return fabric_progress(LIST_ENTRY(p, struct fabric_port, polled));
}

/* An end lives, and nothing comes of it through the fabric, or no answer: there is no way. */
static void fabric_overdue(struct fabric_port *p)
{
    int64_t now = clock_now_ns();
    for (int i = 0; i < FABRIC_BUCKETS && p->greeting > 0; i++) {
        LIST_FOR_EACH(l, after, &p->by_key[i]) {
            struct fabric *f = LIST_ENTRY(l, struct fabric, by_key);
            if (!f->good && f->lives && !f->broken && now - f->lives_at > p->patience_ns) {
                fabric_break(f);
            }
        }
    }
}

bool fabric_rest(struct polled *polled)
{
    struct fabric_port *p = LIST_ENTRY(polled, struct fabric_port, polled);
    struct fid *queue = &p->cq->fid;
    if (p->failed) {
        return true; /* it has nothing to say any more */
    }
    if (p->waits && fi_trywait(p->fabric, &queue, 1) != FI_SUCCESS) {
        return false;
    }
    if (p->waits) {
        loop_change(p->loop, &p->queue, EPOLLIN | EPOLLONESHOT);
    }
    fabric_tick(p);
    return true;
}

void fabric_queue_ready(struct source *source, uint32_t events)
{
    struct fabric_port *p = LIST_ENTRY(source, struct fabric_port, queue);
    (void)events;
    loop_look_at(p->loop, &p->polled);
    fabric_progress(p);
}

void fabric_tick_ready(struct source *source, uint32_t events)
{
    struct fabric_port *p = LIST_ENTRY(source, struct fabric_port, tick);
    uint64_t count;
    (void)events;
    ssize_t rc = read(source->fd, &count, sizeof count);
    (void)rc;
    p->ticking = false;
    loop_look_at(p->loop, &p->polled);
    fabric_progress(p);
    fabric_overdue(p); /* what has come counts, however late this thread is */
    fabric_tick(p);
}

pccl_status fabric_port_watch(struct fabric_port *p, struct loop *loop, struct err *err)
{
    pccl_status st = loop_add(loop, &p->tick, EPOLLIN, err);
    if (st == PCCL_OK && p->waits) {
        st = loop_add(loop, &p->queue, EPOLLIN | EPOLLONESHOT, err);
    }
    p->loop = st == PCCL_OK ? loop : NULL;
    return st;
}

void fabric_port_unwatch(struct fabric_port *p)
{
    if (p->loop != NULL) {
        loop_look_away(p->loop, &p->polled);
        loop_remove(p->loop, &p->tick);
        if (p->waits) {
            loop_remove(p->loop, &p->queue);
        }
        p->loop = NULL;
    }
}
