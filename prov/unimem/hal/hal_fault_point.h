/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * hal_fault_point.h - named fault points.
 *
 * In a build configured with --enable-fault-points a test may have a process
 * stopped or killed when it passes a point for the n-th time
 * (FI_UNIMEM_POINT=name:n:kill|stop). Other builds compile them to nothing, so
 * that the path of a message is not touched.
 */
#ifndef HAL_POINT_H
#define HAL_POINT_H

enum hal_point {
	HAL_POINT_CLAIMED,	/* a slot is ours, nothing written */
	HAL_POINT_COPIED,	/* payload written, not published */
	HAL_POINT_PUBLISHED,	/* packet visible, sender's state behind */
	HAL_POINT_CREDIT,	/* packets consumed, not yet told */
	HAL_POINT_SPACE,	/* receive space written, packet not sent */
	HAL_POINT_BOUND,	/* interface name taken, not listening */
	HAL_POINT_HELLO_SENT,	/* hello sent, no answer yet */
	HAL_POINT_ACCEPTED,	/* connection accepted, hello unread */
	HAL_POINT_MAPPED,	/* link mapped, welcome not sent */
	HAL_POINT_RTS_SENT,	/* rendezvous announced */
	HAL_POINT_MATCHED,	/* rendezvous matched, nothing transferred */
	HAL_POINT_DMA_HALF,	/* transfer begun, not finished */
	HAL_POINT_FIN,		/* transferred, sender not told */
	HAL_POINT_PIECE,	/* piece in receive space, packet not sent */
	HAL_POINT_CLOSING,	/* interface half closed */
	HAL_POINT_INSIDE,	/* in a peer's memory, nothing accessed */
	/* the register model's (hal_sim*.c) */
	HAL_POINT_SIM_TAKEN,	/* a dead one's lock is ours, nothing rebuilt */
	HAL_POINT_SIM_ENTERED,	/* a packet has its FIFO, is not decided */
	HAL_POINT_SIM_DECIDED,	/* decided, no word of it written */
	HAL_POINT_SIM_MOVED,	/* in the FIFO, which is not free yet */
	HAL_POINT_SIM_UNTOLD,	/* over, its sender was not answered */
	HAL_POINT_SIM_STORING,	/* our name is on a store, nothing stored */
	HAL_POINT_SIM_MAKING,	/* pages marked, the region not found by them */
	HAL_POINT_SIM_HOLDING,	/* a hold is there and not counted */
	HAL_POINT_SIM_LETTING,	/* a hold is gone and still counted */
	HAL_POINT_SIM_FREEING,	/* pages unmarked, their region is there */
	HAL_POINT_SIM_CLAIMED,	/* an interface taken, not in the table */
	HAL_POINT_SIM_RELEASED,	/* not in the table, not free yet */
	HAL_POINT_COUNT
};

#ifdef HAL_FAULT_POINTS
/* Acts if the environment armed this point; thread-safe. */
__attribute__((visibility("default"))) void hal_point_hit(enum hal_point p);
#define HAL_POINT(p)	hal_point_hit(p)
#else
#define HAL_POINT(p)	((void)0)
#endif

#endif /* HAL_POINT_H */
