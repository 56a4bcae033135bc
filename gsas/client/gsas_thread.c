/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * gsas_thread.c - a thread's interface: taken at its first call, given back at
 * its end; and how it waits.
 *
 * A forked child has copies of all this, of an interface that is its parent's.
 * It finds gsas_hot wiped, lets go of them, which touches private memory only,
 * and begins anew; so no handler of fork() is left behind in a program.
 */
#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "client/gsas_thread.h"
#include "client/gsas_bulk.h"
#include "client/gsas_conn.h"
#include "client/gsas_queue_client.h"
#include "client/gsas_window.h"

#define SPIN_MAX	256		/* polls in vain before a yield */
#define SPIN_MIN	8		/* the same where others want to run */
#define YIELDS		256		/* before a sleep */
#define SERVICE_NS	20000		/* between looks at connections */
#define SLEEP_MS	100		/* longest sleep in one go */
#define EVENTS		64		/* in one look */
#define QUIET_MS	30000		/* of a service that is stopped */
#define QUIET_STEP_NS	200000000	/* of it, at a time: this process may
					 * have been stopped too */
#define QUIET_GAP_NS	1000000		/* longest time between two waits that
					 * counts as waited */

static const struct gsas_hot hot_none;	/* of a thread that has none */

/* never written through while it points there */
_Thread_local struct gsas_hot *gsas_hot = (struct gsas_hot *)&hot_none;
static _Thread_local struct gsas_thread *thread_self
	__attribute__((tls_model("initial-exec")));

static pthread_once_t key_once = PTHREAD_ONCE_INIT;
static pthread_key_t key;
static bool key_made;
static _Atomic uint64_t threads;	/* so far */

void gsas_say(const char *fmt, ...)
{
	char line[512];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(line, sizeof(line), fmt, ap);
	va_end(ap);
	fprintf(stderr, "gsas: %s\n", line);
}

uint64_t gsas_now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000 + ts.tv_nsec;
}

/* ---- Beginning and end --------------------------------------------------- */

/* Calls under way end here; what they name is not touched. */
static void thread_free(struct gsas_thread *t)
{
	gsas_window_end(t);
	if (t->hif != NULL)
		hal_if_close(t->hif);
	if (t->hal != NULL)
		hal_put(t->hal);
	for (uint32_t i = 0; i < t->nused; i++)
		free(t->conn[t->used[i]]);
	free(t->conn);
	free(t->used);
	free(t->segment);
	if (t->hot != NULL)
		gsas_queue_end(t);
	if (t->hot != NULL)
		munmap(t->hot, sizeof(*t->hot));
	free(t);
}

static void thread_end(void *arg)
{
	gsas_hot = (struct gsas_hot *)&hot_none;
	thread_self = NULL;
	thread_free(arg);
}

static void make_key(void)
{
	key_made = pthread_key_create(&key, thread_end) == 0;
}

