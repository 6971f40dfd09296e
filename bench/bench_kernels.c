/* bench_kernels.c - single-thread speed of the kernels at 64 MB, per instruction set, beside memcpy and a read-only loop.
 *
 * GB/s counts the elements of the user's buffer once (10^9 bytes), however many operands are read or written, so that rows
 * say how fast a buffer passes through; the best of several runs is printed, levels and references in turn within a run.
 * Usage: bench_kernels [megabytes] [runs].
 * SPDX-License-Identifier: MIT */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "kernels/hash.h"
#include "kernels/numeric.h"

enum { BENCH_ROWS = 11, BENCH_LEVELS = 4 };

struct bench {
    size_t size; /* bytes of the user's buffer */
    uint8_t *user, *other, *wire;
    struct numeric n;
    const struct kernels *kernels;
    uint64_t sink; /* keeps results alive */
};

static double bench_now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* A read-only loop with vectors of `bytes`: four sums, so that additions never wait for each other. */
#define BENCH_READ(level, bytes, attributes)                                                                           \
    typedef uint64_t bench_##level __attribute__((vector_size(bytes)));                                                \
    attributes static void bench_read_##level(struct bench *b)                                                         \
    {                                                                                                                  \
        bench_##level a = {0}, c = {0}, d = {0}, e = {0}, v;                                                           \
        for (const uint8_t *p = b->user, *end = p + b->size; p < end; p += 4 * (bytes)) {                              \
            memcpy(&v, p, (bytes));                                                                                    \
            a += v;                                                                                                    \
            memcpy(&v, p + (bytes), (bytes));                                                                          \
            c += v;                                                                                                    \
            memcpy(&v, p + 2 * (bytes), (bytes));                                                                      \
            d += v;                                                                                                    \
            memcpy(&v, p + 3 * (bytes), (bytes));                                                                      \
            e += v;                                                                                                    \
        }                                                                                                              \
        a += c + d + e;                                                                                                \
        b->sink += a[0] + a[1];                                                                                        \
    }

BENCH_READ(narrow, 16, )

#if defined(__x86_64__)
BENCH_READ(avx2, 32, __attribute__((target("avx2"))))
BENCH_READ(avx512, 64, __attribute__((target("avx512f"))))

static void bench_read(struct bench *b)
{
    if (strcmp(b->kernels->name, "avx512") == 0) {
        bench_read_avx512(b);
    } else if (strcmp(b->kernels->name, "avx2") == 0) {
        bench_read_avx2(b);
    } else {
        bench_read_narrow(b);
    }
}
#else
static void bench_read(struct bench *b)
{
    bench_read_narrow(b);
}
#endif

static void bench_copy(struct bench *b)
{
    memcpy(b->other, b->user, b->size);
}

static void bench_hash(struct bench *b)
{
    b->sink += hash_simple64_on(b->kernels, b->user, b->size);
}

static size_t bench_count(const struct bench *b)
{
    return b->size / dtype_size(b->n.dtype);
}

static void bench_reduce(struct bench *b)
{
    numeric_fold_plain(&b->n, b->other, b->other, b->user, bench_count(b));
}

static void bench_encode(struct bench *b)
{
    numeric_encode(&b->n, b->wire, b->user, bench_count(b));
}

/* Also the fold of f16 and bf16 into f32: in pieces that fit a cache, as a lane does it. */
static void bench_fold(struct bench *b)
{
    const size_t piece = 32768;
    const size_t count = bench_count(b);
    for (size_t at = 0; at < count; at += piece) {
        const size_t part = count - at < piece ? count - at : piece;
        numeric_fold(&b->n, b->other, b->wire + numeric_wire_bytes(&b->n, at), part);
    }
}

