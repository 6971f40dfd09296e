/* readme_names.h - what the listing of README.md uses and does not declare: a model of one parameter, and a main function.
 *
 * The master is the one of the test.  Steps that are made before all three peers have come do not count, so that it does not
 * matter when each of them starts.
 * SPDX-License-Identifier: MIT */
#include <pccl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>

#define pcclParseAddress(text, port, out) pcclParseAddress((text) != NULL ? getenv("README_MASTER") : NULL, port, out)

enum { README_PEERS = 3 };

static pcclComm_t *comm;
static uint64_t steps = 60;
static float parameter = 1, grads[1];
static pcclTensorInfo_t tensor = {.name = "parameter", .data = &parameter, .count = 1, .datatype = pcclFloat};
static pcclSharedState_t state = {.count = 1, .infos = &tensor};
static pcclReduceDescriptor_t desc = {.count = 1, .op = pcclSum, .src_descriptor = {.datatype = pcclFloat}};

static int readme_world(void)
{
    int world = 0;
    pcclGetAttribute(comm, PCCL_ATTRIBUTE_PEER_GROUP_WORLD_SIZE, &world);
    return world;
}

/* Differs between the peers and from step to step. */
static void compute_gradients(void)
{
    static int complete, together, number;
    if (number == 0) {
        pcclPeerInfo_t self;
        number = pcclGetSelf(comm, &self) == pcclSuccess ? 1 + (int)self.id % 100 : 1;
    }
    complete = complete || readme_world() >= README_PEERS;
    steps += complete ? 0 : 1;
    together += complete;
    const char *dies_at = getenv("README_DIES_AT");
    if (together > 0 && together == atoi(dies_at != NULL ? dies_at : "0")) {
        raise(SIGKILL);
    }
    grads[0] = (float)number / (float)(3 + state.revision % 7);
}

static void apply_gradients(void)
{
    parameter = parameter * 0.5f + grads[0];
    printf("%llu %a %d\n", (unsigned long long)state.revision, (double)parameter, readme_world());
}

void fragment_1(void);

int main(void)
{
    fragment_1();
    return comm == NULL || state.revision < 60;
}
