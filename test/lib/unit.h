/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * unit.h - includes cmocka and the headers of the C library that tests use
 * everywhere, and has helpers that all cmocka programs share: random numbers,
 * threads, children, captured log output, test selection.
 *
 * Each cmocka program includes it, and names only further headers.
 */
#ifndef UNIT_H
#define UNIT_H

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include <cmocka.h>

#include "lib/unit_skip.h"

/* cmocka passes each test a state, which few use. */
#pragma GCC diagnostic ignored "-Wunused-parameter"

/* The number in an environment variable, def if it is unset or 0: for tests
 * that can run longer. */
static inline uint64_t unit_number(const char *name, uint64_t def)
{
	const char *text = getenv(name);
	uint64_t n = text != NULL ? strtoull(text, NULL, 0) : 0;

	return n != 0 ? n : def;
}

/* The next number of the sequence splitmix64. A test seeds *rng with a
 * constant, so that each run uses the same numbers. */
static inline uint64_t unit_random(uint64_t *rng)
{
	uint64_t z = *rng += UINT64_C(0x9E3779B97F4A7C15);

	z = (z ^ z >> 30) * UINT64_C(0xBF58476D1CE4E5B9);
	z = (z ^ z >> 27) * UINT64_C(0x94D049BB133111EB);
	return z ^ z >> 31;
}

/* A random number from 0 to n - 1. */
static inline uint32_t unit_below(uint64_t *rng, uint32_t n)
{
	return (uint32_t)(unit_random(rng) >> 32) % n;
}

/* ---- Time, threads, children ------------------------------------------- */

/* The processor time that this process has used, in seconds: independent of
 * other processes. */
static inline double unit_cpu_seconds(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &ts);
	return (double)ts.tv_sec + (double)ts.tv_nsec / 1e9;
}

/* Use so many ns of processor time in this thread. */
static inline void unit_burn(int64_t ns)
{
	struct timespec begin, now;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &begin);
	do {
		clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
	} while ((now.tv_sec - begin.tv_sec) * INT64_C(1000000000) +
		 now.tv_nsec - begin.tv_nsec < ns);
}

/* Start a thread. */
static inline pthread_t unit_thread(void *(*run)(void *), void *arg)
{
	pthread_t thread;

	assert_int_equal(pthread_create(&thread, NULL, run, arg), 0);
	return thread;
}

/* fork(), which must not fail. */
static inline pid_t unit_fork(void)
{
	pid_t pid = fork();

	assert_true(pid >= 0);
	return pid;
}

/* Wait for the end of a child. Returns its exit code, or 128 and the number of
 * the signal that ended it. */
static inline int unit_exit_code(pid_t pid)
{
	int status;

	assert_int_equal(waitpid(pid, &status, 0), pid);
	return WIFEXITED(status) ? WEXITSTATUS(status) :
	       128 + WTERMSIG(status);
}

/* Kill a child, and wait for its end. */
static inline void unit_kill(pid_t pid)
{
	kill(pid, SIGKILL);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
}

/* Stop a child by SIGSTOP, and wait until it has stopped. */
static inline void unit_stop(pid_t pid)
{
	int status;

	assert_int_equal(kill(pid, SIGSTOP), 0);
	assert_int_equal(waitpid(pid, &status, WUNTRACED), pid);
	assert_true(WIFSTOPPED(status));
}

/* Take the memory of a mapping away. The addresses stay reserved: the next
 * mapping, maybe one of the provider, would get them otherwise. */
static inline void unit_take_memory(void *mem, size_t len)
{
	assert_ptr_equal(mmap(mem, len, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS |
			      MAP_FIXED, -1, 0), mem);
}

/*
 * Returns whether this process may read a child's memory by cross-memory
 * attach. qemu-user and some seccomp filters forbid it. A process may nearly
 * always read its own memory, so the check needs a child.
 */
static inline bool unit_attach(void)
{
	char from = 1, to = 0;
	struct iovec local = { &to, 1 }, remote = { &from, 1 };
	pid_t pid = fork();
	bool can;

	if (pid == 0)
		for (;;)
			pause();
	if (pid < 0)
		return false;
	can = process_vm_readv(pid, &local, 1, &remote, 1, 0) == 1;
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	return can;
}

/* ---- Captured output ---------------------------------------------------- */

/* A capture of standard error, from unit_capture_begin() to unit_capture_end();
 * the test holds it by value. */
struct unit_capture {
	int fd, was;			/* captured text; original stderr */
};

/* Start to capture what the process writes to standard error. */
static inline struct unit_capture unit_capture_begin(void)
{
	struct unit_capture cap;

	fflush(stderr);
	cap.fd = memfd_create("stderr", MFD_CLOEXEC);
	cap.was = dup(STDERR_FILENO);
	assert_true(cap.fd >= 0 && cap.was >= 0);
	dup2(cap.fd, STDERR_FILENO);
	return cap;
}

/* The number of newlines in a text. */
static inline int unit_lines(const char *text)
{
	int n = 0;

	for (; *text != '\0'; text++)
		n += *text == '\n';
	return n;
}

/* End a capture, and copy its text to a buffer of size bytes. Returns the
 * number of lines copied. */
static inline int unit_capture_end(struct unit_capture *cap, char *text,
				   size_t size)
{
	ssize_t n;

	fflush(stderr);
	dup2(cap->was, STDERR_FILENO);
	close(cap->was);
	n = pread(cap->fd, text, size - 1, 0);
	close(cap->fd);
	text[n > 0 ? n : 0] = '\0';
	return unit_lines(text);
}

/* ---- Selection and verdicts --------------------------------------------- */

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define UNIT_SLOW	1	/* built with a sanitizer: fewer rounds, longer
				 * time limits */
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define UNIT_SLOW	1
#endif
#endif
#ifndef UNIT_SLOW
#define UNIT_SLOW	0
#endif

/* Run the tests of a table, or only those whose names match the environment
 * variable UNIT_TEST ("test_trap8*"); setup and teardown are those of the whole
 * table. The value is the exit code of main(). */
#define unit_run(tests)	unit_run_with(tests, NULL, NULL)
#define unit_run_with(tests, setup, teardown)				\
	(cmocka_set_test_filter(getenv("UNIT_TEST")),			\
	 unit_run_group(#tests, tests, sizeof(tests) / sizeof(*tests),	\
			setup, teardown))
/* Define main(), which runs these tests (each a struct CMUnitTest) and does
 * nothing else. */
#define UNIT_MAIN(...)							\
	int main(void)							\
	{								\
		const struct CMUnitTest tests[] = { __VA_ARGS__ };	\
									\
		return unit_run(tests);					\
	}

/* Skip the test unless a condition holds. */
#define unit_needs(cond)	do {					\
		if (!(cond))						\
			skip();						\
	} while (0)

/* Print a formatted message, and fail the test. */
#define unit_fail(...)	do {						\
		print_error(__VA_ARGS__);				\
		print_error("\n");					\
		fail();							\
	} while (0)

#endif /* UNIT_H */
