/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_dev.c - errors between the device backend and its hardware and driver. A
 * shim over the register model makes single calls fail and single registers
 * return false values.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "hal/dev/hal_dev_dma.h"
#include "hal/dev/hal_dev_table.h"
#include "hal/hal_peer.h"
#include "lib/dev_shim.h"
#include "lib/proc_files.h"

/* Expect one log line that names the failure and the remedy. */
static void logged(const char *what, const char *remedy)
{
	if (lines != 1 || strstr(said, what) == NULL ||
	    strstr(said, remedy) == NULL)
		unit_fail("%u lines for %s, %s, the last: %s", lines, what,
			  remedy, said);
	lines = 0;
	said[0] = '\0';
}

/* ---- Opening ----------------------------------------------------------- */

static void open_says_what_is_missing(void **state)
{
	static const struct { int err; const char *what, *remedy; } bad[] = {
		{ -ENOENT, "no kernel device", "modprobe unimem" },
		{ -ENODEV, "no kernel device", "modprobe unimem" },
		{ -EACCES, "not allowed", "usermod -aG" },
		{ -EPERM, "not allowed", "usermod -aG" },
		{ -EMFILE, "cannot open", "ulimit -n" },
		{ -EIO, "cannot open", "dmesg" },
	};

	for (unsigned i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		lie.open_ret = bad[i].err;
		assert_true(open_hal() < 0);
		assert_null(hal);
		logged(bad[i].what, bad[i].remedy);
	}
	be_honest();
	lie.probe_ret = -FI_EINVAL;	/* the probe logged a line of its own */
	assert_int_equal(open_hal(), -FI_EINVAL);
	assert_int_equal(lines, 0);
}

static void open_checks_the_driver(void **state)
{
	lie.info.version = HAL_KDEV_VERSION + 1;
	assert_int_equal(open_hal(), -FI_ENODEV);
	logged("speaks version", "install driver and library of the same");
	be_honest();
	lie.info.magic = 1;
	assert_int_equal(open_hal(), -FI_ENODEV);
	logged("no unimem device", "FI_UNIMEM_DEV");
	be_honest();
	lie.info.boards = HAL_REG_BOARDS_MAX + 1;
	assert_int_equal(open_hal(), -FI_ENODEV);
	logged("impossible values: board 0 of 65", "modprobe");
	be_honest();
	lie.info.fifo_words = 7;
	assert_int_equal(open_hal(), -FI_ENODEV);
	logged("mailboxes of 7 words", "modprobe");
	be_honest();
	fail_ioctl(HAL_KDEV_IO_INFO, 0, 1, -ENOTTY);
	assert_int_equal(open_hal(), -FI_ENODEV);
	logged("no unimem device", "FI_UNIMEM_DEV");
	lie.times = 1;
	lie.ret = -EPROTO;
	assert_int_equal(open_hal(), -FI_ENODEV);
	logged("speaks version", "install driver and library of the same");
	be_honest();
	/* not the board of the platform file */
	lie.info.board = 1;
	assert_int_equal(open_hal(), -FI_ENODEV);
	logged("is of board 1, /etc/unimem.conf says board = 0", "correct");
	assert_null(hal);
}

static void no_boards(struct hal_kdev_info *info)
{
	info->boards = 0;
}

static void board_beyond(struct hal_kdev_info *info)
{
	info->board = info->boards;
}

static void no_ifs(struct hal_kdev_info *info)
{
	info->ifs = 0;
}

static void ifs_too_many(struct hal_kdev_info *info)
{
	info->ifs = HAL_REG_IFS;
}

static void fifo_too_small(struct hal_kdev_info *info)
{
	info->fifo_words = 6;
}

static void no_transfers(struct hal_kdev_info *info)
{
	info->xfer_depth = 0;
}

static void transfers_of_nothing(struct hal_kdev_info *info)
{
	info->xfer_max = 0;
}

