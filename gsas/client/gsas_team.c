/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * gsas_team.c - teams: processes of a job that meet at barriers.
 *
 * Member 0 allocates a page and gives it a name in its job (NAME); the other
 * members find it by the name. gsas_team.h has the layout of the page.
 *
 * A barrier is two words. One counts arrivals and is never reset: the member
 * whose arrival makes it n times the number of members is the last one at
 * barrier n. This member changes the second word from n - 1 to n, for which the
 * other members wait.
 *
 * A member that gives up sets a bit of the second word. So either all members
 * pass a barrier or none does, and the other members need not wait for their
 * own time-outs. Where boards are emulated a member also has a lock, which the
 * kernel releases when its process ends.
 *
 * gsas_symmetric.c allocates memory for all members.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "client/gsas_complete.h"
#include "client/gsas_conn.h"
#include "client/gsas_connect.h"
#include "client/gsas_launcher.h"
#include "client/gsas_signal.h"
#include "client/gsas_team.h"
#include "client/gsas_thread.h"
#include "client/gsas_wait.h"
#include "common/gsas_hold.h"
#include "util/unm_clock.h"

#define CHECK_MS	100		/* between checks for ended members */
#define AGAIN		1	/* not an error: look up the name again */

static gsas_addr word_at(const struct gsas_team *team, uint64_t word)
{
	return team->page + word * sizeof(uint64_t);
}

static gsas_addr slot_word(const struct gsas_team *team, uint32_t member,
			   uint64_t word)
{
	return word_at(team, TEAM_SLOTS + (uint64_t)member * SLOT_WORDS + word);
}

/* ---- Time ---------------------------------------------------------------- */

/* 0: no deadline */
static uint64_t deadline_of(int ms)
{
	return ms < 0 ? 0 : unm_now_ns() + (uint64_t)ms * 1000000;
}

/* Milliseconds to the deadline, CHECK_MS at most. 0: it has passed. */
static int slice(uint64_t deadline)
{
	uint64_t now = unm_now_ns(), left;

	if (deadline == 0)
		return CHECK_MS;
	left = now < deadline ? (deadline - now) / 1000000 + 1 : 0;
	return left < CHECK_MS ? (int)left : CHECK_MS;
}

/* ---- Members ------------------------------------------------------------- */

/* The word by which this member says that it has come, and from which board. */
static int joined_word(uint64_t *word)
{
	int board = gsas_board();

	*word = (uint64_t)board + 1;
	return board < 0 ? board : 0;
}

/* Show by a lock that this member lives. Only processes of the same host see
 * it: where boards are not emulated each board is a host. */
static int hold(struct gsas_team *team)
{
	const uint64_t key[2] = { team->page, team->index + 1 };
	struct gsas_thread *t;
	int ret = gsas_thread_get(&t);

	if (ret != 0 || !(t->hif->caps->flags & HAL_CAP_ANY_BOARD))
		return ret;
	team->held = gsas_hold_open();
	if (team->held < 0)
		return team->held;
	ret = gsas_hold_take(team->held, geteuid(), key);
	return ret;
}

static void release(struct gsas_team *team)
{
	if (team->held >= 0)
		close(team->held);
	team->held = -1;
}

/* Find the next member of this host in the ring of all members; this member, if
 * the host has no other. */
static void find_next(struct gsas_team *team)
{
	uint32_t next = team->index;
	struct gsas_thread *t;
	uint64_t word = 0;

	if (gsas_thread_get(&t) != 0)
		return;
	do {
		next = (next + 1) % team->members;
		if (next == team->index)
			break;
		if (gsas_read64(slot_word(team, next, SLOT_JOINED), &word) != 0)
			return;
	} while (word == 0 || word > INT32_MAX ||
		 !gsas_board_here(t, (int)word - 1));
	team->next = next;
	team->next_known = true;
}

/* Has the next member of this host ended or closed the team? false: not, or it
 * cannot be known. Each member checks only its next one, because a check takes
 * the kernel time in proportion to the members. A member that finds the next
 * one gone breaks the team, which all others see. All members have joined when
 * this is called. */
