/* replay.c - what is said again to members that have just come into the view, or that a relay reaches again.
 * SPDX-License-Identifier: MIT */
#include "session/links/peer_links.h"
#include "session/relay/path.h"
#include "session/tables/peers.h"

/* Payloads of many operations may not fit one outbox: what is left is said in the next step, which is due at once. */
void replay_settle(struct session *s, struct outbox *out)
{
    peers_replaying(s, false);
    for (uint32_t r = 0; r < s->view.world; r++) {
        struct peer *p = r == s->view.rank ? NULL : &s->peers.at[s->view.peer[r]];
        if (p == NULL || p->replay == NONE || !(peer_reachable(s, r) || p->path_up)) {
            continue;
        }
        if (!p->path_told) {
            if (!outbox_half_free(out)) {
                peers_replaying(s, true);
                return;
            }
            p->path_told = true;
            path_tell(s, r, out);
        }
        while (p->replay < s->ops.count && s->ops.used > 0 && !s->view.frozen) {
            if (!outbox_half_free(out)) {
                peers_replaying(s, true);
                return;
            }
            struct op *op = &s->ops.at[p->replay++];
            if (op->phase != OP_FREE) {
                op->class->replay(s, op, r, out);
            }
        }
        p->replay = NONE;
    }
}
