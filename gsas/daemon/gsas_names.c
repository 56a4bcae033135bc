/* SPDX-License-Identifier: BSD-2-Clause */
/* gsas_names.c - names of opcodes and texts of errors of gsas_pkt.h. */
#include <stddef.h>

#include "daemon/gsas_names.h"
#include "common/gsas_pkt.h"

#define OPCODE(name)	[GSAS_##name] = #name

static const char *const opcodes[] = {
	OPCODE(ALLOC), OPCODE(FREE), OPCODE(FORK),
	OPCODE(READ8), OPCODE(READ32), OPCODE(READ64), OPCODE(READ4K),
	OPCODE(WRITE8), OPCODE(WRITE32), OPCODE(WRITE64), OPCODE(WRITE128),
	OPCODE(CAS64), OPCODE(FAD64), OPCODE(SWAP64),
	OPCODE(JOIN), OPCODE(GROUP), OPCODE(FENCE), OPCODE(UPDATE),
	OPCODE(ATOMIC), OPCODE(GET), OPCODE(PUT), OPCODE(MAP),
	OPCODE(QUEUE_NEW), OPCODE(QUEUE_OPEN), OPCODE(QUEUE_CLOSE),
	OPCODE(ENQUEUE), OPCODE(DEQUEUE), OPCODE(STAT), OPCODE(LIST),
	OPCODE(RECLAIM), OPCODE(QUEUE_WAIT), OPCODE(NAME),
	OPCODE(NUMBERS),
};

static const char *const errors[GSAS_ERRORS] = {
	[GSAS_OK]		= "done",
	[GSAS_E_OPCODE]		= "no such operation",
	[GSAS_E_ADDRESS]	= "never allocated",
	[GSAS_E_FREED]		= "freed",
	[GSAS_E_ACCESS]		= "of another job",
	[GSAS_E_ARGUMENT]	= "argument out of range",
	[GSAS_E_MEMORY]		= "no memory",
	[GSAS_E_QUOTA]		= "quota",
	[GSAS_E_MAPPED]		= "not where pages are mapped",
	[GSAS_E_PATH]		= "no such file",
	[GSAS_E_EXEC]		= "not allowed to run",
	[GSAS_E_JOIN]		= "no job, or a second one",
	[GSAS_E_AGAIN]		= "not now",
	[GSAS_E_STATE]		= "not that kind, or not open",
};

const char *gsas_opcode_name(unsigned opcode)
{
	return opcode < sizeof(opcodes) / sizeof(opcodes[0]) ?
		opcodes[opcode] : NULL;
}

const char *gsas_error_name(unsigned error)
{
	return error < GSAS_ERRORS ? errors[error] : NULL;
}
