/* bench_options.c - the words of "pccl bench".
 *
 * One idea: one row for each flag, which both the reader and the help go through.  Invariant: every flag that is taken
 * has an effect, and what is refused is named with its value and what to give instead.
 * SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#include "pccl/bench_options.h"

#include <inttypes.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "pccl/bench_value.h"
#include "pccl/wan_ini.h"

/* While words are read: what only matters when all are known. */
struct reading {
    struct bench_options *o; /* borrowed */
    uint64_t least, most, step;
    unsigned factor;
    bool step_given, factor_given, rounds_given, iterations_given, budget_given, bind_given, ranks_given;
};

/* ---- flags ------------------------------------------------------------------------------------------------------- */

static bool read_ranks(struct reading *r, const char *flag, const char *text)
{
    return r->ranks_given = bench_value_unsigned(flag, text, 1, BENCH_RANKS_MOST, &r->o->world);
}

static bool read_least(struct reading *r, const char *flag, const char *text)
{
    return bench_value_bytes(flag, text, &r->least);
}

static bool read_most(struct reading *r, const char *flag, const char *text)
{
    return bench_value_bytes(flag, text, &r->most);
}

static bool read_step(struct reading *r, const char *flag, const char *text)
{
    return r->step_given = bench_value_bytes(flag, text, &r->step);
}

static bool read_factor(struct reading *r, const char *flag, const char *text)
{
    return r->factor_given = bench_value_unsigned(flag, text, 2, 1024, &r->factor);
}

static bool read_iterations(struct reading *r, const char *flag, const char *text)
{
    return r->iterations_given = bench_value_int(flag, text, 1, 1000000, &r->o->iterations);
}

static bool read_budget(struct reading *r, const char *flag, const char *text)
{
    return r->budget_given = bench_value_int(flag, text, 1, 3600000, &r->o->budget_ms);
}

static bool read_warmup(struct reading *r, const char *flag, const char *text)
{
    return bench_value_int(flag, text, 0, 1000000, &r->o->warmup);
}

static bool read_together(struct reading *r, const char *flag, const char *text)
{
    return bench_value_int(flag, text, 1, BENCH_TOGETHER_MOST, &r->o->together);
}

static bool read_timeout(struct reading *r, const char *flag, const char *text)
{
    return bench_value_int(flag, text, 1, 86400, &r->o->timeout_s);
}

static bool read_cycles(struct reading *r, const char *flag, const char *text)
{
    if (strcmp(text, "0") == 0) {
        return bench_refuse("%s 0 would go on for ever, and never sum up: give a number from 1 to 1000", flag);
    }
    return bench_value_int(flag, text, 1, 1000, &r->o->cycles);
}

static bool read_blocking(struct reading *r, const char *flag, const char *text)
{
    bool blocking = true;
    (void)r;
    if (!bench_value_bool(flag, text, &blocking)) {
        return false;
    }
    return blocking || bench_refuse("%s 0: each operation is waited for, since its time is what is measured; -m launches several at once", flag);
}

static bool read_timestamps(struct reading *r, const char *flag, const char *text)
{
    return bench_value_bool(flag, text, &r->o->timestamps);
}

static bool read_root(struct reading *r, const char *flag, const char *text)
{
    return bench_value_unsigned(flag, text, 0, BENCH_RANKS_MOST - 1, &r->o->root);
}

static bool read_check(struct reading *r, const char *flag, const char *text)
{
    return bench_value_int(flag, text, 0, 1000000, &r->o->check);
}

static bool read_explain(struct reading *r, const char *flag, const char *text)
{
    if (text != NULL) {
        return bench_refuse("%s takes no value, but there is '%s'", flag, text);
    }
    return r->o->explain = true;
}

static bool read_limit(struct reading *r, const char *flag, const char *text)
{
    return bench_value_bool(flag, text, &r->o->limit);
}

static bool read_cputime(struct reading *r, const char *flag, const char *text)
{
    return bench_value_bool(flag, text, &r->o->cputime);
}

static bool read_average(struct reading *r, const char *flag, const char *text)
{
    int value = 0;
    bool ok = bench_value_int(flag, text, BENCH_RANK_0, BENCH_MOST, &value);
    r->o->average = ok ? (enum bench_average)value : r->o->average;
    return ok;
}

