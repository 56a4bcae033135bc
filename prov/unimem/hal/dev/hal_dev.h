/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * hal_dev.h - what the files of the device backend call of each other; private
 * to hal_dev*.c.
 */
#ifndef HAL_DEV_H
#define HAL_DEV_H

#include "hal/dev/hal_dev_conf.h"
#include "hal/dev/hal_dev_ring.h"
#include "hal/dev/hal_dev_table.h"
#include "hal/dev/hal_dev_types.h"
#include "hal/dev/hal_dev_util.h"

struct hal_mem {
	struct hal_dev *dev;
	struct hal_mem *next, **pprev;
	struct dev_region region;
	uint64_t secret;
	uint64_t bytes;
};

/* A peer's region and its route. With refs 0 it is kept for the next import,
 * which only asks whether it is still there. While its route is being set up
 * (asked), hold is what the driver gave for that, or 0. */
struct hal_rmem {
	struct dev_peer *peer;
	struct hal_rmem *next;
	struct hal_key key;
	uint64_t bytes;
	uint32_t hold;
	int refs;
	bool asked;
	uint64_t asked_at;		/* ns; when it was asked for last */
};

/* hal_dev.c */
int dev_open_with(const struct hal_ops *ops, const struct hal_mmio_ops *io,
		  const struct hal_params *params, struct hal **hal);

/* hal_dev_pif.c */
bool dev_pif_idle(struct dev_if *dif, unsigned looks);
bool dev_pif_ready(struct dev_if *dif);		/* with looks enough to send */
void dev_echo_put(struct dev_if *dif, uint64_t number);
bool dev_hello_send(struct dev_peer *peer);
int dev_pkt_send(struct hal_peer *hp, uint64_t head, const uint64_t *w,
		 unsigned nw, const void *data, size_t len);
void dev_wake(struct hal_peer *hp);
void dev_last_words(struct dev_peer *peer);
void dev_wake_now(struct dev_peer *peer);
void dev_backlog_add(struct dev_peer *peer);
void dev_backlog_remove(struct dev_peer *peer);
void dev_backlog_run(struct dev_if *dif);

/* hal_dev_echo.c */
void dev_echo_run(struct dev_if *dif);

/* hal_dev_mbox.c */
unsigned dev_mbox_run(struct dev_if *dif, unsigned max);
/* Learn what an empty mailbox reads as; -FI_EIO after a line. */
int dev_mbox_learn(struct dev_if *dif);

/* hal_dev_conn.c */
int dev_connect(struct hal_if *hif, const struct hal_addr *to,
		struct hal_peer **hp);
void dev_hello_came(struct dev_if *dif, const uint64_t w[HAL_PKT_WORDS]);
void dev_accept_back(struct dev_peer *peer);
bool dev_space_map(struct dev_peer *peer);
int dev_space_ready(struct hal_peer *hp, uint32_t bytes);
void dev_space_write(struct hal_peer *hp, uint32_t off, const void *src,
		     size_t len);
void dev_space_barrier(struct hal_peer *hp);
int dev_back_barrier(struct hal_peer *hp);
void dev_back_store(struct hal_peer *hp, int word, uint64_t val);

/* hal_dev_peer.c */
struct dev_peer *dev_peer_of(struct dev_if *dif, uint64_t identity);
struct dev_peer *dev_peer_find(struct dev_if *dif, const struct hal_addr *addr);
int dev_peer_new(struct dev_if *dif, const struct hal_addr *addr,
		 uint64_t identity, struct dev_peer **peer);
void dev_peer_drop(struct dev_peer *peer);
void dev_peer_forget(struct dev_peer *peer);	/* in a forked child */
int dev_inbound_reserve(struct dev_if *dif);
void dev_event(struct dev_peer *peer, enum hal_event_type type, int status);
int dev_take_events(struct dev_if *dif, struct hal_event *ev, int max);

/* hal_dev_life.c */
void dev_peer_free(struct hal_peer *hp);
void dev_look_around(struct dev_if *dif);
void dev_bury(struct dev_if *dif);

/* hal_dev_mem.c */
int dev_mem_alloc(struct hal *hal, int board, size_t bytes,
		  struct hal_mem **mem, void **addr);
void dev_mem_free(struct hal_mem *mem);
int dev_mem_key(struct hal_mem *mem, struct hal_key *key);
int dev_mem_gaddr(struct hal_dev *dev, const void *addr, uint64_t len,
		  uint64_t *gaddr);
int dev_mem_import(struct hal_peer *hp, const struct hal_key *key,
		   struct hal_rmem **rmem);
void dev_mem_release(struct hal_rmem *rmem);
void dev_routes_trim(struct dev_if *dif);
void dev_rmems_free(struct dev_peer *peer);

/* hal_dev_dma.c */
int dev_dma_post(struct hal_if *hif, const struct hal_dma *dma,
		 uint64_t token);
int dev_dma_poll(struct hal_if *hif, struct hal_dma_comp *comp, int max);
void dev_dma_cancel(struct dev_if *dif, struct dev_peer *peer);

/* hal_dev_engine.c */
int dev_engine_open(struct hal_dev *dev);
void dev_engine_close(struct hal_dev *dev);
int dev_engine_start(struct hal_dev *dev, struct dev_xfer *x, uint64_t src,
		     uint64_t dst, uint64_t max);
void dev_engine_poll(struct hal_dev *dev);
void dev_engine_cancel(struct hal_dev *dev, struct dev_xfer *x);

#endif /* HAL_DEV_H */
