/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * hal.h - the functions of the Unimem hardware, and nothing else.
 *
 * The provider and GSAS reach boards, packets, remote windows and the cDMA
 * engine only through the calls declared here. docs/hal.md defines their laws;
 * test/conform/hal_conform.c checks these on every backend.
 *
 * Objects
 *   hal        the hardware as one process uses it (reference counted)
 *   hal_if     an interface: one mailbox and one packetizer of a board
 *   hal_peer   a remote interface as a local one sees it. The outbound half
 *              sends packets and stores to the peer, the inbound half receives
 *              what the peer sends.
 *   hal_mem    dmable memory of this process; hal_rmem: that of a peer
 *
 * Conventions: sizes and offsets are bytes; errors are negative fi_errno values
 * (rdma/fi_errno.h); outputs are set on success only. One thread at a time may
 * use a hal_if and its peers; different interfaces are independent. Any thread
 * may call hal_get() and hal_put().
 *
 * [D n] is section n of ExaNoDe deliverable D3.6: packets and identity [D 5.1,
 * 5.2], windows [D 2.1], cDMA [D 3]. docs/hal.md, section 13: what a send means
 * and what may be reordered.
 *
 * Files of this folder, from the bottom to the top. A file includes files
 * further up in this list only:
 *
 *   hal_export.h       marks exported functions
 *   hal_pid.c          the id of this process
 *   hal_lock.c         lock between the threads of a process
 *   hal_log.c          log lines *
 *   hal_param.c        parameters from the environment *
 *   hal_fault_point.c  fault points
 *   hal_launcher.c     ranks, from the job launcher
 *   hal_limit.c        memory that is left
 *   hal_model.c        figures of the timing model
 *   hal_time.c         times that follow from these figures
 *   hal_meet.c         how processes find memory that they share
 *   hal_map.c          segments of shared memory
 *   hal_task.c         names of processes
 *   hal_types.h        the objects, and the table of functions of a backend *
 *   hal_board.c        the board of a process
 *   hal_packet.h       packets and receive space * (hal_copy.h,
 *                      hal_line.h)
 *   hal_peer.c         what the backends do alike with peers
 *   hal_dma.h          dmable memory and transfers *
 *   hal_window.h       memory of peers as a processor accesses it *
 *   hal_page.c         the public page of an interface *
 *   hal_backend.h      names the tables of the backends
 *   emu/, sim/, dev/   the backends
 *   net/               peers on other hosts, around a backend
 *   hal_fault.c        the fault decorator
 *   hal.c              chooses the backend
 *   hal_process.h      the process of a peer, for GSAS
 *
 * This file includes those marked with *.
 */
#ifndef HAL_H
#define HAL_H

#include "hal/hal_dma.h"
#include "hal/hal_export.h"
#include "hal/hal_log.h"
#include "hal/hal_packet.h"
#include "hal/hal_page.h"
#include "hal/hal_param.h"
#include "hal/hal_types.h"
#include "hal/hal_window.h"

/* ---- Process and interfaces ------------------------------------------ */

/* Name of the backend that the parameters select. "auto" is "dev" if this host
 * has boards, else "emu". Opens nothing. */
HAL_EXPORT const char *hal_backend(const struct hal_params *params);

/*
 * The numbers of the boards of a host of this job: *first, and *count of them
 * (65536: the device knows how many). host: its name or IP address; NULL: this
 * host. Reads the hosts file, opens no backend, and may wait for the name
 * service. 0; -FI_ENODATA: the job's directory of hosts does not have
 * this host, or there is none (docs/net.md); -FI_EINVAL after a log line;
 * -FI_ENOMEM.
 */
HAL_EXPORT int hal_host_boards(const struct hal_params *params,
			       const char *host, uint32_t *first,
			       uint32_t *count);

/* Take a reference to the HAL of this process; the first call opens it with
 * params (NULL: those of hal_params_load()), later calls ignore params. 0;
 * -FI_EINVAL, -FI_ENODEV, -FI_ENOMEM or -FI_EMFILE after a log line. Any
 * thread. */
HAL_EXPORT int hal_get(const struct hal_params *params, struct hal **hal);

/* Release a reference; the last one closes the HAL, whose interfaces must be
 * closed already. Any thread. */
HAL_EXPORT void hal_put(struct hal *hal);

/* The name or IP address of the host of a board, as the directory of the job's
 * hosts has it, until hal_put(). NULL: there is no directory. Any thread. */
HAL_EXPORT const char *hal_board_host(const struct hal *hal, uint32_t board);

/* Open a free interface of a board (-1: the own board). Starts no thread. The
 * emulation makes one system call for each number that is in use. -FI_EBUSY: no
 * interface is free; -FI_EINVAL: no such board, or not the own board although
 * HAL_CAP_ANY_BOARD is missing; -FI_EMFILE, -FI_ENOMEM. Errors are logged. */
