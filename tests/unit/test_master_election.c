/* test_master_election.c - which shared state wins, whatever the order of the votes; who is kicked; when all may apply.
 * SPDX-License-Identifier: MIT */
#include "master_peers.h"
#include "tests/testing.h"

enum { POPULAR = 0, RECEIVE = 1, SEND = 2 };
enum { KEYS = 5, OTHER_KEYS = 6 };

struct ballot {
    uint8_t strategy;
    uint64_t revision, keys, content;
    bool inequality;
};

enum { ELECTION_PEERS = 4 };

/* What is expected of each voter: 'h' holder, 'r' receiver, 'k' kicked (with the cause), 'a' answered at once. */
struct election {
    const char *name;
    uint32_t count;
    uint64_t revision; /* that the group expects, 0 first sync */
    struct ballot ballot[ELECTION_PEERS];
    const char *roles;
    enum cause kick;
    enum answer_result result; /* if answered at once */
    uint64_t value;
};

static const struct election table[] = {
    {"all equal, first sync", 3, 0, {{0, 7, KEYS, 1, 0}, {0, 7, KEYS, 1, 0}, {0, 7, KEYS, 1, 0}}, "aaa", 0, ANSWER_OK, 7},
    {"majority wins", 3, 0, {{0, 1, KEYS, 2, 0}, {0, 1, KEYS, 1, 0}, {0, 1, KEYS, 2, 0}}, "hrh", 0, 0, 0},
    {"tie: the smaller digest", 2, 0, {{0, 1, KEYS, 9, 0}, {0, 1, KEYS, 3, 0}}, "rh", 0, 0, 0},
    {"tie of two and two", 4, 0, {{0, 1, KEYS, 9, 0}, {0, 1, KEYS, 3, 0}, {0, 1, KEYS, 9, 0}, {0, 1, KEYS, 3, 0}}, "rhrh", 0, 0, 0},
    {"first sync: the highest revision beats votes", 3, 0, {{0, 4, KEYS, 1, 0}, {0, 4, KEYS, 1, 0}, {0, 9, KEYS, 2, 0}}, "rrh", 0, 0, 0},
    {"in revision beats outdated", 3, 5, {{0, 4, KEYS, 1, 0}, {0, 4, KEYS, 1, 0}, {0, 5, KEYS, 2, 0}}, "rrh", 0, 0, 0},
    {"outdated with equal content receives nothing", 2, 5, {{0, 4, KEYS, 1, 0}, {0, 5, KEYS, 1, 0}}, "aa", 0, ANSWER_OK, 5},
    {"outdated with entries that are not compared receives them", 2, 5, {{0, 4, KEYS, 1, 1}, {0, 5, KEYS, 1, 1}}, "rh", 0, 0, 0},
    {"all outdated: nobody wins", 2, 5, {{0, 2, KEYS, 1, 0}, {0, 3, KEYS, 2, 0}}, "aa", 0, ANSWER_REVISION, 0},
    {"all repeat the last revision, with one content", 3, 5, {{0, 4, KEYS, 1, 0}, {0, 4, KEYS, 1, 0}, {0, 4, KEYS, 1, 0}}, "aaa", 0, ANSWER_REVISION, 0},
    {"who is in revision may only receive", 3, 5, {{RECEIVE, 5, KEYS, 1, 0}, {SEND, 4, KEYS, 2, 0}, {RECEIVE, 5, KEYS, 1, 0}}, "aaa", 0, ANSWER_REVISION, 0},
    {"above the expected one beside outdated", 3, 5, {{0, 4, KEYS, 1, 0}, {0, 6, KEYS, 2, 0}, {0, 4, KEYS, 1, 0}}, "aka", CAUSE_KICK_REVISION, ANSWER_REVISION, 0},
    {"revision above the expected one", 3, 5, {{0, 5, KEYS, 1, 0}, {0, 5, KEYS, 1, 0}, {0, 6, KEYS, 1, 0}}, "aak", CAUSE_KICK_REVISION, ANSWER_OK, 5},
    {"other keys", 3, 0, {{0, 1, KEYS, 1, 0}, {0, 1, OTHER_KEYS, 1, 0}, {0, 1, KEYS, 1, 0}}, "aka", CAUSE_KICK_KEYS, ANSWER_OK, 1},
    {"outdated with other keys", 3, 5, {{0, 5, KEYS, 1, 0}, {0, 4, OTHER_KEYS, 1, 0}, {0, 5, KEYS, 1, 0}}, "aka", CAUSE_KICK_KEYS, ANSWER_OK, 5},
    {"send only wins against a majority of receivers", 3, 0, {{RECEIVE, 1, KEYS, 1, 0}, {RECEIVE, 1, KEYS, 1, 0}, {SEND, 1, KEYS, 9, 0}}, "rrh", 0, 0, 0},
    {"receive only is no candidate, even with a higher revision", 2, 0, {{RECEIVE, 8, KEYS, 1, 0}, {SEND, 1, KEYS, 9, 0}}, "rh", 0, 0, 0},
    {"send only that would have to receive", 4, 0, {{SEND, 1, KEYS, 1, 0}, {SEND, 1, KEYS, 1, 0}, {SEND, 1, KEYS, 2, 0}, {RECEIVE, 1, KEYS, 1, 0}}, "aaka", CAUSE_KICK_STRATEGY, ANSWER_OK, 1},
    {"send only beside popular", 3, 0, {{POPULAR, 1, KEYS, 1, 0}, {SEND, 1, KEYS, 1, 0}, {POPULAR, 1, KEYS, 1, 0}}, "aka", CAUSE_KICK_STRATEGY, ANSWER_OK, 1},
    {"receive only beside popular", 2, 0, {{POPULAR, 1, KEYS, 1, 0}, {RECEIVE, 1, KEYS, 2, 0}}, "ak", CAUSE_KICK_STRATEGY, ANSWER_OK, 1},
    {"nobody may send", 3, 0, {{RECEIVE, 1, KEYS, 1, 0}, {RECEIVE, 1, KEYS, 1, 0}, {RECEIVE, 1, KEYS, 1, 0}}, "aaa", 0, ANSWER_NO_CANDIDATE, 0},
    {"alone", 1, 0, {{0, 3, KEYS, 1, 1}}, "a", 0, ANSWER_OK, 3},
};

