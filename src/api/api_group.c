/* api_group.c - groups: calls of one thread that start together, so that none waits for another.
 *
 * Its one idea: a call inside a group is launched at once like an asynchronous one, since launching waits for nobody; the group keeps
 * its handle, and the end of the group awaits all.  So whatever order the members launch in, what they launch is there before any
 * of them waits.  What a peer sends to itself never leaves this file.
 * Invariant: a handle in the list has not been awaited by anybody else.
 * SPDX-License-Identifier: MIT */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "api/api.h"
#include "core/dtype.h"

struct group {
    uint32_t depth;
    bool aside;                  /* a call of this thread is under way that is none of the group */
    pcclAsyncOp_t *op;           /* owned */
    size_t count, capacity;
    struct api_own_message *own; /* owned: those without a match so far */
    size_t own_count, own_capacity;
    struct api_operands operands; /* of its calls */
    pcclResult_t result;         /* the first error, and what was said of it */
    pcclErrorInfo_t error;
};

static _Thread_local struct group group_now;
static _Thread_local struct api_operands *group_together; /* borrowed: of pcclRepeatGroup; may be null */

bool api_group_open(void)
{
    return group_now.depth > 0 && !group_now.aside;
}

void api_group_aside(bool aside)
{
    group_now.aside = aside;
}

struct api_operands *api_group_operands(bool async)
{
    struct group *g = &group_now;
    return g->aside ? NULL : group_together != NULL ? group_together : g->depth > 0 && !async ? &g->operands : NULL;
}

void api_group_together(struct api_operands *operands)
{
    group_together = operands;
}

pcclResult_t api_group_note(pcclResult_t rc)
{
    if (rc != pcclSuccess && api_group_open() && group_now.result == pcclSuccess) {
        group_now.result = rc;
        (void)pcclGetLastErrorInfo(&group_now.error);
    }
    return rc;
}

/* Room for one more. */
static bool group_grow(void **list, size_t *capacity, size_t count, size_t size)
{
    if (count < *capacity) {
        return true;
    }
    size_t more = *capacity == 0 ? 16 : 2 * *capacity;
    void *larger = realloc(*list, more * size);
    if (larger != NULL) {
        *list = larger;
        *capacity = more;
    }
    return larger != NULL;
}

pcclResult_t api_group_add(const pcclAsyncOp_t *op)
{
    struct group *g = &group_now;
    void *list = g->op;
    bool room = group_grow(&list, &g->capacity, g->count, sizeof *g->op);
    g->op = list;
    if (room) {
        g->op[g->count++] = *op;
        return pcclSuccess;
    }
    return api_group_note(pcclAwaitAsync(op, NULL)); /* no memory to remember it: it is over before the call returns */
}

/* ---- Messages to oneself -------------------------------------------------------------------------------------------------------- */

static pcclResult_t own_copy(const struct api_own_message *from, const struct api_own_message *to)
{
    if (from->count != to->count || from->datatype != to->datatype) {
        return api_fail(pcclInvalidArgument, pcclCauseMismatch, "send",
                        "to oneself, tag %" PRIu64 ": %zu elements of type %d are sent, %zu of type %d received: make both equal",
                        from->tag, from->count, (int)from->datatype, to->count, (int)to->datatype);
    }
    if (from->count > 0) {
        memmove(to->out, from->in, from->count * dtype_size((enum dtype)from->datatype));
    }
    if (to->source != NULL) {
        *to->source = to->rank;
    }
    return pcclSuccess;
}

pcclResult_t api_group_own(const struct api_own_message *m)
{
    struct group *g = &group_now;
    for (size_t i = 0; i < g->own_count; i++) {
        struct api_own_message other = g->own[i];
        if (other.comm == m->comm && other.tag == m->tag && other.receives != m->receives) {
            g->own_count--;
            memmove(&g->own[i], &g->own[i + 1], (g->own_count - i) * sizeof *g->own);
            return api_group_note(m->receives ? own_copy(&other, m) : own_copy(m, &other));
        }
    }
    void *list = g->own;
    bool room = group_grow(&list, &g->own_capacity, g->own_count, sizeof *g->own);
    g->own = list;
    if (!room) {
        return api_group_note(api_fail(pcclInternalError, pcclCauseNoMemory, "group", "no memory for one more call: free some"));
    }
    g->own[g->own_count++] = *m;
    return pcclSuccess;
}

/* ---- Start and end -------------------------------------------------------------------------------------------------------------- */

pcclResult_t pcclGroupStart(void)
{
    group_now.depth++;
    return pcclSuccess;
}

static void group_unmatched(const struct group *g)
{
    for (size_t i = 0; i < g->own_count; i++) {
        const struct api_own_message *m = &g->own[i];
        (void)api_group_note(api_fail(pcclInvalidArgument, pcclCauseUsage, m->receives ? "receive" : "send",
                                      "tag %" PRIu64 " %s this peer itself: add the %s of that tag to the same group", m->tag,
                                      m->receives ? "from" : "to", m->receives ? "send" : "receive"));
    }
}

pcclResult_t pcclGroupEnd(void)
{
    struct group *g = &group_now;
    if (g->depth == 0) {
        return api_fail(pcclInvalidUsage, pcclCauseUsage, "group end", "this thread has no group open: call pcclGroupStart first");
    }
    if (g->depth > 1) {
        g->depth--;
        return pcclSuccess;
    }
    group_unmatched(g);
    for (size_t i = 0; i < g->count; i++) {
        (void)api_group_note(pcclAwaitAsync(&g->op[i], NULL));
    }
    pcclResult_t rc = g->result;
    if (rc != pcclSuccess) {
        api_restore(&g->error);
    }
    free(g->op);
    free(g->own);
    api_operands_fini(&g->operands);
    *g = (struct group){0};
    return rc;
}
