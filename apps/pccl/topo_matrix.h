/* topo_matrix.h - what "pccl topo" shows: peers, and the way of each ordered pair of them.
 *
 * Its one idea: a master, a description of a network and a file of ours give the same thing, so everything behind it is the same for all.
 * Invariant of one that was read: peers and sites have names, each peer has a site, and the ring, if there is one, has each peer once.
 * SPDX-License-Identifier: MIT */
#ifndef PCCL_TOPO_MATRIX_H
#define PCCL_TOPO_MATRIX_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define TOPO_NO_LIMIT UINT64_MAX

enum {
    TOPO_NAME = 72,
    TOPO_PEERS_MOST = 1024,
    TOPO_ERROR = 400,
};

enum topo_source {
    TOPO_UNKNOWN,  /* nothing else of the cell counts */
    TOPO_PROBED,   /* a probe has measured it, age_s ago */
    TOPO_OBSERVED, /* operations have moved more over it than its last probe */
    TOPO_ASSUMED,  /* taken to be like another one between the same sites, measured age_s ago */
    TOPO_DESCRIBED /* the description of a network says so */
};

/* As JSON calls a source; null: an unknown cell has none. */
const char *topo_source_name(uint8_t source);
/* Whether age_s counts. */
bool topo_source_measured(uint8_t source);

struct topo_cell {
    uint64_t rate_bps; /* 0: the pair cannot connect in this direction; TOPO_NO_LIMIT: nothing limits it */
    uint32_t rtt_us;   /* 0: unknown */
    uint32_t loss_ppm;
    uint32_t age_s;
    uint8_t source;    /* enum topo_source */
};

/* Rates of 0: not known, or without limit. */
struct topo_peer {
    char name[TOPO_NAME];
    uint32_t site;
    uint64_t up_bps, down_bps;         /* where edges were measured: of all at once, */
    uint64_t far_up_bps, far_down_bps; /* ... of those to other sites */
};
struct topo_site {
    char name[TOPO_NAME];
    uint64_t up_bps, down_bps;
};

/* What operations of a running group have shown of one kind of plan. */
enum topo_kind { TOPO_DIRECT, TOPO_RING, TOPO_FOREST, TOPO_KINDS };
/* As PCCL_ALGO and JSON name it. */
const char *topo_kind_name(enum topo_kind kind);
struct topo_time {
    uint32_t permille;       /* of what links alone would take for the bytes; 0: nothing is known */
    uint64_t bytes, took_us; /* of an operation in the newest view; 0: there was none */
};

struct topo_matrix {
    char title[2 * TOPO_NAME];
    uint32_t count, site_count;
    struct topo_peer *peers; /* owned, as all here */
    struct topo_site *sites; /* room for as many as there are peers */
    struct topo_cell *cells; /* [count][count], row: from */
    uint16_t *ring;          /* the one in use; null: none is known */
    struct topo_time times[TOPO_KINDS];
};

struct topo_matrix *topo_matrix_new(uint32_t count); /* all unknown, no ring; null: no memory */
void topo_matrix_free(struct topo_matrix *m);
bool topo_matrix_use_ring(struct topo_matrix *m, const uint16_t *order); /* false: no memory */

/* Known cells, of count * (count - 1). */
uint32_t topo_matrix_known(const struct topo_matrix *m);
/* Puts peers that are near each other into one site, by their round trips. */
bool topo_matrix_find_sites(struct topo_matrix *m); /* false: no memory */

/* Writes the sentence to `error`; always false. */
__attribute__((format(printf, 2, 3))) bool topo_refuse(char error[TOPO_ERROR], const char *format, ...);

/* topo_read.c: the description of a network (INI), or what topo_json_write has written.  Null, with one sentence in `error`. */
struct topo_matrix *topo_read(const char *path, char error[TOPO_ERROR]);
/* topo_parse.c; `path` stands in errors. */
struct topo_matrix *topo_parse(const char *path, const char *text, char error[TOPO_ERROR]);
/* topo_ask.c: a group of a world at a master, "host:port", in so much time. */
struct topo_matrix *topo_ask(const char *master, const char *world, uint32_t group, char error[TOPO_ERROR]);

#endif