/* Every field of INFO is checked. */
static void open_checks_every_field(void **state)
{
	static const struct {
		void (*spoil)(struct hal_kdev_info *);
		const char *says;
	} bad[] = {
		{ no_boards, "board 0 of 0" }, { board_beyond, "board 2 of 2" },
		{ no_ifs, " 0 interfaces" }, { ifs_too_many, "64 interfaces" },
		{ fifo_too_small, "mailboxes of 6 words" },
		{ no_transfers, " 0 transfers" },
		{ transfers_of_nothing, "transfers of up to 0 bytes" },
	};

	for (unsigned i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		lie.spoil = bad[i].spoil;
		assert_int_equal(open_hal(), -FI_ENODEV);
		logged(bad[i].says, "modprobe -r unimem; modprobe unimem");
		assert_null(hal);
	}
}

static void board_0(struct hal_kdev_info *info)
{
	info->board = 0;
}

/* The platform file may limit what the driver offers; interfaces of other
 * boards can be opened only if the driver allows that. */
static void platform_says_less(void **state)
{
	struct hal_if *hif = NULL;

	lie.platform.boards = 1;
	lie.platform.space_bytes = 8192;
	assert_int_equal(open_hal(), 0);
	assert_int_equal(hal->caps.boards, 1);
	assert_int_equal(hal->caps.space_bytes, 8192);
	close_hal();
	be_honest();
	lie.info.flags = HAL_KDEV_ANY_BOARD;
	assert_int_equal(open_hal(), 0);
	assert_int_equal(hal_if_open(hal, 1, &hif), -FI_EINVAL);
	assert_non_null(strstr(said, "on that board only"));
	lines = 0;
	lie.info.board = 1;
	assert_int_equal(hal_if_open(hal, 0, &hif), -FI_ENODEV);
	logged("is of board 1", "board = 0");
	be_honest();
	close_hal();
	/* one device node for two boards */
	assert_int_equal(open_hal(), 0);
	lie.spoil = board_0;
	assert_int_equal(hal_if_open(hal, 1, &hif), -FI_ENODEV);
	logged("is of board 0, wanted is board 1", "%u");
	assert_null(hif);
}

/* If opening an interface fails, nothing of it is left, whichever step
 * failed. */
static void if_open_fails_cleanly(void **state)
{
	static const unsigned long cmds[] = { HAL_KDEV_IO_INFO,
					      HAL_KDEV_IO_CLAIM };
	struct hal_if *hif = NULL;
	int fds_before;

	assert_int_equal(open_hal(), 0);
	assert_int_equal(hal_if_open(hal, 0, &hif), 0);
	hal_if_close(hif);
	hif = NULL;
	fds_before = proc_self_fds();
	lines = 0;
	for (int i = 0; i < 2; i++) {
		lie.map_after = i;
		assert_true(hal_if_open(hal, 0, &hif) < 0);
		be_honest();
		logged(i == 0 ? "mif registers" : "pif registers", "dmesg");
	}
	for (int i = 0; i < 2; i++) {
		lie.cmd = cmds[i];
		lie.times = 1;
		lie.ret = -EIO;
		assert_true(hal_if_open(hal, 0, &hif) < 0);
		be_honest();
		logged(i == 0 ? "no unimem device" : "take an interface",
		       i == 0 ? "FI_UNIMEM_DEV" : "dmesg");
	}
	fail_ioctl(HAL_KDEV_IO_CLAIM, 0, 1, -EBUSY);
	assert_int_equal(hal_if_open(hal, 0, &hif), -FI_EBUSY);
	logged("no free interface", "start fewer");
	be_honest();
	lie.event_ret = -EMFILE;
	assert_true(hal_if_open(hal, 0, &hif) < 0);
	logged("take an interface", "ulimit -n");
	be_honest();
	lie.open_ret = -EMFILE;
	assert_true(hal_if_open(hal, 0, &hif) < 0);
	logged("cannot open", "ulimit -n");
	be_honest();
	assert_null(hif);
	assert_int_equal(proc_self_fds(), fds_before);
	assert_int_equal(hal_if_open(hal, 0, &hif), 0);
	hal_if_close(hif);
}

/* A forked child that closes an interface has no descriptor of it left, and the
 * parent's stay open. */
