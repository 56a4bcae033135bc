/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_mailbox_cuse_ends.c - devices of mailboxes: names, opens, and the ends
 * of the mailbox daemon, of files, of devices and of their daemon
 */
#include <dirent.h>

#include "lib/cuse_fixture.h"
#include "cuse/cuse_file.h"

#define GONE	((unsigned)(POLLIN | POLLRDNORM | POLLHUP | POLLERR))

static uint64_t message(unsigned opcode, uint64_t rest)
{
	return (uint64_t)opcode << 60 | rest;
}

static int descriptors(void)
{
	DIR *dir = opendir("/proc/self/fd");
	int n = 0;

	while (readdir(dir) != NULL)
		n++;
	closedir(dir);
	return n;
}

static void open_gate(void)
{
	assert_int_equal(pipe2(g_gate, O_CLOEXEC), 0);
}

static void let_in(unsigned n)
{
	for (unsigned i = 0; i < n; i++)
		assert_int_equal(write(g_gate[1], "", 1), 1);
}

static void close_gate(void)
{
	close(g_gate[0]);
	close(g_gate[1]);
	g_gate[0] = g_gate[1] = -1;
}

/* ---- The mailbox daemon -------------------------------------------------- */

/* All that waits fails at once, and the pollers are notified. */
static void test_daemon_ends(void **state)
{
	struct open_file file = open_node(OWN), act_file = open_node(OWN);
	struct mailbox_action_t got;
	uint64_t readers[2], acts[2];
	int answer;

	for (int i = 0; i < 2; i++)
		readers[i] = ask_read(&file, 8, BLOCK);
	for (int i = 0; i < 2; i++)
		acts[i] = ask_act(&act_file, 'r', (unsigned)i, 0);
	answer = get_action(&act_file, &got);
	assert_int_equal(poll_file(&file, 1, 0) & GONE, 0);
	close(file.conn);
	close(act_file.conn);
	close(answer);
	for (int i = 0; i < 2; i++) {
		expect_error(readers[i], EIO);
		expect_error(acts[i], EIO);
	}
	assert_int_equal(g_notified[1], 1);
	assert_int_equal(poll_file(&file, 1, 0), GONE);
	expect_error(ask_read(&file, 8, BLOCK), EIO);
	expect_error(ask_act(&file, 'r', 3, 0), EIO);
	assert_int_equal(g_lines, 0);	/* the watch is still there */
	release(&file);
	release(&act_file);
}

static void test_daemon_ends_writers(void **state)
{
	struct open_file file = open_node(OTHER);
	uint64_t unique, blocked;

	do {
		unique = ask_send(&file, message(1, 1), O_NONBLOCK);
		assert_true(answered(unique));
	} while (g_answer[unique].error == 0);
	blocked = ask_send(&file, message(1, 2), BLOCK);
	assert_int_equal(poll_file(&file, 1, POLLOUT) & POLLOUT, 0);
	close(file.conn);
	expect_error(blocked, EIO);
	assert_int_equal(g_notified[1], 1);
	assert_int_equal(poll_file(&file, -1, POLLOUT), GONE);
	expect_error(ask_send(&file, message(1, 3), O_NONBLOCK), EIO);
	expect_error(ask_read(&file, 8, BLOCK), EIO);
	release(&file);
}

/* Messages that were delivered before can be read: those that the file keeps,
 * and those that are still in the connection. */
static void test_daemon_ends_messages(void **state)
{
	struct open_file file = open_node(OWN);
	unsigned n = CUSE_KEPT + 20;
	uint64_t unique;

	for (unsigned i = 0; i < n; i++) {
		deliver(&file, message(1, i));
		if (i % 100 == 0)
			idle();
	}
	/* unread packets: the kernel gives ECONNRESET before the messages */
	unique = ask_act(&file, 'r', 1, 0);
	assert_false(answered(unique));
	close(file.conn);
	expect_error(unique, EIO);
	assert_int_equal(poll_file(&file, -1, POLLIN), GONE);
	for (unsigned i = 0; i < n; i++) {
		unique = ask_read(&file, 8, O_NONBLOCK);
		expect_message(unique, message(1, i));
	}
	expect_error(ask_read(&file, 8, O_NONBLOCK), EIO);
	release(&file);
}

