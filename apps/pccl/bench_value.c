/* bench_value.c - see bench_value.h.
 * SPDX-License-Identifier: MIT */
#include "pccl/bench_value.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "pccl/command_error.h"

bool bench_refuse(const char *format, ...)
{
    va_list list;
    va_start(list, format);
    command_error("bench", format, list);
    va_end(list);
    return false;
}

static bool read_number(const char *flag, const char *text, long least, long most, long *out)
{
    char *end;
    errno = 0;
    long value = strtol(text, &end, 10);
    bool digits = text[0] >= '0' && text[0] <= '9'; /* strtol would skip spaces and take a sign */
    if (errno != 0 || !digits || *end != 0 || value < least || value > most) {
        return bench_refuse("%s takes a number from %ld to %ld, not '%s'", flag, least, most, text);
    }
    *out = value;
    return true;
}

bool bench_value_int(const char *flag, const char *text, long least, long most, int *out)
{
    long value = 0;
    bool ok = read_number(flag, text, least, most, &value);
    *out = ok ? (int)value : *out;
    return ok;
}

bool bench_value_unsigned(const char *flag, const char *text, long least, long most, unsigned *out)
{
    long value = 0;
    bool ok = read_number(flag, text, least, most, &value);
    *out = ok ? (unsigned)value : *out;
    return ok;
}

bool bench_value_bool(const char *flag, const char *text, bool *out)
{
    if ((text[0] != '0' && text[0] != '1') || text[1] != 0) {
        return bench_refuse("%s takes 0 or 1, not '%s'", flag, text);
    }
    *out = text[0] == '1';
    return true;
}

bool bench_value_bytes(const char *flag, const char *text, uint64_t *out)
{
    char *end;
    errno = 0;
    unsigned long long value = strtoull(text, &end, 10);
    static const char units[] = "KMG", small[] = "kmg";
    const char *unit = *end == 0 ? NULL : strchr(units, *end) != NULL ? strchr(units, *end) : strchr(small, *end);
    int shift = *end == 0 ? 0 : unit == NULL ? -1 : 10 * (int)(1 + unit - (strchr(units, *unit) != NULL ? units : small));
    end += *end != 0;
    bool digits = text[0] >= '0' && text[0] <= '9';
    if (errno != 0 || !digits || shift < 0 || *end != 0 || value == 0 || value > ((uint64_t)1 << 40 >> shift)) {
        return bench_refuse("%s takes a number of bytes up to 1024G, such as 4, 64K, 16M or 1G, not '%s'", flag, text);
    }
    *out = (uint64_t)value << shift;
    return true;
}
