/* bench_kernels.c - single-thread speed of the kernels beyond the cache and inside it, beside what the memory gives.
 *
 * GB/s counts the elements of the user's buffer once (10^9 bytes), however many operands are read or written, so that rows
 * say how fast a buffer passes through.  The roof is a plain loop that reads two arrays and writes one, a[i] += b[i]; the best of several
 * runs counts, roof and kernels in turn within a run.  What is wider inside than on the wire goes through in pieces of a
 * frame, as in a lane.  Inside the cache the buffer has 256 KB.  Each row is judged: beyond the cache at least 85 % of the roof of the
 * same run, inside at least 60 % of what one thread is known to do (bench_known), on the kind of machine named there.
 * Usage: bench_kernels [megabytes] [runs]; PCCL_CPU chooses the instruction set.
 * SPDX-License-Identifier: MIT */
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "kernels/hash.h"
#include "kernels/numeric.h"
#include "kernels/quant.h"

enum { BENCH_ROWS_MOST = 128, BENCH_PIECE = 32768, BENCH_INSIDE = 256 << 10 };
#define BENCH_OF_ROOF 0.85
#define BENCH_OF_KNOWN 0.60

/* What one thread of an AMD EPYC (Zen 5, AVX-512, 2 cores, November 2026) does in loops written for nothing else, GB/s of the buffer:
 * what a kernel of that kind is set beside inside the cache.  Where only a figure beyond the cache was taken, that one: what is inside can do
 * no less. */
enum bench_kind { BENCH_REFERENCE, BENCH_FOLD, BENCH_HALF, BENCH_SCAN, BENCH_QUANTISE, BENCH_DEQUANTISE, BENCH_HASH, BENCH_KINDS };

static const struct bench_known {
    double rate;
    const char *what;
} bench_known[BENCH_KINDS] = {
    [BENCH_FOLD] = {123, "fp32 a += b, 256 KB; other types move the same bytes"},
    [BENCH_HALF] = {48, "fp16 and bf16 a += b through fp32, 256 KB; converting moves no more"},
    [BENCH_SCAN] = {39, "min and max of fp32, 64 MB"},
    [BENCH_QUANTISE] = {27, "min-max and quantise to 8 bit in blocks, 64 MB"},
    [BENCH_DEQUANTISE] = {28, "dequantise and accumulate, 64 MB"},
    [BENCH_HASH] = {52, "XXH3-64, inside the cache"},
};

struct bench {
    size_t size; /* bytes of the user's buffer */
    uint8_t *user, *other, *wire;
    struct numeric n;
    const struct kernels *kernels;
    uint64_t sink; /* keeps results alive */
};

struct bench_row {
    char name[32];
    void (*run)(struct bench *);
    enum bench_kind kind;
    struct numeric n;
    double outside, inside; /* best, GB/s */
};

static double bench_now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* With vectors of `bytes`. */
#define BENCH_LOOPS(level, bytes, attributes)                                                                          \
    typedef float bench_##level __attribute__((vector_size(bytes)));                                                   \
    attributes static void bench_roof_##level(struct bench *b)                                                         \
    {                                                                                                                  \
        bench_##level x, y;                                                                                            \
        for (size_t i = 0; i < b->size; i += (bytes)) {                                                                \
            memcpy(&x, b->other + i, (bytes));                                                                         \
            memcpy(&y, b->user + i, (bytes));                                                                          \
            x += y;                                                                                                    \
            memcpy(b->other + i, &x, (bytes));                                                                         \
        }                                                                                                              \
    }                                                                                                                  \
    attributes static void bench_read_##level(struct bench *b)                                                         \
    {                                                                                                                  \
        bench_##level v, sum[4] = {{0}};                                                                               \
        for (size_t i = 0; i < b->size; i += 4 * (bytes)) {                                                            \
            for (size_t k = 0; k < 4; k++) { /* additions never wait for each other */                                 \
                memcpy(&v, b->user + i + k * (bytes), (bytes));                                                        \
                sum[k] += v;                                                                                           \
            }                                                                                                          \
        }                                                                                                              \
        sum[0] += sum[1] + sum[2] + sum[3];                                                                            \
        b->sink += (uint64_t)(int64_t)(sum[0][0] + sum[0][1]);                                                         \
    }

BENCH_LOOPS(narrow, 16, )

#if defined(__x86_64__)
BENCH_LOOPS(avx2, 32, __attribute__((target("avx2"))))
BENCH_LOOPS(avx512, 64, __attribute__((target("avx512f"))))
#define BENCH_LOOP(what, b)                                                                                            \
    do {                                                                                                               \
        if (strcmp((b)->kernels->name, "avx512") == 0) {                                                               \
            bench_##what##_avx512(b);                                                                                  \
        } else if (strcmp((b)->kernels->name, "avx2") == 0) {                                                          \
            bench_##what##_avx2(b);                                                                                    \
        } else {                                                                                                       \
            bench_##what##_narrow(b);                                                                                  \
        }                                                                                                              \
    } while (0)
#else
#define BENCH_LOOP(what, b) bench_##what##_narrow(b)
#endif