static bool read_lanes(struct reading *r, const char *flag, const char *text)
{
    return bench_value_unsigned(flag, text, 1, 64, &r->o->lanes);
}

static bool read_bind(struct reading *r, const char *flag, const char *text)
{
    r->bind_given = true;
    return bench_value_bool(flag, text, &r->o->bind);
}

static bool read_transport(struct reading *r, const char *flag, const char *text)
{
    static const char *const names[] = {[BENCH_AUTO] = "auto", [BENCH_TCP] = "tcp", [BENCH_SHM] = "shm", [BENCH_FABRIC] = "fabric"};
    for (int i = BENCH_AUTO; i <= BENCH_FABRIC; i++) {
        if (strcmp(text, names[i]) == 0) {
            r->o->transport = (enum bench_transport)i;
            return true;
        }
    }
    return bench_refuse("%s takes auto, tcp, shm or fabric, not '%s'", flag, text);
}

static const char *const op_names[REDOP_COUNT] = {
    [REDOP_SUM] = "sum", [REDOP_AVG] = "avg", [REDOP_PROD] = "prod", [REDOP_MAX] = "max", [REDOP_MIN] = "min",
    [REDOP_AND] = "and", [REDOP_OR] = "or", [REDOP_XOR] = "xor", [REDOP_PREMUL] = "mulsum",
};

static bool read_op(struct reading *r, const char *flag, const char *text)
{
    r->o->op_count = 0;
    for (int i = 0; i < REDOP_COUNT; i++) {
        if (strcmp(text, op_names[i]) == 0 || strcmp(text, "all") == 0) {
            r->o->ops[r->o->op_count++] = (enum redop)i;
        }
    }
    return r->o->op_count > 0 || bench_refuse("%s takes sum, prod, min, max, avg, and, or, xor, mulsum or all, not '%s'", flag, text);
}

static const char *const type_names[DTYPE_COUNT] = {
    [DTYPE_U8] = "uint8", [DTYPE_I8] = "int8", [DTYPE_I16] = "int16", [DTYPE_U16] = "uint16", [DTYPE_U32] = "uint32",
    [DTYPE_I32] = "int32", [DTYPE_U64] = "uint64", [DTYPE_I64] = "int64", [DTYPE_F16] = "half", [DTYPE_BF16] = "bfloat16",
    [DTYPE_F32] = "float", [DTYPE_F64] = "double",
    [DTYPE_BOOL] = "bool", [DTYPE_F8E4M3] = "f8e4m3", [DTYPE_F8E5M2] = "f8e5m2",
};

const char *bench_type_name(enum dtype type)
{
    return type_names[type];
}

static bool read_type(struct reading *r, const char *flag, const char *text)
{
    r->o->type_count = 0;
    for (int i = 0; i < DTYPE_COUNT; i++) {
        if (strcmp(text, type_names[i]) == 0 || strcmp(text, "all") == 0) {
            r->o->types[r->o->type_count++] = (enum dtype)i;
        }
    }
    return r->o->type_count > 0 ||
           bench_refuse("%s takes int8, uint8, int16, uint16, int32, uint32, int64, uint64, half, bfloat16, float, double, bool, "
                  "f8e4m3, f8e5m2 or all, "
                  "not '%s'", flag, text);
}

static bool read_kill(struct reading *r, const char *flag, const char *text)
{
    return bench_value_int(flag, text, 0, BENCH_RANKS_MOST - 1, &r->o->kill_rank);
}

static bool read_rounds(struct reading *r, const char *flag, const char *text)
{
    return r->rounds_given = bench_value_int(flag, text, 1, 1000, &r->o->rounds);
}

static bool read_path(const char *flag, const char *text, const char **out)
{
    *out = text;
    return text[0] != 0 || bench_refuse("%s takes the path of a file, not ''", flag);
}

static bool read_json(struct reading *r, const char *flag, const char *text)
{
    return read_path(flag, text, &r->o->json);
}

static bool read_plot(struct reading *r, const char *flag, const char *text)
{
    return read_path(flag, text, &r->o->plot);
}

