/* test_tags.c - the tags of a session cost what a lookup finds, not what the table holds or has held.
 * SPDX-License-Identifier: MIT */
#include "tests/unit/session_bench.h"

#include "session/tables/tags.h"
#include "session/session_state.h"

enum { LIMIT = 4096 };

/* Entries looked at by so many lookups of tags that are not there. */
static uint64_t steps_of(struct session *s, uint64_t first, uint32_t lookups)
{
    uint64_t before = s->tags.steps;
    for (uint32_t i = 0; i < lookups; i++) {
        EXPECT(tag_find(s, SPACE_TAG, first + i) == NULL);
    }
    return s->tags.steps - before;
}

TEST(tag_table_that_is_full_or_was_costs_a_lookup_nothing) /* each message walked over a million entries of views long gone */
{
    struct session_config c = bench_config();
    c.max_tags = LIMIT;
    struct bench *b = bench_of(&c, false);
    struct session_launch l = {.call = {.params = one_float}};
    for (uint64_t tag = 0; tag < LIMIT; tag++) {
        bench_grow(b, &(struct session_event){.kind = SESSION_LAUNCH, .launch = &l});
        EXPECT(tag_get(b->s, SPACE_TAG, tag) != NULL);
    }
    bench_grow(b, &(struct session_event){.kind = SESSION_LAUNCH, .launch = &l});
    EXPECT(tag_get(b->s, SPACE_TAG, LIMIT) == NULL);
    EXPECT(steps_of(b->s, LIMIT, 1000) < 2 * 1000); /* chains of one on average */
    tag_find(b->s, SPACE_TAG, 7)->next_seq = 3;
    install(b, 2, false);
    EXPECT(!session_poisoned(b->s));
    EXPECT_EQ(steps_of(b->s, 0, LIMIT), 0);
    EXPECT(tag_get(b->s, SPACE_TAG, LIMIT) != NULL);
    bench_free(b);
}

TEST(call_of_one_tag_too_many_says_so) /* "too many unfinished operations: await some", with nothing to await, for ever */
{
    struct session_config c = bench_config();
    c.max_tags = LIMIT;
    struct bench *b = bench_of(&c, false);
    struct session_launch l = {.call = {.tag = LIMIT, .params = one_float, .deadline = INT64_MAX}};
    for (uint64_t tag = 0; tag < LIMIT; tag++) {
        bench_grow(b, &(struct session_event){.kind = SESSION_LAUNCH, .launch = &l});
        EXPECT(tag_get(b->s, SPACE_TAG, tag) != NULL);
    }
    step(b, &(struct session_event){.kind = SESSION_LAUNCH, .launch = &l});
    EXPECT_EQ(b->outcome.result, RESULT_TAGS);
    step(b, &(struct session_event){.kind = SESSION_VOTE, .vote = &(struct msg_vote){.kind = VOTE_UPDATE}});
    struct reader r;
    struct msg_vote v = {0};
    uint32_t at = 0;
    EXPECT(sent_next(b, ACT_MASTER, FRAME_VOTE, &at, &r) != NULL && get_vote(&r, &v));
    EXPECT_EQ(v.idle, LIMIT);
    bench_free(b);
}

TEST(new_view_keeps_the_tags_that_owe_or_have_a_call) /* the error that a call has to take, or the call itself, is lost */
{
    struct session_config c = bench_config();
    c.max_tags = c.first = 64;
    struct bench *b = bench_of(&c, false);
    float x = 1, y = 0;
    for (uint64_t tag = 0; tag < 30; tag++) {
        (void)tag_get(b->s, SPACE_TAG, 100 + tag);
    }
    launch(b, 0, 6, &x, &y);
    step(b, &(struct session_event){.kind = SESSION_CANCEL, .slot = 0});
    b->s->owed.free = NONE;
    owed_table_use(b->s, (b->table[SESSION_OWED] = malloc(4 * sizeof(struct owed))), 4);
    struct owed what = {.name = {.tag = 120}, .outcome = OUTCOME_ABORT, .cause = CAUSE_LINK_LOST, .view = 9};
    EXPECT(owed_add(b->s, &what));
    what.name.tag = 101;
    EXPECT(owed_add(b->s, &what));
    tags_renew(b->s);
    EXPECT_EQ(b->s->tags.used, 3);
    EXPECT(tag_find(b->s, SPACE_TAG, 6)->slot == 0 && tag_find(b->s, SPACE_TAG, 6)->next_seq == 0);
    EXPECT(owed_take(b->s, tag_find(b->s, SPACE_TAG, 101), &what) && what.view == 9);
    owed_clear(b->s);
    EXPECT(b->s->owed.used == 0 && tag_find(b->s, SPACE_TAG, 120)->owed == NONE);
    tags_renew(b->s);
    EXPECT(b->s->tags.used == 1 && tag_find(b->s, SPACE_TAG, 120) == NULL);
    bench_free(b);
}
