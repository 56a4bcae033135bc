/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * hal_net_ucx.c - the engine for peers on other hosts: UCX. A module of its
 * own, libunimem-net.so.
 *
 * Its only entry point is the table hal_net_engine. A frame is one active
 * message, eager, without a header of UCX's. docs/net.md, section 2, says why
 * UCX, and which of its settings are changed.
 */
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <rdma/fi_errno.h>
#include <ucp/api/ucp.h>
#include <ucs/config/global_opts.h>

#include "hal/hal_export.h"
#include "hal/net/hal_net_engine.h"
#include "hal/net/hal_net_stuck.h"

#define AM_ID		0x55		/* of all frames */
#define START_FDS	24		/* descriptors for a worker and its
					 * first link */
#define LINK_FDS	2		/* sockets of a further link */
#define SEGMENT		"72k"		/* holds a frame and UCX's heads */
#define CLOSE_POLLS	100000		/* calls until an end is given up */
#define OPEN_POLLS	64		/* calls with nothing, until the links
					 * that are not open are tried */

/* Address of a worker as peers get it; UCX's follows. UCX reads its addresses
 * by the marks in them, beyond the end of one that was cut off. */
struct address {
	uint32_t bytes;			/* of UCX's address */
	uint32_t zero;
};

struct net_worker {
	ucp_context_h context;
	ucp_worker_h ucp;
	const struct net_upcalls *up;
	void *owner;
	int epfd;			/* of the interface */
	void *event;
	struct net_link *opening;	/* links that are not open */
	bool tries;			/* the next progress() tries these */
	unsigned idle;			/* calls of progress() with nothing
					 * while there are such links */
	struct net_link *left;		/* links that were given up, see
					 * net_disconnect() */
};

struct net_link {
	struct net_worker *worker;
	ucp_ep_h ep;
	void *peer;			/* NULL: given up */
	struct net_link *next;		/* in net_worker.opening or .left */
	bool connected;			/* the first empty message was sent */
	bool open;			/* UCX's handshake is over, or the link
					 * has failed: it is not in .opening */
	bool failed;
	/* messages until it is open, the first one first */
	struct net_message *waiting, **waiting_end;
	uint32_t sending;		/* messages that UCX has not sent yet */
	ucs_status_ptr_t closing;	/* UCX closes it; NULL: not yet */
};

/* ---- Ends of links ------------------------------------------------- */

/* Close a link, of which no message waits in UCX, as far as that goes without
 * waiting. True: it is closed, and its object is freed. */
static bool link_close(struct net_link *link)
{
	ucp_request_param_t param = {
		.op_attr_mask = UCP_OP_ATTR_FIELD_FLAGS,
		.flags = UCP_EP_CLOSE_FLAG_FORCE,
	};

	if (link->closing == NULL)
		link->closing = ucp_ep_close_nbx(link->ep, &param);
	if (UCS_PTR_IS_PTR(link->closing)) {
		if (ucp_request_check_status(link->closing) == UCS_INPROGRESS)
			return false;
		ucp_request_free(link->closing);
	}
	free(link);
	return true;
}

/* Close the links that were given up and whose messages have gone. */
static void close_left(struct net_worker *w)
{
	struct net_link **at = &w->left, *link, *next;

	while ((link = *at) != NULL) {
		next = link->next;
		if (link->sending == 0 && link_close(link))
			*at = next;
		else
			at = &link->next;
	}
}

/* Give the messages back that wait for a link. */
static void give_back(struct net_link *link)
{
	struct net_message *m;

	while ((m = link->waiting) != NULL) {
		link->waiting = m->next;
		link->worker->up->sent(m);
	}
}

/* Close a link that was given up, now or in later calls of net_progress(). */
static void leave(struct net_link *link)
{
	struct net_worker *w = link->worker;

	if (link->sending == 0 && link_close(link))
		return;
	link->next = w->left;
	w->left = link;
}

/* Close a link that is not open, with its messages. */
static void leave_opening(struct net_link *link)
{
	struct net_link **at = &link->worker->opening;

	while (*at != link)
		at = &(*at)->next;
	*at = link->next;
	give_back(link);
	leave(link);
}

/*
 * Messages that UCX has are carried before the endpoint is closed, or UCX 1.13
 * ends the process ("pending_count == 0"). Messages that wait for the link to
 * open are carried, too, so that the other side gets all data, unless it is
 * silent. The calls of net_progress() do that, so that no other peer waits for
 * one that has ended.
 */
static void net_disconnect(struct net_link *link, const uint8_t *silent)
{
	struct net_worker *w = link->worker;

	link->peer = NULL;
	if (silent != NULL)
		net_stuck_shut(w->epfd, w->event, silent);
	if (link->open)
		leave(link);
	else if (link->waiting == NULL || silent != NULL)
		leave_opening(link);
}

