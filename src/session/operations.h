/* operations.h - what the files that carry operations out offer each other: names and numbers, launch, words, messages.
 *
 * Seen by nobody else than session_state.h, whose end it is.  All take the session, whose tables they share.
 * SPDX-License-Identifier: MIT */
#ifndef PCCL_SESSION_OPERATIONS_H
#define PCCL_SESSION_OPERATIONS_H

#include "session/session.h"

struct op;
struct owed;
struct session_growth;
struct slot;
struct tag;

/* carrier.c: what an operation has with one member, by its link or by a relay */
bool carrier_relays(const struct session *s, const struct op *op, uint32_t rank); /* what it moves from here there, and back, goes by one */
void carrier_announce(struct session *s, struct op *op, uint32_t rank, struct outbox *out); /* the launch, if there is anything to tell */
void carrier_feed(struct session *s, struct op *op, uint32_t rank, struct outbox *out); /* lanes, or the relay, hear that it has launched */

/* announce.c */
bool announce_hears(const struct session *s, const struct op *op, uint32_t rank);
bool announce_neighbour(const struct session *s, const struct op *op, uint32_t rank);
void announce_feed(struct session *s, struct op *op, uint32_t rank, struct outbox *out);
void announce_to(struct session *s, struct op *op, uint32_t rank, struct outbox *out); /* READY or EAGER */
void announce_eager(struct session *s, struct op *op, uint32_t rank, struct outbox *out); /* rank NONE: to all reachable */
void announce_launch(struct session *s, struct op *op, struct outbox *out); /* READY to all who hear it; lanes hear of those heard before */

/* optable.c */
struct op *op_find(struct session *s, const struct op_name *name);
struct op *op_make(struct session *s, const struct op_name *name); /* finds or adds a ghost; null if full */
/* The operation that the member of this rank speaks of over the link of peer `from`; null if it is over here, or if the sender may not. */
struct op *op_hear(struct session *s, uint32_t from, uint32_t rank, const struct op_name *name);
struct op *op_hear_refusal(struct session *s, uint32_t from, uint32_t rank, const struct msg_refuse *m);
/* Whether a refusal is about this member: it says so for itself, not in answer to another. */
bool op_refusal_of(uint8_t cause, uint64_t culprit, const struct op_clash *clash, uint64_t id);
void op_taken(struct session *s, struct op *op); /* launched here, or forgotten: counts as opened by nobody */
size_t op_table_bytes(const struct session_growth *g);
void op_table_use(struct session *s, void *storage, const struct session_growth *g); /* in place of the present one */
bool op_untaken(const struct op *op); /* refused, and on record for members that may not have come to it (P10) */
void op_drop(struct session *s, struct op *op);
void op_drop_marks(struct session *s, struct op *op);
bool op_finished(struct session *s, struct op *op, uint32_t rank); /* that one has finished it, of all members: true, so has everybody */
bool op_has_finished(const struct session *s, const struct op *op, uint32_t rank);
void op_clear(struct session *s); /* all of them: a new view */
bool op_past(struct session *s, const struct op_name *name); /* launched here, finished and forgotten */
uint32_t park_take(struct session *s);  /* block + 1, 0 none */
void park_give(struct session *s, uint32_t block);
void park_drop(struct session *s, struct op *op, uint32_t rank); /* gives the parked payload of that rank back */
unsigned char *park_at(struct session *s, uint32_t block);

/* marks.c */
/* What that rank has said of it; of who has said nothing an empty one.  Until the next one is made. */
const struct mark *op_mark(const struct session *s, const struct op *op, uint32_t rank);
bool marks_begin(struct session *s, struct op *op); /* the own one; false: no memory */
/* The same to be written, made if it is new: null if there is no memory; which mark_heard takes out on the link that brings it. */
struct mark *mark_of(struct session *s, struct op *op, uint32_t rank);
struct mark *mark_heard(struct session *s, struct op *op, uint32_t rank);
void marks_drop(struct session *s, struct op *op);
size_t mark_table_bytes(uint32_t count);
void mark_table_use(struct session *s, void *storage, uint32_t count); /* in place of the present one */