static bool next_gone(struct gsas_team *team)
{
	uint64_t key[2] = { team->page, 0 };

	if (team->held < 0)
		return false;
	if (!team->next_known)
		find_next(team);
	if (!team->next_known || team->next == team->index)
		return false;
	key[1] = (uint64_t)team->next + 1;
	return !gsas_hold_held(team->held, geteuid(), key);
}

/* ---- Barriers ------------------------------------------------------------ */

/* Break the team, unless this barrier is passed. 0: it is; -FI_ECONNRESET; or
 * another error. */
static int break_team(struct gsas_team *team)
{
	gsas_addr at = word_at(team, TEAM_PASSED);
	uint64_t word;
	int ret = gsas_read64(at, &word);

	while (ret == 0) {
		if ((word & ~TEAM_BROKEN) >= team->barriers)
			return 0;
		if (word & TEAM_BROKEN)
			break;
		ret = gsas_cas64(at, word, word | TEAM_BROKEN, &word);
		if (ret == 1)
			break;
	}
	team->broken = true;
	return ret < 0 && ret != -ESTALE ? ret : -FI_ECONNRESET;
}

/* Arrive at the next barrier. -FI_ECONNRESET: the team is broken. */
static int arrive(struct gsas_team *team)
{
	uint64_t number = ++team->barriers;
	int64_t before = 0;
	int ret = gsas_fad64(word_at(team, TEAM_ARRIVED), 1, &before);

	if (ret != 0 || (uint64_t)before + 1 != number * team->members)
		return ret;
	ret = gsas_cas64(word_at(team, TEAM_PASSED), number - 1, number, NULL);
	if (ret == 0)			/* another member has broken it */
		return -FI_ECONNRESET;
	return ret < 0 ? ret : 0;
}

/* Wait until this barrier is passed. 0; -FI_EAGAIN: not within ms;
 * -FI_ECONNRESET: the team is broken, or its page is gone; another error of the
 * connection. */
static int wait_passed(struct gsas_team *team, int ms)
{
	uint64_t word = 0;
	int ret = gsas_wait_word(word_at(team, TEAM_PASSED), GSAS_GE,
				 team->barriers, deadline_of(ms), &word);

	if (ret == 0 && (word & ~TEAM_BROKEN) < team->barriers)
		return -FI_ECONNRESET;
	return ret == -ESTALE || ret == -FI_EFAULT ? -FI_ECONNRESET : ret;
}

/* This member fails at a barrier. 0: but the barrier is passed; or error. If it
 * cannot reach the page, other members may pass the barrier nevertheless. */
static int give_up(struct gsas_team *team, int error)
{
	if (break_team(team) == 0)
		return 0;
	team->broken = true;
	return error;
}

static int barrier(struct gsas_team *team, uint64_t deadline)
{
	int ret, ms;

	if (team->broken)
		return -FI_ECONNRESET;
	ret = arrive(team);
	while (ret == 0) {
		ms = slice(deadline);
		ret = wait_passed(team, ms);
		if (ret == 0)
			return 0;
		if (ret != -FI_EAGAIN)
			break;
		/* a member that is gone may have closed the team after this
		 * barrier */
		ret = ms == 0 ? -FI_ETIMEDOUT :
			next_gone(team) ? -FI_ECONNRESET : 0;
	}
	return give_up(team, ret == -ESTALE ? -FI_ECONNRESET : ret);
}

int gsas_team_barrier(struct gsas_team *team, int ms)
{
	struct gsas_thread *t;
	int ret;

	if (ms < -1)
		return -FI_EINVAL;
	ret = gsas_thread_get(&t);
	if (ret != 0)
		return ret;
	/* An error of a posted request must not keep other members waiting. If
	 * the barrier fails, the next fence returns the error. */
	gsas_fence_wait(t);
	ret = barrier(team, deadline_of(ms));
	return ret != 0 ? ret : gsas_fence_take(t);
}