static void child_closes_its_copies(void **state)
{
	int before, opened;
	struct hal_if *hif;
	pid_t pid;

	assert_int_equal(open_hal(), 0);
	before = proc_self_fds();
	assert_int_equal(hal_if_open(hal, 0, &hif), 0);
	opened = proc_self_fds();
	assert_true(opened > before);
	pid = unit_fork();
	if (pid == 0) {
		hal_if_close(hif);
		_exit(proc_self_fds() != before);
	}
	assert_int_equal(unit_exit_code(pid), 0);
	assert_int_equal(proc_self_fds(), opened);
	hal_if_close(hif);
	assert_int_equal(proc_self_fds(), before);
}

/* Opening the service's interface, which a driver may refuse or not know, fails
 * as cleanly. */
static void service_open_fails_cleanly(void **state)
{
	static const struct {
		int err, ret;
		const char *what, *remedy;
	} no[] = {
		{ -EBUSY, -FI_EBUSY, "has an atomic service", "already" },
		{ -EACCES, -FI_EACCES, "may not be", "whom the driver allows" },
		{ -ENOTTY, -FI_ENOSYS, "keeps its interface 0", "needs one" },
		{ -EIO, -FI_EIO, "take an interface", "dmesg" },
	};
	struct hal_if *hif = NULL, *own;
	int fds_before;

	assert_int_equal(open_hal(), 0);
	assert_int_equal(hal_if_open(hal, 0, &own), 0);
	fds_before = proc_self_fds();
	for (unsigned i = 0; i < sizeof(no) / sizeof(no[0]); i++) {
		fail_ioctl(HAL_KDEV_IO_SERVICE, 0, 1, no[i].err);
		lines = 0;
		assert_int_equal(hal_if_open_service(hal, 0, &hif), no[i].ret);
		logged(no[i].what, no[i].remedy);
		be_honest();
		assert_null(hif);
		assert_int_equal(proc_self_fds(), fds_before);
	}
	assert_int_equal(hal_if_open_service(hal, 0, &hif), 0);
	assert_int_equal(hif->addr.iface, HAL_REG_IF_SERVICE);
	hal_if_close(hif);
	hal_if_close(own);
}

/* ---- Packetizer [D 5.2.3] ---------------------------------------------- */

/* A status that is neither ACK nor NACK ends the packet's peer and no other. */
static void packet_without_an_answer(void **state)
{
	static const uint64_t ends[] = { HAL_PIF_ILLEGAL, HAL_PIF_OVERWR,
					 UINT64_C(1) << 32 };

	for (unsigned i = 0; i < 3; i++) {
		struct pair p = pair();

		assert_int_equal(send_word(p.ab, 1), 0);
		lie.pif_status = ends[i];
		assert_true(until(&p, p.dead_a != 0));
		be_honest();
		assert_int_equal(p.dead_a, -FI_EIO);
		assert_non_null(strstr(said, "ended with status"));
		assert_non_null(strstr(said, "docs/porting.md, section 5"));
		assert_int_equal(i == 0, strstr(said, "BASE_DEST") != NULL);
		assert_int_equal(send_word(p.ab, 2), 0);
		hal_peer_free(p.ab);
		assert_true(until(&p, p.dead_b != 0));
		unpair(&p);
		close_hal();
	}
}

/* While the packetizer is busy packets wait, up to pkt_depth, and are then
 * sent. */
static void packets_wait_for_an_answer(void **state)
{
	struct pair p = pair();
	uint64_t n = 0;

	lie.pending = true;
	while (send_word(p.ab, n) == 0)
		n++;
	assert_int_equal(n, hal->caps.pkt_depth);
	for (int i = 0; i < 10; i++)
		step(&p);
	lie.pending = false;
	for (uint64_t i = 0; i < n; i++)
		assert_true(until(&p, next_is(p.ba, i)));
	/* nor does hal_peer_free() wait for ever for a busy packetizer */
	assert_int_equal(send_word(p.ab, 1), 0);
	lie.pending = true;
	hal_peer_free(p.ab);
	lie.pending = false;
	assert_true(until(&p, p.dead_b != 0));
	unpair(&p);
}

