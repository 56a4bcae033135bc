/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * hal_emu_proof.h - which process is at the other end of a connection; private
 * to hal/emu.
 */
#ifndef HAL_EMU_PROOF_H
#define HAL_EMU_PROOF_H

#include "hal/emu/hal_emu_types.h"

/*
 * Does fd, a socket that came with a HELLO, prove that the process at the other
 * end of conn holds interface addr? 0: yes; -FI_EACCES: no; -FI_EMFILE: this
 * process has no free descriptor for the check. If the kernel does not identify
 * a process of another pid namespace: 0, after one log line per interface.
 */
int emu_proof_check(const struct emu_conn *conn, const struct hal_addr *addr,
		    int fd);

/* Is pidfd, which came over conn, of the process at the other end of conn? 0:
 * yes, or the process has ended; -FI_EACCES: no; -FI_EINVAL: it is no pidfd;
 * -FI_EMFILE. If the kernel does not identify it: as emu_proof_check(). */
int emu_pidfd_check(const struct emu_conn *conn, int pidfd);

/* A new pidfd of the process at the other end of a socket, which the caller
 * closes. pid is the number of that process, 0 if it has none here. A negative
 * errno: -ESRCH or -EINVAL: it has ended; -EMFILE, -ENFILE; else: the kernel
 * does not identify it. */
int emu_peer_pidfd(int sock, pid_t pid);

/* Does /proc show the pid namespace of this process? emu->pidfd is open. */
bool emu_proc_ours(const struct hal_emu *emu);

/* As hal_peer_process(). */
int emu_peer_process(struct hal_peer *hp, uint64_t *id);

#endif /* HAL_EMU_PROOF_H */
