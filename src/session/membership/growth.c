/* growth.c - tables grow with use: which are too small for the next event, and moving into larger ones.
 *
 * Its one idea: a step never allocates, so the shell asks before each event, which says by itself what may come with it: a call its slot,
 * a view its members, any frame of a peer one operation more.  What a table holds moves along; what it lacks when the shell had no
 * memory for it, the step meets as no memory.  Between steps an empty one goes back to its first place in the arena.
 * Invariant: a table shrinks only then, and never exceeds its limit in the configuration.
 * SPDX-License-Identifier: MIT */
#include "core/layout.h"
#include "session/calls/slots.h"
#include "session/calls/work.h"
#include "session/membership/growth.h"
#include "session/membership/view_parts.h"
#include "session/tables/marks.h"
#include "session/tables/optable.h"
#include "session/tables/peers.h"
#include "session/tables/tags.h"

enum {
    FIRST = 4,
    FIRST_IF_NONE = 4,
    MARKS_OF_ONE = 4, /* of an operation in one step: its own, of who speaks, of the two whose calls clash */
};

/* ---- what there is ---- */

static uint32_t limit_of(const struct session_config *cfg, enum session_table table)
{
    switch (table) {
    case SESSION_MEMBERS:
        return cfg->max_members;
    case SESSION_PEERS:
        return 2 * cfg->max_members; /* a view, and a proposal */
    case SESSION_EDGES:
        return bounds_edges(cfg->max_members);
    case SESSION_OPS:
        return 1 << 24; /* each member may open MOST_NAMED + MOST_OPENED + MOST_ANSWERED */
    case SESSION_MARKS:
        return 1 << 28; /* ... and speaks of what others have opened, too */
    case SESSION_TAGS:
        return cfg->max_tags;
    case SESSION_OWED:
        return cfg->max_owed;
    case SESSION_SLOTS:
        return cfg->max_ops;
    case SESSION_PARK:
        return cfg->park_blocks;
    case SESSION_WIRE:
        return 1;
    case SESSION_PARTS:
        return BOUNDS_VIEW_BYTES;
    case SESSION_TABLES:
        break;
    }
    return 0;
}

static struct session_growth first_of(const struct session_config *cfg, enum session_table table)
{
    uint32_t first = cfg->first == 0 ? FIRST : cfg->first;
    bool later = table == SESSION_EDGES || table == SESSION_OWED || table == SESSION_PARK || table == SESSION_WIRE ||
                 table == SESSION_PARTS;
    uint32_t limit = limit_of(cfg, table), members = cfg->max_members;
    first = table == SESSION_SLOTS && cfg->first == 0 ? 1 : first; /* they are large, and many programs wait for each call */
    return (struct session_growth){
        .table = table, .entries = later ? 0 : first < limit ? first : limit, .width = first < members ? first : members};
}

static uint32_t entries_of(const struct session *s, enum session_table table)
{
    switch (table) {
    case SESSION_MEMBERS:
        return s->members;
    case SESSION_PEERS:
        return s->peer_count;
    case SESSION_EDGES:
        return s->edge_count;
    case SESSION_OPS:
        return s->op_count;
    case SESSION_MARKS:
        return s->mark_count;
    case SESSION_TAGS:
        return s->tag_count;
    case SESSION_OWED:
        return s->owed_count;
    case SESSION_SLOTS:
        return s->slot_count;
    case SESSION_PARK:
        return s->park_count;
    case SESSION_WIRE:
        return s->wire != NULL;
    case SESSION_PARTS:
        return s->parts_room;
    case SESSION_TABLES:
        break;
    }
    return 0;
}

static struct session_growth present(const struct session *s, enum session_table table)
{
    return (struct session_growth){.table = table, .entries = entries_of(s, table), .width = table == SESSION_OPS ? s->op_width : 0};
}

/* ---- their storage ---- */

enum { WIRE_BYTES = 2 * BOUNDS_EAGER_BYTES + 256, LINE = 64 };

static size_t whole_lines(size_t bytes)
{
    return (bytes + LINE - 1) / LINE * LINE;
}

