/* test_hash.c - SimpleHash64: the original's vectors, a second implementation, equality of levels, and what it must tell
 * apart.
 *
 * Millions of bit flips are tried on a tree of intermediate values of which only the path above the flipped bit is
 * computed anew; samples of it are compared with the kernels.
 * SPDX-License-Identifier: MIT */
#include "kernels/hash.h"
#include "tests/kernel/kernel_testing.h"

/* One half of the hash as its five constants. */
struct half {
    uint32_t add, multiplier;
    int rotation;
};
static const struct half low_half = {0x9E3779B1u, 0x85EBCA6Bu, 7}, high_half = {0xC2B2AE3Du, 0x27D4EB2Fu, 15};

static uint32_t mix(const struct half *c, uint32_t h, uint32_t w)
{
    h ^= w + c->add;
    return ((h << c->rotation) | (h >> (32 - c->rotation))) * c->multiplier;
}

static uint32_t word_at(const uint8_t *p, size_t size)
{
    uint32_t w = 0;
    for (size_t i = 0; i < size; i++) {
        w |= (uint32_t)p[i] << (8 * i);
    }
    return w;
}

/* The tree over 256 lanes as the original describes it, word for word. */
static uint32_t naive_fold(const struct half *c, const uint32_t lanes[256])
{
    uint32_t top[32] = {0};
    for (int warp = 0; warp < 9; warp++) {
        uint32_t t[32];
        memcpy(t, warp < 8 ? lanes + 32 * warp : top, sizeof(t));
        for (int o = 16; o >= 1; o /= 2) {
            for (int i = 0; i < o; i++) {
                t[i] = mix(c, t[i], t[i + o]);
            }
        }
        top[warp < 8 ? warp : 0] = t[0];
    }
    return top[0];
}

static uint32_t naive_half(const struct half *c, const uint8_t *p, size_t size)
{
    const size_t words = size / 4, vecs = words / 4;
    uint32_t h = 0;
    if (vecs > 0) {
        const size_t grid = (vecs + 255) / 256 < 960 ? (vecs + 255) / 256 : 960, per = (vecs + grid - 1) / grid;
        uint32_t acc[256] = {0};
        for (size_t b = 0; b < grid; b++) {
            uint32_t lanes[256] = {0};
            for (size_t i = b * per; i < (b + 1) * per && i < vecs; i++) {
                for (size_t w = 0; w < 4; w++) {
                    uint32_t *lane = &lanes[(i - b * per) % 256];
                    *lane = mix(c, *lane, word_at(p + 16 * i + 4 * w, 4));
                }
            }
            acc[b % 256] = mix(c, acc[b % 256], naive_fold(c, lanes));
        }
        h = naive_fold(c, acc);
    }
    for (size_t w = 4 * vecs; w < words; w++) {
        h = mix(c, h, word_at(p + 4 * w, 4));
    }
    return size % 4 != 0 ? mix(c, h, word_at(p + 4 * words, size % 4)) : h;
}

static uint64_t naive_hash(const uint8_t *p, size_t size)
{
    const uint32_t high = naive_half(&high_half, p, size);
    const uint32_t with_length =
        mix(&high_half, mix(&high_half, high, (uint32_t)size), (uint32_t)((uint64_t)size >> 32));
    return (uint64_t)with_length << 32 | naive_half(&low_half, p, size);
}

static void fill_reference(uint8_t *p, size_t size)
{
    uint32_t s = 42;
    for (size_t i = 0; i < size; i++) {
        s = 1664525u * s + 1013904223u;
        p[i] = (uint8_t)s;
    }
}