/* A group whose next expected revision is `revision`; all have taken part in its last sync. */
static struct cluster *group_with(uint32_t count, uint64_t revision)
{
    struct cluster *c = cluster_new();
    cluster_members(c, count, 0);
    for (uint32_t i = 0; i < count && revision > 0; i++) {
        peer_sync(c, &c->peers[i], POPULAR, revision - 1, KEYS, 1, false);
    }
    for (uint32_t i = 0; i < count; i++) {
        peer_forget(&c->peers[i]);
    }
    return c;
}

static void check_election(const struct election *e, const uint32_t *order)
{
    struct cluster *c = group_with(e->count, e->revision);
    for (uint32_t i = 0; i < e->count; i++) {
        const struct ballot *b = &e->ballot[order[i]];
        peer_sync(c, &c->peers[order[i]], b->strategy, b->revision, b->keys, b->content, b->inequality);
    }
    bool asked = false; /* then all have been told of an election */
    for (uint32_t i = 0; i < e->count; i++) {
        asked = asked || e->ballot[i].keys == OTHER_KEYS;
        if (e->ballot[i].keys == OTHER_KEYS && c->peers[i].elected.role == SYNC_RECEIVER) { /* it has asked which */
            peer_staged(c, &c->peers[i], STAGED_KEYS, 0);
        }
    }
    bool good = true;
    for (uint32_t i = 0; i < e->count; i++) {
        const struct peer *p = &c->peers[i];
        switch (e->roles[i]) {
        case 'h':
            good = good && p->elected.role == SYNC_HOLDER && p->voting;
            break;
        case 'r':
            good = good && p->elected.role == SYNC_RECEIVER && p->voting;
            break;
        case 'k':
            good = good && p->fence.cause == e->kick && !p->open;
            break;
        default:
            good = good && !p->voting && p->answer.kind == VOTE_SYNC && p->answer.result == e->result &&
                   p->answer.value == e->value && (p->elected.role == 0 || asked);
            break;
        }
    }
    EXPECT(good);
    if (!good) {
        printf("election: %s, votes beginning with %u\n", e->name, order[0]);
    }
    cluster_free(c);
}

