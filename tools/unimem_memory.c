/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * unimem_memory.c - unimem_info --memory: the memory of the boards by owner.
 *
 * The services are asked for their regions: gsasctl(1) lists single regions,
 * this file sums them up. Memory belongs to a process (buffers of unim_dma(3)),
 * or to a job. A process is printed by its number only: the process that has
 * this number here may be another one, as where the owner is in another process
 * namespace. No service is started.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client/gsas_job.h"
#include "client/gsas_port.h"
#include "unimem_memory.h"

#define LIST_MAX	32		/* regions of a LIST request */

/* The regions of an owner on one board. */
struct owner {
	bool process;			/* number is that of a process, not of a
					 * job */
	uint32_t number;
	uint64_t regions, pages;
};

/* The owners on one board, in the order in which they were found. */
struct owners {
	struct owner *at;
	size_t count, size;
};

/* ---- Reading ----------------------------------------------------------- */

static int add(struct owners *owners, const struct gsas_list_entry *e)
{
	struct owner new = {
		.process = (e->attr & GSAS_ATTR_OWNED) != 0,
		.number = e->attr & GSAS_ATTR_OWNED ?
			GSAS_ATTR_OWNER(e->attr) : e->job,
	};
	size_t i = 0;

	while (i < owners->count && (owners->at[i].process != new.process ||
				     owners->at[i].number != new.number))
		i++;
	if (i == owners->size) {
		size_t size = 2 * owners->size + 16;
		void *more = realloc(owners->at, size * sizeof(new));

		if (more == NULL)
			return -ENOMEM;
		owners->at = more;
		owners->size = size;
	}
	if (i == owners->count)
		owners->at[owners->count++] = new;
	owners->at[i].regions++;
	owners->at[i].pages += e->pages;
	return 0;
}

static int read_owners(struct gsas_conn *conn, struct owners *owners)
{
	struct gsas_list_entry list[LIST_MAX];
	struct gsas_request request;
	uint64_t address = 0;
	int ret;

	owners->count = 0;
	do {
		struct gsas_msg msg = {
			.opcode = GSAS_LIST, .address = address,
			.arg1 = LIST_MAX, .into = list, .len = sizeof(list),
		};

		ret = gsas_port_ask(conn, &msg, &request);
		if (ret == 0 && request.result > LIST_MAX)
			ret = -EPROTO;
		for (uint64_t i = 0; ret == 0 && i < request.result; i++)
			ret = add(owners, &list[i]);
		address = request.more;
	} while (ret == 0 && address != 0);
	return ret;
}

static int read_stat(struct gsas_conn *conn, struct gsas_stat *stat)
{
	struct gsas_msg msg = {
		.opcode = GSAS_STAT, .into = stat, .len = sizeof(*stat),
	};
	struct gsas_request request;

	return gsas_port_ask(conn, &msg, &request);
}

/* ---- Printing ---------------------------------------------------------- */

static void print_text(int board, const struct gsas_stat *stat,
		       const struct owners *owners)
{
	printf("%5d %-7s %10s %8" PRIu64 " %16" PRIu64 "\n", board, "all", "",
	       stat->regions, stat->pages * GSAS_PAGE_BYTES);
	for (size_t i = 0; i < owners->count; i++) {
		const struct owner *o = &owners->at[i];

		printf("%5d %-7s %10u %8" PRIu64 " %16" PRIu64 "\n", board,
		       o->process ? "process" : "job",
		       (unsigned int)o->number, o->regions,
		       o->pages * GSAS_PAGE_BYTES);
	}
}

static void print_json(int board, const struct gsas_stat *stat,
		       const struct owners *owners, bool first)
{
	printf("%s{\"board\":%d,\"regions\":%" PRIu64 ",\"bytes\":%" PRIu64
	       ",\"bytes_max\":%" PRIu64 ",\"owners\":[", first ? "" : ",",
	       board, stat->regions, stat->pages * GSAS_PAGE_BYTES,
	       stat->pages_max * GSAS_PAGE_BYTES);
	for (size_t i = 0; i < owners->count; i++) {
		const struct owner *o = &owners->at[i];

		printf("%s{\"%s\":%u,\"regions\":%" PRIu64 ",\"bytes\":%"
		       PRIu64 "}", i == 0 ? "" : ",",
		       o->process ? "process" : "job", (unsigned int)o->number,
		       o->regions, o->pages * GSAS_PAGE_BYTES);
	}
	fputs("]}", stdout);
}

/* ---- Boards ------------------------------------------------------------ */

/* 0; 2 if the memory of a board that has a service cannot be read, which does
 * not hide the boards after it; 1 if no board has a service. */
static int show_boards(struct gsas_thread *port, int board, bool json)
{
	struct owners owners = { 0 };
	struct gsas_conn *conn;
	struct gsas_stat stat;
	int shown = 0, failed = 0;

	for (int b = 0; b < (int)port->boards; b++) {
		int ret;

		if (board >= 0 && b != board)
			continue;
		ret = gsas_port_conn(port, b, &conn);
		if (ret == -ECONNREFUSED)
			continue;
		if (ret == 0)
			ret = read_owners(conn, &owners);
		if (ret == 0)
			ret = read_stat(conn, &stat);
		if (ret != 0) {
			fprintf(stderr, "unimem_info: board %d: %s\n", b,
				strerror(-ret));
			failed++;
		} else if (json) {
			print_json(b, &stat, &owners, shown++ == 0);
		} else {
			print_text(b, &stat, &owners);
			shown++;
		}
	}
	free(owners.at);
	return failed > 0 ? 2 : shown == 0;
}

int memory_show(int board, bool json)
{
	struct gsas_thread *port;
	int ret = gsas_job_own();

	if (ret == 0)
		ret = gsas_port_open(PACKAGE_VERSION, -1, &port);
	if (ret != 0) {
		fprintf(stderr, "unimem_info: cannot open an interface: %s\n",
			strerror(-ret));
		return 2;
	}
	port->starts = false;
	if (json)
		fputs("{\"memory\":[", stdout);
	else
		printf("%5s %-7s %10s %8s %16s\n", "BOARD", "OWNER", "NUMBER",
		       "REGIONS", "BYTES");
	ret = show_boards(port, board, json);
	if (json)
		puts("]}");
	if (ret == 1)
		fputs("unimem_info: no board has a service\n", stderr);
	gsas_port_close(port);
	return ret;
}
