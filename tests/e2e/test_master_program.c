/* test_master_program.c - ccoip_master as a user meets it: options, the line it prints, signals, exit statuses.
 * SPDX-License-Identifier: MIT */
#define _GNU_SOURCE /* pipe2 */
#include "tests/testing.h"

#include "pccl.h"
#include "tests/wire_client.h"

/* Runs it with one or two arguments to its end. */
static int run_master(struct program *p, char *one, char *two)
{
    char path[PATH_MAX], name[] = "ccoip_master";
    char *args[] = {name, one, two, NULL};
    spawn_path("bin/ccoip_master", path);
    return program_start(p, path, args) ? program_wait(p) : -1;
}

static int count_lines(const char *text)
{
    int count = 0;
    for (; *text != 0; text++) {
        count += *text == '\n';
    }
    return count;
}

/* Status 2, nothing on standard output, one sentence that holds `words` on standard error. */
static void expect_refused(char *one, char *two, const char *words)
{
    struct program p;
    EXPECT_EQ(run_master(&p, one, two), 2);
    EXPECT_STR(p.out_text, "");
    EXPECT_EQ(count_lines(p.err_text), 1);
    EXPECT(strncmp(p.err_text, "ccoip_master: ", 14) == 0);
    if (strstr(p.err_text, words) == NULL) {
        EXPECT_STR(p.err_text, words);
    }
}

static char listen_option[] = "--listen", any_port[] = "127.0.0.1:0", level_option[] = "--log-level", quiet[] = "none",
            dead_option[] = "--dead-ms";

TEST(help_names_every_option) /* an option that nobody can find */
{
    struct program p, brief;
    char help[] = "--help", h[] = "-h";
    EXPECT_EQ(run_master(&p, help, NULL), 0);
    EXPECT(strstr(p.out_text, "--listen") != NULL && strstr(p.out_text, "--log-level") != NULL);
    EXPECT(strstr(p.out_text, "--status ADDRESS") != NULL);
    EXPECT(strstr(p.out_text, "--dead-ms") != NULL && strstr(p.out_text, "48148") != NULL);
    EXPECT(strstr(p.out_text, "--idle-exit") != NULL);
    EXPECT(strstr(p.out_text, "-h, --help") != NULL && strstr(p.out_text, "-V, --version") != NULL);
    EXPECT_STR(p.err_text, "");
    EXPECT_EQ(run_master(&brief, h, NULL), 0);
    EXPECT_STR(brief.out_text, p.out_text);
}

TEST(version_is_that_of_the_header) /* a program that tells another one than the package it came with */
{
    struct program p;
    char version[] = "--version", v[] = "-V", want[64];
    snprintf(want, sizeof want, "ccoip_master %d.%d.%d\n", PCCL_VERSION_MAJOR, PCCL_VERSION_MINOR, PCCL_VERSION_PATCH);
    EXPECT_EQ(run_master(&p, version, NULL), 0);
    EXPECT_STR(p.out_text, want);
    EXPECT_EQ(run_master(&p, v, NULL), 0);
    EXPECT_STR(p.out_text, want);
}

TEST(wrong_options_are_one_sentence_and_status_2) /* a typo that starts a master on the default port */
{
    char unknown[] = "--lisen", word[] = "here", loud[] = "loud", letters[] = "12x", small[] = "99", empty[] = "",
         spaced[] = " 500", sign[] = "+500", no_level[] = "--log-level=", no_dead[] = "--dead-ms=", no_idle[] = "--idle-exit=0";
    expect_refused(unknown, any_port, "unknown option '--lisen'");
    expect_refused(word, NULL, "unknown option 'here'");
    expect_refused(empty, NULL, "unknown option ''");
    expect_refused(listen_option, NULL, "missing");
    expect_refused(level_option, loud, "--log-level takes trace, debug, info, warn, error or none, not 'loud'");
    expect_refused(no_level, NULL, "none, not ''");
    expect_refused(dead_option, letters, "--dead-ms takes a number from 100 to 3600000, not '12x'");
    expect_refused(dead_option, small, "not '99'");
    expect_refused(dead_option, spaced, "not ' 500'"); /* strtol skips spaces */
    expect_refused(dead_option, sign, "not '+500'");
    expect_refused(dead_option, empty, "not ''");
    expect_refused(no_dead, NULL, "not ''");
    expect_refused(no_idle, NULL, "--idle-exit takes a number of seconds from 1 to 604800, not '0'");
}

