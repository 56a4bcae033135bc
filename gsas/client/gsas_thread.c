/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * gsas_thread.c - a thread's interface of the HAL, opened at its first call and
 * closed at its end.
 *
 * A forked child has copies of the parent's objects, but the interface belongs
 * to the parent. At the child's first call gsas_hot is found wiped. The child
 * then frees its copies, which changes private memory only, and opens an
 * interface. So libgsas installs no pthread_atfork() handlers.
 */
#include <errno.h>
#include <limits.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "client/gsas_conn.h"
#include "client/gsas_direct.h"
#include "client/gsas_log.h"
#include "client/gsas_queue_handle.h"
#include "client/gsas_thread.h"

#define SPIN_MAX	256		/* polls in vain before a yield */
#define SPIN_MIN	8		/* the same on a shared processor */
#define TIMEOUT_MS	30000		/* default of GSAS_TIMEOUT */

static _Thread_local struct gsas_thread *thread_self
	__attribute__((tls_model("initial-exec")));

static pthread_once_t key_once = PTHREAD_ONCE_INIT;
static pthread_key_t key;
static bool key_made;
static _Atomic uint64_t threads;	/* last gsas_thread.number given */

void gsas_thread_free(struct gsas_thread *t)
{
	gsas_segments_end(&t->segments);
	if (t->hif != NULL)
		hal_if_close(t->hif);
	if (t->hal != NULL)
		hal_put(t->hal);
	for (uint32_t i = 0; i < t->nused; i++) {
		struct gsas_conn *conn = t->conn[t->used[i]];

		/* In a forked child the parent's handles are kept, because the
		 * program may still use them: calls return -FI_EINVAL. */
		if (t->hot->live)
			gsas_handle_free_all(conn);
		free(conn);
	}
	free(t->conn);
	free(t->used);
	gsas_hot_free(t->hot);
	free(t);
}

static void thread_end(void *arg)
{
	gsas_hot_use(NULL);
	thread_self = NULL;
	gsas_thread_free(arg);
}

static void make_key(void)
{
	key_made = pthread_key_create(&key, thread_end) == 0;
}

/* Read GSAS_TIMEOUT: milliseconds, 0: no limit. -FI_EINVAL: no number. */
static int read_timeout(uint64_t *ns)
{
	const char *text = getenv("GSAS_TIMEOUT");
	unsigned long ms = TIMEOUT_MS;
	char *end;

	if (text != NULL && *text != '\0') {
		errno = 0;
		ms = strtoul(text, &end, 10);
		if (*text < '0' || *text > '9' || *end != '\0' ||
		    errno != 0 || ms > INT_MAX) {
			gsas_log("GSAS_TIMEOUT=%s: give milliseconds, 0 for no "
				 "limit", text);
			return -FI_EINVAL;
		}
	}
	*ns = (uint64_t)ms * 1000000;
	return 0;
}

static int open_interface(struct gsas_thread *t, int board)
{
	const struct hal_caps *caps;
	int ret = read_timeout(&t->timeout);

	if (ret == 0)
		ret = hal_get(NULL, &t->hal);
	if (ret != 0)
		return ret;
	caps = &t->hal->caps;
	ret = hal_if_open(t->hal, board, &t->hif);
	if (ret != 0)
		return ret;		/* the HAL has logged why */
	t->maps = caps->flags & HAL_CAP_COHERENT ? GSAS_MAPS_ALL :
		  GSAS_MAPS_OWN;
	t->starts = true;
	t->boards = caps->boards;
	t->conn = calloc(caps->boards, sizeof(t->conn[0]));
	t->used = calloc(caps->boards, sizeof(t->used[0]));
	return t->conn != NULL && t->used != NULL ? 0 : -FI_ENOMEM;
}

int gsas_thread_new(int board, struct gsas_thread **out)
{
	struct gsas_thread *t = calloc(1, sizeof(*t));
	int ret;

	if (t == NULL)
		return -FI_ENOMEM;
	t->yield = (struct gsas_yield){
		.spin = SPIN_MAX, .min = SPIN_MIN, .max = SPIN_MAX,
	};
	t->number = atomic_fetch_add_explicit(&threads, 1,
					      memory_order_relaxed) + 1;
	t->pid = (int)getpid();
	t->hot = gsas_hot_new(&t->wiped);
	t->segments.hot = t->hot;
	ret = t->hot != NULL ? open_interface(t, board) : -FI_ENOMEM;
	if (ret != 0)
		gsas_thread_free(t);
	else
		*out = t;
	return ret;
}

static int thread_begin(struct gsas_thread **out)
{
	struct gsas_thread *t;
	int ret;

	if (thread_self != NULL) {	/* copies of the parent's objects */
		/* set it also where the kernel has not wiped the page */
		thread_self->hot->live = false;
		thread_end(thread_self);
	}
	pthread_once(&key_once, make_key);
	if (!key_made)
		return -FI_EAGAIN;
	ret = gsas_thread_new(-1, &t);
	if (ret != 0)
		return ret;
	if (pthread_setspecific(key, t) != 0) {
		gsas_thread_free(t);
		return -FI_ENOMEM;
	}
	thread_self = t;
	if (t->wiped)
		gsas_hot_use(t->hot);
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
