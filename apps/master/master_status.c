/* master_status.c - see master_status.h.
 *
 * Its one idea: a page is printed as it comes, and nothing of it is kept.
 * SPDX-License-Identifier: MIT */
#include "master_status.h"

#include <inttypes.h>

#include "core/clock.h"
#include "net/ask.h"

#define STATUS_PATIENCE_NS (10 * CLOCK_S)

/* ---- printing ------------------------------------------------------------------------------------------------------ */

static const char *phase_word(const struct world_status *s)
{
    static const char *const words[] = {[STATUS_OPEN] = "open", [STATUS_FORMING] = "forming", [STATUS_FORMED] = "begun",
                                        [STATUS_OVER] = "over", [STATUS_GIVEN_UP] = "failed"};
    return s->freezing > 0 ? "freezing" : words[s->phase];
}

static void print_world(FILE *out, const struct world_status *s)
{
    char name[BOUNDS_WORLD_NAME + 2], size[24] = "any", members[32];
    snprintf(name, sizeof name, "'%s'", s->name);
    if (s->size > 0) {
        snprintf(size, sizeof size, "%u %s%s", s->size, s->loss == LOSS_END ? "end" : "shrink", s->once ? " once" : "");
    }
    snprintf(members, sizeof members, s->pending > 0 ? "%u + %u" : "%u", s->members, s->pending);
    fprintf(out, "%-16s %016" PRIx64 " %-12s %-8s %6u %6u %-9s %s\n", name, s->run, size, members, s->groups, (uint32_t)s->view,
            phase_word(s), s->waits);
}

static pccl_status print_page(FILE *out, struct reader *r, bool first, struct msg_status_page *m, struct err *err)
{
    struct world_status s;
    bool good = get_status_page(r, m);
    if (good && first) {
        fprintf(out, "%-16s %-16s %-12s %-8s %6s %6s %-9s %s\n", "WORLD", "RUN", "SIZE", "MEMBERS", "GROUPS", "VIEW", "PHASE",
                "WAITS FOR");
    }
    for (uint32_t i = 0; good && i < m->worlds; i++) {
        good = get_world_status(r, &s);
        if (good) {
            print_world(out, &s);
        }
    }
    return good && reader_done(r) ? PCCL_OK : err_set(err, PCCL_ERR_PROTOCOL, "the master sent an answer that cannot be read");
}

/* ---- one page after the other -------------------------------------------------------------------------------------- */

static pccl_status one_page(const struct net_address *master, FILE *out, uint32_t from, struct msg_status_page *m, struct err *err)
{
    unsigned char question[16];
    struct writer w;
    struct reader page;
    struct conn *c = conn_new();
    if (c == NULL) {
        return err_set(err, PCCL_ERR_NOMEM, "no memory");
    }
    writer_init(&w, question, sizeof question);
    put_status(&w, &(struct msg_status){.from = from});
    struct ask ask = {.master = master, .deadline = clock_now_ns() + STATUS_PATIENCE_NS, .question = FRAME_STATUS, .answer = FRAME_STATUS_PAGE,
                      .payload = question, .size = (uint32_t)w.used};
    pccl_status st = ask_master(&ask, c, &page, err);
    st = st == PCCL_OK ? print_page(out, &page, from == 0, m, err) : st;
    conn_unref(c);
    return st;
}

pccl_status master_status(const struct net_address *master, FILE *out, struct err *err)
{
    struct msg_status_page m = {0};
    pccl_status st;
    do {
        uint32_t from = m.next;
        st = one_page(master, out, from, &m, err);
        if (st == PCCL_OK && m.next != 0 && m.next <= from) {
            st = err_set(err, PCCL_ERR_PROTOCOL, "the master's answers do not come to an end");
        }
    } while (st == PCCL_OK && m.next != 0);
    return st;
}
