/* oracle_window.c - what must hold of windows, by value: what lies in whose memory, after which outcomes.
 *
 * One idea: each operation leaves a trace of its own (the bytes of a put, a digit of a number, a value that is swapped in once), so that
 * whether it was done, and how often, is read from the memory of its target.  What may not have been done when something behind it was,
 * must fail.
 * Invariant: nothing here is told to the machines.
 * SPDX-License-Identifier: MIT */
#include <stdlib.h>
#include <string.h>

#include "sim_window.h"

void window_pattern(uint64_t pattern, unsigned char *out, size_t bytes)
{
    for (size_t i = 0; i < bytes; i++) {
        out[i] = (unsigned char)(mix64(pattern, i / 8) >> (i % 8 * 8));
    }
}

struct window_record *window_record_of(struct cluster *cl, uint64_t name, uint32_t world, uint64_t step)
{
    struct window_record *r = cl->window_records;
    while (r != NULL && r->name != name) {
        r = r->next;
    }
    if (r == NULL) {
        r = calloc(1, sizeof *r);
        if (r == NULL) {
            abort();
        }
        *r = (struct window_record){.name = name, .world = world, .step = step, .next = cl->window_records};
        cl->window_records = r;
    }
    if (r->world != world) {
        cluster_fail(cl, "a window of step %llu has %u members here, %u there", (unsigned long long)step, world, r->world);
    }
    return r;
}

/* ---- Memory ---------------------------------------------------------------------------------------------------------- */

static const unsigned char *memory_of(const struct window_seat *s)
{
    return s->memory == NULL || s->freed ? NULL : s->memory + WINDOW_GUARD;
}

static size_t cell_at(uint32_t origin, uint32_t cell)
{
    return WINDOW_HEAD_BYTES + (size_t)origin * WINDOW_AREA_BYTES + 16 + (size_t)cell * WINDOW_CELL_BYTES;
}

static uint64_t number_at(const struct window_seat *s, size_t offset, size_t width)
{
    uint64_t v = 0;
    memcpy(&v, memory_of(s) + offset, width);
    return v;
}

static bool holds(const struct window_seat *s, size_t offset, uint64_t pattern, const unsigned char *bytes)
{
    unsigned char want[WINDOW_CELL_BYTES] = {0};
    if (pattern != 0) {
        window_pattern(pattern, want, sizeof want);
    }
    return memcmp(bytes != NULL ? bytes : memory_of(s) + offset, want, sizeof want) == 0;
}

/* Nobody has written what is not the window's. */
static void check_guards(struct cluster *cl, const struct window_seat *s)
{
    size_t total = WINDOW_LARGEST + 2 * (size_t)WINDOW_GUARD;
    for (size_t i = 0; i < total; i++) {
        bool inside = i >= WINDOW_GUARD && i < WINDOW_GUARD + s->bytes;
        if ((!inside && s->memory[i] != 0x99) || (inside && s->freed && s->memory[i] != 0xDD)) {
            cluster_fail(cl, "peer %u: byte %lld of %zu of its window was written%s", s->node, (long long)i - WINDOW_GUARD, s->bytes,
                         s->freed ? " after it was closed" : "");
            return;
        }
    }
}

/* ---- Puts ------------------------------------------------------------------------------------------------------------ */

static struct window_try *last_put(struct window_seat *s, uint32_t target, uint32_t cell)
{
    for (uint32_t i = s->count; i > 0; i--) {
        struct window_try *t = &s->tries[i - 1];
        if (t->kind == WINDOW_PUT && t->target == target && t->cell == cell && !t->bad) {
            return t;
        }
    }
    return NULL;
}

static void check_cells(struct cluster *cl, struct window_record *r, uint32_t origin, uint32_t target)
{
    const struct window_seat *at = &r->seat[target];
    for (uint32_t cell = 0; cell < WINDOW_CELLS; cell++) {
        size_t offset = cell_at(origin, cell);
        const struct window_try *t = last_put(&r->seat[origin], target, cell);
        bool known = t == NULL || t->state == TRY_OK;
        if (known && offset + WINDOW_CELL_BYTES <= at->bytes && !holds(at, offset, t == NULL ? 0 : t->pattern, NULL)) {
            cluster_fail(cl, "peer %u: cell %u of rank %u in its window does not hold what was put there last", at->node, cell, origin);
        }
    }
}

/* ---- Numbers --------------------------------------------------------------------------------------------------------- */

