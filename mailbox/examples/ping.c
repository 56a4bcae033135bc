/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * ping.c - example of <unimem/mailbox.h>: sends messages to another node, which
 * sends them back, and prints how many came back and the mean round trip.
 *
 *	FI_UNIMEM_BOARD=1 ping listen 1000 &
 *	FI_UNIMEM_BOARD=0 ping 1 1000
 *
 * The opcode says what a message is: PING or PONG. The 60 bits behind it are
 * the program's: here 16 bits for the sender's node, and a number of 44 bits.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <unimem/mailbox.h>

#define PING	1			/* opcodes */
#define PONG	2
#define NODE_SHIFT 44			/* in a message, below the opcode */
#define NODE_MASK UINT64_C(0xffff)
#define NUMBER_MASK ((UINT64_C(1) << NODE_SHIFT) - 1)
#define WAIT_MS	20000			/* for a message, then give up */

static uint64_t message(unsigned opcode, int node, uint64_t number)
{
	return (uint64_t)opcode << 60 |
	       ((uint64_t)node & NODE_MASK) << NODE_SHIFT |
	       (number & NUMBER_MASK);
}

static void check(int ok, const char *what, int error)
{
	if (ok)
		return;
	fprintf(stderr, "ping: %s: %s\n", what, strerror(error));
	exit(1);
}

/* The local mailbox, with an opcode registered. */
static int open_local(unsigned opcode)
{
	struct mailbox_action_t action = { .action = 'r', .opcode = opcode };
	int fd = mailbox_open(MAILBOX_LOCAL, O_CLOEXEC);
	int ret;

	check(fd >= 0, "local mailbox", -fd);
	ret = mailbox_action(fd, &action);
	check(ret == 0, "register", -ret);
	return fd;
}

static int open_remote(int node)
{
	int fd = mailbox_open(node, O_CLOEXEC);

	check(fd >= 0, "remote mailbox", -fd);
	return fd;
}

static uint64_t receive(int fd)
{
	struct pollfd pfd = { .fd = fd, .events = POLLIN };
	uint64_t msg;

	check(poll(&pfd, 1, WAIT_MS) == 1, "no message", ETIMEDOUT);
	check(read(fd, &msg, sizeof(msg)) == sizeof(msg), "read", errno);
	return msg;
}

static void send_to(int fd, uint64_t msg)
{
	check(write(fd, &msg, sizeof(msg)) == sizeof(msg), "write", errno);
}

/* Send messages back until the sender has sent "count". */
static void do_listen(uint64_t count)
{
	int local = open_local(PING), remote = -1, self = mailbox_node();

	for (uint64_t i = 0; i < count; i++) {
		uint64_t msg = receive(local);

		if (remote < 0)
			remote = open_remote((int)(msg >> NODE_SHIFT &
						   NODE_MASK));
		send_to(remote, message(PONG, self, msg));
	}
	close(remote);
	close(local);
}

static double seconds(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (double)ts.tv_sec + (double)ts.tv_nsec / 1e9;
}

static void do_ping(int node, uint64_t count)
{
	int local = open_local(PONG), remote = open_remote(node);
	int self = mailbox_node();
	uint64_t good = 0;
	double begin = seconds();

	for (uint64_t i = 0; i < count; i++) {
		send_to(remote, message(PING, self, i));
		good += receive(local) == message(PONG, node, i);
	}
	fprintf(stderr, "round trip: %.1f us\n",
		(seconds() - begin) / (double)count * 1e6);
	printf("%" PRIu64 " of %" PRIu64 " messages came back\n", good, count);
	close(remote);
	close(local);
}

int main(int argc, char *argv[])
{
	uint64_t count = argc == 3 ? strtoull(argv[2], NULL, 10) : 0;

	if (count == 0) {
		fprintf(stderr, "usage: ping listen COUNT | ping NODE COUNT\n");
		return 2;
	}
	if (strcmp(argv[1], "listen") == 0)
		do_listen(count);
	else
		do_ping((int)strtol(argv[1], NULL, 10), count);
	return 0;
}
