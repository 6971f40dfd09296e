/* holder.c - what a holder of the elected state gives to who asks: leaf hashes, leaves, the list of its entries.
 *
 * Its one idea: it decides nothing and remembers nothing of who asked; what it lacks it says by an empty answer.
 * Invariant: user memory is read only while the vote is open.
 * SPDX-License-Identifier: MIT */
#include "session/state/entries.h"
#include "session/state/holder.h"

enum {
    HOLDER_HASH_BYTES = sizeof(uint64_t),
    HOLDER_MESSAGE_BYTES = 64 /* the largest message in front of a payload is smaller */
};

bool holder_has_room(const struct session *s)
{
    return (uint64_t)s->state->leaf_count * HOLDER_HASH_BYTES + HOLDER_MESSAGE_BYTES <= frame_limit(FRAME_MANIFEST);
}

bool holder_is_voting(const struct session *s)
{
    return s->vote.kind == VOTE_SYNC && !s->vote.ended && s->state != NULL;
}

static void send_answer(struct session *s, uint64_t peer, const void *data, uint32_t bytes, struct outbox *out)
{
    struct action *a = outbox_send(out, ACT_SYNC, peer);
    a->value = 1;
    outbox_lend(out, a, data, bytes);
    s->fetch.connected = true;
}

/* Numbers are the asker's: every peer counts its own votes, and ELECTED may still be on its way here.  What is asked for is checked by
 * the asker, so a holder just says what it has.  Who has staged this round's state passes that on. */
static bool passes_on(const struct session *s, uint32_t round)
{
    return s->fetch.active && s->fetch.receiving && s->fetch.staged && s->fetch.status == STAGED_OK &&
           s->fetch.elected.round == round;
}

void holder_give_manifest(struct session *s, uint64_t peer, const struct msg_manifest_want *want, struct outbox *out)
{
    struct msg_manifest m = {.number = want->number, .round = want->round};
    bool have = holder_is_voting(s) && holder_has_room(s);
    m.bytes = have ? s->state->leaf_count * HOLDER_HASH_BYTES : 0;
    put_manifest(outbox_frame(out, FRAME_MANIFEST, s->run, s->view.view), &m);
    const uint64_t *hashes = have && passes_on(s, want->round) ? s->state->want_hash : have ? s->state->leaf_hash : NULL;
    send_answer(s, peer, hashes, m.bytes, out);
}

void holder_give_leaf(struct session *s, uint64_t peer, const struct msg_leaf_want *want, struct outbox *out)
{
    struct msg_leaf m = {.number = want->number, .round = want->round, .entry = want->entry, .leaf = want->leaf};
    const unsigned char *data = NULL;
    if (holder_is_voting(s) && want->entry < s->state->entry_count && want->leaf < s->state->entries[want->entry].leaves &&
        s->state->leaf_bytes <= frame_limit(FRAME_LEAF) - HOLDER_MESSAGE_BYTES) {
        uint32_t leaf = s->state->entries[want->entry].first_leaf + (uint32_t)want->leaf;
        bool staged = passes_on(s, want->round) && s->state->leaf_state[leaf] == LEAF_HERE;
        data = staged ? s->state->staging + s->state->stage_at[leaf] - 1
                      : s->state->entries[want->entry].data + want->leaf * s->state->leaf_bytes;
        m.bytes = sync_leaf_size(s->state, want->entry, (uint32_t)want->leaf);
        s->state->tx_bytes += m.bytes;
    }
    put_leaf(outbox_frame(out, FRAME_LEAF, s->run, s->view.view), &m);
    send_answer(s, peer, data, m.bytes, out);
}

/* Also who has not voted yet may be asked; its list is then not known here. */
void holder_give_entries(struct session *s, uint64_t peer, const struct msg_entries_want *want, struct outbox *out)
{
    struct msg_entries m = {.number = want->number, .round = want->round, .first = want->first};
    m.total = holder_is_voting(s) ? s->state->entry_count : 0;
    m.entries = m.first < m.total ? m.total - m.first : 0;
    m.entries = m.entries < P2P_ENTRIES ? m.entries : P2P_ENTRIES;
    struct writer *w = outbox_frame(out, FRAME_ENTRIES, s->run, s->view.view);
    put_entries(w, &m);
    for (uint32_t i = 0; i < m.entries; i++) {
        struct entry_key key = entries_key(&s->state->entries[m.first + i], m.first + i);
        put_entry_key(w, &key);
    }
    send_answer(s, peer, NULL, 0, out);
}
