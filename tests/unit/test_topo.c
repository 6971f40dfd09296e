/* test_topo.c - "pccl topo": what it makes of a network, what it prints, and what is wrong with a file.
 * SPDX-License-Identifier: MIT */
#include <ctype.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tests/testing.h"

#include "pccl/topo_show.h"

/* ---- a network by hand --------------------------------------------------------------------------------------------- */

/* Four members; rates in Mb/s as in bench/wan/seed_004.ini, whose best ring has 120, found by trying all six. */
static const uint32_t four_rates[4][4] = {{0, 800, 100, 150}, {750, 0, 120, 140}, {100, 110, 0, 500}, {140, 130, 450, 0}};

static struct topo_matrix *four(uint8_t source)
{
    static const char *const names[] = {"tokyo", "seoul", "london", "newyork"};
    struct topo_matrix *m = topo_matrix_new(4);
    snprintf(m->title, sizeof m->title, "four \"members\" & <more>");
    m->site_count = 4;
    for (uint32_t i = 0; i < 4; i++) {
        snprintf(m->peers[i].name, TOPO_NAME, "%s", names[i]);
        snprintf(m->sites[i].name, TOPO_NAME, "%s", names[i]);
        m->peers[i].site = i;
        for (uint32_t k = 0; k < 4; k++) {
            m->cells[i * 4 + k] = (struct topo_cell){.rate_bps = 1000000 * (uint64_t)four_rates[i][k], .rtt_us = 1000 * (i + k), .loss_ppm = 500,
                                                     .age_s = 7 + i, .source = i == k ? TOPO_UNKNOWN : source};
        }
    }
    return m;
}

/* All that a writer writes. */
static char *written(void (*write)(FILE *, const struct topo_matrix *, const struct topo_solution *), const struct topo_matrix *m,
                     const struct topo_solution *s)
{
    FILE *f = tmpfile();
    write(f, m, s);
    long size = ftell(f);
    char *text = calloc((size_t)size + 1, 1);
    rewind(f);
    EXPECT_EQ(fread(text, 1, (size_t)size, f), (size_t)size);
    fclose(f);
    return text;
}

static void write_svg(FILE *to, const struct topo_matrix *m, const struct topo_solution *s)
{
    EXPECT(topo_svg_write(to, m, s));
}

/* ---- what it makes of it ------------------------------------------------------------------------------------------- */

TEST(ring_bound_trees_and_times_are_right_for_four_members) /* an operator would buy the wrong line */
{
    struct topo_matrix *m = four(TOPO_DESCRIBED);
    struct topo_solution *s = topo_solve(m, 64.0 * 1048576);
    double cut = 0, shares = 0;
    EXPECT(s->no_plan == NULL && s->no_trees == NULL && s->known == 12 && s->pairs == 12);
    EXPECT(s->ring_bps == 120e6 && s->ring_proven && s->bound_bps == 120e6);
    uint32_t least = UINT32_MAX;
    for (uint32_t i = 0; i < 4; i++) {
        uint32_t rate = four_rates[s->ring[i]][s->ring[(i + 1) % 4]];
        least = rate < least ? rate : least;
        shares += s->share[i];
    }
    EXPECT(least == 120 && fabs(shares - 1) < 1e-9);
    /* Each split of the members carries the buffer once; over all pairs go three copies: what the trees reach is no more than either says. */
    cut = 1e6 * (750 + 100 + 110 + 140 + 130 + 450) / 3;
    EXPECT(s->tree_bps > 0.98 * s->tree_bound_bps && s->tree_bps <= s->tree_bound_bps * (1 + 1e-6) && s->tree_bps <= cut * (1 + 1e-6));
    EXPECT(s->choice.algo == COST_TREES);
    double bits = 64.0 * 1048576 * 8, sent = 0;
    EXPECT(s->choice.predicted_s[COST_TREES] > bits / s->tree_bps && s->choice.predicted_s[COST_RING] > 1.5 * bits / 120e6);
    for (uint32_t i = 0; i < 16; i++) {
        EXPECT(s->load[i] == s->load[i % 4 * 4 + i / 4]); /* up a tree, and down */
        sent += s->load[i];
    }
    EXPECT(fabs(sent - 2 * 3) < 1e-3); /* copies of the buffer that all members send */
    topo_solution_free(s);
    topo_matrix_free(m);
}

