/* test_wan_run.c - commands in an emulated network: where they run, how they end, and what a user can do to the network meanwhile.
 * SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#include "tests/testing.h"

#include "tests/wan/wan_lab.h"

static struct lab lab; /* large */
static const char two[] = "[host a]\n[host b]\n[path a b]\nrate = 100mbit\ndelay = 2ms\n";

/* A script on each host, or on those that come before it: "--on", "a". */
static int run_script(const char *network, const char *host, char *script)
{
    char on[] = "--on", name[32], dashes[] = "--", shell[] = "/bin/sh", c[] = "-c";
    snprintf(name, sizeof name, "%s", host != NULL ? host : "");
    char *each[] = {dashes, shell, c, script, NULL}, *one[] = {on, name, dashes, shell, c, script, NULL};
    return lab_run(&lab, network, host != NULL ? one : each);
}

/* Runs pccl with the words up to a null; its status. */
__attribute__((sentinel)) static int pccl(struct program *p, ...)
{
    char path[PATH_MAX], name[] = "pccl", *args[LAB_WORDS] = {name};
    va_list list;
    va_start(list, p);
    for (size_t n = 1; n + 1 < LAB_WORDS && (args[n] = va_arg(list, char *)) != NULL; n++) {
    }
    va_end(list);
    spawn_path("bin/pccl", path);
    return program_start(p, path, args) ? program_wait(p) : -1;
}

TEST(each_host_runs_the_command_with_its_own_words_and_names) /* a rank that believes to be another one */
{
    LAB_NEEDED();
    char script[] = "echo $(hostname) {host} {rank} {hosts} {address} {first}; "
                    "echo $PCCL_WAN_HOST.$PCCL_WAN_RANK.$PCCL_WAN_HOSTS.$PCCL_WAN_ADDRESS.$PCCL_WAN_FIRST >&2";
    EXPECT_EQ(run_script("[host x]\n[host y]\naddress = 192.168.9.9\n", NULL, script), 0);
    EXPECT(strstr(lab.emulator.out_text, "[x] x x 0 2 10.77.0.1 10.77.0.1\n") != NULL);
    EXPECT(strstr(lab.emulator.out_text, "[y] y y 1 2 192.168.9.9 10.77.0.1\n") != NULL);
    EXPECT(strstr(lab.emulator.err_text, "[x] x.0.2.10.77.0.1.10.77.0.1\n") != NULL);
    EXPECT(strstr(lab.emulator.err_text, "[y] y.1.2.192.168.9.9.10.77.0.1\n") != NULL);
}

TEST(a_command_on_one_host_writes_as_it_is_and_its_status_is_returned)
{
    LAB_NEEDED();
    char script[] = "printf 'no line'; exit 7";
    EXPECT_EQ(run_script(two, "b", script), 7);
    EXPECT_STR(lab.emulator.out_text, "no line");
    char killed[] = "kill -9 $$";
    EXPECT_EQ(run_script(two, "b", killed), 137);
    char on[] = "--on", a[] = "a", dashes[] = "--", missing[] = "no-such-program";
    char *words[] = {on, a, dashes, missing, NULL};
    EXPECT_EQ(lab_run(&lab, two, words), 127);
    EXPECT(strstr(lab.emulator.err_text, "run 'no-such-program' on host 'a': No such file or directory: give the name or path") != NULL);
}

TEST(the_status_is_that_of_the_first_command_that_failed) /* a run that failed would pass */
{
    LAB_NEEDED();
    char file[] = "/tmp/pccl-wan-XXXXXX", script[400];
    close(mkstemp(file));
    snprintf(script, sizeof script, "if [ {rank} = 1 ]; then echo $$ >%s; exit 3; fi; until [ -s %s ]; do :; done; "
                                    "while kill -0 $(cat %s) 2>/dev/null; do :; done; exit 4", file, file, file); /* until that one has been reaped */
    EXPECT_EQ(run_script(two, NULL, script), 3);
    unlink(file);
}

