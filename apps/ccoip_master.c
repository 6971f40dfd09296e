/* ccoip_master.c - the master as a program: options, signals, one line that says where it listens.
 *
 * One idea: everything that decides is in the library; this file turns words into its options and its errors into one
 * sentence.  Exit status: 0 after SIGINT or SIGTERM, or without peers where that was asked for, 2 for what the user can mend.
 * SPDX-License-Identifier: MIT */
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ccoip.h"
#include "core/clock.h"
#include "core/log.h"
#include "master/master_status.h" /* beside this file */
#include "server/server.h"
#include "net/addr.h"
#include "pccl.h"

static const char usage[] =
    "usage: ccoip_master [--listen ADDRESS[:PORT]] [--log-level LEVEL] [--dead-ms N]\n"
    "                    [--idle-exit SECONDS]\n"
    "       ccoip_master --status ADDRESS[:PORT]\n"
    "\n"
    "Keeps the membership of training runs.  Peers connect to it.  SIGINT or SIGTERM stops it.\n"
    "\n"
    "  --listen ADDRESS[:PORT]  accept peers at this address: a name, 1.2.3.4:5, [::1]:5\n"
    "                           (default: all addresses, IPv4 and IPv6, port 48148);\n"
    "                           port 0 takes any free port, shown by the line \"listening at ...\"\n"
    "  --log-level LEVEL        trace, debug, info, warn, error or none, on standard error (default: info)\n"
    "  --dead-ms N              exclude a peer after N ms of silence, 100 to 3600000 (default: 10000)\n"
    "  --idle-exit SECONDS      exit when no peer has been connected for so long, 1 to 604800 (default: never)\n"
    "  --status ADDRESS[:PORT]  ask a running master, print one line per world, and exit\n"
    "  -h, --help               print this and exit\n"
    "  -V, --version            print the version and exit\n";

static char program[] = "ccoip_master"; /* in front of each line of the log */

struct options {
    struct net_address listen;
    struct server_options server;
    enum log_level level;
    struct net_address asked;  /* port 0: nobody */
    bool done; /* help or version has been printed */
};

static bool fail(const char *what, const char *why)
{
    fprintf(stderr, "ccoip_master: %s%s\n", what, why);
    return false;
}

/* The word in quotes, so that one that is empty or has spaces can be seen. */
static bool fail_word(const char *what, const char *word, const char *remedy)
{
    fprintf(stderr, "ccoip_master: %s '%s'%s\n", what, word, remedy);
    return false;
}

static bool read_level(const char *text, struct options *o)
{
    return log_level_read(text, &o->level) || fail_word("--log-level takes trace, debug, info, warn, error or none, not", text, "");
}

static bool read_number(const char *text, long least, long most, long *out)
{
    char *end;
    errno = 0;
    *out = strtol(text, &end, 10);
    bool digits = text[0] >= '0' && text[0] <= '9'; /* strtol would skip spaces and take a sign */
    return errno == 0 && digits && *end == 0 && *out >= least && *out <= most;
}

static bool read_dead(const char *text, struct options *o)
{
    long ms;
    if (!read_number(text, 100, 3600000, &ms)) {
        return fail_word("--dead-ms takes a number from 100 to 3600000, not", text, "");
    }
    o->server.dead_ns = ms * CLOCK_MS;
    return true;
}

static bool read_idle(const char *text, struct options *o)
{
    long seconds;
    if (!read_number(text, 1, 604800, &seconds)) {
        return fail_word("--idle-exit takes a number of seconds from 1 to 604800, not", text, "");
    }
    o->server.idle_ns = seconds * CLOCK_S;
    return true;
}

static bool read_listen(const char *text, struct options *o)
{
    struct err err;
    return addr_parse(text, CCOIP_PROTOCOL_PORT_MASTER, &o->listen, &err) == PCCL_OK || fail("--listen: ", err.text);
}

