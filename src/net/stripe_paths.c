/* stripe_paths.c - see stripe_paths.h.
 * SPDX-License-Identifier: MIT */
#include "net/stripe_paths.h"

#include <stddef.h>
#include <string.h>

void stripe_paths_init(struct stripe_paths *p)
{
    memset(p, 0, sizeof *p);
    pthread_mutex_init(&p->lock, NULL);
}

/* The entry of that name, or else the one that makes room for it. */
static struct stripe_path *entry(struct stripe_paths *p, uint64_t name)
{
    struct stripe_path *oldest = &p->path[0];
    for (size_t i = 0; i < STRIPE_PATHS; i++) {
        struct stripe_path *at = &p->path[i];
        if (at->noted != 0 && at->name == name) {
            return at;
        }
        oldest = at->noted < oldest->noted ? at : oldest;
    }
    return oldest;
}

void stripe_paths_note(struct stripe_paths *p, uint64_t name, uint32_t lanes, const struct stripe_settled *settled)
{
    pthread_mutex_lock(&p->lock);
    *entry(p, name) = (struct stripe_path){.name = name, .noted = ++p->notes, .lanes = lanes, .settled = *settled};
    pthread_mutex_unlock(&p->lock);
}

void stripe_paths_find(struct stripe_paths *p, uint64_t name, uint32_t lanes, struct stripe_settled *out)
{
    pthread_mutex_lock(&p->lock);
    const struct stripe_path *at = entry(p, name);
    *out = (struct stripe_settled){.count = 0};
    if (at->noted != 0 && at->name == name) {
        *out = at->settled;
        out->count = (at->settled.count * at->lanes + lanes - 1) / lanes; /* together as many as before */
    }
    pthread_mutex_unlock(&p->lock);
}