/* Whether a process is in a network namespace of that number. */
static bool namespace_is_used(const char *link)
{
    char path[300], text[64];
    bool used = false;
    DIR *d = opendir("/proc");
    for (struct dirent *e; d != NULL && (e = readdir(d)) != NULL;) {
        snprintf(path, sizeof path, "/proc/%s/ns/net", e->d_name);
        ssize_t n = readlink(path, text, sizeof text - 1);
        text[n > 0 ? n : 0] = 0;
        used = used || (n > 0 && strcmp(text, link) == 0);
    }
    closedir(d);
    return used;
}

/* Commands that never end, with children that no longer belong to them; the namespace of one of them. */
static void start_endless(char link[64])
{
    char dashes[] = "--", shell[] = "/bin/sh", c[] = "-c", script[] = "setsid sleep 600 & readlink /proc/self/ns/net; echo up; wait";
    char *words[] = {dashes, shell, c, script, NULL};
    EXPECT(lab_start(&lab, two, words));
    EXPECT(program_says(&lab.emulator, "[a] up\n") && program_says(&lab.emulator, "[b] up\n"));
    const char *at = strstr(lab.emulator.out_text, "net:");
    snprintf(link, 64, "%.*s", at != NULL ? (int)strcspn(at, "\n") : 0, at != NULL ? at : "");
    EXPECT(namespace_is_used(link));
}

/* The kernel ends them by itself: this looks until it has. */
static void expect_gone(const char *link)
{
    int64_t until = spawn_now_ms() + SPAWN_PATIENCE_MS;
    while (namespace_is_used(link) && spawn_now_ms() < until) {
    }
    EXPECT(!namespace_is_used(link));
}

TEST(a_killed_emulator_leaves_no_process_and_no_namespace) /* a machine that fills up with the rests of failed tests */
{
    LAB_NEEDED();
    char link[64];
    start_endless(link);
    kill(lab.emulator.pid, SIGKILL);
    EXPECT_EQ(lab_end(&lab), 128 + SIGKILL);
    expect_gone(link);
}

TEST(an_interrupted_emulator_ends_all_commands_and_reports)
{
    LAB_NEEDED();
    char link[64];
    start_endless(link);
    kill(lab.emulator.pid, SIGINT);
    EXPECT_EQ(lab_end(&lab), 128 + SIGINT);
    expect_gone(link);
    EXPECT(strstr(lab.json, "\"pairs\": [") != NULL);
    EXPECT(strstr(lab.emulator.err_text, "from            to ") != NULL);
}

TEST(a_path_is_cut_and_healed_by_name_while_commands_run) /* faults that reach nobody, or never end */
{
    LAB_NEEDED();
    struct program p;
    char name[64], flag[] = "--name", on[] = "--on", a[] = "a", b[] = "b", dashes[] = "--", pong[] = "pong", steady[] = "steady", first[] = "{first}";
    snprintf(name, sizeof name, "test%d", (int)getpid());
    spawn_path("tests/wan/wan_stream_main", lab.stream);
    char *words[] = {flag, name, on, a, dashes, lab.stream, pong, on, b, dashes, lab.stream, steady, first, NULL};
    EXPECT(lab_start(&lab, two, words));
    EXPECT(program_says(&lab.emulator, "answer\n"));
    EXPECT_EQ(pccl(&p, "wan", "set", name, "cut a to b", NULL), 0);
    EXPECT(program_says(&lab.emulator, "silence\n"));
    lab.emulator.out_size = 0;
    lab.emulator.out_text[0] = 0;
    EXPECT_EQ(pccl(&p, "wan", "set", name, "heal", NULL), 0);
    EXPECT(program_says(&lab.emulator, "answer\n"));
    EXPECT_EQ(pccl(&p, "wan", "set", name, "path", "a", "b", "loss", "100%", NULL), 0);
    EXPECT(program_says(&lab.emulator, "silence\n"));
    EXPECT_EQ(pccl(&p, "wan", "set", name, "path a x loss 1%", NULL), 2);
    EXPECT_STR(p.err_text, "pccl wan: there is no host or site 'x': correct the name\n");
    EXPECT_EQ(pccl(&p, "wan", "set", name, "cut", NULL), 2);
    char *again[] = {flag, name, on, a, dashes, pong, NULL};
    static struct lab other;
    EXPECT(lab_start(&other, two, again));
    EXPECT_EQ(lab_end(&other), LAB_FAILED);
    EXPECT(strstr(other.emulator.err_text, "an emulator has this name: give another --name") != NULL);
    kill(lab.emulator.pid, SIGTERM);
    EXPECT_EQ(lab_end(&lab), 128 + SIGTERM);
    EXPECT(lab_count(&lab, "a", "b", "cut") > 0 && lab_count(&lab, "b", "a", "cut") < 1);
    EXPECT(lab_count(&lab, "b", "a", "lost") > 0);
    EXPECT_EQ(pccl(&p, "wan", "set", name, "heal", NULL), 2);
    EXPECT(strstr(p.err_text, "give the process id that it printed, or its --name") != NULL);
}

