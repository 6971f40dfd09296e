/* test_api_error.c - which public code, class and cause each outcome of a session becomes: the table of causes and codes.
 * SPDX-License-Identifier: MIT */
#include "tests/testing.h"

#include "api/api.h"

struct row {
    enum session_result result;
    uint8_t wire; /* enum cause */
    pcclResult_t code;
    pcclErrorClass_t error_class;
    pcclCause_t cause;
};

static const struct row rows[] = {
    {RESULT_LOST, CAUSE_PEER_LOST, pcclRankConnectionLost, pcclClassRetry, pcclCausePeerLost},
    {RESULT_LOST, CAUSE_PEER_LEFT, pcclRankConnectionLost, pcclClassRetry, pcclCausePeerLeft},
    {RESULT_LOST, CAUSE_PEER_SILENT, pcclRankConnectionLost, pcclClassRetry, pcclCausePeerSilent},
    {RESULT_LOST, CAUSE_LINK_LOST, pcclRankConnectionLost, pcclClassRetry, pcclCauseLinkLost},
    {RESULT_LOST, CAUSE_NO_PROGRESS, pcclRankConnectionLost, pcclClassRetry, pcclCauseNoProgress},
    {RESULT_LOST, CAUSE_DEADLINE, pcclRankConnectionLost, pcclClassRetry, pcclCauseDeadline},
    {RESULT_LOST, CAUSE_BLOCKED, pcclRankConnectionLost, pcclClassRetry, pcclCauseConflict},
    {RESULT_LOST, CAUSE_CANCEL, pcclRankConnectionLost, pcclClassRetry, pcclCauseCancelled},
    {RESULT_FULL, 0, pcclRankConnectionLost, pcclClassRetry, pcclCauseUsage},
    {RESULT_AHEAD, 0, pcclInvalidUsage, pcclClassFix, pcclCauseUsage},
    {RESULT_TAGS, 0, pcclInvalidUsage, pcclClassFix, pcclCauseUsage},
    {RESULT_MISMATCH, CAUSE_MISMATCH, pcclInvalidArgument, pcclClassFix, pcclCauseMismatch},
    {RESULT_TAG_IN_USE, 0, pcclInvalidArgument, pcclClassFix, pcclCauseUsage},
    {RESULT_USAGE, 0, pcclInvalidUsage, pcclClassFix, pcclCauseUsage},
    {RESULT_USAGE, CAUSE_BLOCKED, pcclInvalidUsage, pcclClassFix, pcclCauseConflict},
    {RESULT_PENDING_OPS, 0, pcclPendingAsyncOps, pcclClassFix, pcclCauseUsage},
    {RESULT_GONE, CAUSE_KICK_STALE, pcclMasterConnectionFailed, pcclClassRejoin, pcclCauseExcluded},
    {RESULT_GONE, CAUSE_KICK_REVISION, pcclMasterConnectionFailed, pcclClassRejoin, pcclCauseKicked},
    {RESULT_GONE, CAUSE_PEER_LEFT, pcclMasterConnectionFailed, pcclClassRejoin, pcclCauseLeft},
    {RESULT_GONE, CAUSE_LINK_LOST, pcclMasterConnectionFailed, pcclClassRejoin, pcclCauseMasterLost},
    {RESULT_REFUSED, CAUSE_KICK_FULL, pcclMasterConnectionFailed, pcclClassRejoin, pcclCauseKicked},
    {RESULT_REFUSED, CAUSE_KICK_VERSION, pcclMasterConnectionFailed, pcclClassFix, pcclCauseKicked},
    {RESULT_REFUSED, CAUSE_KICK_STALE, pcclMasterConnectionFailed, pcclClassRejoin, pcclCauseExcluded},
    {RESULT_UNREACHABLE, 0, pcclMasterConnectionFailed, pcclClassRejoin, pcclCauseMasterUnreachable},
    {RESULT_ALONE, 0, pcclTooFewPeers, pcclClassRetry, pcclCauseAlone},
    {RESULT_NO_CANDIDATE, 0, pcclNoSharedStateAvailable, pcclClassStop, pcclCauseNoCandidate},
    {RESULT_REVISION, 0, pcclNoSharedStateAvailable, pcclClassFix, pcclCauseRevision},
    {RESULT_DIGEST, CAUSE_DIGEST, pcclInternalError, pcclClassStop, pcclCauseDigest},
    {RESULT_NO_MEMORY, CAUSE_NO_MEMORY, pcclInternalError, pcclClassStop, pcclCauseNoMemory},
    {RESULT_NO_MEMORY, CAUSE_NO_MEMORY, pcclInternalError, pcclClassRejoin, pcclCauseNoMemory}, /* and this peer leaves */
    {RESULT_GONE, CAUSE_NO_MEMORY, pcclMasterConnectionFailed, pcclClassRejoin, pcclCauseNoMemory},
    {RESULT_POISONED, CAUSE_INTERNAL, pcclInternalError, pcclClassStop, pcclCauseInternal},
    {RESULT_RETRY, 0, pcclUpdateTopologyFailed, pcclClassRetry, pcclCausePeerLost},
};

