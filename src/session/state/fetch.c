/* fetch.c - one election of shared state as a receiver sees it: hashes, memory, leaves, STAGED; what it is given comes from holder.c of others.
 *
 * ELECTED names the holders.  One of them gives the MANIFEST, which must have the elected digest; what differs from the own leaf
 * hashes is asked of all holders at once, a few leaves of each, so that a fast one gets more to do.  A source that breaks or lies is
 * out for this round and its leaves go to the others.  `fetch_advance` alone decides what comes next.
 * Invariant: a leaf is in staging only if its bytes have the hash that the elected digest stands for; nothing is applied
 * unless STAGED(OK) was said and answered.
 * SPDX-License-Identifier: MIT */
#include "kernels/hash.h"
#include "session/calls/departure.h"
#include "session/state/entries.h"
#include "session/state/fetch.h"
#include "session/state/holder.h"
#include "session/state/fetch_sources.h"
#include "session/tables/peers.h"
#include "session/tables/trace.h"

enum {
    FETCH_DEPTH = 4,         /* leaves asked of one source at first: enough to hide a round trip within a site */
    FETCH_HASH_BYTES = sizeof(uint64_t)
};

/* ---- what is said ---- */

static void say_staged(struct session *s, struct outbox *out)
{
    if (!s->master.welcomed) {
        return; /* said again when the master is back */
    }
    struct msg_staged m = {.number = s->fetch.elected.number,
                           .round = s->fetch.elected.round,
                           .status = s->fetch.status,
                           .liar = s->fetch.liar};
    if (m.status == STAGED_KEYS) {
        memcpy(m.text, s->fetch.diff.text, sizeof m.text);
    }
    put_staged(outbox_frame(out, FRAME_STAGED, s->run, s->view.view), &m);
    outbox_send(out, ACT_MASTER, 0);
}

/* All that is received is here: want_hash says what this peer will hold, so that it may pass it on. */
static void complete_hashes(struct session *s)
{
    struct sync_state *state = s->state;
    for (uint32_t i = 0; i < state->entry_count; i++) {
        const struct sync_entry *e = &state->entries[i];
        if (!(e->inequality ? s->fetch.take_whole : s->fetch.take_content) && e->leaves > 0) {
            memcpy(state->want_hash + e->first_leaf, state->leaf_hash + e->first_leaf, e->leaves * sizeof *state->want_hash);
        }
    }
}

static void trace_staged(struct outbox *out, enum staged_status status)
{
    static const char *const words[] = {
        [STAGED_OK] = "staged and verified",
        [STAGED_NO_SOURCE] = "it cannot be had from anybody",
        [STAGED_NO_MEMORY] = "no memory to stage it",
        [STAGED_KEYS] = "the entries here are not the elected ones",
    };
    session_trace(out, TRACE_CLOSER, "shared state: %s", words[status]);
}

static void stage(struct session *s, enum staged_status status, struct outbox *out)
{
    if (status == STAGED_OK) {
        complete_hashes(s);
    }
    s->fetch.staged = true;
    s->fetch.status = (uint8_t)status;
    s->fetch.asks = 0;
    trace_staged(out, status);
    say_staged(s, out);
}

void fetch_again(struct session *s, struct outbox *out)
{
    if (s->fetch.active && s->fetch.staged) {
        say_staged(s, out);
    }
}

static void send_to_source(struct session *s, uint32_t source, struct outbox *out)
{
    s->fetch.connected = true;
    outbox_send(out, ACT_SYNC, s->fetch.holders[source]);
}

static void ask_manifest(struct session *s, uint32_t source, struct outbox *out)
{
    struct msg_manifest_want m = {.number = s->fetch.elected.number, .round = s->fetch.elected.round};
    put_manifest_want(outbox_frame(out, FRAME_MANIFEST_WANT, s->run, s->view.view), &m);
    send_to_source(s, source, out);
}

