/* topo_parse.c - reads a matrix as topo_json_write has written it.
 *
 * Its one idea: keys come in any order and unknown ones are passed over, but peers stand before what names them by number.
 * Invariant: nothing of the text is believed before it is checked; an error names the line and what was expected there.
 * SPDX-License-Identifier: MIT */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "pccl/topo_matrix.h"

enum { PARSE_KEY = 32, PARSE_DEPTH = 32 };

struct parse {
    const char *path, *text, *at; /* borrowed */
    char *error;
    bool bad;
    struct topo_matrix *m; /* null: no peers yet */
    bool linked;           /* edges have come */
    char title[2 * TOPO_NAME];
    struct topo_site *sites; /* owned, until there are peers */
    uint32_t site_count;
};

/* ---- text ---------------------------------------------------------------------------------------------------------- */

__attribute__((format(printf, 2, 3))) static void fail(struct parse *p, const char *format, ...)
{
    char why[200];
    va_list list;
    int line = 1;
    if (p->bad) {
        return; /* the first mistake counts */
    }
    for (const char *c = p->text; c < p->at; c++) {
        line += *c == '\n';
    }
    va_start(list, format);
    vsnprintf(why, sizeof why, format, list);
    va_end(list);
    p->bad = true;
    (void)topo_refuse(p->error, "%s:%d: %s", p->path, line, why);
}

static char peek(struct parse *p)
{
    p->at += strspn(p->at, " \t\r\n");
    return *p->at;
}

static bool take(struct parse *p, char wanted)
{
    if (p->bad || peek(p) != wanted) {
        fail(p, "%s, expected '%c': is it a file of pccl topo --json?", *p->at == 0 ? "the file ends here" : "this cannot be read", wanted);
        return false;
    }
    p->at++;
    return true;
}

/* One character of a string, \uXXXX included; what is no plain character becomes a question mark. */
static char take_character(struct parse *p)
{
    static const char escapes[] = "\"\\/";
    unsigned char c = (unsigned char)*p->at++;
    if (c != '\\') {
        return c < 0x20 || c == 0x7F ? '?' : (char)c;
    }
    c = (unsigned char)*p->at;
    p->at += c != 0;
    if (c == 'u') {
        p->at += strspn(p->at, "0123456789abcdefABCDEF") >= 4 ? 4 : 0;
        return '?';
    }
    return c != 0 && strchr(escapes, c) != NULL ? (char)c : '?';
}

/* What does not fit is cut off. */
static void take_string(struct parse *p, char *out, size_t size)
{
    size_t used = 0;
    if (!take(p, '"')) {
        return;
    }
    while (*p->at != '"' && *p->at != 0) {
        char c = take_character(p);
        if (used + 1 < size) {
            out[used++] = c;
        }
    }
    out[used] = 0;
    take(p, '"');
}

/* A whole number. */
static uint64_t take_whole(struct parse *p, const char *what, uint64_t most)
{
    char c = peek(p);
    size_t digits = strspn(p->at, "0123456789");
    uint64_t value = digits > 0 && digits < 20 ? strtoull(p->at, NULL, 10) : 0;
    const char *behind = p->at + digits;
    if (c == 0 || digits == 0 || digits >= 20 || *behind == '.' || *behind == 'e' || *behind == 'E' || value > most) {
        fail(p, "%s takes a whole number from 0 to %llu", what, (unsigned long long)most);
        return 0;
    }
    p->at = behind;
    return value;
}

static bool take_null(struct parse *p)
{
    bool null = peek(p) == 'n' && strncmp(p->at, "null", 4) == 0;
    p->at += null ? 4 : 0;
    return null;
}

/* Whether another member follows, in an object or a list that ends with `end`. */
static bool next_item(struct parse *p, bool *first, char end)
{
    if (!p->bad && peek(p) == end) {
        p->at++;
        return false;
    }
    bool good = !p->bad && (*first || take(p, ','));
    *first = false;
    return good;
}

static bool next_key(struct parse *p, bool *first, char key[PARSE_KEY])
{
    if (!next_item(p, first, '}')) {
        return false;
    }
    take_string(p, key, PARSE_KEY);
    return take(p, ':');
}

static void pass_over(struct parse *p, int depth)
{
    char c = peek(p), key[PARSE_KEY];
    bool first = true;
    if (depth == PARSE_DEPTH) {
        fail(p, "lists within lists, %d deep", PARSE_DEPTH);
    } else if (c == '{') {
        p->at++;
        while (next_key(p, &first, key)) {
            pass_over(p, depth + 1);
        }
    } else if (c == '[') {
        p->at++;
        while (next_item(p, &first, ']')) {
            pass_over(p, depth + 1);
        }
    } else if (c == '"') {
        take_string(p, key, sizeof key);
    } else {
        size_t length = strcspn(p->at, ",]} \t\r\n");
        if (length == 0) {
            fail(p, "a value is missing");
        }
        p->at += length;
    }
}

/* ---- sites, peers -------------------------------------------------------------------------------------------------- */

