/* bench_wan.c - see bench_wan.h.
 * SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#include "pccl/bench_wan.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "pccl/wan_emulator.h"

struct bench_wan {
    struct wan_emulator emulator;
    pid_t engine; /* 0: none */
};

/* The process that moves packets, until it is told to end. */
static int engine_main(struct wan_emulator *e, int ready)
{
    char error[WAN_ERROR];
    sigset_t end;
    int number;
    sigemptyset(&end);
    sigaddset(&end, SIGTERM);
    sigprocmask(SIG_BLOCK, &end, NULL); /* also in the pump's thread */
    if (!wan_emulator_start(e, error)) {
        fprintf(stderr, "pccl bench: --wan: %s\n", error);
        return 1;
    }
    if (write(ready, "", 1) != 1 || sigwait(&end, &number) != 0) {
        return 1;
    }
    wan_emulator_stop(e);
    wan_report_table(stderr, e);
    return wan_report_void(e);
}

static bool start_engine(struct bench_wan *w)
{
    int ends[2];
    char byte;
    if (pipe2(ends, O_CLOEXEC) != 0) {
        return false;
    }
    fflush(NULL); /* or both would write it */
    pid_t parent = getpid();
    w->engine = fork();
    if (w->engine == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        close(ends[0]);
        _exit(getppid() == parent ? engine_main(&w->emulator, ends[1]) : 1);
    }
    close(ends[1]);
    bool ok = w->engine > 0 && read(ends[0], &byte, 1) == 1;
    close(ends[0]);
    return ok;
}

struct bench_wan *bench_wan_begin(struct wan_network *n)
{
    char error[WAN_ERROR] = "no memory";
    struct bench_wan *w = calloc(1, sizeof *w);
    if (w == NULL || !wan_space_permitted(error) || !wan_emulator_open(&w->emulator, n, error)) {
        fprintf(stderr, "pccl bench: --wan: %s\n", error);
        free(w);
        return NULL;
    }
    if (!start_engine(w)) {
        fprintf(stderr, "pccl bench: --wan: start the emulator: %s\n", strerror(errno));
        (void)bench_wan_end(w);
        return NULL;
    }
    return w;
}

bool bench_wan_end(struct bench_wan *w)
{
    int status = 0;
    if (w == NULL) {
        return true;
    }
    if (w->engine > 0) {
        kill(w->engine, SIGTERM);
        waitpid(w->engine, &status, 0);
    }
    wan_emulator_close(&w->emulator);
    free(w);
    return status == 0;
}

bool bench_wan_enter(const struct bench_wan *w, unsigned host)
{
    return wan_space_enter(&w->emulator.spaces[host]);
}

int bench_wan_socket(const struct bench_wan *w, unsigned host)
{
    return wan_space_socket(&w->emulator.spaces[host], SOCK_STREAM);
}

uint32_t bench_wan_address(const struct bench_wan *w, unsigned host)
{
    return w->emulator.network->hosts[host].values.address;
}
