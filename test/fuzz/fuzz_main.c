/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * fuzz_main.c - runs a fuzz target without libFuzzer: each file of its corpus,
 * test/fuzz/corpus/<name>/, as it is, then FUZZ_RUNS random changes of them.
 *
 * Unless FUZZ_RUNS is set these are 2000, or as many as 2 seconds of the
 * processor allow for a slow target. The seed is FUZZ_SEED, 1 unless set, so
 * that `make check` runs the same inputs each time. An input that breaks a rule
 * is written to <program>.crash, which libFuzzer's build of the target takes as
 * argument.
 */
#include <dirent.h>
#include <fcntl.h>
#include <limits.h>

#include "fuzz.h"
#include "lib/unit.h"

#define FILES_MAX	4096
#define LEN_MAX		32768

#pragma weak LLVMFuzzerInitialize

static struct {
	uint8_t *bytes;
	size_t len;
} corpus[FILES_MAX];
static uint32_t files;

/* The input that runs now; on_abort() writes it. */
static uint8_t now[LEN_MAX];
static size_t now_len;
static int crash_fd = -1;

static void read_file(const char *dir, const char *name)
{
	char path[2 * PATH_MAX];
	uint8_t *bytes;
	FILE *file;

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	file = fopen(path, "re");
	bytes = malloc(LEN_MAX);
	if (file == NULL || bytes == NULL || files == FILES_MAX) {
		fprintf(stderr, "cannot read %s: %s\n", path, strerror(errno));
		exit(99);
	}
	corpus[files].bytes = bytes;
	corpus[files++].len = fread(bytes, 1, LEN_MAX, file);
	fclose(file);
}

/* In the order of names, which does not depend on the file system. */
static void read_corpus(const char *dir)
{
	struct dirent **list;
	int n = scandir(dir, &list, NULL, alphasort);

	for (int i = 0; i < n; i++) {
		if (list[i]->d_name[0] != '.')
			read_file(dir, list[i]->d_name);
		free(list[i]);
	}
	if (n >= 0)
		free(list);
	if (files == 0) {
		fprintf(stderr, "no corpus in %s\n", dir);
		exit(99);
	}
}

/* Insert or remove a few bytes at `at`. */
static void resize(uint64_t *rng, size_t at)
{
	size_t n = 1 + unit_below(rng, 8);

	if (unit_below(rng, 2) == 0) {
		n = n < now_len - at ? n : now_len - at;
		memmove(now + at, now + at + n, now_len - at - n);
		now_len -= n;
	} else if (now_len + n <= LEN_MAX) {
		memmove(now + at + n, now + at, now_len - at);
		for (size_t i = 0; i < n; i++)
			now[at + i] = (uint8_t)unit_random(rng);
		now_len += n;
	}
}

/* Continue with the rest of another file. */
static void join(uint64_t *rng, size_t at)
{
	uint32_t other = unit_below(rng, files);
	size_t from = corpus[other].len;

	from = from != 0 ? unit_below(rng, (uint32_t)from) : 0;
	now_len = corpus[other].len - from;
	now_len = now_len < LEN_MAX - at ? now_len : LEN_MAX - at;
	memcpy(now + at, corpus[other].bytes + from, now_len);
	now_len += at;
}

static void change(uint64_t *rng)
{
	static const uint8_t edges[] = { 0, 1, 7, 8, 0x7f, 0x80, 0xfe, 0xff };
	size_t at = now_len != 0 ? unit_below(rng, (uint32_t)now_len) : 0;

	switch (unit_below(rng, 8)) {
	case 0:
		resize(rng, at);
		break;
	case 1:
		join(rng, at);
		break;
	case 2:
	case 3:
		if (now_len != 0)
			now[at] ^= (uint8_t)(1 << unit_below(rng, 8));
		break;
	case 4:
	case 5:
		if (now_len != 0)
			now[at] = edges[unit_below(rng, sizeof(edges))];
		break;
	default:
		if (now_len != 0)
			now[at] = (uint8_t)unit_random(rng);
		break;
	}
}

static void on_abort(int sig)
{
	if (crash_fd < 0 || write(crash_fd, now, now_len) < 0)
		_exit(1);
	signal(sig, SIG_DFL);
	raise(sig);
}

static void start(uint32_t from)
{
	now_len = corpus[from].len;
	memcpy(now, corpus[from].bytes, now_len);
}

/* Returns how many random inputs were run; limit: of the processor's time. */
static long run_all(long runs, uint64_t seed, clock_t limit)
{
	uint64_t rng = seed;
	clock_t end;

	for (uint32_t i = 0; i < files; i++) {
		start(i);
		LLVMFuzzerTestOneInput(now, now_len);
	}
	end = clock() + limit;
	for (long i = 0; i < runs; i++) {
		if (limit != 0 && clock() > end)
			return i;
		start(unit_below(&rng, files));
		for (uint32_t n = 1 + unit_below(&rng, 5); n > 0; n--)
			change(&rng);
		LLVMFuzzerTestOneInput(now, now_len);
	}
	return runs;
}

static long number(const char *name, long otherwise)
{
	const char *text = getenv(name);

	return text != NULL && *text != '\0' ? strtol(text, NULL, 0) :
		otherwise;
}

int main(int argc, char **argv)
{
	const char *src = getenv("UNM_SRCDIR"), *name = strrchr(argv[0], '/');
	char dir[PATH_MAX], crash[2 * PATH_MAX];
	long seed = number("FUZZ_SEED", 1), runs = number("FUZZ_RUNS", 0);
	clock_t limit = runs == 0 ? 2 * CLOCKS_PER_SEC : 0;

	name = name != NULL ? name + 1 : argv[0];
	name = strncmp(name, "lt-", 3) == 0 ? name + 3 : name;
	snprintf(dir, sizeof(dir), "%s/test/fuzz/corpus/%s",
		 src != NULL ? src : ".", name);
	read_corpus(dir);
	snprintf(crash, sizeof(crash), "%s.crash", argv[0]);
	crash_fd = open(crash, O_CREAT | O_TRUNC | O_RDWR | O_CLOEXEC, 0666);
	signal(SIGABRT, on_abort);
	signal(SIGSEGV, on_abort);
	if (LLVMFuzzerInitialize != NULL)
		LLVMFuzzerInitialize(&argc, &argv);
	runs = run_all(runs != 0 ? runs : 2000, (uint64_t)seed, limit);
	printf("%s: %u files of the corpus, %ld random inputs, FUZZ_SEED=%ld\n",
	       name, files, runs, seed);
	unlink(crash);
	for (uint32_t i = 0; i < files; i++)
		free(corpus[i].bytes);
	return 0;
}
