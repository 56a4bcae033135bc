// SPDX-License-Identifier: BSD-2-Clause
/*
 * unm_peers.c - what the peers of a rank cost on several hosts: memory,
 * descriptors, and connections that were begun, after a pattern of messages.
 *
 * usage: unm_peers PATTERN ROUNDS HOLD_MS FOLDER
 *
 * PATTERN: none, ring, halo2, halo3, dissemination or alltoall. Each is a list
 * of shifts: in a shift, each rank sends BYTES to one rank and receives from
 * another one (bench/scale_model.py has the same lists). ROUNDS times the list;
 * then HOLD_MS of progress, in which idle connections may be closed. Each rank
 * writes a line into FOLDER, so that the measurement itself sends no message:
 * rank, host, descriptors, TCP sockets, KiB of private memory, KiB of shared
 * memory of the machine, pages in TCP buffers of the machine, connections begun
 * on this host, ms of the pattern. A first line has the same after MPI_Init.
 */
#include <mpi.h>
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define BYTES		1024
#define SHIFTS_MAX	4096

static int rank, ranks, nshifts;
static struct shift {
	int to, from;
} shifts[SHIFTS_MAX];

/* ---- Patterns ---------------------------------------------------------- */

static void shift(int to, int from)
{
	if (nshifts == SHIFTS_MAX || to == rank)
		return;
	shifts[nshifts++] = (struct shift){ to, from };
}

/* Both directions along a dimension of a torus: `stride` ranks to the next
 * place, `size` places. */
static void torus(int stride, int size)
{
	int at = rank / stride % size, base = rank - at * stride;
	int up = base + (at + 1) % size * stride;
	int down = base + (at + size - 1) % size * stride;

	if (size > 1)
		shift(up, down);
	if (size > 2)
		shift(down, up);
}

/* The largest divisor of n that is at most the root-th root of it. */
static int divisor(int n, int root)
{
	int best = 1;

	for (int d = 1; (root == 2 ? d * d : d * d * d) <= n; d++)
		if (n % d == 0)
			best = d;
	return best;
}

static void make_shifts(const char *pattern)
{
	int x = 1, y = 1;

	if (strcmp(pattern, "alltoall") == 0) {
		for (int d = 1; d < ranks; d++)
			shift((rank + d) % ranks, (rank + ranks - d) % ranks);
	} else if (strcmp(pattern, "dissemination") == 0) {
		for (int d = 1; d < ranks; d *= 2)
			shift((rank + d) % ranks, (rank + ranks - d) % ranks);
	} else if (strcmp(pattern, "none") != 0) {
		if (strcmp(pattern, "halo3") == 0)
			x = divisor(ranks, 3);
		if (strncmp(pattern, "halo", 4) == 0)
			y = divisor(ranks / x, 2);
		torus(1, x);
		torus(x, y);
		torus(x * y, ranks / x / y);
	}
}

/* ---- Figures ----------------------------------------------------------- */

/* The number behind a name at the begin of a line of a file of /proc. */
static long number(const char *path, const char *name)
{
	FILE *f = fopen(path, "re");
	char line[256];
	long found = -1;

	while (f && found < 0 && fgets(line, sizeof(line), f))
		if (strncmp(line, name, strlen(name)) == 0)
			found = atol(line + strlen(name));
	if (f)
		fclose(f);
	return found;
}

/* Connections that this host has begun: ActiveOpens, the fifth number of the
 * second line "Tcp:". */
static long opens(void)
{
	FILE *f = fopen("/proc/self/net/snmp", "re");
	char line[512];
	long n = -1;

	while (f && fgets(line, sizeof(line), f))
		sscanf(line, "Tcp: %*d %*d %*d %*d %ld", &n);
	if (f)
		fclose(f);
	return n;
}

/* Pages of the buffers of TCP: the last number of the line "TCP:". */
static long buffers(void)
{
	FILE *f = fopen("/proc/self/net/sockstat", "re");
	char line[256], *at;
	long n = -1;

	while (f && fgets(line, sizeof(line), f)) {
		at = strstr(line, " mem ");
		if (strncmp(line, "TCP:", 4) == 0 && at)
			n = atol(at + 5);
	}
	if (f)
		fclose(f);
	return n;
}

static int descriptors(int *tcp)
{
	DIR *dir = opendir("/proc/self/fd");
	struct dirent *e;
	int n = -1;		/* not that of the folder */

	*tcp = 0;
	while (dir && (e = readdir(dir))) {
		socklen_t len = sizeof(int);
		int domain = 0;

		n += e->d_name[0] != '.';
		getsockopt(atoi(e->d_name), SOL_SOCKET, SO_DOMAIN, &domain,
			   &len);
		*tcp += domain == AF_INET || domain == AF_INET6;
	}
	if (dir)
		closedir(dir);
	return n;
}

static void report(const char *folder, const char *name, double ms)
{
	static const char rollup[] = "/proc/self/smaps_rollup";
	char path[512];
	struct stat st = { 0 };
	int tcp, fds = descriptors(&tcp);
	FILE *f;

	stat("/proc/self/ns/net", &st);
	snprintf(path, sizeof(path), "%s/%s.%d", folder, name, rank);
	f = fopen(path, "we");
	if (!f) {
		perror(path);
		MPI_Abort(MPI_COMM_WORLD, 1);
		return;
	}
	fprintf(f, "%d %lu %d %d %ld %ld %ld %ld %.1f\n", rank,
		(unsigned long)st.st_ino, fds, tcp,
		number(rollup, "Pss_Anon:"),
		number("/proc/meminfo", "Shmem:"), buffers(), opens(), ms);
	fclose(f);
}

static double now_ms(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (double)ts.tv_sec * 1e3 + (double)ts.tv_nsec / 1e6;
}

int main(int argc, char **argv)
{
	static char out[BYTES], in[BYTES];
	double start, end;
	int flag;

	if (argc != 5) {
		fprintf(stderr, "usage: unm_peers PATTERN ROUNDS HOLD_MS "
			"FOLDER\n");
		return 2;
	}
	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &ranks);
	make_shifts(argv[1]);
	report(argv[4], "init", 0);
	start = now_ms();
	for (int round = 0; round < atoi(argv[2]); round++)
		for (int i = 0; i < nshifts; i++)
			MPI_Sendrecv(out, BYTES, MPI_BYTE, shifts[i].to, i, in,
				     BYTES, MPI_BYTE, shifts[i].from, i,
				     MPI_COMM_WORLD, MPI_STATUS_IGNORE);
	end = now_ms();
	while (now_ms() < end + atoi(argv[3])) {
		MPI_Iprobe(MPI_ANY_SOURCE, 1 << 20, MPI_COMM_WORLD, &flag,
			   MPI_STATUS_IGNORE);
		usleep(1000);
	}
	report(argv[4], "end", end - start);
	MPI_Finalize();
	return 0;
}
