/* fuzz_p2p.c - any bytes as a message between peers: first byte the frame type, then the payload.
 *
 * Each message is decoded and encoded again, payload included: what was accepted must come out byte by byte as it went in.
 * Payload bytes are all read, so that a sanitizer sees a length that reaches past the frame.
 * SPDX-License-Identifier: MIT */
#include <stdlib.h>
#include <string.h>

#include "fuzz/echo.h"
#include "wire/p2p.h"

PLAIN(hello)
PLAIN(hello_ack)
PLAIN(want)
PLAIN(path)
PLAIN(got)
PLAIN(hold)
PLAIN(refuse)
PLAIN(credit)
PLAIN(manifest_want)
PLAIN(leaf_want)
PLAIN(entries_want)

#define PAYLOAD(name)                                                                                                  \
    static bool echo_##name(struct reader *r, struct writer *w)                                                        \
    {                                                                                                                  \
        struct msg_##name m = {0};                                                                                     \
        const void *payload;                                                                                           \
        if (!get_##name(r, &m, &payload)) {                                                                            \
            return false;                                                                                              \
        }                                                                                                              \
        swallow(payload, m.bytes);                                                                                     \
        put_##name(w, &m);                                                                                             \
        put_bytes(w, payload, m.bytes);                                                                                \
        return true;                                                                                                   \
    }
PAYLOAD(eager)
PAYLOAD(part)
PAYLOAD(manifest)
PAYLOAD(leaf)

static bool echo_ready(struct reader *r, struct writer *w)
{
    struct msg_ready m = {0};
    if (!get_ready(r, &m)) {
        return false;
    }
    const struct plan_view plan = {.lanes = 1};
    sink = p2p_params_hash(&m.params, &plan);
    put_ready(w, &m);
    return true;
}

static bool echo_finished(struct reader *r, struct writer *w)
{
    struct msg_finished m = {0};
    if (!get_finished(r, &m)) {
        return false;
    }
    put_finished(w, &m);
    for (uint32_t i = 0; i < m.names; i++) {
        struct op_name name = {0};
        if (!get_op_name(r, &name)) {
            return false;
        }
        put_op_name(w, &name);
    }
    return reader_done(r);
}

static bool echo_entries(struct reader *r, struct writer *w)
{
    struct msg_entries m = {0};
    if (!get_entries(r, &m)) {
        return false;
    }
    put_entries(w, &m);
    for (uint32_t i = 0; i < m.entries; i++) {
        struct entry_key key = {0};
        if (!get_entry_key(r, &key)) {
            return false;
        }
        put_entry_key(w, &key);
    }
    return reader_done(r);
}

static bool echo_data(struct reader *r, struct writer *w)
{
    struct msg_data m = {0};
    if (!get_data(r, &m)) {
        return false;
    }
    put_data(w, &m);
    size_t size = r->left;
    put_bytes(w, get_bytes(r, size), size);
    return reader_done(r);
}

typedef bool (*echo)(struct reader *r, struct writer *w);

static const echo echoes[] = {
    [FRAME_HELLO] = echo_hello,       [FRAME_HELLO_ACK] = echo_hello_ack,
    [FRAME_READY] = echo_ready,       [FRAME_EAGER] = echo_eager,
    [FRAME_WANT] = echo_want,         [FRAME_HOLD] = echo_hold,
    [FRAME_REFUSE] = echo_refuse,     [FRAME_FINISHED] = echo_finished,
    [FRAME_PATH] = echo_path,         [FRAME_PART] = echo_part,
    [FRAME_GOT] = echo_got,
    [FRAME_DATA] = echo_data,         [FRAME_CREDIT] = echo_credit,
    [FRAME_MANIFEST] = echo_manifest, [FRAME_MANIFEST_WANT] = echo_manifest_want,
    [FRAME_LEAF] = echo_leaf,         [FRAME_LEAF_WANT] = echo_leaf_want,
    [FRAME_ENTRIES] = echo_entries,   [FRAME_ENTRIES_WANT] = echo_entries_want,
};

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static unsigned char again[17 << 20];
    if (size == 0 || data[0] >= sizeof echoes / sizeof echoes[0] || echoes[data[0]] == NULL ||
        size - 1 > frame_limit(data[0])) {
        return 0;
    }
    struct reader r;
    struct writer w;
    reader_init(&r, data + 1, size - 1);
    writer_init(&w, again, sizeof again);
    if (!echoes[data[0]](&r, &w)) {
        return 0;
    }
    bool names = data[0] == FRAME_ENTRIES; /* a name is cut off, and what would move a cursor is gone */
    if (w.bad || (!names && (w.used != size - 1 || memcmp(again, data + 1, w.used) != 0))) {
        abort();
    }
    return 0;
}
