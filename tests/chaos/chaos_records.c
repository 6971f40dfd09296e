/* chaos_records.c - see chaos_records.h.
 * SPDX-License-Identifier: MIT */
#include "chaos_records.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "chaos_plan.h"

bool record_read(const char *line, struct record *out)
{
    memset(out, 0, sizeof *out);
    if (sscanf(line, "%c %" SCNd64 " %d %79s", &out->kind, &out->at_ms, &out->key, out->name) != 4 || out->key < 0 ||
        out->key >= PLAN_PEERS) {
        return false;
    }
    switch (out->kind) {
    case 'B':
    case 'C':
        return true;
    case 'R':
        return sscanf(line, "%*c %*d %*d %*s %d %d", &out->code, &out->cause) == 2;
    case 'E':
        return sscanf(line, "%*c %*d %*d %*s %d %d %" SCNu32 " %" SCNu64 " %" SCNu64 " %" SCNx64 " %" SCNx64 " %" SCNx64,
                      &out->code, &out->cause, &out->world, &out->tx_bytes, &out->rx_bytes, &out->digest, &out->who,
                      &out->culprit) == 8;
    default:
        return false;
    }
}

bool records_add(struct records *all, const struct record *r)
{
    if (all->count == all->capacity) {
        size_t capacity = all->capacity == 0 ? 4096 : 2 * all->capacity;
        struct record *at = realloc(all->at, capacity * sizeof *at);
        if (at == NULL) {
            return false;
        }
        all->at = at;
        all->capacity = capacity;
    }
    all->at[all->count++] = *r;
    return true;
}

void records_free(struct records *all)
{
    free(all->at);
    *all = (struct records){0};
}

static int order(const void *a, const void *b)
{
    const struct record *x = a, *y = b;
    int names = strcmp(x->name, y->name);
    return names != 0 ? names : (x->at_ms > y->at_ms) - (x->at_ms < y->at_ms);
}

void records_sort(struct records *all)
{
    qsort(all->at, all->count, sizeof all->at[0], order);
}