static void bench_roof(struct bench *b)
{
    BENCH_LOOP(roof, b);
}

static void bench_read(struct bench *b)
{
    BENCH_LOOP(read, b);
}

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

/* In pieces of a frame. */
static void bench_pieces(struct bench *b, void (*work)(struct bench *b, uint8_t *user, uint8_t *wire, size_t count))
{
    const size_t count = bench_count(b);
    for (size_t at = 0; at < count; at += BENCH_PIECE) {
        const size_t part = count - at < BENCH_PIECE ? count - at : BENCH_PIECE;
        work(b, b->user + numeric_user_bytes(&b->n, at), b->wire + numeric_wire_bytes(&b->n, at), part);
    }
}

static void bench_encode_piece(struct bench *b, uint8_t *user, uint8_t *wire, size_t count)
{
    numeric_encode(&b->n, wire, user, count);
}

static void bench_fold_piece(struct bench *b, uint8_t *user, uint8_t *wire, size_t count)
{
    (void)user;
    numeric_fold(&b->n, b->other, wire, count);
}

static void bench_load_piece(struct bench *b, uint8_t *user, uint8_t *wire, size_t count)
{
    (void)user;
    numeric_load(&b->n, b->other, wire, count);
}

static void bench_finish_piece(struct bench *b, uint8_t *user, uint8_t *wire, size_t count)
{
    (void)wire; /* null, as in a lane: it travels as it is */
    numeric_finish(&b->n, user, NULL, b->other, count, 2);
}

static void bench_encode(struct bench *b)
{
    bench_pieces(b, bench_encode_piece);
}

static void bench_fold(struct bench *b)
{
    bench_pieces(b, bench_fold_piece);
}

static void bench_load(struct bench *b)
{
    bench_pieces(b, bench_load_piece);
}

static void bench_finish(struct bench *b)
{
    bench_pieces(b, bench_finish_piece);
}

static void bench_scan(struct bench *b)
{
    const size_t size = dtype_size(b->n.dtype), block = NUMERIC_BLOCK * size;
    for (size_t at = 0; at < b->size; at += block) {
        double min, max;
        const size_t part = b->size - at < block ? b->size - at : block;
        b->kernels->quant->scan[b->n.dtype == DTYPE_F64 ? QUANT_FROM_F64 : QUANT_FROM_F32](b->user + at, part / size, &min, &max);
        b->sink += (uint64_t)(max > min);
    }
}

static struct bench_row bench_rows[BENCH_ROWS_MOST];
static size_t bench_row_count;

static void bench_add(const struct kernels *k, enum bench_kind kind, const char *what, void (*run)(struct bench *), enum dtype dtype, enum redop op,
                      enum quant quant, enum dtype to)
{
    struct bench_row *row = &bench_rows[bench_row_count];
    if (bench_row_count == BENCH_ROWS_MOST || !numeric_init(&row->n, dtype, op, quant, to, k)) {
        return;
    }
    const char *const quants[] = {"", " minmax ", " zps "};
    snprintf(row->name, sizeof(row->name), "%s %s%s%s", dtype_name(dtype), what, quants[quant], quant != QUANT_NONE ? dtype_name(to) : "");
    row->run = run;
    row->kind = kind;
    bench_row_count++;
}

static void bench_list(const struct kernels *k)
{
    bench_add(k, BENCH_REFERENCE, "roof: a += b", bench_roof, DTYPE_F32, REDOP_SUM, QUANT_NONE, DTYPE_U8);
    bench_add(k, BENCH_REFERENCE, "read only", bench_read, DTYPE_F32, REDOP_SUM, QUANT_NONE, DTYPE_U8);
    bench_add(k, BENCH_REFERENCE, "memcpy", bench_copy, DTYPE_F32, REDOP_SUM, QUANT_NONE, DTYPE_U8);
    for (int type = 0; type < DTYPE_COUNT; type++) {
        bool half = type == DTYPE_F16 || type == DTYPE_BF16;
        for (int op = 0; op < REDOP_COUNT; op++) {
            if (!redop_for((enum redop)op, (enum dtype)type)) {
                continue;
            }
            if (op != REDOP_AVG) { /* adds like the sum */
                bench_add(k, half ? BENCH_HALF : BENCH_FOLD, redop_name((enum redop)op), half ? bench_fold : bench_reduce, (enum dtype)type,
                          (enum redop)op, QUANT_NONE, DTYPE_U8);
            }
        }
        if (half) {
            bench_add(k, BENCH_HALF, "to f32", bench_load, (enum dtype)type, REDOP_SUM, QUANT_NONE, DTYPE_U8);
            bench_add(k, BENCH_HALF, "from f32", bench_finish, (enum dtype)type, REDOP_SUM, QUANT_NONE, DTYPE_U8);
        }
    }
    for (int type = DTYPE_F32; type <= DTYPE_F64; type++) {
        bench_add(k, BENCH_SCAN, "min and max", bench_scan, (enum dtype)type, REDOP_SUM, QUANT_NONE, DTYPE_U8);
        for (int quant = QUANT_MINMAX; quant < QUANT_COUNT; quant++) {
            for (int to = 0; to < DTYPE_COUNT; to++) {
                if (numeric_quant_supported((enum dtype)type, (enum quant)quant, (enum dtype)to)) {
                    bench_add(k, BENCH_QUANTISE, "quantise", bench_encode, (enum dtype)type, REDOP_SUM, (enum quant)quant, (enum dtype)to);
                    bench_add(k, BENCH_DEQUANTISE, "add", bench_fold, (enum dtype)type, REDOP_SUM, (enum quant)quant, (enum dtype)to);
                }
            }
        }
    }
    bench_add(k, BENCH_HASH, "hash", bench_hash, DTYPE_F32, REDOP_SUM, QUANT_NONE, DTYPE_U8);
}

