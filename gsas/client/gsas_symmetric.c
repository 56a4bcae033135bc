/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * gsas_symmetric.c - symmetric memory: an allocation on the board of each
 * member of a team, all of the same size. The members exchange the addresses
 * once, so that each computes the address of any byte.
 */
#include <errno.h>
#include <limits.h>
#include <stdlib.h>

#include <rdma/fi_errno.h>

#include "client/gsas_team.h"
#include "common/gsas_pkt.h"

/* The allocations of all members, from gsas_team_alloc() to gsas_team_free().
 * Constant, so any thread may read it. */
struct gsas_symmetric {
	uint64_t bytes;			/* of each member */
	uint32_t index, members;
	gsas_addr base[];		/* by member */
};

/* Store the addresses. The error of the first member that has one; -FI_EINVAL:
 * the members do not ask for the same size; -EPROTO: a word that no member
 * stores. */
static int collect(struct gsas_symmetric *mem,
		   uint64_t (*all)[EXCHANGE_WORDS])
{
	for (uint32_t i = 0; i < mem->members; i++) {
		/* no address: the error in its place */
		if (all[i][0] == 0)
			return -EPROTO;
		if (gsas_board_of(all[i][0]) < 0)
			return all[i][0] <= INT_MAX ? -(int)all[i][0] : -EPROTO;
		mem->base[i] = all[i][0];
	}
	for (uint32_t i = 0; i < mem->members; i++)
		if (all[i][1] * GSAS_PAGE != mem->bytes)
			return -FI_EINVAL;
	return 0;
}

int gsas_team_alloc(struct gsas_team *team, uint64_t pages, unsigned flags,
		    int ms, struct gsas_symmetric **out)
{
	struct gsas_symmetric *mem;
	uint64_t (*all)[EXCHANGE_WORDS], words[EXCHANGE_WORDS] = { 0, pages };
	gsas_addr own = 0;
	int ret, alloc;

	if (ms < -1)
		return -FI_EINVAL;
	mem = calloc(1, sizeof(*mem) + team->members * sizeof(mem->base[0]));
	all = calloc(team->members, sizeof(all[0]));
	alloc = mem == NULL || all == NULL ? -FI_ENOMEM :
		gsas_alloc(pages, GSAS_HERE, flags, NULL, &own);
	words[0] = alloc == 0 ? own : (uint64_t)-alloc;
	/* A member without memory takes part as well: other members wait. */
	ret = gsas_team_exchange(team, words, ms, all);
	if (ret == 0 && alloc != 0)
		ret = alloc;
	if (ret == 0) {
		mem->bytes = pages * GSAS_PAGE;
		mem->index = team->index;
		mem->members = team->members;
		ret = collect(mem, all);
	}
	free(all);
	if (ret == 0) {
		*out = mem;
		return 0;
	}
	if (alloc == 0)
		gsas_free(own);
	free(mem);
	return ret;
}

gsas_addr gsas_symmetric_at(const struct gsas_symmetric *mem, int member,
			    uint64_t offset)
{
	if (member < 0 || (uint32_t)member >= mem->members ||
	    offset >= mem->bytes)
		return 0;
	return mem->base[member] + offset;
}

int gsas_team_free(struct gsas_team *team, struct gsas_symmetric *mem, int ms)
{
	int ret, freed;

	if (ms < -1)
		return -FI_EINVAL;
	ret = gsas_team_barrier(team, ms);
	freed = gsas_free(mem->base[mem->index]);
	free(mem);
	return ret != 0 ? ret : freed;
}
