/* wan_ini.c - see wan_ini.h.
 *
 * One idea: inih takes keys apart and does not tell of sections without keys nor of lines, so the function that hands it its lines
 * opens the sections and counts.  A table says which key belongs into which section and how its value is read.
 * SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#include "pccl/wan_ini.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "pccl/wan_parser.h"
#include "pccl/wan_units.h"

enum { LINE_MOST = 190 /* inih's own buffer has 200 */, FILE_MOST = 4 << 20 };
enum section { NO_SECTION = 0, DEFAULTS = 1, SITE = 2, HOST = 4, PATH = 8 };

static const char *const section_names[] = {[DEFAULTS] = "[defaults]", [SITE] = "[site]", [HOST] = "[host]", [PATH] = "[path]"};

struct reading {
    const char *name; /* of the file; borrowed */
    const char *at;   /* the next line; borrowed */
    int line;
    struct wan_network *network; /* borrowed */
    enum section section;
    struct wan_values *values; /* of the open section */
    char *error;               /* borrowed; "": none so far */
};

enum reader { RATE, BYTES, TIME, LOSS, BURST, COUNT, MTU, ADDRESS, WORD };

static const struct key {
    const char *name;
    unsigned sections;
    enum reader reader;
    size_t offset;
} keys[WAN_KEYS] = {
    [WAN_RATE] = {"rate", DEFAULTS | PATH, RATE, offsetof(struct wan_values, rate_bps)},
    [WAN_QUEUE] = {"queue", DEFAULTS | PATH, BYTES, offsetof(struct wan_values, queue_bytes)},
    [WAN_DELAY] = {"delay", DEFAULTS | PATH, TIME, offsetof(struct wan_values, delay_ns)},
    [WAN_JITTER] = {"jitter", DEFAULTS | PATH, TIME, offsetof(struct wan_values, jitter_ns)},
    [WAN_LOSS] = {"loss", DEFAULTS | PATH, LOSS, offsetof(struct wan_values, loss)},
    [WAN_BURST] = {"burst", DEFAULTS | PATH, BURST, offsetof(struct wan_values, burst)},
    [WAN_MTU] = {"mtu", DEFAULTS | HOST | PATH, MTU, offsetof(struct wan_values, mtu)},
    [WAN_UPLINK] = {"uplink", DEFAULTS | HOST | SITE, RATE, offsetof(struct wan_values, uplink_bps)},
    [WAN_DOWNLINK] = {"downlink", DEFAULTS | HOST | SITE, RATE, offsetof(struct wan_values, downlink_bps)},
    [WAN_UPLINK_QUEUE] = {"uplink_queue", DEFAULTS | HOST | SITE, BYTES, offsetof(struct wan_values, uplink_queue_bytes)},
    [WAN_DOWNLINK_QUEUE] = {"downlink_queue", DEFAULTS | HOST | SITE, BYTES, offsetof(struct wan_values, downlink_queue_bytes)},
    [WAN_TCP_WMEM] = {"tcp_wmem", DEFAULTS | HOST, BYTES, offsetof(struct wan_values, tcp_wmem_bytes)},
    [WAN_TCP_RMEM] = {"tcp_rmem", DEFAULTS | HOST, BYTES, offsetof(struct wan_values, tcp_rmem_bytes)},
    [WAN_CONGESTION] = {"congestion", DEFAULTS | HOST, WORD, offsetof(struct wan_values, congestion)},
    [WAN_ADDRESS] = {"address", HOST, ADDRESS, offsetof(struct wan_values, address)},
    [WAN_SITE] = {"site", HOST, WORD, offsetof(struct wan_values, site)},
    [WAN_SEED] = {"seed", DEFAULTS, COUNT, offsetof(struct wan_values, seed)},
};