TEST(low_half_reproduces_every_vector_of_the_reference)
{
    static const struct {
        size_t size;
        uint32_t hash;
    } vectors[] = {
        {1, 344386053},         {2, 1641605637},       {3, 1717103109},         {4, 3765247898},
        {8, 2234200760},        {15, 2301296661},      {16, 567823145},         {17, 2732276277},
        {25, 3651434421},       {31, 2437362842},      {32, 447659820},         {100, 662786354},
        {1024, 2864584204},     {4096, 3023453573},    {4097, 2324126023},      {65536, 1338424665},
        {1048576, 1004485211},  {1048583, 2358849092}, {3932160, 1021571515},   {3932176, 528289493},
        {16777229, 1861896145}, {67108864, 328807815}, {154533888, 3391090508},
    };
    static const struct {
        size_t size;
        uint32_t hash;
    } zeros[] = {{16, 2884949318}, {4096, 4089848220}, {1048576, 1077144827}};
    const size_t limit = kt_scaled(154533888) < 154533888 ? 16777229 : 154533888;
    uint8_t *p = malloc(limit);
    fill_reference(p, limit);
    EXPECT(p[0] == 0x81 && p[1] == 0xEC && p[7] == 0x12);
    for (int level = 0; level < KT_LEVELS; level++) {
        const struct kernels *k = kt_level(level);
        for (size_t i = 0; k != NULL && i < sizeof(vectors) / sizeof(vectors[0]); i++) {
            if (vectors[i].size <= limit) {
                EXPECT_EQ((uint32_t)hash_simple64_on(k, p, vectors[i].size), vectors[i].hash);
            }
        }
    }
    memset(p, 0, 1048576);
    for (size_t i = 0; i < 3; i++) {
        EXPECT_EQ((uint32_t)hash_simple64(p, zeros[i].size), zeros[i].hash);
    }
    EXPECT_EQ((uint32_t)hash_simple64(p, 0), 0);
    free(p);
}

TEST(both_halves_equal_a_second_implementation_on_every_level_size_and_alignment)
{
    struct rng r = {1};
    const size_t limit = 70000;
    uint8_t *p = malloc(limit + 64);
    fill_reference(p, limit + 64);
    for (uint64_t round = 0; round < kt_scaled(3000); round++) {
        const size_t size = round < 600 ? round : rng_below(&r, round % 8 == 0 ? limit : 8000);
        const size_t align = rng_below(&r, 64);
        const uint64_t want = naive_hash(p + align, size);
        for (int level = 0; level < KT_LEVELS; level++) {
            const struct kernels *k = kt_level(level);
            EXPECT(k == NULL || hash_simple64_on(k, p + align, size) == want);
        }
    }
    free(p);
    const size_t big = 5000003; /* more rows than blocks: 960 blocks, the last ones shorter */
    p = malloc(big);
    fill_reference(p, big);
    for (int level = 0; level < KT_LEVELS; level++) {
        EXPECT(kt_level(level) == NULL || hash_simple64_on(kt_level(level), p, big) == naive_hash(p, big));
    }
    free(p);
}

TEST(hash_reads_nothing_outside_its_bytes)
{
    uint8_t *p = kt_guarded_new();
    fill_reference(p, KT_GUARDED);
    for (int level = 0; level < KT_LEVELS; level++) {
        const struct kernels *k = kt_level(level);
        for (size_t size = 0; k != NULL && size <= 1100; size++) {
            const uint8_t *end = p + KT_GUARDED - size;
            EXPECT(hash_simple64_on(k, end, size) == naive_hash(end, size));
            EXPECT(hash_simple64_on(k, p, size) == naive_hash(p, size));
        }
    }
    kt_guarded_free(p);
}

TEST(zeros_of_different_length_differ)
{
    enum { LENGTHS = 2000 };
    static uint64_t seen[LENGTHS];
    static const uint8_t zeros[LENGTHS];
    for (size_t n = 0; n < LENGTHS; n++) {
        seen[n] = hash_simple64(zeros, n);
        for (size_t m = 0; m < n; m++) {
            EXPECT(seen[m] != seen[n]);
        }
    }
}

/* ---- The tree: at most one vector per lane, up to 256 blocks --------------------------------------------------------- */

enum { TREE_BLOCKS = 16, TREE_NODES = 64, TREE_TRAIL = 64 };

/* Nodes of 32 leaves and their five levels of results: level o at offset o, o = 32, 16, 8, 4, 2, 1. */
struct tree_half {
    uint32_t warps[TREE_BLOCKS][9][TREE_NODES]; /* the ninth is the fold of the eight */
    uint32_t sums[9][TREE_NODES];
};

struct tree {
    struct tree_half halves[2];
    uint32_t *changed[2 * TREE_TRAIL]; /* what a trial has overwritten, to be put back */
    uint32_t before[2 * TREE_TRAIL];
    size_t changes;
    uint8_t *data; /* borrowed */
};

static const struct half *tree_constants(int half)
{
    return half == 0 ? &low_half : &high_half;
}

static void tree_set(struct tree *t, uint32_t *at, uint32_t value)
{
    t->changed[t->changes] = at;
    t->before[t->changes++] = *at;
    *at = value;
}