static void ask_leaf(struct session *s, uint32_t leaf, uint32_t source, struct outbox *out)
{
    uint32_t entry = sync_entry_of(s->state, leaf);
    struct msg_leaf_want m = {.number = s->fetch.elected.number,
                              .round = s->fetch.elected.round,
                              .entry = entry,
                              .leaf = leaf - s->state->entries[entry].first_leaf};
    s->state->leaf_state[leaf] = LEAF_ASKED;
    s->fetch.asked[source]++;
    s->fetch.ask[s->fetch.asks].leaf = leaf;
    s->fetch.ask[s->fetch.asks].at = s->clock.now;
    s->fetch.ask[s->fetch.asks++].source = source;
    put_leaf_want(outbox_frame(out, FRAME_LEAF_WANT, s->run, s->view.view), &m);
    send_to_source(s, source, out);
}

/* ---- what comes next ---- */

/* A source that only one of its kind could replace is gone. */
static bool is_cut_off(const struct session *s)
{
    bool whole_open = s->fetch.take_whole && (!s->fetch.whole_known || s->fetch.whole_missing > 0);
    bool content_open = s->fetch.take_content && (!s->fetch.content_known || s->fetch.missing > s->fetch.whole_missing);
    return (whole_open && s->fetch.holder_down[s->fetch.whole]) || (content_open && source_idle(s, NONE) == NONE);
}

static void ask_for_hashes(struct session *s, struct outbox *out)
{
    if (!s->fetch.content_known && s->fetch.manifest_from == NONE) {
        s->fetch.manifest_from = source_idle(s, NONE);
        ask_manifest(s, s->fetch.manifest_from, out);
    }
    if (!s->fetch.whole_known && s->fetch.whole_from == NONE) {
        s->fetch.whole_from = s->fetch.whole;
        if (s->fetch.whole != s->fetch.manifest_from || s->fetch.content_known) {
            ask_manifest(s, s->fetch.whole, out);
        }
    }
}

static void plan_leaves(struct session *s)
{
    struct sync_state *state = s->state;
    flow_window_init(&s->fetch.flow, FETCH_DEPTH * s->fetch.source_count);
    for (uint32_t i = 0; i < state->entry_count; i++) {
        const struct sync_entry *e = &state->entries[i];
        if (!(e->inequality ? s->fetch.take_whole : s->fetch.take_content)) {
            continue;
        }
        for (uint32_t leaf = 0; leaf < e->leaves; leaf++) {
            uint32_t k = e->first_leaf + leaf;
            if (state->want_hash[k] != state->leaf_hash[k]) {
                state->leaf_state[k] = e->inequality ? LEAF_WANTED_WHOLE : LEAF_WANTED;
                state->stage_at[k] = s->fetch.need + 1;
                s->fetch.need += sync_leaf_size(state, i, leaf);
                s->fetch.missing++;
                s->fetch.whole_missing += e->inequality;
            }
        }
    }
    s->fetch.planned = true;
}

/* One request at a time: the answer is then for the size asked last, whatever rounds came in between. */
static bool has_memory(struct session *s, struct outbox *out)
{
    if (s->fetch.memory_asked) {
        return false;
    }
    if (s->state->staging != NULL && s->state->staging_bytes >= s->fetch.need) {
        return true;
    }
    s->state->staging = NULL; /* the shell gives it up for the new one */
    s->state->staging_bytes = 0;
    s->fetch.memory_asked = true;
    s->fetch.memory_bytes = s->fetch.need;
    outbox_add(out, ACT_SYNC_ALLOC)->value = s->fetch.need;
    return false;
}

static uint32_t next_leaf(struct session *s, enum leaf_state wanted, uint32_t *cursor)
{
    while (*cursor < s->state->leaf_count && s->state->leaf_state[*cursor] != wanted) {
        (*cursor)++;
    }
    return *cursor < s->state->leaf_count ? *cursor : NONE;
}

/* Leaves that may be under way from each source: its share of what arrives in a round trip, twice. */
static uint32_t depth(const struct session *s)
{
    uint32_t share = s->fetch.flow.frames / s->fetch.source_count;
    return share > FETCH_DEPTH ? share : FETCH_DEPTH;
}

static void ask_for_leaves(struct session *s, struct outbox *out)
{
    uint32_t most = depth(s);
    while (s->fetch.take_whole && s->fetch.asks < SESSION_ASKS && s->fetch.asked[s->fetch.whole] < most) {
        uint32_t leaf = next_leaf(s, LEAF_WANTED_WHOLE, &s->fetch.whole_cursor);
        if (leaf == NONE) {
            break;
        }
        ask_leaf(s, leaf, s->fetch.whole, out);
    }
    while (s->fetch.asks < SESSION_ASKS) {
        uint32_t source = source_idle(s, most);
        uint32_t leaf = source == NONE ? NONE : next_leaf(s, LEAF_WANTED, &s->fetch.cursor);
        if (leaf == NONE) {
            break;
        }
        ask_leaf(s, leaf, source, out);
    }
}

