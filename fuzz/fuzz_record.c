/* fuzz_record.c - any bytes as records of a journal; also as a kind and the body of one.
 *
 * What was read must be read again as the same from what is written of it.
 * SPDX-License-Identifier: MIT */
#include <stdlib.h>
#include <string.h>

#include "fuzz/echo.h"
#include "wire/record.h"

enum { MOST = 1 << 16 };

/* The body and its lists, as they are read. */
static bool echo(uint8_t kind, struct reader *r, struct writer *w)
{
    struct record_view view;
    struct record_revision revision;
    struct record_end end;
    struct record_seat seat;
    struct member_info info;
    struct op_decision decision;
    uint32_t members = 0, decisions = 0, seats = 0;
    bool good = true;
    if (kind == RECORD_VIEW && (good = get_record_view(r, &view))) {
        swallow(&view, sizeof view);
        put_record_view(w, &view);
        members = view.members, decisions = view.decisions, seats = view.seats;
    } else if (kind == RECORD_REVISION && (good = get_record_revision(r, &revision))) {
        put_record_revision(w, &revision);
    } else if (kind == RECORD_END && (good = get_record_end(r, &end))) {
        put_record_end(w, &end);
        seats = end.seats;
    }
    for (uint32_t i = 0; good && i < members && (good = get_member_info(r, &info)); i++) {
        put_member_info(w, &info);
    }
    for (uint32_t i = 0; good && i < decisions && (good = get_op_decision(r, &decision)); i++) {
        put_op_decision(w, &decision);
    }
    for (uint32_t i = 0; good && i < seats && (good = get_record_seat(r, &seat)); i++) {
        put_record_seat(w, &seat);
    }
    return good && reader_done(r);
}

static void body(uint8_t kind, const void *bytes, size_t size)
{
    static unsigned char once[MOST], twice[MOST];
    struct reader r;
    struct writer w, again;
    writer_init(&w, once, sizeof once);
    reader_init(&r, bytes, size);
    if (!echo(kind, &r, &w) || w.bad) {
        return;
    }
    writer_init(&again, twice, sizeof twice);
    reader_init(&r, once, w.used);
    if (!echo(kind, &r, &again) || again.used != w.used || memcmp(once, twice, w.used) != 0) {
        abort();
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct record rec;
    for (size_t at = 0; record_again(data, size, &at, &rec);) {
        swallow(&rec.name, sizeof rec.name);
        body(rec.kind, rec.body, rec.body_bytes);
    }
    if (size > 0) { /* without a head, which takes long to guess */
        body(data[0], data + 1, size - 1);
    }
    return 0;
}
