/* roster.c - who the ranks of a program are: the members of its snapshot, whatever view is installed.
 *
 * Views after the snapshot only lose members, since newcomers come with answers that move it: so its members are those of the installed view and
 * those that were lost since, by (key, id); so a call names whom its program means (B10).  Invariant: whoever is listed as gone is in the snapshot and not in the installed view.
 * SPDX-License-Identifier: MIT */
#include "session/session_state.h"

static uint32_t key_of(const struct session *s, uint32_t rank)
{
    uint32_t p = s->view.peer[rank];
    return p == NONE ? s->view.key : s->peers[p].info.key;
}

void roster_lose(struct session *s, uint64_t view, uint32_t rank)
{
    uint32_t p = s->view.peer[rank];
    if (s->gone_count < s->members) {
        s->gone[s->gone_count++] = (struct gone){.id = s->view.ids[rank], .view = view, .key = key_of(s, rank),
                                                 .address = p == NONE ? s->cfg.address[0] : s->peers[p].info.address[0]};
    }
}

void roster_moved(struct session *s)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < s->gone_count; i++) {
        if (s->gone[i].view > s->snapshot_view) {
            s->gone[n++] = s->gone[i];
        }
    }
    s->gone_count = n;
}

/* How many of those that are gone come before (key, id). */
static uint32_t gone_before(const struct session *s, uint32_t key, uint64_t id)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < s->gone_count; i++) {
        n += s->gone[i].key < key || (s->gone[i].key == key && s->gone[i].id < id);
    }
    return n;
}

uint32_t roster_rank(const struct session *s, uint64_t id)
{
    uint32_t rank = view_rank(s, id);
    if (rank != NONE) {
        return s->view.shown[rank] + gone_before(s, key_of(s, rank), id);
    }
    for (uint32_t i = 0; i < s->gone_count; i++) {
        const struct gone *g = &s->gone[i];
        if (g->id == id) {
            uint32_t before = gone_before(s, g->key, id);
            for (uint32_t r = 0; r < s->view.world; r++) {
                uint32_t key = key_of(s, r);
                before += key < g->key || (key == g->key && s->view.ids[r] < id);
            }
            return before;
        }
    }
    return NONE;
}

bool session_present(const struct session *s, uint64_t id)
{
    return view_rank(s, id) != NONE;
}

uint64_t session_called(const struct session *s, uint32_t rank)
{
    return s->view.world == 0 ? 0 : roster_member(s, rank);
}

uint64_t roster_member(const struct session *s, uint32_t shown)
{
    if (shown < s->view.world && s->gone_count == 0) {
        return s->view.ids[s->view.ranked[shown]];
    }
    for (uint32_t r = 0; r < s->view.world; r++) {
        if (roster_rank(s, s->view.ids[r]) == shown) {
            return s->view.ids[r];
        }
    }
    for (uint32_t i = 0; i < s->gone_count; i++) {
        if (roster_rank(s, s->gone[i].id) == shown) {
            return s->gone[i].id;
        }
    }
    return 0;
}

/* Of the installed view. */
static void describe(const struct session *s, uint32_t rank, struct session_member *out)
{
    uint32_t p = s->view.peer[rank];
    out->key = key_of(s, rank);
    out->address = p == NONE ? s->cfg.address[0] : s->peers[p].info.address[0];
    for (uint32_t i = 0; i < s->view.world; i++) {
        out->ring_position = s->view.ring[i] == rank ? i : out->ring_position;
    }
}

bool session_member(const struct session *s, uint32_t called, struct session_member *out)
{
    *out = (struct session_member){.id = session_called(s, called), .ring_position = NONE};
    uint32_t rank = out->id == 0 ? NONE : view_rank(s, out->id);
    if (rank != NONE) {
        describe(s, rank, out);
    }
    for (uint32_t i = 0; rank == NONE && i < s->gone_count; i++) {
        if (s->gone[i].id == out->id) {
            out->key = s->gone[i].key;
            out->address = s->gone[i].address;
            out->lost = true;
        }
    }
    return out->id != 0;
}
