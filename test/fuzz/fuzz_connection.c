/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * fuzz_connection.c - fuzz target: a process that connects to an interface of
 * the emulation and sends arbitrary messages and descriptors
 *
 * Malformed messages must be refused. The interface must continue to exchange
 * packets with a correct peer, and keep no descriptor of the process after that
 * has ended.
 *
 * The input is a list of messages. A message has one byte of flags, one byte
 * for each of its descriptors, and bytes that replace those of a message that
 * would be correct there.
 *
 * Run it with -print_funcs=0, as test/fuzz/run does: descriptors that libFuzzer
 * itself opens later, to print names of functions, would be counted too.
 */
#include <sys/pidfd.h>
#include <sys/socket.h>

#include "lib/connect_attempts.h"

#include "fuzz.h"

#define MESSAGES_MAX	16	/* of one connection */
#define PATCHES_MAX	8	/* places of a message that are replaced */

enum {
	F_RAW = 1,		/* no correct message below the bytes */
	F_LEN = 2,		/* another length */
	F_FDS = 4,		/* other descriptors */
	F_CLOSE = 8,		/* hang up, go on with a new connection */
	F_PUMP = 16,		/* let the interface read it first */
};

static void no_log(int level, const char *line)
{
	(void)level;
	(void)line;
}

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	(void)argc;
	(void)argv;
	hal_log_set(no_log);
	attempts_setup(NULL);
	return 0;
}

static int any_fd(uint8_t kind)
{
	switch (kind % 8) {
	case 0:
		return attempt_pipe();
	case 1:
		return pidfd_open(getpid(), 0);
	case 2:
		return attempt_socket(SOCK_DGRAM);
	case 3:
		return memfd_create("any", MFD_CLOEXEC);
	case 4:
		return attempt_link(4096);
	case 5:
		return attempt_link(
			((struct hal_emu *)attempts.hal)->geo.bytes);
	case 6:
		return attempt_socket(SOCK_SEQPACKET);
	default:
		return attempt_file();
	}
}

static void other_fds(struct fuzz_input *in, struct attempt *l)
{
	uint8_t n = (uint8_t)fuzz_take(in, 1) % (ATTEMPT_FDS + 1);

	attempt_close_fds(l);
	for (int i = 0; i < n; i++)
		attempt_put_fd(l, i, any_fd((uint8_t)fuzz_take(in, 1)));
}

/* A correct hello, or a message of the type the input names. */
static struct attempt base(struct fuzz_input *in, const struct hal_addr *from)
{
	static const size_t lens[] = {
		sizeof(struct emu_head), sizeof(struct emu_mem_msg),
		sizeof(struct emu_link_msg), sizeof(struct emu_hello),
	};
	uint8_t type = (uint8_t)fuzz_take(in, 1) % (EMU_BYE + 3);
	struct attempt l;

	if (type == EMU_HELLO)
		return attempt_hello(from, &attempts.v->addr);
	memset(&l, 0, sizeof(l));
	l.len = lens[fuzz_take(in, 1) % 4];
	l.m.head = (struct emu_head){ EMU_MAGIC, EMU_WIRE, type,
				      (uint32_t)l.len, 0 };
	if (l.len == sizeof(struct emu_link_msg))
		l.m.link.geo = ((struct hal_emu *)attempts.hal)->geo;
	return l;
}

static struct attempt message(struct fuzz_input *in, uint8_t flags,
			      const struct hal_addr *from)
{
	struct attempt l = base(in, from);
	uint8_t *bytes = (uint8_t *)&l.m;

	if (flags & F_RAW) {
		fuzz_copy(in, &l.m, sizeof(l.m));
		fuzz_copy(in, l.more, sizeof(l.more));
	} else {
		uint8_t n = (uint8_t)fuzz_take(in, 1) % PATCHES_MAX;

		for (; n > 0; n--) {
			size_t at = fuzz_take(in, 1) % sizeof(l.m);

			bytes[at] = (uint8_t)fuzz_take(in, 1);
		}
	}
	if (flags & F_LEN)
		l.len = fuzz_take(in, 1) % (sizeof(l.m) + sizeof(l.more) + 1);
	if (flags & F_FDS)
		other_fds(in, &l);
	return l;
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
	struct fuzz_input in = { bytes, len };
	static unsigned int runs;
	struct hal_addr from;
	int conn = -1;

	if (attempts.hal == NULL)
		return 0;
	from = attempt_addr(1);
	for (int i = 0; i < MESSAGES_MAX && in.len > 0; i++) {
		uint8_t flags = (uint8_t)fuzz_take(&in, 1);
		struct attempt l = message(&in, flags, &from);

		if (conn < 0)
			conn = attempt_connect(&attempts.v->addr);
		attempt_send(conn, &l);
		if (flags & F_PUMP)
			attempts_pump();
		if (flags & F_CLOSE) {
			close(conn);
			conn = -1;
		}
	}
	if (conn >= 0)
		close(conn);
	ATTEMPTS_UNTIL(attempts.dead >= attempts.inbound);
	if (runs++ % 64 == 0)
		attempts_closed();	/* with descriptors counted, slow */
	else
		attempts_exchange();
	return 0;
}