__attribute__((format(printf, 2, 3))) static int refuse(struct reading *r, const char *format, ...)
{
    va_list list;
    if (r->error[0] == 0) {
        int n = snprintf(r->error, WAN_ERROR, "%s:%d: ", r->name, r->line);
        va_start(list, format);
        vsnprintf(r->error + n, n < WAN_ERROR ? (size_t)(WAN_ERROR - n) : 0, format, list);
        va_end(list);
    }
    return 0;
}

/* ---- values ------------------------------------------------------------------------------------------------------ */

static const char *read_mtu(const char *text, uint64_t *out)
{
    static const char want[] = "takes a number of bytes from 576 to 65000, such as 1500";
    uint64_t value = 0;
    if (wan_units_count(text, &value) != NULL || value < 576 || value > 65000) {
        return want;
    }
    *out = value;
    return NULL;
}

static const char *read_word(const char *text, char out[WAN_NAME])
{
    if (text[0] == 0 || strlen(text) >= WAN_NAME) {
        return "takes a name of 1 to 15 characters";
    }
    snprintf(out, WAN_NAME, "%s", text);
    return NULL;
}

/* Null; else what the value has to be. */
static const char *read_key(const struct key *key, const char *value, struct wan_values *v)
{
    void *to = (char *)v + key->offset;
    switch (key->reader) {
    case RATE: return wan_units_rate(value, to);
    case BYTES: return wan_units_bytes(value, to);
    case TIME: return wan_units_time(value, to);
    case LOSS: return wan_units_loss(value, to);
    case BURST: return wan_units_burst(value, to);
    case COUNT: return wan_units_count(value, to);
    case MTU: return read_mtu(value, to);
    case ADDRESS: return wan_units_address(value, to);
    case WORD: return read_word(value, to);
    }
    return NULL;
}

static const struct key *find_key(const char *name)
{
    for (int i = 0; i < WAN_KEYS; i++) {
        if (strcmp(keys[i].name, name) == 0) {
            return &keys[i];
        }
    }
    return NULL;
}

/* The keys of a section, as a list for a message. */
static void list_keys(unsigned sections, char *out, size_t size)
{
    size_t at = 0;
    out[0] = 0;
    for (int i = 0; i < WAN_KEYS; i++) {
        if ((keys[i].sections & sections) != 0 && at < size) {
            at += (size_t)snprintf(out + at, size - at, "%s%s", at > 0 ? ", " : "", keys[i].name);
        }
    }
}

bool wan_ini_path_key(struct wan_values *v, const char *name, const char *value, char error[WAN_ERROR])
{
    const struct key *key = find_key(name);
    if (key == NULL || (key->sections & PATH) == 0) {
        char known[128];
        list_keys(PATH, known, sizeof known);
        snprintf(error, WAN_ERROR, "a path has no key '%s': give one of %s", name, known);
        return false;
    }
    const char *want = read_key(key, value, v);
    if (want != NULL) {
        snprintf(error, WAN_ERROR, "%s %s, not '%s'", name, want, value);
        return false;
    }
    v->given |= 1u << (key - keys);
    return true;
}

/* inih's handler: 0 is an error. */
static int take_key(void *user, const char *section, const char *name, const char *value)
{
    struct reading *r = user;
    const struct key *key = find_key(name);
    (void)section; /* cut at 50 characters: open_section has it whole */
    if (r->error[0] != 0) {
        return 0;
    }
    if (r->section == NO_SECTION) {
        return refuse(r, "key '%s' stands before the first section: put it into [defaults]", name);
    }
    if (key == NULL || (key->sections & r->section) == 0) {
        char known[200];
        list_keys(r->section, known, sizeof known);
        return refuse(r, "%s has no key '%s': give one of %s", section_names[r->section], name, known);
    }
    if ((r->values->given & 1u << (key - keys)) != 0) {
        return refuse(r, "key '%s' is there twice, first in line %d: remove one", name, r->values->key_line[key - keys]);
    }
    const char *want = read_key(key, value, r->values);
    if (want != NULL) {
        return refuse(r, "%s %s, not '%s'", name, want, value);
    }
    r->values->given |= 1u << (key - keys);
    r->values->key_line[key - keys] = r->line;
    return 1;
}