TEST(every_outcome_has_its_code_class_cause_and_text)
{
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct session_outcome o = {.result = rows[i].result, .cause = rows[i].wire, .culprit = 1ull << 32 | 7};
        o.left = o.result == RESULT_NO_MEMORY && rows[i].error_class == pcclClassRejoin;
        pcclErrorInfo_t info = {0};
        EXPECT_EQ(api_outcome(&o, "reduce", 12), rows[i].code);
        EXPECT_EQ(pcclGetLastErrorInfo(&info), pcclSuccess);
        EXPECT_EQ(info.result, rows[i].code);
        EXPECT_EQ(info.error_class, rows[i].error_class);
        EXPECT_EQ(info.cause, rows[i].cause);
        EXPECT(info.peer == (1ull << 32 | 7) && info.tag == 12);
        EXPECT(strstr(info.text, "reduce tag 12: ") == info.text && strstr(info.text, "1.7") != NULL);
        EXPECT_STR(info.text, pcclGetLastError());
        EXPECT(rows[i].wire != CAUSE_BLOCKED || strstr(info.text, ": make the same calls on all peers") != NULL); /* and nothing else */
    }
}

/* What a session says, and the whole text that becomes of it: cause and remedy once each, and for this call. */
struct told {
    struct session_outcome outcome;
    const char *phase;
    uint64_t tag;
    const char *text;
};

enum { THREE = 3 };
static const uint64_t epoch = 1ull << 32;

