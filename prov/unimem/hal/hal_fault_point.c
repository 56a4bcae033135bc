/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * hal_fault_point.c - fault points: stop or end this process at a named place.
 *
 * FI_UNIMEM_POINT=name:n:action[,name:n:action...], where n counts this
 * process's passes from 1 and action is
 *
 *	kill	SIGKILL to this process
 *	stop	SIGSTOP to this process, which continues at SIGCONT
 *	exit	_exit(HAL_FAULT_POINT_EXIT), without closing anything
 *
 * Compiled to nothing unless configured with --enable-fault-points.
 */
#include "hal/hal_fault_point.h"

#ifdef HAL_FAULT_POINTS

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "hal/hal_log.h"

#define HAL_FAULT_POINT_EXIT	86
#define MAX_RULES	16

enum action { ACT_KILL, ACT_STOP, ACT_EXIT };

struct rule {
	enum hal_fault_point point;
	unsigned long pass;
	enum action action;
};

static const char *const names[HAL_FAULT_POINT_COUNT] = {
	[HAL_FAULT_POINT_CLAIMED] = "claimed",
	[HAL_FAULT_POINT_COPIED] = "copied",
	[HAL_FAULT_POINT_PUBLISHED] = "published",
	[HAL_FAULT_POINT_CREDIT] = "credit",
	[HAL_FAULT_POINT_SPACE] = "space",
	[HAL_FAULT_POINT_BOUND] = "bound",
	[HAL_FAULT_POINT_HELLO_SENT] = "hello-sent",
	[HAL_FAULT_POINT_ACCEPTED] = "accepted",
	[HAL_FAULT_POINT_MAPPED] = "mapped",
	[HAL_FAULT_POINT_RTS_SENT] = "rts-sent",
	[HAL_FAULT_POINT_MATCHED] = "matched",
	[HAL_FAULT_POINT_DMA_HALF] = "dma-half",
	[HAL_FAULT_POINT_FIN] = "fin",
	[HAL_FAULT_POINT_PIECE] = "piece",
	[HAL_FAULT_POINT_CLOSING] = "closing",
	[HAL_FAULT_POINT_INSIDE] = "inside",
	[HAL_FAULT_POINT_NET_PROPOSED] = "net-proposed",
	[HAL_FAULT_POINT_NET_AGREED] = "net-agreed",
	[HAL_FAULT_POINT_NET_RESUMED] = "net-resumed",
	[HAL_FAULT_POINT_SIM_TAKEN] = "sim-taken",
	[HAL_FAULT_POINT_SIM_ENTERED] = "sim-entered",
	[HAL_FAULT_POINT_SIM_DECIDED] = "sim-decided",
	[HAL_FAULT_POINT_SIM_MOVED] = "sim-moved",
	[HAL_FAULT_POINT_SIM_UNANSWERED] = "sim-unanswered",
	[HAL_FAULT_POINT_SIM_STORING] = "sim-storing",
	[HAL_FAULT_POINT_SIM_MAKING] = "sim-making",
	[HAL_FAULT_POINT_SIM_HOLDING] = "sim-holding",
	[HAL_FAULT_POINT_SIM_LETTING] = "sim-letting",
	[HAL_FAULT_POINT_SIM_FREEING] = "sim-freeing",
	[HAL_FAULT_POINT_SIM_CLAIMED] = "sim-claimed",
	[HAL_FAULT_POINT_SIM_RELEASED] = "sim-released",
};

static const char *const actions[] = {
	[ACT_KILL] = "kill",
	[ACT_STOP] = "stop",
	[ACT_EXIT] = "exit",
};

static struct rule rules[MAX_RULES];
static unsigned nrules;
static atomic_ulong passes[HAL_FAULT_POINT_COUNT];
static pthread_once_t loaded = PTHREAD_ONCE_INIT;

const char *hal_fault_point_name(enum hal_fault_point p)
{
	return p < HAL_FAULT_POINT_COUNT ? names[p] : NULL;
}

/* Index of a word in a table, -1 if it is not there. */
static int find(const char *word, const char *const *table, int count)
{
	for (int i = 0; i < count; i++) {
		if (strcmp(word, table[i]) == 0)
			return i;
	}
	return -1;
}

/* Parse one name:n:action in place; 0 or -1. */
static int parse_rule(char *text)
{
	char *save = NULL, *end;
	char *name = strtok_r(text, ":", &save);
	char *pass = strtok_r(NULL, ":", &save);
	char *act = strtok_r(NULL, ":", &save);
	int point, action;

	if (act == NULL || strtok_r(NULL, ":", &save) != NULL ||
	    nrules == MAX_RULES)
		return -1;
	point = find(name, names, HAL_FAULT_POINT_COUNT);
	action = find(act, actions, sizeof(actions) / sizeof(actions[0]));
	rules[nrules].pass = strtoul(pass, &end, 10);
	if (point < 0 || action < 0 || *end != '\0' || rules[nrules].pass == 0)
		return -1;
	rules[nrules].point = point;
	rules[nrules].action = action;
	nrules++;
	return 0;
}

/* A wrong value ends the process: with a misspelt name no fault would happen,
 * and the test would pass without testing anything. */
void hal_fault_point_reload(void)
{
	const char *spec = secure_getenv("FI_UNIMEM_POINT");
	char *copy, *part, *save = NULL;

	nrules = 0;
	for (int i = 0; i < HAL_FAULT_POINT_COUNT; i++)
		atomic_store_explicit(&passes[i], 0, memory_order_relaxed);
	if (spec == NULL || *spec == '\0')
		return;
	copy = strdup(spec);
	if (copy == NULL)
		abort();
	for (part = strtok_r(copy, ",", &save); part != NULL;
	     part = strtok_r(NULL, ",", &save)) {
		if (parse_rule(part) == 0)
			continue;
		hal_log(0, "FI_UNIMEM_POINT=%s: want name:n:kill|stop|exit, "
			"at most %d of them, names as in hal_fault_point.h in "
			"lower case with dashes", spec, MAX_RULES);
		_exit(HAL_FAULT_POINT_EXIT + 1);
	}
	free(copy);
}

static void act(enum action action)
{
	switch (action) {
	case ACT_KILL:
		kill(getpid(), SIGKILL);
		for (;;)
			pause();
	case ACT_STOP:
		raise(SIGSTOP);
		return;
	case ACT_EXIT:
		_exit(HAL_FAULT_POINT_EXIT);
	}
}

void hal_fault_point_hit(enum hal_fault_point p)
{
	unsigned long pass;

	pthread_once(&loaded, hal_fault_point_reload);
	pass = 1 + atomic_fetch_add_explicit(&passes[p], 1,
					     memory_order_relaxed);
	for (unsigned i = 0; i < nrules; i++) {
		if (rules[i].point == p && rules[i].pass == pass)
			act(rules[i].action);
	}
}

#else

/* ISO C does not allow an empty translation unit. */
typedef int hal_fault_point_unused;

#endif /* HAL_FAULT_POINTS */
