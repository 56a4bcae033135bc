/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_platform.c - the platform file (hal_dev_conf.c), and as much of
 * hal_mmio_dev.c as can be tested without boards: a file stands for the
 * registers.
 */
#include <fcntl.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>

#include "hal/dev/hal_dev_conf.h"
#include "hal/hal.h"
#include "hal/hal_backend.h"
#include "lib/unit.h"

static char said[512];
static unsigned lines;
static char path[64];

static void listen_to(int level, const char *line)
{
	(void)level;
	snprintf(said, sizeof(said), "%s", line);
	lines++;
}

/* One line was logged, which contains these texts. Resets the count. */
static void logged(const char *what, const char *where, const char *remedy)
{
	if (lines != 1 || strstr(said, what) == NULL ||
	    strstr(said, where) == NULL || strstr(said, remedy) == NULL)
		unit_fail("%u lines for %s, %s, %s, the last: %s", lines, what,
			  where, remedy, said);
	lines = 0;
	said[0] = '\0';
}

static int setup(void **state)
{
	int fd;

	snprintf(path, sizeof(path), "test_platform.XXXXXX");
	fd = mkstemp(path);
	if (fd < 0)
		return -1;
	close(fd);
	said[0] = '\0';
	lines = 0;
	hal_log_set(listen_to);
	return 0;
}

static int teardown(void **state)
{
	hal_log_set(NULL);
	return unlink(path);
}

/* ---- The platform file ------------------------------------------------- */

static int probe(const char *dev, struct hal_platform *pf)
{
	struct hal_params params = { .hal = "dev" };

	snprintf(params.dev, sizeof(params.dev), "%s", dev);
	said[0] = '\0';
	lines = 0;
	return hal_mmio_dev_ops.probe(&params, pf);
}

static void write_platform(const char *text)
{
	FILE *f = fopen(path, "w");

	assert_non_null(f);
	fputs(text, f);
	fclose(f);
}

static int probe_text(const char *text, struct hal_platform *pf)
{
	write_platform(text);
	return probe(path, pf);
}

static void platform_defaults(void **state)
{
	struct hal_platform pf;

	assert_int_equal(probe_text("# nothing\n\n   \n", &pf), 0);
	assert_string_equal(pf.node, HAL_KDEV_NODE);
	assert_true(pf.board == UINT32_MAX && pf.boards == 0);
	assert_true(pf.pkt_depth == 0 && pf.space_bytes == 0);
	assert_int_equal(pf.engine, HAL_ENGINE_KERNEL);
	assert_string_equal(pf.mif.node, "");
	/* a device node instead of a file */
	assert_int_equal(probe("/dev/elsewhere", &pf), 0);
	assert_string_equal(pf.node, "/dev/elsewhere");
	assert_string_equal(said, "");
}

static void platform_every_key(void **state)
{
	struct hal_platform pf;

	assert_int_equal(probe_text("node=/dev/u%u # the driver\n"
		"boards = 4\n\tboard =\t3\r\nmif = /dev/uio0@0x1000\n"
		"pif = /dev/uio1@0\ncdma = /dev/mem@0x40000000\n"
		"packets = 64\nspace = 0x10000\nengine = SG", &pf), 0);
	assert_string_equal(pf.node, "/dev/u%u");
	assert_true(pf.boards == 4 && pf.board == 3);
	assert_string_equal(pf.mif.node, "/dev/uio0");
	assert_true(pf.mif.base == 0x1000 && pf.pif.base == 0);
	assert_string_equal(pf.cdma.node, "/dev/mem");
	assert_true(pf.cdma.base == 0x40000000);
	assert_true(pf.pkt_depth == 64 && pf.space_bytes == 65536);
	assert_int_equal(pf.engine, HAL_ENGINE_SG);
}