TEST(texts_say_the_cause_and_the_remedy_once) /* "no memory: no memory ...: reduce out of place" to one who synchronises */
{
    const struct told all[] = {
        /* out of memory: at the peer itself, at the others, in other calls */
        {{.result = RESULT_NO_MEMORY, .cause = CAUSE_NO_MEMORY, .culprit = epoch + 1}, "reduce", 7,
         "reduce tag 7: no memory, peer 1.1: free some memory, or reduce out of place"},
        {{.result = RESULT_LOST, .cause = CAUSE_NO_MEMORY, .culprit = epoch + 1}, "reduce", 7,
         "reduce tag 7: failed on all peers: a peer has no memory for it, peer 1.1: read the world size again (pcclGetAttribute), then retry"},
        {{.result = RESULT_NO_MEMORY, .cause = CAUSE_NO_MEMORY, .text = "no memory for the operation"}, "all-gather", 0,
         "all-gather: no memory for the operation: free some memory, then retry"},
        {{.result = RESULT_NO_MEMORY, .cause = CAUSE_NO_MEMORY, .left = true, .text = "no memory for what was refused"}, "reduce", 7,
         "reduce tag 7: no memory for what was refused: free some memory, then connect again"},
        {{.result = RESULT_NO_MEMORY, .cause = CAUSE_NO_MEMORY, .left = true, .text = "no memory to stage the shared state"}, "sync", 0,
         "sync: no memory to stage the shared state: free some memory, then connect again"},
        {{.result = RESULT_GONE, .cause = CAUSE_NO_MEMORY, .text = "no memory to stage the shared state"}, "update", 0,
         "update: no longer a member of the run: no memory to stage the shared state: free some memory, then connect again"},
        {{.result = RESULT_NO_MEMORY, .left = true, .text = "no memory for the session"}, "connect", 0,
         "connect: no memory for the session: free some memory, then connect again"},
        /* a failed executor */
        {{.result = RESULT_POISONED, .cause = CAUSE_INTERNAL, .culprit = epoch + 1}, "reduce", 7,
         "reduce tag 7: an internal invariant failed, peer 1.1: stop, report this"},
        /* cancelled, past its deadline */
        {{.result = RESULT_LOST, .cause = CAUSE_CANCEL, .culprit = epoch + THREE}, "reduce", 7,
         "reduce tag 7: failed on all peers: cancelled, peer 1.3: read the world size again (pcclGetAttribute), then retry"},
        {{.result = RESULT_LOST, .cause = CAUSE_DEADLINE, .culprit = epoch + THREE}, "reduce", 7,
         "reduce tag 7: failed on all peers: its deadline passed, peer 1.3: read the world size again (pcclGetAttribute), then retry"},
        /* excluded: told by the master, or learnt without a word */
        {{.result = RESULT_GONE, .cause = CAUSE_PEER_SILENT, .text = "no sign of life for 10.0 s"}, "update", 0,
         "update: no longer a member of the run: no sign of life for 10.0 s: connect again"},
        {{.result = RESULT_GONE, .cause = CAUSE_KICK_STALE}, "update", 0,
         "update: no longer a member of the run: the others went on without it: connect again"},
        {{.result = RESULT_GONE, .cause = CAUSE_KICK_STALE, .text = "this id is not, or no longer, part of the run"}, "reduce", 7,
         "reduce tag 7: no longer a member of the run: this id is not, or no longer, part of the run: connect again"},
        /* left, by itself or with the master gone */
        {{.result = RESULT_GONE, .cause = CAUSE_PEER_LEFT}, "update", 0,
         "update: no longer a member of the run: connect again"},
        /* kicked for what can be mended */
        {{.result = RESULT_GONE, .cause = CAUSE_KICK_KEYS}, "sync", 0,
         "sync: no longer a member of the run: its shared state has other entries: make the entries equal, then connect again"},
        {{.result = RESULT_GONE, .cause = CAUSE_KICK_REVISION}, "sync", 0,
         "sync: no longer a member of the run: its shared state's revision is too high: raise the revision by one per synchronisation, then "
         "connect again"},
        {{.result = RESULT_GONE, .cause = CAUSE_KICK_STRATEGY}, "sync", 0,
         "sync: no longer a member of the run: its strategy forbids it to receive the elected state: choose compatible "
         "strategies, then connect again"},
        /* not now: what stands in the way comes from the session */
        {{.result = RESULT_USAGE, .text = "pcclUpdateTopology is under way in another thread"}, "launch", 7,
         "launch tag 7: not allowed now: pcclUpdateTopology is under way in another thread: fix the order of the calls"},
        /* refused at the door */
        {{.result = RESULT_REFUSED, .cause = CAUSE_KICK_FULL, .text = "127.0.0.1:48148: the run is full"}, "connect", 0,
         "connect: the master refused this peer: 127.0.0.1:48148: the run is full: wait until other peers have left, then connect again"},
        {{.result = RESULT_REFUSED, .cause = CAUSE_KICK_UNREACHABLE, .text = "did not link with the others in time"}, "connect", 0,
         "connect: the master refused this peer: did not link with the others in time: make sure that it and "
         "the others reach each other's ports, then connect again"},
    };
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
        EXPECT(api_outcome(&all[i].outcome, all[i].phase, all[i].tag) != pcclSuccess);
        EXPECT_STR(pcclGetLastError(), all[i].text);
    }
}

TEST(an_error_names_rank_and_address_of_the_culprit) /* an id that only this world knows */
{
    struct net_address address = {.family = 4, .ip = {10, 0, 0, 3}, .port = 48150};
    struct session_outcome o = {.result = RESULT_LOST, .cause = CAUSE_DEADLINE, .culprit = epoch + THREE,
                                .named = {.id = epoch + THREE, .ranked = 1 + 2, .address = address}};
    pcclErrorInfo_t info;
    EXPECT_EQ(api_outcome(&o, "reduce", 7), pcclRankConnectionLost);
    EXPECT_STR(pcclGetLastError(), "reduce tag 7: failed on all peers: its deadline passed, rank 2 (peer 1.3 at 10.0.0.3:48150): "
                                   "read the world size again (pcclGetAttribute), then retry");
    EXPECT_EQ(pcclGetLastErrorInfo(&info), pcclSuccess);
    EXPECT(info.peer == epoch + THREE && info.rank == 2);
    EXPECT_STR(info.address, "10.0.0.3:48150");

    o.named = (struct member_name){.id = epoch + THREE, .ranked = 1}; /* its address was never told */
    EXPECT_EQ(api_outcome_told(&o, "reduce", 7, &info), pcclRankConnectionLost);
    EXPECT(info.rank == 0 && strstr(info.text, ", rank 0 (peer 1.3): ") != NULL);
    EXPECT_STR(info.address, "");

    o.named = (struct member_name){.id = epoch + THREE}; /* of another group */
    EXPECT_EQ(api_outcome_told(&o, "reduce", 7, &info), pcclRankConnectionLost);
    EXPECT(info.rank == PCCL_NO_RANK && strstr(info.text, ", peer 1.3: ") != NULL);

    memset(&address, 0xFF, sizeof address); /* the longest there is */
    address.family = 6;
    o.culprit = UINT64_MAX;
    o.named = (struct member_name){.id = UINT64_MAX, .ranked = INT32_MAX, .address = address};
    EXPECT_EQ(api_outcome_told(&o, "reduce", 7, &info), pcclRankConnectionLost);
    EXPECT_STR(info.address, "[ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff]:65535");
    EXPECT(strstr(info.text, ", rank 2147483646 (peer 4294967295.4294967295 at [ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff]:65535): ") != NULL);
}

