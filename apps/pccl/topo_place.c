/* topo_place.c - see topo_show.h.
 * SPDX-License-Identifier: MIT */
#include <math.h>
#include <stdlib.h>

#include "pccl/topo_show.h"

#define SITE_GAP 1.2 /* between two sites, in places of a peer */

static const double turn = 6.283185307179586;

bool topo_place(const struct topo_matrix *m, const uint16_t *ring, struct topo_frame frame, struct topo_point *out)
{
    uint32_t *members = calloc((size_t)m->site_count + 1, sizeof *members), used = 0;
    if (members == NULL) {
        return false;
    }
    for (uint32_t i = 0; i < m->count; i++) {
        used += members[m->peers[i].site]++ == 0;
    }
    bool together = used == 1 || used == m->count; /* sites say nothing */
    double places = m->count + (together ? 0 : SITE_GAP * used), at = 0;
    for (uint32_t s = 0; s < (together ? 1 : m->site_count); s++) {
        for (uint32_t k = 0; k < m->count; k++) {
            uint32_t i = ring[k];
            if (together || m->peers[i].site == s) {
                double angle = turn * (at / places - 0.25);
                out[i] = (struct topo_point){frame.x + frame.radius * cos(angle), frame.y + frame.radius * sin(angle), angle};
                at += 1;
            }
        }
        at += members[s] > 0 ? SITE_GAP : 0;
    }
    free(members);
    return true;
}
