/* api_split.c - worlds that members of a communicator create together: split, duplicate, create from a list.
 *
 * Its one idea: all callers know who calls, and with which colour and key, before anybody asks the master: from one all-gather in
 * the communicator, or from the list that each was given.  The name of what they create is a hash of that, so it is the same at
 * all of them, and never that of another call.
 * Invariant: what can fail here alone fails before the others wait for this call, or ends their waiting too.
 * SPDX-License-Identifier: MIT */
#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api/api.h"
#include "core/clock.h"
#include "core/mix.h"
#include "engine/calls/await.h"
#include "engine/comm_calls.h"

/* What each member tells all others. */
struct share {
    uint64_t member, draw; /* its id; a number that makes this call another one than all before */
    int32_t color, key;
};
enum { SHARE_WORDS = sizeof(struct share) / sizeof(uint64_t) };

struct derive {
    const char *phase;
    pcclComm_t *child;         /* made, not connected; null: none */
    struct session_info self;  /* in the parent */
    uint32_t group;            /* of the parent */
};

/* 128 bits, of words in an order that all callers share. */
struct digest {
    uint64_t half[2];
};

static void digest_add(struct digest *d, uint64_t word)
{
    d->half[0] = mix64(d->half[0], word);
    d->half[1] = mix64(d->half[1], ~word);
}

static struct digest digest_of(const struct derive *d, uint64_t what)
{
    struct digest all = {{0x243F6A8885A308D3u, 0x13198A2E03707344u}};
    digest_add(&all, what);
    digest_add(&all, d->self.run);
    digest_add(&all, d->group);
    return all;
}

/* ---- what one process can check ------------------------------------------------------------------------------------ */

static pcclResult_t params_check(const char *phase, const pcclDeriveParams_t *given, pcclDeriveParams_t *out)
{
    *out = (pcclDeriveParams_t){.size = sizeof *out};
    if (given == NULL) {
        return pcclSuccess;
    }
    if (given->size < sizeof *out) {
        return api_fail(pcclInvalidArgument, pcclCauseUsage, phase, "params->size is %zu: set it to sizeof(pcclDeriveParams_t)",
                        given->size);
    }
    const unsigned char *bytes = (const unsigned char *)given;
    for (size_t i = sizeof *out; i < given->size && i < 4096; i++) {
        if (bytes[i] != 0) {
            return api_fail(pcclInvalidArgument, pcclCauseUsage, phase,
                            "byte %zu of params is set: this library has no field there, set it to 0", i);
        }
    }
    memcpy(out, given, sizeof *out);
    if (out->loss_rule != PCCL_LOSS_END && out->loss_rule != PCCL_LOSS_SHRINK) {
        return api_fail(pcclInvalidArgument, pcclCauseUsage, phase, "params->loss_rule %d is unknown", (int)out->loss_rule);
    }
    return pcclSuccess;
}

/* Makes the communicator of the world to be, with room for so many callers: as the parent's, but for what `given` says. */
static pcclResult_t child_new(struct derive *d, struct comm *parent, const pcclDeriveParams_t *given, uint32_t callers)
{
    pcclDeriveParams_t params;
    pcclResult_t rc = params_check(d->phase, given, &params);
    if (rc != pcclSuccess) {
        return rc;
    }
    pthread_mutex_lock(&parent->lock);
    struct comm_params p = parent->params;
    pthread_mutex_unlock(&parent->lock);
    d->group = p.group;
    p.group = 0;
    p.lanes = params.p2p_connection_pool_size == 0 ? p.lanes : api_lanes(params.p2p_connection_pool_size);
    p.claim = (struct claim){.deadline_ms = params.formation_timeout_ms, .loss = (uint8_t)params.loss_rule};
    int64_t formation_ns = params.formation_timeout_ms * CLOCK_MS;
    p.connect_ns = formation_ns != 0 && formation_ns < p.connect_ns ? formation_ns : p.connect_ns; /* a master that is gone, too */
    p.derived = (struct derivation){.callers = 0};
    p.callers = calloc(callers, sizeof *p.callers);
    rc = p.callers != NULL ? api_communicator(&p, d->phase, &d->child)
                           : api_fail(pcclInternalError, pcclCauseNoMemory, d->phase, "no memory");
    if (rc != pcclSuccess) {
        free(p.callers);
    }
    return rc;
}

