/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_eq.c - event queues: events that a user writes are read in order, by
 * fi_eq_read(), with FI_PEEK, by fi_eq_sread() and after poll().
 */
#include <sys/time.h>
#include <poll.h>

#include "lib/ep_pair.h"

static struct fid_eq *open_eq(struct ep *e, enum fi_wait_obj wait)
{
	struct fi_eq_attr attr = { .wait_obj = wait, .flags = FI_WRITE };
	struct fid_eq *eq;

	assert_int_equal(fi_eq_open(e->fabric, &attr, &eq, NULL), 0);
	return eq;
}

static void test_eq_write_read_peek(void **state)
{
	struct ep *e = ep_open(NULL);
	struct fid_eq *eq = open_eq(e, FI_WAIT_FD);
	struct fi_eq_entry in = { .data = 5 }, out = { .data = 0 };
	struct fi_eq_err_entry err = { 0 };
	uint32_t type = 0;

	assert_int_equal(fi_eq_read(eq, &type, &out, sizeof(out), 0),
			 -FI_EAGAIN);
	assert_int_equal(fi_eq_readerr(eq, &err, 0), -FI_EAGAIN);
	for (int i = 0; i < 3; i++) {
		in.data = i;
		assert_int_equal(fi_eq_write(eq, FI_NOTIFY, &in, sizeof(in),
					     0), sizeof(in));
	}
	assert_int_equal(fi_eq_read(eq, &type, &out, 1, 0), -FI_ETOOSMALL);
	assert_int_equal(fi_eq_read(eq, &type, &out, sizeof(out), FI_PEEK),
			 sizeof(out));
	assert_int_equal(out.data, 0);
	for (int i = 0; i < 3; i++) {
		assert_int_equal(fi_eq_sread(eq, &type, &out, sizeof(out), -1,
					     0), sizeof(out));
		assert_int_equal(type, FI_NOTIFY);
		assert_int_equal(out.data, i);
	}
	assert_int_equal(fi_eq_read(eq, &type, &out, sizeof(out), FI_RECV),
			 -FI_EINVAL);
	/* unread events are freed with the queue */
	fi_eq_write(eq, FI_NOTIFY, &in, sizeof(in), 0);
	assert_int_equal(fi_close(&eq->fid), 0);
}

static void test_eq_waits(void **state)
{
	struct ep *e = ep_open(NULL);
	struct fid_eq *eq = open_eq(e, FI_WAIT_FD);
	struct fid *fids[] = { &eq->fid };
	struct pollfd pfd = { .events = POLLIN };
	struct fi_eq_entry en = { 0 };
	uint64_t start = ep_now();
	uint32_t type;

	assert_int_equal(fi_eq_sread(eq, &type, &en, sizeof(en), 30, 0),
			 -FI_EAGAIN);
	assert_true(ep_now() - start >= 29000);
	assert_int_equal(fi_control(&eq->fid, FI_GETWAIT, &pfd.fd), 0);
	assert_int_equal(fi_trywait(e->fabric, fids, 1), 0);
	assert_int_equal(poll(&pfd, 1, 0), 0);
	fi_eq_write(eq, FI_NOTIFY, &en, sizeof(en), 0);
	fi_eq_write(eq, FI_NOTIFY, &en, sizeof(en), 0);
	for (int i = 0; i < 2; i++) {
		assert_int_equal(poll(&pfd, 1, 0), 1);
		fi_eq_read(eq, &type, &en, sizeof(en), FI_PEEK);
		assert_int_equal(poll(&pfd, 1, 0), 1);
		assert_int_equal(fi_eq_read(eq, &type, &en, sizeof(en), 0),
				 sizeof(en));
	}
	assert_int_equal(poll(&pfd, 1, 0), 0);
	assert_int_equal(fi_close(&eq->fid), 0);
}

static void test_eq_not_for_writing(void **state)
{
	struct ep *e = ep_open(NULL);
	struct fi_eq_attr attr = { .wait_obj = FI_WAIT_NONE };
	struct fid_eq *eq;
	char c = 0;
	int fd;

	assert_int_equal(fi_eq_open(e->fabric, &attr, &eq, NULL), 0);
	assert_int_equal(fi_eq_write(eq, FI_NOTIFY, &c, 1, 0), -FI_EINVAL);
	assert_int_equal(fi_control(&eq->fid, FI_GETWAIT, &fd), -FI_ENOSYS);
	assert_int_equal(fi_close(&eq->fid), 0);
	attr.wait_obj = 99;
	assert_int_equal(fi_eq_open(e->fabric, &attr, &eq, NULL), -FI_ENOSYS);
	assert_int_equal(fi_eq_open(e->fabric, NULL, &eq, NULL), 0);
	assert_int_equal(fi_close(&eq->fid), 0);
}

static volatile sig_atomic_t alarms;

static void on_alarm(int sig)
{
	static const struct itimerval off;

	(void)sig;
	if (++alarms == 40)
		setitimer(ITIMER_REAL, &off, NULL);
}

/* Signals do not make the timeout longer. */
static void test_eq_sread_times_out_among_signals(void **state)
{
	static const struct itimerval often = {
		.it_interval.tv_usec = 50000, .it_value.tv_usec = 50000,
	}, off;
	struct sigaction act = { .sa_handler = on_alarm }, was;
	struct ep *e = ep_open(NULL);
	uint64_t start = ep_now();
	struct fid_eq *eq;
	uint32_t type;
	char buf[64];

	assert_int_equal(fi_eq_open(e->fabric, NULL, &eq, NULL), 0);
	assert_int_equal(sigaction(SIGALRM, &act, &was), 0);
	alarms = 0;
	assert_int_equal(setitimer(ITIMER_REAL, &often, NULL), 0);
	assert_int_equal(fi_eq_sread(eq, &type, buf, sizeof(buf), 200, 0),
			 -FI_EAGAIN);
	assert_true(ep_now() - start >= 199000);
	assert_true(alarms < 40);
	setitimer(ITIMER_REAL, &off, NULL);
	sigaction(SIGALRM, &was, NULL);
	assert_int_equal(fi_close(&eq->fid), 0);
}

UNIT_MAIN(
	EP_TEST(test_eq_write_read_peek),
	EP_TEST(test_eq_waits),
	EP_TEST(test_eq_not_for_writing),
	EP_TEST(test_eq_sread_times_out_among_signals),
)
