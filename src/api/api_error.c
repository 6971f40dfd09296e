/* api_error.c - result codes, causes and texts: the one place where an outcome becomes what a program sees.
 * SPDX-License-Identifier: MIT */
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "api/api.h"
#include "core/clock.h"
#include "wire/address.h"
#include "wire/cause.h"

#define API_NO_ERROR {.rank = PCCL_NO_RANK}

static _Thread_local pcclErrorInfo_t api_last = API_NO_ERROR;

/* ---- The table --------------------------------------------------------------------------------------------------------------- */

struct api_row {
    pcclResult_t code;
    pcclCause_t cause; /* pcclCauseNone: by the wire's cause */
    const char *what, *remedy;
};

static const struct api_row api_rows[] = {
    [RESULT_PENDING] = {pcclInternalError, pcclCauseInternal, "the call has not ended", "report this"},
    [RESULT_OK] = {pcclSuccess, pcclCauseNone, "", ""},
    [RESULT_LOST] = {pcclRankConnectionLost, pcclCauseNone, "failed on all peers",
                     "read the world size again (pcclGetAttribute), then retry"},
    [RESULT_MISMATCH] = {pcclInvalidArgument, pcclCauseMismatch,
                         "peers disagree in count, type, operator or quantisation", "make identical calls on all peers"},
    [RESULT_DIGEST] = {pcclInternalError, pcclCauseDigest, "peers computed different results", "stop, report this"},
    [RESULT_NO_MEMORY] = {pcclInternalError, pcclCauseNoMemory, "no memory", "free some memory, or reduce out of place"},
    [RESULT_ARGUMENT] = {pcclInvalidArgument, pcclCauseUsage, "a peer could not make this call as it was given",
                         "read that peer's own error and fix its call; nothing was changed here"},
    [RESULT_ALONE] = {pcclTooFewPeers, pcclCauseAlone, "alone in the peer group", "call pcclUpdateTopology until another peer joins"},
    [RESULT_GONE] = {pcclMasterConnectionFailed, pcclCauseNone, "no longer a member of the run", "connect again"},
    [RESULT_GIVEN_UP] = {pcclRankConnectionLost, pcclCauseNone, "creating the world failed on all of its peers",
                         "create it again"},
    [RESULT_OVER] = {pcclRankConnectionLost, pcclCauseNone, "the world has ended", "create it again"},
    [RESULT_USAGE] = {pcclInvalidUsage, pcclCauseUsage, "not allowed now", "fix the order of the calls"},
    [RESULT_PENDING_OPS] = {pcclPendingAsyncOps, pcclCauseUsage, "an operation has not been awaited", "await it first"},
    [RESULT_TAG_IN_USE] = {pcclInvalidArgument, pcclCauseUsage, "the tag is in flight", "await it first, or use another tag"},
    [RESULT_FULL] = {pcclRankConnectionLost, pcclCauseUsage, "too many unfinished operations", "await some, call again"},
    [RESULT_AHEAD] = {pcclInvalidUsage, pcclCauseUsage, "too far ahead of a peer that has not made the calls that ended early here",
                      "let that peer make these calls, or call pcclUpdateTopology, which begins anew"},
    [RESULT_TAGS] = {pcclInvalidUsage, pcclCauseUsage, "a million different tags since the last update",
                     "call pcclUpdateTopology, which forgets tags that are not in flight, or reuse tags"},
    [RESULT_SETUP] = {pcclMasterConnectionFailed, pcclCauseUsage, "cannot start", "fix this, then connect again"},
    [RESULT_UNREACHABLE] = {pcclMasterConnectionFailed, pcclCauseMasterUnreachable, "the master cannot be reached",
                            "check its address, then connect again (PCCL_OPTION_CONNECT_TIMEOUT_MS sets how long connect tries)"},
    [RESULT_REFUSED] = {pcclMasterConnectionFailed, pcclCauseNone, "the master refused this peer", "fix this, then connect again"},
    [RESULT_NO_CANDIDATE] = {pcclNoSharedStateAvailable, pcclCauseNoCandidate, "no peer can provide the shared state",
                             "restart the run from a checkpoint"},
    [RESULT_REVISION] = {pcclNoSharedStateAvailable, pcclCauseRevision, "no peer that may send has the expected revision",
                         "raise the revision by one per synchronisation, then retry"},
    [RESULT_RETRY] = {pcclUpdateTopologyFailed, pcclCausePeerLost, "nothing changed", "call again"},
    [RESULT_POISONED] = {pcclInternalError, pcclCauseInternal, "an internal invariant failed", "stop, report this"},
};

struct api_cause {
    uint8_t wire; /* enum cause */
    pcclCause_t cause;
    const char *remedy; /* for whom it has cost its place, or was refused one, or whose calls contradict others'; null: the row's */
};