static bool read_wan(struct reading *r, const char *flag, const char *text)
{
    return read_path(flag, text, &r->o->wan);
}

static const struct flag {
    char letter;
    const char *name, *value; /* value: null: none */
    bool (*read)(struct reading *r, const char *flag, const char *text);
    const char *help; /* lines */
} flags[] = {
    {'n', "ranks", "N", read_ranks, "processes to start on this host, 1 to 64; default 2"},
    {'b', "minbytes", "BYTES", read_least, "smallest size; K, M and G are powers of 1024; default 4"},
    {'e', "maxbytes", "BYTES", read_most, "largest size; default 64M"},
    {'f', "stepfactor", "N", read_factor, "each size is N times the one before; default 4"},
    {'i', "stepbytes", "BYTES", read_step, "each size is so much more than the one before, instead of -f"},
    {'o', "op", "OP", read_op, "sum, prod, min, max, avg, and, or, xor, mulsum or all; default sum"},
    {'d', "datatype", "TYPE", read_type, "int8, uint8, int16, uint16, int32, uint32, int64, uint64, half,\n"
                                         "bfloat16, float, double, bool, f8e4m3, f8e5m2 or all; default float"},
    {'r', "root", "RANK", read_root, "of broadcast, reduce, gather and scatter; default 0"},
    {0, "iters", "N", read_iterations, "measured operations per size; default: what fits in --budget"},
    {0, "budget", "MS", read_budget, "time for the measured operations of each size, at least 3 of them;\ndefault 200"},
    {'w', "warmup_iters", "N", read_warmup, "operations before them that are not measured; default 5"},
    {'m', "agg_iters", "N", read_together, "operations that start together, as a group, in each measured one; the\n"
                                           "time is that of one; 1 to 64, default 1"},
    {'N', "run_cycles", "N", read_cycles, "go through all sizes so often; default 1"},
    {'T', "timeout", "S", read_timeout, "abort, with status 1, when a size takes longer; default: never"},
    {'c', "check", "N", read_check, "compare the results of N operations of each size; default 1"},
    {'a', "average", "0|1|2|3", read_average, "time of rank 0, mean, least or largest over the ranks; default 1"},
    {'z', "blocking", "1", read_blocking, "each operation is waited for: the only way here"},
    {'C', "report_cputime", "0|1", read_cputime, "one more column: processor seconds of all ranks per GB;\ndefault 0"},
    {'S', "report_timestamps", "0|1", read_timestamps, "one more column: when a line was measured; default 0"},
    {0, "transport", "NAME", read_transport, "tcp: sockets; shm: shared memory, or fail; fabric: libfabric, or fail;\n"
                                             "auto: what the library finds; default auto"},
    {0, "lanes", "N", read_lanes, "connections to each rank, 1 to 64; default 1"},
    {0, "bind", "0|1", read_bind, "keep each rank to a core of its own, as mpirun does with two; default 1\n"
                                  "where there are as many cores as ranks, else 0"},
    {0, "limit", "0|1", read_limit, "measure plain links beside it, up to 16 ranks; default 1"},
    {0, "explain", NULL, read_explain, "measure nothing: print which time the cost model expects of each\n"
                                       "algorithm, and which is taken"},
    {0, "kill-rank", "RANK", read_kill, "kill -9 it in the middle of an operation, and show the recovery\n"
                                        "beside what is wanted of it; for each of the sizes, out of place"},
    {0, "rounds", "N", read_rounds, "how often, with --kill-rank; default 5"},
    {0, "wan", "FILE", read_wan, "each rank on a host of this emulated network, see pccl wan --help;\n-n is the number of its hosts then"},
    {0, "json", "FILE", read_json, "write all figures there; -: to standard output, instead of the table"},
    {0, "plot", "FILE", read_plot, "draw bus bandwidth over size there, as SVG"},
};

