/* redial.c - a member whose connections have closed: ended, or cut off for a moment (M11).
 *
 * Its one idea: an ended process and a healthy one whose connections were all reset look alike.  The ended one refuses new
 * connections; the healthy one comes back.  So a member is out at once when its address refuses, and else has a second.
 * Invariant: only roll_resume_by and a refusal at its address end the wait for a member without a control connection.
 * SPDX-License-Identifier: MIT */
#include "core/mutant.h"
#include "world/world_state.h"
#include "world/edges.h"
#include "world/member_out.h"
#include "world/member_read.h"
#include "world/redial.h"
#include "world/roll.h"
#include "world/view_read.h"

/* The control connection and a link closed together: breaks of single links do not count, unless it happens again and again. */
static void pardon(struct world *w, struct member *mb)
{
    struct group *g = member_group(w, mb);
    uint64_t view = view_current(g)->view;
    if (mb->reset_view == view) {
        return;
    }
    bool again = mb->reset_at != 0 && w->common->now - mb->reset_at <= WORLD_BREAK_NS;
    mb->reset_at = w->common->now;
    if (!again && !MUTANT(REDIAL_COUNTED)) {
        mb->reset_view = view;
        edges_pardon(w, g, mb->id);
    }
}

static bool recent(const struct world *w, int64_t at, int64_t span_ns)
{
    return at != 0 && w->common->now - at <= span_ns;
}

void redial_begin(struct world *w, struct member *mb)
{
    const struct master_config *cfg = &w->common->config;
    bool links = recent(w, mb->link_lost_at, cfg->reconnect_ns);
    bool refused = recent(w, mb->refused_at, cfg->redial_ns) || MUTANT(REDIAL_NOT);
    if (links && refused) {
        member_exclude(w, mb, CAUSE_PEER_LOST, "its connections closed");
    } else if (links) {
        pardon(w, mb);
    }
}

void redial_link_lost(struct world *w, struct member *mb, bool refused)
{
    mb->link_lost_at = w->common->now;
    mb->refused_at = refused ? w->common->now : mb->refused_at;
    if (mb->conn == SLOT_NONE) {
        redial_begin(w, mb);
        roll_due(w, mb);
    }
}
