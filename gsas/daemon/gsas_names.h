/* SPDX-License-Identifier: BSD-2-Clause */
/* gsas_names.h - names of opcodes and texts of errors of gsas_pkt.h. */
#ifndef GSAS_NAMES_H
#define GSAS_NAMES_H

/* "READ64"; NULL: there is no such operation. */
const char *gsas_opcode_name(unsigned opcode);

/* "freed" for GSAS_E_FREED; NULL: there is no such error. */
const char *gsas_error_name(unsigned error);

#endif /* GSAS_NAMES_H */
