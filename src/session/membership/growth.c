/* growth.c - tables grow with use: which are too small for the next event, and moving into larger ones.
 *
 * Its one idea: a step never allocates, so the shell asks before each event, which says by itself what may come with it: a call its slot,
 * a view its members, any frame of a peer one operation more.  What a table holds moves along; what it lacks when the shell had no
 * memory for it, the step meets as no memory.  Between steps an empty one goes back to its first place in the arena.
 * Invariant: a table shrinks only then, and never exceeds its limit in the configuration.
 * SPDX-License-Identifier: MIT */
#include "core/layout.h"
#include "session/calls/roster.h"
#include "session/calls/slots.h"
#include "session/calls/work.h"
#include "session/membership/growth.h"
#include "session/membership/view_parts.h"
#include "session/state/fetch_sources.h"
#include "session/tables/marks.h"
#include "session/tables/optable.h"
#include "session/tables/park.h"
#include "session/tables/peers.h"
#include "session/tables/storage.h"
#include "session/tables/tags.h"
#include "session/tables/view_table.h"

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
        return s->view.room;
    case SESSION_PEERS:
        return s->peers.count;
    case SESSION_EDGES:
        return s->view.edge_room;
    case SESSION_OPS:
        return s->ops.count;
    case SESSION_MARKS:
        return s->marks.count;
    case SESSION_TAGS:
        return s->tags.count;
    case SESSION_OWED:
        return s->owed.count;
    case SESSION_SLOTS:
        return s->slots.count;
    case SESSION_PARK:
        return s->park.count;
    case SESSION_WIRE:
        return s->wire != NULL;
    case SESSION_PARTS:
        return s->parts.room;
    case SESSION_TABLES:
        break;
    }
    return 0;
}

static struct session_growth present(const struct session *s, enum session_table table)
{
    return (struct session_growth){.table = table, .entries = entries_of(s, table), .width = table == SESSION_OPS ? s->ops.width : 0};
}

/* ---- their storage ---- */

enum { WIRE_BYTES = 2 * BOUNDS_EAGER_BYTES + 256 };

static size_t bytes_of(const struct session_config *cfg, const struct session_growth *g)
{
    switch (g->table) {
    case SESSION_MEMBERS:
        return g->entries * sizeof(struct member_info) + storage_whole(roster_bytes(g->entries)) + storage_whole(source_table_bytes(g->entries)) +
               view_table_bytes(g->entries);
    case SESSION_PEERS:
        return g->entries * sizeof(uint64_t) + peer_table_bytes(g->entries);
    case SESSION_EDGES:
        return view_edges_bytes(g->entries);
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
        return park_table_bytes(cfg, g->entries);
    case SESSION_WIRE:
        return g->entries * (size_t)WIRE_BYTES;
    case SESSION_PARTS:
        return g->entries;
    case SESSION_TABLES:
        break;
    }
    return 0;
}

static void members_use(struct session *s, unsigned char *at, uint32_t count)
{
    s->scratch_members = (struct member_info *)(void *)at;
    at += count * sizeof *s->scratch_members;
    roster_use(s, at, count);
    at += storage_whole(roster_bytes(count));
    source_table_use(s, at, count);
    at += storage_whole(source_table_bytes(count));
    view_table_use(s, at, count);
}

static void peers_use(struct session *s, unsigned char *at, uint32_t count)
{
    s->scratch_ids = (uint64_t *)(void *)at;
    peer_table_use(s, at + count * sizeof *s->scratch_ids, count);
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
    case SESSION_EDGES:
        view_edges_use(s, storage, g->entries);
        break;
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
        park_table_use(s, storage, g->entries);
        break;
    case SESSION_WIRE:
        s->wire = g->entries == 0 ? NULL : storage;
        break;
    case SESSION_PARTS:
        view_parts_use(s, storage, g->entries);
        break;
    case SESSION_TABLES:
        break;
    }
}

size_t session_arena_bytes(const struct session_config *config)
{
    size_t bytes = storage_lines(sizeof(struct session));
    for (uint32_t t = 0; t < SESSION_TABLES; t++) {
        struct session_growth g = first_of(config, (enum session_table)t);
        bytes += storage_lines(bytes_of(config, &g));
    }
    return bytes;
}

