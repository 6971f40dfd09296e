/* holding.c - see holding.h.
 *
 * Entries: the head (lineage, step), parameters of which each step changes some 1 MiB leaves only, bytes at an odd address,
 * and one that may differ between the peers, whose elements all say whose it is.
 * SPDX-License-Identifier: MIT */
#include "holding.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "contribution.h"
#include "say.h"
#include "tests/chaos/dice.h"

enum { ENTRIES = 4, LEAF_WORDS = (1 << 20) / 8, ODD_BYTES = 1237, OWN = 300 };

struct holding {
    const struct plan *plan;
    unsigned key;
    uint64_t head[2]; /* lineage, step */
    uint64_t *words;  /* owned */
    size_t word_count;
    unsigned char odd[ODD_BYTES + 1]; /* used from its second byte on */
    uint64_t own[OWN];
    uint64_t synced;  /* revision of the last success; 0: none */
    bool raise;       /* nobody was at the expected revision: one more is offered, whoever this one is by now */
    struct say_outcome last; /* of the last success */
    char name[HOLDING_NAME];
    bool popular;     /* the special strategy has found no candidate: do without it */
    pcclTensorInfo_t infos[ENTRIES];
};

static uint64_t word_of(const struct holding *h, size_t at)
{
    uint64_t leaf = at / LEAF_WORDS; /* leaf n changes with every 2^(n mod 4)-th step */
    return dice_hash(h->head[0] + at, h->head[1] >> leaf % 4);
}

static void make_content(struct holding *h)
{
    for (size_t i = 0; i < h->word_count; i++) {
        h->words[i] = word_of(h, i);
    }
    for (size_t i = 0; i < ODD_BYTES; i++) {
        h->odd[1 + i] = (unsigned char)dice_hash(h->head[0] ^ i, h->head[1]);
    }
}

struct holding *holding_new(const struct plan *plan, unsigned key, uint64_t own_lineage)
{
    struct holding *h = calloc(1, sizeof *h);
    size_t count = plan->state_bytes / sizeof(uint64_t) + 1;
    uint64_t *words = calloc(count, sizeof *words);
    if (h == NULL || words == NULL) {
        free(h);
        free(words);
        return NULL;
    }
    h->plan = plan;
    h->key = key;
    h->words = words;
    h->word_count = count;
    h->head[0] = own_lineage;
    for (size_t i = 0; i < OWN; i++) {
        h->own[i] = key;
    }
    make_content(h);
    h->infos[0] = (pcclTensorInfo_t){.name = "head", .data = h->head, .count = 2, .datatype = pcclUint64};
    h->infos[1] = (pcclTensorInfo_t){.name = "words", .data = words, .count = count, .datatype = pcclInt64};
    h->infos[2] = (pcclTensorInfo_t){.name = "odd", .data = h->odd + 1, .count = ODD_BYTES, .datatype = pcclUint8};
    h->infos[3] = (pcclTensorInfo_t){
        .name = "own", .data = h->own, .count = OWN, .datatype = pcclDouble, .allow_content_inequality = true};
    return h;
}

void holding_free(struct holding *h)
{
    if (h != NULL) {
        free(h->words);
        free(h);
    }
}

uint64_t holding_lineage(const struct holding *h)
{
    return h->head[0];
}

uint64_t holding_step(const struct holding *h)
{
    return h->head[1];
}

uint64_t holding_revision(const struct holding *h)
{
    return h->synced;
}

void holding_advance(struct holding *h)
{
    h->head[1]++;
    make_content(h);
}

void holding_forget(struct holding *h)
{
    h->synced = 0;
    h->raise = false;
}

/* Without the entry that may differ. */
static uint64_t digest(const struct holding *h)
{
    return dice_hash(contribution_digest(h->head, sizeof h->head),
                     dice_hash(contribution_digest(h->words, h->word_count * sizeof h->words[0]),
                               contribution_digest(h->odd + 1, ODD_BYTES)));
}

