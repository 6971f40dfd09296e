/* entries.c - which entry of a shared state differs from the elected ones, and in what.
 *
 * Their list comes piece by piece and is not kept: up to the first index where the two differ nothing has to be, and from there on
 * one question is open: whether they have the entry that stands there here.
 * Invariant: names are unique within a list, so an entry that is found before that index stands at the same one in both.
 * SPDX-License-Identifier: MIT */
#include <stdio.h>

#include "session/state/entries.h"
#include "session/state/sync.h"

enum { ENTRY_TEXT = 32 };

void entries_begin(struct entries_diff *d)
{
    *d = (struct entries_diff){.active = true, .at = NONE};
}

struct entry_key entries_key(const struct sync_entry *e, uint32_t index)
{
    struct entry_key key = {.name_hash = e->name_hash, .count = e->count, .dtype = (uint8_t)e->dtype, .inequality = e->inequality};
    if (e->name != NULL) {
        snprintf(key.name, sizeof key.name, "%s", e->name);
    } else {
        snprintf(key.name, sizeof key.name, "#%u", index);
    }
    return key;
}

static bool equal(const struct entry_key *a, const struct entry_key *b)
{
    return a->name_hash == b->name_hash && a->count == b->count && a->dtype == b->dtype && a->inequality == b->inequality;
}

/* "50 f32" */
static const char *say(const struct entry_key *k, char out[ENTRY_TEXT])
{
    snprintf(out, ENTRY_TEXT, "%llu %s", (unsigned long long)k->count, dtype_name((enum dtype)k->dtype));
    return out;
}

static bool own_has(const struct sync_state *own, uint64_t name_hash)
{
    for (uint32_t i = 0; i < own->entry_count; i++) {
        if (own->entries[i].name_hash == name_hash) {
            return true;
        }
    }
    return false;
}

/* The same name, something else differs. */
static void say_changed(struct entries_diff *d, const struct entry_key *ours, const struct entry_key *theirs)
{
    char a[ENTRY_TEXT], b[ENTRY_TEXT];
    if (ours->count == theirs->count && ours->dtype == theirs->dtype) {
        snprintf(d->text, sizeof d->text, "'%s' has allow_content_inequality %s, elected: %s", ours->name,
                 ours->inequality ? "true" : "false", theirs->inequality ? "true" : "false");
    } else {
        snprintf(d->text, sizeof d->text, "'%s' has %s, elected: %s", ours->name, say(ours, a), say(theirs, b));
    }
}

/* False: that settles it. */
static bool first_difference(struct entries_diff *d, const struct sync_state *own, const struct entry_key *theirs)
{
    char text[ENTRY_TEXT];
    d->at = d->next;
    d->theirs = *theirs;
    if (d->at < own->entry_count && own->entries[d->at].name_hash == theirs->name_hash) {
        struct entry_key ours = entries_key(&own->entries[d->at], d->at);
        say_changed(d, &ours, theirs);
        return false;
    }
    if (d->at >= own->entry_count || !own_has(own, theirs->name_hash)) {
        snprintf(d->text, sizeof d->text, "'%s' is missing, elected: %s", theirs->name, say(theirs, text));
        return false;
    }
    return true;
}

bool entries_next(struct entries_diff *d, const struct sync_state *own, const struct entry_key *theirs)
{
    if (d->at != NONE && own->entries[d->at].name_hash == theirs->name_hash) {
        struct entry_key ours = entries_key(&own->entries[d->at], d->at);
        snprintf(d->text, sizeof d->text, "entry %u is '%s', elected: '%s', in another order", d->at, ours.name, d->theirs.name);
        return false;
    }
    if (d->at == NONE) {
        struct entry_key ours = {0};
        if (d->next < own->entry_count) {
            ours = entries_key(&own->entries[d->next], d->next);
        }
        if ((d->next >= own->entry_count || !equal(&ours, theirs)) && !first_difference(d, own, theirs)) {
            return false;
        }
    }
    d->next++;
    return true;
}

void entries_end(struct entries_diff *d, const struct sync_state *own)
{
    uint32_t at = d->at != NONE ? d->at : d->next;
    char text[ENTRY_TEXT];
    if (at < own->entry_count) {
        struct entry_key ours = entries_key(&own->entries[at], at);
        snprintf(d->text, sizeof d->text, "'%s' with %s is one more", ours.name, say(&ours, text));
    }
}
