/* wan_command.c - the words of "pccl wan".
 *
 * One idea: what stands behind "--" is a command, as it is, up to the next "--on HOST --".
 * SPDX-License-Identifier: MIT */
#include "pccl/wan_command.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "pccl/wan_emulator.h"
#include "pccl/wan_ini.h"
#include "pccl/wan_run.h"
#include "pccl/wan_socket.h"
#include "pccl/wan_refuse.h"

enum { JOBS_MOST = 1024 };

/* ---- help -------------------------------------------------------------------------------------------------------- */

static int print_help(void)
{
    printf("usage: pccl wan run NETWORK.ini [FLAG VALUE]... -- COMMAND [WORD...]\n"
           "       pccl wan run NETWORK.ini [FLAG VALUE]... --on HOST -- COMMAND [WORD...] [--on HOST -- COMMAND...]...\n"
           "       pccl wan set PID|NAME 'ORDER'\n"
           "       pccl wan check NETWORK.ini\n"
           "\n"
           "Emulates a wide area on this machine: hosts with rates, delays, jitter, losses and queues between them.  Each\n"
           "host is a network namespace; its programs use the kernel's own TCP.  Needs root, or user namespaces and a\n"
           "/dev/net/tun that may be opened.\n"
           "\n"
           "run starts COMMAND once per host, or on the hosts that --on names, and ends when all commands have ended.\n"
           "  --on HOST               the command behind the next -- runs there; may be repeated\n"
           "  --name NAME             set finds the emulator by this name, too\n"
           "  --json FILE             write the report there; -: to standard output\n"
           "  -h, --help              print this and exit\n"
           "In the words of COMMAND {host}, {rank}, {hosts}, {address} and {first} stand for the host's name, its place in\n"
           "the file from 0 on, the number of hosts, its address and the first host's address.  The environment has the\n"
           "same as PCCL_WAN_HOST, PCCL_WAN_RANK, PCCL_WAN_HOSTS, PCCL_WAN_ADDRESS and PCCL_WAN_FIRST.\n"
           "\n"
           "check reads the file and prints the path of each pair of hosts.\n"
           "\n"
           "A line on standard input of run, or set, changes the network; A and B are hosts or sites:\n"
           "  path A B KEY VALUE...   the path in both directions; path A to B: in this one\n"
           "  cut A [B]               from now on nothing passes between them; cut A to B: in this direction\n"
           "  heal [A [B]]            ends cuts\n"
           "\n"
           "NETWORK.ini has these sections; values have units: 100mbit, 2.5gbit, 50ms, 0.1%%, 6MB:\n"
           "  [defaults]              what paths and hosts have that do not say otherwise; seed = N of the losses\n"
           "  [site NAME]             uplink, downlink, uplink_queue, downlink_queue: shared by its hosts\n"
           "  [host NAME]             the same for one host; site, address, mtu, tcp_wmem, tcp_rmem, congestion\n"
           "  [path A B]              rate, queue, delay, jitter, loss, burst, mtu; serves both directions unless there\n"
           "                          is [path B A]; between sites: each pair of their hosts\n"
           "\n"
           "At the end a table on standard error shows for each ordered pair the packets that were forwarded, lost, dropped\n"
           "by a full queue or cut off, the longest queue, and how late packets were written.\n"
           "\n"
           "Exit status: that of the first command that failed; 2 for an argument or a file that has to be fixed; 75 when the\n"
           "run is void, since more than 5 %% of writes were late by over 1 ms; 125 when the emulator failed; 128 + N for\n"
           "signal N.\n");
    return 0;
}

#define refuse(...) (wan_complain(__VA_ARGS__), WAN_EXIT_WORDS)

/* ---- run --------------------------------------------------------------------------------------------------------- */

struct words {
    int count;
    char **at;
};

/* Whether "--on HOST" begins another command there. */
static bool begins_command(const struct words *w, int i)
{
    return i + 2 < w->count && strcmp(w->at[i], "--on") == 0 && (strcmp(w->at[i + 2], "--") == 0 || begins_command(w, i + 2));
}

struct reading {
    struct wan_run run;
    const char *network, *json;
    const char *on[JOBS_MOST]; /* of the command to come */
    size_t on_count;
    struct {
        const char *host; /* null: each host */
        char **words;
    } commands[JOBS_MOST];
    size_t command_count;
};

