/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * exchange.c - an example of <unimem/unim_dma.h>: data goes to a buffer on
 * each node and back, in order of submission; then a second process finds a
 * buffer by its ID, writes to it, and notifies the first one.
 *
 *	exchange [NODE [wait]]		(0)
 *
 * This program starts the second process, on the last node. With "wait" it
 * prints the command to start it with, on any node: on another host, for which
 * GSAS_JOB has to be the same. The first part uses the published calls only.
 */
#include <errno.h>
#include <spawn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#include <unimem/unim_dma.h>

#define BYTES	(1 << 20)
#define PEER	"--peer"		/* NODE ID */
#define WAIT_MS	20000

extern char **environ;

/* error: of unim_dma_error(), or returned by a call that returns its error */
static int failed(const char *what, int error)
{
	fprintf(stderr, "exchange: %s: %s\n", what, unim_dma_strerror(error));
	return EXIT_FAILURE;
}

/* Wait for the end of a transfer by polling its state. 0, -errno. */
static int done(unim_dma_transfer_id_t id)
{
	unim_dma_status_t status;

	if (id == 0)			/* it was not submitted */
		return unim_dma_error();
	do {
		status = unim_dma_status(id);
	} while (status == DMA_PENDING || status == DMA_STARTED);
	return unim_dma_error();
}

static void count(void *arg)
{
	__atomic_add_fetch((int *)arg, 1, __ATOMIC_RELEASE);
}

/* Data to a buffer on a node, and back. 0; -errno; -EIO: the data differ. */
static int there_and_back(unim_dma_buffer_t *local, unim_node_id_t id)
{
	unim_dma_node_t node = unim_dma_get_node(id);
	unim_dma_buffer_t *remote = unim_alloc_buf_r(BYTES, node);
	char *memory = malloc(BYTES);
	unim_dma_transfer_id_t put, get;
	int calls = 0, error = -ENOMEM;

	if (remote == NULL)
		error = unim_dma_error();
	if (remote == NULL || memory == NULL)
		goto out;
	memset(memory, (int)id + 1, BYTES);
	put = unim_dma_submit_transfer_from_mem(memory, remote, 0, 0, BYTES,
						NULL, NULL);
	error = done(put);
	if (error != 0)
		goto out;
	get = unim_dma_submit_transfer(remote, local, 0, 0, BYTES, count,
				       &calls);
	error = done(get);
	while (get != 0 && __atomic_load_n(&calls, __ATOMIC_ACQUIRE) == 0)
		;
	if (error == 0 && memcmp(memory, unim_buf_get_memory(local), BYTES) !=
	    0)
		error = -EIO;
out:
	unim_free_buf(remote);
	free(memory);
	return error;
}

/* ---- Two processes ----------------------------------------------------- */

/* The second process: write a text to the buffer, then add 1 to its last
 * word. */
static int peer(const char *node, const char *id)
{
	static char text[] = "hello";
	struct unim_dma_request request = {
		.src_mem = text, .size = sizeof(text),
		.notify = 1, .notify_off = BYTES - 8,
	};
	unim_dma_transfer_id_t transfer;
	int error = unim_dma_init((unim_node_id_t)strtoul(node, NULL, 0));

	if (error != 0)
		return failed("peer: init", error);
	request.dst = unim_get_buf(strtoull(id, NULL, 0));
	if (request.dst == NULL)
		return failed("peer: buffer", unim_dma_error());
	error = unim_dma_submit(&request, &transfer);
	if (error == 0)
		error = unim_dma_wait(transfer, WAIT_MS);
	if (error != 0)
		return failed("peer: transfer", error);
	unim_dma_cleanup();
	return EXIT_SUCCESS;
}

/* Start this program as the second process on a node. */
static int start_peer(const char *node, const char *id, pid_t *pid)
{
	char role[] = PEER;
	char *argv[] = { "exchange", role, (char *)node, (char *)id, NULL };

	setenv("FI_UNIMEM_BOARD", node, 1);
	return posix_spawn(pid, "/proc/self/exe", NULL, NULL, argv, environ);
}

/* node: of the second process; -1: a user starts it. */
static int with_peer(unim_dma_buffer_t *local, int node)
{
	char number[16], id[24];
	int status = 0, ret;
	pid_t pid = 0;

	snprintf(number, sizeof(number), "%d", node);
	snprintf(id, sizeof(id), "0x%llx",
		 (unsigned long long)unim_get_buf_id(local));
	memset(unim_buf_get_memory(local), 0, BYTES);
	if (node < 0)
		printf("exchange " PEER " NODE %s\n", id);
	else if (start_peer(number, id, &pid) != 0)
		return 0;
	fflush(stdout);
	ret = unim_dma_wait_notify(local, BYTES - 8, 1, WAIT_MS);
	if (ret == 0 && node >= 0)
		printf("node %d says ", node);
	if (ret == 0)
		printf("%s\n", (const char *)unim_buf_get_memory(local));
	else
		failed("notification", ret);
	if (pid != 0)
		waitpid(pid, &status, 0);
	return ret == 0 && status == 0;
}

int main(int argc, char *argv[])
{
	unim_node_id_t node = 0;
	unim_dma_buffer_t *local;
	int nodes, error, ok = 1;
	int wait = argc > 2 && strcmp(argv[2], "wait") == 0;

	if (argc == 4 && strcmp(argv[1], PEER) == 0)
		return peer(argv[2], argv[3]);
	if (argc > 1)
		node = (unim_node_id_t)strtoul(argv[1], NULL, 0);
	error = unim_dma_init(node);
	if (error != 0)
		return failed("init", error);
	local = unim_alloc_buf_l(BYTES);
	if (local == NULL)
		return failed("buffer", unim_dma_error());
	nodes = unim_dma_nodes();
	for (int i = 0; i < nodes && ok; i++) {
		error = there_and_back(local, (unim_node_id_t)i);
		ok = error == 0;
		if (ok)
			printf("node %d: %d bytes there and back\n", i, BYTES);
		else
			failed("there and back", error);
	}
	if (ok)
		ok = with_peer(local, wait ? -1 : nodes - 1);
	unim_free_buf(local);
	unim_dma_cleanup();
	return ok ? EXIT_SUCCESS : EXIT_FAILURE;
}