static const struct api_cause api_causes[] = {
    {CAUSE_DEADLINE, pcclCauseDeadline, NULL},
    {CAUSE_CANCEL, pcclCauseCancelled, NULL},
    {CAUSE_NO_MEMORY, pcclCauseNoMemory, "free some memory, then connect again"},
    {CAUSE_INTERNAL, pcclCauseInternal, NULL},
    {CAUSE_MISMATCH, pcclCauseMismatch, NULL},
    {CAUSE_ARGUMENT, pcclCauseUsage, NULL},
    {CAUSE_OLD_VIEW, pcclCausePeerLost, NULL},
    {CAUSE_PEER_LOST, pcclCausePeerLost, NULL},
    {CAUSE_PEER_LEFT, pcclCausePeerLeft, NULL},
    {CAUSE_PEER_SILENT, pcclCausePeerSilent, NULL},
    {CAUSE_LINK_LOST, pcclCauseLinkLost, NULL},
    {CAUSE_NO_PROGRESS, pcclCauseNoProgress, NULL},
    {CAUSE_DIGEST, pcclCauseDigest, NULL},
    {CAUSE_BLOCKED, pcclCauseConflict, "make the same calls on all peers"},
    {CAUSE_REVOKED, pcclCauseRevoked, "connect again on all members"},
    {CAUSE_KICK_PROTOCOL, pcclCauseKicked, "report this, then connect again"},
    {CAUSE_KICK_KEYS, pcclCauseKicked, "make the entries equal, then connect again"},
    {CAUSE_KICK_REVISION, pcclCauseKicked, "raise the revision by one per synchronisation, then connect again"},
    {CAUSE_KICK_STRATEGY, pcclCauseKicked, "choose compatible strategies, then connect again"},
    {CAUSE_KICK_NO_CANDIDATE, pcclCauseNoCandidate, NULL},
    {CAUSE_KICK_UNREACHABLE, pcclCauseKicked, "make sure that it and the others reach each other's ports, then connect again"},
    {CAUSE_KICK_STALE, pcclCauseExcluded, NULL},
    {CAUSE_KICK_FULL, pcclCauseKicked, "wait until other peers have left, then connect again"},
    {CAUSE_KICK_VERSION, pcclCauseKicked, API_SAME_VERSION},
    {CAUSE_KICK_USED, pcclCauseNameUsed, "create it under another name"},
    {CAUSE_KICK_NO_WORLD, pcclCauseNoWorld, "connect again when such a world has begun"},
    {CAUSE_KICK_TAKEN, pcclCauseKicked, "use another rank or name, then connect again"},
};

static const struct api_cause *api_cause_find(uint8_t wire)
{
    for (size_t i = 0; i < sizeof api_causes / sizeof api_causes[0]; i++) {
        if (api_causes[i].wire == wire) {
            return &api_causes[i];
        }
    }
    return NULL;
}

static pcclErrorClass_t api_class(pcclResult_t result, pcclCause_t cause)
{
    switch (result) {
    case pcclSuccess:
        return pcclClassNone;
    case pcclNotInitialized:
    case pcclInvalidArgument:
    case pcclInvalidUsage:
    case pcclPendingAsyncOps:
        return pcclClassFix;
    case pcclTooFewPeers:
    case pcclRankConnectionFailed:
    case pcclRankConnectionLost:
    case pcclUpdateTopologyFailed:
    case pcclTopologyOptimizationFailed:
        return pcclClassRetry;
    case pcclMasterConnectionFailed:
        return pcclClassRejoin;
    case pcclNoSharedStateAvailable:
        return cause == pcclCauseRevision ? pcclClassFix : pcclClassStop;
    case pcclInternalError:
        break;
    }
    return pcclClassStop;
}

/* ---- Storing ----------------------------------------------------------------------------------------------------------------- */

static void api_store(pcclResult_t result, pcclCause_t cause, const char *phase)
{
    api_last = (pcclErrorInfo_t)API_NO_ERROR;
    api_last.result = result;
    api_last.error_class = api_class(result, cause);
    api_last.cause = cause;
    snprintf(api_last.phase, sizeof api_last.phase, "%s", phase);
}

pcclResult_t api_fail(pcclResult_t result, pcclCause_t cause, const char *phase, const char *fmt, ...)
{
    char text[sizeof api_last.text];
    va_list args;
    va_start(args, fmt);
    vsnprintf(text, sizeof text, fmt, args);
    va_end(args);
    api_store(result, cause, phase);
    snprintf(api_last.text, sizeof api_last.text, "%.31s: %.470s", phase, text);
    return result;
}

