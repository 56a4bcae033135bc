/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_gsas_secret.c - memory of gsasd is no other process's, even if that is
 * of the same user.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/uio.h>
#include <unistd.h>

#include "lib/gsas_processes.h"

#define NOBODY	65534

/* 0, or why a file of a process cannot be opened. */
static int open_of(pid_t pid, const char *name, int flags)
{
	char path[64];
	int fd;

	snprintf(path, sizeof(path), "/proc/%d/%s", (int)pid, name);
	fd = open(path, flags | O_CLOEXEC);
	if (fd < 0)
		return errno;
	close(fd);
	return 0;
}

static bool is_denied(int error)
{
	return error == EACCES || error == EPERM;
}

/* Clients of the user are served all the same. */
static int client(int fd, void *arg)
{
	gsas_addr at;
	uint64_t value;

	(void)fd;
	(void)arg;
	for (unsigned kind = 0; kind <= GSAS_MAPPED; kind += GSAS_MAPPED) {
		GSAS(gsas_alloc(1, board_number(0), kind, NULL, &at));
		GSAS(gsas_write64(at, 5));
		GSAS(gsas_read64(at, &value));
		CHECK(value == 5);
		GSAS(gsas_free(at));
	}
	return 0;
}

static void ordinary_user(void)
{
	const char *hal = getenv("FI_UNIMEM_HAL");
	struct proc *service;
	char path[4096];
	uint64_t word;
	struct iovec local = { &word, sizeof(word) };
	struct iovec remote = { (void *)0x400000, sizeof(word) };

	if (hal != NULL && strcmp(hal, "sim") == 0)
		procs_skip("the model's processes open each other's files");
	if (getuid() == 0 && (setresgid(NOBODY, NOBODY, NOBODY) != 0 ||
			      setresuid(NOBODY, NOBODY, NOBODY) != 0))
		procs_skip("root cannot become an ordinary user");
	build_program("gsasd", path, sizeof(path));
	if (access(path, X_OK) != 0)
		procs_skip("an ordinary user may not run %s", path);
	service = gsasd_start(0, NULL);
	CHECK(is_denied(open_of(service->pid, "mem", O_RDWR)));
	CHECK(is_denied(open_of(service->pid, "mem", O_RDONLY)));
	CHECK(is_denied(open_of(service->pid, "map_files", O_RDONLY |
				O_DIRECTORY)));
	CHECK(is_denied(open_of(service->pid, "fd", O_RDONLY | O_DIRECTORY)));
	CHECK(process_vm_readv(service->pid, &local, 1, &remote, 1, 0) < 0 &&
	      errno == EPERM);
	CHECK(ptrace(PTRACE_SEIZE, service->pid, NULL, NULL) < 0 &&
	      errno == EPERM);
	/* by comparison: a process that hides nothing */
	CHECK(open_of(getpid(), "fd", O_RDONLY | O_DIRECTORY) == 0);
	proc_expect(proc_start(client, NULL, board_env(0)), 0);
	gsasd_stop(service);
	procs_forget();
}

PROCS_MAIN(
	PROCS_CASE(ordinary_user, 60),
)
