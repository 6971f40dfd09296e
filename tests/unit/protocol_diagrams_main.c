/* protocol_diagrams_main.c - prints the state machines of master and session, from the tables that the code asserts, as
 * the diagrams of docs/internals/PROTOCOL.md (scripts/diagrams.sh puts them there and checks that they are up to date).
 * SPDX-License-Identifier: MIT */
#include <stdio.h>

#include "world/world.h"
#include "session/session.h"

static void print_table(const char *owner, const struct phase_table *t)
{
    printf("\n%s: %s\n\n```mermaid\nstateDiagram-v2\n    [*] --> %s\n", owner, t->machine, t->name[0]);
    for (uint32_t from = 0; from < t->count; from++) {
        for (uint32_t to = 0; to < t->count; to++) {
            if (phase_allowed(t, from, to)) {
                printf("    %s --> %s\n", t->name[from], t->name[to]);
            }
        }
    }
    printf("```\n");
}

int main(void)
{
    uint32_t count;
    const struct phase_table *t = world_phases(&count);
    for (uint32_t i = 0; i < count; i++) {
        print_table("Master", &t[i]);
    }
    t = session_phases(&count);
    for (uint32_t i = 0; i < count; i++) {
        print_table("Peer", &t[i]);
    }
    return 0;
}
