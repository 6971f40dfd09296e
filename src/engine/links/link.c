/* link.c - whom this process is linked with: what the session wants, made so, and looked at as time passes.
 *
 * Invariant: an entry of links.all that is not listed goes, with its connections and dials, at the next refresh.
 * SPDX-License-Identifier: MIT */
#include "engine/links/link.h"
#include "engine/links/bundle.h"
#include "engine/links/control_link.h"
#include "engine/links/dial.h"
#include "engine/tables/link_table.h"

#include <stdlib.h>

#include "core/clock.h"

void link_init(struct comm *c)
{
    list_init(&c->links.all);
    buckets_init(&c->links.by_peer, link_hash);
}

void link_forget_all(struct comm *c)
{
    LIST_FOR_EACH(i, next, &c->links.all) {
        link_remove(LIST_ENTRY(i, struct link, all));
    }
    c->links.count = 0;
    buckets_fini(&c->links.by_peer);
}

bool link_flushed(const struct comm *c)
{
    bool unheard = c->master.met == DIAL_MET_STRANGER; /* it has never said anything: the system sends it what there is */
    return list_empty(&c->controls.all) && (unheard || list_empty(&c->master.uplinks));
}

void link_end_all(struct comm *c)
{
    LIST_FOR_EACH(i, next, &c->links.all) {
        struct link *l = LIST_ENTRY(i, struct link, all);
        l->want.listed = false; /* the service thread takes it out of the table */
        control_end(l, true);
        bundle_end(l);
    }
    c->links.changed = true;
}

/* ---- The table --------------------------------------------------------------------------------------------------- */

static void link_want(struct comm *c, const struct session_wanted *w, int64_t now)
{
    struct link *l = link_unlisted(c, w->info.id);
    if (l == NULL) {
        l = calloc(1, sizeof *l);
        if (l == NULL) {
            c->links.changed = true; /* looked at again with the next step */
            return;
        }
        l->comm = c;
        l->peer = w->info.id;
        atomic_init(&l->refs, 1);
        control_init(l, now);
        link_enter(l);
        c->links.count++;
    }
    control_wanted(l, w->spare, now);
    l->want.spare = w->spare;
    l->want.listed = true;
    l->want.info = w->info;
    l->want.dial = w->dial;
    l->want.data = w->data;
    if (l->want.spare && l->bundle.number != 0) { /* the view goes round this pair now */
        bundle_end(l);
    }
}

static void link_cancel_dials(struct link *l)
{
    LIST_FOR_EACH(i, after, &l->comm->engine->dials) {
        struct dial *d = LIST_ENTRY(i, struct dial, all);
        if (d->user == l) {
            dial_cancel(d);
        }
    }
}

void link_changed(struct comm *c)
{
    c->links.changed = true;
    engine_arm(c->engine, 0);
}

void link_refresh(struct comm *c)
{
    uint32_t count = session_wanted(c->machine.session, NULL, 0);
    struct session_wanted *wanted = calloc(count + 1, sizeof *wanted);
    int64_t now = clock_now_ns();
    c->links.changed = wanted == NULL;
    if (wanted == NULL) {
        return;
    }
    count = session_wanted(c->machine.session, wanted, count);
    LIST_FOR_EACH(i, next, &c->links.all) {
        LIST_ENTRY(i, struct link, all)->want.listed = false;
    }
    for (uint32_t k = 0; k < count; k++) {
        link_want(c, &wanted[k], now);
    }
    free(wanted);
    LIST_FOR_EACH(i, next, &c->links.all) {
        struct link *l = LIST_ENTRY(i, struct link, all);
        if (!l->want.listed) {
            control_end(l, false);
            bundle_end(l);
            link_cancel_dials(l);
            link_remove(l);
            c->links.count--;
        }
    }
}

/* ---- Time -------------------------------------------------------------------------------------------------------- */

int64_t link_tick(struct comm *c, int64_t now, struct comm_after *after)
{
    int64_t next = CLOCK_NEVER;
    LIST_FOR_EACH(i, following, &c->links.all) {
        struct link *l = LIST_ENTRY(i, struct link, all);
        if (l->want.listed) {
            int64_t control_at = control_tick(l, now, after), bundle_at = bundle_tick(l, now, after);
            next = control_at < next ? control_at : next;
            next = bundle_at < next ? bundle_at : next;
        }
    }
    return next;
}