static double bench_rate(struct bench *b, const struct bench_row *row, size_t size, int times)
{
    b->n = row->n;
    b->size = size;
    memset(b->wire, 0, 2 * size);
    if (row->n.quant != QUANT_NONE) {
        numeric_encode(&b->n, b->wire, b->user, bench_count(b));
    }
    row->run(b); /* brings it where it is to be */
    const double start = bench_now();
    for (int i = 0; i < times; i++) {
        row->run(b);
    }
    return (double)size * times / (bench_now() - start) / 1e9;
}

static const char *bench_word(bool reached)
{
    return reached ? "PASS" : "BELOW";
}

/* The rows with their verdicts, what they are set beside, and how many reach it. */
static void bench_report(void)
{
    size_t judged = 0, outside = 0, inside = 0;
    printf("%-26s %8s %8s %-7s %8s %8s\n", "", "beyond", "of roof", "", "inside", "of known");
    for (size_t i = 0; i < bench_row_count; i++) {
        const struct bench_row *row = &bench_rows[i];
        double of_roof = row->outside / bench_rows[0].outside;
        if (row->kind == BENCH_REFERENCE) { /* plain loops: what the machine gives */
            printf("%-26s %8.2f %6.0f %% %-7s %8.2f\n", row->name, row->outside, 100 * of_roof, "", row->inside);
            continue;
        }
        double of_known = row->inside / bench_known[row->kind].rate;
        printf("%-26s %8.2f %6.0f %% %-7s %8.2f %6.0f %% %s\n", row->name, row->outside, 100 * of_roof, bench_word(of_roof >= BENCH_OF_ROOF),
               row->inside, 100 * of_known, bench_word(of_known >= BENCH_OF_KNOWN));
        judged++;
        outside += of_roof >= BENCH_OF_ROOF;
        inside += of_known >= BENCH_OF_KNOWN;
    }
    printf("known, GB/s of one thread of an AMD EPYC (Zen 5, AVX-512):\n");
    for (int k = BENCH_FOLD; k < BENCH_KINDS; k++) {
        printf("  %5.0f %s\n", bench_known[k].rate, bench_known[k].what);
    }
    printf("%zu of %zu kernels pass beyond the cache (%.0f %% of the roof), %zu of %zu inside it (%.0f %% of what is known)\n", outside, judged,
           100 * BENCH_OF_ROOF, inside, judged, 100 * BENCH_OF_KNOWN);
}

int main(int argc, char **argv)
{
    const size_t megabytes = argc > 1 ? strtoul(argv[1], NULL, 10) : 64;
    const unsigned long runs = argc > 2 ? strtoul(argv[2], NULL, 10) : 7;
    const size_t size = (megabytes > 0 ? megabytes : 64) * 1000000 / 4096 * 4096, most = size > BENCH_INSIDE ? size : BENCH_INSIDE;
    struct bench b = {.kernels = kernels_get()};
    b.user = aligned_alloc(4096, most);
    b.other = aligned_alloc(4096, 2 * most); /* f16 is summed in f32 */
    b.wire = aligned_alloc(4096, 2 * most);
    if (b.user == NULL || b.other == NULL || b.wire == NULL) {
        fprintf(stderr, "bench_kernels: no memory for %zu MB\n", megabytes);
        return 2;
    }
    for (size_t i = 0; i < most / 4; i++) {
        const float f = (float)((i * 2654435761u) >> 8 & 0xFFFF) / 65536.0f - 0.5f;
        memcpy(b.user + 4 * i, &f, sizeof(f));
    }
    memset(b.other, 0, 2 * most);
    bench_list(b.kernels);
    for (unsigned long r = 0; r < runs; r++) {
        for (size_t i = 0; i < bench_row_count; i++) {
            struct bench_row *row = &bench_rows[i];
            const double outside = bench_rate(&b, row, size, 1), inside = bench_rate(&b, row, BENCH_INSIDE, 20);
            row->outside = outside > row->outside ? outside : row->outside;
            row->inside = inside > row->inside ? inside : row->inside;
        }
    }
    printf("%s, %zu MB and %d KB, GB/s of the user's buffer\n", b.kernels->name, size / 1000000, BENCH_INSIDE >> 10);
    printf("checksum %llu\n", (unsigned long long)b.sink);
    bench_report();
    free(b.user);
    free(b.other);
    free(b.wire);
    return 0;
}
