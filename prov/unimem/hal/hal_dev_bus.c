/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * hal_dev_bus.c - a load that survives a bus error.
 *
 * A load from a board that does not answer may end in a bus error, which Linux
 * reports to the thread by SIGBUS. The action for a signal belongs to the whole
 * process, so this is done only while a kernel device is open (FI_UNIMEM_HAL=
 * dev; never in the emulation or the model), and it is as narrow as it can be:
 * the handler acts on one instruction, the load of dev_bus_load(), which it
 * knows by its address, and passes every other SIGBUS to the handler that was
 * there before. It reads and writes the interrupted context only.
 *
 * Not covered: docs/porting.md, section 6.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <signal.h>
#include <stdbool.h>
#include <string.h>
#include <ucontext.h>

#include "hal_dev_bus.h"
#include "hal_map.h"

/* ---- The load ---------------------------------------------------------- */

/* int load(from): 0, or 1 where the handler goes on at "failed". */
int unm_bus_load(const volatile void *from)
	__attribute__((visibility("hidden")));
extern const char unm_bus_at[] __attribute__((visibility("hidden")));
extern const char unm_bus_failed[] __attribute__((visibility("hidden")));

#if defined(__aarch64__)

/* the value is used, so that the load is over before the return */
__asm__(".text\n"
	".balign 4\n"
	".hidden unm_bus_load, unm_bus_at, unm_bus_failed\n"
	".globl unm_bus_load, unm_bus_at, unm_bus_failed\n"
	".type unm_bus_load, %function\n"
	"unm_bus_load:\n"
	"unm_bus_at:\n"
	"\tldr x0, [x0]\n"
	"\tand x0, x0, xzr\n"
	"\tret\n"
	"unm_bus_failed:\n"
	"\tmov w0, #1\n"
	"\tret\n"
	".size unm_bus_load, . - unm_bus_load\n");

#define BUS_WORKS	true
#define CONTEXT_PC(uc)	((uc)->uc_mcontext.pc)

#elif defined(__x86_64__)

__asm__(".text\n"
	".hidden unm_bus_load, unm_bus_at, unm_bus_failed\n"
	".globl unm_bus_load, unm_bus_at, unm_bus_failed\n"
	".type unm_bus_load, @function\n"
	"unm_bus_load:\n"
	"unm_bus_at:\n"
	"\tmovq (%rdi), %rax\n"
	"\txorl %eax, %eax\n"
	"\tret\n"
	"unm_bus_failed:\n"
	"\tmovl $1, %eax\n"
	"\tret\n"
	".size unm_bus_load, . - unm_bus_load\n");

#define BUS_WORKS	true
#define CONTEXT_PC(uc)	((uc)->uc_mcontext.gregs[REG_RIP])

#else	/* no boards have such a processor: mmio_open() refuses */

int unm_bus_load(const volatile void *from)
{
	(void)*(const volatile uint64_t *)from;
	return 0;
}

#define BUS_WORKS	false

#endif

int dev_bus_load(const volatile void *from)
{
	return unm_bus_load(from) == 0 ? 0 : -EIO;
}

/* ---- The handler ------------------------------------------------------- */

static struct {
	struct hal_lock lock;
	unsigned opens;
	struct sigaction before;	/* does not change while we handle */
} g_bus;

static void pass_on(int sig, siginfo_t *info, void *context)
{
	struct sigaction dfl = { .sa_handler = SIG_DFL };

	if (g_bus.before.sa_flags & SA_SIGINFO) {
		g_bus.before.sa_sigaction(sig, info, context);
	} else if (g_bus.before.sa_handler != SIG_DFL &&
		   g_bus.before.sa_handler != SIG_IGN) {
		g_bus.before.sa_handler(sig);
	} else if (g_bus.before.sa_handler == SIG_DFL || info->si_code > 0) {
		/* the access happens again and ends the process there, with
		 * its own core; a signal that was sent comes again */
		sigaction(sig, &dfl, NULL);
		if (info->si_code <= 0)
			raise(sig);
	}
}

static void on_bus_error(int sig, siginfo_t *info, void *context)
{
#if defined(__aarch64__) || defined(__x86_64__)
	ucontext_t *uc = context;

	if (info->si_code > 0 &&
	    (uintptr_t)CONTEXT_PC(uc) == (uintptr_t)unm_bus_at) {
		CONTEXT_PC(uc) = (uintptr_t)unm_bus_failed;
		return;
	}
#endif
	pass_on(sig, info, context);
}

void dev_bus_open(void)
{
	struct sigaction sa = {
		.sa_sigaction = on_bus_error,
		.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_NODEFER | SA_RESTART,
	};

	if (!BUS_WORKS)
		return;
	hal_lock(&g_bus.lock);
	if (g_bus.opens++ == 0)
		sigaction(SIGBUS, &sa, &g_bus.before);
	hal_unlock(&g_bus.lock);
}

void dev_bus_close(void)
{
	struct sigaction now;

	if (!BUS_WORKS)
		return;
	hal_lock(&g_bus.lock);
	/* who set another one since may call ours, which stays where it is */
	if (--g_bus.opens == 0 && sigaction(SIGBUS, NULL, &now) == 0 &&
	    (now.sa_flags & SA_SIGINFO) && now.sa_sigaction == on_bus_error)
		sigaction(SIGBUS, &g_bus.before, NULL);
	hal_unlock(&g_bus.lock);
}