static void permute(const struct election *e, uint32_t *order, uint32_t from)
{
    if (from == e->count || from == ELECTION_PEERS) {
        check_election(e, order);
        return;
    }
    for (uint32_t i = from; i < e->count; i++) {
        uint32_t t = order[from];
        order[from] = order[i];
        order[i] = t;
        permute(e, order, from + 1);
        order[i] = order[from];
        order[from] = t;
    }
}

TEST(election_does_not_depend_on_the_order_of_votes) /* R19: the whole table, in every order */
{
    for (size_t i = 0; i < sizeof table / sizeof table[0]; i++) {
        uint32_t order[ELECTION_PEERS] = {0, 1, 2, 3};
        permute(&table[i], order, 0);
    }
}

TEST(who_has_other_entries_is_told_which_and_so_is_the_log) /* "other entries" of a thousand: which? */
{
    struct cluster *c = group_with(3, 0);
    struct peer *odd = &c->peers[1];
    peer_sync(c, &c->peers[0], POPULAR, 1, KEYS, 1, false);
    peer_sync(c, odd, POPULAR, 1, OTHER_KEYS, 2, true);
    peer_sync(c, &c->peers[2], POPULAR, 1, KEYS, 1, false);
    EXPECT(odd->open && odd->elected.role == SYNC_RECEIVER && odd->elected.holders == 2 && odd->elected.whole == 0);
    EXPECT(c->peers[0].voting); /* until it is known */
    snprintf(odd->differs, sizeof odd->differs, "'w' has 100 f32, elected: 50 f32");
    snprintf(c->listen, sizeof c->listen, "excluded");
    peer_staged(c, odd, STAGED_KEYS, 0);
    EXPECT_EQ(odd->fence.cause, CAUSE_KICK_KEYS);
    EXPECT_STR(odd->fence.text, "its shared state has other entries than the elected one: 'w' has 100 f32, elected: 50 f32");
    EXPECT(strstr(c->heard, " excluded from view 2: its shared state has other entries than the elected one: 'w' has 100 f32, ") != NULL);
    EXPECT(!c->peers[0].voting && c->peers[0].answer.result == ANSWER_OK);
    cluster_free(c);
}

TEST(who_has_other_entries_and_nobody_to_ask_has_to_go_all_the_same) /* the others would wait for ever */
{
    struct cluster *c = group_with(2, 0);
    peer_sync(c, &c->peers[0], POPULAR, 1, KEYS, 1, false);
    peer_sync(c, &c->peers[1], POPULAR, 1, OTHER_KEYS, 2, false);
    peer_staged(c, &c->peers[1], STAGED_KEYS, 0);
    EXPECT_EQ(c->peers[1].fence.cause, CAUSE_KICK_KEYS);
    EXPECT_STR(c->peers[1].fence.text, "its shared state has other entries than the elected one");
    EXPECT_EQ(c->peers[0].answer.result, ANSWER_OK);
    cluster_free(c);
}

/* Three members; the third has to receive. */
static struct cluster *staging(void)
{
    struct cluster *c = group_with(4, 5);
    peer_sync(c, &c->peers[0], POPULAR, 5, KEYS, 1, false);
    peer_sync(c, &c->peers[1], POPULAR, 5, KEYS, 1, false);
    peer_sync(c, &c->peers[2], POPULAR, 5, KEYS, 2, false);
    peer_sync(c, &c->peers[3], POPULAR, 4, KEYS, 3, false);
    return c;
}

TEST(apply_waits_until_all_receivers_have_staged) /* G6 */
{
    struct cluster *c = staging();
    struct peer *p = c->peers;
    EXPECT_EQ(p[2].elected.holders, 2);
    EXPECT_EQ(p[2].elected.receivers, 2);
    EXPECT_EQ(p[2].holders[0], p[0].id);
    EXPECT_EQ(p[2].holders[1], p[1].id);
    EXPECT_EQ(p[2].receivers[0], p[2].id);
    EXPECT_EQ(p[2].elected.revision, 5);
    EXPECT_EQ(p[2].elected.content_digest, 1);
    c->hold_persist = true;
    peer_staged(c, &p[2], STAGED_OK, 0);
    EXPECT(p[0].voting && p[2].voting);
    peer_staged(c, &p[3], STAGED_OK, 0);
    EXPECT(p[0].voting); /* not before the revision is durable (M4) */
    cluster_persisted(c);
    for (int i = 0; i < 4; i++) {
        EXPECT(!p[i].voting);
        EXPECT_EQ(p[i].answer.value, 5);
        EXPECT_EQ(p[i].answer.result, ANSWER_OK);
    }
    struct master_group_view v;
    uint64_t ids[8];
    master_group_get(c->master, 0, &v, ids, 8);
    EXPECT_EQ(v.revision, 6);
    cluster_free(c);
}