/* Whether each of these operations is in `value` as often as its outcome allows; only those before `before`, if it is not null. */
static void check_digits(struct cluster *cl, struct window_seat *from, uint32_t target, uint32_t width, uint64_t value,
                         const struct window_try *before)
{
    uint64_t known = 0;
    for (uint32_t i = 0; i < from->count; i++) {
        struct window_try *t = &from->tries[i];
        if (t->kind != WINDOW_ADD || t->cell != 0 || t->target != target || t->width != width) {
            continue;
        }
        uint64_t digit = value / t->operand % 4;
        bool may = before == NULL || t->place < before->place, must = may && t->state == TRY_OK;
        known += digit * t->operand;
        if (digit > (may && !t->bad) || (must && digit == 0)) {
            cluster_fail(cl, "peer %u: its number %u on rank %u was counted %llu times, outcome %d%s", from->node, t->place, target,
                         (unsigned long long)digit, (int)t->state, before != NULL ? ", in what another one saw" : "");
        }
        t->must_fail = t->must_fail || (before != NULL && may && digit == 0 && t->state == TRY_OPEN);
    }
    if (known != value) {
        cluster_fail(cl, "peer %u: its numbers on rank %u came to %llx, which they cannot", from->node, target, (unsigned long long)value);
    }
}

static void check_area(struct cluster *cl, struct window_record *r, uint32_t origin, uint32_t target)
{
    const struct window_seat *at = &r->seat[target];
    size_t area = WINDOW_HEAD_BYTES + (size_t)origin * WINDOW_AREA_BYTES;
    if (memory_of(at) == NULL || r->seat[origin].tries == NULL) {
        return;
    }
    check_cells(cl, r, origin, target);
    if (area + 12 <= at->bytes) {
        check_digits(cl, &r->seat[origin], target, 8, number_at(at, area, 8), NULL);
        check_digits(cl, &r->seat[origin], target, 4, number_at(at, area + 8, 4), NULL);
    }
}

/* The number in the head: each success has added one, and seen another value. */
static void check_count(struct cluster *cl, struct window_record *r, uint32_t target)
{
    const struct window_seat *at = &r->seat[target];
    uint64_t ok = 0, most = 0, seen[4] = {0};
    if (memory_of(at) == NULL || at->bytes < WINDOW_HEAD_BYTES) {
        return;
    }
    uint64_t value = number_at(at, 0, 8);
    for (uint32_t o = 0; o < r->world; o++) {
        for (uint32_t i = 0; i < r->seat[o].count; i++) {
            const struct window_try *t = &r->seat[o].tries[i];
            if (t->kind != WINDOW_ADD || t->cell == 0 || t->target != target || t->bad) {
                continue;
            }
            most++;
            ok += t->state == TRY_OK;
            if (t->state == TRY_OK && (t->got >= value || t->got >= 256 || (seen[t->got / 64 % 4] >> (t->got % 64) & 1) != 0)) {
                cluster_fail(cl, "peer %u: a number that is %llu by now was %llu for rank %u, and for another one, or was not yet", at->node,
                             (unsigned long long)value, (unsigned long long)t->got, o);
            }
            seen[t->state == TRY_OK ? t->got / 64 % 4 : 0] |= t->state == TRY_OK ? UINT64_C(1) << (t->got % 64) : 0;
        }
    }
    if (value < ok || value > most) {
        cluster_fail(cl, "peer %u: %llu were counted in its window, %llu have succeeded of %llu", at->node, (unsigned long long)value,
                     (unsigned long long)ok, (unsigned long long)most);
    }
}

/* Values are swapped in once, and out once. */
static void check_swaps(struct cluster *cl, struct window_record *r, uint32_t target, const struct window_try *new)
{
    const struct window_seat *at = &r->seat[target];
    uint64_t value = memory_of(at) != NULL && at->bytes >= WINDOW_HEAD_BYTES ? number_at(at, 8, 8) : 0;
    bool known = value == 0, got_known = new == NULL || new->got == 0;
    for (uint32_t o = 0; o < r->world; o++) {
        for (uint32_t i = 0; i < r->seat[o].count; i++) {
            const struct window_try *t = &r->seat[o].tries[i];
            if (t->kind != WINDOW_SWAP || t->target != target || t->bad) {
                continue;
            }
            bool swapped = t->state == TRY_OK && t->got == t->expected;
            known = known || (t->operand == value && (t->state != TRY_OK || swapped));
            got_known = got_known || (new != NULL && t->operand == new->got);
            bool twice = new != NULL && t != new && new->got == new->expected && swapped && t->expected == new->expected;
            if (twice || (swapped && memory_of(at) != NULL && value == t->expected && at->bytes >= WINDOW_HEAD_BYTES)) {
                cluster_fail(cl, "peer %u: value %llx was swapped for another one, and is there again", at->node, (unsigned long long)t->expected);
            }
        }
    }
    if (!known || !got_known) {
        cluster_fail(cl, "peer %u: value %llx in its window was swapped in by nobody", at->node, (unsigned long long)(known ? new->got : value));
    }
}