/* This peer is going to lose its place: it asks a holder, from the first on, which of its entries is not as elected. */
static void ask_for_entries(struct session *s, struct outbox *out)
{
    if (s->fetch.manifest_from == NONE) {
        s->fetch.manifest_from = source_idle(s, NONE);
        entries_begin(&s->fetch.diff);
    }
    if (s->fetch.manifest_from == NONE) {
        stage(s, STAGED_KEYS, out);
        return;
    }
    struct msg_entries_want m = {
        .number = s->fetch.elected.number, .round = s->fetch.elected.round, .first = s->fetch.diff.next};
    put_entries_want(outbox_frame(out, FRAME_ENTRIES_WANT, s->run, s->view.view), &m);
    send_to_source(s, s->fetch.manifest_from, out);
}

static void fetch_advance(struct session *s, struct outbox *out)
{
    if (!s->fetch.active || !s->fetch.receiving || s->fetch.staged) {
        return;
    }
    if (s->fetch.diff.active) {
        if (s->fetch.manifest_from == NONE) {
            ask_for_entries(s, out);
        }
        return;
    }
    if (is_cut_off(s)) {
        stage(s, STAGED_NO_SOURCE, out);
        return;
    }
    ask_for_hashes(s, out);
    if (!s->fetch.content_known || !s->fetch.whole_known) {
        return;
    }
    if (!s->fetch.planned) {
        plan_leaves(s);
    }
    if (s->fetch.missing == 0) {
        stage(s, STAGED_OK, out);
    } else if (is_cut_off(s)) {
        stage(s, STAGED_NO_SOURCE, out);
    } else if (has_memory(s, out)) {
        ask_for_leaves(s, out);
    }
}

/* ---- a round ---- */

static void round_clear(struct session *s)
{
    s->fetch.receiving = s->fetch.staged = s->fetch.planned = false;
    s->fetch.holder_count = s->fetch.source_count = s->fetch.asks = 0;
    s->fetch.cursor = s->fetch.whole_cursor = s->fetch.missing = s->fetch.whole_missing = 0;
    s->fetch.manifest_from = s->fetch.whole = s->fetch.whole_from = NONE;
    s->fetch.first = 0;
    s->fetch.need = s->fetch.liar = 0;
    s->fetch.rtt_ns = INT64_MAX;
    s->fetch.diff = (struct entries_diff){.active = false};
}

/* Everything that an earlier round staged is void. */
static void round_begin(struct session *s, const struct msg_elected *m)
{
    struct sync_state *state = s->state;
    round_clear(s);
    s->fetch.active = true;
    s->fetch.receiving = m->role == SYNC_RECEIVER;
    s->fetch.elected = *m;
    if (state->leaf_count > 0) {
        memset(state->leaf_state, LEAF_SAME, state->leaf_count);
        memset(state->stage_at, 0, (size_t)state->leaf_count * sizeof *state->stage_at);
    }
    s->fetch.take_content = state->content_digest != m->content_digest;
    s->fetch.take_whole = m->whole != 0 && m->whole_source != 0 && m->whole_source != s->id && state->has_inequality;
    s->fetch.content_known = !s->fetch.take_content;
    s->fetch.whole_known = !s->fetch.take_whole;
}

/* A receiver has itself left out, so the holders leave room for a whole_source that is none of them. */
static bool read_sources(struct session *s, const struct msg_elected *m, struct reader *r)
{
    for (uint32_t i = 0; i < m->holders; i++) {
        uint64_t id = get_u64(r);
        if (s->fetch.receiving) {
            source_add(s, id);
        }
    }
    s->fetch.holder_count = s->fetch.source_count;
    for (uint32_t i = 0; i < m->receivers; i++) {
        if (get_u64(r) == s->id && m->holders > 0) {
            s->fetch.first = i % m->holders;
        }
    }
    if (s->fetch.receiving && s->fetch.take_whole) {
        s->fetch.whole = source_find(s, m->whole_source);
        if (s->fetch.whole == NONE) {
            s->fetch.whole = s->fetch.source_count;
            source_add(s, m->whole_source);
        }
    }
    return reader_done(r);
}