/* tags.c */
size_t tag_table_bytes(uint32_t count);
void tag_table_use(struct session *s, void *storage, uint32_t count); /* in place of the present one */
struct op_name tag_name(const struct tag *t); /* of its next operation */
struct tag *tag_of(struct session *s, const struct op_name *name);
struct tag *tag_make(struct session *s, const struct op_name *name); /* adds; null if full */
struct tag *tag_find(struct session *s, uint8_t space, uint64_t tag); /* of other spaces than PAIR */
struct tag *tag_get(struct session *s, uint8_t space, uint64_t tag); /* adds; null if full */
void tag_call(struct tag *t, uint32_t slot); /* it has one more un-collected call */
uint32_t tag_refusals(const struct session *s, const struct tag *t);
void tag_refused(struct session *s, struct tag *t);
void tag_taken(struct session *s, struct tag *t);     /* ... all members have launched one of those */
void tag_caught_up(struct session *s, struct tag *t); /* ... and both ends of a pair all of those */
bool owed_add(struct session *s, const struct owed *what);
bool owed_take(struct session *s, struct tag *t, struct owed *what);
void owed_clear(struct session *s);
void owed_table_use(struct session *s, void *storage, uint32_t count); /* in place of the present one */
void tags_renew(struct session *s); /* a new view, or none */

/* work.c: ranks are those of plans */
bool work_numeric(const struct session *s, const struct op_params *p, struct numeric *n);
bool work_own_numeric(const struct session *s, const struct session_launch *l, struct numeric *n); /* that encodes what is given here */
bool work_same(const struct op_params *a, const struct op_params *b); /* the same call, by whatever algorithm */
bool work_is_eager(const struct session *s, const struct op_params *p);
bool work_encodes(const struct session *s, const struct op_params *p); /* its input travels with it, and not as it is */
bool work_told(const struct session *s); /* in this view launches of all-reduces and reduces are told to all, whatever their plan */
struct work_range { /* elements of a buffer */
    size_t at, count;
};
struct work_range work_sends(const struct session *s, const struct session_launch *l, uint32_t to);   /* of the input */
struct work_range work_takes(const struct session *s, const struct session_launch *l, uint32_t from); /* in the output */
size_t work_payload(const struct numeric *n, uint8_t kind, size_t count); /* bytes that so many elements are, small operations */
/* What this rank gives to `to`, as it travels with its launch; in the input, or in s->wire. */
const void *work_given(struct session *s, const struct session_launch *l, const struct numeric *n, uint32_t to, size_t *bytes);
void work_plan(struct session *s, struct slot *c, const struct op_name *name); /* what lanes are to do */

/* begin.c */
bool begin_owed(struct session *s, uint32_t slot, struct tag *t, struct outbox *out); /* the call has ended with what was owed */
bool begin_too_far(struct session *s, const struct tag *t);
void begin_number(struct session *s, uint32_t slot, struct tag *t, struct op *op); /* the call is the tag's next operation */
void begin_lanes(struct session *s, struct op *op, uint32_t slot, struct outbox *out);
/* group_call.c */
enum session_result group_check(struct session *s, const struct session_launch *l, struct call_of *call);
void group_no_number(struct session *s);
void group_launch(struct session *s, uint32_t slot, struct outbox *out);
bool group_speaker(const struct session *s, uint32_t from, const struct op_name *name, enum word_to to, uint32_t *rank);
bool group_concerns(const struct session *s, const struct op *op, uint32_t rank);
bool group_tells(const struct session *s, const struct op *op);
bool group_wanted(const struct session *s, const struct op *op, uint32_t rank);
bool group_apart(const struct session *s, const struct op *op, uint32_t rank);
/* launch.c */
void launch_call(struct session *s, struct session_event *e, struct outbox *out);
void launch_deferred(struct session *s, struct outbox *out); /* as many as the outbox takes: the rest in a later step */
bool launch_due(const struct session *s); /* a deferred call need not wait any longer */
void launch_collect(struct session *s, struct session_event *e);
/* hold.c */
void hold_complete(struct session *s, struct op *op, uint64_t digest, struct outbox *out);
void hold_send(struct session *s, struct op *op, struct outbox *out);
void hold_arrived(struct session *s, struct op *op, struct outbox *out);
bool hold_heard(struct session *s, const struct said *said, const struct msg_hold *m, struct outbox *out);
void hold_ready(struct session *s, struct op *op, uint32_t rank, bool again, struct outbox *out);
bool hold_finished(struct session *s, struct op *op, uint32_t rank, struct outbox *out);
void hold_replay(struct session *s, struct op *op, uint32_t rank, struct outbox *out);
/* replay.c */
void replay_settle(struct session *s, struct outbox *out); /* as much as the outbox takes: the rest in a later step */
/* op_frames.c */
void op_frame(struct session *s, const struct said *said, struct outbox *out); /* of a member, in this view or one before */
/* finished.c */
void finished_note(struct session *s, const struct op_name *name, struct outbox *out); /* said later, with others */
void finished_flush(struct session *s, struct outbox *out);
/* complaint.c */
/* The link with a member of the view broke, is silent or cannot be made. */
void complaint_link(struct session *s, struct peer *p, enum cause cause, struct outbox *out);
bool complaint_silent(const struct session *s, const struct peer *p); /* suspected of it, and still is */
void complaint_path(struct session *s, struct peer *p); /* behind a missing edge: its relay has lost it */
/* An operation that only the master can settle.  `text` is static. */
void complaint_op(struct session *s, struct op *op, enum cause cause, uint64_t peer, const char *text, struct outbox *out);
/* Calls that wait for members behind this one: another view is wanted, and why (behind.c). */
void complaint_behind(struct session *s, uint8_t cause, struct outbox *out);
void complaint_forget(struct session *s); /* the view of that has ended */
void complaint_spare(struct session *s, const struct peer *p, struct outbox *out); /* LINKED is taken back */
void complaint_again(struct session *s, struct outbox *out); /* the master is back: it may not have heard */
/* Since when the operation cannot end without the master; INT64_MAX: it can. */
int64_t complaint_stuck(const struct session *s, const struct op *op);
void complaint_pass(struct session *s); /* time has passed, or operations have ended: what moves again is not stuck */
/* Since when a call that is open here cannot end without the master, which is lost; INT64_MAX: each may end without it. */
int64_t complaint_since(const struct session *s);