static void child_drop(struct derive *d)
{
    if (d->child != NULL) {
        (void)pcclDestroyCommunicator(d->child);
        d->child = NULL;
    }
}

/* ---- creating it --------------------------------------------------------------------------------------------------- */

static int by_id(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

/* Its callers are in params.callers; `world` tells this one from others of the same formation. */
static pcclResult_t create(struct derive *d, struct comm *parent, uint32_t callers, const struct digest *formation, uint64_t world)
{
    struct comm_params *p = &d->child->comm->params;
    struct session_outcome o;
    struct digest name = *formation;
    digest_add(&name, world);
    snprintf(p->world, sizeof p->world, "%c%016" PRIx64 "%016" PRIx64, WORLD_DERIVED, name.half[0], name.half[1]);
    qsort(p->callers, callers, sizeof *p->callers, by_id);
    uint64_t *fitting = realloc(p->callers, callers * sizeof *p->callers); /* it is kept as long as the communicator */
    p->callers = fitting != NULL ? fitting : p->callers;
    p->derived = (struct derivation){.formation = {formation->half[0], formation->half[1]}, .parent = d->self.run,
                                     .member = d->self.id, .callers = callers};
    comm_derive(parent, d->child->comm, &o);
    pthread_mutex_lock(&parent->lock);
    bool member = !comm_idle(parent); /* then there is nothing to connect again: the child is dropped */
    pthread_mutex_unlock(&parent->lock);
    const char *hint = !member                                                  ? NULL
                       : o.result == RESULT_UNREACHABLE                         ? "this communicator is unchanged: retry when the master answers"
                       : o.result == RESULT_REFUSED || o.result == RESULT_SETUP ? "this communicator is unchanged: fix this, then retry"
                                                                                : NULL;
    pcclResult_t rc = api_outcome_hint(&o, d->phase, 0, hint);
    if (hint != NULL && o.result != RESULT_SETUP) {
        api_reclass(pcclClassRetry);
    }
    return rc;
}

/* ---- split --------------------------------------------------------------------------------------------------------- */

/* Blocks, where a group is open, too: what is borrowed for it lives as long as the split. */
static pcclResult_t gather(const struct share *own, struct share *table, const pcclComm_t *communicator)
{
    api_group_aside(true);
    pcclResult_t rc = pcclAllGather(own, table, SHARE_WORDS, pcclUint64, communicator, NULL);
    api_group_aside(false);
    return rc;
}

/* The number of this call in the parent is refused, so that nobody waits for it; the error stays what it was. */
static pcclResult_t refuse(const struct derive *d, struct comm *parent, pcclResult_t rc)
{
    pcclErrorInfo_t error;
    struct session_outcome o;
    (void)pcclGetLastErrorInfo(&error);
    struct comm_launch launch = {.call = {.space = SPACE_ORDERED, .known = d->self.known, .world = d->self.snapshot.group,
                                          .bad_argument = rc != pcclInternalError, .no_memory = rc == pcclInternalError,
                                          .count = SHARE_WORDS,
                                          .params = {.kind = PLAN_ALL_GATHER, .dtype = DTYPE_U64, .count = SHARE_WORDS}, .awaited = true}};
    comm_reduce(parent, &launch, &o);
    api_restore(&error);
    return rc;
}

static uint64_t draw(const struct derive *d)
{
    return mix64(mix64(d->self.id, (uint64_t)clock_now_ns()), (uint64_t)(uintptr_t)d->child);
}

/* Ranks are counted by (key, rank in the parent). */
static void place(struct derive *d, const struct share *table, uint32_t count)
{
    struct comm_params *p = &d->child->comm->params;
    uint32_t self = d->self.rank;
    for (uint32_t i = 0; i < count; i++) {
        bool same = table[self].color == PCCL_NO_COLOR ? i == self : table[i].color == table[self].color;
        p->callers[i] = table[i].member;
        p->claim.size += same;
        p->claim.rank += same && (table[i].key < table[self].key || (table[i].key == table[self].key && i < self));
    }
}

/* Everybody has the same table: W10 begins. */
static pcclResult_t split_by(struct derive *d, struct comm *parent, const struct share *table)
{
    struct digest formation = digest_of(d, 1);
    uint32_t count = 0, self = BOUNDS_MEMBERS;
    for (; count < BOUNDS_MEMBERS && table[count].member != 0; count++) {
        digest_add(&formation, table[count].member);
        digest_add(&formation, table[count].draw);
        self = table[count].member == d->self.id ? count : self;
    }
    if (self == BOUNDS_MEMBERS) {
        return api_fail(pcclInternalError, pcclCauseInternal, d->phase, "the members' shares lack this peer's");
    }
    d->self.rank = self;
    place(d, table, count);
    bool none = table[self].color == PCCL_NO_COLOR; /* a world of its own, which it leaves at once */
    return create(d, parent, count, &formation, none ? d->self.id : (uint64_t)(uint32_t)table[self].color);
}

static pcclResult_t split(const pcclComm_t *communicator, const char *phase, int32_t color, int32_t key,
                          const pcclDeriveParams_t *params, pcclComm_t **comm_out)
{
    struct comm *parent;
    struct derive d = {.phase = phase};
    pcclResult_t rc = api_enter(communicator, phase, &parent);
    if (rc != pcclSuccess) {
        return rc;
    }
    rc = api_member(parent, phase, &d.self);
    if (rc != pcclSuccess) {
        api_leave(parent);
        return rc;
    }
    struct share *table = calloc(BOUNDS_MEMBERS, sizeof *table); /* whatever the snapshot is when the call is made */
    rc = table == NULL          ? api_fail(pcclInternalError, pcclCauseNoMemory, phase, "no memory")
         : comm_out == NULL     ? api_null(phase, "comm_out", "where to store the communicator")
         : color < PCCL_NO_COLOR ? api_fail(pcclInvalidArgument, pcclCauseUsage, phase, "color %d: 0 or more, or PCCL_NO_COLOR", color)
                                 : child_new(&d, parent, params, BOUNDS_MEMBERS);
    if (rc != pcclSuccess) {
        rc = refuse(&d, parent, rc);
    } else {
        struct share own = {.member = d.self.id, .draw = draw(&d), .color = color, .key = key};
        rc = gather(&own, table, communicator);
        rc = rc == pcclSuccess ? split_by(&d, parent, table) : rc;
    }
    api_leave(parent);
    free(table);
    if (rc != pcclSuccess || color == PCCL_NO_COLOR) {
        child_drop(&d);
    }
    if (rc == pcclSuccess) {
        *comm_out = d.child; /* null without a color */
    }
    return rc;
}

pcclResult_t pcclSplitCommunicator(const pcclComm_t *communicator, int32_t color, int32_t key,
                                   const pcclDeriveParams_t *params, pcclComm_t **comm_out)
{
    return split(communicator, "split", color, key, params, comm_out);
}

pcclResult_t pcclDuplicateCommunicator(const pcclComm_t *communicator, const pcclDeriveParams_t *params, pcclComm_t **comm_out)
{
    return split(communicator, "duplicate", 0, 0, params, comm_out);
}

/* ---- create from a list -------------------------------------------------------------------------------------------- */

/* How often this list was used with its tag, this time included; 0: no memory to count it. */
static uint64_t list_use(struct comm *c, const struct digest *list)
{
    struct comm_lists *l = &c->lists;
    uint64_t times = 0;
    pthread_mutex_lock(&c->lock);
    for (size_t i = 0; i < l->used && times == 0; i++) {
        bool same = l->use[i].hash[0] == list->half[0] && l->use[i].hash[1] == list->half[1];
        times = same ? ++l->use[i].count : 0;
    }
    if (times == 0 && l->used == l->room) {
        size_t room = l->room == 0 ? 8 : 2 * l->room;
        struct comm_list_use *more = realloc(l->use, room * sizeof *more);
        l->use = more != NULL ? more : l->use;
        l->room = more != NULL ? room : l->room;
    }
    if (times == 0 && l->used < l->room) {
        l->use[l->used++] = (struct comm_list_use){.hash = {list->half[0], list->half[1]}, .count = times = 1};
    }
    pthread_mutex_unlock(&c->lock);
    return times;
}

/* Where this peer stands in the list; count: nowhere. */
static size_t place_in(const struct derive *d, const uint64_t *peers, size_t count)
{
    size_t at = 0;
    while (at < count && peers[at] != d->self.id) {
        at++;
    }
    return at;
}

static pcclResult_t list_check(const struct derive *d, const uint64_t *peers, size_t count)
{
    if (place_in(d, peers, count) == count) {
        return api_fail(pcclInvalidArgument, pcclCauseUsage, d->phase,
                        "the list of %zu peers lacks this one: call it on the listed peers only (pcclGetSelf tells the id)", count);
    }
    return pcclSuccess;
}

/* The list is copied and sorted, no two of it may be the same; *formation: what these create with this call. */
static pcclResult_t list_take(struct derive *d, struct comm *parent, const uint64_t *peers, uint32_t count, uint64_t tag,
                              struct digest *formation)
{
    struct comm_params *p = &d->child->comm->params;
    struct digest list = digest_of(d, 2);
    memcpy(p->callers, peers, count * sizeof *peers);
    qsort(p->callers, count, sizeof *p->callers, by_id);
    for (uint32_t i = 0; i < count; i++) {
        if (p->callers[i] == 0 || (i > 0 && p->callers[i] == p->callers[i - 1])) {
            return api_fail(pcclInvalidArgument, pcclCauseUsage, d->phase, "the list names peer %" PRIu32 ".%" PRIu32 "%s",
                            (uint32_t)(p->callers[i] >> 32), (uint32_t)p->callers[i],
                            p->callers[i] == 0 ? ", which is no peer: pass ids that pcclGetMembers returns" : " twice: pass each once");
        }
        digest_add(&list, p->callers[i]);
    }
    digest_add(&list, tag);
    uint64_t times = list_use(parent, &list);
    if (times == 0) {
        return api_fail(pcclInternalError, pcclCauseNoMemory, d->phase, "no memory");
    }
    digest_add(&list, times);
    p->claim.size = count;
    p->claim.rank = (uint32_t)place_in(d, peers, count);
    *formation = list;
    return pcclSuccess;
}

pcclResult_t pcclCreateFromList(const pcclComm_t *communicator, const uint64_t *peers, size_t count, uint64_t tag,
                                const pcclDeriveParams_t *params, pcclComm_t **comm_out)
{
    struct comm *parent;
    struct derive d = {.phase = "create from list"};
    struct digest formation;
    pcclResult_t rc = api_enter(communicator, d.phase, &parent);
    if (rc != pcclSuccess) {
        return rc;
    }
    rc = api_member(parent, d.phase, &d.self);
    if (rc == pcclSuccess && (peers == NULL || comm_out == NULL)) {
        rc = api_null(d.phase, peers == NULL ? "peers" : "comm_out", "the ids of those who call; where to store the communicator");
    } else if (rc == pcclSuccess && (count == 0 || count > BOUNDS_MEMBERS)) {
        rc = api_fail(pcclInvalidArgument, pcclCauseUsage, d.phase, "a list of %zu peers: 1 to 16384", count);
    }
    rc = rc == pcclSuccess ? list_check(&d, peers, count) : rc;
    rc = rc == pcclSuccess ? child_new(&d, parent, params, (uint32_t)count) : rc;
    rc = rc == pcclSuccess ? list_take(&d, parent, peers, (uint32_t)count, tag, &formation) : rc;
    rc = rc == pcclSuccess ? create(&d, parent, (uint32_t)count, &formation, 0) : rc;
    api_leave(parent);
    if (rc != pcclSuccess) {
        child_drop(&d);
        return rc;
    }
    *comm_out = d.child;
    return pcclSuccess;
}
