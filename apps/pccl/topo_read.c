/* topo_read.c - a matrix from a file: the description of a network, or what "pccl topo --json" has written.
 *
 * Its one idea: a file that begins with a brace is the second one; no description does.
 * SPDX-License-Identifier: MIT */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "pccl/topo_matrix.h"
#include "pccl/wan_ini.h"

enum { READ_MOST = 256 << 20 }; /* all edges of TOPO_PEERS_MOST, with room to spare */

static uint64_t tighter(uint64_t rate_bps, uint64_t limit_bps)
{
    return limit_bps > 0 && limit_bps < rate_bps ? limit_bps : rate_bps;
}

/* What a stream alone may get on the way from one host to another. */
static uint64_t way_bps(const struct topo_matrix *m, uint64_t path_bps, uint32_t from, uint32_t to)
{
    const struct topo_peer *a = &m->peers[from], *b = &m->peers[to];
    uint64_t rate = tighter(tighter(tighter(TOPO_NO_LIMIT, path_bps), a->up_bps), b->down_bps);
    return a->site == b->site ? rate : tighter(tighter(rate, m->sites[a->site].up_bps), m->sites[b->site].down_bps);
}

static void fill_peers(struct topo_matrix *m, const struct wan_network *n)
{
    m->site_count = n->site_count;
    for (unsigned s = 0; s < n->site_count; s++) {
        m->sites[s] = (struct topo_site){.up_bps = n->sites[s].values.uplink_bps, .down_bps = n->sites[s].values.downlink_bps};
        snprintf(m->sites[s].name, sizeof m->sites[s].name, "%s", n->sites[s].name);
    }
    for (unsigned i = 0; i < n->host_count; i++) {
        const struct wan_host *h = &n->hosts[i];
        m->peers[i] = (struct topo_peer){.up_bps = h->values.uplink_bps, .down_bps = h->values.downlink_bps};
        snprintf(m->peers[i].name, sizeof m->peers[i].name, "%s", h->name);
        if (h->site == WAN_NO_SITE) { /* one of its own */
            snprintf(m->sites[m->site_count].name, sizeof m->sites[0].name, "%s", h->name);
            m->peers[i].site = m->site_count++;
        } else {
            m->peers[i].site = (uint32_t)h->site;
        }
    }
}

static struct topo_matrix *of_network(const char *path, const struct wan_network *n)
{
    uint32_t count = n->host_count;
    struct topo_matrix *m = topo_matrix_new(count + n->site_count); /* sites need not have hosts */
    if (m == NULL) {
        return NULL;
    }
    m->count = count;
    fill_peers(m, n);
    for (uint32_t pair = 0; pair < count * count; pair++) {
        uint32_t from = pair / count, to = pair % count;
        const struct wan_values *v = &n->pair[pair], *back = &n->pair[to * count + from];
        if (from != to) {
            m->cells[pair] = (struct topo_cell){
                .rate_bps = way_bps(m, v->rate_bps, from, to), .rtt_us = (uint32_t)((v->delay_ns + back->delay_ns) / 1000),
                .loss_ppm = (uint32_t)(v->loss * 1e6 + 0.5), .source = TOPO_DESCRIBED,
            };
        }
    }
    const char *base = strrchr(path, '/');
    snprintf(m->title, sizeof m->title, "network of %.100s", base != NULL ? base + 1 : path);
    return m;
}

static struct topo_matrix *read_network(const char *path, char error[TOPO_ERROR])
{
    char why[WAN_ERROR];
    struct wan_network *n = wan_ini_load(path, why);
    if (n == NULL) {
        (void)topo_refuse(error, "%s", why);
        return NULL;
    }
    struct topo_matrix *m = of_network(path, n);
    if (m == NULL) {
        (void)topo_refuse(error, "no memory");
    }
    wan_network_free(n);
    return m;
}

/* All of it with a zero behind it; null: it is not ours to read. */
static char *read_all(FILE *f)
{
    size_t used = 0, room = 1 << 16;
    char *text = malloc(room + 1);
    while (text != NULL && !feof(f) && !ferror(f) && used < READ_MOST) {
        if (used == room) {
            char *larger = realloc(text, 2 * room + 1);
            if (larger == NULL) {
                break;
            }
            text = larger;
            room *= 2;
        }
        used += fread(text + used, 1, room - used, f);
    }
    if (text == NULL || !feof(f) || memchr(text, 0, used) != NULL) {
        free(text);
        return NULL;
    }
    text[used] = 0;
    return text;
}

struct topo_matrix *topo_read(const char *path, char error[TOPO_ERROR])
{
    FILE *f = fopen(path, "re");
    if (f == NULL) {
        (void)topo_refuse(error, "%s: %s: give a file that can be read", path, strerror(errno));
        return NULL;
    }
    char *text = read_all(f);
    fclose(f);
    if (text == NULL) {
        (void)topo_refuse(error, "%s: no text of at most 256 MiB: give the description of a network, or what pccl topo --json has written", path);
        return NULL;
    }
    bool ours = text[strspn(text, " \t\r\n")] == '{';
    struct topo_matrix *m = ours ? topo_parse(path, text, error) : read_network(path, error);
    free(text);
    return m;
}