TEST(what_is_not_measured_is_not_guessed) /* a plan over edges that nobody has seen */
{
    struct topo_matrix *m = four(TOPO_PROBED);
    m->cells[2] = m->cells[2 * 4] = (struct topo_cell){.source = TOPO_UNKNOWN}; /* both ways: one stands for the other */
    struct topo_solution *s = topo_solve(m, 1e6);
    char *text = written(topo_text_write, m, s);
    EXPECT(s->known == 10 && strstr(s->no_plan, "pcclOptimizeTopology") != NULL);
    EXPECT(strstr(text, "10 of 12 edges measured by probes") != NULL && strstr(text, "of those that are measured") != NULL);
    EXPECT(strstr(text, "all-reduce") == NULL && strstr(text, "operations") == NULL);
    free(text);
    topo_solution_free(s);
    m->cells[1].source = m->cells[4].source = TOPO_OBSERVED;
    s = topo_solve(m, 1e6);
    text = written(topo_text_write, m, s);
    EXPECT(strstr(text, "10 of 12 edges measured by probes, of which operations have raised 2\n") != NULL);
    free(text);
    topo_solution_free(s);
    m->cells[1].source = m->cells[4].source = TOPO_ASSUMED;
    s = topo_solve(m, 1e6);
    text = written(topo_text_write, m, s);
    EXPECT(strstr(text, "8 of 12 edges measured by probes, 2 assumed to be like others between the same sites\n") != NULL);
    free(text);
    topo_solution_free(s);
    topo_matrix_free(m);
    m = topo_matrix_new(1); /* somebody alone */
    m->site_count = 1;
    s = topo_solve(m, 1e6);
    text = written(topo_text_write, m, s);
    EXPECT(strstr(text, "1 peer, 0 of 0 edges") != NULL && strstr(text, "there is one peer only") != NULL);
    free(text);
    topo_solution_free(s);
    topo_matrix_free(m);
}

TEST(times_of_operations_decide_between_algorithms) /* a plan that had turned out to be slower was shown as the fastest */
{
    struct topo_matrix *m = four(TOPO_PROBED);
    struct topo_solution *s = topo_solve(m, 64.0 * 1048576);
    double links_s = s->choice.predicted_s[COST_TREES], direct_s = s->choice.predicted_s[COST_DIRECT];
    EXPECT(s->choice.algo == COST_TREES && s->expected_s[COST_TREES] == links_s && direct_s < 2.5 * links_s);
    topo_solution_free(s);
    m->times[TOPO_FOREST] = (struct topo_time){.permille = 3000, .bytes = 16 << 20, .took_us = 1234567};
    s = topo_solve(m, 64.0 * 1048576);
    EXPECT(s->choice.algo == COST_DIRECT && s->choice.predicted_s[COST_TREES] == links_s);
    EXPECT(s->expected_s[COST_TREES] > 2.5 * links_s && s->expected_s[COST_TREES] < 3 * links_s); /* delays stay as they are */
    EXPECT(s->expected_s[COST_DIRECT] == direct_s);
    char *text = written(topo_text_write, m, s);
    EXPECT(strstr(text, "predicted from the links alone, then with what operations have shown\n") != NULL);
    EXPECT(strstr(text, "last: 1.23 s for 16 MiB\n") != NULL);
    free(text);
    topo_solution_free(s);
    topo_matrix_free(m);
}

