/* wan_keep.c - see wan_keep.h.
 * SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#include "pccl/wan_keep.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

enum { EXIT_NOT_RUN = 126, EXIT_NOT_FOUND = 127 };

/* ---- the first process ------------------------------------------------------------------------------------------- */

__attribute__((noreturn)) static void keep_main(int life)
{
    char byte;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    prctl(PR_SET_NAME, "pccl-wan-keep");
    struct sigaction ignore = {.sa_handler = SIG_IGN};
    sigaction(SIGCHLD, &ignore, NULL); /* what is left to it needs no reaping */
    sigaction(SIGINT, &ignore, NULL);
    sigaction(SIGHUP, &ignore, NULL);
    dup2(life, 0);
    (void)syscall(SYS_close_range, 1u, ~0u, 0u);
    while (read(0, &byte, 1) < 0 && errno == EINTR) {
    }
    _exit(0);
}

bool wan_keep_open(struct wan_keep *k, char error[WAN_ERROR])
{
    int ends[2];
    char path[64];
    *k = (struct wan_keep){.first = -1, .life = -1, .spaces = -1};
    if (pipe2(ends, O_CLOEXEC) != 0) {
        snprintf(error, WAN_ERROR, "pipe: %s", strerror(errno));
        return false;
    }
    fflush(NULL);
    k->life = ends[1];
    k->first = (pid_t)syscall(SYS_clone, (unsigned long)(SIGCHLD | CLONE_NEWPID), 0ul, 0ul, 0ul, 0ul);
    if (k->first == 0) {
        close(ends[1]);
        keep_main(ends[0]);
    }
    close(ends[0]);
    snprintf(path, sizeof path, "/proc/%d/ns/pid", (int)k->first);
    k->spaces = k->first > 0 ? open(path, O_RDONLY | O_CLOEXEC) : -1;
    if (k->spaces < 0) {
        snprintf(error, WAN_ERROR, "PID namespace for the commands: %s", strerror(errno));
        wan_keep_close(k);
        return false;
    }
    return true;
}

void wan_keep_close(struct wan_keep *k)
{
    if (k->first > 0) {
        kill(k->first, SIGKILL);
        waitpid(k->first, NULL, 0);
    }
    if (k->life >= 0) {
        close(k->life);
    }
    if (k->spaces >= 0) {
        close(k->spaces);
    }
    *k = (struct wan_keep){.first = -1, .life = -1, .spaces = -1};
}

/* ---- a command --------------------------------------------------------------------------------------------------- */

static void address_text(uint32_t address, char out[INET_ADDRSTRLEN])
{
    struct in_addr in = {.s_addr = htonl(address)};
    (void)inet_ntop(AF_INET, &in, out, INET_ADDRSTRLEN);
}

/* What stands for a name in braces; null: it is left as it is. */
static const char *value_of(const struct wan_network *n, unsigned host, const char *name, size_t length, char text[32])
{
    static const char *const names[] = {"host", "rank", "hosts", "address", "first"};
    size_t which = 0;
    while (which < 5 && (strlen(names[which]) != length || strncmp(names[which], name, length) != 0)) {
        which++;
    }
    switch (which) {
    case 0: return n->hosts[host].name;
    case 1: snprintf(text, 32, "%u", host); return text;
    case 2: snprintf(text, 32, "%u", n->host_count); return text;
    case 3: address_text(n->hosts[host].values.address, text); return text;
    case 4: address_text(n->hosts[0].values.address, text); return text;
    default: return NULL;
    }
}

char *wan_keep_word(const struct wan_network *n, unsigned host, const char *word)
{
    char *out = NULL, text[32];
    size_t size = 0;
    FILE *f = open_memstream(&out, &size);
    if (f == NULL) {
        return NULL;
    }
    for (const char *at = word; *at != 0;) {
        const char *end = *at == '{' ? strchr(at, '}') : NULL;
        const char *value = end != NULL ? value_of(n, host, at + 1, (size_t)(end - at - 1), text) : NULL;
        if (value != NULL) {
            fputs(value, f);
            at = end + 1;
        } else {
            fputc(*at++, f);
        }
    }
    bool ok = ferror(f) == 0;
    ok = fclose(f) == 0 && ok;
    if (!ok) {
        free(out);
        out = NULL;
    }
    return out;
}