struct entry {
    char name[TOPO_NAME];
    uint64_t up_bps, down_bps, far_up_bps, far_down_bps, site;
};

static struct entry take_entry(struct parse *p)
{
    struct entry e = {.name = "?"};
    char key[PARSE_KEY];
    bool first = true;
    if (!take(p, '{')) {
        return e;
    }
    while (next_key(p, &first, key)) {
        if (strcmp(key, "name") == 0) {
            take_string(p, e.name, sizeof e.name);
        } else if (strcmp(key, "site") == 0) {
            e.site = take_whole(p, "site", TOPO_PEERS_MOST);
        } else if (strcmp(key, "up_bps") == 0) {
            e.up_bps = take_whole(p, "up_bps", UINT64_MAX / 16);
        } else if (strcmp(key, "down_bps") == 0) {
            e.down_bps = take_whole(p, "down_bps", UINT64_MAX / 16);
        } else if (strcmp(key, "far_up_bps") == 0) {
            e.far_up_bps = take_whole(p, "far_up_bps", UINT64_MAX / 16);
        } else if (strcmp(key, "far_down_bps") == 0) {
            e.far_down_bps = take_whole(p, "far_down_bps", UINT64_MAX / 16);
        } else {
            pass_over(p, 0);
        }
    }
    return e;
}

static void take_sites(struct parse *p)
{
    bool first = true;
    if (p->sites != NULL || !take(p, '[')) {
        fail(p, "sites are there twice");
        return;
    }
    p->sites = calloc(TOPO_PEERS_MOST, sizeof *p->sites);
    while (p->sites != NULL && next_item(p, &first, ']')) {
        struct entry e = take_entry(p);
        if (p->site_count == TOPO_PEERS_MOST) {
            fail(p, "more than %d sites", TOPO_PEERS_MOST);
            return;
        }
        struct topo_site *s = &p->sites[p->site_count++];
        *s = (struct topo_site){.up_bps = e.up_bps, .down_bps = e.down_bps};
        snprintf(s->name, sizeof s->name, "%s", e.name);
    }
}

static void take_peers(struct parse *p)
{
    struct topo_peer *list = calloc(TOPO_PEERS_MOST, sizeof *list);
    uint32_t count = 0;
    bool first = true;
    if (p->m != NULL || list == NULL || !take(p, '[')) {
        fail(p, list == NULL ? "no memory" : "peers are there twice");
        free(list);
        return;
    }
    while (next_item(p, &first, ']')) {
        struct entry e = take_entry(p);
        if (count == TOPO_PEERS_MOST || e.site >= p->site_count) {
            fail(p, count == TOPO_PEERS_MOST ? "more than 1024 peers" : "the peer's site is not among the sites, which stand before the peers");
            break;
        }
        list[count] = (struct topo_peer){.site = (uint32_t)e.site, .up_bps = e.up_bps, .down_bps = e.down_bps,
                                         .far_up_bps = e.far_up_bps, .far_down_bps = e.far_down_bps};
        snprintf(list[count++].name, TOPO_NAME, "%s", e.name);
    }
    if (!p->bad && count == 0) {
        fail(p, "there are no peers");
    }
    uint32_t most = count > p->site_count ? count : p->site_count; /* sites need not have peers */
    p->m = p->bad ? NULL : topo_matrix_new(most);
    if (p->m != NULL) {
        p->m->count = count;
        p->m->site_count = p->site_count;
        memcpy(p->m->peers, list, count * sizeof *list);
        memcpy(p->m->sites, p->sites, p->site_count * sizeof *p->sites);
    }
    free(list);
}

/* ---- edges, ring --------------------------------------------------------------------------------------------------- */

static uint8_t take_source(struct parse *p)
{
    char word[PARSE_KEY] = "";
    take_string(p, word, sizeof word);
    for (uint8_t source = TOPO_PROBED; source <= TOPO_DESCRIBED; source++) {
        if (strcmp(word, topo_source_name(source)) == 0) {
            return source;
        }
    }
    fail(p, "source is \"%s\": expected \"probe\", \"operations\", \"site\" or \"description\"", word);
    return TOPO_UNKNOWN;
}

static void take_edge(struct parse *p)
{
    struct topo_cell c = {.source = TOPO_PROBED};
    uint32_t ends[2] = {p->m->count, p->m->count}, most = p->m->count - 1;
    char key[PARSE_KEY];
    bool first = true;
    if (!take(p, '{')) {
        return;
    }
    while (next_key(p, &first, key)) {
        if (strcmp(key, "from") == 0) {
            ends[0] = (uint32_t)take_whole(p, "from", most);
        } else if (strcmp(key, "to") == 0) {
            ends[1] = (uint32_t)take_whole(p, "to", most);
        } else if (strcmp(key, "rate_bps") == 0) {
            c.rate_bps = take_null(p) ? TOPO_NO_LIMIT : take_whole(p, "rate_bps", TOPO_NO_LIMIT);
        } else if (strcmp(key, "rtt_us") == 0) {
            c.rtt_us = (uint32_t)take_whole(p, "rtt_us", UINT32_MAX);
        } else if (strcmp(key, "loss_ppm") == 0) {
            c.loss_ppm = (uint32_t)take_whole(p, "loss_ppm", 1000000);
        } else if (strcmp(key, "age_s") == 0) {
            c.age_s = (uint32_t)take_whole(p, "age_s", UINT32_MAX);
        } else if (strcmp(key, "source") == 0) {
            c.source = take_source(p);
        } else {
            pass_over(p, 0);
        }
    }
    if (!p->bad && (ends[0] > most || ends[1] > most || ends[0] == ends[1])) {
        fail(p, "an edge needs \"from\" and \"to\", two different peers");
    }
    if (!p->bad) {
        p->m->cells[(size_t)ends[0] * p->m->count + ends[1]] = c;
    }
}