TEST(links_that_a_site_shares_are_known_here_as_at_the_master) /* trees that the library does not have were shown */
{
    struct topo_matrix *m = topo_matrix_new(4); /* two sites of two; each edge between them carries 100 Mb/s alone, all together 110 */
    for (uint32_t i = 0; i < 4; i++) {
        for (uint32_t k = 0; k < 4; k++) {
            bool far = i / 2 != k / 2;
            m->cells[i * 4 + k] = (struct topo_cell){.rate_bps = far ? 100000000 : 1000000000, .rtt_us = far ? 40000 : 300, .age_s = 1,
                                                     .source = i == k ? TOPO_UNKNOWN : TOPO_PROBED};
        }
    }
    EXPECT(topo_matrix_find_sites(m) && m->site_count == 2);
    struct topo_solution *s = topo_solve(m, 64.0 * 1048576);
    double apart = s->tree_bps;
    char *text = written(topo_text_write, m, s);
    EXPECT(s->sites.count == 0 && strstr(text, "together to other sites") == NULL);
    free(text);
    topo_solution_free(s);
    for (uint32_t i = 0; i < 4; i++) {
        m->peers[i].up_bps = m->peers[i].down_bps = 1000000000;
        m->peers[i].far_up_bps = m->peers[i].far_down_bps = 55000000;
    }
    s = topo_solve(m, 64.0 * 1048576);
    text = written(topo_text_write, m, s);
    EXPECT(s->sites.count == 2 && s->tree_bps < 0.8 * apart);
    EXPECT(strstr(text, "peers 0 1 send 110 Mb/s together to other sites, and receive 110 Mb/s\n") != NULL);
    free(text);
    topo_solution_free(s);
    topo_matrix_free(m);
}

/* ---- what it prints ------------------------------------------------------------------------------------------------ */

static const char golden[] =
    "four \"members\" & <more>: 4 peers, 12 of 12 edges measured by probes\n"
    "\n"
    "rate, Mb/s                        0        1        2        3\n"
    "  0 tokyo                         -      800      100      150\n"
    "  1 seoul                       750        -      120      140\n"
    "  2 london                      100      110        -      500\n"
    "  3 newyork                     140      130      450        -\n"
    "\n"
    "round trip, ms                    0        1        2        3\n"
    "  0 tokyo                         -     1.00     2.00     3.00\n"
    "  1 seoul                      1.00        -     3.00     4.00\n"
    "  2 london                     2.00     3.00        -     5.00\n"
    "  3 newyork                    3.00     4.00     5.00        -\n"
    "\n"
    "loss, %                           0        1        2        3\n"
    "  0 tokyo                         -     0.05     0.05     0.05\n"
    "  1 seoul                      0.05        -     0.05     0.05\n"
    "  2 london                     0.05     0.05        -     0.05\n"
    "  3 newyork                    0.05     0.05     0.05        -\n"
    "\n"
    "age, s                            0        1        2        3\n"
    "  0 tokyo                         -     7.00     7.00     7.00\n"
    "  1 seoul                      8.00        -     8.00     8.00\n"
    "  2 london                     9.00     9.00        -     9.00\n"
    "  3 newyork                    10.0     10.0     10.0        -\n"
    "\n"
    "best ring     0 1 2 3\n"
    "slowest edge  120 Mb/s, gap 0.0 %: no ring has a faster one\n"
    "ring in use   0 2 1 3\n"
    "slowest edge  100 Mb/s\n";

TEST(text_is_what_it_was) /* a column of another pair, or a ring that is not the one in use */
{
    static const uint16_t used[] = {0, 2, 1, 3};
    struct topo_matrix *m = four(TOPO_PROBED);
    EXPECT(topo_matrix_use_ring(m, used));
    struct topo_solution *s = topo_solve(m, 64.0 * 1048576);
    char *text = written(topo_text_write, m, s);
    char *behind = strstr(text, "\nshares of the peers");
    EXPECT(behind != NULL && strstr(behind, "\ntrees carry ") != NULL && strstr(behind, "all-reduce of 64 MiB, predicted") != NULL);
    EXPECT(behind != NULL && strstr(behind, "\n* forest ") != NULL && strstr(behind, "\n  ring ") != NULL);
    if (behind != NULL) {
        *behind = 0;
    }
    EXPECT_STR(text, golden);
    free(text);
    topo_solution_free(s);
    topo_matrix_free(m);
}

