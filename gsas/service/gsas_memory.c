/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * gsas_memory.c - the memory of a board's service: memory that can be mapped is
 * allocated by the HAL, all other memory is private to the process.
 *
 * A client that requests too much memory gets an error. If the service took
 * memory that the system does not have, the kernel would kill a process,
 * perhaps the service, and all memory of the board would be lost. So:
 *
 *   - all pages are populated when memory is allocated, not at first use;
 *   - before that, the service checks that the machine and the control groups
 *     of the process have this memory and a reserve (hal_memory_left());
 *   - the services of a host share a budget. Each shows how many pages it has
 *     by the length of a lock on the file of its program. All processes can
 *     read the lock, and the kernel releases it when its process ends;
 *   - only one process of the same program at a time checks and shows, or
 *     checks and populates.
 *
 * Any user who can read the file of the program can lock it too. Locks that no
 * service would set are ignored, and a lock for ever on the turns costs one
 * wait in TURN_PAUSE_NS. gsas(7) lists the harm that remains.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <unistd.h>

#include "hal/hal_limit.h"
#include "service/gsas_memory.h"
#include "util/unm_clock.h"

#define STEP		(UINT64_C(16) << 20)	/* bytes taken at a time */
#define RESERVE_PART	16			/* reserve: this part of the
						 * machine's memory, */
#define RESERVE_MIN	(UINT64_C(8) << 20)	/* but at least this */
#define RESERVE_MAX	(UINT64_C(256) << 20)	/* and at most this */
#define AHEAD		(UINT64_C(1) << 20)	/* see source_refill() */
#define AHEAD_NS	10000000		/* ns that its check is valid,
						 * as is the HAL's list of
						 * groups with a limit */
#define TURN_MS		10000			/* longest wait for a turn */
#define TURN_PAUSE_NS	(UINT64_C(60) * 1000000000)	/* without turns after
							 * such a wait */
#define SHOWN_SHIFT	40			/* offsets of a process in the
						 * file, a byte for each page */
#define SHOWN_MAX	4096			/* locks read in shown() */

#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23
#endif

/* The memory of a service. The service's thread and its workers use it. */
struct gsas_source {
	struct hal *hal;
	int board;
	uint64_t budget;		/* bytes; 0: no limit */
	uint64_t machine_pages;		/* GSAS pages of the machine's memory */
	void (*log)(const char *line);	/* NULL: no log */
	_Atomic uint64_t no_turns;	/* ns: until then there are no turns */
	int fd;				/* the program's file; -1: not open */
	pthread_mutex_t lock;		/* protects used, ahead, ahead_end and
					 * the lock in the file */
	uint64_t used;			/* bytes allocated */
	uint64_t ahead;			/* bytes that the system had when
					 * source_refill() checked, and that
					 * are not populated yet */
	uint64_t ahead_end;		/* ns: when that check is too old */
};

/* ---- Turns --------------------------------------------------------------- */

/*
 * Begin a turn: from the check until the memory is shown or populated no other
 * service takes memory. A process that is stopped during its turn, or that
 * locks the file for ever, delays other processes by TURN_MS at most. They then
 * go on without turns for TURN_PAUSE_NS, which the reserve makes safe. Returns
 * the descriptor for turn_end().
 */
static int turn_begin(struct gsas_source *s)
{
	uint64_t now = unm_now_ns();
	int fd = -1, ms = 0;

	if (now >= atomic_load(&s->no_turns))
		fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
	for (; fd >= 0 && ms < TURN_MS &&
	     flock(fd, LOCK_EX | LOCK_NB) != 0; ms++)
		poll(NULL, 0, 1);
	if (ms < TURN_MS)
		return fd;
	now = unm_now_ns();
	if (atomic_exchange(&s->no_turns, now + TURN_PAUSE_NS) < now &&
	    s->log != NULL)
		s->log("memory: another process has locked the file of this "
		       "program for 10 s (lslocks shows which): no wait for "
		       "it for 60 s");
	return fd;
}

static void turn_end(int fd)
{
	if (fd >= 0)
		close(fd);
}

/* ---- The budget of a host ------------------------------------------------ */

static struct flock pages_lock(short type, uint64_t start, uint64_t len)
{
	return (struct flock){
		.l_type = type, .l_whence = SEEK_SET,
		.l_start = (off_t)start, .l_len = (off_t)len,
	};
}

/* Show the used pages: lock as many bytes of the file, from offset
 * pid << SHOWN_SHIFT on. */
