/* peer_expect.c - calls of fake peers that members of another world make together.
 * SPDX-License-Identifier: MIT */
#include <stdio.h>
#include <string.h>

#include "master_peers.h"

uint8_t peer_put_claim(struct writer *w, const struct peer *p, const struct msg_claim *claim)
{
    struct msg_expect expect = p->expect;
    if (expect.callers == 0) {
        put_claim(w, claim);
        return FRAME_CLAIM;
    }
    expect.claim = *claim;
    put_expect(w, &expect);
    for (uint32_t i = 0; i < expect.callers; i++) {
        put_u64(w, p->callers[i]);
    }
    return FRAME_EXPECT;
}

struct peer *peer_derive(struct cluster *c, const struct peer *member, const char *world, const struct claim *claim, uint64_t formation,
                         const uint64_t *ids, uint32_t count)
{
    struct peer *p = &c->peers[c->count++];
    snprintf(p->world, sizeof p->world, "%c%032x", WORLD_DERIVED, (unsigned)world[0]);
    p->claim = *claim;
    p->claim.attempt = claim->attempt != 0 ? claim->attempt : c->count;
    p->expect = (struct msg_expect){.formation = {formation, 1}, .parent = member->run, .member = member->id, .callers = count};
    memcpy(p->callers, ids, count * sizeof *ids);
    peer_create_again(c, p);
    return p;
}
