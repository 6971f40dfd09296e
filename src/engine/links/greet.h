/* greet.h - accepted connections that have not said who they are.
 * SPDX-License-Identifier: MIT */
#ifndef PCCL_ENGINE_GREET_H
#define PCCL_ENGINE_GREET_H

#include "engine/links/link.h"

struct greeting {
    struct list all; /* in engine.greetings */
    struct engine *engine;
    struct conn *conn;
    struct net_address from;
    int64_t deadline;
    bool heard;      /* hello and run are known; the session said "not yet" */
    uint64_t run;
    struct msg_hello hello;
};
/* Accepts one connection, `host`: of a process of this host; false: nobody waits. */
bool greet_accept(struct engine *e, bool host);
/* No lock held: asks again about those held back, ends those that took too long. */
int64_t greet_tick(struct engine *e, int64_t now);
void greet_drop_all(struct engine *e);

#endif