TEST(bad_addresses_are_one_sentence_and_status_2)
{
    char port[] = "127.0.0.1:65536", open_bracket[] = "[::1", name[] = "no-such-host.invalid:1",
         foreign[] = "192.0.2.1:0", /* TEST-NET-1: nobody's */
         scoped[] = "[fe80::1%lo]:0";
    expect_refused(listen_option, port, "65536");
    expect_refused(listen_option, open_bracket, "[::1");
    expect_refused(listen_option, name, "no-such-host.invalid:1': resolve host: ");
    expect_refused(listen_option, name, ": check the name, or write numbers");
    expect_refused(listen_option, foreign, "192.0.2.1:0: Cannot assign requested address: no interface of this host has that address");
    expect_refused(listen_option, scoped, "scope '%lo'");
}

TEST(taken_port_is_one_sentence_and_status_2)
{
    struct program first;
    char taken[32];
    uint16_t port = master_start(&first, listen_option, any_port, NULL);
    EXPECT(port != 0);
    snprintf(taken, sizeof taken, "127.0.0.1:%u", port);
    expect_refused(listen_option, taken, taken);
    expect_refused(listen_option, taken, "another process listens there: end it, or take another port");
    EXPECT_EQ(program_end(&first, SIGTERM), 0);
}

static void expect_clean_end(int number)
{
    struct program p;
    uint16_t port = master_start(&p, listen_option, any_port, NULL);
    struct msg_welcome welcome;
    int fd = client_dial(port, false), stranger = client_dial(port, false);
    EXPECT(client_register(fd, &welcome));
    EXPECT_EQ(program_end(&p, number), 0);
    EXPECT(client_closed(fd, SPAWN_PATIENCE_MS) && client_closed(stranger, SPAWN_PATIENCE_MS));
    EXPECT_EQ(client_dial(port, false), -1);
    close(fd);
    close(stranger);
}

TEST(signals_end_it_cleanly) /* with members, strangers and a port to give back */
{
    expect_clean_end(SIGINT);
    expect_clean_end(SIGTERM);
}

TEST(a_shell_that_has_it_ignore_sigint_changes_nothing) /* as a script does for what it starts with & */
{
    void (*before)(int) = signal(SIGINT, SIG_IGN);
    expect_clean_end(SIGINT);
    signal(SIGINT, before);
}

TEST(members_are_not_fenced_at_the_end) /* a run that ends with its master, although it could go on without */
{
    struct program p;
    uint16_t port = master_start(&p, listen_option, any_port, level_option, quiet, NULL);
    struct msg_welcome welcome;
    struct frame_header h;
    unsigned char payload[CLIENT_FRAME];
    int fd = client_dial(port, false);
    EXPECT(client_register(fd, &welcome));
    kill(p.pid, SIGTERM);
    EXPECT(!client_await(fd, FRAME_FENCE, &h, payload)); /* the connection closes without */
    close(fd);
    EXPECT_EQ(program_wait(&p), 0);
    EXPECT_STR(p.err_text, "");
}

static char status_option[] = "--status";