/* The log line has file, line, what was found and what is allowed. */
static void platform_mistakes(void **state)
{
	static const struct { const char *text, *says; } bad[] = {
		{ "boards = 0", ":1: boards = 0: use 1 to 64" },
		{ "boards = 65", "use 1 to 64" },
		{ "boards = 4x", "boards = 4x" },
		{ "boards = -1", "boards = -1" },
		{ "boards =", "boards = : use" },
		{ "\n\nboard = 64", ":3: board = 64: use 0 to 63" },
		{ "packets = 48", "a power of 2 from 2 to 64" },
		{ "packets = 1", "a power of 2 from 2 to 64" },
		{ "packets = 128", "a power of 2 from 2 to 64" },
		{ "space = 4095", "a power of 2 from 4096 to 16777216" },
		{ "engine = fast", "kernel, simple or sg" },
		{ "mif = /dev/uio0", "node@offset" },
		{ "mif = @0", "node@offset" },
		{ "mif = /dev/uio0@", "node@offset" },
		{ "pif = /dev/uio0@z", "node@offset" },
		{ "cdma = /dev/uio0@-1", "node@offset" },
		{ "node =", "a device node" },
		{ "boards 4", "write it as key = value" },
		{ "bords = 4", "no key is called \"bords\"" },
		{ "mif = /a/very/long/name/that/does/not/fit/into/the/room/"
		  "there/is/for/it@0", "node@offset" },
		{ "node = /dev/u%u\nboards = 2", "board = beside node =" },
	};
	struct hal_platform pf;
	char text[512];

	/* a line that is too long is not read as two */
	memset(text, ' ', sizeof(text));
	memcpy(text, "boards = 4", 10);
	snprintf(text + 255, sizeof(text) - 255, "board = 1\n");
	assert_int_equal(probe_text(text, &pf), -FI_EINVAL);
	assert_non_null(strstr(said, ":1: the line is longer than 254"));
	snprintf(text + 254, sizeof(text) - 254, "\nboard = 1\n");
	assert_int_equal(probe_text(text, &pf), 0);
	assert_true(pf.boards == 4 && pf.board == 1);
	for (unsigned i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		if (probe_text(bad[i].text, &pf) != -FI_EINVAL ||
		    strstr(said, bad[i].says) == NULL ||
		    strstr(said, path) == NULL || lines != 1)
			unit_fail("%s: %u lines: %s", bad[i].text, lines,
				  said);
	}
	assert_int_equal(probe("no/such/file", &pf), -FI_EINVAL);
	logged("platform file", "no/such/file", strerror(ENOENT));
	assert_int_equal(probe("/dev/a/very/long/name/that/does/not/fit/into/"
			       "the/room/there/is/for/it", &pf), -FI_EINVAL);
	logged("FI_UNIMEM_DEV", "/fit/into/", "use a device node");
	assert_int_equal(probe("/dev/u%u", &pf), -FI_EINVAL);
	logged("FI_UNIMEM_DEV", "/dev/u%u", "board = beside node =");
}

static const char *present;		/* the only file that exists */

/* Replaces the C library's: hal_dev_present() checks for system files. */
int access(const char *name, int mode)
{
	(void)mode;
	if (present != NULL && strcmp(name, present) == 0)
		return 0;
	errno = ENOENT;
	return -1;
}

/* Boards are present if there is a driver's node or a platform file, or if the
 * user names a device. */
static void platform_presence(void **state)
{
	struct hal_params params = { .hal = "auto" };

	assert_false(hal_dev_present(&params));
	present = HAL_KDEV_NODE;
	assert_true(hal_dev_present(&params));
	present = "/etc/unimem.conf";
	assert_true(hal_dev_present(&params));
	present = NULL;
	snprintf(params.dev, sizeof(params.dev), "anything");
	assert_true(hal_dev_present(&params));
	assert_string_equal(said, "");
}

static int open_dev(const char *dev, struct hal **hal)
{
	struct hal_params params = { .hal = "dev" };

	snprintf(params.dev, sizeof(params.dev), "%s", dev);
	return hal_dev_ops.open(&params, hal);
}

/* No driver behind the name: each case logs one line with cause, place and
 * remedy. */
