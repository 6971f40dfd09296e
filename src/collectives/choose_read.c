/* choose_read.c - PCCL_ALGO, in the grammar of NCCL_ALGO.
 * SPDX-License-Identifier: MIT */
#include <stdio.h>
#include <string.h>

#include "collectives/choose.h"

enum { CHOOSE_FUNCTIONS = PLAN_SEND }; /* a message has no choice */
static const char *const functions[CHOOSE_FUNCTIONS] = {"allreduce", "reducescatter", "allgather", "broadcast", "scatter", "alltoall",
                                                  "reduce", "gather"};
#define FUNCTIONS "allreduce, reducescatter, allgather, broadcast, scatter, alltoall, reduce or gather"

/* A piece of the text. */
struct word {
    const char *at;
    size_t length;
};

static char lower(char c)
{
    return c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c;
}

static bool word_is(struct word w, const char *name)
{
    size_t i = 0;
    while (i < w.length && name[i] != 0 && lower(w.at[i]) == name[i]) {
        i++;
    }
    return i == w.length && name[i] == 0;
}

/* Up to the next `end`, or all; `text` goes on behind it. */
static struct word word_take(struct word *text, char end)
{
    const char *found = memchr(text->at, end, text->length);
    struct word w = {text->at, found != NULL ? (size_t)(found - text->at) : text->length};
    size_t used = w.length + (found != NULL);
    text->at += used;
    text->length -= used;
    return w;
}

static struct word word_trim(struct word w)
{
    while (w.length > 0 && *w.at == ' ') {
        w.at++;
        w.length--;
    }
    while (w.length > 0 && w.at[w.length - 1] == ' ') {
        w.length--;
    }
    return w;
}

static bool bad(char *why, size_t bytes, struct word w, const char *expected)
{
    snprintf(why, bytes, "'%.*s': expected %s", (int)(w.length > 40 ? 40 : w.length), w.at, expected);
    return false;
}

static uint16_t offered(unsigned kind)
{
    uint16_t set = 0;
    for (unsigned a = 0; a < PLAN_ALGORITHMS; a++) {
        set |= (uint16_t)(plan_offers((enum plan_kind)kind, (enum plan_algorithm)a) << a);
    }
    return (uint16_t)(set | 1u << PLAN_TINY); /* of small ones, which travel with their launch */
}

struct choose_wishes choose_all(void)
{
    struct choose_wishes w;
    for (unsigned k = 0; k < PLAN_KINDS; k++) {
        w.allowed[k] = offered(k);
    }
    return w;
}

static bool read_list(struct word list, unsigned *set, char *why, size_t bytes)
{
    bool not = list.length > 0 && *list.at == '^';
    struct word rest = {list.at + not, list.length - not};
    *set = 0;
    do {
        struct word name = word_trim(word_take(&rest, ','));
        unsigned a = 0;
        while (a < PLAN_ALGORITHMS && !word_is(name, plan_algorithm_name((uint8_t)a))) {
            a++;
        }
        if (a == PLAN_ALGORITHMS) {
            return bad(why, bytes, name, "tiny, direct, ring, tree, chain, bruck, pairwise, halving or forest");
        }
        *set |= 1u << a;
    } while (rest.length > 0);
    *set = not ? ~*set : *set;
    return true;
}

/* What a kind has, for people. */
static bool none_left(unsigned kind, struct word section, char *why, size_t bytes)
{
    char names[96] = "";
    size_t used = 0;
    for (unsigned a = 0; a < PLAN_ALGORITHMS; a++) {
        if ((offered(kind) >> a & 1) != 0) {
            used += (size_t)snprintf(names + used, sizeof names - used, "%s%s", used > 0 ? ", " : "", plan_algorithm_name((uint8_t)a));
        }
    }
    char expected[160];
    snprintf(expected, sizeof expected, "one of those that %s has: %s", functions[kind], names);
    return bad(why, bytes, section, expected);
}

static bool read_section(struct word section, struct choose_wishes *out, char *why, size_t bytes)
{
    struct word list = section, function = {section.at, 0};
    bool named = memchr(section.at, ':', section.length) != NULL;
    unsigned set, kind = 0;
    if (named) {
        function = word_trim(word_take(&list, ':'));
        while (kind < CHOOSE_FUNCTIONS && !word_is(function, functions[kind])) {
            kind++;
        }
        if (kind == CHOOSE_FUNCTIONS) {
            return bad(why, bytes, function, FUNCTIONS);
        }
    }
    list = word_trim(list);
    if (!read_list(list, &set, why, bytes)) {
        return false;
    }
    for (unsigned k = 0; k < CHOOSE_FUNCTIONS; k++) {
        uint16_t allowed = (uint16_t)(offered(k) & set);
        if (named && k == kind && allowed == 0) {
            return none_left(k, section, why, bytes);
        }
        if (allowed != 0 && (!named || k == kind)) {
            out->allowed[k] = allowed;
        }
    }
    return true;
}

bool choose_read(const char *text, struct choose_wishes *out, char *why, size_t why_bytes)
{
    struct choose_wishes wishes = choose_all();
    struct word rest = {text, strlen(text)};
    while (rest.length > 0) {
        struct word section = word_trim(word_take(&rest, ';'));
        if (section.length > 0 && !read_section(section, &wishes, why, why_bytes)) {
            return false;
        }
    }
    *out = wishes;
    return true;
}
