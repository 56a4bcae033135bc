// SPDX-License-Identifier: BSD-2-Clause
/*
 * unm_bench.c - functions that the MPI bench programs share; see unm_bench.h.
 *
 * Everything that needs no MPI is in unm_stat.c.
 */
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "unm_bench.h"

#define MIN_ROUNDS	5
#define MIN_SKIP	1		/* behind those of the checks */

static const char usage_text[] =
	"  -m [MIN:]MAX   message sizes in bytes (suffix K, M)\n"
	"  -m A,B[,...]   these sizes only, in ascending order\n"
	"  -i N[:LARGE]   timed rounds per size (LARGE: above 8 KiB)\n"
	"  -x N[:LARGE]   warm-up rounds per size\n"
	"  -W N           messages in flight (bandwidth, message rate)\n"
	"  -p N           pairs of ranks (message rate)\n"
	"  -b             both directions at once (bandwidth)\n"
	"  -t SECONDS     fewer rounds where a size would take longer\n"
	"  -d             buffers from MPI_Alloc_mem\n"
	"  -c             check the data of every message, not only of\n"
	"                 the pass before the timed ones\n"
	"  -h             this text\n";

static void leave(struct unm_run *run, const char *prog, const char *why,
		  int code)
{
	FILE *f = code ? stderr : stdout;

	if (run->rank == 0) {
		if (why)
			fprintf(f, "%s: %s\n", prog, why);
		fprintf(f, "usage: %s [options]\n%s", prog, usage_text);
	}
	MPI_Finalize();
	exit(code);
}

static int parse_list(const char *s, struct unm_opts *o)
{
	char *end;
	size_t n;

	for (o->sizes = 0; o->sizes < UNM_SIZES; s = end + 1) {
		if (unm_parse_size(s, &end, &n) || n > INT_MAX ||
		    (o->sizes && n <= o->max))
			return -1;
		o->size[o->sizes++] = n;
		o->max = n;
		if (*end != ',')
			break;
	}
	o->min = o->size[0];
	return *end ? -1 : 0;
}

static int parse_range(const char *s, struct unm_opts *o)
{
	char *end;
	size_t n;

	if (unm_parse_size(s, &end, &n))
		return -1;
	if (*end == ':') {
		o->min = n;
		if (unm_parse_size(end + 1, &end, &n))
			return -1;
	}
	o->max = n;
	return *end || o->max > INT_MAX || o->min > o->max ? -1 : 0;
}

static int parse_counts(const char *s, int lowest, int count[2])
{
	size_t small, large;
	char *end;

	if (unm_parse_size(s, &end, &small))
		return -1;
	large = small;
	if (*end == ':' && unm_parse_size(end + 1, &end, &large))
		return -1;
	if (*end || small > INT_MAX || large > INT_MAX ||
	    (int)small < lowest || (int)large < lowest)
		return -1;
	count[0] = (int)small;
	count[1] = (int)large;
	return 0;
}

static int parse_count(const char *s, int *count)
{
	int both[2];

	if (strchr(s, ':') || parse_counts(s, 1, both))
		return -1;
	*count = both[0];
	return 0;
}

static int parse_budget(const char *s, double *budget)
{
	char *end;

	*budget = strtod(s, &end);
	return *end || end == s || !(*budget > 0) ? -1 : 0;
}

static int parse_opt(struct unm_opts *o, int c)
{
	switch (c) {
	case 'm':
		return strchr(optarg, ',') ? parse_list(optarg, o) :
			parse_range(optarg, o);
	case 'i':
		return parse_counts(optarg, 1, o->iters);
	case 'x':
		return parse_counts(optarg, 0, o->skip);
	case 'W':
		return parse_count(optarg, &o->window);
	case 'p':
		return parse_count(optarg, &o->pairs);
	case 't':
		return parse_budget(optarg, &o->budget);
	case 'b':
		o->both = true;
		return 0;
	case 'd':
		o->alloc = true;
		return 0;
	case 'c':
		o->validate = true;
		return 0;
	default:
		return -1;
	}
}

