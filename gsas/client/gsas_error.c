/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * gsas_error.c - gsas_strerror(): what the errors of gsas.h mean. The table of
 * gsas.h, and gsas(7), describe them.
 */
#include <errno.h>
#include <limits.h>
#include <string.h>

#include "gsas.h"

static const struct {
	int error;
	const char *text;
} meanings[] = {
	{ 0, "no error" },
	{ EFAULT, "nothing was ever allocated at this address" },
	{ ESTALE, "the memory was freed" },
	{ EACCES, "the memory belongs to another job, or another user holds "
		  "the service of the board" },
	{ EINVAL, "an argument is not valid" },
	{ ENXIO, "there is no such board" },
	{ ENOMEM, "there is no more memory" },
	{ EDQUOT, "the user has used up a share of the board, or a table is "
		  "full" },
	{ EPERM, "not allowed on memory of this kind, or not allowed at all" },
	{ ENOSYS, "there is no such operation on this type" },
	{ EBUSY, "all interfaces of the board are taken" },
	{ ECONNRESET, "the service of the board, or a member of the team, has "
		      "ended" },
	{ ETIMEDOUT, "nothing happened within the time given, or the service "
		     "of the board does not answer" },
	{ ECONNREFUSED, "the board has no service, and none could be started" },
	{ EHOSTUNREACH, "the host of the board does not answer" },
	{ EAGAIN, "not possible now, try again" },
	{ EINPROGRESS, "the request is not done yet" },
	{ ENOENT, "there is no such thing" },
	{ EOPNOTSUPP, "memory of these boards cannot be mapped" },
	{ EMFILE, "the process has no more descriptors" },
	{ ENODEV, "there is no Unimem hardware" },
	{ EPROTO, "the process that answers is no atomic service" },
};

const char *gsas_strerror(int error)
{
	const char *text;

	if (error == INT_MIN)		/* it has no positive value */
		return "unknown error";
	if (error < 0)
		error = -error;
	for (size_t i = 0; i < sizeof(meanings) / sizeof(meanings[0]); i++)
		if (meanings[i].error == error)
			return meanings[i].text;
	text = strerrordesc_np(error);
	return text != NULL ? text : "unknown error";
}
