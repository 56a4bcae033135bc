/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * gsas_job.c - the job to which this process belongs, its groups, and the lock
 * of the process.
 *
 * The environment variable GSAS_JOB has the key of the job. If it is not set,
 * the library makes a key when it is loaded, of what a launcher gives
 * (gsas_launcher.c) or at random, and sets the variable for the processes that
 * this one starts. At the first call it would be too late:
 * threads may read the environment then, and children that were started before
 * would make keys of their own.
 */
#include <errno.h>
#include <inttypes.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include <rdma/fi_errno.h>

#include "client/gsas_job.h"
#include "client/gsas_launcher.h"
#include "client/gsas_log.h"
#include "common/gsas_hold.h"
#include "gsas.h"

#define DIGITS	16			/* digits of a word of the key */

static uint64_t job_key[2];
static int job_status;			/* 0, or -errno: there is no key */
static int job_held = -1;		/* descriptor of gsas_hold.h */
static _Atomic bool job_alone;		/* a random key in spite of a launcher,
					 * which is not logged yet */
static _Atomic bool job_split;		/* another key on each host, which is
					 * not logged yet */

static bool parse_word(const char *text, uint64_t *word)
{
	char digits[DIGITS + 1], *end;

	memcpy(digits, text, DIGITS);
	digits[DIGITS] = '\0';
	if (strspn(digits, "0123456789abcdefABCDEF") != DIGITS)
		return false;
	*word = strtoull(digits, &end, 16);
	return true;
}

/* Keep the pages of the job from becoming orphans while this process or a
 * forked child lives. */
static void hold_job(void)
{
	job_held = gsas_hold_open();
	if (job_held >= 0)
		(void)gsas_hold_take(job_held, geteuid(), job_key);
}

int gsas_job_own(void)
{
	if (job_held >= 0)
		close(job_held);
	job_held = -1;
	atomic_store(&job_alone, false);
	atomic_store(&job_split, false);
	job_status = getrandom(job_key, sizeof(job_key), 0) ==
		     sizeof(job_key) ? 0 : -errno;
	return job_status;
}

static int make_key(void)
{
	char text[2 * DIGITS + 1];
	int ret;

	if (!gsas_launcher_key(job_key)) {
		ret = gsas_job_own();
		if (ret != 0)
			return ret;
		atomic_store(&job_alone, gsas_launcher_evident());
	} else {
		atomic_store(&job_split, gsas_launcher_split());
	}
	snprintf(text, sizeof(text), "%016" PRIx64 "%016" PRIx64, job_key[0],
		 job_key[1]);
	return setenv("GSAS_JOB", text, 1) == 0 ? 0 : -errno;
}

__attribute__((constructor))
static void load(void)
{
	const char *text = secure_getenv("GSAS_JOB");

	if (text == NULL || *text == '\0')
		job_status = make_key();
	else if (strlen(text) != 2 * DIGITS ||
		 !parse_word(text, &job_key[0]) ||
		 !parse_word(text + DIGITS, &job_key[1]))
		job_status = -FI_EINVAL;
	if (job_status == 0)
		hold_job();
}

int gsas_job_key(uint64_t key[2])
{
	if (job_status == -FI_EINVAL)
		gsas_log("GSAS_JOB is not the key of a job, 32 hexadecimal "
			 "digits: unset it, or give all processes the same");
	else if (job_status != 0)
		gsas_log("no key for a job: %s", strerror(-job_status));
	else if (atomic_exchange(&job_alone, false))
		gsas_log("a launcher has started this process, but nothing "
			 "names its job: the process is a job of its own; to "
			 "share memory give all processes the same GSAS_JOB");
	memcpy(key, job_key, sizeof(job_key));
	return job_status;
}

void gsas_job_leaves_host(void)
{
	if (atomic_exchange(&job_split, false))
		gsas_log("the ranks that mpiexec has started on other hosts "
			 "belong to other jobs: to share memory give all "
			 "processes the same GSAS_JOB (gsasctl new-job)");
}

/* ---- The lock of the process --------------------------------------------- */

static _Atomic int holder;		/* process that has the lock, 0: none */

/* A child that was forked while another thread had the lock finds a holder that
 * is not the child, and takes the lock over. It may find a list in the middle
 * of a change, so one store of a next pointer links or unlinks an entry, and
 * the child follows next pointers only. */
void gsas_lock(void)
{
	int self = (int)getpid(), seen = 0;

	/* pairs with the release in gsas_unlock() */
	while (!atomic_compare_exchange_strong_explicit(&holder, &seen, self,
			memory_order_acquire, memory_order_relaxed)) {
		if (seen == self) {
			sched_yield();
			seen = 0;
		}
	}
}

void gsas_unlock(void)
{
	/* pairs with the acquire in gsas_lock() */
	atomic_store_explicit(&holder, 0, memory_order_release);
}

/* ---- Groups -------------------------------------------------------------- */

static struct {
	_Atomic uint32_t count;
	uint64_t name[GSAS_GROUPS][2];
} groups;

uint32_t gsas_group_count(void)
{
	/* pairs with the release in add(): the names are stored */
	return atomic_load_explicit(&groups.count, memory_order_acquire);
}

void gsas_group_name(uint32_t index, uint64_t name[2])
{
	memcpy(name, groups.name[index], sizeof(groups.name[index]));
}

static int add(const uint64_t name[2], uint32_t *index)
{
	uint32_t count = gsas_group_count();

	for (*index = 0; *index < count; ++*index)
		if (memcmp(groups.name[*index], name, 16) == 0)
			return 0;
	if (count == GSAS_GROUPS)
		return -EDQUOT;
	memcpy(groups.name[count], name, 16);
	/* pairs with the acquire in gsas_group_count() */
	atomic_store_explicit(&groups.count, count + 1, memory_order_release);
	return 0;
}

int gsas_group_index(const char *name, uint32_t *index)
{
	size_t len = name == NULL ? 0 : strnlen(name, 17);
	uint64_t key[2] = { 0 };
	int ret;

	if (len == 0 || len > sizeof(key))
		return -FI_EINVAL;
	memcpy(key, name, len);
	gsas_lock();
	ret = add(key, index);
	gsas_unlock();
	return ret;
}

/* Each connection sends the group to its service before its next request. */
int gsas_join(const char *group)
{
	uint32_t index;

	return gsas_group_index(group, &index);
}
