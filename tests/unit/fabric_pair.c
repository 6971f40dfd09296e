/* fabric_pair.c - two ports of libfabric in one process, by its tcp provider over loopback.
 * SPDX-License-Identifier: MIT */
#include "fabric_pair.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#define CHECK(p, condition)                                                                                            \
    do {                                                                                                               \
        if (!(condition)) {                                                                                            \
            printf("%s:%d: expected %s\n", __FILE__, __LINE__, #condition);                                            \
            ++*(p)->failures;                                                                                          \
        }                                                                                                              \
    } while (0)

static void told(void *user)
{
    ((struct end *)user)->told = true;
}

bool pair_open(struct pair *p, int *failures)
{
    struct err err = {.text = ""};
    setenv("FI_PROVIDER", "tcp", 1); /* before it is loaded */
    setenv("FI_TCP_IFACE", "lo", 1);
    memset(p, 0, sizeof *p);
    p->failures = failures;
    for (int i = 0; i < PORTS; i++) {
        if (fabric_port_open(FABRIC_ALWAYS, &p->port[i], &err) != PCCL_OK) {
            CHECK(p, i == 0);
            return false;
        }
        CHECK(p, loop_open(&p->loop[i], &err) == PCCL_OK);
        CHECK(p, fabric_port_watch(p->port[i], &p->loop[i], &err) == PCCL_OK);
    }
    return true;
}

void pair_close(struct pair *p)
{
    for (int i = 0; i < PORTS; i++) {
        for (int k = 0; k < LINKS; k++) {
            if (p->end[k][i].open) {
                p->end[k][i].t.ops->close(&p->end[k][i].t);
            }
        }
        fabric_port_unwatch(p->port[i]);
        fabric_port_close(p->port[i]);
        loop_close(&p->loop[i]);
    }
}

bool pair_open_end(struct end *e)
{
    e->open = true;
    return e->t.ops->open(&e->t, told, e);
}

void pair_link(struct pair *p, int k)
{
    int fd[PORTS];
    struct end *e = p->end[k];
    CHECK(p, socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fd) == 0);
    for (int i = 0; i < PORTS; i++) {
        transport_tcp_take(&e[i].t, fd[i], &(struct sock_bulk){.buffers = {SOCK_BUFFER, SOCK_BUFFER}});
        CHECK(p, fabric_port_offer(p->port[i], &e[i].name));
    }
    for (int i = 0; i < PORTS; i++) {
        CHECK(p, fabric_fits(p->port[i], &e[1 - i].name));
        CHECK(p, transport_fabric_take(&e[i].t, p->port[i], &e[i].name, &e[1 - i].name) == PCCL_OK);
    }
}

void pair_turn(struct pair *p)
{
    for (int i = 0; i < PORTS; i++) {
        loop_poll(&p->loop[i], 0);
    }
}

static unsigned char value_at(int link, int from, uint64_t i)
{
    return (unsigned char)(i * 29 + (i >> 11) + (uint64_t)link * 7 + (uint64_t)from);
}

pccl_status pair_say(struct pair *p, int k, int i, struct rng *rng, size_t most)
{
    static unsigned char out[300000];
    struct end *e = &p->end[k][i];
    size_t n = 1 + rng_below(rng, most < sizeof out ? most : sizeof out), cut = rng_below(rng, n), moved;
    for (size_t b = 0; b < n; b++) {
        out[b] = value_at(k, i, e->sent + b);
    }
    struct iovec parts[2] = {{out, cut}, {out + cut, n - cut}};
    pccl_status st = e->t.ops->send(&e->t, parts, 2, &moved);
    e->sent += moved;
    CHECK(p, (st == PCCL_OK) == (moved > 0));
    return st;
}

pccl_status pair_listen(struct pair *p, int k, int i, struct rng *rng)
{
    static unsigned char in[300000];
    struct end *e = &p->end[k][i];
    size_t n = 1 + rng_below(rng, sizeof in), cut = rng_below(rng, n), moved, wrong = 0;
    struct iovec parts[2] = {{in, cut}, {in + cut, n - cut}};
    pccl_status st = e->t.ops->receive(&e->t, parts, 2, &moved);
    for (size_t b = 0; b < moved; b++) {
        wrong += in[b] != value_at(k, 1 - i, e->got + b);
    }
    CHECK(p, wrong == 0);
    e->got += moved;
    return st;
}

void pair_hear(struct pair *p, int k)
{
    for (int i = 0; i < PORTS; i++) {
        if (p->end[k][i].open) {
            CHECK(p, p->end[k][i].t.ops->hear(&p->end[k][i].t) == PCCL_OK);
        }
    }
}