TEST(a_line_on_standard_input_changes_the_network)
{
    LAB_NEEDED();
    struct program p;
    char network[] = "/tmp/pccl-wan-XXXXXX", pccl_path[PATH_MAX], script[4 * PATH_MAX], shell[] = "sh", c[] = "-c";
    int fd = mkstemp(network);
    EXPECT(write(fd, two, sizeof two - 1) == (ssize_t)sizeof two - 1);
    close(fd);
    spawn_path("bin/pccl", pccl_path);
    spawn_path("tests/wan/wan_stream_main", lab.stream);
    snprintf(script, sizeof script, "printf 'cut a b\\nnonsense\\n' | %s wan run %s --on a -- %s pong --on b -- %s steady {first} & echo $!; wait",
             pccl_path, network, lab.stream, lab.stream);
    char *args[] = {shell, c, script, NULL};
    EXPECT(program_start(&p, "/bin/sh", args));
    EXPECT(program_says(&p, "silence\n"));
    EXPECT(strstr(p.err_text, "pccl wan: there is no command 'nonsense': give path, cut or heal\n") != NULL);
    kill(atoi(p.out_text), SIGKILL);
    (void)program_end(&p, SIGKILL);
    unlink(network);
}

TEST(a_full_queue_drops_at_its_tail_and_every_packet_is_accounted_for)
{
    LAB_NEEDED();
    char on[] = "--on", b[] = "b", dashes[] = "--", burst[] = "burst", first[] = "{first}", count[] = "2000";
    spawn_path("tests/wan/wan_stream_main", lab.stream);
    char *words[] = {on, b, dashes, lab.stream, burst, first, count, NULL};
    EXPECT_EQ(lab_run(&lab, "[host a]\n[host b]\n[path a b]\nrate = 5mbit\nqueue = 20kB\n", words), 0);
    double forwarded = lab_count(&lab, "b", "a", "packets"), dropped = lab_count(&lab, "b", "a", "dropped");
    EXPECT(dropped > 100);
    EXPECT_EQ((int)(forwarded + dropped), 2000);
    EXPECT(lab_count(&lab, "b", "a", "highest_queue_bytes") >= 19000 && lab_count(&lab, "b", "a", "highest_queue_bytes") <= 21000);
}