TEST(without_peers_it_ends_by_itself_where_that_was_asked_for) /* and not while there is one, however long */
{
    struct program p, asked;
    char idle_option[] = "--idle-exit", second[] = "1", master[32];
    ccoip_socket_address_t at;
    pcclComm_t *member = NULL, *early = NULL;
    uint16_t port = master_start(&p, listen_option, any_port, level_option, quiet, idle_option, second, NULL);
    EXPECT(port != 0);
    snprintf(master, sizeof master, "127.0.0.1:%u", port);
    EXPECT_EQ(pcclInit(), pcclSuccess);
    EXPECT_EQ(pcclParseAddress(master, 0, &at), pcclSuccess);
    pcclCommCreateParams_t params = {.master_address = at};
    EXPECT(pcclCreateCommunicator(&params, &member) == pcclSuccess && pcclConnect(member) == pcclSuccess);
    /* Longer than it may be without peers: until somebody is given up who waits for one that never comes. */
    pcclCommCreateParamsEx_t pair = {
        .size = sizeof pair, .master_address = at, .world = "pair", .world_size = 2, .formation_timeout_ms = 1500};
    EXPECT_EQ(pcclCreateCommunicatorEx(&pair, &early), pcclSuccess);
    EXPECT_EQ(pcclConnect(early), pcclRankConnectionLost);
    EXPECT_EQ(run_master(&asked, status_option, master), 0);
    EXPECT_EQ(pcclDestroyCommunicator(early), pcclSuccess);
    EXPECT_EQ(pcclDestroyCommunicator(member), pcclSuccess);
    EXPECT_EQ(program_wait(&p), 0);
    EXPECT_STR(p.err_text, "");
}

TEST(one_that_nobody_ever_comes_to_ends_by_itself_too) /* its time begins with it, and not with the first who goes */
{
    struct program p;
    char idle_option[] = "--idle-exit", second[] = "1";
    EXPECT(master_start(&p, listen_option, any_port, level_option, quiet, idle_option, second, NULL) != 0);
    EXPECT_EQ(program_wait(&p), 0);
    EXPECT_STR(p.err_text, "");
}

/* Lines that hold these words. */
static int lines_with(const char *text, const char *first, const char *second)
{
    int count = 0;
    for (const char *line = text; *line != 0;) {
        const char *end = strchr(line, '\n');
        char copy[512] = "";
        size_t size = end != NULL ? (size_t)(end - line) : strlen(line);
        memcpy(copy, line, size < sizeof copy - 1 ? size : sizeof copy - 1);
        count += strstr(copy, first) != NULL && strstr(copy, second) != NULL;
        line += size + (end != NULL);
    }
    return count;
}

TEST(status_prints_a_line_for_each_world) /* of a master that runs, over several pages */
{
    enum { WORLDS = 70 };
    struct program p, asked;
    pcclComm_t *comm[WORLDS] = {NULL};
    ccoip_socket_address_t at;
    char master[32], run[20], name[16];
    struct msg_welcome welcome;
    uint16_t port = master_start(&p, listen_option, any_port, level_option, quiet, NULL);
    snprintf(master, sizeof master, "127.0.0.1:%u", port);
    EXPECT_EQ(run_master(&asked, status_option, master), 0);
    EXPECT(strncmp(asked.out_text, "WORLD ", 6) == 0 && count_lines(asked.out_text) == 1);
    int fd = client_dial(port, false);
    EXPECT(client_register(fd, &welcome));
    EXPECT_EQ(pcclInit(), pcclSuccess);
    EXPECT_EQ(pcclParseAddress(master, 0, &at), pcclSuccess);
    for (int i = 0; i < WORLDS; i++) {
        snprintf(name, sizeof name, "sized-%02d", i);
        pcclCommCreateParamsEx_t params = {.size = sizeof params, .master_address = at, .world = name, .world_size = 1,
                                           .loss_rule = i % 2 == 0 ? PCCL_LOSS_END : PCCL_LOSS_SHRINK};
        EXPECT(pcclCreateCommunicatorEx(&params, &comm[i]) == pcclSuccess && pcclConnect(comm[i]) == pcclSuccess);
    }
    EXPECT_EQ(run_master(&asked, status_option, master), 0);
    EXPECT_EQ(count_lines(asked.out_text), 1 + 1 + WORLDS);
    snprintf(run, sizeof run, "%016llx", (unsigned long long)welcome.run);
    EXPECT_EQ(lines_with(asked.out_text, "'' ", run), 1);
    EXPECT_EQ(lines_with(asked.out_text, "any ", " open "), 1);
    EXPECT_EQ(lines_with(asked.out_text, "'sized-", " begun "), WORLDS);
    EXPECT_EQ(lines_with(asked.out_text, "'sized-", "nothing"), WORLDS);
    for (int i = 0; i < WORLDS; i++) {
        snprintf(name, sizeof name, "'sized-%02d'", i);
        EXPECT_EQ(lines_with(asked.out_text, name, i % 2 == 0 ? " 1 end " : " 1 shrink "), 1);
        EXPECT_EQ(pcclDestroyCommunicator(comm[i]), pcclSuccess);
    }
    close(fd);
    EXPECT_EQ(program_end(&p, SIGTERM), 0);
    EXPECT_STR(p.err_text, "");
}