static inline int hal_if_open(struct hal *hal, int board, struct hal_if **hif)
{
	return hal->ops->if_open(hal, board, HAL_IF_ANY, hif);
}

/* Open the interface of this number, 1 to caps.ifs_per_board. -FI_EADDRINUSE: a
 * process has it, or some peer has not yet learnt that its last holder ended;
 * -FI_EACCES: other users hold all its names; -FI_EINVAL: no such number; other
 * errors as hal_if_open(). */
static inline int hal_if_open_number(struct hal *hal, int board, int number,
				     struct hal_if **hif)
{
	return number < 1 || number > (int)hal->caps.ifs_per_board ?
	       -FI_EINVAL : hal->ops->if_open(hal, board, number, hif);
}

/*
 * Open interface 0 of a board, which is reserved for the board's atomic service
 * [D 2.2.3], so that clients know its number. Otherwise it is an interface like
 * any other. -FI_EBUSY, with a log line at level 1 only: the board has a
 * service, or some peer has not yet learnt that the last one ended; -FI_EACCES:
 * this process may not be the service (emulation: other users hold all names);
 * -FI_ENOSYS: the board's driver has no service; other errors as hal_if_open().
 */
static inline int hal_if_open_service(struct hal *hal, int board,
				      struct hal_if **hif)
{
	return hal->ops->if_open(hal, board, HAL_IF_SERVICE, hif);
}

/* Close an interface. Its peers get HAL_EV_DEAD, and can still read the packets
 * that were sent. Outstanding transfers end without a completion; every peer
 * object of the interface is freed. */
static inline void hal_if_close(struct hal_if *hif)
{
	hif->ops->if_close(hif);
}

/*
 * Accept connections, detect ended peers, and send what was blocked. Stores up
 * to max events and returns their number. This is a system call: call it every
 * 20 us or so and while sends are blocked, not for each message.
 */
static inline int hal_if_service(struct hal_if *hif, struct hal_event *ev,
				 int max)
{
	return hif->ops->service(hif, ev, max);
}

/* A descriptor that becomes readable when hal_if_service() has work, or when a
 * packet comes after hal_if_arm(). The interface owns it. */
static inline int hal_if_fd(struct hal_if *hif)
{
	return hif->ops->fd(hif);
}

/* Make hal_if_fd() readable at the next packet, and at the next release or
 * stored word of peers marked with hal_tx_sleep(). 0: armed, the caller may
 * sleep; -FI_EAGAIN: not armed, because there is a packet of a peer that is not
 * held, or work for hal_if_service(). A caller that sends after it to a peer on
 * another host calls it once more before the sleep. */
static inline int hal_if_arm(struct hal_if *hif)
{
	return hif->ops->arm(hif);
}

/* End what hal_if_arm() began. Does nothing if the interface is not armed. */
static inline void hal_if_disarm(struct hal_if *hif)
{
	hif->ops->disarm(hif);
}

/* ---- Peers ----------------------------------------------------------- */

/*
 * Open the outbound half to an interface, also of a board of another host of
 * the job. Packets and stores may be sent at once; HAL_EV_CONNECTED or
 * HAL_EV_DEAD follows. If the peer has connected first, its object is returned,
 * and so it is for a second call.
 * -FI_EAGAIN: the peer cannot accept now, or it has connected first and is
 * ending, try again; -FI_ECONNREFUSED: no process holds that interface;
 * -FI_EACCES: only other users do, or there is no key file for connections to
 * other hosts; -FI_EINVAL: no valid address; -FI_EMFILE, -FI_ENOMEM.
 */
static inline int hal_connect(struct hal_if *hif, const struct hal_addr *to,
			      struct hal_peer **peer)
{
	return hif->ops->connect(hif, to, peer);
}

/*
 * The same to an interface of which it is known where it is. host NULL or
 * without a port: as hal_connect(). -FI_EINVAL also: this process has no
 * FI_UNIMEM_NET, or no nonce is given.
 * A host that does not answer is HAL_EV_DEAD after FI_UNIMEM_NET_DIAL_MS and at
 * least five attempts.
 */
static inline int hal_connect_host(struct hal_if *hif,
				   const struct hal_addr *to,
				   const struct hal_host *host,
				   struct hal_peer **peer)
{
	if (host == NULL)
		return hif->ops->connect(hif, to, peer);
	return hif->ops->connect_host == NULL ? -FI_EINVAL :
		hif->ops->connect_host(hif, to, host, peer);
}

/* Free a peer, after HAL_EV_DEAD or at any time before. Its outstanding
 * transfers complete with -FI_ECANCELED in later calls of hal_dma_poll(). */
static inline void hal_peer_free(struct hal_peer *peer)
{
	peer->ops->peer_free(peer);
}

/* Print the state of an interface and of its peers, for people to read. */
static inline void hal_dump(struct hal_if *hif, FILE *out)
{
	hif->ops->dump(hif, out);
}

#endif /* HAL_H */