static void check_content(const struct holding *h)
{
    for (size_t i = 0; i < h->word_count; i++) {
        if (h->words[i] != word_of(h, i)) {
            say_finding("shared state: word %zu of lineage %" PRIx64 ", step %" PRIu64 " is %016" PRIx64 ", not %016" PRIx64, i,
                        h->head[0], h->head[1], h->words[i], word_of(h, i));
            return;
        }
    }
    for (size_t i = 0; i < ODD_BYTES; i++) {
        if (h->odd[1 + i] != (unsigned char)dice_hash(h->head[0] ^ i, h->head[1])) {
            say_finding("shared state: byte %zu of 'odd' is wrong", i);
            return;
        }
    }
    for (size_t i = 1; i < OWN; i++) {
        if (h->own[i] != h->own[0] || h->own[0] >= PLAN_PEERS) {
            say_finding("shared state: 'own' is of peer %" PRIu64 " and %" PRIu64, h->own[0], h->own[i]);
            return;
        }
    }
}

static pcclSharedStateSyncStrategy_t strategy(const struct holding *h, const struct member *m, int rank)
{
    if (h->popular || h->plan->sync == SYNC_POPULAR) {
        return PCCL_SHARED_STATE_SYNC_STRATEGY_ENFORCE_POPULAR;
    }
    if (h->plan->sync == SYNC_NEWCOMERS_RECEIVE) {
        return m->newcomer ? PCCL_SHARED_STATE_SYNC_STRATEGY_RECEIVE_ONLY : PCCL_SHARED_STATE_SYNC_STRATEGY_SEND_ONLY;
    }
    return rank == 0 ? PCCL_SHARED_STATE_SYNC_STRATEGY_SEND_ONLY : PCCL_SHARED_STATE_SYNC_STRATEGY_RECEIVE_ONLY;
}

static void after_error(struct holding *h, struct member *m, pcclResult_t result, uint64_t before, uint64_t own)
{
    if (digest(h) != before || own != contribution_digest(h->own, sizeof h->own)) {
        say_finding("shared state: changed by a synchronisation that failed with %s", pcclGetResultString(result));
    }
    if (result == pcclNoSharedStateAvailable) {
        pcclErrorInfo_t why;
        if (pcclGetLastErrorInfo(&why) == pcclSuccess && why.cause == pcclCauseRevision) {
            h->raise = true; /* for ever, else */
        } else if (h->plan->sync == SYNC_POPULAR || h->popular) {
            say_finding("shared state: no candidate, though everybody may send");
        }
        h->popular = true;
        m->newcomer = true;
    }
}

pcclResult_t holding_synchronise(struct holding *h, struct member *m, int rank)
{
    uint64_t before = digest(h), own = contribution_digest(h->own, sizeof h->own), lineage = h->head[0];
    pcclSharedState_t state = {.revision = m->newcomer && !h->raise ? h->synced : h->synced + 1, .count = ENTRIES, .infos = h->infos};
    pcclSharedStateSyncInfo_t info = {0};
    say_call("sync");
    pcclResult_t result = pcclSynchronizeSharedState(m->comm, &state, strategy(h, m, rank), &info);
    say_return("sync", result);
    if (result != pcclSuccess) {
        after_error(h, m, result, before, own);
        return result;
    }
    if (!m->newcomer && h->head[0] != lineage) {
        say_finding("shared state: a member's lineage %" PRIx64 " was replaced by %" PRIx64, lineage, h->head[0]);
    }
    if (!m->newcomer && state.revision != h->synced + 1) {
        say_finding("shared state: revision %" PRIu64 " after %" PRIu64, state.revision, h->synced);
    }
    check_content(h);
    h->synced = state.revision;
    h->popular = h->raise = false;
    m->newcomer = false;
    m->acts_begun = 0;
    h->last = (struct say_outcome){.tx_bytes = info.tx_bytes, .rx_bytes = info.rx_bytes, .digest = digest(h)};
    return member_read_sizes(m);
}

void holding_name(struct holding *h, struct member *m, uint64_t nonce)
{
    char key[HOLDING_NAME + 8];
    snprintf(h->name, sizeof h->name, "g%u.%08x.r%" PRIu64 ".n%08x", m->group, (unsigned)h->head[0], h->synced,
             (unsigned)nonce);
    snprintf(key, sizeof key, "%s.sync", h->name);
    h->last.world = (uint32_t)m->world;
    say_end(key, &h->last);
}

const char *holding_get_name(const struct holding *h)
{
    return h->name;
}