TEST(receiver_that_dies_is_not_waited_for)
{
    struct cluster *c = staging();
    struct peer *p = c->peers;
    peer_staged(c, &p[2], STAGED_OK, 0);
    peer_crash(c, &p[3]);
    EXPECT(!p[0].voting);
    EXPECT_STR(p[0].log, "ELECTED FREEZE VIEW ANSWER ");
    EXPECT_EQ(p[0].answer.sizes.group, 3);
    cluster_free(c);
}

TEST(one_holder_lost_is_skipped_all_lost_elect_again) /* R10 */
{
    struct cluster *c = staging();
    struct peer *p = c->peers;
    peer_crash(c, &p[0]);
    EXPECT_EQ(p[2].elected.round, p[3].elected.round);
    uint32_t round = p[2].elected.round;
    EXPECT_STR(p[2].log, "ELECTED FREEZE VIEW ");
    peer_crash(c, &p[1]);
    EXPECT_EQ(p[2].elected.round, round + 1);
    EXPECT_EQ(p[2].elected.role, SYNC_HOLDER); /* its revision is in */
    EXPECT_EQ(p[3].elected.role, SYNC_RECEIVER);
    peer_staged(c, &p[3], STAGED_OK, 0);
    EXPECT(!p[3].voting);
    cluster_free(c);
}

TEST(staged_before_all_holders_died_is_kept)
{
    struct cluster *c = staging();
    struct peer *p = c->peers;
    peer_staged(c, &p[2], STAGED_OK, 0);
    p[2].no_frozen = true;
    peer_crash(c, &p[0]);
    peer_crash(c, &p[1]);
    peer_staged(c, &p[3], STAGED_OK, 0); /* while the group is being frozen */
    EXPECT(p[3].voting);
    peer_frozen(&p[2]);
    cluster_pass(c, 600);
    EXPECT(!p[3].voting);
    EXPECT_EQ(p[3].answer.value, 5);
    cluster_free(c);
}

TEST(last_one_in_revision_that_dies_leaves_no_state_but_the_same_expectation) /* outdated state would pass for the newest */
{
    struct cluster *c = group_with(4, 5);
    struct peer *p = c->peers;
    for (int i = 0; i < 4; i++) {
        peer_sync(c, &p[i], POPULAR, i == 0 ? 5 : (uint64_t)i, KEYS, 1 + (uint64_t)i, false);
    }
    EXPECT_EQ(p[3].elected.role, SYNC_RECEIVER);
    peer_crash(c, &p[0]);
    char text[100];
    snprintf(text, sizeof text, "expected 5, highest offered 3 by peer %u.%u", (unsigned)(p[3].id >> 32), (unsigned)p[3].id);
    for (int i = 1; i < 4; i++) {
        EXPECT_EQ(p[i].answer.result, ANSWER_REVISION);
        EXPECT_STR(p[i].answer.text, text);
        EXPECT(!p[i].voting && p[i].open);
    }
    for (int i = 1; i < 4; i++) { /* the vote was numbered, so the next one is a new one; it still expects 5 */
        peer_sync(c, &p[i], POPULAR, 5, KEYS, 1, false);
    }
    for (int i = 1; i < 4; i++) {
        EXPECT_EQ(p[i].answer.result, ANSWER_OK);
        EXPECT_EQ(p[i].answer.value, 5);
    }
    cluster_free(c);
}

TEST(source_in_revision_that_lies_leaves_no_state) /* distrusted, it is no candidate */
{
    struct cluster *c = group_with(3, 5);
    struct peer *p = c->peers;
    for (int i = 0; i < 3; i++) {
        peer_sync(c, &p[i], POPULAR, i == 0 ? 5 : 4, KEYS, 1 + (uint64_t)i, false);
    }
    peer_staged(c, &p[1], STAGED_NO_SOURCE, p[0].id);
    for (int i = 0; i < 3; i++) {
        EXPECT_EQ(p[i].answer.result, ANSWER_REVISION);
    }
    cluster_free(c);
}