static pcclCause_t api_gone_cause(const struct session_outcome *o)
{
    const struct api_cause *known = api_cause_find(o->cause);
    switch (o->cause) {
    case CAUSE_PEER_LEFT:
        return pcclCauseLeft;
    case CAUSE_CANCEL: /* of a connect */
        return pcclCauseCancelled;
    case CAUSE_NO_MEMORY:
        return pcclCauseNoMemory;
    case CAUSE_LINK_LOST: /* its own link with the master, for too long */
        return pcclCauseMasterLost;
    default:
        return known != NULL && o->cause >= CAUSE_KICK_PROTOCOL ? known->cause : pcclCauseExcluded;
    }
}

/* What the session said, or else what is known of its cause where the row's text does not say the same. */
static const char *api_detail(const struct session_outcome *o, const struct api_cause *known)
{
    if (o->text[0] != 0 || known == NULL) {
        return o->text;
    }
    bool said = o->result == RESULT_MISMATCH || o->result == RESULT_DIGEST || o->result == RESULT_NO_MEMORY ||
                o->result == RESULT_POISONED;
    bool own = o->result == RESULT_GONE && o->cause < CAUSE_KICK_PROTOCOL; /* the peer that left is this one */
    return said || own ? "" : cause_text(o->cause);
}

/* What is likely to be wrong at a master's address, by what the last attempt to reach it met. */
static const char *api_reach_remedy(const struct session_outcome *o)
{
    switch ((enum dial_met)o->met) {
    case DIAL_MET_NOBODY:
        return "is ccoip_master running there? (PCCL_OPTION_CONNECT_TIMEOUT_MS sets how long connect tries)";
    case DIAL_MET_SILENCE:
        return "is the address right, and does no firewall on the way drop TCP to that port? "
               "(PCCL_OPTION_CONNECT_TIMEOUT_MS sets how long connect tries)";
    case DIAL_MET_STRANGER:
        return "the program that listens there is not a running ccoip_master: check the address and the port";
    case DIAL_MET_WANT:
        return "this process has no file descriptor or no memory left for a connection: "
               "close files or raise `ulimit -n`, then connect again";
    case DIAL_MET_FOREIGN:
    case DIAL_MET_OTHER:
        break;
    }
    return api_rows[RESULT_UNREACHABLE].remedy;
}

/* One, and for what has happened: by the cause for whom it has cost its place or whose calls contradict others', by the call where
 * memory is short. */
static const char *api_remedy(const struct session_outcome *o, const char *phase, const struct api_cause *known)
{
    bool out = o->result == RESULT_GONE || o->result == RESULT_REFUSED;
    bool over = o->result == RESULT_OVER || o->over || o->cause == CAUSE_REVOKED;
    if (o->derived && (over || (o->result == RESULT_GIVEN_UP && o->cause != CAUSE_MISMATCH))) {
        return "call pcclSplitCommunicator (or the call that created this world) again on the parent";
    }
    if ((out || o->cause == CAUSE_BLOCKED || o->cause == CAUSE_REVOKED) && known != NULL && known->remedy != NULL) {
        return known->remedy;
    }
    if (o->result == RESULT_GIVEN_UP && o->cause == CAUSE_MISMATCH) {
        return api_rows[RESULT_MISMATCH].remedy;
    }
    if (o->result == RESULT_UNREACHABLE) {
        return api_reach_remedy(o);
    }
    if (o->result == RESULT_NO_MEMORY && o->left) {
        return "free some memory, then connect again";
    }
    if (o->result == RESULT_NO_MEMORY && strcmp(phase, "reduce") != 0 && strcmp(phase, "launch") != 0) {
        return "free some memory, then retry";
    }
    return api_rows[o->over ? RESULT_OVER : o->result].remedy;
}

/* It ends in an age of its own: "no sign of life for 2.0 s". */
static bool api_says_age(const char *detail)
{
    const char *age = NULL;
    for (const char *at = strstr(detail, " for "); at != NULL; at = strstr(age, " for ")) {
        age = at + strlen(" for ");
    }
    size_t number = age != NULL ? strspn(age, "0123456789.") : 0;
    return number > 0 && strcmp(age + number, " s") == 0;
}

pcclResult_t api_outcome(const struct session_outcome *o, const char *phase, uint64_t tag)
{
    return api_outcome_hint(o, phase, tag, NULL);
}

