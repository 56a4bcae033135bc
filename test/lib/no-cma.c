/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * no-cma.c - run a command on a system without cross-memory attach.
 *
 *	no-cma COMMAND [ARGUMENT...]
 *
 * Installs a seccomp filter and executes COMMAND. In COMMAND and its children
 * process_vm_readv() and process_vm_writev() fail with EPERM, as they do under
 * the seccomp profile of many containers. Without arguments the program prints
 * whether the calls are denied, and exits with 0 if they are, with 1 if not.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <seccomp.h>
#include <stdio.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

static int deny(scmp_filter_ctx ctx, int call)
{
	return seccomp_rule_add(ctx, SCMP_ACT_ERRNO(EPERM), call, 0);
}

/* Install the filter; 0 or a negative errno. */
static int deny_cma(void)
{
	scmp_filter_ctx ctx;
	int ret;

	ctx = seccomp_init(SCMP_ACT_ALLOW);
	if (ctx == NULL)
		return -ENOMEM;

	ret = deny(ctx, SCMP_SYS(process_vm_readv));
	if (ret == 0)
		ret = deny(ctx, SCMP_SYS(process_vm_writev));
	if (ret == 0)
		ret = seccomp_load(ctx);

	seccomp_release(ctx);
	return ret;
}

/* Returns whether this process may not access its own memory by cross-memory
 * attach. */
static int is_denied(void)
{
	char from = 'x', to = 0;
	struct iovec local = { .iov_base = &to, .iov_len = 1 };
	struct iovec remote = { .iov_base = &from, .iov_len = 1 };

	return process_vm_readv(getpid(), &local, 1, &remote, 1, 0) < 0 &&
	       process_vm_writev(getpid(), &local, 1, &remote, 1, 0) < 0;
}

int main(int argc, char **argv)
{
	int ret;

	if (argc < 2) {
		ret = is_denied();
		printf("cross-memory attach is %s\n",
		       ret ? "denied" : "allowed");
		return ret ? 0 : 1;
	}

	ret = deny_cma();
	if (ret != 0) {
		fprintf(stderr, "no-cma: no seccomp filter: %s\n",
			strerror(-ret));
		return 126;
	}
	if (!is_denied()) {
		fprintf(stderr, "no-cma: the filter denies nothing\n");
		return 126;
	}

	execvp(argv[1], argv + 1);
	fprintf(stderr, "no-cma: %s: %s\n", argv[1], strerror(errno));
	return 127;
}