TEST(source_that_lies_is_none_in_the_next_round)
{
    struct cluster *c = staging();
    struct peer *p = c->peers;
    peer_staged(c, &p[2], STAGED_NO_SOURCE, p[0].id);
    EXPECT_EQ(p[2].elected.round, p[0].elected.round);
    EXPECT_EQ(p[0].elected.role, SYNC_RECEIVER);
    EXPECT_EQ(p[1].elected.role, SYNC_HOLDER);
    EXPECT_EQ(p[2].elected.holders + p[2].elected.receivers, 4);
    for (int i = 0; i < 4; i++) {
        if (p[i].elected.role == SYNC_RECEIVER) {
            peer_staged(c, &p[i], STAGED_OK, 0);
        }
    }
    EXPECT(!p[0].voting && !p[3].voting);
    cluster_free(c);
}

TEST(old_staged_does_not_count_for_a_new_round)
{
    struct cluster *c = staging();
    struct peer *p = c->peers;
    struct msg_elected old = p[3].elected;
    peer_staged(c, &p[2], STAGED_NO_SOURCE, p[0].id);
    struct msg_elected now = p[3].elected;
    EXPECT(now.round != old.round);
    p[3].elected = old;
    peer_staged(c, &p[3], STAGED_OK, 0);
    peer_staged(c, &p[2], STAGED_OK, 0);
    peer_staged(c, &p[0], STAGED_OK, 0);
    EXPECT(p[0].voting);
    p[3].elected = now;
    peer_staged(c, &p[3], STAGED_OK, 0);
    EXPECT(!p[0].voting);
    cluster_free(c);
}

TEST(staged_of_a_round_to_come_costs_its_sender_the_place) /* ignored, the others wait for the one that is due for ever */
{
    for (uint32_t k = 0; k < 2; k++) {
        struct cluster *c = staging();
        struct peer *p = c->peers;
        p[3].elected.round += k == 0;
        p[3].elected.number += k == 1;
        peer_staged(c, &p[3], STAGED_OK, 0);
        EXPECT_EQ(p[3].fence.cause, CAUSE_KICK_PROTOCOL);
        peer_staged(c, &p[2], STAGED_OK, 0);
        EXPECT(!p[0].voting);
        cluster_free(c);
    }
}

TEST(receiver_that_reaches_no_source_again_and_again_has_to_go) /* or the others wait for ever */
{
    struct cluster *c = staging();
    struct peer *p = c->peers;
    for (int i = 0; i < 3; i++) {
        EXPECT(p[3].open);
        peer_staged(c, &p[3], STAGED_NO_SOURCE, 0);
        cluster_pass(c, 750); /* the next election waits for news of the sources */
    }
    EXPECT_EQ(p[3].fence.cause, CAUSE_KICK_UNREACHABLE);
    peer_staged(c, &p[2], STAGED_OK, 0);
    EXPECT(!p[0].voting);
    cluster_free(c);
}

TEST(what_others_failed_to_reach_costs_nobody_its_place) /* one bad peer says so twice, an honest one pays at its first hiccup */
{
    struct cluster *c = staging();
    struct peer *p = c->peers;
    for (int i = 0; i < 2; i++) {
        peer_staged(c, &p[3], STAGED_NO_SOURCE, 0);
        cluster_pass(c, 750);
    }
    for (int i = 0; i < 2; i++) {
        peer_staged(c, &p[2], STAGED_NO_SOURCE, 0);
        peer_staged(c, &p[2], STAGED_NO_SOURCE, 0); /* said again in the same round */
        cluster_pass(c, 750);
        EXPECT(p[2].open && p[3].open);
    }
    peer_staged(c, &p[3], STAGED_NO_SOURCE, 0);
    EXPECT(p[2].open && !p[3].open);
    cluster_pass(c, 750);
    peer_staged(c, &p[2], STAGED_OK, 0);
    EXPECT(!p[2].voting);
    cluster_free(c);
}