void growth_init(struct session *s)
{
    unsigned char *at = (unsigned char *)s + storage_lines(sizeof *s);
    for (uint32_t t = 0; t < SESSION_TABLES; t++) {
        struct session_growth g = first_of(&s->cfg, (enum session_table)t);
        use(s, &g, at);
        at += storage_lines(bytes_of(&s->cfg, &g));
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
    for (uint32_t i = 0; i < s->peers.count; i++) {
        n += s->peers.at[i].id != 0;
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
    for (uint32_t i = 0; s->ops.used > 0 && i < s->ops.count; i++) {
        n += s->ops.at[i].phase == OP_GHOST && s->ops.at[i].refused != 0;
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
    n->entries[SESSION_OWED] = s->owed.used + owed;
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
        n->entries[SESSION_TAGS] += s->ops.used - s->ops.records;
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
    uint32_t ops = s->deferred.count + s->slots.waiting + !sign_of_life;
    uint32_t tags = s->tags.used + s->deferred.tags; /* any step may launch what was deferred */
    *n = (struct needs){.width = 0};
    n->entries[SESSION_TAGS] = tags;
    n->entries[SESSION_OPS] = s->ops.used + ops;
    n->entries[SESSION_MARKS] = s->marks.used + MARKS_OF_ONE * ops;
    switch ((uint32_t)e->kind) {
    case SESSION_LAUNCH:
        n->entries[SESSION_SLOTS] = e->slot + 1;
        n->entries[SESSION_TAGS] = tags + s->classes[e->launch->call.space].tags_called;
        n->entries[SESSION_WIRE] = work_encodes(s, &e->launch->call.params);
        break;
    case SESSION_MASTER_FRAME:
        master_needs(s, e, n);
        break;
    case SESSION_PEER_FRAME:
        n->entries[SESSION_TAGS] = tags + tags_of(s, e);
        n->entries[SESSION_PARK] = e->header->type == FRAME_EAGER ? s->park.count - s->park.left + 1 : 0;
        n->entries[SESSION_MARKS] += e->header->type == FRAME_FINISHED ? s->ops.used - s->ops.records : 0; /* says their HOLD, too */
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
        bool wider = table == SESSION_OPS && needs.width > s->ops.width;
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
        return s->ops.used == 0;
    case SESSION_MARKS:
        return s->marks.used == 0;
    case SESSION_SLOTS:
    case SESSION_WIRE: /* of one step, in which a call that is launched may need it */
        return s->slots.used == 0;
    case SESSION_PARK:
        return s->park.left == s->park.count;
    case SESSION_PARTS:
        return s->parts.used == 0;
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
        op_table_forget(s);
    } else if (table == SESSION_MARKS) {
        mark_table_forget(s);
    } else if (table == SESSION_SLOTS) {
        slot_table_forget(s);
    } else if (table == SESSION_PARK) {
        park_table_forget(s);
    }
}

void session_rest(struct session *s, bool given[SESSION_TABLES])
{
    unsigned char *at = (unsigned char *)s + storage_lines(sizeof *s);
    for (uint32_t t = 0; t < SESSION_TABLES; t++) {
        enum session_table table = (enum session_table)t;
        struct session_growth first = first_of(&s->cfg, table), least = first;
        if (table == SESSION_OPS && s->view.world > first.width) { /* sets of so many have no room there: it grows with the next */
            least = (struct session_growth){.table = table, .width = s->ops.width};
        }
        given[t] = !s->poisoned && has_grown(s, &first) && is_empty(s, table);
        if (given[t]) {
            forget(s, table);
            use(s, &least, at);
        }
        at += storage_lines(bytes_of(&s->cfg, &first));
    }
}

bool growth_met(const struct session *s, const struct session_event *e)
{
    static const enum session_table tables[] = {SESSION_MEMBERS, SESSION_PEERS, SESSION_EDGES, SESSION_PARTS};
    struct needs n;
    needs_of(s, e, &n);
    bool met = s->ops.width >= n.width || n.width > s->cfg.max_members;
    for (uint32_t i = 0; i < sizeof tables / sizeof *tables; i++) {
        uint32_t need = n.entries[tables[i]], limit = limit_of(&s->cfg, tables[i]);
        met = met && (entries_of(s, tables[i]) >= need || need > limit); /* too many for anybody: the step refuses them */
    }
    return met;
}