static void platform_no_device(void **state)
{
	struct hal *hal = NULL;

	assert_int_equal(open_dev("/dev/no-such-device", &hal), -FI_ENODEV);
	logged("no kernel device", "/dev/no-such-device", "modprobe unimem");
	assert_int_equal(open_dev("/dev/null", &hal), -FI_ENODEV);
	logged("no unimem device", "/dev/null", "FI_UNIMEM_DEV");
	/* the name after substitution, not its pattern */
	write_platform("node = /dev/no-such-%u\nboard = 3\n");
	assert_int_equal(open_dev(path, &hal), -FI_ENODEV);
	logged("no kernel device", "/dev/no-such-3", "modprobe unimem");
	assert_null(hal);
}

/* ---- Accesses ---------------------------------------------------------- */

struct board {
	struct hal_platform pf;
	struct hal_mmio *mm;
	const struct hal_mmio_ops *io;
};

/* The file stands for device, mailboxes, packetizer and engine. */
static struct board board(void)
{
	struct board b = { .io = &hal_mmio_dev_ops };

	assert_int_equal(truncate(path, 16 * HAL_REG_PAGE), 0);
	b.pf.board = UINT32_MAX;
	snprintf(b.pf.node, sizeof(b.pf.node), "%s", path);
	snprintf(b.pf.mif.node, sizeof(b.pf.mif.node), "%s", path);
	b.pf.pif = b.pf.mif;
	b.pf.cdma = b.pf.mif;
	b.pf.pif.base = 4 * HAL_REG_PAGE;
	b.pf.cdma.base = 8 * HAL_REG_PAGE;
	assert_int_equal(b.io->open(&b.pf, UINT32_MAX, &b.mm), 0);
	return b;
}

static void mmio_widths(void **state)
{
	const uint64_t wide[2] = { UINT64_C(0x0123456789abcdef),
				   UINT64_C(0xfedcba9876543210) };
	struct board b = board();
	struct hal_mmio_map mif, pif, cdma;
	uint64_t w[2] = { 0 };

	assert_int_equal(b.io->map(b.mm, hal_kdev_off(HAL_KDEV_MIF,
			 HAL_MIF_PAGE(3)), HAL_REG_PAGE, &mif), 0);
	assert_int_equal(b.io->map(b.mm, hal_kdev_off(HAL_KDEV_PIF,
			 HAL_PIF_PAGE(2)), HAL_REG_PAGE, &pif), 0);
	assert_int_equal(b.io->map(b.mm, hal_kdev_off(HAL_KDEV_CDMA, 0),
			 HAL_CDMA_BYTES, &cdma), 0);
	b.io->write128(&pif, HAL_PIF_PAYLOAD1, wide);
	b.io->memory_before_start(b.mm);
	b.io->read128(&pif, HAL_PIF_PAYLOAD1, w);
	assert_memory_equal(w, wide, sizeof(w));
	b.io->write64(&pif, HAL_PIF_PAYLOAD1, 5);
	assert_true(b.io->read64(&pif, HAL_PIF_PAYLOAD1) == 5);
	b.io->read128(&pif, HAL_PIF_PAYLOAD1, w);
	assert_true(w[0] == 5 && w[1] == wide[1]);
	b.io->write32(&cdma, HAL_CDMA_BTT, 77);
	assert_int_equal(b.io->read32(&cdma, HAL_CDMA_BTT), 77);
	b.io->status_before_memory(b.mm);
	b.io->loads_before_store(b.mm);
	/* each block at its offset, page by page */
	b.io->write64(&mif, HAL_MIF_DATA, 1);
	b.io->unmap(&mif);
	b.io->unmap(&pif);
	b.io->unmap(&cdma);
	assert_int_equal(b.io->map(b.mm, 0, 9 * HAL_REG_PAGE, &mif), 0);
	assert_true(b.io->read64(&mif, 3 * HAL_REG_PAGE) == 1);
	assert_true(b.io->read64(&mif, 6 * HAL_REG_PAGE +
				 HAL_PIF_PAYLOAD1) == 5);
	assert_int_equal(b.io->read32(&mif, 8 * HAL_REG_PAGE + HAL_CDMA_BTT),
			 77);
	b.io->unmap(&mif);
	b.io->close(b.mm);
}

