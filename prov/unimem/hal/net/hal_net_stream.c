/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * hal_net_stream.c - numbers and acknowledgements of frames, and reading the
 * records in them.
 *
 * hal_net_stream.h describes both and declares the entry points.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <rdma/fi_errno.h>

#include "hal/net/hal_net_stream.h"

int net_rec_next(const uint8_t *frame, size_t len, size_t *off,
		 struct net_rec *rec, const uint8_t **data)
{
	size_t left = len - *off;

	if (left == 0)
		return 0;
	if (left < sizeof(*rec))
		return -EPROTO;
	memcpy(rec, frame + *off, sizeof(*rec));
	if (rec->type == 0 || rec->type >= NET_REC_END || rec->zero != 0 ||
	    rec->len > left - sizeof(*rec) || net_rec_bytes(rec->len) > left)
		return -EPROTO;
	*data = frame + *off + sizeof(*rec);
	*off += net_rec_bytes(rec->len);
	return 1;
}

int net_stream_ack(struct net_stream *s, uint64_t ack)
{
	if (ack > s->sent)
		return -EPROTO;
	/* frames that overtake each other bring older numbers */
	if (ack > s->acked)
		s->acked = ack;
	return 0;
}

int net_stream_take(struct net_stream *s, uint64_t seq, const void *frame,
		    size_t len)
{
	uint64_t ahead = seq - s->taken;
	void **copy = &s->early[seq % NET_WINDOW];

	if (ahead == 1) {
		s->taken = seq;
		return 1;
	}
	if (ahead == 0 || ahead > NET_WINDOW || *copy != NULL)
		return -EPROTO;
	*copy = malloc(len);
	if (*copy == NULL)
		return -FI_ENOMEM;
	memcpy(*copy, frame, len);
	s->early_len[seq % NET_WINDOW] = len;
	s->kept++;
	return 0;
}

void *net_stream_early(struct net_stream *s, size_t *len)
{
	uint32_t at = (s->taken + 1) % NET_WINDOW;
	void *frame = s->early[at];

	if (frame == NULL)
		return NULL;
	s->early[at] = NULL;
	s->kept--;
	s->taken++;
	*len = s->early_len[at];
	return frame;
}

void net_stream_clear(struct net_stream *s)
{
	for (uint32_t i = 0; i < NET_WINDOW; i++) {
		free(s->early[i]);
		s->early[i] = NULL;
	}
	s->kept = 0;
}