static void print_help(void)
{
    printf("usage: pccl bench [COLLECTIVE...] [FLAG [VALUE]...]\n"
           "\n"
           "Measures collectives between processes of this host, which it starts itself with a master of their own,\n"
           "and checks what comes out.  Flags and columns are those of nccl-tests, where it has them, and ours stand\n"
           "behind; but -n is the number of ranks, and the time of an operation is the median.\n"
           "\n"
           "  COLLECTIVE              ");
    const struct bench_call *call;
    for (size_t i = 0; (call = bench_call_at(i)) != NULL; i++) {
        printf("%s,%s", call->name, i % 5 == 4 ? "\n                          " : " ");
    }
    printf("or all;\n                          default all_reduce\n");
    for (size_t i = 0; i < sizeof flags / sizeof flags[0]; i++) {
        const struct flag *f = &flags[i];
        char word[64];
        snprintf(word, sizeof word, "%c%c%c --%s %s", f->letter != 0 ? '-' : ' ', f->letter != 0 ? f->letter : ' ',
                 f->letter != 0 ? ',' : ' ', f->name, f->value != NULL ? f->value : "");
        printf("  %-23s ", word);
        if (strlen(word) > 23) {
            printf("\n%26s", "");
        }
        for (const char *at = f->help; *at != 0; at++) {
            putchar(*at);
            if (*at == '\n') {
                printf("%26s", "");
            }
        }
        putchar('\n');
    }
    printf("  -h, --help              print this and exit\n"
           "\n"
           "A size is the larger of what a rank gives and gets, in bytes.  algbw is size / time; busbw what a link would\n"
           "have to carry: algbw x 2(n-1)/n for all_reduce, x (n-1)/n where each rank has a part, x 1 else.  limit is the\n"
           "share of the best that plain links do: the same result in the same buffers of the same processes, over bare\n"
           "connections (TCP beside a fabric) or rings in shared memory, without what makes it safe.  #wrong counts\n"
           "elements of all ranks.  A limit \"fail\": plain links were slower than the library, so the measurement failed.\n"
           "by is the algorithm that the library chooses (PCCL_ALGO narrows it); --json has predicted_us, the time that it expects.\n"
           "sendrecv is no collective: each rank sends to the next, the last to the first, and receives meanwhile.\n"
           "In a call with _v ranks have counts of their own, by turns half as much more and half as much less.\n"
           "\n"
           "  pccl bench -n 4 -b 64K -e 256M                  all-reduce, 4 ranks\n"
           "  pccl bench all -n 3 --transport tcp -e 1M       each collective, over TCP\n"
           "  pccl bench --wan pair.ini -b 64M                two hosts far away from each other, emulated\n"
           "  pccl bench -n 4 -b 64M --kill-rank 2            time to the error, time to the result of the others\n"
           "\n"
           "Exit status: 0; 1 when something was wrong or a rank failed; 2 for an argument to fix; 75: --wan was void.\n");
}

/* ---- all words --------------------------------------------------------------------------------------------------- */

static bool add_call(struct bench_options *o, const char *name)
{
    bool all = strcmp(name, "all") == 0;
    const struct bench_call *one = all ? NULL : bench_call_find(name), *call;
    if (!all && one == NULL) {
        return bench_refuse("there is no collective '%s': give all_reduce, or another of those in --help", name);
    }
    for (size_t i = 0; (call = bench_call_at(i)) != NULL; i++) {
        bool there = false;
        for (size_t c = 0; c < o->call_count; c++) {
            there = there || o->calls[c] == call;
        }
        if ((all || call == one) && !there) {
            o->calls[o->call_count++] = call;
        }
    }
    return true;
}

static const struct flag *find_flag(const char *word, const char **value)
{
    size_t length = strcspn(word, "=");
    for (size_t i = 0; i < sizeof flags / sizeof flags[0]; i++) {
        bool is_short = word[1] == flags[i].letter && flags[i].letter != 0 && word[2] == 0;
        bool is_long = length > 2 && strncmp(word, "--", 2) == 0 && strlen(flags[i].name) == length - 2 &&
                       strncmp(word + 2, flags[i].name, length - 2) == 0;
        if (is_short || is_long) {
            *value = is_long && word[length] == '=' ? word + length + 1 : NULL;
            return &flags[i];
        }
    }
    return NULL;
}

