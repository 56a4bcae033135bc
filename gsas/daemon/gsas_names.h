/* SPDX-License-Identifier: BSD-2-Clause */
/* gsas_names.h - the numbers of gsas_pkt.h, as people read them. */
#ifndef GSAS_NAMES_H
#define GSAS_NAMES_H

/* "READ64"; NULL: there is no such operation. */
const char *gsas_opcode_name(unsigned opcode);

/* "somebody else's"; NULL: there is no such error. */
const char *gsas_error_name(unsigned error);

#endif /* GSAS_NAMES_H */