/* ---- Messages ------------------------------------------------------ */

static void on_sent(void *request, ucs_status_t status, void *message)
{
	struct net_link *link = ((struct net_message *)message)->link;

	(void)status;			/* a failure comes by on_failure() */
	link->sending--;
	link->worker->up->sent(message);
	ucp_request_free(request);
}

/* Give a message to UCX. Returns as net_send(). */
static int give(struct net_link *link, struct net_message *message)
{
	ucp_request_param_t param = {
		.op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK |
				UCP_OP_ATTR_FIELD_USER_DATA |
				UCP_OP_ATTR_FIELD_FLAGS,
		.flags = UCP_AM_SEND_FLAG_EAGER,
		.cb.send = on_sent,
		.user_data = message,
	};
	ucs_status_ptr_t request;

	request = ucp_am_send_nbx(link->ep, AM_ID, NULL, 0, message->data,
				  message->len, &param);
	if (request == NULL)
		return 0;
	if (UCS_PTR_IS_ERR(request))
		return -FI_ECONNRESET;
	link->sending++;
	return 1;
}

static int net_send(struct net_link *link, struct net_message *message,
		    const void *data, size_t len)
{
	message->link = link;
	message->next = NULL;
	message->data = data;
	message->len = len;
	if (link->open)
		return give(link, message);
	*link->waiting_end = message;
	link->waiting_end = &message->next;
	return 1;
}

/* ---- Opening of links ---------------------------------------------- */

/*
 * With the first message that it cannot send at once UCX begins a handshake.
 * UCX 1.13 ends the process by an assertion (ucp_request_send_state_ff(), or
 * "pending_count == 0") if the other side ends while messages and those of the
 * handshake wait for the connection. So none is given to UCX that would wait: a
 * link begins with an empty message, which is sent at once or not at all, and
 * tried again until it was sent. A second one has UCX make its handshake, and
 * is sent once that is over. (Tests found no case that needs the first one.)
 *
 * flags: 0, or UCP_AM_SEND_FLAG_REPLY: not before the handshake. False: not
 * yet, or the link has failed.
 */
static bool send_empty(struct net_link *link, uint32_t flags)
{
	ucp_request_param_t param = {
		.op_attr_mask = UCP_OP_ATTR_FIELD_FLAGS |
				UCP_OP_ATTR_FLAG_FORCE_IMM_CMPL,
		.flags = UCP_AM_SEND_FLAG_EAGER | flags,
	};

	return ucp_am_send_nbx(link->ep, AM_ID, NULL, 0, NULL, 0, &param) ==
		NULL;
}

/* Continue to open a link. True: it is open. */
static bool link_open(struct net_link *link)
{
	if (!link->failed && !link->connected)
		link->connected = send_empty(link, 0);
	link->open = link->failed || (link->connected &&
			send_empty(link, UCP_AM_SEND_FLAG_REPLY));
	return link->open;
}

/* Send what waited for a link. */
static void send_waiting(struct net_link *link)
{
	const struct net_upcalls *up = link->worker->up;
	struct net_message *m;
	int ret = 1;

	while (ret >= 0 && (m = link->waiting) != NULL) {
		link->waiting = m->next;
		ret = give(link, m);
		if (ret != 1)
			up->sent(m);
	}
	if (ret < 0 && link->peer != NULL)
		up->failed(link->peer);
}

/* Continue to open links. Returns the number of those that are open now. */
static unsigned open_links(struct net_worker *w)
{
	struct net_link **at = &w->opening, *link;
	unsigned n = 0;

	while ((link = *at) != NULL) {
		if (!link_open(link)) {
			at = &link->next;
			continue;
		}
		*at = link->next;
		n++;
		if (!link->failed)
			send_waiting(link);
		give_back(link);
		if (link->peer == NULL)
			leave(link);
	}
	return n;
}

/* ---- Worker -------------------------------------------------------- */

static ucs_status_t on_message(void *arg, const void *header, size_t nheader,
			       void *data, size_t len,
			       const ucp_am_recv_param_t *param)
{
	struct net_worker *w = arg;

	(void)header;
	/* no process of the job sends a header or asks for a rendezvous; empty
	 * ones open a link */
	if (nheader == 0 && len != 0 &&
	    !(param->recv_attr & UCP_AM_RECV_ATTR_FLAG_RNDV))
		w->up->received(w->owner, data, len);
	return UCS_OK;
}

/* Change a setting of UCX unless the user set its variable: that of all
 * transports, or that of TCP. */
static void set(ucp_config_t *config, const char *name, const char *value)
{
	static const char *const transport[] = { "", "TCP_" };
	char var[64];

	for (int i = 0; i < 2; i++) {
		snprintf(var, sizeof(var), "UCX_%s%s", transport[i], name);
		if (getenv(var) != NULL)
			return;
	}
	ucp_config_modify(config, name, value);
}