static void show(const struct gsas_source *s)
{
	uint64_t start = (uint64_t)getpid() << SHOWN_SHIFT;
	uint64_t pages = s->used >> GSAS_PAGE_SHIFT;
	struct flock on = pages_lock(F_RDLCK, start, pages);
	struct flock off = pages_lock(F_UNLCK, start + pages,
				      (UINT64_C(1) << SHOWN_SHIFT) - pages);

	if (s->fd < 0)
		return;
	if (pages != 0)
		fcntl(s->fd, F_OFD_SETLK, &on);
	fcntl(s->fd, F_OFD_SETLK, &off);
}

/* Can these bytes be the lock of a service? Not if no such process lives, or
 * the machine has fewer pages. The process id is that of the service's own pid
 * namespace: locks of other namespaces may be ignored, see gsas(7). */
static bool of_service(const struct gsas_source *s, uint64_t start,
		       uint64_t len)
{
	uint64_t pid = start >> SHOWN_SHIFT;

	return start == pid << SHOWN_SHIFT && pid > 0 &&
	       len <= s->machine_pages &&
	       (kill((pid_t)pid, 0) == 0 || errno == EPERM);
}

/* Pages that other processes show between offsets start and end. F_OFD_GETLK
 * returns any one of the locks in a range, so the rest of the range is searched
 * on both sides of that lock. */
static uint64_t shown(const struct gsas_source *s, uint64_t start,
		      uint64_t end, int *max)
{
	uint64_t sum = 0;

	while (start < end && --*max > 0) {
		struct flock lock = pages_lock(F_WRLCK, start, end - start);
		uint64_t at, len;

		if (fcntl(s->fd, F_OFD_GETLK, &lock) != 0 ||
		    lock.l_type == F_UNLCK)
			break;
		at = (uint64_t)lock.l_start;
		len = (uint64_t)lock.l_len;
		if (len == 0)			/* up to the largest offset */
			len = INT64_MAX - at;
		if (at > start)
			sum += shown(s, start, at, max);
		if (of_service(s, at, len))
			sum += len;
		start = at + len;
	}
	return sum;
}

static bool in_budget(const struct gsas_source *s, uint64_t bytes)
{
	uint64_t others = 0;
	int max = SHOWN_MAX;

	if (s->budget == 0)
		return true;
	if (s->fd >= 0)
		others = shown(s, 0, INT64_MAX, &max) << GSAS_PAGE_SHIFT;
	others += s->used;
	return others <= s->budget && bytes <= s->budget - others;
}

/* Count bytes as used if they are within the budget. In a turn, so that no
 * other service takes the same part of the budget before this one shows it. */
static bool take(struct gsas_source *s, uint64_t bytes)
{
	int fd = turn_begin(s);
	bool fits;

	pthread_mutex_lock(&s->lock);
	fits = in_budget(s, bytes);
	if (fits) {
		s->used += bytes;
		show(s);
	}
	pthread_mutex_unlock(&s->lock);
	turn_end(fd);
	return fits;
}

static void give_back(struct gsas_source *s, uint64_t bytes)
{
	pthread_mutex_lock(&s->lock);
	s->used -= bytes;
	show(s);
	pthread_mutex_unlock(&s->lock);
}

/* ---- The memory of the system -------------------------------------------- */

static uint64_t reserve(void)
{
	uint64_t bytes = hal_memory_total() / RESERVE_PART;

	if (bytes < RESERVE_MIN)
		return RESERVE_MIN;
	return bytes < RESERVE_MAX ? bytes : RESERVE_MAX;
}

/* The limits may change while the service runs, and the reserve with them. */
static bool has_room(uint64_t bytes)
{
	uint64_t spare = reserve();

	return bytes < UINT64_MAX - spare &&
	       hal_memory_left(bytes + spare) >= bytes + spare;
}

/* ---- Memory -------------------------------------------------------------- */

/* Back memory by pages, which are zero. false: the system has none. */
static bool populate(uint8_t *at, uint64_t bytes)
{
	volatile uint8_t *byte = at;

	if (madvise(at, (size_t)bytes, MADV_POPULATE_WRITE) == 0)
		return true;
	if (errno != EINVAL)
		return false;
	/* Linux before 5.14 has no MADV_POPULATE_WRITE */
	for (uint64_t i = 0; i < bytes; i += GSAS_PAGE_BYTES)
		byte[i] = 0;
	return true;
}

/* Populate memory, in steps of a turn each. Between two steps other services,
 * which try once in a millisecond, get a turn. */
