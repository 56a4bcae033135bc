/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * atomic.h - the GSAS environment as published: ExaNoDe D3.6, section 2.3.
 * Programs written for it compile unchanged; link with -lgsas. Manual:
 * gsas_atomic(3). Thread-safe.
 *
 * A call with an invalid argument ends the program by exit(EXIT_FAILURE), after
 * one line on stderr, unless stated otherwise. The calls of gsas.h do the same
 * operations and return errors.
 */
#ifndef ATOMIC_H
#define ATOMIC_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__GNUC__)
#define GSAS_ATOMIC_API	__attribute__((visibility("default")))
#else
#define GSAS_ATOMIC_API
#endif

#define _MAX_FORK_PATH_FILENAME_	4000	/* bytes, with the final 0 */
#define _EMPTY_THREAD_ARGUMENT_		0xCAFEBEBEDEADBEEFULL

/* The number of boards; the board on which this process runs, from 0. */
GSAS_ATOMIC_API uint64_t getNumberBoards(void);
GSAS_ATOMIC_API uint64_t getBoardPid(void);

/* Allocate quantity pages of 4096 zero bytes on a board. Returns the address,
 * which is not a pointer for loads and stores; NULL: they cannot be allocated.
 * With GSAS_PAGES=mapped in the environment the pages are allocated as
 * GSAS_MAPPED (gsas.h). */
GSAS_ATOMIC_API void *allocSharedPage(uint16_t quantity, uint64_t bid);
GSAS_ATOMIC_API uint64_t freeSharedPage(void *addr);	/* returns 0 */

GSAS_ATOMIC_API char READ8(char *addr);
GSAS_ATOMIC_API uint32_t READ32(uint64_t *addr);
GSAS_ATOMIC_API uint64_t READ64(uint64_t *addr);
/* returns 4096, the number of bytes read */
GSAS_ATOMIC_API uint64_t READ4K(void *addr, char *buffer);
GSAS_ATOMIC_API void WRITE8(char *addr, char val);
GSAS_ATOMIC_API void WRITE32(uint32_t *addr, uint32_t val);
GSAS_ATOMIC_API void WRITE64(uint64_t *addr, uint64_t val);
GSAS_ATOMIC_API void WRITE128(uint64_t *addr, uint64_t val[2]);

GSAS_ATOMIC_API uint64_t CAS64(uint64_t *addr, uint64_t old_val,
			       uint64_t new_val);	/* 1: replaced, or 0 */
GSAS_ATOMIC_API int64_t FAD64(int64_t *addr, int64_t val);
GSAS_ATOMIC_API uint64_t SWAP64(uint64_t *addr, uint64_t val);

/* Start a program on a board with an argument, which must not be
 * _EMPTY_THREAD_ARGUMENT_. Returns its process id; 0: it was not started. */
GSAS_ATOMIC_API uint64_t remoteFork(char *filename, uint64_t arg, uint64_t bid);
/* The argument that remoteFork() gave this process; _EMPTY_THREAD_ARGUMENT_ if
 * remoteFork() did not start it. */
GSAS_ATOMIC_API uint64_t readThreadArgument(void);

#ifdef __cplusplus
}
#endif

/*
 * Listings of the paper pass pointers of other types, such as READ64(array + 3)
 * for uint64_t **array. The macros convert the address, so that such a call
 * compiles without a warning, in C and in C++. (READ64)(addr) and &READ64 use
 * the function. Define GSAS_ATOMIC_FUNCTIONS for functions only.
 */
#ifndef GSAS_ATOMIC_FUNCTIONS
#define READ8(addr)		(READ8)((char *)(addr))
#define READ32(addr)		(READ32)((uint64_t *)(addr))
#define READ64(addr)		(READ64)((uint64_t *)(addr))
#define READ4K(addr, buffer)	(READ4K)((void *)(addr), buffer)
#define WRITE8(addr, val)	(WRITE8)((char *)(addr), val)
#define WRITE32(addr, val)	(WRITE32)((uint32_t *)(addr), val)
#define WRITE64(addr, val)	(WRITE64)((uint64_t *)(addr), val)
#define WRITE128(addr, val)	(WRITE128)((uint64_t *)(addr), val)
#define CAS64(addr, old_val, new_val)					\
	(CAS64)((uint64_t *)(addr), old_val, new_val)
#define FAD64(addr, val)	(FAD64)((int64_t *)(addr), val)
#define SWAP64(addr, val)	(SWAP64)((uint64_t *)(addr), val)
#endif

#endif /* ATOMIC_H */