/* Every alignment and length; no byte beside is changed. */
static void mmio_windows(void **state)
{
	struct board b = board();
	struct hal_mmio_map map;
	uint8_t data[64], back[64];
	uint64_t rng = 1;

	assert_int_equal(b.io->map(b.mm, 0, HAL_REG_PAGE, &map), 0);
	for (uint32_t off = 0; off < 24; off++) {
		for (uint32_t len = 0; len < 40; len++) {
			uint8_t *at = (uint8_t *)map.base + 64 + off;

			memset(map.base, 0x5a, 256);
			for (unsigned i = 0; i < len; i++)
				data[i] = (uint8_t)unit_random(&rng);
			b.io->store(&map, 64 + off, data, len);
			b.io->stores_before_notify(&map);
			assert_memory_equal(at, data, len);
			assert_int_equal(at[-1], 0x5a);
			assert_int_equal(at[len], 0x5a);
			memset(back, 0, sizeof(back));
			b.io->load(&map, 64 + off, back, len);
			assert_memory_equal(back, data, len);
			assert_int_equal(back[len], 0);
		}
	}
	b.io->unmap(&map);
	b.io->close(b.mm);
}

/* The barrier reads back the page that was stored to, anywhere in the map. */
static void mmio_reads_back_there(void **state)
{
	struct board b = board();
	struct hal_mmio_map map;
	uint64_t word = 1;

	unit_needs(sysconf(_SC_PAGESIZE) == HAL_REG_PAGE);
	assert_int_equal(b.io->map(b.mm, 0, 2 * HAL_REG_PAGE, &map), 0);
	b.io->store(&map, HAL_REG_PAGE + 16, &word, sizeof(word));
	assert_int_equal(mprotect(map.base, HAL_REG_PAGE, PROT_NONE), 0);
	b.io->stores_before_notify(&map);
	b.io->store(&map, 2 * HAL_REG_PAGE - 1, &word, 1);
	b.io->stores_before_notify(&map);
	b.io->unmap(&map);
	b.io->close(b.mm);
}

/* qemu-user (7.2) rejects ioctls that it does not know by itself. */
static bool no_device(int ret)
{
	return ret == -ENOTTY || ret == -ENOSYS;
}

static int interrupted;			/* number of calls to interrupt */

static bool interrupt(void)
{
	if (interrupted == 0)
		return false;
	interrupted--;
	errno = EINTR;
	return true;
}

/* Replaces the C library's: the call may be interrupted. */
ssize_t write(int fd, const void *buf, size_t n)
{
	return interrupt() ? -1 : syscall(SYS_write, fd, buf, n);
}

ssize_t read(int fd, void *buf, size_t n)
{
	return interrupt() ? -1 : syscall(SYS_read, fd, buf, n);
}

static bool driver;			/* a driver that accepts every ioctl */

static int drive(unsigned long req, void *arg)
{
	struct hal_kdev_info *info = arg;
	struct hal_kdev_claim *claim = arg;

	if (req == HAL_KDEV_IO_INFO) {
		info->boards = 2;
		info->ifs = 63;
		info->fifo_words = 128;
		info->xfer_depth = 8;
		info->xfer_max = 1 << 20;
	} else if (req == HAL_KDEV_IO_CLAIM) {
		claim->iface = 3;
		claim->identity = hal_id(0, 3, 1);
		claim->nonce = 7;
	} else if (req == HAL_KDEV_IO_ENGINE) {
		((struct hal_kdev_engine *)arg)->btt_bits = 23;
	}
	return 0;
}

/* Replaces the C library's, too. */
int ioctl(int fd, unsigned long req, ...)
{
	va_list ap;
	void *arg;

	va_start(ap, req);
	arg = va_arg(ap, void *);
	va_end(ap);
	if (interrupt())
		return -1;
	return driver ? drive(req, arg) : (int)syscall(SYS_ioctl, fd, req, arg);
}

#define UIO_MAPS	2
#define UIO_MAP_BYTES	(8 * HAL_REG_PAGE)

/* /dev/uio0: two maps, selected by the offset, as the kernel does it
 * (uio_mmap()). uio1 may not be opened; other devices do not exist. */
static struct {
	int fd;				/* descriptor, 0: not open */
	int map[UIO_MAPS];
	void *at;			/* the last mapping */
	size_t len;
} uio;

