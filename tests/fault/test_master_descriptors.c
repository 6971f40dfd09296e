/* test_master_descriptors.c - a running master that has few file descriptors.
 *
 * One idea: connections that say nothing give up their descriptors, and the last one serves an honest peer.
 * SPDX-License-Identifier: MIT */
#define _GNU_SOURCE /* pipe2 */
#include "tests/testing.h"

#include <sys/resource.h>
#include <sys/stat.h>

#include "tests/wire_client.h"

enum { DESCRIPTORS = 40 };

static struct program master;
static uint16_t master_port;

static void begin(void)
{
    char listen_option[] = "--listen", any_port[] = "127.0.0.1:0", level_option[] = "--log-level", level[] = "none",
         dead_option[] = "--dead-ms", minute[] = "60000";
    struct rlimit files, few;
    EXPECT_EQ(getrlimit(RLIMIT_NOFILE, &files), 0);
    few = files;
    few.rlim_cur = DESCRIPTORS;
    EXPECT_EQ(setrlimit(RLIMIT_NOFILE, &few), 0); /* the master inherits it */
    master_port = master_start(&master, listen_option, any_port, level_option, level, dead_option, minute, NULL);
    EXPECT(master_port != 0);
    EXPECT_EQ(setrlimit(RLIMIT_NOFILE, &files), 0);
}

static void end(void)
{
    EXPECT(client_visit(master_port));
    EXPECT_EQ(program_end(&master, SIGTERM), 0);
}

/* Those that the master may still open. */
static int descriptors_left(void)
{
    int left = 0;
    for (int fd = 0; fd < DESCRIPTORS; fd++) {
        char path[64];
        struct stat known;
        snprintf(path, sizeof path, "/proc/%d/fd/%d", (int)master.pid, fd);
        left += lstat(path, &known) != 0;
    }
    return left;
}

TEST(an_honest_peer_gets_in_when_descriptors_run_out) /* the listener that is ready for ever, and nobody served */
{
    static int idle[4 * DESCRIPTORS];
    begin();
    for (int i = 0; i < 4 * DESCRIPTORS; i++) {
        idle[i] = client_dial(master_port, false);
        EXPECT(idle[i] >= 0);
    }
    for (int i = 0; i < 10; i++) {
        EXPECT(client_visit(master_port));
    }
    for (int i = 0; i < 4 * DESCRIPTORS; i++) {
        close(idle[i]);
    }
    end();
}

TEST(last_descriptor_is_a_newcomers) /* to find out that no other waits, the one that has just come is turned away */
{
    struct msg_welcome welcome;
    int fd[DESCRIPTORS], count = 0;
    begin();
    while (count < DESCRIPTORS && descriptors_left() > 0) {
        fd[count] = client_dial(master_port, false);
        EXPECT(client_register(fd[count++], &welcome));
    }
    EXPECT(count > 0 && descriptors_left() == 0);
    for (int i = 0; i < count; i++) {
        close(fd[i]);
    }
    end();
}