void fetch_elected(struct session *s, struct reader *r, struct outbox *out)
{
    struct msg_elected m;
    bool good = get_elected(r, &m) && m.holders + (m.role == SYNC_RECEIVER) <= s->cfg.max_members;
    if (good && (!holder_is_voting(s) || m.number != s->vote.answered)) {
        return; /* a vote that is over */
    }
    if (good && s->fetch.active && m.round == s->fetch.elected.round) {
        return; /* said again to a resumed connection; STAGED was as well */
    }
    if (good) {
        round_begin(s, &m);
        good = s->fetch.active = read_sources(s, &m, r);
    }
    if (!good) {
        wish_redial(s, "the master sent a malformed ELECTED");
        return;
    }
    session_trace(out, TRACE_CLOSER, "shared state: round %u of its election: this peer %s", m.round,
                  m.role == SYNC_RECEIVER ? "receives" : "has it");
    if (s->fetch.receiving && m.key_digest != s->state->key_digest) {
        entries_begin(&s->fetch.diff);
        s->fetch.content_known = false;
        fetch_advance(s, out);
    } else if (s->fetch.receiving && !holder_has_room(s)) {
        stage(s, STAGED_NO_SOURCE, out);
    } else {
        fetch_advance(s, out);
    }
}

void fetch_memory(struct session *s, void *memory, struct outbox *out)
{
    if (!s->fetch.memory_asked) {
        return; /* the vote it was for is over */
    }
    s->fetch.memory_asked = false;
    s->state->staging = memory;
    s->state->staging_bytes = memory == NULL ? 0 : s->fetch.memory_bytes;
    if (memory == NULL && s->fetch.receiving && s->fetch.planned && !s->fetch.staged) {
        stage(s, STAGED_NO_MEMORY, out);
        wish_leave(s, CAUSE_NO_MEMORY, RESULT_NO_MEMORY, "no memory to stage the shared state", true);
        return;
    }
    fetch_advance(s, out);
}

void fetch_down(struct session *s, uint64_t peer, struct outbox *out)
{
    uint32_t source = s->fetch.active && !s->fetch.staged ? source_find(s, peer) : NONE;
    if (source != NONE && !s->fetch.holder_down[source]) {
        source_lost(s, source, false);
        fetch_advance(s, out);
    }
}

void fetch_members_changed(struct session *s, struct outbox *out)
{
    if (!s->fetch.active || s->fetch.staged) {
        return;
    }
    for (uint32_t i = 0; i < s->fetch.source_count; i++) {
        if (!s->fetch.holder_down[i] && !source_in_reach(s, s->fetch.holders[i])) {
            source_lost(s, i, false);
        }
    }
    fetch_advance(s, out);
}

static void close_connections(struct session *s, struct outbox *out)
{
    if (s->fetch.connected) {
        outbox_add(out, ACT_SYNC_CLOSE);
    }
    s->fetch.connected = false;
}

/* An election that nobody has to receive in is answered without ELECTED, and a resumed connection may hear the answer only: so the answer
 * names its round.  Connections are closed first: they may hold leaves of this peer that were asked in an earlier one. */
bool fetch_apply(struct session *s, uint32_t round, struct outbox *out)
{
    bool any = s->fetch.active && s->fetch.elected.round == round && s->fetch.staged &&
               s->fetch.status == STAGED_OK && s->fetch.need > 0;
    if (any) {
        close_connections(s, out);
        outbox_add(out, ACT_SYNC_APPLY);
    }
    return any;
}

void fetch_reset(struct session *s, struct outbox *out)
{
    close_connections(s, out);
    round_clear(s);
    s->fetch.active = s->fetch.memory_asked = false;
}

/* ---- the receiver's side ---- */

/* Which source an answer comes from; NONE if this round did not ask it. */
static uint32_t answer_source(const struct session *s, uint64_t peer, uint32_t number, uint32_t round)
{
    if (!holder_is_voting(s) || !s->fetch.active || s->fetch.staged || number != s->fetch.elected.number ||
        round != s->fetch.elected.round) {
        return NONE;
    }
    uint32_t source = source_find(s, peer);
    return source != NONE && s->fetch.holder_down[source] ? NONE : source;
}