static bool fill(struct gsas_source *s, uint8_t *at, uint64_t bytes)
{
	bool done = true;
	uint64_t n;

	for (; done && bytes > 0; at += n, bytes -= n) {
		int fd = turn_begin(s);

		n = bytes < STEP ? bytes : STEP;
		done = has_room(n) && populate(at, n);
		turn_end(fd);
		if (done && bytes > n)
			poll(NULL, 0, 1);
	}
	return done;
}

static int alloc_private(struct gsas_source *s, uint64_t bytes,
			 void **at)
{
	/* do not begin with what cannot be finished */
	if (bytes > STEP && !has_room(bytes))
		return -FI_ENOMEM;
	*at = mmap(NULL, (size_t)bytes, PROT_READ | PROT_WRITE,
		   MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (*at == MAP_FAILED)
		return -FI_ENOMEM;
	if (fill(s, *at, bytes))
		return 0;
	munmap(*at, (size_t)bytes);
	return -FI_ENOMEM;
}

static int alloc_mapped(struct gsas_source *s, uint64_t bytes,
			struct hal_mem **mem, void **at)
{
	int fd = turn_begin(s);
	int ret = has_room(bytes) ? hal_mem_alloc(s->hal, s->board,
						  (size_t)bytes, mem, at) :
		-FI_ENOMEM;

	turn_end(fd);
	return ret;
}

static int source_alloc(void *ctx, uint64_t bytes, bool mapped,
			struct gsas_block *block)
{
	struct gsas_source *s = ctx;
	struct hal_mem *mem = NULL;
	void *at;
	int ret;

	if (!take(s, bytes))
		return -FI_ENOMEM;
	ret = mapped ? alloc_mapped(s, bytes, &mem, &at) :
		alloc_private(s, bytes, &at);
	if (ret != 0) {
		give_back(s, bytes);
		return ret;
	}
	block->memory = at;
	block->bytes = bytes;
	block->cookie = mem;
	return 0;
}

/*
 * The thread of the service calls this function, so it waits for no turn.
 * Reading the free memory of the system takes long. So the function checks for
 * AHEAD bytes more than needed, and uses these up before it checks again. A
 * check that is AHEAD_NS old does not count, because the control group may have
 * got a limit since then.
 */
static bool source_refill(void *ctx, void *at, uint64_t bytes)
{
	struct gsas_source *s = ctx;
	uint64_t now = unm_now_ns();
	bool there;

	pthread_mutex_lock(&s->lock);
	if (now >= s->ahead_end)
		s->ahead = 0;
	if (s->ahead < bytes && has_room(bytes + AHEAD)) {
		s->ahead = bytes + AHEAD;
		s->ahead_end = now + AHEAD_NS;
	}
	there = s->ahead >= bytes;
	if (there)
		s->ahead -= bytes;
	pthread_mutex_unlock(&s->lock);
	return there && populate(at, bytes);
}

static void source_free(void *ctx, struct gsas_block *block)
{
	struct gsas_source *s = ctx;

	if (block->cookie != NULL)
		hal_mem_free(s->hal, block->cookie);
	else
		munmap(block->memory, (size_t)block->bytes);
	give_back(s, block->bytes);
	block->memory = NULL;
}

static int source_key(void *ctx, const struct gsas_block *block,
		      uint64_t key[2])
{
	struct gsas_source *s = ctx;
	struct hal_key hal_key;
	int ret;

	if (block->cookie == NULL)
		return -FI_EINVAL;
	ret = hal_mem_key(s->hal, block->cookie, &hal_key);
	if (ret == 0)
		memcpy(key, hal_key.word, sizeof(hal_key.word));
	return ret;
}

struct gsas_memory gsas_source_memory(struct gsas_source *source)
{
	return (struct gsas_memory){
		.alloc = source_alloc, .free = source_free,
		.key = source_key, .ctx = source, .refill = source_refill,
	};
}

int gsas_source_new(struct hal *hal, int board, uint64_t budget,
		    void (*log)(const char *line), struct gsas_source **source)
{
	struct gsas_source *s = calloc(1, sizeof(*s));

	if (s == NULL)
		return -FI_ENOMEM;
	if (pthread_mutex_init(&s->lock, NULL) != 0) {
		free(s);
		return -FI_ENOMEM;
	}
	s->hal = hal;
	s->board = board;
	s->budget = budget;
	s->machine_pages = (uint64_t)sysconf(_SC_PHYS_PAGES) *
			   (uint64_t)sysconf(_SC_PAGESIZE) >> GSAS_PAGE_SHIFT;
	s->log = log;
	s->fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
	*source = s;
	return 0;
}

void gsas_source_free(struct gsas_source *source)
{
	if (source->fd >= 0)
		close(source->fd);
	pthread_mutex_destroy(&source->lock);
	free(source);
}