static bool read_status(const char *text, struct options *o)
{
    struct err err;
    if (addr_parse(text, CCOIP_PROTOCOL_PORT_MASTER, &o->asked, &err) != PCCL_OK) {
        return fail("--status: ", err.text);
    }
    return o->asked.port != 0 || fail("--status: ", "port 0: give the port at which the master listens");
}

/* One option; *index moves on when its value was the next word. */
static bool read_option(int argc, char **argv, int *index, struct options *o)
{
    static const struct {
        const char *name;
        bool (*read)(const char *text, struct options *o);
    } known[] = {{"--listen", read_listen}, {"--log-level", read_level}, {"--dead-ms", read_dead},
                 {"--idle-exit", read_idle}, {"--status", read_status}};
    const char *word = argv[*index];
    if (strcmp(word, "--help") == 0 || strcmp(word, "-h") == 0) {
        fputs(usage, stdout);
        return o->done = true;
    }
    if (strcmp(word, "--version") == 0 || strcmp(word, "-V") == 0) {
        printf("ccoip_master %d.%d.%d\n", PCCL_VERSION_MAJOR, PCCL_VERSION_MINOR, PCCL_VERSION_PATCH);
        return o->done = true;
    }
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++) {
        size_t length = strlen(known[i].name);
        if (strncmp(word, known[i].name, length) != 0 || (word[length] != 0 && word[length] != '=')) {
            continue;
        }
        if (word[length] == '=') {
            return known[i].read(word + length + 1, o);
        }
        if (*index + 1 >= argc) {
            return fail_word("a value is missing after", word, ", try --help");
        }
        return known[i].read(argv[++*index], o);
    }
    return fail_word("unknown option", word, ", try --help");
}

struct ender { /* the thread that ends the master at a signal; a handler could interrupt a thread that holds a lock */
    pthread_t thread;
    struct server *server;
    sigset_t end;
};

/* The signals that end it are blocked in all threads, so one that comes early waits until the ender asks for it. */
static void hold_back(sigset_t *end)
{
    sigemptyset(end);
    sigaddset(end, SIGINT);
    sigaddset(end, SIGTERM);
    pthread_sigmask(SIG_BLOCK, end, NULL);
}

static void *end_at_signal(void *user)
{
    struct ender *e = user;
    int number;
    (void)sigwait(&e->end, &number);
    (void)server_stop(e->server);
    return NULL;
}

static bool serve(struct ender *e)
{
    struct net_address bound;
    char text[ADDR_TEXT];
    int rc = pthread_create(&e->thread, NULL, end_at_signal, e);
    if (rc != 0) {
        fail("start the thread that waits for signals: ", strerror(rc));
        (void)server_stop(e->server);
    } else if (server_address(e->server, &bound) == PCCL_OK) {
        printf("ccoip_master: listening at %s\n", addr_format(&bound, text));
        fflush(stdout);
    }
    (void)server_wait(e->server);
    if (rc == 0) {
        pthread_kill(e->thread, SIGTERM); /* no signal came if the master ended by itself */
        pthread_join(e->thread, NULL);
    }
    return rc == 0;
}

int main(int argc, char **argv)
{
    struct options o = {.listen = {.family = 4, .port = CCOIP_PROTOCOL_PORT_MASTER}, .level = LOG_INFO};
    struct err err;
    struct ender e = {0};
    for (int i = 1; i < argc; i++) {
        if (!read_option(argc, argv, &i, &o)) {
            return 2;
        }
        if (o.done) {
            return 0;
        }
    }
    if (o.asked.port != 0) {
        return master_status(&o.asked, stdout, &err) == PCCL_OK ? 0 : (fail("--status: ", err.text), 2);
    }
    log_set_sink(log_stderr, o.level, (struct log_to){.user = program});
    hold_back(&e.end);
    if (server_new(&o.listen, &o.server, &e.server, &err) != PCCL_OK || server_start(e.server, &err) != PCCL_OK) {
        fail("", err.text);
        (void)server_free(e.server);
        return 2;
    }
    bool served = serve(&e);
    (void)server_free(e.server);
    return served ? 0 : 2;
}
