/* loop_model.c - what the loop of GETTING_STARTED.md calls "yours": a model of which one parameter is looked at.
 *
 * The master is the one of the test.  Steps that are made before all three peers have come do not count, so that it does not
 * matter when each of them starts.
 * SPDX-License-Identifier: MIT */
#include <pccl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>

#define pcclParseAddress(text, port, out) pcclParseAddress((text) != NULL ? getenv("LOOP_MASTER") : NULL, port, out)

/* The listing as it stands, written by the test. */
#include "program_1.c"

enum { LOOP_PEERS = 3, LOOP_STEPS = 60 };

float weights[1000] = {1}, gradients[1000];
static int loop_steps; /* made since all were there */

static int loop_world(void)
{
    int world = 0;
    pcclGetAttribute(comm, PCCL_ATTRIBUTE_PEER_GROUP_WORLD_SIZE, &world);
    return world;
}

bool finished(void)
{
    return loop_steps >= LOOP_STEPS;
}

/* Differs between the peers and from step to step. */
void compute_gradients(void)
{
    static int number;
    if (number == 0) {
        pcclPeerInfo_t self;
        number = pcclGetSelf(comm, &self) == pcclSuccess ? 1 + (int)self.id % 100 : 1;
    }
    loop_steps += loop_steps > 0 || loop_world() >= LOOP_PEERS;
    const char *dies_at = getenv("LOOP_DIES_AT");
    if (loop_steps > 0 && loop_steps == atoi(dies_at != NULL ? dies_at : "0")) {
        raise(SIGKILL);
    }
    gradients[0] = (float)number / (float)(3 + state.revision % 7);
}

void apply_gradients(void)
{
    weights[0] = weights[0] * 0.5f + gradients[0];
    printf("%llu %a %d\n", (unsigned long long)state.revision, (double)weights[0], loop_world());
}
