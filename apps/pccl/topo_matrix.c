/* topo_matrix.c - see topo_matrix.h.
 * SPDX-License-Identifier: MIT */
#include "pccl/topo_matrix.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "topology/site_find.h"

bool topo_refuse(char error[TOPO_ERROR], const char *format, ...)
{
    va_list list;
    va_start(list, format);
    vsnprintf(error, TOPO_ERROR, format, list);
    va_end(list);
    return false;
}

struct topo_matrix *topo_matrix_new(uint32_t count)
{
    struct topo_matrix *m = calloc(1, sizeof *m);
    if (m == NULL) {
        return NULL;
    }
    m->count = count;
    m->peers = calloc(count, sizeof *m->peers);
    m->sites = calloc(count, sizeof *m->sites);
    m->cells = calloc((size_t)count * count, sizeof *m->cells);
    if (m->peers == NULL || m->sites == NULL || m->cells == NULL) {
        topo_matrix_free(m);
        return NULL;
    }
    return m;
}

void topo_matrix_free(struct topo_matrix *m)
{
    if (m != NULL) {
        free(m->peers);
        free(m->sites);
        free(m->cells);
        free(m->ring);
        free(m);
    }
}

bool topo_matrix_use_ring(struct topo_matrix *m, const uint16_t *order)
{
    m->ring = calloc(m->count, sizeof *m->ring);
    if (m->ring != NULL) {
        memcpy(m->ring, order, m->count * sizeof *m->ring);
    }
    return m->ring != NULL;
}

uint32_t topo_matrix_known(const struct topo_matrix *m)
{
    uint32_t known = 0;
    for (size_t i = 0; i < (size_t)m->count * m->count; i++) {
        known += m->cells[i].source != TOPO_UNKNOWN;
    }
    return known;
}

bool topo_matrix_find_sites(struct topo_matrix *m)
{
    size_t n = m->count;
    uint64_t *rtt_ns = calloc(n * n, sizeof *rtt_ns);
    struct site_address *addresses = calloc(n, sizeof *addresses);
    uint16_t *site = calloc(n, sizeof *site);
    bool good = rtt_ns != NULL && addresses != NULL && site != NULL;
    for (size_t i = 0; good && i < n * n; i++) {
        bool known = m->cells[i].source != TOPO_UNKNOWN && m->cells[i].rtt_us > 0;
        rtt_ns[i] = known ? (uint64_t)m->cells[i].rtt_us * 1000 : SITE_FIND_UNKNOWN;
    }
    m->site_count = good ? (uint32_t)site_find(rtt_ns, addresses, n, site) : 0;
    for (size_t i = 0; good && i < n; i++) {
        m->peers[i].site = site[i];
    }
    for (uint32_t s = 0; s < m->site_count; s++) {
        snprintf(m->sites[s].name, sizeof m->sites[s].name, "site %u", s);
    }
    free(rtt_ns);
    free(addresses);
    free(site);
    return good;
}

const char *topo_source_name(uint8_t source)
{
    static const char *const names[] = {[TOPO_PROBED] = "probe", [TOPO_OBSERVED] = "operations", [TOPO_ASSUMED] = "site", [TOPO_DESCRIBED] = "description"};
    return source < sizeof names / sizeof *names ? names[source] : NULL;
}

bool topo_source_measured(uint8_t source)
{
    return source == TOPO_PROBED || source == TOPO_OBSERVED || source == TOPO_ASSUMED;
}

const char *topo_kind_name(enum topo_kind kind)
{
    static const char *const names[TOPO_KINDS] = {[TOPO_DIRECT] = "direct", [TOPO_RING] = "ring", [TOPO_FOREST] = "forest"};
    return names[kind];
}