/* Replaces the C library's. */
int open(const char *name, int flags, ...)
{
	mode_t mode = 0;
	va_list ap;

	if (strcmp(name, "/dev/uio0") == 0)
		return uio.fd = (int)syscall(SYS_openat, AT_FDCWD, "/dev/null",
					     flags);
	if (strncmp(name, "/dev/uio", 8) == 0) {
		errno = strcmp(name, "/dev/uio1") == 0 ? EACCES :
			strcmp(name, "/dev/uio9") == 0 ? EMFILE : ENOENT;
		return -1;
	}
	if (flags & O_CREAT) {
		va_start(ap, flags);
		mode = va_arg(ap, mode_t);
		va_end(ap);
	}
	return (int)syscall(SYS_openat, AT_FDCWD, name, flags, mode);
}

void *mmap(void *at, size_t len, int prot, int flags, int fd, off_t off)
{
	size_t n = (size_t)off / HAL_REG_PAGE;

	if (fd > 0 && fd == uio.fd) {
		uio.fd = 0;		/* closed after it is mapped */
		if (n >= UIO_MAPS || len > UIO_MAP_BYTES) {
			errno = EINVAL;
			return MAP_FAILED;
		}
		at = (void *)syscall(SYS_mmap, at, len, prot, flags,
				     uio.map[n], (off_t)0);
		uio.at = at;
		uio.len = len;
		return at;
	}
	return (void *)syscall(SYS_mmap, at, len, prot, flags, fd, off);
}

/* The event fd belongs to the open device and is closed with it. */
static void mmio_event(void **state)
{
	struct board b = board();
	struct rlimit old, none;
	int fd;

	driver = true;
	interrupted = 2;
	assert_int_equal(b.io->ioctl(b.mm, HAL_KDEV_IO_RELEASE, NULL), 0);
	assert_int_equal(interrupted, 0);
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &old), 0);
	none = old;
	none.rlim_cur = 0;
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
	fd = b.io->event_fd(b.mm);
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &old), 0);
	assert_int_equal(fd, -EMFILE);
	fd = b.io->event_fd(b.mm);
	assert_true(fd >= 0);
	b.io->close(b.mm);
	driver = false;
	assert_int_equal(fcntl(fd, F_GETFD), -1);
}

/* A block without a node in the platform file is mapped by the driver. */
static void mmio_blocks_of_the_driver(void **state)
{
	struct board b = board();
	struct hal_mmio_map map;
	struct hal_mmio *mm;

	memset(&b.pf.mif, 0, sizeof(b.pf.mif));
	assert_int_equal(b.io->open(&b.pf, UINT32_MAX, &mm), 0);
	assert_int_equal(b.io->map(mm, hal_kdev_off(HAL_KDEV_MIF, 0),
				   HAL_REG_PAGE, &map), 0);
	b.io->unmap(&map);
	b.io->close(mm);
	b.io->close(b.mm);
}

static void uio_plug(bool in)
{
	for (int i = 0; i < UIO_MAPS; i++) {
		if (!in) {
			close(uio.map[i]);
			continue;
		}
		uio.map[i] = memfd_create("uio", MFD_CLOEXEC);
		assert_int_equal(ftruncate(uio.map[i], UIO_MAP_BYTES), 0);
	}
}

/* The word at that offset of a map, read like the board reads it. */
static uint64_t uio_word(int map, off_t off)
{
	uint64_t word = 0;

	assert_int_equal(pread(uio.map[map], &word, sizeof(word), off),
			 sizeof(word));
	return word;
}

static bool is_mapped(void *at, size_t len)
{
	return msync(at, len, MS_ASYNC) == 0;
}

/* A block by UIO: an offset of n pages selects map n, and pages of the block
 * are found from its start. */
