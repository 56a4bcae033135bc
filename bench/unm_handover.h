/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * unm_handover.h - the time of a cache-line transfer between two processes,
 * which is the least time that a word takes from one to the other; and struct
 * unm_word, a shared word that has its cache lines for itself.
 */
#ifndef UNM_HANDOVER_H
#define UNM_HANDOVER_H

#include <stdatomic.h>
#include <stdint.h>

#define UNM_LINE	64

/* Each word alone in a pair of lines: hardware fetches lines in pairs. */
struct unm_word {
	_Atomic uint64_t v;
	char pad[2 * UNM_LINE - sizeof(uint64_t)];
} __attribute__((aligned(2 * UNM_LINE)));

/* Zeroed memory of both. */
struct unm_handover {
	struct unm_word ping, pong;
};

/* The second process: gives back every word that comes, for ever. */
void unm_handover_echo(struct unm_handover *h);

/* There and back, in ns: the median of passes of pass_s seconds. Once for each
 * unm_handover_echo(). */
double unm_handover_ns(struct unm_handover *h, double pass_s);

/* The round trip in ns, measured for so many seconds: the lower quartile of
 * readings of a few us each. It depends on the places of the cores and hardly
 * on other processes that run there. */
double unm_handover_quick_ns(struct unm_handover *h, double seconds);

#endif
