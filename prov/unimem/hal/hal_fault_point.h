/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * hal_fault_point.h - fault points: named places at which a test may have the
 * process killed or stopped.
 *
 * HAL_FAULT_POINT(p) marks a place. In a build configured with
 * --enable-fault-points the environment variable
 * FI_UNIMEM_POINT=name:n:kill|stop|exit[,...] arms fault points
 * (hal_fault_point.c). Other builds compile HAL_FAULT_POINT to nothing, so
 * that the path of a message is not touched. docs/hal.md, section 10, defines
 * both.
 */
#ifndef HAL_FAULT_POINT_H
#define HAL_FAULT_POINT_H

#include "hal/hal_export.h"

/*
 * Each comment says how far the process has come at this place. A name in
 * FI_UNIMEM_POINT is the part after HAL_FAULT_POINT_, in lower case with
 * dashes.
 */
enum hal_fault_point {
	HAL_FAULT_POINT_CLAIMED,	/* ring slot claimed, not written */
	HAL_FAULT_POINT_COPIED,		/* payload written, not published */
	HAL_FAULT_POINT_PUBLISHED,	/* packet published, sleeping receiver
					 * not woken */
	HAL_FAULT_POINT_CREDIT,		/* packets consumed, sender does not
					 * see them released */
	HAL_FAULT_POINT_SPACE,		/* receive space written, packet that
					 * names it not sent */
	HAL_FAULT_POINT_BOUND,		/* interface claimed, no connection
					 * accepted */
	HAL_FAULT_POINT_HELLO_SENT,	/* HELLO sent, not answered */
	HAL_FAULT_POINT_ACCEPTED,	/* HELLO received, not acted on */
	HAL_FAULT_POINT_MAPPED,		/* link mapped, answer not sent */
	HAL_FAULT_POINT_RTS_SENT,	/* rendezvous announced */
	HAL_FAULT_POINT_MATCHED,	/* rendezvous matched, no byte
					 * transferred */
	HAL_FAULT_POINT_DMA_HALF,	/* DMA transfer begun, not finished */
	HAL_FAULT_POINT_FIN,		/* rendezvous transferred, sender not
					 * notified */
	HAL_FAULT_POINT_PIECE,		/* piece of a message in the receive
					 * space, its packet not sent */
	HAL_FAULT_POINT_CLOSING,	/* interface half closed */
	HAL_FAULT_POINT_INSIDE,		/* guard of a peer's memory entered,
					 * memory not accessed */
	/* fault points of idle peers on other hosts (hal/net) */
	HAL_FAULT_POINT_NET_PROPOSED,	/* SUSPEND sent, not answered */
	HAL_FAULT_POINT_NET_AGREED,	/* SUSPEND answered, connection not
					 * closed */
	HAL_FAULT_POINT_NET_RESUMED,	/* suspended peer to be dialled again,
					 * not dialled yet */
	/* fault points of the register model (hal/sim) */
	HAL_FAULT_POINT_SIM_TAKEN,	/* lock of a dead process taken over,
					 * its work not repaired */
	HAL_FAULT_POINT_SIM_ENTERED,	/* packet is current in its FIFO, ACK
					 * or NACK not decided */
	HAL_FAULT_POINT_SIM_DECIDED,	/* ACK or NACK decided, no word of the
					 * packet written */
	HAL_FAULT_POINT_SIM_MOVED,	/* packet in the FIFO, FIFO not free
					 * for the next packet */
	HAL_FAULT_POINT_SIM_UNANSWERED,	/* packet finished, result not in the
					 * sender's status */
	HAL_FAULT_POINT_SIM_STORING,	/* remote store claimed, not
					 * performed */
	HAL_FAULT_POINT_SIM_MAKING,	/* pages of a new region marked,
					 * region not valid */
	HAL_FAULT_POINT_SIM_HOLDING,	/* reference to a region recorded, not
					 * counted */
	HAL_FAULT_POINT_SIM_LETTING,	/* reference to a region removed,
					 * still counted */
	HAL_FAULT_POINT_SIM_FREEING,	/* pages of a region unmarked, region
					 * still valid */
	HAL_FAULT_POINT_SIM_CLAIMED,	/* interface claimed, not in the
					 * driver's table */
	HAL_FAULT_POINT_SIM_RELEASED,	/* interface out of the driver's
					 * table, not free */
	HAL_FAULT_POINT_COUNT		/* number of fault points */
};

#ifdef HAL_FAULT_POINTS
/* Count one pass of fault point p, and act if FI_UNIMEM_POINT arms this pass.
 * May not return. Any thread may call this. */
HAL_EXPORT void hal_fault_point_hit(enum hal_fault_point p);

/* Name of fault point p as FI_UNIMEM_POINT spells it; NULL from
 * HAL_FAULT_POINT_COUNT on. */
HAL_EXPORT const char *hal_fault_point_name(enum hal_fault_point p);

/* Read FI_UNIMEM_POINT again and count passes from 1 again, for a forked child
 * of a test. No other thread may be in the HAL. Ends the process if the value
 * is wrong. */
HAL_EXPORT void hal_fault_point_reload(void);

#define HAL_FAULT_POINT(p)	hal_fault_point_hit(p)
#else
#define HAL_FAULT_POINT(p)	((void)0)
#endif

#endif /* HAL_FAULT_POINT_H */