static void take_ring(struct parse *p)
{
    uint16_t order[TOPO_PEERS_MOST];
    bool seen[TOPO_PEERS_MOST] = {false}, first = true;
    uint32_t count = 0;
    if (p->m->ring != NULL || take_null(p) || !take(p, '[')) {
        return;
    }
    while (next_item(p, &first, ']')) {
        uint64_t rank = take_whole(p, "ring_in_use", p->m->count - 1);
        if (!p->bad && seen[rank]) {
            fail(p, "ring_in_use has peer %llu twice", (unsigned long long)rank);
        }
        if (!p->bad) {
            seen[rank] = true;
            order[count++] = (uint16_t)rank;
        }
    }
    if (!p->bad && count != p->m->count) {
        fail(p, "ring_in_use has %u of %u peers", count, p->m->count);
    }
    if (!p->bad && !topo_matrix_use_ring(p->m, order)) {
        fail(p, "no memory");
    }
}

static void take_edges(struct parse *p)
{
    bool first = true;
    p->linked = true;
    if (take(p, '[')) {
        while (next_item(p, &first, ']')) {
            take_edge(p);
        }
    }
}

/* ---- what operations have shown ------------------------------------------------------------------------------------ */

static struct topo_time take_time(struct parse *p)
{
    struct topo_time t = {.permille = 0};
    char key[PARSE_KEY];
    bool first = true;
    if (!take(p, '{')) {
        return t;
    }
    while (next_key(p, &first, key)) {
        if (strcmp(key, "permille") == 0) {
            t.permille = (uint32_t)take_whole(p, "permille", UINT16_MAX);
        } else if (strcmp(key, "bytes") == 0) {
            t.bytes = take_whole(p, "bytes", UINT64_MAX / 16);
        } else if (strcmp(key, "took_us") == 0) {
            t.took_us = take_whole(p, "took_us", UINT64_MAX / 16);
        } else {
            pass_over(p, 0);
        }
    }
    return t;
}

static void take_times(struct parse *p)
{
    char key[PARSE_KEY];
    bool first = true;
    if (!take(p, '{')) {
        return;
    }
    while (next_key(p, &first, key)) {
        int kind = 0;
        while (kind < TOPO_KINDS && strcmp(key, topo_kind_name((enum topo_kind)kind)) != 0) {
            kind++;
        }
        if (kind < TOPO_KINDS) {
            p->m->times[kind] = take_time(p);
        } else {
            pass_over(p, 0);
        }
    }
}

/* ---- all of it ----------------------------------------------------------------------------------------------------- */

static void take_member(struct parse *p, const char *key)
{
    bool edges = strcmp(key, "edges") == 0, ring = strcmp(key, "ring_in_use") == 0, times = strcmp(key, "operations") == 0;
    if ((edges || ring || times) && p->m == NULL) {
        fail(p, "%s stands before the peers", key);
    } else if (edges) {
        take_edges(p);
    } else if (ring) {
        take_ring(p);
    } else if (times) {
        take_times(p);
    } else if (strcmp(key, "title") == 0) {
        take_string(p, p->title, sizeof p->title);
    } else if (strcmp(key, "sites") == 0) {
        take_sites(p);
    } else if (strcmp(key, "peers") == 0) {
        take_peers(p);
    } else {
        pass_over(p, 0);
    }
}

struct topo_matrix *topo_parse(const char *path, const char *text, char error[TOPO_ERROR])
{
    struct parse p = {.path = path, .text = text, .at = text, .error = error};
    char key[PARSE_KEY];
    bool first = true;
    if (take(&p, '{')) {
        while (next_key(&p, &first, key)) {
            take_member(&p, key);
        }
    }
    if (!p.bad && peek(&p) != 0) {
        fail(&p, "something follows the end");
    }
    if (!p.bad && (p.m == NULL || !p.linked)) {
        fail(&p, "\"%s\" is missing: is it a file of pccl topo --json?", p.m == NULL ? "peers" : "edges");
    }
    free(p.sites);
    if (p.bad) {
        topo_matrix_free(p.m);
        return NULL;
    }
    memcpy(p.m->title, p.title, sizeof p.title);
    return p.m;
}
