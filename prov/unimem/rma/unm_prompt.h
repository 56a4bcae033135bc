/* SPDX-License-Identifier: BSD-2-Clause */
/* unm_prompt.h - who moves the bytes of a put or get of ordinary memory. */
#ifndef UNM_PROMPT_H
#define UNM_PROMPT_H

#include <stdbool.h>
#include <stdint.h>

struct unm_peer;

/* Shall the peer access its ordinary memory itself? */
bool unm_prompt(struct unm_peer *peer, uint64_t len);

#endif /* UNM_PROMPT_H */
