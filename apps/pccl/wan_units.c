/* wan_units.c - see wan_units.h.
 *
 * One idea: a value is digits with an optional fraction, then one of the units in a table.
 * SPDX-License-Identifier: MIT */
#include "pccl/wan_units.h"

#include <arpa/inet.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

struct unit {
    const char *name;
    double factor;
};

/* The value in the table's base unit; false: it has another form, or is outside of the range. */
static bool read_value(const char *text, const struct unit *units, double least, double most, double *out)
{
    size_t digits = strspn(text, "0123456789."), whole = strspn(text, "0123456789");
    const char *point = strchr(text, '.');
    if (whole == 0 || digits > 24 || (point != NULL && strchr(point + 1, '.') != NULL)) {
        return false;
    }
    for (const struct unit *u = units; u->name != NULL; u++) {
        if (strcasecmp(text + digits, u->name) == 0) {
            double value = strtod(text, NULL) * u->factor;
            *out = value;
            return value >= least && value <= most;
        }
    }
    return false;
}

const char *wan_units_rate(const char *text, uint64_t *out)
{
    static const struct unit units[] = {{"bit", 1}, {"kbit", 1e3}, {"mbit", 1e6}, {"gbit", 1e9}, {"tbit", 1e12}, {NULL, 0}};
    double value = 0;
    if (strcmp(text, "unlimited") == 0) {
        *out = 0;
        return NULL;
    }
    if (!read_value(text, units, 1e3, 1e12, &value)) {
        return "takes a rate from 1kbit to 1tbit, such as 100mbit or 2.5gbit, or unlimited";
    }
    *out = (uint64_t)(value + 0.5);
    return NULL;
}

const char *wan_units_bytes(const char *text, uint64_t *out)
{
    static const struct unit units[] = {{"B", 1},        {"kB", 1e3},      {"MB", 1e6},         {"GB", 1e9}, {"KiB", 1024.0},
                                        {"MiB", 1048576}, {"GiB", 1073741824}, {NULL, 0}};
    double value = 0;
    if (!read_value(text, units, 1, 4e9, &value)) {
        return "takes a number of bytes up to 4GB with its unit, such as 64kB, 6MB or 4MiB";
    }
    *out = (uint64_t)(value + 0.5);
    return NULL;
}

const char *wan_units_time(const char *text, int64_t *out)
{
    static const struct unit units[] = {{"ns", 1}, {"us", 1e3}, {"ms", 1e6}, {"s", 1e9}, {NULL, 0}};
    double value = 0;
    if (!read_value(text, units, 0, 60e9, &value)) {
        return "takes a time from 0ms to 60s, such as 50ms or 0.5s";
    }
    *out = (int64_t)(value + 0.5);
    return NULL;
}

const char *wan_units_loss(const char *text, double *out)
{
    static const struct unit units[] = {{"%", 0.01}, {"", 1}, {NULL, 0}};
    double value = 0;
    if (!read_value(text, units, 0, 1, &value)) {
        return "takes a share from 0 to 1, such as 0.001 or 0.1%";
    }
    *out = value;
    return NULL;
}

const char *wan_units_burst(const char *text, double *out)
{
    static const struct unit units[] = {{"", 1}, {NULL, 0}};
    double value = 0;
    if (!read_value(text, units, 1, 1e6, &value)) {
        return "takes the mean number of packets that are lost in a row, from 1 to 1000000";
    }
    *out = value;
    return NULL;
}

const char *wan_units_count(const char *text, uint64_t *out)
{
    size_t digits = strspn(text, "0123456789");
    if (digits == 0 || digits > 18 || text[digits] != 0) {
        return "takes a number of up to 18 digits";
    }
    *out = strtoull(text, NULL, 10);
    return NULL;
}

const char *wan_units_address(const char *text, uint32_t *out)
{
    struct in_addr at;
    uint32_t value = inet_pton(AF_INET, text, &at) == 1 ? ntohl(at.s_addr) : 0;
    if (value >> 24 == 0 || value >> 24 == 127 || value >> 28 >= 14) {
        return "takes the IPv4 address of a host, such as 10.0.0.1; not loopback, multicast or reserved";
    }
    *out = value;
    return NULL;
}