/* The command from word `i` on; where it ends.  0: it was refused. */
static int take_command(struct reading *r, const struct words *w, int i)
{
    int end = i;
    while (end < w->count && !begins_command(w, end)) {
        end++;
    }
    if (end == i) {
        (void)refuse("a command is missing behind --, try --help");
        return 0;
    }
    char **copy = calloc((size_t)(end - i) + 1, sizeof *copy);
    size_t uses = r->on_count > 0 ? r->on_count : 1;
    if (copy == NULL || r->command_count + uses > JOBS_MOST) {
        free(copy);
        (void)refuse("more than %d commands: start fewer", JOBS_MOST);
        return 0;
    }
    memcpy(copy, w->at + i, (size_t)(end - i) * sizeof *copy);
    for (size_t use = 0; use < uses; use++) {
        r->commands[r->command_count].host = r->on_count > 0 ? r->on[use] : NULL;
        r->commands[r->command_count++].words = copy;
    }
    r->on_count = 0;
    return end;
}

/* One word before a command; where the next one is, 0: it was refused. */
static int take_word(struct reading *r, const struct words *w, int i)
{
    const char *word = w->at[i];
    const char **to = strcmp(word, "--on") == 0 ? &r->on[r->on_count < JOBS_MOST - 1 ? r->on_count : 0]
                      : strcmp(word, "--name") == 0 ? &r->run.name
                      : strcmp(word, "--json") == 0 ? &r->json
                                                    : NULL;
    if (to == NULL && word[0] != '-' && r->network == NULL) {
        r->network = word;
        return i + 1;
    }
    if (to == NULL) {
        (void)refuse(word[0] == '-' ? "unknown flag '%s', try --help" : "'%s' is one word too many: a command stands behind --", word);
        return 0;
    }
    if (i + 1 >= w->count || w->at[i + 1][0] == 0 || strcmp(w->at[i + 1], "--") == 0) {
        (void)refuse("a value is missing after '%s', try --help", word);
        return 0;
    }
    *to = w->at[i + 1];
    r->on_count += strcmp(word, "--on") == 0 && r->on_count < JOBS_MOST - 1;
    return i + 2;
}

static bool read_words(struct reading *r, const struct words *w)
{
    for (int i = 0; i < w->count;) {
        i = strcmp(w->at[i], "--") == 0 ? take_command(r, w, i + 1) : take_word(r, w, i);
        if (i == 0) {
            return false;
        }
    }
    if (r->network == NULL) {
        (void)refuse("the description of a network is missing: pccl wan run NETWORK.ini -- COMMAND");
        return false;
    }
    if (r->command_count == 0 || r->on_count > 0) {
        (void)refuse("a command is missing: pccl wan run %s -- COMMAND", r->network);
        return false;
    }
    return true;
}

/* Each command with the host on which it runs; null: it was refused. */
static struct wan_job *list_jobs(struct reading *r, const struct wan_network *n)
{
    struct wan_job *jobs = calloc(r->command_count * (size_t)n->host_count, sizeof *jobs);
    for (size_t i = 0; jobs != NULL && i < r->command_count; i++) {
        const char *name = r->commands[i].host;
        int host = name != NULL ? wan_network_host(n, name) : 0;
        if (host < 0) {
            (void)refuse("--on %s: %s has no host of this name: give one of its hosts", name, r->network);
            free(jobs);
            return NULL;
        }
        for (unsigned h = 0; h < n->host_count; h++) {
            if (name == NULL || h == (unsigned)host) {
                jobs[r->run.job_count++] = (struct wan_job){.host = h, .words = r->commands[i].words};
            }
        }
    }
    return jobs;
}