static uint32_t tree_room(uint32_t members)
{
    return BOUNDS_TREES * (members < BOUNDS_TREE_MEMBERS ? members : BOUNDS_TREE_MEMBERS);
}

static size_t member_bytes(void)
{
    return sizeof(struct member_info) + sizeof(struct gone) + 2 * sizeof(uint64_t) + 8 * sizeof(uint32_t) + sizeof(bool);
}

static size_t bytes_of(const struct session_config *cfg, const struct session_growth *g)
{
    switch (g->table) {
    case SESSION_MEMBERS:
        return g->entries * member_bytes() + bitset_words(g->entries) * sizeof(uint64_t) + sizeof(uint32_t) +
               tree_room(g->entries) * sizeof(uint16_t);
    case SESSION_PEERS:
        return g->entries * (sizeof(struct peer) + sizeof(uint64_t)) + peers_rows(g->entries) * sizeof(uint32_t);
    case SESSION_EDGES:
        return g->entries * (sizeof(struct missing_edge) + 2 * sizeof(uint32_t));
    case SESSION_OPS:
        return op_table_bytes(g);
    case SESSION_MARKS:
        return mark_table_bytes(g->entries);
    case SESSION_TAGS:
        return tag_table_bytes(g->entries);
    case SESSION_OWED:
        return g->entries * sizeof(struct owed);
    case SESSION_SLOTS:
        return slot_table_bytes(g->entries);
    case SESSION_PARK:
        return g->entries * (whole_lines(cfg->park_block_bytes) + sizeof(uint32_t));
    case SESSION_WIRE:
        return g->entries * (size_t)WIRE_BYTES;
    case SESSION_PARTS:
        return g->entries;
    case SESSION_TABLES:
        break;
    }
    return 0;
}

/* The next array of a block, with the first `used` entries of the present one. */
static void *moved(unsigned char **at, size_t size, uint32_t count, const void *from, uint32_t used)
{
    void *to = *at;
    *at += size * count;
    if (used > 0) {
        memcpy(to, from, size * used);
    }
    return to;
}

static void members_use(struct session *s, unsigned char *at, uint32_t count)
{
    struct view *v = &s->view;
    uint32_t sources = s->fetch.source_count;
    s->scratch_members = moved(&at, sizeof *s->scratch_members, count, NULL, 0);
    s->gone = moved(&at, sizeof *s->gone, count, s->gone, s->gone_count);
    v->ids = moved(&at, sizeof *v->ids, count, v->ids, v->world);
    s->fetch.holders = moved(&at, sizeof *s->fetch.holders, count, s->fetch.holders, sources);
    v->apart = moved(&at, sizeof *v->apart, bitset_words(count), v->apart, bitset_words(v->world));
    v->peer = moved(&at, sizeof *v->peer, count, v->peer, v->world);
    v->ring = moved(&at, sizeof *v->ring, count, v->ring, v->world);
    v->places = moved(&at, sizeof *v->places, count, v->places, v->world);
    v->weights = moved(&at, sizeof *v->weights, count, v->weights, v->world);
    v->ranked = moved(&at, sizeof *v->ranked, count, v->ranked, v->world);
    v->shown = moved(&at, sizeof *v->shown, count, v->shown, v->world);
    v->relay_first = moved(&at, sizeof *v->relay_first, count + 1, v->relay_first, v->world > 0 ? v->world + 1 : 0);
    s->fetch.asked = moved(&at, sizeof *s->fetch.asked, count, s->fetch.asked, sources);
    v->trees.parent = moved(&at, sizeof *v->trees.parent, tree_room(count), v->trees.parent, v->trees.count * v->trees.members);
    s->fetch.holder_down = moved(&at, sizeof *s->fetch.holder_down, count, s->fetch.holder_down, sources);
    if (v->world == 0) {
        memset(v->relay_first, 0, (count + 1) * sizeof *v->relay_first);
    }
    s->members = count;
}