/* ---- Sleeping and log lines -------------------------------------------- */

static bool dumps(struct hal_if *hif, const char *text)
{
	char *out = NULL;
	size_t n;
	FILE *f = open_memstream(&out, &n);
	bool there;

	assert_non_null(f);
	hal_dump(hif, f);
	fclose(f);
	there = strstr(out, text) != NULL;
	free(out);
	return there;
}

static void dump_prints_the_state(void **state)
{
	struct pair p = pair_open();
	struct hal_event ev;

	assert_int_equal(hal_connect(p.a, &p.b->addr, &p.ab), 0);
	assert_true(dumps(p.a, "connecting sent"));
	assert_true(until(&p, p.ba != NULL));
	assert_true(until(&p, !dumps(p.a, "connecting")));
	assert_true(dumps(p.b, "arrived"));
	assert_int_equal(hal_if_arm(p.b), 0);
	assert_true(dumps(p.b, "asleep"));
	hal_if_disarm(p.b);
	hal_peer_free(p.ab);
	dev_mark_dying(dev_peer(p.ba), -FI_EIO);
	assert_true(dumps(p.b, "ending"));
	while (hal_if_service(p.b, &ev, 1) == 0)
		;
	assert_true(dumps(p.b, " dead"));
	unpair(&p);
}

/* hal_if_arm() fails if the driver does not arm, or if a packet is there. */
static void sleep_is_refused(void **state)
{
	struct pair p = pair();

	hal_tx_sleep(p.ab, true);
	assert_int_equal(hal_if_arm(p.a), 0);
	hal_if_disarm(p.a);
	hal_tx_sleep(p.ab, false);
	fail_ioctl(HAL_KDEV_IO_ARM, 0, 1, -EIO);
	assert_int_equal(hal_if_arm(p.b), -FI_EAGAIN);
	assert_true(lie.times <= 0);
	be_honest();
	assert_int_equal(send_word(p.ab, 1), 0);
	assert_true(until(&p, hal_inbound_pending(p.b)));
	assert_int_equal(hal_if_arm(p.b), -FI_EAGAIN);
	unpair(&p);
}

/* ---- Driver ------------------------------------------------------------ */

/* If the driver has no memory for now, the backend retries or returns an error
 * and logs it. */
static void driver_is_short(void **state)
{
	struct pair p = pair_open();
	int ret;

	for (int i = 0; i < 2; i++) {
		fail_ioctl(HAL_KDEV_IO_ALLOC, i, 1, i == 0 ? -ENOMEM : -ESRCH);
		ret = hal_connect(p.a, &p.b->addr, &p.ab);
		assert_int_equal(ret, i == 0 ? -FI_ENOMEM : -FI_ECONNREFUSED);
		be_honest();
	}
	fail_ioctl(HAL_KDEV_IO_IMPORT, 1, 20, -ENOSPC);
	assert_true(until(&p, hal_connect(p.a, &p.b->addr, &p.ab) == 0));
	assert_true(until(&p, p.ba != NULL));
	be_honest();
	fail_ioctl(HAL_KDEV_IO_ALLOC, 0, 3, -ENOMEM);
	errors = 0;
	for (int i = 0; i < 3; i++) {	/* logged once */
		assert_int_equal(hal_space_ready(p.ab, 64), -FI_ENOMEM);
		assert_non_null(strstr(said, "receive space"));
		assert_int_equal(errors, 1);
	}
	lie.times = 1;
	lie.ret = -ESRCH;
	assert_int_equal(hal_space_ready(p.ab, 64), 0);
	hal_space_write(p.ab, 0, "x", 1);	/* stored nowhere */
	hal_space_barrier(p.ab);
	be_honest();
	assert_int_equal(hal_space_ready(p.ab, 64), 0);
	assert_int_equal(send_word(p.ab, 5), 0);
	assert_true(until(&p, next_is(p.ba, 5)));
	unpair(&p);
}

struct region {
	struct hal_mem *mem;
	struct hal_key key;
	void *addr;
};

static struct region region(void)
{
	struct region r;

