/* cores.c - see cores.h.
 *
 * Its one idea: launchers bind a process by its own mask, containers by the cpuset of their group; only the latter is everybody's.
 * SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#include "engine/threads/cores.h"

#include <fcntl.h>
#include <sched.h>
#include <stdlib.h>
#include <unistd.h>

#include "net/fds.h"

enum { CORES_TEXT = 4096 };

/* Of control groups of version 2, and of the one before. */
static const char *const cores_files[] = {"/sys/fs/cgroup/cpuset.cpus.effective", "/sys/fs/cgroup/cpuset/cpuset.effective_cpus"};

uint32_t cores_own(void)
{
    cpu_set_t set;
    int count = sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set) : 1;
    return count < 1 ? 1 : (uint32_t)count;
}

uint32_t cores_listed(const char *text)
{
    uint32_t count = 0;
    for (const char *at = text; *at >= '0' && *at <= '9';) {
        char *end;
        unsigned long first = strtoul(at, &end, 10), last = *end == '-' ? strtoul(end + 1, &end, 10) : first;
        if (last < first || last >= UINT16_MAX) {
            return 0;
        }
        count += (uint32_t)(last - first + 1);
        at = *end == ',' ? end + 1 : end;
    }
    return count;
}

static uint32_t cores_in(const char *path)
{
    char text[CORES_TEXT + 1];
    int fd = fds_own(open(path, O_RDONLY | O_CLOEXEC));
    ssize_t size = fd < 0 ? 0 : read(fd, text, CORES_TEXT);
    fds_close(fd);
    text[size > 0 ? size : 0] = '\0';
    return cores_listed(text);
}

uint32_t cores_shared(void)
{
    long online = sysconf(_SC_NPROCESSORS_ONLN);
    uint32_t own = cores_own(), shared = online > 0 && online < UINT16_MAX ? (uint32_t)online : own;
    for (uint32_t i = 0; i < sizeof cores_files / sizeof *cores_files; i++) {
        uint32_t listed = cores_in(cores_files[i]);
        shared = listed > 0 && listed < shared ? listed : shared;
    }
    return shared > own ? shared : own;
}