void unm_start(struct unm_run *run, int *argc, char ***argv, int min_ranks,
	       int max_ranks)
{
	const char *prog = strrchr((*argv)[0], '/');
	int c;

	prog = prog ? prog + 1 : (*argv)[0];
	MPI_Init(argc, argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &run->rank);
	MPI_Comm_size(MPI_COMM_WORLD, &run->ranks);
	opterr = 0;
	while ((c = getopt(*argc, *argv, "m:i:x:W:p:t:bcdh")) != -1) {
		if (c == 'h')
			leave(run, prog, NULL, 0);
		if (parse_opt(&run->o, c))
			leave(run, prog, "bad option or value", 2);
	}
	if (optind < *argc)
		leave(run, prog, "unexpected argument", 2);
	if (run->ranks < min_ranks || run->ranks < 2 * run->o.pairs)
		leave(run, prog, "not enough ranks", 2);
	if (run->ranks > max_ranks)
		leave(run, prog, "too many ranks", 2);
}

void unm_header(const struct unm_run *run, const char *title,
		const char *columns)
{
	if (run->rank)
		return;
	printf("# Unimem MPI %s Test (method of the OSU micro-benchmarks)\n",
	       title);
	printf("%-10s%s\n", "# Size", columns);
	fflush(stdout);
}

void unm_print_sent(struct unm_run *run)
{
	uint64_t other;

	if (run->rank == 0) {
		unm_recv(&other, sizeof(other), 1, UNM_TAG);
		printf("# sent_bytes_rank0 %llu\n# sent_bytes_rank1 %llu\n",
		       (unsigned long long)run->sent,
		       (unsigned long long)other);
		fflush(stdout);
	} else if (run->rank == 1) {
		other = run->sent + sizeof(other);
		unm_send(run, &other, sizeof(other), 0, UNM_TAG);
	}
}

size_t unm_next(const struct unm_run *run, size_t size)
{
	const struct unm_opts *o = &run->o;

	if (!o->sizes)
		return size ? 2 * size : 1;
	for (int i = 0; i < o->sizes; i++)
		if (o->size[i] > size)
			return o->size[i];
	return o->max + 1;
}

static int fit(int wanted, int least, double seconds, double round_s)
{
	double n = round_s > 0 ? seconds / round_s : wanted;

	if (n >= wanted)
		return wanted;
	if (n >= least)
		return (int)n;
	return wanted < least ? wanted : least;
}

void unm_rounds(struct unm_run *run, size_t size, double round_s, int *iters,
		int *skip)
{
	const struct unm_opts *o = &run->o;
	int large = size > UNM_LARGE;
	int n[2] = { o->iters[large], o->skip[large] };

	if (o->budget > 0) {
		n[0] = fit(n[0], MIN_ROUNDS, 0.9 * o->budget, round_s);
		n[1] = fit(n[1], MIN_SKIP, 0.1 * o->budget, round_s);
		if (run->rank == 0)
			run->sent += sizeof(n);
		MPI_Bcast(n, 2, MPI_INT, 0, MPI_COMM_WORLD);
	}
	*iters = n[0];
	*skip = n[1];
}

void *unm_buffer(const struct unm_run *run, size_t bytes)
{
	void *buf;

	if (!run->o.alloc)
		return unm_alloc(bytes);
	/* an error ends the job */
	MPI_Alloc_mem((MPI_Aint)(bytes + UNM_GUARD), MPI_INFO_NULL, &buf);
	memset(buf, 0, bytes + UNM_GUARD);
	return buf;
}

void unm_buffer_free(const struct unm_run *run, void *buf)
{
	if (run->o.alloc && buf)
		MPI_Free_mem(buf);
	else
		free(buf);
}

void unm_expect(const struct unm_run *run, const void *buf, size_t size,
		uint64_t seed)
{
	long bad = unm_check(buf, size, seed);

	if (bad < 0)
		return;
	fprintf(stderr, "rank %d: wrong data in a message of %zu bytes, "
		"first at offset %ld\n", run->rank, size, bad);
	MPI_Abort(MPI_COMM_WORLD, 3);
}