static int open_context(const struct net_worker_conf *conf,
			struct net_worker *w)
{
	ucp_params_t params = {
		.field_mask = UCP_PARAM_FIELD_FEATURES | UCP_PARAM_FIELD_NAME,
		.features = UCP_FEATURE_AM | UCP_FEATURE_WAKEUP,
		.name = "unimem",
	};
	ucp_config_t *config;
	ucs_status_t status;
	char probes[16];

	if (ucp_config_read(NULL, NULL, &config) != UCS_OK)
		return -FI_EIO;
	/* TCP: shared memory of UCX would take network namespaces of one
	 * machine for one host */
	set(config, "TLS", "tcp");
	set(config, "NET_DEVICES", conf->device);
	/* else UCX takes the IPv4 address of an interface that has both */
	if (conf->ipv6)
		set(config, "AF_PRIO", "inet6,inet");
	/* else a call of ucp_worker_progress() waits in connect(2), for
	 * minutes if the other host has vanished */
	set(config, "CONN_NB", "y");
	/* a frame is received in one piece, and sent without a copy */
	set(config, "RX_SEG_SIZE", SEGMENT);
	/* no hooks into malloc and mmap */
	set(config, "RCACHE_ENABLE", "n");
	set(config, "KEEPIDLE", "1s");
	set(config, "KEEPINTVL", "1s");
	/* The first one after a second, and so many without an answer: a
	 * second more than the control connection has, so that the end of that
	 * one says that the host is silent. */
	snprintf(probes, sizeof(probes), "%u", conf->dead_ms / 1000 + 1);
	set(config, "KEEPCNT", probes);
	/* A user may set these for messages of other programs: from 0 bytes on,
	 * UCX would keep the empty messages that open a link, instead of
	 * sending them at once. */
	ucp_config_modify(config, "ZCOPY_THRESH", "auto");
	ucp_config_modify(config, "RNDV_THRESH", "auto");
	status = ucp_init(&params, config, &w->context);
	ucp_config_release(config);
	return status == UCS_OK ? 0 : -FI_EIO;
}

static int open_worker(const struct net_worker_conf *conf,
		       struct net_worker *w)
{
	ucp_worker_params_t params = {
		.field_mask = UCP_WORKER_PARAM_FIELD_THREAD_MODE |
			      UCP_WORKER_PARAM_FIELD_EVENT_FD |
			      UCP_WORKER_PARAM_FIELD_USER_DATA,
		.thread_mode = UCS_THREAD_MODE_SERIALIZED,
		.event_fd = conf->epfd,
		.user_data = conf->event,
	};
	ucp_am_handler_param_t am = {
		.field_mask = UCP_AM_HANDLER_PARAM_FIELD_ID |
			      UCP_AM_HANDLER_PARAM_FIELD_FLAGS |
			      UCP_AM_HANDLER_PARAM_FIELD_CB |
			      UCP_AM_HANDLER_PARAM_FIELD_ARG,
		.id = AM_ID,
		.flags = UCP_AM_FLAG_WHOLE_MSG,
		.cb = on_message,
		.arg = w,
	};

	if (ucp_worker_create(w->context, &params, &w->ucp) != UCS_OK)
		return -FI_EIO;
	if (ucp_worker_set_am_recv_handler(w->ucp, &am) == UCS_OK)
		return 0;
	ucp_worker_destroy(w->ucp);
	return -FI_EIO;
}

/*
 * UCX prints an error on standard output, amid the output of the program, when
 * a peer ends while its connection is made. That is the end of a peer, which
 * up->failed() reports, and no fault of UCX. So UCX is silent unless the user
 * set UCX_LOG_LEVEL, once it has started.
 */
static void silence(void)
{
	if (getenv("UCX_LOG_LEVEL") == NULL)
		(void)ucs_global_opts_set_value("LOG_LEVEL", "fatal");
}

/* Are there so many descriptors, at most START_FDS? UCX ends the process where
 * it gets none for its thread, and does not say what a link lacks. */
static bool has_room(int epfd, int want)
{
	int fd[START_FDS], n = 0;
	bool enough;

	while (n < want && (fd[n] = fcntl(epfd, F_DUPFD_CLOEXEC, 0)) >= 0)
		n++;
	enough = n == want;
	while (n > 0)
		close(fd[--n]);
	return enough;
}

