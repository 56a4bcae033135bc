/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * place.c - an example of the remote allocator of <unimem/unim_dma.h>: on which
 * node each policy allocates a buffer, and the translation between pointers of
 * this process and global addresses.
 *
 *	place [NODE [PAGES]]		(0)
 *
 * With PAGES, the process takes memory of its node until none is left, but at
 * most that many pages, and shows where UNIM_DMA_NEAREST allocates then.
 */
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <unimem/unim_dma.h>

#define PAGE		4096
#define CHUNK		8		/* pages taken at a time */

static int failed(const char *what, int error)
{
	fprintf(stderr, "place: %s: %s\n", what, unim_dma_strerror(error));
	return error;
}

/* Find the node on which a policy allocates a page, and free the page. Returns
 * 0 or -errno. */
static int node_of(enum unim_dma_policy policy, unim_node_id_t asked,
		   unim_node_id_t *node)
{
	unim_dma_buffer_t *buf;
	int error = unim_dma_alloc(PAGE, policy, asked, &buf);

	if (error != 0)
		return error;
	*node = unim_dma_buf_node(buf);
	return unim_dma_free(buf);
}

/* Print the node of a policy that needs no node. */
static int show(const char *name, enum unim_dma_policy policy)
{
	unim_node_id_t node;
	int error = node_of(policy, 0, &node);

	if (error != 0)
		return failed(name, error);
	printf("%s: node %u\n", name, node);
	return 0;
}

/* Allocate as many buffers as there are nodes, and print how many of them each
 * node has. */
static int interleaved(int nodes)
{
	unsigned int *count = calloc((size_t)nodes, sizeof(*count));
	unim_node_id_t node;
	int error = count != NULL ? 0 : -ENOMEM;

	for (int i = 0; i < nodes && error == 0; i++) {
		error = node_of(UNIM_DMA_INTERLEAVE, 0, &node);
		if (error == 0)
			count[node]++;
	}
	if (error != 0) {
		free(count);
		return failed("interleaved", error);
	}
	printf("interleaved:");
	for (int i = 0; i < nodes; i++)
		printf(" %u", count[i]);
	printf("\n");
	free(count);
	return 0;
}

/* ---- Translation -------------------------------------------------------- */

/* Write a word to a buffer by a pointer, if there is one, or by a transfer. */
static int write_word(unim_dma_buffer_t *buf, uint64_t off, uint64_t word)
{
	char *at = unim_buf_get_memory(buf);
	unim_dma_transfer_id_t id;

	if (at != NULL) {
		*(uint64_t *)(void *)(at + off) = word;
		return 0;
	}
	id = unim_dma_submit_transfer_from_mem(&word, buf, 0, off,
					       sizeof(word), NULL, NULL);
	return id == 0 ? unim_dma_error() : unim_dma_wait(id, -1);
}

/* Find a buffer by a global address that a pointer into it was translated to,
 * or by its ID where there is no pointer, and read a word of it. */
static int read_word(unim_dma_buffer_t *buf, uint64_t off, uint64_t *word)
{
	const char *at = unim_buf_get_memory(buf);
	uint64_t global = unim_get_buf_id(buf) + off;
	unim_dma_transfer_id_t id;
	unim_dma_buffer_t *found;
	int error = 0;

	if (at != NULL)
		error = unim_dma_translate(at + off, &global);
	if (error == 0)
		error = unim_dma_get(global - off, &found);
	if (error != 0)
		return error;
	id = unim_dma_submit_transfer_to_mem(found, word, off, 0,
					     sizeof(*word), NULL, NULL);
	error = id == 0 ? unim_dma_error() : unim_dma_wait(id, -1);
	unim_dma_free(found);
	return error;
}

/* Allocate a buffer on a node, write a word to it by a pointer or a transfer,
 * and read the word back by a global address. */
static int on_node(unim_node_id_t node)
{
	const uint64_t off = 8 * (node % 500 + 1), word = 4711 + node;
	uint64_t back = 0;
	unim_dma_buffer_t *buf;
	int error = unim_dma_alloc(PAGE, UNIM_DMA_NODE, node, &buf);

	if (error != 0)
		return failed("given node", error);
	error = write_word(buf, off, word);
	if (error == 0)
		error = read_word(buf, off, &back);
	if (error == 0 && (back != word || unim_dma_buf_node(buf) != node))
		error = -EIO;
	if (error == 0)
		printf("given node %u: byte %u found, %s\n", node,
		       (unsigned int)off, unim_buf_get_memory(buf) != NULL ?
		       "by a pointer" : "by its ID");
	else
		failed("translation", error);
	unim_dma_free(buf);
	return error;
}

/* ---- A node without memory ----------------------------------------------- */

/* Allocate memory of this process's node until none is left, at most that many
 * pages. unim_dma_cleanup() frees the memory. */
static int fill_up(unim_node_id_t node, uint64_t pages)
{
	uint64_t chunk = CHUNK;
	unim_dma_buffer_t *buf;
	int error = 0;

	while (pages > 0) {
		if (chunk > pages)
			chunk = pages;
		error = unim_dma_alloc(chunk * PAGE, UNIM_DMA_LOCAL, 0, &buf);
		if (error == 0)
			pages -= chunk;
		else if (error != -ENOMEM && error != -EDQUOT)
			return failed("local", error);
		else if (chunk > 1)
			chunk = 1;	/* less than a chunk may be left */
		else
			return show("nearest with room", UNIM_DMA_NEAREST);
	}
	printf("node %u still has memory\n", node);
	return 0;
}

int main(int argc, char *argv[])
{
	unim_node_id_t node = 0;
	int nodes, error;

	if (argc > 1)
		node = (unim_node_id_t)strtoul(argv[1], NULL, 0);
	error = unim_dma_init(node);
	if (error != 0) {
		failed("init", error);
		return EXIT_FAILURE;
	}
	nodes = unim_dma_nodes();
	error = show("local", UNIM_DMA_LOCAL);
	if (error == 0)
		error = show("nearest", UNIM_DMA_NEAREST);
	if (error == 0)
		error = interleaved(nodes);
	for (int i = 0; i < nodes && error == 0; i++)
		error = on_node((unim_node_id_t)i);
	if (error == 0 && argc > 2)
		error = fill_up(node, strtoull(argv[2], NULL, 0));
	unim_dma_cleanup();
	return error == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