static void peers_use(struct session *s, unsigned char *at, uint32_t count)
{
    s->peers = moved(&at, sizeof *s->peers, count, s->peers, s->peer_count);
    s->scratch_ids = moved(&at, sizeof *s->scratch_ids, count, NULL, 0);
    memset(s->peers + s->peer_count, 0, (count - s->peer_count) * sizeof *s->peers);
    s->peer_count = count;
    s->peer_row = moved(&at, sizeof *s->peer_row, peers_rows(count), NULL, 0);
    peers_index(s);
}

/* It grows when no block is free. */
static void park_use(struct session *s, unsigned char *at, uint32_t count)
{
    uint32_t used = s->park_left == 0 ? s->park_count : 0;
    PCCL_ASSERT(s->park_left == 0);
    s->park_pitch = whole_lines(s->cfg.park_block_bytes);
    s->park = moved(&at, s->park_pitch, count, s->park, used);
    s->park_free = moved(&at, sizeof *s->park_free, count, NULL, 0);
    for (uint32_t i = count; i-- > s->park_count;) {
        s->park_free[s->park_left++] = i;
    }
    s->park_count = count;
}

static void use(struct session *s, const struct session_growth *g, void *storage)
{
    switch (g->table) {
    case SESSION_MEMBERS:
        members_use(s, storage, g->entries);
        break;
    case SESSION_PEERS:
        peers_use(s, storage, g->entries);
        break;
    case SESSION_EDGES: {
        unsigned char *at = storage;
        s->view.edge = moved(&at, sizeof *s->view.edge, g->entries, s->view.edge, s->view.edges);
        s->view.relay_to = moved(&at, sizeof *s->view.relay_to, 2 * g->entries, s->view.relay_to, 2 * s->view.edges);
        s->edge_count = g->entries;
        break;
    }
    case SESSION_OPS:
        op_table_use(s, storage, g);
        break;
    case SESSION_MARKS:
        mark_table_use(s, storage, g->entries);
        break;
    case SESSION_TAGS:
        tag_table_use(s, storage, g->entries);
        break;
    case SESSION_OWED:
        owed_table_use(s, storage, g->entries);
        break;
    case SESSION_SLOTS:
        slot_table_use(s, storage, g->entries);
        break;
    case SESSION_PARK:
        park_use(s, storage, g->entries);
        break;
    case SESSION_WIRE:
        s->wire = g->entries == 0 ? NULL : storage;
        break;
    case SESSION_PARTS: {
        unsigned char *at = storage;
        s->parts = moved(&at, 1, g->entries, s->parts, s->parts_used);
        s->parts_room = g->entries;
        break;
    }
    case SESSION_TABLES:
        break;
    }
}

size_t session_arena_bytes(const struct session_config *config)
{
    size_t bytes = whole_lines(sizeof(struct session));
    for (uint32_t t = 0; t < SESSION_TABLES; t++) {
        struct session_growth g = first_of(config, (enum session_table)t);
        bytes += whole_lines(bytes_of(config, &g));
    }
    return bytes;
}

void growth_init(struct session *s)
{
    unsigned char *at = (unsigned char *)s + whole_lines(sizeof *s);
    for (uint32_t t = 0; t < SESSION_TABLES; t++) {
        struct session_growth g = first_of(&s->cfg, (enum session_table)t);
        use(s, &g, at);
        at += whole_lines(bytes_of(&s->cfg, &g));
    }
}

/* ---- what the next event needs ---- */

struct needs {
    uint32_t entries[SESSION_TABLES], width;
};

/* Peers in the table, and those of the next members that are not. */
static uint32_t peers_with(const struct session *s, struct reader *r, uint32_t members)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < s->peer_count; i++) {
        n += s->peers[i].id != 0;
    }
    for (uint32_t i = 0; i < members; i++) {
        struct member_info info;
        if (!get_member_info(r, &info)) {
            break; /* the step says so */
        }
        n += info.id != s->id && peer_find(s, info.id) == NONE;
    }
    return n;
}

/* Refused, not launched here: what the next view does not decide of them is owed. */
static uint32_t refused_unlaunched(const struct session *s)
{
    uint32_t n = 0;
    for (uint32_t i = 0; s->op_used > 0 && i < s->op_count; i++) {
        n += s->ops[i].phase == OP_GHOST && s->ops[i].refused != 0;
    }
    return n;
}