/* Elements are closed in order, attributes have quotes, and no character needs an escape. */
static bool well_formed(const char *text)
{
    char open[16][16];
    int depth = 0, roots = 0;
    for (const char *at = text; *at != 0; at++) {
        if (*at == '&' && strncmp(at, "&#", 2) != 0) {
            return false;
        }
        if (*at != '<') {
            continue;
        }
        bool closes = at[1] == '/', quoted = false;
        const char *name = at + 1 + closes, *end = name;
        for (; *end != 0 && (quoted || *end != '>'); end++) {
            quoted = quoted != (*end == '"');
            if (*end == '<') {
                return false;
            }
        }
        size_t length = strspn(name, "abcdefghijklmnopqrstuvwxyz");
        if (*end == 0 || length == 0 || length > 15) {
            return false;
        }
        if (closes && (depth == 0 || strncmp(open[--depth], name, length) != 0 || name[length] != '>')) {
            return false;
        }
        if (!closes && end[-1] != '/') {
            roots += depth == 0;
            if (depth == 16) {
                return false;
            }
            snprintf(open[depth++], 16, "%.*s", (int)length, name);
        }
        at = end;
    }
    return depth == 0 && roots == 1;
}

static uint32_t count_of(const char *text, const char *word)
{
    uint32_t count = 0;
    for (const char *at = text; (at = strstr(at, word)) != NULL; at++) {
        count++;
    }
    return count;
}

TEST(picture_is_sound_and_has_each_peer_and_edge) /* a name with a bracket ends the picture there */
{
    EXPECT(well_formed("<a><b c=\"<\"/></a>") == false && well_formed("<a><b></a></b>") == false && well_formed("<a b=\"1\"><c/></a>"));
    struct topo_matrix *m = four(TOPO_DESCRIBED);
    snprintf(m->peers[2].name, TOPO_NAME, "a<b>&\"c\"");
    struct topo_solution *s = topo_solve(m, 1e8);
    char *text = written(write_svg, m, s);
    EXPECT(well_formed(text));
    EXPECT_EQ(count_of(text, "<circle "), 4);
    EXPECT_EQ(count_of(text, "<title>"), 6); /* a title for each pair */
    EXPECT(strstr(text, "a&#60;b&#62;&#38;&#34;c&#34;") != NULL && strstr(text, "nan") == NULL && strstr(text, "inf") == NULL);
    free(text);
    topo_solution_free(s);
    topo_matrix_free(m);
}

/* Any rates, from a seed; `per_site` peers in each site. */
static struct topo_matrix *many(uint32_t count, uint32_t per_site)
{
    struct topo_matrix *m = topo_matrix_new(count);
    uint64_t state = 12345;
    m->site_count = (count + per_site - 1) / per_site;
    for (uint32_t i = 0; i < count; i++) {
        m->peers[i].site = i / per_site;
        snprintf(m->peers[i].name, TOPO_NAME, "p%u", i);
        snprintf(m->sites[i / per_site].name, TOPO_NAME, "s%u", i / per_site);
        for (uint32_t k = 0; k < count; k++) {
            state = state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
            m->cells[i * count + k] = (struct topo_cell){.rate_bps = 1000000 + (state >> 34), .rtt_us = 1 + (uint32_t)(state >> 50),
                                                         .source = i == k ? TOPO_UNKNOWN : TOPO_PROBED};
        }
    }
    return m;
}