TEST(an_error_without_a_culprit_names_no_rank) /* 0 would be somebody */
{
    pcclErrorInfo_t info;
    EXPECT_EQ(api_null("update", "communicator", "pass one"), pcclInvalidArgument);
    EXPECT(pcclGetLastErrorInfo(&info) == pcclSuccess && info.peer == 0 && info.rank == PCCL_NO_RANK && info.address[0] == 0);
    EXPECT_EQ(api_outcome_told(&(struct session_outcome){.result = RESULT_OK}, "reduce", 1, &info), pcclSuccess);
    EXPECT(info.result == pcclSuccess && info.rank == PCCL_NO_RANK);
    api_forget();
    EXPECT(pcclGetLastErrorInfo(&info) == pcclSuccess && info.result == pcclSuccess && info.rank == PCCL_NO_RANK);
}

TEST(a_world_made_by_a_split_is_made_again_by_a_split) /* "create it again": pcclConnect refuses there */
{
    static const char again[] = ": call pcclSplitCommunicator (or the call that created this world) again on the parent";
    struct session_outcome all[] = {{.result = RESULT_OVER, .cause = CAUSE_PEER_LOST}, {.result = RESULT_LOST, .cause = CAUSE_PEER_LOST, .over = true},
                                    {.result = RESULT_OVER, .cause = CAUSE_REVOKED}, {.result = RESULT_GIVEN_UP, .cause = CAUSE_DEADLINE}};
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
        EXPECT_EQ(api_outcome(&all[i], "barrier", 0), pcclRankConnectionLost);
        EXPECT(strstr(pcclGetLastError(), again) == NULL);
        all[i].derived = true;
        EXPECT_EQ(api_outcome(&all[i], "barrier", 0), pcclRankConnectionLost);
        EXPECT(strstr(pcclGetLastError(), again) != NULL && strstr(pcclGetLastError(), "create it again") == NULL);
    }
    struct session_outcome lost = {.result = RESULT_LOST, .cause = CAUSE_PEER_LOST, .derived = true}; /* it goes on without the lost one */
    EXPECT_EQ(api_outcome(&lost, "barrier", 0), pcclRankConnectionLost);
    EXPECT(strstr(pcclGetLastError(), ": read the world size again (pcclGetAttribute), then retry") != NULL);
}

TEST(an_age_is_said_once) /* "no sign of life for 2.0 s, for 5.1 s" */
{
    struct session_outcome o = {.result = RESULT_GONE, .cause = CAUSE_PEER_SILENT, .since = 1, .text = "no sign of life for 2.0 s"};
    EXPECT_EQ(api_outcome(&o, "update", 0), pcclMasterConnectionFailed);
    EXPECT_STR(pcclGetLastError(), "update: no longer a member of the run: no sign of life for 2.0 s: connect again");
    pcclErrorInfo_t info = {0};
    EXPECT_EQ(pcclGetLastErrorInfo(&info), pcclSuccess);
    EXPECT(info.age_ns > 0); /* a program still reads it */
    static const char *const ageless[] = {"the master was gone for too long", "gone for 3 views", "", "no link for 2.0 s with 1.2"};
    for (size_t i = 0; i < sizeof ageless / sizeof ageless[0]; i++) {
        snprintf(o.text, sizeof o.text, "%s", ageless[i]);
        EXPECT_EQ(api_outcome(&o, "update", 0), pcclMasterConnectionFailed);
        EXPECT(strstr(pcclGetLastError(), ", for ") != NULL);
    }
}

TEST(success_stores_no_error)
{
    struct session_outcome o = {.result = RESULT_OK};
    EXPECT_EQ(api_outcome(&o, "reduce", 1), pcclSuccess);
}

TEST(every_code_has_its_name)
{
    EXPECT_STR(pcclGetResultString(pcclSuccess), "pcclSuccess");
    EXPECT_STR(pcclGetResultString(pcclRankConnectionLost), "pcclRankConnectionLost");
    EXPECT_STR(pcclGetResultString(pcclTopologyOptimizationFailed), "pcclTopologyOptimizationFailed");
    EXPECT_STR(pcclGetResultString((pcclResult_t)99), "unknown result");
}