static bool read_word(struct reading *r, int count, char **words, int *index)
{
    const char *word = words[*index], *value = NULL;
    if (strcmp(word, "-h") == 0 || strcmp(word, "--help") == 0) {
        print_help();
        return r->o->done = true;
    }
    if (word[0] != '-') {
        return add_call(r->o, word);
    }
    const struct flag *flag = find_flag(word, &value);
    if (flag == NULL && (strcmp(word, "-t") == 0 || strcmp(word, "-g") == 0)) {
        return bench_refuse("%s is for threads and GPUs, of which there are none here: say with -n how many processes", word);
    }
    if (flag == NULL) {
        return bench_refuse("unknown flag '%s', try --help", word);
    }
    if (value == NULL && flag->value != NULL && *index + 1 >= count) {
        return bench_refuse("a value is missing after '%s', try --help", word);
    }
    char name[32];
    snprintf(name, sizeof name, "%.*s", (int)strcspn(word, "="), word);
    return flag->read(r, name, value != NULL || flag->value == NULL ? value : words[++*index]);
}

static bool list_sizes(struct reading *r)
{
    struct bench_options *o = r->o;
    for (uint64_t size = r->least; size <= r->most; size = r->step_given ? size + r->step : size * r->factor) {
        if (o->size_count == BENCH_SIZES_MOST) {
            return bench_refuse("more than %d sizes from -b to -e: raise -i or -f", BENCH_SIZES_MOST);
        }
        o->sizes[o->size_count++] = size;
    }
    return true;
}

/* Each call has something to measure: "all" leaves out what an operator does not mean for a type, a name given does not. */
static bool check_pairs(const struct bench_options *o)
{
    for (size_t pair = 0; pair < o->type_count * o->op_count; pair++) {
        if (redop_for(o->ops[pair % o->op_count], o->types[pair / o->op_count])) {
            return true;
        }
    }
    for (size_t c = 0; c < o->call_count; c++) {
        if (o->calls[c]->reduces) {
            return bench_refuse("-o %s means nothing for -d %s: %s", op_names[o->ops[0]], type_names[o->types[0]],
                          redop_refusal(o->ops[0], o->types[0]));
        }
    }
    return true;
}

/* A loss may concern one message and not the next: messages have no moment at which all know of it. */
static bool leave_messages_out(struct bench_options *o)
{
    size_t kept = 0;
    for (size_t c = 0; c < o->call_count; c++) {
        if (!o->calls[c]->messages) {
            o->calls[kept++] = o->calls[c];
        }
    }
    bool all = bench_call_at(o->call_count) == NULL;
    if (kept < o->call_count && !all) {
        return bench_refuse("--kill-rank is for collectives, which fail on all ranks: leave sendrecv out");
    }
    o->call_count = kept;
    return true;
}

/* That this process may use. */
static unsigned cores(void)
{
    cpu_set_t set;
    return sched_getaffinity(0, sizeof set, &set) == 0 ? (unsigned)CPU_COUNT(&set) : 1;
}

/* The network: it says how many ranks there are. */
static bool check_wan(struct reading *r)
{
    char error[WAN_ERROR];
    struct bench_options *o = r->o;
    if (o->transport == BENCH_SHM || o->transport == BENCH_FABRIC) {
        return bench_refuse("--wan has sockets between its hosts: leave --transport out");
    }
    o->network = wan_ini_load(o->wan, error);
    if (o->network == NULL) {
        return bench_refuse("--wan: %s", error);
    }
    unsigned hosts = o->network->host_count, most = hosts < BENCH_RANKS_MOST ? hosts : BENCH_RANKS_MOST;
    if (r->ranks_given && o->world > most) {
        return bench_refuse("-n %u is more than the %u hosts of %s: lower -n", o->world, most, o->wan);
    }
    o->world = r->ranks_given ? o->world : most;
    o->transport = BENCH_TCP;
    return true;
}

