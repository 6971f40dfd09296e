/* stream.h - a data connection on a lane.
 * SPDX-License-Identifier: MIT */
#ifndef PCCL_ENGINE_STREAM_H
#define PCCL_ENGINE_STREAM_H

#include "engine/lanes/lane.h"

/* Takes the socket of a connection that has shaken hands; null: no memory (it is closed). */
struct stream *stream_new(struct link *link, uint64_t number, uint16_t index, struct conn *conn);
void stream_free(struct stream *s);
/* Watches it on the lane; false: it is broken. */
bool stream_open(struct stream *s, struct lane *lane);
void stream_close(struct stream *s);
/* Whether a pass would find something to do. */
bool stream_has_work(const struct stream *s);
/* Both return true if they moved anything. */
bool stream_receive(struct stream *s);
bool stream_send(struct stream *s);

#endif