static void mmio_uio(void **state)
{
	struct board b = board();
	struct hal_mmio_map mif, pif, none;
	struct hal_mmio *mm;
	void *first;

	uio_plug(true);
	snprintf(b.pf.mif.node, sizeof(b.pf.mif.node), "/dev/uio0");
	b.pf.pif = b.pf.mif;
	b.pf.pif.base = HAL_REG_PAGE;
	assert_int_equal(b.io->open(&b.pf, UINT32_MAX, &mm), 0);
	assert_int_equal(b.io->map(mm, hal_kdev_off(HAL_KDEV_MIF,
			 HAL_MIF_PAGE(3)), HAL_REG_PAGE, &mif), 0);
	first = uio.at;
	assert_int_equal(uio.len, 4 * HAL_REG_PAGE);
	assert_int_equal(b.io->map(mm, hal_kdev_off(HAL_KDEV_PIF,
			 HAL_PIF_PAGE(0)), HAL_REG_PAGE, &pif), 0);
	assert_int_equal(uio.len, HAL_REG_PAGE);
	b.io->write64(&mif, HAL_MIF_DATA, 11);
	b.io->write64(&pif, HAL_PIF_DEST, 12);
	assert_true(uio_word(0, 3 * HAL_REG_PAGE + HAL_MIF_DATA) == 11);
	assert_true(uio_word(1, HAL_PIF_DEST) == 12);
	assert_int_equal(b.io->map(mm, hal_kdev_off(HAL_KDEV_MIF,
			 HAL_MIF_PAGE(8)), HAL_REG_PAGE, &none), -EINVAL);
	assert_true(is_mapped(first, 4 * HAL_REG_PAGE));
	b.io->unmap(&mif);		/* unmaps the whole block */
	for (int i = 0; i < 4; i++)
		assert_false(is_mapped((char *)first + i * HAL_REG_PAGE, 1));
	b.io->unmap(&pif);
	b.io->close(mm);
	b.io->close(b.mm);
	uio_plug(false);
}

static void mmio_kernel_calls(void **state)
{
	struct board b = board();
	struct hal_mmio_map map;
	uint64_t word = 9;

	interrupted = 2;
	assert_int_equal(b.io->write(b.mm, &word, sizeof(word)),
			 sizeof(word));
	interrupted = 2;
	assert_int_equal(b.io->read(b.mm, &word, sizeof(word)),
			 sizeof(word));
	assert_int_equal(interrupted, 0);
	assert_true(no_device(b.io->ioctl(b.mm, HAL_KDEV_IO_RELEASE, NULL)));
	assert_true(no_device(b.io->event_fd(b.mm)));
	assert_int_equal(b.io->write(b.mm, &word, sizeof(word)),
			 sizeof(word));
	assert_int_equal(b.io->read(b.mm, &word, sizeof(word)),
			 sizeof(word));
	assert_int_equal(b.io->write(b.mm, NULL, 8), -EFAULT);
	assert_int_equal(b.io->read(b.mm, NULL, 8), -EFAULT);
	/* a table can only be read, and an empty mapping is refused */
	assert_true(b.io->map(b.mm, hal_kdev_off(HAL_KDEV_TABLE, 0), 0,
			      &map) < 0);
	b.io->close(b.mm);
}

/* In a forked child maps cannot be used, calls fail, and close works. */
static void mmio_forked_child(void **state)
{
	struct board b = board();
	struct hal_mmio_map map;
	pid_t pid;

	assert_int_equal(b.io->map(b.mm, 0, HAL_REG_PAGE, &map), 0);
	b.io->write64(&map, 0, 3);
	pid = unit_fork();
	if (pid == 0) {
		int ret = b.io->ioctl(b.mm, HAL_KDEV_IO_RELEASE, NULL);

		b.io->unmap(&map);
		b.io->close(b.mm);
		_exit(ret == -EPERM ? 0 : 1);
	}
	assert_int_equal(unit_exit_code(pid), 0);
	assert_true(b.io->read64(&map, 0) == 3);
	b.io->unmap(&map);
	b.io->close(b.mm);
}

