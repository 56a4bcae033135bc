/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * gsas_serve_queue.h - the operations on queues, and the grants of words to
 * producers (gsas_serve_queue.c).
 */
#ifndef GSAS_SERVE_QUEUE_H
#define GSAS_SERVE_QUEUE_H

#include "service/gsas_call.h"

enum gsas_error gsas_serve_queue_open(struct gsas_call *call);
enum gsas_error gsas_serve_queue_close(struct gsas_call *call);
enum gsas_error gsas_serve_enqueue(struct gsas_call *call);
enum gsas_error gsas_serve_dequeue(struct gsas_call *call);
enum gsas_error gsas_serve_queue_wait(struct gsas_call *call);

/* Make a queue of a new region. */
enum gsas_error gsas_region_make_queue(struct gsas_service *service,
				       struct gsas_region *region,
				       uint32_t quota, uint32_t buffer);
/* Remove the queue of a region; clients that have it open are notified. */
void gsas_region_end_queue(struct gsas_region *region);

/* Return the memory of a region that will be a queue to the system, until the
 * queue uses it. By any thread, before the region is added. */
void gsas_region_hollow(const struct gsas_region *region);

/* Send notifications of ENQUEUE. false: there were no credits for all. */
bool gsas_client_notify_grants(struct gsas_client *client);
/* Answer the QUEUE_WAITs that ended. false: there were no credits for all. */
bool gsas_client_answer_woken(struct gsas_client *client);
/* The client ends: free its windows and waits. */
void gsas_client_close_queues(struct gsas_client *client);

/* Grant words to producers of queues that changed. Returns whether to call it
 * again periodically, because a queue waits until words are taken out. */
bool gsas_service_grant(struct gsas_service *service);
/* Words in all queues. */
uint64_t gsas_service_words(const struct gsas_service *service);

#endif /* GSAS_SERVE_QUEUE_H */
