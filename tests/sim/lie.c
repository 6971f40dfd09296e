/* lie.c - members that say what is not so: READY, HOLD, FINISHED and STAGED with wrong contents.
 *
 * One idea: the machine of a liar is the library's own, and its frames are changed on their way out, so what the others must bear is
 * what any program could send.  A lie costs the liar its link or its place; where nobody can tell it from a slow or late
 * program, it ends when the liar leaves, at the end of the faults at the latest.  The others lose a retry.
 * Invariant: outcomes of a liar are compared with nobody's, those of all others with each other as ever.
 * SPDX-License-Identifier: MIT */
#include <string.h>

#include "program.h"
#include "sim_cluster.h"

enum { LIE_BYTES = 4096, LIE_MOST = 3 };

static uint8_t lie_type(enum fault_kind kind)
{
    switch ((int)kind) {
    case FAULT_LIE_READY:
        return FRAME_READY;
    case FAULT_LIE_HOLD:
        return FRAME_HOLD;
    case FAULT_LIE_FINISHED:
        return FRAME_FINISHED;
    default:
        return FRAME_STAGED;
    }
}

void lie_wish(struct cluster *cl, struct node *n, enum fault_kind kind)
{
    n->lie_type = lie_type(kind);
    n->lies = 1 + (uint32_t)rng_below(&cl->rng, LIE_MOST);
}

bool lie_is_liar(const struct node *n)
{
    return n->lied_as != 0 && n->lied_as == n->id;
}

void lie_ends(struct cluster *cl, struct node *n)
{
    n->lies = 0;
    if (n->alive && lie_is_liar(n)) {
        cluster_post(cl, 0, EVENT_STEP, n->index, SESSION_LEAVE, 0, 0);
    }
}

/* Of another call, or of no call at all. */
static void lie_name(struct cluster *cl, struct op_name *name)
{
    if (rng_below(&cl->rng, 2) == 0) {
        name->seq += rng_below(&cl->rng, 2) == 0 ? 1 : UINT32_MAX;
    } else {
        name->tag += 1 + rng_below(&cl->rng, 3);
    }
}

static uint64_t lie_peer(struct cluster *cl)
{
    return cl->nodes[rng_below(&cl->rng, cl->node_count)].id;
}

static void lie_ready(struct cluster *cl, struct reader *r, struct writer *out)
{
    struct msg_ready m;
    (void)get_ready(r, &m);
    switch (rng_below(&cl->rng, 5)) {
    case 0:
        lie_name(cl, &m.name);
        break;
    case 1:
        m.params.count += m.name.tag == 1 ? 0 : 1;
        break;
    case 2:
        m.window = 0; /* more than there is would be its own fault to bear */
        break;
    case 3:
        m.bundle++;
        break;
    default:
        m.launch += rng_below(&cl->rng, 2) == 0 ? 5 : UINT64_MAX - 4;
        break;
    }
    put_ready(out, &m);
}

static void lie_hold(struct cluster *cl, struct reader *r, struct writer *out)
{
    struct msg_hold m;
    (void)get_hold(r, &m);
    switch (rng_below(&cl->rng, 5)) {
    case 0:
        lie_name(cl, &m.name);
        break;
    case 1:
        m.round = (uint8_t)rng_below(&cl->rng, rng_below(&cl->rng, 2) == 0 ? 8 : 256);
        break;
    case 2:
        m.params ^= m.name.tag == 1 ? 0 : 4;
        break;
    case 3:
        m.digest ^= m.name.tag == 1 ? 0 : 4;
        break;
    default:
        m.origin = lie_peer(cl);
        break;
    }
    put_hold(out, &m);
}

static void lie_finished(struct cluster *cl, struct reader *r, struct writer *out)
{
    struct msg_finished m;
    (void)get_finished(r, &m);
    uint64_t odd = rng_below(&cl->rng, m.names + 1);
    m.origin = odd == m.names ? lie_peer(cl) : m.origin;
    put_finished(out, &m);
    for (uint32_t i = 0; i < m.names; i++) {
        struct op_name name;
        (void)get_op_name(r, &name);
        if (i == odd) {
            lie_name(cl, &name);
        }
        put_op_name(out, &name);
    }
}

static void lie_staged(struct cluster *cl, struct reader *r, struct writer *out)
{
    struct msg_staged m;
    (void)get_staged(r, &m);
    switch (rng_below(&cl->rng, 4)) {
    case 0:
        m.round += rng_below(&cl->rng, 2) == 0 ? 1 : UINT32_MAX;
        break;
    case 1:
        m.number += rng_below(&cl->rng, 2) == 0 ? 1 : UINT32_MAX;
        break;
    case 2:
        m.status = m.status == STAGED_OK ? STAGED_NO_SOURCE : STAGED_OK;
        break;
    default:
        m.liar = lie_peer(cl);
        break;
    }
    put_staged(out, &m);
}

const void *lie_tell(struct cluster *cl, struct node *n, const void *bytes, uint32_t size)
{
    static unsigned char copy[LIE_BYTES];
    struct frame_header header;
    if (n->lies == 0 || size > LIE_BYTES || !frame_get(bytes, &header) || header.type != n->lie_type ||
        rng_below(&cl->rng, 2) == 0) {
        return bytes;
    }
    struct reader r;
    struct writer out;
    n->lies--;
    n->lied_as = n->id;
    cl->lies++;
    cluster_trace(cl, n->index, "lies", header.type, n->lies);
    memcpy(copy, bytes, size);
    if (header.type != FRAME_STAGED && rng_below(&cl->rng, 6) == 0) { /* of another view */
        header.view += rng_below(&cl->rng, 2) == 0 ? 1 : UINT64_MAX;
        frame_put(copy, &header);
        return copy;
    }
    reader_init(&r, (const unsigned char *)bytes + FRAME_HEADER_BYTES, header.length);
    writer_init(&out, copy + FRAME_HEADER_BYTES, size - FRAME_HEADER_BYTES);
    if (header.type == FRAME_READY) {
        lie_ready(cl, &r, &out);
    } else if (header.type == FRAME_HOLD) {
        lie_hold(cl, &r, &out);
    } else if (header.type == FRAME_FINISHED) {
        lie_finished(cl, &r, &out);
    } else {
        lie_staged(cl, &r, &out);
    }
    return copy;
}