/* A read that finds the end behind the kept messages notifies the pollers, and
 * ends what waits. */
static void test_read_finds_end(void **state)
{
	struct open_file file = open_node(OWN);
	struct mailbox_action_t got;
	uint64_t unique, action;
	int answer;

	deliver(&file, message(1, 1));
	idle();
	action = ask_act(&file, 'r', 1, 0);
	answer = get_action(&file, &got);
	poll_file(&file, 1, POLLPRI);
	/* the loop handles the request first, because it comes first */
	unique = ask_read(&file, 8, BLOCK);
	close(file.conn);
	idle();
	expect_message(unique, message(1, 1));
	expect_error(action, EIO);
	assert_int_equal(g_notified[1], 1);
	assert_int_equal(poll_file(&file, -1, POLLPRI), GONE);
	close(answer);
	release(&file);
}

/* More readers wait than a file keeps messages: each gets its message, although
 * the daemon has ended. */
static void test_daemon_ends_readers(void **state)
{
	struct open_file file = open_node(OWN);
	uint64_t readers[CUSE_KEPT + 5];	/* answers fit into a socket */
	unsigned n = 0;

	for (unsigned i = 0; i < CUSE_KEPT + 5; i++) {
		readers[i] = ask_read(&file, 8, BLOCK);
		idle();
	}
	while (n < CUSE_KEPT + 5)
		deliver(&file, message(1, n++));
	close(file.conn);
	idle();
	for (unsigned i = 0; i < n; i++)
		expect_message(readers[i], message(1, i));
	expect_error(ask_read(&file, 8, BLOCK), EIO);
	release(&file);
}

/* One line, and the next open connects the watch again. */
static void test_watch(void **state)
{
	struct open_file file;

	close(g_watch);
	idle();
	idle();
	assert_int_equal(g_lines, 1);
	assert_non_null(strstr(g_line, "has ended"));
	file = open_node(OTHER);
	while (g_all.opener.running != 0)
		assert_true(cuse_devices_step(&g_all, -1) >= 0);
	assert_true(g_all.watch.fd >= 0);
	g_watch = dup(g_conn);		/* that of either; both are open */
	assert_int_equal(g_opens, 2);
	assert_int_equal(g_lines, 1);
	release(&file);
}

static void wait_for_opens(void)
{
	while (g_all.opener.running != 0)
		assert_true(cuse_devices_step(&g_all, -1) >= 0);
}

/* While one open for the watch is under way there is no second one, and a
 * failed one is followed by another. */
static void test_watch_opens_once(void **state)
{
	uint64_t opens[4];

	close(g_watch);
	idle();
	open_gate();
	g_refuse = -ECONNREFUSED;
	for (int i = 0; i < 3; i++)
		opens[i] = ask_open(OTHER);
	idle();
	assert_int_equal(g_all.opener.running, 3 + 1);
	interrupt_request(OTHER, opens[0]);
	/* threads end in any order: the watch's own may be the last */
	opens[3] = ask_open(OTHER);
	idle();
	assert_int_equal(g_all.opener.running, 4 + 1);
	let_in(4 + 1);
	wait_for_opens();
	take_answers();
	assert_int_equal(g_opens, 4 + 1);
	assert_true(g_all.watch.fd < 0);
	g_refuse = 0;
	opens[0] = ask_open(OTHER);
	idle();
	assert_int_equal(g_all.opener.running, 2);
	let_in(2);
	wait_for_opens();
	assert_int_equal(answer_of(opens[0])->error, 0);
	assert_true(g_all.watch.fd >= 0);
	g_watch = dup(g_conn);
	close_gate();
}

/* ---- Opens --------------------------------------------------------------- */

static void test_open_fails(void **state)
{
	static const int errors[] = { ECONNREFUSED, EACCES, ETIMEDOUT, EMFILE };

	for (int i = 0; i < 4; i++) {
		g_refuse = -errors[i];
		assert_int_equal(answer_of(ask_open(i % 2))->error,
				 -errors[i]);
	}
}