pcclResult_t api_outcome_hint(const struct session_outcome *o, const char *phase, uint64_t tag, const char *hint)
{
    if (o->result == RESULT_OK) {
        return pcclSuccess;
    }
    const struct api_row *row = &api_rows[o->result];
    if (o->own) {
        api_store(row->code, pcclCauseUsage, phase);
        snprintf(api_last.text, sizeof api_last.text, "%s", o->text);
        return row->code;
    }
    const struct api_cause *known = api_cause_find(o->cause);
    pcclCause_t cause = row->cause;
    pcclResult_t code = row->code;
    if (o->result == RESULT_RETRY && strcmp(phase, "optimise") == 0) {
        code = pcclTopologyOptimizationFailed;
    }
    if (o->result == RESULT_GONE || o->result == RESULT_REFUSED) {
        cause = api_gone_cause(o);
    } else if (known != NULL &&
               (cause == pcclCauseNone || o->result == RESULT_UNREACHABLE || o->cause == CAUSE_BLOCKED)) {
        cause = known->cause;
    }
    if (o->result == RESULT_GIVEN_UP && o->cause == CAUSE_MISMATCH) {
        code = pcclInvalidArgument;
    }
    api_store(code, cause, phase);
    bool over = o->result == RESULT_GIVEN_UP || o->result == RESULT_OVER || o->over || cause == pcclCauseRevoked ||
                (o->result == RESULT_NO_MEMORY && o->left);
    if (code != pcclInvalidArgument && over) {
        api_last.error_class = pcclClassRejoin;
    }
    if (o->result == RESULT_SETUP || o->cause == CAUSE_KICK_VERSION || o->cause == CAUSE_KICK_USED) {
        api_last.error_class = pcclClassFix; /* connecting again alone would fail for ever */
    }
    api_last.peer = o->differs != 0 ? o->differs : o->culprit; /* never itself, where another is known */
    api_last.tag = tag;
    api_last.age_ns = o->since > 0 ? clock_now_ns() - o->since : 0;
    api_last.rank = o->named.ranked != 0 ? (int32_t)o->named.ranked - 1 : PCCL_NO_RANK;
    if (o->named.address.family != 0) {
        address_text(&o->named.address, api_last.address);
    }
    char operation[40] = "", peer[MEMBER_TEXT + 2] = "", age[40] = "";
    if (tag != 0) {
        snprintf(operation, sizeof operation, " tag %" PRIu64, tag);
    }
    bool named = o->text[0] != 0 && (o->result != RESULT_MISMATCH || o->differs != 0);
    if (o->culprit != 0 && !named) {
        peer[0] = ',';
        peer[1] = ' ';
        member_text(o->culprit, api_last.rank, &o->named.address, peer + 2);
    }
    const char *detail = api_detail(o, known);
    if (api_last.age_ns >= 50 * CLOCK_MS && !api_says_age(detail)) { /* less is no delay worth a word */
        snprintf(age, sizeof age, ", for %.1f s", (double)api_last.age_ns / 1e9);
    }
    const char *what = o->result == RESULT_NO_MEMORY && detail[0] != 0 ? "" : row->what; /* the detail says for what */
    snprintf(api_last.text, sizeof api_last.text, "%s%s: %s%s%s%s%s: %s", phase, operation, what,
             what[0] != 0 && detail[0] != 0 ? ": " : "", detail, peer, age, hint != NULL ? hint : api_remedy(o, phase, known));
    return code;
}

pcclResult_t api_outcome_told(const struct session_outcome *o, const char *phase, uint64_t tag, pcclErrorInfo_t *error)
{
    if (o->result == RESULT_OK) {
        *error = (pcclErrorInfo_t)API_NO_ERROR;
        return pcclSuccess;
    }
    pcclErrorInfo_t before = api_last;
    pcclResult_t result = api_outcome(o, phase, tag);
    *error = api_last;
    api_last = before;
    return result;
}

pcclResult_t api_null(const char *phase, const char *argument, const char *remedy)
{
    return api_fail(pcclInvalidArgument, pcclCauseUsage, phase, "%s is null: %s", argument, remedy);
}

void api_reclass(pcclErrorClass_t error_class)
{
    api_last.error_class = error_class;
}

void api_restore(const pcclErrorInfo_t *error)
{
    api_last = *error;
}

void api_forget(void)
{
    api_last = (pcclErrorInfo_t)API_NO_ERROR;
}

/* ---- Reading ----------------------------------------------------------------------------------------------------------------- */

const char *pcclGetLastError(void)
{
    return api_last.text;
}

pcclResult_t pcclGetLastErrorInfo(pcclErrorInfo_t *info_out)
{
    if (info_out == NULL) {
        return api_fail(pcclInvalidArgument, pcclCauseUsage, "error info", "info_out is null");
    }
    *info_out = api_last;
    return pcclSuccess;
}

const char *pcclGetResultString(pcclResult_t result)
{
    static const char *const names[] = {
        "pcclSuccess", "pcclNotInitialized", "pcclInternalError", "pcclInvalidArgument", "pcclInvalidUsage",
        "pcclTooFewPeers", "pcclMasterConnectionFailed", "pcclRankConnectionFailed", "pcclRankConnectionLost",
        "pcclNoSharedStateAvailable", "pcclPendingAsyncOps", "pcclUpdateTopologyFailed",
        "pcclTopologyOptimizationFailed",
    };
    size_t i = (size_t)result;
    return i < sizeof names / sizeof names[0] ? names[i] : "unknown result";
}