static void view_needs(const struct session *s, struct reader *r, struct needs *n)
{
    struct msg_view m;
    if (!get_view(r, &m)) {
        return;
    }
    for (uint32_t i = 0; i < m.removed; i++) {
        (void)get_u64(r);
    }
    n->entries[SESSION_MEMBERS] = n->width = m.members;
    n->entries[SESSION_PEERS] = peers_with(s, r, m.added);
    n->entries[SESSION_EDGES] = m.edges;
    uint32_t owed = m.decisions + refused_unlaunched(s);
    n->entries[SESSION_TAGS] += owed;
    n->entries[SESSION_OWED] = s->owed_used + owed;
    n->entries[SESSION_MARKS] += 2 * (m.decisions < BOUNDS_CLASHES ? m.decisions : BOUNDS_CLASHES); /* of the two whose calls clash */
}

static void master_needs(const struct session *s, const struct session_event *e, struct needs *n)
{
    struct reader r = view_parts_payload(s, e);
    struct msg_admit admit;
    struct msg_elected elected;
    struct msg_view_part part;
    switch (e->header->type) {
    case FRAME_VIEW_PART:
        n->entries[SESSION_PARTS] = get_view_part(&r, &part) ? part.bytes : 0;
        break;
    case FRAME_VIEW:
        view_needs(s, &r, n);
        break;
    case FRAME_ADMIT:
        if (get_admit(&r, &admit)) {
            n->entries[SESSION_MEMBERS] = admit.members;
            n->entries[SESSION_PEERS] = peers_with(s, &r, admit.members);
        }
        break;
    case FRAME_ELECTED:
        if (get_elected(&r, &elected)) {
            n->entries[SESSION_MEMBERS] = elected.holders + 1;
        }
        break;
    case FRAME_ANSWER: /* numbers that were refused but never launched here are skipped */
        n->entries[SESSION_TAGS] += s->op_used - s->records;
        break;
    default:
        break;
    }
}

/* Messages about one operation begin with its name, and that with its space. */
static uint32_t tags_of(const struct session *s, const struct session_event *e)
{
    uint8_t space = e->header->length > 0 ? *(const uint8_t *)e->payload : OP_SPACES;
    return space < OP_SPACES ? s->classes[space].tags_later : 0;
}

static void needs_of(const struct session *s, const struct session_event *e, struct needs *n)
{
    /* An operation that is launched or heard of, and all calls that wait for that. */
    bool sign_of_life = e->kind == SESSION_TICK || (e->kind == SESSION_PEER_FRAME && e->header->type == FRAME_PING);
    uint32_t ops = s->deferred_count + s->waiting_count + !sign_of_life;
    uint32_t tags = s->tag_used + s->deferred_tags; /* any step may launch what was deferred */
    *n = (struct needs){.width = 0};
    n->entries[SESSION_TAGS] = tags;
    n->entries[SESSION_OPS] = s->op_used + ops;
    n->entries[SESSION_MARKS] = s->mark_used + MARKS_OF_ONE * ops;
    switch ((uint32_t)e->kind) {
    case SESSION_LAUNCH:
        n->entries[SESSION_SLOTS] = e->slot + 1;
        n->entries[SESSION_TAGS] = tags + s->classes[e->launch->space].tags_called;
        n->entries[SESSION_WIRE] = work_encodes(s, &e->launch->params);
        break;
    case SESSION_MASTER_FRAME:
        master_needs(s, e, n);
        break;
    case SESSION_PEER_FRAME:
        n->entries[SESSION_TAGS] = tags + tags_of(s, e);
        n->entries[SESSION_PARK] = e->header->type == FRAME_EAGER ? s->park_count - s->park_left + 1 : 0;
        n->entries[SESSION_MARKS] += e->header->type == FRAME_FINISHED ? s->op_used - s->records : 0; /* says their HOLD, too */
        break;
    default:
        break;
    }
}

