/* fetch_sources.c - the members that this peer receives shared state from, and the leaves that it has asked of each.
 * SPDX-License-Identifier: MIT */
#include "session/state/fetch_sources.h"
#include "session/state/sync.h"
#include "session/tables/peers.h"
#include "session/tables/storage.h"

uint32_t source_find(const struct session *s, uint64_t id)
{
    for (uint32_t i = 0; i < s->fetch.source_count; i++) {
        if (s->fetch.holders[i] == id) {
            return i;
        }
    }
    return NONE;
}

bool source_in_reach(const struct session *s, uint64_t id)
{
    return id != s->id && view_rank(s, id) != NONE && view_relay(s, s->id, id) == 0;
}

/* The living holder with the least to do, from `first` on; NONE if none is below `limit`. */
uint32_t source_idle(const struct session *s, uint32_t limit)
{
    uint32_t best = NONE;
    for (uint32_t k = 0; k < s->fetch.holder_count; k++) {
        uint32_t i = (s->fetch.first + k) % s->fetch.holder_count;
        if (!s->fetch.holder_down[i] && s->fetch.asked[i] < limit) {
            limit = s->fetch.asked[i];
            best = i;
        }
    }
    return best;
}

void source_answered(struct session *s, uint32_t ask)
{
    s->fetch.asked[s->fetch.ask[ask].source]--;
    s->fetch.ask[ask] = s->fetch.ask[--s->fetch.asks];
}

static void leaf_want_again(struct session *s, uint32_t leaf)
{
    bool whole = s->state->entries[sync_entry_of(s->state, leaf)].inequality;
    uint32_t *cursor = whole ? &s->fetch.whole_cursor : &s->fetch.cursor;
    s->state->leaf_state[leaf] = whole ? LEAF_WANTED_WHOLE : LEAF_WANTED;
    *cursor = leaf < *cursor ? leaf : *cursor;
}

/* It is not asked again in this round; what it was asked goes to the others. */
void source_lost(struct session *s, uint32_t source, bool lied)
{
    if (lied && s->fetch.liar == 0) {
        s->fetch.liar = s->fetch.holders[source];
    }
    s->fetch.holder_down[source] = true;
    for (uint32_t i = s->fetch.asks; i-- > 0;) {
        if (s->fetch.ask[i].source == source) {
            leaf_want_again(s, s->fetch.ask[i].leaf);
            source_answered(s, i);
        }
    }
    if (s->fetch.manifest_from == source && !s->fetch.content_known) {
        s->fetch.manifest_from = NONE;
    }
}

void source_add(struct session *s, uint64_t id)
{
    uint32_t i = s->fetch.source_count++;
    s->fetch.holders[i] = id;
    s->fetch.holder_down[i] = !source_in_reach(s, id);
    s->fetch.asked[i] = 0;
}

uint32_t source_asked(const struct session *s, uint32_t source, uint32_t leaf)
{
    for (uint32_t i = 0; i < s->fetch.asks; i++) {
        if (s->fetch.ask[i].source == source && s->fetch.ask[i].leaf == leaf) {
            return i;
        }
    }
    return NONE;
}

size_t source_table_bytes(uint32_t members)
{
    return members * (sizeof(uint64_t) + sizeof(uint32_t) + sizeof(bool));
}

void source_table_use(struct session *s, void *storage, uint32_t members)
{
    unsigned char *at = storage;
    uint32_t sources = s->fetch.source_count;
    s->fetch.holders = storage_moved(&at, sizeof *s->fetch.holders, members, s->fetch.holders, sources);
    s->fetch.asked = storage_moved(&at, sizeof *s->fetch.asked, members, s->fetch.asked, sources);
    s->fetch.holder_down = storage_moved(&at, sizeof *s->fetch.holder_down, members, s->fetch.holder_down, sources);
}
