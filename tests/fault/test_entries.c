/* test_entries.c - a program whose shared state has other entries: it reads which and what differs, and so does the master's log.
 * SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#include "tests/testing.h"

#include <regex.h>

#include "tests/fault/peer_calls.h"

enum { ENTRIES = 100, ODD_ENTRY = 70, ODD = 1 }; /* the list takes several messages */

enum difference { COUNT, TYPE, MISSING, EXTRA };

static void sync_entries(struct peer *self, const void *argument, struct reply *reply)
{
    enum difference difference = *(const enum difference *)argument;
    static float data[ENTRIES + 1][4];
    static char name[ENTRIES + 1][16];
    pcclTensorInfo_t infos[ENTRIES + 1];
    size_t count = 0;
    for (int i = 0; i <= ENTRIES; i++) {
        bool odd = self->index == ODD && i == ODD_ENTRY;
        snprintf(name[i], sizeof name[i], "layer%d.w", i);
        if (i == ENTRIES ? self->index != ODD || difference != EXTRA : odd && difference == MISSING) {
            continue;
        }
        infos[count++] = (pcclTensorInfo_t){
            .name = name[i], .data = data[i], .count = odd && difference == COUNT ? 3 : 4,
            .datatype = odd && difference == TYPE ? pcclInt32 : pcclFloat};
    }
    pcclSharedState_t state = {.revision = 1, .count = count, .infos = infos};
    peer_result(reply, pcclSynchronizeSharedState(self->comm, &state, NULL));
}

static void kicked(enum difference difference, const char *what)
{
    struct processes all;
    struct reply reply[PROCESSES_MOST];
    struct processes_options o = {.count = 3, .failures = &test_failures, .pool = 1, .master_log = "info"};
    char want[300], id[40];
    int three = 3;
    if (!processes_start(&all, &o)) {
        EXPECT(!"start");
        return;
    }
    processes_do(&all, 7, peer_join, &three, sizeof three, NULL);
    struct reply odd = process_do(&all, ODD, peer_look, NULL, 0);
    processes_do(&all, 7, sync_entries, &difference, sizeof difference, reply);
    EXPECT_EQ(reply[0].result, pcclSuccess);
    EXPECT_EQ(reply[2].result, pcclSuccess);
    EXPECT_EQ(reply[ODD].result, pcclMasterConnectionFailed);
    EXPECT_EQ(reply[ODD].cause, pcclCauseKicked);
    snprintf(want, sizeof want, "sync: no longer a member of the run: its shared state has other entries than the elected one: %s", what);
    const char *remedy = strstr(reply[ODD].text, ": make the entries equal, then connect again"); /* how long it took may stand between */
    EXPECT(strstr(reply[ODD].text, want) == reply[ODD].text && remedy != NULL && strlen(remedy) == strlen(": make the entries equal, then connect again"));
    processes_stop(&all);
    snprintf(id, sizeof id, "peer %llu.%llu (127.0.0.1:", (unsigned long long)odd.value[6] >> 32,
             (unsigned long long)odd.value[6] & 0xFFFFFFFF);
    snprintf(want, sizeof want, "its shared state has other entries than the elected one: %s\n", what);
    const char *line = strstr(all.master.err_text, want);
    const char *excluded = strstr(all.master.err_text, " of group 0 excluded from view ");
    EXPECT(line != NULL && excluded != NULL && excluded < line && strstr(all.master.err_text, id) != NULL);
    regex_t dated; /* all lines say when, and the peer's address stands before the word */
    EXPECT_EQ(regcomp(&dated, "^[0-9]{4}-[0-9]{2}-[0-9]{2} [0-9:]{8}\\.[0-9]{3}Z .*info +peer [0-9.]+ \\(127\\.0\\.0\\.1:[0-9]+\\) of "
                              "group 0 excluded from view [0-9]+: ", REG_EXTENDED | REG_NEWLINE | REG_NOSUB), 0);
    EXPECT_EQ(regexec(&dated, all.master.err_text, 0, NULL, 0), 0);
    regfree(&dated);
}

TEST(whoever_has_other_entries_reads_which_and_what_differs) /* "other entries": of a hundred, in two programs */
{
    kicked(COUNT, "'layer70.w' has 3 f32, elected: 4 f32");
    kicked(TYPE, "'layer70.w' has 4 i32, elected: 4 f32");
    kicked(MISSING, "'layer70.w' is missing, elected: 4 f32");
    kicked(EXTRA, "'layer100.w' with 4 f32 is one more");
}