TEST(large_groups_get_a_summary_and_a_picture_of_the_ring)
{
    struct topo_matrix *m = many(256, 32);
    struct topo_solution *s = topo_solve(m, 1e8);
    char *text = written(topo_text_write, m, s), *picture = written(write_svg, m, s);
    EXPECT(strstr(text, "over all edges") != NULL && strstr(text, "slowest edges") != NULL && strlen(text) < 8192);
    EXPECT(strstr(text, "groups of more than 64 members have none") != NULL);
    EXPECT(topo_gap(s) >= 0 && topo_gap(s) < 10);
    EXPECT(well_formed(picture));
    EXPECT_EQ(count_of(picture, "<circle "), 256);
    EXPECT_EQ(count_of(picture, "<path "), 8);
    EXPECT_EQ(count_of(picture, "<title>"), 8 + 256);
    free(picture);
    free(text);
    topo_solution_free(s);
    topo_matrix_free(m);
}

/* ---- files --------------------------------------------------------------------------------------------------------- */

static bool same(const struct topo_matrix *a, const struct topo_matrix *b)
{
    bool same = strcmp(a->title, b->title) == 0 && a->count == b->count && a->site_count == b->site_count;
    for (uint32_t i = 0; same && i < a->count; i++) {
        const struct topo_peer *p = &a->peers[i], *q = &b->peers[i];
        same = strcmp(p->name, q->name) == 0 && p->site == q->site && p->up_bps == q->up_bps && p->down_bps == q->down_bps &&
               p->far_up_bps == q->far_up_bps && p->far_down_bps == q->far_down_bps;
        same = same && (a->ring == NULL) == (b->ring == NULL) && (a->ring == NULL || a->ring[i] == b->ring[i]);
    }
    for (int kind = 0; same && kind < TOPO_KINDS; kind++) {
        const struct topo_time *p = &a->times[kind], *q = &b->times[kind];
        same = p->permille == q->permille && p->bytes == q->bytes && p->took_us == q->took_us;
    }
    for (uint32_t i = 0; same && i < a->site_count; i++) {
        const struct topo_site *p = &a->sites[i], *q = &b->sites[i];
        same = strcmp(p->name, q->name) == 0 && p->up_bps == q->up_bps && p->down_bps == q->down_bps;
    }
    for (uint32_t i = 0; same && i < a->count * a->count; i++) {
        const struct topo_cell *p = &a->cells[i], *q = &b->cells[i];
        bool known = p->source != TOPO_UNKNOWN;
        same = p->source == q->source && (!known || (p->rate_bps == q->rate_bps && p->rtt_us == q->rtt_us && p->loss_ppm == q->loss_ppm &&
                                                     (!topo_source_measured(p->source) || p->age_s == q->age_s)));
    }
    return same;
}

TEST(json_that_was_written_is_read_again) /* an analysis at home differs from the one at the master */
{
    static const uint16_t used[] = {3, 2, 1, 0};
    for (int shape = 0; shape < 3; shape++) {
        struct topo_matrix *m = shape == 2 ? many(30, 7) : four(shape == 0 ? TOPO_PROBED : TOPO_DESCRIBED);
        char error[TOPO_ERROR] = "";
        if (shape == 0) {
            EXPECT(topo_matrix_use_ring(m, used));
            m->cells[1] = (struct topo_cell){.source = TOPO_UNKNOWN};
            m->cells[3].source = TOPO_OBSERVED;
            m->peers[2].far_up_bps = 789;
            m->times[TOPO_RING] = (struct topo_time){.permille = 1300, .bytes = 1 << 20, .took_us = 77};
            m->times[TOPO_FOREST].permille = 900;
        } else if (shape == 1) {
            m->cells[1].rate_bps = TOPO_NO_LIMIT;
            m->cells[2].rate_bps = 0;
            m->peers[1].up_bps = 123;
            m->sites[2].down_bps = 456;
        }
        struct topo_solution *s = topo_solve(m, 1e8);
        char *text = written(topo_json_write, m, s);
        struct topo_matrix *again = topo_parse("f", text, error);
        EXPECT_STR(error, "");
        EXPECT(again != NULL && same(m, again));
        topo_matrix_free(again);
        for (size_t cut = 0; cut + 2 < strlen(text); cut += shape == 2 ? 997 : 1) { /* a part of a file is none */
            char kept = text[cut];
            text[cut] = 0;
            again = topo_parse("f", text, error);
            EXPECT(again == NULL && strncmp(error, "f:", 2) == 0);
            topo_matrix_free(again);
            text[cut] = kept;
        }
        free(text);
        topo_solution_free(s);
        topo_matrix_free(m);
    }
}