	assert_int_equal(hal_mem_alloc(hal, -1, 65536, &r.mem, &r.addr), 0);
	assert_int_equal(hal_mem_key(hal, r.mem, &r.key), 0);
	return r;
}

static int import(struct pair *p, const struct hal_key *key,
		  struct hal_rmem **rmem)
{
	int ret = -FI_EAGAIN;

	until(p, (ret = hal_mem_import(p->ab, key, rmem)) != -FI_EAGAIN);
	return ret;
}

static int post(struct pair *p, struct region *r, struct hal_rmem *rmem)
{
	struct hal_dma d = { .op = HAL_DMA_PUT, .peer = p->ab, .rmem = rmem,
			     .local = r->addr, .len = 40000 };

	return hal_dma_post(p->a, &d, 7);
}

static int transfer(struct pair *p, struct region *r, struct hal_rmem *rmem)
{
	struct hal_dma_comp comp = { 0 };
	int ret = post(p, r, rmem);

	if (ret != 0)
		return ret;
	ret = 0;
	until(p, (ret = hal_dma_poll(p->a, &comp, 1)) != 0);
	assert_int_equal(ret, 1);
	assert_int_equal(comp.token, 7);
	assert_int_equal(hal_dma_poll(p->a, &comp, 1), 0);
	return comp.status;
}

static void driver_refuses_memory(void **state)
{
	struct pair p = pair();
	struct region r = region();
	struct hal_rmem *rmem = NULL;
	struct hal_mem *none = NULL;
	void *addr;

	fail_ioctl(HAL_KDEV_IO_ALLOC, 0, 1, -ENOMEM);
	assert_int_equal(hal_mem_alloc(hal, 0, 4096, &none, &addr),
			 -FI_ENOMEM);
	assert_non_null(strstr(said, "dmable memory"));
	be_honest();
	lie.map_after = 0;
	assert_true(hal_mem_alloc(hal, 0, 4096, &none, &addr) < 0);
	be_honest();
	/* unused routes are dropped for a new one, then there is none */
	assert_int_equal(import(&p, &r.key, &rmem), 0);
	hal_mem_release(p.ab, rmem);
	assert_int_equal(import(&p, &r.key, &rmem), 0);
	hal_mem_release(p.ab, rmem);
	fail_ioctl(HAL_KDEV_IO_IMPORT, 0, 1, -ENOSPC);
	r.key.word[1] ^= 1;
	assert_int_equal(import(&p, &r.key, &rmem), -FI_EKEYREJECTED);
	r.key.word[1] ^= 1;
	lie.times = 2;
	assert_int_equal(import(&p, &r.key, &rmem), -FI_ENOMEM);
	be_honest();
	assert_int_equal(import(&p, &r.key, &rmem), 0);
	hal_mem_free(hal, r.mem);
	/* the owner has freed memory that is in use */
	assert_int_equal(hal_mem_import(p.ab, &r.key, &rmem),
			 -FI_EKEYREJECTED);
	unpair(&p);
}

/* Memory of another board would be Device memory, which plain loads and stores
 * may not access. */
static void memory_of_the_own_board_only(void **state)
{
	struct hal_mem *mem = NULL;
	void *addr;

	lie.info.flags = HAL_KDEV_ANY_BOARD;
	assert_int_equal(open_hal(), 0);
	assert_int_equal(hal_mem_alloc(hal, 1, 4096, &mem, &addr),
			 -FI_EINVAL);
	assert_int_equal(hal_mem_alloc(hal, 0, 4096, &mem, &addr), 0);
	hal_mem_free(hal, mem);
}

/* ---- Transfers --------------------------------------------------------- */