/* refusal.c */
void refusal_send(struct session *s, struct op *op, uint8_t cause, uint64_t culprit, struct outbox *out);
void refusal_again(struct session *s, const struct op *op, uint32_t rank, struct outbox *out); /* what was sent last, to one */
void refusal_mismatch(struct session *s, struct op *op, uint64_t with, struct outbox *out); /* our call and theirs differ */
bool refusal_allowed(const struct session *s, const struct op *op);
bool refusal_heard(struct session *s, const struct said *said, const struct msg_refuse *m, struct outbox *out);
void refusal_check(struct session *s, struct op *op, struct outbox *out);
void refusal_request(struct session *s, struct op *op, uint8_t cause, struct outbox *out); /* deadline, cancel */
void refusal_skip(struct session *s, uint32_t settled); /* those first refused before so many votes were settled, that one included */
void refusal_taken(struct session *s, struct op *op, uint32_t rank); /* that member has */
void refusal_taken_before(struct session *s, const struct op_name *name); /* all have come to this number of that tag */
/* behind.c: calls in the order of issue that wait for members which have not come to what was refused here */
bool behind_waits(struct session *s, const struct tag *t);
void behind_settle(struct session *s, struct outbox *out); /* asks the master for another view, if one of them may not wait any longer */
/* The oldest number that not all members have come to; null: there is none, or no call waits for that.  `call`: the first that waits. */
const struct op *behind_number(const struct session *s, const struct slot **call);
/* path.c, path_parts.c, path_words.c: what two move that have no link */
bool path_used(const struct session *s, const struct op_name *name); /* such words go by a relay in this view */
bool path_speaker(const struct session *s, uint32_t from, const struct op_name *name, enum word_to to, uint32_t *rank);
struct op_name path_operation(const struct op_name *name); /* whose part it is; itself */
struct op_name path_name(const struct op *op, uint64_t from, uint64_t to); /* the other way round */
void path_tell(struct session *s, uint32_t rank, struct outbox *out); /* whom this peer stands in for: it hears that member, or does no more */
void path_announce(struct session *s, struct op *op, uint32_t rank, struct outbox *out);
void path_enter(struct session *s, struct op *op, uint32_t rank); /* its parts have their turn when those of the operations before it are in place */
void path_leave(struct session *s, struct op *op, uint32_t rank); /* ... or not any more */
void path_stop(struct session *s, struct op *op); /* it gives nobody any more */
bool path_passed_on(const struct session *s, uint32_t from, const struct op_name *name); /* that peer did not say it: it is not to blame */
struct path_range { /* of a buffer */
    uint64_t at, bytes;
};
struct path_range path_gives(const struct session *s, const struct op *op, uint32_t rank);
struct path_range path_takes(const struct session *s, const struct op *op, uint32_t rank);
uint64_t path_given(const struct session *s, const struct op *op); /* bytes, by relays, to all */
bool path_in_place(const struct session *s, const struct op *op); /* all that comes by relays */
void path_say_got(struct session *s, const struct op *op, uint32_t rank, bool anew, struct outbox *out);
void path_take(struct session *s, struct op *op, uint32_t rank, struct outbox *out); /* asks for it, if it was announced */
void path_settle(struct session *s, struct outbox *out); /* parts of what has its turn now */
enum path_pass { PATH_OWN, PATH_PASSED, PATH_LIE }; /* to this peer; between two others; a lie of the peer that said it */
enum path_pass path_passes(struct session *s, const struct said *said, struct outbox *out);
/* False: that peer may not say it. */
bool path_message(struct session *s, uint32_t from, struct reader *r);
bool path_part(struct session *s, uint32_t from, struct reader *r, struct outbox *out);
bool path_got(struct session *s, uint32_t from, struct reader *r);
/* pair.c: messages from one member to another */
void pair_launch(struct session *s, uint32_t slot, struct outbox *out); /* its turn has come, in this view */
bool pair_speaker(const struct session *s, uint32_t from, const struct op_name *name, enum word_to to, uint32_t *rank);
bool pair_concerns(const struct session *s, const struct op *op, uint32_t rank);
uint32_t pair_partner(const struct session *s, const struct op_name *name); /* rank of the other one; NONE */
bool pair_owner(const struct session *s, const struct op_name *name);       /* this peer receives */
void pair_ready(struct session *s, struct op *op, uint32_t rank, bool again, struct outbox *out); /* READY was heard */
void pair_eager(struct session *s, struct op *op, uint32_t rank, const struct msg_eager *m, const void *payload, struct outbox *out);
void pair_complete(struct session *s, struct op *op, uint64_t digest, struct outbox *out);
bool pair_hold(struct session *s, const struct said *said, const struct msg_hold *m, struct outbox *out);
bool pair_finished(struct session *s, struct op *op, uint32_t rank, struct outbox *out); /* its sender has heard the word */
bool pair_refusal(struct session *s, const struct said *said, const struct msg_refuse *m, struct outbox *out);
void pair_request(struct session *s, struct op *op, uint8_t cause, struct outbox *out); /* deadline, cancel, no memory */
void pair_give_up(struct session *s, uint32_t slot, uint8_t cause, struct outbox *out); /* a receive without a number */
void pair_replay(struct session *s, struct op *op, uint32_t rank, struct outbox *out);
void pair_match(struct session *s, struct tag *box, struct outbox *out); /* the first of the line, as long as it can be */
bool pair_ended_by_view(struct session *s, uint32_t slot, struct outbox *out); /* a call that nobody can answer in this view */
/* pair_class.c */
enum session_result pair_check(struct session *s, const struct session_launch *l, struct call_of *call);
enum session_result pair_check_window(struct session *s, const struct session_launch *l, struct call_of *call);
bool pair_tells(const struct session *s, const struct op *op);
bool pair_wanted(const struct session *s, const struct op *op, uint32_t rank);
void pair_arrived(struct session *s, struct op *op, struct outbox *out);
void pair_stop(struct session *s, struct op *op);
/* pair_view.c */
void pair_new_view(struct session *s, const struct msg_view *m, struct outbox *out); /* it is installed */
/* pair_match.c */
bool pair_wait(struct session *s, uint32_t slot); /* the last of its tag; false: no memory */
void heard_listen(struct session *s, struct op *op); /* announced: a receive may be matched with it */
void heard_unlist(struct session *s, struct op *op);
void pair_close_lines(struct session *s); /* all calls have ended */
void pair_leave_line(struct session *s, struct tag *box, uint32_t slot);
/* What the first of those that wait is matched with: the pair's entry; null: nothing yet. */
struct tag *pair_next(struct session *s, struct tag *box, uint64_t *source);
struct tag *heard_box(struct session *s, uint8_t space, uint64_t tag, bool make); /* the receives of that tag here */
/* eager.c */
void park_payload(struct session *s, struct op *op, uint32_t rank, const struct msg_eager *m, const void *payload); /* or drops it */
void park_ask(struct session *s, struct op *op, uint32_t rank, struct outbox *out); /* it was dropped: once more */
void eager_start(struct session *s, struct op *op, struct outbox *out);
bool eager_fits(const struct session *s, uint64_t sender, const struct msg_eager *m); /* what its parameters allow */
void eager_heard(struct session *s, struct op *op, uint32_t rank, const struct msg_eager *m, const void *payload, struct outbox *out);
void eager_advance(struct session *s, struct op *op, struct outbox *out);
/* fetch.c: what a source says in answer */
void fetch_manifest(struct session *s, uint64_t peer, const struct msg_manifest *m, const void *hashes, struct outbox *out);
void fetch_leaf(struct session *s, uint64_t peer, const struct msg_leaf *m, const void *payload, struct outbox *out);
void fetch_entries(struct session *s, uint64_t peer, const struct msg_entries *m, struct reader *r, struct outbox *out);
/* sync_frame.c */
void sync_frame(struct session *s, struct session_event *e, struct outbox *out);
/* waits.c */
/* All that have to launch it before it can go on here have done so: what stands still now waits for a machine. */
bool waits_launched(const struct session *s, const struct op *op);
void waits_oldest(const struct session *s, struct peer_wait *out); /* for the heartbeat */

#endif
