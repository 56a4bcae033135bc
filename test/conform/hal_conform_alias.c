/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * hal_conform_alias.c - laws of a second mapping of memory that processes
 * share (docs/hal.md, section 14).
 */
#include <fcntl.h>
#include <sys/stat.h>

#include "conform/hal_conform.h"

#define PAGE	((size_t)4096)
#define BYTES	(16 * PAGE)
#define RW	(HAL_ALIAS_READ | HAL_ALIAS_WRITE)
#define PROTS	(PROT_READ | PROT_WRITE)

/* A file of BYTES without a name, as the program has it. */
struct file {
	int fd;
	uint8_t *map;
};

static void *map_file(int fd, size_t off, size_t len, int prot, int flags)
{
	void *map = mmap(NULL, len, prot, flags, fd, (off_t)off);

	assert_true(map != MAP_FAILED);
	return map;
}

static struct file file_new(void)
{
	struct file f = { .fd = memfd_create("conform", MFD_CLOEXEC) };

	assert_true(f.fd >= 0);
	assert_int_equal(ftruncate(f.fd, BYTES), 0);
	f.map = map_file(f.fd, 0, BYTES, PROTS, MAP_SHARED);
	return f;
}

static void file_free(struct file *f)
{
	munmap(f->map, BYTES);
	close(f->fd);
}

/* Memory of another host is mapped nowhere. */
static bool has_aliases(void)
{
	return ct_caps->flags & HAL_CAP_ALIAS && !ct_net();
}

static int key_of(const void *addr, uint64_t len, uint32_t access,
		  struct hal_key *key)
{
	return hal_alias_key(ct_hal, addr, len, access, key);
}

/* Both calls on one range of this process. */
static int alias_of(struct hal_peer *peer, const void *addr, uint64_t len,
		    uint32_t access, struct hal_window *win)
{
	struct hal_key key;
	int ret = key_of(addr, len, access, &key);

	return ret != 0 ? ret : hal_alias_open(peer, &key, len, access, win);
}

static struct hal_peer *some_peer(void)
{
	return ct_pair(0, 0).ab;
}

/* Before anything is taken: what is skipped frees nothing. */
#define NEEDS_ALIASES()	do { if (!has_aliases()) skip(); } while (0)

/* ---- Where there are any --------------------------------------------- */

static void alias_where_capable(void **state)
{
	struct hal_peer *peer = some_peer();
	struct hal_key key = { { 0 } };
	struct file f = file_new();
	struct hal_window win;

	if (has_aliases()) {
		assert_int_equal(alias_of(peer, f.map, BYTES, RW, &win), 0);
		hal_alias_close(ct_hal, &win);
		assert_null(win.addr);
	} else if (ct_net()) {
		assert_int_equal(alias_of(peer, f.map, BYTES, RW, &win),
				 -FI_ENOENT);
	} else {
		assert_int_equal(key_of(f.map, BYTES, RW, &key), -FI_ENOSYS);
		assert_int_equal(hal_alias_open(peer, &key, BYTES, RW, &win),
				 -FI_ENOSYS);
	}
	file_free(&f);
}

/* Any range: the same bytes, of no other address, in both directions. */
static void alias_is_the_same_memory(void **state)
{
	struct hal_peer *peer = some_peer();
	uint8_t want[BYTES] = { 0 }, buf[BYTES];
	struct file f;
	uint64_t rng = 3;

	NEEDS_ALIASES();
	f = file_new();
	/* two mappings that follow each other are as good as one */
	assert_int_equal(madvise(f.map + 4 * PAGE, PAGE, MADV_DONTFORK), 0);
	for (uint64_t i = 1; i <= 200; i++) {
		size_t off = ct_random(&rng) % BYTES;
		size_t len = 1 + ct_random(&rng) % (BYTES - off);
		struct hal_window win;

		assert_int_equal(alias_of(peer, f.map + off, len, RW, &win),
				 0);
		assert_true(win.addr != f.map + off);
		assert_true(win.bytes == len);
		/* an element is aligned here if it is there */
		assert_true(((uintptr_t)win.addr - (uintptr_t)(f.map + off)) %
			    PAGE == 0);
		ct_fill(buf, len, i);
		memcpy(want + off, buf, len);
		hal_win_store(&win, 0, buf, len);
		assert_memory_equal(f.map, want, BYTES);
		ct_fill(want + off, len, ~i);
		memcpy(f.map + off, want + off, len);
		hal_win_load(&win, 0, buf, len);
		assert_memory_equal(buf, want + off, len);
		hal_alias_close(ct_hal, &win);
	}
	file_free(&f);
}

