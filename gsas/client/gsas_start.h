/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * gsas_start.h - start the service of a board at first use, where boards are
 * emulated. Not on a device: there the system starts it.
 */
#ifndef GSAS_START_H
#define GSAS_START_H

/*
 * Run "gsasd --board N --auto" apart from this process (no child of it, none of
 * its descriptors) and wait until it serves, or says why it does not. Another
 * process that starts one at the same time is no error.
 * 0; -FI_ECONNREFUSED, after one line on stderr that says what is wrong.
 */
int gsas_start(unsigned board);

#endif /* GSAS_START_H */
