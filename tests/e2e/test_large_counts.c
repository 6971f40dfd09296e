/* test_large_counts.c - counts beyond what 31 and 32 bits hold: what is at the ends, around 2^31 and at many places between arrives at its
 * place, and nothing beside it.
 *
 * All else is zero: pages that only hold zeros and are only read cost no memory.
 * SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#include "tests/testing.h"

#include <sys/mman.h>

#include "tests/e2e/cluster.h"

enum { WORLD = 2, AROUND = 4096, STRIDE = 65521 /* a prime: samples lie at every place of a frame */ };

#define MIDDLE ((size_t)1 << 31)
#define COUNT (MIDDLE + 12345) /* of 8 bits each; the part behind begins at 2^32 */

/* Never 0. */
static uint8_t given(uint32_t rank, size_t i)
{
    return (uint8_t)(i * 167 + (i >> 16) * 13 + (i >> 31) * 71 + rank * 101) | 1;
}

static bool dense(size_t i)
{
    return i < AROUND || (i >= MIDDLE - AROUND && i < MIDDLE + AROUND) || i >= COUNT - AROUND;
}

/* The next place that is not zero. */
static size_t sample_after(size_t i)
{
    size_t next = i + STRIDE, zone = i < MIDDLE - AROUND ? MIDDLE - AROUND : COUNT - AROUND;
    return dense(i + 1) ? i + 1 : next < zone ? next : zone;
}

/* Bytes that this host can give without using what others need. */
static size_t free_bytes(void)
{
    char line[128];
    unsigned long long kilobytes = 0;
    FILE *f = fopen("/proc/meminfo", "re");
    while (f != NULL && fgets(line, sizeof line, f) != NULL && sscanf(line, "MemAvailable: %llu kB", &kilobytes) != 1) {
    }
    if (f != NULL) {
        fclose(f);
    }
    return (size_t)kilobytes << 10;
}

static uint8_t *map(size_t bytes)
{
    void *at = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    EXPECT(at != MAP_FAILED);
    return at;
}

static void fill(uint8_t *part, uint32_t rank, size_t count)
{
    for (size_t i = 0; i < count; i = sample_after(i)) {
        part[i] = given(rank, i);
    }
}

static size_t wrong_bytes(const uint8_t *part, uint32_t rank, size_t count)
{
    size_t wrong = 0;
    for (size_t i = 0; i < count; i = sample_after(i)) {
        size_t next = sample_after(i);
        wrong += part[i] != given(rank, i);
        wrong += next > i + 1 && next < count && part[i + (next - i) / 2] != 0;
    }
    return wrong;
}

/* In place; rank 0 has more elements than 31 bits hold, those of rank 1 lie behind them. */
static void gather(struct cluster_peer *p, void *context)
{
    const size_t counts[WORLD] = {COUNT, AROUND}, places[WORLD] = {0, 2 * MIDDLE}, bytes = 2 * MIDDLE + AROUND;
    pcclPeerInfo_t self = {0};
    pcclReduceInfo_t info = {0};
    pcclAsyncOp_t op;
    EXPECT_EQ(pcclGetSelf(p->comm, &self), pcclSuccess);
    uint8_t *all = map(bytes), *own = all + places[self.rank];
    fill(own, self.rank, counts[self.rank]);
    EXPECT_EQ(pcclAllGatherV(own, all, counts, places, pcclInt8, p->comm, &op), pcclSuccess);
    EXPECT_EQ(pcclAwaitAsync(&op, &info), pcclSuccess);
    EXPECT_EQ(info.tx_bytes, counts[self.rank]);
    EXPECT_EQ(info.rx_bytes, counts[1 - self.rank]);
    for (uint32_t r = 0; r < WORLD; r++) {
        EXPECT_EQ(wrong_bytes(all + places[r], r, counts[r]), 0);
    }
    EXPECT(all[COUNT] == 0 && all[2 * MIDDLE - 1] == 0);
    munmap(all, bytes);
    (void)context;
}

TEST(more_elements_than_31_bits_hold_are_gathered_each_to_its_place)
{
    struct cluster c;
    if (getenv("PCCL_SANITIZED") != NULL) {
        TEST_SKIP("too slow under a sanitizer");
    }
    if (free_bytes() < 3 * COUNT) {
        TEST_SKIP("less than 6.4 GB of memory are free");
    }
    cluster_start(&c, WORLD, NULL, 1);
    cluster_run(&c, gather, NULL);
    cluster_stop(&c);
}
