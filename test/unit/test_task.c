/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_task.c - names of processes (hal_task.c): a name opens the process that
 * it was made for, and no other process with the same id. The id of this
 * process (hal_pid.c), also in forked children.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <rdma/fi_errno.h>

#include "hal/hal_pid.h"
#include "hal/hal_task.h"
#include "lib/unit.h"

/* Start a child that waits, and make its name; program: how it is called. */
static pid_t child(const char *program, struct hal_task *task)
{
	int out[2];
	pid_t pid;

	assert_int_equal(pipe(out), 0);
	pid = fork();
	if (pid == 0) {
		prctl(PR_SET_NAME, program);
		if (hal_task_self(task) != 0 ||
		    write(out[1], task, sizeof(*task)) != sizeof(*task))
			_exit(1);
		for (;;)
			pause();
	}
	close(out[1]);
	assert_int_equal(read(out[0], task, sizeof(*task)), sizeof(*task));
	close(out[0]);
	assert_int_equal(task->pid, pid);
	return pid;
}

static bool ended(int fd)
{
	struct pollfd pfd = { .fd = fd, .events = POLLIN };

	return poll(&pfd, 1, 0) == 1;
}

static void test_opens_the_process(void **state)
{
	/* what stands before the start time in /proc/PID/stat */
	static const char *const programs[] = {
		"plain", "a b", "x) R 1 2 3", "((", ") 7",
	};

	for (size_t i = 0; i < sizeof(programs) / sizeof(programs[0]); i++) {
		struct hal_task task;
		pid_t pid = child(programs[i], &task);
		int fd = hal_task_open(&task);

		assert_true(fd >= 0);
		assert_true(fcntl(fd, F_GETFD) & FD_CLOEXEC);
		assert_false(ended(fd));
		kill(pid, SIGKILL);
		assert_int_equal(waitpid(pid, NULL, 0), pid);
		assert_true(ended(fd));
		close(fd);
		assert_int_equal(hal_task_open(&task), -FI_ECONNRESET);
	}
}

/* The id is used again, but not with the same start time. */
static void test_refuses_another_process(void **state)
{
	struct hal_task task, other;
	pid_t pid;

	pid = child("later", &task);
	for (int by = -1; by <= 1; by += 2) {
		other = task;
		other.start += (uint64_t)by;
		assert_int_equal(hal_task_open(&other), -FI_ECONNRESET);
	}
	other = task;
	other.ns ^= 1;
	assert_int_equal(hal_task_open(&other), -FI_ENOSYS);
	other.ns = 0;
	assert_int_equal(hal_task_open(&other), -FI_ENOSYS);
	/* a process that has ended, but that nobody has waited for */
	kill(pid, SIGKILL);
	assert_int_equal(waitid(P_PID, (id_t)pid, NULL, WEXITED | WNOWAIT), 0);
	assert_int_equal(hal_task_open(&task), -FI_ECONNRESET);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
}

static void test_leaves_no_descriptor(void **state)
{
	struct hal_task task;
	int before, fd;

	before = dup(0);
	close(before);
	assert_int_equal(hal_task_self(&task), 0);
	fd = hal_task_open(&task);
	assert_true(fd >= 0);
	close(fd);
	task.start++;
	assert_int_equal(hal_task_open(&task), -FI_ECONNRESET);
	fd = dup(0);
	assert_int_equal(fd, before);
	close(fd);
}

/* Is the id right, each time, in this process and in so many generations of
 * children? */
static bool id_is_right(int generations)
{
	bool right = hal_pid() == getpid() && hal_pid() == getpid();
	int status = 0;
	pid_t pid;

	if (!right || generations == 0)
		return right;
	pid = fork();
	if (pid == 0)
		_exit(id_is_right(generations - 1) ? 0 : 1);
	return pid > 0 && waitpid(pid, &status, 0) == pid && status == 0;
}

static void test_id_of_children(void **state)
{
	(void)state;
	assert_true(id_is_right(3));
	assert_true(id_is_right(1));
}

UNIT_MAIN(
	cmocka_unit_test(test_opens_the_process),
	cmocka_unit_test(test_refuses_another_process),
	cmocka_unit_test(test_leaves_no_descriptor),
	cmocka_unit_test(test_id_of_children),
)