static void transfers_fail_by_the_driver(void **state)
{
	struct pair p = pair();
	struct region r = region();
	struct hal_rmem *rmem = NULL;
	struct hal_dma_comp comp;

	assert_int_equal(import(&p, &r.key, &rmem), 0);
	assert_int_equal(transfer(&p, &r, rmem), 0);
	lie.state = HAL_KDEV_FAILED;
	assert_int_equal(transfer(&p, &r, rmem), -FI_EIO);
	assert_non_null(strstr(said, "transfer failed"));
	lie.state = HAL_KDEV_CANCELLED;
	assert_int_equal(transfer(&p, &r, rmem), -FI_ECANCELED);
	be_honest();
	lie.write_ret = -EFAULT;
	assert_int_equal(transfer(&p, &r, rmem), -FI_EACCES);
	lie.write_ret = -EIO;
	assert_int_equal(transfer(&p, &r, rmem), -FI_EIO);
	be_honest();
	assert_int_equal(transfer(&p, &r, rmem), 0);
	/* a status that ends no transfer */
	lie.state = HAL_KDEV_STARTED;
	assert_int_equal(post(&p, &r, rmem), 0);
	for (int i = 0; i < 100; i++)
		assert_int_equal(hal_dma_poll(p.a, &comp, 1), 0);
	be_honest();
	dev_dma_cancel(dev_if(p.a), dev_peer(p.ab));
	assert_int_equal(hal_dma_poll(p.a, &comp, 1), 1);
	assert_int_equal(comp.status, -FI_ECANCELED);
	/* another process has the engine: retried for a limited time */
	lie.write_ret = -EBUSY;
	lines = 0;
	assert_int_equal(transfer(&p, &r, rmem), -FI_EIO);
	assert_int_equal(lines, 2);
	assert_non_null(strstr(said, "not accepted"));
	/* a failed transfer has no effect on the next */
	assert_int_equal(post(&p, &r, rmem), 0);
	assert_int_equal(hal_dma_poll(p.a, &comp, 1), 0);
	be_honest();
	while (hal_dma_poll(p.a, &comp, 1) == 0)
		;
	assert_int_equal(comp.status, 0);
	assert_int_equal(lines, 2);
	assert_int_equal(transfer(&p, &r, rmem), 0);
	hal_mem_release(p.ab, rmem);
	hal_mem_free(hal, r.mem);
	unpair(&p);
}

/* Errors of the engine [PG034, CDMASR]: the transfer fails, the next one
 * succeeds. */
static void engine_errors(void **state)
{
	static const uint32_t bits[] = { HAL_CDMA_SR_INTERR,
		HAL_CDMA_SR_SLVERR, HAL_CDMA_SR_DECERR, HAL_CDMA_SR_SGINTERR,
		HAL_CDMA_SR_SGSLVERR, HAL_CDMA_SR_SGDECERR };

	for (uint32_t mode = HAL_ENGINE_SIMPLE; mode <= HAL_ENGINE_SG;
	     mode++) {
		struct hal_rmem *rmem = NULL;
		struct hal_dma_comp comp;
		struct region r;
		struct pair p;

		lie.engine = mode;
		p = pair();
		r = region();
		assert_int_equal(import(&p, &r.key, &rmem), 0);
		for (unsigned i = 0; i < sizeof(bits) / sizeof(bits[0]); i++) {
			assert_int_equal(transfer(&p, &r, rmem), 0);
			lie.sr_or = bits[i];
			assert_int_equal(transfer(&p, &r, rmem), -FI_EIO);
			lie.sr_or = 0;
			assert_non_null(strstr(said, "cDMA status"));
		}
		/* a transfer that is stopped while it runs */
		lie.sr_and_not = HAL_CDMA_SR_IDLE;
		assert_int_equal(post(&p, &r, rmem), 0);
		dev_dma_cancel(dev_if(p.a), dev_peer(p.ab));
		lie.sr_and_not = 0;
		assert_int_equal(hal_dma_poll(p.a, &comp, 1), 1);
		assert_int_equal(comp.status, -FI_ECANCELED);
		assert_int_equal(transfer(&p, &r, rmem), 0);
		/* a reset that does not end */
		lie.sr_or = HAL_CDMA_SR_DECERR;
		lie.cr_or = HAL_CDMA_CR_RESET;
		assert_int_equal(transfer(&p, &r, rmem), -FI_EIO);
		assert_non_null(strstr(said, "reset"));
		assert_int_equal(transfer(&p, &r, rmem), -FI_EIO);
		hal_mem_release(p.ab, rmem);
		hal_mem_free(hal, r.mem);
		unpair(&p);
		be_honest();
		close_hal();
	}
}

