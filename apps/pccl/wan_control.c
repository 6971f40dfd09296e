/* wan_control.c - see wan_control.h.
 * SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#include "pccl/wan_control.h"

#include <stdio.h>
#include <string.h>

#include "pccl/wan_ini.h"
#include "pccl/wan_refuse.h"

enum { LINE_MOST = 1024, WORDS_MOST = 32 };

/* The hosts that a name stands for. */
static bool select_hosts(const struct wan_network *n, const char *name, bool chosen[WAN_HOSTS_MOST], char error[WAN_ERROR])
{
    int host = wan_network_host(n, name), site = wan_network_site(n, name);
    for (unsigned i = 0; i < n->host_count; i++) {
        chosen[i] = host >= 0 ? i == (unsigned)host : site >= 0 && n->hosts[i].site == site;
    }
    return host >= 0 || site >= 0 || wan_refuse(error, "there is no host or site '%s': correct the name", name);
}

static void select_all(const struct wan_network *n, bool chosen[WAN_HOSTS_MOST])
{
    for (unsigned i = 0; i < n->host_count; i++) {
        chosen[i] = true;
    }
}

/* The ends behind the verb; how many words they take, 0: an error. */
static int read_ends(const struct wan_network *n, char *const *words, int count, struct wan_order *o, char error[WAN_ERROR])
{
    o->one_way = count > 3 && strcmp(words[2], "to") == 0;
    const char *other = words[o->one_way ? 3 : 2];
    if (strcmp(words[1], other) == 0 && wan_network_host(n, other) >= 0) {
        (void)wan_refuse(error, "host '%s' has no path to itself: name two hosts", other);
        return 0;
    }
    bool ok = select_hosts(n, words[1], o->from, error) && select_hosts(n, other, o->to, error);
    return !ok ? 0 : o->one_way ? 4 : 3;
}

static bool read_change(const struct wan_network *n, char *const *words, int count, struct wan_order *o, char error[WAN_ERROR])
{
    int at = count < 3 ? 0 : read_ends(n, words, count, o, error);
    if (count < 3) {
        return wan_refuse(error, "path needs two hosts or sites, then keys and values: such as path a b loss 20%%");
    }
    if (at > 0 && (at == count || (count - at) % 2 != 0)) {
        return wan_refuse(error, "path needs a value behind each key: such as path a b loss 20%%");
    }
    for (int i = at; at > 0 && i < count; i += 2) {
        if (!wan_ini_path_key(&o->values, words[i], words[i + 1], error)) {
            return false;
        }
    }
    return at > 0;
}

/* Of a cut, and of its end. */
static bool read_range(const struct wan_network *n, char *const *words, int count, struct wan_order *o, char error[WAN_ERROR])
{
    select_all(n, o->to);
    if (count == 1 && o->verb == WAN_HEAL) {
        select_all(n, o->from);
        return true;
    }
    if (count == 2) {
        return select_hosts(n, words[1], o->from, error);
    }
    int at = count < 3 ? 0 : read_ends(n, words, count, o, error);
    if (count < 2 || (at > 0 && at != count)) {
        return wan_refuse(error, "%s takes a host or site, or two: such as %s a b, or %s a to b for one direction", words[0], words[0], words[0]);
    }
    return at > 0;
}

bool wan_control_read(const struct wan_network *n, const char *line, struct wan_order *out, char error[WAN_ERROR])
{
    char text[LINE_MOST], *words[WORDS_MOST], *rest = NULL;
    int count = 0;
    *out = (struct wan_order){.verb = WAN_CHANGE};
    if (strlen(line) >= sizeof text) {
        return wan_refuse(error, "a command of more than %d characters: shorten it", LINE_MOST - 1);
    }
    snprintf(text, sizeof text, "%s", line);
    for (char *word = strtok_r(text, " \t\r\n", &rest); word != NULL && count < WORDS_MOST; word = strtok_r(NULL, " \t\r\n", &rest)) {
        words[count++] = word;
    }
    if (count > 0 && strcmp(words[0], "path") == 0) {
        return read_change(n, words, count, out, error);
    }
    if (count > 0 && (strcmp(words[0], "cut") == 0 || strcmp(words[0], "heal") == 0)) {
        out->verb = words[0][0] == 'c' ? WAN_CUT : WAN_HEAL;
        return read_range(n, words, count, out, error);
    }
    return wan_refuse(error, "there is no command '%s': give path, cut or heal", count > 0 ? words[0] : "");
}

/* Whether the paths can lose so many packets in such bursts. */
static bool may_lose(const struct wan_flow *f, const struct wan_order *o, unsigned from, unsigned to, char error[WAN_ERROR])
{
    double burst = (o->values.given & 1u << WAN_BURST) != 0 ? o->values.burst : wan_flow_burst(f, from, to);
    double loss = (o->values.given & 1u << WAN_LOSS) != 0 ? o->values.loss : wan_flow_loss(f, from, to);
    double most = wan_network_most_loss(burst);
    return loss <= most || wan_refuse(error, "loss %g%% cannot come in bursts of %g: lower loss to %g%%, or raise burst", loss * 100, burst, most * 100);
}

static bool is_meant(const struct wan_order *o, unsigned from, unsigned to)
{
    return from != to && ((o->from[from] && o->to[to]) || (!o->one_way && o->from[to] && o->to[from]));
}

bool wan_control_apply(const struct wan_network *n, const struct wan_order *o, struct wan_flow *f, char error[WAN_ERROR])
{
    for (unsigned pair = 0; o->verb == WAN_CHANGE && pair < n->host_count * n->host_count; pair++) {
        unsigned from = pair / n->host_count, to = pair % n->host_count;
        if (is_meant(o, from, to) && !may_lose(f, o, from, to, error)) {
            return false;
        }
    }
    for (unsigned pair = 0; pair < n->host_count * n->host_count; pair++) {
        unsigned from = pair / n->host_count, to = pair % n->host_count;
        if (!is_meant(o, from, to)) {
            continue;
        }
        if (o->verb == WAN_CHANGE) {
            wan_flow_set(f, from, to, &o->values);
        } else {
            wan_flow_cut(f, from, to, o->verb == WAN_CUT);
        }
    }
    return true;
}
