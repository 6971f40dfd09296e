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
    {RESULT_LOST, CAUSE_PEER_SILENT, pcclRankConnectionLost, pcclClassRetry, pcclCausePeerSilent},
    {RESULT_LOST, CAUSE_LINK_LOST, pcclRankConnectionLost, pcclClassRetry, pcclCauseLinkLost},
    {RESULT_LOST, CAUSE_NO_PROGRESS, pcclRankConnectionLost, pcclClassRetry, pcclCauseNoProgress},
    {RESULT_LOST, CAUSE_DEADLINE, pcclRankConnectionLost, pcclClassRetry, pcclCauseDeadline},
    {RESULT_LOST, CAUSE_CANCEL, pcclRankConnectionLost, pcclClassRetry, pcclCauseCancelled},
    {RESULT_FULL, 0, pcclRankConnectionLost, pcclClassRetry, pcclCauseUsage},
    {RESULT_MISMATCH, CAUSE_MISMATCH, pcclInvalidArgument, pcclClassFix, pcclCauseMismatch},
    {RESULT_TAG_IN_USE, 0, pcclInvalidArgument, pcclClassFix, pcclCauseUsage},
    {RESULT_USAGE, 0, pcclInvalidUsage, pcclClassFix, pcclCauseUsage},
    {RESULT_USAGE, CAUSE_BLOCKED, pcclInvalidUsage, pcclClassFix, pcclCauseConflict},
    {RESULT_PENDING_OPS, 0, pcclPendingAsyncOps, pcclClassFix, pcclCauseUsage},
    {RESULT_GONE, CAUSE_KICK_STALE, pcclMasterConnectionFailed, pcclClassRejoin, pcclCauseExcluded},
    {RESULT_GONE, CAUSE_KICK_REVISION, pcclMasterConnectionFailed, pcclClassRejoin, pcclCauseKicked},
    {RESULT_GONE, CAUSE_PEER_LEFT, pcclMasterConnectionFailed, pcclClassRejoin, pcclCauseLeft},
    {RESULT_GONE, CAUSE_LINK_LOST, pcclMasterConnectionFailed, pcclClassRejoin, pcclCauseMasterLost},
    {RESULT_UNREACHABLE, 0, pcclMasterConnectionFailed, pcclClassRejoin, pcclCauseMasterUnreachable},
    {RESULT_ALONE, 0, pcclTooFewPeers, pcclClassRetry, pcclCauseAlone},
    {RESULT_NO_CANDIDATE, 0, pcclNoSharedStateAvailable, pcclClassStop, pcclCauseNoCandidate},
    {RESULT_REVISION, 0, pcclNoSharedStateAvailable, pcclClassFix, pcclCauseRevision},
    {RESULT_DIGEST, CAUSE_DIGEST, pcclInternalError, pcclClassStop, pcclCauseDigest},
    {RESULT_NO_MEMORY, CAUSE_NO_MEMORY, pcclInternalError, pcclClassStop, pcclCauseNoMemory},
    {RESULT_POISONED, CAUSE_INTERNAL, pcclInternalError, pcclClassStop, pcclCauseInternal},
    {RESULT_RETRY, 0, pcclUpdateTopologyFailed, pcclClassRetry, pcclCausePeerLost},
};

TEST(every_outcome_has_its_code_class_cause_and_text)
{
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct session_outcome o = {.result = rows[i].result, .cause = rows[i].wire, .culprit = 1ull << 32 | 7};
        pcclErrorInfo_t info = {0};
        EXPECT_EQ(api_outcome(&o, "reduce", 12), rows[i].code);
        EXPECT_EQ(pcclGetLastErrorInfo(&info), pcclSuccess);
        EXPECT_EQ(info.result, rows[i].code);
        EXPECT_EQ(info.error_class, rows[i].error_class);
        EXPECT_EQ(info.cause, rows[i].cause);
        EXPECT(info.peer == (1ull << 32 | 7) && info.tag == 12);
        EXPECT(strstr(info.text, "reduce tag 12: ") == info.text && strstr(info.text, "1.7") != NULL);
        EXPECT_STR(info.text, pcclGetLastError());
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