static int open_hot(struct gsas_thread *t)
{
	void *at = mmap(NULL, sizeof(*t->hot), PROT_READ | PROT_WRITE,
			MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (at == MAP_FAILED)
		return -FI_ENOMEM;
	t->hot = at;
	t->hot->live = true;
	/* without it (qemu-user) the shortest path is not taken */
	t->wiped = madvise(at, sizeof(*t->hot), MADV_WIPEONFORK) == 0;
	t->pid = (int)getpid();
	return 0;
}

/* GSAS_TIMEOUT: milliseconds, 0: no limit. -FI_EINVAL: it is no number. */
static int read_limit(uint64_t *ns)
{
	const char *text = getenv("GSAS_TIMEOUT");
	unsigned long ms = QUIET_MS;
	char *end;

	if (text != NULL && *text != '\0') {
		errno = 0;
		ms = strtoul(text, &end, 10);
		if (*text < '0' || *text > '9' || *end != '\0' ||
		    errno != 0 || ms > INT_MAX) {
			gsas_say("GSAS_TIMEOUT=%s: give milliseconds, 0 for no "
				 "limit", text);
			return -FI_EINVAL;
		}
	}
	*ns = (uint64_t)ms * 1000000;
	return 0;
}

static int open_interface(struct gsas_thread *t)
{
	const struct hal_caps *caps;
	int ret = read_limit(&t->quiet_limit);

	if (ret == 0)
		ret = hal_get(NULL, &t->hal);
	if (ret != 0)
		return ret;
	caps = &t->hal->caps;
	ret = hal_if_open(t->hal, -1, &t->hif);
	if (ret != 0)
		return ret;		/* the HAL has said why */
	t->windows = caps->flags & HAL_CAP_COHERENT;
	t->starts = true;
	t->boards = caps->boards;
	t->conn = calloc(caps->boards, sizeof(t->conn[0]));
	t->used = calloc(caps->boards, sizeof(t->used[0]));
	return t->conn != NULL && t->used != NULL ? 0 : -FI_ENOMEM;
}

static int thread_begin(struct gsas_thread **out)
{
	struct gsas_thread *t;
	int ret;

	if (thread_self != NULL) {	/* a parent's */
		thread_self->hot->live = false;	/* not always wiped */
		thread_end(thread_self);
	}
	pthread_once(&key_once, make_key);
	if (!key_made)
		return -FI_EAGAIN;
	t = calloc(1, sizeof(*t));
	if (t == NULL)
		return -FI_ENOMEM;
	t->yield = (struct gsas_yield){
		.spin = SPIN_MAX, .min = SPIN_MIN, .max = SPIN_MAX,
	};
	t->number = atomic_fetch_add_explicit(&threads, 1,
					      memory_order_relaxed) + 1;
	ret = open_hot(t);
	if (ret == 0)
		ret = open_interface(t);
	if (ret == 0 && pthread_setspecific(key, t) != 0)
		ret = -FI_ENOMEM;
	if (ret != 0) {
		thread_free(t);
		return ret;
	}
	thread_self = t;
	if (t->wiped)
		gsas_hot = t->hot;
	*out = t;
	return 0;
}

int gsas_thread_get(struct gsas_thread **thread)
{
	struct gsas_thread *t = thread_self;

	if (__builtin_expect(t == NULL || !t->hot->live ||
			     (!t->wiped && t->pid != (int)getpid()), 0))
		return thread_begin(thread);
	*thread = t;
	return 0;
}

/* ---- Progress ------------------------------------------------------------ */

/* One at a time: a peer that is freed may have had another. */
void gsas_thread_service(struct gsas_thread *t)
{
	struct hal_event ev;

	t->next_service = gsas_now_ns() + SERVICE_NS;
	for (int i = 0; i < EVENTS && hal_if_service(t->hif, &ev, 1) == 1;
	     i++) {
		struct gsas_conn *conn = ev.peer->user;

		/* nobody but services has business with us */
		if (conn == NULL)
			hal_peer_free(ev.peer);
		else if (ev.type == HAL_EV_DEAD)
			gsas_conn_end(conn, ev.status);
	}
}

bool gsas_thread_progress(struct gsas_thread *t)
{
	bool moved = false;

	hal_if_pump(t->hif);
	for (uint32_t i = 0; i < t->nused; i++) {
		struct gsas_conn *conn = t->conn[t->used[i]];

		if (conn->peer == NULL)
			continue;
		moved |= gsas_conn_poll(conn);
		if (conn->bulk != NULL)
			moved |= gsas_bulk_progress(conn);
	}
	return moved;
}

/* ---- Waiting ------------------------------------------------------------- */

static inline void relax(void)
{
#if defined(__x86_64__) || defined(__i386__)
	__builtin_ia32_pause();
#elif defined(__aarch64__)
	__asm__ volatile("yield");
#endif
}

static void give_way(struct gsas_thread *t, uint64_t now)
{
	sched_yield();
	gsas_yield_took(&t->yield, gsas_now_ns() - now);
}

/* Services that have our packets shall wake us when they took some, or no
 * longer: a long call is waiting for room, or who called us is. */
static void room_wakes(struct gsas_thread *t, bool on)
{
	for (uint32_t i = 0; i < t->nused; i++) {
		struct gsas_conn *conn = t->conn[t->used[i]];

		if (conn->peer != NULL &&
		    (!on || t->wants_room || conn->bulk != NULL))
			hal_tx_sleep(conn->peer, on);
	}
}

/* Milliseconds, from now. */
static int nap_ms(const struct gsas_thread *t)
{
	uint64_t now, left;

	if (t->wants_room)
		return 1;
	if (t->deadline == 0)
		return SLEEP_MS;
	now = gsas_now_ns();
	left = now < t->deadline ? (t->deadline - now) / 1000000 + 1 : 0;
	return left < SLEEP_MS ? (int)left : SLEEP_MS;
}

static void nap(struct gsas_thread *t)
{
	struct pollfd pfd = { .fd = hal_if_fd(t->hif), .events = POLLIN };

	room_wakes(t, true);
	if (hal_if_arm(t->hif) == 0) {
		/* room that came before they were asked: looked for here for
		 * long calls, soon by who wants it for a packet */
		if (!gsas_thread_progress(t))
			poll(&pfd, 1, nap_ms(t));
		hal_if_disarm(t->hif);
	}
	room_wakes(t, false);
	gsas_thread_service(t);
}

/*
 * Count how long services have been silent while this thread waited. The time
 * between two waits does not count, unless it is so short that the thread waits
 * again and again for less than SERVICE_NS.
 */
static void check_quiet(struct gsas_thread *t, uint64_t now)
{
	uint64_t step = now - t->quiet_check;

	if (step < SERVICE_NS)
		return;
	if (t->begins && step > QUIET_GAP_NS)
		step = 0;
	if (step > QUIET_STEP_NS)
		step = QUIET_STEP_NS;
	t->quiet_check = now;
	t->begins = false;
	if (t->quiet_limit == 0)
		return;
	for (uint32_t i = 0; i < t->nused; i++) {
		struct gsas_conn *conn = t->conn[t->used[i]];

		if (conn->peer != NULL)
			gsas_conn_quiet(conn, step, t->quiet_limit);
	}
}

void gsas_wait_step(struct gsas_thread *t)
{
	uint64_t now;

	if (gsas_thread_progress(t)) {
		t->polls = 0;
		return;
	}
	if (++t->polls < t->yield.spin) {
		relax();
		return;
	}
	now = gsas_now_ns();
	if (now >= t->next_service)
		gsas_thread_service(t);
	check_quiet(t, now);
	if (t->polls < t->yield.spin + YIELDS ||
	    !(t->hif->caps->flags & HAL_CAP_EVENT))
		give_way(t, now);
	else
		nap(t);
}