/* The program's mappings and descriptors may go; the bytes stay. */
static void alias_outlives_the_mapping(void **state)
{
	struct hal_peer *peer = some_peer();
	struct file f;
	struct hal_window win;
	uint8_t got[BYTES];

	NEEDS_ALIASES();
	f = file_new();
	ct_fill(f.map, BYTES, 7);
	assert_int_equal(alias_of(peer, f.map, BYTES, RW, &win), 0);
	file_free(&f);
	hal_win_load(&win, 0, got, BYTES);
	assert_true(ct_filled(got, BYTES, 7));
	hal_alias_close(ct_hal, &win);
}

/* Memory of MAP_SHARED | MAP_ANONYMOUS, and a file that was unlinked. */
static void alias_of_each_kind(void **state)
{
	char name[] = "/dev/shm/unm-conform-XXXXXX";
	struct hal_peer *peer = some_peer();
	struct hal_window win;
	uint8_t *map[2];
	int fd, ret;

	NEEDS_ALIASES();
	map[0] = map_file(-1, 0, BYTES, PROTS, MAP_SHARED | MAP_ANONYMOUS);
	fd = mkstemp(name);
	assert_true(fd >= 0);
	assert_int_equal(ftruncate(fd, BYTES), 0);
	map[1] = map_file(fd, 0, BYTES, PROTS, MAP_SHARED);
	close(fd);
	/* as long as it has a name, anybody can truncate it */
	ret = alias_of(peer, map[1], BYTES, RW, &win);
	unlink(name);			/* before an assertion may fail */
	assert_int_equal(ret, -FI_ENOENT);
	for (int i = 0; i < 2; i++) {
		assert_int_equal(alias_of(peer, map[i] + 5, PAGE, RW, &win),
				 0);
		hal_win_store(&win, 1, "x", 1);
		assert_int_equal(map[i][6], 'x');
		hal_alias_close(ct_hal, &win);
		munmap(map[i], BYTES);
	}
}

/* ---- What there is no alias of --------------------------------------- */

/* The owner's side: no key. */
static void alias_key_of_shared_memory_only(void **state)
{
	struct file f;
	struct hal_mem *mem;
	struct hal_key key;
	uint8_t *map;
	void *addr;

	NEEDS_ALIASES();
	f = file_new();
	map = map_file(f.fd, 0, BYTES, PROTS, MAP_PRIVATE);
	assert_int_equal(key_of(map, 8, RW, &key), -FI_ENOENT);
	assert_int_equal(key_of(map, 8, HAL_ALIAS_READ, &key), -FI_ENOENT);
	munmap(map, BYTES);
	map = map_file(-1, 0, BYTES, PROTS, MAP_PRIVATE | MAP_ANONYMOUS);
	assert_int_equal(key_of(map, 8, RW, &key), -FI_ENOENT);
	munmap(map, BYTES);
	assert_int_equal(key_of(map, 8, RW, &key), -FI_ENOENT);
	assert_int_equal(key_of(NULL, SIZE_MAX, RW, &key), -FI_ENOENT);
	assert_int_equal(key_of(f.map, BYTES + 1, RW, &key), -FI_ENOENT);
	/* a hole, and a part that is protected */
	assert_int_equal(mprotect(f.map + PAGE, PAGE, PROT_READ), 0);
	assert_int_equal(key_of(f.map, BYTES, RW, &key), -FI_ENOENT);
	assert_int_equal(key_of(f.map + PAGE, PAGE, RW, &key), -FI_ENOENT);
	assert_int_equal(key_of(f.map + PAGE, PAGE, HAL_ALIAS_READ, &key), 0);
	munmap(f.map + 2 * PAGE, PAGE);
	assert_int_equal(key_of(f.map + PAGE, 2 * PAGE, HAL_ALIAS_READ, &key),
			 -FI_ENOENT);
	/* memory of the HAL itself */
	assert_int_equal(ct_mem_alloc(0, BYTES, &mem, &addr), 0);
	assert_int_equal(key_of(addr, 8, HAL_ALIAS_READ, &key), -FI_ENOENT);
	hal_mem_free(ct_hal, mem);
	file_free(&f);
}