int gsas_team_exchange(struct gsas_team *team,
		       const uint64_t words[EXCHANGE_WORDS], int ms,
		       uint64_t (*all)[EXCHANGE_WORDS])
{
	/* In turn: a member that has passed the barrier may write its words of
	 * the next exchange while a slower member still reads. To pass the
	 * barrier of that exchange it needs the slower member. */
	uint64_t word = SLOT_EXCHANGE + team->exchanges % 2 * EXCHANGE_WORDS;
	const size_t len = EXCHANGE_WORDS * sizeof(uint64_t);
	struct gsas_thread *t;
	int ret;

	/* an error of this member alone must not let it miss this exchange */
	if (ms < -1)
		return -FI_EINVAL;
	ret = gsas_thread_get(&t);
	if (ret != 0)
		return ret;
	if (team->broken)
		return -FI_ECONNRESET;
	ret = gsas_put(slot_word(team, team->index, word), words, len);
	if (ret != 0) {			/* nobody may read the old words */
		team->barriers++;
		(void)break_team(team);
		return ret;
	}
	team->exchanges++;
	/* no fence: an error of a posted request is no error of this member */
	ret = barrier(team, deadline_of(ms));
	if (ret == 0 && all != NULL)
		ret = gsas_get_strided(all, len, slot_word(team, 0, word),
				       SLOT_WORDS * sizeof(uint64_t), len,
				       team->members);
	return ret;
}

/* ---- Opening ------------------------------------------------------------- */

/* Give the name to the page at address in, or look the name up (0). *page: the
 * page that has it, 0: none. */
static int name_page(int board, const uint64_t name[2], gsas_addr in,
		     gsas_addr *page)
{
	struct gsas_msg msg = {
		.opcode = GSAS_NAME, .address = in,
		.arg1 = name[0], .arg2 = name[1],
	};
	struct gsas_request request;
	struct gsas_conn *conn;
	struct gsas_thread *t;
	int ret = gsas_thread_get(&t);

	if (ret == 0)
		ret = gsas_conn_get(t, board, &conn);
	if (ret == 0)
		ret = gsas_request_do(conn, &msg, &request);
	if (ret == 0)
		*page = request.result;
	return ret;
}

/* Member 0: make the page, and give it the name. */
static int create(struct gsas_team *team, int board, const uint64_t name[2])
{
	uint64_t words = TEAM_SLOTS + (uint64_t)team->members * SLOT_WORDS;
	uint64_t joined = 0;
	gsas_addr named;
	int ret = gsas_alloc((words * sizeof(uint64_t) + GSAS_PAGE - 1) /
			     GSAS_PAGE, board, GSAS_JOB | GSAS_MAPPED, NULL,
			     &team->page);

	if (ret != 0)
		return ret;
	ret = gsas_write64(word_at(team, TEAM_MEMBERS), team->members);
	if (ret == 0)
		ret = joined_word(&joined);
	if (ret == 0)
		ret = gsas_write64(slot_word(team, 0, SLOT_JOINED), joined);
	if (ret == 0)
		ret = hold(team);
	if (ret == 0)
		ret = name_page(board, name, team->page, &named);
	return ret;
}

/*
 * Other members: find the page, if it is not the page at address not, and take
 * the place of this member. 0; AGAIN: there is no page yet; or it is of an
 * earlier team, because it has another number of members, or because another
 * process has taken the place.
 */
static int find(struct gsas_team *team, int board, const uint64_t name[2],
		gsas_addr not)
{
	uint64_t members, joined = 0;
	int ret = name_page(board, name, 0, &team->page);

	if (ret == 0)
		ret = joined_word(&joined);
	if (ret != 0)
		return ret;
	if (team->page == 0 || team->page == not)
		return AGAIN;
	ret = gsas_read64(word_at(team, TEAM_MEMBERS), &members);
	/* The lock comes first: after the place is taken nothing may fail, as
	 * no process could take it again. */
	if (ret == 0 && members == team->members) {
		ret = hold(team);
		if (ret != 0)
			return ret;
		ret = gsas_cas64(slot_word(team, team->index, SLOT_JOINED), 0,
				 joined, NULL);
	}
	if (ret == 0 || ret == -ESTALE || ret == -FI_EFAULT)
		return AGAIN;
	return ret < 0 ? ret : 0;
}

/* Member 0: wait until all other members have arrived, and arrive last. So the
 * page of an earlier team, whose member 0 has ended, is never complete. */