/* Stores a leaf and everything above it; returns the root of these 32. */
static uint32_t tree_climb(struct tree *t, const struct half *c, uint32_t nodes[TREE_NODES], size_t leaf,
                           uint32_t value)
{
    tree_set(t, &nodes[32 + leaf], value);
    for (size_t o = 16; o >= 1; o /= 2) {
        leaf %= o;
        tree_set(t, &nodes[o + leaf], mix(c, nodes[2 * o + leaf], nodes[3 * o + leaf]));
    }
    return nodes[1];
}

static uint32_t tree_climb_256(struct tree *t, const struct half *c, uint32_t warps[9][TREE_NODES], size_t lane,
                               uint32_t value)
{
    const uint32_t root = tree_climb(t, c, warps[lane / 32], lane % 32, value);
    return tree_climb(t, c, warps[8], lane / 32, root);
}

/* The lane that holds this vector alone. */
static uint32_t tree_lane(const struct tree *t, const struct half *c, size_t vector)
{
    uint32_t words[4], lane = 0;
    memcpy(words, t->data + 16 * vector, sizeof(words));
    for (int w = 0; w < 4; w++) {
        lane = mix(c, lane, words[w]);
    }
    return lane;
}

/* Takes the data's vector `vector` into the tree; the hash without length and tail is the result. */
static uint64_t tree_update(struct tree *t, size_t vector)
{
    uint32_t roots[2];
    for (int half = 0; half < 2; half++) {
        const struct half *c = tree_constants(half);
        struct tree_half *h = &t->halves[half];
        const size_t block = vector / 256;
        const uint32_t hash = tree_climb_256(t, c, h->warps[block], vector % 256, tree_lane(t, c, vector));
        roots[half] = tree_climb_256(t, c, h->sums, block, mix(c, 0, hash));
    }
    return (uint64_t)roots[1] << 32 | roots[0];
}

static void tree_undo(struct tree *t, size_t to)
{
    while (t->changes > to) {
        t->changes--;
        *t->changed[t->changes] = t->before[t->changes];
    }
}

/* Computes every node above 256 leaves already in place; the root is the result. */
static uint32_t tree_build_256(const struct half *c, uint32_t warps[9][TREE_NODES])
{
    for (size_t warp = 0; warp < 9; warp++) {
        uint32_t *nodes = warps[warp];
        for (size_t o = 16; o >= 1; o /= 2) {
            for (size_t i = 0; i < o; i++) {
                nodes[o + i] = mix(c, nodes[2 * o + i], nodes[3 * o + i]);
            }
        }
        if (warp < 8) {
            warps[8][32 + warp] = nodes[1];
        }
    }
    return warps[8][1];
}

/* Up to 256 vectors, or a multiple of 256: then no lane has more than one. */
static struct tree *tree_new(uint8_t *data, size_t vectors, uint64_t *root)
{
    struct tree *t = calloc(1, sizeof(*t));
    uint32_t roots[2];
    t->data = data;
    for (int half = 0; half < 2; half++) {
        const struct half *c = tree_constants(half);
        struct tree_half *h = &t->halves[half];
        for (size_t vector = 0; vector < vectors; vector++) {
            h->warps[vector / 256][vector % 256 / 32][32 + vector % 32] = tree_lane(t, c, vector);
        }
        for (size_t block = 0; block < (vectors + 255) / 256; block++) {
            h->sums[0][32 + block] = mix(c, 0, tree_build_256(c, h->warps[block]));
        }
        roots[half] = tree_build_256(c, h->sums);
    }
    *root = (uint64_t)roots[1] << 32 | roots[0];
    return t;
}

static uint64_t with_length(uint64_t root, size_t size)
{
    const uint32_t high = mix(&high_half, mix(&high_half, (uint32_t)(root >> 32), (uint32_t)size), 0);
    return (uint64_t)high << 32 | (uint32_t)root;
}

static void flip(uint8_t *data, size_t bit)
{
    data[bit / 8] ^= (uint8_t)(1u << (bit % 8));
}