static bool check_all(struct reading *r)
{
    struct bench_options *o = r->o;
    if (o->wan != NULL && !check_wan(r)) {
        return false;
    }
    unsigned most_bound = cores();
    if (r->least > r->most) {
        return bench_refuse("-b %" PRIu64 " is more than -e %" PRIu64 ": raise -e", r->least, r->most);
    }
    if (r->step_given && r->factor_given) {
        return bench_refuse("-i and -f exclude each other: leave one out");
    }
    if (r->iterations_given && r->budget_given) {
        return bench_refuse("--iters and --budget exclude each other: leave one out");
    }
    if (r->bind_given && o->bind && o->world > most_bound) {
        return bench_refuse("--bind 1 with -n %u needs as many cores, and there are %u: give --bind 0, or a smaller -n", o->world, most_bound);
    }
    o->bind = r->bind_given ? o->bind : o->wan == NULL && o->world <= most_bound;
    if (o->root >= o->world) {
        return bench_refuse("-r %u is no rank of -n %u: give 0 to %u", o->root, o->world, o->world - 1);
    }
    if (o->kill_rank >= (int)o->world) {
        return bench_refuse("--kill-rank %d is no rank of -n %u: give 0 to %u", o->kill_rank, o->world, o->world - 1);
    }
    if (o->kill_rank != BENCH_NOBODY && o->world < 2) {
        return bench_refuse("--kill-rank %d with -n 1 leaves nobody: raise -n", o->kill_rank);
    }
    if (r->rounds_given && o->kill_rank == BENCH_NOBODY) {
        return bench_refuse("--rounds is for --kill-rank: give that, too");
    }
    if (o->kill_rank != BENCH_NOBODY && (o->together > 1 || o->cycles > 1)) {
        return bench_refuse("%s is for measuring, and --kill-rank has rounds of single operations: leave one out", o->together > 1 ? "-m" : "-N");
    }
    if (o->plot != NULL && o->cycles > 1) {
        return bench_refuse("--plot draws one cycle: leave -N out");
    }
    if (o->explain && (o->kill_rank != BENCH_NOBODY || o->plot != NULL || o->json != NULL)) {
        return bench_refuse("--explain measures nothing: leave %s out", o->kill_rank != BENCH_NOBODY ? "--kill-rank" : o->plot != NULL ? "--plot" : "--json");
    }
    if (o->kill_rank != BENCH_NOBODY && o->plot != NULL) {
        return bench_refuse("--plot draws bandwidth, of which --kill-rank measures none: leave one out");
    }
    if (o->plot != NULL && strcmp(o->plot, "-") == 0) {
        return bench_refuse("--plot takes the path of a file, not '-'");
    }
    return check_pairs(o) && (o->kill_rank == BENCH_NOBODY || leave_messages_out(o)) && list_sizes(r);
}

void bench_options_end(struct bench_options *o)
{
    wan_network_free(o->network);
    o->network = NULL;
}

bool bench_options_read(int count, char **words, struct bench_options *o)
{
    struct reading r = {.o = o, .least = 4, .most = 64 << 20, .factor = 4};
    *o = (struct bench_options){.world = 2, .lanes = 1, .warmup = 5, .budget_ms = 200, .average = BENCH_MEAN, .check = 1,
                                .together = 1, .cycles = 1, .limit = true, .kill_rank = BENCH_NOBODY, .rounds = 5, .types = {DTYPE_F32},
                                .type_count = 1, .ops = {REDOP_SUM}, .op_count = 1};
    bool ok = true;
    for (int i = 0; ok && i < count && !o->done; i++) {
        ok = read_word(&r, count, words, &i);
    }
    if (ok && o->call_count == 0) {
        ok = add_call(o, "all_reduce");
    }
    return ok && (o->done || check_all(&r));
}

bool bench_job_at(const struct bench_options *o, size_t index, struct bench_job *job)
{
    for (size_t c = 0; c < o->call_count; c++) {
        const struct bench_call *call = o->calls[c];
        size_t ops = call->reduces ? o->op_count : 1, types = call->barrier ? 1 : o->type_count, sizes = call->barrier ? 1 : o->size_count;
        for (size_t pair = 0; pair < types * ops; pair++) {
            enum dtype type = o->types[pair / ops];
            enum redop op = call->reduces ? o->ops[pair % ops] : REDOP_SUM;
            if (call->reduces && !redop_for(op, type)) {
                continue;
            }
            if (index >= sizes) {
                index -= sizes;
                continue;
            }
            size_t bytes = dtype_size(type);
            *job = (struct bench_job){.call = call, .type = type, .op = op};
            job->count = bench_call_count(call, o->sizes[index], bytes, o->world);
            job->size = bench_call_size(call, job->count, bytes, o->world);
            return true;
        }
    }
    return false;
}