/* ---- sections ---------------------------------------------------------------------------------------------------- */

static bool name_is_good(struct reading *r, const char *kind, const char *name)
{
    static const char good[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-";
    if (strlen(name) >= WAN_NAME) {
        return refuse(r, "the name '%s' is longer than that of a network device, %d characters: shorten it", name, WAN_NAME - 1);
    }
    if (name[0] == 0 || name[strspn(name, good)] != 0 || strcmp(name, "lo") == 0) {
        return refuse(r, "'%s' cannot name a %s: take letters, digits, '-' and '_', and not lo", name, kind);
    }
    return true;
}

/* For a site and a host: a new one. */
static bool name_is_new(struct reading *r, const char *name)
{
    int host = wan_network_host(r->network, name), site = wan_network_site(r->network, name);
    if (host >= 0 || site >= 0) {
        return refuse(r, "the name '%s' is given twice, first to the %s in line %d: hosts and sites need a name each", name,
                      host >= 0 ? "host" : "site", host >= 0 ? r->network->hosts[host].values.line : r->network->sites[site].values.line);
    }
    return true;
}

static int open_site(struct reading *r, const char *name)
{
    struct wan_network *n = r->network;
    if (!name_is_good(r, "site", name) || !name_is_new(r, name)) {
        return 0;
    }
    if (n->site_count == WAN_SITES_MOST) {
        return refuse(r, "more than %d sites: remove some", WAN_SITES_MOST);
    }
    struct wan_site *s = &n->sites[n->site_count++];
    snprintf(s->name, WAN_NAME, "%s", name);
    r->section = SITE;
    r->values = &s->values;
    return 1;
}

static int open_host(struct reading *r, const char *name)
{
    struct wan_network *n = r->network;
    if (!name_is_good(r, "host", name) || !name_is_new(r, name)) {
        return 0;
    }
    if (n->host_count == WAN_HOSTS_MOST) {
        return refuse(r, "more than %d hosts: remove some", WAN_HOSTS_MOST);
    }
    struct wan_host *h = &n->hosts[n->host_count++];
    snprintf(h->name, WAN_NAME, "%s", name);
    r->section = HOST;
    r->values = &h->values;
    return 1;
}

static int open_path(struct reading *r, const char *from, const char *to)
{
    struct wan_network *n = r->network;
    if (!name_is_good(r, "host or site", from) || !name_is_good(r, "host or site", to)) {
        return 0;
    }
    if (n->path_count == WAN_PATHS_MOST) {
        return refuse(r, "more than %d paths: name sites instead of hosts", WAN_PATHS_MOST);
    }
    struct wan_path *p = &n->paths[n->path_count++];
    snprintf(p->from, WAN_NAME, "%s", from);
    snprintf(p->to, WAN_NAME, "%s", to);
    r->section = PATH;
    r->values = &p->values;
    return 1;
}

static int open_defaults(struct reading *r)
{
    if (r->network->defaults.line != 0) {
        return refuse(r, "[defaults] is there twice, first in line %d: make one of them", r->network->defaults.line);
    }
    r->section = DEFAULTS;
    r->values = &r->network->defaults;
    return 1;
}

/* `text`: what stands between the brackets. */
static void open_section(struct reading *r, char *text)
{
    char *rest = NULL, *words[4] = {NULL};
    int count = 0, ok;
    for (char *word = strtok_r(text, " \t", &rest); word != NULL && count < 4; word = strtok_r(NULL, " \t", &rest)) {
        words[count++] = word;
    }
    const char *kind = count > 0 ? words[0] : "";
    r->section = NO_SECTION;
    r->values = NULL;
    if (strcmp(kind, "nat") == 0) {
        ok = refuse(r, "[nat] is not emulated by this version: remove the section");
    } else if (strcmp(kind, "defaults") == 0 && count == 1) {
        ok = open_defaults(r);
    } else if (strcmp(kind, "site") == 0 && count == 2) {
        ok = open_site(r, words[1]);
    } else if (strcmp(kind, "host") == 0 && count == 2) {
        ok = open_host(r, words[1]);
    } else if (strcmp(kind, "path") == 0 && count == 3) {
        ok = open_path(r, words[1], words[2]);
    } else {
        ok = refuse(r, "there is no section '[%s%s...]': give [defaults], [site NAME], [host NAME] or [path FROM TO]", kind,
                    count > 1 ? " " : "");
    }
    if (ok) {
        r->values->line = r->line;
    }
}

/* ---- lines ------------------------------------------------------------------------------------------------------- */

/* The next line for inih, without what it would take for the continuation of a value. */
static char *next_line(char *line, int size, void *user)
{
    struct reading *r = user;
    if (*r->at == 0) {
        return NULL;
    }
    size_t length = strcspn(r->at, "\n"), skip = strspn(r->at, " \t\r");
    const char *from = r->at + (skip < length ? skip : length);
    size_t bytes = length - (size_t)(from - r->at);
    r->at += length + (r->at[length] == '\n');
    r->line++;
    if (bytes > LINE_MOST || bytes + 2 > (size_t)size) {
        (void)refuse(r, "a line of more than %d characters: shorten it", LINE_MOST);
        bytes = 0;
    }
    memcpy(line, from, bytes);
    line[bytes] = '\n';
    line[bytes + 1] = 0;
    if (line[0] == '[' && r->error[0] == 0) {
        char text[LINE_MOST + 1];
        const char *end = strchr(line, ']');
        if (end == NULL) {
            (void)refuse(r, "a section without ']': close it");
        } else {
            memcpy(text, line + 1, (size_t)(end - line) - 1);
            text[end - line - 1] = 0;
            open_section(r, text);
        }
    }
    return line;
}

struct wan_network *wan_ini_read(const char *name, const char *text, char error[WAN_ERROR])
{
    struct reading r = {.name = name, .at = text, .network = wan_network_new(), .error = error};
    error[0] = 0;
    if (wan_parser_missing() != NULL || r.network == NULL) {
        snprintf(error, WAN_ERROR, "%s", r.network == NULL ? "no memory for the description of a network" : wan_parser_missing());
        wan_network_free(r.network);
        return NULL;
    }
    r.at += strncmp(text, "\xEF\xBB\xBF", 3) == 0 ? 3 : 0;
    int bad = wan_parser_run(next_line, take_key, &r);
    if (error[0] == 0 && bad != 0) {
        r.line = bad > 0 ? bad : 1;
        (void)refuse(&r, "neither a section nor a key with its value: write such as rate = 100mbit");
    }
    char what[WAN_ERROR];
    if (error[0] == 0 && !wan_network_resolve(r.network, &r.line, what)) {
        (void)refuse(&r, "%s", what);
    }
    if (error[0] != 0) {
        wan_network_free(r.network);
        return NULL;
    }
    return r.network;
}

struct wan_network *wan_ini_load(const char *path, char error[WAN_ERROR])
{
    FILE *f = fopen(path, "re");
    char *text = malloc(FILE_MOST + 1);
    struct wan_network *n = NULL;
    size_t bytes = f != NULL && text != NULL ? fread(text, 1, FILE_MOST + 1, f) : 0;
    if (f == NULL || text == NULL || ferror(f) != 0) {
        snprintf(error, WAN_ERROR, "%s: %s: give the path of a network description", path, strerror(errno));
    } else if (bytes > FILE_MOST || memchr(text, 0, bytes) != NULL) {
        snprintf(error, WAN_ERROR, "%s: no text of at most %d bytes: give the path of a network description", path, FILE_MOST);
    } else {
        text[bytes] = 0;
        n = wan_ini_read(path, text, error);
    }
    if (f != NULL) {
        fclose(f);
    }
    free(text);
    return n;
}