TEST(every_single_and_double_bit_flip_in_512_bytes_changes_the_hash)
{
    enum { SIZE = 512, BITS = 8 * SIZE };
    uint8_t data[SIZE];
    uint64_t base = 0, same = 0, sampled = 0, pairs = 0;
    fill_reference(data, SIZE);
    struct tree *t = tree_new(data, SIZE / 16, &base);
    EXPECT(with_length(base, SIZE) == hash_simple64(data, SIZE));
    const size_t step = (size_t)kt_scaled(BITS) < BITS ? 37 : 1;
    for (size_t i = 0; i < BITS; i += step) {
        flip(data, i);
        const uint64_t single = tree_update(t, i / 128);
        const size_t mark = t->changes;
        EXPECT(single != base);
        EXPECT(with_length(single, SIZE) == hash_simple64(data, SIZE));
        for (size_t j = i + 1; j < BITS; j++) {
            flip(data, j);
            const uint64_t both = tree_update(t, j / 128);
            same += both == base || both == single;
            if (pairs++ % 4099 == 0) {
                sampled++;
                EXPECT(with_length(both, SIZE) == hash_simple64(data, SIZE));
            }
            tree_undo(t, mark);
            flip(data, j);
        }
        tree_undo(t, 0);
        flip(data, i);
    }
    printf("512 bytes: %" PRIu64 " double flips, %" PRIu64 " compared with the kernel\n", pairs, sampled);
    EXPECT_EQ(same, 0);
    free(t);
}

TEST(ten_million_random_pairs_in_64_KiB_change_the_hash)
{
    enum { SIZE = 65536, BITS = 8 * SIZE };
    static uint8_t data[SIZE];
    struct rng r = {7};
    uint64_t base = 0, same = 0, low_same = 0;
    fill_reference(data, SIZE);
    struct tree *t = tree_new(data, SIZE / 16, &base);
    EXPECT(with_length(base, SIZE) == hash_simple64(data, SIZE));
    const uint64_t pairs = kt_scaled(10000000);
    for (uint64_t pair = 0; pair < pairs; pair++) {
        const size_t i = rng_below(&r, BITS), j = (i + 1 + rng_below(&r, BITS - 1)) % BITS;
        flip(data, i);
        flip(data, j);
        uint64_t changed = tree_update(t, i / 128);
        if (j / 128 != i / 128) {
            changed = tree_update(t, j / 128);
        }
        same += changed == base;
        low_same += (uint32_t)changed == (uint32_t)base;
        if (pair % 16384 == 0) {
            EXPECT(with_length(changed, SIZE) == hash_simple64(data, SIZE));
        }
        tree_undo(t, 0);
        flip(data, i);
        flip(data, j);
    }
    printf("64 KiB: %" PRIu64 " random pairs, %" PRIu64 " collide in the low half, %" PRIu64 " in all 64 bits\n", pairs,
           low_same, same);
    EXPECT_EQ(same, 0);
    free(t);
}

/* Flips two bits, counts whether the low half, and the whole, stay the same. */
static void try_pair(uint8_t *data, size_t size, size_t i, size_t j, uint64_t *low_same, uint64_t *same)
{
    const uint64_t before = hash_simple64(data, size);
    flip(data, i);
    flip(data, j);
    const uint64_t after = hash_simple64(data, size);
    *low_same += (uint32_t)before == (uint32_t)after;
    *same += before == after;
    flip(data, i);
    flip(data, j);
}

TEST(pairs_that_collide_in_the_32_bit_form_are_told_apart)
{
    enum { SIZE = 4096 };
    static uint8_t data[SIZE];
    uint64_t low_same = 0, same = 0;
    fill_reference(data, SIZE);
    for (size_t word = 0; word + 1 < SIZE / 4; word++) { /* bit 24 of a word with bit 31 of the next */
        try_pair(data, SIZE, 32 * word + 24, 32 * (word + 1) + 31, &low_same, &same);
    }
    printf("bit 24, next bit 31: %" PRIu64 " collide in the low half, %" PRIu64 " in all 64 bits\n", low_same, same);
    EXPECT(low_same > 100);
    EXPECT_EQ(same, 0);
    low_same = 0;
    for (size_t lane = 0; lane + 16 < SIZE / 16; lane++) { /* bit 24 of the last words of lanes i and i + 16 */
        try_pair(data, SIZE, 128 * lane + 96 + 24, 128 * (lane + 16) + 96 + 24, &low_same, &same);
    }
    printf("bit 24 of lanes i, i + 16: %" PRIu64 " collide in the low half\n", low_same);
    EXPECT(low_same > 10);
    EXPECT_EQ(same, 0);
    /* the same weaknesses of the high half: its rotation is 15, so its bit is 16; the low half must tell */
    for (size_t word = 0; word + 1 < SIZE / 4; word++) {
        try_pair(data, SIZE, 32 * word + 16, 32 * (word + 1) + 31, &low_same, &same);
    }
    for (size_t lane = 0; lane + 16 < SIZE / 16; lane++) {
        try_pair(data, SIZE, 128 * lane + 96 + 16, 128 * (lane + 16) + 96 + 16, &low_same, &same);
    }
    EXPECT_EQ(same, 0);
}