/* ---- Order ----------------------------------------------------------------------------------------------------------- */

/* All that this member called before its try `end` for that target is there, or fails. */
static void check_before(struct cluster *cl, struct window_record *r, uint32_t origin, uint32_t target, uint32_t end)
{
    struct window_seat *from = &r->seat[origin];
    const struct window_seat *at = &r->seat[target];
    for (uint32_t i = 0; memory_of(at) != NULL && i < end; i++) {
        struct window_try *t = &from->tries[i];
        if (t->kind != WINDOW_PUT || t->target != target || t->bad || t->state == TRY_FAILED || last_put(from, target, t->cell) != t) {
            continue;
        }
        if (!holds(at, cell_at(origin, t->cell), t->pattern, NULL)) {
            t->must_fail = true;
            if (t->state == TRY_OK) {
                cluster_fail(cl, "peer %u: what rank %u put before is not there", at->node, origin);
            }
        }
    }
    size_t area = WINDOW_HEAD_BYTES + (size_t)origin * WINDOW_AREA_BYTES;
    for (uint32_t i = 0; memory_of(at) != NULL && area + 12 <= at->bytes && i < end; i++) {
        struct window_try *t = &from->tries[i];
        if (t->kind == WINDOW_ADD && t->cell == 0 && t->target == target && !t->bad && t->state == TRY_OPEN) {
            uint64_t value = number_at(at, t->width == 8 ? area : area + 8, t->width);
            t->must_fail = t->must_fail || value / t->operand % 4 == 0;
        }
    }
}

/* ---- Signals --------------------------------------------------------------------------------------------------------- */

/* Signals of one member to another: all that were called, those that have succeeded; and where the n-th was called. */
static uint64_t signals(const struct window_seat *from, uint32_t target, uint64_t *ok, uint64_t nth, uint32_t *at)
{
    uint64_t all = 0;
    for (uint32_t i = 0; i < from->count; i++) {
        const struct window_try *t = &from->tries[i];
        if (t->kind == WINDOW_SIGNAL && t->target == target) {
            *ok += t->state == TRY_OK;
            if (++all == nth) {
                *at = i;
            }
        }
    }
    return all;
}

static void check_signals(struct cluster *cl, struct window_record *r, uint32_t origin, uint32_t target)
{
    const struct window_seat *at = &r->seat[target];
    uint64_t ok = 0;
    uint32_t ignored = 0;
    uint64_t all = signals(&r->seat[origin], target, &ok, 0, &ignored);
    uint64_t come = at->waited[origin] + (at->window != NULL ? at->window->peer[origin].signals : 0);
    bool told = at->window != NULL && !at->unsaid && at->window->peer[origin].closed && !at->window->peer[origin].missing; /* its last word came behind them */
    if (come > all || (told && come < ok)) {
        cluster_fail(cl, "peer %u: %llu signals of rank %u have come, %llu were called, %llu have succeeded", at->node, (unsigned long long)come,
                     origin, (unsigned long long)all, (unsigned long long)ok);
    }
}

static void waited(struct cluster *cl, struct window_record *r, const struct window_try *t)
{
    struct window_seat *seat = &r->seat[t->origin];
    uint64_t nth = ++seat->waited[t->target], ok = 0;
    uint32_t at = 0;
    if (signals(&r->seat[t->target], t->origin, &ok, nth, &at) < nth) {
        cluster_fail(cl, "peer %u: it has waited for %llu signals of rank %u, which has called fewer", seat->node, (unsigned long long)nth, t->target);
        return;
    }
    check_before(cl, r, t->target, t->origin, at);
}

/* ---- Outcomes -------------------------------------------------------------------------------------------------------- */

/* Some member has not had what it needed: memory, or an executor that works. */
static bool lacking(const struct cluster *cl)
{
    return window_fault_drawn(cl, FAULT_MEMORY) || window_fault_drawn(cl, FAULT_EXECUTOR) || window_fault_drawn(cl, FAULT_GROWTH) ||
           cl->opt.growth;
}