/* A chain in which one descriptor ended in an error [PG034, status word] that
 * the register does not show; and a chain that is idle before it is done. */
static void engine_chain_errors(void **state)
{
	struct hal_rmem *rmem = NULL;
	struct region r;
	struct pair p;

	lie.engine = HAL_ENGINE_SG;
	lie.sim = "world=93,dma=100000,slverr=500";
	p = pair();
	r = region();
	assert_int_equal(import(&p, &r.key, &rmem), 0);
	lie.sr_or = HAL_CDMA_SR_IDLE;
	lie.sr_and_not = HAL_CDMA_SR_ERRORS;
	for (unsigned good = 0, bad = 0; good == 0 || bad == 0;) {
		int ret = transfer(&p, &r, rmem);

		assert_true(ret == 0 || ret == -FI_EIO);
		*(ret == 0 ? &good : &bad) += 1;
	}
	hal_mem_release(p.ab, rmem);
	hal_mem_free(hal, r.mem);
	unpair(&p);
}

static void engine_is_not_to_be_had(void **state)
{
	lie.engine = HAL_ENGINE_SG;
	lie.sr_and_not = HAL_CDMA_SR_SGINCLD;
	assert_int_equal(open_hal(), -FI_ENODEV);
	assert_non_null(strstr(said, "without scatter-gather"));
	be_honest();
	lie.engine = HAL_ENGINE_SG;
	fail_ioctl(HAL_KDEV_IO_ALLOC, 0, 1, -ENOMEM);
	assert_int_equal(open_hal(), -FI_ENOMEM);
	assert_non_null(strstr(said, "descriptors"));
	be_honest();
	lie.engine = HAL_ENGINE_SIMPLE;
	lie.btt_bits = HAL_CDMA_BTT_BITS_MIN - 1;
	assert_int_equal(open_hal(), -FI_ENODEV);
	lie.btt_bits = HAL_CDMA_BTT_BITS_MAX + 1;
	assert_int_equal(open_hal(), -FI_ENODEV);
	be_honest();
	lie.engine = HAL_ENGINE_SIMPLE;
	lie.cr_or = HAL_CDMA_CR_RESET;
	assert_int_equal(open_hal(), -FI_ENODEV);
	be_honest();
	lie.engine = HAL_ENGINE_SIMPLE;
	lie.cmd = HAL_KDEV_IO_ENGINE;
	for (int i = 0; i < 3; i++) {
		static const int errs[] = { -EBUSY, -ENODEV, -EIO };

		lie.times = 1;
		lie.ret = errs[i];
		assert_int_equal(open_hal(), -FI_ENODEV);
		logged("cDMA engine of board 0", "engine = kernel");
	}
	be_honest();
	lie.engine = HAL_ENGINE_SIMPLE;
	lie.map_after = 0;
	assert_int_equal(open_hal(), -FI_ENODEV);
	logged("cdma registers", "dmesg");
	assert_null(hal);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		DEV_TEST(open_says_what_is_missing),
		DEV_TEST(open_checks_the_driver),
		DEV_TEST(open_checks_every_field),
		DEV_TEST(platform_says_less),
		DEV_TEST(if_open_fails_cleanly),
		DEV_TEST(child_closes_its_copies),
		DEV_TEST(service_open_fails_cleanly),
		DEV_TEST(packet_without_an_answer),
		DEV_TEST(packets_wait_for_an_answer),
		DEV_TEST(dump_prints_the_state),
		DEV_TEST(sleep_is_refused),
		DEV_TEST(driver_is_short),
		DEV_TEST(driver_refuses_memory),
		DEV_TEST(memory_of_the_own_board_only),
		DEV_TEST(transfers_fail_by_the_driver),
		DEV_TEST(engine_errors),
		DEV_TEST(engine_chain_errors),
		DEV_TEST(engine_is_not_to_be_had),
	};

	return unit_run(tests);
}