/* The other side: what this process has not mapped so. */
static void alias_opens_what_is_mapped_only(void **state)
{
	struct hal_peer *peer = some_peer();
	struct file f, other;
	struct hal_key key, wrong;
	struct hal_window win;
	uint8_t *map;

	NEEDS_ALIASES();
	f = file_new();
	other = file_new();
	assert_int_equal(key_of(f.map + PAGE, 2 * PAGE, RW, &key), 0);
	wrong = key;
	wrong.word[0]++;
	assert_int_equal(hal_alias_open(peer, &wrong, 8, RW, &win),
			 -FI_ENOENT);
	assert_int_equal(hal_alias_open(peer, &key, 0, RW, &win), -FI_ENOENT);
	assert_int_equal(hal_alias_open(peer, &key, UINT64_MAX, RW, &win),
			 -FI_ENOENT);
	munmap(f.map, BYTES);
	assert_int_equal(hal_alias_open(peer, &key, 8, RW, &win), -FI_ENOENT);
	/* private, to be read only, other bytes, too few of them */
	map = map_file(f.fd, 0, BYTES, PROTS, MAP_PRIVATE);
	assert_int_equal(hal_alias_open(peer, &key, 8, HAL_ALIAS_READ, &win),
			 -FI_ENOENT);
	munmap(map, BYTES);
	map = map_file(f.fd, 0, BYTES, PROT_READ, MAP_SHARED);
	assert_int_equal(hal_alias_open(peer, &key, 8, RW, &win), -FI_ENOENT);
	munmap(map, BYTES);
	map = map_file(f.fd, 2 * PAGE, PAGE, PROTS, MAP_SHARED);
	assert_int_equal(hal_alias_open(peer, &key, 8, RW, &win), -FI_ENOENT);
	munmap(map, PAGE);
	map = map_file(f.fd, PAGE, PAGE, PROTS, MAP_SHARED);
	assert_int_equal(hal_alias_open(peer, &key, PAGE + 1, RW, &win),
			 -FI_ENOENT);
	assert_int_equal(hal_alias_open(peer, &key, PAGE, RW, &win), 0);
	hal_win_store(&win, 3, "y", 1);
	assert_int_equal(map[3], 'y');
	hal_alias_close(ct_hal, &win);
	munmap(map, PAGE);
	close(f.fd);
	file_free(&other);
}

/* Aliases that are open do not count as mapped, beside each other or apart. */
static void alias_of_no_alias(void **state)
{
	struct hal_peer *peer = some_peer();
	struct hal_window win[3], again;
	struct hal_key key[3];
	struct file f;

	NEEDS_ALIASES();
	f = file_new();
	for (int i = 2; i >= 0; i--) {
		uint8_t *at = f.map + (size_t)i * PAGE;

		assert_int_equal(key_of(at, PAGE, RW, &key[i]), 0);
		assert_int_equal(hal_alias_open(peer, &key[i], PAGE, RW,
						&win[i]), 0);
	}
	munmap(f.map, 2 * PAGE);
	for (int i = 0; i < 2; i++)
		assert_int_equal(hal_alias_open(peer, &key[i], PAGE, RW,
						&again), -FI_ENOENT);
	/* this one is mapped still */
	assert_int_equal(hal_alias_open(peer, &key[2], PAGE, RW, &again), 0);
	hal_alias_close(ct_hal, &again);
	for (int i = 0; i < 3; i++)
		hal_alias_close(ct_hal, &win[i]);
	munmap(f.map + 2 * PAGE, BYTES - 2 * PAGE);
	close(f.fd);
}