static const struct {
    const char *name;
    void (*run)(struct bench *);
    enum dtype dtype;
    enum quant quant;
    enum dtype quant_dtype;
    enum redop op;
} bench_rows[BENCH_ROWS] = {
    {"read-only", bench_read, DTYPE_F32, QUANT_NONE, DTYPE_F32, REDOP_SUM},
    {"memcpy", bench_copy, DTYPE_F32, QUANT_NONE, DTYPE_F32, REDOP_SUM},
    {"f32 sum", bench_reduce, DTYPE_F32, QUANT_NONE, DTYPE_F32, REDOP_SUM},
    {"f32 max", bench_reduce, DTYPE_F32, QUANT_NONE, DTYPE_F32, REDOP_MAX},
    {"f16 fold", bench_fold, DTYPE_F16, QUANT_NONE, DTYPE_F32, REDOP_SUM},
    {"bf16 fold", bench_fold, DTYPE_BF16, QUANT_NONE, DTYPE_F32, REDOP_SUM},
    {"quant minmax u8", bench_encode, DTYPE_F32, QUANT_MINMAX, DTYPE_U8, REDOP_SUM},
    {"quant zps i8", bench_encode, DTYPE_F32, QUANT_ZPS, DTYPE_I8, REDOP_SUM},
    {"fold minmax u8", bench_fold, DTYPE_F32, QUANT_MINMAX, DTYPE_U8, REDOP_SUM},
    {"fold zps i8", bench_fold, DTYPE_F32, QUANT_ZPS, DTYPE_I8, REDOP_SUM},
    {"hash", bench_hash, DTYPE_F32, QUANT_NONE, DTYPE_F32, REDOP_SUM},
};

static double bench_rate(struct bench *b, int row)
{
    if (!numeric_init(&b->n, bench_rows[row].dtype, bench_rows[row].op, bench_rows[row].quant,
                      bench_rows[row].quant_dtype, b->kernels)) {
        return 0;
    }
    memset(b->wire, 0, 2 * b->size);
    if (bench_rows[row].quant != QUANT_NONE) {
        numeric_encode(&b->n, b->wire, b->user, bench_count(b));
    }
    const double start = bench_now();
    bench_rows[row].run(b);
    return (double)b->size / (bench_now() - start) / 1e9;
}

static void bench_print(double best[BENCH_LEVELS][BENCH_ROWS], const char *const *names, const bool *present)
{
    printf("%-16s", "GB/s");
    for (int l = 0; l < BENCH_LEVELS; l++) {
        if (present[l]) {
            printf("%10s", names[l]);
        }
    }
    printf("\n");
    for (int row = 0; row < BENCH_ROWS; row++) {
        printf("%-16s", bench_rows[row].name);
        for (int l = 0; l < BENCH_LEVELS; l++) {
            if (present[l]) {
                printf("%10.2f", best[l][row]);
            }
        }
        printf("\n");
    }
    for (int l = 0; l < BENCH_LEVELS; l++) {
        if (present[l]) {
            printf("hash / read-only, %s: %.0f %%\n", names[l], 100 * best[l][BENCH_ROWS - 1] / best[l][0]);
        }
    }
}

int main(int argc, char **argv)
{
    static const char *const names[BENCH_LEVELS] = {"scalar", "avx2", "avx512", "neon"};
    const size_t megabytes = argc > 1 ? strtoul(argv[1], NULL, 10) : 64;
    const unsigned long runs = argc > 2 ? strtoul(argv[2], NULL, 10) : 7;
    struct bench b = {.size = (megabytes > 0 ? megabytes : 64) * 1000000 / 4096 * 4096};
    double best[BENCH_LEVELS][BENCH_ROWS] = {{0}};
    bool present[BENCH_LEVELS] = {false};
    b.user = aligned_alloc(4096, b.size);
    b.other = aligned_alloc(4096, 2 * b.size); /* f16 is summed in f32 */
    b.wire = aligned_alloc(4096, 2 * b.size);
    if (b.user == NULL || b.other == NULL || b.wire == NULL) {
        fprintf(stderr, "bench_kernels: no memory for %zu MB\n", megabytes);
        return 2;
    }
    for (size_t i = 0; i < b.size / 4; i++) {
        const float f = (float)((i * 2654435761u) >> 8 & 0xFFFF) / 65536.0f - 0.5f;
        memcpy(b.user + 4 * i, &f, sizeof(f));
    }
    memset(b.other, 0, 2 * b.size);
    for (unsigned long r = 0; r < runs; r++) {
        for (int row = 0; row < BENCH_ROWS; row++) {
            for (int l = 0; l < BENCH_LEVELS; l++) {
                b.kernels = kernels_level(names[l]);
                if (b.kernels != NULL) {
                    const double rate = bench_rate(&b, row);
                    best[l][row] = rate > best[l][row] ? rate : best[l][row];
                    present[l] = true;
                }
            }
        }
    }
    bench_print(best, names, present);
    printf("checksum %llu\n", (unsigned long long)b.sink);
    free(b.user);
    free(b.other);
    free(b.wire);
    return 0;
}