TEST(sources_that_are_being_lost_cost_no_receiver_its_place) /* the master may see their connections close last of all */
{
    struct cluster *c = staging();
    struct peer *p = c->peers;
    p[1].mute = true;
    for (int i = 0; i < 12; i++) {
        EXPECT(p[3].open && p[2].open);
        EXPECT_EQ(p[3].elected.holders, 2);
        peer_staged(c, &p[3], STAGED_NO_SOURCE, 0);
        peer_staged(c, &p[2], STAGED_NO_SOURCE, 0);
        cluster_pass(c, 600);
    }
    peer_crash(c, &p[1]);
    peer_staged(c, &p[3], STAGED_OK, 0);
    peer_staged(c, &p[2], STAGED_OK, 0);
    EXPECT(!p[0].voting && !p[2].voting && !p[3].voting);
    EXPECT_EQ(p[3].answer.value, 5);
    cluster_free(c);
}

TEST(entries_that_are_not_compared_come_from_the_last_sync) /* R3: a newcomer gets them too */
{
    struct cluster *c = group_with(2, 5);
    struct peer *p = c->peers;
    peer_join(c, 0);
    peer_vote(c, &p[0], VOTE_UPDATE);
    peer_vote(c, &p[1], VOTE_UPDATE);
    peer_sync(c, &p[0], POPULAR, 4, KEYS, 2, true); /* outdated: no source although its id is the lowest */
    peer_sync(c, &p[1], POPULAR, 5, KEYS, 1, true);
    peer_sync(c, &p[2], POPULAR, 5, KEYS, 1, true); /* equal content, but new here */
    EXPECT_EQ(p[1].elected.role, SYNC_HOLDER);
    EXPECT_EQ(p[0].elected.whole, 1);
    EXPECT_EQ(p[0].elected.whole_source, p[1].id);
    EXPECT_EQ(p[2].elected.role, SYNC_RECEIVER);
    EXPECT_EQ(p[2].elected.whole, 1);
    EXPECT_EQ(p[2].elected.whole_source, p[1].id);
    cluster_free(c);
}

TEST(group_without_a_survivor_of_the_last_sync_starts_afresh) /* any first revision is free again */
{
    struct cluster *c = group_with(1, 50);
    struct peer *p = c->peers;
    peer_join(c, 0);
    peer_vote(c, &p[0], VOTE_UPDATE);
    peer_crash(c, &p[0]);
    EXPECT_EQ(p[1].member_count, 1);
    peer_sync(c, &p[1], POPULAR, 900, KEYS, 1, false);
    EXPECT_EQ(p[1].answer.value, 900);
    EXPECT(p[1].open);
    cluster_free(c);
}

TEST(elected_is_sent_again_to_who_resumes)
{
    struct cluster *c = staging();
    struct peer *p = c->peers;
    peer_cut(c, &p[2]);
    peer_forget(&p[2]);
    peer_resume(c, &p[2]);
    EXPECT_STR(p[2].log, "WELCOME ELECTED ");
    peer_staged(c, &p[2], STAGED_OK, 0);
    peer_cut(c, &p[2]);
    peer_staged(c, &p[3], STAGED_OK, 0);
    peer_forget(&p[2]);
    peer_resume(c, &p[2]);
    EXPECT_STR(p[2].log, "WELCOME ANSWER ");
    EXPECT_EQ(p[2].answer.value, 5);
    cluster_free(c);
}

TEST(elected_is_sent_again_to_who_resumes_during_a_freeze) /* it would wait for its state for ever, and all others for it */
{
    struct cluster *c = staging();
    struct peer *p = c->peers;
    peer_cut(c, &p[2]);
    p[0].no_frozen = true; /* the view does not end meanwhile */
    peer_suspect(c, &p[1], SUSPECT_LINK, CAUSE_LINK_LOST, &p[0]);
    peer_forget(&p[2]);
    peer_resume(c, &p[2]);
    EXPECT_STR(p[2].log, "WELCOME FREEZE ELECTED ");
    peer_staged(c, &p[2], STAGED_OK, 0); /* frozen or not, what it fetched counts */
    peer_staged(c, &p[3], STAGED_OK, 0);
    EXPECT(p[2].voting); /* but nothing is answered before the view has ended */
    peer_frozen(&p[0]);
    cluster_pass(c, 600);
    EXPECT(!p[2].voting && !p[3].voting);
    EXPECT_EQ(p[2].answer.value, 5);
    cluster_free(c);
}