/* An open that takes long delays nothing else; more wait for a thread. */
static void test_slow_opens(void **state)
{
	struct open_file file = open_node(OWN);
	uint64_t opens[CUSE_OPENERS + 5];
	int before = descriptors();

	open_gate();
	for (unsigned i = 0; i < CUSE_OPENERS + 5; i++)
		opens[i] = ask_open(OWN);
	idle();
	assert_int_equal(g_all.opener.running, CUSE_OPENERS);
	deliver(&file, message(1, 1));
	expect_message(ask_read(&file, 8, BLOCK), message(1, 1));
	interrupt_request(OWN, opens[0]);	/* its thread runs */
	interrupt_request(OWN, opens[CUSE_OPENERS + 4]);	/* it waits */
	expect_error(opens[0], EINTR);
	expect_error(opens[CUSE_OPENERS + 4], EINTR);
	let_in(CUSE_OPENERS + 4);
	for (unsigned i = 1; i < CUSE_OPENERS + 4; i++) {
		struct open_file one = opened(OWN, opens[i]);

		release(&one);
	}
	while (g_all.opener.running != 0)
		assert_true(cuse_devices_step(&g_all, -1) >= 0);
	close_gate();
	/* what is left are the daemon's ends */
	assert_int_equal(descriptors(), before + CUSE_OPENERS + 4);
	release(&file);
}

/* ---- Files, devices, the daemon ------------------------------------------ */

static void test_names(void **state)
{
	static const struct {
		int node;
		const char *name;
	} names[] = {
		{ 0, "U/mailboxA" }, { 25, "U/mailboxZ" },
		{ 26, "U/mailboxAA" },
		{ 51, "U/mailboxAZ" }, { 52, "U/mailboxBA" },
		{ 701, "U/mailboxZZ" }, { 702, "U/mailboxAAA" },
		{ 65534, "U/mailboxCRXO" },
	};
	char name[CUSE_NAME_MAX];

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		cuse_device_name(name, "U", names[i].node);
		assert_string_equal(name, names[i].name);
	}
}

/* A file that the kernel closes while requests wait: none stays unanswered. */
static void test_release(void **state)
{
	struct open_file file = open_node(OWN);
	struct mailbox_action_t got;
	uint64_t reader = ask_read(&file, 8, BLOCK);
	uint64_t action = ask_act(&file, 'r', 1, 0);
	int answer = get_action(&file, &got), before = descriptors();
	char byte;

	release(&file);
	expect_error(reader, EIO);
	expect_error(action, EIO);
	/* connection, answer */
	assert_int_equal(descriptors(), before - 2);
	/* the daemon sees the end, with which the registrations end */
	assert_true(recv(file.conn, &byte, 1, 0) <= 0);
	close(answer);
}

static void test_end(void **state)
{
	struct open_file file = open_node(OWN);
	uint64_t reader = ask_read(&file, 8, BLOCK);

	poll_file(&file, 1, POLLIN);
	assert_false(answered(reader));
	assert_true(cuse_devices_fini(&g_all));
	take_answers();
	assert_int_equal(g_answer[reader].error, -EIO);
	/* for the fixture's end */
	assert_int_equal(cuse_devices_init(&g_all, OWN, fixture_open,
					   fixture_log), 0);
}

/* An open whose thread runs does not delay the end of the daemon. */
static void test_end_while_opening(void **state)
{
	uint64_t unique;

	open_gate();
	unique = ask_open(OWN);
	assert_false(answered(unique));
	assert_false(cuse_devices_fini(&g_all));
	let_in(1);
	assert_int_equal(answer_of(unique)->error, 0);
	close_gate();
}

static void test_device_is_lost(void **state)
{
	assert_false(g_all.lost);
	close(g_kernel[OTHER]);
	idle();
	assert_true(g_all.lost);
	assert_int_equal(g_lines, 1);
	assert_non_null(strstr(g_line, "/dev/Unimem/mailboxB"));
	g_kernel[OTHER] = -1;
}

#define T(f)	cmocka_unit_test_setup_teardown(test_##f, setup, teardown)

int main(int argc, char *argv[])
{
	const struct CMUnitTest tests[] = {
		T(daemon_ends), T(daemon_ends_writers),
		T(daemon_ends_messages), T(read_finds_end),
		T(daemon_ends_readers), T(watch), T(watch_opens_once),
		T(open_fails), T(slow_opens), T(names), T(release), T(end),
		T(end_while_opening), T(device_is_lost),
	};

	return unit_run(tests);
}