uint32_t session_growth(const struct session *s, const struct session_event *next, struct session_growth *out)
{
    struct needs needs;
    uint32_t n = 0;
    if (s->poisoned) {
        return 0;
    }
    needs_of(s, next, &needs);
    for (uint32_t t = 0; t < SESSION_TABLES; t++) {
        enum session_table table = (enum session_table)t;
        bool wider = table == SESSION_OPS && needs.width > s->op_width;
        if (needs.entries[t] <= entries_of(s, table) && !wider) {
            continue; /* as nearly always */
        }
        struct session_growth have = present(s, table), g = have;
        g.entries = layout_doubled(have.entries, FIRST_IF_NONE, needs.entries[t], limit_of(&s->cfg, table));
        if (table == SESSION_OPS) {
            g.width = layout_doubled(have.width, FIRST_IF_NONE, needs.width, s->cfg.max_members);
        }
        if (g.entries > have.entries || g.width > have.width) {
            g.bytes = bytes_of(&s->cfg, &g);
            out[n++] = g;
        }
    }
    return n;
}

void session_grow(struct session *s, const struct session_growth *g, void *storage)
{
    struct session_growth have = present(s, g->table);
    PCCL_ASSERT(g->entries >= have.entries && g->width >= have.width);
    use(s, g, storage);
}

/* ---- back to what it began with ---- */

/* Nothing is in it, and nobody has an index of it. */
static bool is_empty(const struct session *s, enum session_table table)
{
    switch (table) {
    case SESSION_OPS:
        return s->op_used == 0;
    case SESSION_MARKS:
        return s->mark_used == 0;
    case SESSION_SLOTS:
    case SESSION_WIRE: /* of one step, in which a call that is launched may need it */
        return s->slots_used == 0;
    case SESSION_PARK:
        return s->park_left == s->park_count;
    case SESSION_PARTS:
        return s->parts_used == 0;
    case SESSION_MEMBERS:
    case SESSION_PEERS:
    case SESSION_EDGES:
    case SESSION_TAGS:
    case SESSION_OWED:
    case SESSION_TABLES:
        break;
    }
    return false;
}

/* It is no longer in the arena. */
static bool has_grown(const struct session *s, const struct session_growth *first)
{
    struct session_growth have = present(s, first->table);
    return have.entries > first->entries || (have.entries > 0 && have.width > first->width);
}

/* It has no entries; the next that is used finds nothing to move. */
static void forget(struct session *s, enum session_table table)
{
    if (table == SESSION_OPS) {
        s->op_count = 0;
    } else if (table == SESSION_MARKS) {
        s->mark_count = 0;
    } else if (table == SESSION_SLOTS) {
        s->slot_count = s->due.count = s->stuck.count = 0;
    } else if (table == SESSION_PARK) {
        s->park_count = s->park_left = 0;
    }
}

void session_rest(struct session *s, bool given[SESSION_TABLES])
{
    unsigned char *at = (unsigned char *)s + whole_lines(sizeof *s);
    for (uint32_t t = 0; t < SESSION_TABLES; t++) {
        enum session_table table = (enum session_table)t;
        struct session_growth first = first_of(&s->cfg, table), least = first;
        if (table == SESSION_OPS && s->view.world > first.width) { /* sets of so many have no room there: it grows with the next */
            least = (struct session_growth){.table = table, .width = s->op_width};
        }
        given[t] = !s->poisoned && has_grown(s, &first) && is_empty(s, table);
        if (given[t]) {
            forget(s, table);
            use(s, &least, at);
        }
        at += whole_lines(bytes_of(&s->cfg, &first));
    }
}

bool growth_met(const struct session *s, const struct session_event *e)
{
    static const enum session_table tables[] = {SESSION_MEMBERS, SESSION_PEERS, SESSION_EDGES, SESSION_PARTS};
    struct needs n;
    needs_of(s, e, &n);
    bool met = s->op_width >= n.width || n.width > s->cfg.max_members;
    for (uint32_t i = 0; i < sizeof tables / sizeof *tables; i++) {
        uint32_t need = n.entries[tables[i]], limit = limit_of(&s->cfg, tables[i]);
        met = met && (entries_of(s, tables[i]) >= need || need > limit); /* too many for anybody: the step refuses them */
    }
    return met;
}