/* No more than the process can have mappings: the first that goes, comes. */
static void alias_number_is_bounded(void **state)
{
	struct hal_window *win = calloc(HAL_ALIASES_MAX, sizeof(*win)), more;
	struct hal_peer *peer = some_peer();
	struct hal_key key;
	struct file f;

	assert_non_null(win);
	if (!has_aliases())
		free(win);
	NEEDS_ALIASES();
	f = file_new();
	assert_int_equal(key_of(f.map, PAGE, RW, &key), 0);
	for (int i = 0; i < HAL_ALIASES_MAX; i++)
		assert_int_equal(hal_alias_open(peer, &key, PAGE, RW, &win[i]),
				 0);
	assert_int_equal(hal_alias_open(peer, &key, PAGE, RW, &more),
			 -FI_ENOMEM);
	hal_alias_close(ct_hal, &win[7]);
	assert_int_equal(hal_alias_open(peer, &key, PAGE, RW, &win[7]), 0);
	for (int i = 0; i < HAL_ALIASES_MAX; i++)
		hal_alias_close(ct_hal, &win[i]);
	file_free(&f);
	free(win);
}

static int shm_file(const char *name, off_t bytes)
{
	int fd = open(name, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);

	assert_true(fd >= 0);
	assert_int_equal(ftruncate(fd, bytes), 0);
	return fd;
}

/* Holes of a file in /dev/shm have pages once there is an alias. */
static void alias_has_no_holes(void **state)
{
	static const size_t much = (size_t)1 << 40;
	struct hal_peer *peer = some_peer();
	struct hal_window win;
	struct stat st;
	char name[64];
	uint8_t *map;
	int fd;

	NEEDS_ALIASES();
	snprintf(name, sizeof(name), "/dev/shm/unm-conform-%d", getpid());
	fd = shm_file(name, (off_t)much);
	unlink(name);
	map = map_file(fd, 0, much, PROTS, MAP_SHARED | MAP_NORESERVE);
	assert_int_equal(alias_of(peer, map + PAGE, BYTES, RW, &win), 0);
	assert_int_equal(fstat(fd, &st), 0);
	assert_true(st.st_blocks >= (blkcnt_t)(BYTES / 512));
	hal_alias_close(ct_hal, &win);
	/* more than there can be */
	assert_int_equal(alias_of(peer, map, much, RW, &win), -FI_ENOENT);
	munmap(map, much);
	close(fd);
}

/* A file whose name only says that it has none. */
static void alias_of_no_named_file(void **state)
{
	struct hal_peer *peer = some_peer();
	struct hal_window win;
	char name[64];
	uint8_t *map;
	int fd;

	NEEDS_ALIASES();
	snprintf(name, sizeof(name), "/dev/shm/unm-conform-%d (deleted)",
		 getpid());
	fd = shm_file(name, BYTES);
	map = map_file(fd, 0, BYTES, PROTS, MAP_SHARED);
	close(fd);
	fd = alias_of(peer, map, BYTES, RW, &win);
	unlink(name);
	assert_int_equal(fd, -FI_ENOENT);
	munmap(map, BYTES);
}

/* A file that is shorter than its mapping by then: no alias, and no signal. */
static void alias_of_a_file_cut_short(void **state)
{
	struct hal_peer *peer = some_peer();
	struct file f;
	struct hal_window win;
	struct hal_key key;

	NEEDS_ALIASES();
	f = file_new();
	assert_int_equal(key_of(f.map, BYTES, RW, &key), 0);
	assert_int_equal(ftruncate(f.fd, BYTES - PAGE), 0);
	assert_int_equal(hal_alias_open(peer, &key, BYTES, RW, &win),
			 -FI_ENOENT);
	assert_int_equal(hal_alias_open(peer, &key, BYTES - PAGE, RW, &win),
			 0);
	hal_alias_close(ct_hal, &win);
	file_free(&f);
}

/* ---- Processes ------------------------------------------------------- */

#define ROUNDS	200000

/* A child adds to its mapping, with an alias of ours on the same word. */
static void alias_atomics(void **state)
{
	struct hal_peer *peer = some_peer();
	struct file f;
	struct hal_window win;
	_Atomic uint64_t *word;
	pid_t pid;

	NEEDS_ALIASES();
	f = file_new();
	assert_int_equal(alias_of(peer, f.map + 128, 64, RW, &win), 0);
	pid = unit_fork();
	word = pid == 0 ? (void *)(f.map + 136) : hal_win_word(&win, 8);
	for (int i = 0; i < ROUNDS; i++)
		atomic_fetch_add(word, 1);
	if (pid == 0)
		_exit(0);
	assert_int_equal(unit_exit_code(pid), 0);
	assert_true(atomic_load(word) == 2 * ROUNDS);
	hal_alias_close(ct_hal, &win);
	file_free(&f);
}

