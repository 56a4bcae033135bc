/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * mbox_link.c - the daemon's side of the HAL: links with the daemons of other
 * boards, and the messages that wait for their readers.
 *
 * Nothing here knows the local processes: mbox_client.c takes messages to
 * readers, and asks for what writers have sent to be sent on.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "daemon/mbox_link.h"

#define EVENTS		16		/* events read from the HAL at once */
#define BURST		64		/* packets of one peer in a row */
#define DEAD_MAX	64		/* dead links whose messages are kept */

int mbox_hal_open(struct mbox_hal *mh, struct hal *hal, int board,
		  void (*log)(const char *line))
{
	memset(mh, 0, sizeof(*mh));
	mh->hal = hal;
	mh->log = log;
	unm_list_init(&mh->links);
	for (unsigned op = 0; op < MAILBOX_OPCODES; op++)
		unm_list_init(&mh->waiting[op]);
	return hal_if_open_number(hal, board, (int)hal->caps.ifs_per_board,
				  &mh->hif);
}

/* ---- Links --------------------------------------------------------------- */

static struct mbox_link *link_new(struct mbox_hal *mh, struct hal_peer *peer)
{
	struct mbox_link *link = calloc(1, sizeof(*link));

	if (link == NULL)
		return NULL;
	link->mh = mh;
	link->peer = peer;
	link->board = peer->addr.board;
	unm_list_append(&mh->links, &link->node);
	peer->user = link;
	return link;
}

/* Discard the messages of a link. */
static void link_discard(struct mbox_link *link)
{
	for (unsigned op = 0; op < MAILBOX_OPCODES && link->held != 0; op++)
		unm_list_for_each_safe(pos, tmp, &link->mh->waiting[op]) {
			struct mbox_entry *entry =
				unm_container(pos, struct mbox_entry, node);

			if (entry->link != link)
				continue;
			unm_list_remove(pos);
			link->held--;
			link->mh->discarded++;
		}
}

static void link_free(struct mbox_link *link)
{
	link_discard(link);
	if (link->peer != NULL)
		hal_peer_free(link->peer);
	unm_list_remove(&link->node);
	free(link);
}

static bool link_unused(const struct mbox_link *link)
{
	return link->peer == NULL && link->users == 0 && link->held == 0;
}

static void log_link(struct mbox_link *link, const char *what)
{
	char line[160];

	snprintf(line, sizeof(line), "node %u: %s", link->board, what);
	link->mh->log(line);
}

/* A node whose daemon ends again and again must not fill the memory with
 * messages that nobody takes. */
static void limit_dead(struct mbox_hal *mh)
{
	struct mbox_link *oldest = NULL;
	unsigned dead = 0;

	unm_list_for_each(pos, &mh->links) {
		struct mbox_link *link =
			unm_container(pos, struct mbox_link, node);

		if (link->peer != NULL || link->held == 0)
			continue;
		if (oldest == NULL)
			oldest = link;
		dead++;
	}
	if (dead <= DEAD_MAX)
		return;
	log_link(oldest, "messages of an ended daemon are discarded: no "
		 "process has registered their opcodes");
	link_discard(oldest);
}

/* The peer is dead, or is disconnected. Messages that it sent are kept. The
 * next mbox_hal_poll() frees the link if it is unused. */
static void link_end(struct mbox_link *link)
{
	hal_peer_free(link->peer);
	link->peer = NULL;
	link->used = false;
	link->announced = false;
	link->wanted = link->asked = false;
	link->mh->ends++;
	limit_dead(link->mh);
}

void mbox_hal_close(struct mbox_hal *mh)
{
	unm_list_for_each_safe(pos, tmp, &mh->links)
		link_free(unm_container(pos, struct mbox_link, node));
	hal_if_close(mh->hif);
	mh->hif = NULL;
}

/* ---- Receiving ----------------------------------------------------------- */

/* Returns NULL, or why the packet is wrong. */
static const char *on_message(struct mbox_link *link, uint64_t message)
{
	unsigned op = MAILBOX_OPCODE(message);
	struct mbox_entry *entry;

	if ((uint16_t)(link->received[op] - link->taken[op]) >= MBOX_WINDOW)
		return "it sent more messages than the window has";
	/* entries are taken in their order, so this one is free */
	entry = &link->entries[op][link->received[op]++ % MBOX_WINDOW];
	entry->message = message;
	entry->arrival = link->mh->arrivals++;
	entry->link = link;
	unm_list_append(&link->mh->waiting[op], &entry->node);
	link->held++;
	return NULL;
}

