/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * hal_dev_bus.c - a load that survives a bus error.
 *
 * A load from a board that does not answer may end in a bus error, which Linux
 * reports to the thread by SIGBUS. The action for a signal belongs to the whole
 * process. The handler is therefore installed only while a kernel device is
 * open (FI_UNIMEM_HAL=dev, never in the emulation or the register model), and
 * acts on one instruction only: the load of dev_bus_load(), which it knows by
 * its address. It passes every other SIGBUS to the handler that was installed
 * before. It reads and writes nothing but the interrupted context.
 *
 * docs/porting.md, section 6, says which failures this does not cover, among
 * them a bus error in a thread that blocks SIGBUS.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <signal.h>
#include <stdbool.h>
#include <string.h>
#include <ucontext.h>

#include "hal/dev/hal_dev_bus.h"
#include "hal/hal_lock.h"
#include "hal/hal_log.h"

/* ---- The load ---------------------------------------------------------- */

/* Returns 0, or 1 if the handler has continued it at unm_bus_failed. */
int unm_bus_load(const volatile void *from)
	__attribute__((visibility("hidden")));
extern const char unm_bus_at[] __attribute__((visibility("hidden")));
extern const char unm_bus_failed[] __attribute__((visibility("hidden")));

#if defined(__aarch64__)

/* The "and" depends on the value, so the load is over before the return. */
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

#else	/* no board has such a processor: mmio_open() refuses it */

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

#define INSTALLS	4

/*
 * The state of the process. Suppose that another library installs a handler
 * over this one and passes signals on to it: then this handler stays in that
 * chain after dev_bus_close(). If the same function were installed again, over
 * the other library's, the two would call each other for ever. Each
 * installation therefore is a function of its own, with the action that it
 * replaced.
 */
static struct {
	struct hal_lock lock;		/* protects opens and used */
	unsigned opens;			/* open devices */
	unsigned used;			/* handlers installed so far that may
					 * still be in a chain */
	struct sigaction before[INSTALLS];	/* what handler n replaced;
						 * constant while n < used */
} g_bus;

/* Was the signal caused by an access of this thread, not sent by a process? */
static bool at_access(const siginfo_t *info)
{
	return info->si_code > 0 && info->si_code != BUS_MCEERR_AO;
}

/* Do what the action would have done that was in force before. */
static void pass_on(const struct sigaction *to, int sig, siginfo_t *info,
		    void *context)
{
	struct sigaction dfl = { .sa_handler = SIG_DFL };

	if (to->sa_flags & SA_SIGINFO) {
		to->sa_sigaction(sig, info, context);
	} else if (to->sa_handler != SIG_DFL && to->sa_handler != SIG_IGN) {
		to->sa_handler(sig);
	} else if (to->sa_handler == SIG_DFL || at_access(info)) {
		/* Return to the access: it fails again and ends the process
		 * with a core dump at the right place. A signal that was sent
		 * is raised again for the same end. */
		sigaction(sig, &dfl, NULL);
		if (!at_access(info))
			raise(sig);
	}
}

static void on_bus_error(unsigned install, int sig, siginfo_t *info,
			 void *context)
{
#if defined(__aarch64__) || defined(__x86_64__)
	ucontext_t *uc = context;

	if (at_access(info) &&
	    (uintptr_t)CONTEXT_PC(uc) == (uintptr_t)unm_bus_at) {
		CONTEXT_PC(uc) = (uintptr_t)unm_bus_failed;
		return;
	}
#endif
	pass_on(&g_bus.before[install], sig, info, context);
}

#define HANDLER(n)						\
static void handler_##n(int sig, siginfo_t *info, void *context)	\
{								\
	on_bus_error(n, sig, info, context);			\
}

HANDLER(0)
HANDLER(1)
HANDLER(2)
HANDLER(3)

typedef void (*handler_fn)(int sig, siginfo_t *info, void *context);

static const handler_fn handlers[INSTALLS] = {
	handler_0, handler_1, handler_2, handler_3,
};

/* The number of the handler, INSTALLS if it is not in this file. */
static unsigned number_of(const struct sigaction *sa)
{
	unsigned n = 0;

	while (n < INSTALLS && !((sa->sa_flags & SA_SIGINFO) &&
				 sa->sa_sigaction == handlers[n]))
		n++;
	return n;
}

static void install(void)
{
	struct sigaction now, sa = {
		.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_NODEFER | SA_RESTART,
	};
	unsigned n;

	sigaction(SIGBUS, NULL, &now);
	n = number_of(&now);
	if (n < INSTALLS) {
		/* The application has installed handler n again, which it had
		 * saved. Handlers may be installed over it, so do not use it
		 * for another installation. */
		if (g_bus.used <= n)
			g_bus.used = n + 1;
		return;
	}
	if (g_bus.used == INSTALLS) {
		hal_log(0, "SIGBUS was taken from the library %d times: a bus "
			"error of a board may end this process", INSTALLS);
		return;
	}
	/* The handler may run as soon as it is installed. */
	g_bus.before[g_bus.used] = now;
	sa.sa_sigaction = handlers[g_bus.used++];
	sigaction(SIGBUS, &sa, NULL);
}

/* Restore the previous action, unless another handler was installed over this
 * one: that handler may call it. */
static void remove_handler(void)
{
	struct sigaction now;

	sigaction(SIGBUS, NULL, &now);
	if (number_of(&now) == g_bus.used - 1)
		sigaction(SIGBUS, &g_bus.before[--g_bus.used], NULL);
}

void dev_bus_open(void)
{
	if (!BUS_WORKS)
		return;
	hal_lock(&g_bus.lock);
	if (g_bus.opens++ == 0)
		install();
	hal_unlock(&g_bus.lock);
}

void dev_bus_close(void)
{
	if (!BUS_WORKS)
		return;
	hal_lock(&g_bus.lock);
	if (--g_bus.opens == 0)
		remove_handler();
	hal_unlock(&g_bus.lock);
}