static int run_network(struct reading *r, struct wan_network *n)
{
    struct wan_job *jobs = list_jobs(r, n);
    if (jobs == NULL) {
        return WAN_EXIT_WORDS;
    }
    bool to_output = r->json != NULL && strcmp(r->json, "-") == 0;
    r->run.network = n;
    r->run.jobs = jobs;
    r->run.json = to_output ? stdout : r->json != NULL ? fopen(r->json, "we") : NULL;
    int status;
    if (r->json != NULL && r->run.json == NULL) {
        status = refuse("--json '%s' cannot be written: %s: give another path", r->json, strerror(errno));
    } else {
        status = wan_run_all(&r->run);
    }
    if (r->run.json != NULL && (to_output ? fflush(stdout) : fclose(r->run.json)) != 0) {
        (void)refuse("--json: %s", strerror(errno));
        status = status == 0 ? WAN_EXIT_FAILED : status;
    }
    free(jobs);
    return status;
}

static int run_words(int count, char **words)
{
    static struct reading r; /* large, and zero */
    const struct words w = {count, words};
    char error[WAN_ERROR];
    int status = WAN_EXIT_WORDS;
    if (read_words(&r, &w)) {
        struct wan_network *n = wan_ini_load(r.network, error);
        status = n != NULL ? run_network(&r, n) : refuse("%s", error);
        wan_network_free(n);
    }
    for (size_t i = 0; i < r.command_count; i++) {
        if (i == 0 || r.commands[i].words != r.commands[i - 1].words) {
            free(r.commands[i].words);
        }
    }
    return status;
}

/* ---- set, check -------------------------------------------------------------------------------------------------- */

static int set_words(int count, char **words)
{
    char line[WAN_SOCKET_LINE] = "", answer[WAN_ERROR] = "";
    size_t at = 0;
    if (count < 2) {
        return refuse("set needs an emulator and an order: such as pccl wan set 1234 'path a b loss 20%%'");
    }
    for (int i = 1; i < count && at < sizeof line; i++) {
        at += (size_t)snprintf(line + at, sizeof line - at, "%s%s", i > 1 ? " " : "", words[i]);
    }
    if (at >= sizeof line || strchr(line, '\n') != NULL) {
        return refuse("an order is one line of at most %zu characters", sizeof line - 1);
    }
    return wan_socket_ask(words[0], line, answer) ? 0 : refuse("%s", answer);
}

static void print_rate(const char *name, uint64_t bps)
{
    if (bps > 0) {
        printf(", %s %.9g Mb/s", name, (double)bps / 1e6);
    }
}

static int check_words(int count, char **words)
{
    char error[WAN_ERROR];
    if (count != 1) {
        return refuse("check takes the description of a network, and nothing else");
    }
    struct wan_network *n = wan_ini_load(words[0], error);
    if (n == NULL) {
        return refuse("%s", error);
    }
    for (unsigned i = 0; i < n->host_count; i++) {
        const struct wan_values *v = &n->hosts[i].values;
        printf("%s: %u.%u.%u.%u", n->hosts[i].name, v->address >> 24, v->address >> 16 & 255, v->address >> 8 & 255, v->address & 255);
        print_rate("uplink", v->uplink_bps);
        print_rate("downlink", v->downlink_bps);
        printf("\n");
    }
    for (unsigned pair = 0; pair < n->host_count * n->host_count; pair++) {
        const struct wan_values *v = &n->pair[pair];
        if (pair / n->host_count != pair % n->host_count) {
            printf("%s to %s: delay %.9g ms", n->hosts[pair / n->host_count].name, n->hosts[pair % n->host_count].name, (double)v->delay_ns / 1e6);
            print_rate("rate", v->rate_bps);
            printf(v->loss > 0 ? ", loss %.9g %%\n" : "\n", v->loss * 100);
        }
    }
    wan_network_free(n);
    return 0;
}

int wan_command(int count, char **words)
{
    const char *word = count > 0 ? words[0] : "";
    for (int i = 0; i < count && strcmp(words[i], "--") != 0; i++) {
        if (strcmp(words[i], "-h") == 0 || strcmp(words[i], "--help") == 0) {
            return print_help();
        }
    }
    if (strcmp(word, "run") == 0) {
        return run_words(count - 1, words + 1);
    }
    if (strcmp(word, "set") == 0) {
        return set_words(count - 1, words + 1);
    }
    if (strcmp(word, "check") == 0) {
        return check_words(count - 1, words + 1);
    }
    return count == 0 ? refuse("a word is missing: run, set or check, try --help") : refuse("there is no 'pccl wan %s': give run, set or check", word);
}