static const char *on_packet(struct mbox_link *link, uint8_t type,
			     uint64_t word)
{
	switch (type) {
	case MBOX_PKT_MESSAGE:
		return on_message(link, word);
	case MBOX_PKT_OPEN:
		if (word != MBOX_VERSION)
			return "its daemon has another version";
		link->used = true;
		hal_rx_back(link->peer, MBOX_BACK_OPENED, ++link->opened);
		return NULL;
	case MBOX_PKT_CLOSE:
		link->used = false;
		return NULL;
	default:
		return "it sent a packet of an unknown type";
	}
}

/* Receive at most max packets. Returns their number. */
static unsigned link_receive(struct mbox_link *link, unsigned max)
{
	const struct hal_cell *cell;
	const char *wrong = NULL;
	unsigned n = 0;
	uint64_t head;

	while (n < max && wrong == NULL &&
	       (cell = hal_rx_peek(link->peer, &head)) != NULL) {
		wrong = on_packet(link, hal_head_type(head),
				  hal_cell_word(cell, 0));
		hal_rx_release(link->peer);
		n++;
	}
	if (n != 0)
		hal_rx_flush(link->peer);
	if (wrong != NULL) {
		log_link(link, wrong);
		link_end(link);
	}
	return n;
}

/* Only the mailbox daemon of the same user may connect: another process with an
 * interface would get round the windows. A peer on another host has proven that
 * it knows a secret of this user, and the HAL refuses the names of others. */
static void on_inbound(struct mbox_hal *mh, struct hal_peer *peer)
{
	if (peer->user != NULL)		/* connected to it before */
		return;
	if (peer->addr.iface != mh->hif->addr.iface ||
	    (peer->host == NULL && peer->addr.uid != mh->hif->addr.uid) ||
	    link_new(mh, peer) == NULL)
		mh->refused = true;
}

/* Free inbound peers without a link, once no event names them. */
static void free_refused(struct mbox_hal *mh)
{
	for (uint32_t i = 0; mh->refused && i < mh->hif->ninbound;) {
		if (mh->hif->inbound[i]->user == NULL)
			hal_peer_free(mh->hif->inbound[i]);
		else
			i++;
	}
	mh->refused = false;
}

static void on_dead(struct hal_peer *peer)
{
	struct mbox_link *link = peer->user;

	if (link == NULL) {
		hal_peer_free(peer);
		return;
	}
	/* all that it had sent is there, one ring at most */
	if (peer->rx.cells != NULL)
		link_receive(link, peer->hif->caps->pkt_depth);
	if (peer == link->peer)
		link_end(link);
}

static bool take_events(struct mbox_hal *mh)
{
	struct hal_event ev[EVENTS];
	int n = hal_if_service(mh->hif, ev, EVENTS);

	for (int i = 0; i < n; i++) {
		if (ev[i].type == HAL_EV_INBOUND)
			on_inbound(mh, ev[i].peer);
		else if (ev[i].type == HAL_EV_DEAD)
			on_dead(ev[i].peer);
	}
	free_refused(mh);
	return n > 0;
}

/* Send OPEN or CLOSE if the peer has not got it. */
static void link_announce(struct mbox_link *link)
{
	bool open = link->writers != 0;
	uint64_t word = open ? MBOX_VERSION : 0;

	if (link->peer == NULL || link->announced == open)
		return;
	if (hal_pkt_send(link->peer, hal_head(open ? MBOX_PKT_OPEN :
					      MBOX_PKT_CLOSE, 0),
			 &word, 1, NULL, 0) != 0) {
		link->wanted = true;
		return;
	}
	/* wanted stays: another send may wait */
	link->announced = open;
	link->opens += open;
}

void mbox_hal_announce(struct mbox_hal *mh)
{
	unm_list_for_each(pos, &mh->links)
		link_announce(unm_container(pos, struct mbox_link, node));
}

bool mbox_hal_poll(struct mbox_hal *mh)
{
	bool some;

	hal_if_pump(mh->hif);
	some = take_events(mh);
	unm_list_for_each_safe(pos, tmp, &mh->links) {
		struct mbox_link *link =
			unm_container(pos, struct mbox_link, node);

		link_announce(link);
		if (link->peer != NULL && link->peer->rx.cells != NULL)
			some |= link_receive(link, BURST) != 0;
		if (link_unused(link))
			link_free(link);
	}
	return some;
}