static void set_environment(const struct wan_network *n, unsigned host)
{
    static const char *const names[][2] = {
        {"PCCL_WAN_HOST", "{host}"}, {"PCCL_WAN_RANK", "{rank}"}, {"PCCL_WAN_HOSTS", "{hosts}"}, {"PCCL_WAN_ADDRESS", "{address}"},
        {"PCCL_WAN_FIRST", "{first}"},
    };
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        char *value = wan_keep_word(n, host, names[i][1]);
        setenv(names[i][0], value != NULL ? value : "", 1);
        free(value);
    }
}

/* A name and a /proc of the host's own, where the system allows it. */
static void dress_up(const char *name)
{
    if (unshare(CLONE_NEWUTS) == 0) {
        (void)!sethostname(name, strlen(name));
    }
    if (unshare(CLONE_NEWNS) == 0 && mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0) {
        (void)!mount("proc", "/proc", "proc", MS_NOSUID | MS_NODEV | MS_NOEXEC, NULL);
    }
}

__attribute__((noreturn)) static void command_main(const struct wan_launch *l, char **words)
{
    const struct wan_host *host = &l->network->hosts[l->host];
    struct sigaction usual = {.sa_handler = SIG_DFL};
    sigset_t none;
    sigemptyset(&none);
    setpgid(0, 0);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    int input = open("/dev/null", O_RDONLY);
    if (input >= 0) {
        dup2(input, 0);
        close(input);
    }
    if (l->out >= 0) {
        dup2(l->out, 1);
        dup2(l->err, 2);
    }
    if (!wan_space_enter(&l->spaces[l->host])) {
        fprintf(stderr, "pccl wan: enter the namespace of host '%s': %s\n", host->name, strerror(errno));
        _exit(EXIT_NOT_RUN);
    }
    dress_up(host->name);
    set_environment(l->network, l->host);
    sigaction(SIGTTIN, &usual, NULL);
    sigaction(SIGPIPE, &usual, NULL);
    sigprocmask(SIG_SETMASK, &none, NULL);
    execvp(words[0], words);
    int status = errno == ENOENT ? EXIT_NOT_FOUND : EXIT_NOT_RUN;
    fprintf(stderr, "pccl wan: run '%s' on host '%s': %s: give the name or path of a program\n", words[0], host->name, strerror(errno));
    _exit(status);
}

static void free_words(char **words)
{
    for (size_t i = 0; words != NULL && words[i] != NULL; i++) {
        free(words[i]);
    }
    free(words);
}

/* With what stands in braces replaced; null: no memory. */
static char **words_of(const struct wan_launch *l)
{
    size_t count = 0;
    while (l->words[count] != NULL) {
        count++;
    }
    char **words = calloc(count + 1, sizeof *words);
    for (size_t i = 0; words != NULL && i < count; i++) {
        words[i] = wan_keep_word(l->network, l->host, l->words[i]);
        if (words[i] == NULL) {
            free_words(words);
            return NULL;
        }
    }
    return words;
}

struct answer {
    pid_t pid;
    int error;
};

/* Within a helper process: the command becomes a child of the emulator, in the namespace, which only the helper has entered. */
__attribute__((noreturn)) static void helper_main(const struct wan_keep *k, const struct wan_launch *l, char **words, int answer)
{
    struct answer a = {.pid = -1};
    if (setns(k->spaces, CLONE_NEWPID) == 0) {
        a.pid = (pid_t)syscall(SYS_clone, (unsigned long)(SIGCHLD | CLONE_PARENT), 0ul, 0ul, 0ul, 0ul);
    }
    if (a.pid == 0) {
        command_main(l, words);
    }
    a.error = errno;
    _exit(write(answer, &a, sizeof a) != (ssize_t)sizeof a);
}

pid_t wan_keep_launch(const struct wan_keep *k, const struct wan_launch *l, char error[WAN_ERROR])
{
    struct answer a = {.pid = -1};
    int ends[2] = {-1, -1};
    char **words = words_of(l);
    fflush(NULL);
    pid_t helper = words != NULL && pipe2(ends, O_CLOEXEC) == 0 ? fork() : -1;
    a.error = errno;
    if (helper == 0) {
        helper_main(k, l, words, ends[1]);
    }
    if (ends[1] >= 0) {
        close(ends[1]);
    }
    if (helper > 0) {
        (void)!read(ends[0], &a, sizeof a);
        waitpid(helper, NULL, 0);
    }
    if (ends[0] >= 0) {
        close(ends[0]);
    }
    if (a.pid < 0) {
        snprintf(error, WAN_ERROR, "start '%s' on host '%s': %s", l->words[0], l->network->hosts[l->host].name, strerror(a.error));
    }
    free_words(words);
    return a.pid;
}