/* Its window is over or left, or its program ends. */
static bool goes(const struct cluster *cl, const struct window_seat *s)
{
    const struct node *n = &cl->nodes[s->node];
    return s->memory == NULL || s->freed || !n->alive || s->window == NULL || s->window->left || s->window->over.result != RESULT_PENDING ||
           n->program->phase >= PROGRAM_LEAVING;
}

static bool may_be_lost(const struct cluster *cl, const struct node *n, const struct window_record *r, const struct window_try *t,
                        const struct session_outcome *o)
{
    const struct window_seat *target = &r->seat[t->target];
    switch ((int)o->cause) {
    case CAUSE_PEER_LOST:
        return target->id == 0 || !session_present(n->session, target->id);
    case CAUSE_PEER_SILENT:
        return n->windows->phase == WINDOW_CLOSES && r->seat[t->origin].silent[t->target];
    case CAUSE_CANCEL:
        return t->cancelled || goes(cl, target);
    case CAUSE_DEADLINE:
        return t->limited;
    case CAUSE_NO_MEMORY:
    case CAUSE_INTERNAL:
        return lacking(cl);
    default:
        return false;
    }
}

/* Its program has closed it; its memory is freed once no lane holds it. */
static bool closed(const struct window_seat *s)
{
    return s->freed || (s->window != NULL && s->window->left);
}

static bool may_end_so(const struct cluster *cl, const struct node *n, const struct window_record *r, const struct window_try *t,
                       const struct session_outcome *o)
{
    const struct window_seat *self = &r->seat[t->origin], *target = &r->seat[t->target];
    struct session_info info;
    session_info(n->session, &info);
    bool member = info.connected && info.id == self->id;
    switch ((int)o->result) {
    case RESULT_OK:
        return (!t->bad || (t->kind == WINDOW_PUT && t->repeated)) && !t->must_fail; /* refused again, as bytes that have come are */
    case RESULT_ARGUMENT:
        return t->bad || closed(target);
    case RESULT_USAGE:
        return t->kind == WINDOW_VOID || closed(target);
    case RESULT_LOST:
        return may_be_lost(cl, n, r, t, o);
    case RESULT_NO_MEMORY:
    case RESULT_POISONED:
        return lacking(cl) || !member;
    case RESULT_GONE:
    case RESULT_OVER:
        return !member || n->windows->phase == WINDOW_RETIRES;
    default:
        return false;
    }
}

static void check_get(struct cluster *cl, struct window_record *r, const struct window_try *t)
{
    struct window_seat *self = &r->seat[t->origin];
    struct window_try *put = t->before;
    if (last_put(self, t->target, t->cell) != put || (put != NULL && put->state == TRY_FAILED)) {
        return; /* by now there may be something else */
    }
    if (holds(NULL, 0, put == NULL ? 0 : put->pattern, t->bytes)) {
        return;
    }
    if (put == NULL || put->state == TRY_OK) {
        cluster_fail(cl, "peer %u: a get of rank %u has other bytes than what was put there before", self->node, t->target);
    } else {
        put->must_fail = true;
    }
}

static void succeeded(struct cluster *cl, struct window_record *r, struct window_try *t)
{
    struct window_seat *self = &r->seat[t->origin];
    switch (t->kind) {
    case WINDOW_GET:
        check_get(cl, r, t);
        break;
    case WINDOW_ADD:
        if (t->cell == 0) {
            check_digits(cl, self, t->target, t->width, t->got, t);
        }
        check_before(cl, r, t->origin, t->target, (uint32_t)(t - self->tries));
        break;
    case WINDOW_SWAP:
        check_swaps(cl, r, t->target, t);
        self->latest[t->target] = t->got == t->expected ? t->operand : t->got;
        check_before(cl, r, t->origin, t->target, (uint32_t)(t - self->tries));
        break;
    case WINDOW_VOID:
        waited(cl, r, t);
        break;
    default:
        break;
    }
}

void oracle_window_begun(const struct node *n, struct window_record *r, struct window_try *t)
{
    struct session_info info;
    session_info(n->session, &info);
    bool member = info.connected && info.id == r->seat[t->origin].id;
    bool others = t->target != t->origin && t->kind != WINDOW_VOID;
    t->must_fail = others && (!member || !session_present(n->session, n->windows->window->peer[t->target].id));
    if (t->kind == WINDOW_GET) {
        t->before = last_put(&r->seat[t->origin], t->target, t->cell);
    }
}