bool mbox_hal_used(const struct mbox_hal *mh)
{
	unm_list_for_each(pos, &mh->links)
		if (unm_container(pos, struct mbox_link, node)->used)
			return true;
	return false;
}

bool mbox_hal_holds(const struct mbox_hal *mh)
{
	unm_list_for_each(pos, &mh->links)
		if (unm_container(pos, struct mbox_link, node)->held != 0)
			return true;
	return false;
}

struct mbox_entry *mbox_hal_first(struct mbox_hal *mh, unsigned opcode)
{
	struct unm_list *head = &mh->waiting[opcode];

	return unm_list_empty(head) ? NULL :
	       unm_container(head->next, struct mbox_entry, node);
}

void mbox_hal_take(struct mbox_entry *entry)
{
	struct mbox_link *link = entry->link;
	unsigned op = MAILBOX_OPCODE(entry->message);
	unsigned word = mbox_back_word(op);
	uint64_t back = 0;

	unm_list_remove(&entry->node);
	link->held--;
	link->taken[op]++;
	for (unsigned i = 4 * word; i < 4 * word + 4; i++)
		back |= (uint64_t)link->taken[i] << mbox_back_shift(i);
	if (link->peer != NULL)
		hal_rx_back(link->peer, (int)word, back);
}

/* ---- Sending ------------------------------------------------------------- */

static struct mbox_link *link_find(struct mbox_hal *mh, unsigned board)
{
	unm_list_for_each(pos, &mh->links) {
		struct mbox_link *link =
			unm_container(pos, struct mbox_link, node);

		if (link->board == board && link->peer != NULL &&
		    !link->peer->dead)
			return link;
	}
	return NULL;
}

int mbox_link_get(struct mbox_hal *mh, int board, struct mbox_link **out)
{
	struct mbox_link *link = link_find(mh, (unsigned)board);
	struct hal_addr to = mh->hif->addr;
	struct hal_peer *peer;
	int ret;

	if (link == NULL || !link->open) {
		to.board = (uint16_t)board;
		to.nonce = HAL_ADDR_ANY;
		mh->connecting = true;
		ret = hal_connect(mh->hif, &to, &peer);
		mh->connecting = false;
		if (ret != 0)
			return ret;
		link = peer->user != NULL ? peer->user : link_new(mh, peer);
		if (link == NULL) {
			hal_peer_free(peer);
			return -FI_ENOMEM;
		}
		link->open = true;
	}
	link->writers++;
	link->users++;
	link_announce(link);
	*out = link;
	return 0;
}

int mbox_link_opened(struct mbox_link *link)
{
	if (link->peer == NULL)
		return -FI_ECONNREFUSED;
	if (link->announced &&
	    hal_tx_back(link->peer, MBOX_BACK_OPENED) == link->opens)
		return 0;
	link->wanted = true;
	return -FI_EAGAIN;
}

void mbox_link_close(struct mbox_link *link)
{
	link->writers--;
	link_announce(link);
}

void mbox_link_put(struct mbox_link *link)
{
	link->users--;
}

int mbox_link_send(struct mbox_link *link, uint64_t message)
{
	unsigned op = MAILBOX_OPCODE(message);
	uint16_t under_way;
	int ret = -FI_EAGAIN;

	if (link->peer == NULL)
		return -FI_ECONNRESET;
	under_way = (uint16_t)(link->sent[op] - (uint16_t)
			       (hal_tx_back(link->peer,
					    (int)mbox_back_word(op)) >>
				mbox_back_shift(op)));
	/* a wrong number of the peer is more than the window: full */
	if (under_way < MBOX_WINDOW)
		ret = hal_pkt_send(link->peer, hal_head(MBOX_PKT_MESSAGE, 0),
				   &message, 1, NULL, 0);
	if (ret == 0)
		link->sent[op]++;
	else
		link->wanted = true;
	return ret;
}

bool mbox_hal_wants(const struct mbox_hal *mh)
{
	unm_list_for_each(pos, &mh->links) {
		const struct mbox_link *link =
			unm_container(pos, struct mbox_link, node);

		if (link->wanted && !link->asked)
			return true;
	}
	return false;
}

/* A send that is tried again in vain sets wanted again. */
void mbox_hal_sleep(struct mbox_hal *mh, bool on)
{
	unm_list_for_each(pos, &mh->links) {
		struct mbox_link *link =
			unm_container(pos, struct mbox_link, node);

		if (link->peer == NULL || (on ? !link->wanted : !link->asked))
			continue;
		hal_tx_sleep(link->peer, on);
		link->asked = on;
		link->wanted = on;
	}
}