TEST(status_of_no_master_is_one_sentence_and_status_2)
{
    struct program p;
    char master[32], stranger[] = "--status=127.0.0.1:0", nobody[] = "no-such-host.invalid:1";
    uint16_t port = master_start(&p, listen_option, any_port, NULL);
    snprintf(master, sizeof master, "127.0.0.1:%u", port);
    EXPECT_EQ(program_end(&p, SIGTERM), 0);
    expect_refused(status_option, master, "Connection refused: is ccoip_master running there?");
    expect_refused(stranger, NULL, "port 0: give the port at which the master listens");
    expect_refused(status_option, nobody, "no-such-host.invalid");
    expect_refused(status_option, NULL, "missing");
}

TEST(any_address_takes_both_families)
{
    struct program p;
    char any[] = "0.0.0.0:0";
    uint16_t port = master_start(&p, listen_option, any, NULL);
    EXPECT(client_visit(port));
    int probe = socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (probe >= 0) { /* a system without IPv6 has nothing to show here */
        struct msg_welcome welcome;
        int fd = client_dial(port, true);
        EXPECT(fd >= 0 && client_register(fd, &welcome));
        close(fd);
    }
    close(probe);
    EXPECT_EQ(program_end(&p, SIGTERM), 0);
}

TEST(one_address_is_only_that_address)
{
    struct program p;
    uint16_t port = master_start(&p, listen_option, any_port, NULL);
    EXPECT(client_visit(port));
    EXPECT_EQ(client_dial(port, true), -1);
    EXPECT_EQ(program_end(&p, SIGTERM), 0);
}

TEST(dead_time_reaches_the_peers) /* an option that is read and then forgotten */
{
    struct program p;
    char dead[] = "1500";
    struct msg_welcome welcome = {0};
    uint16_t port = master_start(&p, listen_option, any_port, dead_option, dead, NULL);
    int fd = client_dial(port, false);
    EXPECT(client_register(fd, &welcome));
    EXPECT_EQ(welcome.dead_ms, 1500);
    EXPECT(welcome.heartbeat_ms > 0 && welcome.heartbeat_ms <= 500);
    EXPECT(welcome.run != 0 && welcome.epoch != 0);
    close(fd);
    EXPECT_EQ(program_end(&p, SIGTERM), 0);
}

TEST(a_silent_member_is_excluded_in_the_dead_time)
{
    struct program p;
    char dead[] = "200";
    struct msg_welcome welcome;
    struct frame_header h;
    unsigned char payload[CLIENT_FRAME];
    uint16_t port = master_start(&p, listen_option, any_port, dead_option, dead, NULL);
    int fd = client_dial(port, false);
    EXPECT(client_register(fd, &welcome));
    EXPECT(client_await(fd, FRAME_FENCE, &h, payload));
    EXPECT(client_closed(fd, SPAWN_PATIENCE_MS));
    close(fd);
    EXPECT_EQ(program_end(&p, SIGTERM), 0);
}
