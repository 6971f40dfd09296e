/* exec_grant.c - room for contributions: granted to their senders, given back when they are folded.
 *
 * Its one idea: a grant of half B is made only for a frame that its sender has ready and that would be folded on arrival, and a
 * freed slot returns to half B first: as a sender's frames become ready, come and are folded in order, what is left in half B always
 * belongs to such frames, never to one that waits for another rank's program or room.
 *
 * Invariant, per sender: folded <= announced <= granted <= expected, granted - folded = held_a + held_b.
 * SPDX-License-Identifier: MIT */
#include "collectives/exec_state.h"

#include "core/check.h"
#include "core/mutant.h"

void exec_touch(struct exec *x, uint32_t partner)
{
    if (!x->peers[partner].touched) {
        x->peers[partner].touched = true;
        x->touched[x->touched_count++] = partner;
    }
}

bool exec_next_is_ready(const struct exec *x, const struct exec_peer *p)
{
    return p->ready && (!x->sums || p->granted < p->sums || MUTANT(SUMS_UNREADY));
}

void exec_grant(struct exec *x, uint32_t partner)
{
    struct exec_peer *p = &x->peers[partner];
    bool starved = false, next = false; /* next: its frame would be folded on arrival */
    while (p->granted < p->expected && p->held_a + p->held_b < p->window && !starved) {
        uint32_t frame = exec_contribution(x, p, p->granted);
        next = exec_next_is_ready(x, p) && exec_wants(x, frame, partner);
        if (next && room_take_b(x->room)) {
            p->held_b++;
        } else if (room_take_a(x->room)) {
            p->held_a++;
        } else {
            starved = true;
            continue;
        }
        p->granted++;
        p->untold++;
        exec_touch(x, partner);
    }
    if (starved != p->starved) {
        p->starved = starved;
        x->starving[partner / 64] ^= UINT64_C(1) << partner % 64;
        x->starved_peers += starved ? 1 : UINT32_MAX; /* plus or minus one */
        x->starved = x->starved_peers > 0;
    }
    next = next && starved;
    if (next != p->starved_next) {
        p->starved_next = next;
        x->starved_next += next ? 1 : UINT32_MAX;
    }
}

void exec_release_slot(struct exec *x, uint32_t partner, uint32_t slot)
{
    struct exec_peer *p = &x->peers[partner];
    room_slot_give(x->room, slot);
    p->folded++;
    if (p->held_b > 0) {
        p->held_b--;
        room_give_b(x->room, 1);
    } else {
        PCCL_ASSERT(p->held_a > 0);
        p->held_a--;
        room_unreserve(x->room, 1);
    }
    exec_grant(x, partner);
}