static void keep_hashes(struct session *s, const unsigned char *hashes, bool inequality)
{
    for (uint32_t i = 0; i < s->state->entry_count; i++) {
        const struct sync_entry *e = &s->state->entries[i];
        if (e->inequality == inequality && e->leaves > 0) {
            memcpy(s->state->want_hash + e->first_leaf, hashes + (size_t)e->first_leaf * FETCH_HASH_BYTES,
                   (size_t)e->leaves * FETCH_HASH_BYTES);
        }
    }
}

void fetch_manifest(struct session *s, uint64_t peer, const struct msg_manifest *m, const void *hashes, struct outbox *out)
{
    uint32_t source = answer_source(s, peer, m->number, m->round);
    bool content = !s->fetch.content_known && source == s->fetch.manifest_from;
    bool whole = !s->fetch.whole_known && source == s->fetch.whole_from;
    if (source == NONE || (!content && !whole)) {
        return;
    }
    bool whole_size = m->bytes == (uint64_t)s->state->leaf_count * FETCH_HASH_BYTES;
    if (!whole_size ||
        (content && sync_content_digest(s->state, hashes) != s->fetch.elected.content_digest)) {
        source_lost(s, source, m->bytes != 0); /* nothing at all: it does not have it, which is no lie */
        fetch_advance(s, out);
        return;
    }
    if (content) {
        keep_hashes(s, hashes, false);
        s->fetch.content_known = true;
    }
    if (whole) {
        keep_hashes(s, hashes, true);
        s->fetch.whole_known = true;
    }
    fetch_advance(s, out);
}

void fetch_entries(struct session *s, uint64_t peer, const struct msg_entries *m, struct reader *r, struct outbox *out)
{
    struct entries_diff *d = &s->fetch.diff;
    uint32_t source = answer_source(s, peer, m->number, m->round);
    if (source == NONE || !d->active || source != s->fetch.manifest_from || m->first != d->next) {
        return;
    }
    bool open = true;
    for (uint32_t i = 0; open && i < m->entries; i++) {
        struct entry_key key;
        if (!get_entry_key(r, &key)) {
            break;
        }
        open = entries_next(d, s->state, &key);
    }
    if (r->bad || (open && (m->total == 0 || (d->next < m->total && m->entries == 0)))) {
        source_lost(s, source, false);
        fetch_advance(s, out);
    } else if (open && d->next < m->total) {
        ask_for_entries(s, out);
    } else {
        if (open) {
            entries_end(d, s->state);
        }
        stage(s, STAGED_KEYS, out);
    }
}

void fetch_leaf(struct session *s, uint64_t peer, const struct msg_leaf *m, const void *payload, struct outbox *out)
{
    uint32_t source = answer_source(s, peer, m->number, m->round);
    if (source == NONE || m->entry >= s->state->entry_count || m->leaf >= s->state->entries[m->entry].leaves) {
        return;
    }
    uint32_t leaf = s->state->entries[m->entry].first_leaf + (uint32_t)m->leaf;
    uint32_t ask = source_asked(s, source, leaf);
    if (ask == NONE) {
        return;
    }
    uint32_t size = sync_leaf_size(s->state, m->entry, (uint32_t)m->leaf);
    s->state->rx_bytes += m->bytes;
    if (m->bytes != size ||
        (hash_simple64(payload, size) != s->state->want_hash[leaf] && !MUTANT(SYNC_NO_LEAF_CHECK))) {
        source_lost(s, source, m->bytes != 0);
        fetch_advance(s, out);
        return;
    }
    int64_t took = s->clock.now - s->fetch.ask[ask].at;
    source_answered(s, ask);
    s->fetch.rtt_ns = took < s->fetch.rtt_ns ? took : s->fetch.rtt_ns;
    (void)flow_window_arrived(&s->fetch.flow, s->clock.now, s->fetch.rtt_ns);
    memcpy(s->state->staging + s->state->stage_at[leaf] - 1, payload, size);
    s->state->leaf_state[leaf] = LEAF_HERE;
    s->fetch.missing--;
    s->fetch.whole_missing -= s->state->entries[m->entry].inequality;
    fetch_advance(s, out);
}