static int net_open(const struct net_worker_conf *conf, struct net_worker **out)
{
	struct net_worker *w;
	int ret;

	if (!has_room(conf->epfd, START_FDS))
		return -FI_EMFILE;
	w = calloc(1, sizeof(*w));
	if (w == NULL)
		return -FI_ENOMEM;
	w->up = conf->up;
	w->owner = conf->owner;
	w->epfd = conf->epfd;
	w->event = conf->event;
	ret = open_context(conf, w);
	if (ret != 0)
		goto err_free;
	ret = open_worker(conf, w);
	if (ret != 0)
		goto err_context;
	silence();
	*out = w;
	return 0;

err_context:
	ucp_cleanup(w->context);
err_free:
	free(w);
	return ret;
}

static int net_address(struct net_worker *w, void *buf, size_t *len)
{
	struct address head = { .zero = 0 };
	ucp_address_t *address;
	size_t bytes;
	int ret = -FI_ENOMEM;

	if (!has_room(w->epfd, LINK_FDS))
		return -FI_EMFILE;
	if (ucp_worker_get_address(w->ucp, &address, &bytes) != UCS_OK)
		return ret;
	if (bytes <= *len - sizeof(head)) {
		head.bytes = (uint32_t)bytes;
		memcpy(buf, &head, sizeof(head));
		memcpy((uint8_t *)buf + sizeof(head), address, bytes);
		*len = sizeof(head) + bytes;
		ret = 0;
	}
	ucp_worker_release_address(w->ucp, address);
	return ret;
}

static unsigned net_progress(struct net_worker *w)
{
	unsigned n = ucp_worker_progress(w->ucp);

	/* A link goes on when something has come, which UCX counts; what UCX
	 * does then may end in the next call. */
	if (w->opening != NULL &&
	    (n != 0 || w->tries || ++w->idle % OPEN_POLLS == 0)) {
		w->tries = n != 0;
		n += open_links(w);
	}
	if (w->left != NULL)
		close_left(w);
	return n;
}

static int net_arm(struct net_worker *w)
{
	/* a message that meets the end of the other side is noticed by a call
	 * of UCX */
	if (w->opening != NULL && (open_links(w) != 0 ||
				   ucp_worker_progress(w->ucp) != 0))
		return -FI_EAGAIN;
	return ucp_worker_arm(w->ucp) == UCS_OK ? 0 : -FI_EAGAIN;
}

static int net_close(struct net_worker *w)
{
	while (w->opening != NULL)
		leave_opening(w->opening);
	for (int i = 0; i < CLOSE_POLLS && w->left != NULL; i++)
		net_progress(w);
	/* rather lost than the process ended, see net_disconnect() */
	if (w->left != NULL)
		return -FI_EBUSY;
	ucp_worker_destroy(w->ucp);
	ucp_cleanup(w->context);
	free(w);
	return 0;
}

/* ---- Links --------------------------------------------------------- */

static void on_failure(void *arg, ucp_ep_h ep, ucs_status_t status)
{
	struct net_link *link = arg;

	(void)ep;
	(void)status;			/* misleading: a kill is "timeout" */
	link->failed = true;
	link->worker->tries = true;
	if (link->peer != NULL)
		link->worker->up->failed(link->peer);
}

static int net_connect(struct net_worker *w, const void *address, size_t len,
		       void *peer, struct net_link **out)
{
	const uint8_t *bytes = address;
	struct net_link *link;
	struct address head;
	ucp_ep_params_t params = {
		.field_mask = UCP_EP_PARAM_FIELD_REMOTE_ADDRESS |
			      UCP_EP_PARAM_FIELD_ERR_HANDLING_MODE |
			      UCP_EP_PARAM_FIELD_ERR_HANDLER,
		.address = (const ucp_address_t *)(bytes + sizeof(head)),
		.err_mode = UCP_ERR_HANDLING_MODE_PEER,
		.err_handler = { .cb = on_failure },
	};

	if (len <= sizeof(head))
		return -FI_EINVAL;
	memcpy(&head, address, sizeof(head));
	if (head.bytes != len - sizeof(head) || head.zero != 0)
		return -FI_EINVAL;
	if (!has_room(w->epfd, LINK_FDS))
		return -FI_EMFILE;
	link = calloc(1, sizeof(*link));
	if (link == NULL)
		return -FI_ENOMEM;
	link->worker = w;
	link->peer = peer;
	link->waiting_end = &link->waiting;
	params.err_handler.arg = link;
	if (ucp_ep_create(w->ucp, &params, &link->ep) != UCS_OK) {
		free(link);
		return -FI_EIO;
	}
	link->next = w->opening;
	w->opening = link;
	w->tries = true;
	*out = link;
	return 0;
}

/* ---- Table --------------------------------------------------------- */

HAL_EXPORT const struct net_engine hal_net_engine = {
	.abi = NET_ENGINE_ABI,
	.name = "ucx",
	.open = net_open,
	.close = net_close,
	.address = net_address,
	.progress = net_progress,
	.arm = net_arm,
	.connect = net_connect,
	.send = net_send,
	.disconnect = net_disconnect,
};
