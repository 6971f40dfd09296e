/* mutant.h - known mistakes that a test-only build can switch on, to see that the tests find them.
 *
 * Code asks MUTANT(NAME) where the rule is kept that the mistake breaks.  In every other build that is the constant 0 and
 * leaves nothing behind.  The first names are those of the two models in verify/.
 * SPDX-License-Identifier: MIT */
#ifndef PCCL_CORE_MUTANT_H
#define PCCL_CORE_MUTANT_H

#define MUTANT_LIST(X)                                                                            \
    X(NAIVE) X(LATE_HOLD) X(FORGET) X(LISTALL) X(NODEBT) X(FENCE_RETRY) X(NOCUTREPORT)            \
    X(STALE_VIEW) X(VOTER_EMPTY) X(QSKIP) X(QCLEAR) X(NOSHRINK) X(DROPVOTES) X(NOREQNO)           \
    X(REPLAY_LATE) X(LIVEATTR) X(DEBTLIVE) X(HELLO_STALE) X(NOADMITLAST) X(REFUSE_HELD)           \
    X(REFUSE_LATE) X(REFUSE_UNLISTED) X(REFUSE_ASHELD) X(REFUSE_ABORTS) X(CAUSE_FIRST)            \
    X(ANSWER_NOT) X(UNLAUNCHED_NOT) X(CAUSE_MILD)                                                 \
    X(BACKUP_EARLY) X(RETURN_BEFORE_LETGO) X(CLOSE_IS_FAULT) X(SYNC_EARLY_APPLY)                  \
    X(REFUSALS_KEPT) X(TAKEN_UNSAID) X(BEHIND_FOREVER) X(BEHIND_UNTOLD) X(SETTLED_KEPT) X(THEIR_VIEW_KEPT) X(QUERY_SIZES) X(FED_TWICE)               \
    X(WINDOW_STALE) X(WANT_TWICE) X(PARK_ALL) X(DISTRUST_KEPT) X(COMPLAINT_KEPT)                  \
    X(KNOWN_UNASKED) X(KNOWN_BY_VOTE) X(KNOWN_BY_HEARTBEAT) X(TIMERS_LATE)                        \
    X(SYNC_NO_LEAF_CHECK) X(BULK_REST) X(SLOW_IS_STILL) X(MOVES_UNHEARD) X(MOVES_ROUND) X(ALONE_NEVER) X(ALONE_SETTLES)           \
    X(REVISION_ANY) /* the highest on offer wins, however old */ X(ROUNDS_DIFFER)  \
    X(CLOSE_FORMED) X(SIZE_ALONE) X(DEADLINE_OWN) X(OVER_NOT) X(STALE_CLAIM)                      \
    X(OLD_VIEW_NOT) X(UNNUMBERED) X(EXPECTS_BLIND) X(SIZES_KEPT) X(OWED_GAPS)                      \
    X(FAILED_SKIP) X(ANY_NOLOSS) X(ANY_LATELOSS) X(NOPARTNER) X(ASK_BELIEVE) X(REFUSE_FORGET) X(VETO)  \
    X(ANY_UNTOLD) X(ANY_ONE) X(LINE_PASSED) X(FAILED_LAST) X(OWED_UNSEEN) X(OWED_KEPT) X(SKIP_NOT) X(SKIP_ALL)          \
    X(SETTLED_LEAST) X(VOTE_UNTOLD) X(WAIT_FIRST) X(WORD_ONCE) X(LINE_UNTOLD) X(LINE_STAYS)                    \
    X(OWE_TAG) X(OWNER_ASLEEP) X(LATE_WAITS) X(NOMISMATCH) X(ANY_GIVEUP) X(ANY_DROP)                        \
    X(VOTE_ALL) X(EXCLUDE_ALL) X(REUSE_FORMED) X(NOTOMB) X(VIEW_EARLY) X(GOES_ON) X(EPOCH_LAST)                        \
    X(REVOKE_NOT) X(REVOKE_GROUP) X(ONCE_FIRST) X(KEY_OLD) X(JOIN_WAITS) X(DECLINE_OWN)        \
    X(SPLIT_APART) X(NOCOLOR_EARLY) X(LIST_FIRST) X(PARENT_LATE) X(PARENT_NOT) X(FACTOR_NOT) X(LEAVE_EMPTY)   \
    X(WITHIN_NOT) X(WINDOW_OWED) X(WINDOW_AGAIN) X(WINDOW_EARLY) X(WINDOW_BEYOND)                            \
    X(WINDOW_HASTY) X(WINDOW_PUT_AGAIN) X(WINDOW_UNSHARED) X(WINDOW_SKIPPED) X(WINDOW_SIGNAL_LATE)           \
    X(WINDOW_DROPPED) X(WINDOW_KEPT) X(WINDOW_NOVOID) X(WINDOW_UNBOUND) X(WINDOW_SIZES) X(WINDOW_CUT_LOST) \
    X(WINDOW_STAYS) X(WINDOW_HEARD_ON) X(WINDOW_SAYS_ON) X(WINDOW_VOID_COUNTS) X(WINDOW_LAST_EARLY) X(WINDOW_WAITS) X(LENT_ON) \
    X(PATH_UNTOLD) X(PART_MISPLACED) X(PARTS_ALL) X(PARTS_UNSEEN) X(TURN_KEPT) /* between two without a link */ \
    X(REDIAL_NOT) X(REDIAL_COUNTED) X(REFUSED_KEPT) /* of members whose connections were all reset */         \
    /* of the shells: process tests and tests of the master find them, see scripts/mutants.sh */              \
    X(RESTORE_NOT) X(NO_USER_TIMEOUT) X(FRAME_TIMER_NOT) X(ROOM_LEAK) X(BLAME_KEPT) X(REST_NOT)               \
    X(FABRIC_UNORDERED) /* messages are taken as they come */                                               \
    X(BENCH_WRONG) /* of the benchmark: one element of each result */ X(SUMS_UNREADY) /* of the rooms */            \
    X(PACK_EARLY) /* of what a frame is packed of, not all has come */                                             \
    X(FOREST_EARLY) X(FOREST_BEHIND) X(TREES_UNLINKED) /* a sum that is not ready; behind another tree's; over no link */

#define MUTANT_NUMBER_(name) MUTANT_##name,
enum mutant { MUTANT_NONE = 0, MUTANT_LIST(MUTANT_NUMBER_) MUTANT_COUNT };
#undef MUTANT_NUMBER_

#ifdef PCCL_MUTANTS
extern int mutant_active; /* an enum mutant; set before the first step, not changed afterwards */
#define MUTANT(name) (mutant_active == MUTANT_##name)

/* "NAIVE"; null for an unknown number. */
const char *mutant_name(int number);

/* The number of a name; -1 if there is none. */
int mutant_find(const char *name);
#else
#define MUTANT(name) 0
#endif

#endif