TEST(tcp_finds_the_mtu_of_a_path) /* a path that swallows large packets in silence */
{
    LAB_NEEDED();
    char on[] = "--on", a[] = "a", b[] = "b", dashes[] = "--", take[] = "take", give[] = "give", first[] = "{first}", seconds[] = "1", bbr[] = "bbr";
    spawn_path("tests/wan/wan_stream_main", lab.stream);
    char *words[] = {on, a, dashes, lab.stream, take, on, b, dashes, lab.stream, give, first, seconds, bbr, NULL};
    EXPECT_EQ(lab_run(&lab, "[host a]\n[host b]\n[path a b]\nrate = 100mbit\ndelay = 1ms\nmtu = 1000\n", words), 0);
    double packets = lab_count(&lab, "b", "a", "packets"), bytes = lab_count(&lab, "b", "a", "bytes");
    EXPECT(lab_count(&lab, "b", "a", "too_big") > 0);
    EXPECT(packets > 500 && bytes / packets <= 1000 && bytes / packets > 900);
}

TEST(wrong_words_and_files_are_one_sentence_and_status_2)
{
    struct program p;
    static const struct {
        const char *words[6], *error;
    } bad[] = {
        {{"wan"}, "pccl wan: a word is missing: run, set or check, try --help\n"},
        {{"wan", "go"}, "pccl wan: there is no 'pccl wan go': give run, set or check\n"},
        {{"wan", "run"}, "pccl wan: the description of a network is missing: pccl wan run NETWORK.ini -- COMMAND\n"},
        {{"wan", "run", "x.ini"}, "pccl wan: a command is missing: pccl wan run x.ini -- COMMAND\n"},
        {{"wan", "run", "x.ini", "y"}, "pccl wan: 'y' is one word too many: a command stands behind --\n"},
        {{"wan", "run", "x.ini", "--of", "y"}, "pccl wan: unknown flag '--of', try --help\n"},
        {{"wan", "run", "x.ini", "--json"}, "pccl wan: a value is missing after '--json', try --help\n"},
        {{"wan", "run", "x.ini", "--"}, "pccl wan: a command is missing behind --, try --help\n"},
        {{"wan", "check"}, "pccl wan: check takes the description of a network, and nothing else\n"},
        {{"wan", "set", "1"}, "pccl wan: set needs an emulator and an order: such as pccl wan set 1234 'path a b loss 20%'\n"},
    };
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        const char *const *w = bad[i].words;
        EXPECT_EQ(pccl(&p, w[0], w[1], w[2], w[3], w[4], w[5], NULL), 2);
        EXPECT_STR(p.err_text, bad[i].error);
    }
    LAB_NEEDED();
    char dashes[] = "--", program[] = "true", on[] = "--on", c[] = "c";
    char *words[] = {dashes, program, NULL}, *stranger[] = {on, c, dashes, program, NULL};
    EXPECT_EQ(lab_run(&lab, "[host a]\n[path a a]\n", words), 2);
    EXPECT(strstr(lab.emulator.err_text, ":2: a host has no path to itself: name two hosts, or remove the section\n") != NULL);
    EXPECT_EQ(lab_run(&lab, two, stranger), 2);
    EXPECT(strstr(lab.emulator.err_text, "has no host of this name: give one of its hosts\n") != NULL);
    EXPECT_EQ(lab_run(&lab, "[host a]\ncongestion = nosuch\n", words), LAB_FAILED);
    EXPECT(strstr(lab.emulator.err_text, "host 'a': congestion 'nosuch': ") != NULL);
}

TEST(the_examples_are_sound) /* a first try that fails */
{
    static const char *const names[] = {"pair.ini", "pair_lossy.ini", "four.ini", "seed_004.ini"};
    struct program p;
    char path[3 * PATH_MAX], build[PATH_MAX], root[2 * PATH_MAX], here[] = __FILE__;
    LAB_NEEDED();
    *strstr(here, "tests/wan/") = 0;
    spawn_path("", build);
    snprintf(root, sizeof root, "%s%s", here[0] == '/' ? "" : build, here); /* the compiler was called there */
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        snprintf(path, sizeof path, "%sbench/wan/%s", root, names[i]);
        EXPECT_EQ(pccl(&p, "wan", "check", path, NULL), 0);
        EXPECT(strstr(p.out_text, " to ") != NULL);
    }
}