/* A forked child does not inherit it; what the child has there stays. */
static void alias_is_not_inherited(void **state)
{
	struct hal_peer *peer = some_peer();
	struct file f;
	struct hal_window win;
	uint8_t *map;
	pid_t pid;

	NEEDS_ALIASES();
	f = file_new();
	assert_int_equal(alias_of(peer, f.map, PAGE, RW, &win), 0);
	pid = unit_fork();
	if (pid == 0) {
		map = mmap(win.addr, PAGE, PROTS, MAP_PRIVATE | MAP_ANONYMOUS |
			   MAP_FIXED_NOREPLACE, -1, 0);
		if (map != win.addr)
			_exit(1);
		hal_alias_close(ct_hal, &win);
		map[0] = 1;		/* or a signal ends us */
		_exit(0);
	}
	assert_int_equal(unit_exit_code(pid), 0);
	hal_alias_close(ct_hal, &win);
	file_free(&f);
}

#define FORKS		100
#define CHILD_SECONDS	20	/* a child that waits longer is killed */

struct maker {
	struct hal_peer *peer;
	struct file f;
	atomic_bool stop;
	unsigned long made;
	int failed;			/* of a call; 0: none */
};

/* Open an alias, which holds the lock of all aliases of the process. */
static int open_one(const struct maker *m)
{
	struct hal_window win;
	int ret = alias_of(m->peer, m->f.map, PAGE, RW, &win);

	if (ret == 0)
		hal_alias_close(ct_hal, &win);
	return ret;
}

static void *make_aliases(void *arg)
{
	struct maker *m = arg;
	struct hal *hal;

	while (!atomic_load(&m->stop) && m->failed == 0) {
		m->failed = open_one(m);
		if (m->failed == 0)
			m->failed = hal_get(NULL, &hal);
		if (m->failed == 0)
			hal_put(hal);
		m->made++;
	}
	return NULL;
}

/* The aliases and the HAL of a child are its own. */
static void child_of_maker(const struct maker *m)
{
	struct hal *hal;

	alarm(CHILD_SECONDS);
	if (open_one(m) != 0 || open_one(m) != 0)
		_exit(1);
	if (hal_get(NULL, &hal) != 0)
		_exit(2);
	hal_put(hal);
	_exit(0);
}

/*
 * A process forks while another of its threads holds a lock of the HAL. That
 * thread does not exist in the child, so the child must not wait for it.
 */
static void alias_lock_is_not_inherited(void **state)
{
	struct maker m = { .peer = some_peer() };
	pthread_t thread;
	int status = 0;
	pid_t pid;

	NEEDS_ALIASES();
	m.f = file_new();
	thread = unit_thread(make_aliases, &m);
	for (int i = 0; i < FORKS && status == 0; i++) {
		pid = fork();
		if (pid == 0)
			child_of_maker(&m);
		if (pid < 0 || waitpid(pid, &status, 0) != pid)
			status = -1;
	}
	/* before any assertion: the thread uses this stack */
	atomic_store(&m.stop, true);
	pthread_join(thread, NULL);
	assert_int_equal(status, 0);
	assert_int_equal(m.failed, 0);
	assert_true(m.made > FORKS / 10);
	file_free(&m.f);
}

const struct CMUnitTest ct_alias_tests[] = {
	CT_TEST(alias_where_capable),
	CT_TEST(alias_is_the_same_memory),
	CT_TEST(alias_outlives_the_mapping),
	CT_TEST(alias_of_each_kind),
	CT_TEST(alias_key_of_shared_memory_only),
	CT_TEST(alias_opens_what_is_mapped_only),
	CT_TEST(alias_of_no_alias),
	CT_TEST(alias_number_is_bounded),
	CT_TEST(alias_has_no_holes),
	CT_TEST(alias_of_no_named_file),
	CT_TEST(alias_of_a_file_cut_short),
	CT_TEST(alias_atomics),
	CT_TEST(alias_is_not_inherited),
	CT_TEST(alias_lock_is_not_inherited),
};
const size_t ct_alias_count = CT_COUNT(ct_alias_tests);