static void mmio_open_errors(void **state)
{
	struct hal_platform pf = { .board = UINT32_MAX };
	struct hal_mmio *mm = NULL;
	struct hal_mmio_map map;

	snprintf(pf.node, sizeof(pf.node), "no/such/%%u/node");
	assert_int_equal(hal_mmio_dev_ops.open(&pf, UINT32_MAX, &mm),
			 -EINVAL);
	assert_int_equal(hal_mmio_dev_ops.open(&pf, 3, &mm), -ENOENT);
	assert_null(mm);
	snprintf(pf.node, sizeof(pf.node), "%s", path);
	snprintf(pf.mif.node, sizeof(pf.mif.node), "no/such/uio");
	assert_int_equal(hal_mmio_dev_ops.open(&pf, 3, &mm), 0);
	assert_int_equal(hal_mmio_dev_ops.map(mm, hal_kdev_off(HAL_KDEV_MIF, 0),
					      HAL_REG_PAGE, &map), -ENOENT);
	assert_int_equal(lines, 0);	/* the caller logs it */
	hal_mmio_dev_ops.close(mm);
}

/* ---- An interface on these accesses ------------------------------------ */

/* Opens board and interface with this platform file. */
static int open_as(const char *blocks, struct hal **hal, struct hal_if **hif)
{
	char text[256];
	int ret;

	snprintf(text, sizeof(text), "node = /dev/null\n%s", blocks);
	write_platform(text);
	ret = open_dev(path, hal);
	if (ret != 0)
		return ret;
	ret = hal_if_open(*hal, -1, hif);
	if (ret != 0)
		(*hal)->ops->close(*hal);
	return ret;
}

/* Registers that are not where the file says: one line for each block. */
static void registers_not_there(void **state)
{
	static const char *const keys[] = { "mif", "pif", "cdma" };
	static const struct { const char *at, *where, *remedy; } bad[] = {
		{ " = /dev/uio7@0", "/dev/uio7", "modprobe uio_pdrv_genirq" },
		{ " = /dev/uio1@0", "/dev/uio1", "usermod -aG" },
		{ " = /dev/uio0@0x2000", "/dev/uio0@0x2000", "/sys/class/uio" },
		{ " = /dev/uio9@0", "/dev/uio9", "ulimit -n" },
		{ NULL, "/dev/null", "dmesg" },	/* mapped by the driver */
	};
	const unsigned nbad = sizeof(bad) / sizeof(bad[0]);
	struct hal_if *hif = NULL;
	struct hal *hal = NULL;

	uio_plug(true);
	driver = true;
	for (unsigned k = 0; k < 3; k++) {
		for (unsigned i = 0; i < nbad; i++) {
			char text[128];

			snprintf(text, sizeof(text), "%s%s%s\n%s",
				 k == 1 ? "mif = /dev/uio0@0\n" : "",
				 bad[i].at != NULL ? keys[k] : "",
				 bad[i].at != NULL ? bad[i].at : "",
				 k == 2 ? "engine = simple\n" : "");
			assert_true(open_as(text, &hal, &hif) < 0);
			logged(keys[k], bad[i].where, bad[i].remedy);
		}
	}
	assert_int_equal(open_as("mif = /dev/uio0@0\npif = /dev/uio0@0x1000",
				 &hal, &hif), 0);
	/* the file's mailbox does not read as empty */
	logged("reads as 0x0000000000000000", "mailbox", "when it is empty");
	hal_if_close(hif);
	hal->ops->close(hal);
	driver = false;
	uio_plug(false);
	assert_int_equal(lines, 0);
}

#define PLATFORM_TEST(f)	cmocka_unit_test_setup_teardown(f, setup, \
							teardown)

UNIT_MAIN(
	PLATFORM_TEST(platform_defaults),
	PLATFORM_TEST(platform_every_key),
	PLATFORM_TEST(platform_mistakes),
	PLATFORM_TEST(platform_presence),
	PLATFORM_TEST(platform_no_device),
	PLATFORM_TEST(mmio_widths),
	PLATFORM_TEST(mmio_windows),
	PLATFORM_TEST(mmio_reads_back_there),
	PLATFORM_TEST(mmio_event),
	PLATFORM_TEST(mmio_blocks_of_the_driver),
	PLATFORM_TEST(mmio_kernel_calls),
	PLATFORM_TEST(mmio_forked_child),
	PLATFORM_TEST(mmio_uio),
	PLATFORM_TEST(mmio_open_errors),
	PLATFORM_TEST(registers_not_there),
)
