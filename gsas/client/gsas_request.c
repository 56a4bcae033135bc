/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * gsas_request.c - pending requests: begins them, and completes them by the
 * answers to their messages.
 */
#include <errno.h>
#include <string.h>

#include <rdma/fi_errno.h>

#include "client/gsas_request.h"
#include "common/gsas_pkt.h"

#if __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "a result of 1 or 4 bytes has to be the first bytes of its word"
#endif

int gsas_errno(uint64_t error)
{
	static const int of[GSAS_ERRORS] = {
		[GSAS_OK] = 0,
		[GSAS_E_OPCODE] = -FI_ENOSYS,
		[GSAS_E_ADDRESS] = -FI_EFAULT,
		[GSAS_E_FREED] = -ESTALE,
		[GSAS_E_ACCESS] = -FI_EACCES,
		[GSAS_E_ARGUMENT] = -FI_EINVAL,
		[GSAS_E_MEMORY] = -FI_ENOMEM,
		[GSAS_E_QUOTA] = -EDQUOT,
		[GSAS_E_MAPPED] = -FI_EPERM,
		[GSAS_E_PATH] = -FI_ENOENT,
		[GSAS_E_EXEC] = -FI_EPERM,
		[GSAS_E_JOIN] = -EPROTO,
		[GSAS_E_AGAIN] = -FI_EAGAIN,
		[GSAS_E_STATE] = -FI_EINVAL,
	};

	return error < GSAS_ERRORS ? of[error] : -EPROTO;
}

void gsas_request_begin(struct gsas_request *request, uint64_t owner)
{
	memset(request, 0, sizeof(*request));
	request->status = -FI_EINPROGRESS;
	request->owner = owner;
}

/* Note an error of a bulk request, and complete the request if all messages are
 * sent and answered. */
static void bulk_check(struct gsas_request *request, int error)
{
	if (request->error == 0)
		request->error = error;
	if (request->parts == 0 && request->left == 0)
		request->status = request->error;
}

void gsas_request_stop(struct gsas_request *request, int error)
{
	request->left = 0;
	bulk_check(request, error);
}

void gsas_request_answer(struct gsas_request *request, int error,
			 uint64_t result, uint64_t more)
{
	if (request->bulk) {
		request->parts--;
		bulk_check(request, error);
		return;
	}
	request->result = result;
	request->more = more;
	if (error == 0 && request->out != NULL)
		memcpy(request->out, request->done != NULL ? &more : &result,
		       request->bytes);
	if (error == 0 && request->done != NULL)
		*request->done = result != 0;
	request->status = error;
}