static int wait_others(struct gsas_team *team, uint64_t deadline)
{
	uint64_t word = 0;
	int ms, ret;

	for (;;) {
		ms = slice(deadline);
		ret = gsas_wait_word(word_at(team, TEAM_ARRIVED), GSAS_GE,
				     team->members - 1, deadline_of(ms), NULL);
		if (ret != -FI_EAGAIN)
			return ret != 0 ? ret : arrive(team);
		if (gsas_read64(word_at(team, TEAM_PASSED), &word) == 0 &&
		    word & TEAM_BROKEN)
			return -FI_ECONNRESET;
		if (ms == 0)
			return -FI_ETIMEDOUT;
	}
}

/* Other members: arrive, and wait for member 0. AGAIN: the name has moved to
 * another page, or the team is broken. Another error breaks the team, because
 * no process can take the place of this member. */
static int wait_first(struct gsas_team *team, int board, const uint64_t name[2],
		      uint64_t deadline)
{
	gsas_addr page = team->page;
	int ms, ret = arrive(team);

	while (ret == 0) {
		ms = slice(deadline);
		ret = wait_passed(team, ms);
		if (ret != -FI_EAGAIN)
			break;
		ret = ms == 0 ? -FI_ETIMEDOUT :
			name_page(board, name, 0, &page);
		if (ret != 0 || page == team->page)
			continue;
		/* The members may have met meanwhile, and one of them has
		 * given the name to another page. */
		ret = wait_passed(team, 0);
		if (ret == -FI_EAGAIN)
			ret = AGAIN;
		break;
	}
	if (ret == -FI_ECONNRESET || ret == -ESTALE)	/* the page is gone */
		return AGAIN;
	return ret < 0 ? give_up(team, ret) : ret;
}

static int join(struct gsas_team *team, int board, const uint64_t name[2],
		uint64_t deadline)
{
	gsas_addr not = 0;
	int ret;

	if (team->index == 0) {
		ret = create(team, board, name);
		if (ret == 0)
			ret = wait_others(team, deadline);
		if (ret != 0 && team->page != 0)
			gsas_free(team->page);
		return ret;
	}
	for (uint32_t looks = 0;; looks++) {
		ret = find(team, board, name, not);
		if (ret == 0) {
			ret = wait_first(team, board, name, deadline);
			not = team->page;
		}
		if (ret != AGAIN)
			return ret;
		release(team);
		team->barriers = 0;
		if (slice(deadline) == 0)
			return -FI_ETIMEDOUT;
		gsas_sleep_step(looks, unm_now_ns(), deadline);
	}
}

int gsas_team_open(const char *name, int board, int index, int members, int ms,
		   struct gsas_team **out)
{
	size_t len = name != NULL ? strnlen(name, 17) : 0;
	struct gsas_team *team;
	uint32_t rank, ranks;
	uint64_t key[2] = { 0 };
	int ret;

	if (len == 0 || len > sizeof(key) || board < 0 || ms < -1)
		return -FI_EINVAL;
	memcpy(key, name, len);
	if (index == -1 && members == -1) {
		if (!gsas_launcher_rank(&rank, &ranks))
			return -FI_ENOENT;
		index = (int)rank;
		members = (int)ranks;
	}
	if (index < 0 || index >= members || members > GSAS_TEAM_MAX)
		return -FI_EINVAL;
	team = calloc(1, sizeof(*team));
	if (team == NULL)
		return -FI_ENOMEM;
	team->index = (uint32_t)index;
	team->members = (uint32_t)members;
	team->held = -1;
	ret = join(team, board, key, deadline_of(ms));
	if (ret != 0) {
		release(team);
		free(team);
		return ret;
	}
	*out = team;
	return 0;
}

int gsas_team_close(struct gsas_team *team)
{
	int64_t left = 0;
	int ret = gsas_fad64(word_at(team, TEAM_LEFT), 1, &left);

	if (ret == 0 && left + 1 == (int64_t)team->members)
		ret = gsas_free(team->page);
	release(team);
	free(team);
	return ret;
}

int gsas_team_index(const struct gsas_team *team)
{
	return (int)team->index;
}

int gsas_team_members(const struct gsas_team *team)
{
	return (int)team->members;
}