TEST(mistakes_in_a_file_are_named_with_their_line)
{
    static const struct {
        const char *text, *error;
    } rows[] = {
        {"", "f:1: the file ends here, expected '{'"},
        {"{\"x\": 1}", "f:1: \"peers\" is missing: is it a file of pccl topo --json?"},
        {"{\n\"edges\": []}", "f:2: edges stands before the peers"},
        {"{\"sites\": [{\"name\": \"s\"}],\n\"peers\": []}", "f:2: there are no peers"},
        {"{\"peers\": [\n{\"name\": \"a\"}]}", "f:2: the peer's site is not among the sites, which stand before the peers"},
        {"{\"sites\": [{\"name\": \"s\"}], \"peers\": [{\"name\": \"a\"}, {\"name\": \"b\"}],\n\n\"edges\": [{\"from\": 0, \"to\": 2}]}",
         "f:3: to takes a whole number from 0 to 1"},
        {"{\"sites\": [{\"name\": \"s\"}], \"peers\": [{\"name\": \"a\"}, {\"name\": \"b\"}], \"edges\": [{\"from\": 0, \"to\": 0}]}",
         "f:1: an edge needs \"from\" and \"to\", two different peers"},
        {"{\"sites\": [{\"name\": \"s\"}], \"peers\": [{\"name\": \"a\"}, {\"name\": \"b\"}], \"edges\": [{\"from\": 0, \"to\": 1, \"rate_bps\": -5}]}",
         "f:1: rate_bps takes a whole number from 0 to 18446744073709551615"},
        {"{\"sites\": [{\"name\": \"s\"}], \"peers\": [{\"name\": \"a\"}, {\"name\": \"b\"}], \"edges\": [{\"from\": 0, \"to\": 1, \"loss_ppm\": 1000001}]}",
         "f:1: loss_ppm takes a whole number from 0 to 1000000"},
        {"{\"sites\": [{\"name\": \"s\"}], \"peers\": [{\"name\": \"a\"}, {\"name\": \"b\"}], \"edges\": [{\"from\": 0, \"to\": 1, \"source\": \"x\"}]}",
         "f:1: source is \"x\": expected \"probe\", \"operations\", \"site\" or \"description\""},
        {"{\"sites\": [{\"name\": \"s\"}], \"peers\": [{\"name\": \"a\"}, {\"name\": \"b\"}], \"edges\": [], \"ring_in_use\": [1, 1]}",
         "f:1: ring_in_use has peer 1 twice"},
        {"{\"sites\": [{\"name\": \"s\"}], \"peers\": [{\"name\": \"a\"}, {\"name\": \"b\"}], \"edges\": [], \"ring_in_use\": [1]}",
         "f:1: ring_in_use has 1 of 2 peers"},
        {"{\"sites\": [{\"name\": \"s\"}], \"peers\": [{\"name\": \"a\"}], \"edges\": []} x", "f:1: something follows the end"},
    };
    char error[TOPO_ERROR], deep[200] = "{\"x\": ";
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct topo_matrix *m = topo_parse("f", rows[i].text, error);
        EXPECT(m == NULL);
        EXPECT(strncmp(error, rows[i].error, strlen(rows[i].error)) == 0);
        topo_matrix_free(m);
    }
    memset(deep + 6, '[', 100);
    EXPECT(topo_parse("f", deep, error) == NULL);
    EXPECT_STR(error, "f:1: lists within lists, 32 deep");
    EXPECT(topo_read("/no/such/file", error) == NULL);
    EXPECT_STR(error, "/no/such/file: No such file or directory: give a file that can be read");
}
