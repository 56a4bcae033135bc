/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * hal_conform_engine.c - an engine for peers on other hosts that delays,
 * reorders, doubles and loses frames, or ends links, as a broken engine might
 *
 * Entry points: __wrap_net_crypto_get() and __wrap_net_engine_get(), by which
 * the linker replaces the functions of hal_net_load.c; ct_frame_fault(). The
 * modules are those of the build tree; a table of this file is around that of
 * the engine. A frame that is late is a copy in a list of its worker. The
 * thread that uses the interface uses the worker and its links.
 */
#include <dlfcn.h>
#include <libgen.h>
#include <limits.h>

#include "conform/hal_conform.h"
#include "hal/net/hal_net_load.h"
#include "hal/net/hal_net_stream.h"

#define LATE_MAX	24		/* later frames that overtake one, at
					 * most: less than NET_WINDOW */

/* A frame of which this file has the copy. */
struct frame {
	struct net_message m;
	struct frame *next;		/* in net_worker.late, or flying */
	struct net_link *link;
	unsigned wait;			/* calls until it is sent ... */
	bool far;			/* ... of send() only */
	size_t len;
	uint8_t bytes[];
};

struct net_worker {
	struct net_worker *real;
	void *owner;			/* for the upcalls of hal/net */
	struct frame *late;
	struct net_link *cut;		/* to be reported as failed, or NULL */
	uint64_t rng;
};

struct net_link {
	struct net_worker *worker;
	struct net_link *real;
	void *peer;			/* for the upcalls */
	bool cut;			/* carries nothing any more */
};

static const struct net_crypto *crypto;	/* tables of the modules */
static const struct net_engine *real;
static const struct net_upcalls *up;	/* those of hal/net */
static struct frame *flying;		/* copies that the module sends */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;	/* of flying */

/* ---- Faults ---------------------------------------------------------- */

static _Atomic long countdown;		/* numbered frames until the fault */
static _Atomic int fault_kind;

void ct_frame_fault(enum ct_frame_fault kind, long after)
{
	atomic_store(&fault_kind, kind);
	atomic_store(&countdown, after);
}

static enum ct_frame_fault decide(struct net_worker *w, const void *data)
{
	struct net_head head;

	memcpy(&head, data, sizeof(head));
	if (head.seq != 0 && atomic_load(&countdown) > 0 &&
	    atomic_fetch_sub(&countdown, 1) == 1)
		return (enum ct_frame_fault)atomic_load(&fault_kind);
	return ct_opt.late != 0 &&
		ct_random(&w->rng) % 1000 < (uint64_t)ct_opt.late ?
		CT_FRAME_LATE : CT_FRAME_GOOD;
}

/* ---- Copies ---------------------------------------------------------- */

static struct frame *copy(struct net_link *link, const void *data, size_t len)
{
	struct frame *f = malloc(sizeof(*f) + len);

	if (f == NULL)
		abort();
	memset(f, 0, sizeof(*f));
	f->link = link;
	f->len = len;
	memcpy(f->bytes, data, len);
	return f;
}

static void fly(struct frame *f)
{
	pthread_mutex_lock(&lock);
	f->next = flying;
	flying = f;
	pthread_mutex_unlock(&lock);
}

/* Free the copy to which this message belongs. False: it is of hal/net. */
static bool landed(struct net_message *message)
{
	struct frame **at, *f;

	pthread_mutex_lock(&lock);
	for (at = &flying; *at != NULL && &(*at)->m != message;
	     at = &(*at)->next)
		;
	f = *at;
	if (f != NULL)
		*at = f->next;
	pthread_mutex_unlock(&lock);
	free(f);
	return f != NULL;
}

static void transmit(struct frame *f)
{
	struct net_link *link = f->link;
	int ret = 0;

	if (!link->cut) {
		fly(f);
		ret = real->send(link->real, &f->m, f->bytes, f->len);
	}
	if (link->cut)
		free(f);
	else if (ret != 1)
		landed(&f->m);
	if (ret < 0)
		up->failed(link->peer);
}

/* Count a call for the late frames of a worker, or of a link, and send those
 * that have waited long enough. */
static void pass(struct net_worker *w, const struct net_link *only)
{
	struct frame **at = &w->late, *f;

	while ((f = *at) != NULL) {
		if (only != NULL ? f->link != only || --f->wait != 0 :
		    f->far || --f->wait != 0) {
			at = &f->next;
			continue;
		}
		*at = f->next;
		transmit(f);
	}
}

static void hold(struct net_worker *w, struct frame *f, bool far)
{
	struct frame **at = &w->late;
	unsigned calls = NET_WINDOW + LATE_MAX;

	if (!far)
		calls = 1 + (unsigned)(ct_random(&w->rng) % LATE_MAX);

	while (*at != NULL)
		at = &(*at)->next;
	f->wait = calls;
	f->far = far;
	f->next = NULL;
	*at = f;
}

/* ---- The table ------------------------------------------------------- */

static void on_received(void *owner, const void *data, size_t len)
{
	up->received(((struct net_worker *)owner)->owner, data, len);
}