void oracle_window_ended(struct cluster *cl, const struct node *n, struct window_record *r, struct window_try *t,
                         const struct session_outcome *o)
{
    struct window_seat *target = &r->seat[t->target];
    bool ok = o->result == RESULT_OK;
    cl->stats.window_ok += ok;
    if (t->state != TRY_OPEN) {
        cluster_fail(cl, "peer %u: an operation on a window has ended twice", n->index);
    }
    if (!may_end_so(cl, n, r, t, o)) {
        cluster_fail(cl, "peer %u: operation %u of kind %u on the window of rank %u, peer %u, has ended with %d, cause %u%s%s", n->index, t->place,
                     t->kind, t->target, target->node, (int)o->result, o->cause, t->bad ? ", is not allowed" : "",
                     t->must_fail ? ", was passed over" : "");
    }
    bool expected = ok || t->bad || t->cancelled || t->limited || o->result == RESULT_USAGE || goes(cl, target) || goes(cl, &r->seat[t->origin]);
    if (cl->fault_count == 0 && !expected) {
        cluster_fail(cl, "peer %u: an operation on a window ended with %d, cause %u, but nothing has gone wrong", n->index, (int)o->result, o->cause);
    }
    t->state = ok ? TRY_OK : TRY_FAILED;
    if (ok && t->kind != WINDOW_VOID && target->memory == NULL) {
        cluster_fail(cl, "peer %u: an operation has succeeded on a window that its owner has not made", n->index);
    }
    if (t->kind == WINDOW_PUT) {
        memset(t->bytes, 0x77, sizeof t->bytes); /* whoever still reads it is caught */
    }
    t->hash = program_hash(t->bytes, sizeof t->bytes) ^ t->got;
    if (ok) {
        succeeded(cl, r, t);
    }
    check_area(cl, r, t->origin, t->target);
    check_count(cl, r, t->target);
    check_swaps(cl, r, t->target, NULL);
    if (target->memory != NULL) {
        check_guards(cl, target);
    }
}

/* Between two steps of a process: what its own waits have taken is told. */
void oracle_window_stepped(struct cluster *cl, struct window_record *r, uint32_t rank)
{
    for (uint32_t o = 0; o < r->world; o++) {
        check_signals(cl, r, o, rank);
    }
}

/* Nothing has written what the program had lent for operations that have ended. */
static void check_buffers(struct cluster *cl, const struct window_seat *s)
{
    for (uint32_t i = 0; i < s->count; i++) {
        const struct window_try *t = &s->tries[i];
        if (t->state != TRY_OPEN && t->hash != (program_hash(t->bytes, sizeof t->bytes) ^ t->got)) {
            cluster_fail(cl, "peer %u: a buffer was written after its operation had ended", s->node);
        }
    }
}

void oracle_window_closed(struct cluster *cl, struct window_record *r, uint32_t rank)
{
    struct window_seat *s = &r->seat[rank];
    for (uint32_t i = 0; i < s->count; i++) {
        const struct window_try *t = &s->tries[i];
        if (t->state == TRY_OPEN) {
            cluster_fail(cl, "peer %u: its window is closed, operation %u on rank %u has not ended", s->node, t->place, t->target);
        }
    }
    check_buffers(cl, s);
    for (uint32_t o = 0; o < r->world; o++) {
        check_area(cl, r, o, rank);
        check_signals(cl, r, o, rank);
    }
    check_guards(cl, s);
    s->window = NULL;
    s->freed = true;
    memset(s->memory + WINDOW_GUARD, 0xDD, s->bytes);
}

static void check_freed(struct cluster *cl, const struct window_seat *s)
{
    for (size_t i = 0; i < s->bytes; i++) {
        if (s->memory[WINDOW_GUARD + i] != 0xDD) {
            cluster_fail(cl, "peer %u: byte %zu of its window was written after it had been closed", s->node, i);
            return;
        }
    }
    check_buffers(cl, s);
}

void oracle_window_end(struct cluster *cl)
{
    for (const struct window_record *r = cl->window_records; r != NULL; r = r->next) {
        for (uint32_t i = 0; i < r->world; i++) {
            if (r->seat[i].memory != NULL) {
                check_guards(cl, &r->seat[i]);
            }
            if (r->seat[i].freed) {
                check_freed(cl, &r->seat[i]);
            }
        }
    }
}

void oracle_window_fini(struct cluster *cl)
{
    while (cl->window_records != NULL) {
        struct window_record *r = cl->window_records;
        cl->window_records = r->next;
        for (uint32_t i = 0; i < r->world; i++) {
            free(r->seat[i].memory);
            free(r->seat[i].tries);
        }
        free(r);
    }
}