static void on_sent(struct net_message *message)
{
	if (!landed(message))
		up->sent(message);
}

static void on_failed(void *peer)
{
	up->failed(peer);
}

static const struct net_upcalls upcalls = {
	.received = on_received, .sent = on_sent, .failed = on_failed,
};

static int frames_open(const struct net_worker_conf *conf,
		       struct net_worker **out)
{
	struct net_worker *w = calloc(1, sizeof(*w));
	struct net_worker_conf own = *conf;
	int ret;

	if (w == NULL)
		return -FI_ENOMEM;
	up = conf->up;			/* the same each time */
	w->owner = conf->owner;
	w->rng = (uint64_t)(uintptr_t)w;
	own.owner = w;
	own.up = &upcalls;
	ret = real->open(&own, &w->real);
	if (ret != 0)
		free(w);
	else
		*out = w;
	return ret;
}

static int frames_close(struct net_worker *w)
{
	int ret = real->close(w->real);

	free(w);
	return ret;
}

static int frames_address(struct net_worker *w, void *buf, size_t *len)
{
	return real->address(w->real, buf, len);
}

static unsigned frames_progress(struct net_worker *w)
{
	struct net_link *cut = w->cut;
	unsigned n = real->progress(w->real);

	pass(w, NULL);
	w->cut = NULL;
	if (cut != NULL)
		up->failed(cut->peer);
	return n;
}

static int frames_arm(struct net_worker *w)
{
	return w->late != NULL || w->cut != NULL ? -FI_EAGAIN :
		real->arm(w->real);
}

static int frames_connect(struct net_worker *w, const void *address, size_t len,
			  void *peer, struct net_link **out)
{
	struct net_link *link = calloc(1, sizeof(*link));
	int ret;

	if (link == NULL)
		return -FI_ENOMEM;
	link->worker = w;
	link->peer = peer;
	ret = real->connect(w->real, address, len, peer, &link->real);
	if (ret != 0)
		free(link);
	else
		*out = link;
	return ret;
}

static int frames_send(struct net_link *link, struct net_message *message,
		       const void *data, size_t len)
{
	struct net_worker *w = link->worker;
	enum ct_frame_fault fault = decide(w, data);
	int ret;

	if (fault == CT_FRAME_CUT) {
		link->cut = true;
		w->cut = link;
	}
	if (link->cut || fault == CT_FRAME_LOST)
		return 0;
	if (fault == CT_FRAME_LATE || fault == CT_FRAME_FAR) {
		hold(w, copy(link, data, len), fault == CT_FRAME_FAR);
		return 0;
	}
	ret = real->send(link->real, message, data, len);
	if (fault == CT_FRAME_TWICE)
		transmit(copy(link, data, len));
	pass(w, link);
	return ret;
}

static void frames_disconnect(struct net_link *link, const uint8_t *silent)
{
	struct frame **at = &link->worker->late, *f;

	while ((f = *at) != NULL) {
		if (f->link != link) {
			at = &f->next;
			continue;
		}
		*at = f->next;
		free(f);
	}
	if (link->worker->cut == link)
		link->worker->cut = NULL;
	real->disconnect(link->real, silent);
	free(link);
}

static struct net_engine engine = {
	.abi = NET_ENGINE_ABI, .name = "frames",
	.open = frames_open, .close = frames_close,
	.address = frames_address, .progress = frames_progress,
	.arm = frames_arm, .connect = frames_connect,
	.send = frames_send, .disconnect = frames_disconnect,
};

/* ---- Loading --------------------------------------------------------- */

/* The table of a module of the build tree; NULL: there is none. */
static const void *module(const char *file, const char *symbol)
{
	char self[PATH_MAX - 64] = "", path[PATH_MAX];
	const uint32_t *table;
	void *lib;

	if (readlink("/proc/self/exe", self, sizeof(self) - 1) <= 0)
		return NULL;
	snprintf(path, sizeof(path), "%s/../../.libs/%s", dirname(self), file);
	lib = dlopen(path, RTLD_NOW | RTLD_LOCAL);
	table = lib == NULL ? NULL : dlsym(lib, symbol);
	return table != NULL && *table == NET_ENGINE_ABI ? table : NULL;
}

static void load(void)
{
	/* no signal handlers: the test has a watchdog; no lines about
	 * connections to processes that the test has ended */
	setenv("UCX_HANDLE_ERRORS", "none", 0);
	setenv("UCX_LOG_LEVEL", "fatal", 0);
	crypto = module("libunimem-net-auth.so", NET_CRYPTO_SYMBOL);
	real = module("libunimem-net.so", NET_ENGINE_SYMBOL);
}

static void load_once(void)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	pthread_once(&once, load);
}

const struct net_crypto *__wrap_net_crypto_get(void);

const struct net_crypto *__wrap_net_crypto_get(void)
{
	load_once();
	return crypto;
}

const struct net_engine *__wrap_net_engine_get(void);

const struct net_engine *__wrap_net_engine_get(void)
{
	load_once();
	return real != NULL ? &engine : NULL;
}
